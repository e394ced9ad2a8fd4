//! A transaction: the right to begin one, what is noted while it runs, and how it ends.

use super::backlog::Pen;
use super::silence::{Asked, Patience, give_back, in_time, silent};
use super::{postgres, sqlite};
use crate::bulk::{Script, WholeError};
use crate::changes::{self, BalanceChange, Changes, Topic};
use crate::error::StoreError;
use souk_domain::ids::CompanyId;
use souk_domain::money::UsdCents;
use sqlx::pool::PoolConnection;
use sqlx::{Any, AnyConnection, Database, Executor, SqlSafeStr, SqliteConnection};
use sqlx_core::transaction::TransactionManager;
use std::io;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{OwnedMutexGuard, OwnedSemaphorePermit};

pub(super) type Manager = <Any as Database>::TransactionManager;

/// The connection of a transaction.
pub(super) enum Session {
    Exclusive(OwnedMutexGuard<Option<sqlite::Writers>>),
    Pooled(Option<PoolConnection<Any>>),
}

impl Session {
    fn get(&self) -> Option<&AnyConnection> {
        match self {
            Self::Exclusive(slot) => slot.as_ref().map(|writers| &writers.any),
            Self::Pooled(connection) => connection.as_deref(),
        }
    }

    fn get_mut(&mut self) -> Option<&mut AnyConnection> {
        match self {
            Self::Exclusive(slot) => slot.as_mut().map(|writers| &mut writers.any),
            Self::Pooled(connection) => connection.as_deref_mut(),
        }
    }

    /// The connection for whole scripts, where there is one.
    fn books(&mut self) -> Option<&mut SqliteConnection> {
        match self {
            Self::Exclusive(slot) => slot.as_mut().map(|writers| &mut writers.books),
            Self::Pooled(_) => None,
        }
    }

    fn connection(&mut self) -> Result<&mut AnyConnection, StoreError> {
        self.get_mut()
            .ok_or_else(|| StoreError::unavailable("the writer's connection is gone"))
    }

    /// Throws a connection away whose state is in doubt (a commit that failed on a full disk may or may not have left its transaction open).
    fn discard(&mut self) {
        match self {
            Self::Exclusive(slot) => drop(slot.take()),
            Self::Pooled(connection) => {
                if let Some(mut connection) = connection.take() {
                    connection.close_on_drop();
                }
            }
        }
    }
}

/// The right to begin a transaction: on SQLite nobody else writes until it is dropped.
pub(crate) struct Turn {
    begin: Option<&'static str>,
    write: Write,
}

impl Turn {
    /// `begin`: what begins the transaction, if not a plain `BEGIN`. `pen`: keeps charges from being logged meanwhile.
    pub(super) fn new(
        begin: Option<&'static str>,
        session: Session,
        changes: Arc<Changes>,
        shared: bool,
        pen: Option<Pen>,
    ) -> Self {
        let write = Write {
            session,
            changes,
            shared,
            touched: Vec::new(),
            credited: Vec::new(),
            ends: Vec::new(),
            stage: Stage::Before,
            asked: shared.then(Asked::now),
            is_lost: false,
            place: None,
            _pen: pen,
        };
        Self { begin, write }
    }

    pub(crate) async fn begin(self) -> Result<Write, StoreError> {
        Ok(self.try_begin().await?)
    }

    /// Where this fails the connection was thrown away, and whoever takes another turn has a new one.
    pub(super) async fn try_begin(mut self) -> Result<Write, sqlx::Error> {
        let begin = self.begin.map(SqlSafeStr::into_sql_str);
        let limit = self.write.limit(postgres::ANSWERED_WITHIN);
        self.write.stage = Stage::Begins;
        let connection = self.write.session.get_mut();
        let connection = connection.ok_or(sqlx::Error::WorkerCrashed)?;
        let begun = in_time(limit, Manager::begin(connection, begin)).await;
        if let Err(error) = begun.unwrap_or_else(|| Err(silent())) {
            self.write.session.discard();
            return Err(error);
        }
        self.write.stage = Stage::Open;
        Ok(self.write)
    }

    /// Begins, runs the script, and commits. On SQLite by a connection of its own.
    pub(crate) async fn run_whole(mut self, script: Script) -> Result<(), WholeError> {
        let Some(books) = self.write.session.books() else {
            let mut write = self.begin().await.map_err(WholeError::undone)?;
            script.run(&mut write).await.map_err(WholeError::undone)?;
            return write.commit().await.map_err(|error| WholeError {
                error,
                in_doubt: true,
            });
        };
        // Until it is known otherwise, a transaction is open that only the connection's end is sure to end.
        self.write.stage = Stage::OpenByScript;
        let result = script.run_whole(sqlite::BEGIN, books).await;
        let is_over = match &result {
            Ok(()) => true,
            Err(error) if error.in_doubt => false,
            Err(_) => books.execute("ROLLBACK").await.is_ok(),
        };
        if is_over {
            self.write.stage = Stage::Over;
        }
        result
    }
}

