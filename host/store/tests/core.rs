//! The store's ground: migrations, locks, transactions, keys and companies.

mod support;

use souk_domain::connections::Target;
use souk_domain::ids::{CompanyId, ConnectionId, EndpointId, FileId, KeyId, UserId};
use souk_domain::keys::{KeyDigest, KeySecret, KeyState, KeyType};
use souk_domain::roles::Role;
use souk_domain::time::Timestamp;
use souk_store::connections::{self, Written};
use souk_store::connectors::{self, PLATFORM, StoredConnector};
use souk_store::files::{self, File};
use souk_store::keys::{self, Deactivation, KeyFilter, NewKey};
use souk_store::shares::{self, Taken};
use souk_store::users::{UserFilter, UserStatus};
use souk_store::{Db, OpenOptions, Part, StoreError, companies, db, founding, users};
use std::time::Duration;
use support::{company, later, new_key, open, roll_back, sqlite, stores};

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

/// An address is once in a company, and once in all companies among those of whom it was shown that it is theirs.
#[tokio::test]
async fn an_address_is_proven_once() {
    for store in stores().await {
        let now = db::now();
        let one = company(&store.db, "one").await.company.id;
        let two = company(&store.db, "two").await.company.id;
        let add = async |company: &CompanyId| {
            let new = users::NewUser {
                company_id: company,
                email: Some("Ann@example.org"),
                name: "Ann",
                role: Role::Analyst,
                job_function_id: None,
                status: UserStatus::Invited,
            };
            let added = store
                .db
                .write(async |write| users::insert(write, &new, now).await);
            added.await
        };
        let arrive = async |user: &users::User, email_verified: bool| {
            let arrival = users::Arrival {
                identity: None,
                email_verified,
            };
            let arrived = store
                .db
                .write(async |write| users::arrive(write, user, &arrival, now).await);
            arrived.await
        };
        let first = add(&one).await.unwrap();
        let second = add(&two).await.unwrap();
        let again = add(&one).await;
        assert!(matches!(again, Err(StoreError::Conflict)), "{}", store.name);
        arrive(&first, false).await.unwrap();
        arrive(&second, true).await.unwrap();
        let late = arrive(&first, true).await;
        assert!(matches!(late, Err(StoreError::Conflict)), "{}", store.name);
        let proven = async || {
            let mut read = store.db.read().await.unwrap();
            let proven = users::by_proven_email(&mut read, "ann@example.org").await;
            proven.unwrap().map(|user| user.id)
        };
        assert_eq!(proven().await.as_ref(), Some(&second.id), "{}", store.name);
        store
            .db
            .write(async |write| users::remove(write, &second, now).await)
            .await
            .unwrap();
        arrive(&first, true).await.unwrap();
        assert_eq!(proven().await.as_ref(), Some(&first.id), "{}", store.name);
    }
}

/// A handle that was given up keeps routing, and nobody else can take it meanwhile.
#[tokio::test]
async fn retired_handles_keep_routing() {
    for store in stores().await {
        let now = db::now();
        let founded = company(&store.db, "old").await;
        roll_back(&store.db, async |write| {
            let renamed = companies::Company {
                handle: "new".into(),
                ..founded.company.clone()
            };
            companies::update(write, &renamed, now).await.unwrap();
            for handle in ["old", "new"] {
                let found = companies::by_handle(write, handle, now)
                    .await
                    .unwrap()
                    .expect("routes");
                assert_eq!(found.id, founded.company.id, "{}", store.name);
            }
            let thief = companies::NewCompany {
                handle: "old",
                name: "x",
                description: None,
                is_platform: false,
            };
            assert!(matches!(
                companies::insert(write, &thief, now).await,
                Err(StoreError::Conflict)
            ));
            let late = later(now, 91 * 86_400);
            assert!(
                companies::by_handle(write, "old", late)
                    .await
                    .unwrap()
                    .is_none()
            );
        })
        .await;
    }
}

/// Former handles are counted while they route, but for the one that the company has again and the one that it wants to have again; then they are
/// forgotten.
#[tokio::test]
async fn retired_handles_are_counted_and_forgotten() {
    for store in stores().await {
        let now = db::now();
        let founded = company(&store.db, "first").await;
        let id = &founded.company.id;
        roll_back(&store.db, async |write| {
            for handle in ["second", "third", "first"] {
                let renamed = companies::Company {
                    handle: handle.into(),
                    ..founded.company.clone()
                };
                companies::update(write, &renamed, now).await.unwrap();
            }
            let mut count = async |wanted: &str, at: Timestamp| {
                companies::retired_handles(write, id, "first", wanted, at)
                    .await
                    .unwrap()
            };
            let late = later(now, 90 * 86_400);
            for (wanted, at, expected) in
                [("fourth", now, 2), ("second", now, 1), ("fourth", late, 0)]
            {
                assert_eq!(count(wanted, at).await, expected, "{} {wanted}", store.name);
            }
            for (at, expected) in [(now, false), (late, true), (late, false)] {
                let forgotten = companies::sweep_handles(write, at).await.unwrap();
                assert_eq!(forgotten, expected, "{}", store.name);
            }
        })
        .await;
    }
}

