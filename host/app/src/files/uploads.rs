//! Uploads on disk: received, kept below one directory, removed.
//!
//! What is opened here is opened below a [`Dir`], which no name and no link leads out of.

use std::io::{ErrorKind, Write as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use cap_std::ambient_authority;
use cap_std::fs::{Dir, DirEntry, OpenOptions};
use futures_util::{Stream, StreamExt};
use sha2::{Digest, Sha256};
use souk_domain::ids::CompanyId;

use super::error::FileError;
use super::quota::Room;

/// Bytes held in memory per upload before they are written.
const BLOCK_BYTES: usize = 1 << 20;
/// A piece of less is copied.
const SMALL_BYTES: usize = 4 << 10;
/// One block that is being written and one that is being received.
pub const UPLOAD_MEMORY_MAX: u64 = 2 * BLOCK_BYTES as u64;
/// An upload that nothing names after a day was broken off.
pub const LEFTOVER_AGE_MIN: Duration = Duration::from_secs(24 * 3600);
/// At the end of the name of an upload, or of a copy, that is not whole yet.
pub const PART: &str = ".part";
/// A client that sends nothing for so long has gone.
const IDLE_MAX: Duration = Duration::from_secs(30);
/// Requests that still name a replaced file have opened it, or failed, long before this.
pub const REPLACED_KEPT: Duration = Duration::from_secs(60);

/// Writes the body, block by block, away from the threads that serve requests; returns once it is on disk.
pub async fn receive<S, E>(
    place: &Place,
    name: &str,
    mut body: S,
    room: &mut Room,
) -> Result<(u64, String), FileError>
where
    S: Stream<Item = Result<Bytes, E>> + Unpin,
    E: std::fmt::Display,
{
    let (place, name) = (place.clone(), name.to_owned());
    let mut sink = blocking(move || Sink::create(&place, &name)).await?;
    let mut block = Block::default();
    let mut size = 0_u64;
    loop {
        let next = tokio::time::timeout(IDLE_MAX, body.next()).await;
        let next = next.map_err(|_| {
            FileError::Aborted(format!("no byte for {} seconds", IDLE_MAX.as_secs()))
        })?;
        let Some(bytes) = next else { break };
        let bytes = bytes.map_err(|error| FileError::Aborted(error.to_string()))?;
        size += bytes.len() as u64;
        room.grow(size)?;
        block.push(bytes);
        if block.bytes >= BLOCK_BYTES {
            let full = std::mem::take(&mut block).pieces();
            sink = blocking(move || sink.write(full)).await?;
        }
    }
    if size == 0 {
        return Err(FileError::Empty);
    }
    let sha256 = blocking(move || sink.write(block.pieces())?.finish()).await?;
    Ok((size, sha256))
}

/// What is written together. Each piece of a body keeps the buffer that it was read into, so that small ones are copied: a block of single bytes would
/// take forty times its size.
#[derive(Default)]
struct Block {
    pieces: Vec<Bytes>,
    small: BytesMut,
    bytes: usize,
}

impl Block {
    fn push(&mut self, piece: Bytes) {
        self.bytes += piece.len();
        if piece.len() < SMALL_BYTES {
            self.small.extend_from_slice(&piece);
        } else {
            self.end_small();
            self.pieces.push(piece);
        }
    }

    fn end_small(&mut self) {
        if !self.small.is_empty() {
            self.pieces.push(self.small.split().freeze());
        }
    }

    fn pieces(mut self) -> Vec<Bytes> {
        self.end_small();
        self.pieces
    }
}

/// Where an upload is: `<company>/<upload>` below the directory of all files.
#[derive(Clone)]
pub struct Place {
    files_dir: PathBuf,
    company: CompanyId,
    upload: String,
}

impl Place {
    pub fn of(files_dir: &Path, company: &CompanyId, upload: &str) -> Place {
        Place {
            files_dir: files_dir.to_owned(),
            company: company.clone(),
            upload: upload.to_owned(),
        }
    }

    pub fn company(&self) -> &CompanyId {
        &self.company
    }

    /// The directory that holds this upload and nothing else.
    pub fn directory(&self) -> PathBuf {
        self.files_dir
            .join(self.company.as_str())
            .join(&self.upload)
    }

    fn uploads(&self) -> std::io::Result<Dir> {
        root(&self.files_dir)?.open_dir(self.company.as_str())
    }

    /// Opens its file.
    pub fn read(&self, name: &str) -> std::io::Result<std::fs::File> {
        let upload = self.uploads()?.open_dir(&self.upload)?;
        Ok(upload.open(name)?.into_std())
    }

    /// Whether its file is there, with so many bytes. One that is something else is [`std::io::ErrorKind::InvalidData`].
    pub fn look_at(&self, name: &str, bytes: u64) -> std::io::Result<()> {
        let path = self.directory().join(name);
        // What is no file is not opened: a pipe would hold this thread.
        let found = std::fs::symlink_metadata(&path)?;
        if !found.is_file() || found.len() != bytes {
            let reason = format!("it has {} bytes instead of {bytes}", found.len());
            return Err(std::io::Error::new(ErrorKind::InvalidData, reason));
        }
        Ok(())
    }

    /// Takes `suffix` off the directory's name, for good.
    pub fn without(mut self, suffix: &str) -> std::io::Result<Place> {
        let uploads = self.uploads()?;
        let name = self
            .upload
            .strip_suffix(suffix)
            .unwrap_or(&self.upload)
            .to_owned();
        uploads.rename(&self.upload, &uploads, &name)?;
        uploads.open(".")?.sync_all()?;
        self.upload = name;
        Ok(self)
    }

    /// Moves the directory with what is in it to another of the same disk.
    pub fn move_to(&self, other: &Place) -> std::io::Result<()> {
        let to = root(&other.files_dir)?;
        to.create_dir_all(other.company.as_str())?;
        self.uploads()?
            .rename(&self.upload, &other.uploads()?, &other.upload)
    }

    pub fn remove(&self) {
        let removed = self
            .uploads()
            .and_then(|uploads| uploads.remove_dir_all(&self.upload));
        match removed {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                let (company, upload) = (&self.company, &self.upload);
                tracing::warn!(%company, upload, %error, "could not remove an upload");
            }
            _ => {}
        }
    }
}

