//! The description of this API, by itself.

use crate::openapi::document;
use crate::{Access, AnyObject, Operation, Prepared};
use bytes::Bytes;
use std::sync::OnceLock;

pub const OPERATION: Operation = Operation::get("openapi", "/openapi.json")
    .about("System", "This document")
    .access(Access::Public);

/// Made at the first request and kept: it only depends on the code.
static DOCUMENT: OnceLock<Bytes> = OnceLock::new();

pub async fn openapi() -> Prepared<AnyObject> {
    let document = DOCUMENT.get_or_init(|| Bytes::from(document(&crate::all()).to_string()));
    Prepared::new(document.clone())
}
