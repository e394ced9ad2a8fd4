//! The connection's settings as the connector's own type.

use crate::{Error, Settings};
use serde::Deserialize;
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

/// `ssl_mode` of a connection over TCP. How the certificate is checked is the host's decision: a connector asks whether there is TLS at
/// all, and whether the peer has shown who it is.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
pub enum SslMode {
    Disable,
    #[default]
    Require,
    VerifyCa,
    VerifyFull,
}

impl SslMode {
    /// Whether the peer has shown who it is, once TLS stands.
    pub fn is_checked(self) -> bool {
        matches!(self, SslMode::VerifyCa | SslMode::VerifyFull)
    }
}
