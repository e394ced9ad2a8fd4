//! A company's files: bytes that a file engine reads.
//!
//! Every upload gets a directory of its own, `<files_dir>/<company>/<upload>/<name>`, which nothing
//! names until the file's row is committed. So a reader sees the old file or the new one, never a
//! part of either, and a connector is granted the one file that its connection names.
//! What is opened here is opened below a [`Dir`], which no name and no link leads out of.
//! Refuses to know: what is in a file. An engine says so when it reads it.

use std::collections::HashMap;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use bytes::Bytes;
use cap_std::ambient_authority;
use cap_std::fs::{Dir, OpenOptions};
use futures_util::{Stream, StreamExt};
use parking_lot::Mutex;
use sha2::{Digest, Sha256};
use souk_domain::connections::is_file_name;
use souk_domain::ids::{CompanyId, ConnectionId, FileId};
use souk_store::files::File;
use souk_store::{StoreError, connections, files};

use crate::App;

/// Large enough for the datasets of an analytics seller, small enough to copy in a minute.
pub const FILE_BYTES_MAX: u64 = 1 << 30;
/// All files of one company together: what one company may take of a disk that all share. The operator may say otherwise.
pub const COMPANY_BYTES_MAX: u64 = 16 << 30;
/// All files of one company: a list of them stays readable.
pub const COMPANY_FILES_MAX: i64 = 1_000;
/// Bytes held in memory per upload before they are written.
const BLOCK_BYTES: usize = 1 << 20;
/// One block that is being written and one that is being received.
pub const UPLOAD_MEMORY_MAX: u64 = 2 * BLOCK_BYTES as u64;
/// A client that sends nothing for so long has gone.
const IDLE_MAX: Duration = Duration::from_secs(30);
/// Requests that still name a replaced file have opened it, or failed, long before this.
const REPLACED_KEPT: Duration = Duration::from_secs(60);
/// An upload that nothing names after a day was broken off.
const LEFTOVER_AGE_MIN: Duration = Duration::from_secs(24 * 3600);

