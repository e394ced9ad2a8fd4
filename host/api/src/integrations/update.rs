use super::refusal;
use super::shape::{IntegrationIn, IntegrationOut};
use crate::refusals::{CONFLICT, UNSAFE_URL};
use crate::{ApiState, Caller, Change, Data, Operation, Path, Problem};
use axum::extract::State;
use souk_app::integrations;
use souk_domain::ids::{CompanyId, IntegrationId};
use souk_domain::roles::{Permission, Role};

pub const OPERATION: Operation = Operation::patch(
    "update_integration",
    "/companies/{company_id}/postgen_integrations/{integration_id}",
)
.about("Integrations", "Change an integration")
.notes(
    "Absent members keep their value. Another `config.base_url` needs the `credentials` again: stored ones are never sent to a server that \
     they were not given for. What waits to be published goes where it leads now. What a former address called a post is forgotten: at the \
     new one it is looked for, and made if it is not there.",
)
.needs(Role::DataEngineer, Permission::Write)
.refuses(&[UNSAFE_URL, CONFLICT]);

/// Changes an integration.
pub async fn update_integration(
    State(api): State<ApiState>,
    caller: Caller,
    Path((_, id)): Path<(CompanyId, IntegrationId)>,
    Change(body): Change<IntegrationIn>,
) -> Result<Data<IntegrationOut>, Problem> {
    let (app, company) = (api.app(), caller.company());
    let changed = integrations::change(app, company, &id, &body.into_input()).await;
    Ok(Data(changed.map_err(refusal(id.as_str()))?.into()))
}
