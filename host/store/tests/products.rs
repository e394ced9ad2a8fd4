//! Assets and endpoints in the store, on SQLite and on PostgreSQL.

mod support;

use souk_domain::ids::{AssetId, CompanyId, EndpointId, UserId};
use souk_domain::time::Timestamp;
use souk_store::{Db, StoreError, assets, endpoints};
use support::{asset, endpoint, roll_back, stores};

const NOW: Timestamp = Timestamp::from_micros(1_800_000_000_000_000);

fn after(micros: i64) -> Timestamp {
    Timestamp::from_micros(NOW.micros() + micros)
}

async fn company(db: &Db, handle: &str) -> CompanyId {
    let id = CompanyId::generate();
    db.write(async |tx| -> Result<_, StoreError> {
        sqlx::query("INSERT INTO companies (id, handle, name, status, is_platform, created_at, updated_at) VALUES ($1, $2, $2, 'active', 0, 0, 0)")
            .bind(id.as_str())
            .bind(handle)
            .execute(&mut **tx)
            .await
            .unwrap();
        Ok(())
    }).await.unwrap();
    id
}

/// A change is lost rather than overwritten: what was read must still be what is there.
#[tokio::test]
async fn an_asset_is_changed_and_published_only_as_it_was_read() {
    for store in stores().await {
        let (db, owner) = (&store.db, company(&store.db, "acme").await);
        let (id, user) = (AssetId::generate(), UserId::generate());
        db.write(async |tx| -> Result<_, StoreError> {
            assets::insert(tx, &id, &owner, &user, &asset("One", "one"), NOW)
                .await
                .unwrap();
            assert!(
                assets::update(tx, &owner, &id, NOW, &asset("Two", "two"), true, after(1))
                    .await
                    .unwrap()
            );
            assert!(
                !assets::update(
                    tx,
                    &owner,
                    &id,
                    NOW,
                    &asset("Three", "three"),
                    true,
                    after(2)
                )
                .await
                .unwrap()
            );
            assert!(
                !assets::publish(tx, &owner, &id, NOW, "{}", after(2))
                    .await
                    .unwrap()
            );
            assert!(
                assets::publish(tx, &owner, &id, after(1), "{}", after(2))
                    .await
                    .unwrap()
            );
            Ok(())
        })
        .await
        .unwrap();

        let mut db = db.read().await.unwrap();
        let stored = assets::get(&mut db, &owner, &id).await.unwrap().unwrap();
        assert_eq!(
            (stored.written.name.as_str(), stored.company_handle.as_str()),
            ("Two", "acme"),
            "{}",
            store.name
        );
        assert_eq!(
            (stored.status.as_str(), stored.published_at),
            ("published", Some(after(2)))
        );
        assert!(!stored.written.allow_ai_training);
        let stranger = CompanyId::generate();
        assert!(
            assets::get(&mut db, &stranger, &id)
                .await
                .unwrap()
                .is_none()
        );
        assert_eq!(
            assets::id_by_slug(&mut db, &owner, "two").await.unwrap(),
            Some(id)
        );
    }
}

/// A slug is unique in its company, and two companies may use the same one.
#[tokio::test]
async fn slugs_are_unique_per_company() {
    for store in stores().await {
        let (one, other) = (
            company(&store.db, "one").await,
            company(&store.db, "other").await,
        );
        let user = UserId::generate();
        for owner in [&one, &other] {
            store
                .db
                .write(async |tx| -> Result<_, StoreError> {
                    assets::insert(
                        tx,
                        &AssetId::generate(),
                        owner,
                        &user,
                        &asset("A", "same"),
                        NOW,
                    )
                    .await
                    .unwrap();
                    endpoints::insert(
                        tx,
                        &EndpointId::generate(),
                        owner,
                        &user,
                        &endpoint("E", "same"),
                        NOW,
                    )
                    .await
                    .unwrap();
                    Ok(())
                })
                .await
                .unwrap();
        }
        roll_back(&store.db, async |tx| {
            let again = assets::insert(
                tx,
                &AssetId::generate(),
                &one,
                &user,
                &asset("A", "same"),
                NOW,
            )
            .await;
            assert!(
                matches!(again, Err(StoreError::Conflict)),
                "{}: {again:?}",
                store.name
            );
        })
        .await;
        roll_back(&store.db, async |tx| {
            let again = endpoints::insert(
                tx,
                &EndpointId::generate(),
                &one,
                &user,
                &endpoint("E", "same"),
                NOW,
            )
            .await;
            assert!(
                matches!(again, Err(StoreError::Conflict)),
                "{}: {again:?}",
                store.name
            );
        })
        .await;
    }
}

