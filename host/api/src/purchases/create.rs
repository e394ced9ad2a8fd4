use super::access::regain;
use super::beside::beside;
use super::key_of;
use super::shape::{Bought, PurchaseOut};
use crate::keys::check_room;
use crate::keys::shape::KeyOut;
use crate::refusals::{CONFLICT, PRODUCT_NOT_FOUND};
use crate::{ApiState, Body, Caller, CreatedOnce, Data, Either, Operation, Problem};
use axum::extract::State;
use serde::Deserialize;
use souk_domain::ids::{EndpointId, PurchaseId};
use souk_domain::keys::{KeySecret, KeyType};
use souk_domain::limits::KEY_LIMIT_DEFAULT;
use souk_domain::money::Credits;
use souk_domain::products::{Product, ProductStatus};
use souk_domain::roles::{Grant, Permission, Role};
use souk_store::keys::{self, NewKey};
use souk_store::purchases::{self, NewPurchase, Purchase, PurchaseStatus};
use souk_store::{Write, marketplace};
use utoipa::ToSchema;

pub const OPERATION: Operation = Operation::post("create_purchase", "/companies/{company_id}/purchases")
    .about("Purchases", "Accept the terms of a product")
    .notes(
        "Costs nothing: products are billed per use. For an endpoint the answer carries the endpoint key, in full this once. Repeating it \
         answers 200 with the purchase there is, or 201 with a new endpoint key where its own was deactivated or has expired.",
    )
    .needs(Role::DataScientist, Permission::Write)
    .refuses(&[PRODUCT_NOT_FOUND, CONFLICT]);

#[derive(Deserialize, ToSchema)]
pub struct PurchaseIn {
    /// The id of a published asset or endpoint.
    product_id: String,
    /// Must be true.
    accept_terms: bool,
}

/// Buys access to a product.
pub async fn create_purchase(
    State(api): State<ApiState>,
    caller: Caller,
    Body(body): Body<PurchaseIn>,
) -> Result<Bought, Problem> {
    if !body.accept_terms {
        return Err(Problem::invalid(
            "accept_terms",
            "must be true: purchased content may not be redistributed, resold or sublicensed",
        ));
    }
    let now = caller.now();
    api.db()
        .write(async |write| {
            let unknown = || Problem::not_found("product", &body.product_id);
            purchases::hold_product(write, &body.product_id).await?;
            let offer = marketplace::visible(write, caller.company(), &body.product_id, now)
                .await?
                .ok_or_else(unknown)?;
            let product =
                Product::parse(offer.product_type, &offer.id).map_err(Problem::internal)?;
            if offer.company_id == *caller.company() {
                return Err(Problem::of(
                    CONFLICT,
                    "this product is your own: calling it is free already",
                ));
            }
            let former = purchases::of_product(write, caller.company(), &body.product_id).await?;
            if let Some(purchase) = former
                .as_ref()
                .filter(|former| former.status != PurchaseStatus::Cancelled)
            {
                return existing(write, &caller, &purchase.id).await;
            }
            // Whoever has it comes back to it. Who has just given it up does not.
            if offer.status != ProductStatus::Published {
                return Err(unknown());
            }
            let new = NewPurchase {
                buyer: caller.company(),
                seller: &offer.company_id,
                product: &product,
                credits: offer.price.unwrap_or(Credits::ZERO),
                ai_training_allowed: offer.ai_training_allowed,
                accepted_by: caller.named(),
            };
            let (purchase, is_first) = match &former {
                None => {
                    let purchase = purchases::implicit(write, &new, now).await?;
                    let is_first = purchase.endpoint_key_id.is_none();
                    (purchase, is_first)
                }
                Some(former) => match purchases::renew(write, &former.id, &new, now).await? {
                    Some(purchase) => (purchase, true),
                    None => (super::find(write, &caller, &former.id).await?, false),
                },
            };
            // Another request of this company has bought it meanwhile, and was shown the key.
            if !is_first {
                return existing(write, &caller, &purchase.id).await;
            }
            let (purchase, once, masked) = match &product {
                Product::Asset(_) => (purchase, None, None),
                Product::Endpoint(endpoint) => {
                    let (purchase, once, masked) =
                        provision(write, &caller, purchase, endpoint, &offer.name).await?;
                    (purchase, Some(once), Some(masked))
                }
            };
            let beside = beside(write, &purchase, now).await?;
            let answer = CreatedOnce {
                location: format!("/companies/{}/purchases/{}", caller.company(), purchase.id),
                data: PurchaseOut::of(&purchase, &beside, once),
                kept: PurchaseOut::of(&purchase, &beside, masked),
            };
            Ok(Either::That(answer))
        })
        .await
}

/// A purchase that is there already. Whose endpoint key does not work any more comes back for another.
async fn existing(write: &mut Write, caller: &Caller, id: &PurchaseId) -> Result<Bought, Problem> {
    purchases::lock(write, caller.company(), id).await?;
    let purchase = super::find(write, caller, id).await?;
    if purchase.status == PurchaseStatus::Active {
        return regain(write, caller, purchase).await;
    }
    let key = key_of(write, caller, &purchase).await?;
    let key = key.map(|key| KeyOut::masked(&key, caller.now()));
    let beside = beside(write, &purchase, caller.now()).await?;
    Ok(Either::This(Data(PurchaseOut::of(&purchase, &beside, key))))
}

/// The key with which the buyer reads the endpoint: shown in full this once.
pub(super) async fn provision(
    write: &mut Write,
    caller: &Caller,
    mut purchase: Purchase,
    endpoint: &EndpointId,
    name: &str,
) -> Result<(Purchase, KeyOut, KeyOut), Problem> {
    let secret = KeySecret::generate(KeyType::Endpoint);
    let new = NewKey {
        company_id: caller.company(),
        user_id: None,
        endpoint_id: Some(endpoint),
        purchase_id: Some(&purchase.id),
        name,
        description: None,
        grant: Grant::ENDPOINT,
        rate_limit: KEY_LIMIT_DEFAULT,
        created_by: Some(caller.named()),
        expires_at: None,
    };
    check_room(write, caller).await?;
    let key = keys::insert(write, &new, &secret, caller.now()).await?;
    purchases::set_key(write, &purchase.id, &key.id).await?;
    let (once, masked) = (
        KeyOut::once(&key, &secret, caller.now()),
        KeyOut::masked(&key, caller.now()),
    );
    purchase.endpoint_key_id = Some(key.id);
    Ok((purchase, once, masked))
}
