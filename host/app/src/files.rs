//! A company's files: bytes that a file engine reads.
//!
//! Every upload gets a directory of its own, `<files_dir>/<company>/<upload>/<name>`, which ends with `.part` until it is all there, and which
//! nothing names until the file's row is committed. So a reader sees the old file or the new one, never a
//! part of either, and a connector is granted the one file that its connection names.
//!
//! - here: take in, delete;
//! - [`fit`]: whether it may take the place of another one; [`granted`]: how a connection gets it;
//! - [`quota`]: how much a company may have;
//! - [`uploads`]: what is on disk; [`sweep`]: what is left over there;
//! - [`shared`]: what hosts share by an object store, if the operator has one: [`objects`] are there, copies here in a [`cache`], and [`upkeep`]
//!   is what is done about them beside requests.
//!
//! Refuses to know: what is in a file. An engine says so when it reads it.

mod cache;
mod error;
mod fit;
mod granted;
pub mod objects;
mod quota;
mod shared;
mod sweep;
mod upkeep;
mod uploads;

use std::time::Duration;

use bytes::Bytes;
use futures_util::Stream;
use souk_domain::connections::is_file_name;
use souk_domain::ids::{CompanyId, ConnectionId, FileId};
use souk_domain::products::ProductStatus;
use souk_domain::time::Timestamp;
use souk_store::files::File;
use souk_store::{StoreError, Write, connections, files};

use crate::App;
use crate::detached::to_the_end;
pub use error::{FileError, ObjectError};
use fit::{Fit, fit};
pub(crate) use granted::grant;
pub use quota::{COMPANY_BYTES_MAX, COMPANY_FILES_MAX, FILE_BYTES_MAX, Quota};
pub use shared::{FILES, SharedFiles};
pub use sweep::{keep_swept, sweep};
pub use upkeep::start;
pub(crate) use uploads::LEFTOVER_AGE_MIN;
pub use uploads::UPLOAD_MEMORY_MAX;
use uploads::{Leftover, PART, Place, REPLACED_KEPT, blocking, receive, remove_later};

/// A store that did not answer is asked again after this, then after twice as long, and so on:
const LOOKED_AGAIN_AFTER: Duration = Duration::from_secs(2);
/// so often, which is some eight minutes.
const LOOKED_AGAIN_MAX: usize = 8;
/// Other hosts hear within this that a file was replaced, and who was late has fetched what it needs.
const OBJECT_KEPT: Duration = Duration::from_secs(15);

/// What is known of a body that is to be a file.
pub struct Upload<'a> {
    pub name: &'a str,
    /// So many bytes, it says.
    pub declared: Option<u64>,
    /// It becomes the file although connections read the one of its name, and their engines may not read this.
    pub is_unchecked: bool,
}

/// A file that was taken in.
pub struct Taken {
    pub file: File,
    pub is_new: bool,
    /// Of what took the place of a file that connections read. `None`: none do.
    pub replaced: Option<Replaced>,
}

/// A file that connections read has become another one.
#[derive(Clone)]
pub struct Replaced {
    /// How many published assets and endpoints are answered from it now.
    pub assets: i64,
    pub endpoints: i64,
    /// What their engines warn of.
    pub warnings: Vec<String>,
}

/// Streams `body` to disk, and to the object store if there is one, and makes it the company's file of its name.
/// Who leaves before it is all there, and tried, has sent nothing; what is becomes the file, and `held` is held until then.
pub async fn put<S, E>(
    app: &App,
    company: &CompanyId,
    upload: Upload<'_>,
    body: S,
    held: impl Send + 'static,
) -> Result<Taken, FileError>
where
    S: Stream<Item = Result<Bytes, E>> + Unpin,
    E: std::fmt::Display,
{
    let Upload {
        name,
        declared,
        is_unchecked,
    } = upload;
    if !is_file_name(name) {
        return Err(FileError::Name);
    }
    let others = others(app, company, name).await?;
    let mut room = app.files.room(company, others);
    room.grow(declared.unwrap_or(0))?;
    let upload = FileId::generate();
    let place = match &app.shared_files {
        Some(shared) => shared.cache.part(company, upload.as_str()),
        None => Place::of(&app.files_dir, company, &format!("{upload}{PART}")),
    };
    let leftover = Leftover::of(&place);
    let (size_bytes, sha256) = receive(&place, name, body, &mut room).await?;
    let fit = match is_unchecked {
        true => Fit::default(),
        false => fit(app, company, name, &place).await?,
    };
    let now = app.clock.now();
    let file = File {
        name: name.to_owned(),
        upload_id: upload.to_string(),
        size_bytes: size_bytes as i64,
        sha256,
        created_at: now,
        updated_at: now,
    };
    let received = Received {
        file,
        fit,
        place,
        leftover,
    };
    let (app, company) = (app.clone(), company.clone());
    // Given up while it is being sent, it would be sent in vain, and parts of it stay. Given up while its row is being committed, it would be removed
    // although its row is there; and what it replaces would stay.
    let named = to_the_end(held, async move {
        // Promised until it counts as a file.
        let _room = room;
        share(&app, &company, &received).await?;
        name_received(&app, &company, received).await
    });
    named.await.map_err(std::io::Error::other)?
}

