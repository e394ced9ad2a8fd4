//! What is done about shared files beside requests: objects that no file names are deleted ([`crate::leases`] finds and shares them), files of
//! before there was an object store are brought there, and copies that no file needs leave the cache.

use std::cmp::Ordering;
use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use souk_domain::ids::{CompanyId, FileId};
use souk_domain::time::Timestamp;
use souk_store::db::SWEPT_WITHIN;
use souk_store::files::{self, File};
use souk_store::objects::{self, Unnamed};
use souk_store::{Read, StoreError, Write};
use tokio::sync::{Notify, watch};

use super::error::FileError;
use super::shared::SharedFiles;
use super::uploads::{LEFTOVER_AGE_MIN, Place};

use crate::App;
use crate::background::Background;
use crate::leases::{self, Claim, Due};

/// One request, with what it is tried again.
const DELETED_WITHIN: Duration = Duration::from_secs(40);
const LEASE: Duration = Duration::from_secs(100);
const _: () = assert!(LEASE.as_secs() >= 2 * DELETED_WITHIN.as_secs());
/// Deletions of one company's objects in flight.
const PER_COMPANY: usize = 4;
/// What could not be deleted is tried again after this, then after twice as long, and so on, but
const AGAIN_AFTER: Duration = Duration::from_secs(4);
/// at least so often.
const AGAIN_AFTER_MAX: Duration = Duration::from_secs(3_600);
/// Copies of files that other hosts have replaced or deleted are gone after this at the latest.
const CACHE_LOOKED_AT: Duration = Duration::from_secs(600);
/// Files of before are brought to an object store that was away as soon as this.
const BROUGHT_AGAIN: Duration = Duration::from_secs(30);

/// Works from now on, on the current runtime, which should be one that waits little (not a worker's). `None`: nothing is shared.
pub async fn start(app: &App) -> Result<Option<Background>, StoreError> {
    let Some(shared) = &app.shared_files else {
        return Ok(None);
    };
    tokio::spawn(tell(shared.clone()));
    let kind = Upkeep {
        app: app.clone(),
        shared: shared.clone(),
    };
    leases::start(app, kind, Arc::new(Notify::new()))
        .await
        .map(Some)
}

/// Says in the log if the object store cannot be used: else a wrong bucket or key is found out by the first who uploads a file, or needs one.
async fn tell(shared: Arc<SharedFiles>) {
    if let Err(error) = shared.objects().probe().await {
        tracing::error!(
            store = shared.name(), %error,
            "the object store cannot be used, and files cannot be uploaded until it can: is it there, and are --files-url and its keys right?"
        );
    }
}

#[derive(Clone)]
struct Upkeep {
    app: App,
    shared: Arc<SharedFiles>,
}

impl leases::Kind for Upkeep {
    const WHAT: &'static str = "deletions of objects";
    /// Each is a request to the object store.
    const IN_FLIGHT_MAX: usize = 8;
    const LEASE: Duration = LEASE;
    /// Nobody waits for it.
    const POLL: Duration = Duration::from_secs(2);

    type Id = FileId;
    type Concerned = CompanyId;
    type Claimed = Unnamed;
    type Ended = (Unnamed, Result<(), String>);

    async fn due(
        &self,
        read: &mut Read,
        now: Timestamp,
        limit: i64,
    ) -> Result<Vec<Due<Self>>, StoreError> {
        let found = objects::due(read, now, PER_COMPANY as i64, limit).await?;
        let due = found.into_iter().map(|found| Due::of(found, PER_COMPANY));
        Ok(due.collect())
    }

    async fn claim(
        &self,
        write: &mut Write,
        id: &FileId,
        claim: &Claim<'_>,
    ) -> Result<Option<Unnamed>, StoreError> {
        objects::claim(write, id, claim).await
    }

    async fn attempt(self, unnamed: Unnamed) -> Self::Ended {
        let objects = self.shared.objects();
        let deleting = objects.delete(&unnamed.company, unnamed.upload.as_str());
        let deleted = match tokio::time::timeout(DELETED_WITHIN, deleting).await {
            Ok(deleted) => deleted.map_err(|error| error.to_string()),
            Err(_) => Err("no answer in time".to_owned()),
        };
        (unnamed, deleted)
    }

    fn order((one, _): &Self::Ended, (other, _): &Self::Ended) -> Ordering {
        one.upload.cmp(&other.upload)
    }

