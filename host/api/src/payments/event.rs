use crate::refusals::{INVALID_REQUEST, INVALID_SIGNATURE, PAYMENT_PROVIDER_NOT_FOUND};
use crate::{Access, AnyObject, ApiState, Data, Operation, Path, Problem, RawBody};
use axum::extract::State;
use http::HeaderName;
use serde::Serialize;
use souk_app::payments::{self, EventError, ReceiveError};
use utoipa::ToSchema;

pub const OPERATION: Operation =
    Operation::post("receive_payment_event", "/webhooks/payments/{provider}")
        .about("Credits", "Receive an event of a payment provider")
        .notes(
            "Called by the provider, not by clients: `stripe` signs its events in `Stripe-Signature`. An event that is sent again changes \
             nothing. Anything but 200 makes the provider send it again.",
        )
        .access(Access::Public)
        .signed()
        .refuses(&[PAYMENT_PROVIDER_NOT_FOUND, INVALID_SIGNATURE]);

const SIGNATURE: HeaderName = HeaderName::from_static("stripe-signature");

#[derive(Serialize, ToSchema)]
#[schema(as = ReceivedEvent)]
pub struct ReceivedOut {
    received: bool,
}

/// Acts on an event, if its signature is good.
pub async fn receive_payment_event(
    State(api): State<ApiState>,
    Path(name): Path<String>,
    body: RawBody<AnyObject, true>,
) -> Result<Data<ReceivedOut>, Problem> {
    let unknown = || Problem::not_found("payment provider", &name);
    let provider = api.app().payments.by_name(&name).ok_or_else(unknown)?;
    let signature = body
        .parts
        .headers
        .get(SIGNATURE)
        .and_then(|value| value.to_str().ok());
    match payments::receive(api.app(), provider.as_ref(), signature, &body.bytes).await {
        Ok(_) => Ok(Data(ReceivedOut { received: true })),
        Err(ReceiveError::Event(EventError::SendsNone)) => Err(unknown()),
        Err(ReceiveError::Event(error @ EventError::Signature(_))) => {
            tracing::warn!(provider = name, %error, "a payment event was refused");
            Err(Problem::of(INVALID_SIGNATURE, error.to_string()))
        }
        Err(ReceiveError::Event(error @ EventError::Malformed(_))) => {
            Err(Problem::of(INVALID_REQUEST, error.to_string()))
        }
        Err(ReceiveError::Store(error)) => Err(error.into()),
    }
}
