use super::page;
use super::shape::FavoriteOut;
use crate::query::parameters;
use crate::{ApiState, Caller, List, Operation, Paging, Path, Problem, Query};
use axum::extract::State;
use souk_domain::ids::{CompanyId, UserId};
use souk_domain::products::ProductType;
use souk_store::favorites::Within;

pub const OPERATION: Operation = Operation::get(
    "list_favorites",
    "/companies/{company_id}/users/{user_id}/favorites",
)
.about("Favorites", "List a user's favorites, newest first");

parameters! {
    pub struct FavoritesQuery {
        ..paging: Paging,
        /// Only products of this type.
        product_type: Option<ProductType>,
    }
}

/// Lists a user's favorites.
pub async fn list_favorites(
    State(api): State<ApiState>,
    caller: Caller,
    Path((_, user)): Path<(CompanyId, UserId)>,
    Query(query): Query<FavoritesQuery>,
) -> Result<List<FavoriteOut>, Problem> {
    let wanted = query.paging.page();
    let mut read = api.db().read().await?;
    let kind = query.product_type;
    page(&mut read, &caller, &user, kind, Within::All, wanted).await
}
