//! Purchases: accepting the terms of a product. Nothing is charged by it: products are billed per use.

pub mod access;
mod beside;
pub mod cancel;
pub mod create;
pub mod get;
pub mod list;
pub mod resume;
pub mod shape;
pub mod suspend;

use crate::{Caller, Problem, Routes};
use souk_domain::ids::PurchaseId;
use souk_store::AnyConnection;
use souk_store::purchases::{self, Purchase};

pub fn routes() -> Routes {
    Routes::new()
        .add(list::OPERATION, list::list_purchases)
        .add(create::OPERATION, create::create_purchase)
        .add(get::OPERATION, get::get_purchase)
        .add(access::OPERATION, access::access_purchase)
        .add(cancel::OPERATION, cancel::cancel_purchase)
        .add(suspend::OPERATION, suspend::suspend_purchase)
        .add(resume::OPERATION, resume::resume_purchase)
}

/// One of the company's purchases, or 404.
async fn find(
    db: &mut AnyConnection,
    caller: &Caller,
    id: &PurchaseId,
) -> Result<Purchase, Problem> {
    purchases::get(db, caller.company(), id)
        .await?
        .ok_or_else(|| Problem::not_found("purchase", id.as_str()))
}
