use super::shape::AssetOut;
use crate::products::{find, own, show};
use crate::refusals::{CONFLICT, INVALID_STATE};
use crate::runs::{ExecuteIn, Params, answer, payer, unpublished};
use crate::{ApiState, AsSent, Caller, Data, Operation, OptionalBody, Path, Problem};
use axum::extract::State;
use souk_app::publish;
use souk_domain::ids::{AssetId, CompanyId};
use souk_domain::roles::{Permission, Role};

pub const OPERATION: Operation = Operation::post("publish_asset", "/companies/{company_id}/assets/{asset_id}/publish")
    .about("Assets", "Put an asset on the market")
    .notes(
        "Needs an active price and a passing test, which is run now: with `params` where they are given, else with defaults, or with made-up \
         values where there are none (`details.made_up_params` of a test that fails: send others). Its result becomes the preview. 409 `INVALID_STATE` says \
         what is missing.",
    )
    .needs(Role::DataEngineer, Permission::Write)
    .runs_connector()
    .refuses(&[INVALID_STATE, CONFLICT]);

/// Tests an asset and puts it on the market.
pub async fn publish_asset(
    State(api): State<ApiState>,
    caller: Caller,
    Path((_, id)): Path<(CompanyId, AssetId)>,
    sent: AsSent<OptionalBody<ExecuteIn>>,
) -> Result<Data<AssetOut>, Problem> {
    let before = find(&mut *api.db().read().await?, caller.company(), &id).await?;
    let OptionalBody(body) = sent.body;
    let asset = own(&api, &caller, &id).await?;
    let params = Params::of_members(body.params, &sent.bytes, &[], &asset.plan.parameters)?;
    publish::asset(
        api.app(),
        caller.company(),
        &id,
        &params.raw(),
        &payer(&caller, None),
        answer::insight,
    )
    .await
    .map_err(unpublished("asset", id.as_str(), before.status))?;
    let mut read = api.db().read().await?;
    show(&mut read, &caller, &id).await.map(Data)
}
