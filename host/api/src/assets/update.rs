use super::shape::{AssetIn, AssetOut};
use crate::products::change as products;
use crate::refusals::{
    CONFLICT, CONNECTOR_UNAVAILABLE, INVALID_STATE, SLUG_TAKEN, SQL_NOT_READ_ONLY,
};
use crate::{AnyObject, ApiState, Caller, Changes, Data, Operation, Path, Problem};
use axum::extract::State;
use serde_json::{Map, Value};
use souk_domain::ids::{AssetId, CompanyId};
use souk_domain::roles::{Permission, Role};
use std::borrow::Cow;
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::Schema;
use utoipa::{PartialSchema, ToSchema};

pub const OPERATION: Operation = Operation::patch("update_asset", "/companies/{company_id}/assets/{asset_id}")
    .about("Assets", "Change an asset")
    .notes(
        "Members that are absent stay, `null` clears. A new `sql_logic`, `function_id` or `path` replaces the former one. The slug of a \
         published asset stays (409 `INVALID_STATE`), because buyers call it. A change of what is sold (its \
         source, parameters, result, chart, prediction or privacy) takes the preview away until the next test or publication, unless it is \
         tested itself. Before a change of a published asset is saved that asks more of the source (another connection, source, parameter, \
         result or column of it), it is tested as `publish_asset` tests it, with the `params` that stand beside what is changed, and what that \
         returns becomes the preview; if the test fails, also because the source is away, it is 409 `INVALID_STATE`, nothing is changed, and \
         buyers go on with what was. No other change asks the source, nor does another `min_group_size`, or another `title` or `mark` of a chart.",
    )
    .needs(Role::DataScientist, Permission::Write)
    .runs_connector()
    .refuses(&[SLUG_TAKEN, SQL_NOT_READ_ONLY, CONNECTOR_UNAVAILABLE, INVALID_STATE, CONFLICT]);

/// What may be changed of an asset, and what that is tested with.
pub struct AssetChange;

/// What a change says that is no member of the asset.
#[derive(ToSchema)]
#[allow(dead_code)]
struct Beside {
    /// The parameters by name that the change is tested with where it is tested at all; nothing is kept of them. What is not given has its
    /// default, or a made-up value if it has none.
    #[schema(value_type = Option<AnyObject>)]
    params: Option<Map<String, Value>>,
}

impl PartialSchema for AssetChange {
    fn schema() -> RefOr<Schema> {
        let (mut asset, beside) = (AssetIn::schema(), Beside::schema());
        if let (RefOr::T(Schema::Object(asset)), RefOr::T(Schema::Object(beside))) =
            (&mut asset, beside)
        {
            asset.properties.extend(beside.properties);
        }
        asset
    }
}

impl ToSchema for AssetChange {
    fn name() -> Cow<'static, str> {
        AssetIn::name()
    }

    fn schemas(nested: &mut Vec<(String, RefOr<Schema>)>) {
        AssetIn::schemas(nested);
        Beside::schemas(nested);
    }
}

/// Lays a patch over an asset and checks the whole.
pub async fn update_asset(
    State(api): State<ApiState>,
    caller: Caller,
    Path((_, id)): Path<(CompanyId, AssetId)>,
    Changes { members, .. }: Changes<AssetChange>,
) -> Result<Data<AssetOut>, Problem> {
    products::update(&api, &caller, &id, &members).await
}
