//! The connection's settings: the members of a service account's key file, and what bounds a statement. The address is the host's business.

use serde::{Deserialize, Deserializer, de};
use souk_sdk::Error;

/// A statement may run this long unless the settings say otherwise. The host's own deadline holds as well.
const STATEMENT_TIMEOUT_MS: u32 = 30_000;
/// A statement may read so much unless the settings say otherwise: 10 GiB, the hundredth part of what BigQuery has a price for.
const BYTES_BILLED_MAX: u64 = 10 << 30;

/// JSON Schema of [`Settings`].
pub const SCHEMA: &str = r#"{
  "type": "object",
  "required": ["base_url", "project_id", "client_email", "private_key"],
  "properties": {
    "base_url": {"type": "string", "format": "uri", "default": "https://bigquery.googleapis.com", "title": "Address of the API", "description": "https://bigquery.googleapis.com"},
    "project_id": {"type": "string", "minLength": 1, "maxLength": 256, "title": "Project", "description": "Where statements run, and who pays for them; of the key file"},
    "client_email": {"type": "string", "minLength": 1, "maxLength": 256, "title": "Service account", "description": "Of the key file"},
    "private_key_id": {"type": "string", "maxLength": 256, "writeOnly": true, "title": "Name of the private key", "description": "Of the key file"},
    "private_key": {"type": "string", "minLength": 1, "maxLength": 8192, "writeOnly": true, "title": "Private key", "description": "Of the key file"},
    "database": {"type": "string", "minLength": 1, "maxLength": 1024, "title": "Dataset", "description": "Where tables are that a statement names without one: dataset, or project.dataset"},
    "location": {"type": "string", "pattern": "^[A-Za-z0-9-]+$", "maxLength": 64, "title": "Location", "description": "EU, europe-west3: where all statements run, which must be where their datasets are; left out, BigQuery sees it by the datasets that they name"},
    "maximum_bytes_billed": {"type": ["integer", "string"], "minimum": 1, "pattern": "^[1-9][0-9]{0,17}$", "default": 10737418240, "title": "Bytes that one statement may read", "description": "A statement that would read more is refused, and costs nothing"},
    "statement_timeout_ms": {"type": "integer", "minimum": 1, "maximum": 2147483647, "default": 30000, "title": "Statement timeout in milliseconds"}
  }
}"#;

/// Fields that are not named here are the host's, or the key file's and of no use here.
#[derive(Deserialize)]
pub struct Settings {
    pub project_id: String,
    pub client_email: String,
    pub private_key_id: Option<String>,
    pub private_key: String,
    #[serde(default, rename = "database", deserialize_with = "dataset")]
    pub dataset: Option<Dataset>,
    pub location: Option<String>,
    #[serde(default = "bytes_billed", deserialize_with = "whole")]
    pub maximum_bytes_billed: u64,
    statement_timeout_ms: Option<u32>,
}

/// A dataset, perhaps of another project.
#[derive(Clone, Debug, PartialEq)]
pub struct Dataset {
    pub project: Option<String>,
    pub name: String,
}

impl Settings {
    pub fn parse(settings: &souk_sdk::Settings) -> Result<Settings, Error> {
        settings.parse()
    }

    pub fn statement_timeout_ms(&self) -> u32 {
        self.statement_timeout_ms
            .unwrap_or(STATEMENT_TIMEOUT_MS)
            .max(1)
    }
}

fn bytes_billed() -> u64 {
    BYTES_BILLED_MAX
}

/// A project's name may have a point in it (`example.com:shop`), a dataset's has none.
fn dataset<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Dataset>, D::Error> {
    let text = Option::<String>::deserialize(from)?;
    Ok(text.map(|text| match text.rsplit_once('.') {
        Some((project, name)) => Dataset {
            project: Some(project.to_owned()),
            name: name.to_owned(),
        },
        None => Dataset {
            project: None,
            name: text,
        },
    }))
}

/// A number, or its digits: members of a key file are texts.
fn whole<'de, D: Deserializer<'de>>(from: D) -> Result<u64, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Whole {
        Number(u64),
        Digits(String),
    }
    match Whole::deserialize(from)? {
        Whole::Number(number) => Ok(number),
        Whole::Digits(digits) => digits.parse().map_err(de::Error::custom),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};
    use souk_sdk::ErrorClass;

    fn parse(more: Value) -> Result<Settings, Error> {
        let mut settings: Value = serde_json::from_str(souk_tests::bigquery::KEY_FILE).unwrap();
        for (name, value) in more.as_object().unwrap() {
            settings[name] = value.clone();
        }
        Settings::parse(&souk_sdk::Settings {
            engine: "bigquery".into(),
            json: settings.to_string(),
        })
    }

    /// The file as Google wrote it is enough; what it does not say has a bound.
    #[test]
    fn a_key_file_is_enough() {
        let settings = parse(json!({})).ok().unwrap();
        assert_eq!(settings.project_id, "souk-test");
        assert_eq!(settings.maximum_bytes_billed, 10 << 30);
        assert_eq!(settings.statement_timeout_ms(), 30_000);
        assert_eq!(settings.dataset, None);
        for bound in [json!(1_000), json!("1000")] {
            let settings = parse(json!({"maximum_bytes_billed": bound}));
            assert_eq!(settings.ok().unwrap().maximum_bytes_billed, 1_000);
        }
        let dataset = |text: &str| parse(json!({"database": text})).ok().unwrap().dataset;
        let named = |project: Option<&str>, name: &str| {
            let (project, name) = (project.map(str::to_owned), name.to_owned());
            Some(Dataset { project, name })
        };
        assert_eq!(dataset("shop"), named(None, "shop"));
        assert_eq!(dataset("a.com:b.shop"), named(Some("a.com:b"), "shop"));
    }

    #[test]
    fn what_does_not_fit_is_the_sellers() {
        for wrong in [
            json!({"private_key": 7}),
            json!({"maximum_bytes_billed": "much"}),
            json!({"maximum_bytes_billed": -1}),
            json!({"location": []}),
        ] {
            let class = parse(wrong.clone()).err().map(|error| error.class);
            assert_eq!(class, Some(ErrorClass::Configuration), "{wrong}");
        }
    }

    #[test]
    fn the_schema_is_json_and_marks_the_secret() {
        let schema: Value = serde_json::from_str(SCHEMA).unwrap();
        assert_eq!(schema["properties"]["private_key"]["writeOnly"], true);
        let default = &schema["properties"]["maximum_bytes_billed"]["default"];
        assert_eq!(default.as_u64(), Some(BYTES_BILLED_MAX));
    }
}
