use super::shape::{AssetIn, AssetOut, user};
use crate::refusals::{CONNECTOR_UNAVAILABLE, PATH_BODY_MISMATCH, SLUG_TAKEN, SQL_NOT_READ_ONLY};
use crate::{ApiState, Body, Caller, Created, Operation, Problem};
use axum::extract::State;
use souk_domain::ids::AssetId;
use souk_domain::roles::{Permission, Role};
use souk_domain::slugs;
use souk_store::{StoreError, assets};

/// Names that many assets share; after so many the seller should choose.
const SLUG_TRIES: u32 = 100;

pub const OPERATION: Operation = Operation::post("create_asset", "/companies/{company_id}/assets")
    .about("Assets", "Create an asset")
    .notes(
        "A draft: nothing is run. Exactly one of `sql_logic`, `function_id` and `path`. SQL that is not one statement that begins with SELECT, WITH, VALUES or TABLE is 400 \
         `SQL_NOT_READ_ONLY`. A given slug that is taken is 409 `SLUG_TAKEN`; one made from the name is numbered.",
    )
    .needs(Role::DataScientist, Permission::Write)
    .refuses(&[PATH_BODY_MISMATCH, SLUG_TAKEN, SQL_NOT_READ_ONLY, CONNECTOR_UNAVAILABLE]);

/// Creates a draft of an asset.
pub async fn create_asset(
    State(api): State<ApiState>,
    caller: Caller,
    Body(body): Body<AssetIn>,
) -> Result<Created<AssetOut>, Problem> {
    caller.agree_company(body.company_id.as_deref())?;
    let slug_given = body.slug.is_some();
    let mut read = api.db().read().await?;
    let user = user(&mut read, &caller, body.user_id.as_deref()).await?;
    drop(read);
    let mut written = body.checked(&api, &caller).await?;

    let id = AssetId::generate();
    let slug = written.slug.clone();
    for attempt in 1.. {
        let created = api.db().write(async |write| {
            let (company, now) = (caller.company(), caller.now());
            assets::insert(write, &id, company, &user, &written, now).await
        });
        match created.await {
            Ok(()) => break,
            Err(StoreError::Conflict) if !slug_given && attempt < SLUG_TRIES => {
                written.slug = slugs::numbered(&slug, attempt + 1);
            }
            Err(StoreError::Conflict) => return Err(super::slug_taken(&written.slug)),
            Err(error) => return Err(error.into()),
        }
    }
    let asset = super::find(&mut *api.db().read().await?, caller.company(), &id).await?;
    Ok(Created {
        location: format!("/companies/{}/assets/{id}", caller.company()),
        data: AssetOut::new(asset, None, true),
    })
}
