//! The audit log is the store's own doing: every table is decided upon, a change and its line are one, and on both backends they read alike.

mod support;

use futures_util::future::join_all;
use serde_json::json;
use souk_domain::actors::Actor;
use souk_domain::ids::{CompanyId, KeyId, RequestId};
use souk_domain::roles::Role;
use souk_domain::time::Timestamp;
use souk_store::audit::tables::{NOT_AUDITED, TABLES};
use souk_store::audit::{self, Act, ActedBy, Change, Entry, Filter};
use souk_store::users::{self, NewUser, User, UserStatus};
use souk_store::{Db, Fields, Part, StoreError, db, ledger};
use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::time::Duration;
use support::{open, stores};

/// Each table is audited or exempt, and each column of an audited one is shown, hidden or left out on purpose.
#[tokio::test]
async fn every_table_and_column_is_decided_upon() {
    for store in stores().await {
        let sql = match store.name {
            "sqlite" => {
                "SELECT m.name AS t, c.name AS c FROM sqlite_master AS m, pragma_table_info(m.name) AS c
                 WHERE m.type = 'table' AND m.name NOT LIKE 'sqlite%'"
            }
            _ => {
                "SELECT CAST(table_name AS TEXT) AS t, CAST(column_name AS TEXT) AS c
                 FROM information_schema.columns WHERE table_schema = 'public'"
            }
        };
        let mut read = store.db.read().await.unwrap();
        let rows = sqlx::query(sql).fetch_all(&mut *read).await.unwrap();
        let mut found: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for row in rows {
            let columns = found.entry(row.text("t").unwrap()).or_default();
            columns.insert(row.text("c").unwrap());
        }
        for (table, _) in NOT_AUDITED {
            let known = found.remove(*table);
            assert!(known.is_some(), "there is no table {table}");
        }
        let listed = TABLES.iter().map(|table| {
            let columns = table.columns.iter();
            let columns = columns.map(|(name, _)| name.to_string());
            (table.name.to_owned(), columns.collect())
        });
        assert_eq!(found, listed.collect(), "{}", store.name);
    }
}

fn act(company: &CompanyId) -> Arc<Act> {
    Arc::new(Act {
        company: Some(company.clone()),
        by: None,
        address: IpAddr::V4(Ipv4Addr::LOCALHOST),
        operation: "test",
        method: "POST",
        path: "/test".into(),
        request: RequestId::generate_at(db::now()),
        is_keyless: false,
    })
}

async fn lines(db: &Db, company: &CompanyId) -> Vec<Entry> {
    let mut read = db.read().await.unwrap();
    let (found, total) = audit::list(&mut read, company, &Filter::default(), Part::first(100))
        .await
        .unwrap();
    assert_eq!(total, found.len() as i64);
    found
}

async fn add(db: &Db, company: &CompanyId) -> Result<User, StoreError> {
    let new = NewUser {
        company_id: company,
        email: Some("Ann@example.org"),
        name: "Ann",
        role: Role::Analyst,
        job_function_id: None,
        status: UserStatus::Active,
    };
    db.write(async |write| users::insert(write, &new, db::now()).await)
        .await
}

/// Whoever acts has a line for each row, with what differs; whoever does not act has none; what is rolled back has none; and a store that
/// is opened again goes on.
#[tokio::test]
async fn a_change_and_its_line_are_one() {
    for store in stores().await {
        let founding = support::company(&store.db, "acme").await;
        let company = founding.company.id;
        let db = &store.db;
        assert_eq!(lines(db, &company).await, [], "{}", store.name);
        let user = audit::acting(act(&company), add(db, &company))
            .await
            .unwrap();
        let mut changed = user.clone();
        changed.name = "Bea".into();
        changed.status = UserStatus::Disabled;
        let change = db.write(async |write| users::update(write, &changed, db::now()).await);
        audit::acting(act(&company), change).await.unwrap();
        let failed = db.write(async |write| -> Result<(), StoreError> {
            users::update(write, &user, db::now()).await?;
            Err(StoreError::Conflict)
        });
        audit::acting(act(&company), failed).await.unwrap_err();
        db.write(async |write| users::update(write, &user, db::now()).await)
            .await
            .unwrap();

        let found = lines(db, &company).await;
        let changes: Vec<_> = found.iter().map(|line| line.change).collect();
        assert_eq!(
            changes,
            [Change::Changed, Change::Created],
            "{}",
            store.name
        );
        assert_eq!(
            json!(found[0].before().unwrap()),
            json!({"name": "Ann", "status": "active"})
        );
        assert_eq!(
            json!(found[0].after().unwrap()),
            json!({"name": "Bea", "status": "disabled"})
        );
        assert_eq!(found[1].before().unwrap(), None);
        assert_eq!(
            json!(found[1].after().unwrap()),
            json!({"email": "ann@example.org", "email_verified": false, "name": "Ann", "role": 1, "status": "active"})
        );
        assert_eq!(found[0].subject_id, user.id.as_str());

        // A file has one host; a server may have several.
        if store.name == "sqlite" {
            store.db.close().await;
        }
        let again = open(&store.url).await;
        let mut third = user.clone();
        third.name = "Cleo".into();
        let change = again.write(async |write| users::update(write, &third, db::now()).await);
        audit::acting(act(&company), change).await.unwrap();
        assert_eq!(lines(&again, &company).await.len(), 3, "{}", store.name);
    }
}

