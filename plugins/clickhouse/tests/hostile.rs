//! A server that lies: whatever it sends is an answer or an error, never a panic.

mod common;

use common::{SETTINGS, Talk, fails, hello, query, reply};
use souk_sdk::{ErrorClass, Limits, Machine, Value};
use souk_tests::spoilt::Spoiler;
use souk_tests::talk::class_and_code;
use souk_tests::wire::LIMITS;

/// How many ways the records are spoilt in.
const ROUNDS: usize = 30_000;

const RECORDED: &[&[u8]] = &[
    include_bytes!("recorded/integers.bin"),
    include_bytes!("recorded/floats.bin"),
    include_bytes!("recorded/decimals.bin"),
    include_bytes!("recorded/texts.bin"),
    include_bytes!("recorded/days.bin"),
    include_bytes!("recorded/nulls.bin"),
    include_bytes!("recorded/nested.bin"),
    include_bytes!("recorded/json.bin"),
    include_bytes!("recorded/times.bin"),
    include_bytes!("recorded/state.bin"),
    include_bytes!("recorded/rows.bin"),
];

#[test]
fn no_answer_makes_it_panic() {
    let mut spoiler = Spoiler::new(b"\0\x7f\xfe\xff(,'` \\");
    let (mut whole, mut refused) = (0, 0);
    let mut talk = Talk::usual();
    let limits = Limits {
        bytes_max: 1 << 20,
        ..LIMITS
    };
    for _ in 0..ROUNDS {
        let recorded = RECORDED[spoiler.below(RECORDED.len())].to_vec();
        let bytes = spoiler.spoilt(&[recorded]).concat();
        let tag = [("X-ClickHouse-Exception-Tag", "abcdefghijklmnop")];
        let headers = &tag[..spoiler.below(2)];
        let answer = talk.ask(
            query("SELECT ?", vec![Value::Int64(1)], limits),
            reply(200, headers, bytes),
        );
        match answer.end.unwrap() {
            Ok(()) => whole += 1,
            Err(_) => refused += 1,
        }
    }
    println!("{whole} were read, {refused} refused");
    assert!(whole > 1_000 && refused > 1_000);
}

/// A text with its length before it.
fn text(text: &str) -> Vec<u8> {
    let mut out = Vec::new();
    let mut length = text.len();
    while length >= 0x80 {
        out.push(length as u8 | 0x80);
        length >>= 7;
    }
    out.push(length as u8);
    [&out, text.as_bytes()].concat()
}

/// Small answers that say they are large.
#[test]
fn small_answers_stay_small() {
    let mut talk = Talk::usual();
    let endless = [&[0xff; 8][..], &[0x7f]].concat();
    let long_name = format!("Array(Enum8('{}' = 0))", "n".repeat(100_000));
    let many_names = format!("Enum8('{}' = 0)", "n".repeat(100_000));
    for (kind, values) in [
        ("String", endless.clone()),
        ("Array(Nothing)", endless.clone()),
        ("Array(Tuple())", endless.clone()),
        (
            "Array(Array(Nullable(Nothing)))",
            [&[0x7f][..], &endless].concat(),
        ),
        (
            long_name.as_str(),
            [&[0x80, 0x80, 4][..], &[0; 1 << 16]].concat(),
        ),
        (many_names.as_str(), vec![0; 1 << 16]),
        ("Map(String, UInt8)", endless.clone()),
        ("Nothing", vec![0]),
    ] {
        let body = [vec![1, 1, b'v'], text(kind), values].concat();
        let limits = Limits {
            bytes_max: 1 << 20,
            ..LIMITS
        };
        let answer = talk.ask(query("SELECT 1", vec![], limits), reply(200, &[], body));
        assert!(answer.end.unwrap().is_err(), "{kind:.40}");
    }
    for head in [&[0xff; 20][..], &[0x80], &[0], b"\xff\xff\x03"] {
        assert!(talk.rows_of(reply(200, &[], head)).end.unwrap().is_err());
    }
}

/// What describes columns is kept, and read into much more than it takes itself.
#[test]
fn columns_are_not_described_at_length() {
    let mut talk = Talk::usual();
    for (columns, rings, is_read) in [
        (1, 1_000, true),
        (3, 1_000, true),
        (20, 1_000, false),
        (1, 50_000, false),
        (1, 300_000, false),
    ] {
        let kind = format!("Tuple({}Ring)", "Ring, ".repeat(rings));
        let (names, kinds) = ([1, b'v'].repeat(columns), text(&kind).repeat(columns));
        let body = [vec![columns as u8], names, kinds].concat();
        let answer = talk.rows_of(reply(200, &[], body));
        match is_read {
            true => assert_eq!(answer.ok().columns.len(), columns),
            false => assert_eq!(answer.error().code, "columns_too_long"),
        }
    }
}

/// Answers that nobody asked for, to everything that is asked.
#[test]
fn strange_answers_are_borne() {
    for body in [
        &b""[..],
        b"\n",
        b"Code: ",
        b"Code: 99999999999999. DB::Exception: x",
        &[0xff; 300],
    ] {
        for status in [100, 200, 204, 304, 404, 500, 999] {
            assert!(Talk::open(SETTINGS, reply(status, &[], body)).is_err());
            let mut talk = Talk::usual();
            let written = fails(500, 164, "x");
            let _ = talk.ping(reply(status, &[], body), reply(status, &[], body));
            let _ = talk.ping(written, reply(status, &[], body));
            let _ = talk.rows_of(reply(status, &[], body));
            let _ = talk.rows_of(fails(status, u32::MAX, "x"));
        }
    }
    for (version, readonly) in [("", ""), ("x.y", "7"), ("99999999999999999999.1", "0")] {
        Talk::open(SETTINGS, hello(version, readonly)).unwrap();
    }
    let mut talk = Talk::usual();
    let unknown = souk_sdk::Input::Woken(7);
    talk.step(|session, step| session.receive(unknown, step))
        .unwrap();
}

/// What a proxy calls a bad request is what the connector has sent, and no value.
#[test]
fn a_proxy_refuses_no_value() {
    for status in [400, 422] {
        let bound = query("SELECT ?", vec![Value::Text("x".into())], LIMITS);
        let error = Talk::usual()
            .ask(bound, reply(status, &[], "<html>nginx"))
            .error();
        assert_eq!(
            class_and_code(&error),
            (ErrorClass::Source, "no_clickhouse")
        );
        let code = status.to_string();
        assert_eq!(error.source_code.as_deref(), Some(code.as_str()));
        assert_eq!(error.detail.as_deref(), Some("<html>nginx"));
    }
}
