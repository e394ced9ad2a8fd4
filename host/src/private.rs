//! What the host keeps is its owner's alone: the store holds customers' data, the master key opens their credentials.
//!
//! The process makes every file with mode 0600 and every directory with 0700, whatever the directory allows in which they are made. What an
//! earlier version, or somebody else, left more open is closed at the start, and said.

use std::io;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::Path;

use anyhow::{Context, Result, bail};

use crate::settings::Settings;

/// What group and others may do.
const OTHERS: u32 = 0o077;
/// Below the data directory, beside the store.
const KEPT: [&str; 4] = ["files", "files-cache", "compiled", "demo.json"];
pub const MASTER_KEY: &str = "master.key";

/// From here on nobody but its owner may read or write what this process makes.
pub fn keep_to_owner() {
    // SAFETY: umask cannot fail and touches nothing but the process's own mask.
    #[allow(unsafe_code)]
    unsafe {
        libc::umask(OTHERS as libc::mode_t);
    }
}

/// Makes the data directory if it is missing, and closes what is in it already.
pub fn prepare(settings: &Settings) -> Result<()> {
    let directory = &settings.data_dir;
    std::fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(directory)
        .with_context(|| format!("the data directory {} cannot be made", directory.display()))?;
    // One that was made for souk (`install -d`, say). One with other things in it may be anybody's.
    if is_empty(directory)? {
        warn_of(directory, close(directory));
    }
    for name in KEPT {
        let path = directory.join(name);
        warn_of(&path, close(&path));
    }
    if let Some(store) = settings.database_url.strip_prefix("sqlite:") {
        let store = store.strip_prefix("//").unwrap_or(store);
        close_store(Path::new(store.split('?').next().unwrap_or(store)));
    }
    close_key(&directory.join(MASTER_KEY))
}

fn is_empty(directory: &Path) -> Result<bool> {
    match std::fs::read_dir(directory) {
        Ok(mut all) => Ok(all.next().is_none()),
        Err(error) => bail!(
            "the data directory {} cannot be read ({error}): it and what is in it must belong to the user that souk runs as (chown -R), or \
             name another with --data-dir",
            directory.display()
        ),
    }
}

/// The store with what SQLite and the charge log keep beside it: all begin with its name.
fn close_store(store: &Path) {
    let directory = match store.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    let (Some(name), Ok(entries)) = (store.file_name(), std::fs::read_dir(directory)) else {
        return;
    };
    for entry in entries.flatten() {
        let own = entry.file_name();
        if own.as_encoded_bytes().starts_with(name.as_encoded_bytes()) {
            warn_of(&entry.path(), close(&entry.path()));
        }
    }
}

/// A key that others could read is closed to them; where that is not possible, the host does not start.
fn close_key(path: &Path) -> Result<()> {
    match close(path) {
        Ok(None) => Ok(()),
        Ok(Some(mode)) => {
            tracing::warn!(
                path = %path.display(),
                mode = format!("{mode:o}"),
                "the master key could be read by other users of this machine until now: if one may have, replace it (docs/operations.md)"
            );
            Ok(())
        }
        Err(error) => bail!(
            "the master key {} can be read by other users of this machine, and that cannot be changed ({error}): chmod 600 it",
            path.display()
        ),
    }
}

fn warn_of(path: &Path, closed: io::Result<Option<u32>>) {
    let path = path.display();
    match closed {
        Ok(None) => {}
        Ok(Some(mode)) => tracing::warn!(
            %path,
            mode = format!("{mode:o}"),
            "was open to other users of this machine, and is closed now"
        ),
        Err(error) => tracing::warn!(
            %path,
            %error,
            "is open to other users of this machine, and cannot be closed"
        ),
    }
}

/// Takes from others what they may do. Answers the mode that was, if it was another; what is not there is closed.
fn close(path: &Path) -> io::Result<Option<u32>> {
    let metadata = match std::fs::symlink_metadata(path) {
        Ok(metadata) => metadata,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    let mode = metadata.permissions().mode() & 0o7777;
    // A link's own mode means nothing, and what it points to was put there on purpose.
    if metadata.is_symlink() || mode & OTHERS == 0 {
        return Ok(None);
    }
    std::fs::set_permissions(path, PermissionsExt::from_mode(mode & !OTHERS))?;
    Ok(Some(mode))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_open_is_closed_and_said_once() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("f");
        std::fs::write(&file, "x").unwrap();
        std::fs::set_permissions(&file, PermissionsExt::from_mode(0o644)).unwrap();
        assert_eq!(close(&file).unwrap(), Some(0o644));
        assert_eq!(close(&file).unwrap(), None);
        let mode = std::fs::metadata(&file).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        assert_eq!(close(&directory.path().join("missing")).unwrap(), None);
    }

    #[test]
    fn what_cannot_be_read_is_told_as_that() {
        let directory = tempfile::tempdir().unwrap();
        assert!(is_empty(directory.path()).unwrap());
        let file = directory.path().join("f");
        std::fs::write(&file, "x").unwrap();
        assert!(!is_empty(directory.path()).unwrap());
        let error = is_empty(&file).unwrap_err().to_string();
        assert!(
            error.contains("cannot be read") && error.contains("--data-dir"),
            "{error}"
        );
    }
}
