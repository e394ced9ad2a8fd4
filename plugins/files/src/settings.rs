//! The connection's settings: the name of a file in the granted directory.

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_schema_is_json() {
        serde_json::from_str::<serde_json::Value>(SCHEMA).unwrap();
    }
}
