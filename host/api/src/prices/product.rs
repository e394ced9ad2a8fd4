//! The product that a price belongs to: the asset or the endpoint of the path.

use crate::describe::{Argument, Describe, Description, Incoming};
use crate::path::values;
use crate::{Caller, Problem, refusals};
use souk_domain::ids::{AssetId, EndpointId, PriceId};
use souk_domain::products::{Product, ProductStatus};
use souk_store::{AnyConnection, Write, prices, products};
use std::borrow::Cow;

/// `…/assets/{asset_id}/prices…` or `…/endpoints/{endpoint_id}/prices…`.
pub struct Priced {
    pub product: Product,
    price: Option<String>,
}

impl Describe for Priced {
    fn describe(into: &mut Description) {
        into.refuse(&[
            refusals::INVALID_PATH_PARAMETER,
            refusals::ASSET_NOT_FOUND,
            refusals::ENDPOINT_NOT_FOUND,
        ]);
    }
}

impl Argument for Priced {
    async fn take(incoming: &mut Incoming) -> Result<Priced, Problem> {
        let mut values = values(incoming)?;
        let mut of = |wanted: &str| {
            let place = values.iter().position(|(name, _)| *name == wanted)?;
            Some(values.swap_remove(place).1)
        };
        let malformed = |error: souk_domain::ids::IdError| {
            Problem::of(refusals::INVALID_PATH_PARAMETER, error.to_string())
        };
        let product = match (of("asset_id"), of("endpoint_id")) {
            (Some(asset), _) => Product::Asset(AssetId::parse(&asset).map_err(malformed)?),
            (None, Some(endpoint)) => {
                Product::Endpoint(EndpointId::parse(&endpoint).map_err(malformed)?)
            }
            (None, None) => return Err(Problem::internal("a price's path names no product")),
        };
        let price = of("price_id").map(Cow::into_owned);
        Ok(Priced { product, price })
    }
}

impl Priced {
    pub fn price(&self) -> Result<PriceId, Problem> {
        let id = self.price.as_deref().unwrap_or_default();
        PriceId::parse(id)
            .map_err(|error| Problem::of(refusals::INVALID_PATH_PARAMETER, error.to_string()))
    }

    /// The product must be the company's own; nobody else changes its prices meanwhile.
    pub async fn lock_own(&self, write: &mut Write, caller: &Caller) -> Result<(), Problem> {
        self.check_own(write, caller).await?;
        Ok(prices::lock(write, &self.product).await?)
    }

    /// The product must be the company's own.
    pub async fn check_own(&self, db: &mut AnyConnection, caller: &Caller) -> Result<(), Problem> {
        match products::status(db, &self.product).await? {
            Some((owner, status))
                if owner == *caller.company() && status != ProductStatus::Archived =>
            {
                Ok(())
            }
            _ => Err(self.not_found()),
        }
    }

    /// The product must be the company's own, or on sale: whether it is its own.
    pub async fn check_visible(
        &self,
        db: &mut AnyConnection,
        caller: &Caller,
    ) -> Result<bool, Problem> {
        let standing = products::status(db, &self.product).await?;
        if standing.is_some_and(|(owner, _)| owner == *caller.company()) {
            return Ok(true);
        }
        match products::is_on_sale(db, &self.product).await? {
            true => Ok(false),
            false => Err(self.not_found()),
        }
    }

    pub fn no_price(&self, id: &str) -> Problem {
        Problem::not_found("price", id)
    }

    /// Where the product's prices are.
    pub fn location(&self, caller: &Caller) -> String {
        let kind = match self.product {
            Product::Asset(_) => "assets",
            Product::Endpoint(_) => "endpoints",
        };
        format!(
            "/companies/{}/{kind}/{}/prices",
            caller.company(),
            self.product.id()
        )
    }

    fn not_found(&self) -> Problem {
        Problem::not_found(self.product.product_type().as_str(), self.product.id())
    }
}
