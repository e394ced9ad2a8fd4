use super::set_published;
use super::shape::PostOut;
use crate::{ApiState, Caller, Data, Operation, Path, Problem};
use axum::extract::State;
use souk_domain::ids::{CompanyId, PostId};
use souk_domain::roles::{Permission, Role};

pub const OPERATION: Operation = Operation::post(
    "publish_post",
    "/companies/{company_id}/posts/{post_id}/publish",
)
.about("Posts", "Put a post before everybody")
.notes("From then on `GET /posts` has it, without a key. Doing it again changes nothing.")
.needs(Role::DataScientist, Permission::Write);

/// Puts a post before everybody.
pub async fn publish_post(
    State(api): State<ApiState>,
    caller: Caller,
    Path((_, id)): Path<(CompanyId, PostId)>,
) -> Result<Data<PostOut>, Problem> {
    set_published(&api, &caller, &id, true).await
}
