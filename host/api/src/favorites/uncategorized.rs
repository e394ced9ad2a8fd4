use super::page;
use super::shape::FavoriteOut;
use crate::{ApiState, Caller, List, Operation, Paging, Path, Problem, Query};
use axum::extract::State;
use souk_domain::ids::{CompanyId, UserId};
use souk_store::favorites::Within;

pub const OPERATION: Operation = Operation::get(
    "list_uncategorized_favorites",
    "/companies/{company_id}/users/{user_id}/favorites/uncategorized",
)
.about(
    "Favorites",
    "List a user's favorites of no category, newest first",
);

/// Lists a user's favorites of no category.
pub async fn list_uncategorized_favorites(
    State(api): State<ApiState>,
    caller: Caller,
    Path((_, user)): Path<(CompanyId, UserId)>,
    Query(paging): Query<Paging>,
) -> Result<List<FavoriteOut>, Problem> {
    let wanted = paging.page();
    let mut read = api.db().read().await?;
    let within = Within::NoCategory;
    page(&mut read, &caller, &user, None, within, wanted).await
}
