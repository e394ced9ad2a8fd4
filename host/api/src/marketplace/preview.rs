use crate::refusals::{
    CONNECTOR_UNAVAILABLE, NOT_ENTITLED, PREVIEW_NOT_AVAILABLE, PRODUCT_NOT_FOUND, SELLER_SUSPENDED,
};
use crate::runs::shape::PreviewAnswer;
use crate::runs::{answer, payer, refusal};
use crate::{ApiState, Caller, Operation, Path, Prepared, Problem};
use axum::extract::State;
use souk_app::failure::{Cause, Failure};
use souk_app::{products, run};
use souk_domain::ids::{AssetId, EndpointId};

pub const OPERATION: Operation = Operation::get("preview_product", "/marketplace/products/{product_id}/preview")
    .about("Marketplace", "See a product on sample data")
    .notes(
        "Free. An asset shows the result that it was published with, an endpoint the same stored rows every time, three or as many as 64 KiB \
         hold; nothing is run. It is 404 `PREVIEW_NOT_AVAILABLE` after a change of what is sold that was not tested, until the seller tests or \
         publishes the product again, and where the result, or the first row, is larger than 64 KiB. The limit counts per key and product.",
    )
    .hourly_each(60)
    .refuses(&[PRODUCT_NOT_FOUND, PREVIEW_NOT_AVAILABLE, NOT_ENTITLED, SELLER_SUSPENDED, CONNECTOR_UNAVAILABLE]);

/// Shows what was stored when the product was published, or tested since.
pub async fn preview_product(
    State(api): State<ApiState>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<Prepared<PreviewAnswer>, Problem> {
    preview(&api, &caller, &id)
        .await
        .map(Prepared::new)
        .map_err(|error| refusal("product", &id)(Failure::from(error)))
}

async fn preview(api: &ApiState, caller: &Caller, id: &str) -> Result<Vec<u8>, Cause> {
    let payer = payer(caller, None);
    let is_endpoint = id
        .strip_prefix(EndpointId::PREFIX)
        .is_some_and(|rest| rest.starts_with('_'));
    if is_endpoint {
        let id = EndpointId::parse(id).map_err(|_| Cause::NotFound)?;
        let endpoint = products::get(api.app(), &id, caller.now()).await?;
        run::admit(api.app(), &endpoint.sold(), caller.company()).await?;
        answer::page_preview(&endpoint, &payer)
    } else {
        let id = AssetId::parse(id).map_err(|_| Cause::NotFound)?;
        let asset = products::get(api.app(), &id, caller.now()).await?;
        run::admit(api.app(), &asset.sold(), caller.company()).await?;
        answer::asset_preview(&asset, &payer)
    }
}
