//! Files that hosts share: each upload is an object in the operator's object store before it is a file, and a host that lacks one fetches it
//! when a session is opened on it, once for all who wait. What is on this host's disk already is lent without a question to anybody, so it goes
//! on being served while the object store is away.
//!
//! Transfers run on the background threads: whoever waits on a worker's thread only waits. Start reading at [`SharedFiles::lend`].

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use futures_util::FutureExt;
use futures_util::future::{BoxFuture, Shared};
use parking_lot::Mutex;
use souk_domain::ids::CompanyId;
use souk_sandbox::{Blame, Fault, FaultKind, Grant, LENT_WITHIN, Lender, Lent};
use souk_store::files::File;
use tokio::runtime::Handle;
use tokio::task::JoinSet;

use super::cache::{Cache, ShareInUse};
use super::error::ObjectError;
use super::objects::Objects;
use super::uploads::{Leftover, Place, Sink, blocking};

/// Below the data directory.
const CACHE: &str = "files-cache";
/// Where files are without an object store.
pub const FILES: &str = "files";
/// The largest file at 10 Mbit/s.
const TRANSFER_MAX: Duration = Duration::from_secs(15 * 60);
/// Who asks for a file that could not be fetched is told so for this long, and the object store is left alone.
const AWAY_SAID: Duration = Duration::from_secs(5);
/// The same where asking again is of no use before somebody has done something.
pub const BROKEN_SAID: Duration = Duration::from_secs(60);

pub struct SharedFiles {
    objects: Objects,
    pub(super) cache: Arc<Cache>,
    /// Where files lie that were uploaded here before there was an object store, or restored from a backup.
    originals: PathBuf,
    /// Where transfers run.
    runtime: Handle,
    coming: Mutex<HashMap<String, Coming>>,
    /// How often a file was fetched, and could not be.
    pub fetched: AtomicU64,
    pub not_fetched: AtomicU64,
}

/// A file on its way here, by its upload.
enum Coming {
    Under(Shared<BoxFuture<'static, Result<(), Fault>>>),
    Failed { fault: Fault, until: Instant },
}

/// What is fetched.
#[derive(Clone)]
struct Wanted {
    company: CompanyId,
    name: String,
    upload: String,
    bytes: u64,
    sha256: String,
}

/// A file as a connection is granted it.
struct Loan {
    files: Arc<SharedFiles>,
    wanted: Wanted,
}

impl Lender for Loan {
    fn lend(&self) -> BoxFuture<'_, Result<Lent, Fault>> {
        Box::pin(self.files.lend(&self.wanted))
    }
}

impl SharedFiles {
    /// On the runtime on which transfers shall run.
    pub fn new(objects: Objects, data_dir: &Path, cache_bytes_max: u64) -> Arc<SharedFiles> {
        Arc::new(SharedFiles {
            objects,
            cache: Cache::new(data_dir.join(CACHE), cache_bytes_max),
            originals: data_dir.join(FILES),
            runtime: Handle::current(),
            coming: Mutex::default(),
            fetched: AtomicU64::new(0),
            not_fetched: AtomicU64::new(0),
        })
    }

    /// Of the object store.
    pub fn name(&self) -> &str {
        &self.objects.name
    }

    /// Of the copies here, and of those that are coming.
    pub fn cached_bytes(&self) -> u64 {
        self.cache.bytes()
    }

    pub(super) fn objects(&self) -> &Objects {
        &self.objects
    }

    /// What a connection to the file is granted.
    pub(super) fn grant(self: &Arc<SharedFiles>, company: &CompanyId, file: &File) -> Grant {
        Grant::Lent(Arc::new(Loan {
            files: self.clone(),
            wanted: Wanted {
                company: company.clone(),
                name: file.name.clone(),
                upload: file.upload_id.clone(),
                bytes: file.size_bytes.cast_unsigned(),
                sha256: file.sha256.clone(),
            },
        }))
    }