#[derive(Debug, thiserror::Error)]
pub enum FileError {
    #[error(
        "a file's name has 1 to 128 characters of a-z, A-Z, 0-9, _, . and -, and begins with a letter, a digit or _"
    )]
    Name,
    #[error("a file may have at most {max} bytes")]
    TooLarge { max: u64 },
    #[error(
        "the company's files, with those that are being uploaded, may have at most {max} bytes together; delete some first"
    )]
    CompanyFull { max: u64 },
    #[error(
        "a company may have at most {} files; delete some first",
        COMPANY_FILES_MAX
    )]
    TooManyFiles,
    #[error("the upload broke off: {0}")]
    Aborted(String),
    #[error("the body is the file, and it is empty; nothing was changed")]
    Empty,
    #[error("the file is read by {}", list(.0))]
    InUse(Vec<ConnectionId>),
    #[error("there is no such file")]
    NotFound,
    #[error("could not write the file: {0}")]
    Io(#[from] std::io::Error),
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Streams `body`, which says that it has `declared` bytes, to disk and makes it the company's file of that name. True: the name is new.
pub async fn put<S, E>(
    app: &App,
    company: &CompanyId,
    name: &str,
    declared: Option<u64>,
    body: S,
) -> Result<(File, bool), FileError>
where
    S: Stream<Item = Result<Bytes, E>> + Unpin,
    E: std::fmt::Display,
{
    if !is_file_name(name) {
        return Err(FileError::Name);
    }
    let others = others(app, company, name).await?;
    let mut room = app.files.room(company, others);
    room.grow(declared.unwrap_or(0))?;
    let upload = FileId::generate();
    let place = Place::of(app, company, upload.as_str());
    let guard = Leftover(Some(place.clone()));
    let (size_bytes, sha256) = receive(place, name, body, &mut room).await?;
    let now = app.clock.now();
    let file = File {
        name: name.to_owned(),
        upload_id: upload.to_string(),
        size_bytes: size_bytes as i64,
        sha256,
        created_at: now,
        updated_at: now,
    };

    let (before, file, users) = app
        .db
        .write(async |tx| -> Result<_, FileError> {
            files::lock_company(tx, company).await?;
            let before = files::get(tx, company, name).await?;
            let file = File {
                created_at: before.as_ref().map_or(now, |before| before.created_at),
                ..file
            };
            let users = files::put(tx, company, &file).await?;
            // Other uploads have ended meanwhile, here and on other hosts. Only now is it certain what there is.
            let (count, bytes) = files::totals(tx, company).await?;
            app.files.check(bytes.max(0) as u64)?;
            if before.is_none() && count > COMPANY_FILES_MAX {
                return Err(FileError::TooManyFiles);
            }
            Ok((before, file, users))
        })
        .await?;
    drop(room);
    guard.keep();

    for id in &users {
        app.sandbox.forget(company.as_str(), id.as_str());
    }
    if let Some(before) = &before {
        remove_later(Place::of(app, company, &before.upload_id));
    }
    Ok((file, before.is_none()))
}

/// Deletes a file that no connection reads.
pub async fn delete(app: &App, company: &CompanyId, name: &str) -> Result<(), FileError> {
    let file = app
        .db
        .write(async |tx| -> Result<_, FileError> {
            let file = files::get(tx, company, name)
                .await?
                .ok_or(FileError::NotFound)?;
            // The row goes first: who creates a connection to it meanwhile waits for this transaction.
            files::delete(tx, company, name).await?;
            let users = connections::using_file(tx, company, name).await?;
            if !users.is_empty() {
                return Err(FileError::InUse(users));
            }
            Ok(file)
        })
        .await?;
    remove_later(Place::of(app, company, &file.upload_id));
    Ok(())
}

/// The directory that holds one upload and nothing else.
pub fn directory(files_dir: &Path, company: &CompanyId, upload_id: &str) -> PathBuf {
    files_dir.join(company.as_str()).join(upload_id)
}

/// Deletes what broken uploads and stopped hosts left behind. Called once at start.
pub async fn sweep(app: &App) -> Result<usize, FileError> {
    let needed = files::uploads(&mut *app.db.read().await?).await?;
    let needed: std::collections::HashSet<(String, String)> = needed.into_iter().collect();
    let files_dir = app.files_dir.clone();
    blocking(move || {
        let mut removed = 0;
        for company in root(&files_dir)?.entries()? {
            let company = company?;
            if !company.file_type()?.is_dir() {
                continue;
            }
            let uploads = company.open_dir()?;
            for upload in uploads.entries()? {
                let upload = upload?;
                let name = upload.file_name();
                let key = (
                    company.file_name().to_string_lossy().into_owned(),
                    name.to_string_lossy().into_owned(),
                );
                let written = upload.metadata()?.modified()?.into_std();
                let age = written.elapsed().unwrap_or_default();
                if !needed.contains(&key) && age > LEFTOVER_AGE_MIN {
                    uploads.remove_dir_all(name)?;
                    removed += 1;
                }
            }
        }
        Ok(removed)
    })
    .await
}

/// The bytes of the company's files but `name`, if there may be a file of that name.
async fn others(app: &App, company: &CompanyId, name: &str) -> Result<u64, FileError> {
    let mut db = app.db.read().await?;
    let (count, bytes) = files::totals(&mut db, company).await?;
    let replaced = files::get(&mut db, company, name).await?;
    if replaced.is_none() && count >= COMPANY_FILES_MAX {
        return Err(FileError::TooManyFiles);
    }
    let others = bytes - replaced.map_or(0, |file| file.size_bytes);
    Ok(others.max(0) as u64)
}

/// How much of the disk each company may take, and what its uploads under way have been promised of that.
pub struct Quota {
    company_max: u64,
    promised: Mutex<HashMap<CompanyId, u64>>,
}

impl Quota {
    pub fn new(company_max: u64) -> Quota {
        Quota {
            company_max,
            promised: Mutex::default(),
        }
    }

    /// Room for one upload, beside `others` bytes of files. Nothing is promised yet.
    fn room(&self, company: &CompanyId, others: u64) -> Room<'_> {
        Room {
            quota: self,
            company: company.clone(),
            others,
            promised: 0,
        }
    }

    fn check(&self, bytes: u64) -> Result<(), FileError> {
        match bytes > self.company_max {
            true => Err(FileError::CompanyFull {
                max: self.company_max,
            }),
            false => Ok(()),
        }
    }
}

/// What is promised to one upload; dropping it takes the promise back.
struct Room<'a> {
    quota: &'a Quota,
    company: CompanyId,
    others: u64,
    promised: u64,
}

impl Room<'_> {
    /// Sees to it that `bytes` in all are promised, or refuses.
    fn grow(&mut self, bytes: u64) -> Result<(), FileError> {
        if bytes > FILE_BYTES_MAX {
            return Err(FileError::TooLarge {
                max: FILE_BYTES_MAX,
            });
        }
        let Some(more) = bytes.checked_sub(self.promised).filter(|more| *more > 0) else {
            return Ok(());
        };
        let mut promised = self.quota.promised.lock();
        let together = promised.get(&self.company).copied().unwrap_or_default() + more;
        self.quota.check(self.others + together)?;
        promised.insert(self.company.clone(), together);
        self.promised = bytes;
        Ok(())
    }
}

