//! The connection's settings. Who is asked is the host's business, and so is `api_key`: the host sends it as a bearer itself. The address is
//! read for one reason: what a coordinator leads to is held against it.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;
use souk_sdk::Error;

use crate::address::Address;

/// A statement may run this long unless the settings say otherwise. The host's own deadline holds as well.
const STATEMENT_TIMEOUT_MS: u32 = 30_000;

/// JSON Schema of the settings.
pub const SCHEMA: &str = r#"{
  "type": "object",
  "required": ["base_url", "database"],
  "properties": {
    "base_url": {"type": "string", "format": "uri", "title": "Address of the coordinator", "description": "https://host:8443; http://host:8080 only without a password"},
    "username": {"type": "string", "minLength": 1, "maxLength": 256, "title": "User"},
    "password": {"type": "string", "minLength": 1, "maxLength": 1024, "writeOnly": true, "title": "Password"},
    "api_key": {"type": "string", "minLength": 1, "maxLength": 8192, "writeOnly": true, "title": "Token (JWT)", "x-souk-header": "authorization", "x-souk-header-prefix": "Bearer "},
    "database": {"type": "string", "minLength": 1, "maxLength": 512, "title": "Catalog", "description": "catalog, or catalog.schema: where tables are that a statement names without"},
    "statement_timeout_ms": {"type": "integer", "minimum": 1, "maximum": 2147483647, "default": 30000, "title": "Statement timeout in milliseconds"}
  }
}"#;

/// Fields that are not named here are the host's and are ignored.
#[derive(Deserialize)]
struct Given {
    base_url: String,
    username: Option<String>,
    password: Option<String>,
    database: String,
    statement_timeout_ms: Option<u32>,
    /// Never told; a host that did not send it in our place would be noticed by what it is.
    #[serde(rename = "api_key")]
    _api_key: Option<String>,
}

pub struct Settings {
    pub address: Address,
    /// What `X-Trino-User` says.
    pub user: Option<String>,
    /// What `Authorization` says, where the host does not say it.
    pub authorization: Option<String>,
    pub catalog: String,
    pub schema: Option<String>,
    pub statement_timeout_ms: u32,
}

impl Settings {
    pub fn parse(settings: &souk_sdk::Settings) -> Result<Settings, Error> {
        let given: Given = settings.parse()?;
        let address = Address::parse(&given.base_url).ok_or_else(|| {
            invalid("base_url must be an address like https://trino.example.com:8443")
        })?;
        let user = given.username.as_deref().unwrap_or_default();
        let authorization = match &given.password {
            None => None,
            Some(_) if !address.is_secret => {
                return Err(Error::configuration(
                    "cleartext_refused",
                    "a password is not sent in clear text: connect by https, or leave the password out",
                ));
            }
            Some(_) if user.is_empty() || user.contains(':') => {
                return Err(invalid(
                    "a password needs a username, which may not contain a colon",
                ));
            }
            Some(password) => Some(format!(
                "Basic {}",
                STANDARD.encode(latin(&format!("{user}:{password}"))?)
            )),
        };
        // A header has visible ASCII; of a user with a password the server knows the name without one.
        let user = match is_visible(user) {
            true => given.username.filter(|user| !user.is_empty()),
            false if authorization.is_some() => None,
            false => {
                return Err(invalid(
                    "without a password the username must be of visible ASCII characters",
                ));
            }
        };
        let (catalog, schema) = match given.database.split_once('.') {
            Some((catalog, schema)) => (catalog.to_owned(), Some(schema.to_owned())),
            None => (given.database, None),
        };
        let names = [Some(catalog.as_str()), schema.as_deref()];
        let is_named = |name: &str| !name.is_empty() && is_visible(name);
        if !names.into_iter().flatten().all(is_named) {
            return Err(invalid(
                "database must be catalog or catalog.schema, of visible ASCII characters",
            ));
        }
        Ok(Settings {
            address,
            user,
            authorization,
            catalog,
            schema,
            statement_timeout_ms: given
                .statement_timeout_ms
                .unwrap_or(STATEMENT_TIMEOUT_MS)
                .max(1),
        })
    }
}

/// As Trino reads who logs in (ISO 8859-1).
fn latin(text: &str) -> Result<Vec<u8>, Error> {
    let bytes = text.chars().map(|char| u8::try_from(u32::from(char)));
    bytes.collect::<Result<_, _>>().map_err(|_| {
        invalid("Trino reads no characters beyond ISO 8859-1 in a username or a password")
    })
}

fn is_visible(text: &str) -> bool {
    text.bytes().all(|byte| (b' '..0x7f).contains(&byte))
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
        let mut settings = json!({"base_url": "https://trino.example.com", "database": "lake"});
        for (name, value) in more.as_object().unwrap() {
            settings[name] = value.clone();
        }
        Settings::parse(&souk_sdk::Settings {
            engine: "trino".into(),
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
        assert_eq!(names("a.b.c"), ("a".into(), Some("b.c".into())));
    }

    #[test]
    fn a_password_is_sealed_or_not_sent() {
        let login = json!({"username": "ada", "password": "pässw:ord"});
        let settings = parse(login).ok().unwrap();
        assert_eq!(
            settings.authorization.as_deref(),
            Some("Basic YWRhOnDkc3N3Om9yZA==")
        );
        let clear =
            json!({"base_url": "http://127.0.0.1:8080", "username": "ada", "password": "x"});
        assert_eq!(parse(clear).err().unwrap().code, "cleartext_refused");
        let alone = json!({"base_url": "http://127.0.0.1:8080", "username": "ada"});
        let settings = parse(alone).ok().unwrap();
        assert_eq!(
            (settings.authorization, settings.user.as_deref()),
            (None, Some("ada"))
        );
        // Its name travels with the password alone.
        let umlaut = parse(json!({"username": "jürgen", "password": "x"}))
            .ok()
            .unwrap();
        assert_eq!(umlaut.user, None);
    }

    #[test]
    fn what_does_not_fit_is_the_sellers() {
        for wrong in [
            json!({"base_url": "ftp://x"}),
            json!({"base_url": "https://"}),
            json!({"base_url": 7}),
            json!({"database": ""}),
            json!({"database": ".shop"}),
            json!({"database": "lake\r\nX-Trino-User: root"}),
            json!({"username": "a\r\nX-Trino-Catalog: b"}),
            json!({"username": "jürgen"}),
            json!({"password": "x"}),
            json!({"username": "a:b", "password": "x"}),
            json!({"username": "ada", "password": "日本"}),
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
