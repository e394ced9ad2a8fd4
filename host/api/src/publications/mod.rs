//! Publications: a post at an integration, and what became of it there.

pub mod create;
pub mod list;
pub mod publish_to;
pub mod shape;

use crate::refusals::CONFLICT;
use crate::{Accepted, ApiState, Caller, Problem, Routes};
use shape::PublicationOut;
use souk_app::publications::{self, PublishError};
use souk_domain::ids::{IntegrationId, PostId};
use souk_domain::publications::WAITING_MAX;

pub fn routes() -> Routes {
    Routes::new()
        .add(list::OPERATION, list::list_publications)
        .add(create::OPERATION, create::create_publication)
        .add(publish_to::OPERATION, publish_to::publish_post_to)
}

async fn request(
    api: &ApiState,
    caller: &Caller,
    post: &PostId,
    integration: &IntegrationId,
) -> Result<Accepted<PublicationOut>, Problem> {
    let message = "is required: this key belongs to no user";
    let user = caller
        .user()
        .ok_or_else(|| Problem::invalid("user_id", message))?;
    let company = caller.company();
    let requested = publications::request(api.app(), company, post, integration, user).await;
    match requested {
        Ok(publication) => Ok(Accepted(publication.into())),
        Err(PublishError::NoPost) => Err(Problem::not_found("post", post.as_str())),
        Err(PublishError::NoIntegration) => {
            Err(Problem::not_found("integration", integration.as_str()))
        }
        Err(PublishError::TooMany) => {
            let message = format!(
                "{WAITING_MAX} publications of the company wait already: try again when some have ended"
            );
            Err(Problem::of(CONFLICT, message))
        }
        Err(PublishError::Store(error)) => Err(error.into()),
    }
}
