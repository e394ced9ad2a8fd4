//! The connection's settings.

use serde::Deserialize;
use souk_sdk::{Error, SslMode};

/// A statement may run this long unless the settings say otherwise. The host's own deadline holds as well.
const STATEMENT_TIMEOUT_MS: u32 = 30_000;
/// What the protocol has room for (MS-TDS 2.2.6.4), in its own characters.
const NAME_UNITS_MAX: usize = 128;

/// JSON Schema of [`Settings`].
pub const SCHEMA: &str = r#"{
  "type": "object",
  "required": ["username", "password", "database"],
  "properties": {
    "host": {"type": "string", "title": "Host"},
    "port": {"type": "integer", "minimum": 1, "maximum": 65535, "default": 1433, "title": "Port"},
    "username": {"type": "string", "minLength": 1, "maxLength": 128, "title": "Login", "description": "a login of SQL Server's own, which may only read"},
    "password": {"type": "string", "minLength": 1, "maxLength": 128, "writeOnly": true, "title": "Password"},
    "database": {"type": "string", "minLength": 1, "maxLength": 128, "title": "Database"},
    "ssl_mode": {"type": "string", "enum": ["require", "verify-ca", "verify-full"], "default": "require", "title": "TLS", "description": "never without: a login only scrambles its password"},
    "tds_version": {"type": "string", "enum": ["7.4", "8.0"], "default": "7.4", "title": "Version of TDS", "description": "8.0: TLS before anything else (strict encryption), of SQL Server 2022 and later"},
    "application_intent": {"type": "string", "enum": ["ReadWrite", "ReadOnly"], "default": "ReadWrite", "title": "Application intent", "description": "ReadOnly, for a secondary replica that takes no others"},
    "statement_timeout_ms": {"type": "integer", "minimum": 1, "maximum": 2147483647, "default": 30000, "title": "Statement timeout in milliseconds"}
  }
}"#;

#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq)]
pub enum Version {
    #[default]
    #[serde(rename = "7.4")]
    V7,
    /// TLS stands before the first packet.
    #[serde(rename = "8.0")]
    V8,
}

#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq)]
pub enum Intent {
    #[default]
    ReadWrite,
    ReadOnly,
}

/// Fields that are not named here are the host's and are ignored.
#[derive(Deserialize)]
pub struct Settings {
    /// Where the server is. Who connects is the host; a login repeats it.
    pub host: Option<String>,
    pub username: String,
    pub password: String,
    pub database: String,
    #[serde(default)]
    ssl_mode: SslMode,
    #[serde(default)]
    pub tds_version: Version,
    #[serde(default)]
    pub application_intent: Intent,
    statement_timeout_ms: Option<u32>,
}

impl Settings {
    pub fn parse(settings: &souk_sdk::Settings) -> Result<Settings, Error> {
        let parsed: Settings = settings.parse()?;
        let fits = |text: &str| {
            let units = text.encode_utf16().count();
            (1..=NAME_UNITS_MAX).contains(&units) && !text.contains('\0')
        };
        let host = parsed.host.as_deref().unwrap_or("-");
        if ![&parsed.username, &parsed.password, &parsed.database]
            .into_iter()
            .all(|text| fits(text))
            || !fits(host)
        {
            return Err(Error::configuration(
                "invalid_settings",
                "host, login, password and database have 1 to 128 characters each, and none that is NUL",
            ));
        }
        if parsed.ssl_mode == SslMode::Disable {
            return Err(Error::configuration(
                "cleartext_refused",
                "SQL Server's login only scrambles its password, so it is sent within TLS or not at all: set ssl_mode to require, verify-ca or verify-full",
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

    fn parse(more: &str) -> Result<Settings, Error> {
        Settings::parse(&souk_sdk::Settings {
            engine: "sqlserver".into(),
            json: format!(
                r#"{{"username": "souk", "password": "pässw'ord", "database": "shop", "host": "db"{more}}}"#
            ),
        })
    }

    /// A password is scrambled only, so nothing is sent without TLS.
    #[test]
    fn a_password_is_sealed_or_not_sent() {
        let error = parse(r#", "ssl_mode": "disable""#).err().unwrap();
        assert_eq!(error.code, "cleartext_refused");
        for mode in ["require", "verify-ca", "verify-full"] {
            parse(&format!(r#", "ssl_mode": "{mode}""#)).ok().unwrap();
        }
    }

    #[test]
    fn versions_are_the_protocols() {
        assert_eq!(parse("").ok().unwrap().tds_version, Version::V7);
        let strict = parse(r#", "tds_version": "8.0""#).ok().unwrap();
        assert_eq!(strict.tds_version, Version::V8);
        let other = parse(r#", "tds_version": "9.0""#).err().unwrap();
        assert_eq!(other.code, "invalid_settings");
    }

    #[test]
    fn names_fit_into_a_login() {
        let long = "x".repeat(129);
        for wrong in [
            r#", "username": """#,
            r#", "database": "a\u0000b""#,
            &format!(r#", "password": "{long}""#),
        ] {
            // The last of two members is taken, or none.
            let text = format!(r#"{{"engine": "x"{wrong}}}"#);
            assert!(parse(wrong).is_err(), "{text}");
        }
    }
}
