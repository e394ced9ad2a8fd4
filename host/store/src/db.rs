//! Connecting to the store, reading and writing. Which backend runs is known here and below; what is done first is in [`opening`](crate::opening).
//!
//! SQLite: one writer connection behind a fair queue with `BEGIN IMMEDIATE`, many readers, WAL, every commit synced; a lock file makes sure
//! that one host has it open; charges are logged before they are booked ([`backlog`]). PostgreSQL: pools; hosts may share it.

mod backlog;
mod connecting;
mod doubt;
mod lines;
mod postgres;
mod reads;
mod silence;
mod sqlite;
mod transaction;

use crate::audit;
use crate::changes::{self, Change, Changes, CreditListener};
use crate::charge_log::{self, ChargeLog};
use crate::error::StoreError;
pub(crate) use backlog::{Backlog, Pen};
use connecting::{prepare, quiet, wish};
pub(crate) use doubt::{Outcome, number_of};
use lines::{Lines, Place};
pub(crate) use postgres::{ANSWERED_WITHIN, server_clock};
pub use postgres::{READ_WITHIN, SWEPT_WITHIN};
pub use reads::{Read, hold, holding};
pub(crate) use silence::answered;
use silence::in_time;
use souk_domain::time::Timestamp;
use sqlx::any::{AnyConnectOptions, AnyPoolOptions};
use sqlx::pool::PoolConnection;
use sqlx::{Any, AnyConnection, AnyPool, Executor};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant, SystemTime};
use tokio::runtime::Handle;
use tokio::sync::Mutex;
use tokio_util::task::AbortOnDropHandle;
pub(crate) use transaction::Turn;
pub use transaction::Write;
use transaction::{Session, Uncommitted};

/// Transactions of one company that stand in line with others' or are at work: of a file, where one is at work at a time, and of a server.
const OF_COMPANY_IN_FILE: usize = 1;
const OF_COMPANY_AT_SERVER: usize = 4;
/// The teller's connections to a server: one that books, one that reserves, one that is just being given back.
const OF_TELLER: u32 = 3;
/// A transaction that takes longer keeps others waiting: it is named in the log.
const LONG: Duration = Duration::from_secs(1);

/// Where the store is and how much of it to use.
#[derive(Debug, Clone)]
pub struct OpenOptions {
    /// `sqlite:PATH` or `postgres://…`.
    pub url: String,
    /// Connections for reading; on PostgreSQL as many again for writing.
    pub connections: u32,
    /// How long a reader or writer waits for its turn before it gives up with [`StoreError::Busy`].
    pub patience: Duration,
}

impl OpenOptions {
    pub fn new(url: impl Into<String>) -> Self {
        // 8: more than the cores of a small machine, far below PostgreSQL's default of 100 for several hosts.
        Self {
            url: url.into(),
            connections: 8,
            patience: Duration::from_secs(5),
        }
    }
}

/// The store. Cheap to clone.
#[derive(Clone)]
pub struct Db {
    inner: Arc<Inner>,
}

struct Inner {
    backend: Backend,
    options: AnyConnectOptions,
    patience: Duration,
    readers: AnyPool,
    /// Of a server.
    unreached: postgres::Unreached,
    lines: Lines,
    changes: Arc<Changes>,
    /// Held for as long as the store is open.
    lock: parking_lot::Mutex<Option<File>>,
    closed: AtomicBool,
}

enum Backend {
    Sqlite {
        writer: sqlite::Writer,
        /// The task that keeps SQLite's log short.
        log: AbortOnDropHandle<()>,
        backlog: Backlog,
        path: PathBuf,
    },
    /// The teller has connections of its own: it never waits behind others, and its statements stay prepared on few of them.
    Postgres { writers: AnyPool, teller: AnyPool },
}

/// What a transaction is for.
#[derive(Clone, Copy)]
enum Purpose {
    Any,
    Charges,
    /// Charges that are in the charge log.
    Backlog,
    Holds,
}

impl Db {
    /// Takes the store's lock and connects to it, whatever is in it.
    pub(crate) async fn connect(options: &OpenOptions) -> Result<Self, StoreError> {
        sqlx::any::install_default_drivers();
        match options.url.strip_prefix("sqlite:") {
            Some(path) => Self::open_sqlite(options, path).await,
            None if options.url.starts_with("postgres:")
                || options.url.starts_with("postgresql:") =>
            {
                Self::open_postgres(options).await
            }
            None => Err(StoreError::unavailable(
                "the store's URL begins with sqlite: or postgres:",
            )),
        }
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.inner.closed.load(Ordering::SeqCst)
    }

