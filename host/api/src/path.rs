//! Path parameters: read once, refused in the envelope, and described with what is answered when there is no such thing.

use crate::describe::{Argument, Describe, Description, Incoming};
use crate::ids;
use crate::problem::{FieldError, Problem};
use crate::refusals::{self, Refusal};
use axum::extract::FromRequestParts;
use axum::extract::path::ErrorKind;
use axum::extract::rejection::PathRejection;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use souk_domain::ids::{
    AlertId, AssetId, CompanyId, ConnectionId, DeliveryId, EndpointId, FavoriteId, IntegrationId,
    KeyId, PayoutId, PostId, PriceId, PurchaseId, SessionId, TopUpId, UserId, WebhookId,
};

/// Path parameters in their order in the path, e.g. `Path((_, key)): Path<(CompanyId, KeyId)>`.
pub struct Path<T>(pub T);

impl<T: Segments> Describe for Path<T> {
    fn describe(into: &mut Description) {
        into.segments = Some(T::schemas());
        into.refuse(&[refusals::INVALID_PATH_PARAMETER]);
        into.refuse(&T::unknown());
    }
}

impl<T: Segments + DeserializeOwned + Send> Argument for Path<T> {
    async fn take(incoming: &mut Incoming) -> Result<Path<T>, Problem> {
        segments(incoming).await.map(Path)
    }
}

/// The path's parameters as any type.
pub(crate) async fn segments<T: DeserializeOwned + Send>(
    incoming: &mut Incoming,
) -> Result<T, Problem> {
    let Incoming { parts, state, .. } = incoming;
    match axum::extract::Path::<T>::from_request_parts(parts, state).await {
        Ok(axum::extract::Path(value)) => Ok(value),
        Err(PathRejection::FailedToDeserializePathParams(error)) => {
            let text = match error.into_kind() {
                ErrorKind::DeserializeError { message, .. } | ErrorKind::Message(message) => {
                    message
                }
                kind => kind.to_string(),
            };
            let error = FieldError::new("path", "invalid", text);
            Err(Problem::fields(
                refusals::INVALID_PATH_PARAMETER,
                vec![error],
            ))
        }
        Err(error) => Err(Problem::internal(error)),
    }
}

/// What the parameters of a path are, in their order.
pub trait Segments {
    fn schemas() -> Vec<Value>;
    /// What is answered when there are no such things.
    fn unknown() -> Vec<Refusal>;
}

/// What one parameter of a path is.
pub trait Segment {
    const UNKNOWN: &'static [Refusal] = &[];
    fn schema() -> Value;
}

/// Whether there is such a company is for the gate to say.
impl Segment for CompanyId {
    fn schema() -> Value {
        id(CompanyId::PREFIX)
    }
}

impl Segment for String {
    fn schema() -> Value {
        json!({"type": "string", "minLength": 1})
    }
}

fn id(prefix: &str) -> Value {
    json!({"type": "string", "pattern": ids::pattern(), "examples": [ids::example(prefix)]})
}

macro_rules! ids {
    ($($id:ident: $unknown:ident),+ $(,)?) => {
        $(impl Segment for $id {
            const UNKNOWN: &'static [Refusal] = &[refusals::$unknown];

            fn schema() -> Value {
                id($id::PREFIX)
            }
        })+
    };
}

ids!(
    AlertId: ALERT_NOT_FOUND,
    AssetId: ASSET_NOT_FOUND,
    ConnectionId: CONNECTION_NOT_FOUND,
    DeliveryId: DELIVERY_NOT_FOUND,
    EndpointId: ENDPOINT_NOT_FOUND,
    FavoriteId: FAVORITE_NOT_FOUND,
    IntegrationId: INTEGRATION_NOT_FOUND,
    KeyId: API_KEY_NOT_FOUND,
    PayoutId: PAYOUT_NOT_FOUND,
    PostId: POST_NOT_FOUND,
    PriceId: PRICE_NOT_FOUND,
    PurchaseId: PURCHASE_NOT_FOUND,
    SessionId: SESSION_NOT_FOUND,
    TopUpId: TOP_UP_NOT_FOUND,
    UserId: USER_NOT_FOUND,
    WebhookId: WEBHOOK_NOT_FOUND,
);

impl<A: Segment> Segments for A {
    fn schemas() -> Vec<Value> {
        vec![A::schema()]
    }

    fn unknown() -> Vec<Refusal> {
        [A::UNKNOWN].concat()
    }
}

impl<A: Segment, B: Segment> Segments for (A, B) {
    fn schemas() -> Vec<Value> {
        vec![A::schema(), B::schema()]
    }

    fn unknown() -> Vec<Refusal> {
        [A::UNKNOWN, B::UNKNOWN].concat()
    }
}

impl<A: Segment, B: Segment, C: Segment> Segments for (A, B, C) {
    fn schemas() -> Vec<Value> {
        vec![A::schema(), B::schema(), C::schema()]
    }

    fn unknown() -> Vec<Refusal> {
        [A::UNKNOWN, B::UNKNOWN, C::UNKNOWN].concat()
    }
}
