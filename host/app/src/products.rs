//! Products as they are executed: everything that an execution needs of an asset or an endpoint,
//! read once, checked once, and kept until a transaction changes it.
//!
//! Who may see or run a product is decided by the caller of these functions.

mod asset;
mod endpoint;

use std::sync::Arc;

use serde_json::Value as Json;
use souk_domain::ids::{AssetId, CompanyId, ConnectionId, EndpointId};
use souk_domain::sql::Dialect;
use souk_domain::time::Timestamp;
use souk_sandbox::json;
use souk_store::prices::{self, Price};
use souk_store::{AnyConnection, Cache, Db, StoreError, Topic, assets, connections, endpoints};

use crate::App;
use crate::connectors::{self, SERVING, serving_ids};
use crate::failure::Refusal;
pub use asset::{Action, AssetSnapshot};
pub(crate) use endpoint::kind_of;
pub use endpoint::{EndpointSnapshot, Learned, LearnedColumn};

/// Products in use at once; a snapshot is a few kB, at most the 64 kB of a long statement.
const SNAPSHOTS_MAX: usize = 10_000;

/// The products in use.
pub struct Products {
    pub assets: Cache<AssetId, AssetSnapshot>,
    pub endpoints: Cache<EndpointId, EndpointSnapshot>,
    /// `handle/slug` of an asset, and of an endpoint.
    asset_slugs: Cache<String, AssetId>,
    endpoint_slugs: Cache<String, EndpointId>,
}

impl Products {
    pub fn new(db: &Db) -> Products {
        Products {
            assets: Cache::new(
                db,
                SNAPSHOTS_MAX,
                made_from(Topic::Asset),
                |id: &AssetId, asset: &AssetSnapshot| ids(id.as_str(), &asset.row.company_id),
            ),
            endpoints: Cache::new(
                db,
                SNAPSHOTS_MAX,
                made_from(Topic::Endpoint),
                |id: &EndpointId, endpoint: &EndpointSnapshot| {
                    ids(id.as_str(), &endpoint.row.company_id)
                },
            ),
            asset_slugs: Cache::new(
                db,
                SNAPSHOTS_MAX,
                [Topic::Handle, Topic::Asset],
                |path: &String, id: &AssetId| [handle(path), id.as_str().into()],
            ),
            endpoint_slugs: Cache::new(
                db,
                SNAPSHOTS_MAX,
                [Topic::Handle, Topic::Endpoint],
                |path: &String, id: &EndpointId| [handle(path), id.as_str().into()],
            ),
        }
    }
}

