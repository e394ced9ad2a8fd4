//! Holds as rows, on a store that several hosts share.
//!
//! One task reserves and releases in batches: it locks the buyers' accounts in the order of their ids, decides in the order of arrival,
//! and commits without waiting for the disk, because a hold is worthless after a crash of the server anyway (so is its row, once it expires).

use super::balance::HoldError;
use super::hold::{Hold, HoldRequest, Op, Queue, Release};
use crate::accounts::{self, Account, AccountChanges, Level};
use crate::bulk::{Bulk, ROWS_MAX, Script, Style};
use crate::db::{self, ANSWERED_WITHIN, Db, Write, server_clock};
use crate::error::StoreError;
use crate::fields::Fields;
use souk_domain::ids::{CompanyId, ExecutionId};
use souk_domain::money::CENTS_PER_CREDIT;
use souk_domain::time::Timestamp;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::{Semaphore, mpsc, oneshot};

/// How often holds whose host died are looked for.
const SWEEP_EVERY: Duration = Duration::from_secs(2);

/// Who may wait to reserve something, while the store stands still say. A connection has one request under way, and a host has 10,000 of them unless it is
/// told otherwise; the rest is for those whose clients have hung up meanwhile. Together they take some megabytes.
const WAITING_MAX: usize = 16_384;

/// Clocks that are set by the network differ by milliseconds.
const APART_MAX: Duration = Duration::from_secs(5);
/// How often the log is told that they differ.
const TELL_EVERY: Duration = Duration::from_secs(600);

type Ops = mpsc::UnboundedSender<Op>;

/// Starts the task that keeps holds. It ends with the last sender.
pub(super) fn start(db: Db) -> Queue {
    let (queue, waiting) = queue(WAITING_MAX);
    tokio::spawn(run(db, queue.ops.downgrade(), waiting));
    queue
}

fn queue(waiting_max: usize) -> (Queue, mpsc::UnboundedReceiver<Op>) {
    let (ops, waiting) = mpsc::unbounded_channel();
    let places = Arc::new(Semaphore::new(waiting_max));
    (Queue { ops, places }, waiting)
}

/// Reserves through the task, while that is of use: what outlasts the run that it is for is given back. (A moment is waited for in any case.)
pub(super) async fn reserve(queue: &Queue, request: HoldRequest) -> Result<Hold, HoldError> {
    let of_use = request.expires_at.since(db::now());
    reserve_within(of_use.max(ANSWERED_WITHIN), queue, request).await
}

/// The same within this time. Who comes when too many wait already is told so at once.
async fn reserve_within(
    limit: Duration,
    queue: &Queue,
    request: HoldRequest,
) -> Result<Hold, HoldError> {
    let closed = || StoreError::Unavailable("the teller is closed".into());
    let place = queue.places.clone().try_acquire_owned();
    let place = place.map_err(|_| StoreError::Busy)?;
    let (reply, answer) = oneshot::channel();
    let op = Op::Reserve {
        request,
        reply,
        place,
    };
    queue.ops.send(op).map_err(|_| closed())?;
    match tokio::time::timeout(limit, answer).await {
        Ok(answer) => answer.map_err(|_| closed())?,
        // For whoever has gone nothing is reserved, or it is given back.
        Err(_) => Err(StoreError::Busy.into()),
    }
}

async fn run(db: Db, ops: mpsc::WeakUnboundedSender<Op>, mut queue: mpsc::UnboundedReceiver<Op>) {
    let mut sweep = tokio::time::interval(SWEEP_EVERY);
    sweep.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    let mut batch = Vec::with_capacity(ROWS_MAX);
    let mut clock = Clock::default();
    loop {
        tokio::select! {
            count = queue.recv_many(&mut batch, ROWS_MAX) => {
                if count == 0 {
                    return;
                }
            }
            // Whoever reserves waits behind it.
            _ = sweep.tick() => match db.answered(ANSWERED_WITHIN, expired(&db, &mut clock)).await {
                Ok(releases) => batch.extend(releases),
                Err(error) => tracing::warn!(%error, "expired holds could not be looked for"),
            },
        }
        let Some(ops) = ops.upgrade() else { return };
        settle(&db, &clock, &ops, std::mem::take(&mut batch)).await;
    }
}

