//! What crosses the boundary in version 1.0, besides requests (`crate::request`) and columns
//! (`crate::columns`).

use wasmtime::component::{ComponentType, Lift, Lower};

use crate::columns::{Batch, Column};

#[derive(ComponentType, Lift, Clone, Copy, Debug, PartialEq, Eq)]
#[component(enum)]
#[repr(u8)]
#[allow(dead_code, reason = "made by lifting only")]
pub(crate) enum ErrorClass {
    #[component(name = "configuration")]
    Configuration,
    #[component(name = "authentication")]
    Authentication,
    #[component(name = "permission")]
    Permission,
    #[component(name = "invalid-request")]
    InvalidRequest,
    #[component(name = "not-found")]
    NotFound,
    #[component(name = "unsupported")]
    Unsupported,
    #[component(name = "rate-limited")]
    RateLimited,
    #[component(name = "unavailable")]
    Unavailable,
    #[component(name = "timeout")]
    Timeout,
    #[component(name = "limit-exceeded")]
    LimitExceeded,
    #[component(name = "source")]
    Source,
    #[component(name = "internal")]
    Internal,
}

#[derive(ComponentType, Lift, Clone, Debug)]
#[component(record)]
pub(crate) struct GuestError {
    pub class: ErrorClass,
    pub code: String,
    pub message: String,
    pub detail: Option<String>,
    #[component(name = "source-code")]
    pub source_code: Option<String>,
    #[component(name = "retry-after-ms")]
    pub retry_after_ms: Option<u64>,
    pub parameter: Option<u32>,
}

#[derive(ComponentType, Lift, Clone, Copy, Debug, PartialEq, Eq)]
#[component(enum)]
#[repr(u8)]
#[allow(dead_code, reason = "made by lifting only")]
pub(crate) enum GuestNeed {
    #[component(name = "tcp")]
    Tcp,
    #[component(name = "http")]
    Http,
    #[component(name = "directory")]
    Directory,
}

#[derive(ComponentType, Lift, Clone, Debug)]
#[component(record)]
pub(crate) struct GuestEngine {
    pub slug: String,
    pub title: String,
    pub dialect: String,
    #[component(name = "credential-types")]
    pub credential_types: Vec<String>,
}

#[derive(ComponentType, Lift, Clone, Debug)]
#[component(record)]
pub(crate) struct Descriptor {
    pub name: String,
    pub version: String,
    pub engines: Vec<GuestEngine>,
    pub need: GuestNeed,
    #[component(name = "settings-schema")]
    pub settings_schema: String,
    pub abilities: Vec<String>,
}

#[derive(ComponentType, Lower, Clone, Copy)]
#[component(record)]
pub(crate) struct Settings<'a> {
    pub engine: &'a str,
    pub json: &'a str,
}

/// Of a request.
#[derive(ComponentType, Lift, Clone, Debug)]
#[component(record)]
pub(crate) struct Header {
    pub name: String,
    pub value: String,
}

/// Of a response.
#[derive(ComponentType, Lower, Clone, Copy)]
#[component(record)]
pub(crate) struct SentHeader<'a> {
    pub name: &'a str,
    pub value: &'a str,
}

#[derive(ComponentType, Lift, Clone, Debug)]
#[component(record)]
pub(crate) struct HttpRequest {
    pub id: u32,
    pub method: String,
    pub path: String,
    pub headers: Vec<Header>,
    pub body: Vec<u8>,
    #[component(name = "timeout-ms")]
    pub timeout_ms: u32,
    #[component(name = "response-bytes-max")]
    pub response_bytes_max: u64,
}

#[derive(ComponentType, Lower, Clone, Copy)]
#[component(record)]
pub(crate) struct HttpResponse<'a> {
    pub id: u32,
    pub status: u16,
    pub headers: &'a [SentHeader<'a>],
    pub body: &'a [u8],
}

