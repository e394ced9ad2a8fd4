use crate::{ApiState, Caller, Data, Operation, Problem};
use axum::extract::State;
use serde::Serialize;
use souk_domain::time::Timestamp;
use souk_store::posts;
use utoipa::ToSchema;

pub const OPERATION: Operation =
    Operation::get("post_summary", "/companies/{company_id}/posts/summary")
        .about("Posts", "Count a company's posts and their readers");

#[derive(Serialize, ToSchema)]
#[schema(as = PostSummary)]
pub struct SummaryOut {
    #[schema(minimum = 0)]
    total: i64,
    #[schema(minimum = 0)]
    draft: i64,
    #[schema(minimum = 0)]
    published: i64,
    /// Of all posts, drafts that were published before included.
    #[schema(minimum = 0)]
    total_views: i64,
    #[schema(value_type = Option<String>, format = DateTime)]
    last_published_at: Option<Timestamp>,
    /// Posts at integrations, each counted once at each.
    #[schema(minimum = 0)]
    publications: i64,
}

/// Counts a company's posts and their readers.
pub async fn post_summary(
    State(api): State<ApiState>,
    caller: Caller,
) -> Result<Data<SummaryOut>, Problem> {
    let mut read = api.db().read().await?;
    let found = posts::summary(&mut read, caller.company()).await?;
    Ok(Data(SummaryOut {
        total: found.total,
        draft: found.total - found.published,
        published: found.published,
        total_views: found.views,
        last_published_at: found.last_published_at,
        publications: found.publications,
    }))
}
