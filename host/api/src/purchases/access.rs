use super::beside::beside;
use super::create::provision;
use super::shape::{Bought, PurchaseOut};
use super::{find, key_of};
use crate::keys::shape::KeyOut;
use crate::refusals::{CONFLICT, INVALID_STATE};
use crate::{ApiState, Caller, CreatedOnce, Data, Either, Operation, OptionalBody, Path, Problem};
use axum::extract::State;
use serde::Deserialize;
use souk_domain::ids::{CompanyId, EndpointId, PurchaseId};
use souk_domain::keys::KeyState;
use souk_domain::products::{ProductStatus, ProductType};
use souk_domain::roles::{Permission, Role};
use souk_store::keys::ENDPOINT_ARCHIVED;
use souk_store::purchases::{Purchase, PurchaseStatus};
use souk_store::{Write, products, purchases};
use utoipa::ToSchema;

pub const OPERATION: Operation = Operation::post("access_purchase", "/companies/{company_id}/purchases/{purchase_id}/access")
    .about("Purchases", "Come back to what was bought")
    .notes("200 with the endpoint key masked while it works; 201 with a new one, in full this once, when it was deactivated or has expired.")
    .needs(Role::DataScientist, Permission::Write)
    .refuses(&[INVALID_STATE, CONFLICT]);

#[derive(Default, Deserialize, ToSchema)]
pub struct AccessIn {}

/// Shows a purchase, with a new endpoint key where the old one does not work any more.
pub async fn access_purchase(
    State(api): State<ApiState>,
    caller: Caller,
    Path((_, id)): Path<(CompanyId, PurchaseId)>,
    OptionalBody(_): OptionalBody<AccessIn>,
) -> Result<Bought, Problem> {
    api.db()
        .write(async |write| {
            purchases::lock(write, caller.company(), &id).await?;
            let purchase = find(write, &caller, &id).await?;
            match purchase.status {
                PurchaseStatus::Active => regain(write, &caller, purchase).await,
                other => Err(Problem::state(
                    other.as_str(),
                    "this purchase gives no access any more",
                )),
            }
        })
        .await
}

/// An active purchase, which is locked: with the endpoint key masked while it works, else with a new one.
pub(super) async fn regain(
    write: &mut Write,
    caller: &Caller,
    purchase: Purchase,
) -> Result<Bought, Problem> {
    let now = caller.now();
    let key = key_of(write, caller, &purchase).await?;
    let beside = beside(write, &purchase, now).await?;
    let works = key
        .as_ref()
        .is_some_and(|key| key.state(now) == KeyState::Active);
    if purchase.product_type == ProductType::Asset || works {
        let key = key.map(|key| KeyOut::masked(&key, now));
        return Ok(Either::This(Data(PurchaseOut::of(&purchase, &beside, key))));
    }
    purchases::hold_product(write, &purchase.product_id).await?;
    let endpoint = EndpointId::parse(&purchase.product_id).map_err(Problem::internal)?;
    let found = products::get_any(write, &endpoint)
        .await?
        .filter(|endpoint| endpoint.status != ProductStatus::Archived);
    let found = found.ok_or_else(|| Problem::state("archived", ENDPOINT_ARCHIVED))?;
    let (purchase, once, masked) =
        provision(write, caller, purchase, &endpoint, &found.written.name).await?;
    let answer = CreatedOnce {
        location: format!("/companies/{}/purchases/{}", caller.company(), purchase.id),
        data: PurchaseOut::of(&purchase, &beside, Some(once)),
        kept: PurchaseOut::of(&purchase, &beside, Some(masked)),
    };
    Ok(Either::That(answer))
}