    async fn lend(self: &Arc<SharedFiles>, wanted: &Wanted) -> Result<Lent, Fault> {
        let original = Place::of(&self.originals, &wanted.company, &wanted.upload).directory();
        if original.is_dir() {
            let held = Box::new(());
            return Ok(Lent {
                path: original,
                held,
            });
        }
        let fetching = async {
            loop {
                let kept = self.cache.lend(&wanted.upload);
                if let Some(kept) = kept.map_err(|ShareInUse| without_room())? {
                    let path = kept.directory();
                    // Somebody may have emptied the cache.
                    if path.is_dir() {
                        let held = Box::new(kept);
                        return Ok(Lent { path, held });
                    }
                    self.cache.forget(&wanted.upload).await;
                }
                self.coming(wanted)?.await?;
            }
        };
        let lent = tokio::time::timeout(LENT_WITHIN, fetching).await;
        lent.unwrap_or_else(|_| {
            let message = "the file is on its way to this host: try again";
            Err(fault(
                FaultKind::Unreachable,
                "file_on_its_way",
                message,
                AWAY_SAID,
            ))
        })
    }

    /// Begins to fetch the file, unless somebody has; ends when it is here, or has failed.
    fn coming(
        self: &Arc<SharedFiles>,
        wanted: &Wanted,
    ) -> Result<Shared<BoxFuture<'static, Result<(), Fault>>>, Fault> {
        let now = Instant::now();
        let mut coming = self.coming.lock();
        match coming.get(&wanted.upload) {
            Some(Coming::Under(fetching)) => return Ok(fetching.clone()),
            Some(Coming::Failed { fault, until }) if *until > now => {
                let mut fault = fault.clone();
                fault.retry_after_ms = Some((*until - now).as_millis() as u64);
                return Err(fault);
            }
            _ => {}
        }
        coming.retain(|_, coming| match coming {
            Coming::Under(_) => true,
            Coming::Failed { until, .. } => *until > now,
        });
        let (files, wanted) = (self.clone(), wanted.clone());
        let upload = wanted.upload.clone();
        let fetching = self.runtime.spawn(async move {
            let fetch = tokio::spawn(files.clone().fetch(wanted.clone()));
            let fetched = fetch
                .await
                .unwrap_or_else(|error| Err(ObjectError::Disk(std::io::Error::other(error))));
            files.ended(&wanted, fetched)
        });
        let fetching = fetching.map(|ended| ended.unwrap_or_else(|_| Err(stopping())));
        let fetching = fetching.boxed().shared();
        coming.insert(upload, Coming::Under(fetching.clone()));
        Ok(fetching)
    }

    async fn fetch(self: Arc<SharedFiles>, wanted: Wanted) -> Result<(), ObjectError> {
        let Wanted {
            company,
            name,
            upload,
            bytes,
            sha256,
        } = &wanted;
        // No copy leaves for one that cannot come.
        self.objects.look_at(company, upload, *bytes).await?;
        let room = self.cache.room(company, *bytes).await;
        let room = room.ok_or_else(no_room)?;
        let part = self.cache.part(company, upload);
        let guard = Leftover::of(&part);
        let sink = {
            let (part, name) = (part.clone(), name.clone());
            blocking(move || Sink::create(&part, &name)).await?
        };
        let get = self.objects.get(company, upload, *bytes, sink);
        let found = within(get).await?;
        if found != *sha256 {
            let reason = format!("its digest is {found} instead of {sha256}");
            return Err(ObjectError::Damaged(reason));
        }
        self.cache.keep(room, upload, part).await?;
        guard.keep();
        Ok(())
    }

    /// Notes how a fetch ended. Who asks is told what to do, the log what happened.
    fn ended(&self, wanted: &Wanted, fetched: Result<(), ObjectError>) -> Result<(), Fault> {
        let mut coming = self.coming.lock();
        let Err(error) = fetched else {
            coming.remove(&wanted.upload);
            self.fetched.fetch_add(1, Relaxed);
            return Ok(());
        };
        self.not_fetched.fetch_add(1, Relaxed);
        let (company, name, upload) = (&wanted.company, &wanted.name, &wanted.upload);
        let (fault, said) = match &error {
            ObjectError::Away(_) => {
                tracing::warn!(%company, name, upload, %error, "a file could not be fetched");
                let message = "the file is not on this host yet, and the service's object store does not give it: try again";
                let said = AWAY_SAID;
                let kind = FaultKind::Unreachable;
                (fault(kind, "object_store_away", message, said), said)
            }
            ObjectError::Missing | ObjectError::Damaged(_) => {
                tracing::error!(%company, name, upload, %error, "a file is damaged: its company has to upload it again, or the object store be restored");
                (broken(false), BROKEN_SAID)
            }
            ObjectError::Disk(_) => {
                tracing::error!(%company, name, upload, %error, "a file could not be kept here");
                (without_room(), AWAY_SAID)
            }
        };
        let failed = Coming::Failed {
            fault: fault.clone(),
            until: Instant::now() + said,
        };
        coming.insert(wanted.upload.clone(), failed);
        Err(fault)
    }

    /// Makes an object of the upload in `place`. Given up, it ends.
    pub(super) async fn send(
        &self,
        place: &Place,
        upload: &str,
        name: &str,
        bytes: u64,
    ) -> Result<(), ObjectError> {
        let (objects, place) = (self.objects.clone(), place.clone());
        let (upload, name) = (upload.to_owned(), name.to_owned());
        let sending = async move {
            let company = place.company().clone();
            let file = blocking(move || place.read(&name)).await?;
            within(objects.put(&company, &upload, file, bytes)).await
        };
        let mut task = JoinSet::new();
        task.spawn_on(sending, &self.runtime);
        match task.join_next().await {
            Some(Ok(sent)) => sent,
            Some(Err(error)) => Err(ObjectError::Disk(std::io::Error::other(error))),
            None => Err(ObjectError::Away("nothing was sent".to_owned())),
        }
    }

    /// Lends the upload that is whole in `part` from now on, if there is room for it. What cannot be kept is fetched when it is needed.
    pub(super) async fn keep(&self, part: Place, upload: &str, bytes: u64) {
        let guard = Leftover::of(&part);
        let Some(room) = self.cache.room(part.company(), bytes).await else {
            return;
        };
        match self.cache.keep(room, upload, part).await {
            Ok(_) => guard.keep(),
            Err(error) => tracing::warn!(upload, %error, "an upload could not be kept here"),
        }
    }

    /// Takes an original over, whose object is there: from now on it is a copy like any other.
    pub(super) async fn adopt(&self, original: &Place, upload: &str, bytes: u64) {
        let Some(room) = self.cache.room(original.company(), bytes).await else {
            return;
        };
        let part = self.cache.part(original.company(), upload);
        let guard = Leftover::of(&part);
        let (from, to) = (original.clone(), part.clone());
        let moved = blocking(move || from.move_to(&to)).await;
        let kept = match moved {
            Ok(()) => self.cache.keep(room, upload, part).await.map(drop),
            Err(error) => Err(error),
        };
        match kept {
            Ok(()) => guard.keep(),
            Err(error) => {
                tracing::warn!(upload, %error, "a file could not be moved to the cache: it is fetched when it is needed");
            }
        }
    }
}

