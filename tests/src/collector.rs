//! A collector of traces: takes what hosts send by OTLP over HTTP, and reads it with a protobuf library.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU16, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use prost::Message;

use self::otlp::{ExportTraceServiceRequest, KeyValue, Value};

/// A batch waits for a second; a loaded machine gets more.
const ARRIVES_WITHIN: Duration = Duration::from_secs(30);

pub struct Collector {
    pub address: SocketAddr,
    taken: Arc<Taken>,
}

#[derive(Default)]
struct Taken {
    spans: Mutex<Vec<Span>>,
    /// What is answered, 200 unless it is another.
    answer: AtomicU16,
    asked: Mutex<usize>,
}

/// A span as it arrived, its bytes as hexadecimal digits.
#[derive(Clone, Debug, PartialEq)]
pub struct Span {
    pub trace: String,
    pub id: String,
    /// Empty: it has none.
    pub parent: String,
    pub name: String,
    /// 1 of the inside, 2 of a server.
    pub kind: i32,
    pub began: u64,
    pub ended: u64,
    /// 2 is an error's.
    pub status: i32,
    pub labels: BTreeMap<String, String>,
    pub resource: BTreeMap<String, String>,
}

impl Span {
    pub fn label(&self, name: &str) -> &str {
        let label = self.labels.get(name);
        label.unwrap_or_else(|| panic!("no {name} in {self:?}"))
    }
}

impl Collector {
    pub async fn start() -> Collector {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await;
        let listener = listener.expect("a port");
        let address = listener.local_addr().expect("an address");
        let taken = Arc::<Taken>::default();
        let router = Router::new()
            .route("/v1/traces", axum::routing::post(take))
            .with_state(taken.clone());
        tokio::spawn(async move { axum::serve(listener, router).await });
        Collector { address, taken }
    }

    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// From now on.
    pub fn answer(&self, status: u16) {
        self.taken.answer.store(status, Ordering::SeqCst);
    }

