//! The connection's settings: the name of a file in the granted directory.

pub const SCHEMA: &str = r#"{
  "type": "object",
  "required": ["database"],
  "properties": {
    "database": {
      "type": "string", "minLength": 1, "maxLength": 255, "pattern": "^[^/\\\\]+$",
      "title": "Database file", "description": "The name of a file in the company's directory."
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
