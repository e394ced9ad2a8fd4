//! What the audit log shows of each table's rows. A test holds this list against the schema: a new table or column has to be decided upon.

/// How a column is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shown {
    AsIs,
    /// Microseconds, shown as an instant.
    Time,
    /// 0 or 1, shown as a boolean.
    Flag,
    /// Text that is JSON.
    Json,
    /// Only that it is there, and that it changed.
    Secret,
    /// Not at all: nobody decides it, or others show it. A change of nothing else leaves no line.
    Not,
}

use Shown::{AsIs, Flag, Json, Not, Secret, Time};

/// A table whose rows are audited.
pub struct Table {
    pub name: &'static str,
    /// What its rows are called.
    pub subject: &'static str,
    /// Which row it is, as SQL; `{}` is the row.
    pub id: &'static str,
    /// Whose row it is, as SQL that may be NULL: then it is the company that was acted in.
    pub company: &'static str,
    /// False: rows come and go with something else, and only changes are of interest.
    pub whole: bool,
    pub columns: &'static [(&'static str, Shown)],
}

const fn table(
    name: &'static str,
    subject: &'static str,
    columns: &'static [(&'static str, Shown)],
) -> Table {
    Table {
        name,
        subject,
        id: "{}.id",
        company: "{}.company_id",
        whole: true,
        columns,
    }
}

