//! The connection's settings as the connector's own type.

use crate::{Error, Settings};
use serde::de::DeserializeOwned;

impl Settings {
    /// Reads `json` as `T`. The error never repeats a value: it may be a secret.
    pub fn parse<T: DeserializeOwned>(&self) -> Result<T, Error> {
        serde_json::from_str(&self.json).map_err(|error| {
            let text = error.to_string();
            let safe = text.starts_with("missing field") || text.starts_with("unknown field");
            let what = if safe {
                text
            } else {
                format!("{:?} error at column {}", error.classify(), error.column())
            };
            Error::configuration(
                "invalid_settings",
                "the connection's settings do not fit this connector",
            )
            .detail(what)
        })
    }
}
