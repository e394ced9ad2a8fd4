//! Prices of assets and endpoints: one history each, of which at most one price holds at an instant. Start reading at [`timeline`] for which that is.

pub mod active;
pub mod convert;
pub mod create;
pub mod delete;
pub mod discount;
pub mod get;
pub mod list;
pub mod product;
pub mod shape;
pub mod timeline;
pub mod update;

use crate::Routes;

pub fn routes() -> Routes {
    Routes::new()
        .add(list::OPERATION, list::list_prices)
        .add(create::OPERATION, create::create_price)
        .add(active::OPERATION, active::active_price)
        .add(convert::OPERATION, convert::convert_price)
        .add(discount::OPERATION, discount::discount_price)
        .add(get::OPERATION, get::get_price)
        .add(update::OPERATION, update::update_price)
        .add(delete::OPERATION, delete::delete_price)
}
