//! Answers and logins that are not what they should be, within TLS, where the kit's lying servers do not get. The component reads them with numbers of 32
//! bits; the connector's own tests (`plugins/sqlserver/tests/hostile.rs`) have 64.

use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::json;
use souk_conformance::{Door, Doors, Place, Subject};
use souk_outbound::TlsMode;
use souk_sandbox::{Blame, Fault, FaultKind, Output, Source};
use souk_tests::SqlServer;
use souk_tests::sqlserver::{self, Lie};

use crate::{STOCK, query, reached_at, subject};

/// A text in chunks, whose length is not said before them, and one behind a pointer.
const CHUNKS: &str = "SELECT CAST('soukx' AS varchar(max)) AS v";
const POINTER: &str = "SELECT CAST('soukx' AS text) AS v";
const VARIANT: &str = "SELECT CAST('soukx' AS sql_variant) AS v";
const NATIONAL: &str = "SELECT N'soukx' AS v";
const TEXT: &str = "soukx";

/// What a statement is asked, what its answer has, what that has instead, and how it ends. `bytes_limit` and not `protocol_error`: a length that 32 bits
/// cannot hold together with what is before it is one that is too long, as it is where they are 64.
const LENGTHS: [(&str, &[u8], &[u8], &str); 11] = [
    (
        CHUNKS,
        b"\x05\0\0\0soukx",
        b"\xff\xff\xff\xffsoukx",
        "bytes_limit",
    ),
    (
        CHUNKS,
        b"soukx\0\0\0\0",
        b"soukx\xff\xff\xff\xff",
        "bytes_limit",
    ),
    (
        CHUNKS,
        b"\xfe\xff\xff\xff\xff\xff\xff\xff\x05\0\0\0soukx",
        b"\xff\xff\xff\xff\0\0\0\0\xff\xff\xff\xffsoukx",
        "bytes_limit",
    ),
    (
        POINTER,
        b"\x05\0\0\0soukx",
        b"\xff\xff\xff\xffsoukx",
        "bytes_limit",
    ),
    // Less is said than there is, and more.
    (
        CHUNKS,
        b"\xfe\xff\xff\xff\xff\xff\xff\xff\x05\0\0\0soukx",
        b"\x04\0\0\0\0\0\0\0\x05\0\0\0soukx",
        "protocol_error",
    ),
    (
        CHUNKS,
        b"\xfe\xff\xff\xff\xff\xff\xff\xff\x05\0\0\0soukx",
        b"\xff\xff\xff\xff\0\0\0\0\x05\0\0\0soukx",
        "protocol_error",
    ),
    (
        VARIANT,
        b"\x13\0\0\0\xe7\x07",
        b"\xff\xff\xff\xff\xe7\x07",
        "protocol_error",
    ),
    (
        NATIONAL,
        b"\x0a\0s\0o\0",
        b"\xfe\xffs\0o\0",
        "protocol_error",
    ),
    // What a transaction begins with is longer than its message, or a token with a length of 32 bits.
    (
        CHUNKS,
        b"\xe3\x0b\0\x08\x08",
        b"\xe3\xff\xff\x08\x08",
        "protocol_error",
    ),
    (
        CHUNKS,
        b"\xe3\x0b\0\x08\x08",
        b"\xe4\xff\xff\xff\xff",
        "protocol_error",
    ),
    (
        CHUNKS,
        b"\xe3\x0b\0\x08\x08",
        b"\xae\x01\xff\xff\xff\xff",
        "protocol_error",
    ),
];

/// How long a lie may keep a request, and how much later it may be told.
const PATIENCE: Duration = Duration::from_secs(1);
const GRACE: Duration = Duration::from_secs(4);
/// Of a hundred bytes and more each eleventh place, wherever a token is.
const CUT_STEP: usize = 11;
/// Spoilt answers, of which each has up to three changes, and spoilt logins of each version of the protocol.
const ANSWERS: u64 = 40;
const LOGINS: u64 = 25;

/// A door of the server's and the place that it leads to, as the kit wants one.
struct Lying {
    door: sqlserver::Door,
    place: Place,
}

impl Lying {
    fn open(server: &SqlServer) -> io::Result<Lying> {
        let door = server.door()?;
        let port = door.address.port();
        let place = reached_at(port, Some(&server.ca_pem), TlsMode::VerifyFull);
        Ok(Lying { door, place })
    }
}

impl Door for Lying {
    fn place(&self) -> Place {
        self.place.clone()
    }

    fn spoil(&self, number: Option<u64>) {
        self.door.tell(number.map_or(Lie::Nothing, Lie::Answers));
    }

    fn spoilt(&self) -> usize {
        self.door.told()
    }
}

/// Doors for the kit, which tries them in `wire.spoilt`.
pub fn doors(server: &Arc<SqlServer>) -> Doors {
    let server = Arc::clone(server);
    Box::new(move || -> io::Result<Box<dyn Door>> { Ok(Box::new(Lying::open(&server)?)) })
}

async fn ask(subject: &Subject, source: &Arc<Source>, text: &str) -> Result<Output, Fault> {
    subject.ask_within(source, query(text), PATIENCE * 30).await
}

/// All of an answer, as a buyer reads it.
fn shown(output: &Output) -> String {
    let mut text = Vec::new();
    for row in 0..output.rows {
        for column in 0..output.columns.len() {
            souk_sandbox::json::write_cell(&mut text, &output.cell(row, column));
            text.push(b' ');
        }
    }
    String::from_utf8(text).unwrap()
}

