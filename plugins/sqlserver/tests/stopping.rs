//! What is not wanted any more is stopped at the server, and nothing is said before that has acknowledged it.

mod common;

use common::*;
use souk_sdk::{ErrorClass, Input, Limits};

const RESET: u8 = 0x08;

/// A cancelled statement ends with the acknowledgement, wherever in the answer it comes; the next request begins the session anew.
#[test]
fn a_cancelled_statement_ends_when_that_is_acknowledged() {
    let whole = answer(&numbers(&(0..3_000).collect::<Vec<i32>>()));
    let acknowledged = done(0xfd, ACKNOWLEDGED);
    for cut in [0, 1, 20, 40, 5_000, whole.len() - 1] {
        let (before, rest) = whole.split_at(cut);
        let mut wire = Driven::open("");
        let id = wire.ask("SELECT a FROM t");
        if cut > 0 {
            wire.receive(&packet(before, false)).unwrap();
        }
        wire.cancel(id);
        wire.cancel(id);
        assert_eq!(wire.sent_kinds(), [RPC, ATTENTION]);
        // It has a part more on its way, and ends in the middle of anything.
        let part = &rest[..rest.len().min(3_000)];
        wire.receive(&packet(part, false)).unwrap();
        assert_eq!(wire.ends.len(), 0);
        for byte in packet(&acknowledged, true).chunks(1) {
            assert_eq!(wire.ends.len(), 0);
            wire.receive(byte).unwrap();
        }
        assert_eq!(wire.end().unwrap_err().code, "cancelled", "{cut}");
        let told: usize = wire.batches.iter().map(|batch| batch.rows as usize).sum();
        assert!(told < 3_000);

        wire.sent.clear();
        wire.ask("SELECT a FROM t");
        let (kind, status, _) = wire.sent[0];
        assert_eq!((kind, status & RESET), (RPC, RESET));
        wire.receive(&message(
            &[token(0xe3, &[18, 0, 0]), answer(&numbers(&[7]))].concat(),
        ))
        .unwrap();
        wire.end().unwrap();
        assert_eq!(wire.cells(0), ["7"]);
        wire.sent.clear();
        wire.ask("SELECT a FROM t");
        assert_eq!(wire.sent[0].1 & RESET, 0);
    }
}

/// An attention that crosses the end of the answer, whatever that is, is acknowledged by a message of its own.
#[test]
fn a_cancel_may_cross_the_answer() {
    let ended = [begun(), numbers(&[1]), undone(), done(0xfd, ERROR)].concat();
    for answer in [answer(&numbers(&[1])), ended] {
        let mut wire = Driven::open("");
        let id = wire.ask("SELECT a FROM t");
        wire.cancel(id);
        wire.receive(&message(&answer)).unwrap();
        assert_eq!(wire.ends.len(), 0);
        wire.receive(&message(&done(0xfd, ACKNOWLEDGED))).unwrap();
        assert_eq!(wire.end().unwrap_err().code, "cancelled");
        // What comes too late strikes nothing.
        wire.cancel(id);
        assert_eq!(wire.sent_kinds(), [RPC, ATTENTION]);
    }
}

