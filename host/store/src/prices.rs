//! Prices of products over time. At most one holds at an instant; what has begun is never changed, only ended.
//!
//! A row is when a price holds ([`Price::validity`]). What its seller asked for may be longer ([`Price::asked`]): where another one begins it ends, and
//! where that one ends it may hold again, by another row ([`Price::resumes`]). Refuses to know which of them holds when: its callers say so.
//!
//! What has ended stays: runs and the ledger name it. Whoever asks what a product costs, of this or of a coming instant, passes over it by the
//! index `prices_by_end`: `COALESCE(effective_to, 9223372036854775807)` is the end of every price, of one without an end the last instant.
//!
//! Whoever changes a price touches its product ([`Topic::Price`] with the product's id).

use crate::bulk::Bulk;
use crate::changes::Topic;
use crate::db::Write;
use crate::error::StoreError;
use crate::fields::Fields;
use crate::lists::{List, Listed, Part, Values};
use souk_domain::ids::{CompanyId, PriceId};
use souk_domain::money::{Credits, UsdCents};
use souk_domain::prices::Validity;
use souk_domain::products::Product;
use souk_domain::time::Timestamp;
use sqlx::AnyConnection;
use sqlx::any::AnyRow;
use std::collections::HashMap;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Price {
    pub id: PriceId,
    pub company_id: CompanyId,
    /// The id of an asset or an endpoint.
    pub product_id: String,
    pub credits: Credits,
    /// As it was given; `credits` is what is paid.
    pub usd: UsdCents,
    pub discount_percent: Option<i64>,
    /// What a discounted price was made from.
    pub original_credits: Option<Credits>,
    /// When it holds.
    pub validity: Validity,
    /// Until when it was asked for, where that was said.
    pub ends_at: Option<Timestamp>,
    /// Nobody asked for this one: it is that price again, after another one that held for a while.
    pub resumes: Option<PriceId>,
    pub created_by: String,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
}

impl Price {
    /// From when on, and until when at most, it was asked for.
    pub fn asked(&self) -> Validity {
        Validity {
            from: self.validity.from,
            to: self.ends_at,
        }
    }

    /// The price that was asked for: this one, or the one that it is again.
    pub fn source(&self) -> &PriceId {
        self.resumes.as_ref().unwrap_or(&self.id)
    }
}

/// A price that is asked for.
#[derive(Debug, Clone)]
pub struct NewPrice<'a> {
    pub company: &'a CompanyId,
    pub product: &'a str,
    pub credits: Credits,
    pub usd: UsdCents,
    pub discount_percent: Option<i64>,
    pub original_credits: Option<Credits>,
    pub validity: Validity,
    pub created_by: &'a str,
}

impl NewPrice<'_> {
    /// The price as it holds where nothing else does.
    pub fn price(&self, now: Timestamp) -> Price {
        Price {
            id: PriceId::generate(),
            company_id: self.company.clone(),
            product_id: self.product.to_owned(),
            credits: self.credits,
            usd: self.usd,
            discount_percent: self.discount_percent,
            original_credits: self.original_credits,
            validity: self.validity,
            ends_at: self.validity.to,
            resumes: None,
            created_by: self.created_by.to_owned(),
            created_at: now,
            updated_at: now,
        }
    }
}

/// Adds a price; the caller has made room for it ([`end_at`]).
pub async fn insert(write: &mut Write, price: &Price) -> Result<(), StoreError> {
    sqlx::query(
        "INSERT INTO prices (price_id, company_id, product_id, price_credits, price_cents, discount_percent, original_price_credits,
                             effective_from, effective_to, ends_at, resumes, created_by, created_at, updated_at)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14)",
    )
    .bind(price.id.as_str())
    .bind(price.company_id.as_str())
    .bind(&price.product_id)
    .bind(price.credits.get())
    .bind(price.usd.get())
    .bind(price.discount_percent)
    .bind(price.original_credits.map(Credits::get))
    .bind(price.validity.from.micros())
    .bind(price.validity.to.map(Timestamp::micros))
    .bind(price.ends_at.map(Timestamp::micros))
    .bind(price.resumes.as_ref().map(PriceId::as_str))
    .bind(&price.created_by)
    .bind(price.created_at.micros())
    .bind(price.updated_at.micros())
    .execute(&mut **write)
    .await?;
    write.touch(Topic::Price, &price.product_id);
    Ok(())
}

macro_rules! columns {
    () => {
        "price_id, company_id, product_id, price_credits, price_cents, discount_percent, original_price_credits,
         effective_from, effective_to, ends_at, resumes, created_by, created_at, updated_at"
    };
}

/// The price that holds now.
pub async fn active(
    db: &mut AnyConnection,
    product: &str,
    now: Timestamp,
) -> Result<Option<Price>, StoreError> {
    let row = sqlx::query(concat!(
        "SELECT ",
        columns!(),
        " FROM prices
         WHERE product_id = $1 AND effective_from <= $2 AND COALESCE(effective_to, 9223372036854775807) > $2
         ORDER BY effective_from DESC
         LIMIT 1"
    ))
    .bind(product)
    .bind(now.micros())
    .fetch_optional(db)
    .await?;
    row.as_ref().map(from_row).transpose()
}

