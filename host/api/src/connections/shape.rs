//! A connection as clients write and read it.

use crate::fields::some;
use crate::words;
use crate::{AnyObject, FieldError, Patch};
use serde::de::{self, Deserializer, Visitor};
use serde::{Deserialize, Serialize};
use souk_app::connections::Input;
use souk_app::connections::check::Report;
use souk_app::connections::routings::Probe;
use souk_domain::fields::FieldErrors;
use souk_domain::time::Timestamp;
use souk_store::connections::Connection;
use std::fmt;
use utoipa::ToSchema;

/// Longest function name or path that is probed.
const PROBE_CHARS_MAX: usize = 1_000;

/// A text with JSON in it. An object is what is tried first here: what is wanted instead is shown.
fn json_text<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    struct JsonText;

    impl Visitor<'_> for JsonText {
        type Value = Option<String>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str(
                r#"JSON as text, such as "{\"username\": \"reader\", \"password\": \"…\"}""#,
            )
        }

        fn visit_str<E: de::Error>(self, text: &str) -> Result<Option<String>, E> {
            Ok(Some(text.to_owned()))
        }
    }

    deserializer.deserialize_str(JsonText)
}

/// A connection to save. Which members are needed beside the required ones depends on the engine:
/// see `connection_fields` of `GET /storage-engines`.
#[derive(Clone, Debug, Default, Deserialize, ToSchema)]
pub struct ConnectionIn {
    /// A user of the company; the key's user when absent.
    pub user_id: Option<String>,
    /// Cannot be changed.
    #[serde(default, deserialize_with = "some")]
    #[schema(value_type = i64, required = true, minimum = 1)]
    pub engine_id: Option<i64>,
    #[serde(default, deserialize_with = "some")]
    #[schema(value_type = String, required = true, min_length = 1, max_length = 255)]
    pub name: Option<String>,
    /// As the engine lists.
    #[serde(default, deserialize_with = "some")]
    #[schema(value_type = words::CredentialType, required = true)]
    pub credential_type: Option<String>,
    /// A JSON object as text, `"{}"` for `NONE`. `host`, `port`, `database`, `ssl_mode` and `base_url` are also read from it when they are
    /// absent here.
    #[serde(default, deserialize_with = "json_text")]
    #[schema(value_type = String, required = true, max_length = 32768, write_only)]
    pub credentials: Option<String>,
    #[serde(default)]
    #[schema(value_type = Option<String>, max_length = 253)]
    pub host: Patch<String>,
    #[serde(default)]
    #[schema(value_type = Option<i64>, minimum = 1, maximum = 65535)]
    pub port: Patch<i64>,
    /// SQL servers: the database. File engines: the name of one of the company's files.
    #[serde(default)]
    #[schema(value_type = Option<String>, max_length = 255)]
    pub database: Patch<String>,
    /// Default `require`.
    #[serde(default)]
    #[schema(value_type = Option<words::SslMode>)]
    pub ssl_mode: Patch<String>,
    #[serde(default)]
    #[schema(value_type = Option<String>, max_length = 2048)]
    pub base_url: Patch<String>,
    /// PEM of the authorities to trust instead of the public ones (also accepted as `ssl_root_cert`).
    #[serde(alias = "ssl_root_cert")]
    #[serde(default)]
    #[schema(value_type = Option<String>, max_length = 65536)]
    pub ca_pem: Patch<String>,
    #[serde(default)]
    #[schema(value_type = Option<i64>, minimum = 1)]
    pub cloud_provider_id: Patch<i64>,
    pub verified_usage_ability: Option<bool>,
    /// Default 10000.
    #[schema(minimum = 100, maximum = 60000)]
    pub statement_timeout_ms: Option<i64>,
}

impl ConnectionIn {
    pub fn into_input(self) -> Input {
        Input {
            user_id: self.user_id,
            engine_id: self.engine_id,
            name: self.name,
            credential_type: self.credential_type,
            credentials: self.credentials,
            host: given(self.host),
            port: given(self.port),
            database: given(self.database),
            ssl_mode: given(self.ssl_mode),
            base_url: given(self.base_url),
            ca_pem: given(self.ca_pem),
            cloud_provider_id: given(self.cloud_provider_id),
            verified_usage_ability: self.verified_usage_ability,
            statement_timeout_ms: self.statement_timeout_ms,
        }
    }
}

fn given<T>(member: Patch<T>) -> Option<Option<T>> {
    match member {
        Patch::Absent => None,
        Patch::Null => Some(None),
        Patch::Value(value) => Some(Some(value)),
    }
}

