use super::create::NOTES;
use super::request;
use super::shape::PublicationOut;
use crate::refusals::{CONFLICT, VALIDATION_ERROR};
use crate::{Accepted, ApiState, Caller, Operation, Path, Problem};
use axum::extract::State;
use souk_domain::ids::{CompanyId, IntegrationId, PostId};
use souk_domain::roles::{Permission, Role};

pub const OPERATION: Operation = Operation::post(
    "publish_post_to",
    "/companies/{company_id}/posts/{post_id}/publish/{integration_id}",
)
.about("Posts", "Publish a post at this integration")
.notes(NOTES)
.needs(Role::DataScientist, Permission::Write)
.refuses(&[CONFLICT, VALIDATION_ERROR]);

/// Asks for a post to be published at an integration.
pub async fn publish_post_to(
    State(api): State<ApiState>,
    caller: Caller,
    Path((_, post, integration)): Path<(CompanyId, PostId, IntegrationId)>,
) -> Result<Accepted<PublicationOut>, Problem> {
    request(&api, &caller, &post, &integration).await
}
