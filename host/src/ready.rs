//! The ready file: what a script needs to go on, written in one rename once requests are accepted.

use std::io::Write;
use std::net::SocketAddr;
use std::path::Path;

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};

#[derive(Serialize)]
pub struct Ready {
    /// Where requests are accepted, whatever they are addressed to.
    pub listen: SocketAddr,
    pub base_url: String,
    pub endpoint_base_url: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub platform: Option<Platform>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seller: Option<Seller>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub buyer: Option<Buyer>,
}

#[derive(Clone, Serialize, Deserialize)]
pub struct Platform {
    pub company_id: String,
    /// Role 5.
    pub api_key: String,
}

#[derive(Clone, Serialize, Deserialize)]
pub struct Seller {
    pub company_id: String,
    pub handle: String,
    pub user_id: String,
    /// Role 4.
    pub api_key: String,
    pub connections: Connections,
    pub assets: Assets,
    /// Of the calculation.
    pub asset_slug: String,
    pub endpoint_id: String,
    pub endpoint_slug: String,
}

#[derive(Clone, Serialize, Deserialize)]
pub struct Connections {
    pub sqlite: String,
    #[serde(rename = "seller-api")]
    pub seller_api: String,
}

#[derive(Clone, Serialize, Deserialize)]
pub struct Assets {
    pub calculation: String,
    pub function: String,
    pub visualization: String,
    pub prediction: String,
}

#[derive(Clone, Serialize, Deserialize)]
pub struct Buyer {
    pub company_id: String,
    pub handle: String,
    pub user_id: String,
    /// Role 4.
    pub api_key: String,
    pub endpoint_key: String,
}

/// Nobody ever reads half a file, and nobody but its owner reads it at all: it holds keys.
pub fn write_json(path: &Path, value: &impl Serialize) -> Result<()> {
    let directory = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    let put = || -> std::io::Result<()> {
        // Created with mode 0600.
        let mut file = tempfile::NamedTempFile::new_in(directory)?;
        serde_json::to_writer_pretty(&mut file, value)?;
        file.write_all(b"\n")?;
        file.as_file().sync_all()?;
        file.persist(path)?;
        Ok(())
    };
    put().with_context(|| format!("{} cannot be written", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn the_file_is_whole_private_and_replaces_what_was_there() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("ready.json");
        std::fs::write(&path, "old").unwrap();
        write_json(&path, &serde_json::json!({"base_url": "http://x"})).unwrap();
        let read: serde_json::Value =
            serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
        assert_eq!(read["base_url"], "http://x");
        assert_eq!(
            std::fs::metadata(&path).unwrap().permissions().mode() & 0o777,
            0o600
        );
        assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 1);
    }
}
