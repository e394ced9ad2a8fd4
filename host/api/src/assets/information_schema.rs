use crate::connections::schema::{CatalogOut, Wanted, catalog_of};
use crate::products::find;
use crate::refusals::CONNECTION_NOT_FOUND;
use crate::{ApiState, Caller, Operation, Path, PreparedData, Problem, Query};
use axum::extract::State;
use souk_domain::ids::{AssetId, CompanyId};

pub const OPERATION: Operation = Operation::get(
    "asset_information_schema",
    "/companies/{company_id}/assets/{asset_id}/information-schema",
)
.about("Assets", "Read the catalog of an own asset's source")
.notes(
    "As the connection's schema: `{schemas: [{name, tables: [{name, type, row_estimate, fields: [{name, type, nullable, primary_key}]}]}], fetched_at}`. \
     A seller's API has no catalog (400).",
)
.refuses(&[CONNECTION_NOT_FOUND])
.runs_connector();

/// Reads tables and fields from the source itself, never from a copy.
pub async fn asset_information_schema(
    State(api): State<ApiState>,
    caller: Caller,
    Path((_, id)): Path<(CompanyId, AssetId)>,
    Query(query): Query<Wanted>,
) -> Result<PreparedData<CatalogOut>, Problem> {
    let mut read = api.db().read().await?;
    let asset = find(&mut read, caller.company(), &id).await?;
    // No transaction is open while a connector is asked.
    drop(read);
    catalog_of(&api, &caller, &asset.written.connection_id, query).await
}
