use super::shape::{self, FavoriteOut};
use super::{check_may_mark, find};
use crate::refusals::VALIDATION_ERROR;
use crate::{ApiState, Body, Caller, Data, Operation, Patch, Path, Problem};
use axum::extract::State;
use serde::Deserialize;
use souk_domain::ids::{CompanyId, FavoriteId, UserId};
use souk_store::{companies, favorites};
use utoipa::ToSchema;

pub const OPERATION: Operation = Operation::patch(
    "update_favorite",
    "/companies/{company_id}/users/{user_id}/favorites/{favorite_id}",
)
.about("Favorites", "Change category and note of a favorite");

#[derive(Deserialize, ToSchema)]
pub struct FavoritePatch {
    /// `null`: in no category.
    #[serde(default)]
    #[schema(value_type = Option<String>, min_length = 1, max_length = 100)]
    category: Patch<String>,
    /// `null` clears it.
    #[serde(default)]
    #[schema(value_type = Option<String>, max_length = 1000)]
    note: Patch<String>,
}

/// Changes category and note of a favorite.
pub async fn update_favorite(
    State(api): State<ApiState>,
    caller: Caller,
    Path((_, user, id)): Path<(CompanyId, UserId, FavoriteId)>,
    Body(body): Body<FavoritePatch>,
) -> Result<Data<FavoriteOut>, Problem> {
    let mut errors = Vec::new();
    // Absent: as it is.
    let category = match body.category {
        Patch::Absent => None,
        Patch::Null => Some(None),
        Patch::Value(name) => Some(shape::category(name, &mut errors)),
    };
    let note = match body.note {
        Patch::Absent => None,
        Patch::Null => Some(None),
        Patch::Value(text) => Some(shape::note(text, &mut errors)),
    };
    if !errors.is_empty() {
        return Err(Problem::fields(VALIDATION_ERROR, errors));
    }
    let now = caller.now();
    api.db()
        .write(async |write| {
            check_may_mark(&caller, &user)?;
            companies::lock(write, caller.company()).await?;
            let mut favorite = find(write, &caller, &user, &id).await?;
            favorite.category = category.unwrap_or(favorite.category);
            favorite.note = note.unwrap_or(favorite.note);
            favorite.updated_at = now;
            favorites::update(write, &favorite, now).await?;
            Ok(Data(favorite.into()))
        })
        .await
}
