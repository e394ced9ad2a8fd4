//! Native code of connectors on disk. Loading native code is running it, so a file counts only if
//! this host wrote it: each carries a MAC under a key that never leaves the cache directory.
//!
//! Code is run where it lies, as that of the host itself: the file that was authenticated is mapped (decision 78). So it also has to be one that
//! nobody can write into who could not read the key, too; hosts write such files once and replace them by a rename.

use std::{
    fs::{self, DirEntry, File, OpenOptions},
    io::{self, Read, Seek, SeekFrom, Write},
    os::{
        fd::AsRawFd,
        unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt},
    },
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use blake3::{Hash, Hasher};
use parking_lot::Mutex;
use rand::Rng;
use wasmtime::{Engine, component::Component};

use crate::inspect::Outside;

const KEY_FILE: &str = "cache.key";
const KEY_BYTES: usize = 32;
const MAC_BYTES: usize = blake3::OUT_LEN;
/// Of how long what stands between the code and the MAC is, in front of that.
const LENGTH_BYTES: usize = 4;
/// Others can write into it.
const OPEN_TO_OTHERS: u32 = 0o022;
/// Long enough to take an upgrade back.
const OLD: Duration = Duration::from_secs(7 * 24 * 3600);
/// File systems of other machines, or of a process that may have them from there, by their numbers in `statfs`: NFS, SMB of three ages, FUSE, 9P,
/// Ceph, Lustre, GPFS, AFS.
const REMOTE: [u32; 10] = [
    0x6969,
    0x517b,
    0xff53_4d42,
    0xfe53_4d42,
    0x6573_5546,
    0x0102_1997,
    0x00c3_6400,
    0x0bd0_0bd0,
    0x4750_4653,
    0x5346_414f,
];
/// Separates these MACs from any other use of the key.
const DOMAIN: &[u8] = b"souk compiled connector\0";
/// Of these files. Another one has other names: it is no less this host's.
const FORMAT: &str = "2";

pub(crate) struct Cache {
    directory: PathBuf,
    key: [u8; KEY_BYTES],
    /// Whose files are here: what this process makes belongs to that user, who need not be its own where another machine has the files.
    owner: u32,
    /// Of the engine and the format: code for another engine has another name and another MAC.
    fingerprint: String,
    /// Components that are being loaded, so that their code is wanted before anybody is known to want it.
    loading: Arc<Mutex<Vec<String>>>,
}

/// The code of a component, in a file that this host wrote.
pub(crate) struct Kept {
    file: File,
    code_bytes: u64,
    pub outside: Outside,
}

/// While it is there, the code of its component stays.
pub(crate) struct Loading {
    digest: String,
    loading: Arc<Mutex<Vec<String>>>,
}

impl Drop for Loading {
    fn drop(&mut self) {
        let mut loading = self.loading.lock();
        if let Some(at) = loading.iter().position(|digest| *digest == self.digest) {
            loading.swap_remove(at);
        }
    }
}

impl Cache {
    /// Makes the directory (0700) and the key (0600) on first use.
    pub fn open(directory: &Path, fingerprint: String) -> io::Result<Cache> {
        fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(directory)?;
        let owner = owner(directory);
        let key = key(directory, owner)?;
        Ok(Cache {
            directory: directory.to_owned(),
            key,
            owner,
            fingerprint: format!("{FORMAT}.{fingerprint}"),
            loading: Arc::default(),
        })
    }

    /// The native code of the component with this digest, if this host wrote it.
    pub fn get(&self, digest: &str) -> Option<Kept> {
        let path = self.path(digest);
        let file = File::open(&path).ok()?;
        match self.authenticated(digest, &file) {
            Ok((code_bytes, outside)) => Some(Kept {
                file,
                code_bytes,
                outside,
            }),
            Err(error) => {
                tracing::warn!(path = %path.display(), %error, "ignoring compiled code that this host did not write");
                None
            }
        }
    }

    /// How many bytes of a file are code, and what stands behind it.
    fn authenticated(&self, digest: &str, mut file: &File) -> io::Result<(u64, Outside)> {
        let data = file.metadata()?;
        if !data.is_file() {
            return Err(io::Error::other("it is no file"));
        }
        if data.uid() != self.owner {
            return Err(io::Error::other("it belongs to another user"));
        }
        if data.mode() & OPEN_TO_OTHERS != 0 {
            return Err(io::Error::other("others can write into it"));
        }
        let bad = || io::Error::from(io::ErrorKind::InvalidData);
        let whole = data.len().checked_sub(MAC_BYTES as u64).ok_or_else(bad)?;
        let mut hasher = self.hasher(digest);
        hasher.update_reader(file.take(whole))?;
        let mut mac = [0; MAC_BYTES];
        file.read_exact(&mut mac)?;
        // In constant time.
        if hasher.finalize() != Hash::from_bytes(mac) {
            return Err(bad());
        }
        let end = whole.checked_sub(LENGTH_BYTES as u64).ok_or_else(bad)?;
        let mut length = [0; LENGTH_BYTES];
        file.seek(SeekFrom::Start(end))?;
        file.read_exact(&mut length)?;
        let length = u32::from_le_bytes(length);
        let code_bytes = end.checked_sub(length.into()).ok_or_else(bad)?;
        let mut outside = vec![0; length as usize];
        file.seek(SeekFrom::Start(code_bytes))?;
        file.read_exact(&mut outside)?;
        Ok((code_bytes, serde_json::from_slice(&outside)?))
    }

