use crate::{ApiState, Caller, Data, Operation, Problem};
use axum::extract::State;
use serde::Serialize;
use souk_store::overview;
use utoipa::ToSchema;

pub const OPERATION: Operation =
    Operation::get("company_summary", "/companies/{company_id}/summary")
        .about("Companies", "Count what a company has")
        .notes("What was archived, deleted, revoked, cancelled or deactivated is not counted.");

#[derive(Serialize, ToSchema)]
#[schema(as = CompanySummary)]
pub struct SummaryOut {
    #[schema(minimum = 0)]
    assets: i64,
    #[schema(minimum = 0)]
    endpoints: i64,
    #[schema(minimum = 0)]
    connections: i64,
    #[schema(minimum = 0)]
    files: i64,
    #[schema(minimum = 0)]
    api_keys: i64,
    #[schema(minimum = 0)]
    users: i64,
    #[schema(minimum = 0)]
    webhooks: i64,
    /// Active, of other companies' products.
    #[schema(minimum = 0)]
    purchases: i64,
    /// Of all users.
    #[schema(minimum = 0)]
    favorites: i64,
    /// Of all users, active or not.
    #[schema(minimum = 0)]
    alerts: i64,
    /// Drafts included.
    #[schema(minimum = 0)]
    posts: i64,
}

/// Counts what a company has.
pub async fn company_summary(
    State(api): State<ApiState>,
    caller: Caller,
) -> Result<Data<SummaryOut>, Problem> {
    let mut read = api.db().read().await?;
    let counts = overview::counts(&mut read, caller.company(), caller.now()).await?;
    Ok(Data(SummaryOut {
        assets: counts.assets,
        endpoints: counts.endpoints,
        connections: counts.connections,
        files: counts.files,
        api_keys: counts.api_keys,
        users: counts.users,
        webhooks: counts.webhooks,
        purchases: counts.purchases,
        favorites: counts.favorites,
        alerts: counts.alerts,
        posts: counts.posts,
    }))
}
