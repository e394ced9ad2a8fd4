//! Keys of one endpoint (specification 4.2), minted by its seller.

pub mod create;
pub mod delete;
pub mod list;
pub mod update;

use crate::{Caller, Problem, Routes};
use souk_domain::ids::{EndpointId, KeyId};
use souk_store::AnyConnection;
use souk_store::keys::{self, Key};

pub fn routes() -> Routes {
    Routes::new()
        .add(list::OPERATION, list::list_endpoint_keys)
        .add(create::OPERATION, create::create_endpoint_key)
        .add(update::OPERATION, update::update_endpoint_key)
        .add(delete::OPERATION, delete::delete_endpoint_key)
}

/// One of the company's keys of this endpoint, or 404.
async fn find_key(
    db: &mut AnyConnection,
    caller: &Caller,
    endpoint: &EndpointId,
    id: &KeyId,
) -> Result<Key, Problem> {
    let key = keys::get(db, caller.company(), id).await?;
    key.filter(|key| key.endpoint_id.as_ref() == Some(endpoint))
        .ok_or_else(|| Problem::not_found("API key", id.as_str()))
}
