//! What is kept in memory is dropped by every change of what it was made from, and by no other.
//!
//! That the store announces every change is tested in `store/tests/announcements`.

use crate::world::{Company, World, now};
use souk_app::products;
use souk_app::settle::entitlements::{self, Entitlement};
use souk_domain::ids::{AssetId, CompanyId, ConnectionId};
use souk_domain::money::{Credits, UsdCents};
use souk_domain::prices::Validity;
use souk_domain::products::{Product, ProductStatus};
use souk_domain::time::{DAY, Timestamp};
use souk_sandbox::{Grant, PoolLimits, Source};
use souk_store::connectors::{Choice, PLATFORM};
use souk_store::prices::NewPrice;
use souk_store::products as store;
use souk_store::purchases::{self, NewPurchase};
use souk_store::{StoreError, Write, companies, connectors, prices};
use std::sync::Arc;

fn id(company: &Company) -> CompanyId {
    CompanyId::parse(&company.id).unwrap()
}

async fn choose(write: &mut Write, scope: &str) -> Result<(), StoreError> {
    let chosen = Choice {
        scope: scope.to_owned(),
        name: "fixed-rows".to_owned(),
        version: "1.0.0".to_owned(),
        previous_version: None,
        activated_at: now(),
        deactivated_at: None,
        blocked: false,
        reason: None,
    };
    connectors::choose(write, &chosen).await
}

async fn set_price(write: &mut Write, product: &AssetId) -> Result<(), StoreError> {
    let new = NewPrice {
        company: &CompanyId::generate(),
        product: product.as_str(),
        credits: Credits::ZERO,
        usd: UsdCents::ZERO,
        discount_percent: None,
        original_credits: None,
        validity: Validity {
            from: now(),
            to: None,
        },
        created_by: "key_1",
    };
    prices::insert(write, &new.price(now())).await
}

async fn rename(
    write: &mut Write,
    company: &CompanyId,
    handle: &str,
    at: Timestamp,
) -> Result<(), StoreError> {
    let company = companies::get(write, company)
        .await?
        .ok_or(StoreError::NotFound)?;
    let renamed = companies::Company {
        handle: handle.to_owned(),
        ..company
    };
    companies::update(write, &renamed, at).await
}

/// What is kept of one company's connections outlives another company's change of connectors, and neither its own nor the platform's.
#[tokio::test]
async fn a_companys_connectors_are_its_own_business() {
    let world = World::new().await;
    let (acme, other) = (world.company("acme").await, world.company("other").await);
    let sources = &world.state.app().sources;
    let id = ConnectionId::generate();
    let source = Arc::new(Source {
        company: acme.id.clone(),
        connection: id.to_string(),
        revision: 1,
        engine: "fixed".into(),
        settings_json: "{}".into(),
        grant: Grant::Directory("/nonexistent".into()),
        limits: PoolLimits::default(),
    });
    for (scope, stays) in [
        (other.id.as_str(), true),
        (acme.id.as_str(), false),
        (PLATFORM, false),
    ] {
        sources.keep(id.clone(), &source, sources.epoch());
        assert!(sources.get(&id).is_some());
        let chosen = world.db.write(async |write| choose(write, scope).await);
        chosen.await.unwrap();
        assert_eq!(sources.get(&id).is_some(), stays, "{scope}");
    }
}

/// A snapshot is dropped by a change of its product, price, owner or connectors, and of nobody else's.
#[tokio::test]
async fn a_product_is_made_from_itself_its_price_its_owner_and_connectors() {
    let world = World::new().await;
    let (acme, other) = (world.company("acme").await, world.company("other").await);
    let asset = AssetId::parse(&world.sample(&acme, "{}").await).unwrap();
    let another = AssetId::parse(&world.sample(&acme, "{}").await).unwrap();
    let (owner, app) = (id(&acme), world.state.app());
    for change in [
        "price",
        "another's price",
        "product",
        "another product",
        "owner",
        "another company",
        "own connector",
        "another's connector",
        "platform's connector",
    ] {
        products::get(app, &asset, now()).await.unwrap();
        assert!(
            app.products.assets.snapshots.get(&asset).is_some(),
            "{change}"
        );
        let changed = world.db.write(async |write| match change {
            "price" => set_price(write, &asset).await,
            "another's price" => set_price(write, &another).await,
            "product" => store::set_status(write, &owner, &asset, ProductStatus::Published, now())
                .await
                .map(drop),
            "another product" => {
                store::set_status(write, &owner, &another, ProductStatus::Published, now())
                    .await
                    .map(drop)
            }
            "owner" => rename(write, &owner, "moved", now()).await,
            "another company" => rename(write, &id(&other), "gone", now()).await,
            "own connector" => choose(write, &acme.id).await,
            "another's connector" => choose(write, &other.id).await,
            _ => choose(write, PLATFORM).await,
        });
        changed.await.unwrap();
        let stays = change.starts_with("another");
        assert_eq!(
            app.products.assets.snapshots.get(&asset).is_some(),
            stays,
            "{change}"
        );
    }
}