    /// How many batches were sent here, taken or not.
    pub fn asked(&self) -> usize {
        *self
            .taken
            .asked
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    pub fn spans(&self) -> Vec<Span> {
        let spans = self.taken.spans.lock();
        spans.unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The spans of a trace, when there are so many.
    pub async fn trace(&self, trace: &str, count: usize) -> Vec<Span> {
        let begun = Instant::now();
        loop {
            let mut spans = self.spans();
            spans.retain(|span| span.trace == trace);
            if spans.len() >= count {
                return spans;
            }
            let all = self.spans();
            assert!(begun.elapsed() < ARRIVES_WITHIN, "{spans:?} of {all:?}");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    /// The call's span with this request id.
    pub async fn call(&self, request_id: &str) -> Span {
        let begun = Instant::now();
        loop {
            let spans = self.spans();
            let is_it = |span: &&Span| {
                span.labels
                    .get("souk.request_id")
                    .is_some_and(|id| id == request_id)
            };
            if let Some(span) = spans.iter().find(is_it) {
                return span.clone();
            }
            assert!(
                begun.elapsed() < ARRIVES_WITHIN,
                "no {request_id} in {spans:?}"
            );
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }
}

async fn take(State(taken): State<Arc<Taken>>, headers: HeaderMap, body: Bytes) -> StatusCode {
    *taken.asked.lock().unwrap_or_else(PoisonError::into_inner) += 1;
    let status = taken.answer.load(Ordering::SeqCst);
    if status != 0 && status != 200 {
        return StatusCode::from_u16(status).expect("a status");
    }
    if headers
        .get("content-type")
        .is_none_or(|kind| kind != "application/x-protobuf")
    {
        return StatusCode::UNSUPPORTED_MEDIA_TYPE;
    }
    let Ok(request) = ExportTraceServiceRequest::decode(body.clone()) else {
        return StatusCode::BAD_REQUEST;
    };
    // Nothing was skipped.
    if request.encoded_len() != body.len() {
        return StatusCode::BAD_REQUEST;
    }
    let mut spans = taken.spans.lock().unwrap_or_else(PoisonError::into_inner);
    for of_resource in request.resource_spans {
        let resource = labels(of_resource.resource.unwrap_or_default().attributes);
        for span in of_resource
            .scope_spans
            .into_iter()
            .flat_map(|scope| scope.spans)
        {
            spans.push(Span {
                trace: hex::encode(&span.trace_id),
                id: hex::encode(&span.span_id),
                parent: hex::encode(&span.parent_span_id),
                name: span.name,
                kind: span.kind,
                began: span.start_time_unix_nano,
                ended: span.end_time_unix_nano,
                status: span.status.unwrap_or_default().code,
                labels: labels(span.attributes),
                resource: resource.clone(),
            });
        }
    }
    StatusCode::OK
}

fn labels(attributes: Vec<KeyValue>) -> BTreeMap<String, String> {
    let text = |pair: KeyValue| {
        let value = match pair.value.and_then(|value| value.value) {
            Some(Value::StringValue(text)) => text,
            Some(Value::IntValue(number)) => number.to_string(),
            other => panic!("{}: {other:?}", pair.key),
        };
        (pair.key, value)
    };
    attributes.into_iter().map(text).collect()
}

/// Messages of opentelemetry-proto 1.9 (`trace.proto`, `common.proto`, `resource.proto`, `trace_service.proto`), as far as they are read here.
/// Fields that they do not name are an error of this transcription, or of who writes them: everything that is sent is read again and compared.
mod otlp {
    use prost::{Message, Oneof};

    #[derive(Clone, PartialEq, Message)]
    pub struct ExportTraceServiceRequest {
        #[prost(message, repeated, tag = "1")]
        pub resource_spans: Vec<ResourceSpans>,
    }

    #[derive(Clone, PartialEq, Message)]
    pub struct ResourceSpans {
        #[prost(message, optional, tag = "1")]
        pub resource: Option<Resource>,
        #[prost(message, repeated, tag = "2")]
        pub scope_spans: Vec<ScopeSpans>,
    }

    #[derive(Clone, PartialEq, Message)]
    pub struct Resource {
        #[prost(message, repeated, tag = "1")]
        pub attributes: Vec<KeyValue>,
    }

    #[derive(Clone, PartialEq, Message)]
    pub struct ScopeSpans {
        #[prost(message, optional, tag = "1")]
        pub scope: Option<InstrumentationScope>,
        #[prost(message, repeated, tag = "2")]
        pub spans: Vec<Span>,
    }

    #[derive(Clone, PartialEq, Message)]
    pub struct InstrumentationScope {
        #[prost(string, tag = "1")]
        pub name: String,
        #[prost(string, tag = "2")]
        pub version: String,
    }

    #[derive(Clone, PartialEq, Message)]
    pub struct Span {
        #[prost(bytes = "vec", tag = "1")]
        pub trace_id: Vec<u8>,
        #[prost(bytes = "vec", tag = "2")]
        pub span_id: Vec<u8>,
        #[prost(bytes = "vec", tag = "4")]
        pub parent_span_id: Vec<u8>,
        #[prost(string, tag = "5")]
        pub name: String,
        #[prost(int32, tag = "6")]
        pub kind: i32,
        #[prost(fixed64, tag = "7")]
        pub start_time_unix_nano: u64,
        #[prost(fixed64, tag = "8")]
        pub end_time_unix_nano: u64,
        #[prost(message, repeated, tag = "9")]
        pub attributes: Vec<KeyValue>,
        #[prost(message, optional, tag = "15")]
        pub status: Option<Status>,
    }

    #[derive(Clone, PartialEq, Message)]
    pub struct Status {
        #[prost(string, tag = "2")]
        pub message: String,
        #[prost(int32, tag = "3")]
        pub code: i32,
    }

    #[derive(Clone, PartialEq, Message)]
    pub struct KeyValue {
        #[prost(string, tag = "1")]
        pub key: String,
        #[prost(message, optional, tag = "2")]
        pub value: Option<AnyValue>,
    }

    #[derive(Clone, PartialEq, Message)]
    pub struct AnyValue {
        #[prost(oneof = "Value", tags = "1, 3")]
        pub value: Option<Value>,
    }

    #[derive(Clone, PartialEq, Oneof)]
    pub enum Value {
        #[prost(string, tag = "1")]
        StringValue(String),
        #[prost(int64, tag = "3")]
        IntValue(i64),
    }
}
