use super::shape::TopUpOut;
use crate::{ApiState, Caller, Data, Operation, Path, Problem};
use axum::extract::State;
use souk_domain::ids::{CompanyId, TopUpId};
use souk_store::top_ups;

pub const OPERATION: Operation = Operation::get(
    "get_top_up",
    "/companies/{company_id}/credits/top-ups/{top_up_id}",
)
.about("Credits", "Show a top-up");

/// Shows a top-up.
pub async fn get_top_up(
    State(api): State<ApiState>,
    caller: Caller,
    Path((_, id)): Path<(CompanyId, TopUpId)>,
) -> Result<Data<TopUpOut>, Problem> {
    let mut read = api.db().read().await?;
    let top_up = top_ups::get(&mut read, caller.company(), &id).await?;
    let top_up = top_up.ok_or_else(|| Problem::not_found("top-up", id.as_str()))?;
    Ok(Data(top_up.into()))
}
