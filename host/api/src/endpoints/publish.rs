use super::shape::EndpointOut;
use crate::products::change::set_price;
use crate::products::{credits, find, show};
use crate::refusals::{CONFLICT, INVALID_STATE};
use crate::runs::unpublished;
use crate::{ApiState, Caller, Data, Operation, OptionalBody, Path, Problem};
use axum::extract::State;
use serde::Deserialize;
use souk_app::publish;
use souk_domain::ids::{CompanyId, EndpointId};
use souk_domain::roles::{Permission, Role};
use utoipa::ToSchema;

pub const OPERATION: Operation = Operation::post("publish_endpoint", "/companies/{company_id}/endpoints/{endpoint_id}/publish")
    .about("Endpoints", "Put an endpoint on the market")
    .notes(
        "Needs a price, which may come with the request, and a passing test, which is run now. Its first three rows become the preview. 409 \
         `INVALID_STATE` says what is missing.",
    )
    .needs(Role::DataEngineer, Permission::Write)
    .runs_connector()
    .refuses(&[INVALID_STATE, CONFLICT]);

#[derive(Default, Deserialize, ToSchema)]
#[serde(default)]
pub struct PublishEndpointIn {
    /// Sets the price, like `POST …/prices`.
    #[schema(minimum = 0, maximum = 100000000000_i64)]
    pub price_credits: Option<i64>,
    pub allow_ai_training: Option<bool>,
}

/// Tests an endpoint and puts it on the market.
pub async fn publish_endpoint(
    State(api): State<ApiState>,
    caller: Caller,
    Path((_, id)): Path<(CompanyId, EndpointId)>,
    OptionalBody(body): OptionalBody<PublishEndpointIn>,
) -> Result<Data<EndpointOut>, Problem> {
    let credits = credits(body.price_credits)?;
    let before = find(&mut *api.db().read().await?, caller.company(), &id).await?;
    if let Some(credits) = credits {
        set_price(&api, &caller, &id, credits).await?;
    }
    publish::endpoint(
        api.app(),
        caller.company(),
        &id,
        body.allow_ai_training,
        caller.now(),
    )
    .await
    .map_err(unpublished("endpoint", id.as_str(), before.status))?;
    let mut read = api.db().read().await?;
    show(&mut read, &caller, &id).await.map(Data)
}
