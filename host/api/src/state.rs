//! What every handler can reach: the store, the flows, the settings, the limits, and the keys that were seen lately.

use crate::caller::Principal;
use crate::limiter::Limiter;
use crate::problem::Problem;
use axum::extract::ConnectInfo;
use http::{Extensions, HeaderMap, header};
use ipnet::IpNet;
use souk_app::App;
use souk_domain::keys::KeyDigest;
use souk_domain::time::Timestamp;
use souk_store::idempotency;
use souk_store::{Cache, Change, Db, StoreError, Topic};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

/// Keys kept in memory: about 2 KB each with their buckets.
const KEYS_CACHED: usize = 20_000;

/// Kept answers live for a day, so a few minutes more do not matter.
pub(crate) const SWEEP_EVERY: Duration = Duration::from_secs(600);

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
}

impl Settings {
    pub fn trusts(&self, peer: IpAddr) -> bool {
        self.trust_proxy
            .iter()
            .any(|network| network.contains(&peer))
    }

    /// The address of the client: the nearest one that is not a proxy of ours.
    pub fn client(&self, peer: IpAddr, headers: &HeaderMap) -> IpAddr {
        if self.trust_proxy.is_empty() || !self.trusts(peer) {
            return peer;
        }
        let forwarded = headers
            .get_all("x-forwarded-for")
            .iter()
            .filter_map(|value| value.to_str().ok())
            .flat_map(|value| value.split(','));
        let addresses: Vec<IpAddr> = forwarded
            .filter_map(|text| text.trim().parse().ok())
            .collect();
        addresses
            .iter()
            .rev()
            .copied()
            .find(|address| !self.trusts(*address))
            .unwrap_or(peer)
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
    /// One clone for each run that goes on without its client.
    detached: Arc<()>,
}

impl ApiState {
    pub fn new(app: App, settings: Settings) -> ApiState {
        let limiter = Arc::new(Limiter::new(
            crate::all().buckets(),
            settings.address_rate_limit,
        ));
        let principals = Cache::new(
            &app.db,
            KEYS_CACHED,
            |change: &Change, _: &KeyDigest, principal: &Principal| match change {
                Change::One {
                    topic: Topic::Key,
                    id,
                } => principal.key().id.as_str() == id,
                Change::One {
                    topic: Topic::Company,
                    id,
                } => principal.company().as_str() == id,
                _ => false,
            },
        );
        ApiState(Arc::new(Shared {
            app,
            settings,
            limiter,
            principals,
            detached: Arc::default(),
        }))
    }

    /// Frees what a crash left in flight, and from then on forgets kept answers whose time is over. Once, before requests are served.
    pub async fn start(&self) -> Result<(), StoreError> {
        if !self.db().is_shared() {
            let mut write = self.db().write().await?;
            idempotency::release_all(&mut write).await?;
            write.commit().await?;
        }
        let db = self.db().clone();
        tokio::spawn(async move {
            loop {
                if let Err(error) = sweep(&db).await {
                    tracing::warn!(%error, "kept answers could not be swept; trying again later");
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

    /// The key with this digest. A transaction that changes it takes it out of the cache before its commit returns.
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
            let buckets = self.limiter().key(
                &known.key.id,
                u32::try_from(now.seconds()).unwrap_or(u32::MAX),
            );
            Ok(Principal::new(known, buckets))
        };
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
        let mut write = db.write().await?;
        let has_more = idempotency::sweep(&mut write, now).await?;
        write.commit().await?;
        if !has_more {
            return Ok(());
        }
    }
}
