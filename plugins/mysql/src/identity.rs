//! Which server a session is with. Behind an address that leads to several, the next session may be with another one, where somebody else's thread has the
//! number of ours.
//!
//! Each session asks once, with what it begins with; where one is opened to stop another's statement, it compares what both were told.

use crate::errors::ServerError;
use crate::protocol::{EOF, ERROR, OK, Reader, malformed};
use souk_sdk::Error;

/// The session's number as the server itself has it, and then what servers differ by.
const OF_MYSQL: &str =
    "SELECT CONCAT_WS(' ', CONNECTION_ID(), @@server_uuid, @@hostname, @@port, @@server_id)";
/// The same without a UUID, which MariaDB has none of.
const OF_MARIADB: &str = "SELECT CONCAT_WS(' ', CONNECTION_ID(), @@hostname, @@port, @@server_id)";
/// Three numbers, a UUID and a host's name, with room; a host hands on no errand of more than 4 KiB.
const ANSWER_BYTES_MAX: usize = 1 << 10;

/// How a server is asked who it is. `None`: all servers of TiDB number their sessions together, and each of them stops what runs at another.
pub fn question(version: &str, is_mariadb: bool) -> Option<&'static str> {
    match (version.contains("TiDB"), is_mariadb) {
        (true, _) => None,
        (false, true) => Some(OF_MARIADB),
        (false, false) => Some(OF_MYSQL),
    }
}

/// For what of others in its cluster a member of Galera waits where a transaction begins; other servers know no such setting.
pub const WAITS: &str = "SELECT @@SESSION.wsrep_sync_wait";

/// The answer, as it arrives: a row of one text.
#[derive(Default)]
pub struct Answer {
    next: Part,
    text: Option<Box<str>>,
    /// It was refused, by a server that does not say that it knows no such name: one that is not ready, or has waited for too long.
    is_refused: bool,
}

#[derive(Default)]
enum Part {
    #[default]
    Head,
    Definition,
    DefinitionEnd,
    Rows,
}

impl Answer {
    /// One message; true if it was the last one.
    pub fn message(&mut self, body: &[u8], deprecates_eof: bool) -> Result<bool, Error> {
        match (&self.next, body.first()) {
            // It does not know one of the names: a server that only speaks this protocol.
            (Part::Head | Part::Rows, Some(&ERROR)) => {
                self.text = None;
                self.is_refused =
                    !ServerError::read(body).is_ok_and(|error| error.is_unknown_variable());
                Ok(true)
            }
            (Part::Head, Some(&OK)) | (Part::Rows, Some(&EOF)) => Ok(true),
            (Part::Head, Some(_)) if Reader(body).length()? == 1 => {
                self.next = Part::Definition;
                Ok(false)
            }
            (Part::Definition, Some(_)) => {
                self.next = match deprecates_eof {
                    true => Part::Rows,
                    false => Part::DefinitionEnd,
                };
                Ok(false)
            }
            (Part::DefinitionEnd, Some(&EOF)) => {
                self.next = Part::Rows;
                Ok(false)
            }
            (Part::Rows, Some(_)) => {
                self.text = text(body);
                Ok(false)
            }
            _ => Err(malformed()),
        }
    }

    /// Whether a transaction that has waited for others must not be kept for what is asked later, as `WAITS` was answered.
    pub fn waits(&self) -> bool {
        self.is_refused || self.text.as_deref().is_some_and(|text| text != "0")
    }

    /// What tells this server from others; `None` where that is not known. `thread`: the session's number as it was greeted. One that the server itself does
    /// not know it by is that of a proxy, which finds by it what it is to stop.
    pub fn identity(self, thread: u32) -> Option<Box<str>> {
        let text = self.text?;
        let (number, identity) = text.split_once(' ')?;
        (number.parse::<u32>() == Ok(thread)).then(|| identity.into())
    }
}

fn text(row: &[u8]) -> Option<Box<str>> {
    let text = Reader(row).sized().ok()?;
    let text = std::str::from_utf8(text).ok()?;
    (text.len() <= ANSWER_BYTES_MAX).then(|| text.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is known of a server that answers so, in a session that was greeted as number 7.
    fn known(messages: &[&[u8]], deprecates_eof: bool) -> Option<Box<str>> {
        let mut answer = Answer::default();
        let (last, before) = messages.split_last().unwrap();
        for body in before {
            assert!(!answer.message(body, deprecates_eof).unwrap(), "{body:?}");
        }
        assert!(answer.message(last, deprecates_eof).unwrap());
        answer.identity(7)
    }

    fn row(text: &str) -> Vec<u8> {
        let mut row = Vec::new();
        crate::protocol::sized(&mut row, text.as_bytes());
        row
    }

    /// A server is known by all that it says beside the session's number, and not at all where that is another one, or nothing is said.
    #[test]
    fn a_server_is_known_by_what_it_says() {
        let told = row("7 db1 3306 1");
        let answer: [&[u8]; 4] = [&[1], b"\x03def", &told, &[EOF, 0, 0, 2, 0, 0, 0]];
        assert_eq!(known(&answer, true).as_deref(), Some("db1 3306 1"));
        let ends: &[u8] = &[EOF, 0, 0, 2, 0];
        let answer: [&[u8]; 5] = [&[1], b"\x03def", ends, &told, ends];
        assert_eq!(known(&answer, false).as_deref(), Some("db1 3306 1"));
        let refused: &[u8] = b"\xff\xa9\x04#HY000Unknown system variable 'server_uuid'";
        assert_eq!(known(&[refused], true), None);
        let nothing: &[u8] = &[OK, 0, 0, 2, 0, 0, 0];
        assert_eq!(known(&[nothing], true), None);
        for unknown in [
            row("8 db1 3306 1"),
            row("4294967303 db1 3306 1"),
            row("7"),
            row(""),
            row(&format!("7 {}", "x".repeat(ANSWER_BYTES_MAX))),
            vec![0xfb],
        ] {
            let answer: [&[u8]; 4] = [&[1], b"\x03def", &unknown, &[EOF, 0, 0, 2, 0]];
            assert_eq!(known(&answer, true), None, "{unknown:?}");
        }
        assert!(Answer::default().message(&[2], true).is_err());
        assert!(Answer::default().message(&[], true).is_err());
    }

    /// A server that waits for others is one that says so with a number other than 0.
    #[test]
    fn who_waits_for_others_says_so() {
        for (text, waits) in [("0", false), ("1", true), ("7", true)] {
            let mut answer = Answer::default();
            for body in [&[1][..], b"\x03def", &row(text), &[EOF, 0, 0, 2, 0, 0, 0]] {
                answer.message(body, true).unwrap();
            }
            assert_eq!(answer.waits(), waits, "{text}");
        }
        let mut unknown = Answer::default();
        assert!(
            unknown
                .message(b"\xff\xa9\x04#HY000Unknown system variable", true)
                .unwrap()
        );
        assert!(!unknown.waits());
    }

    /// Each is asked for what it has.
    #[test]
    fn servers_are_asked_for_what_they_have() {
        assert_eq!(question("8.4.0", false), Some(OF_MYSQL));
        assert_eq!(question("10.11.19-MariaDB", true), Some(OF_MARIADB));
        assert_eq!(question("8.0.11-TiDB-v7.5.0", false), None);
    }
}
