//! The marketplace: products as buyers meet them.

pub mod preview;

use crate::Routes;

pub fn routes() -> Routes {
    Routes::new().add(preview::OPERATION, preview::preview_product)
}
