//! What the audit log shows of each table's rows. A test holds this list against the schema: a new table or column has to be decided upon.

mod companies;
mod money;
mod products;
mod shape;
mod sources;
mod telling;

pub use shape::{Shown, Table};

/// The tables whose rows are audited.
pub const TABLES: &[Table] = &[
    companies::COMPANIES,
    companies::ACCOUNTS,
    companies::USERS,
    companies::API_KEYS,
    companies::SESSIONS,
    companies::INVITATIONS,
    sources::CONNECTIONS,
    sources::FILES,
    sources::CONNECTORS,
    sources::CONNECTOR_CHOICES,
    sources::CONNECTOR_CANARIES,
    products::PRODUCTS,
    products::ASSET_DETAILS,
    products::ENDPOINT_DETAILS,
    products::PRICES,
    products::PURCHASES,
    telling::WEBHOOKS,
    money::PAYOUT_METHODS,
    money::PAYOUTS,
    money::TOP_UPS,
    products::SAVED_SCHEMAS,
    products::FAVORITES,
    telling::ALERTS,
    telling::POSTS,
    telling::INTEGRATIONS,
    telling::PUBLICATIONS,
];

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
    ("failed_executions", "append only, the newest are kept"),
    ("recent_executions", "append only, the newest are kept"),
    ("refused_charges", "append only"),
    ("spent_nonces", "part of a sign-in"),
    ("unnamed_objects", "follow from files"),
    ("usage_days", "counts"),
    ("usage_times", "counts"),
    ("counted_lines", "counts"),
    ("search_products", "follow from products"),
    ("search_terms", "follow from products and companies"),
    ("search_variants", "follow from products and companies"),
    ("search_words_due", "follow from products and companies"),
    ("key_usage", "counts"),
    ("company_months", "counts"),
    ("idempotency", "kept answers"),
    ("kept_answers", "counts"),
    ("payment_events", "append only"),
    ("payments", "append only, with their events"),
    (
        "disputes",
        "providers tell them; what follows is noted by ledger::append",
    ),
    ("alert_events", "append only, written by evaluations"),
    ("post_views", "counts"),
    (
        "webhook_deliveries",
        "written with their cause; deliveries::retry notes what somebody wanted",
    ),
];
