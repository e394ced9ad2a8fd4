//! Products as they are executed: everything that an execution needs of an asset or an endpoint,
//! read once, checked once, and kept until a transaction changes it.
//!
//! Who may see or run a product is decided by the caller of these functions.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;
use souk_domain::ids::{AssetId, CompanyId, ConnectionId, EndpointId};
use souk_domain::pages::Page;
use souk_domain::parameters::Parameter;
use souk_domain::sql::{self, Dialect, Order, RowSource, Window};
use souk_domain::time::Timestamp;
use souk_sandbox::{ColumnKind, Route, json};
use souk_store::prices::{self, Price};
use souk_store::{
    AnyConnection, Cache, Change, Db, StoreError, Topic, assets, connections, endpoints,
};

use crate::App;
use crate::definition::{self, Field, Sorting};
use crate::failure::Refusal;
use crate::release::{Policy, ResultKind};

/// Products in use at once; a snapshot is a few kB, at most the 64 kB of a long statement.
const SNAPSHOTS_MAX: usize = 10_000;
/// Texts of one endpoint's page query, one for each set of filters and length of a first page that
/// callers use. Beyond them lengths are bound; beyond twice as many, all are made anew.
const TEXTS_MAX: usize = 64;

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
                |change, id: &AssetId, asset: &AssetSnapshot| {
                    concerns(change, Topic::Asset, id.as_str(), &asset.row.company_id)
                },
            ),
            endpoints: Cache::new(
                db,
                SNAPSHOTS_MAX,
                |change, id: &EndpointId, endpoint: &EndpointSnapshot| {
                    concerns(
                        change,
                        Topic::Endpoint,
                        id.as_str(),
                        &endpoint.row.company_id,
                    )
                },
            ),
            asset_slugs: Cache::new(db, SNAPSHOTS_MAX, |change, _, _| {
                matches!(
                    change,
                    Change::One {
                        topic: Topic::Asset | Topic::Company,
                        ..
                    }
                )
            }),
            endpoint_slugs: Cache::new(db, SNAPSHOTS_MAX, |change, _, _| {
                matches!(
                    change,
                    Change::One {
                        topic: Topic::Endpoint | Topic::Company,
                        ..
                    }
                )
            }),
        }
    }
}

