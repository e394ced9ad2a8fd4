//! Path parameters: read once, refused in the envelope, and described with what is answered when there is no such thing.

use crate::caller::Caller;
use crate::describe::{Argument, Describe, Description, Incoming};
use crate::ids;
use crate::problem::{FieldError, Problem};
use crate::refusals::{self, Refusal};
use crate::router::Names;
use serde_json::{Value, json};
use souk_domain::ids::{
    AlertId, AssetId, CompanyId, ConnectionId, DeliveryId, EndpointId, FavoriteId, IntegrationId,
    KeyId, PayoutId, PostId, PriceId, PurchaseId, SessionId, TopUpId, UserId, WebhookId,
};
use std::borrow::Cow;

/// Path parameters in their order in the path, e.g. `Path((_, key)): Path<(CompanyId, KeyId)>`.
pub struct Path<T>(pub T);

impl<T: Segments> Describe for Path<T> {
    fn describe(into: &mut Description) {
        into.segments = Some(T::schemas());
        into.refuse(&[refusals::INVALID_PATH_PARAMETER]);
        into.refuse(&T::unknown());
    }
}

impl<T: Segments + Send> Argument for Path<T> {
    async fn take(incoming: &mut Incoming) -> Result<Path<T>, Problem> {
        let mut values = values(incoming)?.into_iter();
        let read = T::read(&mut || values.next().map(|(_, value)| value));
        read.map(Path).map_err(malformed)
    }
}

/// The path's parameters in their order: each one's name and value.
pub(crate) fn values(incoming: &Incoming) -> Result<Vec<(&'static str, Cow<'_, str>)>, Problem> {
    let extensions = &incoming.parts.extensions;
    let of_caller = extensions.get::<Caller>().map(Caller::names);
    let Some(names) = of_caller.or_else(|| extensions.get::<Names>()) else {
        return Ok(Vec::new());
    };
    let values = names.values(incoming.parts.uri.path());
    values.map_err(|name| malformed(format!("{name} is not UTF-8")))
}

fn malformed(text: String) -> Problem {
    let error = FieldError::new("path", "invalid", text);
    Problem::fields(refusals::INVALID_PATH_PARAMETER, vec![error])
}

/// What the parameters of a path are, in their order.
pub trait Segments: Sized {
    /// Takes each from `next`. Refuses with what is wrong with it.
    fn read<'a>(next: &mut dyn FnMut() -> Option<Cow<'a, str>>) -> Result<Self, String>;
    fn schemas() -> Vec<Value>;
    /// What is answered when there are no such things.
    fn unknown() -> Vec<Refusal>;
}

/// What one parameter of a path is.
pub trait Segment: Sized {
    const UNKNOWN: &'static [Refusal] = &[];

    fn read(text: Cow<'_, str>) -> Result<Self, String>;
    fn schema() -> Value;
}

impl Segment for String {
    fn read(text: Cow<'_, str>) -> Result<String, String> {
        Ok(text.into_owned())
    }

    fn schema() -> Value {
        json!({"type": "string", "minLength": 1})
    }
}

fn id(prefix: &str) -> Value {
    json!({"type": "string", "pattern": ids::pattern(), "examples": [ids::example(prefix)]})
}

macro_rules! ids {
    ($($id:ident $(: $unknown:ident)?),+ $(,)?) => {
        $(impl Segment for $id {
            const UNKNOWN: &'static [Refusal] = &[$(refusals::$unknown)?];

            fn read(text: Cow<'_, str>) -> Result<$id, String> {
                $id::parse(&text).map_err(|error| error.to_string())
            }

            fn schema() -> Value {
                id($id::PREFIX)
            }
        })+
    };
}

ids!(
    // Whether there is such a company is for the gate to say.
    CompanyId,
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

/// The next one. The routes have looked that a path has as many as its handler reads.
fn one<'a, T: Segment>(next: &mut dyn FnMut() -> Option<Cow<'a, str>>) -> Result<T, String> {
    T::read(next().ok_or("the path has too few parameters")?)
}

impl<A: Segment> Segments for A {
    fn read<'a>(next: &mut dyn FnMut() -> Option<Cow<'a, str>>) -> Result<A, String> {
        one(next)
    }

    fn schemas() -> Vec<Value> {
        vec![A::schema()]
    }

    fn unknown() -> Vec<Refusal> {
        [A::UNKNOWN].concat()
    }
}

impl<A: Segment, B: Segment> Segments for (A, B) {
    fn read<'a>(next: &mut dyn FnMut() -> Option<Cow<'a, str>>) -> Result<(A, B), String> {
        Ok((one(next)?, one(next)?))
    }

    fn schemas() -> Vec<Value> {
        vec![A::schema(), B::schema()]
    }

    fn unknown() -> Vec<Refusal> {
        [A::UNKNOWN, B::UNKNOWN].concat()
    }
}

impl<A: Segment, B: Segment, C: Segment> Segments for (A, B, C) {
    fn read<'a>(next: &mut dyn FnMut() -> Option<Cow<'a, str>>) -> Result<(A, B, C), String> {
        Ok((one(next)?, one(next)?, one(next)?))
    }

    fn schemas() -> Vec<Value> {
        vec![A::schema(), B::schema(), C::schema()]
    }

    fn unknown() -> Vec<Refusal> {
        [A::UNKNOWN, B::UNKNOWN, C::UNKNOWN].concat()
    }
}
