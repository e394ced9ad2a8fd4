use super::find;
use super::shape::PostOut;
use crate::{ApiState, Caller, Data, Operation, Path, Problem};
use axum::extract::State;
use souk_domain::ids::{CompanyId, PostId};

pub const OPERATION: Operation =
    Operation::get("get_post", "/companies/{company_id}/posts/{post_id}")
        .about("Posts", "Show a post of the company, also a draft");

/// Shows a post of the company.
pub async fn get_post(
    State(api): State<ApiState>,
    caller: Caller,
    Path((_, id)): Path<(CompanyId, PostId)>,
) -> Result<Data<PostOut>, Problem> {
    let mut read = api.db().read().await?;
    Ok(Data(PostOut::own(find(&mut read, &caller, &id).await?)))
}
