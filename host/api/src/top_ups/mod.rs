//! Top-ups: a company buys credits. Its provider's events come in at [`payments`](crate::payments).

pub mod create;
pub mod get;
pub mod list;
pub mod settle;
pub mod shape;

use crate::Routes;

pub fn routes() -> Routes {
    Routes::new()
        .add(create::OPERATION, create::create_top_up)
        .add(list::OPERATION, list::list_top_ups)
        .add(get::OPERATION, get::get_top_up)
        .add(settle::OPERATION, settle::settle_top_up)
}
