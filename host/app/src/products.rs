//! Products as they are executed: everything that an execution needs of an asset or an endpoint,
//! read once, checked once, and kept until a transaction changes it.
//!
//! Who may see or run a product is decided by the caller of these functions.

mod asset;
mod endpoint;

use std::sync::Arc;
use std::time::Duration;

use serde_json::Value as Json;
use souk_domain::ids::{AssetId, CompanyId, ConnectionId, EndpointId};
use souk_domain::products::ProductStatus;
use souk_domain::sql::Dialect;
use souk_domain::time::Timestamp;
use souk_store::prices::{self, Price};
use souk_store::products::{self, Kind, Row};
use souk_store::{AnyConnection, Cache, Db, StoreError, Topic, companies, connections};

use crate::App;
use crate::connectors::{self, SERVING, serving_ids};
use crate::failure::Cause;
use crate::run::Sold;
pub use asset::{Action, AssetPlan};
pub(crate) use endpoint::{Chosen, PageStatement, Shape, kind_of};
pub use endpoint::{EndpointPlan, Learned, LearnedColumn};

pub type AssetSnapshot = Snapshot<AssetId>;
pub type EndpointSnapshot = Snapshot<EndpointId>;

/// Products in use at once; a snapshot is a few kB, at most the 64 kB of a long statement.
const SNAPSHOTS_MAX: usize = 10_000;

/// A kind of product, as it is run.
pub trait Sells: Kind {
    /// What is made of a row once: what runs at the source, and what of the answer may leave.
    type Plan: Send + Sync + 'static;

    /// `dialect`: how its SQL is written, if it has any.
    fn plan(row: &Row<Self>, dialect: Option<Dialect>) -> Result<Self::Plan, Cause>;

    /// Whether its source is SQL.
    fn is_sql(details: &Self::Details) -> bool;

    /// Whether what a preview shows is still what the product would answer.
    fn shows_the_same(before: &Self::Details, after: &Self::Details) -> bool;

    /// The products of this kind in use.
    fn in_use(products: &Products) -> &InUse<Self>;
}

/// A product as it was when it was read, with its price.
pub struct Snapshot<K: Sells> {
    pub row: Row<K>,
    pub plan: K::Plan,
    pub timeout: Duration,
    pub priced: Priced,
}

