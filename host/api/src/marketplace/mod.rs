//! The marketplace: products as buyers meet them.

pub mod details;
pub mod get;
pub mod list;
pub mod preview;
pub mod shape;

use crate::Routes;

pub fn routes() -> Routes {
    Routes::new()
        .add(list::OPERATION, list::list_products)
        .add(get::OPERATION, get::get_product)
        .add(preview::OPERATION, preview::preview_product)
}
