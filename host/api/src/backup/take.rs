use crate::describe::{Describe, Description};
use crate::{ApiState, Caller, Operation, Problem};
use axum::body::Body;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use futures_util::stream;
use http::{HeaderValue, header};
use serde_json::json;
use souk_app::backup::{self, BackupError};
use souk_domain::roles::{Permission, Role};
use std::io;
use tokio::sync::mpsc::Receiver;

pub const OPERATION: Operation = Operation::get("take_backup", "/admin/backup")
    .about("System", "A backup of everything that this host keeps")
    .notes(
        "Platform staff only, with the permission to write: it holds every company's data. A tar archive with the store as it is at one instant, \
         everything that was answered before included, and the companies' files; calls go on meanwhile. The master key is not in it. Of a store on \
         PostgreSQL it holds the files only: back the database up with its own tools; files in an object store are not in it either. An archive is whole if its last entry is `complete.json`.",
    )
    .needs(Role::SuperAdmin, Permission::Write)
    .hourly(60);

/// Read to its end by `souk restore`.
pub struct Archive(Receiver<io::Result<Bytes>>);

impl Describe for Archive {
    fn describe(into: &mut Description) {
        let binary = |_: &mut _| json!({"type": "string", "format": "binary"});
        into.answer(200, Some(("application/octet-stream", binary)));
    }
}

impl IntoResponse for Archive {
    fn into_response(self) -> Response {
        let pieces = stream::unfold(self.0, |mut pieces| async move {
            let piece = pieces.recv().await?;
            Some((piece, pieces))
        });
        let mut response = Response::new(Body::from_stream(pieces));
        let headers = response.headers_mut();
        // Not as tar: generated clients know one kind of bytes.
        let kind = HeaderValue::from_static("application/octet-stream");
        headers.insert(header::CONTENT_TYPE, kind);
        let name = HeaderValue::from_static("attachment; filename=\"souk-backup.tar\"");
        headers.insert(header::CONTENT_DISPOSITION, name);
        response
    }
}

/// Copies the store, and sends it with the files.
pub async fn take_backup(State(api): State<ApiState>, caller: Caller) -> Result<Archive, Problem> {
    let taken = backup::take(api.app()).await;
    let archive = taken.map_err(|error| match error {
        BackupError::Store(error) => error.into(),
        // The disk is full, most likely.
        BackupError::Io(error) => Problem::unavailable(
            "there is no room for a copy of the store on the disk of the files",
        )
        .caused_by(error.to_string()),
    })?;
    // It changes nothing, so the audit log does not tell of it; who has everything should be known all the same.
    tracing::info!(actor = caller.actor().as_str(), "a backup is being taken");
    Ok(Archive(archive))
}
