use super::shape::{AssetIn, AssetOut};
use crate::products::change as products;
use crate::refusals::{CONFLICT, CONNECTOR_UNAVAILABLE, SLUG_TAKEN, SQL_NOT_READ_ONLY};
use crate::{ApiState, Body, Caller, Created, Operation, Problem};
use axum::extract::State;
use souk_domain::ids::AssetId;
use souk_domain::roles::{Permission, Role};

pub const OPERATION: Operation = Operation::post("create_asset", "/companies/{company_id}/assets")
    .about("Assets", "Create an asset")
    .notes(
        "A draft: nothing is run. Exactly one of `sql_logic`, `function_id` and `path`. SQL that is not one statement that begins with SELECT, WITH, VALUES or TABLE is 400 \
         `SQL_NOT_READ_ONLY`. A given slug that is taken is 409 `SLUG_TAKEN`; one made from the name is numbered.",
    )
    .needs(Role::DataScientist, Permission::Write)
    .refuses(&[SLUG_TAKEN, SQL_NOT_READ_ONLY, CONNECTOR_UNAVAILABLE, CONFLICT]);

/// Creates a draft of an asset.
pub async fn create_asset(
    State(api): State<ApiState>,
    caller: Caller,
    Body(body): Body<AssetIn>,
) -> Result<Created<AssetOut>, Problem> {
    products::create(&api, &caller, AssetId::generate(), body).await
}
