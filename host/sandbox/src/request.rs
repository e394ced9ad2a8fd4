//! What a connector is asked to do. These types are laid out as the contract's version 1.0
//! (`wit/v1`), so that a request reaches the guest without a copy on the host's side; a later major
//! version converts at its own edge.

use std::sync::Arc;

use wasmtime::component::{ComponentType, Lower};

#[derive(ComponentType, Lower, Clone, Debug)]
#[component(variant)]
pub enum Request {
    #[component(name = "query")]
    Query(Query),
    #[component(name = "schema")]
    Schema(SchemaFilter),
    #[component(name = "call")]
    Call(Call),
    #[component(name = "ping")]
    Ping(Limits),
}

/// One statement that reads.
#[derive(ComponentType, Lower, Clone, Debug)]
#[component(record)]
pub struct Query {
    pub text: Arc<str>,
    /// Bound in order, in the dialect's own placeholders.
    pub parameters: Vec<Value>,
    pub limits: Limits,
}

/// Asks for the catalog; the answer's columns are in the contract (`schema-filter`).
#[derive(ComponentType, Lower, Clone, Debug)]
#[component(record)]
pub struct SchemaFilter {
    /// Empty: all but the engine's own.
    pub schemas: Vec<String>,
    /// Empty: all.
    pub tables: Vec<String>,
    #[component(name = "include-fields")]
    pub include_fields: bool,
    pub limits: Limits,
}

/// How the seller's API names the function.
#[derive(ComponentType, Lower, Clone, Debug)]
#[component(variant)]
pub enum Route {
    #[component(name = "function")]
    Function(Arc<str>),
    #[component(name = "path")]
    Path(Arc<str>),
}

/// A function of the seller's API: one row comes back, `answer_value` json, `timestamp` timestamp.
#[derive(ComponentType, Lower, Clone, Debug)]
#[component(record)]
pub struct Call {
    pub route: Route,
    /// A JSON object.
    pub parameters: String,
    #[component(name = "asset-id")]
    pub asset_id: String,
    #[component(name = "request-id")]
    pub request_id: String,
    /// The same for every attempt at the same execution.
    #[component(name = "execution-id")]
    pub execution_id: String,
    pub limits: Limits,
}

/// A bound parameter.
#[derive(ComponentType, Lower, Clone, Debug, PartialEq)]
#[component(variant)]
pub enum Value {
    #[component(name = "null")]
    Null,
    #[component(name = "boolean")]
    Boolean(bool),
    #[component(name = "int64")]
    Int64(i64),
    #[component(name = "float64")]
    Float64(f64),
    #[component(name = "decimal")]
    Decimal(String),
    #[component(name = "text")]
    Text(String),
    #[component(name = "bytes")]
    Bytes(Vec<u8>),
    /// Days since 1970-01-01.
    #[component(name = "date")]
    Date(i32),
    /// Microseconds since 1970-01-01T00:00:00Z.
    #[component(name = "timestamp")]
    Timestamp(i64),
    #[component(name = "json")]
    Json(String),
}

/// Bounds of one result. The host counts while batches arrive, the connector stops early.
#[derive(ComponentType, Lower, Clone, Copy, Debug)]
#[component(record)]
pub struct Limits {
    #[component(name = "rows-max")]
    pub rows_max: u32,
    #[component(name = "bytes-max")]
    pub bytes_max: u64,
    /// Filled in when the request is submitted, from its deadline.
    #[component(name = "timeout-ms")]
    pub(crate) timeout_ms: u32,
}

impl Limits {
    pub fn new(rows_max: u32, bytes_max: u64) -> Limits {
        Limits {
            rows_max,
            bytes_max,
            timeout_ms: u32::MAX,
        }
    }
}

impl Request {
    pub fn limits(&self) -> &Limits {
        match self {
            Request::Query(query) => &query.limits,
            Request::Schema(filter) => &filter.limits,
            Request::Call(call) => &call.limits,
            Request::Ping(limits) => limits,
        }
    }

    pub(crate) fn limits_mut(&mut self) -> &mut Limits {
        match self {
            Request::Query(query) => &mut query.limits,
            Request::Schema(filter) => &mut filter.limits,
            Request::Call(call) => &mut call.limits,
            Request::Ping(limits) => limits,
        }
    }

    /// Whether a second attempt can do no harm at the source. A call may have reached the seller.
    pub(crate) fn is_repeatable(&self) -> bool {
        !matches!(self, Request::Call(_))
    }
}
