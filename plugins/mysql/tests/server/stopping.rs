//! A statement stops at the server, when its time is over and when it is cancelled.

use crate::common::{self, Wire, wire, wire_within};
use crate::{ITEMS, class_and_code};
use souk_sdk::{Errand, ErrorClass, Input, Limits, Machine, Reply, Request};
use souk_tests::MySql;
use souk_tests::wire::LIMITS;
use std::time::{Duration, Instant};

/// Until the server's list of processes has the statement.
pub(super) fn wait_for(server: &MySql, thread: &str, word: &str) {
    let since = Instant::now();
    let text = format!(
        "SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE ID = {thread} AND INFO LIKE '%{word}%'"
    );
    while server.admin(&text) != "1" {
        assert!(
            since.elapsed() < Duration::from_secs(50),
            "the statement does not run"
        );
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// The server stops a statement when the request's time is over, or the connection's.
#[test]
fn the_server_keeps_the_time() {
    let server = MySql::shared();
    let database = server.database(ITEMS);
    let limit_ms = |wire: &mut Wire| common::time_limit_ms(server, wire, Wire::scalar);
    assert_eq!(limit_ms(&mut wire(server, &database)), 5_000.0);
    // So much that a loaded machine does not come near it.
    let mut wire = wire_within(server, &database, 90_000);
    let slow = "SELECT COUNT(*) FROM items a, items b, items c, items d WHERE a.price + b.price + c.price + d.price < 0";
    let begun = Instant::now();
    let within = Limits {
        timeout_ms: 350,
        ..LIMITS
    };
    let id = wire.ask_within(slow, vec![], within);
    let error = wire.wait(id).unwrap().error();
    assert_eq!(
        class_and_code(&error),
        (ErrorClass::Timeout, "statement_timeout")
    );
    assert!(
        begun.elapsed() < Duration::from_secs(20),
        "{:?}",
        begun.elapsed()
    );
    // The request's again.
    assert_eq!(limit_ms(&mut wire), 10_000.0);

    // Somebody at the database stops it.
    let thread = wire.scalar("SELECT CONNECTION_ID()");
    let id = wire.ask(slow, vec![]);
    wait_for(server, &thread, "price");
    server.admin(&format!("KILL QUERY {thread}"));
    assert_eq!(wire.wait(id).unwrap().error().code, "cancelled");
    assert_eq!(wire.scalar("SELECT 1"), "1");
}

/// Carries out the errand that a session has asked for, and tells it.
fn run_errand(server: &MySql, database: &str, wire: &mut Wire) {
    let errand = wire.errands.pop().unwrap();
    assert!(errand.bytes.len() > 4, "it is known which server it is");
    let mut second = common::wire(server, database);
    let id = second.submit(Request::Errand(Errand {
        message: errand.bytes,
        limits: LIMITS,
    }));
    second.wait(id).unwrap().ok();
    let reply = Reply {
        id: errand.id,
        failure: None,
    };
    wire.step(|session, step| session.receive(Input::Conferred(reply), step))
        .unwrap();
}

/// Behind one address there may be several servers. What is to stop a statement strikes nobody who has its number at another one; where it is not known
/// which server is meant, it strikes.
#[test]
fn another_server_strikes_nobody() {
    let (server, other) = (MySql::shared(), MySql::start(&[]));
    let (database, elsewhere) = (server.database(ITEMS), other.database(ITEMS));
    let slow = "SELECT COUNT(*) FROM items a, items b, items c, items d WHERE a.price + b.price + c.price + d.price < 0";
    let mut wire = wire(server, &database);
    let id = wire.ask(slow, vec![]);
    wire.step(|session, step| session.cancel(id, step)).unwrap();
    let mut errand = wire.errands.pop().unwrap().bytes;
    let (number, which) = errand.split_first_chunk_mut::<4>().unwrap();
    assert!(!which.is_empty(), "it is known which server it is");

    let mut neighbour = common::wire(&other, &elsewhere);
    let thread = neighbour.scalar("SELECT CONNECTION_ID()");
    *number = thread.parse::<u32>().unwrap().to_le_bytes();
    let only_its_number = number.to_vec();
    for (message, refused, wanted) in [
        (errand, Some("other_server"), "statement_timeout"),
        (only_its_number, None, "cancelled"),
    ] {
        let asked = neighbour.ask(slow, vec![]);
        if refused.is_some() {
            // Once it is prepared, it is asked.
            neighbour.pump_all();
        }
        wait_for(&other, &thread, "price");
        let mut second = common::wire(&other, &elsewhere);
        let errand = second.submit(Request::Errand(Errand {
            message,
            limits: LIMITS,
        }));
        let refusal = second.wait(errand).unwrap().end.unwrap().err();
        assert_eq!(refusal.map(|error| error.code).as_deref(), refused);
        let ended = neighbour.wait(asked).unwrap().error();
        assert_eq!(class_and_code(&ended), (ErrorClass::Timeout, wanted));
    }
}

/// A minute for each, so that only what is stopped ends soon.
const PATIENT: Limits = Limits {
    timeout_ms: 60_000,
    ..LIMITS
};

/// A cancelled statement stops at the server, wherever it was; the session goes on, and nothing strikes what comes next. However rows end.
#[test]
fn cancels_stop_the_statement_and_nothing_else() {
    let server = MySql::shared();
    let database = server.database(ITEMS);
    for wire in common::both_ways_within(server, &database, PATIENT.timeout_ms) {
        cancels_in_turn(server, &database, wire);
    }
}

fn cancels_in_turn(server: &MySql, database: &str, mut wire: Wire) {
    let ask = |wire: &mut Wire, text: &str| wire.ask_within(text, vec![], PATIENT);
    let scalar = |wire: &mut Wire, text: &str| {
        let id = wire.ask_within(text, vec![], PATIENT);
        wire.wait(id).unwrap().ok().cell(0, 0)
    };
    let thread = scalar(&mut wire, "SELECT CONNECTION_ID()");
    let slow = "SELECT COUNT(*) FROM items a, items b, items c, items d WHERE a.price + b.price + c.price + d.price < 0";
    let many = "SELECT REPEAT('x', 100) FROM items a, items b LIMIT 5000";
    for (round, text) in [slow, slow, many, "SELECT 1", "SELECT 2", "SELECT 1"]
        .into_iter()
        .enumerate()
    {
        let begun = Instant::now();
        let id = ask(&mut wire, text);
        if text == slow {
            if round == 0 {
                wire.pump_all();
            }
            wait_for(server, &thread, "price");
        }
        wire.step(|session, step| session.cancel(id, step)).unwrap();
        wire.step(|session, step| session.cancel(id, step)).unwrap();
        if round == 4 {
            // All is answered before the errand has ended.
            while wire.socket_has_more() {
                wire.pump().unwrap();
            }
        }
        assert!(!wire.answers.has_ended(id));
        run_errand(server, database, &mut wire);
        let error = wire.wait(id).unwrap().error();
        assert_eq!(
            class_and_code(&error),
            (ErrorClass::Timeout, "cancelled"),
            "{text}"
        );
        assert!(
            begun.elapsed() < Duration::from_secs(50),
            "{:?}",
            begun.elapsed()
        );
        assert_eq!(scalar(&mut wire, "SELECT CONNECTION_ID()"), thread);
        assert_eq!(scalar(&mut wire, "SELECT 3"), "3");
    }
    let limit_ms = common::time_limit_ms(server, &mut wire, scalar);
    assert_eq!(limit_ms, 60_000.0);
    // Where the errand fails, the wire ends what runs.
    let id = ask(&mut wire, slow);
    wire.step(|session, step| session.cancel(id, step)).unwrap();
    let reply = Reply {
        id: 0,
        failure: Some("no room".into()),
    };
    let error = wire
        .step(|session, step| session.receive(Input::Conferred(reply), step))
        .unwrap_err();
    assert_eq!(error.code, "cancelled");
    // Nobody waits for it, and others need the processor.
    server.admin(&format!("KILL {thread}"));
}
