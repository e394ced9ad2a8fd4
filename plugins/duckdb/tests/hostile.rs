//! A server that lies: whatever it sends is an answer or an error, never a panic, and never more memory than its bytes are worth.

mod common;

use common::{DISCONNECT, Talk, goes_on, kind, names, raw, recorded};
use souk_tests::spoilt::Spoiler;

/// How many ways the answers are spoilt in.
const ROUNDS: usize = 60_000;

#[test]
fn no_answer_makes_it_panic() {
    let mut spoiler = Spoiler::new(&[
        0, 1, 2, 3, 4, 7, 0x2c, 0x5a, 0x64, 0x65, 0x66, 0x68, 0x7f, 0x80, 0xff,
    ]);
    let answers: Vec<Vec<u8>> = names().into_iter().map(recorded).collect();
    let (mut whole, mut refused) = (0, 0);
    for _ in 0..ROUNDS {
        let answer = answers[spoiler.below(answers.len())].clone();
        let bytes = spoiler.spoilt(&[answer]).concat();
        let mut talk = Talk::usual();
        let id = talk.submit(Talk::select());
        // It is heard at each of the stages.
        let before = [
            recorded("connected"),
            recorded("parsed_one"),
            goes_on("filtered_ints"),
        ];
        for answer in before.into_iter().take(spoiler.below(4)) {
            talk.hears(0, raw(200, &[], answer)).unwrap();
        }
        ends(&mut talk, &bytes);
        match talk.ended(id).unwrap().end.unwrap() {
            Ok(()) => whole += 1,
            Err(_) => refused += 1,
        }
    }
    println!("{whole} were read, {refused} refused");
    assert!(whole > 100 && refused > 10_000);
}

/// The server answers everything in the same way, but what ends a connection. It does not go on for ever: its rows have no number that comes next.
fn ends(talk: &mut Talk, answer: &[u8]) {
    while let Some(asked) = talk.asked.first() {
        let answer = match kind(asked) {
            DISCONNECT => recorded("ended"),
            _ => answer.to_vec(),
        };
        talk.hears(0, raw(200, &[], answer)).unwrap();
    }
}

/// What is fetched, spoilt: no rows are told but those that were sent, and no end that was none.
#[test]
fn no_rows_that_are_fetched_make_it_panic() {
    let mut spoiler = Spoiler::new(&[0, 1, 2, 8, 0x2c, 0x65, 0x66, 0x80, 0xff]);
    let (mut whole, mut refused) = (0, 0);
    for round in 0..6_000 {
        let name = ["fetched", "fetched_all"][round % 2];
        let bytes = spoiler.spoilt(&[recorded(name)]).concat();
        let (mut talk, id) = Talk::fetching();
        ends(&mut talk, &bytes);
        let answer = talk.ended(id).unwrap();
        match answer.end.unwrap() {
            Ok(()) => {
                whole += 1;
                assert_eq!((name, answer.rows), ("fetched_all", 2), "{bytes:?}");
            }
            Err(_) => refused += 1,
        }
    }
    println!("{whole} were read, {refused} refused");
    assert!(whole > 50 && refused > 3_000);
}

/// An answer of one column, written by hand: its type, how many rows, its vector.
fn column(kind: &[u8], rows: &[u8], vector: &[u8]) -> Vec<u8> {
    let head = [&[1, 0, 4, 3, 0][..], &[0xff; 9], &[1, 0xff, 0xff]].concat();
    let chunk = [
        &[4, 0, 1, 1, 0x2c, 1, 100, 0][..],
        rows,
        &[101, 0, 1],
        kind,
        &[102, 0, 1],
        vector,
        &[0xff, 0xff, 0xff, 0xff, 0xff, 0xff],
    ]
    .concat();
    [
        &head[..],
        &[1, 0, 1],
        kind,
        &[2, 0, 1, 1, b'a'],
        &chunk,
        &[5, 0, 1, 1, 0xff, 0xff],
    ]
    .concat()
}