fn concerns(change: &Change, topic: Topic, product: &str, owner: &CompanyId) -> bool {
    let Change::One { topic: changed, id } = change else {
        return true;
    };
    match changed {
        Topic::Company => id == owner.as_str(),
        // Whoever changes a price touches its product.
        Topic::Price => id == product,
        // The dialect is the connector's word.
        Topic::Connector => true,
        changed => *changed == topic && id == product,
    }
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

/// What runs at the source.
#[derive(Clone, Debug)]
pub enum Action {
    Query {
        text: Arc<str>,
        /// For each position, which parameter is bound.
        bindings: Vec<usize>,
    },
    Call(Route),
}

pub struct AssetSnapshot {
    pub row: assets::Asset,
    pub parameters: Vec<Parameter>,
    pub action: Action,
    pub policy: Policy,
    pub timeout: Duration,
    pub priced: Priced,
    /// Members of every answer, written once.
    pub(crate) head: Vec<u8>,
    pub(crate) tail: Vec<u8>,
}

impl AssetSnapshot {
    pub fn is_published(&self) -> bool {
        self.row.status == "published"
    }

    fn new(
        row: assets::Asset,
        dialect: Option<Dialect>,
        priced: Priced,
    ) -> Result<AssetSnapshot, Refusal> {
        let written = &row.written;
        let parameters = definition::parameters(&read(&written.parameters)?)
            .map_err(|_| unreadable("parameters"))?;
        let action = match (written.source_kind.as_str(), dialect) {
            ("sql", Some(dialect)) => {
                let prepared =
                    sql::prepare(dialect, &written.source).map_err(|_| unreadable("sql_logic"))?;
                let place = |name: &String| {
                    parameters
                        .iter()
                        .position(|parameter| parameter.name() == name)
                };
                let bindings = prepared
                    .bindings
                    .iter()
                    .map(place)
                    .collect::<Option<Vec<usize>>>();
                Action::Query {
                    text: prepared.text.into(),
                    bindings: bindings.ok_or_else(|| unreadable("parameters"))?,
                }
            }
            ("function", _) => Action::Call(Route::Function(written.source.as_str().into())),
            ("path", _) => Action::Call(Route::Path(written.source.as_str().into())),
            _ => return Err(unreadable("source")),
        };
        let kind = result_kind(written)?;
        let privacy = match &written.privacy {
            Some(text) => {
                Some(definition::privacy(&read(text)?).map_err(|_| unreadable("privacy"))?)
            }
            None => None,
        };
        // A seller's API says itself how old its answer is.
        let freshness = match action {
            Action::Call(_) => Some("timestamp".to_owned()),
            Action::Query { .. } => written.freshness_column.clone(),
        };
        let mut head = Vec::with_capacity(160);
        for (name, value) in [
            ("asset_id", row.id.as_str()),
            ("asset_type", &written.asset_type),
            ("result_type", kind.word()),
        ] {
            push_member(&mut head, name, value);
        }
        head.push(b',');
        let mut tail = b",\"unit\":".to_vec();
        match &written.unit {
            Some(unit) => json::write_string(&mut tail, unit.as_bytes()),
            None => tail.extend_from_slice(b"null"),
        }
        let timeout = Duration::from_millis(written.timeout_ms.clamp(1, TIMEOUT_MS_MAX) as u64);
        let policy = Policy {
            kind,
            freshness,
            privacy,
        };
        Ok(AssetSnapshot {
            parameters,
            action,
            policy,
            timeout,
            priced,
            head,
            tail,
            row,
        })
    }
}

/// No execution takes longer, whatever a product says.
pub const TIMEOUT_MS_MAX: i64 = 60_000;
pub const DEFAULT_TIMEOUT_MS: i64 = 10_000;

fn result_kind(written: &assets::Written) -> Result<ResultKind, Refusal> {
    Ok(match written.result_type.as_str() {
        "number" => ResultKind::Number,
        "string" => ResultKind::String,
        "chart" => ResultKind::Chart(match &written.visualization {
            Some(text) => {
                definition::visualization(&read(text)?).map_err(|_| unreadable("visualization"))?
            }
            None => Default::default(),
        }),
        "prediction" => ResultKind::Prediction(match &written.prediction {
            Some(text) => {
                definition::prediction(&read(text)?).map_err(|_| unreadable("prediction"))?
            }
            None => Default::default(),
        }),
        _ => return Err(unreadable("result_type")),
    })
}

/// `,"name":"value"`.
pub(crate) fn push_member(out: &mut Vec<u8>, name: &str, value: &str) {
    out.extend_from_slice(b",\"");
    out.extend_from_slice(name.as_bytes());
    out.extend_from_slice(b"\":");
    json::write_string(out, value.as_bytes());
}

/// What a test learnt of an endpoint's source.
#[derive(Clone, Debug, Default, Serialize, Deserialize, PartialEq)]
pub struct Learned {
    /// Published columns and filters, by their own names.
    pub columns: Vec<LearnedColumn>,
    /// The primary key, when the rows are sorted by it.
    #[serde(default)]
    pub key: Vec<String>,
}

#[derive(Clone, Debug, Serialize, Deserialize, PartialEq)]
pub struct LearnedColumn {
    pub name: String,
    #[serde(rename = "type")]
    pub kind: String,
    pub native: String,
}

impl Learned {
    pub fn kind(&self, column: &str) -> Option<&str> {
        self.columns
            .iter()
            .find(|known| known.name == column)
            .map(|known| known.kind.as_str())
    }
}

pub struct EndpointSnapshot {
    pub row: endpoints::Endpoint,
    pub fields: Vec<Field>,
    pub filters: Vec<String>,
    pub order_by: Vec<Sorting>,
    /// As stored, or as asked of the source when it was first needed.
    learned: OnceLock<Learned>,
    pub timeout: Duration,
    pub priced: Priced,
    dialect: Dialect,
    statement: Option<String>,
    /// By the filters that are used, one bit each.
    texts: Mutex<HashMap<(u32, bool, Window), Arc<str>>>,
    pub(crate) published: Vec<json::Field>,
    /// What names and punctuation add to a row.
    pub(crate) row_bytes: usize,
    /// Members of every answer, written once.
    pub(crate) head: Vec<u8>,
}

impl EndpointSnapshot {
    pub fn is_published(&self) -> bool {
        self.row.status == "published"
    }

    fn new(
        row: endpoints::Endpoint,
        dialect: Dialect,
        priced: Priced,
    ) -> Result<EndpointSnapshot, Refusal> {
        let written = &row.written;
        let statement = match &written.sql_logic {
            Some(sql) => Some(
                sql::prepare(dialect, sql)
                    .map_err(|_| unreadable("sql_logic"))?
                    .text,
            ),
            None if written.source_table.is_some() => None,
            None => return Err(unreadable("source")),
        };
        let fields =
            definition::fields(&read(&written.fields)?).map_err(|_| unreadable("fields"))?;
        let filters =
            definition::filters(&read(&written.filters)?).map_err(|_| unreadable("filters"))?;
        let order_by =
            definition::order_by(&read(&written.order_by)?).map_err(|_| unreadable("order_by"))?;
        let learned = OnceLock::new();
        if let Some(stored) = row
            .learned
            .as_deref()
            .and_then(|text| serde_json::from_str::<Learned>(text).ok())
        {
            let _ = learned.set(stored);
        }
        let published = fields
            .iter()
            .enumerate()
            .map(|(index, field)| json::Field::new(index, field.published()))
            .collect();
        let row_bytes = fields
            .iter()
            .map(|field| field.published().len() + 10)
            .sum();
        let mut head = Vec::with_capacity(160);
        head.extend_from_slice(b"\"endpoint_id\":");
        json::write_string(&mut head, row.id.as_str().as_bytes());
        push_member(&mut head, "endpoint_slug", &written.slug);
        push_member(&mut head, "company_handle", &row.company_handle);
        push_member(&mut head, "version", "v1");
        let timeout = Duration::from_millis(written.timeout_ms.clamp(1, TIMEOUT_MS_MAX) as u64);
        Ok(EndpointSnapshot {
            fields,
            filters,
            order_by,
            learned,
            timeout,
            priced,
            dialect,
            statement,
            texts: Mutex::default(),
            published,
            row_bytes,
            head,
            row,
        })
    }

    pub fn learned(&self) -> Option<&Learned> {
        self.learned.get()
    }

    /// Keeps what the source said, for as long as this snapshot lives.
    pub(crate) fn keep_learned(&self, learned: Learned) -> &Learned {
        self.learned.get_or_init(|| learned)
    }

    fn source(&self) -> RowSource<'_> {
        match (&self.statement, &self.row.written.source_table) {
            (Some(statement), _) => RowSource::Statement(statement),
            (None, table) => RowSource::Table {
                schema: self.row.written.source_schema.as_deref(),
                table: table.as_deref().unwrap_or_default(),
            },
        }
    }

    /// What rows are sorted by: as the seller says, else by the primary key. Empty: not known yet.
    pub fn order<'a>(&'a self, learned: Option<&'a Learned>) -> Vec<Order<'a>> {
        if !self.order_by.is_empty() {
            return self.order_by.iter().map(Sorting::order).collect();
        }
        let key = learned.map_or(&[][..], |learned| &learned.key);
        key.iter()
            .map(|field| Order {
                field,
                descending: false,
            })
            .collect()
    }

    /// The statement for a page with these filters (indices into `filters`, ascending). A first page
    /// has its length written into the statement, as long as few lengths are asked for.
    pub fn text(
        &self,
        used: &[usize],
        learned: Option<&Learned>,
        page: Page,
    ) -> (Arc<str>, Window) {
        let bits = used.iter().fold(0u32, |bits, index| bits | 1 << index);
        let first = match page.start {
            0 => Window::First(page.fetch()),
            _ => Window::Bound,
        };
        let mut texts = self.texts.lock();
        let window = match texts.contains_key(&(bits, learned.is_some(), first)) {
            false if texts.len() >= TEXTS_MAX => Window::Bound,
            _ => first,
        };
        if texts.len() >= 2 * TEXTS_MAX {
            texts.clear();
        }
        let text = texts
            .entry((bits, learned.is_some(), window))
            .or_insert_with(|| {
                let fields: Vec<&str> = self
                    .fields
                    .iter()
                    .map(|field| field.name.as_str())
                    .collect();
                let filters: Vec<&str> = used
                    .iter()
                    .map(|index| self.filters[*index].as_str())
                    .collect();
                let order = self.order(learned);
                sql::page(
                    self.dialect,
                    &self.source(),
                    &fields,
                    &filters,
                    &order,
                    window,
                )
                .into()
            });
        (text.clone(), window)
    }

    /// Reads one row of the published columns and of the filters, to learn their types.
    pub fn probe(&self) -> String {
        let mut columns: Vec<&str> = self
            .fields
            .iter()
            .map(|field| field.name.as_str())
            .collect();
        for filter in &self.filters {
            if !columns.contains(&filter.as_str()) {
                columns.push(filter);
            }
        }
        sql::page(
            self.dialect,
            &self.source(),
            &columns,
            &[],
            &[],
            Window::Bound,
        )
    }
}

pub(crate) fn kind_of(word: &str) -> Option<ColumnKind> {
    use ColumnKind::*;
    [
        Boolean, Int64, Float64, Decimal, Text, Bytes, Date, Time, Timestamp, Json,
    ]
    .into_iter()
    .find(|kind| kind.as_str() == word)
}

/// An asset of any company, archived ones included.
pub async fn asset(app: &App, id: &AssetId, now: Timestamp) -> Result<Arc<AssetSnapshot>, Refusal> {
    match app.products.assets.get(id) {
        Some(asset) if asset.priced.holds(now) => return Ok(asset),
        // Its price has changed by the clock alone, which no transaction tells.
        Some(_) => app.products.assets.invalidate(|known, _| known == id),
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
        Some(_) => app.products.endpoints.invalidate(|known, _| known == id),
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
    let engine = app
        .sandbox
        .engine(company.as_str(), &connection.engine)
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
