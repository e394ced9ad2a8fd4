//! Requests that come together share a transaction: nobody notices but the server.

mod common;

use common::{Cluster, Wire};
use souk_sdk::{ErrorClass, Machine, Value};
use std::time::{Duration, Instant};

const WITHIN: Duration = Duration::from_secs(50);
/// The same for all statements of a transaction.
const BEGUN: &str = "SELECT pg_catalog.now()::text";

/// Asks all of it together, once what it needs is prepared, and waits for the answers.
fn together(wire: &mut Wire, asks: &[(&str, Vec<Value>)]) -> Vec<Result<String, String>> {
    let ids = wire.ask_together(asks);
    let answers = ids.into_iter().map(|id| wire.wait(id).unwrap());
    answers
        .map(|answer| match answer.end {
            Some(Ok(())) => Ok(answer.cell(0, 0)),
            end => Err(end.unwrap().unwrap_err().source_code.unwrap_or_default()),
        })
        .collect()
}

/// Groups are set up when the first one could have been, of what is prepared.
fn ready(cluster: &Cluster, statements: &[&str]) -> Wire {
    let mut wire = cluster.wire();
    for statement in statements {
        wire.query(statement, vec![]);
    }
    wire.query(BEGUN, vec![]);
    together(&mut wire, &[(BEGUN, vec![]), (BEGUN, vec![])]);
    wire
}

fn texts<'a>(texts: &[&'a str]) -> Vec<(&'a str, Vec<Value>)> {
    texts.iter().map(|text| (*text, vec![])).collect()
}

/// They are one transaction, at most sixteen of them, and a snapshot each.
#[test]
fn what_comes_together_is_one_transaction() {
    let cluster = Cluster::get();
    let mut wire = ready(cluster, &[]);
    let begun = together(&mut wire, &texts(&[BEGUN; 40]));
    let begun: Vec<String> = begun.into_iter().map(|said| said.unwrap()).collect();
    for (i, said) in begun.iter().enumerate() {
        assert_eq!(*said == begun[0], i < 16, "{i}: {begun:?}");
    }
    assert_eq!(begun[16], begun[31]);
    assert_ne!(begun[31], begun[32]);
    // One after the other they are not.
    assert_ne!(wire.scalar(BEGUN), wire.scalar(BEGUN));
}

/// Values, columns and rows are each one's own, however the answer is cut into pieces.
#[test]
fn each_has_its_own_answer() {
    let cluster = Cluster::get();
    let one = "SELECT $1::int8 + 1 AS n";
    let rows = "SELECT i, repeat('x', 100) FROM generate_series(1, 2000) i";
    let none = "SELECT id FROM shop.items WHERE id < 0";
    let mut wire = ready(cluster, &[rows, none]);
    wire.query(one, vec![Value::Int64(0)]).ok();
    for piece in [usize::MAX, 1, 7, 1_000] {
        wire.piece = piece;
        let asks: Vec<(&str, Vec<Value>)> = (0..30)
            .map(|i| match i % 5 {
                0 => (rows, vec![]),
                1 => (none, vec![]),
                _ => (one, vec![Value::Int64(i)]),
            })
            .collect();
        let ids = wire.ask_together(&asks);
        for (i, id) in ids.into_iter().enumerate() {
            let answer = wire.wait(id).unwrap().ok();
            match i % 5 {
                0 => assert_eq!((answer.rows, answer.cell(0, 1999)), (2000, "2000".into())),
                1 => assert_eq!((answer.rows, answer.columns.len()), (0, 1)),
                _ => assert_eq!(answer.cell(0, 0), (i + 1).to_string()),
            }
        }
    }
}