/// The directory of all files, made when there is none.
pub fn root(files_dir: &Path) -> std::io::Result<Dir> {
    Dir::create_ambient_dir_all(files_dir, ambient_authority())?;
    Dir::open_ambient_dir(files_dir, ambient_authority())
}

/// What is in a directory, as far as it can be looked at: what cannot is said in the log, and nobody stops for it.
pub fn entries(directory: &Dir, path: &Path) -> Vec<DirEntry> {
    let unseen = |error: &std::io::Error| {
        let path = path.display();
        tracing::warn!(%path, %error, "a directory could not be looked at");
    };
    let listed = directory.entries().inspect_err(unseen);
    let listed = listed.into_iter().flatten();
    listed
        .filter_map(|entry| entry.inspect_err(unseen).ok())
        .collect()
}

/// A file being written, with the digest of what is in it so far.
pub struct Sink {
    file: cap_std::fs::File,
    upload: Dir,
    uploads: Dir,
    digest: Sha256,
}

impl Sink {
    pub fn create(place: &Place, name: &str) -> std::io::Result<Sink> {
        let files = root(&place.files_dir)?;
        files.create_dir_all(place.company.as_str())?;
        let uploads = files.open_dir(place.company.as_str())?;
        uploads.create_dir(&place.upload)?;
        let upload = uploads.open_dir(&place.upload)?;
        let file = upload.open_with(name, OpenOptions::new().write(true).create_new(true))?;
        Ok(Sink {
            file,
            upload,
            uploads,
            digest: Sha256::new(),
        })
    }

