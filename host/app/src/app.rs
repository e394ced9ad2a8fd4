//! What every flow can reach. Flows know the [`App`]; what it keeps for them, each in a file of its own, knows none.

use std::ops::Deref;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use souk_domain::ids::CompanyId;
use souk_domain::time::Timestamp;
use souk_outbound::EgressPolicy;
use souk_sandbox::{Blame, Fault, FaultKind, Sandbox};
use souk_store::Db;
use souk_store::sealing::Sealer;
use souk_store::teller::Teller;

use crate::bounds::CompanyBounds;
use crate::connections::sources::{self, Sources};
use crate::connectors::Registry;
use crate::files::{Quota, SharedFiles};
use crate::identity::IdentityProvider;
use crate::lines::Lines;
use crate::mail::Mailer;
use crate::payments::Payments;
use crate::products::Products;
use crate::settle::entitlements::{self, Entitlements};
use crate::webhooks::InFlight;

/// The application. Cheap to clone.
#[derive(Clone)]
pub struct App(Arc<Inner>);

/// What `host` builds an [`App`] from.
pub struct Parts {
    pub db: Db,
    pub teller: Teller,
    pub sandbox: Sandbox,
    /// Which addresses companies may name.
    pub egress: EgressPolicy,
    /// Seals and opens the credentials of connections.
    pub sealer: Sealer,
    /// Where the companies' files are kept.
    pub files_dir: PathBuf,
    /// The object store by which hosts share them.
    pub shared_files: Option<Arc<SharedFiles>>,
    /// What the files of one company may have together.
    pub company_file_bytes_max: u64,
    /// Who collects the money of top-ups.
    pub payments: Payments,
    /// By whose word people sign in.
    pub identity: Option<IdentityProvider>,
    /// By which invitations are sent.
    pub mail: Option<Mailer>,
    /// What one company may use.
    pub bounds: CompanyBounds,
}

pub struct Inner {
    pub db: Db,
    pub teller: Teller,
    pub sandbox: Sandbox,
    pub egress: EgressPolicy,
    pub sealer: Sealer,
    pub files_dir: PathBuf,
    pub shared_files: Option<Arc<SharedFiles>>,
    pub files: Arc<Quota>,
    pub payments: Payments,
    pub identity: Option<IdentityProvider>,
    pub mail: Option<Mailer>,
    pub bounds: CompanyBounds,
    pub clock: Clock,
    pub sources: Sources,
    pub connectors: Registry,
    pub products: Products,
    /// Attempts to deliver to webhooks.
    pub deliveries: Arc<InFlight>,
    pub(crate) entitlements: Entitlements,
    /// Who changes what sessions of a company were opened with: one at a time goes on without its client.
    pub(crate) reconnecting: Lines<CompanyId>,
}

impl App {
    pub fn new(parts: Parts) -> App {
        App(Arc::new(Inner {
            sources: sources::new(&parts.db),
            connectors: Registry::new(&parts.db),
            products: Products::new(&parts.db),
            deliveries: Arc::default(),
            entitlements: entitlements::new(&parts.db),
            reconnecting: Lines::new(1),
            teller: parts.teller,
            sealer: parts.sealer,
            db: parts.db,
            sandbox: parts.sandbox,
            egress: parts.egress,
            files_dir: parts.files_dir,
            shared_files: parts.shared_files,
            files: Arc::new(Quota::new(parts.company_file_bytes_max)),
            payments: parts.payments,
            identity: parts.identity,
            mail: parts.mail,
            bounds: parts.bounds,
            clock: Clock,
        }))
    }

    /// How long a company has to wait before a worker does work of this cost for it.
    pub fn work_delay(&self, company: &str, cost: Duration) -> Duration {
        self.sandbox.work_delay(company, cost)
    }

    /// [`Sandbox::compute`] for as long as it takes: what is computed is small enough for a request that has no deadline.
    pub async fn compute_in_turn<T: Send + 'static>(
        &self,
        company: &CompanyId,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Option<T> {
        self.sandbox.compute(company.as_str(), work).await
    }

    /// The same as [`Sandbox::compute`] until `deadline`: it may have to wait for its turn.
    pub(crate) async fn compute<T: Send + 'static>(
        &self,
        company: &str,
        deadline: Instant,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<Option<T>, Fault> {
        let late = |_| {
            let message = "the result was not computed in time";
            Fault::new(Blame::Host, FaultKind::Timeout, message)
        };
        let computed = self.sandbox.compute(company, work);
        tokio::time::timeout_at(deadline.into(), computed)
            .await
            .map_err(late)
    }
}

impl Deref for App {
    type Target = Inner;

    fn deref(&self) -> &Inner {
        &self.0
    }
}

/// The one place where flows read the time.
#[derive(Clone, Copy, Debug)]
pub struct Clock;

impl Clock {
    pub fn now(&self) -> Timestamp {
        SystemTime::now().into()
    }
}
