//! What is on sale: published assets and endpoints of companies in good standing, with the price that holds and what the reader has of them; and
//! what became of those that were bought.

use crate::bulk::Bulk;
use crate::error::StoreError;
use crate::fields::Fields;
use crate::lists::{Listed, Part};
use crate::search::{self, Order, Wanted};
use souk_domain::ids::{CompanyId, KeyId, PurchaseId};
use souk_domain::money::Credits;
use souk_domain::products::{ProductStatus, ProductType};
use souk_domain::time::{DAY, Timestamp};
use sqlx::AnyConnection;
use sqlx::any::AnyRow;
use std::collections::HashMap;

/// What is counted for a product's statistics: this many UTC dates, today included.
const STATS_DAYS: u32 = 30;

/// A product on sale.
#[derive(Debug, Clone, PartialEq)]
pub struct Listing {
    pub product_type: ProductType,
    pub id: String,
    pub company_id: CompanyId,
    pub company_name: String,
    pub company_handle: String,
    pub name: String,
    pub slug: String,
    pub description: String,
    pub category: Option<String>,
    pub sport: Option<String>,
    pub labels: String,
    pub ai_training_allowed: bool,
    /// Of an asset.
    pub result_type: Option<String>,
    /// Of an endpoint: its published columns, and what the last test learnt of them.
    pub fields: Option<String>,
    pub learned: Option<String>,
    pub price: Option<Credits>,
    /// The reader's active purchase, and the endpoint key that was provisioned for it.
    pub purchase: Option<(PurchaseId, Option<KeyId>)>,
    /// Published, but for what is [`visible`] to those who have bought it.
    pub status: ProductStatus,
    pub published_at: Option<Timestamp>,
    /// There is something for a preview to show.
    pub has_sample: bool,
}

/// What a product costs at the instant in this column. Looked up for each: PostgreSQL would join them with all prices that there ever were.
macro_rules! price {
    ($at:literal) => {
        concat!(
            "(SELECT r.price_credits
              FROM prices r
              WHERE r.product_id = p.id AND r.effective_from <= ",
            $at,
            " AND COALESCE(r.effective_to, 9223372036854775807) > ",
            $at,
            "
              ORDER BY r.effective_from DESC
              LIMIT 1) AS price_credits"
        )
    };
}

/// Those of some products of which this holds.
macro_rules! listings {
    ($holds:literal) => {
        Bulk::new(
            concat!(
                "SELECT p.product_type, p.id, p.company_id, c.name AS company_name, c.handle AS company_handle, p.name, p.slug,
                        p.description, p.category, a.sport, p.labels, CAST(p.allow_ai_training AS BIGINT) AS allow_ai_training, a.result_type,
                        e.fields, p.learned, p.status, p.published_at,
                        CAST(CASE WHEN p.sample IS NULL THEN 0 ELSE 1 END AS BIGINT) AS has_sample, ",
                price!("v.column3"),
                ", b.purchase_id, b.endpoint_key_id"
            ),
            3,
            concat!(
                "JOIN products p ON p.id = v.column1
                 JOIN companies c ON c.id = p.company_id AND c.status = 'active'
                 LEFT JOIN asset_details a ON a.id = p.id
                 LEFT JOIN endpoint_details e ON e.id = p.id
                 LEFT JOIN purchases b ON b.product_id = p.id AND b.company_id = v.column2 AND b.status = 'active'
                 WHERE v.column1 IS NOT NULL AND ",
                $holds
            ),
        )
    };
}

/// By their ids only: without the COALESCE SQLite goes through all that is published, and looks for each among the ids.
static ON_SALE: Bulk = listings!("COALESCE(p.status, '') = 'published'");

/// And what the reader has bought before it was taken from sale.
static VISIBLE: Bulk = listings!(
    "(COALESCE(p.status, '') = 'published' OR COALESCE(p.status, '') = 'unpublished' AND b.purchase_id IS NOT NULL)"
);

/// Products on sale as `reader` sees them, and how many match in all.
pub async fn list(
    db: &mut AnyConnection,
    reader: &CompanyId,
    wanted: &Wanted<'_>,
    order: Order,
    now: Timestamp,
    part: Part,
) -> Result<Listed<Listing>, StoreError> {
    let (ids, total) = search::find(db, wanted, order, now, part).await?;
    let mut listings = listings(&ON_SALE, db, reader, &ids, now).await?;
    let found = ids.iter().filter_map(|id| listings.remove(id));
    Ok((found.collect(), total))
}

/// One product on sale as `reader` sees it.
pub async fn get(
    db: &mut AnyConnection,
    reader: &CompanyId,
    product: &str,
    now: Timestamp,
) -> Result<Option<Listing>, StoreError> {
    let mut listings = listings(&ON_SALE, db, reader, &[product.to_owned()], now).await?;
    Ok(listings.remove(product))
}

/// The same of one that `reader` may look at: it is on sale, or was when `reader` bought it.
pub async fn visible(
    db: &mut AnyConnection,
    reader: &CompanyId,
    product: &str,
    now: Timestamp,
) -> Result<Option<Listing>, StoreError> {
    let mut listings = listings(&VISIBLE, db, reader, &[product.to_owned()], now).await?;
    Ok(listings.remove(product))
}

