//! A request on its way to a session and back: what it is held against before, and how long it may take. Start reading at [`Sandbox::run_for`].

use std::{
    sync::{Arc, atomic::Ordering},
    time::{Duration, Instant},
};

use souk_outbound::spans;

use super::Sandbox;
use crate::{
    columns::Output,
    connector::{Need, Scope},
    fault::{Blame, Fault, FaultKind},
    followed::Part,
    loaded::Connector,
    pool::{Job, Pool, Ticket, Waiting, shutting_down, timed_out},
    request::Request,
    source::Source,
    v1::World,
};

impl Sandbox {
    /// [`Sandbox::run_for`] the company whose data connection it is.
    pub async fn run(
        &self,
        source: &Arc<Source>,
        request: Request,
        deadline: Instant,
    ) -> Result<Output, Fault> {
        self.run_for(&source.company, source, request, deadline)
            .await
    }

    /// Runs one request for a company: callers of one data connection take turns. On expiry the answer is a `Timeout` at the deadline, and the
    /// source is told. Dropping the future cancels the request.
    pub async fn run_for(
        &self,
        caller: &str,
        source: &Arc<Source>,
        request: Request,
        deadline: Instant,
    ) -> Result<Output, Fault> {
        let shared = &self.shared;
        if shared.closed.load(Ordering::Acquire) {
            return Err(shutting_down());
        }
        let now = Instant::now();
        if deadline <= now {
            return Err(timed_out());
        }
        let pool = self.pools.get(source)?;
        let followed = spans::current().map(|call| (call, Part::of(&pool, &request)));
        let answer = self.run_in(&pool, caller, request, now, deadline).await;
        if let Some((call, part)) = followed {
            part.note(&call, now, &answer);
        }
        match &answer {
            Err(fault) if fault.is_paced() => {
                let delay = pool.tenant.failure_delay();
                if !delay.is_zero() {
                    Box::pin(tokio::time::sleep(delay)).await;
                }
            }
            _ => {}
        }
        answer
    }

    /// How long a company has to wait before a worker does work of this cost for it: so that many pieces which are each
    /// too short for [`Sandbox::compute`] do not take the workers from others either.
    pub fn work_delay(&self, company: &str, cost: Duration) -> Duration {
        self.shared.tenants.of(company).work_delay(cost)
    }

    /// Computes something for a company that would hold a worker for more than a moment: on threads of lower priority
    /// which serve companies by turns. `None`: the host is stopping, or `work` panicked. It cannot be suspended, so
    /// it must be bounded in itself.
    pub async fn compute<T: Send + 'static>(
        &self,
        company: &str,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Option<T> {
        let tenant = self.shared.tenants.of(company);
        self.shared.computers.compute(&tenant, work).await
    }

    async fn run_in(
        &self,
        pool: &Arc<Pool>,
        caller: &str,
        request: Request,
        now: Instant,
        deadline: Instant,
    ) -> Result<Output, Fault> {
        let calls_max = self.shared.options.limits.quota.calls;
        let _place = pool.tenant.take_call(caller, calls_max)?;
        supports(&pool.connector, &request)?;
        let now_us = self.shared.micros(now);
        pool.breaker.admit(now_us)?;
        let processor = self.shared.options.limits.quota.processor;
        pool.tenant.check_processor(processor, now_us)?;
        let ticket = Arc::<Ticket>::default();
        let job = Job::new(caller, request, deadline, ticket.clone());
        let placed = pool.submit(job, now)?;
        let waiting = Waiting(ticket);
        // A session watches the deadlines of what it was given; the queue does not.
        if placed {
            return waiting.await;
        }
        tokio::time::timeout_at(deadline.into(), waiting)
            .await
            .unwrap_or_else(|_| Err(pool.waited()))
    }

    /// Runs one request on a session of its own of exactly this version, active or not: to see whether
    /// it works before it takes anybody's requests.
    pub async fn probe(
        &self,
        (scope, name, version): (&Scope, &str, &str),
        source: &Arc<Source>,
        request: Request,
        deadline: Instant,
    ) -> Result<Output, Fault> {
        let connector = self.shared.registry.find(scope, name, version);
        let connector = connector.map_err(|error| {
            Fault::new(Blame::Host, FaultKind::Unsupported, error.to_string())
                .code("connector_unknown")
        })?;
        let pool = Alone(self.pools.alone(connector, source)?);
        let ticket = Arc::<Ticket>::default();
        let job = Job::new(&source.company, request, deadline, ticket.clone());
        pool.0.submit(job, Instant::now())?;
        let answer = tokio::time::timeout_at(deadline.into(), Waiting(ticket)).await;
        answer.unwrap_or_else(|_| Err(timed_out()))
    }
}

/// A pool that the keeper knows nothing of. It ends with whoever asks by it, also where that is given up: else its session would stay for ever.
struct Alone(Arc<Pool>);

impl Drop for Alone {
    fn drop(&mut self) {
        self.0.retire();
    }
}

/// What a connector does not say it can do is not asked of it.
#[inline]
fn supports(connector: &Connector, request: &Request) -> Result<(), Fault> {
    let is_publisher = connector.exports.world() == World::Publisher;
    let ability = match request {
        Request::Query(_) | Request::Ping(_) if !is_publisher => return Ok(()),
        Request::Publish(_) | Request::Check(_) if is_publisher => return Ok(()),
        Request::Query(_) | Request::Ping(_) => "queries",
        Request::Publish(_) | Request::Check(_) => "publishing",
        Request::Schema(_) => "schema",
        Request::Call(_) => "functions",
        // A session asks for it, nobody else.
        Request::Errand(_) => "errands from outside",
    };
    if connector.abilities.iter().any(|known| known == ability) {
        return Ok(());
    }
    let (name, need) = (&connector.name, connector.need);
    let what = if need == Need::Http {
        "API"
    } else {
        "database"
    };
    Err(Fault::new(
        Blame::Caller,
        FaultKind::Unsupported,
        format!("connector \"{name}\" does not offer \"{ability}\" for this {what}"),
    )
    .code("ability_missing"))
}
