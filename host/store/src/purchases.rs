//! Purchases: what a buyer accepted, snapshotted. One per company and product.
//!
//! The first paid execution of an asset writes one by itself ([`implicit`]); nothing is charged by a purchase.

use crate::bulk::Bulk;
use crate::changes::Topic;
use crate::db::Write;
use crate::error::StoreError;
use crate::events::{self, Event};
use crate::fields::{Fields, corrupt};
use crate::lists::{List, Listed, Part, Values};
use serde_json::json;
use souk_domain::ids::{CompanyId, KeyId, PurchaseId};
use souk_domain::money::Credits;
use souk_domain::products::{Product, ProductType};
use souk_domain::time::{HOUR, Timestamp};
use souk_domain::webhooks::EventType;
use sqlx::AnyConnection;
use sqlx::any::AnyRow;
use std::collections::HashMap;
use std::time::Duration;

/// A seller is told of a renewal when so much has passed since the terms were last accepted. Whoever cancels and accepts in a loop would fill the
/// queue of the seller's webhooks, and what is dropped then is told to nobody.
const TOLD_AGAIN_AFTER: Duration = HOUR;

/// The terms that a buyer accepts today.
pub const TERMS_VERSION: &str = "2026-01";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PurchaseStatus {
    Active,
    Cancelled,
    Suspended,
}

impl PurchaseStatus {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Active => "active",
            Self::Cancelled => "cancelled",
            Self::Suspended => "suspended",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        match text {
            "active" => Some(Self::Active),
            "cancelled" => Some(Self::Cancelled),
            "suspended" => Some(Self::Suspended),
            _ => None,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Purchase {
    pub id: PurchaseId,
    /// The buyer.
    pub company_id: CompanyId,
    pub seller_id: CompanyId,
    pub product_type: ProductType,
    pub product_id: String,
    /// The price when it was accepted.
    pub credits: Credits,
    pub ai_training_allowed: bool,
    pub terms_version: String,
    /// The key that accepted.
    pub accepted_by: String,
    pub accepted_at: Timestamp,
    pub status: PurchaseStatus,
    /// The key that was provisioned for an endpoint.
    pub endpoint_key_id: Option<KeyId>,
    pub created_at: Timestamp,
}

#[derive(Debug, Clone)]
pub struct NewPurchase<'a> {
    pub buyer: &'a CompanyId,
    pub seller: &'a CompanyId,
    pub product: &'a Product,
    pub credits: Credits,
    pub ai_training_allowed: bool,
    /// The key that accepts.
    pub accepted_by: &'a str,
}

/// The purchase of this product by this buyer: the one there is, in whatever state, or a new active one.
pub async fn implicit(
    write: &mut Write,
    new: &NewPurchase<'_>,
    now: Timestamp,
) -> Result<Purchase, StoreError> {
    let id = PurchaseId::generate();
    let inserted = sqlx::query(
        "INSERT INTO purchases (purchase_id, company_id, seller_company_id, product_id, product_type, price_credits,
                                ai_training_allowed, terms_version, accepted_by, accepted_at, status, created_at)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, 'active', $10)
         ON CONFLICT (company_id, product_id) DO NOTHING",
    )
    .bind(id.as_str())
    .bind(new.buyer.as_str())
    .bind(new.seller.as_str())
    .bind(new.product.id())
    .bind(new.product.product_type().as_str())
    .bind(new.credits.get())
    .bind(i64::from(new.ai_training_allowed))
    .bind(TERMS_VERSION)
    .bind(new.accepted_by)
    .bind(now.micros())
    .execute(&mut **write)
    .await?;
    let purchase = of_product(write, new.buyer, new.product.id())
        .await?
        .ok_or(StoreError::NotFound)?;
    if inserted.rows_affected() > 0 {
        write.touch(
            Topic::Purchase,
            entitlement(new.buyer.as_str(), new.product.id()),
        );
        events::emit(write, &created(&purchase, now)).await?;
    }
    Ok(purchase)
}