/// Whatever a source says is its own fault. (A type that nobody knows is told to who might cast it.) No session is given more memory for it than others.
fn assert_is_the_sources(fault: &Fault) {
    let is_source = fault.blame == Blame::Source || fault.kind == FaultKind::Unsupported;
    assert!(is_source && fault.code != "memory_exhausted", "{fault:?}");
}

/// Lengths that lie are told as what they are, also where 32 bits do not hold them, and the next answer is right.
#[tokio::test]
async fn lengths_beyond_32_bits_are_told_as_what_they_are() {
    let server = SqlServer::start().await;
    let subject = subject(&server, json!({})).await;
    let lying = Lying::open(&server).unwrap();
    let whole = format!("\"{TEXT}\" ");
    for (text, said, other, code) in LENGTHS {
        let source = subject.source(&lying.place);
        let before = ask(&subject, &source, text).await.unwrap();
        assert_eq!(shown(&before), whole, "{text}");
        lying.door.tell(Lie::Instead(said.to_vec(), other.to_vec()));
        let fault = ask(&subject, &source, text).await.unwrap_err();
        assert_eq!(
            (fault.blame, fault.code.as_str()),
            (Blame::Source, code),
            "{text} {other:x?}: {fault:?}"
        );
        lying.door.tell(Lie::Nothing);
        let after = ask(&subject, &source, text).await.unwrap();
        assert_eq!(shown(&after), whole, "{text} {other:x?}");
    }
    // What was looked for was there, each time.
    assert!(lying.door.told() >= LENGTHS.len());
    subject.close().await;
}

/// The beginning of an answer, in a message that ends there as one that is whole, is no answer.
#[tokio::test]
async fn no_part_of_an_answer_is_one() {
    let server = SqlServer::start().await;
    let subject = subject(&server, json!({})).await;
    let lying = Lying::open(&server).unwrap();
    let whole = format!("\"{TEXT}\" ");
    for bytes in (0_usize..1_000).step_by(CUT_STEP) {
        let source = subject.source(&lying.place);
        let before = ask(&subject, &source, CHUNKS).await.unwrap();
        assert_eq!(shown(&before), whole);
        lying.door.tell(Lie::Cut(bytes));
        let answer = ask(&subject, &source, CHUNKS).await;
        lying.door.tell(Lie::Nothing);
        let after = ask(&subject, &source, CHUNKS).await.unwrap();
        assert_eq!(shown(&after), whole, "after one of {bytes} bytes");
        match answer {
            Err(fault) => assert_eq!(
                (fault.blame, fault.code.as_str()),
                (Blame::Source, "protocol_error"),
                "{bytes}: {fault:?}"
            ),
            // It is no longer than that.
            Ok(answer) => {
                assert_eq!(shown(&answer), whole);
                assert!(bytes > 100, "{bytes}");
                subject.close().await;
                return;
            }
        }
    }
    panic!("no answer was whole");
}

/// Whatever is said in place of an answer, the request ends in time, as the source's fault or with an answer, and the next one is answered as if nothing had been.
#[tokio::test]
async fn behind_a_spoilt_answer_comes_a_right_one() {
    let server = SqlServer::start().await;
    server.admin(STOCK);
    let subject = subject(&server, json!({})).await;
    let lying = Lying::open(&server).unwrap();
    let text = "SELECT * FROM stock ORDER BY id";
    let source = subject.source(&lying.place);
    let whole = shown(&ask(&subject, &source, text).await.unwrap());
    for number in 0..ANSWERS {
        // Where one has failed often, a host takes its time to say so.
        let source = subject.source(&lying.place);
        let before = ask(&subject, &source, text).await.unwrap();
        assert_eq!(shown(&before), whole);
        lying.door.tell(Lie::Answers(number));
        let begun = Instant::now();
        let answer = subject.ask_within(&source, query(text), PATIENCE).await;
        let took = begun.elapsed();
        assert!(took < PATIENCE + GRACE, "{number}: {took:?}");
        if let Err(fault) = &answer {
            assert_is_the_sources(fault);
        }
        lying.door.tell(Lie::Nothing);
        let after = ask(&subject, &source, text).await;
        let after = after.unwrap_or_else(|fault| panic!("after {number}: {fault:?}"));
        assert_eq!(shown(&after), whole, "after {number}: {answer:?}");
    }
    assert!(lying.door.told() as u64 > ANSWERS / 2);
    subject.close().await;
}

/// A login that is answered by anything is let in or refused, in time, and the next one is let in.
#[tokio::test]
async fn a_spoilt_login_is_the_sources() {
    let server = SqlServer::start().await;
    for version in ["7.4", "8.0"] {
        let subject = subject(&server, json!({"tds_version": version})).await;
        let lying = Lying::open(&server).unwrap();
        let mut refused = 0;
        for number in 0..LOGINS {
            lying.door.tell(Lie::Logins(number));
            let begun = Instant::now();
            let source = subject.source(&lying.place);
            let answer = subject.ask_within(&source, query("SELECT 7 AS v"), PATIENCE);
            if let Err(fault) = answer.await {
                assert_is_the_sources(&fault);
                refused += 1;
            }
            let took = begun.elapsed();
            assert!(took < PATIENCE + GRACE, "{version} {number}: {took:?}");
            lying.door.tell(Lie::Nothing);
            let source = subject.source(&lying.place);
            let after = ask(&subject, &source, "SELECT 7 AS v").await.unwrap();
            assert_eq!(shown(&after), "7 ", "{version} {number}");
        }
        assert!(refused > 0, "{version}");
        subject.close().await;
    }
}
