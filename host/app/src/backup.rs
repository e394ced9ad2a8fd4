//! A backup of a running host: one stream, a tar archive, from which `souk restore` makes a data directory.
//!
//! What is in it fits together, whatever goes on meanwhile. The store is copied at one instant, with everything that was answered before; the
//! companies' files, which never change under their name, are held by links of their own until they have been sent. The master key is not in
//! it, only its fingerprint: who steals a backup opens no secret. Of a store on a server of its own it holds the files. Files that lie in an object
//! store are not in it: that has backups of its own.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use souk_domain::ids::FileId;
use souk_store::StoreError;
use souk_store::backup::{self as store, NamedFile};
use souk_store::resealing::key_in_use;
use tokio::sync::mpsc;

use crate::App;
use crate::detached::to_the_end;
/// Below it a data directory has them, and an archive.
pub use crate::files::FILES;
use crate::files::LEFTOVER_AGE_MIN;

pub const FORMAT: u32 = 1;
pub const MANIFEST: &str = "manifest.json";
/// The last entry: an archive without it was cut off.
pub const COMPLETE: &str = "complete.json";
pub const STORE: &str = "souk.db";

/// Pieces on their way, and how large they are: 2 MiB that wait for the client.
const PIECES: usize = 8;
const PIECE_BYTES: usize = 256 << 10;

/// Beside the directory of files, with an id behind it: what a backup needs while it is sent.
const HELD: &str = "backup-";

/// The first entry of an archive.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Manifest {
    pub format: u32,
    pub souk_version: String,
    pub taken_at: String,
    /// `sqlite`, or `postgres`: then the store itself is not in it.
    pub store: String,
    pub schema_version: i64,
    /// Of the master key without which no secret opens.
    pub key_fingerprint: Option<String>,
    /// Where the companies' files lie that are not in it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub object_store: Option<String>,
    pub files: Vec<KeptFile>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct KeptFile {
    /// Below `files`.
    pub path: String,
    pub size_bytes: u64,
    pub sha256: String,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Complete {
    /// Of the store, if it is in the archive.
    pub store_sha256: Option<String>,
    pub files: usize,
    /// Files that were deleted while the backup was taken.
    pub missing_files: Vec<String>,
    /// Files that are not what was uploaded: this host's disk has lost of them what is missing.
    #[serde(default)]
    pub damaged_files: Vec<String>,
}

#[derive(Debug, thiserror::Error)]
pub enum BackupError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("{0}")]
    Io(#[from] io::Error),
}

/// What is ready to be sent: a directory of its own on the disk of the files, removed when this is dropped.
struct Held {
    directory: PathBuf,
    manifest: Manifest,
    has_store: bool,
    missing: Vec<String>,
}

impl Drop for Held {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_dir_all(&self.directory) {
            tracing::warn!(directory = %self.directory.display(), %error, "what a backup needed could not be removed");
        }
    }
}

/// Removes what a backup needed that was being sent when its host died: its links keep the bytes of files that were deleted, which nobody counts.
/// Called once at start.
pub async fn sweep(app: &App) {
    let parent = parent(app);
    // Where hosts share a store, another one may be sending a backup from this directory.
    let age_min = match app.db.is_shared() {
        true => LEFTOVER_AGE_MIN,
        false => Duration::ZERO,
    };
    let swept = tokio::task::spawn_blocking(move || remove_left_over(&parent, age_min)).await;
    if let Ok(Err(error)) = swept {
        tracing::warn!(%error, "what broken backups left behind could not be looked for");
    }
}

fn remove_left_over(parent: &Path, age_min: Duration) -> io::Result<()> {
    for entry in fs::read_dir(parent)?.flatten() {
        let is_old = || {
            let made = entry.metadata().and_then(|found| found.modified());
            let age = made.map(|made| made.elapsed().unwrap_or_default());
            age.is_ok_and(|age| age >= age_min)
        };
        if !is_held(&entry.file_name()) || !is_old() {
            continue;
        }
        let path = entry.path();
        let directory = path.display();
        match fs::remove_dir_all(&path) {
            Ok(()) => tracing::info!(%directory, "what a broken backup left behind was removed"),
            Err(error) => {
                tracing::warn!(%directory, %error, "what a broken backup left behind could not be removed: remove it by hand");
            }
        }
    }
    Ok(())
}

fn is_held(name: &OsStr) -> bool {
    let id = name.to_str().and_then(|name| name.strip_prefix(HELD));
    id.and_then(FileId::made).is_some()
}

