use super::shape::{AssetIn, AssetOut};
use crate::products::change as products;
use crate::refusals::{
    CONFLICT, CONNECTOR_UNAVAILABLE, INVALID_STATE, SLUG_TAKEN, SQL_NOT_READ_ONLY,
};
use crate::{ApiState, Caller, Changes, Data, Operation, Path, Problem};
use axum::extract::State;
use souk_domain::ids::{AssetId, CompanyId};
use souk_domain::roles::{Permission, Role};

pub const OPERATION: Operation = Operation::patch("update_asset", "/companies/{company_id}/assets/{asset_id}")
    .about("Assets", "Change an asset")
    .notes(
        "Members that are absent stay, `null` clears. A new `sql_logic`, `function_id` or `path` replaces the former one. The slug of a \
         published asset stays (409 `INVALID_STATE`), because buyers call it. A change of what is sold (its \
         source, fields, parameters, order or privacy) takes the preview away until the next test or publication. Before a change of a published asset is saved that asks more of the source \
         (another connection, source, parameter, result or column of it), it is tested as `publish_asset` tests it without `params`, and what that \
         returns becomes the preview; if the test fails, also because the source is away, it is 409 `INVALID_STATE`, nothing is changed, and \
         buyers go on with what was. No other change asks the source, nor does another `min_group_size`, or another `title` or `mark` of a chart.",
    )
    .needs(Role::DataScientist, Permission::Write)
    .runs_connector()
    .refuses(&[SLUG_TAKEN, SQL_NOT_READ_ONLY, CONNECTOR_UNAVAILABLE, INVALID_STATE, CONFLICT]);

/// Lays a patch over an asset and checks the whole.
pub async fn update_asset(
    State(api): State<ApiState>,
    caller: Caller,
    Path((_, id)): Path<(CompanyId, AssetId)>,
    Changes { members, .. }: Changes<AssetIn>,
) -> Result<Data<AssetOut>, Problem> {
    products::update(&api, &caller, &id, &members).await
}
