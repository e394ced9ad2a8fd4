use super::not_found;
use crate::{ApiState, Caller, Deleted, Operation, Path, Problem};
use axum::extract::State;
use souk_domain::ids::{CompanyId, PostId};
use souk_domain::roles::{Permission, Role};
use souk_store::posts;

pub const OPERATION: Operation =
    Operation::delete("delete_post", "/companies/{company_id}/posts/{post_id}")
        .about("Posts", "Delete a post")
        .needs(Role::DataScientist, Permission::Write);

/// Deletes a post.
pub async fn delete_post(
    State(api): State<ApiState>,
    caller: Caller,
    Path((_, id)): Path<(CompanyId, PostId)>,
) -> Result<Deleted, Problem> {
    api.db()
        .write(
            async |write| match posts::delete(write, caller.company(), &id).await? {
                true => Ok(Deleted),
                false => Err(not_found(id.as_str())),
            },
        )
        .await
}
