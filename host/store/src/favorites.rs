//! Favorites: the products that a user marked, each once, in categories of the user's own.

use crate::db::Write;
use crate::error::StoreError;
use crate::fields::{Fields, corrupt};
use crate::lists::{List, Listed, Part, Values};
use souk_domain::ids::{CompanyId, FavoriteId, UserId};
use souk_domain::products::ProductType;
use souk_domain::time::Timestamp;
use sqlx::AnyConnection;
use sqlx::any::AnyRow;

/// More than anybody looks through.
pub const FAVORITES_MAX: i64 = 1_000;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Favorite {
    pub id: FavoriteId,
    pub company_id: CompanyId,
    pub user_id: UserId,
    pub product_type: ProductType,
    pub product_id: String,
    /// `None`: in no category.
    pub category: Option<String>,
    pub note: Option<String>,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
}

/// What became of an insertion.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Added {
    New,
    /// The product was marked before; this is how.
    Known(Favorite),
    /// The user has as many as anybody may have.
    TooMany,
}

macro_rules! columns {
    () => {
        "id, company_id, user_id, product_type, product_id, category, note, created_at, updated_at"
    };
}

/// Adds a favorite, unless its product is one of the user's already.
pub async fn insert(write: &mut Write, favorite: &Favorite) -> Result<Added, StoreError> {
    crate::companies::lock(write, &favorite.company_id).await?;
    if let Some(known) = of_product(write, &favorite.user_id, &favorite.product_id).await? {
        return Ok(Added::Known(known));
    }
    let count = sqlx::query("SELECT COUNT(*) AS total FROM favorites WHERE user_id = $1")
        .bind(favorite.user_id.as_str())
        .fetch_one(&mut **write)
        .await?
        .number("total")?;
    if count >= FAVORITES_MAX {
        return Ok(Added::TooMany);
    }
    sqlx::query(
        "INSERT INTO favorites (id, company_id, user_id, product_type, product_id, category, note, created_at, updated_at)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $8)",
    )
    .bind(favorite.id.as_str())
    .bind(favorite.company_id.as_str())
    .bind(favorite.user_id.as_str())
    .bind(favorite.product_type.as_str())
    .bind(&favorite.product_id)
    .bind(favorite.category.as_deref())
    .bind(favorite.note.as_deref())
    .bind(favorite.created_at.micros())
    .execute(&mut **write)
    .await?;
    Ok(Added::New)
}

/// The favorite that a product is of a user's, if it is one.
pub async fn of_product(
    db: &mut AnyConnection,
    user: &UserId,
    product: &str,
) -> Result<Option<Favorite>, StoreError> {
    let row = sqlx::query(concat!(
        "SELECT ",
        columns!(),
        " FROM favorites WHERE user_id = $1 AND product_id = $2"
    ))
    .bind(user.as_str())
    .bind(product)
    .fetch_optional(db)
    .await?;
    row.as_ref().map(from_row).transpose()
}

pub async fn get(
    db: &mut AnyConnection,
    user: &UserId,
    id: &FavoriteId,
) -> Result<Option<Favorite>, StoreError> {
    let row = sqlx::query(concat!(
        "SELECT ",
        columns!(),
        " FROM favorites WHERE id = $1 AND user_id = $2"
    ))
    .bind(id.as_str())
    .bind(user.as_str())
    .fetch_optional(db)
    .await?;
    row.as_ref().map(from_row).transpose()
}

/// Which of a user's favorites to list.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Within<'a> {
    #[default]
    All,
    Category(&'a str),
    NoCategory,
}

static LIST: List = List::new(
    columns!(),
    "FROM favorites
     WHERE user_id = $1
       AND (CAST($2 AS TEXT) IS NULL OR product_type = $2)
       AND ($3 = 0 OR ($3 = 1 AND category = $4) OR ($3 = 2 AND category IS NULL))",
    "created_at DESC, id",
    4,
);

/// A user's favorites, newest first.
pub async fn list(
    db: &mut AnyConnection,
    user: &UserId,
    product_type: Option<ProductType>,
    within: Within<'_>,
    part: Part,
) -> Result<Listed<Favorite>, StoreError> {
    let (which, category) = match within {
        Within::All => (0, None),
        Within::Category(category) => (1, Some(category)),
        Within::NoCategory => (2, None),
    };
    let bind = |values: &mut Values| {
        values
            .text(Some(user.as_str()))
            .text(product_type.map(ProductType::as_str))
            .number(Some(which))
            .text(category);
    };
    LIST.fetch(db, part, bind, from_row).await
}

/// Writes category and note of `favorite`, as they are now.
pub async fn update(
    write: &mut Write,
    favorite: &Favorite,
    now: Timestamp,
) -> Result<(), StoreError> {
    sqlx::query("UPDATE favorites SET category = $2, note = $3, updated_at = $4 WHERE id = $1")
        .bind(favorite.id.as_str())
        .bind(favorite.category.as_deref())
        .bind(favorite.note.as_deref())
        .bind(now.micros())
        .execute(&mut **write)
        .await?;
    Ok(())
}

/// Removes a favorite. `false`: there is none.
pub async fn delete(write: &mut Write, user: &UserId, id: &FavoriteId) -> Result<bool, StoreError> {
    let deleted = sqlx::query("DELETE FROM favorites WHERE id = $1 AND user_id = $2")
        .bind(id.as_str())
        .bind(user.as_str())
        .execute(&mut **write)
        .await?;
    Ok(deleted.rows_affected() > 0)
}

/// Removes all that a user marked.
pub async fn delete_of_user(write: &mut Write, user: &UserId) -> Result<(), StoreError> {
    sqlx::query("DELETE FROM favorites WHERE user_id = $1")
        .bind(user.as_str())
        .execute(&mut **write)
        .await?;
    Ok(())
}

fn from_row(row: &AnyRow) -> Result<Favorite, StoreError> {
    let kind = row.text("product_type")?;
    Ok(Favorite {
        id: row.id("id")?,
        company_id: row.id("company_id")?,
        user_id: row.id("user_id")?,
        product_type: ProductType::parse(&kind)
            .ok_or_else(|| corrupt("product_type", format!("{kind:?}")))?,
        product_id: row.text("product_id")?,
        category: row.text_opt("category")?,
        note: row.text_opt("note")?,
        created_at: row.time("created_at")?,
        updated_at: row.time("updated_at")?,
    })
}