/// What several do at once on a shared store is each one's own.
#[tokio::test]
async fn acts_at_once_do_not_mix() {
    for store in stores().await {
        let company = support::company(&store.db, "acme").await.company.id;
        let db = &store.db;
        let acts: Vec<_> = (0..8).map(|_| act(&company)).collect();
        let work = acts.iter().enumerate().map(|(number, act)| {
            let company = &company;
            let work = async move {
                let email = format!("user{number}@example.org");
                let new = NewUser {
                    company_id: company,
                    email: Some(&email),
                    name: "one of many",
                    role: Role::Analyst,
                    job_function_id: None,
                    status: UserStatus::Active,
                };
                db.write(async |write| {
                    users::insert(write, &new, db::now()).await?;
                    tokio::task::yield_now().await;
                    Ok::<_, StoreError>(())
                })
                .await
                .unwrap();
                email
            };
            audit::acting(act.clone(), work)
        });
        let emails = futures_util::future::join_all(work).await;
        let found = lines(db, &company).await;
        assert_eq!(found.len(), 8, "{}", store.name);
        for (act, email) in acts.iter().zip(emails) {
            let line = found
                .iter()
                .find(|line| line.request_id == act.request.as_str());
            let after = line.unwrap().after().unwrap().unwrap();
            assert_eq!(after["email"], email, "{}", store.name);
        }
    }
}

/// What is older than two years goes, a little at a time; what is not stays.
#[tokio::test]
async fn old_lines_are_forgotten() {
    for store in stores().await {
        let company = support::company(&store.db, "acme").await.company.id;
        let added = add(&store.db, &company);
        audit::acting(act(&company), added).await.unwrap();
        let sweep = async |now| {
            let swept = store
                .db
                .write(async |write| audit::kept::sweep(write, now).await);
            swept.await.unwrap()
        };
        assert!(!sweep(db::now()).await, "{}", store.name);
        assert_eq!(lines(&store.db, &company).await.len(), 1);
        assert!(sweep(db::now().after(audit::kept::KEPT * 2)).await);
        assert_eq!(lines(&store.db, &company).await, []);
    }
}

/// However much one company wants to change at once, what another one changes waits for a few of its transactions, not for all.
#[tokio::test]
async fn companies_write_by_turns() {
    for store in stores().await {
        let busy = support::company(&store.db, "busy").await.company.id;
        let other = support::company(&store.db, "other").await.company.id;
        let written = parking_lot::Mutex::new(Vec::new());
        let write = |company: &CompanyId| {
            let by = Some(ActedBy {
                company: company.clone(),
                actor: Actor::Key(KeyId::generate()),
                user: None,
                role: 2,
            });
            let act = Act {
                by,
                ..Arc::unwrap_or_clone(act(company))
            };
            let (company, written, db) = (company.clone(), &written, &store.db);
            audit::acting(Arc::new(act), async move {
                let slow = db.write(async |_| -> Result<(), StoreError> {
                    tokio::time::sleep(Duration::from_millis(20)).await;
                    Ok(())
                });
                slow.await.unwrap();
                written.lock().push(company);
            })
        };
        // With connections that are there: opening one takes a busy machine longer than many of these transactions.
        join_all((0..24).map(|_| write(&busy))).await;
        written.lock().clear();
        let many = join_all((0..24).map(|_| write(&busy)));
        tokio::join!(many, write(&other));
        let written = written.into_inner();
        let place = written.iter().position(|company| *company == other);
        assert!(
            place.is_some_and(|place| place <= 8),
            "{}: {place:?}",
            store.name
        );
    }
}

