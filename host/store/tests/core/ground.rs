//! Migrations, locks, transactions and the kinds of errors.

use crate::support::{company, open, roll_back, sqlite, stores};
use souk_domain::ids::CompanyId;
use souk_domain::roles::Role;
use souk_store::users::{self, UserStatus};
use souk_store::{Db, OpenOptions, StoreError, companies, db, founding, keys};
use std::time::Duration;

/// Starting again applies nothing twice; a migration that was changed after the fact is refused, and a store that a newer version has changed.
#[tokio::test]
async fn migrations_apply_once() {
    for (change, words) in [
        (
            "INSERT INTO schema_migrations (version, name, checksum, applied_at) VALUES (9999, 'of a newer version', 'x', 0)",
            "the store has migration 9999, which this version of souk does not know; use a newer one",
        ),
        (
            "UPDATE schema_migrations SET checksum = 'x' WHERE version = 1",
            "changed after it had been applied",
        ),
    ] {
        for store in stores().await {
            store.db.close().await;
            drop(store.db);
            let db = open(&store.url).await;
            db.write(async |write| -> Result<_, StoreError> {
                sqlx::query(change).execute(&mut **write).await.unwrap();
                Ok(())
            })
            .await
            .unwrap();
            db.close().await;
            drop(db);
            let refused = Db::open(&OpenOptions::new(&store.url)).await;
            let refused = refused.err().expect("refused").to_string();
            assert!(refused.contains(words), "{}: {refused}", store.name);
        }
    }
}

/// A second process cannot open the same SQLite store, and is told why.
#[tokio::test]
async fn sqlite_is_locked() {
    let store = sqlite().await;
    let refused = Db::open(&OpenOptions::new(&store.url))
        .await
        .err()
        .expect("refused");
    assert!(
        refused.to_string().contains("open in another souk process"),
        "{refused}"
    );
    // One that is ending is waited for.
    let opening = tokio::spawn({
        let url = store.url.clone();
        async move { Db::open(&OpenOptions::new(&url)).await.map(drop) }
    });
    tokio::time::sleep(Duration::from_millis(100)).await;
    store.db.close().await;
    drop(store.db);
    opening.await.unwrap().expect("opened");
}

/// A transaction that is dropped changed nothing, and the next writer is not held up.
#[tokio::test]
async fn dropped_transactions_roll_back() {
    for store in stores().await {
        roll_back(&store.db, async |write| {
            let founding = founding::found_platform(write, db::now()).await.unwrap();
            assert!(founding.is_some());
        })
        .await;
        store
            .db
            .write(async |write| -> Result<_, StoreError> {
                assert!(
                    companies::platform(write).await.unwrap().is_none(),
                    "{}",
                    store.name
                );
                founding::found_platform(write, db::now())
                    .await
                    .unwrap()
                    .expect("the first time");
                assert!(
                    founding::found_platform(write, db::now())
                        .await
                        .unwrap()
                        .is_none()
                );
                Ok(())
            })
            .await
            .unwrap();
    }
}

/// Writers wait for their turn instead of failing, however many there are.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn writers_queue() {
    for store in stores().await {
        let tasks: Vec<_> = (0..64)
            .map(|number| {
                let db = store.db.clone();
                tokio::spawn(async move { company(&db, &format!("c{number}")).await })
            })
            .collect();
        for task in tasks {
            task.await.unwrap();
        }
        let mut read = store.db.read().await.unwrap();
        let row = sqlx::query("SELECT COUNT(*) AS n FROM companies")
            .fetch_one(&mut *read)
            .await
            .unwrap();
        assert_eq!(souk_store::Fields::number(&row, "n").unwrap(), 64);
    }
}

/// Errors say what kind they are on both backends.
#[tokio::test]
async fn errors_have_kinds() {
    for store in stores().await {
        let founded = company(&store.db, "acme").await;
        roll_back(&store.db, async |write| {
            let same = companies::NewCompany {
                handle: "acme",
                name: "x",
                description: None,
                is_platform: false,
            };
            let error = companies::insert(write, &same, db::now())
                .await
                .unwrap_err();
            assert!(
                matches!(error, StoreError::Conflict),
                "{}: {error:?}",
                store.name
            );
        })
        .await;
        roll_back(&store.db, async |write| {
            let nobody = users::NewUser {
                company_id: &CompanyId::generate(),
                email: None,
                name: "x",
                role: Role::Analyst,
                job_function_id: None,
                status: UserStatus::Active,
            };
            let error = users::insert(write, &nobody, db::now()).await.unwrap_err();
            assert!(
                matches!(error, StoreError::Referenced),
                "{}: {error:?}",
                store.name
            );
        })
        .await;
        let mut read = store.db.read().await.unwrap();
        assert!(
            keys::get(&mut read, &CompanyId::generate(), &founded.key.id)
                .await
                .unwrap()
                .is_none()
        );
    }
}

/// A transaction that SQLite has undone by itself, for want of room, fails no other: neither the next one nor any after it.
#[tokio::test]
async fn a_transaction_that_had_no_room_fails_no_other() {
    let store = sqlite().await;
    let execute = async |sql: &'static str| {
        store
            .db
            .write(async |write| -> Result<_, StoreError> {
                sqlx::query(sql).execute(&mut **write).await?;
                Ok(())
            })
            .await
    };
    execute("CREATE TABLE large (x BLOB)").await.unwrap();
    // As many as there are.
    store.db.limit_pages(1).await.unwrap();
    let full = execute("INSERT INTO large VALUES (zeroblob(1000000))").await;
    assert!(matches!(full, Err(StoreError::Unavailable(_))), "{full:?}");
    for _ in 0..2 {
        execute("DELETE FROM large").await.unwrap();
    }
}