    /// The component, whose code stays in the file; where the file system lets nobody run what lies there, or other machines have it, it is copied into
    /// memory. `None`: the file cannot be read any more.
    pub fn component(
        &self,
        engine: &Engine,
        digest: &str,
        kept: &Kept,
    ) -> Option<wasmtime::Result<Component>> {
        if is_local(&kept.file) {
            // This file, whatever bears its name by now.
            let path = format!("/proc/self/fd/{}", kept.file.as_raw_fd());
            // SAFETY: our own compiler wrote the file, as its MAC says, and nobody writes into it who could not as well forge the MAC.
            #[allow(unsafe_code)]
            match unsafe { Component::deserialize_file(engine, path) } {
                Ok(component) => return Some(Ok(component)),
                Err(error) => tracing::info!(%error, "compiled code cannot be run where it lies"),
            }
        }
        let code = self.copied(digest, kept)?;
        // SAFETY: our own compiler wrote these bytes, as their MAC says.
        #[allow(unsafe_code)]
        Some(unsafe { Component::deserialize(engine, code) })
    }

    /// The code in memory, authenticated there.
    fn copied(&self, digest: &str, kept: &Kept) -> Option<Vec<u8>> {
        let mut file = &kept.file;
        file.seek(SeekFrom::Start(0)).ok()?;
        let mut bytes = Vec::with_capacity(usize::try_from(file.metadata().ok()?.len()).ok()?);
        file.read_to_end(&mut bytes).ok()?;
        let (whole, mac) = bytes.split_last_chunk::<MAC_BYTES>()?;
        if self.hasher(digest).update(whole).finalize() != Hash::from_bytes(*mac) {
            return None;
        }
        bytes.truncate(usize::try_from(kept.code_bytes).ok()?);
        Some(bytes)
    }

    /// Keeps native code, in one rename.
    pub fn put(&self, digest: &str, code: &[u8], outside: &Outside) -> io::Result<()> {
        let outside = serde_json::to_vec(outside)?;
        let length = u32::try_from(outside.len()).map_err(io::Error::other)?;
        let length = length.to_le_bytes();
        let mut hasher = self.hasher(digest);
        let (mut file, path) = self.scratch()?;
        let written = (|| {
            for part in [code, &outside, &length] {
                hasher.update(part);
                file.write_all(part)?;
            }
            file.write_all(hasher.finalize().as_bytes())?;
            // What is run is what the disk gives back.
            file.sync_data()?;
            fs::rename(&path, self.path(digest))
        })();
        if written.is_err() {
            let _ = fs::remove_file(&path);
        }
        written
    }

    /// A new private file in the cache directory, for the caller to rename or remove.
    pub fn scratch(&self) -> io::Result<(File, PathBuf)> {
        scratch(&self.directory)
    }

    pub fn begin_loading(&self, digest: &str) -> Loading {
        self.loading.lock().push(digest.to_owned());
        Loading {
            digest: digest.to_owned(),
            loading: self.loading.clone(),
        }
    }

    /// Whether somebody is loading it or wants it, asked in this order: what has been loaded is wanted before its loading ends.
    fn is_needed(&self, digest: &str, is_wanted: impl Fn(&str) -> bool) -> bool {
        self.is_loading(digest) || is_wanted(digest)
    }

    fn is_loading(&self, digest: &str) -> bool {
        self.loading.lock().iter().any(|known| known == digest)
    }

    /// Removes what was written for a component, unless that is being loaded or wanted. Somebody who shares the directory and still wants it compiles
    /// it again.
    pub fn forget(&self, digest: &str, is_wanted: impl Fn(&str) -> bool) {
        if self.is_needed(digest, is_wanted) {
            return;
        }
        if let Err(error) = fs::remove_file(self.path(digest))
            && error.kind() != io::ErrorKind::NotFound
        {
            tracing::warn!(digest, %error, "cannot remove compiled code that nobody needs");
        }
    }

