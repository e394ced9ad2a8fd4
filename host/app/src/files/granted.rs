//! What a connection to a file is granted: the one directory that has it and nothing else.

use souk_domain::ids::CompanyId;
use souk_sandbox::Grant;
use souk_store::files::File;

use super::uploads::Place;
use crate::App;

pub fn grant(app: &App, company: &CompanyId, file: &File) -> Grant {
    match &app.shared_files {
        Some(shared) => shared.grant(company, file),
        None => Grant::Directory(Place::of(&app.files_dir, company, &file.upload_id).directory()),
    }
}
