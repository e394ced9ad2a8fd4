//! Favorites as clients see them, and what they say of one.

use crate::words;
use crate::{FieldError, Text};
use serde::Serialize;
use souk_domain::ids::{CompanyId, FavoriteId, UserId};
use souk_domain::products::ProductType;
use souk_domain::time::Timestamp;
use souk_store::favorites::Favorite;
use utoipa::ToSchema;

pub const CATEGORY_CHARS_MAX: usize = 100;
pub const NOTE_CHARS_MAX: usize = 1_000;

#[derive(Serialize, ToSchema)]
#[schema(as = Favorite)]
pub struct FavoriteOut {
    #[schema(value_type = String)]
    id: FavoriteId,
    #[schema(value_type = String)]
    company_id: CompanyId,
    #[schema(value_type = String)]
    user_id: UserId,
    #[schema(value_type = words::ProductType)]
    product_type: &'static str,
    /// Of an asset.
    #[serde(skip_serializing_if = "Option::is_none")]
    asset_id: Option<String>,
    /// Of an endpoint.
    #[serde(skip_serializing_if = "Option::is_none")]
    endpoint_id: Option<String>,
    category: Option<String>,
    note: Option<String>,
    #[schema(value_type = String, format = DateTime)]
    created_at: Timestamp,
    #[schema(value_type = String, format = DateTime)]
    updated_at: Timestamp,
}

impl From<Favorite> for FavoriteOut {
    fn from(favorite: Favorite) -> FavoriteOut {
        let (asset_id, endpoint_id) = match favorite.product_type {
            ProductType::Asset => (Some(favorite.product_id), None),
            ProductType::Endpoint => (None, Some(favorite.product_id)),
        };
        FavoriteOut {
            id: favorite.id,
            company_id: favorite.company_id,
            user_id: favorite.user_id,
            product_type: favorite.product_type.as_str(),
            asset_id,
            endpoint_id,
            category: favorite.category,
            note: favorite.note,
            created_at: favorite.created_at,
            updated_at: favorite.updated_at,
        }
    }
}

/// A category's name.
pub fn category(name: String, errors: &mut Vec<FieldError>) -> Option<String> {
    bounded::<1, CATEGORY_CHARS_MAX>("category", name, errors)
}

pub fn note(text: String, errors: &mut Vec<FieldError>) -> Option<String> {
    bounded::<0, NOTE_CHARS_MAX>("note", text, errors)
}

fn bounded<const MIN: usize, const MAX: usize>(
    field: &'static str,
    text: String,
    errors: &mut Vec<FieldError>,
) -> Option<String> {
    let text = Text::<MIN, MAX>::new(text).map(Text::into_string);
    if text.is_none() {
        let message = format!("must be a text of {MIN} to {MAX} characters");
        errors.push(FieldError::new(field, "invalid", message));
    }
    text
}
