//! Requests of keys and users: counted, added up and kept within bounds, alike on every store.

mod support;

use souk_domain::actors::Actor;
use souk_domain::ids::CompanyId;
use souk_domain::time::{DAY, Timestamp};
use souk_store::teller::{Asked, Teller};
use souk_store::{Db, Fields, StoreError, db, founding, keys, usage};
use sqlx::{AssertSqlSafe, Executor};
use support::{company, later, open, stores};

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
                admitted: true,
            });
        }
        teller.count_use(Asked {
            actor: &by_key,
            company,
            route: "/credits",
            at: later(now, 3_600),
            failed: false,
            admitted: true,
        });
        // Somebody who is signed in has no key whose totals would grow.
        teller.count_use(Asked {
            actor: &by_user,
            company,
            route: "/credits",
            at: now,
            failed: true,
            admitted: true,
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
                admitted: true,
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
                admitted: true,
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