/// What counts against a company's room for keys: those that work, and all that are new.
#[tokio::test]
async fn keys_are_counted() {
    for store in stores().await {
        let now = db::now();
        let founded = company(&store.db, "acme").await;
        let (id, other) = (&founded.company.id, company(&store.db, "other").await);
        let hours = |count: u64| Duration::from_secs(3_600 * count);
        let counts = store
            .db
            .write(async |write| -> Result<_, StoreError> {
                for (company, made_at, expires_at, is_revoked) in [
                    (id, now, None, false),
                    (id, now, None, true),
                    (id, now.before(hours(30)), Some(now.after(hours(1))), false),
                    (id, now.before(hours(30)), Some(now.before(hours(1))), false),
                    (id, now.before(hours(31)), Some(now.before(hours(2))), false),
                    (id, now.before(hours(30)), None, true),
                    (&other.company.id, now, None, false),
                ] {
                    let key = NewKey {
                        expires_at,
                        ..new_key(company, None, None)
                    };
                    let secret = KeySecret::generate(KeyType::Analytics);
                    let key = keys::insert(write, &key, &secret, made_at).await?;
                    if is_revoked {
                        let deactivation = Deactivation {
                            at: now,
                            by: None,
                            reason: None,
                            reason_code: None,
                        };
                        keys::deactivate(write, company, &key.id, &deactivation, now).await?;
                    }
                }
                keys::counts(write, id, now).await
            })
            .await
            .unwrap();
        // The first key of a company is one of those that work, and new.
        assert_eq!((counts.live, counts.of_day), (3, 3), "{}", store.name);
    }
}

/// Keys are found by the digest of their secret, listed by state, changed, and deactivated once.
#[tokio::test]
async fn keys_live_and_die() {
    for store in stores().await {
        let now = db::now();
        let founded = company(&store.db, "acme").await;
        let id = &founded.company.id;
        let endpoint = EndpointId::generate();
        let (secret, key) = store
            .db
            .write(async |write| -> Result<_, StoreError> {
                let secret = KeySecret::generate(KeyType::Analytics);
                let key = keys::insert(
                    write,
                    &new_key(id, Some(&founded.user.id), None),
                    &secret,
                    now,
                )
                .await
                .unwrap();
                let endpoint_secret = KeySecret::generate(KeyType::Endpoint);
                keys::insert(
                    write,
                    &new_key(id, None, Some(&endpoint)),
                    &endpoint_secret,
                    now,
                )
                .await
                .unwrap();
                Ok((secret, key))
            })
            .await
            .unwrap();

        roll_back(&store.db, async |write| {
            let known = keys::by_digest(write, &secret.digest())
                .await
                .unwrap()
                .expect("known");
            assert_eq!(
                (
                    &known.key,
                    known.company_handle.as_str(),
                    known.user_is_active
                ),
                (&key, "acme", true)
            );
            assert_eq!(known.key.masked(), secret.masked());
            assert!(
                keys::by_digest(write, &KeyDigest::of("other"))
                    .await
                    .unwrap()
                    .is_none()
            );

            let renamed = keys::Key {
                name: "renamed".into(),
                expires_at: Some(later(now, 60)),
                ..key.clone()
            };
            keys::update(write, &renamed, now).await.unwrap();
            let grace = Deactivation {
                at: later(now, 30),
                by: Some("key_x"),
                reason: Some("rotated"),
                reason_code: Some("rotated"),
            };
            let dying = keys::deactivate(write, id, &key.id, &grace, now)
                .await
                .unwrap()
                .expect("found");
            assert_eq!(dying.state(now), KeyState::Active);
            assert_eq!(dying.state(later(now, 30)), KeyState::Deactivated);
            let at_once = Deactivation {
                at: now,
                reason: Some("leaked"),
                ..grace
            };
            keys::deactivate(write, id, &key.id, &at_once, now)
                .await
                .unwrap();
            let again = Deactivation {
                at: later(now, 5),
                reason: Some("again"),
                ..grace
            };
            let dead = keys::deactivate(write, id, &key.id, &again, now)
                .await
                .unwrap()
                .expect("found");
            assert_eq!(
                (dead.revocation_reason.as_deref(), dead.deactivated_at),
                (Some("leaked"), Some(now)),
                "{}",
                store.name
            );
            assert!(
                keys::deactivate(write, &CompanyId::generate(), &key.id, &again, now)
                    .await
                    .unwrap()
                    .is_none()
            );

            let count = async |write: &mut souk_store::Write, filter: KeyFilter| {
                keys::list(write, id, &filter, now, Part::first(50))
                    .await
                    .unwrap()
                    .1
            };
            assert_eq!(count(write, KeyFilter::default()).await, 3);
            assert_eq!(
                count(
                    write,
                    KeyFilter {
                        state: Some(KeyState::Deactivated),
                        ..KeyFilter::default()
                    }
                )
                .await,
                1
            );
            assert_eq!(
                count(
                    write,
                    KeyFilter {
                        state: Some(KeyState::Active),
                        ..KeyFilter::default()
                    }
                )
                .await,
                2
            );
            assert_eq!(
                count(
                    write,
                    KeyFilter {
                        key_type: Some(KeyType::Endpoint),
                        ..KeyFilter::default()
                    }
                )
                .await,
                1
            );
            let (page, total) = keys::list(
                write,
                id,
                &KeyFilter {
                    endpoint_id: Some(endpoint),
                    ..KeyFilter::default()
                },
                now,
                Part::first(1),
            )
            .await
            .unwrap();
            assert_eq!((page.len(), total), (1, 1));
            let (page, total) = keys::list(write, id, &KeyFilter::default(), now, Part::new(2, 2))
                .await
                .unwrap();
            assert_eq!((page.len(), total), (1, 3));
        })
        .await;
    }
}

