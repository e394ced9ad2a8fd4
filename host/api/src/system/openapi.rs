//! The description of this API, by itself.

use crate::openapi::{any_object, document};
use crate::{Access, Operation, Prepared, Shape};
use bytes::Bytes;
use std::sync::OnceLock;

pub const OPERATION: Operation = Operation::get("openapi", "/openapi.json")
    .about("System", "This document")
    .access(Access::Public)
    .returns(200, Shape::Bare(any_object));

/// Made at the first request and kept: it only depends on the code.
static DOCUMENT: OnceLock<Bytes> = OnceLock::new();

pub async fn openapi() -> Prepared {
    let document =
        DOCUMENT.get_or_init(|| Bytes::from(document(crate::all().operations()).to_string()));
    Prepared(document.clone())
}
