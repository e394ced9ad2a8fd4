use super::shape::MethodOut;
use crate::refusals::VALIDATION_ERROR;
use crate::words;
use crate::{ApiState, Body, Caller, Data, Operation, Problem, Text};
use axum::extract::State;
use serde::Deserialize;
use souk_app::payouts;
use souk_domain::fields::FieldErrors;
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
    #[schema(min_length = 1, max_length = 200)]
    account_holder: String,
    /// The IBAN or account number, the mail address of the PayPal account, or the id of the Stripe account.
    #[schema(min_length = 6, max_length = 254, write_only)]
    destination: String,
}

/// Sets a company's payout method.
pub async fn set_payout_method(
    State(api): State<ApiState>,
    caller: Caller,
    Body(body): Body<MethodIn>,
) -> Result<Data<MethodOut>, Problem> {
    let mut errors = FieldErrors::default();
    let kind = PayoutMethodType::parse(&body.r#type);
    if kind.is_none() {
        let message = "must be bank_account, paypal or stripe_connect";
        errors.add("type", "invalid", message);
    }
    let account_holder = Text::<1, 200>::new(body.account_holder);
    if account_holder.is_none() {
        let message = "must be a text of 1 to 200 characters";
        errors.add("account_holder", "invalid", message);
    }
    // What it may be hangs upon the type.
    let destination = body.destination.trim();
    let checked = kind.map(|kind| kind.check_destination(destination));
    if let Some(Err(error)) = checked {
        errors.add("destination", "invalid", error.to_string());
    }
    let (Some(kind), Some(account_holder), true) = (kind, account_holder, errors.is_empty()) else {
        return Err(Problem::fields(VALIDATION_ERROR, errors.into_vec()));
    };
    let method = payouts::set_method(
        api.app(),
        caller.company(),
        kind,
        &account_holder,
        destination,
    )
    .await?;
    Ok(Data(method.into()))
}
