//! Alerts in the store, on SQLite and on PostgreSQL: what an evaluation found is written down whatever it says, and mails wait by turns.

mod support;

use souk_domain::alerts::{Answer, Condition, Finding, Rules, Standing, State};
use souk_domain::ids::{AlertId, AssetId, CompanyId};
use souk_domain::time::Timestamp;
use souk_store::alerts::mails::{self, Mail, WAITING_MAX};
use souk_store::alerts::{self, Alert, AlertEvent, Evaluated, MailStatus, Written};
use souk_store::founding::Founded;
use souk_store::leases::Claim;
use souk_store::{Db, Part, StoreError, db};
use sqlx::Executor;
use std::time::Duration;
use support::{company, later, open, stores};

const LEASE: Duration = Duration::from_secs(60);
const HOST: &str = "a host";

/// An alert that is due, and whose user wants mail.
async fn alert(db: &Db, of: &Founded, now: Timestamp) -> AlertId {
    let alert = Alert {
        id: AlertId::generate(),
        company_id: of.company.id.clone(),
        user_id: of.user.id.clone(),
        asset_id: AssetId::generate(),
        written: Written {
            name: "goals".to_owned(),
            params: "{}".to_owned(),
            condition: Condition::default(),
            check_interval_seconds: 60,
            consecutive_breaches: 1,
            rearm_seconds: 0,
            webhook_ids: Vec::new(),
            max_credits_per_day: 100,
            notify_by_mail: true,
            is_active: true,
        },
        created_at: now,
        updated_at: now,
        revision: 1,
        standing: Standing::NEW,
        last_answer: None,
        history: Vec::new(),
        last_checked_at: None,
        last_error: None,
        spent_on: Timestamp::from_micros(0),
        spent_credits: 0,
        next_check_at: Some(now),
    };
    let inserted = db.write(async |write| alerts::insert(write, &alert, 1_000).await);
    assert!(inserted.await.unwrap());
    alert.id
}

/// Evaluates an alert as often: it fails, is well, fails again, and each of these changes is to be mailed.
async fn change(db: &Db, id: &AlertId, times: i64, said: &str, now: Timestamp) {
    let changed = db.write(async |write| -> Result<(), StoreError> {
        for _ in 0..times {
            let claim = Claim {
                by: HOST,
                now,
                until: now.after(LEASE),
            };
            let claimed = alerts::claim(write, id, &claim).await?;
            let claimed = claimed.expect("it is due");
            let fails = claimed.standing.state != State::Error;
            let state = match fails {
                true => State::Error,
                false => State::Ok,
            };
            let evaluated = Evaluated {
                standing: Standing {
                    state,
                    ..claimed.standing.clone()
                },
                answer: Some(Answer::Text(said.to_owned())),
                history: Vec::new(),
                error: fails.then(|| said.to_owned()),
                execution: None,
                credits: 0,
                next_check_at: now,
            };
            assert!(alerts::record(write, &claimed, HOST, &evaluated, now, false).await?);
        }
        Ok(())
    });
    changed.await.unwrap();
}

/// An alert as a host has claimed it.
async fn claim(db: &Db, id: &AlertId, now: Timestamp) -> Alert {
    let claimed = db.write(async |write| -> Result<Alert, StoreError> {
        let claim = Claim {
            by: HOST,
            now,
            until: now.after(LEASE),
        };
        let claimed = alerts::claim(write, id, &claim).await?;
        Ok(claimed.expect("it is due"))
    });
    claimed.await.unwrap()
}

/// Writes down what that host has found. It triggers at the first breach, and not again within a minute.
async fn found(db: &Db, alert: &Alert, finding: Finding, now: Timestamp, next: Timestamp) {
    let rules = Rules {
        consecutive_breaches: 1,
        rearm: LEASE,
    };
    let evaluated = Evaluated {
        standing: alert.standing.after(finding, rules, now),
        answer: None,
        history: Vec::new(),
        error: None,
        execution: None,
        credits: 0,
        next_check_at: next,
    };
    let recorded =
        db.write(async |write| alerts::record(write, alert, HOST, &evaluated, now, false).await);
    assert!(recorded.await.unwrap());
}

async fn newest(db: &Db, id: &AlertId) -> AlertEvent {
    let mut read = db.read().await.unwrap();
    let listed = alerts::list_events(&mut read, id, Part::first(1)).await;
    listed.unwrap().0.remove(0)
}

/// A text with a zero in it is written down without, on a server that would refuse it, too.
#[tokio::test]
async fn a_zero_in_a_text_refuses_nothing() {
    for store in stores().await {
        let (db, now) = (&store.db, db::now());
        let acme = company(db, "acme").await;
        let id = alert(db, &acme, now).await;
        change(db, &id, 1, "down\0 the drain", now).await;
        let said = Some("down the drain");
        assert_eq!(newest(db, &id).await.message.as_deref(), said);
        let mut read = db.read().await.unwrap();
        let found = alerts::get(&mut read, &acme.company.id, &id).await.unwrap();
        let found = found.unwrap();
        assert_eq!(found.last_error.as_deref(), said);
        // An answer is JSON, where it is an escape like others.
        let answered = Answer::Text("down\0 the drain".to_owned());
        assert_eq!(found.last_answer, Some(answered));
    }
}