/// The server's clock, as of the last sweep. The holds of all hosts expire by it: by their own, a host that is ahead would void those of others while
/// their runs go on.
#[derive(Default)]
struct Clock {
    /// How far it is ahead of this host's.
    ahead_us: i64,
    told: Option<Instant>,
}

impl Clock {
    /// `asked` and `answered`: what this host's shows before and behind that. An answer may be long on its way: a hold then ends later, never before its
    /// run, and that is no difference between clocks.
    fn note(&mut self, server: Timestamp, (asked, answered): (Timestamp, Timestamp)) {
        self.ahead_us = server.micros().saturating_sub(asked.micros());
        let apart = asked.since(server).max(server.since(answered));
        let is_told = self.told.is_some_and(|told| told.elapsed() < TELL_EVERY);
        if apart < APART_MAX || is_told {
            return;
        }
        self.told = Some(Instant::now());
        // The other way round: it is this host's clock that the operator sets.
        let seconds_ahead = asked.micros().saturating_sub(server.micros()) / 1_000_000;
        tracing::warn!(
            seconds_ahead,
            "this host's clock is not PostgreSQL's: prices, keys and what comes due hold by the hosts' clocks; let NTP set all of them"
        );
    }

    /// What it shows when this host's shows this.
    fn at(&self, host: Timestamp) -> Timestamp {
        Timestamp::from_micros(host.micros().saturating_add(self.ahead_us))
    }
}

/// Holds that outlived their run, as releases.
async fn expired(db: &Db, clock: &mut Clock) -> Result<Vec<Op>, StoreError> {
    let mut read = db.read().await?;
    let asked = db::now();
    let now = server_clock(&mut read).await?;
    clock.note(now, (asked, db::now()));
    let rows = sqlx::query(
        "SELECT id, account_id FROM holds WHERE expires_at < $1 ORDER BY expires_at LIMIT $2",
    )
    .bind(now.micros())
    .bind(ROWS_MAX as i64)
    .fetch_all(&mut *read)
    .await?;
    let mut releases = Vec::with_capacity(rows.len());
    for row in &rows {
        let execution: ExecutionId = row.id("id")?;
        if let Some(Account::Buyer(buyer)) = Account::parse(&row.text("account_id")?) {
            tracing::warn!(%execution, %buyer, "hold expired");
            releases.push(Op::Release { execution, buyer });
        }
    }
    Ok(releases)
}

/// Carries a batch out and answers everyone in it.
async fn settle(db: &Db, clock: &Clock, ops: &Ops, batch: Vec<Op>) {
    let mut requests = Vec::new();
    let mut releases = Vec::new();
    let mut flushes = Vec::new();
    for op in batch {
        match op {
            // Who has gone meanwhile needs none. There may be many, where the store stood still.
            Op::Reserve { reply, .. } if reply.is_closed() => {}
            Op::Reserve {
                request,
                reply,
                place,
            } => {
                // It waits no longer: it is one of a batch now.
                drop(place);
                requests.push((request, reply));
            }
            Op::Release { execution, buyer } => releases.push((execution, buyer)),
            Op::Flush(done) => flushes.push(done),
        }
    }
    let wanted: Vec<&HoldRequest> = requests.iter().map(|(request, _)| request).collect();
    let mut result = change(db, clock, &wanted, &releases).await;
    // A deadlock or a lost connection; both are cured by trying again, and the second time is enough to tell trouble from bad luck.
    if let Err(StoreError::Busy | StoreError::Unavailable(_)) = result {
        // Of a commit that was not answered nobody knows whether it went through: what it may have reserved is given back first.
        let reserved = wanted
            .iter()
            .map(|request| (request.execution.clone(), request.buyer.clone()));
        releases.extend(reserved);
        result = change(db, clock, &wanted, &releases).await;
    }
    match result {
        Ok(decisions) => {
            for ((request, reply), decision) in requests.into_iter().zip(decisions) {
                let release = Release::Rows(ops.clone());
                let hold = decision.map(|available| Hold::new(request, available, release));
                // If nobody waits any more, the hold is dropped here and thereby released.
                reply.send(hold).ok();
            }
        }
        Err(error) => {
            // Rows that were written after all, and rows that were not deleted, expire.
            tracing::warn!(%error, "holds could not be changed");
            for (_, reply) in requests {
                reply
                    .send(Err(StoreError::Unavailable(error.to_string()).into()))
                    .ok();
            }
        }
    }
    for done in flushes {
        done.send(()).ok();
    }
}