/// What a statement does beside its answer is undone before the next one of its group: settings, roles, locks, what it wrote and told.
#[test]
fn nothing_stays_for_the_next_one() {
    let cluster = Cluster::get();
    let seen = "SELECT current_setting('transaction_read_only') || current_setting('default_transaction_read_only') || current_setting('statement_timeout') \
                || current_setting('role') || current_user || current_setting('search_path') || coalesce(current_setting('app.tenant', true), '') \
                || (SELECT count(*) FROM pg_locks WHERE locktype = 'advisory') || (SELECT count(*) FROM pg_largeobject_metadata)";
    let changes = [
        "SELECT set_config('default_transaction_read_only', 'off', false)",
        "SELECT set_config('statement_timeout', '1', true)",
        "SELECT set_config('app.tenant', 'first', true)",
        "SELECT set_config('app.tenant', 'first', false)",
        "SELECT set_config('search_path', 'pg_temp', false)",
        "SELECT set_config('role', 'reader', true)",
        "SELECT shop.run('SET SESSION AUTHORIZATION reader')",
        "SELECT shop.run('SET LOCAL search_path = shop')",
        "SELECT pg_advisory_xact_lock(1)",
        "SELECT lo_create(0)",
        "SELECT pg_notify('news', 'kept')",
    ];
    let mut wire = ready(cluster, &changes);
    let before = wire.scalar(seen);
    assert!(before.starts_with("onon5snonereader"), "{before}");
    let mut asks = vec![seen];
    for change in changes {
        asks.extend([change, seen]);
    }
    for _ in 0..3 {
        let answers = together(&mut wire, &texts(&asks));
        for (ask, answer) in asks.iter().zip(answers) {
            if *ask == seen {
                assert_eq!(answer.as_ref(), Ok(&before));
            }
        }
    }
    // A statement that wants to write is refused behind one that would let it.
    let write = "SELECT shop.write()";
    assert_eq!(
        wire.query(write, vec![]).error().source_code.unwrap(),
        "25006"
    );
    let mut wire = ready(cluster, &changes[..1]);
    let prepared = "SELECT shop.run($1) ";
    wire.query(prepared, vec![Value::Text("SELECT 1".into())])
        .ok();
    let tried = [
        (changes[0], vec![]),
        (
            prepared,
            vec![Value::Text("SET transaction_read_only = off".into())],
        ),
        (changes[0], vec![]),
        (prepared, vec![Value::Text("SELECT shop.write()".into())]),
    ];
    assert!(
        together(&mut wire, &tried)
            .iter()
            .skip(1)
            .any(|said| said.is_err())
    );
    assert_eq!(cluster.admin("SELECT count(*) FROM shop.victims"), "0");
}

/// One that fails tells nobody else: they are asked again. From then on it is in no group, so that it costs others nothing.
#[test]
fn an_error_is_its_own_statements() {
    let cluster = Cluster::get();
    let (one, divides) = ("SELECT $1::int8 + 1", "SELECT 10 / $1::int8");
    let value = |n| vec![Value::Int64(n)];
    for _ in 0..5 {
        let mut wire = ready(cluster, &[]);
        for text in [one, divides] {
            wire.query(text, value(1)).ok();
        }
        // The first, one in the middle, the last; a whole group behind it is on its way already.
        for at in [0, 3, 15] {
            let mut asks: Vec<(&str, Vec<Value>)> = (0..40).map(|n| (one, value(n))).collect();
            asks[at] = (divides, value(0));
            let answers = together(&mut wire, &asks);
            for (n, answer) in answers.into_iter().enumerate() {
                match n == at {
                    true => assert_eq!(answer, Err("22012".into())),
                    false => assert_eq!(answer, Ok((n + 1).to_string())),
                }
            }
            // It is alone now, also where it does not fail.
            let asks = [(BEGUN, vec![]), (divides, value(5)), (BEGUN, vec![])];
            let answers = together(&mut wire, &asks);
            assert_eq!(answers[1], Ok("2".into()));
            assert_ne!(answers[0], answers[2]);
        }
    }
    // Every second one fails.
    let mut wire = ready(cluster, &[]);
    for text in [one, divides] {
        wire.query(text, value(1)).ok();
    }
    for _ in 0..3 {
        let asks: Vec<(&str, Vec<Value>)> = (0..64)
            .map(|n| match n % 2 {
                0 => (one, value(n)),
                _ => (divides, value(0)),
            })
            .collect();
        let answers = together(&mut wire, &asks);
        for (n, answer) in answers.into_iter().enumerate() {
            match n % 2 {
                0 => assert_eq!(answer, Ok((n + 1).to_string())),
                _ => assert_eq!(answer, Err("22012".into())),
            }
        }
    }
}

