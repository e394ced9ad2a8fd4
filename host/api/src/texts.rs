//! Texts of some length in lists and choices, as the document tells them: `#[schema(value_type = Vec<Label>)]`. A member that is such a text says
//! so itself. What holds a request to its bound stands where the request is read.

use souk_domain::posts::TAG_CHARS_MAX;
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::{Object, ObjectBuilder, Schema, Type};
use utoipa::{PartialSchema, ToSchema};

use crate::products::check::LABEL_CHARS_MAX;

pub fn text(chars_min: usize, chars_max: usize) -> Object {
    let text = ObjectBuilder::new().schema_type(Type::String);
    let text = text.min_length((chars_min > 0).then_some(chars_min));
    text.max_length(Some(chars_max)).build()
}

macro_rules! texts {
    ($($(#[doc = $about:literal])+ $name:ident: $min:expr, $max:expr;)+) => {
        $($(#[doc = $about])+
        pub struct $name;

        impl PartialSchema for $name {
            fn schema() -> RefOr<Schema> {
                let mut text = text($min, $max);
                text.description = Some([$($about.trim()),+].join(" "));
                text.into()
            }
        }

        impl ToSchema for $name {})+
    };
}

texts! {
    /// A tag of an asset or an endpoint.
    ProductTag: 0, LABEL_CHARS_MAX;
    /// A tag of a post.
    PostTag: 1, TAG_CHARS_MAX;
}