pub const TABLES: &[Table] = &[
    Table {
        company: "{}.id",
        ..table(
            "companies",
            "company",
            &[
                ("id", Not),
                ("handle", AsIs),
                ("name", AsIs),
                ("description", AsIs),
                ("status", AsIs),
                ("plan", AsIs),
                ("is_platform", Flag),
                ("website", AsIs),
                ("logo_url", AsIs),
                ("industry_id", AsIs),
                ("country", AsIs),
                ("contact_email", AsIs),
                ("created_at", Not),
                ("updated_at", Not),
            ],
        )
    },
    // Balances are the ledger's, which is a log of its own.
    Table {
        whole: false,
        ..table(
            "accounts",
            "account",
            &[
                ("id", Not),
                ("kind", Not),
                ("company_id", Not),
                ("balance_cents", Not),
                ("held_cents", Not),
                ("low_credits", AsIs),
            ],
        )
    },
    table(
        "users",
        "user",
        &[
            ("id", Not),
            ("company_id", Not),
            ("email", AsIs),
            ("email_verified", Flag),
            ("name", AsIs),
            ("avatar_url", AsIs),
            ("role", AsIs),
            ("job_function_id", AsIs),
            ("status", AsIs),
            ("auth_provider", AsIs),
            ("auth_subject", AsIs),
            ("last_login_at", Not),
            ("created_at", Not),
            ("updated_at", Not),
            ("deleted_at", Time),
        ],
    ),
    table(
        "api_keys",
        "api_key",
        &[
            ("id", Not),
            ("company_id", Not),
            ("user_id", AsIs),
            ("key_type", AsIs),
            ("endpoint_id", AsIs),
            ("purchase_id", AsIs),
            ("name", AsIs),
            ("description", AsIs),
            ("digest", Secret),
            ("last4", AsIs),
            ("role", AsIs),
            ("permissions", AsIs),
            ("rate_limit", AsIs),
            ("created_by", AsIs),
            ("created_at", Not),
            ("updated_at", Not),
            ("expires_at", Time),
            ("deactivated_at", Time),
            ("revoked_by", AsIs),
            ("revocation_reason", AsIs),
            ("reason_code", AsIs),
            ("first_used_at", Not),
            ("last_used_at", Not),
            ("usage_count", Not),
            ("failed_count", Not),
        ],
    ),
    table(
        "sessions",
        "session",
        &[
            ("id", Not),
            ("company_id", Not),
            ("user_id", AsIs),
            ("digest", Secret),
            ("auth_provider", AsIs),
            ("address", AsIs),
            ("user_agent", AsIs),
            ("created_at", Not),
            ("last_seen_at", Not),
            ("expires_at", Time),
        ],
    ),
    Table {
        id: "{}.user_id",
        ..table(
            "invitations",
            "invitation",
            &[
                ("user_id", Not),
                ("company_id", Not),
                ("digest", Secret),
                ("is_mailed", Flag),
                ("created_at", Not),
                ("expires_at", Time),
            ],
        )
    },
    table(
        "connections",
        "connection",
        &[
            ("id", Not),
            ("company_id", Not),
            ("user_id", AsIs),
            ("engine_id", AsIs),
            ("name", AsIs),
            ("credential_type", AsIs),
            ("credentials", Secret),
            ("host", AsIs),
            ("port", AsIs),
            ("database_name", AsIs),
            ("ssl_mode", AsIs),
            ("base_url", AsIs),
            ("ca_pem", AsIs),
            ("cloud_provider_id", AsIs),
            ("verified_usage_ability", Flag),
            ("statement_timeout_ms", AsIs),
            ("revision", Not),
            ("status", AsIs),
            ("last_tested_at", Time),
            ("last_error", AsIs),
            ("created_at", Not),
            ("updated_at", Not),
            ("deleted_at", Time),
        ],
    ),
    Table {
        id: "{}.name",
        ..table(
            "files",
            "file",
            &[
                ("company_id", Not),
                ("name", AsIs),
                ("upload_id", Not),
                ("size_bytes", AsIs),
                ("sha256", AsIs),
                ("created_at", Not),
                ("updated_at", Time),
            ],
        )
    },
    Table {
        id: "{}.name || '/' || {}.version",
        company: OF_SCOPE,
        ..table(
            "connectors",
            "connector",
            &[
                ("scope", AsIs),
                ("name", AsIs),
                ("version", AsIs),
                ("digest", AsIs),
                ("size_bytes", AsIs),
                ("uploaded_by", AsIs),
                ("created_at", Not),
                ("described", Not),
            ],
        )
    },
    Table {
        id: "{}.name",
        company: OF_SCOPE,
        ..table(
            "connector_choices",
            "connector_choice",
            &[
                ("scope", AsIs),
                ("name", AsIs),
                ("version", AsIs),
                ("previous_version", AsIs),
                ("activated_at", Time),
            ],
        )
    },
    table(
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
    ),
    Table {
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
    },
    Table {
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
    },
    Table {
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
                ("created_by", AsIs),
                ("created_at", Not),
                ("updated_at", Not),
            ],
        )
    },
    Table {
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
    },
    table(
        "webhooks",
        "webhook",
        &[
            ("id", Not),
            ("company_id", Not),
            ("url", AsIs),
            ("description", AsIs),
            ("event_types", Json),
            ("is_active", Flag),
            ("secret", Secret),
            ("former_secret", Not),
            ("former_secret_until", Time),
            ("failing_since", Not),
            ("failed_at", Not),
            ("disabled_at", Not),
            ("disabled_reason", AsIs),
            ("created_at", Not),
            ("updated_at", Not),
        ],
    ),
    Table {
        id: "{}.company_id",
        ..table(
            "payout_methods",
            "payout_method",
            &[
                ("company_id", Not),
                ("type", AsIs),
                ("account_holder", AsIs),
                ("destination", Secret),
                ("destination_last4", AsIs),
                ("created_at", Not),
                ("updated_at", Not),
            ],
        )
    },
    table(
        "payouts",
        "payout",
        &[
            ("id", Not),
            ("company_id", Not),
            ("amount_cents", AsIs),
            ("status", AsIs),
            ("type", AsIs),
            ("account_holder", AsIs),
            ("destination", Secret),
            ("destination_last4", AsIs),
            ("failure_reason", AsIs),
            ("reference", AsIs),
            ("api_key_id", AsIs),
            ("created_at", Not),
            ("updated_at", Not),
            ("paid_at", Time),
        ],
    ),
    table(
        "top_ups",
        "top_up",
        &[
            ("id", Not),
            ("company_id", Not),
            ("credits", AsIs),
            ("provider", AsIs),
            ("payment_method", AsIs),
            ("status", AsIs),
            ("provider_reference", AsIs),
            // Whoever has it can pay, or see who does.
            ("checkout_url", Secret),
            ("failure_reason", AsIs),
            ("reference", AsIs),
            ("api_key_id", AsIs),
            ("created_at", Not),
            ("settled_at", Time),
            ("idempotency_key", Not),
        ],
    ),
    Table {
        id: "{}.asset_id",
        ..table(
            "saved_schemas",
            "saved_schema",
            &[
                ("asset_id", Not),
                ("company_id", Not),
                ("saved_schema", Json),
                ("saved_at", Not),
            ],
        )
    },
    table(
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
    ),
    table(
        "alerts",
        "alert",
        &[
            ("id", Not),
            ("company_id", Not),
            ("user_id", AsIs),
            ("asset_id", AsIs),
            ("name", AsIs),
            ("params", Json),
            ("operator", AsIs),
            ("threshold", Json),
            ("answer_field", AsIs),
            ("check_interval_seconds", AsIs),
            ("consecutive_breaches", AsIs),
            ("rearm_seconds", AsIs),
            ("webhook_ids", Json),
            ("max_credits_per_day", AsIs),
            ("notify_by_mail", Flag),
            ("is_active", Flag),
            ("created_at", Not),
            ("updated_at", Not),
            // What follows is found by evaluations; its events tell of it.
            ("revision", Not),
            ("state", Not),
            ("breaches", Not),
            ("delays", Not),
            ("last_value", Not),
            ("history", Not),
            ("last_checked_at", Not),
            ("last_triggered_at", Not),
            ("last_error", Not),
            ("spent_on", Not),
            ("spent_credits", Not),
            ("next_check_at", Not),
            ("claimed_by", Not),
            ("lease_until", Not),
        ],
    ),
    table(
        "posts",
        "post",
        &[
            ("id", Not),
            ("company_id", Not),
            ("user_id", AsIs),
            ("title", AsIs),
            ("slug", AsIs),
            ("summary", AsIs),
            ("body_markdown", AsIs),
            ("cover_image_url", AsIs),
            ("tags", Json),
            ("asset_ids", Json),
            ("status", AsIs),
            ("view_count", Not),
            ("published_at", Not),
            ("created_at", Not),
            ("updated_at", Not),
        ],
    ),
];

