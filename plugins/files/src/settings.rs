//! The connection's settings: the name of a file in the granted directory.

use serde::Deserialize;
use souk_sdk::{Error, Settings};

pub const SCHEMA: &str = r#"{
  "type": "object",
  "required": ["database"],
  "properties": {
    "database": {
      "type": "string", "minLength": 1, "maxLength": 255, "pattern": "^[^/\\\\]+$",
      "title": "File", "description": "The name of one of the company's files: .parquet, .csv, .tsv, .jsonl, .arrow, or a .tar of several."
    }
  }
}"#;

/// What file systems allow for one name.
const NAME_BYTES_MAX: usize = 255;

/// One path segment: it cannot leave the directory, whatever the file system makes of it.
#[derive(Debug, PartialEq, Eq)]
pub struct FileName(String);

#[derive(Deserialize)]
struct Given {
    database: String,
}

impl FileName {
    pub fn from_settings(settings: &Settings) -> Result<FileName, Error> {
        FileName::parse(settings.parse::<Given>()?.database)
    }

    pub fn parse(name: String) -> Result<FileName, Error> {
        let special = name.is_empty() || name == "." || name == "..";
        if special || name.len() > NAME_BYTES_MAX || name.contains(['/', '\\', '\0']) {
            return Err(Error::configuration(
                "invalid_database",
                "the connection's database must be the name of one file, without a path",
            ));
        }
        Ok(FileName(name))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// No name reaches outside the directory.
    #[test]
    fn a_database_is_one_path_segment() {
        for name in [
            "",
            ".",
            "..",
            "../a.csv",
            "a/b",
            "a\\b",
            "a\0b",
            "/etc/passwd",
        ] {
            let refused = FileName::parse(name.into()).unwrap_err();
            assert_eq!(refused.code, "invalid_database", "{name:?}");
        }
        for name in ["sales.csv", "..a", "ü #%.parquet"] {
            assert_eq!(FileName::parse(name.into()).unwrap().as_str(), name);
        }
    }

    #[test]
    fn the_schema_is_json() {
        serde_json::from_str::<serde_json::Value>(SCHEMA).unwrap();
    }
}
