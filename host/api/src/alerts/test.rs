use super::find;
use crate::outward::{self, Outward};
use crate::{Accepted, ApiState, Caller, Operation, Path, Problem};
use axum::extract::State;
use serde::Serialize;
use souk_app::alerts::mails;
use souk_domain::ids::{AlertId, CompanyId, DeliveryId};
use souk_domain::roles::{Permission, Role};
use souk_store::alerts;
use utoipa::ToSchema;

/// Each may be a delivery to twenty webhooks, and a mail.
const HOURLY: u32 = 60;

pub const OPERATION: Operation =
    Operation::post("test_alert", "/companies/{company_id}/alerts/{alert_id}/test")
        .about("Alerts", "Send what an alert would send")
        .notes(
            "An `alert.triggered` with `\"test\": true`, to whom the alert tells: by mail too, where that is wanted, once and at once. Nothing is evaluated and nothing charged, and its state stays. A company has 100 tests an hour.",
        )
        .needs(Role::DataScientist, Permission::Write)
        .hourly(HOURLY);

#[derive(Serialize, ToSchema)]
#[schema(as = AlertTest)]
pub struct TestOut {
    /// Of the webhooks that are told; none when nobody is to be told.
    #[schema(value_type = Vec<String>)]
    delivery_ids: Vec<DeliveryId>,
    /// Whether the mail of its user was taken by the relay. False also when no mail is wanted, or the user has not come in yet.
    mail_sent: bool,
}

/// Sends what an alert would send.
pub async fn test_alert(
    State(api): State<ApiState>,
    caller: Caller,
    Path((_, id)): Path<(CompanyId, AlertId)>,
) -> Result<Accepted<TestOut>, Problem> {
    outward::spend(&api, &caller, Outward::AlertTests).await?;
    let (alert, delivery_ids) = api
        .db()
        .write(async |write| -> Result<_, Problem> {
            let alert = find(write, &caller, &id).await?;
            let delivery_ids = alerts::send_test(write, &alert, caller.now()).await?;
            Ok((alert, delivery_ids))
        })
        .await?;
    let mail_sent = mails::send_test(api.app(), &alert).await?;
    Ok(Accepted(TestOut {
        delivery_ids,
        mail_sent,
    }))
}