    /// Removes what was written for other components than these, and what others left behind when it is [`OLD`]: files that were never
    /// finished, and code for another engine, but only when this engine, too, has been at work here for so long; before, the host that it was
    /// written for may come back, however long ago that compiled it. How many files that were, and their bytes.
    pub fn keep_only(&self, is_wanted: impl Fn(&str) -> bool) -> io::Result<(usize, u64)> {
        let (mut count, mut bytes) = (0, 0);
        let entries = fs::read_dir(&self.directory)?.collect::<io::Result<Vec<_>>>()?;
        let is_settled = entries.iter().any(|entry| {
            let name = entry.file_name();
            let code = name.to_str().and_then(code);
            code.is_some_and(|(_, engine)| engine == self.fingerprint) && is_old(entry)
        });
        for entry in entries {
            let name = entry.file_name();
            let Some(name) = name.to_str() else { continue };
            let goes = match code(name) {
                Some((digest, engine)) if engine == self.fingerprint => {
                    !self.is_needed(digest, &is_wanted)
                }
                Some(_) => is_settled && is_old(&entry),
                None => name.ends_with(".tmp") && is_old(&entry),
            };
            let size = entry.metadata().map_or(0, |data| data.len());
            // Another host may have been quicker.
            if goes && fs::remove_file(entry.path()).is_ok() {
                (count, bytes) = (count + 1, bytes + size);
            }
        }
        Ok((count, bytes))
    }

    fn path(&self, digest: &str) -> PathBuf {
        self.directory
            .join(format!("{digest}-{}.cwasm", self.fingerprint))
    }

    /// Of whose code it will be the MAC.
    fn hasher(&self, digest: &str) -> Hasher {
        let mut hasher = Hasher::new_keyed(&self.key);
        hasher
            .update(DOMAIN)
            .update(digest.as_bytes())
            .update(self.fingerprint.as_bytes());
        hasher
    }
}

/// The digest and the engine that a file of native code is named by.
fn code(name: &str) -> Option<(&str, &str)> {
    name.strip_suffix(".cwasm")?.split_once('-')
}

fn is_old(entry: &DirEntry) -> bool {
    let written = entry.metadata().and_then(|data| data.modified());
    written.is_ok_and(|written| written.elapsed().is_ok_and(|age| age > OLD))
}

/// The key that is there, or one that is made: by one opener at a time, so that what one writes, the others read.
fn key(directory: &Path, owner: u32) -> io::Result<[u8; KEY_BYTES]> {
    let lock = File::open(directory)?;
    if let Err(error) = lock.lock() {
        tracing::debug!(%error, "no lock on the cache directory: of several that begin at once each may compile for itself");
    }
    match read_key(&directory.join(KEY_FILE), owner)? {
        Some(key) => Ok(key),
        None => make_key(directory),
    }
}

/// `None`: there is none, or one of no use.
fn read_key(path: &Path, owner: u32) -> io::Result<Option<[u8; KEY_BYTES]>> {
    let mut file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    // A key that others could read or write authenticates nothing.
    let data = file.metadata()?;
    if data.mode() & 0o077 != 0 || data.uid() != owner {
        tracing::warn!(path = %path.display(), "the cache key is open to other users, or another's: making a new one");
        return Ok(None);
    }
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes)?;
    Ok(bytes.try_into().ok())
}

fn make_key(directory: &Path) -> io::Result<[u8; KEY_BYTES]> {
    let mut key = [0; KEY_BYTES];
    rand::rng().fill_bytes(&mut key);
    let (mut file, scratch) = scratch(directory)?;
    file.write_all(&key)?;
    fs::rename(scratch, directory.join(KEY_FILE))?;
    Ok(key)
}

/// The user whom what is made here belongs to. Where nothing can be made, this process's.
fn owner(directory: &Path) -> u32 {
    let made = scratch(directory).and_then(|(file, path)| {
        fs::remove_file(path)?;
        Ok(file.metadata()?.uid())
    });
    made.unwrap_or_else(|_| rustix::process::geteuid().as_raw())
}

/// Whether no other machine has the file, which could take it away while it is run.
fn is_local(file: &File) -> bool {
    let found = rustix::fs::fstatfs(file);
    found.is_ok_and(|found| !REMOTE.contains(&(found.f_type as u32)))
}

/// A new private file. Who shares the directory may have our process's number, too, in a container: so its name is by chance.
fn scratch(directory: &Path) -> io::Result<(File, PathBuf)> {
    let path = directory.join(format!(".{:032x}.tmp", rand::random::<u128>()));
    let file = OpenOptions::new()
        .read(true)
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&path)?;
    Ok((file, path))
}

#[cfg(test)]
mod tests {
    use std::{cell::RefCell, os::unix::fs::PermissionsExt, time::SystemTime};

    use super::*;

    fn put(cache: &Cache, digest: &str) {
        cache.put(digest, b"code", &Outside::default()).unwrap();
    }