/// Looked up for each product. PostgreSQL would join them with all prices that there ever were, and so it would without the limit, which is a
/// [`Bulk`]'s own.
static ACTIVE: Bulk = Bulk::new(
    concat!(
        "SELECT ",
        columns!(),
        " FROM (SELECT (SELECT r.price_id
                        FROM prices r
                        WHERE r.product_id = v.column1 AND r.effective_from <= v.column2
                          AND COALESCE(r.effective_to, 9223372036854775807) > v.column2
                        ORDER BY r.effective_from DESC
                        LIMIT 1) AS holding"
    ),
    2,
    "WHERE v.column1 IS NOT NULL
     LIMIT 256) AS found
     JOIN prices ON prices.price_id = found.holding",
);

/// The prices that hold now, by product.
pub async fn active_of(
    db: &mut AnyConnection,
    products: impl Iterator<Item = &str>,
    now: Timestamp,
) -> Result<HashMap<String, Price>, StoreError> {
    let products: Vec<&str> = products.collect();
    let rows = ACTIVE
        .fetch(db, &products, |values, row| {
            values.text(row.copied()).number(row.map(|_| now.micros()));
        })
        .await?;
    let prices = rows.iter().map(from_row);
    prices
        .map(|price| price.map(|price| (price.product_id.clone(), price)))
        .collect()
}

/// When the price next changes by itself: the active one ends, or a coming one begins.
pub async fn next_change(
    db: &mut AnyConnection,
    product: &str,
    now: Timestamp,
) -> Result<Option<Timestamp>, StoreError> {
    let row = sqlx::query(
        "SELECT MIN(CASE WHEN effective_from > $2 THEN effective_from ELSE effective_to END) AS next_change
         FROM prices
         WHERE product_id = $1 AND COALESCE(effective_to, 9223372036854775807) > $2",
    )
    .bind(product)
    .bind(now.micros())
    .fetch_one(db)
    .await?;
    row.time_opt("next_change")
}

pub async fn get(
    db: &mut AnyConnection,
    company: &CompanyId,
    product: &str,
    id: &PriceId,
) -> Result<Option<Price>, StoreError> {
    let row = sqlx::query(concat!(
        "SELECT ",
        columns!(),
        " FROM prices WHERE price_id = $1 AND product_id = $2 AND company_id = $3"
    ))
    .bind(id.as_str())
    .bind(product)
    .bind(company.as_str())
    .fetch_optional(db)
    .await?;
    row.as_ref().map(from_row).transpose()
}

static LIST: List = List::new(
    columns!(),
    "FROM prices WHERE product_id = $1 AND company_id = $2",
    "effective_from DESC, price_id",
    2,
);

/// The history of a product's prices, newest first.
pub async fn list(
    db: &mut AnyConnection,
    company: &CompanyId,
    product: &str,
    part: Part,
) -> Result<Listed<Price>, StoreError> {
    let bind = |values: &mut Values| {
        values.text(Some(product)).text(Some(company.as_str()));
    };
    LIST.fetch(db, part, bind, from_row).await
}

/// Keeps others from changing the prices of a product until this transaction ends: histories are read, and then written.
pub async fn lock(write: &mut Write, product: &Product) -> Result<(), StoreError> {
    if !write.is_shared() {
        return Ok(());
    }
    // PostgreSQL locks a row that is updated, also with what it holds already.
    sqlx::query("UPDATE products SET status = status WHERE id = $1")
        .bind(product.id())
        .execute(&mut **write)
        .await?;
    Ok(())
}

/// The prices that hold at `from` or later, in the order of time.
pub async fn holding_from(
    db: &mut AnyConnection,
    product: &str,
    from: Timestamp,
) -> Result<Vec<Price>, StoreError> {
    let rows = sqlx::query(concat!(
        "SELECT ",
        columns!(),
        " FROM prices
         WHERE product_id = $1 AND COALESCE(effective_to, 9223372036854775807) > $2
         ORDER BY effective_from"
    ))
    .bind(product)
    .bind(from.micros())
    .fetch_all(db)
    .await?;
    rows.iter().map(from_row).collect()
}

/// When one of the prices that hold at `from` or later was written last.
pub async fn written_at(
    db: &mut AnyConnection,
    product: &str,
    from: Timestamp,
) -> Result<Option<Timestamp>, StoreError> {
    let row = sqlx::query(
        "SELECT MAX(updated_at) AS written_at
         FROM prices
         WHERE product_id = $1 AND COALESCE(effective_to, 9223372036854775807) > $2",
    )
    .bind(product)
    .bind(from.micros())
    .fetch_one(db)
    .await?;
    row.time_opt("written_at")
}

