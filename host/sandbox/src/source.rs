//! What a request runs against: one data connection of one company, or one integration, and the one thing its connector or publisher
//! is granted. Knows nothing of stores or secrets at rest: the caller has unsealed them already.

use std::{any::Any, fmt, path::PathBuf, sync::Arc};

use futures_util::future::BoxFuture;
use souk_outbound::TlsMode;

use crate::fault::Fault;

/// One data connection, as the caller knows it now. Cheap to share; rebuild it (with a higher
/// `revision`) whenever the connection or its credentials change.
#[derive(Clone)]
pub struct Source {
    pub company: String,
    pub connection: String,
    /// Grows with every change. Sessions of an older revision take no new requests.
    pub revision: u64,
    /// The engine's slug: `postgres`; of an integration [`platform`].
    pub engine: String,
    /// A JSON object after the connector's schema, secrets included.
    pub settings_json: String,
    pub grant: Grant,
    pub limits: PoolLimits,
}

impl Source {
    /// Whether a connector is told the same by both, and the same is sent in its stead.
    #[inline]
    pub(crate) fn tells_the_same(&self, other: &Source) -> bool {
        std::ptr::eq(self, other)
            || (self.settings_json == other.settings_json && self.attached() == other.attached())
    }

    fn attached(&self) -> &[(String, String)] {
        match &self.grant {
            Grant::Http { attach, .. } => attach,
            Grant::Tcp { .. } | Grant::Directory(_) | Grant::Lent(_) => &[],
        }
    }
}

impl fmt::Debug for Source {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Source")
            .field("company", &self.company)
            .field("connection", &self.connection)
            .field("revision", &self.revision)
            .field("engine", &self.engine)
            .finish_non_exhaustive()
    }
}

/// Before a platform's slug where an engine's stands: none is named so, since a slug has no colon.
const PLATFORM: &str = "publisher:";

/// What stands as the `engine` of a [`Source`] that is an integration at this platform of a publisher.
pub fn platform(slug: &str) -> String {
    format!("{PLATFORM}{slug}")
}

/// The platform's slug, if it is one and no engine.
pub fn platform_of(engine: &str) -> Option<&str> {
    engine.strip_prefix(PLATFORM)
}

/// The one thing that a connector may reach.
#[derive(Clone)]
pub enum Grant {
    Tcp {
        host: String,
        port: u16,
        tls: TlsMode,
        /// PEM of the authorities to trust instead of the public ones.
        ca_pem: Option<String>,
    },
    Http {
        /// `https://api.example.com/v2`: requests never leave it.
        base_url: String,
        /// Headers added at egress, after the connector is done with the request.
        attach: Vec<(String, String)>,
        ca_pem: Option<String>,
    },
    /// One directory, read-only, that the connector sees as `/data`.
    Directory(PathBuf),
    /// The same, where it may have to be brought here first.
    Lent(Arc<dyn Lender>),
}

/// Brings a directory to this host when a session is opened.
pub trait Lender: Send + Sync {
    /// Ends within [`LENT_WITHIN`]. Polled by a worker's thread: whatever takes long goes on elsewhere.
    ///
    /// [`LENT_WITHIN`]: crate::LENT_WITHIN
    fn lend(&self) -> BoxFuture<'_, Result<Lent, Fault>>;
}

/// A directory that stays where it is until this is dropped: its session has ended.
pub struct Lent {
    pub path: PathBuf,
    pub held: Box<dyn Any + Send + Sync>,
}

/// Bounds of the sessions of one data connection, over all threads of this host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PoolLimits {
    pub sessions_max: usize,
    /// Requests that may wait for a session; one more is refused as busy.
    pub queue_max: usize,
}

impl Default for PoolLimits {
    fn default() -> Self {
        // Eight backends are what a small PostgreSQL spares for one client without noticing.
        PoolLimits {
            sessions_max: 8,
            queue_max: 256,
        }
    }
}