/// A path leads to a product only as long as the handle is its seller's and the slug its own.
#[tokio::test]
async fn paths_lead_where_handles_and_slugs_do() {
    let world = World::new().await;
    let (acme, other) = (world.company("acme").await, world.company("other").await);
    let asset = AssetId::parse(&world.sample(&acme, "{}").await).unwrap();
    let app = world.state.app();
    let row = products::get(app, &asset, now()).await.unwrap();
    let leads = async |handle: &str, slug: &str, at: Timestamp| {
        let found = products::by_slug::<AssetId>(app, handle, slug, at).await;
        found.ok().map(|found| found.row.id.clone())
    };
    let slug = row.row.written.slug.as_str();
    assert_eq!(leads("acme", slug, now()).await.as_ref(), Some(&asset));

    let late = now().after(DAY * 91);
    let rename = async |company: &Company, handle: &str, at: Timestamp| {
        let renamed = world
            .db
            .write(async |write| rename(write, &id(company), handle, at).await);
        renamed.await.unwrap();
    };
    rename(&acme, "moved", now()).await;
    // Retired, and led to as before; then it is another company's.
    assert_eq!(leads("acme", slug, now()).await.as_ref(), Some(&asset));
    rename(&other, "acme", late).await;
    assert_eq!(leads("acme", slug, late).await, None);
    assert_eq!(leads("moved", slug, late).await.as_ref(), Some(&asset));

    let written = store::Written {
        slug: "renamed".into(),
        ..row.row.written.clone()
    };
    let updated = world.db.write(async |write| {
        let before = store::get_any(write, &asset)
            .await?
            .ok_or(StoreError::NotFound)?;
        store::update(
            write,
            &id(&acme),
            &asset,
            before.updated_at,
            &written,
            store::Kept::default(),
            late,
        )
        .await
    });
    assert!(updated.await.unwrap());
    assert_eq!(leads("moved", slug, late).await, None);
    assert_eq!(leads("moved", "renamed", late).await.as_ref(), Some(&asset));
}

/// A company's first purchase of a product is nobody else's business, and not that of its other products.
#[tokio::test]
async fn a_purchase_concerns_its_buyer_and_product() {
    let world = World::new().await;
    let (acme, buyer, other) = (
        world.company("acme").await,
        world.company("buyer").await,
        world.company("other").await,
    );
    let product = Product::Asset(AssetId::parse(&world.asset(&acme).await).unwrap());
    let entitlements = entitlements::new(&world.db);
    let of = |company: &Company, product: &str| purchases::entitlement(&company.id, product);
    let (own, others) = (
        of(&buyer, product.id()),
        [of(&other, product.id()), of(&buyer, "ast_another")],
    );
    for entitlement in others.iter().chain([&own]) {
        entitlements.keep(
            entitlement.clone(),
            &Arc::new(Entitlement::None),
            entitlements.epoch(),
        );
    }
    let (buyer, seller) = (id(&buyer), id(&acme));
    let new = NewPurchase {
        buyer: &buyer,
        seller: &seller,
        product: &product,
        credits: Credits::ZERO,
        ai_training_allowed: false,
        accepted_by: "key_1",
    };
    let bought = world
        .db
        .write(async |write| purchases::implicit(write, &new, now()).await);
    bought.await.unwrap();
    assert_eq!(entitlements.get(&own), None);
    assert!(others.iter().all(|other| entitlements.get(other).is_some()));
}