const INTEGER: &[u8] = &[100, 0, 13, 0xff, 0xff];
const BIGNUM: &[u8] = &[100, 0, 39, 0xff, 0xff];
const VARCHAR: &[u8] = &[100, 0, 25, 0xff, 0xff];

/// A text by another name.
const JSON: &[u8] = b"d\0\x19e\0\x01d\0\x01e\0\x04JSON\xff\xff\xff\xff";

fn list_of(kind: &[u8]) -> Vec<u8> {
    [
        &[100, 0, 101, 101, 0, 1, 100, 0, 4, 200, 0][..],
        kind,
        &[0xff, 0xff, 0xff, 0xff],
    ]
    .concat()
}

fn array_of(kind: &[u8], size: &[u8]) -> Vec<u8> {
    let begin = [&[100, 0, 108, 101, 0, 1, 100, 0, 9, 200, 0][..], kind].concat();
    [&begin[..], &[201, 0], size, &[0xff, 0xff, 0xff, 0xff]].concat()
}

fn code_of(answer: Vec<u8>) -> String {
    Talk::rows_of(raw(200, &[], answer)).error().code
}

/// Forms of vectors that DuckDB's serialization has, though no server of 1.5 sends them.
#[test]
fn other_forms_of_vectors_are_read() {
    let constant = [90, 0, 2, 100, 0, 0, 102, 0, 4, 7, 0, 0, 0];
    let dictionary = [
        &[
            90, 0, 3, 91, 0, 12, 1, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 92, 0, 2,
        ][..],
        &[100, 0, 0, 102, 0, 8, 5, 0, 0, 0, 6, 0, 0, 0],
    ]
    .concat();
    let sequence = [90, 0, 4, 91, 0, 10, 92, 0, 0x7e];
    for (vector, wanted) in [
        (&constant[..], ["7", "7", "7"]),
        (&dictionary, ["6", "5", "6"]),
        (&sequence, ["10", "8", "6"]),
    ] {
        let answer = Talk::rows_of(raw(200, &[], column(INTEGER, &[3], vector))).ok();
        assert_eq!([0, 1, 2].map(|row| answer.cell(0, row)), wanted);
    }
    // Compressed strings, a place that the dictionary does not have, a sequence of texts.
    let mut beyond = dictionary.clone();
    beyond[6] = 2;
    assert_eq!(code_of(column(INTEGER, &[3], &beyond)), "malformed_answer");
    assert_eq!(
        code_of(column(VARCHAR, &[3], &sequence)),
        "malformed_answer"
    );
    assert_eq!(
        code_of(column(VARCHAR, &[3], &[90, 0, 1])),
        "unsupported_vector"
    );
}

/// What is called JSON and is none is the source's fault, in a column and within a value.
#[test]
fn documents_are_documents() {
    let flat = |text: &str| {
        let begin = [100, 0, 0, 102, 0, 1, text.len() as u8];
        [&begin[..], text.as_bytes()].concat()
    };
    let list = |text: &str| {
        let begin = [
            100, 0, 0, 104, 0, 1, 105, 0, 1, 100, 0, 0, 101, 0, 1, 0xff, 0xff, 106, 0,
        ];
        [&begin[..], &flat(text), &[0xff, 0xff]].concat()
    };
    let of_json = list_of(JSON);
    for good in ["{\"a\":1}", "null", "1.50"] {
        let rows_of = |kind: &[u8], vector: &[u8]| {
            let answer = Talk::rows_of(raw(200, &[], column(kind, &[1], vector)));
            answer.ok().cell(0, 0)
        };
        assert_eq!(rows_of(JSON, &flat(good)), good);
        assert_eq!(rows_of(&of_json, &list(good)), format!("[{good}]"));
    }
    for broken in ["", "{", "no", "1 2"] {
        for (kind, vector) in [(JSON, flat(broken)), (of_json.as_slice(), list(broken))] {
            let code = code_of(column(kind, &[1], &vector));
            assert_eq!(code, "broken_json", "{broken}");
        }
    }
}