/// By their ids.
async fn listings(
    wanted: &Bulk,
    db: &mut AnyConnection,
    reader: &CompanyId,
    products: &[String],
    now: Timestamp,
) -> Result<HashMap<String, Listing>, StoreError> {
    let rows = wanted
        .fetch(db, products, |values, product| {
            values
                .text(product.map(String::as_str))
                .text(product.map(|_| reader.as_str()))
                .number(product.map(|_| now.micros()));
        })
        .await?;
    let listings = rows.iter().map(listing);
    listings
        .map(|listing| listing.map(|listing| (listing.id.clone(), listing)))
        .collect()
}

/// A product that somebody has bought, as it is today, wherever in its life.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bought {
    pub name: String,
    pub slug: String,
    pub status: ProductStatus,
    pub company_id: CompanyId,
    pub company_name: String,
    pub company_handle: String,
    pub price: Option<Credits>,
}

static BOUGHT: Bulk = Bulk::new(
    concat!(
        "SELECT p.id, p.name, p.slug, p.status, p.company_id, c.name AS company_name, c.handle AS company_handle, ",
        price!("v.column2")
    ),
    2,
    "JOIN products p ON p.id = v.column1
     JOIN companies c ON c.id = p.company_id
     WHERE v.column1 IS NOT NULL",
);

/// By product. Whoever asks has bought them.
pub async fn bought(
    db: &mut AnyConnection,
    products: impl Iterator<Item = &str>,
    now: Timestamp,
) -> Result<HashMap<String, Bought>, StoreError> {
    let products: Vec<&str> = products.collect();
    let rows = BOUGHT
        .fetch(db, &products, |values, row| {
            values.text(row.copied()).number(row.map(|_| now.micros()));
        })
        .await?;
    let bought = rows.iter().map(|row| {
        let bought = Bought {
            name: row.text("name")?,
            slug: row.text("slug")?,
            status: row.id("status")?,
            company_id: row.id("company_id")?,
            company_name: row.text("company_name")?,
            company_handle: row.text("company_handle")?,
            price: price(row)?,
        };
        Ok((row.text("id")?, bought))
    });
    bought.collect()
}

/// How a product was used by others than its seller.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Stats {
    /// Companies with an active purchase.
    pub buyers: i64,
    /// In the last 30 days.
    pub succeeded: i64,
    pub failed: i64,
    /// Of the failed ones, for what their caller sent or the host's own reasons.
    pub excused: i64,
    pub duration_us: i64,
}

static STATS: Bulk = Bulk::new(
    "SELECT v.column1 AS product_id,
            (SELECT COUNT(*) FROM purchases p WHERE p.product_id = v.column1 AND p.status = 'active') AS buyers,
            CAST(COALESCE(SUM(d.succeeded), 0) AS BIGINT) AS succeeded,
            CAST(COALESCE(SUM(d.failed), 0) AS BIGINT) AS failed,
            CAST(COALESCE(SUM(d.excused), 0) AS BIGINT) AS excused,
            CAST(COALESCE(SUM(d.duration_us), 0) AS BIGINT) AS duration_us",
    2,
    "LEFT JOIN usage_days d ON d.product_id = v.column1 AND d.day >= v.column2 AND d.company_id <> d.seller_id
     WHERE v.column1 IS NOT NULL
     GROUP BY v.column1",
);

/// By product.
pub async fn stats(
    db: &mut AnyConnection,
    products: impl Iterator<Item = &str>,
    now: Timestamp,
) -> Result<HashMap<String, Stats>, StoreError> {
    let (products, first_day): (Vec<&str>, _) = (products.collect(), first_day(now));
    let rows = STATS
        .fetch(db, &products, |values, row| {
            values
                .text(row.copied())
                .number(row.map(|_| first_day.micros()));
        })
        .await?;
    let stats = rows.iter().map(|row| {
        let stats = Stats {
            buyers: row.number("buyers")?,
            succeeded: row.number("succeeded")?,
            failed: row.number("failed")?,
            excused: row.number("excused")?,
            duration_us: row.number("duration_us")?,
        };
        Ok((row.text("product_id")?, stats))
    });
    stats.collect()
}

fn first_day(now: Timestamp) -> Timestamp {
    now.day_start().before(DAY * (STATS_DAYS - 1))
}

/// What it costs, if that was said.
fn price(row: &AnyRow) -> Result<Option<Credits>, StoreError> {
    Ok(match row.number_opt("price_credits")? {
        None => None,
        Some(_) => Some(row.credits("price_credits")?),
    })
}

fn listing(row: &AnyRow) -> Result<Listing, StoreError> {
    let purchase = match row.id_opt("purchase_id")? {
        None => None,
        Some(purchase) => Some((purchase, row.id_opt("endpoint_key_id")?)),
    };
    Ok(Listing {
        product_type: row.id("product_type")?,
        id: row.text("id")?,
        company_id: row.id("company_id")?,
        company_name: row.text("company_name")?,
        company_handle: row.text("company_handle")?,
        name: row.text("name")?,
        slug: row.text("slug")?,
        description: row.text("description")?,
        category: row.text_opt("category")?,
        sport: row.text_opt("sport")?,
        labels: row.text("labels")?,
        ai_training_allowed: row.flag("allow_ai_training")?,
        result_type: row.text_opt("result_type")?,
        fields: row.text_opt("fields")?,
        learned: row.text_opt("learned")?,
        price: price(row)?,
        purchase,
        status: row.id("status")?,
        published_at: row.time_opt("published_at")?,
        has_sample: row.flag("has_sample")?,
    })
}