impl Drop for Room<'_> {
    fn drop(&mut self) {
        let mut promised = self.quota.promised.lock();
        if let Some(together) = promised.get_mut(&self.company) {
            *together -= self.promised;
            if *together == 0 {
                promised.remove(&self.company);
            }
        }
    }
}

/// Writes the body, block by block, away from the threads that serve requests; returns once it is on disk.
async fn receive<S, E>(
    place: Place,
    name: &str,
    mut body: S,
    room: &mut Room<'_>,
) -> Result<(u64, String), FileError>
where
    S: Stream<Item = Result<Bytes, E>> + Unpin,
    E: std::fmt::Display,
{
    let name = name.to_owned();
    let mut sink = blocking(move || Sink::create(&place, &name)).await?;
    let mut block: Vec<Bytes> = Vec::new();
    let (mut pending, mut size) = (0, 0_u64);
    loop {
        let next = tokio::time::timeout(IDLE_MAX, body.next()).await;
        let next = next.map_err(|_| {
            FileError::Aborted(format!("no byte for {} seconds", IDLE_MAX.as_secs()))
        })?;
        let Some(bytes) = next else { break };
        let bytes = bytes.map_err(|error| FileError::Aborted(error.to_string()))?;
        size += bytes.len() as u64;
        room.grow(size)?;
        pending += bytes.len();
        block.push(bytes);
        if pending >= BLOCK_BYTES {
            let full = std::mem::take(&mut block);
            pending = 0;
            sink = blocking(move || sink.write(full)).await?;
        }
    }
    if size == 0 {
        return Err(FileError::Empty);
    }
    let sha256 = blocking(move || sink.write(block)?.finish()).await?;
    Ok((size, sha256))
}

/// Where an upload is: `<company>/<upload>` below the directory of all files.
#[derive(Clone)]
struct Place {
    files_dir: PathBuf,
    company: CompanyId,
    upload: String,
}

impl Place {
    fn of(app: &App, company: &CompanyId, upload: &str) -> Place {
        Place {
            files_dir: app.files_dir.clone(),
            company: company.clone(),
            upload: upload.to_owned(),
        }
    }

    fn remove(&self) {
        let removed = root(&self.files_dir)
            .and_then(|files| files.open_dir(self.company.as_str()))
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
fn root(files_dir: &Path) -> std::io::Result<Dir> {
    Dir::create_ambient_dir_all(files_dir, ambient_authority())?;
    Dir::open_ambient_dir(files_dir, ambient_authority())
}

/// A file being written, with the digest of what is in it so far.
struct Sink {
    file: cap_std::fs::File,
    upload: Dir,
    uploads: Dir,
    digest: Sha256,
}

impl Sink {
    fn create(place: &Place, name: &str) -> std::io::Result<Sink> {
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

    fn write(mut self, block: Vec<Bytes>) -> std::io::Result<Sink> {
        for bytes in block {
            self.digest.update(&bytes);
            self.file.write_all(&bytes)?;
        }
        Ok(self)
    }

    /// The file, its name and the name of its directory outlive a power failure from here on.
    fn finish(self) -> std::io::Result<String> {
        self.file.sync_all()?;
        for directory in [self.upload, self.uploads] {
            directory.open(".")?.sync_all()?;
        }
        Ok(hex::encode(self.digest.finalize()))
    }
}

/// Removes an upload that did not become a file.
struct Leftover(Option<Place>);

impl Leftover {
    fn keep(mut self) {
        self.0 = None;
    }
}

impl Drop for Leftover {
    fn drop(&mut self) {
        if let Some(place) = self.0.take() {
            std::thread::spawn(move || place.remove());
        }
    }
}

fn remove_later(place: Place) {
    tokio::spawn(async move {
        tokio::time::sleep(REPLACED_KEPT).await;
        let _ = tokio::task::spawn_blocking(move || place.remove()).await;
    });
}

async fn blocking<T, F>(work: F) -> Result<T, FileError>
where
    T: Send + 'static,
    F: FnOnce() -> std::io::Result<T> + Send + 'static,
{
    match tokio::task::spawn_blocking(work).await {
        Ok(done) => Ok(done?),
        Err(error) => Err(FileError::Io(std::io::Error::other(error))),
    }
}

fn list(ids: &[ConnectionId]) -> String {
    ids.iter()
        .map(ConnectionId::as_str)
        .collect::<Vec<_>>()
        .join(", ")
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
        let upload = super::directory(&place.files_dir, &place.company, &place.upload);
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
