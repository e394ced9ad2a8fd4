//! The connection's settings. Who is asked is the host's business, and so is `api_key`: the host sends it as a bearer itself.

use serde::Deserialize;
use souk_sdk::Error;

/// A statement may run this long unless the settings say otherwise. The host's own deadline holds as well.
const STATEMENT_TIMEOUT_MS: u32 = 30_000;

/// JSON Schema of the settings.
pub const SCHEMA: &str = r#"{
  "type": "object",
  "required": ["base_url", "database"],
  "properties": {
    "base_url": {"type": "string", "format": "uri", "title": "Address of the account", "description": "https://myorg-account.snowflakecomputing.com"},
    "account": {"type": "string", "minLength": 1, "maxLength": 256, "pattern": "^[A-Za-z0-9_.-]+$", "title": "Account", "description": "myorg-account, as Snowflake names it (CURRENT_ORGANIZATION_NAME() and CURRENT_ACCOUNT_NAME()); with a private key only"},
    "username": {"type": "string", "minLength": 1, "maxLength": 256, "title": "User", "description": "With a private key only: a token says who asks"},
    "private_key": {"type": "string", "minLength": 1, "maxLength": 8192, "writeOnly": true, "title": "Private key", "description": "PEM (PKCS #8), RSA, without a passphrase"},
    "api_key": {"type": "string", "minLength": 1, "maxLength": 8192, "writeOnly": true, "title": "Token", "description": "A programmatic access token, or one of OAuth", "x-souk-header": "authorization", "x-souk-header-prefix": "Bearer "},
    "authenticator": {"type": "string", "enum": ["PROGRAMMATIC_ACCESS_TOKEN", "OAUTH"], "default": "PROGRAMMATIC_ACCESS_TOKEN", "title": "What the token is"},
    "database": {"type": "string", "minLength": 1, "maxLength": 512, "title": "Database", "description": "DATABASE, or DATABASE.SCHEMA, in the case in which Snowflake shows them: where tables are that a statement names without"},
    "warehouse": {"type": "string", "minLength": 1, "maxLength": 256, "title": "Warehouse", "description": "What statements run on, in the case in which Snowflake shows it; the user's own if it is left out"},
    "role": {"type": "string", "minLength": 1, "maxLength": 256, "title": "Role", "description": "One that may only read, in the case in which Snowflake shows it; the user's own if it is left out"},
    "statement_timeout_ms": {"type": "integer", "minimum": 1, "maximum": 2147483647, "default": 30000, "title": "Statement timeout in milliseconds"}
  }
}"#;

/// Fields that are not named here are the host's and are ignored.
#[derive(Deserialize)]
struct Given {
    account: Option<String>,
    username: Option<String>,
    private_key: Option<String>,
    authenticator: Option<TokenType>,
    database: String,
    warehouse: Option<String>,
    role: Option<String>,
    statement_timeout_ms: Option<u32>,
    /// Never told; a host that did not send it in our place would be noticed by what it is.
    #[serde(rename = "api_key")]
    _api_key: Option<String>,
}

/// What a token of the host's is.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum TokenType {
    #[default]
    ProgrammaticAccessToken,
    #[serde(rename = "OAUTH")]
    OAuth,
}

/// Who asks.
#[derive(Debug, PartialEq)]
pub enum Login {
    /// The host shows it.
    Token(TokenType),
    Key {
        account: String,
        username: String,
        pem: String,
    },
}

#[derive(Debug)]
pub struct Settings {
    pub login: Login,
    pub database: String,
    pub schema: Option<String>,
    pub warehouse: Option<String>,
    pub role: Option<String>,
    pub statement_timeout_ms: u32,
}

impl Settings {
    pub fn parse(settings: &souk_sdk::Settings) -> Result<Settings, Error> {
        let given: Given = settings.parse()?;
        let login = match (given.private_key, given.account, given.username) {
            (None, ..) => Login::Token(given.authenticator.unwrap_or_default()),
            (Some(pem), Some(account), Some(username)) => Login::Key {
                account,
                username,
                pem,
            },
            _ => {
                return Err(invalid(
                    "a private key needs the account and the username that it belongs to",
                ));
            }
        };
        let (database, schema) = match given.database.split_once('.') {
            Some((database, schema)) => (database.to_owned(), Some(schema.to_owned())),
            None => (given.database, None),
        };
        if database.is_empty() || schema.as_deref() == Some("") {
            return Err(invalid("database must be DATABASE or DATABASE.SCHEMA"));
        }
        Ok(Settings {
            login,
            database,
            schema,
            warehouse: given.warehouse,
            role: given.role,
            statement_timeout_ms: given
                .statement_timeout_ms
                .unwrap_or(STATEMENT_TIMEOUT_MS)
                .max(1),
        })
    }
}

fn invalid(message: &str) -> Error {
    Error::configuration("invalid_settings", message)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};
    use souk_sdk::ErrorClass;

    fn parse(settings: Value) -> Result<Settings, Error> {
        Settings::parse(&souk_sdk::Settings {
            engine: "snowflake".into(),
            json: settings.to_string(),
        })
    }

    #[test]
    fn who_asks_and_where() {
        let settings = parse(json!({"database": "SHOP.PUBLIC", "role": "READER"})).unwrap();
        let token = Login::Token(TokenType::ProgrammaticAccessToken);
        assert_eq!(settings.login, token);
        assert_eq!(
            (settings.database.as_str(), settings.schema.as_deref()),
            ("SHOP", Some("PUBLIC"))
        );
        let settings = parse(json!({"database": "SHOP", "authenticator": "OAUTH"})).unwrap();
        assert_eq!(settings.login, Login::Token(TokenType::OAuth));
        let key = json!({"database": "d", "private_key": "k", "account": "a", "username": "u", "statement_timeout_ms": 0});
        let settings = parse(key).unwrap();
        assert!(matches!(settings.login, Login::Key { .. }));
        assert_eq!(settings.statement_timeout_ms, 1);
    }

    #[test]
    fn what_does_not_fit_is_the_sellers() {
        for settings in [
            json!({}),
            json!({"database": ""}),
            json!({"database": "a."}),
            json!({"database": "a", "authenticator": "KEYPAIR_JWT"}),
            json!({"database": "a", "private_key": "k", "account": "a"}),
        ] {
            let error = parse(settings.clone()).unwrap_err();
            assert_eq!(error.class, ErrorClass::Configuration, "{settings}");
        }
    }

    #[test]
    fn the_schema_is_json_and_marks_the_secrets() {
        let schema: Value = serde_json::from_str(SCHEMA).unwrap();
        for secret in ["private_key", "api_key"] {
            assert_eq!(schema["properties"][secret]["writeOnly"], true);
        }
    }
}
