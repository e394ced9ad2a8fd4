//! The connection's settings. Who is asked is the host's business, and so is `api_key`: the host sends it as a bearer itself. The address is
//! read for one reason: a secret is not sent in clear text.

use serde::Deserialize;
use souk_sdk::Error;

/// A statement may run this long unless the settings say otherwise. The host's own deadline holds as well.
const STATEMENT_TIMEOUT_MS: u32 = 30_000;
/// What a warehouse's "HTTP path" has before its id.
const HTTP_PATH: &str = "/sql/1.0/warehouses/";

/// JSON Schema of the settings.
pub const SCHEMA: &str = r#"{
  "type": "object",
  "required": ["base_url", "database", "warehouse_id"],
  "properties": {
    "base_url": {"type": "string", "format": "uri", "title": "Address of the workspace", "description": "https://dbc-a1b2c3d4-e5f6.cloud.databricks.com"},
    "warehouse_id": {"type": "string", "minLength": 1, "maxLength": 256, "title": "SQL warehouse", "description": "its id, or its HTTP path: /sql/1.0/warehouses/…"},
    "api_key": {"type": "string", "minLength": 1, "maxLength": 8192, "writeOnly": true, "title": "Personal access token", "x-souk-header": "authorization", "x-souk-header-prefix": "Bearer "},
    "username": {"type": "string", "minLength": 1, "maxLength": 256, "title": "Service principal", "description": "its application id (OAuth client id)"},
    "password": {"type": "string", "minLength": 1, "maxLength": 1024, "writeOnly": true, "title": "OAuth secret of the service principal"},
    "database": {"type": "string", "minLength": 1, "maxLength": 512, "title": "Catalog", "description": "catalog, or catalog.schema: where tables are that a statement names without"},
    "statement_timeout_ms": {"type": "integer", "minimum": 1, "maximum": 2147483647, "default": 30000, "title": "Statement timeout in milliseconds"}
  }
}"#;

/// Fields that are not named here are the host's and are ignored.
#[derive(Deserialize)]
struct Given {
    base_url: String,
    warehouse_id: String,
    username: Option<String>,
    password: Option<String>,
    database: String,
    statement_timeout_ms: Option<u32>,
    /// Never told; a host that did not send it in our place would be noticed by what it is.
    #[serde(rename = "api_key")]
    _api_key: Option<String>,
}

pub struct Settings {
    pub warehouse_id: String,
    /// Who asks for tokens, where the host does not send one.
    pub principal: Option<Principal>,
    pub catalog: String,
    pub schema: Option<String>,
    pub statement_timeout_ms: u32,
}

/// A service principal.
pub struct Principal {
    pub client_id: String,
    pub client_secret: String,
}

impl Settings {
    pub fn parse(settings: &souk_sdk::Settings) -> Result<Settings, Error> {
        let given: Given = settings.parse()?;
        let principal = match (given.username, given.password) {
            (None, None) => None,
            (Some(_), Some(_)) if !is_secret(&given.base_url) => {
                return Err(Error::configuration(
                    "cleartext_refused",
                    "a secret is not sent in clear text: base_url must begin with https://",
                ));
            }
            (Some(client_id), Some(client_secret)) => Some(Principal {
                client_id,
                client_secret,
            }),
            _ => {
                return Err(invalid(
                    "the username (client id) and the password (OAuth secret) of a service principal go together",
                ));
            }
        };
        let id = given.warehouse_id.trim();
        let id = id.strip_prefix(HTTP_PATH).unwrap_or(id);
        if id.is_empty() || !id.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
            return Err(invalid(
                "warehouse_id must be the id of a SQL warehouse, as its HTTP path ends with",
            ));
        }
        let (catalog, schema) = match given.database.split_once('.') {
            Some((catalog, schema)) => (catalog.to_owned(), Some(schema.to_owned())),
            None => (given.database, None),
        };
        if catalog.is_empty() || schema.as_deref() == Some("") {
            return Err(invalid("database must be catalog or catalog.schema"));
        }
        Ok(Settings {
            warehouse_id: id.to_owned(),
            principal,
            catalog,
            schema,
            statement_timeout_ms: given
                .statement_timeout_ms
                .unwrap_or(STATEMENT_TIMEOUT_MS)
                .max(1),
        })
    }
}

fn is_secret(base_url: &str) -> bool {
    let scheme = base_url.split(':').next().unwrap_or_default();
    scheme.eq_ignore_ascii_case("https")
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
        let mut settings = json!({"base_url": "https://dbc.example.com", "warehouse_id": "a1b2c3", "database": "lake"});
        for (name, value) in more.as_object().unwrap() {
            settings[name] = value.clone();
        }
        Settings::parse(&souk_sdk::Settings {
            engine: "databricks".into(),
            json: settings.to_string(),
        })
    }

    #[test]
    fn a_database_is_a_catalog_and_perhaps_a_schema() {
        let names = |database: &str| {
            let settings = parse(json!({"database": database})).ok().unwrap();
            (settings.catalog, settings.schema)
        };
        assert_eq!(names("lake"), ("lake".into(), None));
        assert_eq!(names("lake.shop"), ("lake".into(), Some("shop".into())));
    }

    #[test]
    fn a_warehouse_is_named_by_its_id_or_its_path() {
        for text in ["a1b2c3", "/sql/1.0/warehouses/a1b2c3", " a1b2c3\n"] {
            let settings = parse(json!({"warehouse_id": text})).ok().unwrap();
            assert_eq!(settings.warehouse_id, "a1b2c3");
        }
    }

    #[test]
    fn a_secret_is_sealed_or_not_sent() {
        let login = json!({"username": "ada", "password": "x"});
        assert!(parse(login.clone()).ok().unwrap().principal.is_some());
        let mut clear = login;
        clear["base_url"] = "http://127.0.0.1:8080".into();
        assert_eq!(parse(clear).err().unwrap().code, "cleartext_refused");
        let token = json!({"base_url": "http://127.0.0.1:8080"});
        assert!(parse(token).ok().unwrap().principal.is_none());
    }

    #[test]
    fn what_does_not_fit_is_the_sellers() {
        for wrong in [
            json!({"base_url": 7}),
            json!({"database": ""}),
            json!({"database": ".shop"}),
            json!({"database": "lake."}),
            json!({"warehouse_id": ""}),
            json!({"warehouse_id": "/sql/1.0/endpoints/a1"}),
            json!({"warehouse_id": "a1/../b"}),
            json!({"username": "ada"}),
            json!({"password": "x"}),
        ] {
            let class = parse(wrong.clone()).err().map(|error| error.class);
            assert_eq!(class, Some(ErrorClass::Configuration), "{wrong}");
        }
    }

    #[test]
    fn the_schema_is_json_and_marks_the_secrets() {
        let schema: Value = serde_json::from_str(SCHEMA).unwrap();
        for secret in ["password", "api_key"] {
            assert_eq!(schema["properties"][secret]["writeOnly"], true);
        }
    }
}
