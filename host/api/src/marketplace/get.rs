use super::details::DetailsOut;
use super::shape::ProductOut;
use crate::refusals::PRODUCT_NOT_FOUND;
use crate::{ApiState, Caller, Data, Operation, Path, Problem};
use axum::extract::State;
use souk_domain::products::Product;
use souk_store::products::{self, Kind, Row};
use souk_store::{AnyConnection, marketplace, prices};

pub const OPERATION: Operation = Operation::get(
    "get_product",
    "/marketplace/products/{product_id}",
)
.about("Marketplace", "Show a product")
.notes(
    "Published products of companies in good standing, and those that were unpublished after your company bought them (`status`). `access` is what \
     your company has of it. Beside what lists show: how it is called (the \
     parameters of an asset; filters, orders and limits of an endpoint), and until when its price holds.",
)
.refuses(&[PRODUCT_NOT_FOUND]);

/// Shows what a product is, costs and allows, and how it is called.
pub async fn get_product(
    State(api): State<ApiState>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<Data<DetailsOut>, Problem> {
    let now = caller.now();
    let mut read = api.db().read().await?;
    let listing = marketplace::visible(&mut read, caller.company(), &id, now).await?;
    let listing = listing.ok_or_else(|| Problem::not_found("product", &id))?;
    let product = Product::parse(listing.product_type, &id).map_err(Problem::internal)?;
    let stats = marketplace::stats(&mut read, std::iter::once(id.as_str()), now).await?;
    let stats = stats.get(&id).copied().unwrap_or_default();
    let price = prices::active(&mut read, &id, now).await?;
    let (listed, price) = (ProductOut::new(listing, stats), price.as_ref());
    Ok(Data(match &product {
        Product::Asset(id) => DetailsOut::of_asset(listed, price, row(&mut read, id).await?),
        Product::Endpoint(id) => DetailsOut::of_endpoint(listed, price, row(&mut read, id).await?),
    }))
}

async fn row<K: Kind>(db: &mut AnyConnection, id: &K) -> Result<Row<K>, Problem> {
    let row = products::get_any(db, id).await?;
    row.ok_or_else(|| Problem::not_found("product", id.as_ref()))
}
