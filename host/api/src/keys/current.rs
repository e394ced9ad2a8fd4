use super::find;
use super::shape::KeyOut;
use crate::refusals::API_KEY_NOT_FOUND;
use crate::{ApiState, Caller, Data, Operation, Problem};
use axum::extract::State;

pub const OPERATION: Operation =
    Operation::get("current_key", "/companies/{company_id}/api-keys/current")
        .alias(
            "/companies/{company_id}/api_keys/current",
            "current_api_key",
        )
        .about("API keys", "Show the key that makes this request, masked")
        .refuses(&[API_KEY_NOT_FOUND]);

/// Shows the caller's own key.
pub async fn current_key(
    State(api): State<ApiState>,
    caller: Caller,
) -> Result<Data<KeyOut>, Problem> {
    let mut read = api.db().read().await?;
    // Read anew: the cached record does not follow the use of the key.
    let key = caller.key();
    let key = key.ok_or_else(|| Problem::not_found("API key", "current"))?;
    let key = match caller.company() == caller.payer() {
        true => find(&mut read, &caller, &key.id).await?,
        false => key.clone(),
    };
    Ok(Data(KeyOut::masked(&key, caller.now())))
}
