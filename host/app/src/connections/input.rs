//! What a client says about a connection, laid over what is stored.

use std::collections::BTreeMap;

use serde_json::{Map, Value};
use souk_domain::connections::{self as rules, Draft};
use souk_domain::fields::FieldError;
use souk_store::connections::Connection;

/// A connection as a client sends it. A member that is absent is `None`; one that is null clears.
#[derive(Debug, Clone, Default)]
pub struct Input {
    /// Absent: the caller's.
    pub user_id: Option<String>,
    pub engine_id: Option<i64>,
    pub name: Option<String>,
    pub credential_type: Option<String>,
    /// JSON as text.
    pub credentials: Option<String>,
    pub host: Option<Option<String>>,
    pub port: Option<Option<i64>>,
    pub database: Option<Option<String>>,
    pub ssl_mode: Option<Option<String>>,
    pub base_url: Option<Option<String>>,
    pub ca_pem: Option<Option<String>>,
    pub cloud_provider_id: Option<Option<i64>>,
    pub verified_usage_ability: Option<bool>,
    pub statement_timeout_ms: Option<i64>,
}

/// A member of the body wins over the same member of new credentials, which wins over what is stored.
pub(super) fn draft(
    input: &Input,
    before: Option<&Connection>,
    credentials: Option<&Map<String, Value>>,
) -> Draft {
    let member = |name: &str| {
        credentials
            .and_then(|members| members.get(name))
            .and_then(scalar)
    };
    let text = |given: &Option<Option<String>>, name: &str, stored: Option<&String>| match given {
        Some(given) => given.clone(),
        None => member(name).or_else(|| stored.cloned()),
    };
    let port = match input.port {
        Some(given) => given,
        // A port that is not a number becomes one that no rule accepts.
        None => match member("port") {
            Some(port) => Some(port.parse().unwrap_or(-1)),
            None => before.and_then(|before| before.port),
        },
    };
    let stored = |text: fn(&Connection) -> &str| {
        before
            .map(|before| text(before).to_owned())
            .unwrap_or_default()
    };
    Draft {
        name: input
            .name
            .clone()
            .unwrap_or_else(|| stored(|before| &before.name)),
        credential_type: input
            .credential_type
            .clone()
            .unwrap_or_else(|| stored(|before| &before.credential_type)),
        host: text(
            &input.host,
            "host",
            before.and_then(|before| before.host.as_ref()),
        ),
        port,
        database: text(
            &input.database,
            "database",
            before.and_then(|before| before.database.as_ref()),
        ),
        ssl_mode: text(
            &input.ssl_mode,
            "ssl_mode",
            before.and_then(|before| before.ssl_mode.as_ref()),
        ),
        base_url: text(
            &input.base_url,
            "base_url",
            before.and_then(|before| before.base_url.as_ref()),
        ),
        ca_pem: text(
            &input.ca_pem,
            "ca_pem",
            before.and_then(|before| before.ca_pem.as_ref()),
        ),
        statement_timeout_ms: input
            .statement_timeout_ms
            .or(before.map(|before| before.statement_timeout_ms)),
        credentials: credentials.map(|members| {
            members
                .iter()
                .filter_map(|(name, value)| Some((name.clone(), scalar(value)?)))
                .collect::<BTreeMap<_, _>>()
        }),
    }
}

/// Credentials are one JSON object. The message never repeats any of it.
pub(super) fn parse_credentials(text: &str) -> Result<Map<String, Value>, Vec<FieldError>> {
    let refuse = |code, message: String| vec![FieldError::new("credentials", code, message)];
    if text.len() > rules::CREDENTIALS_BYTES_MAX {
        let message = format!(
            "credentials must have at most {} bytes",
            rules::CREDENTIALS_BYTES_MAX
        );
        return Err(refuse("length", message));
    }
    match serde_json::from_str(text) {
        Ok(Value::Object(mut members)) => {
            // `user` is what libpq calls it; the name that connectors read is `username`.
            if !members.contains_key("username")
                && let Some(user) = members.remove("user")
            {
                members.insert("username".to_owned(), user);
            }
            Ok(members)
        }
        _ => {
            let message =
                "credentials must be a JSON object, written as text: \"{\\\"username\\\": …}\"";
            Err(refuse("format", message.to_owned()))
        }
    }
}

fn scalar(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        Value::Bool(flag) => Some(flag.to_string()),
        _ => None,
    }
}