/// Of a long row half may be there when it is not wanted any more. Its end is not waited for: the next answer, which is shorter, is read.
#[test]
fn half_a_row_is_forgotten() {
    let half = [
        &begun()[..],
        &columns(&[TEXT]),
        &[0xd1],
        &(u64::MAX - 1).to_le_bytes(),
        &5_000_u32.to_le_bytes(),
        &units(&"a".repeat(100)),
    ]
    .concat();
    for is_cancelled in [true, false] {
        let mut wire = Driven::open(r#", "statement_timeout_ms": 3000"#);
        let id = wire.ask("SELECT a FROM t");
        wire.receive(&packet(&half, false)).unwrap();
        match is_cancelled {
            true => wire.cancel(id),
            false => wire.input(Input::Woken(1)).unwrap(),
        }
        wire.receive(&packet(&done(0xfd, ACKNOWLEDGED), true))
            .unwrap();
        assert_eq!(wire.end().unwrap_err().class, ErrorClass::Timeout);
        wire.ask("SELECT a FROM t");
        wire.receive(&message(&answer(&numbers(&[7])))).unwrap();
        wire.end().unwrap();
        assert_eq!(wire.cells(0), ["7"]);
    }
}

/// The end of an answer may be there before its message ends.
#[test]
fn a_cancel_may_come_between_an_end_and_its_message() {
    let mut wire = Driven::open("");
    let id = wire.ask("SELECT a FROM t");
    wire.receive(&packet(&answer(&numbers(&[1])), false))
        .unwrap();
    wire.cancel(id);
    wire.receive(&packet(&[], true)).unwrap();
    assert_eq!(wire.ends.len(), 0);
    wire.receive(&message(&done(0xfd, ACKNOWLEDGED))).unwrap();
    assert_eq!(wire.end().unwrap_err().code, "cancelled");
}

/// A result that is too large is stopped, too, and so is a row that no session holds.
#[test]
fn what_is_too_large_is_stopped() {
    let long = |bytes: u32| {
        let head = [
            &[0xd1][..],
            &(u64::MAX - 1).to_le_bytes(),
            &bytes.to_le_bytes(),
        ]
        .concat();
        [begun(), columns(&[TEXT]), head].concat()
    };
    let two = [begun(), columns(&[INT]), int(1), int(2)].concat();
    for (said, limits, code) in [
        (
            two.clone(),
            Limits {
                rows_max: 1,
                ..LIMITS
            },
            "rows_limit",
        ),
        (
            two,
            Limits {
                bytes_max: 15,
                ..LIMITS
            },
            "bytes_limit",
        ),
        (long(20 << 20), LIMITS, "bytes_limit"),
        (
            long(13 << 20),
            Limits {
                bytes_max: 64 << 20,
                ..LIMITS
            },
            "row_bytes",
        ),
    ] {
        let mut wire = Driven::open("");
        wire.ask_within("SELECT a FROM t", Vec::new(), limits);
        wire.receive(&packet(&said, false)).unwrap();
        assert_eq!(wire.sent_kinds(), [RPC, ATTENTION], "{code}");
        wire.receive(&packet(&done(0xfd, ACKNOWLEDGED), true))
            .unwrap();
        assert_eq!(wire.end().unwrap_err().code, code);
    }
}

/// A statement that runs longer than the connection allows is stopped, and none that comes after it.
#[test]
fn a_statement_has_its_time() {
    let mut wire = Driven::open(r#", "statement_timeout_ms": 3000"#);
    wire.ask("SELECT a FROM t");
    assert_eq!(wire.pauses, [(1, 3_000)]);
    wire.receive(&message(&answer(&numbers(&[1])))).unwrap();
    wire.end().unwrap();
    // The host has forgotten that one, or tells of it late: the next request has one of its own.
    wire.ask("SELECT a FROM t");
    assert_eq!(wire.pauses, [(1, 3_000), (2, 3_000)]);
    wire.input(Input::Woken(1)).unwrap();
    assert_eq!(wire.sent_kinds(), [RPC, RPC]);
    wire.input(Input::Woken(2)).unwrap();
    assert_eq!(wire.sent_kinds(), [RPC, RPC, ATTENTION]);
    wire.receive(&message(&done(0xfd, ACKNOWLEDGED))).unwrap();
    assert_eq!(wire.end().unwrap_err().code, "statement_timeout");
    wire.input(Input::Woken(2)).unwrap();

    let mut patient = Driven::open("");
    patient.ask("SELECT a FROM t");
    assert_eq!(patient.pauses, []);
}

/// Who goes on without an end loses the wire.
#[test]
fn who_does_not_stop_is_cut_off() {
    let mut wire = Driven::open("");
    let id = wire.ask("SELECT a FROM t");
    wire.cancel(id);
    let piece = packet(&[7; 30_000], false);
    let lost = (0..2_000).find_map(|_| wire.receive(&piece).err());
    assert_eq!(lost.unwrap().code, "cancelled");
}
