//! What broken uploads and stopped hosts left behind is removed: at the start of a host, and from then on every hour.
//!
//! To a store that is not theirs all files look left over. So the directory of files has its store's mark in it, and is swept for no other
//! one; and what lies under a company that the store does not know is left alone in any case. Start reading at [`sweep`].
//!
//! Refuses to know: copies of shared files, which are the cache's own ([`super::cache`]).

use std::collections::HashSet;
use std::ffi::OsStr;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::Duration;

use cap_std::fs::{Dir, DirEntry};
use souk_domain::ids::{CompanyId, FileId};
use souk_store::db::SWEPT_WITHIN;
use souk_store::{Read, StoreError, companies, files};

use super::error::FileError;
use super::uploads::{self, LEFTOVER_AGE_MIN, PART, blocking, entries};
use crate::App;

/// In the directory of files: the id of the platform's company in the store whose files they are.
const MARK: &str = ".store";
/// What is removed is a day old, so that it is an hour late at the most.
const SWEPT_EVERY: Duration = Duration::from_secs(3_600);

/// What a store knows of files.
struct Known {
    /// What its mark says. `None`: it has not been founded yet.
    store: Option<CompanyId>,
    companies: HashSet<CompanyId>,
    /// By company and upload.
    needed: HashSet<(String, String)>,
}

/// Called once at start, before anything is taken in. Finds the copies of shared files that are here, too.
pub async fn sweep(app: &App) -> Result<(), FileError> {
    let known = ask(app).await?;
    if let Some(shared) = &app.shared_files {
        shared.cache.scan(known.needed.clone()).await?;
    }
    // Where nobody else has the store, nobody else takes in what it will name.
    let unfinished_age_min = match app.db.is_shared() {
        true => LEFTOVER_AGE_MIN,
        false => Duration::ZERO,
    };
    run(app, known, unfinished_age_min).await
}

/// Sweeps from now on, on the current runtime.
pub fn keep_swept(app: &App) {
    let app = app.clone();
    tokio::spawn(async move {
        loop {
            tokio::time::sleep(SWEPT_EVERY).await;
            let swept = async { run(&app, ask(&app).await?, LEFTOVER_AGE_MIN).await };
            if let Err(error) = swept.await {
                tracing::warn!(%error, "the companies' files could not be swept; trying again later");
            }
        }
    });
}

async fn ask(app: &App) -> Result<Known, StoreError> {
    let known = async { known(&mut app.db.read().await?).await };
    app.db.answered(SWEPT_WITHIN, known).await
}

async fn known(read: &mut Read) -> Result<Known, StoreError> {
    let platform = companies::platform(read).await?;
    Ok(Known {
        store: platform.map(|company| company.id),
        companies: companies::ids(read).await?.into_iter().collect(),
        needed: files::uploads(read).await?.into_iter().collect(),
    })
}

async fn run(app: &App, known: Known, unfinished_age_min: Duration) -> Result<(), FileError> {
    let path = app.files_dir.clone();
    let work = move || {
        let mut sweep = Sweep {
            files: uploads::root(&path)?,
            path,
            known,
            unfinished_age_min,
            uploads: 0,
            bytes: 0,
        };
        sweep.all();
        Ok(())
    };
    Ok(blocking(work).await?)
}

struct Sweep {
    files: Dir,
    /// Of `files`.
    path: PathBuf,
    known: Known,
    /// Of an upload that was still being taken in.
    unfinished_age_min: Duration,
    /// How many were removed, and what was in them.
    uploads: usize,
    bytes: u64,
}

impl Sweep {
    fn all(&mut self) {
        let Some(store) = self.known.store.clone() else {
            return;
        };
        let found = entries(&self.files, &self.path);
        let found = found.into_iter().filter_map(|entry| {
            let company = company(&entry.file_name())?;
            is_directory(&entry).then_some((company, entry))
        });
        let is_known =
            |(company, _): &(CompanyId, DirEntry)| self.known.companies.contains(company);
        let (own, strange): (Vec<_>, Vec<_>) = found.partition(is_known);
        let strange: Vec<&CompanyId> = strange.iter().map(|(company, _)| company).collect();
        if !self.is_marked(&store, &strange) {
            return;
        }
        for (company, directory) in own {
            self.company(&company, &directory);
        }
        if self.uploads > 0 {
            let (path, uploads, bytes) = (self.path.display(), self.uploads, self.bytes);
            tracing::info!(%path, uploads, bytes, "what broken uploads and stopped hosts left behind was removed");
        }
    }