/// Takes a backup and sends it, piece by piece. An archive that could not be finished ends with an error, and without its last entry.
pub async fn take(app: &App) -> Result<mpsc::Receiver<io::Result<Bytes>>, BackupError> {
    let app = app.clone();
    // Given up, it would go on making links in a directory that has been removed.
    let held = to_the_end((), async move { hold(&app).await });
    let held = held.await.map_err(io::Error::other)??;
    let (pieces, receiver) = mpsc::channel(PIECES);
    tokio::task::spawn_blocking(move || {
        let mut writer = Pieces {
            pieces: pieces.clone(),
            buffer: Vec::with_capacity(PIECE_BYTES),
        };
        let written = write(&held, &mut writer).and_then(|()| writer.flush());
        if let Err(error) = written {
            // A client that went away is no trouble of ours.
            if pieces
                .blocking_send(Err(io::Error::other(error.to_string())))
                .is_ok()
            {
                tracing::warn!(%error, "a backup could not be finished");
            }
        }
    });
    Ok(receiver)
}

async fn hold(app: &App) -> Result<Held, BackupError> {
    let directory = parent(app).join(format!("{HELD}{}", FileId::generate()));
    fs::create_dir_all(directory.join(FILES))?;
    let mut held = Held {
        directory,
        manifest: Manifest {
            format: FORMAT,
            souk_version: env!("CARGO_PKG_VERSION").to_owned(),
            taken_at: app.clock.now().to_string(),
            store: if app.db.is_shared() {
                "postgres"
            } else {
                "sqlite"
            }
            .to_owned(),
            schema_version: 0,
            key_fingerprint: None,
            object_store: app
                .shared_files
                .as_ref()
                .map(|shared| shared.name().to_owned()),
            files: Vec::new(),
        },
        has_store: false,
        missing: Vec::new(),
    };
    // Before the copy, which may take long, what is there now; afterwards what has come meanwhile. What the copy names is all linked then,
    // unless it was uploaded and replaced in between.
    let before = store::files(&mut *app.db.read().await?).await?;
    link(app, &held.directory, before).await?;
    held.has_store = store::copy(&app.db, &held.directory.join(STORE)).await?;
    let mut read = app.db.read().await?;
    held.manifest.schema_version = store::schema_version(&mut read).await?;
    held.manifest.key_fingerprint = key_in_use(&mut read).await?.map(|key| key.to_string());
    let named = match held.has_store {
        // What the copy names is what will be looked for when it is restored.
        true => copied_files(&held.directory.join(STORE)).await?,
        false => store::files(&mut read).await?,
    };
    drop(read);
    let linked = link(app, &held.directory, named).await?;
    for (file, bytes) in linked {
        let path = path_of(&file);
        match bytes {
            Some(size_bytes) => held.manifest.files.push(KeptFile {
                path,
                size_bytes,
                sha256: file.sha256,
            }),
            // It is an object.
            None if held.manifest.object_store.is_some() => {}
            None => held.missing.push(path),
        }
    }
    Ok(held)
}

/// On the disk of the files, so that a link is enough.
fn parent(app: &App) -> PathBuf {
    let parent = app.files_dir.parent();
    parent.unwrap_or(Path::new(".")).to_owned()
}

async fn copied_files(copy: &Path) -> Result<Vec<NamedFile>, BackupError> {
    let mut connection = souk_store::backup::open_copy(copy).await?;
    let files = store::files(&mut connection).await?;
    souk_store::backup::close_copy(connection).await?;
    Ok(files)
}

fn path_of(file: &NamedFile) -> String {
    format!("{}/{}/{}", file.company, file.upload, file.name)
}

/// Gives files a name of their own in the directory: they stay until it is removed. With each, how many bytes it has there; `None`: it is not. Away from
/// the threads that serve requests: not every disk can link.
async fn link(
    app: &App,
    directory: &Path,
    files: Vec<NamedFile>,
) -> io::Result<Vec<(NamedFile, Option<u64>)>> {
    let (from, to) = (app.files_dir.clone(), directory.join(FILES));
    let link_one = move |file: NamedFile| {
        let path = path_of(&file);
        let bytes = linked(&from.join(&path), &to.join(&path));
        (file, bytes)
    };
    let work = move || files.into_iter().map(link_one).collect();
    tokio::task::spawn_blocking(work)
        .await
        .map_err(io::Error::other)
}

fn linked(from: &Path, to: &Path) -> Option<u64> {
    if !to.exists() {
        let parent = to.parent().map_or(Ok(()), fs::create_dir_all);
        let held = parent.and_then(|()| fs::hard_link(from, to).or_else(|_| copied(from, to)));
        if let Err(error) = held {
            let path = from.display();
            tracing::debug!(%path, %error, "a file could not be held for a backup");
        }
    }
    fs::metadata(to).ok().map(|metadata| metadata.len())
}