/// Accepts a cancelled purchase anew, with today's price and terms. `None`: it is not cancelled any more. The seller is told of it unless the
/// terms were accepted just before.
pub async fn renew(
    write: &mut Write,
    id: &PurchaseId,
    new: &NewPurchase<'_>,
    now: Timestamp,
) -> Result<Option<Purchase>, StoreError> {
    lock(write, new.buyer, id).await?;
    let Some(former) = get(write, new.buyer, id).await? else {
        return Ok(None);
    };
    let renewed = sqlx::query(
        "UPDATE purchases
         SET status = 'active', price_credits = $2, ai_training_allowed = $3, terms_version = $4, accepted_by = $5, accepted_at = $6
         WHERE purchase_id = $1 AND status = 'cancelled'",
    )
    .bind(id.as_str())
    .bind(new.credits.get())
    .bind(i64::from(new.ai_training_allowed))
    .bind(TERMS_VERSION)
    .bind(new.accepted_by)
    .bind(now.micros())
    .execute(&mut **write)
    .await?;
    if renewed.rows_affected() == 0 {
        return Ok(None);
    }
    write.touch(
        Topic::Purchase,
        entitlement(new.buyer.as_str(), new.product.id()),
    );
    let purchase = get(write, new.buyer, id).await?;
    if let Some(purchase) = &purchase {
        let [of_buyer, of_seller] = created(purchase, now);
        let is_told_again = now.since(former.accepted_at) >= TOLD_AGAIN_AFTER;
        let told = std::iter::once(of_buyer).chain(is_told_again.then_some(of_seller));
        events::emit(write, &told.collect::<Vec<_>>()).await?;
    }
    Ok(purchase)
}

macro_rules! columns {
    () => {
        "purchase_id, company_id, seller_company_id, product_id, product_type, price_credits, ai_training_allowed, terms_version,
         accepted_by, accepted_at, status, endpoint_key_id, created_at"
    };
}

/// What this company has bought of this product.
pub async fn of_product(
    db: &mut AnyConnection,
    buyer: &CompanyId,
    product: &str,
) -> Result<Option<Purchase>, StoreError> {
    let row = sqlx::query(concat!(
        "SELECT ",
        columns!(),
        " FROM purchases WHERE company_id = $1 AND product_id = $2"
    ))
    .bind(buyer.as_str())
    .bind(product)
    .fetch_optional(db)
    .await?;
    row.as_ref().map(from_row).transpose()
}

/// How many companies hold an active purchase of a product.
pub async fn active_of_product(db: &mut AnyConnection, product: &str) -> Result<i64, StoreError> {
    sqlx::query(
        "SELECT COUNT(*) AS total FROM purchases WHERE product_id = $1 AND status = 'active'",
    )
    .bind(product)
    .fetch_one(db)
    .await?
    .number("total")
}

pub async fn get(
    db: &mut AnyConnection,
    buyer: &CompanyId,
    id: &PurchaseId,
) -> Result<Option<Purchase>, StoreError> {
    let row = sqlx::query(concat!(
        "SELECT ",
        columns!(),
        " FROM purchases WHERE purchase_id = $1 AND company_id = $2"
    ))
    .bind(id.as_str())
    .bind(buyer.as_str())
    .fetch_optional(db)
    .await?;
    row.as_ref().map(from_row).transpose()
}

/// Keeps others from changing a purchase and its key until this transaction ends: both are read, and then written.
pub async fn lock(write: &mut Write, buyer: &CompanyId, id: &PurchaseId) -> Result<(), StoreError> {
    if write.is_shared() {
        // PostgreSQL locks a row that is updated, also with what it holds already.
        sqlx::query(
            "UPDATE purchases SET status = status WHERE purchase_id = $1 AND company_id = $2",
        )
        .bind(id.as_str())
        .bind(buyer.as_str())
        .execute(&mut **write)
        .await?;
    }
    Ok(())
}

