use super::{check_user, product};
use crate::query::parameters;
use crate::refusals::INVALID_PARAMETER;
use crate::{ApiState, Caller, Data, Operation, Path, Problem, Query, Text};
use axum::extract::State;
use serde::Serialize;
use souk_domain::ids::{CompanyId, FavoriteId, UserId};
use souk_store::favorites;
use utoipa::ToSchema;

pub const OPERATION: Operation = Operation::get(
    "check_favorite",
    "/companies/{company_id}/users/{user_id}/favorites/check",
)
.about("Favorites", "Say whether a product is a user's favorite")
.notes("One of `asset_id` and `endpoint_id`. A product that does not exist is nobody's favorite.");

parameters! {
    pub struct CheckQuery {
        /// The asset that is meant.
        asset_id: Option<Text<0, 255>>,
        /// The endpoint that is meant.
        endpoint_id: Option<Text<0, 255>>,
    }
}

#[derive(Serialize, ToSchema)]
#[schema(as = FavoriteCheck)]
pub struct CheckOut {
    is_favorite: bool,
    #[schema(value_type = Option<String>)]
    favorite_id: Option<FavoriteId>,
}

/// Says whether a product is a user's favorite.
pub async fn check_favorite(
    State(api): State<ApiState>,
    caller: Caller,
    Path((_, user)): Path<(CompanyId, UserId)>,
    Query(query): Query<CheckQuery>,
) -> Result<Data<CheckOut>, Problem> {
    let mut errors = Vec::new();
    let asset = query.asset_id.map(Text::into_string);
    let endpoint = query.endpoint_id.map(Text::into_string);
    let Some(product) = product(asset, endpoint, &mut errors) else {
        return Err(Problem::fields(INVALID_PARAMETER, errors));
    };
    let mut read = api.db().read().await?;
    check_user(&mut read, &caller, &user).await?;
    let found = favorites::of_product(&mut read, &user, product.id()).await?;
    let found = found.filter(|favorite| favorite.product_type == product.product_type());
    Ok(Data(CheckOut {
        is_favorite: found.is_some(),
        favorite_id: found.map(|favorite| favorite.id),
    }))
}
