//! What every handler can reach: the store, the flows, the settings, the limits, and the keys that were seen lately.

use crate::allotments::{Allotment, Allotments};
use crate::limiter::Limiter;
use crate::observed::{Observed, Seen};
use crate::operation::Operation;
use crate::principal::Principal;
use crate::problem::Problem;
use crate::settings::Settings;
use crate::unread::{Tally, Unread};
use crate::uploads::Uploads;
use souk_app::App;
use souk_app::detached::to_the_end;
use souk_domain::ids::CompanyId;
use souk_domain::keys::KeyDigest;
use souk_domain::time::Timestamp;
use souk_store::db::SWEPT_WITHIN;
use souk_store::{AnyConnection, Cache, Cached, Db, StoreError, Topic};
use souk_store::{
    audit, companies, days, idempotency, nonces, search, sessions, statements, times, usage,
};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

/// Keys kept in memory: about 2 KB each with their buckets.
const KEYS_CACHED: usize = 20_000;

/// Kept answers live for a day, so a few minutes more do not matter.
pub(crate) const SWEEP_EVERY: Duration = Duration::from_secs(600);

/// So long a company may have more of the audit log than is kept: at its fastest it writes some hundred megabytes meanwhile.
const TRIM_EVERY: Duration = Duration::from_secs(60);

/// What sorts by use is this late at most; counting takes some tenths of a second of a reader where a million counts are kept.
const RANK_EVERY: Duration = Duration::from_secs(300);
/// A company gets some more rows meanwhile than are kept of how long its runs took; counting a million of them takes some tenths of a second of a reader.
const FORGET_EVERY: Duration = Duration::from_secs(3_600);
/// Lines of statements are counted by the hour: whoever asks counts those since then.
const COUNT_EVERY: Duration = Duration::from_secs(300);
/// A new word is found by its beginning or with a typing error that much later, or little more.
const LEARN_EVERY: Duration = Duration::from_secs(1);

/// Long enough that a flood of questions costs the store nothing, short enough for a balancer.
const ANSWER_HOLDS: Duration = Duration::from_secs(1);

/// How often a stopping host looks.
const DETACHED_POLL: Duration = Duration::from_millis(10);

/// Cheap to clone, for a thread that has its own ([`ApiState::apart`]).
#[derive(Clone)]
#[expect(
    clippy::redundant_allocation,
    reason = "the outer count is a thread's own"
)]
pub struct ApiState(Arc<Arc<Shared>>);

