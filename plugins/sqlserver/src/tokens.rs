//! What a message is made of (MS-TDS 2.2.7): one token at a time from bytes of which the last may be half of one. Rows are found by `rows`.

use souk_sdk::Error;
use tds_protocol::ProtocolError;
use tds_protocol::token::{
    ColMetaData, EnvChange, EnvChangeType, EnvChangeValue, LoginAck, ServerError,
};

use crate::protocol::malformed;

/// What a table or a result of the server's has at most.
const COLUMNS_MAX: u16 = 4_096;
/// Columns of that number with names of 128 characters fit in here.
const COLUMNS_BYTES_MAX: usize = 2 << 20;
/// Acknowledged features and the like: of a login, some hundred bytes.
const LONG_TOKEN_BYTES_MAX: u32 = 64 << 10;
/// How long a token with what ends something is, its first byte included.
pub const DONE_BYTES: usize = 13;

/// What describes a result's columns.
pub const COLUMNS: u8 = 0x81;
const ROW: u8 = 0xd1;
const COMPACT_ROW: u8 = 0xd2;
pub const DONE: u8 = 0xfd;
const DONE_OF_PROCEDURE: u8 = 0xfe;
const DONE_IN_PROCEDURE: u8 = 0xff;
/// What has changed in the session.
const CHANGE: u8 = 0xe3;

/// What a token of `DONE` says besides.
pub mod done {
    pub const MORE: u16 = 0x0001;
    pub const ERROR: u16 = 0x0002;
    pub const ATTENTION: u16 = 0x0020;
    pub const SERVER_ERROR: u16 = 0x0100;
}

#[derive(Debug)]
pub enum Token {
    /// What describes a result's columns, of those that are not known yet.
    Columns(ColMetaData),
    /// Its values follow; they may be compact.
    Row(bool),
    Error(ServerError),
    LoggedIn(LoginAck),
    Transaction(Transaction),
    PacketBytes(usize),
    /// The server is to be asked elsewhere.
    Elsewhere(String),
    Done(Done),
    /// What is of no use here.
    Other,
}

/// What has become of a transaction.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Transaction {
    Begun,
    Committed,
    Undone,
    /// In either way.
    Ended,
}

impl Transaction {
    /// By the number of what has changed (MS-TDS 2.2.7.9).
    fn of(change: u8) -> Option<Transaction> {
        Some(match change {
            8 => Transaction::Begun,
            9 => Transaction::Committed,
            10 => Transaction::Undone,
            17 => Transaction::Ended,
            _ => return None,
        })
    }
}

/// The end of a statement, or of an answer.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Done {
    pub status: u16,
    /// Nothing of the answer follows.
    pub is_last: bool,
}

#[derive(Debug)]
pub enum Next {
    /// A token of so many bytes.
    Token(Token, usize),
    /// So many bytes are needed at least.
    More(usize),
}

/// The token that `bytes`, which are not empty, begin with.
pub fn next(bytes: &[u8]) -> Result<Next, Error> {
    let (kind, rest) = bytes.split_first().ok_or_else(malformed)?;
    let framed = |head: usize, length: Option<u32>| match length {
        None => Ok(None),
        Some(length @ 0..=LONG_TOKEN_BYTES_MAX) => Ok(rest.get(..head + length as usize)),
        Some(_) => Err(malformed()),
    };
    let short = || rest.first_chunk().copied().map(u16::from_le_bytes);
    let long = || rest.first_chunk().copied().map(u32::from_le_bytes);
    let (token, body) = match *kind {
        ROW => return Ok(Next::Token(Token::Row(false), 1)),
        COMPACT_ROW => return Ok(Next::Token(Token::Row(true), 1)),
        COLUMNS => return columns(rest),
        DONE | DONE_OF_PROCEDURE | DONE_IN_PROCEDURE => match bytes.get(..DONE_BYTES) {
            Some(token) => (Token::Done(ended(token)), &token[1..]),
            None => return Ok(Next::More(DONE_BYTES)),
        },
        // The value that a procedure returns, and where in a text a word stands.
        0x79 | 0x78 => match rest.get(..4) {
            Some(body) => (Token::Other, body),
            None => return Ok(Next::More(5)),
        },
        // ORDER, TABNAME, COLINFO, INFO.
        0xa9 | 0xa4 | 0xa5 | 0xab => match framed(2, short().map(u32::from))? {
            Some(body) => (Token::Other, body),
            None => return Ok(Next::More(bytes.len() + 1)),
        },
        // SESSIONSTATE, FEDAUTHINFO.
        0xe4 | 0xee => match framed(4, long())? {
            Some(body) => (Token::Other, body),
            None => return Ok(Next::More(bytes.len() + 1)),
        },
        0xae => return features(rest),
        0xaa | 0xad | CHANGE => match framed(2, short().map(u32::from))? {
            Some(body) => (read(*kind, body)?, body),
            None => return Ok(Next::More(bytes.len() + 1)),
        },
        _ => return Err(malformed()),
    };
    Ok(Next::Token(token, 1 + body.len()))
}