/// What cannot run in a group runs alone, and those of its group do: nobody hears that there was one.
#[test]
fn what_fails_only_in_a_group_does_not_fail() {
    let cluster = Cluster::get();
    // Not from a subtransaction.
    let exports = "SELECT pg_catalog.pg_export_snapshot() AS name";
    for place in 0..3 {
        let mut wire = ready(cluster, &[exports]);
        let mut asks = [BEGUN; 3];
        asks[place] = exports;
        for _ in 0..2 {
            for answer in together(&mut wire, &texts(&asks)) {
                assert!(answer.is_ok(), "{place}: {answer:?}");
            }
        }
    }
}

/// So it is with one that is refused before it is sent, and with one that is not prepared yet.
#[test]
fn what_cannot_be_sent_holds_up_nobody() {
    let cluster = Cluster::get();
    let one = "SELECT $1::int8 + 1";
    let mut wire = ready(cluster, &[]);
    wire.query(one, vec![Value::Int64(1)]).ok();
    let wrong = (one, vec![Value::Json("{}".into())]);
    let good = (one, vec![Value::Int64(1)]);
    let new = ("SELECT 5 AS five", vec![]);
    let no_query = ("DELETE FROM shop.items", vec![]);
    for asks in [
        [wrong.clone(), good.clone(), good.clone()],
        [good.clone(), wrong.clone(), good.clone()],
        [good.clone(), good.clone(), wrong.clone()],
        [good.clone(), new.clone(), good.clone()],
        [good.clone(), good.clone(), no_query.clone()],
        [no_query, good.clone(), new],
    ] {
        let ids = wire.ask_together(&asks);
        for (id, (text, parameters)) in ids.into_iter().zip(&asks) {
            let answer = wire.wait(id).unwrap();
            if *text == good.0 && *parameters == good.1 {
                assert_eq!(answer.ok().cell(0, 0), "2");
            }
        }
    }
    assert_eq!(wire.scalar("SELECT 1"), "1");
}

/// A time limit for transactions (from version 17 on) is each statement's own, as if it were alone: those that keep it pass, however many come together.
#[test]
fn a_time_limit_for_transactions_is_nobodys_together() {
    let cluster = Cluster::get();
    let limits = "SELECT count(*) FROM pg_settings WHERE name = 'transaction_timeout'";
    let has_limit = cluster.admin(limits) == "1";
    cluster.admin("CREATE ROLE hurried LOGIN PASSWORD 'hurriedpw'");
    if has_limit {
        cluster.admin("ALTER ROLE hurried SET transaction_timeout = '3s'");
    }
    let settings = cluster.settings("hurried", "hurriedpw");
    let mut wire = Wire::open(cluster.port, settings).unwrap();
    let sleeps = "SELECT pg_catalog.now()::text FROM pg_catalog.pg_sleep(0.4)";
    wire.query(sleeps, vec![]).ok();
    wire.query(BEGUN, vec![]).ok();
    together(&mut wire, &[(BEGUN, vec![]), (BEGUN, vec![])]);
    let begun = together(&mut wire, &texts(&[sleeps; 10]));
    let begun: Vec<String> = begun.into_iter().map(|said| said.unwrap()).collect();
    assert_eq!(begun[0] == begun[9], !has_limit, "{begun:?}");
}

