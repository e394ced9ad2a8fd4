//! A product as it is run, made of its row once, and those in use: each kept until a transaction changes it.

use std::sync::Arc;
use std::time::Duration;

use serde_json::Value as Json;
use souk_domain::ids::{AssetId, CompanyId, EndpointId};
use souk_domain::products::{Product, ProductStatus};
use souk_domain::sql::Dialect;
use souk_sandbox::Facts;
use souk_store::products::{Kind, Row, Written};
use souk_store::{Cache, Db, Topic};

use super::sold::{Priced, Sold};
use crate::connectors::{SERVING, serving_ids};
use crate::failure::Cause;

pub type AssetSnapshot = Snapshot<AssetId>;
pub type EndpointSnapshot = Snapshot<EndpointId>;

/// Products in use at once; a snapshot is a few kB.
const SNAPSHOTS_MAX: usize = 10_000;
/// All together that are more: with a long statement, or members of up to 64 KiB each, some hundred kB. One seller's have an eighth of it.
const LARGE_BYTES_MAX: usize = 256 << 20;
/// A snapshot has its texts as they are stored, and what was read of them: values, names and a statement.
const TIMES_AS_STORED: usize = 4;

/// A kind of product, as it is run.
pub trait Sells: Kind {
    /// What is made of a row once: what runs at the source, and what of the answer may leave.
    type Plan: Send + Sync + 'static;

    /// `spoken`: how its SQL is written, if it has any, and what its source's connector says of types.
    fn plan(row: &Row<Self>, spoken: Option<(Dialect, Facts)>) -> Result<Self::Plan, Cause>;

    /// Whether its source is SQL.
    fn is_sql(details: &Self::Details) -> bool;

    /// Whether what a preview shows is still what the product would answer.
    fn shows_the_same(before: &Self::Details, after: &Self::Details) -> bool;

    /// Whether `after` asks its source for nothing that `before` did not ask for, and reads nothing else of the answers: it works if
    /// that did. Both are on one connection.
    fn asks_no_more(before: &Self::Details, after: &Self::Details) -> bool;

    /// What a change leaves of what is known of the source's columns.
    fn still_learned(before: &Row<Self>, after: &Written<Self::Details>) -> Option<String>;

    /// The products of this kind in use.
    fn in_use(products: &Products) -> &InUse<Self>;
}

/// A product as it was when it was read, with its price.
pub struct Snapshot<K: Sells> {
    pub row: Row<K>,
    pub product: Product,
    pub plan: K::Plan,
    pub timeout: Duration,
    pub priced: Priced,
}

impl<K: Sells> Snapshot<K> {
    pub fn sold(&self) -> Sold<'_> {
        let row = &self.row;
        Sold {
            product: &self.product,
            owner: &row.company_id,
            status: row.status,
            is_suspended: row.is_suspended,
            priced: &self.priced,
            allow_ai_training: row.written.allow_ai_training,
            timeout: self.timeout,
            seller_api: !K::is_sql(&row.written.details),
        }
    }

    /// It is this company's, and not archived.
    pub fn is_of(&self, company: &CompanyId) -> bool {
        self.row.company_id == *company && self.row.status != ProductStatus::Archived
    }
}

/// The products in use.
pub struct Products {
    pub assets: InUse<AssetId>,
    pub endpoints: InUse<EndpointId>,
}

/// The products of one kind in use.
pub struct InUse<K: Sells> {
    pub snapshots: Cache<K, Snapshot<K>>,
    /// By `handle/slug`.
    pub(super) slugs: Cache<String, K>,
}

impl Products {
    pub fn new(db: &Db) -> Products {
        Products {
            assets: InUse::new(db),
            endpoints: InUse::new(db),
        }
    }
}

impl<K: Sells> InUse<K> {
    fn new(db: &Db) -> InUse<K> {
        // A snapshot is made from the product, its prices, its owner, and the word of connectors for the dialect and for types.
        let [own, platforms] = SERVING;
        InUse {
            snapshots: Cache::weighed(
                db,
                (SNAPSHOTS_MAX, LARGE_BYTES_MAX),
                [Topic::Product, Topic::Price, Topic::Company, own, platforms],
                |id: &K, product: &Snapshot<K>| ids(id.as_ref(), &product.row.company_id),
                |product: &Snapshot<K>| {
                    let row = &product.row;
                    (row.company_id.as_str(), TIMES_AS_STORED * row.text_bytes())
                },
            ),
            slugs: Cache::new(
                db,
                SNAPSHOTS_MAX,
                [Topic::Handle, Topic::Product],
                |path: &String, id: &K| [handle(path), id.as_ref().into()],
            ),
        }
    }
}

