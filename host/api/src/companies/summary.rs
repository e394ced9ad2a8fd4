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
    assets: i64,
    endpoints: i64,
    connections: i64,
    files: i64,
    api_keys: i64,
    users: i64,
    webhooks: i64,
    /// Active, of other companies' products.
    purchases: i64,
    /// Of all users.
    favorites: i64,
    /// Of all users, active or not.
    alerts: i64,
    /// Drafts included.
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