    /// What is read is what was written, as long as nobody but its owner can write there and each bit is as it was.
    #[test]
    fn only_what_this_host_wrote_counts() {
        let directory = tempfile::tempdir().unwrap();
        let cache = Cache::open(directory.path(), "now".into()).unwrap();
        let outside = Outside::of(b"\0asm\x0d\0\x01\0").unwrap();
        cache.put("digest", b"code", &outside).unwrap();
        let kept = cache.get("digest").unwrap();
        assert_eq!((kept.code_bytes, kept.outside), (4, outside));
        let path = cache.path("digest");
        let mode = |mode| fs::set_permissions(&path, PermissionsExt::from_mode(mode)).unwrap();
        mode(0o620);
        assert!(cache.get("digest").is_none());
        mode(0o644);
        assert!(cache.get("digest").is_some());
        let others = Cache {
            owner: cache.owner + 1,
            ..Cache::open(directory.path(), "now".into()).unwrap()
        };
        assert!(others.get("digest").is_none());
        let bytes = fs::read(&path).unwrap();
        for place in 0..bytes.len() {
            let mut bytes = bytes.clone();
            bytes[place] ^= 1;
            fs::write(&path, &bytes).unwrap();
            assert!(cache.get("digest").is_none(), "{place}");
            fs::write(&path, &bytes[..place]).unwrap();
            assert!(cache.get("digest").is_none(), "{place}");
        }
        fs::write(&path, &bytes).unwrap();
        assert!(cache.get("digest").is_some());
        // Of another component, or for another engine.
        fs::rename(&path, cache.path("other")).unwrap();
        assert!(cache.get("other").is_none());
    }

    /// Who opens a new directory at the same moment has the same key: one reads what another writes.
    #[test]
    fn openers_at_once_share_a_key() {
        for _ in 0..50 {
            let directory = tempfile::tempdir().unwrap();
            let start = std::sync::Barrier::new(4);
            let caches = std::thread::scope(|scope| {
                let openers = [(); 4].map(|()| {
                    scope.spawn(|| {
                        start.wait();
                        Cache::open(directory.path(), "now".into()).unwrap()
                    })
                });
                openers.map(|opener| opener.join().unwrap())
            });
            put(&caches[0], "digest");
            for cache in &caches {
                assert!(cache.get("digest").is_some());
            }
        }
    }

    /// What nobody wants goes, of another engine only when it is old and this one has been here for as long, and so do files that were never
    /// finished; the key stays.
    #[test]
    fn only_what_is_wanted_is_kept() {
        let directory = tempfile::tempdir().unwrap();
        let cache = Cache::open(directory.path(), "now".into()).unwrap();
        let other = Cache::open(directory.path(), "later".into()).unwrap();
        let age = |path: &Path| {
            let file = File::options().write(true).open(path).unwrap();
            file.set_modified(SystemTime::now() - 2 * OLD).unwrap();
        };
        for digest in ["fresh", "stale"] {
            put(&other, digest);
        }
        age(&other.path("stale"));
        for digest in ["wanted", "deleted"] {
            put(&cache, digest);
        }
        // As after an upgrade: what the release before has compiled long ago is what it would come back to.
        assert_eq!(cache.keep_only(|_| true).unwrap(), (0, 0));
        for digest in ["wanted", "deleted"] {
            age(&cache.path(digest));
        }
        let [left, begun] = [1, 2].map(|_| cache.scratch().unwrap().1);
        age(&left);
        age(&directory.path().join(KEY_FILE));
        put(&cache, "loading");
        let loading_bytes = fs::metadata(cache.path("loading")).unwrap().len();
        let loading = RefCell::new(Some(cache.begin_loading("loading")));
        // A load that ends while it is asked whether its code is wanted.
        let is_wanted = |digest: &str| {
            if digest == "loading" {
                loading.take();
            }
            digest == "wanted"
        };
        let (count, bytes) = cache.keep_only(is_wanted).unwrap();
        assert_eq!((count, bytes), (3, 2 * loading_bytes));
        assert!(cache.get("wanted").is_some() && cache.get("deleted").is_none());
        assert!(other.get("fresh").is_some() && other.get("stale").is_none());
        assert!(begun.exists() && !left.exists());
        cache.forget("loading", is_wanted);
        assert!(cache.get("loading").is_some());
        drop(loading.take());
        cache.forget("loading", is_wanted);
        assert!(cache.get("loading").is_none());
        cache.forget("wanted", is_wanted);
        assert!(cache.get("wanted").is_some());
        cache.forget("wanted", |_| false);
        cache.forget("never was", |_| false);
        assert!(cache.get("wanted").is_none());
        let key = directory.path().join(KEY_FILE);
        assert!(read_key(&key, cache.owner).unwrap().is_some());
        assert!(read_key(&key, cache.owner + 1).unwrap().is_none());
    }
}
