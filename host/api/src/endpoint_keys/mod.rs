//! Keys of one endpoint (specification 4.2), minted by its seller.

pub mod create;
pub mod delete;
pub mod list;

use crate::{Caller, Problem, Routes};
use souk_domain::ids::EndpointId;
use souk_store::AnyConnection;
use souk_store::endpoints::{self, Endpoint};

pub fn routes() -> Routes {
    Routes::new()
        .add(list::OPERATION, list::list_endpoint_keys)
        .add(create::OPERATION, create::create_endpoint_key)
        .add(delete::OPERATION, delete::delete_endpoint_key)
}

async fn find_endpoint(
    db: &mut AnyConnection,
    caller: &Caller,
    id: &EndpointId,
) -> Result<Endpoint, Problem> {
    endpoints::get(db, caller.company(), id)
        .await?
        .ok_or_else(|| Problem::not_found("endpoint", id.as_str()))
}
