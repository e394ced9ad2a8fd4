//! A company's files: what its file engines read.

pub mod delete;
pub mod get;
pub mod list;
pub mod put;

use crate::connections::UntestedProducts;
use crate::refusals::{
    FILE_QUOTA_EXCEEDED, INVALID_PATH_PARAMETER, INVALID_REQUEST, INVALID_STATE, RESOURCE_IN_USE,
};
use crate::{FieldError, Problem, Routes};
use serde::Serialize;
use souk_app::files::{FileError, Taken};
use souk_domain::time::Timestamp;
use souk_store::files::File;
use utoipa::ToSchema;

pub fn routes() -> Routes {
    Routes::new()
        .add(list::OPERATION, list::list_files)
        .add(put::OPERATION, put::put_file)
        .add(get::OPERATION, get::get_file)
        .add(delete::OPERATION, delete::delete_file)
}

#[derive(Debug, Serialize, ToSchema)]
#[schema(as = UploadedFile)]
pub struct FileOut {
    pub name: String,
    #[schema(minimum = 0)]
    pub size_bytes: i64,
    /// SHA-256 of the content, hexadecimal.
    pub sha256: String,
    #[schema(value_type = String, format = DateTime)]
    pub created_at: Timestamp,
    /// When the content was replaced last.
    #[schema(value_type = String, format = DateTime)]
    pub updated_at: Timestamp,
    /// Only where it has just taken the place of a file that connections read: their engines can read it, which says nothing about products.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub untested_products: Option<UntestedProducts>,
    /// Likewise: what these engines warn of.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub warnings: Option<Vec<String>>,
}

impl From<Taken> for FileOut {
    fn from(taken: Taken) -> FileOut {
        let mut file = FileOut::from(taken.file);
        if let Some(replaced) = taken.replaced {
            file.untested_products = Some(UntestedProducts {
                assets: replaced.assets,
                endpoints: replaced.endpoints,
            });
            file.warnings = Some(replaced.warnings);
        }
        file
    }
}

impl From<File> for FileOut {
    fn from(row: File) -> FileOut {
        FileOut {
            name: row.name,
            size_bytes: row.size_bytes,
            sha256: row.sha256,
            created_at: row.created_at,
            updated_at: row.updated_at,
            untested_products: None,
            warnings: None,
        }
    }
}

/// When to try again, in seconds: an object store that was restarted is back.
const OBJECT_STORE_AGAIN: u64 = 5;

/// The refusal of an operation on the file `name`.
fn refusal(name: &str) -> impl Fn(FileError) -> Problem {
    move |error| match error {
        error @ FileError::Name => {
            let error = FieldError::new("name", "invalid", error.to_string());
            Problem::fields(INVALID_PATH_PARAMETER, vec![error])
        }
        FileError::TooLarge { max } => Problem::too_large(max),
        error @ (FileError::CompanyFull { .. } | FileError::TooManyFiles { .. }) => {
            Problem::of(FILE_QUOTA_EXCEEDED, error.to_string())
        }
        error @ (FileError::Aborted(_) | FileError::Empty) => {
            Problem::of(INVALID_REQUEST, error.to_string())
        }
        FileError::InUse(ids) => {
            let ids: Vec<String> = ids.iter().map(ToString::to_string).collect();
            let message = format!(
                "connections read this file: delete or change {} first",
                ids.join(", ")
            );
            Problem::of(RESOURCE_IN_USE, message).detail("connection_ids", ids)
        }
        ref error @ FileError::Unfit { ref connection, .. } => {
            let message = format!(
                "{error}; nothing was changed: send a file that it reads, or add ?unchecked=true to replace the file all the same"
            );
            Problem::of(INVALID_STATE, message).detail("connection_id", connection.to_string())
        }
        FileError::NotFound => Problem::not_found("file", name),
        FileError::Io(error) => Problem::of_disk(&error),
        FileError::ObjectStore(error) => {
            let message =
                "the service's object store does not take the file; nothing was changed: try again";
            Problem::unavailable(message)
                .retry_after(OBJECT_STORE_AGAIN)
                .caused_by(error.to_string())
        }
        FileError::Store(error) => error.into(),
    }
}