/// Whether what began a transaction has found the connection at its end, or in the middle of another transaction: nothing has been done, and whoever takes
/// another turn has another connection.
pub(super) fn had_ended(error: &sqlx::Error) -> bool {
    match error {
        // SQLite has undone the transaction before this one by itself, for want of room say, and sqlx does not know.
        sqlx::Error::InvalidSavePointStatement => true,
        // One that is silent is not tried again: others would be, too.
        sqlx::Error::Io(error) => error.kind() != io::ErrorKind::TimedOut,
        // The server has said that it ends it: it is stopped, or the connection was idle for too long.
        sqlx::Error::Database(error) => error
            .code()
            .is_some_and(|code| code.starts_with("57P") || code == "25P03"),
        _ => false,
    }
}

/// How far a transaction is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    Before,
    /// What begins it is on its way, if somebody still waits for that.
    Begins,
    Open,
    /// Begun by a script, which sqlx does not know of.
    OpenByScript,
    Over,
}

/// A transaction: what is read and written in [`Db::write`](crate::Db::write).
pub struct Write {
    session: Session,
    changes: Arc<Changes>,
    shared: bool,
    touched: Vec<(Topic, String)>,
    credited: Vec<(CompanyId, BalanceChange)>,
    ends: Vec<Box<dyn FnOnce(bool) + Send>>,
    stage: Stage,
    /// When its connection was asked last, if a server answers.
    asked: Option<Arc<Asked>>,
    /// The server does not answer.
    is_lost: bool,
    /// Of whoever gives it up, until a server has undone it.
    place: Option<Arc<OwnedSemaphorePermit>>,
    /// No charges are logged meanwhile.
    _pen: Option<Pen>,
}

impl Write {
    /// Whether other hosts may write at the same time, so that what is read must be locked before it is decided upon.
    pub fn is_shared(&self) -> bool {
        self.shared
    }

    /// How long work in this transaction may take, if its answers are those of a server.
    pub(crate) fn limit(&self, of_server: Duration) -> Option<Duration> {
        // A store of this host's own always answers.
        self.shared.then_some(of_server)
    }

    /// How long the teller waits for what it does in this transaction.
    pub(crate) fn patience(&self) -> Patience {
        Patience::of(self.asked.clone())
    }

    /// Whoever has this place has it until this transaction has ended, whether or not he waits for that.
    pub(super) fn keep(&mut self, place: Option<Arc<OwnedSemaphorePermit>>) {
        self.place = place;
    }

    /// What was done in this transaction [in time](in_time), or with [patience](Write::patience). A connection that does not answer is thrown away, and
    /// nothing of it is committed.
    pub(crate) fn answered<T, E: From<StoreError>>(
        &mut self,
        done: Option<Result<T, E>>,
    ) -> Result<T, E> {
        done.unwrap_or_else(|| {
            self.is_lost = true;
            Err(StoreError::from(silent()).into())
        })
    }

    /// Notes that this transaction changes `id`; whoever caches it is told once it is committed. Called beside the statement that does it, so
    /// that no caller can forget.
    pub(crate) fn touch(&mut self, topic: Topic, id: impl AsRef<str>) {
        self.touched.push((topic, id.as_ref().to_owned()));
    }

    /// Notes that this transaction adds to a buyer's balance, of which the teller keeps count.
    pub(crate) fn credited(&mut self, buyer: &CompanyId, amount: UsdCents) {
        self.credited
            .push((buyer.clone(), BalanceChange::Gained(amount)));
    }

    /// Takes back what this transaction has added to a buyer's balance, up to so much, as nobody has it yet. Returns how much that is.
    pub(crate) fn uncredit(&mut self, buyer: &CompanyId, most: UsdCents) -> UsdCents {
        let mut left = most.get();
        for (of, change) in &mut self.credited {
            if let BalanceChange::Gained(gained) = change
                && *of == *buyer
            {
                let some = gained.get().min(left);
                *gained = UsdCents::new(gained.get() - some);
                left -= some;
            }
        }
        UsdCents::new(most.get() - left)
    }

