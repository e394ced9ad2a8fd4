use crate::products::own;
use crate::refusals::{INVALID_STATE, PRIVACY_THRESHOLD};
use crate::runs::shape::AssetAnswer;
use crate::runs::{ExecuteIn, Params, answer_of, payer, refusal};
use crate::{
    ApiState, AsSent, Caller, Open, Operation, OptionalBody, Path, Prepared, Problem, Query,
};
use axum::extract::State;
use souk_app::products::AssetSnapshot;
use souk_app::run::Purpose;
use souk_domain::ids::{AssetId, CompanyId};
use souk_domain::roles::{Permission, Role};
use souk_store::Cached;

pub const OPERATION: Operation = Operation::post("test_asset", "/companies/{company_id}/assets/{asset_id}/test")
    .about("Assets", "Try an own asset")
    .notes(
        "Free, and also before it is published. Where there is no preview, the result becomes it. `limit` is accepted and has no effect: a \
         result is one insight.",
    )
    .needs(Role::DataScientist, Permission::Read)
    .runs_connector()
    .refuses(&[INVALID_STATE, PRIVACY_THRESHOLD]);

pub const GET_OPERATION: Operation = Operation::get(
    "test_asset_defaults",
    "/companies/{company_id}/assets/{asset_id}/test",
)
.about("Assets", "Try an own asset, with parameters in the query")
.notes("Parameters are written `params.<name>=value`, or `<name>=value`.")
.needs(Role::DataScientist, Permission::Read)
.runs_connector()
.refuses(&[INVALID_STATE, PRIVACY_THRESHOLD]);

/// Runs an own asset, free, published or not.
pub async fn test_asset(
    State(api): State<ApiState>,
    caller: Caller,
    Path((_, id)): Path<(CompanyId, AssetId)>,
    sent: AsSent<OptionalBody<ExecuteIn>>,
) -> Result<Prepared<AssetAnswer>, Problem> {
    let OptionalBody(body) = sent.body;
    let asset = own(&api, &caller, &id).await?;
    let parameters = &asset.plan.parameters;
    let params = Params::of_members(body.params, &sent.bytes, &["limit"], parameters)?;
    run(&api, &caller, &asset, &params).await
}

/// The same, with parameters in the query.
pub async fn test_asset_defaults(
    State(api): State<ApiState>,
    caller: Caller,
    Path((_, id)): Path<(CompanyId, AssetId)>,
    Query(query): Query<Open<()>>,
) -> Result<Prepared<AssetAnswer>, Problem> {
    let asset = own(&api, &caller, &id).await?;
    run(&api, &caller, &asset, &Params::of_query(query.rest)).await
}

async fn run(
    api: &ApiState,
    caller: &Caller,
    asset: &Cached<AssetSnapshot>,
    params: &Params,
) -> Result<Prepared<AssetAnswer>, Problem> {
    let mut payer = payer(caller, None);
    // Platform staff test as the company they act in.
    payer.company = caller.company();
    answer_of(api, asset, params, &payer, Purpose::Test)
        .await
        .map(Prepared::new)
        .map_err(refusal("asset", asset.row.id.as_str()))
}
