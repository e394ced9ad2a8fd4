//! What every handler can reach: the store, the flows, the settings, the limits, and the keys that were seen lately.

use crate::allotments::{Allotment, Allotments};
use crate::limiter::Limiter;
use crate::principal::Principal;
use crate::problem::Problem;
use crate::unread::Unread;
use crate::uploads::Uploads;
use axum::extract::ConnectInfo;
use http::{Extensions, HeaderMap, header};
use ipnet::IpNet;
use souk_app::App;
use souk_domain::ids::CompanyId;
use souk_domain::keys::KeyDigest;
use souk_domain::time::Timestamp;
use souk_store::{AnyConnection, Cache, Db, StoreError, Topic};
use souk_store::{audit, idempotency, sessions};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

/// Keys kept in memory: about 2 KB each with their buckets.
const KEYS_CACHED: usize = 20_000;

/// Kept answers live for a day, so a few minutes more do not matter.
pub(crate) const SWEEP_EVERY: Duration = Duration::from_secs(600);

/// Long enough that a flood of questions costs the store nothing, short enough for a balancer.
const ANSWER_HOLDS: Duration = Duration::from_secs(1);

/// How often a stopping host looks.
const DETACHED_POLL: Duration = Duration::from_millis(10);

/// What the operator chose.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Where the management API is reached, without a trailing slash.
    pub base_url: String,
    /// Where the data route is reached; sellers' handles become its subdomains.
    pub endpoint_base_url: String,
    /// Requests an hour of an address that shows no valid key.
    pub address_rate_limit: u32,
    /// What the kept answers of a company may take together.
    pub kept_answer_bytes_max: i64,
    /// Proxies whose `X-Forwarded-For` and `X-Forwarded-Host` are believed.
    pub trust_proxy: Vec<IpNet>,
    /// Bytes of answers that one company's clients may leave unread before it gets no new ones.
    pub unread_bytes_max: u64,
    /// Calls of one company's keys in flight that run a connector.
    pub company_calls_max: u32,
    /// Bytes that the uploads of one company may hold in memory, and those of all.
    pub company_upload_bytes_max: u64,
    pub upload_bytes_max: u64,
}

impl Settings {
    pub fn trusts(&self, peer: IpAddr) -> bool {
        self.trust_proxy
            .iter()
            .any(|network| network.contains(&peer))
    }

    /// The address of the client: the nearest one that is not a proxy of ours. An entry that cannot be read ends the walk at the proxy
    /// that wrote it: what stands before it was claimed by whoever is behind that.
    pub fn client(&self, peer: IpAddr, headers: &HeaderMap) -> IpAddr {
        if self.trust_proxy.is_empty() || !self.trusts(peer) {
            return peer;
        }
        let values = headers.get_all("x-forwarded-for").iter().rev();
        let entries = values.flat_map(|value| value.as_bytes().rsplit(|byte| *byte == b','));
        let mut nearest = peer;
        for entry in entries {
            match forwarded(entry) {
                Some(address) if self.trusts(address) => nearest = address,
                Some(address) => return address,
                None => return nearest,
            }
        }
        nearest
    }

    /// The host that the client called: `Host`, or what the proxy in front of us says that it was. A proxy that appends to what its
    /// own client sent appends at the end, so the last one counts.
    pub fn host<'a>(&self, peer: IpAddr, headers: &'a HeaderMap) -> Option<&'a str> {
        let forwarded = || headers.get_all("x-forwarded-host").iter().next_back();
        let sent = match self.trusts(peer) {
            true => forwarded().or_else(|| headers.get(header::HOST)),
            false => headers.get(header::HOST),
        };
        sent?.to_str().ok()?.rsplit(',').next().map(str::trim)
    }
}

/// An address as proxies write it: some add the port.
fn forwarded(entry: &[u8]) -> Option<IpAddr> {
    let text = std::str::from_utf8(entry).ok()?.trim();
    let with_port = || text.parse::<SocketAddr>().map(|address| address.ip());
    text.parse().or_else(|_| with_port()).ok()
}

/// Who sent a request: the other end of its connection.
pub fn peer(extensions: &Extensions) -> IpAddr {
    extensions
        .get::<ConnectInfo<SocketAddr>>()
        .map_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED), |peer| peer.0.ip())
}

/// Cheap to clone.
#[derive(Clone)]
pub struct ApiState(Arc<Shared>);