    /// The charges that are logged but not booked. `None`: charges of this store are booked at once.
    pub(crate) fn backlog(&self) -> Option<&Backlog> {
        self.charge_log().map(|(backlog, _)| backlog)
    }

    /// The same with the path of the store, beside which the log is.
    pub(crate) fn charge_log(&self) -> Option<(&Backlog, &Path)> {
        match &self.inner.backend {
            Backend::Sqlite { backlog, path, .. } => Some((backlog, path)),
            Backend::Postgres { .. } => None,
        }
    }

    async fn open_sqlite(options: &OpenOptions, path: &str) -> Result<Self, StoreError> {
        let path = path.strip_prefix("//").unwrap_or(path);
        let path = PathBuf::from(path.split('?').next().unwrap_or(path));
        if path.as_os_str().is_empty() || path.as_os_str() == ":memory:" {
            return Err(StoreError::unavailable("the store is a file: sqlite:PATH"));
        }
        // By its real name: a link to the store must find the store's lock and logs.
        let path = sqlite::real_path(&path);
        let lock = sqlite::lock(&path).await?;
        let connect: AnyConnectOptions = sqlite::url(&path).parse()?;
        let connect = quiet(connect);
        let writer = sqlite::Writers::open(&connect).await?;
        let writer: sqlite::Writer = Arc::new(Mutex::new(Some(writer)));
        let log = sqlite::keep_log_short(path.clone(), connect.clone(), writer.clone());
        let readers = AnyPoolOptions::new()
            .max_connections(options.connections)
            .acquire_timeout(options.patience)
            .idle_timeout(None)
            .max_lifetime(None)
            .test_before_acquire(false)
            .after_connect(|connection, _| Box::pin(prepare(connection, sqlite::READER)))
            .connect_lazy_with(connect.clone());
        let inner = Inner {
            backend: Backend::Sqlite {
                writer,
                log: AbortOnDropHandle::new(tokio::spawn(log)),
                // Nothing is known of the log yet; who opens the store catches up when the schema is there.
                backlog: Backlog::new(ChargeLog::new(&path, 1), 0, options.patience),
                path,
            },
            options: connect,
            patience: options.patience,
            readers,
            unreached: postgres::Unreached::default(),
            lines: Lines::new(OF_COMPANY_IN_FILE),
            changes: Changes::new(true),
            lock: parking_lot::Mutex::new(Some(lock)),
            closed: AtomicBool::new(false),
        };
        Ok(Self {
            inner: Arc::new(inner),
        })
    }

