use super::request;
use super::shape::PublicationOut;
use crate::refusals::{CONFLICT, INTEGRATION_NOT_FOUND};
use crate::{Accepted, ApiState, Body, Caller, Operation, Path, Problem};
use axum::extract::State;
use serde::Deserialize;
use souk_domain::ids::{CompanyId, IntegrationId, PostId};
use souk_domain::roles::{Permission, Role};
use utoipa::ToSchema;

/// What is told of publishing, whichever way it is asked for.
pub const NOTES: &str = "The post as it is when its turn comes, which is at once; where the platform has it already, it is updated. A draft \
     becomes a draft there. A failed attempt is made again up to seven times within some nineteen hours, unless the platform refuses the post \
     or the credentials: then it has `failed`. Doing it again begins anew. At most 200 of a company's wait: 409.";

pub const OPERATION: Operation = Operation::post(
    "create_publication",
    "/companies/{company_id}/posts/{post_id}/publications",
)
.about("Posts", "Publish a post at an integration")
.notes(NOTES)
.needs(Role::DataScientist, Permission::Write)
.refuses(&[INTEGRATION_NOT_FOUND, CONFLICT]);

#[derive(Deserialize, ToSchema)]
pub struct PublicationIn {
    #[schema(value_type = String)]
    integration_id: IntegrationId,
}

/// Asks for a post to be published at an integration.
pub async fn create_publication(
    State(api): State<ApiState>,
    caller: Caller,
    Path((_, post)): Path<(CompanyId, PostId)>,
    Body(body): Body<PublicationIn>,
) -> Result<Accepted<PublicationOut>, Problem> {
    request(&api, &caller, &post, &body.integration_id).await
}
