//! What a company has earned, where it wants its money, and the payouts; and for platform staff, the list of what is to be transferred.

pub mod advance;
pub mod create;
pub mod earnings;
pub mod get;
pub mod get_method;
pub mod inspect;
pub mod list;
pub mod list_all;
pub mod set_method;
pub mod shape;

use crate::Routes;

pub fn routes() -> Routes {
    Routes::new()
        .add(earnings::OPERATION, earnings::get_earnings)
        .add(get_method::OPERATION, get_method::get_payout_method)
        .add(set_method::OPERATION, set_method::set_payout_method)
        .add(create::OPERATION, create::create_payout)
        .add(list::OPERATION, list::list_payouts)
        .add(get::OPERATION, get::get_payout)
        .add(list_all::OPERATION, list_all::list_all_payouts)
        .add(inspect::OPERATION, inspect::inspect_payout)
        .add(advance::OPERATION, advance::advance_payout)
}
