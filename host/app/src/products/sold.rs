//! A product to whoever runs it: what its kind does not matter for.

use std::time::Duration;

use souk_domain::ids::CompanyId;
use souk_domain::products::{Product, ProductStatus};
use souk_domain::time::Timestamp;
use souk_store::prices::Price;

/// A product, whatever its kind.
pub struct Sold<'a> {
    pub product: &'a Product,
    pub owner: &'a CompanyId,
    pub status: ProductStatus,
    /// The owner's company is suspended.
    pub is_suspended: bool,
    pub priced: &'a Priced,
    pub allow_ai_training: bool,
    pub timeout: Duration,
    /// Its source is a seller's API and not a database.
    pub seller_api: bool,
}

impl Sold<'_> {
    pub fn is_owner(&self, company: &CompanyId) -> bool {
        self.owner == company
    }
}

/// The price now, and how long that is known to be so.
#[derive(Clone, Debug)]
pub struct Priced {
    pub price: Option<Price>,
    pub(super) until: Option<Timestamp>,
}

impl Priced {
    pub(super) fn holds(&self, now: Timestamp) -> bool {
        // A request that came in before the price began pays the one before it, however late it gets here.
        let begun = self
            .price
            .as_ref()
            .is_none_or(|price| price.validity.from <= now);
        begun && self.until.is_none_or(|until| now < until)
    }
}
