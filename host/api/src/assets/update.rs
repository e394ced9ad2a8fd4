use super::shape::{AssetIn, AssetOut, patched};
use crate::refusals::{
    CONFLICT, CONNECTOR_UNAVAILABLE, INVALID_STATE, PATH_BODY_MISMATCH, SLUG_TAKEN,
    SQL_NOT_READ_ONLY,
};
use crate::{ApiState, Caller, Changes, Data, Operation, Path, Problem, json};
use axum::extract::State;
use serde_json::Value;
use souk_app::publish::{asset_sample_holds, later};
use souk_domain::ids::{AssetId, CompanyId};
use souk_domain::roles::{Permission, Role};
use souk_store::{StoreError, assets, prices};

pub const OPERATION: Operation = Operation::patch("update_asset", "/companies/{company_id}/assets/{asset_id}")
    .about("Assets", "Change an asset")
    .notes(
        "Members that are absent stay, `null` clears. A new `sql_logic`, `function_id` or `path` replaces the former one. The slug of a \
         published asset stays (409 `INVALID_STATE`), because buyers call it. A change of what is sold (its \
         source, fields, parameters, order or privacy) takes the preview away until the next test or publication.",
    )
    .needs(Role::DataScientist, Permission::Write)
    .refuses(&[PATH_BODY_MISMATCH, SLUG_TAKEN, SQL_NOT_READ_ONLY, CONNECTOR_UNAVAILABLE, INVALID_STATE, CONFLICT]);

/// Lays a patch over an asset and checks the whole.
pub async fn update_asset(
    State(api): State<ApiState>,
    caller: Caller,
    Path((_, id)): Path<(CompanyId, AssetId)>,
    Changes { members, .. }: Changes<AssetIn>,
) -> Result<Data<AssetOut>, Problem> {
    caller.agree_company(members.get("company_id").and_then(Value::as_str))?;
    let mut read = api.db().read().await?;
    let before = super::find(&mut read, caller.company(), &id).await?;
    drop(read);
    let merged = serde_json::to_vec(&patched(&before, &members)).map_err(Problem::internal)?;
    let asset: AssetIn = json::parse(&merged)?;
    let written = asset.checked(&api, &caller).await?;
    if before.status == "published" && written.slug != before.written.slug {
        return Err(Problem::state(
            &before.status,
            "the slug of a published asset cannot be changed",
        ));
    }

    api.db()
        .write(async |write| {
            let now = later(before.updated_at, caller.now());
            match assets::update(
                write,
                caller.company(),
                &id,
                before.updated_at,
                &written,
                asset_sample_holds(&before.written, &written),
                now,
            )
            .await
            {
                Ok(true) => {}
                Ok(false) => return Err(super::changed()),
                Err(StoreError::Conflict) => return Err(super::slug_taken(&written.slug)),
                Err(error) => return Err(error.into()),
            }
            let after = super::find(write, caller.company(), &id).await?;
            let price = prices::active(write, id.as_str(), caller.now()).await?;
            Ok(Data(AssetOut::new(after, price.as_ref(), true)))
        })
        .await
}