/// A cancel stops its own statement at the server, also where those before it have answered, whose answers come with the group's; nobody else is
/// struck.
#[test]
fn a_cancel_strikes_its_own_request() {
    let cluster = Cluster::get();
    let mut settings = cluster.settings("reader", "readerpw");
    settings.json = settings.json.replace("5000", "90000");
    let mut wire = Wire::open(cluster.port, settings).unwrap();
    let sleeps = "SELECT pg_sleep($1) AS group_s";
    let seconds = |seconds| vec![Value::Float64(seconds)];
    let one = (BEGUN, vec![]);
    wire.query(sleeps, seconds(0.0)).ok();
    wire.query(BEGUN, vec![]).ok();
    together(&mut wire, &[one.clone(), one.clone()]);
    let running = "SELECT count(*) FROM pg_stat_activity WHERE state = 'active' AND query LIKE 'SELECT pg_sleep($1) AS gr_up_s'";
    for place in [0, 2, 4] {
        let begun = Instant::now();
        let mut asks = vec![one.clone(); 5];
        asks[place] = (sleeps, seconds(60.0));
        let ids = wire.ask_together(&asks);
        while cluster.admin(running) != "1" {
            assert!(begun.elapsed() < WITHIN, "the statement does not run");
        }
        let id = ids[place];
        wire.step(|session, step| session.cancel(id, step)).unwrap();
        for (i, id) in ids.into_iter().enumerate() {
            let answer = wire.wait(id).unwrap();
            if i == place {
                let error = answer.error();
                assert_eq!(
                    (error.class, error.code.as_str()),
                    (ErrorClass::Timeout, "cancelled")
                );
            } else {
                answer.ok();
            }
        }
        assert!(begun.elapsed() < WITHIN, "the server went on sleeping");
        assert_eq!(cluster.admin(running), "0");
    }
    // One that waits behind it, and comes too late: nobody is struck.
    for _ in 0..30 {
        let count = (
            "SELECT count(*)::text FROM generate_series(1, 20000)",
            vec![],
        );
        let ids = wire.ask_together(&[one.clone(), count.clone(), count.clone(), one.clone()]);
        for id in &ids[..2] {
            wire.step(|session, step| session.cancel(*id, step))
                .unwrap();
        }
        wire.wait(ids[0]).unwrap();
        wire.wait(ids[1]).unwrap();
        assert_eq!(wire.wait(ids[2]).unwrap().ok().cell(0, 0), "20000");
        wire.wait(ids[3]).unwrap().ok();
    }
}

/// What a function of the seller's takes from the session is prepared again; what it puts in its place is not taken for it.
#[test]
fn what_groups_need_is_prepared_again() {
    let cluster = Cluster::get();
    let one = (BEGUN, vec![]);
    let mut wire = ready(cluster, &[]);
    for lost in [
        "DEALLOCATE ALL",
        "DEALLOCATE back",
        "DEALLOCATE mark",
        "DEALLOCATE begin",
    ] {
        wire.query(&format!("SELECT shop.run('{lost}')"), vec![])
            .ok();
        for _ in 0..3 {
            for answer in together(&mut wire, &vec![one.clone(); 5]) {
                answer.unwrap();
            }
        }
        let answers = together(&mut wire, &vec![one.clone(); 2]);
        assert_eq!(answers[0], answers[1], "{lost}");
    }
    // So it is where one of the group itself does it, whose own statement and those of the others are lost as well.
    let runs = "SELECT shop.run($1)::text AS run";
    let run = |sql: &str| (runs, vec![Value::Text(sql.into())]);
    for place in 0..3 {
        let mut wire = ready(cluster, &[]);
        wire.query(runs, run("SELECT 1").1).ok();
        let mut asks = vec![one.clone(); 3];
        asks[place] = run("DEALLOCATE ALL");
        for asks in [asks, vec![one.clone(); 3], vec![one.clone(); 3]] {
            for answer in together(&mut wire, &asks) {
                answer.unwrap();
            }
        }
        let answers = together(&mut wire, &vec![one.clone(); 2]);
        assert_eq!(answers[0], answers[1], "{place}");
    }
    let replaced =
        "SELECT shop.run('DEALLOCATE back'), shop.run('PREPARE back AS SELECT 7 WHERE false')";
    wire.query(replaced, vec![]).ok();
    let ids = wire.ask_together(&vec![one.clone(); 3]);
    let error = wire.wait(ids[1]).unwrap_err();
    assert_eq!(error.code, "protocol_error");
}
