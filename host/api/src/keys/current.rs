use super::find;
use super::shape::KeyOut;
use crate::refusals::API_KEY_NOT_FOUND;
use crate::{ApiState, Caller, Data, Operation, Problem};
use axum::extract::State;
use souk_domain::ids::KeyId;

pub const OPERATION: Operation =
    Operation::get("current_key", "/companies/{company_id}/api-keys/current")
        .aliases(&["/companies/{company_id}/api_keys/current"])
        .about("API keys", "Show the key that makes this request, masked")
        .refuses(&[API_KEY_NOT_FOUND]);

/// Shows the caller's own key.
pub async fn current_key(
    State(api): State<ApiState>,
    caller: Caller,
) -> Result<Data<KeyOut>, Problem> {
    let mut read = api.db().read().await?;
    // Read anew: the cached record does not follow the use of the key.
    let id: &KeyId = caller.key_id();
    let key = match caller.company() == caller.payer() {
        true => find(&mut read, &caller, id).await?,
        false => caller.key().clone(),
    };
    Ok(Data(KeyOut::masked(&key, caller.now())))
}
