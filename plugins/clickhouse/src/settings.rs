//! The connection's settings. The address is the host's business, and so is `api_key`: the host sends it as a bearer itself.

use serde::Deserialize;
use souk_sdk::Error;

/// A statement may run this long unless the settings say otherwise. The host's own deadline holds as well.
const STATEMENT_TIMEOUT_MS: u32 = 30_000;

/// JSON Schema of [`Settings`].
pub const SCHEMA: &str = r#"{
  "type": "object",
  "required": ["base_url"],
  "properties": {
    "base_url": {"type": "string", "format": "uri", "title": "Address of the HTTP interface", "description": "https://host:8443, http://host:8123"},
    "username": {"type": "string", "minLength": 1, "maxLength": 256, "title": "User"},
    "password": {"type": "string", "maxLength": 1024, "writeOnly": true, "title": "Password"},
    "api_key": {"type": "string", "minLength": 1, "maxLength": 8192, "writeOnly": true, "title": "Token (JWT)", "x-souk-header": "authorization", "x-souk-header-prefix": "Bearer "},
    "database": {"type": "string", "minLength": 1, "maxLength": 206, "title": "Database", "description": "Where tables are that a statement names without one; the user's own if it is left out"},
    "statement_timeout_ms": {"type": "integer", "minimum": 1, "maximum": 2147483647, "default": 30000, "title": "Statement timeout in milliseconds"}
  }
}"#;

/// Fields that are not named here are the host's and are ignored.
#[derive(Deserialize)]
pub struct Settings {
    pub username: Option<String>,
    #[serde(default)]
    pub password: String,
    pub database: Option<String>,
    pub statement_timeout_ms: Option<u32>,
    /// Never told; a host that did not send it in our place would be noticed by what it is.
    #[serde(rename = "api_key")]
    _api_key: Option<String>,
}

impl Settings {
    pub fn parse(settings: &souk_sdk::Settings) -> Result<Settings, Error> {
        let parsed: Settings = settings.parse()?;
        let user = parsed.username.as_deref().unwrap_or_default();
        // They travel as headers: a line break would smuggle one.
        let broken = [user, &parsed.password]
            .iter()
            .any(|text| text.chars().any(char::is_control));
        if broken {
            return Err(Error::configuration(
                "invalid_settings",
                "neither user nor password may contain control characters",
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

#[cfg(test)]
mod tests {
    use super::*;
    use souk_sdk::ErrorClass;

    fn parse(json: &str) -> Result<Settings, Error> {
        Settings::parse(&souk_sdk::Settings {
            engine: "clickhouse".into(),
            json: json.into(),
        })
    }

    #[test]
    fn a_header_cannot_be_smuggled() {
        for json in [
            r#"{"username":"a\r\nX-ClickHouse-Database: b"}"#,
            r#"{"username":"a","password":"b\n"}"#,
            "[]",
        ] {
            let class = parse(json).err().map(|error| error.class);
            assert_eq!(class, Some(ErrorClass::Configuration), "{json}");
        }
        let parsed = parse(r#"{"username":"souk","password":"pässw'ord","base_url":"x"}"#).unwrap();
        assert_eq!(parsed.password, "pässw'ord");
    }

    #[test]
    fn the_schema_is_json_and_marks_the_secrets() {
        let schema: serde_json::Value = serde_json::from_str(SCHEMA).unwrap();
        for secret in ["password", "api_key"] {
            assert_eq!(schema["properties"][secret]["writeOnly"], true);
        }
    }
}