struct Shared {
    app: App,
    settings: Settings,
    limiter: Limiter,
    principals: Cache<KeyDigest, Principal>,
    allotments: Allotments,
    /// Operations with a limit of their own.
    limited: Vec<(&'static str, u32)>,
    unread: Unread,
    uploads: Arc<Uploads>,
    /// When the store answered last, and took writes: however many ask, it is asked once a second.
    answered: tokio::sync::Mutex<Option<Instant>>,
    /// One clone for each run that goes on without its client.
    detached: Arc<()>,
    observed: Observed,
    /// Why no new clients should be sent here, whatever the store says.
    withheld: parking_lot::Mutex<Option<&'static str>>,
}

impl ApiState {
    /// `limited`: the operations that have a limit of their own.
    pub(crate) fn new(app: App, settings: Settings, limited: Vec<(&'static str, u32)>) -> ApiState {
        let names: Vec<_> = limited.iter().map(|(id, _)| *id).collect();
        let (address_limit, shared) = (settings.address_rate_limit, settings.shared_limits.clone());
        let limiter = Limiter::new(&names, address_limit, shared);
        let principals = Cache::new(
            &app.db,
            KEYS_CACHED,
            [Topic::Key, Topic::Company],
            |_: &KeyDigest, principal: &Principal| {
                let (credential, company) = (principal.credential(), principal.company.as_str());
                [credential.into(), company.into()]
            },
        );
        let uploads = Arc::new(Uploads::new(
            settings.company_upload_bytes_max,
            settings.upload_bytes_max,
        ));
        ApiState(Arc::new(Arc::new(Shared {
            app,
            limiter,
            principals,
            allotments: Allotments::default(),
            limited,
            unread: Unread::new(settings.unread_bytes_max, settings.company_reads_at_once),
            settings,
            uploads,
            answered: tokio::sync::Mutex::default(),
            detached: Arc::default(),
            observed: Observed::default(),
            withheld: parking_lot::Mutex::default(),
        })))
    }

    /// The same for another thread: each request counts its holders several times, and a count that threads share is fetched from another core
    /// for that. To be called by that thread.
    pub fn apart(&self) -> ApiState {
        ApiState(Arc::new(Arc::clone(&*self.0)))
    }

    /// Frees what a crash left in flight, and from then on forgets kept answers, sessions and lines of the audit log whose time is over, and what a
    /// company has too much of, counts what is popular and lines of statements, and learns new words. Once, before requests are served.
    pub async fn start(&self) -> Result<(), StoreError> {
        if !self.db().is_shared() {
            self.db()
                .write(async |write| idempotency::release_all(write).await)
                .await?;
        }
        self.every(
            SWEEP_EVERY,
            "kept answers, sessions, the audit log and counts of requests could not be swept",
            |db| async move { sweep(&db).await },
        );
        self.every(
            TRIM_EVERY,
            "the oldest lines of a long audit log could not be forgotten",
            |db| async move {
                let now = SystemTime::now().into();
                audit::kept::keep_newest(&db, audit::kept::BYTES_KEPT, now).await
            },
        );
        self.every(
            RANK_EVERY,
            "what is popular could not be counted",
            |db| async move { rank(&db).await },
        );
        self.every(
            FORGET_EVERY,
            "how long runs took could not be forgotten",
            |db| async move { times::keep(&db, times::ROWS_KEPT, SystemTime::now().into()).await },
        );
        self.every(
            COUNT_EVERY,
            "lines of statements could not be counted",
            |db| async move { count_lines(&db).await },
        );
        self.every(
            LEARN_EVERY,
            "what new words are found by could not be written",
            |db| async move { search::learn(&db).await },
        );
        Ok(())
    }

    /// Does this in the background, now and so long after each time.
    fn every<J>(
        &self,
        pause: Duration,
        failed: &'static str,
        job: impl Fn(Db) -> J + Send + 'static,
    ) where
        J: Future<Output = Result<(), StoreError>> + Send,
    {
        let db = self.db().clone();
        tokio::spawn(async move {
            loop {
                if let Err(error) = db.answered(SWEPT_WITHIN, job(db.clone())).await {
                    tracing::warn!(%error, "{failed}; trying again later");
                }
                tokio::time::sleep(pause).await;
            }
        });
    }

    pub fn app(&self) -> &App {
        &self.0.app
    }

    pub fn db(&self) -> &Db {
        &self.0.app.db
    }

    pub fn settings(&self) -> &Settings {
        &self.0.settings
    }

    /// To be held by a run that goes on when its client hangs up.
    pub(crate) fn detach(&self) -> impl Send + use<> {
        self.0.detached.clone()
    }

    /// Does work to its end, whether or not its client waits for that; what stops the host waits for it. Whoever calls this says what bounds how much
    /// of it clients begin that do not wait, and [asks](Db::ask) for what it reads.
    pub(crate) async fn to_the_end<T: Send + 'static>(
        &self,
        work: impl Future<Output = Result<T, Problem>> + Send + 'static,
    ) -> Result<T, Problem> {
        let done = to_the_end(self.detach(), work).await;
        done.map_err(Problem::internal)?
    }

    /// Waits until no run goes on without its connection: what stops the host waits for them too.
    pub async fn detached_ended(&self) {
        while Arc::strong_count(&self.0.detached) > 1 {
            tokio::time::sleep(DETACHED_POLL).await;
        }
    }

    pub(crate) fn limiter(&self) -> &Limiter {
        &self.0.limiter
    }

    /// Operations with a limit of their own, in the order of their buckets.
    pub(crate) fn limited(&self) -> &[(&'static str, u32)] {
        &self.0.limited
    }

    /// What a company has sent this month.
    pub(crate) async fn allotment(
        &self,
        db: &mut AnyConnection,
        company: &CompanyId,
        now: Timestamp,
    ) -> Result<Arc<Allotment>, StoreError> {
        self.0.allotments.company(db, company, now).await
    }

    pub(crate) fn uploads(&self) -> &Arc<Uploads> {
        &self.0.uploads
    }

    pub(crate) fn observed(&self) -> &Observed {
        &self.0.observed
    }

    /// The calls of this host since it started, by route.
    pub fn seen(&self) -> Vec<Seen> {
        self.0.observed.seen()
    }

    /// How often this host has refused with which code.
    pub fn refused(&self) -> Vec<(String, u64)> {
        self.0.observed.refused()
    }

    /// Says in `/readyz` that no new clients should be sent here, and why; all that come are served. `None`: they should.
    pub fn withhold(&self, why: Option<&'static str>) {
        *self.0.withheld.lock() = why;
    }

    pub(crate) fn withheld(&self) -> Option<&'static str> {
        *self.0.withheld.lock()
    }

    /// Whether this host counts limits with the others; `None` when it was not told where.
    pub fn shares_limits(&self) -> Option<bool> {
        self.0.limiter.is_shared()
    }

    /// Bytes of large answers that clients have not taken yet.
    pub fn unread_bytes(&self) -> u64 {
        self.0.unread.bytes()
    }

    /// What all together who have no key have not read, and have under way.
    pub(crate) fn nobody(&self) -> &Arc<Tally> {
        self.0.unread.nobody()
    }

