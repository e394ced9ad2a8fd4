use super::refusal;
use crate::refusals::{FILE_NOT_FOUND, RESOURCE_IN_USE};
use crate::{ApiState, Caller, Deleted, Operation, Path, Problem};
use axum::extract::State;
use souk_app::files;
use souk_domain::ids::CompanyId;
use souk_domain::roles::{Permission, Role};

pub const OPERATION: Operation =
    Operation::delete("delete_file", "/companies/{company_id}/files/{name}")
        .about("Files", "Delete a file")
        .notes("409 `RESOURCE_IN_USE` while a connection reads it.")
        .needs(Role::DataEngineer, Permission::Write)
        .refuses(&[FILE_NOT_FOUND, RESOURCE_IN_USE]);

pub async fn delete_file(
    State(api): State<ApiState>,
    caller: Caller,
    Path((_, name)): Path<(CompanyId, String)>,
) -> Result<Deleted, Problem> {
    files::delete(api.app(), caller.company(), &name, api.detach())
        .await
        .map_err(refusal(&name))?;
    Ok(Deleted)
}