/// Companies take turns; what one has waiting beyond its bound is not mailed; one that has sent enough is put off, all of it at once.
#[tokio::test]
async fn mails_wait_by_turns() {
    const FIRST: i64 = 150;
    for store in stores().await {
        let (db, now) = (&store.db, db::now());
        let (busy, other) = (company(db, "busy").await, company(db, "other").await);
        let (first, second) = (alert(db, &busy, now).await, alert(db, &busy, now).await);
        let theirs = alert(db, &other, now).await;
        change(db, &first, FIRST, "down", now).await;
        change(db, &second, WAITING_MAX - FIRST, "down", now).await;
        change(db, &theirs, 1, "away", later(now, 1)).await;
        let due = async |at: Timestamp| -> Vec<Mail> {
            let mut read = db.read().await.unwrap();
            mails::due(&mut read, at, 4, 64).await.unwrap()
        };
        let of = |mails: &[Mail], company: &CompanyId| {
            let theirs = mails.iter().filter(|mail| mail.company == *company);
            theirs.count()
        };
        let found = due(later(now, 2)).await;
        assert_eq!(of(&found, &busy.company.id), 4);
        let away = found[..2].iter().find(|mail| mail.alert == theirs).unwrap();
        assert_eq!(
            (away.state, away.message.as_deref(), away.name.as_str()),
            (State::Error, Some("away"), "goals")
        );
        assert_eq!(found.len(), 5);

        // The company's own others take its places, and nobody else's.
        change(db, &second, 1, "down", later(now, 2)).await;
        assert_eq!(newest(db, &second).await.mail, Some(MailStatus::Failed));
        change(db, &theirs, 1, "away", later(now, 2)).await;
        assert_eq!(newest(db, &theirs).await.mail, Some(MailStatus::Pending));
        // One that was sent has left its place.
        let sent = found.iter().find(|mail| mail.alert != theirs).unwrap();
        let recorded =
            db.write(async |write| mails::record(write, &sent.event, MailStatus::Sent, None).await);
        recorded.await.unwrap();
        change(db, &second, 1, "down", later(now, 3)).await;
        assert_eq!(newest(db, &second).await.mail, Some(MailStatus::Pending));

        let (at, until) = (later(now, 4), later(now, 3_600));
        let put_off =
            db.write(async |write| mails::put_off(write, &busy.company.id, at, until).await);
        put_off.await.unwrap();
        let found = due(at).await;
        assert_eq!((found.len(), of(&found, &other.company.id)), (2, 2));
        assert_eq!(of(&due(until).await, &busy.company.id), 4);
    }
}

/// Whoever has claimed an alert may claim it again, where the commit of that was not answered, and nobody else may.
#[tokio::test]
async fn a_claim_is_taken_again_by_whoever_has_it() {
    for store in stores().await {
        let (db, now) = (&store.db, db::now());
        let acme = company(db, "acme").await;
        let id = alert(db, &acme, now).await;
        for (by, is_taken) in [(HOST, true), (HOST, true), ("another", false)] {
            let claim = Claim {
                by,
                now,
                until: now.after(LEASE),
            };
            let claimed = db.write(async |write| alerts::claim(write, &id, &claim).await);
            assert_eq!(claimed.await.unwrap().is_some(), is_taken, "{}", store.name);
        }
    }
}

/// What an evaluation has spent counts once, also where it is written down again because the commit of that was not answered.
#[tokio::test]
async fn what_was_spent_counts_once() {
    for store in stores().await {
        let (db, now) = (&store.db, db::now());
        let acme = company(db, "acme").await;
        let id = alert(db, &acme, now).await;
        let claim = Claim {
            by: HOST,
            now,
            until: now.after(LEASE),
        };
        let claimed = db.write(async |write| -> Result<_, StoreError> {
            let claimed = alerts::claim(write, &id, &claim).await?;
            Ok(claimed.expect("it is due"))
        });
        let claimed = claimed.await.unwrap();
        let evaluated = Evaluated {
            standing: claimed.standing.clone(),
            answer: None,
            history: Vec::new(),
            error: None,
            execution: None,
            credits: 2,
            next_check_at: now,
        };
        // The last one is of another host, whose lease had ended before.
        for (is_again, is_recorded, spent) in [(true, true, 2), (true, false, 2), (false, false, 4)]
        {
            let recorded = db.write(async |write| -> Result<_, StoreError> {
                alerts::record(write, &claimed, HOST, &evaluated, now, is_again).await
            });
            assert_eq!(recorded.await.unwrap(), is_recorded, "{}", store.name);
            let mut read = db.read().await.unwrap();
            let found = alerts::get(&mut read, &acme.company.id, &id).await.unwrap();
            assert_eq!(found.unwrap().spent(now), spent, "{}", store.name);
        }
    }
}

