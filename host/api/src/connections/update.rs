use super::refusal;
use super::shape::{ConnectionIn, ConnectionOut, UntestedProducts};
use crate::refusals::{CONFLICT, UNSAFE_URL};
use crate::{ApiState, Caller, Change, Data, Operation, Path, Problem};
use axum::extract::State;
use souk_app::connections::{self, check};
use souk_domain::ids::{CompanyId, ConnectionId};
use souk_domain::roles::{Permission, Role};

pub const OPERATION: Operation = Operation::patch(
    "update_connection",
    "/companies/{company_id}/connections/{connection_id}",
)
.about("Connections", "Change a connection")
.notes(
    "Absent members keep their value, null clears. Another `host`, `port` or `base_url` needs the `credentials` again: \
     stored ones are never sent to a server that they were not given for. A change that sessions depend on (credentials, \
     address, database, TLS, time limit) is tested at once; `status` and `last_error` say what was found. The published products on it are not \
     tested with it: `untested_products` counts them, `GET …/assets` and `GET …/endpoints` with `connection_id` and `status=published` list them, and \
     `…/test` of each tries it. To move products without a gap, create another connection and give it to them by its `connection_id`: each is \
     tested there before that is saved.",
)
.needs(Role::DataEngineer, Permission::Write)
.runs_connector()
.refuses(&[UNSAFE_URL, CONFLICT]);

/// Changes a connection and tests it anew where the change calls for it.
pub async fn update_connection(
    State(api): State<ApiState>,
    caller: Caller,
    Path((_, id)): Path<(CompanyId, ConnectionId)>,
    Change(body): Change<ConnectionIn>,
) -> Result<Data<ConnectionOut>, Problem> {
    let (app, company) = (api.app(), caller.company());
    let (connection, retest) = connections::change(app, company, &id, &body.into_input())
        .await
        .map_err(refusal(id.as_str()))?;
    if !retest {
        return Ok(Data(connection.into()));
    }
    // The change is saved: a test that cannot even run leaves the connection unverified.
    if let Err(error) = check::saved(app, company, &id, None).await {
        tracing::warn!(connection = %id, %error, "cannot test a changed connection");
    }
    let told = refusal(id.as_str());
    let connection = connections::get(app, company, &id).await.map_err(&told)?;
    let counted = connections::published(app, company, &id).await;
    let (assets, endpoints) = counted.map_err(told)?;
    Ok(Data(ConnectionOut {
        untested_products: Some(UntestedProducts { assets, endpoints }),
        ..connection.into()
    }))
}
