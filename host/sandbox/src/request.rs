//! What a connector or a publisher is asked to do. What these types hold is laid out as the contracts' versions 1.0
//! (`wit/v1`, `wit/publisher-v1`), so that a request reaches the guest without a copy on the host's side; a later major
//! version converts at its own edge.

use std::sync::Arc;

use wasmtime::component::{ComponentType, Lower};

use crate::columns::ColumnKind;

#[derive(Clone, Debug)]
pub enum Request {
    Query(Query),
    Schema(SchemaFilter),
    Call(Call),
    Ping(Limits),
    /// Of a connector's own session, never of a caller.
    Errand(Errand),
    /// Of a publisher.
    Publish(Box<Publication>),
    /// Of a publisher.
    Check(Check),
}

/// A request as a connector gets it.
#[derive(ComponentType, Lower, Clone, Copy)]
#[component(variant)]
pub(crate) enum ConnectorRequest<'a> {
    #[component(name = "query")]
    Query(&'a Query),
    #[component(name = "schema")]
    Schema(&'a SchemaFilter),
    #[component(name = "call")]
    Call(&'a Call),
    #[component(name = "ping")]
    Ping(&'a Limits),
    #[component(name = "errand")]
    Errand(&'a Errand),
}

/// A request as a publisher gets it.
#[derive(ComponentType, Lower, Clone, Copy)]
#[component(variant)]
pub(crate) enum PublisherRequest<'a> {
    #[component(name = "publish")]
    Publish(&'a Publication),
    #[component(name = "check")]
    Check(&'a Check),
}

/// Who sees a post at its platform.
#[derive(ComponentType, Lower, Clone, Copy, Debug, PartialEq, Eq)]
#[component(enum)]
#[repr(u8)]
pub enum Visibility {
    #[component(name = "draft")]
    Draft,
    #[component(name = "published")]
    Published,
}

#[derive(ComponentType, Lower, Clone, Debug)]
#[component(record)]
pub struct Post {
    pub id: String,
    pub title: String,
    pub slug: String,
    pub summary: String,
    pub markdown: String,
    pub html: String,
    pub tags: Vec<String>,
    #[component(name = "cover-image-url")]
    pub cover_image_url: Option<String>,
    pub visibility: Visibility,
    /// Microseconds since the epoch.
    #[component(name = "published-at")]
    pub published_at: Option<i64>,
    #[component(name = "updated-at")]
    pub updated_at: i64,
}

/// A post that is to be at its platform: one row comes back, `remote_id` text, `url` text.
#[derive(ComponentType, Lower, Clone, Debug)]
#[component(record)]
pub struct Publication {
    /// The same for every attempt at the same publication.
    #[component(name = "request-id")]
    pub request_id: String,
    pub attempt: u32,
    #[component(name = "remote-id")]
    pub remote_id: Option<String>,
    pub post: Post,
    /// Microseconds since the epoch: a guest has no clock.
    pub now: i64,
    pub limits: Limits,
}

/// Whether address and credentials work: one row comes back, `account` text.
#[derive(ComponentType, Lower, Clone, Debug)]
#[component(record)]
pub struct Check {
    #[component(name = "request-id")]
    pub request_id: String,
    pub now: i64,
    pub limits: Limits,
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

/// What one session of a connection has another one do; nothing comes back but how it ended.
#[derive(ComponentType, Lower, Clone, Debug)]
#[component(record)]
pub struct Errand {
    pub(crate) message: Vec<u8>,
    pub(crate) limits: Limits,
}

/// A bound parameter.
#[derive(ComponentType, Lower, Clone, Debug, PartialEq)]
#[component(variant)]
pub enum Value {
    /// With the type that was declared for it, if any.
    #[component(name = "null")]
    Null(Option<ColumnKind>),
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
    /// Microseconds since midnight.
    #[component(name = "time")]
    Time(i64),
    /// Microseconds since 1970-01-01T00:00:00Z.
    #[component(name = "timestamp")]
    Timestamp(i64),
    /// Microseconds since 1970-01-01T00:00:00 on the source's own clock.
    #[component(name = "local-timestamp")]
    LocalTimestamp(i64),
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
            Request::Errand(errand) => &errand.limits,
            Request::Publish(publication) => &publication.limits,
            Request::Check(check) => &check.limits,
        }
    }

    pub(crate) fn limits_mut(&mut self) -> &mut Limits {
        match self {
            Request::Query(query) => &mut query.limits,
            Request::Schema(filter) => &mut filter.limits,
            Request::Call(call) => &mut call.limits,
            Request::Ping(limits) => limits,
            Request::Errand(errand) => &mut errand.limits,
            Request::Publish(publication) => &mut publication.limits,
            Request::Check(check) => &mut check.limits,
        }
    }

    /// Whether a second attempt can do no harm at the source. A call may have reached the seller, a post its platform; an errand is about a
    /// moment.
    pub(crate) fn is_repeatable(&self) -> bool {
        !matches!(
            self,
            Request::Call(_) | Request::Errand(_) | Request::Publish(_)
        )
    }

    /// `None`: no connector is asked that.
    #[inline]
    pub(crate) fn of_connector(&self) -> Option<ConnectorRequest<'_>> {
        match self {
            Request::Query(query) => Some(ConnectorRequest::Query(query)),
            Request::Schema(filter) => Some(ConnectorRequest::Schema(filter)),
            Request::Call(call) => Some(ConnectorRequest::Call(call)),
            Request::Ping(limits) => Some(ConnectorRequest::Ping(limits)),
            Request::Errand(errand) => Some(ConnectorRequest::Errand(errand)),
            Request::Publish(_) | Request::Check(_) => None,
        }
    }

    /// `None`: no publisher is asked that.
    pub(crate) fn of_publisher(&self) -> Option<PublisherRequest<'_>> {
        match self {
            Request::Publish(publication) => Some(PublisherRequest::Publish(publication)),
            Request::Check(check) => Some(PublisherRequest::Check(check)),
            _ => None,
        }
    }
}