/// What a token of `DONE`, of its bytes, says.
pub fn ended(token: &[u8]) -> Done {
    let status = u16::from_le_bytes([token[1], token[2]]);
    Done {
        status,
        is_last: token[0] != DONE_IN_PROCEDURE && status & done::MORE == 0,
    }
}

fn columns(rest: &[u8]) -> Result<Next, Error> {
    let Some(count) = rest.first_chunk::<2>() else {
        return Ok(Next::More(3));
    };
    let count = u16::from_le_bytes(*count);
    if count > COLUMNS_MAX && count != ColMetaData::NO_METADATA {
        return Err(malformed());
    }
    let mut reader = rest;
    match ColMetaData::decode(&mut reader) {
        Ok(columns) => {
            let bytes = 1 + rest.len() - reader.len();
            Ok(Next::Token(Token::Columns(columns), bytes))
        }
        Err(ProtocolError::UnexpectedEof) if rest.len() < COLUMNS_BYTES_MAX => {
            Ok(Next::More(rest.len() + 2))
        }
        Err(ProtocolError::InvalidDataType(id)) => Err(Error::new(
            souk_sdk::ErrorClass::Unsupported,
            "unsupported_type",
            "a column of the result is of a type that this connector does not know: CAST it",
        )
        .detail(format!("type 0x{id:02x}"))),
        Err(error) => Err(malformed().detail(error.to_string())),
    }
}

/// Features that the server acknowledges, each with its length, until 0xff. None is asked for.
fn features(rest: &[u8]) -> Result<Next, Error> {
    let mut at = 0;
    loop {
        match rest.get(at) {
            None => return Ok(Next::More(at + 2)),
            Some(0xff) => return Ok(Next::Token(Token::Other, at + 2)),
            Some(_) => {}
        }
        let Some(length) = rest.get(at + 1..at + 5).and_then(<[u8]>::first_chunk::<4>) else {
            return Ok(Next::More(at + 6));
        };
        // Before it is added to anything: a component's numbers have 32 bits.
        let length = u32::from_le_bytes(*length);
        if length > LONG_TOKEN_BYTES_MAX {
            return Err(malformed());
        }
        at += 5 + length as usize;
        if at > LONG_TOKEN_BYTES_MAX as usize {
            return Err(malformed());
        }
    }
}

/// A token whose length stands before it, and in which nothing is read beyond that.
fn read(kind: u8, body: &[u8]) -> Result<Token, Error> {
    // Of a transaction there are two in each answer, and nothing else is read of them.
    if let (CHANGE, Some(change)) = (kind, body.get(2))
        && let Some(transaction) = Transaction::of(*change)
    {
        return Ok(Token::Transaction(transaction));
    }
    let mut reader = body;
    let read = match kind {
        0xaa => ServerError::decode(&mut reader).map(Token::Error),
        0xad => LoginAck::decode(&mut reader).map(Token::LoggedIn),
        // A change that the crate does not know is none that is asked for.
        _ => match EnvChange::decode(&mut reader) {
            Ok(change) => return changed(&change),
            Err(ProtocolError::InvalidTokenType(_)) => return Ok(Token::Other),
            Err(error) => Err(error),
        },
    };
    read.map_err(|error| malformed().detail(error.to_string()))
}

