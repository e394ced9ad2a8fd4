use super::not_found;
use super::shape::PostOut;
use crate::refusals::POST_NOT_FOUND;
use crate::{Access, ApiState, Data, NobodysRead, Operation, Path, Problem};
use axum::extract::State;
use souk_store::posts;

pub const OPERATION: Operation = Operation::get("get_published_post", "/posts/{post_id}")
    .about("Posts", "Read a published post")
    .notes("Needs no key. `post_id` is its id or its slug. Reading alone is not counted: `POST /posts/{post_id}/views` is.")
    .access(Access::Public)
    .refuses(&[POST_NOT_FOUND]);

/// Reads a published post.
pub async fn get_published_post(
    State(api): State<ApiState>,
    Path(id): Path<String>,
    _place: NobodysRead,
) -> Result<Data<PostOut>, Problem> {
    let mut read = api.db().read().await?;
    let post = posts::get_published(&mut read, &id).await?;
    post.map(|post| Data(PostOut::public(post)))
        .ok_or_else(|| not_found(&id))
}