/// What a type's value is written as, and told as.
type Written = (u8, fn(i64) -> Vec<u8>, fn(i64) -> String);

/// Numbers of up to 63 bits, which no float keeps.
fn wide(n: i64) -> i64 {
    (n - 500) * 9_007_199_254_740_993
}

fn text(n: i64) -> String {
    format!("{}{n}", "é".repeat(n as usize % 20))
}

/// A thousand values one behind the other, as flat as DuckDB sends them: each of them is told, whether there is a NULL among them or not.
#[test]
fn many_values_are_each_of_them() {
    const ROWS: usize = 1_000;
    const TEXT: u8 = 25;
    let types: [Written; 7] = [
        (
            10,
            |n| vec![u8::from(n % 3 == 0)],
            |n| (n % 3 == 0).to_string(),
        ),
        (
            13,
            |n| (n as i32 - 500).to_le_bytes().to_vec(),
            |n| (n - 500).to_string(),
        ),
        (
            14,
            |n| wide(n).to_le_bytes().to_vec(),
            |n| wide(n).to_string(),
        ),
        (
            15,
            |n| (n as i32 * 30).to_le_bytes().to_vec(),
            |n| (n * 30).to_string(),
        ),
        (
            19,
            |n| (n * 1_000_003).to_le_bytes().to_vec(),
            |n| (n * 1_000_003).to_string(),
        ),
        (
            23,
            |n| (n as f64 / 3.0).to_le_bytes().to_vec(),
            |n| format!("{:?}", n as f64 / 3.0),
        ),
        (
            TEXT,
            |n| [&[text(n).len() as u8][..], text(n).as_bytes()].concat(),
            text,
        ),
    ];
    let length = |count: usize| [count as u8 | 0x80, (count >> 7) as u8];
    for (id, written, told) in types {
        let values: Vec<u8> = (0..ROWS as i64).flat_map(written).collect();
        let count = match id {
            TEXT => ROWS,
            _ => values.len(),
        };
        for hole in [None, Some(0), Some(700), Some(999)] {
            let mut begin = vec![100, 0, 0];
            if let Some(hole) = hole {
                let mut mask = vec![0xff_u8; ROWS / 8];
                mask[hole / 8] ^= 1 << (hole % 8);
                begin = [&[100, 0, 1, 101, 0, mask.len() as u8][..], &mask].concat();
            }
            let vector = [&begin[..], &[102, 0], &length(count), &values].concat();
            let answer = column(&[100, 0, id, 0xff, 0xff], &length(ROWS), &vector);
            let answer = Talk::rows_of(raw(200, &[], answer)).ok();
            assert_eq!(answer.rows as usize, ROWS);
            for row in 0..ROWS {
                let wanted = match hole {
                    Some(hole) if hole == row => "NULL".to_owned(),
                    _ => told(row as i64),
                };
                assert_eq!(answer.cell(0, row), wanted, "{id}: {row}");
            }
        }
    }
}

/// One that is none, among others.
#[test]
fn each_of_many_values_is_looked_at() {
    let flat = |id: u8, values: &[u8]| {
        let vector = [&[100, 0, 0, 102, 0][..], values].concat();
        code_of(column(&[100, 0, id, 0xff, 0xff], &[2], &vector))
    };
    let halves = [2, 2, b'a', 0xc3, 2, 0xa9, b'b'];
    assert_eq!(flat(25, &halves), "malformed_answer");
    assert_eq!(flat(10, &[2, 1, 2]), "malformed_answer");
    let infinite = i32::MAX.to_le_bytes();
    let days = [&[8, 0, 0, 0, 0][..], &infinite].concat();
    assert_eq!(flat(15, &days), "infinite_time");
    let infinite = (-i64::MAX).to_le_bytes();
    let moments = [&[16][..], &infinite, &[0; 8]].concat();
    assert_eq!(flat(19, &moments), "infinite_time");
    let distant = (i64::MAX / 2).to_le_bytes();
    let moments = [&[16][..], &[0; 8], &distant].concat();
    assert_eq!(flat(19, &moments), "distant_time");
}