/// A private connector is its company's; the platform's are of whoever acted.
const OF_SCOPE: &str = "CASE WHEN {}.scope = 'platform' THEN NULL ELSE {}.scope END";

/// Tables whose rows are not audited by a trigger, and why.
pub const NOT_AUDITED: &[(&str, &str)] = &[
    ("audit_acting", "is the log"),
    ("audit_log", "is the log"),
    ("schema_migrations", "the installation's own"),
    ("settings", "the installation's own"),
    ("charge_log", "the installation's own"),
    ("storage_engines", "follow from connectors"),
    ("retired_handles", "follow from companies"),
    ("connector_chunks", "follow from connectors"),
    (
        "transactions",
        "append only; all but charges are noted by ledger::append",
    ),
    ("entries", "append only, with their transaction"),
    ("holds", "part of a run"),
    ("executions", "append only"),
    ("refused_charges", "append only"),
    ("usage_days", "counts"),
    ("search_products", "follow from products"),
    ("search_terms", "follow from products and companies"),
    ("search_variants", "follow from products and companies"),
    ("key_usage", "counts"),
    ("idempotency", "kept answers"),
    ("kept_answers", "counts"),
    ("payment_events", "append only"),
    ("alert_events", "append only, written by evaluations"),
    ("post_views", "counts"),
    (
        "webhook_deliveries",
        "written with their cause; deliveries::retry notes what somebody wanted",
    ),
];