impl<K: Sells> Snapshot<K> {
    pub fn sold(&self) -> Sold<'_> {
        let row = &self.row;
        Sold {
            product: row.id.product(),
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
    slugs: Cache<String, K>,
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
        // A snapshot is made from the product, its prices, its owner, and the word of connectors for the dialect.
        let [own, platforms] = SERVING;
        InUse {
            snapshots: Cache::new(
                db,
                SNAPSHOTS_MAX,
                [Topic::Product, Topic::Price, Topic::Company, own, platforms],
                |id: &K, product: &Snapshot<K>| ids(id.as_ref(), &product.row.company_id),
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

/// The price now, and how long that is known to be so.
#[derive(Clone, Debug)]
pub struct Priced {
    pub price: Option<Price>,
    until: Option<Timestamp>,
}

impl Priced {
    fn holds(&self, now: Timestamp) -> bool {
        // A request that came in before the price began pays the one before it, however late it gets here.
        let begun = self
            .price
            .as_ref()
            .is_none_or(|price| price.validity.from <= now);
        begun && self.until.is_none_or(|until| now < until)
    }
}

/// No execution takes longer, whatever a product says.
pub const TIMEOUT_MS_MAX: i64 = 60_000;
pub const DEFAULT_TIMEOUT_MS: i64 = 10_000;

/// A product of any company, archived ones included.
pub async fn get<K: Sells>(app: &App, id: &K, now: Timestamp) -> Result<Arc<Snapshot<K>>, Cause> {
    let snapshots = &K::in_use(&app.products).snapshots;
    match snapshots.get(id) {
        Some(product) if product.priced.holds(now) => return Ok(product),
        // Its price has changed by the clock alone, which no transaction tells.
        Some(_) => snapshots.remove(id),
        None => {}
    }
    let load = || async {
        let mut db = app.db.read().await?;
        let row = products::get_any(&mut db, id)
            .await?
            .ok_or(Cause::NotFound)?;
        let written = &row.written;
        let dialect = match K::is_sql(&written.details) {
            true => Some(dialect(app, &mut db, &row.company_id, &written.connection_id).await?),
            false => None,
        };
        let priced = price(&mut db, id.as_ref(), now).await?;
        drop(db);
        let timeout_ms = written.timeout_ms.clamp(1, TIMEOUT_MS_MAX) as u64;
        Ok(Snapshot {
            plan: K::plan(&row, dialect)?,
            timeout: Duration::from_millis(timeout_ms),
            priced,
            row,
        })
    };
    snapshots.get_or_load(id.clone(), load).await
}

/// The product behind a company's handle, a former one included, and a slug.
pub async fn by_slug<K: Sells>(
    app: &App,
    handle: &str,
    slug: &str,
    now: Timestamp,
) -> Result<Arc<Snapshot<K>>, Cause> {
    let load = || async {
        let mut db = app.db.read().await?;
        let company = companies::by_handle(&mut db, handle, now)
            .await?
            .ok_or(Cause::NotFound)?;
        products::id_by_slug(&mut db, &company.id, slug)
            .await?
            .ok_or(Cause::NotFound)
    };
    let slugs = &K::in_use(&app.products).slugs;
    let id = slugs.get_or_load(format!("{handle}/{slug}"), load).await?;
    get::<K>(app, &id, now).await
}

/// The product of a company by its slug.
pub async fn of_company<K: Sells>(
    app: &App,
    company: &CompanyId,
    slug: &str,
    now: Timestamp,
) -> Result<Arc<Snapshot<K>>, Cause> {
    let load = || async {
        let mut db = app.db.read().await?;
        products::id_by_slug(&mut db, company, slug)
            .await?
            .ok_or(Cause::NotFound)
    };
    // An id has a `_`, a handle never: the two do not meet in the cache.
    let slugs = &K::in_use(&app.products).slugs;
    let id = slugs.get_or_load(format!("{company}/{slug}"), load).await?;
    get::<K>(app, &id, now).await
}

/// What a connection's engine takes.
#[derive(Clone, Debug)]
pub struct Speaks {
    /// The engine's slug.
    pub engine: String,
    pub sql: Option<Dialect>,
    /// A seller's API.
    pub functions: bool,
}

/// `Cause::NotFound`: the company has no such connection.
pub async fn speaks(
    app: &App,
    db: &mut AnyConnection,
    company: &CompanyId,
    connection: &ConnectionId,
) -> Result<Speaks, Cause> {
    let connection = connections::get(db, company, connection)
        .await?
        .ok_or(Cause::NotFound)?;
    let engine = connectors::serving(app, company, &connection.engine_scope, &connection.engine)
        .ok_or_else(|| Cause::NoConnector(connection.engine.clone()))?;
    Ok(Speaks {
        engine: engine.slug.clone(),
        sql: Dialect::of(&engine.dialect),
        functions: engine.has("functions"),
    })
}

/// How SQL is written for a connection. What takes no SQL has no dialect, and no SQL product.
async fn dialect(
    app: &App,
    db: &mut AnyConnection,
    company: &CompanyId,
    connection: &ConnectionId,
) -> Result<Dialect, Cause> {
    let speaks = speaks(app, db, company, connection).await?;
    speaks
        .sql
        .ok_or_else(|| Cause::Internal(format!("engine \"{}\" takes no SQL", speaks.engine)))
}

async fn price(
    db: &mut AnyConnection,
    product: &str,
    now: Timestamp,
) -> Result<Priced, StoreError> {
    let price = prices::active(db, product, now).await?;
    let until = prices::next_change(db, product, now).await?;
    Ok(Priced { price, until })
}

fn read(text: &str) -> Result<Json, Cause> {
    serde_json::from_str(text)
        .map_err(|error| Cause::Internal(format!("a stored product cannot be read: {error}")))
}

fn unreadable(part: &str) -> Cause {
    Cause::Internal(format!(
        "a stored product cannot be executed: its {part} cannot be read"
    ))
}
