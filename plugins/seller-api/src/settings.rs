//! What a connection to a seller's API is configured with. The address is not here: the host owns
//! the wire and appends every path to the connection's base URL itself.

use serde::Deserialize;
use souk_sdk::{Error, Settings};

/// JSON Schema of the settings. `base_url` is declared for people and forms; only the host reads it.
pub const SCHEMA: &str = r#"{
  "$schema": "https://json-schema.org/draft/2020-12/schema",
  "type": "object",
  "title": "Seller API",
  "required": ["base_url", "api_key"],
  "properties": {
    "base_url": {
      "type": "string", "format": "uri", "title": "Base URL",
      "description": "Function routing posts to its root, direct routing to an asset's path below it."
    },
    "api_key": {
      "type": "string", "minLength": 1, "maxLength": 1024, "writeOnly": true, "title": "API key",
      "description": "Sent as the header X-API-Key with every call."
    }
  }
}"#;

/// Longest key that is sent: servers commonly refuse a header beyond a few kilobytes.
const API_KEY_BYTES_MAX: usize = 1024;

/// What the host passes besides (the address) is not for this connector.
#[derive(Deserialize)]
pub struct Access {
    pub api_key: String,
}

impl Access {
    pub fn parse(settings: &Settings) -> Result<Access, Error> {
        let access: Access = settings.parse()?;
        if access.api_key.is_empty() || access.api_key.len() > API_KEY_BYTES_MAX {
            return Err(invalid("`api_key` must have 1 to 1024 characters"));
        }
        // Anything else cannot stand in a header, and a line break would smuggle one.
        if !access.api_key.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(invalid("`api_key` must be visible ASCII without spaces"));
        }
        Ok(access)
    }
}

fn invalid(message: &str) -> Error {
    Error::configuration("invalid_settings", message)
}

#[cfg(test)]
mod tests {
    use super::*;
    use souk_sdk::ErrorClass;

    fn parse(json: &str) -> Result<Access, Error> {
        Access::parse(&Settings {
            engine: "seller-api".to_owned(),
            json: json.to_owned(),
        })
    }

    #[test]
    fn takes_the_key_and_ignores_what_the_host_adds() {
        assert_eq!(
            parse(r#"{"api_key":"k-1","base_url":"http://x/"}"#)
                .unwrap()
                .api_key,
            "k-1"
        );
    }

    #[test]
    fn refuses_a_key_that_would_smuggle_a_header() {
        for json in [
            r#"{}"#,
            r#"{"api_key":""}"#,
            r#"{"api_key":"a\r\nX-Admin: 1"}"#,
            r#"{"api_key":"a b"}"#,
            "[]",
            "",
        ] {
            let class = parse(json).err().map(|error| error.class);
            assert_eq!(class, Some(ErrorClass::Configuration), "{json}");
        }
    }

    #[test]
    fn the_schema_is_json_and_marks_the_secret() {
        let schema: serde_json::Value = serde_json::from_str(SCHEMA).unwrap();
        assert_eq!(schema["properties"]["api_key"]["writeOnly"], true);
    }
}