/// What has triggered goes on behind an error, which is written down and told to nobody; also where a store of yesterday had the error.
#[tokio::test]
async fn an_error_keeps_what_has_triggered() {
    const BACK: &str = "
        ALTER TABLE alerts DROP COLUMN was_triggered;
        DELETE FROM schema_migrations WHERE version = 61;";
    for store in stores().await {
        let (db, now) = (&store.db, db::now());
        let acme = company(db, "acme").await;
        let (broken, well) = (alert(db, &acme, now).await, alert(db, &acme, now).await);
        for (id, findings) in [
            (&broken, &[Finding::Breach, Finding::Failed][..]),
            (
                &well,
                &[Finding::Breach, Finding::Fine, Finding::Failed][..],
            ),
        ] {
            for (second, finding) in findings.iter().enumerate() {
                let at = later(now, second as u64);
                found(db, &claim(db, id, at).await, *finding, at, now).await;
            }
            let told = newest(db, id).await;
            assert_eq!(
                (told.state, told.mail),
                (State::Error, Some(MailStatus::Pending))
            );
        }
        let at = later(now, 3);
        found(db, &claim(db, &broken, at).await, Finding::Breach, at, now).await;
        let quiet = newest(db, &broken).await;
        assert_eq!(
            (quiet.state, quiet.previous_state, quiet.mail),
            (State::Triggered, State::Error, None),
            "{}",
            store.name
        );
        let at = later(now, 4);
        found(db, &claim(db, &broken, at).await, Finding::Failed, at, now).await;

        let back = db.write(async |write| -> Result<(), StoreError> {
            let run = (&mut **write).execute(sqlx::raw_sql(BACK));
            run.await.unwrap();
            Ok(())
        });
        back.await.unwrap();
        store.db.close().await;
        let db = open(&store.url).await;
        let mut read = db.read().await.unwrap();
        for (id, was_triggered) in [(&broken, true), (&well, false)] {
            let found = alerts::get(&mut read, &acme.company.id, id).await.unwrap();
            let standing = found.unwrap().standing;
            assert_eq!(
                (standing.state, standing.was_triggered),
                (State::Error, was_triggered),
                "{}",
                store.name
            );
        }
    }
}

/// A shorter interval counts from the last check on, and more to spend in a day ends the wait for the next one; what else is changed moves no check. So it is
/// where an evaluation is under way meanwhile.
#[tokio::test]
async fn a_change_moves_the_next_check() {
    for store in stores().await {
        let db = &store.db;
        let day = db::now().day_start();
        let (noon, midnight) = (later(day, 43_200), later(day, 86_400));
        let at = |second: u64| later(noon, second);
        let acme = company(db, "acme").await;
        let id = alert(db, &acme, noon).await;
        let shown = async || {
            let mut read = db.read().await.unwrap();
            let found = alerts::get(&mut read, &acme.company.id, &id).await.unwrap();
            found.unwrap()
        };
        let write = async |interval: i64, credits: i64, now: Timestamp| {
            let written = Written {
                check_interval_seconds: interval,
                max_credits_per_day: credits,
                ..shown().await.written
            };
            let update =
                db.write(async |write| alerts::update(write, &id, &written, false, now).await);
            update.await.unwrap();
            shown().await.next_check_at
        };

        // It is due already.
        assert_eq!(write(3_600, 100, noon).await, Some(noon));
        found(
            db,
            &claim(db, &id, noon).await,
            Finding::Fine,
            noon,
            at(3_600),
        )
        .await;
        assert_eq!(write(3_600, 100, at(10)).await, Some(at(3_600)));
        assert_eq!(write(600, 100, at(10)).await, Some(at(600)));
        assert_eq!(write(7_200, 100, at(20)).await, Some(at(600)));
        assert_eq!(write(60, 100, at(100)).await, Some(at(100)));

        let claimed = claim(db, &id, at(100)).await;
        found(db, &claimed, Finding::Failed, at(100), midnight).await;
        assert_eq!(write(60, 50, at(110)).await, Some(midnight));
        assert_eq!(write(60, 51, at(120)).await, Some(at(120)));
        // Of another error more credits are no end.
        let claimed = claim(db, &id, at(120)).await;
        found(db, &claimed, Finding::Failed, at(120), at(180)).await;
        assert_eq!(write(60, 52, at(130)).await, Some(at(180)));

        // While an evaluation is under way.
        assert_eq!(write(3_600, 52, at(130)).await, Some(at(180)));
        let claimed = claim(db, &id, at(180)).await;
        assert_eq!(write(60, 52, at(181)).await, Some(at(180)));
        found(db, &claimed, Finding::Failed, at(182), midnight).await;
        assert_eq!(shown().await.next_check_at, Some(at(242)));
        let claimed = claim(db, &id, at(242)).await;
        assert_eq!(write(60, 53, at(243)).await, Some(at(242)));
        found(db, &claimed, Finding::Failed, at(244), midnight).await;
        assert_eq!(shown().await.next_check_at, Some(at(304)));
        let claimed = claim(db, &id, at(304)).await;
        found(db, &claimed, Finding::Failed, at(305), midnight).await;
        let next = shown().await.next_check_at;
        assert_eq!(next, Some(midnight), "{}", store.name);
    }
}
