//! What integrations are configured with. The host checks it by this schema, seals what is `writeOnly`, and keeps the
//! address to itself.

/// JSON Schema of the settings of each platform, under its slug.
pub const SCHEMA: &str = r#"{
  "$schema": "https://json-schema.org/draft/2020-12/schema",
  "$defs": {
    "wordpress": {
      "type": "object", "title": "WordPress",
      "required": ["base_url", "username", "application_password"],
      "properties": {
        "base_url": {"type": "string", "format": "uri", "description": "Of the site: posts go to /wp-json/wp/v2/posts below it."},
        "username": {"type": "string", "minLength": 1, "maxLength": 200, "writeOnly": true},
        "application_password": {"type": "string", "minLength": 8, "maxLength": 200, "writeOnly": true, "description": "Users, Profile, Application Passwords; not the password for signing in."}
      }
    },
    "ghost": {
      "type": "object", "title": "Ghost",
      "required": ["base_url", "admin_api_key"],
      "properties": {
        "base_url": {"type": "string", "format": "uri", "description": "Of the site's administration: posts go to /ghost/api/admin/posts/ below it."},
        "admin_api_key": {"type": "string", "minLength": 20, "maxLength": 300, "writeOnly": true, "description": "Of a custom integration: an id, a colon, a secret in hexadecimal."}
      }
    },
    "slack": {
      "type": "object", "title": "Slack",
      "required": ["base_url", "path"],
      "properties": {
        "base_url": {"type": "string", "format": "uri", "description": "https://hooks.slack.com, or of a server that takes the same messages."},
        "path": {"type": "string", "minLength": 2, "maxLength": 1000, "writeOnly": true, "description": "What stands behind it in the address of the incoming webhook: /services/T…/B…/…"},
        "link": {"type": "string", "maxLength": 1000, "description": "Where posts can be read, with {slug} or {id} in it; without it a message has no link."}
      }
    },
    "webhook": {
      "type": "object", "title": "Signed webhook",
      "required": ["base_url", "secret"],
      "properties": {
        "base_url": {"type": "string", "format": "uri", "description": "Of the server that is told."},
        "path": {"type": "string", "maxLength": 1000, "description": "Below base_url; / when absent."},
        "secret": {"type": "string", "minLength": 16, "maxLength": 500, "writeOnly": true, "description": "Signs each request with HMAC-SHA256; whsec_ and base64, or any text."}
      }
    }
  }
}"#;

#[cfg(test)]
mod tests {
    use super::*;

    /// Every platform has a schema whose secrets are marked, and which asks for an address.
    #[test]
    fn each_platform_has_a_schema() {
        let schema: serde_json::Value = serde_json::from_str(SCHEMA).unwrap();
        for (platform, secret) in [
            ("wordpress", "application_password"),
            ("ghost", "admin_api_key"),
            ("slack", "path"),
            ("webhook", "secret"),
        ] {
            let properties = &schema["$defs"][platform]["properties"];
            assert_eq!(properties[secret]["writeOnly"], true, "{platform}");
            assert!(properties["base_url"].is_object(), "{platform}");
        }
    }
}
