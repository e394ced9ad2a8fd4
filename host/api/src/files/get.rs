use super::{FileOut, refusal};
use crate::refusals::FILE_NOT_FOUND;
use crate::{ApiState, Caller, Data, Operation, Path, Problem};
use axum::extract::State;
use souk_app::files::FileError;
use souk_domain::ids::CompanyId;
use souk_store::files;

pub const OPERATION: Operation = Operation::get("get_file", "/companies/{company_id}/files/{name}")
    .about("Files", "What is known about a file")
    .notes("Size and digest; the content itself is never given out again.")
    .refuses(&[FILE_NOT_FOUND]);

pub async fn get_file(
    State(api): State<ApiState>,
    caller: Caller,
    Path((_, name)): Path<(CompanyId, String)>,
) -> Result<Data<FileOut>, Problem> {
    let mut read = api.db().read().await?;
    match files::get(&mut read, caller.company(), &name).await? {
        Some(file) => Ok(Data(file.into())),
        None => Err(refusal(&name)(FileError::NotFound)),
    }
}
