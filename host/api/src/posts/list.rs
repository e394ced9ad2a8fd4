use super::shape::PostOut;
use crate::query::{choices, parameters};
use crate::{ApiState, Caller, List, Operation, Paging, Problem, Query, Text};
use axum::extract::State;
use souk_store::posts::{self, Filter};

pub const OPERATION: Operation = Operation::get("list_posts", "/companies/{company_id}/posts")
    .about("Posts", "List a company's posts, newest first")
    .notes("Without their text.");

choices! {
    pub enum StatusWanted {
        Draft = "draft",
        Published = "published",
    }
}

parameters! {
    pub struct PostsQuery {
        ..paging: Paging,
        /// Only those in this state.
        status: Option<StatusWanted>,
        /// Only those with this tag.
        tag: Option<Text<0, 50>>,
        /// Occurs in the title or the summary.
        q: Option<Text<0, 200>>,
    }
}

/// Lists a company's posts.
pub async fn list_posts(
    State(api): State<ApiState>,
    caller: Caller,
    Query(query): Query<PostsQuery>,
) -> Result<List<PostOut>, Problem> {
    let page = query.paging.page();
    let filter = Filter {
        is_published: query.status.map(|status| status == StatusWanted::Published),
        tag: query.tag.as_deref(),
        text: query.q.as_deref(),
    };
    let mut read = api.db().read().await?;
    let listed = posts::list(&mut read, caller.company(), filter, page.part()).await?;
    Ok(List::of(page, listed, |post| PostOut::own(post).listed()))
}