    /// Whether these files are this store's. Where nothing says whose they are, and it knows all their companies, they are from now on.
    fn is_marked(&self, store: &CompanyId, strange: &[&CompanyId]) -> bool {
        let (path, companies) = (self.path.display(), strange.len());
        let mark = match self.files.read_to_string(MARK) {
            Ok(mark) => mark.trim().to_owned(),
            Err(error) if error.kind() == ErrorKind::NotFound => String::new(),
            Err(error) => {
                tracing::warn!(%path, %error, "nothing is swept here: {MARK} cannot be read, which says whose files these are");
                return false;
            }
        };
        match (mark.as_str(), strange.first()) {
            (mark, None) if mark == store.as_str() => true,
            (mark, Some(company)) if mark == store.as_str() => {
                tracing::warn!(%path, companies, %company, "there are files of companies that this store does not know: they are left alone; remove them by hand if nobody needs them");
                true
            }
            ("", None) => self.mark(store),
            ("", Some(company)) => {
                tracing::warn!(%path, companies, %company, %store, "nothing is swept here: there are files of companies that this store does not know. Start the host with the store whose files these are, or with another --data-dir; if they are this store's, write its id, {store}, into {MARK}");
                false
            }
            (mark, _) => {
                tracing::warn!(%path, mark, %store, "nothing is swept here: {MARK} says that these are the files of another store. Start the host with that one, or with another --data-dir; if they are this store's, write its id, {store}, into {MARK}");
                false
            }
        }
    }

    /// False: it could not be written.
    fn mark(&self, store: &CompanyId) -> bool {
        let part = format!("{MARK}{PART}");
        let written = self
            .files
            .write(&part, format!("{store}\n"))
            .and_then(|()| self.files.rename(&part, &self.files, MARK));
        if let Err(error) = &written {
            let path = self.path.display();
            tracing::warn!(%path, %error, "nothing is swept here: {MARK} could not be written, which would say whose files these are; make the directory writable");
        }
        written.is_ok()
    }

    fn company(&mut self, company: &CompanyId, directory: &DirEntry) {
        let path = self.path.join(company.as_str());
        let uploads = match directory.open_dir() {
            Ok(uploads) => uploads,
            Err(error) => return not_swept(&path, &error),
        };
        for entry in entries(&uploads, &path) {
            if let Some(age_min) = self.age_min(company, &entry.file_name())
                && is_directory(&entry)
            {
                self.upload(&uploads, &path, &entry, age_min);
            }
        }
    }

    /// As old an upload has to be that nothing names. `None`: it is needed, or is no upload.
    fn age_min(&self, company: &CompanyId, name: &OsStr) -> Option<Duration> {
        let name = name.to_str()?;
        let (upload, age_min) = match name.strip_suffix(PART) {
            Some(upload) => (upload, self.unfinished_age_min),
            None => (name, LEFTOVER_AGE_MIN),
        };
        let is_upload = FileId::made(upload).is_some();
        let key = (company.to_string(), name.to_owned());
        (is_upload && !self.known.needed.contains(&key)).then_some(age_min)
    }

    fn upload(&mut self, uploads: &Dir, path: &Path, upload: &DirEntry, age_min: Duration) {
        let removed = looked_at(upload).and_then(|(age, bytes)| {
            if age < age_min {
                return Ok(None);
            }
            uploads.remove_dir_all(upload.file_name())?;
            Ok(Some(bytes))
        });
        match removed {
            Ok(Some(bytes)) => {
                self.uploads += 1;
                self.bytes += bytes;
            }
            Ok(None) => {}
            // Another host has the same directory.
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) => not_swept(&path.join(upload.file_name()), &error),
        }
    }
}

fn not_swept(path: &Path, error: &std::io::Error) {
    let path = path.display();
    tracing::warn!(%path, %error, "what may be left over here could not be looked at, or removed");
}

/// `lost+found`, say, is none.
fn company(name: &OsStr) -> Option<CompanyId> {
    CompanyId::made(name.to_str()?)
}

fn is_directory(entry: &DirEntry) -> bool {
    entry.file_type().is_ok_and(|kind| kind.is_dir())
}

/// For how long nothing was written there, and how many bytes there are.
fn looked_at(upload: &DirEntry) -> std::io::Result<(Duration, u64)> {
    let mut written = upload.metadata()?.modified()?;
    let mut bytes = 0;
    for file in upload.open_dir()?.entries()? {
        let file = file?.metadata()?;
        written = written.max(file.modified()?);
        bytes += file.len();
    }
    let age = written.into_std().elapsed().unwrap_or_default();
    Ok((age, bytes))
}
