//! What is stopped at the server: what is too large, what is cancelled and what takes too long.

use super::WITHIN;
use super::common::{Cluster, Wire};
use souk_sdk::{ErrorClass, Limits, Machine, Query, Request, Value};
use souk_tests::wire::LIMITS;
use std::time::Instant;

/// A request past its limits fails, the server is stopped, and the session goes on.
#[test]
fn limits_are_held_while_rows_arrive() {
    let mut wire = Cluster::get().wire();
    let limited = |text: &str, rows_max, bytes_max| {
        Request::Query(Query {
            text: text.into(),
            parameters: vec![],
            limits: Limits {
                rows_max,
                bytes_max,
                ..LIMITS
            },
        })
    };
    let endless = "SELECT generate_series(1, 1000000000)";
    for (request, code, aside) in [
        (
            limited("SELECT id FROM shop.items", 999, 1 << 20),
            "rows_limit",
            0,
        ),
        (
            limited("SELECT name FROM shop.items", 1_000, 1_000),
            "bytes_limit",
            0,
        ),
        (
            limited("SELECT repeat('x', 50000000)", 10, 1_000),
            "bytes_limit",
            1,
        ),
        (limited(endless, 10, 1 << 20), "rows_limit", 1),
        (limited(endless, u32::MAX, 1 << 20), "bytes_limit", 1),
    ] {
        wire.asides = 0;
        let before = wire.submit(request);
        let after = wire.ask("SELECT 7 AS n", vec![]);
        let error = wire.wait(before).unwrap().error();
        assert_eq!(
            (error.class, error.code.as_str()),
            (ErrorClass::LimitExceeded, code)
        );
        assert!(wire.asides <= aside.max(1), "{code}");
        assert_eq!(wire.wait(after).unwrap().ok().cell(0, 0), "7");
    }
    let id = wire.submit(limited("SELECT id FROM shop.items", 1_000, 1 << 20));
    assert_eq!(wire.wait(id).unwrap().ok().rows, 1_000);
}

/// A cancel stops its own request, running or still waiting; the one behind it is unharmed.
#[test]
fn a_cancel_strikes_its_own_request() {
    let cluster = Cluster::get();
    let mut settings = cluster.settings("reader", "readerpw");
    settings.json = settings.json.replace("5000", "90000");
    let mut wire = Wire::open(cluster.port, settings).unwrap();
    let mut watch = cluster.wire();
    const STRUCK: &str = "SELECT pg_sleep($1) AS struck";
    // What the session has prepared goes out whole, without an answer in between.
    wire.query(STRUCK, vec![Value::Float64(0.0)]).ok();
    for round in 0..4 {
        wire.tells_alone = round % 2 == 0;
        let begun = Instant::now();
        let (first, second, third) = (
            wire.ask(STRUCK, vec![Value::Float64(60.0)]),
            wire.ask("SELECT pg_sleep(0.1), 2 AS n", vec![]),
            wire.ask("SELECT 3 AS n", vec![]),
        );
        let running = "SELECT count(*) FROM pg_stat_activity WHERE state = 'active' AND query LIKE 'SELECT pg_sleep($1) AS str_ck'";
        while watch.scalar(running) != "1" {
            assert!(begun.elapsed() < WITHIN, "the statement does not run");
            // Behind a pooler it waits for the end of the transaction before it.
            if wire.socket_has_more() {
                wire.pump().unwrap();
            }
        }
        wire.step(|session, step| session.cancel(first, step))
            .unwrap();
        let answer = wire.wait(first).unwrap().error();
        assert_eq!(
            (answer.class, answer.code.as_str()),
            (ErrorClass::Timeout, "cancelled")
        );
        assert_eq!(wire.wait(second).unwrap().ok().cell(1, 0), "2");
        assert_eq!(wire.wait(third).unwrap().ok().cell(0, 0), "3");
        assert!(begun.elapsed() < WITHIN, "the server went on sleeping");
    }
    // A cancel is sent when its statement's turn comes. The server ignores one that overtakes the
    // statement, which a busy machine makes likely now and then, but not five times.
    let cancelled_in_its_turn = (0..5).any(|_| {
        let (first, second) = (
            wire.ask("SELECT pg_sleep(0.2), 1 AS n", vec![]),
            wire.ask("SELECT pg_sleep(2), 2 AS n", vec![]),
        );
        wire.step(|session, step| session.cancel(second, step))
            .unwrap();
        assert_eq!(wire.wait(first).unwrap().ok().cell(1, 0), "1");
        match wire.wait(second).unwrap().end {
            Some(Err(error)) => error.code == "cancelled",
            _ => false,
        }
    });
    assert!(cancelled_in_its_turn);
    // A cancel that comes too late strikes nobody.
    for round in 0..50 {
        wire.tells_alone = round % 2 == 0;
        let first = wire.ask("SELECT 3 AS n", vec![]);
        let second = wire.ask("SELECT count(*) FROM generate_series(1, 20000)", vec![]);
        wire.step(|session, step| session.cancel(first, step))
            .unwrap();
        wire.wait(first).unwrap();
        assert_eq!(wire.wait(second).unwrap().ok().cell(0, 0), "20000");
    }
}

/// The server ends what runs longer than the settings allow.
#[test]
fn statement_timeout_holds() {
    let cluster = Cluster::get();
    let mut settings = cluster.settings("reader", "readerpw");
    settings.json = settings.json.replace("5000", "100");
    let mut wire = Wire::open(cluster.port, settings).unwrap();
    let error = wire.query("SELECT pg_sleep(3)", vec![]).error();
    assert_eq!(
        (
            error.class,
            error.code.as_str(),
            error.source_code.as_deref()
        ),
        (ErrorClass::Timeout, "statement_timeout", Some("57014"))
    );
    assert_eq!(wire.scalar("SELECT 1"), "1");
}
