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
use souk_store::keys::Key;
use souk_store::purchases::{self, Purchase};
use souk_store::{AnyConnection, keys};

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

/// The endpoint key that it came with, working or not.
async fn key_of(
    db: &mut AnyConnection,
    caller: &Caller,
    purchase: &Purchase,
) -> Result<Option<Key>, Problem> {
    Ok(match &purchase.endpoint_key_id {
        Some(key) => keys::get(db, caller.company(), key).await?,
        None => None,
    })
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
