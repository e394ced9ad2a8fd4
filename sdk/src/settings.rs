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

/// What file systems allow for one name.
const NAME_BYTES_MAX: usize = 255;

/// The name of one of the company's files. It is one path segment: it cannot leave the directory, whatever the file system makes of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileName(String);

impl FileName {
    /// Of a connection to a file: its setting `database`.
    pub fn from_settings(settings: &Settings) -> Result<FileName, Error> {
        #[derive(Deserialize)]
        struct Given {
            database: String,
        }
        FileName::parse(settings.parse::<Given>()?.database)
    }

    pub fn parse(name: impl Into<String>) -> Result<FileName, Error> {
        let name = name.into();
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_name_is_one_path_segment() {
        let long = "a".repeat(NAME_BYTES_MAX + 1);
        for name in [
            "",
            ".",
            "..",
            "../a.db",
            "a/b",
            "a\\b",
            "a\0b",
            "/etc/passwd",
            &long,
        ] {
            let refused = FileName::parse(name).unwrap_err();
            assert_eq!(refused.code, "invalid_database", "{name:?}");
        }
        for name in ["sales.db", "..a", "a?mode=rw", "ü #%.parquet"] {
            assert_eq!(FileName::parse(name).unwrap().as_str(), name);
        }
    }
}
