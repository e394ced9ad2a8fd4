//! Where things are.

use crate::{Access, Data, Operation};
use serde::Serialize;
use utoipa::ToSchema;

pub const OPERATION: Operation = Operation::get("root", "/")
    .about("System", "Where things are")
    .access(Access::Public);

/// Paths on this host.
#[derive(Serialize, ToSchema)]
pub struct Root {
    pub name: &'static str,
    pub version: &'static str,
    /// The reference, in a browser.
    pub docs: &'static str,
    /// The same for tools.
    pub openapi: &'static str,
    /// What is on sale, for whoever has a key.
    pub products: &'static str,
}

pub async fn root() -> Data<Root> {
    Data(Root {
        name: "souk",
        version: env!("CARGO_PKG_VERSION"),
        docs: "/docs",
        openapi: "/openapi.json",
        products: "/marketplace/products",
    })
}
