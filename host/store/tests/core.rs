//! The store's ground: migrations, locks, transactions, keys and companies.

mod support;

use souk_domain::actors::Actor;
use souk_domain::connections::Target;
use souk_domain::ids::{CompanyId, ConnectionId, EndpointId, FileId, KeyId, UserId};
use souk_domain::keys::{KeyDigest, KeySecret, KeyState, KeyType};
use souk_domain::roles::{Grant, Permissions, Role};
use souk_domain::time::{DAY, Timestamp};
use souk_store::connections::{self, Written};
use souk_store::connectors::{self, PLATFORM, StoredConnector};
use souk_store::files::{self, File};
use souk_store::keys::{self, Deactivation, KeyFilter, NewKey};
use souk_store::shares::{self, Taken};
use souk_store::teller::{Asked, Teller};
use souk_store::users::{UserFilter, UserStatus};
use souk_store::{
    Db, Fields, OpenOptions, Part, StoreError, companies, db, founding, usage, users,
};
use sqlx::{AssertSqlSafe, Executor};
use std::time::Duration;
use support::{company, later, open, roll_back, sqlite, stores};

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

fn new_key<'a>(
    company_id: &'a CompanyId,
    user_id: Option<&'a UserId>,
    endpoint_id: Option<&'a EndpointId>,
) -> NewKey<'a> {
    NewKey {
        company_id,
        user_id,
        endpoint_id,
        purchase_id: None,
        name: "a key",
        description: Some("for a test"),
        grant: Grant {
            role: Role::DataScientist,
            permissions: Permissions::READ_WRITE,
        },
        rate_limit: 77,
        created_by: None,
        expires_at: None,
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

/// Use of keys reaches the store by itself, counted per hour and in total.
#[tokio::test]
async fn use_of_keys_is_counted() {
    for store in stores().await {
        let founded = company(&store.db, "acme").await;
        let teller = Teller::open(&store.db).await.unwrap();
        let now = db::now();
        let company = &founded.company.id;
        let by_key = Actor::from(founded.key.id.clone());
        let by_user = Actor::from(founded.user.id.clone());
        for number in 0..10 {
            teller.count_use(Asked {
                actor: &by_key,
                company,
                route: "/assets",
                at: now,
                failed: number < 3,
            });
        }
        teller.count_use(Asked {
            actor: &by_key,
            company,
            route: "/credits",
            at: later(now, 3_600),
            failed: false,
        });
        // Somebody who is signed in has no key whose totals would grow.
        teller.count_use(Asked {
            actor: &by_user,
            company,
            route: "/credits",
            at: now,
            failed: true,
        });
        teller.flush().await;
        let mut read = store.db.read().await.unwrap();
        let key = keys::get(&mut read, &founded.company.id, &founded.key.id)
            .await
            .unwrap()
            .expect("found");
        assert_eq!(
            (key.usage_count, key.failed_count),
            (11, 3),
            "{}",
            store.name
        );
        assert_eq!(
            (key.first_used_at, key.last_used_at),
            (Some(now), Some(later(now, 3_600)))
        );
        let (id, from, to) = (&founded.key.id, now.day_start(), later(now, 7_200));
        let hours = usage::key_hours(&mut read, id, from, to).await.unwrap();
        let counted: Vec<_> = hours
            .iter()
            .map(|hour| (hour.requests, hour.failed))
            .collect();
        assert_eq!(counted, [(10, 3), (1, 0)]);
        let routes = usage::key_routes(&mut read, id, from, to).await.unwrap();
        let counted: Vec<_> = routes
            .iter()
            .map(|of| (of.route.as_str(), of.requests))
            .collect();
        assert_eq!(counted, [("/assets", 10), ("/credits", 1)]);
        // What was sent in an hour may be next month's.
        let months = [now, later(now, 3_600)].map(|at| at.month().0);
        let sent = usage::company_requests(&mut read, company, months[0]).await;
        let in_month = if months[0] == months[1] { 12 } else { 11 };
        assert_eq!(sent.unwrap(), in_month, "{}", store.name);
        let other = usage::company_requests(&mut read, &CompanyId::generate(), months[0]).await;
        assert_eq!(other.unwrap(), 0);
    }
}

/// What a company has sent, as it is shown: by hour, by route, by who asked (the first of them), and as lines of a table.
async fn sent(db: &Db, company: &CompanyId, now: Timestamp) -> [Vec<String>; 4] {
    let (from, to) = (now.before(DAY * 40), now.after(DAY));
    let mut read = db.read().await.unwrap();
    let hours = usage::company_hours(&mut read, company, from, to).await;
    let routes = usage::company_routes(&mut read, company, from, to).await;
    let actors = usage::company_actors(&mut read, company, from, to, 1).await;
    let days = usage::company_days(&mut read, company, from, to, 100).await;
    let hours = hours.unwrap().into_iter();
    let routes = routes.unwrap().into_iter();
    let actors = actors.unwrap().into_iter();
    let days = days.unwrap().into_iter();
    [
        hours
            .map(|of| format!("{} {} {}", of.hour, of.requests, of.failed))
            .collect(),
        routes
            .map(|of| format!("{} {}", of.route, of.requests))
            .collect(),
        actors
            .map(|of| format!("{} {}", of.actor, of.requests))
            .collect(),
        days.map(|of| {
            let (day, route) = (of.day.date(), of.route);
            format!("{day} {route} {} {} {}", of.actor, of.requests, of.failed)
        })
        .collect(),
    ]
}

/// Hours of before yesterday become days, also when more is counted of them later. Nothing else of what is shown changes.
#[tokio::test]
async fn hours_become_days() {
    for store in stores().await {
        let (db, founded) = (&store.db, company(&store.db, "acme").await);
        let (company, key) = (&founded.company.id, &founded.key.id);
        let teller = Teller::open(db).await.unwrap();
        let actors: [Actor; 2] = [key.clone().into(), founded.user.id.clone().into()];
        let now = Timestamp::parse("2026-03-10T12:30:00Z").unwrap();
        let at = |text: &str| Timestamp::parse(&format!("2026-03-{text}:00Z")).unwrap();
        let count = async |actor: &Actor, route: &'static str, at: Timestamp, failed: bool| {
            teller.count_use(Asked {
                actor,
                company,
                route,
                at,
                failed,
            });
            teller.flush().await;
        };
        for time in ["05T00:10", "05T01:10", "05T01:20", "05T23:59", "08T23:10"] {
            count(&actors[0], "/assets", at(time), time == "05T01:10").await;
        }
        count(&actors[1], "/assets", at("05T01:30"), false).await;
        count(&actors[0], "/credits", at("05T02:00"), false).await;
        count(&actors[0], "/assets", at("09T01:00"), true).await;
        count(&actors[0], "/assets", at("10T01:00"), false).await;
        let [hours, routes, first, days] = sent(db, company, now).await;
        assert_eq!(hours.len(), 7, "{}: {hours:?}", store.name);
        assert_eq!(routes, ["/assets 8", "/credits 1"], "{}", store.name);
        assert_eq!(first, [format!("{key} 8")]);
        assert_eq!(days.len(), 6, "{days:?}");

        let sweep = async || {
            let swept = db.write(async |write| usage::sweep(write, now).await);
            swept.await.unwrap()
        };
        let kept = [
            "2026-03-05T00:00:00Z 6 1",
            "2026-03-08T00:00:00Z 1 0",
            "2026-03-09T01:00:00Z 1 1",
            "2026-03-10T01:00:00Z 1 0",
        ];
        assert!(sweep().await, "{}", store.name);
        assert!(!sweep().await, "{}", store.name);
        let [hours, routes, first, lines] = sent(db, company, now).await;
        assert_eq!(hours, kept, "{}", store.name);
        assert_eq!(routes, ["/assets 8", "/credits 1"]);
        assert_eq!(first, [format!("{key} 8")]);
        assert_eq!(lines, days, "{}", store.name);

        // A store that was away is told late.
        count(&actors[0], "/assets", at("05T03:00"), false).await;
        assert!(sweep().await && !sweep().await, "{}", store.name);
        let mut read = db.read().await.unwrap();
        let (from, to) = (at("05T00:00"), at("06T00:00"));
        let hours = usage::key_hours(&mut read, key, from, to).await.unwrap();
        let hours: Vec<_> = hours.iter().map(|of| (of.hour, of.requests)).collect();
        assert_eq!(hours, [(from, 6)], "{}", store.name);
        let month = usage::company_requests(&mut read, company, now.month().0).await;
        assert_eq!(month.unwrap(), 10, "{}", store.name);
    }
}

