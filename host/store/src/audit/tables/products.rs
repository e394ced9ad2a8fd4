//! What is sold, at which price, and who has bought it or remembers it.

use super::shape::Shown::{AsIs, Flag, Json, Not, Time};
use super::shape::{Table, table};

pub(super) const PRODUCTS: Table = table(
    "products",
    "product",
    &[
        ("id", Not),
        ("product_type", AsIs),
        ("company_id", Not),
        ("user_id", AsIs),
        ("connection_id", AsIs),
        ("name", AsIs),
        ("slug", AsIs),
        ("description", AsIs),
        ("category", AsIs),
        ("labels", Json),
        ("timeout_ms", AsIs),
        ("allow_ai_training", Flag),
        ("status", AsIs),
        ("learned", Not),
        ("sample", Not),
        ("sampled_at", Not),
        ("created_at", Not),
        ("updated_at", Not),
        ("published_at", Time),
    ],
);

pub(super) const ASSET_DETAILS: Table = Table {
    company: "NULL",
    ..table(
        "asset_details",
        "asset_details",
        &[
            ("id", Not),
            ("asset_type", AsIs),
            ("sport", AsIs),
            ("source_kind", AsIs),
            ("source", AsIs),
            ("parameters", Json),
            ("result_type", AsIs),
            ("unit", AsIs),
            ("visualization", Json),
            ("prediction", Json),
            ("privacy", Json),
            ("freshness_column", AsIs),
        ],
    )
};

pub(super) const ENDPOINT_DETAILS: Table = Table {
    company: "NULL",
    ..table(
        "endpoint_details",
        "endpoint_details",
        &[
            ("id", Not),
            ("source_schema", AsIs),
            ("source_table", AsIs),
            ("sql_logic", AsIs),
            ("fields", Json),
            ("order_by", Json),
            ("filters", Json),
            ("sorts", Json),
            ("default_limit", AsIs),
            ("max_limit", AsIs),
        ],
    )
};

pub(super) const PRICES: Table = Table {
    id: "{}.price_id",
    ..table(
        "prices",
        "price",
        &[
            ("price_id", Not),
            ("company_id", Not),
            ("product_id", AsIs),
            ("price_credits", AsIs),
            ("price_cents", AsIs),
            ("discount_percent", AsIs),
            ("original_price_credits", AsIs),
            ("effective_from", Time),
            ("effective_to", Time),
            ("ends_at", Time),
            ("resumes", AsIs),
            ("created_by", AsIs),
            ("created_at", Not),
            ("updated_at", Not),
        ],
    )
};

pub(super) const PURCHASES: Table = Table {
    id: "{}.purchase_id",
    ..table(
        "purchases",
        "purchase",
        &[
            ("purchase_id", Not),
            ("company_id", Not),
            ("seller_company_id", AsIs),
            ("product_id", AsIs),
            ("product_type", AsIs),
            ("price_credits", AsIs),
            ("ai_training_allowed", Flag),
            ("terms_version", AsIs),
            ("accepted_by", AsIs),
            ("accepted_at", Time),
            ("status", AsIs),
            ("endpoint_key_id", AsIs),
            ("created_at", Not),
        ],
    )
};

pub(super) const SAVED_SCHEMAS: Table = Table {
    id: "{}.asset_id",
    ..table(
        "saved_schemas",
        "saved_schema",
        &[
            ("asset_id", Not),
            ("company_id", Not),
            ("saved_schema", Json),
            ("saved_at", Not),
            ("bytes", Not),
        ],
    )
};

pub(super) const FAVORITES: Table = table(
    "favorites",
    "favorite",
    &[
        ("id", Not),
        ("company_id", Not),
        ("user_id", AsIs),
        ("product_type", AsIs),
        ("product_id", AsIs),
        ("category", AsIs),
        ("note", AsIs),
        ("created_at", Not),
        ("updated_at", Not),
    ],
);
