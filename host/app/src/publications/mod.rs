//! Publications: posts put where a company wants them read, by publishers in the sandbox.
//!
//! Somebody asks ([`request`]); [`schedule`] sees whose turn it is, [`attempt`] makes one attempt and says what follows.

mod attempt;
mod schedule;

use souk_domain::ids::{CompanyId, IntegrationId, PostId, UserId};
use souk_store::publications::{self, Publication};
use souk_store::{StoreError, integrations, posts};

use crate::App;
pub use schedule::start;

#[derive(Debug, thiserror::Error)]
pub enum PublishError {
    #[error("there is no such post")]
    NoPost,
    #[error("there is no such integration")]
    NoIntegration,
    #[error("as many publications of the company wait as may")]
    TooMany,
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Asks for a post to be at an integration as it is when it is its turn, which is at once.
pub async fn request(
    app: &App,
    company: &CompanyId,
    post: &PostId,
    integration: &IntegrationId,
    user: &UserId,
) -> Result<Publication, PublishError> {
    let now = app.clock.now();
    app.db
        .write(async |write| {
            if posts::get(write, company, post).await?.is_none() {
                return Err(PublishError::NoPost);
            }
            let found = integrations::get(write, company, integration).await?;
            let found = found.ok_or(PublishError::NoIntegration)?;
            let requested = publications::request(write, post, &found, user, now).await?;
            requested.ok_or(PublishError::TooMany)
        })
        .await
}