/// What is counted of a company is bounded: the oldest goes. Others' stays, and so does what the company has sent in the month.
#[tokio::test]
async fn the_newest_counts_of_a_company_are_kept() {
    for store in stores().await {
        let db = &store.db;
        let (busy, other) = (company(db, "busy").await, company(db, "other").await);
        let teller = Teller::open(db).await.unwrap();
        let now = Timestamp::parse("2026-03-10T12:30:00Z").unwrap();
        let count = |founded: &founding::Founded, days: u32, route: &'static str| {
            let actor = Actor::from(founded.key.id.clone());
            teller.count_use(Asked {
                actor: &actor,
                company: &founded.company.id,
                route,
                at: now.before(DAY * days),
                failed: false,
            });
        };
        for (days, route) in [(4, "/a"), (4, "/b"), (3, "/a"), (1, "/a"), (0, "/a")] {
            count(&busy, days, route);
        }
        for days in [4, 3, 0] {
            count(&other, days, "/a");
        }
        teller.flush().await;
        let rows = async || {
            let of = async |founded: &founding::Founded| {
                sent(db, &founded.company.id, now).await[3].len()
            };
            (of(&busy).await, of(&other).await)
        };
        let keep = async |rows_max: i64| usage::keep_newest(db, rows_max, now).await.unwrap();
        for (rows_max, expected) in [(5, (5, 3)), (4, (5, 3)), (3, (3, 3)), (1, (1, 1))] {
            keep(rows_max).await;
            assert_eq!(rows().await, expected, "{} {rows_max}", store.name);
        }
        let mut read = db.read().await.unwrap();
        let month = now.month().0;
        let sent = usage::company_requests(&mut read, &busy.company.id, month).await;
        assert_eq!(sent.unwrap(), 5, "{}", store.name);
    }
}

