//! Favorites: the products that a user wants to find again, each once, in categories of the user's own.

pub mod by_category;
pub mod check;
pub mod create;
pub mod delete;
pub mod get;
pub mod list;
pub mod shape;
pub mod uncategorized;
pub mod update;

use crate::refusals::INSUFFICIENT_ROLE;
use crate::{Caller, FieldError, List, Page, Problem, Routes};
use shape::FavoriteOut;
use souk_domain::ids::{AssetId, EndpointId, FavoriteId, UserId};
use souk_domain::products::{Product, ProductType};
use souk_domain::roles::Role;
use souk_store::favorites::{self, Favorite, Within};
use souk_store::{AnyConnection, users};

pub fn routes() -> Routes {
    Routes::new()
        .add(list::OPERATION, list::list_favorites)
        .add(create::OPERATION, create::create_favorite)
        .add(
            by_category::OPERATION,
            by_category::list_favorites_by_category,
        )
        .add(
            uncategorized::OPERATION,
            uncategorized::list_uncategorized_favorites,
        )
        .add(check::OPERATION, check::check_favorite)
        .add(get::OPERATION, get::get_favorite)
        .add(update::OPERATION, update::update_favorite)
        .add(delete::OPERATION, delete::delete_favorite)
}

/// 404 unless the user is one of the company's.
async fn check_user(db: &mut AnyConnection, caller: &Caller, user: &UserId) -> Result<(), Problem> {
    match users::get(db, caller.company(), user).await? {
        Some(_) => Ok(()),
        None => Err(Problem::not_found("user", user.as_str())),
    }
}

/// With role 1, which only reads, a user who is signed in still has favorites: its own.
fn check_may_mark(caller: &Caller, user: &UserId) -> Result<(), Problem> {
    match caller.role() > Role::Analyst || caller.user() == Some(user) {
        true => Ok(()),
        false => Err(
            Problem::of(INSUFFICIENT_ROLE, "the favorites of others need role 2")
                .detail("required_role", Role::DataScientist.level())
                .detail("role", caller.role().level()),
        ),
    }
}

/// One of the user's favorites, or 404.
async fn find(
    db: &mut AnyConnection,
    caller: &Caller,
    user: &UserId,
    id: &FavoriteId,
) -> Result<Favorite, Problem> {
    check_user(db, caller, user).await?;
    favorites::get(db, user, id)
        .await?
        .ok_or_else(|| not_found(id))
}

fn not_found(id: &FavoriteId) -> Problem {
    Problem::not_found("favorite", id.as_str())
}

/// A page of a user's favorites.
async fn page(
    db: &mut AnyConnection,
    caller: &Caller,
    user: &UserId,
    product_type: Option<ProductType>,
    within: Within<'_>,
    page: Page,
) -> Result<List<FavoriteOut>, Problem> {
    check_user(db, caller, user).await?;
    let listed = favorites::list(db, user, product_type, within, page.part()).await?;
    Ok(List::of(page, listed, FavoriteOut::from))
}

/// The product that is meant: an asset or an endpoint, and not both.
fn product(
    asset: Option<String>,
    endpoint: Option<String>,
    errors: &mut Vec<FieldError>,
) -> Option<Product> {
    let mut wrong = |field: &'static str, code: &'static str, message: String| {
        errors.push(FieldError::new(field, code, message));
        None
    };
    match (asset, endpoint) {
        (Some(id), None) => match AssetId::parse(&id) {
            Ok(id) => Some(Product::Asset(id)),
            Err(error) => wrong("asset_id", "invalid", error.to_string()),
        },
        (None, Some(id)) => match EndpointId::parse(&id) {
            Ok(id) => Some(Product::Endpoint(id)),
            Err(error) => wrong("endpoint_id", "invalid", error.to_string()),
        },
        (None, None) => wrong(
            "asset_id",
            "required",
            "is required, or endpoint_id in its place".to_owned(),
        ),
        (Some(_), Some(_)) => wrong(
            "endpoint_id",
            "invalid",
            "a favorite is an asset or an endpoint: send one of the two".to_owned(),
        ),
    }
}
