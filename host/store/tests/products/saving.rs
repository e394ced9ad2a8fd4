//! Products as they are saved: what their sources have told, what is published, and whose names are taken.

use crate::support::{asset, endpoint, roll_back, stores};
use crate::{KEPT, NOW, after, both, company};
use souk_domain::ids::{AssetId, CompanyId, ConnectionId, EndpointId, UserId};
use souk_domain::products::{Product, ProductStatus};
use souk_store::products::{self, EndpointDetails, Kept, Kind, Tested, Written, learned};
use souk_store::{Db, StoreError};

/// What is told to whoever saves an endpoint `id` of this company that is so written.
async fn learned_for(
    db: &Db,
    company: &CompanyId,
    id: &EndpointId,
    written: &Written<EndpointDetails>,
) -> Vec<String> {
    let mut read = db.read().await.unwrap();
    let (connection, details) = (&written.connection_id, &written.details);
    let learned = learned::of_others(&mut read, company, id, connection, details).await;
    learned.unwrap()
}

/// What a test has learnt is told to those who save another endpoint of the same source and company, until the endpoint is changed without it or archived.
#[tokio::test]
async fn what_was_learnt_is_told_to_endpoints_of_the_same_source() {
    for store in stores().await {
        let db = &store.db;
        let (owner, stranger) = (company(db, "acme").await, company(db, "other").await);
        let (_, id) = both(db, &owner, "One", "one", NOW).await;
        // The second test saw what is not there any more.
        for (text, read_at) in [("first", NOW), ("late", after(1))] {
            let kept = db.write(async |tx| learned::keep(tx, &id, read_at, text).await);
            kept.await.unwrap();
        }
        let mut read = db.read().await.unwrap();
        let one = products::get(&mut read, &owner, &id)
            .await
            .unwrap()
            .unwrap();
        drop(read);
        assert_eq!(one.learned.as_deref(), Some("first"), "{}", store.name);
        let (same, new) = (one.written, EndpointId::generate());
        assert_eq!(learned_for(db, &owner, &new, &same).await, ["first"]);
        assert!(learned_for(db, &owner, &id, &same).await.is_empty());
        assert!(learned_for(db, &stranger, &new, &same).await.is_empty());
        let mut others = [same.clone(), same.clone(), same.clone()];
        others[0].details.source_table = Some("u".into());
        others[1].details.source_schema = Some("s".into());
        others[2].connection_id = ConnectionId::generate();
        for other in &others {
            let told = learned_for(db, &owner, &new, other).await;
            assert!(told.is_empty(), "{}: {other:?}", store.name);
        }

        let kept = Kept {
            sample: false,
            learned: Some("still"),
        };
        let changed = db
            .write(async |tx| products::update(tx, &owner, &id, NOW, &same, kept, after(1)).await);
        assert!(changed.await.unwrap());
        assert_eq!(learned_for(db, &owner, &new, &same).await, ["still"]);
        let archived = db.write(async |tx| {
            products::set_status(tx, &owner, &id, ProductStatus::Archived, after(2)).await
        });
        assert!(archived.await.unwrap());
        assert!(learned_for(db, &owner, &new, &same).await.is_empty());
    }
}

/// A change is lost rather than overwritten: what was read must still be what is there.
#[tokio::test]
async fn a_product_is_changed_and_published_only_as_it_was_read() {
    for store in stores().await {
        let (db, owner) = (&store.db, company(&store.db, "acme").await);
        let (id, _) = both(db, &owner, "One", "one", NOW).await;
        let tested = Tested {
            sample: Some("{}".into()),
            learned: None,
            allow_ai_training: false,
        };
        let (second, third) = (asset("Two", "two"), asset("Three", "three"));
        let done = db.write(async |tx| {
            Ok::<_, StoreError>([
                products::update(tx, &owner, &id, NOW, &second, KEPT, after(1)).await?,
                products::update(tx, &owner, &id, NOW, &third, KEPT, after(2)).await?,
                products::publish(tx, &owner, &id, NOW, &tested, after(2)).await?,
                products::publish(tx, &owner, &id, after(1), &tested, after(2)).await?,
            ])
        });
        assert_eq!(done.await.unwrap(), [true, false, false, true]);

        let mut db = db.read().await.unwrap();
        let stored = products::get(&mut db, &owner, &id).await.unwrap().unwrap();
        assert_eq!(
            (stored.written.name.as_str(), stored.company_handle.as_str()),
            ("Two", "acme"),
            "{}",
            store.name
        );
        assert_eq!(stored.written.details, second.details);
        assert_eq!(
            (stored.status, stored.published_at),
            (ProductStatus::Published, Some(after(2)))
        );
        assert!(!stored.written.allow_ai_training);
        let stranger = CompanyId::generate();
        let of_stranger = products::get(&mut db, &stranger, &id).await.unwrap();
        assert!(of_stranger.is_none());
        let found = products::id_by_slug(&mut db, &owner, "two").await.unwrap();
        assert_eq!(found, Some(id.clone()));
        // Of one kind only.
        let other = products::id_by_slug::<EndpointId>(&mut db, &owner, "two").await;
        assert_eq!(other.unwrap(), None);
        let status = products::status(&mut db, &id.product()).await.unwrap();
        assert_eq!(status, Some((owner, ProductStatus::Published)));
        let other = Product::Endpoint(EndpointId::parse(id.as_str()).unwrap());
        assert_eq!(products::status(&mut db, &other).await.unwrap(), None);
    }
}

/// A product may be published without a preview. What it showed before goes, and when that was taken.
#[tokio::test]
async fn a_product_is_published_without_a_sample() {
    for store in stores().await {
        let (db, owner) = (&store.db, company(&store.db, "acme").await);
        let (id, _) = both(db, &owner, "One", "one", NOW).await;
        let tested = |sample: Option<&str>| Tested {
            sample: sample.map(str::to_owned),
            learned: None,
            allow_ai_training: false,
        };
        let (with, without) = (tested(Some("{}")), tested(None));
        let done = db.write(async |tx| {
            Ok::<_, StoreError>([
                products::publish(tx, &owner, &id, NOW, &with, after(1)).await?,
                products::publish(tx, &owner, &id, after(1), &without, after(2)).await?,
            ])
        });
        assert_eq!(done.await.unwrap(), [true, true]);
        let mut db = db.read().await.unwrap();
        let stored = products::get(&mut db, &owner, &id).await.unwrap().unwrap();
        assert_eq!(
            (stored.sample, stored.sampled_at, stored.published_at),
            (None, None, Some(after(2))),
            "{}",
            store.name
        );
    }
}

/// A slug is unique in its company and kind, and two companies may use the same one.
#[tokio::test]
async fn slugs_are_unique_per_company_and_kind() {
    for store in stores().await {
        let (one, other) = (
            company(&store.db, "one").await,
            company(&store.db, "other").await,
        );
        for owner in [&one, &other] {
            both(&store.db, owner, "A", "same", NOW).await;
        }
        let user = UserId::generate();
        let (a, e) = (AssetId::generate(), EndpointId::generate());
        roll_back(&store.db, async |tx| {
            let again = products::insert(tx, &a, &one, &user, &asset("A", "same"), NOW).await;
            assert!(
                matches!(again, Err(StoreError::Conflict)),
                "{}: {again:?}",
                store.name
            );
        })
        .await;
        roll_back(&store.db, async |tx| {
            let again = products::insert(tx, &e, &one, &user, &endpoint("E", "same"), NOW).await;
            assert!(
                matches!(again, Err(StoreError::Conflict)),
                "{}: {again:?}",
                store.name
            );
        })
        .await;
    }
}