static DELETE: Bulk = Bulk::new(
    "DELETE FROM holds WHERE id IN (SELECT column1",
    1,
    ") RETURNING id, account_id, amount_cents",
);

/// Deletes the holds of these runs. Returns those that were there, with their accounts and cents. Their accounts must be locked.
pub(super) async fn delete(
    write: &mut Write,
    executions: &[&ExecutionId],
) -> Result<Vec<(ExecutionId, Account, i64)>, StoreError> {
    let rows = DELETE
        .fetch(write, executions, |values, row| {
            values.text(row.map(|execution| execution.as_str()));
        })
        .await?;
    rows.iter()
        .map(|row| {
            let account = row.text("account_id")?;
            let account = Account::parse(&account)
                .ok_or_else(|| crate::fields::corrupt("account_id", account))?;
            Ok((row.id("id")?, account, row.number("amount_cents")?))
        })
        .collect()
}

static INSERT: Bulk = Bulk::new(
    "INSERT INTO holds (id, account_id, amount_cents, expires_at, created_at)
     SELECT column1, column2, column3, column4, column5",
    5,
    "WHERE column1 IS NOT NULL",
);

async fn change(
    db: &Db,
    clock: &Clock,
    requests: &[&HoldRequest],
    releases: &[(ExecutionId, CompanyId)],
) -> Result<Vec<Result<i64, HoldError>>, StoreError> {
    if requests.is_empty() && releases.is_empty() {
        return Ok(Vec::new());
    }
    let mut write = db.write_holds().await?;
    let patience = write.patience();
    let decisions = decide(&mut write, clock, requests, releases);
    let decisions = patience.with(decisions).await;
    let decisions = write.answered(decisions)?;
    write.commit().await?;
    Ok(decisions)
}

