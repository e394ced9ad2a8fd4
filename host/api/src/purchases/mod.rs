//! Purchases: accepting the terms of a product. Nothing is charged by it: products are billed per use.

pub mod create;
pub mod get;
pub mod list;
pub mod shape;

use crate::Routes;

pub fn routes() -> Routes {
    Routes::new()
        .add(list::OPERATION, list::list_purchases)
        .add(create::OPERATION, create::create_purchase)
        .add(get::OPERATION, get::get_purchase)
}
