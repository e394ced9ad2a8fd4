//! The description of this API, by itself.

use crate::openapi::{document, three_zero};
use crate::{Access, AnyObject, Operation, Prepared};
use bytes::Bytes;
use std::sync::OnceLock;

pub const OPERATION: Operation = Operation::get("openapi", "/openapi.json")
    .about("System", "This document")
    .access(Access::Public);

pub const THREE_ZERO_OPERATION: Operation = Operation::get("openapi_3_0", "/openapi-3.0.json")
    .about("System", "This document in OpenAPI 3.0")
    .notes("For tools that have not learned 3.1. It says the same, except of webhooks, which 3.0 has no word for.")
    .access(Access::Public);

/// Made at the first request and kept: it only depends on the code.
static DOCUMENT: OnceLock<Bytes> = OnceLock::new();
static THREE_ZERO: OnceLock<Bytes> = OnceLock::new();

pub async fn openapi() -> Prepared<AnyObject> {
    let document = DOCUMENT.get_or_init(|| Bytes::from(document(&crate::all()).to_string()));
    Prepared::new(document.clone())
}

pub async fn openapi_3_0() -> Prepared<AnyObject> {
    let document =
        THREE_ZERO.get_or_init(|| Bytes::from(three_zero(&document(&crate::all())).to_string()));
    Prepared::new(document.clone())
}