    async fn open_postgres(options: &OpenOptions) -> Result<Self, StoreError> {
        let connect = match options.url.parse() {
            Ok(connect) => quiet(connect),
            Err(error) => {
                let error: sqlx::Error = error;
                return Err(StoreError::unavailable(format!(
                    "the URL cannot be used: {error}"
                )));
            }
        };
        postgres::reach(&connect, options.patience).await?;
        let pool = |settings: &'static [&'static str]| {
            AnyPoolOptions::new()
                .max_connections(options.connections)
                .acquire_timeout(options.patience)
                .test_before_acquire(true)
                .after_connect(move |connection, _| {
                    Box::pin(async move {
                        prepare(connection, settings).await?;
                        wish(connection, postgres::WISHED).await
                    })
                })
        };
        let unreached = postgres::Unreached::default();
        let readers = match pool(postgres::EACH).connect_with(connect.clone()).await {
            Err(sqlx::Error::PoolTimedOut) => return Err(unreached.why(&connect).await),
            readers => readers?,
        };
        let writers = pool(postgres::WRITER).connect_lazy_with(connect.clone());
        // Not tested before use: where one has ended another one is taken.
        let teller = pool(postgres::WRITER)
            .max_connections(OF_TELLER)
            .test_before_acquire(false)
            .connect_lazy_with(connect.clone());
        let changes = Changes::new(false);
        tokio::spawn(changes::listen(
            Arc::downgrade(&changes),
            options.url.clone(),
        ));
        let inner = Inner {
            backend: Backend::Postgres { writers, teller },
            options: connect,
            patience: options.patience,
            readers,
            unreached,
            lines: Lines::new(OF_COMPANY_AT_SERVER),
            changes,
            lock: parking_lot::Mutex::new(None),
            closed: AtomicBool::new(false),
        };
        Ok(Self {
            inner: Arc::new(inner),
        })
    }

    /// Whether other hosts may have this store open too. What is kept in memory then needs the store as its witness.
    pub fn is_shared(&self) -> bool {
        matches!(self.inner.backend, Backend::Postgres { .. })
    }

    /// A connection for reading. Each statement sees what was committed, and every charge that was answered, before this was called.
    pub async fn read(&self) -> Result<Read, StoreError> {
        // Boxed, like what writes: requests that find everything in caches would carry the room for waiting from one place to the next.
        Box::pin(self.reader()).await
    }

    async fn reader(&self) -> Result<Read, StoreError> {
        if let Some(backlog) = self.backlog() {
            backlog.caught_up().await?;
        }
        let connection = self.connection(&self.inner.readers).await?;
        Ok(Read::new(connection, self.is_shared()))
    }

    /// Out of a pool. Pools only say that none came; of a server it is told why.
    async fn connection(&self, pool: &AnyPool) -> Result<PoolConnection<Any>, StoreError> {
        match pool.acquire().await {
            Err(sqlx::Error::PoolTimedOut) if self.is_shared() => {
                Err(self.inner.unreached.why(&self.inner.options).await)
            }
            acquired => Ok(acquired?),
        }
    }

    /// A connection whose statements all see the same instant, however long it takes.
    pub async fn snapshot(&self) -> Result<Read, StoreError> {
        let mut read = self.read().await?;
        read.begin_snapshot().await?;
        Ok(read)
    }

    /// `work`, if a server answers each thing that it reads within this time; else `work` is given up, as by a client that hangs up, and told as
    /// [`StoreError::Unavailable`]. What it writes has limits of its own, and a store of this host's own always answers.
    pub async fn answered<T, E: From<StoreError>>(
        &self,
        within: Duration,
        work: impl Future<Output = Result<T, E>>,
    ) -> Result<T, E> {
        match self.is_shared() {
            true => answered(within, work).await,
            false => work.await,
        }
    }

    /// What is read by a connection of its own, if a server answers it within [`READ_WITHIN`]; else [`StoreError::Unavailable`]. For whoever reads while
    /// others wait for what he holds, and goes on when his client hangs up: his work as a whole may not be given up halfway.
    pub async fn ask<T>(
        &self,
        question: impl AsyncFnOnce(&mut AnyConnection) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let asked = async { question(&mut *self.read().await?).await };
        self.answered(READ_WITHIN, asked).await
    }

    /// Does `work` in one transaction, which is committed when it returns `Ok` and rolled back when it fails. What it touched is announced
    /// before this returns, and what whoever is [acting](audit::acting) changed is in the audit log.
    ///
    /// Where the connection to a server ends in the middle of the commit, it is looked for in the audit log: what is found there has been done.
    ///
    /// An error that `work` does not pass on commits what was written before it. Never keep a transaction across a network call or a
    /// connector's run: on SQLite nobody else writes meanwhile. Whoever is cancelled before the commit was sent has written nothing.
    pub async fn write<T, E: From<StoreError>>(
        &self,
        work: impl AsyncFnOnce(&mut Write) -> Result<T, E>,
    ) -> Result<T, E> {
        let place = Box::pin(self.stand_in_line()).await?;
        let mut write = self.begin(Purpose::Any).await?;
        write.keep(place.clone());
        let under_way = UnderWay {
            db: self,
            place,
            begun: Instant::now(),
        };
        let done = async move {
            let limit = write.limit(postgres::WRITTEN_WITHIN);
            let acted = async {
                let act = audit::begin(&mut write).await?;
                let done = work(&mut write).await?;
                if act.is_some() {
                    audit::end(&mut write).await?;
                }
                Ok::<_, E>((act, done))
            };
            let acted = in_time(limit, acted).await;
            let (act, done) = write.answered(acted)?;
            if let Err(Uncommitted { error, touched }) = write.try_commit().await {
                if !Box::pin(self.is_committed(act.as_ref(), &error)).await {
                    return Err(error.into());
                }
                // What was read while it was on its way was of before.
                self.inner.changes.announce_each(touched);
            }
            Ok(done)
        };
        let done = done.await;
        let took = under_way.end();
        if took > LONG {
            let (operation, seconds) = (audit::operation(), took.as_secs_f64());
            tracing::warn!(operation, seconds, "a transaction was long");
        }
        done
    }

    /// Before others of the company that is acting, or of all who are not signed in. `None`: the host does it itself.
    async fn stand_in_line(&self) -> Result<Option<Place>, StoreError> {
        let Some(party) = audit::party() else {
            return Ok(None);
        };
        let place = self.inner.lines.stand(&party);
        tokio::time::timeout(self.inner.patience, place)
            .await
            .map_err(|_| StoreError::Busy)
    }

    /// Waits until a file's writer has done what it was told before, whoever still waits for that.
    async fn caught_up_with_writer(&self) {
        if let Backend::Sqlite { writer, .. } = &self.inner.backend
            && let Some(writers) = writer.lock().await.as_mut()
        {
            writers.any.execute("SELECT 1").await.ok();
        }
    }

    /// The view of whoever writes, in which nobody else can write meanwhile on a store of this host's own. Nothing is committed.
    pub(crate) async fn writers_view(&self) -> Result<Write, StoreError> {
        self.begin(Purpose::Any).await
    }

    /// A transaction that brings the schema up to date, which takes as long as it takes.
    pub(crate) async fn write_schema(&self) -> Result<Write, StoreError> {
        self.begin(Purpose::Any).await
    }

    /// A transaction that books charges.
    pub(crate) async fn write_charges(&self) -> Result<Write, StoreError> {
        self.begin(Purpose::Charges).await
    }

    /// The turn to book charges that are in the charge log, in a transaction that is yet to begin.
    pub(crate) async fn turn_for_backlog(&self) -> Result<Turn, StoreError> {
        self.turn(Purpose::Backlog).await
    }

    /// A transaction on a shared store that a crash of the server may undo (whole, never in part) within about a second of its commit.
    /// For holds, which are worthless after a crash anyway.
    pub(crate) async fn write_holds(&self) -> Result<Write, StoreError> {
        self.begin(Purpose::Holds).await
    }

    async fn begin(&self, purpose: Purpose) -> Result<Write, StoreError> {
        let begun = async {
            for _ in 0..OF_TELLER {
                match self.turn(purpose).await?.try_begin().await {
                    Err(error) if transaction::had_ended(&error) => {}
                    begun => return Ok(begun?),
                }
            }
            self.turn(purpose).await?.begin().await
        };
        Box::pin(begun).await
    }

    async fn turn(&self, purpose: Purpose) -> Result<Turn, StoreError> {
        let mut pen = None;
        let (begin, session) = match &self.inner.backend {
            Backend::Sqlite {
                writer, backlog, ..
            } => {
                if !matches!(purpose, Purpose::Backlog) {
                    pen = Some(backlog.pen().await?);
                    backlog.caught_up().await?;
                }
                let mut slot =
                    tokio::time::timeout(self.inner.patience, writer.clone().lock_owned())
                        .await
                        .map_err(|_| StoreError::Busy)?;
                if self.inner.closed.load(Ordering::SeqCst) {
                    return Err(StoreError::unavailable("the store is closed"));
                }
                if slot.is_none() {
                    *slot = Some(sqlite::Writers::open(&self.inner.options).await?);
                }
                (Some(sqlite::BEGIN), Session::Exclusive(slot))
            }
            Backend::Postgres { writers, teller } => {
                let (pool, begin) = match purpose {
                    Purpose::Any => (writers, None),
                    Purpose::Charges | Purpose::Backlog => (teller, None),
                    Purpose::Holds => (teller, Some("BEGIN; SET LOCAL synchronous_commit = off")),
                };
                (begin, Session::Pooled(Some(self.connection(pool).await?)))
            }
        };
        let changes = self.inner.changes.clone();
        Ok(Turn::new(begin, session, changes, self.is_shared(), pen))
    }

    /// Calls `listener` after every committed change, in this process before `commit` returns, of other hosts as soon as they are heard.
    pub fn on_change(&self, listener: Box<dyn Fn(&Change) + Send + Sync>) {
        self.inner.changes.subscribe(listener);
    }

    /// Announces in this process what changed in it and not in the store, such as which connector serves an engine here: caches drop what
    /// was made from it. Whoever keeps this does not keep the store.
    pub fn announcer(&self) -> impl Fn(&Change) + Send + Sync + use<> {
        let changes = Arc::downgrade(&self.inner.changes);
        move |change| {
            if let Some(changes) = changes.upgrade() {
                changes.announce(change);
            }
        }
    }

    /// Calls `listener` with what a committed transaction of this host changed of buyers' accounts, charges aside, before another one can begin.
    pub(crate) fn on_credit(&self, listener: CreditListener) -> Result<(), StoreError> {
        self.inner.changes.subscribe_credits(listener)
    }

    /// False while changes of other hosts may be missed: what is cached must not be used.
    pub fn coherent(&self) -> Arc<AtomicBool> {
        self.inner.changes.coherent()
    }

    /// Whether this host hears of other hosts' changes, so that it may use its caches.
    pub fn is_coherent(&self) -> bool {
        self.inner.changes.coherent().load(Ordering::SeqCst)
    }

    /// How far the books are behind the charge log, in frames of charges, and what the log takes on the disk in bytes. `None`: this store has none.
    pub fn charge_log_lag(&self) -> Option<(u64, u64)> {
        let (backlog, path) = self.charge_log()?;
        Some((backlog.frames(), charge_log::bytes(path)))
    }

    /// Lets a store that is a file have no more than so many pages until it is closed, as a disk that is full would: for tests.
    #[doc(hidden)]
    pub async fn limit_pages(&self, pages: u32) -> Result<(), StoreError> {
        match &self.inner.backend {
            Backend::Sqlite { writer, .. } => match writer.lock().await.as_mut() {
                Some(writers) => Ok(writers.limit_pages(pages).await?),
                None => Ok(()),
            },
            Backend::Postgres { .. } => Ok(()),
        }
    }

    /// How to connect to a store that is a file.
    pub(crate) fn file_options(&self) -> Option<&AnyConnectOptions> {
        match &self.inner.backend {
            Backend::Sqlite { .. } => Some(&self.inner.options),
            Backend::Postgres { .. } => None,
        }
    }

    /// Whether the store answers.
    pub async fn ping(&self) -> Result<(), StoreError> {
        let mut read = self.read().await?;
        read.execute("SELECT 1").await?;
        Ok(())
    }

    /// Whether the store, which answers, takes what is written. (A file that cannot be written to fails whoever writes.)
    pub async fn takes_writes(&self) -> Result<bool, StoreError> {
        match self.is_shared() {
            true => postgres::takes_writes(&mut *self.read().await?).await,
            false => self.ping().await.map(|()| true),
        }
    }

    /// Closes all connections; what is in flight finishes first, and what comes later is refused. Another process may then open the store.
    pub async fn close(&self) {
        self.inner.readers.close().await;
        match &self.inner.backend {
            Backend::Sqlite {
                writer,
                log,
                backlog,
                path,
            } => {
                log.abort();
                let mut pen = backlog.last_pen().await;
                pen.close();
                // What cannot be booked now stays in the log for the next start.
                let is_booked = backlog.caught_up().await.is_ok();
                let mut slot = writer.lock().await;
                self.inner.closed.store(true, Ordering::SeqCst);
                if let Some(writers) = slot.take() {
                    writers.close().await.ok();
                }
                // Only as long as nobody else can have the store open, and its log.
                let lock = self.inner.lock.lock().take();
                if lock.is_some() && is_booked && backlog.is_empty() {
                    charge_log::remove(path);
                }
            }
            Backend::Postgres { writers, teller } => {
                teller.close().await;
                writers.close().await;
            }
        }
    }
}

/// A transaction that has begun, with its company's place in line.
struct UnderWay<'a> {
    db: &'a Db,
    place: Option<Place>,
    begun: Instant,
}

impl UnderWay<'_> {
    /// It has ended. How long it took.
    fn end(mut self) -> Duration {
        let took = self.begun.elapsed();
        if let Some(place) = self.place.take() {
            lines::give_back(place, took);
        }
        took
    }
}

impl Drop for UnderWay<'_> {
    /// Whoever waited for it has gone. What a file's writer was told goes on all the same, and until that has ended so does the company's turn. (At a server
    /// the transaction itself has it until then.)
    fn drop(&mut self) {
        if let (Some(place), Ok(runtime)) = (self.place.take(), Handle::try_current()) {
            let (db, begun) = (self.db.clone(), self.begun);
            runtime.spawn(async move {
                db.caught_up_with_writer().await;
                lines::give_back(place, begun.elapsed());
            });
        }
    }
}

/// The URL of a SQLite file.
pub(crate) fn file_url(path: &Path) -> String {
    sqlite::url(path)
}

/// The wall clock, for what the store stamps itself.
pub fn now() -> Timestamp {
    SystemTime::now().into()
}
