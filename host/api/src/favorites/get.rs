use super::find;
use super::shape::FavoriteOut;
use crate::{ApiState, Caller, Data, Operation, Path, Problem};
use axum::extract::State;
use souk_domain::ids::{CompanyId, FavoriteId, UserId};

pub const OPERATION: Operation = Operation::get(
    "get_favorite",
    "/companies/{company_id}/users/{user_id}/favorites/{favorite_id}",
)
.about("Favorites", "Get a favorite");

/// Gets a favorite.
pub async fn get_favorite(
    State(api): State<ApiState>,
    caller: Caller,
    Path((_, user, id)): Path<(CompanyId, UserId, FavoriteId)>,
) -> Result<Data<FavoriteOut>, Problem> {
    let mut read = api.db().read().await?;
    let favorite = find(&mut read, &caller, &user, &id).await?;
    Ok(Data(favorite.into()))
}