fn changed(change: &EnvChange) -> Result<Token, Error> {
    Ok(match (change.env_type, &change.new_value) {
        (EnvChangeType::PacketSize, EnvChangeValue::String(bytes)) => {
            Token::PacketBytes(bytes.trim().parse().map_err(|_| malformed())?)
        }
        (EnvChangeType::Routing, _) => {
            let (host, port) = change.routing_info().unwrap_or_default();
            Token::Elsewhere(format!("{host}:{port}"))
        }
        _ => Token::Other,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn whole(bytes: &[u8]) -> (Token, usize) {
        match next(bytes).unwrap() {
            Next::Token(token, length) => (token, length),
            Next::More(least) => panic!("{least} of {}", bytes.len()),
        }
    }

    fn error(number: i32, text: &str) -> Vec<u8> {
        let mut body = number.to_le_bytes().to_vec();
        body.extend_from_slice(&[1, 16]);
        body.extend_from_slice(&(text.encode_utf16().count() as u16).to_le_bytes());
        body.extend(text.encode_utf16().flat_map(u16::to_le_bytes));
        body.extend_from_slice(&[0, 0, 1, 0, 0, 0]);
        let mut token = vec![0xaa];
        token.extend_from_slice(&(body.len() as u16).to_le_bytes());
        token.extend(body);
        token
    }

    /// Cut anywhere, a token asks for more, and for no more than there is.
    #[test]
    fn half_a_token_is_waited_for() {
        let columns = [
            &[0x81, 1, 0, 0, 0, 0, 0, 1, 0, 0x26, 4, 1, b'a', 0][..],
            &[0xd1],
        ]
        .concat();
        let features = [0xae, 1, 2, 0, 0, 0, 7, 7, 0xff, 9];
        for (bytes, length) in [
            (error(208, "Invalid object name 'absent'."), None),
            (columns, Some(14)),
            (features.to_vec(), Some(9)),
            (vec![0xfd, 0x20, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0], None),
            (vec![0x79, 0, 0, 0, 0], None),
            (vec![0xab, 2, 0, 1, 2], None),
            (vec![0xe3, 3, 0, 18, 0, 0], None),
            (vec![0xe4, 1, 0, 0, 0, 9], None),
        ] {
            let length = length.unwrap_or(bytes.len());
            assert_eq!(whole(&bytes).1, length, "{bytes:x?}");
            for cut in 1..length {
                match next(&bytes[..cut]).unwrap() {
                    Next::More(least) => {
                        assert!(least > cut && least <= length, "{bytes:x?} {cut} {least}")
                    }
                    Next::Token(token, _) => panic!("{token:?} of {cut} bytes"),
                }
            }
        }
    }

    #[test]
    fn errors_and_ends_are_read() {
        let (token, _) = whole(&error(208, "ä"));
        assert!(
            matches!(&token, Token::Error(error) if error.number == 208 && error.message == "ä")
        );
        let of = |kind: u8, status: u16| {
            let mut token = vec![kind];
            token.extend_from_slice(&status.to_le_bytes());
            token.resize(DONE_BYTES, 0);
            match whole(&token).0 {
                Token::Done(done) => done,
                other => panic!("{other:?}"),
            }
        };
        assert!(of(DONE, 0).is_last && of(DONE_OF_PROCEDURE, done::ERROR).is_last);
        assert!(!of(DONE, done::MORE).is_last && !of(DONE_IN_PROCEDURE, 0).is_last);
        assert_eq!(
            of(DONE, done::ATTENTION).status & done::ATTENTION,
            done::ATTENTION
        );
    }

    #[test]
    fn changes_are_read() {
        let packet = [
            0xe3, 13, 0, 4, 4, b'8', 0, b'0', 0, b'0', 0, b'0', 0, 1, b'4', 0,
        ];
        assert!(matches!(whole(&packet).0, Token::PacketBytes(8_000)));
        let begun = [0xe3, 11, 0, 8, 8, 1, 2, 3, 4, 5, 6, 7, 8, 0];
        let kind = |bytes: &[u8]| match whole(bytes).0 {
            Token::Transaction(kind) => kind,
            other => panic!("{other:?}"),
        };
        assert_eq!(kind(&begun), Transaction::Begun);
        for (number, wanted) in [
            (9, Transaction::Committed),
            (10, Transaction::Undone),
            (17, Transaction::Ended),
        ] {
            let ended = [0xe3, 11, 0, number, 0, 8, 1, 2, 3, 4, 5, 6, 7, 8];
            assert_eq!(kind(&ended), wanted);
            assert_eq!(kind(&[0xe3, 1, 0, number]), wanted);
            // One that says nothing is none, whatever follows it.
            assert!(next(&[0xe3, 0, 0, number]).is_err());
        }
        let routed = [0xe3, 12, 0, 20, 7, 0, 0, 0x99, 5, 1, 0, b'x', 0, 0, 0];
        match whole(&routed).0 {
            Token::Elsewhere(place) => assert_eq!(place, "x:1433"),
            other => panic!("{other:?}"),
        }
    }

    /// Whatever comes, nothing panics and nothing is asked for without a bound.
    #[test]
    fn what_lies_is_refused() {
        let too_many = [0x81, 0x01, 0x10];
        let strange = [0x81, 1, 0, 0, 0, 0, 0, 1, 0, 0xf5, 0, 0];
        let long = [0xe4, 0xff, 0xff, 0xff, 0xff];
        let feature = [0xae, 1, 0xff, 0xff, 0xff, 0x7f];
        let longest = [0xae, 1, 0xff, 0xff, 0xff, 0xff];
        let error_beyond = [0xaa, 8, 0, 1, 0, 0, 0, 1, 16, 0xff, 0xff, 0, 0, 0, 0];
        for bytes in [
            &too_many[..],
            &strange,
            &long,
            &feature,
            &longest,
            &error_beyond,
            &[0xac],
            &[0],
        ] {
            assert!(next(bytes).is_err(), "{bytes:x?}");
        }
        // Of any two bytes and what may follow them.
        for first in 0..=255 {
            for second in 0..=255_u8 {
                for filler in [0, 1, 0xff] {
                    let mut bytes = vec![filler; 300];
                    bytes[0] = first;
                    bytes[1] = second;
                    if let Ok(Next::More(least)) = next(&bytes) {
                        assert!(
                            least <= LONG_TOKEN_BYTES_MAX as usize + 16,
                            "{first} {second} {filler}"
                        );
                    }
                }
            }
        }
    }
}