/// Types and vectors that lie in each other without an end.
#[test]
fn depth_has_an_end() {
    let mut kind = INTEGER.to_vec();
    for _ in 0..5_000 {
        kind = list_of(&kind);
    }
    assert_eq!(code_of(column(&kind, &[0], &[100, 0, 0])), "too_deep");
    let constants = [90, 0, 2].repeat(100_000);
    assert_eq!(
        code_of(column(INTEGER, &[1], &constants)),
        "malformed_answer"
    );
}

/// A few bytes that stand for more values than there is memory.
#[test]
fn what_is_said_is_not_what_is_kept() {
    let huge = [0xff, 0xff, 0xff, 0xff, 0x0f];
    // As many rows.
    assert_eq!(
        code_of(column(INTEGER, &huge, &[90, 0, 4, 91, 0, 0, 92, 0, 0])),
        "malformed_answer"
    );
    // Arrays of arrays of a constant: a value of 2^60 numbers.
    let mut kind = INTEGER.to_vec();
    let mut vector = vec![90, 0, 2, 100, 0, 0, 102, 0, 4, 7, 0, 0, 0];
    for _ in 0..6 {
        kind = array_of(&kind, &[0x80, 0x08]);
        vector = [
            &[100, 0, 0, 103, 0, 0x80, 0x08, 104, 0][..],
            &vector,
            &[0xff, 0xff],
        ]
        .concat();
    }
    assert_eq!(code_of(column(&kind, &[1], &vector)), "chunk_too_large");
    // A number that takes long to write, said again and again in few bytes.
    let constant = |bytes: &[u8]| {
        let length = [bytes.len() as u8 & 0x7f | 0x80, (bytes.len() >> 7) as u8];
        let vector = [&[90, 0, 2, 100, 0, 0, 102, 0, 1][..], &length, bytes].concat();
        column(BIGNUM, &[0x80, 0x10], &vector)
    };
    let longest = [&[0x80, 1, 0][..], &[0xff; 256]].concat();
    let answer = Talk::rows_of(raw(200, &[], constant(&longest))).ok();
    assert_eq!((answer.rows, answer.cell(0, 0).len()), (2_048, 617));
    let longer = [&[0x80, 1, 1][..], &[0xff; 257]].concat();
    assert_eq!(code_of(constant(&longer)), "number_too_long");
    // A list of 100 million times the same number: as long as what a request may answer, and no longer.
    let child = [90, 0, 2, 100, 0, 0, 102, 0, 4, 7, 0, 0, 0];
    let many = [0x80, 0xc2, 0xd7, 0x2f];
    let vector = [
        &[100, 0, 0, 104, 0][..],
        &many,
        &[105, 0, 1, 100, 0, 0, 101, 0],
        &many,
        &[0xff, 0xff, 106, 0],
        &child,
        &[0xff, 0xff],
    ]
    .concat();
    let answer = column(&list_of(INTEGER), &[1], &vector);
    let error = Talk::rows_of(raw(200, &[], answer)).error();
    assert_eq!(error.code, "bytes_limit");
    // It is noticed before all of it is written.
    assert!(error.message.contains("nested"), "{}", error.message);
    // An entry beyond its list.
    let vector = [
        &[100, 0, 0, 104, 0, 1, 105, 0, 1, 100, 0, 1, 101, 0, 1][..],
        &[0xff, 0xff, 106, 0],
        &child,
        &[0xff, 0xff],
    ]
    .concat();
    assert_eq!(
        code_of(column(&list_of(INTEGER), &[1], &vector)),
        "malformed_answer"
    );
}