#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Connection)]
pub struct ConnectionOut {
    pub id: String,
    pub connection_id: String,
    pub company_id: String,
    pub user_id: String,
    pub engine_id: i64,
    /// The engine's slug.
    pub engine: String,
    pub name: String,
    #[schema(value_type = words::CredentialType)]
    pub credential_type: String,
    pub has_credentials: bool,
    pub host: Option<String>,
    #[schema(minimum = 1, maximum = 65535)]
    pub port: Option<i64>,
    pub database: Option<String>,
    #[schema(value_type = Option<words::SslMode>)]
    pub ssl_mode: Option<String>,
    pub base_url: Option<String>,
    pub ca_pem: Option<String>,
    pub cloud_provider_id: Option<i64>,
    pub verified_usage_ability: bool,
    #[schema(minimum = 0)]
    pub statement_timeout_ms: i64,
    #[schema(value_type = words::ConnectionStatus)]
    pub status: String,
    #[schema(value_type = Option<String>, format = DateTime)]
    pub last_tested_at: Option<Timestamp>,
    pub last_error: Option<String>,
    /// Only where a change was tested just now, which says nothing about them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub untested_products: Option<UntestedProducts>,
    #[schema(value_type = String, format = DateTime)]
    pub created_at: Timestamp,
    #[schema(value_type = String, format = DateTime)]
    pub updated_at: Timestamp,
}

/// How many published products are answered from what a changed connection, or one with another file, reaches now.
#[derive(Debug, Serialize, ToSchema)]
pub struct UntestedProducts {
    #[schema(minimum = 0)]
    pub assets: i64,
    #[schema(minimum = 0)]
    pub endpoints: i64,
}

impl From<Connection> for ConnectionOut {
    fn from(row: Connection) -> ConnectionOut {
        ConnectionOut {
            id: row.id.to_string(),
            connection_id: row.id.to_string(),
            company_id: row.company_id.to_string(),
            user_id: row.user_id.to_string(),
            engine_id: row.engine_id,
            engine: row.engine,
            name: row.name,
            has_credentials: row.credential_type != "NONE",
            credential_type: row.credential_type,
            host: row.host,
            port: row.port,
            database: row.database,
            ssl_mode: row.ssl_mode,
            base_url: row.base_url,
            ca_pem: row.ca_pem,
            cloud_provider_id: row.cloud_provider_id,
            verified_usage_ability: row.verified_usage_ability,
            statement_timeout_ms: row.statement_timeout_ms,
            status: row.status,
            last_tested_at: row.last_tested_at,
            last_error: row.last_error,
            untested_products: None,
            created_at: row.created_at,
            updated_at: row.updated_at,
        }
    }
}

/// Seller APIs: the function to call on both routings. Absent: one of an asset of the connection.
#[derive(Clone, Debug, Default, Deserialize, ToSchema)]
pub struct ProbeIn {
    #[schema(min_length = 1, max_length = 1000)]
    pub function_id: Option<String>,
    /// Of direct routing; `/` and the function's name when absent.
    #[schema(max_length = 1000, pattern = "^/[!-~]*$")]
    pub path: Option<String>,
    #[schema(value_type = Option<AnyObject>)]
    pub params: Option<serde_json::Map<String, serde_json::Value>>,
}

impl ProbeIn {
    pub fn into_probe(self) -> Result<Option<Probe>, Vec<FieldError>> {
        let mut errors = FieldErrors::default();
        let mut check = |field: &str, text: Option<&str>, right: bool, what: &str| {
            if text.is_some_and(|text| !right || text.is_empty() || text.len() > PROBE_CHARS_MAX) {
                errors.add(field, "invalid", what);
            }
        };
        let path = self.path.as_deref();
        let is_path = path.is_some_and(|path| {
            path.starts_with('/') && path.bytes().all(|byte| byte.is_ascii_graphic())
        });
        let function = self.function_id.as_deref();
        check(
            "function_id",
            function,
            true,
            "must be a text of 1 to 1000 characters",
        );
        check(
            "path",
            path,
            is_path,
            "must begin with / and be percent-encoded",
        );
        let params = serde_json::Value::Object(self.params.unwrap_or_default()).to_string();
        errors.or(match (function, path) {
            (None, None) => None,
            (Some(function), path) => Some(Probe::new(function, path, params)),
            (None, Some(path)) => {
                Some(Probe::new(path.trim_start_matches('/'), Some(path), params))
            }
        })
    }
}

#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ConnectionTest)]
pub struct TestOut {
    pub success: bool,
    pub latency_ms: u64,
    pub server_version: Option<String>,
    /// Whether the source was seen to refuse a write; null where that has no meaning.
    pub read_only_verified: Option<bool>,
    pub warnings: Vec<String>,
    /// What is wrong and what to do; null when the connection works.
    pub error: Option<String>,
}

impl From<Report> for TestOut {
    fn from(report: Report) -> TestOut {
        TestOut {
            success: report.success(),
            latency_ms: report.latency_ms,
            server_version: report.server_version,
            read_only_verified: report.read_only_verified,
            warnings: report.warnings,
            error: report.error,
        }
    }
}