/// What a snapshot of a product is made from: itself, its prices, its owner, and the word of connectors for the dialect.
fn made_from(product: Topic) -> [Topic; 5] {
    let [own, platforms] = SERVING;
    [product, Topic::Price, Topic::Company, own, platforms]
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

/// `,"name":"value"`.
pub(crate) fn push_member(out: &mut Vec<u8>, name: &str, value: &str) {
    out.extend_from_slice(b",\"");
    out.extend_from_slice(name.as_bytes());
    out.extend_from_slice(b"\":");
    json::write_string(out, value.as_bytes());
}

/// An asset of any company, archived ones included.
pub async fn asset(app: &App, id: &AssetId, now: Timestamp) -> Result<Arc<AssetSnapshot>, Refusal> {
    match app.products.assets.get(id) {
        Some(asset) if asset.priced.holds(now) => return Ok(asset),
        // Its price has changed by the clock alone, which no transaction tells.
        Some(_) => app.products.assets.remove(id),
        None => {}
    }
    app.products
        .assets
        .get_or_load(id.clone(), || async {
            let mut db = app.db.read().await?;
            let row = assets::get_any(&mut db, id)
                .await?
                .ok_or(Refusal::NotFound)?;
            let dialect = match row.written.source_kind.as_str() {
                "sql" => {
                    Some(dialect(app, &mut db, &row.company_id, &row.written.connection_id).await?)
                }
                _ => None,
            };
            let priced = price(&mut db, id.as_str(), now).await?;
            drop(db);
            AssetSnapshot::new(row, dialect, priced)
        })
        .await
}

/// An endpoint of any company, archived ones included.
pub async fn endpoint(
    app: &App,
    id: &EndpointId,
    now: Timestamp,
) -> Result<Arc<EndpointSnapshot>, Refusal> {
    match app.products.endpoints.get(id) {
        Some(endpoint) if endpoint.priced.holds(now) => return Ok(endpoint),
        // Its price has changed by the clock alone, which no transaction tells.
        Some(_) => app.products.endpoints.remove(id),
        None => {}
    }
    app.products
        .endpoints
        .get_or_load(id.clone(), || async {
            let mut db = app.db.read().await?;
            let row = endpoints::get_any(&mut db, id)
                .await?
                .ok_or(Refusal::NotFound)?;
            let dialect =
                dialect(app, &mut db, &row.company_id, &row.written.connection_id).await?;
            let priced = price(&mut db, id.as_str(), now).await?;
            drop(db);
            EndpointSnapshot::new(row, dialect, priced)
        })
        .await
}

/// The asset behind a company's handle, a former one included, and a slug.
pub async fn asset_by_slug(
    app: &App,
    handle: &str,
    slug: &str,
    now: Timestamp,
) -> Result<Arc<AssetSnapshot>, Refusal> {
    let load = || async {
        let mut db = app.db.read().await?;
        let company = souk_store::companies::by_handle(&mut db, handle, now)
            .await?
            .ok_or(Refusal::NotFound)?;
        assets::id_by_slug(&mut db, &company.id, slug)
            .await?
            .ok_or(Refusal::NotFound)
    };
    let id = app
        .products
        .asset_slugs
        .get_or_load(format!("{handle}/{slug}"), load)
        .await?;
    asset(app, &id, now).await
}

/// The endpoint behind a company's handle, a former one included, and a slug.
pub async fn endpoint_by_slug(
    app: &App,
    handle: &str,
    slug: &str,
    now: Timestamp,
) -> Result<Arc<EndpointSnapshot>, Refusal> {
    let load = || async {
        let mut db = app.db.read().await?;
        let company = souk_store::companies::by_handle(&mut db, handle, now)
            .await?
            .ok_or(Refusal::NotFound)?;
        endpoints::id_by_slug(&mut db, &company.id, slug)
            .await?
            .ok_or(Refusal::NotFound)
    };
    let id = app
        .products
        .endpoint_slugs
        .get_or_load(format!("{handle}/{slug}"), load)
        .await?;
    endpoint(app, &id, now).await
}

/// The endpoint of a company by its slug.
pub async fn endpoint_of_company(
    app: &App,
    company: &CompanyId,
    slug: &str,
    now: Timestamp,
) -> Result<Arc<EndpointSnapshot>, Refusal> {
    let load = || async {
        let mut db = app.db.read().await?;
        endpoints::id_by_slug(&mut db, company, slug)
            .await?
            .ok_or(Refusal::NotFound)
    };
    // An id has a `_`, a handle never: the two do not meet in the cache.
    let id = app
        .products
        .endpoint_slugs
        .get_or_load(format!("{company}/{slug}"), load)
        .await?;
    endpoint(app, &id, now).await
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

/// `Refusal::NotFound`: the company has no such connection.
pub async fn speaks(
    app: &App,
    db: &mut AnyConnection,
    company: &CompanyId,
    connection: &ConnectionId,
) -> Result<Speaks, Refusal> {
    let connection = connections::get(db, company, connection)
        .await?
        .ok_or(Refusal::NotFound)?;
    let engine = connectors::serving(app, company, &connection.engine_scope, &connection.engine)
        .ok_or_else(|| Refusal::NoConnector(connection.engine.clone()))?;
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
) -> Result<Dialect, Refusal> {
    let speaks = speaks(app, db, company, connection).await?;
    speaks
        .sql
        .ok_or_else(|| Refusal::Internal(format!("engine \"{}\" takes no SQL", speaks.engine)))
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

fn read(text: &str) -> Result<Json, Refusal> {
    serde_json::from_str(text)
        .map_err(|error| Refusal::Internal(format!("a stored product cannot be read: {error}")))
}

fn unreadable(part: &str) -> Refusal {
    Refusal::Internal(format!(
        "a stored product cannot be executed: its {part} cannot be read"
    ))
}