/// An upload that is all there, and no file yet.
struct Received {
    file: File,
    fit: Fit,
    place: Place,
    leftover: Leftover,
}

impl Received {
    /// Takes the mark of what is being taken in off its name: the next start would remove it. (Of what hosts share the cache does that.)
    async fn whole(self, app: &App) -> Result<Received, FileError> {
        if app.shared_files.is_some() {
            return Ok(self);
        }
        let part = self.place.clone();
        let place = blocking(move || part.without(PART)).await?;
        let leftover = Leftover::of(&place);
        // There is nothing under the former name.
        self.leftover.keep();
        Ok(Received {
            place,
            leftover,
            ..self
        })
    }
}

/// Makes an object of it, where hosts share files.
async fn share(app: &App, company: &CompanyId, received: &Received) -> Result<(), FileError> {
    let Some(shared) = &app.shared_files else {
        return Ok(());
    };
    let (file, upload) = (&received.file, received.file.upload_id.as_str());
    // Whatever happens from here on, somebody knows of the object.
    let late = app.clock.now().after(LEFTOVER_AGE_MIN);
    app.db
        .write(async |tx| souk_store::objects::unname(tx, company, upload, late).await)
        .await?;
    let bytes = file.size_bytes.cast_unsigned();
    shared
        .send(&received.place, upload, &file.name, bytes)
        .await?;
    Ok(())
}

/// What its row says of a file, and what that concerns.
#[derive(Clone)]
struct Named {
    before: Option<File>,
    file: File,
    /// Those whose sessions read the one before.
    users: Vec<ConnectionId>,
    replaced: Option<Replaced>,
}

/// Makes it the company's file of its name, and lets go of the one before.
async fn name_received(
    app: &App,
    company: &CompanyId,
    received: Received,
) -> Result<Taken, FileError> {
    let Received {
        file,
        fit,
        place,
        leftover,
    } = received.whole(app).await?;
    let name = file.name.clone();
    let now = file.created_at;
    let mut in_doubt = None;
    let written = app.db.write(async |tx| -> Result<_, FileError> {
        files::lock_company(tx, company).await?;
        let before = files::get(tx, company, &name).await?;
        let file = File {
            created_at: before.as_ref().map_or(now, |before| before.created_at),
            ..file
        };
        let users = files::put(tx, company, &file).await?;
        let replaced = tell_users(tx, company, &users, &fit, now).await?;
        name_object(app, tx, company, &file, before.as_ref()).await?;
        // Other uploads have ended meanwhile, here and on other hosts. Only now is it certain what there is.
        let (count, bytes) = files::totals(tx, company).await?;
        app.files.check(bytes.max(0) as u64)?;
        if before.is_none() && count > COMPANY_FILES_MAX {
            return Err(FileError::TooManyFiles {
                max: COMPANY_FILES_MAX,
            });
        }
        let named = Named {
            before,
            file,
            users,
            replaced,
        };
        // From here on a row may name it, whatever is heard of the commit.
        leftover.keep();
        in_doubt = Some(named.clone());
        Ok(named)
    });
    let named = match written.await {
        Ok(named) => named,
        Err(error) => {
            if let Some(named) = in_doubt {
                tokio::spawn(look_again(app.clone(), company.clone(), place, named));
            }
            return Err(error);
        }
    };
    let taken = Taken {
        file: named.file.clone(),
        is_new: named.before.is_none(),
        replaced: named.replaced.clone(),
    };
    take_place(app, company, place, named).await;
    Ok(taken)
}

/// Notes which of the connections that read the file work with it. `None`: there are no connections.
async fn tell_users(
    tx: &mut Write,
    company: &CompanyId,
    users: &[ConnectionId],
    fit: &Fit,
    now: Timestamp,
) -> Result<Option<Replaced>, StoreError> {
    let still = fit.works.iter().filter(|(id, _)| users.contains(id));
    for (id, revision) in still {
        // As it was tried, and with its next file: one that was changed meanwhile was not tried.
        let revision = i64::try_from(*revision).unwrap_or_default() + 1;
        connections::record_test(tx, company, id, revision, None, now).await?;
    }
    let mut replaced = Replaced {
        assets: 0,
        endpoints: 0,
        warnings: fit.warnings.clone(),
    };
    for id in users {
        let on_market = Some(ProductStatus::Published);
        let (assets, endpoints) = connections::dependants(tx, company, id, on_market).await?;
        replaced.assets += assets;
        replaced.endpoints += endpoints;
    }
    Ok((!users.is_empty()).then_some(replaced))
}

/// Nobody reads the file before any more.
async fn take_place(app: &App, company: &CompanyId, place: Place, named: Named) {
    let Named {
        before,
        file,
        users,
        ..
    } = named;
    if let Some(shared) = &app.shared_files {
        let size_bytes = file.size_bytes.unsigned_abs();
        shared.keep(place, &file.upload_id, size_bytes).await;
    }
    for id in &users {
        app.sandbox.forget(company.as_str(), id.as_str());
    }
    if let Some(before) = &before {
        remove_local(app, company, &before.upload_id);
    }
}