/// Long texts are shown by their beginning: whoever changes them to and fro does not fill the disk.
#[tokio::test]
async fn long_values_are_cut() {
    for store in stores().await {
        let founding = support::company(&store.db, "acme").await;
        let company = founding.company.id;
        let user = add(&store.db, &company).await.unwrap();
        let mut changed = user.clone();
        changed.name = "ü".repeat(5_000);
        let change = store
            .db
            .write(async |write| users::update(write, &changed, db::now()).await);
        audit::acting(act(&company), change).await.unwrap();
        let found = lines(&store.db, &company).await;
        let after = found[0].after().unwrap().unwrap();
        let cut = format!("{}…", "ü".repeat(1_000));
        assert_eq!(after["name"], json!(cut), "{}", store.name);
        let before = found[0].before().unwrap().unwrap();
        assert_eq!(before["name"], json!("Ann"));
    }
}

/// Writes a line of a row of `company`, changed by a key of `actor`'s.
async fn write_line(
    db: &Db,
    (act, at): (&str, Timestamp),
    company: &CompanyId,
    actor: &CompanyId,
    (operation, bytes): (&str, i64),
) {
    db.write(async |write| -> Result<_, StoreError> {
        sqlx::query(
            "INSERT INTO audit_log (act_id, line, at, company_id, actor_company_id, address, operation, method, path, request_id,
                                    subject_type, subject_id, change, after_values, bytes)
             SELECT $1, COUNT(*) + 1, $2, $3, $4, '', $5, 'POST', '', 'req_1', 'user', 'usr_1', 'created', '{}', $6
             FROM audit_log WHERE act_id = $1",
        )
        .bind(act)
        .bind(at.micros())
        .bind(company.as_str())
        .bind(actor.as_str())
        .bind(operation)
        .bind(bytes)
        .execute(&mut **write)
        .await
        .unwrap();
        Ok(())
    })
    .await
    .unwrap();
}

/// The places of lines by their transactions.
fn ids(found: &[Entry]) -> Vec<&str> {
    found.iter().map(|line| line.id.as_str()).collect()
}

/// Pages of what was changed of a company's and of what its keys have changed elsewhere follow each other, whatever is filtered by.
#[tokio::test]
async fn pages_follow_each_other() {
    for store in stores().await {
        let [own, other] = [(); 2].map(|()| CompanyId::generate());
        let now = db::now();
        let at = |seconds| now.before(Duration::from_secs(seconds));
        let db = &store.db;
        for (act, seconds, company, actor, operation) in [
            ("aud_a", 9, &own, &own, "create_key"),
            ("aud_b", 8, &other, &own, "refund"),
            ("aud_b", 8, &own, &own, "refund"),
            ("aud_c", 7, &other, &other, "create_key"),
            ("aud_d", 6, &own, &other, "refund"),
            ("aud_e", 6, &own, &own, "create_key"),
        ] {
            write_line(db, (act, at(seconds)), company, actor, (operation, 1_026)).await;
        }
        let of_operation = Filter {
            operation: Some("refund".into()),
            ..Filter::default()
        };
        let of_period = Filter {
            from: Some(at(8)),
            to: Some(at(6)),
            ..Filter::default()
        };
        let of_both = Filter {
            operation: Some("refund".into()),
            ..of_period.clone()
        };
        let all = ["aud_e-1", "aud_d-1", "aud_b-2", "aud_b-1", "aud_a-1"];
        for (filter, expected) in [
            (Filter::default(), &all[..]),
            (of_operation, &all[1..4]),
            (of_period, &all[2..4]),
            (of_both, &all[2..4]),
        ] {
            let mut read = db.read().await.unwrap();
            let mut found = Vec::new();
            for offset in 0..=expected.len() as i64 {
                let part = Part::new(1, offset);
                let (page, total) = audit::list(&mut read, &own, &filter, part).await.unwrap();
                assert_eq!(total, expected.len() as i64, "{} {filter:?}", store.name);
                found.extend(page);
            }
            assert_eq!(ids(&found), expected, "{} {filter:?}", store.name);
        }
    }
}

