use super::shape::EndpointOut;
use crate::products::{credits, find, price, show_at};
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
    /// Sets the price, like `POST …/prices`, if the test passes.
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
        let mut read = api.db().read().await?;
        price::check(&mut read, &caller, id.as_str(), credits).await?;
    }
    let told = unpublished("endpoint", id.as_str(), before.status);
    let passed = publish::test_endpoint(
        api.app(),
        caller.company(),
        &id,
        body.allow_ai_training,
        credits.is_some(),
        caller.now(),
    )
    .await
    .map_err(&told)?;
    // Both or neither: whoever hangs up between them would have left a price that nothing is sold at. It holds from now: while the test ran, what was paid
    // was the price before. The product is written first, as wherever a price is set.
    let published = api.db().write(async |write| {
        passed.publish(api.app(), write).await.map_err(&told)?;
        let now = api.app().clock.now();
        if let Some(credits) = credits {
            price::set(write, &caller, id.as_str(), credits, now).await?;
        }
        show_at(write, &caller, &id, now).await.map(Data)
    });
    published.await
}
