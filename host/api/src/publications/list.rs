use super::shape::PublicationOut;
use crate::{ApiState, Caller, List, Operation, Paging, Path, Problem, Query};
use axum::extract::State;
use souk_domain::ids::{CompanyId, PostId};
use souk_store::{posts, publications};

pub const OPERATION: Operation = Operation::get(
    "list_publications",
    "/companies/{company_id}/posts/{post_id}/publications",
)
.about(
    "Posts",
    "List where a post is published besides, and what became of it there",
)
.notes(
    "One for each integration that it was ever asked for at, in the order in which it first was.",
);

/// Lists a post's publications.
pub async fn list_publications(
    State(api): State<ApiState>,
    caller: Caller,
    Path((_, post)): Path<(CompanyId, PostId)>,
    Query(paging): Query<Paging>,
) -> Result<List<PublicationOut>, Problem> {
    let page = paging.page();
    let mut read = api.db().read().await?;
    if posts::get(&mut read, caller.company(), &post)
        .await?
        .is_none()
    {
        return Err(Problem::not_found("post", post.as_str()));
    }
    let listed = publications::list(&mut read, &post, page.part()).await?;
    Ok(List::of(page, listed, PublicationOut::from))
}