/// What a company has in the log is bounded: the oldest lines go, those of one transaction together. Others' stay.
#[tokio::test]
async fn the_newest_lines_of_a_company_are_kept() {
    for store in stores().await {
        let [busy, other] = [(); 2].map(|()| CompanyId::generate());
        let now = db::now();
        let db = &store.db;
        for (act, seconds, company, lines) in [
            ("aud_a", 9, &busy, 150),
            ("aud_b", 8, &other, 2),
            ("aud_c", 7, &busy, 2),
            ("aud_d", 6, &busy, 1),
        ] {
            let at = now.before(Duration::from_secs(seconds));
            for _ in 0..lines {
                write_line(db, (act, at), company, company, ("test", 2_000)).await;
            }
        }
        let keep =
            async |bytes_max: i64| audit::kept::keep_newest(db, bytes_max, now).await.unwrap();
        let count = async |company: &CompanyId| lines(db, company).await.len();
        let list = async || (count(&busy).await, count(&other).await);
        // A page has 100 lines at most.
        keep(153 * 2_000).await;
        let mut read = db.read().await.unwrap();
        let first = Part::first(1);
        let listed = audit::list(&mut read, &busy, &Filter::default(), first).await;
        assert_eq!(listed.unwrap().1, 153, "{}", store.name);
        drop(read);
        keep(153 * 2_000 - 1).await;
        assert_eq!(list().await, (3, 2), "{}", store.name);
        keep(5_000).await;
        assert_eq!(list().await, (1, 2), "{}", store.name);
        assert_eq!(ids(&lines(db, &busy).await), ["aud_d-1"]);
    }
}

/// Each line is counted with its values, however it was written.
#[tokio::test]
async fn lines_are_counted_by_their_bytes() {
    for store in stores().await {
        let db = &store.db;
        let company = support::company(db, "acme").await.company.id;
        let write = db.write(async |write| -> Result<_, StoreError> {
            let new = NewUser {
                company_id: &company,
                email: None,
                name: "Änn",
                role: Role::Analyst,
                job_function_id: None,
                status: UserStatus::Active,
            };
            let mut user = users::insert(write, &new, db::now()).await?;
            user.name = "Bea".into();
            users::update(write, &user, db::now()).await?;
            ledger::grant(
                write,
                &company,
                support::credits(5),
                "test",
                None,
                db::now(),
            )
            .await?;
            Ok(())
        });
        audit::acting(act(&company), write).await.unwrap();
        let mut read = db.read().await.unwrap();
        let counted = sqlx::query("SELECT act_id, line, bytes FROM audit_log")
            .fetch_all(&mut *read)
            .await
            .unwrap();
        let counted: BTreeMap<String, i64> = counted
            .iter()
            .map(|row| {
                let (act, line) = (row.text("act_id").unwrap(), row.number("line").unwrap());
                (format!("{act}-{line}"), row.number("bytes").unwrap())
            })
            .collect();
        drop(read);
        let found = lines(db, &company).await;
        assert_eq!(found.len(), 3, "{}", store.name);
        for line in found {
            let bytes = 1_024 + line.bytes() as i64;
            assert_eq!(counted[&line.id], bytes, "{}: {line:?}", store.name);
        }
    }
}

/// However much comes in without a key, what a company and the host itself change waits for a few of those transactions.
#[tokio::test]
async fn all_without_a_key_write_by_one_turn() {
    for store in stores().await {
        let company = support::company(&store.db, "other").await.company.id;
        let written = parking_lot::Mutex::new(Vec::new());
        let write = async |who: &'static str| {
            let slow = store.db.write(async |_| -> Result<(), StoreError> {
                tokio::time::sleep(Duration::from_millis(20)).await;
                Ok(())
            });
            slow.await.unwrap();
            written.lock().push(who);
        };
        let acting = |by: Option<ActedBy>, is_keyless: bool| {
            Arc::new(Act {
                by,
                is_keyless,
                ..Arc::unwrap_or_clone(act(&company))
            })
        };
        let by = ActedBy {
            company: company.clone(),
            actor: Actor::Key(KeyId::generate()),
            user: None,
            role: 2,
        };
        // Whoever comes first waits until the store has connected, which says nothing of turns.
        join_all((0..4).map(|_| write("first"))).await;
        written.lock().clear();
        let nobody = (0..24).map(|_| audit::acting(acting(None, true), write("nobody")));
        tokio::join!(
            join_all(nobody),
            audit::acting(acting(Some(by), false), write("company")),
            audit::acting(acting(None, false), write("command")),
            write("host"),
        );
        let written = written.into_inner();
        for who in ["company", "command", "host"] {
            let place = written.iter().position(|other| *other == who);
            assert!(
                place.is_some_and(|place| place <= 10),
                "{} {who}: {written:?}",
                store.name
            );
        }
    }
}
