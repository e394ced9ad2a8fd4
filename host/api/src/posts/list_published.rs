use super::shape::PostOut;
use crate::query::parameters;
use crate::{Access, ApiState, List, NobodysRead, Operation, Paging, Problem, Query, Text};
use axum::extract::State;
use souk_store::posts::{self, Filter};

pub const OPERATION: Operation = Operation::get("list_published_posts", "/posts")
    .about("Posts", "List what companies have published, newest first")
    .notes("Needs no key. Without their text. Posts of suspended companies are left out.")
    .access(Access::Public);

parameters! {
    pub struct PublishedQuery {
        ..paging: Paging,
        /// Only those of the company with this handle.
        company_handle: Option<Text<0, 63>>,
        /// Only those with this tag.
        tag: Option<Text<0, 50>>,
        /// Occurs in the title or the summary.
        q: Option<Text<0, 100>>,
    }
}

/// Lists what companies have published.
pub async fn list_published_posts(
    State(api): State<ApiState>,
    Query(query): Query<PublishedQuery>,
    _place: NobodysRead,
) -> Result<List<PostOut>, Problem> {
    let page = query.paging.page();
    let filter = Filter {
        is_published: None,
        tag: query.tag.as_deref(),
        text: query.q.as_deref(),
    };
    let handle = query.company_handle.as_deref();
    let mut read = api.db().read().await?;
    let listed = posts::list_published(&mut read, handle, filter, page.part()).await?;
    Ok(List::of(page, listed, |post| {
        PostOut::public(post).listed()
    }))
}
