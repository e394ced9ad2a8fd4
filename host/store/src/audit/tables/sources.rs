//! Where data comes from: connections, files, and the connectors that speak to sources.

use super::shape::Shown::{AsIs, Flag, Not, Secret, Time};
use super::shape::{Table, table};

/// A private connector is its company's; the platform's are of whoever acted.
const OF_SCOPE: &str = "CASE WHEN {}.scope = 'platform' THEN NULL ELSE {}.scope END";

pub(super) const CONNECTIONS: Table = table(
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
);

pub(super) const FILES: Table = Table {
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
};

pub(super) const CONNECTORS: Table = Table {
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
            ("error", AsIs),
        ],
    )
};

pub(super) const CONNECTOR_CHOICES: Table = Table {
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
            ("deactivated_at", Time),
            ("blocked", Flag),
            ("reason", AsIs),
        ],
    )
};

pub(super) const CONNECTOR_CANARIES: Table = Table {
    id: "{}.name",
    company: OF_SCOPE,
    ..table(
        "connector_canaries",
        "connector_canary",
        &[
            ("scope", AsIs),
            ("name", AsIs),
            ("version", AsIs),
            ("beside_version", AsIs),
            ("share_percent", AsIs),
            ("since", Time),
        ],
    )
};