/// Whole or not at all.
fn copied(from: &Path, to: &Path) -> io::Result<()> {
    let copied = fs::copy(from, to).map(drop);
    copied.inspect_err(|_| drop(fs::remove_file(to)))
}

fn write(held: &Held, out: &mut Pieces) -> io::Result<()> {
    let mut archive = tar::Builder::new(out);
    let manifest = serde_json::to_vec_pretty(&held.manifest)?;
    append(&mut archive, MANIFEST, manifest.len() as u64, &manifest[..])?;
    let mut store_sha256 = None;
    if held.has_store {
        let mut file = File::open(held.directory.join(STORE))?;
        let bytes = file.metadata()?.len();
        let mut digested = Digested {
            from: &mut file,
            digest: Sha256::new(),
        };
        append(&mut archive, STORE, bytes, &mut digested)?;
        store_sha256 = Some(hex::encode(digested.digest.finalize()));
    }
    let mut damaged_files = Vec::new();
    for kept in &held.manifest.files {
        let mut sent = Sent::of(
            &held.directory.join(FILES).join(&kept.path),
            kept.size_bytes,
        )?;
        let path = format!("{FILES}/{}", kept.path);
        append(&mut archive, &path, kept.size_bytes, &mut sent)?;
        if hex::encode(sent.digest.finalize()) != kept.sha256 {
            tracing::error!(
                path,
                "a file is damaged, and a backup has it so: its company has to upload it again, or an older backup be restored"
            );
            damaged_files.push(kept.path.clone());
        }
    }
    let complete = serde_json::to_vec_pretty(&Complete {
        store_sha256,
        files: held.manifest.files.len(),
        missing_files: held.missing.clone(),
        damaged_files,
    })?;
    append(&mut archive, COMPLETE, complete.len() as u64, &complete[..])?;
    archive.into_inner()?;
    Ok(())
}

fn append(
    archive: &mut tar::Builder<&mut Pieces>,
    path: &str,
    bytes: u64,
    data: impl Read,
) -> io::Result<()> {
    let mut header = tar::Header::new_gnu();
    header.set_size(bytes);
    header.set_mode(0o600);
    header.set_entry_type(tar::EntryType::Regular);
    archive.append_data(&mut header, path, data)
}

/// Reads on, and takes the digest on the way.
struct Digested<R> {
    from: R,
    digest: Sha256,
}

impl<R: Read> Read for Digested<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.from.read(buffer)?;
        self.digest.update(&buffer[..count]);
        Ok(count)
    }
}

/// As many bytes of a file as were announced, with their digest: what the disk does not give is zeros, so that one file does not end the backup of all.
struct Sent {
    /// `None`: it gives no more.
    file: Option<File>,
    left: u64,
    digest: Sha256,
}

impl Sent {
    /// What was held a moment ago and cannot be opened is no damage: too many files are open, or somebody has removed what this backup needs.
    fn of(path: &Path, bytes: u64) -> io::Result<Sent> {
        Ok(Sent {
            file: Some(File::open(path)?),
            left: bytes,
            digest: Sha256::new(),
        })
    }

    /// 0: the disk gives no more of it.
    fn given(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self.file.as_mut().map(|file| file.read(buffer)) {
            None => Ok(0),
            Some(Err(error)) if error.kind() == io::ErrorKind::Interrupted => Err(error),
            Some(given) => Ok(given.unwrap_or(0)),
        }
    }
}

impl Read for Sent {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let most = usize::try_from(self.left).unwrap_or(usize::MAX);
        let most = most.min(buffer.len());
        if most == 0 {
            return Ok(0);
        }
        let buffer = &mut buffer[..most];
        let mut count = self.given(buffer)?;
        if count == 0 {
            self.file = None;
            buffer.fill(0);
            count = most;
        }
        self.digest.update(&buffer[..count]);
        self.left -= count as u64;
        Ok(count)
    }
}

/// A writer whose other end is a stream.
struct Pieces {
    pieces: mpsc::Sender<io::Result<Bytes>>,
    buffer: Vec<u8>,
}

impl Write for Pieces {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.buffer.extend_from_slice(bytes);
        if self.buffer.len() >= PIECE_BYTES {
            self.flush()?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        if self.buffer.is_empty() {
            return Ok(());
        }
        let piece = std::mem::replace(&mut self.buffer, Vec::with_capacity(PIECE_BYTES));
        let sent = self.pieces.blocking_send(Ok(piece.into()));
        sent.map_err(|_| io::Error::new(io::ErrorKind::BrokenPipe, "the client went away"))
    }
}
