//! The schedule of publications: how one that is due is found, attempted and written down ([`crate::leases`] does so).

use std::cmp::Ordering;
use std::sync::Arc;
use std::time::Duration;

use souk_domain::ids::{CompanyId, PublicationId};
use souk_domain::time::Timestamp;
use souk_store::publications::{self, Attempted, Publication};
use souk_store::{Read, StoreError, Write};
use tokio::sync::Notify;

use super::attempt::{ATTEMPT_MAX, attempt, unfinished};
use crate::App;
use crate::background::Background;
use crate::leases::{self, Claim, Due};

/// An attempt that takes longer is given up: what a run may take, and what is around it.
const GIVEN_UP_AFTER: Duration = ATTEMPT_MAX.saturating_add(Duration::from_secs(10));
const LEASE: Duration = Duration::from_secs(150);
const _: () = assert!(LEASE.as_secs() >= 2 * GIVEN_UP_AFTER.as_secs());

/// Publishes from now on, on the current runtime, which should be one that waits little (not a worker's).
pub async fn start(app: &App) -> Result<Background, StoreError> {
    let kind = Publications { app: app.clone() };
    leases::start(app, kind, Arc::new(Notify::new())).await
}

#[derive(Clone)]
struct Publications {
    app: App,
}

impl leases::Kind for Publications {
    const WHAT: &'static str = "publications of posts";
    /// Each is a session in the sandbox and a socket.
    const IN_FLIGHT_MAX: usize = 32;
    const LEASE: Duration = LEASE;
    /// Who publishes a post does not wait for it.
    const POLL: Duration = Duration::from_millis(500);

    type Id = PublicationId;
    type Concerned = CompanyId;
    type Claimed = Publication;
    type Ended = (Publication, Attempted);

    async fn due(
        &self,
        read: &mut Read,
        now: Timestamp,
        limit: i64,
    ) -> Result<Vec<Due<Self>>, StoreError> {
        let per_company = self.app.bounds.publications as usize;
        let found = publications::due(read, now, per_company as i64, limit).await?;
        let due = found.into_iter().map(|found| Due::of(found, per_company));
        Ok(due.collect())
    }

    async fn claim(
        &self,
        write: &mut Write,
        id: &PublicationId,
        claim: &Claim<'_>,
    ) -> Result<Option<Publication>, StoreError> {
        publications::claim(write, id, claim).await
    }

    async fn attempt(self, publication: Publication) -> Self::Ended {
        let app = &self.app;
        let attempted = tokio::time::timeout(GIVEN_UP_AFTER, attempt(app, &publication)).await;
        let attempted = attempted.unwrap_or_else(|_| unfinished(app, &publication));
        (publication, attempted)
    }

    fn order((one, _): &Self::Ended, (other, _): &Self::Ended) -> Ordering {
        one.id.cmp(&other.id)
    }

    async fn record(
        &self,
        write: &mut Write,
        (publication, attempted): &Self::Ended,
        by: &str,
        now: Timestamp,
        _: bool,
    ) -> Result<(), StoreError> {
        publications::record(write, publication, by, attempted, now).await?;
        Ok(())
    }

    async fn release_all(&self, write: &mut Write) -> Result<(), StoreError> {
        publications::release_all(write).await
    }
}
