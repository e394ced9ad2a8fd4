use super::find;
use super::shape::KeyOut;
use crate::{ApiState, Caller, Data, Operation, Path, Problem};
use axum::extract::State;
use souk_domain::ids::{CompanyId, KeyId};

pub const OPERATION: Operation =
    Operation::get("get_key", "/companies/{company_id}/api-keys/{api_key_id}")
        .alias(
            "/companies/{company_id}/api_keys/{api_key_id}",
            "get_api_key",
        )
        .about("API keys", "Show a key, masked")
        .notes("Deactivated keys stay readable.")
        .hourly(1000);

/// Shows a key, masked.
pub async fn get_key(
    State(api): State<ApiState>,
    caller: Caller,
    Path((_, id)): Path<(CompanyId, KeyId)>,
) -> Result<Data<KeyOut>, Problem> {
    let mut read = api.db().read().await?;
    let key = find(&mut read, &caller, &id).await?;
    Ok(Data(KeyOut::masked(&key, caller.now())))
}
