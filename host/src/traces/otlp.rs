//! Spans as `ExportTraceServiceRequest` of OTLP 1 (opentelemetry-proto), written by hand: five messages, of three kinds of fields. The crates
//! that do it bring a runtime, a metrics pipeline and code generators along; `tests/operator/traces.rs` reads what is written here with a
//! library (decision 39).

use std::time::{Duration, SystemTime};

use souk_outbound::spans::{Ended, Labels, Span, Value};

const INTERNAL: u64 = 1;
const SERVER: u64 = 2;
const ERROR: u64 = 2;

/// This host, as all its spans name it.
pub fn resource() -> Vec<u8> {
    let mut message = Message::default();
    for (name, value) in [
        ("service.name", "souk"),
        ("service.version", env!("CARGO_PKG_VERSION")),
    ] {
        message.label(1, name, &value.into());
    }
    // Which of several hosts it is, and since which start.
    let id = format!("{:016x}", rand::random::<u64>());
    message.label(1, "service.instance.id", &id.as_str().into());
    message.0
}

/// A request with all spans of these calls.
pub fn request(resource: &[u8], batch: &[Ended]) -> Vec<u8> {
    let mut scope = Message::default();
    scope.message(1, |scope| {
        scope.text(1, "souk");
        scope.text(2, env!("CARGO_PKG_VERSION"));
    });
    for ended in batch {
        let trace = bytes(ended.trace.id());
        let parent = ended.has_parent.then(|| bytes(ended.trace.span()));
        scope.message(2, |span| {
            write(span, &trace, parent.as_deref(), SERVER, &ended.call);
        });
        let call = ended.call.id.to_be_bytes();
        for part in &ended.parts {
            scope.message(2, |span| write(span, &trace, Some(&call), INTERNAL, part));
        }
    }
    let mut request = Message::default();
    request.message(1, |spans| {
        spans.bytes(1, resource);
        spans.bytes(2, &scope.0);
    });
    request.0
}

fn write(to: &mut Message, trace: &[u8], parent: Option<&[u8]>, kind: u64, span: &Span) {
    to.bytes(1, trace);
    to.bytes(2, &span.id.to_be_bytes());
    if let Some(parent) = parent {
        to.bytes(4, parent);
    }
    to.text(5, &span.name);
    to.number(6, kind);
    to.fixed(7, nanos(span.began));
    to.fixed(8, nanos(span.began + span.took));
    to.labels(9, &span.labels);
    if let Some(failure) = &span.failure {
        to.label(9, "error.type", &failure.as_str().into());
        to.message(15, |status| {
            status.text(2, failure);
            status.number(3, ERROR);
        });
    }
}

fn nanos(at: SystemTime) -> u64 {
    let since = at.duration_since(SystemTime::UNIX_EPOCH);
    u64::try_from(since.unwrap_or(Duration::ZERO).as_nanos()).unwrap_or(u64::MAX)
}

/// Of hexadecimal digits that were checked.
fn bytes(hex_digits: &str) -> Vec<u8> {
    hex::decode(hex_digits).unwrap_or_default()
}

/// A protobuf message that is being written.
#[derive(Default)]
struct Message(Vec<u8>);

impl Message {
    fn varint(&mut self, mut number: u64) {
        while number >= 0x80 {
            self.0.push(number as u8 | 0x80);
            number >>= 7;
        }
        self.0.push(number as u8);
    }

    fn number(&mut self, field: u64, number: u64) {
        self.varint(field << 3);
        self.varint(number);
    }

    fn fixed(&mut self, field: u64, number: u64) {
        self.varint(field << 3 | 1);
        self.0.extend(number.to_le_bytes());
    }

    fn bytes(&mut self, field: u64, bytes: &[u8]) {
        self.varint(field << 3 | 2);
        self.varint(bytes.len() as u64);
        self.0.extend(bytes);
    }

    fn text(&mut self, field: u64, text: &str) {
        self.bytes(field, text.as_bytes());
    }

    fn message(&mut self, field: u64, write: impl FnOnce(&mut Message)) {
        let mut inner = Message::default();
        write(&mut inner);
        self.bytes(field, &inner.0);
    }

    fn labels(&mut self, field: u64, labels: &Labels) {
        for (name, value) in labels {
            self.label(field, name, value);
        }
    }

    fn label(&mut self, field: u64, name: &str, value: &Value) {
        self.message(field, |pair| {
            pair.text(1, name);
            pair.message(2, |any| match value {
                Value::Text(text) => any.text(1, text),
                Value::Number(number) => any.number(3, number.cast_unsigned()),
            });
        });
    }
}
