//! Running an asset by its seller's handle and its slug.

pub mod by_body;
pub mod by_query;

use crate::runs::not_found;
use crate::{ApiState, Caller, Problem, Routes};
use souk_app::products::{self, AssetSnapshot};
use souk_store::Cached;

pub fn routes() -> Routes {
    Routes::new()
        .add(by_body::OPERATION, by_body::analyze)
        .add(by_query::OPERATION, by_query::analyze_by_query)
}

async fn asset(
    api: &ApiState,
    caller: &Caller,
    handle: &str,
    slug: &str,
) -> Result<Cached<AssetSnapshot>, Problem> {
    products::by_slug(api.app(), handle, slug, caller.now())
        .await
        .map_err(|error| not_found(error, "asset", slug))
}
