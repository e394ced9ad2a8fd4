use super::shape::EndpointOut;
use crate::refusals::INVALID_STATE;
use crate::{ApiState, Caller, Data, Operation, Path, Problem};
use axum::extract::State;
use souk_app::publish::later;
use souk_domain::ids::{CompanyId, EndpointId};
use souk_domain::roles::{Permission, Role};
use souk_store::{endpoints, prices};

pub const OPERATION: Operation = Operation::post(
    "unpublish_endpoint",
    "/companies/{company_id}/endpoints/{endpoint_id}/unpublish",
)
.about("Endpoints", "Take an endpoint off the market")
.notes("Companies that have bought it keep it until it is archived.")
.needs(Role::DataEngineer, Permission::Write)
.refuses(&[INVALID_STATE]);

/// Hides an endpoint from new buyers.
pub async fn unpublish_endpoint(
    State(api): State<ApiState>,
    caller: Caller,
    Path((_, id)): Path<(CompanyId, EndpointId)>,
) -> Result<Data<EndpointOut>, Problem> {
    api.db()
        .write(async |write| {
            let before = super::find(write, caller.company(), &id).await?;
            match before.status.as_str() {
                "published" => {
                    let now = later(before.updated_at, caller.now());
                    endpoints::set_status(write, caller.company(), &id, "unpublished", now).await?;
                }
                "unpublished" => {}
                status => {
                    return Err(Problem::state(
                        status,
                        "only a published endpoint can be unpublished",
                    ));
                }
            }
            let after = super::find(write, caller.company(), &id).await?;
            let price = prices::active(write, id.as_str(), caller.now()).await?;
            Ok(Data(EndpointOut::new(after, price.as_ref())))
        })
        .await
}
