use super::shape::ProductOut;
use crate::refusals::PRODUCT_NOT_FOUND;
use crate::{ApiState, Caller, Data, Operation, Path, Problem};
use axum::extract::State;
use souk_store::marketplace;

pub const OPERATION: Operation = Operation::get(
    "get_product",
    "/marketplace/products/{product_id}",
)
.about("Marketplace", "Show a product")
.notes("Published products of companies in good standing. `access` is what your company has of it.")
.refuses(&[PRODUCT_NOT_FOUND]);

/// Shows what a product is, costs and allows.
pub async fn get_product(
    State(api): State<ApiState>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<Data<ProductOut>, Problem> {
    let mut read = api.db().read().await?;
    let listing = marketplace::get(&mut read, caller.company(), &id, caller.now()).await?;
    let listing = listing.ok_or_else(|| Problem::not_found("product", &id))?;
    let ids = std::iter::once(id.as_str());
    let stats = marketplace::stats(&mut read, ids, caller.now()).await?;
    let stats = stats.get(&id).copied().unwrap_or_default();
    Ok(Data(ProductOut::new(listing, stats)))
}
