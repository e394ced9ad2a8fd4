use super::shape::TopUpOut;
use crate::idempotency::{self, Once};
use crate::money::TopUpUsd;
use crate::money::read_usd;
use crate::outward::{self, Outward};
use crate::problem::both;
use crate::refusals::{
    CONCURRENCY_LIMIT_EXCEEDED, PAYMENT_PROVIDER_ERROR, PAYMENT_PROVIDER_UNAVAILABLE,
};
use crate::{ApiState, Body, Caller, Created, Operation, Problem, Text};
use axum::extract::State;
use serde::Deserialize;
use serde_json::Number;
use souk_app::payments::{self, BeginError, Order, Retry, TopUpError};
use souk_domain::ids::TopUpId;
use souk_domain::money::Credits;
use souk_domain::payments::{top_up_credits, top_up_credits_for};
use souk_domain::roles::{Permission, Role};
use souk_store::top_ups::TopUp;
use utoipa::ToSchema;

pub const OPERATION: Operation =
    Operation::post("create_top_up", "/companies/{company_id}/credits/top-ups")
        .about("Credits", "Buy credits")
        .notes(
            "Give either `credits` or `amount_usd` (a multiple of 0.50). With the provider `stripe`, send the payer to `checkout_url`; with \
             `manual`, platform staff settles the top-up when the money has arrived. The credits are in the balance once it is `settled`. \
             A company has 100 top-ups an hour, whatever comes of them.",
        )
        .needs(Role::Admin, Permission::Write)
        .key_required()
        .refuses(&[
            CONCURRENCY_LIMIT_EXCEEDED,
            PAYMENT_PROVIDER_ERROR,
            PAYMENT_PROVIDER_UNAVAILABLE,
        ]);

#[derive(Deserialize, ToSchema)]
pub struct TopUpIn {
    #[schema(minimum = 1, maximum = 100000)]
    credits: Option<i64>,
    #[schema(value_type = Option<TopUpUsd>)]
    amount_usd: Option<Number>,
    /// The provider's word for a way to pay, such as `card`; by default the payer chooses.
    #[schema(value_type = Option<String>, min_length = 1, max_length = 50)]
    payment_method: Option<Text<1, 50>>,
    /// Where the payer's browser goes after the checkout; by default to a page of this host.
    #[schema(value_type = Option<String>, min_length = 1, max_length = 2000, pattern = "^https?://")]
    return_url: Option<Text<1, 2000>>,
}

impl TopUpIn {
    fn credits(&self) -> Result<Credits, Problem> {
        match (self.credits, &self.amount_usd) {
            (Some(credits), None) => {
                top_up_credits(credits).map_err(|error| ("credits", error.to_string()))
            }
            (None, Some(amount)) => top_up_credits_for(read_usd("amount_usd", amount)?)
                .map_err(|error| ("amount_usd", error.to_string())),
            _ => Err((
                "credits",
                "give either credits or amount_usd, and not both".to_owned(),
            )),
        }
        .map_err(|(field, message)| Problem::invalid(field, message))
    }

    fn return_url(&self, base_url: &str) -> Result<String, Problem> {
        match &self.return_url {
            Some(url) if url.starts_with("https://") || url.starts_with("http://") => {
                Ok(url.to_string())
            }
            Some(_) => Err(Problem::invalid(
                "return_url",
                "must be an https:// or http:// address",
            )),
            None => Ok(format!("{base_url}/payments/return")),
        }
    }
}

/// Begins a purchase of credits.
pub async fn create_top_up(
    State(api): State<ApiState>,
    caller: Caller,
    once: Once,
    Body(body): Body<TopUpIn>,
) -> Result<Created<TopUpOut>, Problem> {
    let (credits, return_url) = both(body.credits(), body.return_url(&api.settings().base_url))?;
    outward::spend(&api, &caller, Outward::TopUps).await?;
    let order = Order {
        top_up: TopUpId::generate(),
        company: caller.company().clone(),
        credits,
        return_url,
        payment_method: body.payment_method.map(Text::into_string),
    };
    let created = |top_up: TopUp| Created {
        location: format!(
            "/companies/{}/credits/top-ups/{}",
            caller.company(),
            top_up.id
        ),
        data: TopUpOut::from(top_up),
    };
    let answer = |top_up: &TopUp| super::answer(&created(top_up.clone()));
    let retry = once.ticket().map(|ticket| Retry {
        ticket,
        answer: &answer,
        kept_until: idempotency::kept_until(),
    });
    let top_up = payments::top_up(api.app(), order, caller.actor(), retry)
        .await
        .map_err(refuse)?;
    once.note_kept();
    Ok(created(top_up))
}

/// What the provider said is in the log, and in the top-up, which has failed, where it is about what the company wanted.
fn refuse(error: TopUpError) -> Problem {
    match error {
        TopUpError::Store(error) => error.into(),
        TopUpError::Reused => idempotency::reused(),
        TopUpError::Busy => Problem::busy(1)
            .worded("other top-ups of this company are at the payment provider; begin this one when one of them has begun")
            .detail("exhausted", "top_ups_exhausted"),
        TopUpError::Begin(BeginError::PaymentMethod(message)) => {
            Problem::invalid("payment_method", message)
        }
        TopUpError::Begin(BeginError::Refused(_)) => Problem::of(
            PAYMENT_PROVIDER_ERROR,
            "the payment provider refused; nothing was paid",
        ),
        TopUpError::Begin(BeginError::Unavailable(_)) => Problem::of(
            PAYMENT_PROVIDER_UNAVAILABLE,
            "the payment provider cannot be used now; nothing was paid, try again later",
        )
        .retry_after(60),
    }
}
