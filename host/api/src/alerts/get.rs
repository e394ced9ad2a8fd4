use super::find;
use super::shape::AlertOut;
use crate::{ApiState, Caller, Data, Operation, Path, Problem};
use axum::extract::State;
use souk_domain::ids::{AlertId, CompanyId};

pub const OPERATION: Operation =
    Operation::get("get_alert", "/companies/{company_id}/alerts/{alert_id}")
        .about("Alerts", "Show an alert");

/// Shows an alert.
pub async fn get_alert(
    State(api): State<ApiState>,
    caller: Caller,
    Path((_, id)): Path<(CompanyId, AlertId)>,
) -> Result<Data<AlertOut>, Problem> {
    let mut read = api.db().read().await?;
    let alert = find(&mut read, &caller, &id).await?;
    Ok(Data(AlertOut::of(alert, caller.now())))
}