/// Lists hide what is archived unless asked for, count what they filter, and take `%` and `_` literally.
#[tokio::test]
async fn lists_filter_sort_and_count() {
    for store in stores().await {
        let owner = company(&store.db, "acme").await;
        let user = UserId::generate();
        let mut ids = Vec::new();
        for (place, name) in ["Goals 100%", "assists_all", "Goals"]
            .into_iter()
            .enumerate()
        {
            let (a, e) = store
                .db
                .write(async |tx| -> Result<_, StoreError> {
                    let (a, e) = (AssetId::generate(), EndpointId::generate());
                    let slug = format!("s{place}");
                    assets::insert(
                        tx,
                        &a,
                        &owner,
                        &user,
                        &asset(name, &slug),
                        after(place as i64),
                    )
                    .await
                    .unwrap();
                    endpoints::insert(
                        tx,
                        &e,
                        &owner,
                        &user,
                        &endpoint(name, &slug),
                        after(place as i64),
                    )
                    .await
                    .unwrap();
                    Ok((a, e))
                })
                .await
                .unwrap();
            ids.push((a, e));
        }
        store
            .db
            .write(async |tx| -> Result<_, StoreError> {
                assert!(
                    assets::set_status(tx, &owner, &ids[2].0, "archived", after(9))
                        .await
                        .unwrap()
                );
                assert!(
                    !assets::set_status(tx, &owner, &ids[2].0, "archived", after(9))
                        .await
                        .unwrap()
                );
                Ok(())
            })
            .await
            .unwrap();

        let mut db = store.db.read().await.unwrap();
        for (sort, descending, first) in [
            (assets::Sort::Name, false, "Goals 100%"),
            (assets::Sort::CreatedAt, true, "assists_all"),
            (assets::Sort::UpdatedAt, false, "Goals 100%"),
        ] {
            let (list, total) = assets::list(
                &mut db,
                &owner,
                &assets::Filter::default(),
                sort,
                descending,
                1,
                0,
            )
            .await
            .unwrap();
            // Backends sort letters of different case differently; both put one of these two first.
            let names = ["Goals 100%", "assists_all"];
            assert!(
                (sort == assets::Sort::Name && names.contains(&list[0].written.name.as_str()))
                    || list[0].written.name == first,
                "{}",
                store.name
            );
            assert_eq!((list.len(), total), (1, 2), "{}", store.name);
        }
        let archived = assets::Filter {
            status: Some("archived"),
            category: Some("results"),
            ..Default::default()
        };
        assert_eq!(
            assets::list(&mut db, &owner, &archived, assets::Sort::Name, true, 10, 0)
                .await
                .unwrap()
                .1,
            1
        );
        for (q, expected) in [
            ("goals", 2),
            ("100%", 1),
            ("s_a", 1),
            ("%", 1),
            ("nothing", 0),
        ] {
            let filter = endpoints::Filter {
                q: Some(q),
                ..Default::default()
            };
            let (_, total) = endpoints::list(
                &mut db,
                &owner,
                &filter,
                endpoints::Sort::Requests,
                true,
                10,
                0,
            )
            .await
            .unwrap();
            assert_eq!(total, expected, "{} {q}", store.name);
        }
    }
}