#[derive(ComponentType, Lower, Clone, Copy, Debug, PartialEq, Eq)]
#[component(enum)]
#[repr(u8)]
pub(crate) enum WireFault {
    #[component(name = "refused")]
    Refused,
    #[component(name = "unreachable")]
    Unreachable,
    #[component(name = "egress-refused")]
    EgressRefused,
    #[component(name = "tls")]
    Tls,
    #[component(name = "timeout")]
    Timeout,
    #[component(name = "reset")]
    Reset,
    #[component(name = "bad-response")]
    BadResponse,
}

#[derive(ComponentType, Lower, Clone, Debug)]
#[component(record)]
pub(crate) struct HttpFailure {
    pub id: u32,
    pub fault: WireFault,
    pub message: String,
}

#[derive(ComponentType, Lower, Clone, Copy)]
#[component(variant)]
pub(crate) enum Input<'a> {
    #[component(name = "bytes")]
    Bytes(&'a [u8]),
    #[component(name = "tls-established")]
    TlsEstablished,
    #[component(name = "response")]
    Response(HttpResponse<'a>),
    #[component(name = "request-failed")]
    RequestFailed(&'a HttpFailure),
    #[component(name = "closed")]
    Closed,
    #[component(name = "woken")]
    Woken(u32),
    #[component(name = "conferred")]
    Conferred(&'a Reply),
}

/// How an errand has ended.
#[derive(ComponentType, Lower, Clone, Debug)]
#[component(record)]
pub(crate) struct Reply {
    pub id: u32,
    pub failure: Option<String>,
}

#[derive(ComponentType, Lift, Clone, Copy, Debug, PartialEq, Eq)]
#[component(enum)]
#[repr(u8)]
#[allow(dead_code, reason = "made by lifting only")]
pub(crate) enum TlsRecords {
    #[component(name = "bare")]
    Bare,
    #[component(name = "tds-prelogin")]
    TdsPrelogin,
}

#[derive(ComponentType, Lift, Debug)]
#[component(record)]
pub(crate) struct TlsHandshake {
    pub records: TlsRecords,
    pub protocols: Vec<String>,
}

#[derive(ComponentType, Lift, Clone, Copy, Debug)]
#[component(record)]
pub(crate) struct Pause {
    pub id: u32,
    pub ms: u32,
}

#[derive(ComponentType, Lift, Debug)]
#[component(record)]
pub(crate) struct Message {
    pub id: u32,
    pub bytes: Vec<u8>,
}

#[derive(ComponentType, Lift, Debug)]
#[component(variant)]
pub(crate) enum Command {
    #[component(name = "send")]
    Send(Vec<u8>),
    #[component(name = "start-tls")]
    StartTls(TlsHandshake),
    #[component(name = "request")]
    Request(HttpRequest),
    #[component(name = "aside")]
    Aside(Vec<u8>),
    #[component(name = "close")]
    Close,
    #[component(name = "wake")]
    Wake(Pause),
    #[component(name = "confer")]
    Confer(Message),
}

#[derive(ComponentType, Lift, Debug)]
#[component(record)]
pub(crate) struct Shape {
    pub id: u32,
    pub shape: u32,
    pub columns: Option<Vec<Column>>,
}

#[derive(ComponentType, Lift, Debug)]
#[component(record)]
pub(crate) struct Rows {
    pub id: u32,
    pub batch: Batch,
}

#[derive(ComponentType, Lift, Debug)]
#[component(record)]
pub(crate) struct Failure {
    pub id: u32,
    pub error: GuestError,
}

#[derive(ComponentType, Lift, Debug)]
#[component(variant)]
pub(crate) enum Event {
    #[component(name = "ready")]
    Ready,
    #[component(name = "columns")]
    Columns(Shape),
    #[component(name = "batch")]
    Batch(Rows),
    #[component(name = "done")]
    Done(u32),
    #[component(name = "failed")]
    Failed(Failure),
}

#[derive(ComponentType, Lift, Debug, Default)]
#[component(record)]
pub(crate) struct Step {
    pub commands: Vec<Command>,
    pub events: Vec<Event>,
}