/// Keeps a product from being archived until this transaction ends: whoever buys it looks at what it is, and then writes.
pub async fn hold_product(write: &mut Write, product: &str) -> Result<(), StoreError> {
    if write.is_shared() {
        sqlx::query("SELECT id FROM products WHERE id = $1 FOR SHARE")
            .bind(product)
            .fetch_optional(&mut **write)
            .await?;
    }
    Ok(())
}

/// Keeps everybody from buying a product until this transaction ends: its buyers are counted, and then it is archived.
pub async fn close_product(write: &mut Write, product: &str) -> Result<(), StoreError> {
    if write.is_shared() {
        sqlx::query("SELECT id FROM products WHERE id = $1 FOR UPDATE")
            .bind(product)
            .fetch_optional(&mut **write)
            .await?;
    }
    Ok(())
}

/// A purchase, whoever bought.
pub async fn get_any(
    db: &mut AnyConnection,
    id: &PurchaseId,
) -> Result<Option<Purchase>, StoreError> {
    let row = sqlx::query(concat!(
        "SELECT ",
        columns!(),
        " FROM purchases WHERE purchase_id = $1"
    ))
    .bind(id.as_str())
    .fetch_optional(db)
    .await?;
    row.as_ref().map(from_row).transpose()
}

/// What a purchase was used for since there is one.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Used {
    /// Successful calls.
    pub executions: i64,
    /// Refunds deducted.
    pub credits: i64,
}

static USED: Bulk = Bulk::new(
    "SELECT v.column3 AS purchase_id,
            (SELECT CAST(COALESCE(SUM(d.succeeded), 0) AS BIGINT)
             FROM usage_days d
             WHERE d.company_id = v.column1 AND d.product_id = v.column2) AS executions,
            (SELECT CAST(COALESCE(SUM(d.credits), 0) AS BIGINT)
             FROM usage_days d
             WHERE d.company_id = v.column1 AND d.product_id = v.column2) AS credits,
            (SELECT CAST(COALESCE(SUM(t.amount_credits), 0) AS BIGINT)
             FROM transactions t
             WHERE t.type = 'refund' AND t.company_id = v.column1 AND t.product_id = v.column2) AS refunded",
    3,
    "WHERE v.column1 IS NOT NULL",
);

/// By purchase.
pub async fn used_of(
    db: &mut AnyConnection,
    purchases: &[Purchase],
) -> Result<HashMap<PurchaseId, Used>, StoreError> {
    let rows = USED
        .fetch(db, purchases, |values, row| {
            values
                .text(row.map(|purchase| purchase.company_id.as_str()))
                .text(row.map(|purchase| purchase.product_id.as_str()))
                .text(row.map(|purchase| purchase.id.as_str()));
        })
        .await?;
    let used = rows.iter().map(|row| {
        let used = Used {
            executions: row.number("executions")?,
            credits: row.number("credits")? - row.number("refunded")?,
        };
        Ok((row.id("purchase_id")?, used))
    });
    used.collect()
}

static LIST: List = List::new(
    columns!(),
    "FROM purchases
     WHERE company_id = $1
       AND (CAST($2 AS TEXT) IS NULL OR product_type = $2)
       AND (CAST($3 AS TEXT) IS NULL OR status = $3)",
    "created_at DESC, purchase_id",
    3,
);

/// A company's purchases, newest first.
pub async fn list(
    db: &mut AnyConnection,
    buyer: &CompanyId,
    product_type: Option<ProductType>,
    status: Option<PurchaseStatus>,
    part: Part,
) -> Result<Listed<Purchase>, StoreError> {
    let bind = |values: &mut Values| {
        values
            .text(Some(buyer.as_str()))
            .text(product_type.map(ProductType::as_str))
            .text(status.map(PurchaseStatus::as_str));
    };
    LIST.fetch(db, part, bind, from_row).await
}