async fn decide(
    write: &mut Write,
    clock: &Clock,
    requests: &[&HoldRequest],
    releases: &[(ExecutionId, CompanyId)],
) -> Result<Vec<Result<i64, HoldError>>, StoreError> {
    let buyers = requests.iter().map(|request| &request.buyer);
    let buyers = buyers.chain(releases.iter().map(|(_, buyer)| buyer));
    let accounts = buyers.map(|buyer| Account::Buyer(buyer.clone()));
    let mut levels = accounts::lock(write, accounts.collect()).await?;
    let mut changes = AccountChanges::default();

    if !releases.is_empty() {
        let executions: Vec<_> = releases.iter().map(|(execution, _)| execution).collect();
        for (_, account, cents) in delete(write, &executions).await? {
            if let Some(level) = levels.get_mut(&account.id()) {
                level.held -= cents;
            }
            if let Account::Buyer(buyer) = &account {
                changes.hold(buyer, -cents);
            }
        }
    }

    let mut granted = Vec::new();
    let mut decisions = Vec::with_capacity(requests.len());
    for request in requests {
        let cents = request.amount.cents().get();
        let level = levels.get_mut(&Account::Buyer(request.buyer.clone()).id());
        let Level { balance, held, .. } = level.as_deref().copied().unwrap_or_default();
        match level {
            Some(level) if balance - held >= cents => {
                level.held += cents;
                changes.hold(&request.buyer, cents);
                granted.push(*request);
                decisions.push(Ok((balance - held - cents) / CENTS_PER_CREDIT));
            }
            _ => decisions.push(Err(HoldError::Insufficient {
                required: request.amount,
                balance: (balance - held) / CENTS_PER_CREDIT,
                held: held / CENTS_PER_CREDIT,
            })),
        }
    }
    let now = db::now();
    INSERT
        .run(write, &granted, |values, row| {
            values
                .text(row.map(|request| request.execution.as_str()))
                .text(
                    row.map(|request| Account::Buyer(request.buyer.clone()).id())
                        .as_deref(),
                )
                .number(row.map(|request| request.amount.cents().get()))
                .number(row.map(|request| clock.at(request.expires_at).micros()))
                .number(row.map(|_| now.micros()));
        })
        .await?;
    let mut script = Script::new(Style::Separate);
    changes.apply(&mut script);
    script.run(write).await?;
    Ok(decisions)
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::poll;
    use souk_domain::money::Credits;

    fn request() -> HoldRequest {
        HoldRequest {
            execution: ExecutionId::generate_at(db::now()),
            buyer: CompanyId::generate(),
            amount: Credits::new(7).unwrap(),
            expires_at: db::now().after(Duration::from_secs(60)),
        }
    }

    /// Of two hosts of which one is five minutes ahead neither takes the other's holds for expired.
    #[test]
    fn holds_expire_by_the_servers_clock() {
        let server = Timestamp::from_micros(1_000_000_000);
        for host in [
            server.after(Duration::from_secs(300)),
            server.before(Duration::from_secs(300)),
        ] {
            let mut clock = Clock::default();
            clock.note(server, (host, host));
            let of_use = Duration::from_secs(20);
            assert_eq!(clock.at(host.after(of_use)), server.after(of_use));
            assert!(clock.told.is_some());
        }
        // The same clock, and an answer that was long on its way there or back: no hold ends sooner for that, and nobody is told.
        for (there, back) in [(0, 50), (14_000, 0), (0, 14_000)] {
            let asked = server.before(Duration::from_millis(there));
            let answered = server.after(Duration::from_millis(back));
            let mut clock = Clock::default();
            clock.note(server, (asked, answered));
            assert!(clock.at(answered) >= answered, "{there} {back}");
            assert!(clock.told.is_none(), "{there} {back}");
        }
    }

    /// Nobody waits for longer than what is reserved is of use, however long the store stands still.
    #[tokio::test]
    async fn nobody_waits_for_what_is_of_no_use_any_more() {
        // Of a task that stands still.
        let (queue, mut waiting) = queue(1);
        let told = reserve_within(Duration::from_millis(50), &queue, request());
        let told = tokio::time::timeout(Duration::from_secs(60), told).await;
        let told = told.expect("it is told");
        let is_told = matches!(told, Err(HoldError::Store(StoreError::Busy)));
        assert!(is_told, "{told:?}");
        let gone = waiting.recv().await;
        let Some(Op::Reserve { reply, .. }) = gone else {
            panic!("it waited")
        };
        assert!(reply.is_closed());
    }

    /// As many wait as may, with those who have hung up; who comes then is told to try again, and what is given back gets in all the same. Who comes
    /// when they have been taken waits again.
    #[tokio::test]
    async fn so_many_wait_and_what_is_given_back_always_gets_in() {
        // Of a task that stands still.
        let (queue, mut waiting) = queue(2);
        let mut first = Box::pin(reserve(&queue, request()));
        let mut second = Box::pin(reserve(&queue, request()));
        assert!(poll!(&mut first).is_pending() && poll!(&mut second).is_pending());
        drop(first);
        for _ in 0..3 {
            let refused = poll!(Box::pin(reserve(&queue, request())));
            let is_told = matches!(
                refused,
                std::task::Poll::Ready(Err(HoldError::Store(StoreError::Busy)))
            );
            assert!(is_told, "{refused:?}");
            drop(Hold::new(request(), 7, Release::Rows(queue.ops.clone())));
        }
        let mut taken = Vec::new();
        let count = waiting.recv_many(&mut taken, ROWS_MAX).await;
        let released = taken.iter().filter(|op| matches!(op, Op::Release { .. }));
        assert_eq!((count, released.count()), (5, 3));
        drop(taken);
        assert!(poll!(Box::pin(reserve(&queue, request()))).is_pending());
    }
}
