//! Texts of which only some words are possible, as the document tells them: `#[schema(value_type = StatusWord)]`.

use souk_domain::products;
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::{ObjectBuilder, Schema, Type};
use utoipa::{PartialSchema, ToSchema};

macro_rules! words {
    ($($name:ident: $words:expr;)+) => {
        $(pub struct $name;

        impl PartialSchema for $name {
            fn schema() -> RefOr<Schema> {
                ObjectBuilder::new()
                    .schema_type(Type::String)
                    .enum_values(Some($words.iter().copied()))
                    .into()
            }
        }

        impl ToSchema for $name {})+
    };
}

words! {
    ChartFormat: ["vega-lite"];
    Version: ["v1"];
    AssetType: products::AssetType::WORDS;
    ProductStatus: products::ProductStatus::WORDS;
    ProductType: products::ProductType::WORDS;
    ResultType: products::ResultType::WORDS;
}