/// Notes the endpoint key that was provisioned for a purchase.
pub async fn set_key(write: &mut Write, id: &PurchaseId, key: &KeyId) -> Result<(), StoreError> {
    let changed = sqlx::query(
        "UPDATE purchases SET endpoint_key_id = $2 WHERE purchase_id = $1 RETURNING company_id, product_id",
    )
    .bind(id.as_str())
    .bind(key.as_str())
    .fetch_optional(&mut **write)
    .await?;
    touch_changed(write, changed)?;
    Ok(())
}

/// Changes a purchase from one state to another. False: it is in neither of them any more.
pub async fn set_status(
    write: &mut Write,
    id: &PurchaseId,
    from: PurchaseStatus,
    to: PurchaseStatus,
) -> Result<bool, StoreError> {
    let changed = sqlx::query(
        "UPDATE purchases SET status = $3 WHERE purchase_id = $1 AND status IN ($2, $3) RETURNING company_id, product_id",
    )
    .bind(id.as_str())
    .bind(from.as_str())
    .bind(to.as_str())
    .fetch_optional(&mut **write)
    .await?;
    touch_changed(write, changed)
}

/// False: no row was changed.
fn touch_changed(write: &mut Write, changed: Option<AnyRow>) -> Result<bool, StoreError> {
    let Some(row) = changed else {
        return Ok(false);
    };
    let (buyer, product) = (row.text("company_id")?, row.text("product_id")?);
    write.touch(Topic::Purchase, entitlement(&buyer, &product));
    Ok(true)
}

/// The id under which a purchase is announced: of a company and a product, so that whoever has found none yet is told of the first one.
pub fn entitlement(buyer: &str, product: &str) -> String {
    format!("{buyer}/{product}")
}

/// Told to the buyer and to the seller, in this order.
fn created(purchase: &Purchase, now: Timestamp) -> [Event; 2] {
    let event = |company: &CompanyId| Event {
        company: company.clone(),
        kind: EventType::PurchaseCreated,
        at: now,
        data: json!({
            "purchase_id": purchase.id,
            "company_id": purchase.company_id,
            "seller_company_id": purchase.seller_id,
            "product_type": purchase.product_type.as_str(),
            "product_id": purchase.product_id,
            "price_credits": purchase.credits,
            "terms_version": purchase.terms_version,
        }),
    };
    [event(&purchase.company_id), event(&purchase.seller_id)]
}

fn from_row(row: &AnyRow) -> Result<Purchase, StoreError> {
    let (product_type, status) = (row.text("product_type")?, row.text("status")?);
    Ok(Purchase {
        id: row.id("purchase_id")?,
        company_id: row.id("company_id")?,
        seller_id: row.id("seller_company_id")?,
        product_type: ProductType::parse(&product_type)
            .ok_or_else(|| corrupt("product_type", product_type))?,
        product_id: row.text("product_id")?,
        credits: row.credits("price_credits")?,
        ai_training_allowed: row.flag("ai_training_allowed")?,
        terms_version: row.text("terms_version")?,
        accepted_by: row.text("accepted_by")?,
        accepted_at: row.time("accepted_at")?,
        status: PurchaseStatus::parse(&status).ok_or_else(|| corrupt("status", status))?,
        endpoint_key_id: row.id_opt("endpoint_key_id")?,
        created_at: row.time("created_at")?,
    })
}

#[cfg(test)]
mod tests {
    use crate::plans::Plans;

    /// What a purchase was used for is read from the counts of its buyer and product alone: neither all that the buyer uses nor all who use the product
    /// are gone through for each of a page.
    #[tokio::test]
    async fn use_is_found_by_buyer_and_product() {
        let used = "SELECT SUM(d.credits) AS credits FROM usage_days d WHERE d.company_id = $1 AND d.product_id = $2";
        let steps = Plans::open().await.steps(used).await;
        let found = "SEARCH d USING INDEX usage_days_of_buyer (company_id=? AND product_id=?)";
        assert_eq!(steps, [found]);
    }
}