    /// Where an operation's answers count for somebody without a key.
    pub(crate) fn nobodys_answers(&self, operation: &Operation) -> &Arc<Tally> {
        match operation.is_reference() {
            true => self.0.unread.reference(),
            false => self.nobody(),
        }
    }

    /// Bytes that uploads under way may come to hold.
    pub fn upload_bytes(&self) -> u64 {
        self.0.uploads.bytes()
    }

    /// Whether the store answers, and takes what is written (`false`: it does not), as of a moment ago.
    pub(crate) async fn store_answers(&self) -> Result<bool, StoreError> {
        let mut answered = self.0.answered.lock().await;
        if answered.is_some_and(|at| at.elapsed() < ANSWER_HOLDS) {
            return Ok(true);
        }
        *answered = None;
        let takes_writes = self.db().takes_writes().await?;
        *answered = takes_writes.then(Instant::now);
        Ok(takes_writes)
    }

    /// The key with this digest, if it was seen lately. A transaction that changes it takes it out of the cache before its commit returns.
    pub(crate) fn known_principal(&self, digest: &KeyDigest) -> Option<Cached<Principal>> {
        self.0.principals.get(digest)
    }

    /// Forgets a session that is over as it is known here: another host may have seen it since.
    pub(crate) fn forget_principal(&self, digest: &KeyDigest) {
        self.0.principals.remove(digest);
    }

    /// Who calls in the session with this digest, from the store if need be.
    pub(crate) async fn session_principal(
        &self,
        digest: KeyDigest,
        now: Timestamp,
    ) -> Result<Option<Cached<Principal>>, Problem> {
        let load = || async {
            let mut read = self.db().read().await?;
            let known = souk_store::sessions::by_digest(&mut read, &digest)
                .await?
                .ok_or(StoreError::NotFound)?;
            let (session, seconds) = (&known.session, now.seconds());
            let buckets = self.limiter().buckets(
                &session.user_id.clone().into(),
                u32::try_from(seconds).unwrap_or(u32::MAX),
            );
            let company = &session.company_id;
            let allotment = self.0.allotments.company(&mut read, company, now).await?;
            let unread = self.0.unread.company(company);
            Ok(Principal::of_session(known, allotment, buckets, unread))
        };
        self.loaded(digest, load).await
    }

    /// The key with this digest, from the store if need be.
    pub(crate) async fn principal(
        &self,
        digest: KeyDigest,
        now: Timestamp,
    ) -> Result<Option<Cached<Principal>>, Problem> {
        let load = || async {
            let mut read = self.db().read().await?;
            let known = souk_store::keys::by_digest(&mut read, &digest)
                .await?
                .ok_or(StoreError::NotFound)?;
            let buckets = self.limiter().buckets(
                &known.key.id.clone().into(),
                u32::try_from(now.seconds()).unwrap_or(u32::MAX),
            );
            let company = &known.key.company_id;
            let allotment = self.0.allotments.company(&mut read, company, now).await?;
            let unread = self.0.unread.company(company);
            Principal::of_key(known, allotment, buckets, unread)
        };
        self.loaded(digest, load).await
    }

    async fn loaded<F>(
        &self,
        digest: KeyDigest,
        load: impl FnOnce() -> F,
    ) -> Result<Option<Cached<Principal>>, Problem>
    where
        F: Future<Output = Result<Principal, StoreError>>,
    {
        match self.0.principals.get_or_load(digest, load).await {
            Ok(principal) => Ok(Some(principal)),
            Err(StoreError::NotFound) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }
}

/// Products that an older version left without an index get one first.
async fn rank(db: &Db) -> Result<(), StoreError> {
    search::catch_up(db).await?;
    search::ranks::rank(db, SystemTime::now().into()).await
}

/// An older version's hours are many, and are counted by the day.
async fn count_lines(db: &Db) -> Result<(), StoreError> {
    while statements::counted::count(db, SystemTime::now().into()).await? {}
    Ok(())
}

/// A little at a time, so that charges and everybody else get their turn in between.
async fn sweep(db: &Db) -> Result<(), StoreError> {
    let now = SystemTime::now().into();
    loop {
        let has_more = db
            .write(async |write| {
                let answers = idempotency::sweep(write, now).await?;
                let sessions = sessions::sweep(write, now).await?;
                let nonces = nonces::sweep(write, now).await?;
                let lines = audit::kept::sweep(write, now).await?;
                let handles = companies::sweep_handles(write, now).await?;
                let hours = usage::sweep(write, now).await?;
                Ok::<_, StoreError>(answers || sessions || nonces || lines || handles || hours)
            })
            .await?;
        if !has_more {
            break;
        }
    }
    usage::keep_newest(db, usage::ROWS_KEPT, now).await?;
    days::keep(db, days::ROWS_KEPT, now).await
}
