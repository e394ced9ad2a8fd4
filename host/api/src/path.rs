//! Path parameters: read once, refused in the envelope, and described with what is answered when there is no such thing.

use crate::describe::{Argument, Describe, Description, Incoming};
use crate::ids;
use crate::problem::{FieldError, Problem};
use crate::refusals::{self, Refusal};
use crate::router::parameters;
use http::request::Parts;
use serde::de::value;
use serde::de::{
    Deserialize, DeserializeOwned, Deserializer, Error as _, IntoDeserializer, Visitor,
};
use serde::forward_to_deserialize_any;
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

impl<T: Segments + DeserializeOwned + Send> Argument for Path<T> {
    async fn take(incoming: &mut Incoming) -> Result<Path<T>, Problem> {
        segments(incoming).map(Path)
    }
}

/// The path's parameters as any type.
pub(crate) fn segments<'a, T: Deserialize<'a>>(incoming: &'a Incoming) -> Result<T, Problem> {
    let Parts {
        extensions, uri, ..
    } = &incoming.parts;
    let read = match parameters(extensions, uri) {
        Ok(values) => T::deserialize(Values(values)).map_err(|error| error.to_string()),
        Err(name) => Err(format!("{name} is not UTF-8")),
    };
    read.map_err(|text| {
        let error = FieldError::new("path", "invalid", text);
        Problem::fields(refusals::INVALID_PATH_PARAMETER, vec![error])
    })
}

/// The only value, all of them in their order, or by their names: as what is read wants them.
struct Values<'a>(Vec<(&'static str, Cow<'a, str>)>);

impl<'de> Deserializer<'de> for Values<'de> {
    type Error = value::Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, value::Error> {
        let mut values = self.0.into_iter();
        match (values.next(), values.next()) {
            (Some((_, only)), None) => only.into_deserializer().deserialize_any(visitor),
            _ => Err(value::Error::custom("the path has not one parameter")),
        }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, value::Error> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_tuple<V: Visitor<'de>>(
        self,
        _: usize,
        visitor: V,
    ) -> Result<V::Value, value::Error> {
        let values = self.0.into_iter().map(|(_, value)| value);
        value::SeqDeserializer::new(values).deserialize_any(visitor)
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, value::Error> {
        value::MapDeserializer::new(self.0.into_iter()).deserialize_any(visitor)
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option unit unit_struct seq tuple_struct struct
        enum identifier ignored_any
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
