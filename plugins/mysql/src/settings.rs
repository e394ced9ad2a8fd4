//! The connection's settings. Host and port are the host's business: they never come here.

use serde::Deserialize;
use souk_sdk::{Error, SslMode};

/// A statement may run this long unless the settings say otherwise. The host's own deadline holds as well.
const STATEMENT_TIMEOUT_MS: u32 = 30_000;

/// JSON Schema of [`Settings`].
pub const SCHEMA: &str = r#"{
  "type": "object",
  "required": ["username", "database"],
  "properties": {
    "port": {"type": "integer", "minimum": 1, "maximum": 65535, "default": 3306, "title": "Port"},
    "username": {"type": "string", "minLength": 1, "maxLength": 128, "title": "User"},
    "password": {"type": "string", "writeOnly": true, "title": "Password"},
    "database": {"type": "string", "minLength": 1, "maxLength": 64, "title": "Database"},
    "ssl_mode": {"type": "string", "enum": ["disable", "require", "verify-ca", "verify-full"], "default": "require", "title": "TLS"},
    "statement_timeout_ms": {"type": "integer", "minimum": 1, "maximum": 2147483647, "default": 30000, "title": "Statement timeout in milliseconds"}
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
}

impl Settings {
    pub fn parse(settings: &souk_sdk::Settings) -> Result<Settings, Error> {
        let parsed: Settings = settings.parse()?;
        let names = [&parsed.username, &parsed.database];
        if names
            .iter()
            .any(|text| text.is_empty() || text.contains('\0'))
            || parsed.password.contains('\0')
        {
            return Err(Error::configuration(
                "invalid_settings",
                "user and database must not be empty, and neither they nor the password may contain NUL",
            ));
        }
        Ok(parsed)
    }

    pub fn statement_timeout_ms(&self) -> u32 {
        self.statement_timeout_ms
            .unwrap_or(STATEMENT_TIMEOUT_MS)
            .max(1)
    }
}
