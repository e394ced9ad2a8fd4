//! Products as they are executed: everything that an execution needs of an asset or an endpoint,
//! read once, checked once, and kept until a transaction changes it.
//!
//! Who may see or run a product is decided by the caller of these functions.

mod asks;
mod asset;
mod endpoint;
mod known;
mod snapshot;
mod sold;
mod statements;

use std::time::Duration;

use souk_domain::ids::{CompanyId, ConnectionId};
use souk_domain::sql::Dialect;
use souk_domain::time::Timestamp;
use souk_sandbox::Facts;
use souk_store::products::{Row, Written};
use souk_store::{
    AnyConnection, Cached, Read, StoreError, companies, connections, prices, products,
};

use crate::App;
use crate::connectors::serving;
use crate::failure::Cause;
pub use asset::{Action, AssetPlan};
pub use endpoint::{EndpointPlan, Learned, LearnedColumn};
pub(crate) use endpoint::{Uncompared, declared_time, has_operator, never_compared};
pub use known::impossible;
pub use snapshot::{AssetSnapshot, EndpointSnapshot, InUse, Products, Sells, Snapshot};
pub use sold::{Priced, Sold};
pub(crate) use statements::{Chosen, PageStatement, Shape, row_bytes};

/// No execution takes longer, whatever a product says.
pub const TIMEOUT_MS_MAX: i64 = 60_000;
pub const DEFAULT_TIMEOUT_MS: i64 = 10_000;

/// A product of any company, archived ones included.
pub async fn get<K: Sells>(
    app: &App,
    id: &K,
    now: Timestamp,
) -> Result<Cached<Snapshot<K>>, Cause> {
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
        of_row(app, db, row, now).await
    };
    snapshots.get_or_load(id.clone(), load).await
}

/// A product as a change would leave it. Nobody else sees it: it stands in no cache.
pub(crate) async fn changed<K: Sells>(
    app: &App,
    before: &Row<K>,
    written: &Written<K::Details>,
    now: Timestamp,
) -> Result<Cached<Snapshot<K>>, Cause> {
    let row = Row {
        written: written.clone(),
        // Of what it was.
        learned: None,
        sample: None,
        sampled_at: None,
        ..before.clone()
    };
    let db = app.db.read().await?;
    Ok(Cached::of(of_row(app, db, row, now).await?))
}

async fn of_row<K: Sells>(
    app: &App,
    mut db: Read,
    row: Row<K>,
    now: Timestamp,
) -> Result<Snapshot<K>, Cause> {
    let written = &row.written;
    let spoken = match K::is_sql(&written.details) {
        true => Some(spoken(app, &mut db, &row.company_id, &written.connection_id).await?),
        false => None,
    };
    let priced = price(&mut db, row.id.as_ref(), now).await?;
    drop(db);
    let timeout_ms = written.timeout_ms.clamp(1, TIMEOUT_MS_MAX) as u64;
    Ok(Snapshot {
        plan: K::plan(&row, spoken)?,
        timeout: Duration::from_millis(timeout_ms),
        priced,
        product: row.id.product(),
        row,
    })
}

/// The product behind a company's handle, a former one included, and a slug.
pub async fn by_slug<K: Sells>(
    app: &App,
    handle: &str,
    slug: &str,
    now: Timestamp,
) -> Result<Cached<Snapshot<K>>, Cause> {
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
) -> Result<Cached<Snapshot<K>>, Cause> {
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
    facts: Facts,
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
    let engine = serving(
        &app.sandbox,
        company,
        &connection.engine_scope,
        &connection.engine,
    )
    .ok_or_else(|| Cause::NoConnector(connection.engine.clone()))?;
    Ok(Speaks {
        engine: engine.slug.clone(),
        sql: Dialect::of(&engine.dialect),
        functions: engine.has("functions"),
        facts: engine.facts,
    })
}

/// How SQL is written for a connection, and what is said of its types. What takes no SQL has no dialect, and no SQL product.
async fn spoken(
    app: &App,
    db: &mut AnyConnection,
    company: &CompanyId,
    connection: &ConnectionId,
) -> Result<(Dialect, Facts), Cause> {
    let speaks = speaks(app, db, company, connection).await?;
    let no_sql = || Cause::Internal(format!("engine \"{}\" takes no SQL", speaks.engine));
    let dialect = speaks.sql.ok_or_else(no_sql)?;
    Ok((dialect, speaks.facts))
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