    pub fn write(mut self, block: Vec<Bytes>) -> std::io::Result<Sink> {
        for bytes in block {
            self.digest.update(&bytes);
            self.file.write_all(&bytes)?;
        }
        Ok(self)
    }

    /// The file, its name and the name of its directory outlive a power failure from here on.
    pub fn finish(self) -> std::io::Result<String> {
        self.file.sync_all()?;
        for directory in [self.upload, self.uploads] {
            directory.open(".")?.sync_all()?;
        }
        Ok(hex::encode(self.digest.finalize()))
    }
}

/// Removes an upload that did not become a file.
pub struct Leftover(Option<Place>);

impl Leftover {
    pub fn of(place: &Place) -> Leftover {
        Leftover(Some(place.clone()))
    }

    pub fn keep(mut self) {
        self.0 = None;
    }
}

impl Drop for Leftover {
    fn drop(&mut self) {
        if let Some(place) = self.0.take() {
            let later = place.clone();
            let remover = std::thread::Builder::new().spawn(move || later.remove());
            // No thread is to be had: a moment here, where there may be a panic already.
            if remover.is_err() {
                place.remove();
            }
        }
    }
}

/// Removes a file's upload that another has replaced.
pub fn remove_later(place: Place) {
    tokio::spawn(async move {
        tokio::time::sleep(REPLACED_KEPT).await;
        let _ = tokio::task::spawn_blocking(move || place.remove()).await;
    });
}

pub async fn blocking<T, F>(work: F) -> std::io::Result<T>
where
    T: Send + 'static,
    F: FnOnce() -> std::io::Result<T> + Send + 'static,
{
    match tokio::task::spawn_blocking(work).await {
        Ok(done) => done,
        Err(error) => Err(std::io::Error::other(error)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(files_dir: &Path) -> Place {
        Place {
            files_dir: files_dir.to_owned(),
            company: CompanyId::generate(),
            upload: "upl_1".to_owned(),
        }
    }

    /// What is received is there under its name, and is gone when it is removed.
    #[test]
    fn uploads_are_kept_and_removed() {
        let directory = tempfile::tempdir().unwrap();
        let place = place(&directory.path().join("files"));
        let sink = Sink::create(&place, "a.csv").unwrap();
        let sink = sink.write(vec![Bytes::from("a,b\n")]).unwrap();
        sink.finish().unwrap();
        let upload = place.directory();
        let kept = std::fs::read(upload.join("a.csv")).unwrap();
        assert_eq!(kept, b"a,b\n");
        place.remove();
        assert!(!upload.exists());
        // A second time there is nothing to do, and nothing to complain about.
        place.remove();
    }

    /// Neither a name nor a link, whoever made it, leads out of the directory of all files.
    #[test]
    fn nothing_leads_out_of_the_directory() {
        let directory = tempfile::tempdir().unwrap();
        let (files, outside) = (
            directory.path().join("files"),
            directory.path().join("outside"),
        );
        std::fs::create_dir_all(&files).unwrap();
        std::fs::create_dir_all(outside.join("upl_1")).unwrap();
        std::fs::write(outside.join("upl_1/b.csv"), "kept").unwrap();
        for name in ["../../../c.csv", "/tmp/souk-c.csv"] {
            assert!(Sink::create(&place(&files), name).is_err(), "{name}");
        }
        let linked = place(&files);
        std::os::unix::fs::symlink(&outside, files.join(linked.company.as_str())).unwrap();
        assert!(Sink::create(&linked, "c.csv").is_err());
        linked.remove();
        let left = |path: &Path| std::fs::read_dir(path).unwrap().count();
        assert_eq!((left(directory.path()), left(&outside)), (2, 1));
        assert_eq!(std::fs::read(outside.join("upl_1/b.csv")).unwrap(), b"kept");
    }
}
