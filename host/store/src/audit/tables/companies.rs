//! Companies and who acts in them.

use super::shape::Shown::{AsIs, Flag, Not, Secret, Time};
use super::shape::{Table, table};

pub(super) const COMPANIES: Table = Table {
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
            ("status_reason", AsIs),
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
};

// Balances are the ledger's, which is a log of its own.
pub(super) const ACCOUNTS: Table = Table {
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
};

pub(super) const USERS: Table = table(
    "users",
    "user",
    &[
        ("id", Not),
        ("company_id", Not),
        // Empty: where the address was while it was unique in all companies.
        ("former_email", Not),
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
);

pub(super) const API_KEYS: Table = table(
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
);

pub(super) const SESSIONS: Table = table(
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
);

pub(super) const INVITATIONS: Table = Table {
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
};
