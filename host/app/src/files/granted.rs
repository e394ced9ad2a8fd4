//! What a connection to a file is granted: the one directory that has it and nothing else, if it is there whole.

use std::io::ErrorKind;
use std::sync::Arc;
use std::time::Instant;

use futures_util::future::BoxFuture;
use parking_lot::Mutex;
use souk_domain::ids::CompanyId;
use souk_sandbox::{Fault, Grant, Lender, Lent};
use souk_store::files::File;

use super::shared::{BROKEN_SAID, broken, unread};
use super::uploads::Place;
use crate::App;

pub fn grant(app: &App, company: &CompanyId, file: &File) -> Grant {
    match &app.shared_files {
        Some(shared) => shared.grant(company, file),
        None => Grant::Lent(Arc::new(Own {
            place: Place::of(&app.files_dir, company, &file.upload_id),
            name: file.name.clone(),
            bytes: file.size_bytes.cast_unsigned(),
            said: Mutex::default(),
        })),
    }
}

/// A file on this host's own disk. What that has lost is not the seller's fault, whatever an engine makes of the rest.
struct Own {
    place: Place,
    name: String,
    bytes: u64,
    /// When the log was told last that it is broken.
    said: Mutex<Option<Instant>>,
}

impl Lender for Own {
    fn lend(&self) -> BoxFuture<'_, Result<Lent, Fault>> {
        Box::pin(async {
            let path = self.place.directory();
            match self.place.look_at(&self.name, self.bytes) {
                Ok(()) => Ok(Lent {
                    path,
                    held: Box::new(()),
                }),
                Err(error) => Err(self.broken(&error)),
            }
        })
    }
}

impl Own {
    fn broken(&self, error: &std::io::Error) -> Fault {
        let is_missing = error.kind() == ErrorKind::NotFound;
        let is_lost = is_missing || error.kind() == ErrorKind::InvalidData;
        let mut said = self.said.lock();
        if said.is_none_or(|said| said.elapsed() >= BROKEN_SAID) {
            *said = Some(Instant::now());
            let (path, name) = (self.place.directory(), &self.name);
            let (path, company) = (path.display(), self.place.company());
            match is_lost {
                true => {
                    tracing::error!(%path, %company, name, %error, "a file is damaged: its company has to upload it again, or a backup be restored");
                }
                false => tracing::error!(%path, %company, name, %error, "a file cannot be read"),
            }
        }
        match is_lost {
            true => broken(is_missing),
            false => unread(),
        }
    }
}