/// Counts of a store that was written when they did not say whose they are, and lines of the audit log that were not counted, are all there.
#[tokio::test]
async fn counts_of_yesterdays_store_are_kept() {
    const BACK: &str = "
        DROP TABLE company_months;
        DROP TABLE key_usage;
        DROP TABLE audit_acting;
        DROP TABLE audit_log;
        CREATE TABLE key_usage (
            key_id TEXT NOT NULL,
            hour BIGINT NOT NULL,
            route TEXT NOT NULL,
            requests BIGINT NOT NULL,
            failed BIGINT NOT NULL,
            PRIMARY KEY (key_id, hour, route)
        );
        DELETE FROM schema_migrations WHERE version = 53;";
    const WRITTEN: &str = r#"
        INSERT INTO key_usage (key_id, hour, route, requests, failed)
        VALUES ('$key', 1798758000000000, '/assets', 5, 1), ('$key', 1798761600000000, '/assets', 7, 0),
               ('$user', 1798758000000000, '/credits', 11, 0), ('key_of_nobody', 1798758000000000, '/assets', 3, 0);
        INSERT INTO audit_log (act_id, line, at, company_id, address, operation, method, path, request_id, subject_type, subject_id, change,
                               after_values)
        VALUES ('aud_1', 1, 5, '$company', '', 'test', 'POST', '', 'req_1', 'user', 'usr_1', 'created', '{"name":"Änn"}')"#;
    for store in stores().await {
        let founded = company(&store.db, "acme").await;
        let (company, key) = (&founded.company.id, &founded.key.id);
        let written = WRITTEN
            .replace("$company", company.as_str())
            .replace("$key", key.as_str())
            .replace("$user", founded.user.id.as_str());
        let write = store.db.write(async |tx| -> Result<_, StoreError> {
            let log = include_str!("../migrations/0020_audit.sql");
            for sql in [BACK, log, &written] {
                let run = (&mut **tx).execute(sqlx::raw_sql(AssertSqlSafe(sql.to_owned())));
                run.await.unwrap_or_else(|error| panic!("{error}: {sql}"));
            }
            Ok(())
        });
        write.await.unwrap();
        store.db.close().await;
        let db = open(&store.url).await;
        let mut read = db.read().await.unwrap();

        let begins = Timestamp::parse("2027-01-01T00:00:00Z").unwrap();
        for (month, requests) in [(begins.before(DAY).month().0, 16), (begins, 7)] {
            let sent = usage::company_requests(&mut read, company, month).await;
            assert_eq!(sent.unwrap(), requests, "{} {month}", store.name);
        }
        let (from, to) = (begins.before(DAY), begins.after(DAY));
        let hours = usage::key_hours(&mut read, key, from, to).await.unwrap();
        let hours: Vec<_> = hours.iter().map(|of| (of.requests, of.failed)).collect();
        assert_eq!(hours, [(5, 1), (7, 0)], "{}", store.name);
        let actors = usage::company_actors(&mut read, company, from, to, 9).await;
        let requests = actors.unwrap().into_iter().map(|of| of.requests);
        assert_eq!(requests.collect::<Vec<_>>(), [12, 11], "{}", store.name);
        let line = sqlx::query("SELECT bytes FROM audit_log")
            .fetch_one(&mut *read)
            .await
            .unwrap();
        let bytes = line.number("bytes").unwrap();
        assert_eq!(bytes, 1_024 + r#"{"name":"Änn"}"#.len() as i64);
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