    async fn record(
        &self,
        write: &mut Write,
        (unnamed, deleted): &Self::Ended,
        by: &str,
        now: Timestamp,
        _: bool,
    ) -> Result<(), StoreError> {
        let Err(error) = deleted else {
            return objects::deleted(write, &unnamed.upload, by).await;
        };
        let doublings = u32::try_from(unnamed.attempts - 1).unwrap_or(u32::MAX);
        let wait = AGAIN_AFTER.saturating_mul(2_u32.saturating_pow(doublings));
        let wait = wait.min(AGAIN_AFTER_MAX);
        let upload = unnamed.upload.as_str();
        tracing::warn!(
            upload,
            error,
            seconds = wait.as_secs(),
            "an object that no file names could not be deleted yet"
        );
        objects::put_off(write, &unnamed.upload, by, now.after(wait)).await
    }

    async fn beside(self, mut stopped: watch::Receiver<bool>) {
        let work = async {
            self.bring_all().await;
            loop {
                tokio::time::sleep(CACHE_LOOKED_AT).await;
                if let Err(error) = self.look_at_cache().await {
                    tracing::warn!(%error, "the cache of files could not be looked at");
                }
            }
        };
        let stop = async {
            let _ = stopped.wait_for(|stopped| *stopped).await;
        };
        tokio::select! {
            () = work => {}
            () = stop => {}
        }
    }

    async fn release_all(&self, write: &mut Write) -> Result<(), StoreError> {
        objects::release_all(write).await
    }
}

impl Upkeep {
    async fn look_at_cache(&self) -> Result<(), StoreError> {
        let db = &self.app.db;
        let found = async { files::uploads(&mut *db.read().await?).await };
        let needed = db.answered(SWEPT_WITHIN, found).await?;
        let needed: HashSet<(String, String)> = needed.into_iter().collect();
        self.shared.cache.retain(&needed).await;
        Ok(())
    }

    /// Brings what was uploaded to this host before there was an object store, or was restored here. Until then it is lent from where it is.
    async fn bring_all(&self) {
        loop {
            let (brought, left) = match self.bring().await {
                Ok(done) => done,
                Err(error) => {
                    tracing::warn!(%error, "files of before wait for the store");
                    (0, 1)
                }
            };
            if brought > 0 {
                tracing::info!(brought, left, "files of before are in the object store now");
            }
            if left == 0 {
                return;
            }
            tokio::time::sleep(BROUGHT_AGAIN).await;
        }
    }

    /// How many were brought, and how many were not.
    async fn bring(&self) -> Result<(usize, usize), FileError> {
        let db = &self.app.db;
        let found = async { files::all(&mut *db.read().await?).await };
        let all = db.answered(SWEPT_WITHIN, found).await?;
        let (mut brought, mut left) = (0, 0);
        for (company, file) in all {
            let original = Place::of(&self.app.files_dir, &company, &file.upload_id);
            if !original.directory().is_dir() {
                continue;
            }
            match self.bring_one(&company, &file, &original).await {
                Ok(()) => brought += 1,
                Err(error) => {
                    left += 1;
                    let name = &file.name;
                    tracing::warn!(%company, name, %error, "a file of before could not be brought to the object store yet");
                }
            }
        }
        Ok((brought, left))
    }

    async fn bring_one(
        &self,
        company: &CompanyId,
        file: &File,
        original: &Place,
    ) -> Result<(), FileError> {
        let (upload, bytes) = (&file.upload_id, file.size_bytes.cast_unsigned());
        let db = &self.app.db;
        let late = self.app.clock.now().after(LEFTOVER_AGE_MIN);
        db.write(async |tx| objects::unname(tx, company, upload, late).await)
            .await?;
        self.shared
            .send(original, upload, &file.name, bytes)
            .await?;
        let is_named = db.write(async |tx| -> Result<_, StoreError> {
            // It may have been replaced or deleted meanwhile, and its object before it was there.
            let is_named = files::lock_upload(tx, company, upload).await?;
            match is_named {
                true => {
                    objects::name(tx, upload).await?;
                }
                false => objects::unname(tx, company, upload, self.app.clock.now()).await?,
            }
            Ok(is_named)
        });
        if is_named.await? {
            self.shared.adopt(original, upload, bytes).await;
        }
        Ok(())
    }
}