/// The prices that were asked for and are under this one: they began before it, and hold again if it ends before they do. None is under one without an end.
/// As many as were set one above the other and have not ended yet.
pub async fn under(
    db: &mut AnyConnection,
    price: &Price,
    now: Timestamp,
) -> Result<Vec<Price>, StoreError> {
    let rows = sqlx::query(concat!(
        "SELECT ",
        columns!(),
        " FROM prices
         WHERE product_id = $1 AND resumes IS NULL AND effective_from < $2 AND price_id <> $3
           AND COALESCE(ends_at, 9223372036854775807) > $4
           AND effective_from >= COALESCE((SELECT MAX(effective_from)
                                           FROM prices
                                           WHERE product_id = $1 AND resumes IS NULL AND effective_from < $2 AND ends_at IS NULL), 0)"
    ))
    .bind(&price.product_id)
    .bind(price.validity.from.micros())
    .bind(price.source().as_str())
    .bind(now.micros())
    .fetch_all(db)
    .await?;
    rows.iter().map(from_row).collect()
}

/// How many prices of a product have ended since then.
pub async fn ended_since(
    db: &mut AnyConnection,
    product: &str,
    since: Timestamp,
    now: Timestamp,
) -> Result<i64, StoreError> {
    sqlx::query(
        "SELECT COUNT(*) AS ended
         FROM prices
         WHERE product_id = $1
           AND COALESCE(effective_to, 9223372036854775807) > $2
           AND COALESCE(effective_to, 9223372036854775807) <= $3",
    )
    .bind(product)
    .bind(since.micros())
    .bind(now.micros())
    .fetch_one(db)
    .await?
    .number("ended")
}

/// Ends a price at an instant that lies in it.
pub async fn end_at(
    write: &mut Write,
    price: &Price,
    at: Timestamp,
    now: Timestamp,
) -> Result<(), StoreError> {
    sqlx::query("UPDATE prices SET effective_to = $2, updated_at = $3 WHERE price_id = $1")
        .bind(price.id.as_str())
        .bind(at.micros())
        .bind(now.micros())
        .execute(&mut **write)
        .await?;
    write.touch(Topic::Price, &price.product_id);
    Ok(())
}

/// Writes what a price costs, when it holds and what was asked for; of one that has begun only ends differ.
pub async fn update(write: &mut Write, price: &Price, now: Timestamp) -> Result<(), StoreError> {
    sqlx::query(
        "UPDATE prices
         SET price_credits = $2, price_cents = $3, discount_percent = $4, original_price_credits = $5, effective_from = $6,
             effective_to = $7, ends_at = $8, resumes = $9, updated_at = $10
         WHERE price_id = $1",
    )
    .bind(price.id.as_str())
    .bind(price.credits.get())
    .bind(price.usd.get())
    .bind(price.discount_percent)
    .bind(price.original_credits.map(Credits::get))
    .bind(price.validity.from.micros())
    .bind(price.validity.to.map(Timestamp::micros))
    .bind(price.ends_at.map(Timestamp::micros))
    .bind(price.resumes.as_ref().map(PriceId::as_str))
    .bind(now.micros())
    .execute(&mut **write)
    .await?;
    write.touch(Topic::Price, &price.product_id);
    Ok(())
}

/// Writes until when a price is asked for whose own row has ended: it holds again by others.
pub async fn ask_end(
    write: &mut Write,
    product: &str,
    price: &PriceId,
    at: Option<Timestamp>,
    now: Timestamp,
) -> Result<(), StoreError> {
    sqlx::query("UPDATE prices SET ends_at = $2, updated_at = $3 WHERE price_id = $1")
        .bind(price.as_str())
        .bind(at.map(Timestamp::micros))
        .bind(now.micros())
        .execute(&mut **write)
        .await?;
    write.touch(Topic::Price, product);
    Ok(())
}

/// Removes a price that has not begun.
pub async fn delete(write: &mut Write, price: &Price) -> Result<(), StoreError> {
    sqlx::query("DELETE FROM prices WHERE price_id = $1")
        .bind(price.id.as_str())
        .execute(&mut **write)
        .await?;
    write.touch(Topic::Price, &price.product_id);
    Ok(())
}

fn from_row(row: &AnyRow) -> Result<Price, StoreError> {
    let original = row
        .number_opt("original_price_credits")?
        .map(Credits::new)
        .transpose();
    Ok(Price {
        id: row.id("price_id")?,
        company_id: row.id("company_id")?,
        product_id: row.text("product_id")?,
        credits: row.credits("price_credits")?,
        usd: UsdCents::new(row.number("price_cents")?),
        discount_percent: row.number_opt("discount_percent")?,
        original_credits: original.map_err(|error| {
            StoreError::Corrupt(format!("column original_price_credits: {error}"))
        })?,
        validity: Validity {
            from: row.time("effective_from")?,
            to: row.time_opt("effective_to")?,
        },
        ends_at: row.time_opt("ends_at")?,
        resumes: row.id_opt("resumes")?,
        created_by: row.text("created_by")?,
        created_at: row.time("created_at")?,
        updated_at: row.time("updated_at")?,
    })
}
