use super::not_found;
use crate::{ApiState, Caller, Deleted, Operation, Path, Problem};
use axum::extract::State;
use souk_domain::ids::{CompanyId, PostId};
use souk_domain::roles::{Permission, Role};
use souk_store::posts::{self, Deletion};

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
    let company = caller.company();
    loop {
        let deletion = api
            .db()
            .write(async |write| posts::delete(write, company, &id).await)
            .await?;
        match deletion {
            Deletion::Done => return Ok(Deleted),
            Deletion::Begun => {}
            Deletion::NoSuch => return Err(not_found(id.as_str())),
        }
    }
}