async fn within<T>(
    transfer: impl Future<Output = Result<T, ObjectError>>,
) -> Result<T, ObjectError> {
    let ended = tokio::time::timeout(TRANSFER_MAX, transfer).await;
    ended.unwrap_or_else(|_| {
        let seconds = TRANSFER_MAX.as_secs();
        Err(ObjectError::Away(format!("not done within {seconds} s")))
    })
}

fn no_room() -> ObjectError {
    let reason = "all that is in the cache of files is in use, or its company has half of it in use: raise --files-cache-mib, or its disk's size";
    ObjectError::Disk(std::io::Error::new(
        std::io::ErrorKind::QuotaExceeded,
        reason,
    ))
}

/// Of a file that is not what was uploaded, or not there at all.
pub fn broken(is_missing: bool) -> Fault {
    let (code, message) = match is_missing {
        true => (
            "file_missing",
            "the service has lost the seller's file: its seller can upload it again",
        ),
        false => (
            "file_damaged",
            "the service's copy of the seller's file is damaged, and is not used: its seller can upload it again",
        ),
    };
    fault(FaultKind::Internal, code, message, BROKEN_SAID)
}

/// What keeps a host from reading a file says nothing of the file.
pub fn unread() -> Fault {
    let message = "this host cannot read the seller's file at the moment: try again";
    fault(FaultKind::Internal, "file_unread", message, AWAY_SAID)
}

fn without_room() -> Fault {
    let message = "this host cannot keep the file at the moment: try again";
    fault(FaultKind::Internal, "file_without_room", message, AWAY_SAID)
}

fn fault(kind: FaultKind, code: &str, message: &str, again_after: Duration) -> Fault {
    let mut fault = Fault::new(Blame::Host, kind, message).code(code);
    fault.retry_after_ms = Some(again_after.as_millis() as u64);
    fault
}

fn stopping() -> Fault {
    Fault::new(
        Blame::Host,
        FaultKind::ShuttingDown,
        "this host is shutting down: try again",
    )
}

#[cfg(test)]
#[path = "shared_tests.rs"]
mod tests;
