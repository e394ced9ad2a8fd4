//! The connection's settings. Host and port are the host's business: they never come here.

use serde::Deserialize;
use souk_sdk::{Error, SslMode};

/// `application_name` at the server unless the settings say otherwise.
const APPLICATION_NAME: &str = "souk";
/// A statement may run this long unless the settings say otherwise. The host's own deadline holds as well.
const STATEMENT_TIMEOUT_MS: u32 = 30_000;
/// The server measures the timeout in a signed 32-bit number.
const STATEMENT_TIMEOUT_MS_MAX: u32 = i32::MAX as u32;

/// JSON Schema of [`Settings`].
pub const SCHEMA: &str = r#"{
  "type": "object",
  "required": ["username", "database"],
  "properties": {
    "port": {"type": "integer", "minimum": 1, "maximum": 65535, "default": 5432, "title": "Port"},
    "username": {"type": "string", "minLength": 1, "maxLength": 63, "title": "User"},
    "password": {"type": "string", "writeOnly": true, "title": "Password"},
    "database": {"type": "string", "minLength": 1, "maxLength": 63, "title": "Database"},
    "ssl_mode": {"type": "string", "enum": ["disable", "require", "verify-ca", "verify-full"], "default": "require", "title": "TLS"},
    "statement_timeout_ms": {"type": "integer", "minimum": 1, "maximum": 2147483647, "default": 30000, "title": "Statement timeout in milliseconds"},
    "application_name": {"type": "string", "minLength": 1, "maxLength": 63, "default": "souk", "title": "Name shown at the server"},
    "pooler": {"type": "boolean", "default": false, "title": "Through a pooler in transaction mode (PgBouncer), or to Redshift"}
  }
}"#;

/// Fields that are not named here (host, port, …) are the host's and are ignored.
#[derive(Deserialize)]
pub struct Settings {
    pub username: String,
    #[serde(default)]
    pub password: String,
    pub database: String,
    #[serde(default)]
    pub ssl_mode: SslMode,
    pub statement_timeout_ms: Option<u32>,
    pub application_name: Option<String>,
    /// The backend is not the session's own, or takes no settings at login.
    #[serde(default)]
    pub pooler: bool,
}

impl Settings {
    pub fn parse(settings: &souk_sdk::Settings) -> Result<Settings, Error> {
        let parsed: Settings = settings.parse()?;
        let texts = [
            &parsed.username,
            &parsed.database,
            parsed.application_name.as_ref().unwrap_or(&parsed.database),
        ];
        if texts
            .iter()
            .any(|text| text.is_empty() || text.contains('\0'))
        {
            return Err(Error::configuration(
                "invalid_settings",
                "user, database and application name must not be empty or contain NUL",
            ));
        }
        Ok(parsed)
    }

    pub fn application_name(&self) -> &str {
        self.application_name.as_deref().unwrap_or(APPLICATION_NAME)
    }

    pub fn statement_timeout_ms(&self) -> u32 {
        self.statement_timeout_ms
            .unwrap_or(STATEMENT_TIMEOUT_MS)
            .min(STATEMENT_TIMEOUT_MS_MAX)
    }
}
