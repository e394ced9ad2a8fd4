//! Credits that are bought, and earnings that are paid out.

use super::shape::Shown::{AsIs, Not, Secret, Time};
use super::shape::{Table, table};

pub(super) const PAYOUT_METHODS: Table = Table {
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
};

pub(super) const PAYOUTS: Table = table(
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
);

pub(super) const TOP_UPS: Table = table(
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
);
