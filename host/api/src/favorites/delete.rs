use super::{check_may_mark, check_user, not_found};
use crate::{ApiState, Caller, Deleted, Operation, Path, Problem};
use axum::extract::State;
use souk_domain::ids::{CompanyId, FavoriteId, UserId};
use souk_store::favorites;

pub const OPERATION: Operation = Operation::delete(
    "delete_favorite",
    "/companies/{company_id}/users/{user_id}/favorites/{favorite_id}",
)
.about("Favorites", "Remove a favorite");

/// Removes a favorite.
pub async fn delete_favorite(
    State(api): State<ApiState>,
    caller: Caller,
    Path((_, user, id)): Path<(CompanyId, UserId, FavoriteId)>,
) -> Result<Deleted, Problem> {
    api.db()
        .write(async |write| {
            check_may_mark(&caller, &user)?;
            check_user(write, &caller, &user).await?;
            match favorites::delete(write, &user, &id).await? {
                true => Ok(Deleted),
                false => Err(not_found(&id)),
            }
        })
        .await
}