/// A key id that does not exist is absent, not an error.
#[tokio::test]
async fn absent_is_not_an_error() {
    for store in stores().await {
        let founded = company(&store.db, "acme").await;
        let mut read = store.db.read().await.unwrap();
        assert!(
            keys::get(&mut read, &founded.company.id, &KeyId::generate())
                .await
                .unwrap()
                .is_none()
        );
        assert!(
            users::get(&mut read, &founded.company.id, &UserId::generate())
                .await
                .unwrap()
                .is_none()
        );
        assert_eq!(
            users::list(
                &mut read,
                &founded.company.id,
                &UserFilter::default(),
                Part::first(10)
            )
            .await
            .unwrap()
            .1,
            1
        );
    }
}

/// What companies have in the store is counted of all together and of the one that has most, without what is deleted and what is the platform's.
#[tokio::test]
async fn what_companies_have_is_counted() {
    for store in stores().await {
        let db = &store.db;
        let [small, large] = ["small", "large"].map(|handle| company(db, handle));
        let (small, large) = (small.await, large.await);
        let read = async || {
            let mut read = db.read().await.unwrap();
            [
                shares::connections(&mut read).await.unwrap(),
                shares::connector_bytes(&mut read).await.unwrap(),
                shares::file_bytes(&mut read).await.unwrap(),
            ]
        };
        assert_eq!(read().await, [Taken::default(); 3], "{}", store.name);

        let now = db::now();
        let target = Target::File {
            name: "a.db".into(),
        };
        let written = Written {
            name: "one",
            credential_type: "NONE",
            credentials: b"",
            target: &target,
            cloud_provider_id: None,
            verified_usage_ability: false,
            statement_timeout_ms: 10_000,
        };
        let connector = |scope: &str, version: &str, size_bytes| StoredConnector {
            scope: scope.to_owned(),
            name: "x".into(),
            version: version.to_owned(),
            digest: "digest".into(),
            size_bytes,
            uploaded_by: "key_1".into(),
            created_at: now,
            described: None,
            error: None,
        };
        let file = |name: &str, size_bytes| File {
            name: name.to_owned(),
            upload_id: FileId::generate().to_string(),
            size_bytes,
            sha256: String::new(),
            created_at: now,
            updated_at: now,
        };
        db.write(async |write| -> Result<_, StoreError> {
            for (owner, many) in [(&small, 1), (&large, 3)] {
                let (company, user) = (&owner.company.id, &owner.user.id);
                let sizes = [("a.db", 10), ("b.db", 20), ("c.db", 30)];
                for (name, size) in sizes.into_iter().take(many) {
                    files::put(write, company, &file(name, size)).await?;
                    let version = connector(company.as_str(), name, 2 * size);
                    connectors::insert(write, &version).await?;
                    let id = ConnectionId::generate();
                    connections::insert(write, &id, company, user, 4, &written, now).await?;
                }
                let id = ConnectionId::generate();
                connections::insert(write, &id, company, user, 4, &written, now).await?;
                connections::delete(write, company, &id, now).await?;
            }
            let platforms = connector(PLATFORM, "1.0.0", 1_000);
            connectors::insert(write, &platforms).await?;
            Ok(())
        })
        .await
        .unwrap();
        let taken = [(4, 3), (140, 120), (70, 60)];
        let taken = taken.map(|(in_all, by_largest)| Taken { in_all, by_largest });
        assert_eq!(read().await, taken, "{}", store.name);
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