struct Shared {
    app: App,
    settings: Settings,
    limiter: Arc<Limiter>,
    principals: Cache<KeyDigest, Principal>,
    allotments: Allotments,
    /// Operations with a limit of their own.
    limited: Vec<(&'static str, u32)>,
    unread: Unread,
    uploads: Arc<Uploads>,
    /// When the store answered last: however many ask, it is asked once a second.
    answered: tokio::sync::Mutex<Option<Instant>>,
    /// One clone for each run that goes on without its client.
    detached: Arc<()>,
}

impl ApiState {
    /// `limited`: the operations that have a limit of their own.
    pub(crate) fn new(app: App, settings: Settings, limited: Vec<(&'static str, u32)>) -> ApiState {
        let limiter = Arc::new(Limiter::new(limited.len(), settings.address_rate_limit));
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
        ApiState(Arc::new(Shared {
            app,
            settings,
            limiter,
            principals,
            allotments: Allotments::default(),
            limited,
            unread: Unread::default(),
            uploads,
            answered: tokio::sync::Mutex::default(),
            detached: Arc::default(),
        }))
    }

    /// Frees what a crash left in flight, and from then on forgets kept answers, sessions and lines of the audit log whose time is over. Once, before requests are served.
    pub async fn start(&self) -> Result<(), StoreError> {
        if !self.db().is_shared() {
            self.db()
                .write(async |write| idempotency::release_all(write).await)
                .await?;
        }
        let db = self.db().clone();
        tokio::spawn(async move {
            loop {
                if let Err(error) = sweep(&db).await {
                    tracing::warn!(%error, "kept answers, sessions and the audit log could not be swept; trying again later");
                }
                tokio::time::sleep(SWEEP_EVERY).await;
            }
        });
        Ok(())
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

    /// Waits until no run goes on without its connection: what stops the host waits for them too.
    pub async fn detached_ended(&self) {
        while Arc::strong_count(&self.0.detached) > 1 {
            tokio::time::sleep(DETACHED_POLL).await;
        }
    }

    pub(crate) fn limiter(&self) -> &Arc<Limiter> {
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

    /// Bytes of large answers that clients have not taken yet.
    pub fn unread_bytes(&self) -> u64 {
        self.0.unread.bytes()
    }

    /// Bytes that uploads under way may come to hold.
    pub fn upload_bytes(&self) -> u64 {
        self.0.uploads.bytes()
    }

    /// Whether the store answers, as of a moment ago.
    pub(crate) async fn store_answers(&self) -> Result<(), StoreError> {
        let mut answered = self.0.answered.lock().await;
        if answered.is_some_and(|at| at.elapsed() < ANSWER_HOLDS) {
            return Ok(());
        }
        *answered = None;
        self.db().ping().await?;
        *answered = Some(Instant::now());
        Ok(())
    }

    /// The key with this digest, if it was seen lately. A transaction that changes it takes it out of the cache before its commit returns.
    pub(crate) fn known_principal(&self, digest: &KeyDigest) -> Option<Arc<Principal>> {
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
    ) -> Result<Option<Arc<Principal>>, Problem> {
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
            let unread = self.0.unread.company(&session.company_id);
            Ok(Principal::of_session(known, buckets, unread))
        };
        self.loaded(digest, load).await
    }

    /// The key with this digest, from the store if need be.
    pub(crate) async fn principal(
        &self,
        digest: KeyDigest,
        now: Timestamp,
    ) -> Result<Option<Arc<Principal>>, Problem> {
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
    ) -> Result<Option<Arc<Principal>>, Problem>
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

/// A little at a time, so that charges and everybody else get their turn in between.
async fn sweep(db: &Db) -> Result<(), StoreError> {
    let now = SystemTime::now().into();
    loop {
        let has_more = db
            .write(async |write| {
                let answers = idempotency::sweep(write, now).await?;
                let sessions = sessions::sweep(write, now).await?;
                Ok::<_, StoreError>(audit::sweep(write, now).await? || answers || sessions)
            })
            .await?;
        if !has_more {
            return Ok(());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn client(forwarded: &[&[u8]]) -> String {
        let settings = Settings {
            base_url: String::new(),
            endpoint_base_url: String::new(),
            address_rate_limit: 1,
            trust_proxy: vec!["10.0.0.0/8".parse().unwrap()],
            kept_answer_bytes_max: 1,
            unread_bytes_max: 1,
            company_calls_max: 1,
            company_upload_bytes_max: 1,
            upload_bytes_max: 1,
        };
        let mut headers = HeaderMap::new();
        for value in forwarded {
            let value = http::HeaderValue::from_bytes(value).unwrap();
            headers.append("x-forwarded-for", value);
        }
        let peer = "10.0.0.1".parse().unwrap();
        settings.client(peer, &headers).to_string()
    }

    /// The nearest address that is no proxy of ours, over all lines of the header; what its client claims to have forwarded is not asked.
    #[test]
    fn a_client_is_the_nearest_stranger() {
        assert_eq!(client(&[]), "10.0.0.1");
        assert_eq!(
            client(&[b"192.0.2.1, 198.51.100.7, 10.0.0.2"]),
            "198.51.100.7"
        );
        assert_eq!(
            client(&[b"192.0.2.1", b"198.51.100.7:4711"]),
            "198.51.100.7"
        );
        assert_eq!(client(&[b"10.0.0.9, 10.0.0.2"]), "10.0.0.9");
        assert_eq!(client(&[b"[2001:db8::1]:80"]), "2001:db8::1");
    }

    /// An entry that a proxy of ours could not write as an address is no reason to believe the one before it.
    #[test]
    fn an_unreadable_entry_ends_the_walk() {
        assert_eq!(client(&[b"192.0.2.1, unknown"]), "10.0.0.1");
        assert_eq!(client(&[b"192.0.2.1, _hidden, 10.0.0.2"]), "10.0.0.2");
        assert_eq!(client(&[b"192.0.2.1", b"\xff"]), "10.0.0.1");
        assert_eq!(client(&[b"192.0.2.1,"]), "10.0.0.1");
    }
}
