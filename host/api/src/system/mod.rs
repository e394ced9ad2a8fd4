//! What needs no key: is the host alive, can it serve, and what does it offer.

pub mod health;
pub mod openapi;

use crate::Routes;

pub fn routes() -> Routes {
    Routes::new()
        .add(health::HEALTHZ, health::healthz)
        .add(health::READYZ, health::readyz)
        .add(openapi::OPERATION, openapi::openapi)
}
