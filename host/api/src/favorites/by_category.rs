use super::page;
use super::shape::FavoriteOut;
use crate::{ApiState, Caller, List, Operation, Paging, Path, Problem, Query};
use axum::extract::State;
use souk_domain::ids::{CompanyId, UserId};
use souk_store::favorites::Within;

pub const OPERATION: Operation = Operation::get(
    "list_favorites_by_category",
    "/companies/{company_id}/users/{user_id}/favorites/categories/{category}",
)
.about("Favorites", "List a user's favorites of one category, newest first")
.notes("The category's name as it was given, percent-encoded. A category that nothing is in is an empty list.");

/// Lists a user's favorites of one category.
pub async fn list_favorites_by_category(
    State(api): State<ApiState>,
    caller: Caller,
    Path((_, user, category)): Path<(CompanyId, UserId, String)>,
    Query(paging): Query<Paging>,
) -> Result<List<FavoriteOut>, Problem> {
    let wanted = paging.page();
    let mut read = api.db().read().await?;
    let within = Within::Category(&category);
    page(&mut read, &caller, &user, None, within, wanted).await
}
