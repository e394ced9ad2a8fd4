//! Rows are fetched to their end, and half a result is none.

use crate::common::{
    DISCONNECT, Talk, class_and_code, fetched, kind, raw, recorded, refuses, reply,
};
use souk_sdk::{ErrorClass, WireFault};

/// More rows are fetched until there are none: what has none is called by a number, or by none.
#[test]
fn rows_are_fetched_to_their_end() {
    let mut empty = recorded("fetched_all");
    let number = empty.len() - 12..empty.len() - 2;
    empty.splice(number, [4]);
    for last in [reply("fetched_all"), raw(200, &[], empty)] {
        let (mut talk, id) = Talk::fetching();
        for number in 1..=3 {
            assert_eq!(kind(&talk.asked[0]), 7);
            talk.hears(0, fetched(number)).unwrap();
        }
        talk.hears(0, last).unwrap();
        assert_eq!(kind(&talk.asked[0]), DISCONNECT);
        talk.hears(0, reply("ended")).unwrap();
        assert_eq!(talk.ended(id).unwrap().ok().rows, 2 + 3 * 2);
    }
}

/// Rows that were lost, or come twice, are noticed.
#[test]
fn rows_that_are_lost_are_missed() {
    for numbers in [&[2][..], &[1, 1], &[1, 3], &[0]] {
        let (mut talk, id) = Talk::fetching();
        for number in numbers {
            talk.hears(0, fetched(*number)).unwrap();
        }
        assert_eq!(kind(&talk.asked[0]), DISCONNECT);
        talk.hears(0, reply("ended")).unwrap();
        let error = talk.ended(id).unwrap().error();
        assert_eq!(
            class_and_code(&error),
            (ErrorClass::Unavailable, "rows_lost"),
            "{numbers:?}"
        );
    }
}

/// Of an answer that ends before its end nothing is believed.
#[test]
fn what_is_cut_off_is_no_end() {
    let whole = recorded("fetched_all");
    let head = 17;
    let rubbish = [&whole[..head], b"rubbish"].concat();
    let longer = [&whole[..], &[0]].concat();
    let cut = (head..whole.len()).map(|end| whole[..end].to_vec());
    for answer in cut.chain([rubbish, longer]) {
        let (mut talk, id) = Talk::fetching();
        talk.hears(0, raw(200, &[], answer)).unwrap();
        talk.hears(0, reply("ended")).unwrap();
        let error = talk.ended(id).unwrap().error();
        assert_eq!(
            class_and_code(&error),
            (ErrorClass::Source, "malformed_answer")
        );
    }
}

/// A wire that breaks, or a server that is another one, in the middle of a result.
#[test]
fn half_a_result_is_none() {
    for (answer, class, code) in [
        (
            Err(WireFault::Reset),
            ErrorClass::Unavailable,
            "connection_lost",
        ),
        (
            Err(WireFault::BadResponse),
            ErrorClass::Source,
            "bad_response",
        ),
        (
            refuses("Invalid connection id"),
            ErrorClass::Unavailable,
            "connection_lost",
        ),
        (reply("numbers"), ErrorClass::Source, "malformed_answer"),
        (reply("ended"), ErrorClass::Source, "malformed_answer"),
        (raw(404, &[], ""), ErrorClass::Configuration, "no_quack"),
        // DuckDB may have sent them, and sends others when it is asked again.
        (raw(502, &[], ""), ErrorClass::Unavailable, "unavailable"),
        (raw(503, &[], ""), ErrorClass::Unavailable, "unavailable"),
        (
            raw(200, &[], "<html>"),
            ErrorClass::Source,
            "malformed_answer",
        ),
    ] {
        let (mut talk, id) = Talk::fetching();
        talk.hears(0, answer).unwrap();
        assert_eq!(kind(&talk.asked[0]), DISCONNECT);
        talk.hears(0, Err(WireFault::Refused)).unwrap();
        let error = talk.ended(id).unwrap().error();
        assert_eq!(class_and_code(&error), (class, code));
    }
}
