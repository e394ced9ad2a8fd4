//! What needs no key: is the host alive, can it serve, and what does it offer.

pub mod docs;
pub mod health;
pub mod openapi;
pub mod root;

use crate::Routes;

pub fn routes() -> Routes {
    Routes::new()
        .add(health::HEALTHZ, health::healthz)
        .add(health::READYZ, health::readyz)
        .add(openapi::OPERATION, openapi::openapi)
        .add(openapi::THREE_ZERO_OPERATION, openapi::openapi_3_0)
        .add(root::OPERATION, root::root)
        .add(docs::OPERATION, docs::docs)
        .add(docs::FILE_OPERATION, docs::docs_file)
}
