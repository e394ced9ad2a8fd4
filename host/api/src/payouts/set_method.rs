use super::shape::MethodOut;
use crate::words;
use crate::{ApiState, Body, Caller, Data, Operation, Problem, Text};
use axum::extract::State;
use serde::Deserialize;
use souk_app::payouts;
use souk_domain::payments::PayoutMethodType;
use souk_domain::roles::{Permission, Role};
use utoipa::ToSchema;

pub const OPERATION: Operation =
    Operation::put("set_payout_method", "/companies/{company_id}/payout-method")
        .about("Payouts", "Set where a company's earnings go")
        .notes(
            "The destination is sealed and never shown again; answers have its last four characters. Payouts that were asked for before go \
             where they were to go.",
        )
        .needs(Role::Admin, Permission::Write);

#[derive(Deserialize, ToSchema)]
pub struct MethodIn {
    #[schema(value_type = words::PayoutMethodType)]
    r#type: String,
    #[schema(value_type = String, min_length = 1, max_length = 200)]
    account_holder: Text<1, 200>,
    /// The IBAN or account number, the mail address of the PayPal account, or the id of the Stripe account.
    #[schema(value_type = String, min_length = 6, max_length = 254, write_only)]
    destination: Text<1, 1000>,
}

/// Sets a company's payout method.
pub async fn set_payout_method(
    State(api): State<ApiState>,
    caller: Caller,
    Body(body): Body<MethodIn>,
) -> Result<Data<MethodOut>, Problem> {
    let kind = PayoutMethodType::parse(&body.r#type).ok_or_else(|| {
        Problem::invalid("type", "must be bank_account, paypal or stripe_connect")
    })?;
    let destination = body.destination.trim();
    kind.check_destination(destination)
        .map_err(|error| Problem::invalid("destination", error.to_string()))?;
    let method = payouts::set_method(
        api.app(),
        caller.company(),
        kind,
        &body.account_holder,
        destination,
    )
    .await?;
    Ok(Data(method.into()))
}
