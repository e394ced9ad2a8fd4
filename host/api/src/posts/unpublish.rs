use super::set_published;
use super::shape::PostOut;
use crate::{ApiState, Caller, Data, Operation, Path, Problem};
use axum::extract::State;
use souk_domain::ids::{CompanyId, PostId};
use souk_domain::roles::{Permission, Role};

pub const OPERATION: Operation = Operation::post(
    "unpublish_post",
    "/companies/{company_id}/posts/{post_id}/unpublish",
)
.about("Posts", "Take a post back")
.notes("It is a draft again; how often it was read stays. Doing it again changes nothing.")
.needs(Role::DataScientist, Permission::Write);

/// Takes a post back.
pub async fn unpublish_post(
    State(api): State<ApiState>,
    caller: Caller,
    Path((_, id)): Path<(CompanyId, PostId)>,
) -> Result<Data<PostOut>, Problem> {
    set_published(&api, &caller, &id, false).await
}
