//! The lock file: which versions of which connectors a host is to have, to the byte. `souk connector add --lock` writes it, `souk connector sync`
//! brings a host to it; it is read and reviewed like any other file of a deployment.

use std::io::Write;
use std::path::Path;

use anyhow::{Context, Result, bail, ensure};
use serde::{Deserialize, Serialize};

use super::registry::is_digest;

pub const FILE: &str = "souk-connectors.lock";
const FORMAT: u32 = 1;
const HEAD: &str = "# What `souk connector sync` brings to a host; `souk connector add oci://… --activate --lock` writes it.\n";

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Lock {
    version: u32,
    #[serde(default, rename = "connector")]
    pub connectors: Vec<Locked>,
}

/// One connector. Whoever writes one by hand needs `reference` only: `sync` without `--locked` finds out the rest.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Locked {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// As it was asked for: `registry.example/acme/hello:1.2`.
    pub reference: String,
    /// Of the manifest in the registry.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
    /// Of the component, as hosts show it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub component: Option<String>,
    /// The fingerprint of the key that has signed it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub signed_by: Option<String>,
}

impl Lock {
    pub fn read(path: &Path) -> Result<Lock> {
        let text = std::fs::read_to_string(path).with_context(|| {
            format!(
                "cannot read {}, which `souk connector add oci://… --activate --lock` makes",
                path.display()
            )
        })?;
        let lock: Lock =
            toml::from_str(&text).with_context(|| format!("{} is no lock file", path.display()))?;
        ensure!(
            lock.version == FORMAT,
            "{} has format {}, and this souk reads {FORMAT}: take the souk that wrote it",
            path.display(),
            lock.version
        );
        Ok(lock)
    }

    /// The file, or an empty one where there is none yet.
    pub fn read_or_new(path: &Path) -> Result<Lock> {
        match path.exists() {
            true => Lock::read(path),
            false => Ok(Lock {
                version: FORMAT,
                connectors: Vec::new(),
            }),
        }
    }

    /// In one rename: whoever reads it meanwhile reads the one before.
    pub fn write(&self, path: &Path) -> Result<()> {
        let text = format!("{HEAD}{}", toml::to_string(self)?);
        let directory = path
            .parent()
            .filter(|parent| !parent.as_os_str().is_empty());
        let written = || -> std::io::Result<()> {
            let mut file = tempfile::Builder::new()
                // Like any other file of the project, not like a secret.
                .permissions(std::os::unix::fs::PermissionsExt::from_mode(0o644))
                .tempfile_in(directory.unwrap_or(Path::new(".")))?;
            file.write_all(text.as_bytes())?;
            file.persist(path)?;
            Ok(())
        };
        written().with_context(|| format!("cannot write {}", path.display()))
    }

    /// In the place of what it said of this connector.
    pub fn put(&mut self, locked: Locked) {
        let is_it = |known: &&mut Locked| match &known.name {
            Some(_) => known.name == locked.name,
            // Written by hand, and not brought anywhere yet.
            None => known.reference == locked.reference,
        };
        match self.connectors.iter_mut().find(is_it) {
            Some(known) => *known = locked,
            None => self.connectors.push(locked),
        }
    }
}

/// An entry with nothing left to find out.
pub struct Pinned<'l> {
    pub name: &'l str,
    pub version: &'l str,
    pub digest: &'l str,
    pub component: &'l str,
}

impl Locked {
    /// `None`: something has to be found out. An entry that says a digest says everything.
    pub fn pinned(&self) -> Result<Option<Pinned<'_>>> {
        match (&self.name, &self.version, &self.digest, &self.component) {
            (Some(name), Some(version), Some(digest), Some(component)) => {
                for text in [digest, component] {
                    ensure!(
                        is_digest(text),
                        "the entry of {} says {text:?}, which is no digest: sha256: and 64 digits",
                        self.reference
                    );
                }
                Ok(Some(Pinned {
                    name,
                    version,
                    digest,
                    component,
                }))
            }
            (_, _, None, None) => Ok(None),
            _ => bail!(
                "the entry of {} has lost some of name, version, digest and component: put them back, or leave digest and component out to have them \
                 found out anew",
                self.reference
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What was written is read; an entry that is put again takes the place of the one before.
    #[test]
    fn a_lock_file_keeps_what_it_is_given() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join(FILE);
        let mut lock = Lock::read_or_new(&path).unwrap();
        let locked = |name: &str, version: &str| Locked {
            name: Some(name.to_owned()),
            version: Some(version.to_owned()),
            reference: format!("registry.example/acme/{name}:{version}"),
            digest: Some(format!("sha256:{}", "a".repeat(64))),
            component: Some(format!("sha256:{}", "b".repeat(64))),
            signed_by: None,
        };
        lock.put(locked("hello", "1.0.0"));
        lock.put(locked("other", "1.0.0"));
        lock.put(locked("hello", "1.1.0"));
        lock.write(&path).unwrap();
        let read = Lock::read(&path).unwrap();
        assert_eq!(
            read.connectors,
            [locked("hello", "1.1.0"), locked("other", "1.0.0")]
        );
        assert!(read.connectors[0].pinned().unwrap().is_some());
    }

    /// Nothing is guessed of a file that somebody has edited.
    #[test]
    fn what_is_no_lock_file_is_refused() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join(FILE);
        for (text, why) in [
            ("version = 2", "has format 2"),
            ("connector = 1", "is no lock file"),
            (
                "version = 1\n[[connector]]\nreference = 'r'\ndigset = 'd'",
                "is no lock file",
            ),
        ] {
            std::fs::write(&path, text).unwrap();
            let refused = Lock::read(&path).unwrap_err().to_string();
            assert!(refused.contains(why), "{refused}");
        }
        let half = Locked {
            digest: Some("sha256:aa".to_owned()),
            ..Locked::default()
        };
        assert!(half.pinned().is_err());
        let odd = Locked {
            name: Some("hello".to_owned()),
            version: Some("1.0.0".to_owned()),
            digest: Some("sha256:../../..".to_owned()),
            component: Some("sha256:aa".to_owned()),
            ..Locked::default()
        };
        assert!(odd.pinned().is_err());
        assert!(Locked::default().pinned().unwrap().is_none());
    }
}