/// Of an upload whose commit failed, so that nobody knows whether a row names it: asks until the store tells, and then removes its bytes or does what is
/// left to do. Its bytes stay where the store does not tell: the [`sweep`] of a later hour sees to them.
async fn look_again(app: App, company: CompanyId, place: Place, named: Named) {
    let upload = named.file.upload_id.as_str();
    let mut wait = LOOKED_AGAIN_AFTER;
    for _ in 0..LOOKED_AGAIN_MAX {
        tokio::time::sleep(wait).await;
        wait *= 2;
        let told = app.db.write(async |tx| -> Result<_, StoreError> {
            // Whoever commits has this lock: a commit that is still on its way is waited for.
            files::lock_company(tx, &company).await?;
            let is_named = files::lock_upload(tx, &company, upload).await?;
            let is_before_named = match &named.before {
                Some(before) => files::lock_upload(tx, &company, &before.upload_id).await?,
                None => false,
            };
            let current = files::get(tx, &company, &named.file.name).await?;
            Ok((is_named, is_before_named, current.is_some()))
        });
        match told.await {
            Ok((true, ..)) => return take_place(&app, &company, place, named).await,
            Ok((false, is_before_named, is_current)) => {
                // Another one has the name: if the commit was carried out, this one was read until then, as any that is replaced. (Of those that
                // hosts share nobody reads what is here.)
                let has_readers = is_current && !is_before_named && app.shared_files.is_none();
                match has_readers {
                    true => remove_later(place),
                    false => drop(Leftover::of(&place)),
                }
                // The commit was carried out, and another one since: that one has let go of this upload, and nobody of the one before.
                if let Some(before) = named.before.filter(|_| !is_before_named) {
                    remove_local(&app, &company, &before.upload_id);
                }
                return;
            }
            Err(error) => {
                tracing::warn!(%company, upload, %error, "nobody knows yet whether an upload became a file");
            }
        }
    }
}

/// The object of `file` is named from now on, and that of the file before it is not.
async fn name_object(
    app: &App,
    tx: &mut Write,
    company: &CompanyId,
    file: &File,
    before: Option<&File>,
) -> Result<(), FileError> {
    if app.shared_files.is_none() {
        return Ok(());
    }
    if !souk_store::objects::name(tx, &file.upload_id).await? {
        return Err(FileError::Aborted("it took longer than a day".to_owned()));
    }
    match before {
        Some(before) => Ok(unname_object(app, tx, company, before).await?),
        None => Ok(()),
    }
}

async fn unname_object(
    app: &App,
    tx: &mut Write,
    company: &CompanyId,
    file: &File,
) -> Result<(), StoreError> {
    if app.shared_files.is_none() {
        return Ok(());
    }
    let due_at = app.clock.now().after(OBJECT_KEPT);
    souk_store::objects::unname(tx, company, &file.upload_id, due_at).await
}

/// Deletes a file that no connection reads, and then its bytes, whether or not anybody waits for that. `held`: until then.
pub async fn delete(
    app: &App,
    company: &CompanyId,
    name: &str,
    held: impl Send + 'static,
) -> Result<(), FileError> {
    // One of a company goes on without its client, and no more than that.
    let turn = app.files.deleting.stand(company).await;
    let (app, company, name) = (app.clone(), company.clone(), name.to_owned());
    let deleted = to_the_end((turn, held), async move {
        delete_whole(&app, &company, &name).await
    });
    deleted.await.map_err(std::io::Error::other)?
}

async fn delete_whole(app: &App, company: &CompanyId, name: &str) -> Result<(), FileError> {
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
            unname_object(app, tx, company, &file).await?;
            Ok(file)
        })
        .await?;
    remove_local(app, company, &file.upload_id);
    Ok(())
}

/// Removes what this host has of an upload that no file names any more, when nobody needs it.
fn remove_local(app: &App, company: &CompanyId, upload: &str) {
    remove_later(Place::of(&app.files_dir, company, upload));
    if let Some(shared) = app.shared_files.clone() {
        let upload = upload.to_owned();
        tokio::spawn(async move {
            tokio::time::sleep(REPLACED_KEPT).await;
            shared.cache.forget(&upload).await;
        });
    }
}

/// The bytes of the company's files but `name`, if there may be a file of that name.
async fn others(app: &App, company: &CompanyId, name: &str) -> Result<u64, FileError> {
    let mut db = app.db.read().await?;
    let (count, bytes) = files::totals(&mut db, company).await?;
    let replaced = files::get(&mut db, company, name).await?;
    if replaced.is_none() && count >= COMPANY_FILES_MAX {
        return Err(FileError::TooManyFiles {
            max: COMPANY_FILES_MAX,
        });
    }
    let others = bytes - replaced.map_or(0, |file| file.size_bytes);
    Ok(others.max(0) as u64)
}
