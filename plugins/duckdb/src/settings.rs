//! The connection's settings. Where the server is is the host's business; the token is told in the first message of each connection.

use serde::Deserialize;
use souk_sdk::Error;

/// A statement may run this long unless the settings say otherwise. The host's own deadline holds as well.
const STATEMENT_TIMEOUT_MS: u32 = 30_000;
/// The schema that every database has.
const MAIN: &str = "main";

/// JSON Schema of [`Settings`].
pub const SCHEMA: &str = r#"{
  "type": "object",
  "required": ["base_url", "api_key"],
  "properties": {
    "base_url": {"type": "string", "format": "uri", "title": "Address of the Quack server", "description": "https://host, of the proxy that ends TLS; http://host:9494"},
    "api_key": {"type": "string", "minLength": 4, "maxLength": 8192, "writeOnly": true, "title": "Token of the server"},
    "database": {"type": "string", "minLength": 1, "maxLength": 512, "title": "Database", "description": "database, or database.schema: where tables are that a statement names without; the server's own if it is left out"},
    "statement_timeout_ms": {"type": "integer", "minimum": 1, "maximum": 2147483647, "default": 30000, "title": "Statement timeout in milliseconds"}
  }
}"#;

/// Fields that are not named here are the host's and are ignored.
#[derive(Deserialize)]
struct Given {
    api_key: String,
    database: Option<String>,
    statement_timeout_ms: Option<u32>,
}

pub struct Settings {
    pub token: String,
    /// A database, and perhaps a schema of it.
    pub database: Option<(String, Option<String>)>,
    pub statement_timeout_ms: u32,
}

impl Settings {
    pub fn parse(settings: &souk_sdk::Settings) -> Result<Settings, Error> {
        let given: Given = settings.parse()?;
        if given.api_key.is_empty() {
            return Err(invalid("api_key must be the token of the server"));
        }
        let database = given.database.map(|names| match names.split_once('.') {
            Some((database, schema)) => (database.to_owned(), Some(schema.to_owned())),
            None => (names, None),
        });
        let is_name = |name: &str| !name.is_empty() && !name.contains('\0');
        let is_named = match &database {
            None => true,
            Some((database, schema)) => is_name(database) && schema.as_deref().is_none_or(is_name),
        };
        match is_named {
            true => Ok(Settings {
                token: given.api_key,
                database,
                statement_timeout_ms: given
                    .statement_timeout_ms
                    .unwrap_or(STATEMENT_TIMEOUT_MS)
                    .max(1),
            }),
            false => Err(invalid("database must be database or database.schema")),
        }
    }

    /// Whether a connection that was put to where tables are stays there. A schema that is dropped is not missed: DuckDB looks into `main` then, where a table
    /// of the same name is another one. `main` cannot be dropped, and a database that is detached is missed.
    pub fn stays_used(&self) -> bool {
        match &self.database {
            None => true,
            Some((_, schema)) => schema.as_deref() == Some(MAIN),
        }
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

    fn parse(more: Value) -> Result<Settings, Error> {
        let mut settings = json!({"base_url": "https://duck.example.com", "api_key": "token"});
        for (name, value) in more.as_object().unwrap() {
            settings[name] = value.clone();
        }
        Settings::parse(&souk_sdk::Settings {
            engine: "duckdb".into(),
            json: settings.to_string(),
        })
    }

    #[test]
    fn a_database_may_have_a_schema() {
        let database = |name: &str| parse(json!({"database": name})).ok().unwrap().database;
        assert_eq!(database("lake"), Some(("lake".into(), None)));
        let both = Some(("lake".into(), Some("shop".into())));
        assert_eq!(database("lake.shop"), both);
        assert!(parse(json!({})).ok().unwrap().database.is_none());
    }

    /// Of one name DuckDB says whether it is a database or a schema.
    #[test]
    fn what_may_be_dropped_is_used_anew() {
        let stays = |more: Value| parse(more).ok().unwrap().stays_used();
        assert!(stays(json!({})) && stays(json!({"database": "lake.main"})));
        for name in ["lake", "lake.shop", "main"] {
            assert!(!stays(json!({"database": name})), "{name}");
        }
    }

    #[test]
    fn what_does_not_fit_is_the_sellers() {
        for wrong in [
            json!({"api_key": ""}),
            json!({"api_key": 7}),
            json!({"api_key": null}),
            json!({"database": ""}),
            json!({"database": "lake."}),
            json!({"database": ".shop"}),
            json!({"database": "a\u{0}b"}),
        ] {
            let class = parse(wrong.clone()).err().map(|error| error.class);
            assert_eq!(class, Some(ErrorClass::Configuration), "{wrong}");
        }
    }

    #[test]
    fn the_schema_is_json_and_marks_the_secret() {
        let schema: Value = serde_json::from_str(SCHEMA).unwrap();
        assert_eq!(schema["properties"]["api_key"]["writeOnly"], true);
    }
}
