//! Connections: saved, changed as they were read, and deleted.

use crate::{NOW, World, tcp, world, written};
use souk_domain::connections::Need;
use souk_domain::ids::{CompanyId, ConnectionId};
use souk_store::connections::{self, ConnectionFilter};
use souk_store::{Part, StoreError};

/// What was saved reads back; an update needs the revision that was read; a deleted one is gone,
/// with its credentials, while its row stays for archived products.
#[tokio::test]
async fn a_connection_lives_and_dies() {
    let World {
        db,
        company,
        user,
        _directory,
    } = world().await;
    let (id, target) = (ConnectionId::generate(), tcp());
    db.write(async |tx| {
        connections::insert(tx, &id, &company, &user, 1, &written("one", &target), NOW).await
    })
    .await
    .unwrap();

    let mut read = db.read().await.unwrap();
    let found = connections::get(&mut read, &company, &id)
        .await
        .unwrap()
        .unwrap();
    assert_eq!(
        (found.engine.as_str(), found.need, found.port),
        ("postgres", Need::Tcp, Some(5432))
    );
    assert_eq!(found.credentials, b"\x00sealed\xff");
    assert_eq!(
        (
            found.status.as_str(),
            found.revision,
            found.verified_usage_ability
        ),
        ("unverified", 1, true)
    );
    assert!(
        connections::get(&mut read, &CompanyId::generate(), &id)
            .await
            .unwrap()
            .is_none()
    );

    db.write(async |tx| -> Result<_, StoreError> {
        connections::record_test(tx, &company, &id, 1, Some("no route"), NOW)
            .await
            .unwrap();
        assert!(
            connections::relabel(tx, &company, &id, &written("two", &target), NOW)
                .await
                .unwrap()
        );
        Ok(())
    })
    .await
    .unwrap();
    let found = connections::get(&mut read, &company, &id)
        .await
        .unwrap()
        .unwrap();
    assert_eq!(
        (
            found.name.as_str(),
            found.status.as_str(),
            found.last_error.as_deref()
        ),
        ("two", "failed", Some("no route"))
    );

    db.write(async |tx| -> Result<_, StoreError> {
        assert!(
            connections::update(tx, &company, &id, 1, &written("three", &target), NOW)
                .await
                .unwrap()
        );
        assert!(
            !connections::update(tx, &company, &id, 1, &written("lost", &target), NOW)
                .await
                .unwrap()
        );
        // A test of the revision before says nothing about this one.
        connections::record_test(tx, &company, &id, 1, None, NOW)
            .await
            .unwrap();
        Ok(())
    })
    .await
    .unwrap();
    let (list, total) = connections::list(
        &mut read,
        &company,
        &ConnectionFilter {
            engine_id: Some(1),
            status: Some("unverified"),
        },
        Part::first(50),
    )
    .await
    .unwrap();
    assert_eq!((list.len(), total, list[0].revision), (1, 1, 2));
    let (list, total) = connections::list(
        &mut read,
        &company,
        &ConnectionFilter {
            engine_id: Some(2),
            status: None,
        },
        Part::first(50),
    )
    .await
    .unwrap();
    assert_eq!((list.len(), total), (0, 0));

    db.write(async |tx| -> Result<_, StoreError> {
        assert!(connections::delete(tx, &company, &id, NOW).await.unwrap());
        assert!(!connections::delete(tx, &company, &id, NOW).await.unwrap());
        let (left,): (i64,) = sqlx::query_as(
            "SELECT CAST(LENGTH(credentials) AS BIGINT) FROM connections WHERE id = $1",
        )
        .bind(id.as_str())
        .fetch_one(&mut **tx)
        .await
        .unwrap();
        assert_eq!(left, 0);
        Ok(())
    })
    .await
    .unwrap();
    assert!(
        connections::get(&mut read, &company, &id)
            .await
            .unwrap()
            .is_none()
    );
}
