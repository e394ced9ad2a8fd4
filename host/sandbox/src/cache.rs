//! Native code of connectors on disk. Loading native code is running it, so a file counts only if
//! this host wrote it: each carries an HMAC under a key that never leaves the cache directory. The
//! bytes that were authenticated are the bytes that are loaded; the file is read once.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, Read, Write},
    os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt},
    path::{Path, PathBuf},
    sync::atomic::{AtomicU64, Ordering},
};

use hmac::{Hmac, KeyInit, Mac};
use rand::Rng;
use sha2::Sha256;

const KEY_FILE: &str = "cache.key";
const KEY_BYTES: usize = 32;
const MAC_BYTES: usize = 32;
/// Separates these MACs from any other use of the key, and this format from later ones.
const DOMAIN: &[u8] = b"souk compiled connector 1\0";

pub(crate) struct Cache {
    directory: PathBuf,
    key: [u8; KEY_BYTES],
    /// Of the engine: code for another engine has another name and another MAC.
    fingerprint: String,
}

impl Cache {
    /// Makes the directory (0700) and the key (0600) on first use.
    pub fn open(directory: &Path, fingerprint: String) -> io::Result<Cache> {
        fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(directory)?;
        let key = match read_key(directory)? {
            Some(key) => key,
            None => make_key(directory)?,
        };
        Ok(Cache {
            directory: directory.to_owned(),
            key,
            fingerprint,
        })
    }

    /// The native code of the component with this digest, if this host wrote it.
    pub fn get(&self, digest: &str) -> Option<Vec<u8>> {
        let path = self.path(digest);
        let mut bytes = Vec::new();
        let mut file = File::open(&path).ok()?;
        bytes.reserve_exact(file.metadata().ok()?.len() as usize);
        file.read_to_end(&mut bytes).ok()?;
        let at = bytes.len().checked_sub(MAC_BYTES)?;
        if self
            .mac(digest, &bytes[..at])
            .verify_slice(&bytes[at..])
            .is_err()
        {
            tracing::warn!(path = %path.display(), "ignoring compiled code that this host did not write");
            return None;
        }
        bytes.truncate(at);
        Some(bytes)
    }

    /// Keeps native code, in one rename.
    pub fn put(&self, digest: &str, code: &[u8]) -> io::Result<()> {
        let (mut file, path) = self.scratch()?;
        let written = (|| {
            file.write_all(code)?;
            file.write_all(&self.mac(digest, code).finalize().into_bytes())?;
            fs::rename(&path, self.path(digest))
        })();
        if written.is_err() {
            let _ = fs::remove_file(&path);
        }
        written
    }

    /// A new private file in the cache directory, for the caller to rename or remove.
    pub fn scratch(&self) -> io::Result<(File, PathBuf)> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let name = format!(
            ".{}-{}.tmp",
            std::process::id(),
            NEXT.fetch_add(1, Ordering::Relaxed)
        );
        let path = self.directory.join(name);
        let _ = fs::remove_file(&path);
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&path)?;
        Ok((file, path))
    }

    fn path(&self, digest: &str) -> PathBuf {
        self.directory
            .join(format!("{digest}-{}.cwasm", self.fingerprint))
    }

    fn mac(&self, digest: &str, code: &[u8]) -> Hmac<Sha256> {
        let mut mac = Hmac::<Sha256>::new_from_slice(&self.key)
            .unwrap_or_else(|_| unreachable!("HMAC takes any key"));
        mac.update(DOMAIN);
        mac.update(digest.as_bytes());
        mac.update(self.fingerprint.as_bytes());
        mac.update(code);
        mac
    }
}

fn read_key(directory: &Path) -> io::Result<Option<[u8; KEY_BYTES]>> {
    let path = directory.join(KEY_FILE);
    let bytes = match fs::read(&path) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    // A key that others could read or write authenticates nothing.
    if fs::metadata(&path)?.permissions().mode() & 0o077 != 0 {
        tracing::warn!(path = %path.display(), "the cache key is open to other users: making a new one");
        fs::remove_file(&path)?;
        return Ok(None);
    }
    Ok(bytes.try_into().ok())
}

fn make_key(directory: &Path) -> io::Result<[u8; KEY_BYTES]> {
    let mut key = [0; KEY_BYTES];
    rand::rng().fill_bytes(&mut key);
    let path = directory.join(KEY_FILE);
    let scratch = directory.join(format!(".{}.key.tmp", std::process::id()));
    let _ = fs::remove_file(&scratch);
    let mut file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&scratch)?;
    file.write_all(&key)?;
    fs::rename(&scratch, &path)?;
    Ok(key)
}