fn ids(product: &str, owner: &CompanyId) -> [Arc<str>; 5] {
    let (product, owner) = (Arc::from(product), Arc::from(owner.as_str()));
    let [own, platforms] = serving_ids(&owner);
    [Arc::clone(&product), product, owner, own, platforms]
}

/// The first part of `handle/slug`.
fn handle(path: &str) -> Arc<str> {
    path.split('/').next().unwrap_or_default().into()
}

/// A part of a stored product, which is JSON.
pub(super) fn read(text: &str) -> Result<Json, Cause> {
    serde_json::from_str(text)
        .map_err(|error| Cause::Internal(format!("a stored product cannot be read: {error}")))
}

pub(super) fn unreadable(part: &str) -> Cause {
    Cause::Internal(format!(
        "a stored product cannot be executed: its {part} cannot be read"
    ))
}

#[cfg(test)]
mod tests {
    use souk_domain::ids::{ConnectionId, UserId};
    use souk_domain::products::{AssetType, ResultType, SourceKind};
    use souk_domain::time::Timestamp;
    use souk_store::OpenOptions;
    use souk_store::products::AssetDetails;

    use super::*;

    /// A seller's product whose source is named by so many bytes.
    fn product(seller: &CompanyId, bytes: usize) -> AssetSnapshot {
        let details = AssetDetails {
            asset_type: AssetType::Calculation,
            sport: None,
            source_kind: SourceKind::Function,
            source: "x".repeat(bytes),
            parameters: "[]".to_owned(),
            result_type: ResultType::Number,
            unit: None,
            visualization: None,
            prediction: None,
            privacy: None,
            freshness_column: None,
        };
        let written = Written {
            connection_id: ConnectionId::generate(),
            name: "a product".to_owned(),
            slug: "a-product".to_owned(),
            description: String::new(),
            category: None,
            labels: "{}".to_owned(),
            timeout_ms: 1_000,
            allow_ai_training: false,
            details,
        };
        let (id, at) = (AssetId::generate(), Timestamp::from_micros(0));
        let row = Row {
            id: id.clone(),
            company_id: seller.clone(),
            company_handle: "acme".to_owned(),
            user_id: UserId::generate(),
            written,
            status: ProductStatus::Published,
            learned: None,
            sample: None,
            sampled_at: None,
            is_suspended: false,
            created_at: at,
            updated_at: at,
            published_at: None,
        };
        Snapshot {
            product: id.product(),
            plan: AssetId::plan(&row, None).expect("a plan"),
            timeout: Duration::from_secs(1),
            priced: Priced {
                price: None,
                until: None,
            },
            row,
        }
    }

    /// However many large products are in use, they take so many bytes together, one seller's an eighth of them, and small ones stay beside them.
    #[tokio::test]
    async fn large_products_in_use_are_bounded_by_bytes() {
        let directory = tempfile::tempdir().unwrap();
        let url = format!("sqlite:{}", directory.path().join("souk.db").display());
        let db = Db::open(&OpenOptions::new(url)).await.unwrap();
        let snapshots = Products::new(&db).assets.snapshots;
        let keep = |seller: &CompanyId, bytes: usize, number: usize| -> Vec<AssetId> {
            let product = Arc::new(product(seller, bytes));
            let ids: Vec<AssetId> = (0..number).map(|_| AssetId::generate()).collect();
            for id in &ids {
                snapshots.keep(id.clone(), &product, snapshots.epoch());
            }
            ids
        };
        let kept = |ids: &[AssetId]| ids.iter().filter(|id| snapshots.get(*id).is_some()).count();
        let most = LARGE_BYTES_MAX / (TIMES_AS_STORED * (60 << 10));
        let share = most / 8;
        let sellers: Vec<CompanyId> = (0..16).map(|_| CompanyId::generate()).collect();
        let small = keep(&sellers[0], 1 << 10, 100);
        let others = keep(&sellers[1], 60 << 10, share / 2);
        let large = keep(&sellers[0], 60 << 10, 2 * most);
        assert!((share / 2..=share).contains(&kept(&large)));
        assert_eq!(kept(&others), others.len());
        let all = sellers.iter();
        let all: Vec<AssetId> = all
            .flat_map(|seller| keep(seller, 60 << 10, share))
            .collect();
        let all = [all, others, large].concat();
        assert!((most / 2..=most).contains(&kept(&all)));
        assert_eq!(kept(&small), small.len());
    }
}