    /// Notes that this transaction says when a buyer's balance is low.
    pub(crate) fn low_at(&mut self, buyer: &CompanyId, credits: Option<i64>) {
        self.credited
            .push((buyer.clone(), BalanceChange::LowAt(credits)));
    }

    /// Does this at the end of a commit, while nobody else writes to a store of this host's own: `true` of one that went well, `false` of one of which
    /// nobody knows that. A transaction that is not committed drops it.
    pub(crate) fn at_end(&mut self, then: impl FnOnce(bool) + Send + 'static) {
        self.ends.push(Box::new(then));
    }

    /// Makes the changes durable and visible, and tells the caches of this process, before it returns.
    ///
    /// Runs to its end even if the caller is cancelled meanwhile: a commit without its announcement would leave caches stale.
    pub(crate) async fn commit(self) -> Result<(), StoreError> {
        let committed = self.try_commit().await;
        committed.map_err(|uncommitted| uncommitted.error)
    }

    /// The same; where it fails, with what it touched: it may be committed later.
    pub(super) async fn try_commit(mut self) -> Result<(), Uncommitted> {
        if self.touched.is_empty() && self.credited.is_empty() && self.ends.is_empty() {
            return Ok(self.finish().await?);
        }
        if self.shared && !self.touched.is_empty() {
            let limit = self.limit(postgres::ANSWERED_WITHIN);
            for payload in self.changes.payloads(&self.touched) {
                let notify = sqlx::query(changes::NOTIFY).bind(payload);
                let notified = in_time(limit, notify.execute(&mut *self)).await;
                let notified = notified.map(|notified| notified.map_err(StoreError::from));
                self.answered(notified)?;
            }
        }
        let committed = tokio::spawn(async move {
            let result = self.finish().await;
            let touched = std::mem::take(&mut self.touched);
            for then in self.ends.drain(..) {
                then(result.is_ok());
            }
            match result {
                Ok(()) => {
                    self.changes.announce_each(touched);
                    // Still the only writer: whoever counts balances sees the commits in their order.
                    self.changes.announce_credits(&self.credited);
                    Ok(())
                }
                Err(error) => {
                    if self.shared && !error.is_refusal() {
                        self.changes.doubt();
                    }
                    // The outcome may be unknown; forgetting too much is harmless.
                    self.changes.announce_each(touched.clone());
                    Err(Uncommitted { error, touched })
                }
            }
        });
        let committed = committed.await;
        committed.map_err(|_| StoreError::unavailable("the host is shutting down"))?
    }

    async fn finish(&mut self) -> Result<(), StoreError> {
        let limit = self.limit(postgres::ANSWERED_WITHIN);
        let commit = Manager::commit(self.session.connection()?);
        let committed = in_time(limit, commit).await;
        self.stage = Stage::Over;
        if let Err(error) = committed.unwrap_or_else(|| Err(silent())) {
            self.session.discard();
            return Err(error.into());
        }
        Ok(())
    }
}

/// A transaction whose commit failed, which may be in the middle of it.
pub(super) struct Uncommitted {
    pub(super) error: StoreError,
    pub(super) touched: Vec<(Topic, String)>,
}

impl From<StoreError> for Uncommitted {
    fn from(error: StoreError) -> Self {
        Self {
            error,
            touched: Vec::new(),
        }
    }
}

impl Drop for Write {
    fn drop(&mut self) {
        match (self.stage, self.session.get_mut()) {
            // Of what is on its way to a server sqlx knows nothing yet, and undoes nothing.
            (Stage::Begins, _) if self.shared => self.session.discard(),
            // Whoever gave it back to its pool would wait for its answer.
            (Stage::Open, _) if self.is_lost => self.session.discard(),
            (Stage::Open, Some(connection)) => Manager::start_rollback(connection),
            (Stage::OpenByScript, _) => self.session.discard(),
            _ => {}
        }
        if let Session::Pooled(Some(connection)) = &mut self.session {
            let place = self.place.take().filter(|_| self.stage == Stage::Open);
            give_back(connection, true, place);
        }
    }
}

impl Deref for Write {
    type Target = AnyConnection;
    fn deref(&self) -> &AnyConnection {
        match self.session.get() {
            Some(connection) => connection,
            // `discard` is only called before a `Write` exists and when `commit` has consumed it.
            None => unreachable!("a transaction has its connection until it ends"),
        }
    }
}

impl DerefMut for Write {
    fn deref_mut(&mut self) -> &mut AnyConnection {
        if let Some(asked) = &self.asked {
            asked.again();
        }
        match self.session.get_mut() {
            Some(connection) => connection,
            None => unreachable!("a transaction has its connection until it ends"),
        }
    }
}
