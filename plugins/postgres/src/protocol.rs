//! The messages that we send, and a reader for those that we get. No state.

use souk_sdk::Error;

/// A message of the server's may be this long; a longer one is not buffered. The row and its columns both have
/// to fit into the 64 MiB that a host gives a session.
pub const MESSAGE_BYTES_MAX: usize = 16 << 20;

/// `SSLRequest`.
pub const SSL_REQUEST: [u8; 8] = [0, 0, 0, 8, 4, 210, 22, 47];
/// `Execute` of the unnamed portal, all rows.
pub const EXECUTE: [u8; 10] = [b'E', 0, 0, 0, 9, 0, 0, 0, 0, 0];
/// `Bind` of the unnamed statement without parameters or results.
const BIND_UNNAMED: [u8; 13] = [b'B', 0, 0, 0, 12, 0, 0, 0, 0, 0, 0, 0, 0];
/// The same of the statement [`BEGIN`].
const BIND_BEGIN: [u8; 18] = *b"B\0\0\0\x11\0begin\0\0\0\0\0\0\0";
/// Of the statements [`MARK`] and [`BACK`].
const BIND_MARK: [u8; 17] = *b"B\0\0\0\x10\0mark\0\0\0\0\0\0\0";
const BIND_BACK: [u8; 17] = *b"B\0\0\0\x10\0back\0\0\0\0\0\0\0";
pub const SYNC: [u8; 5] = [b'S', 0, 0, 0, 4];
/// Has the server send what it has to say so far.
const FLUSH: [u8; 5] = [b'H', 0, 0, 0, 4];

/// What `BEGIN` is prepared as. `ROLLBACK` is the unnamed statement.
pub const BEGIN: &str = "begin";
/// What is prepared for groups: `SAVEPOINT`, and `ROLLBACK TO` it.
pub const MARK: &str = "mark";
pub const BACK: &str = "back";

/// What follows the `Bind` of every statement: it is run, and then its transaction is made one that can be taken back, and is taken back.
pub const RUN_UNDO_SYNC: [u8; 66] = joined(&[&EXECUTE, &BEGIN_UNDO_SYNC]);

/// The same for an answer that does not wait until its transaction is taken back.
pub const RUN_FLUSH_UNDO_SYNC: [u8; 71] = joined(&[&EXECUTE, &FLUSH, &BEGIN_UNDO_SYNC]);

/// Makes an implicit transaction one that can be taken back, and takes it back.
const BEGIN_UNDO_SYNC: [u8; 56] = joined(&[&BIND_BEGIN, &EXECUTE, &UNDO_SYNC]);

/// What a group of statements is preceded by: a transaction, and the point in it that each of them is taken back to.
pub const BEGIN_GROUP: [u8; 55] = joined(&[&BIND_BEGIN, &EXECUTE, &BIND_MARK, &EXECUTE]);

/// What stands between two statements of a group: the first of them is taken back.
pub const TAKE_BACK: [u8; 27] = joined(&[&BIND_BACK, &EXECUTE]);

/// Takes back a transaction that has stayed, or that of a group.
pub const UNDO_SYNC: [u8; 28] = joined(&[&BIND_UNNAMED, &EXECUTE, &SYNC]);

const fn joined<const N: usize>(parts: &[&[u8]]) -> [u8; N] {
    let mut out = [0; N];
    let (mut at, mut part) = (0, 0);
    while part < parts.len() {
        let mut i = 0;
        while i < parts[part].len() {
            out[at] = parts[part][i];
            at += 1;
            i += 1;
        }
        part += 1;
    }
    assert!(at == N);
    out
}

/// Parses a statement without parameters under no name, and runs it.
pub fn run_unnamed(out: &mut Vec<u8>, sql: &str) {
    parse(out, "", sql, &[]);
    out.extend_from_slice(&BIND_UNNAMED);
    out.extend_from_slice(&EXECUTE);
}

/// Writes one message: tag, length, body.
pub fn message(out: &mut Vec<u8>, tag: u8, body: impl FnOnce(&mut Vec<u8>)) {
    out.push(tag);
    sized(out, body);
}

/// Writes a length that counts itself, and the body.
fn sized(out: &mut Vec<u8>, body: impl FnOnce(&mut Vec<u8>)) {
    let start = out.len();
    out.extend_from_slice(&[0; 4]);
    body(out);
    let length = (out.len() - start) as u32;
    out[start..start + 4].copy_from_slice(&length.to_be_bytes());
}

pub fn startup(out: &mut Vec<u8>, parameters: &[(&str, &str)]) {
    sized(out, |out| {
        out.extend_from_slice(&196_608u32.to_be_bytes());
        for (name, value) in parameters {
            text(out, name);
            text(out, value);
        }
        out.push(0);
    });
}

/// `Parse`; where `types` is 0 or ends, the server finds out the parameter's type itself.
pub fn parse(out: &mut Vec<u8>, name: &str, sql: &str, types: &[u32]) {
    message(out, b'P', |out| {
        text(out, name);
        text(out, sql);
        // As many as a statement can have parameters.
        out.extend_from_slice(&(types.len() as u16).to_be_bytes());
        out.extend(types.iter().flat_map(|oid| oid.to_be_bytes()));
    });
}

/// `Describe` of a statement.
pub fn describe(out: &mut Vec<u8>, name: &str) {
    message(out, b'D', |out| {
        out.push(b'S');
        text(out, name);
    });
}

/// `Close` of a statement; not an error if there is none.
pub fn close(out: &mut Vec<u8>, name: &str) {
    message(out, b'C', |out| {
        out.push(b'S');
        text(out, name);
    });
}

pub fn cancel_request(process: i32, secret: i32) -> Vec<u8> {
    let mut out = Vec::with_capacity(16);
    out.extend_from_slice(&16u32.to_be_bytes());
    out.extend_from_slice(&80_877_102u32.to_be_bytes());
    out.extend_from_slice(&process.to_be_bytes());
    out.extend_from_slice(&secret.to_be_bytes());
    out
}

/// A C string. Who calls has made sure that there is no NUL in it.
pub fn text(out: &mut Vec<u8>, value: &str) {
    out.extend_from_slice(value.as_bytes());
    out.push(0);
}

/// Reads a message's body without ever going past its end.
#[derive(Clone, Copy)]
pub struct Reader<'a>(pub &'a [u8]);

impl<'a> Reader<'a> {
    #[inline]
    pub fn take(&mut self, n: usize) -> Result<&'a [u8], Error> {
        let (head, rest) = self.0.split_at_checked(n).ok_or_else(malformed)?;
        self.0 = rest;
        Ok(head)
    }

    #[inline]
    pub fn array<const N: usize>(&mut self) -> Result<[u8; N], Error> {
        let (head, rest) = self.0.split_first_chunk::<N>().ok_or_else(malformed)?;
        self.0 = rest;
        Ok(*head)
    }

    #[inline]
    pub fn u16(&mut self) -> Result<u16, Error> {
        Ok(u16::from_be_bytes(self.array()?))
    }

    #[inline]
    pub fn i16(&mut self) -> Result<i16, Error> {
        Ok(i16::from_be_bytes(self.array()?))
    }

    #[inline]
    pub fn i32(&mut self) -> Result<i32, Error> {
        Ok(i32::from_be_bytes(self.array()?))
    }

    #[inline]
    pub fn u32(&mut self) -> Result<u32, Error> {
        Ok(u32::from_be_bytes(self.array()?))
    }

    /// A value with its length before it; -1 is NULL.
    #[inline]
    pub fn value(&mut self) -> Result<Option<&'a [u8]>, Error> {
        match self.i32()? {
            -1 => Ok(None),
            n => self
                .take(usize::try_from(n).map_err(|_| malformed())?)
                .map(Some),
        }
    }
}

/// The server's bytes are not what the protocol allows. Ends the session.
#[cold]
pub fn malformed() -> Error {
    Error::source_failed(
        "protocol_error",
        "the source's answer does not follow the PostgreSQL protocol; check that host and port are those of such a server",
    )
}

/// Like [`malformed`], for a message that has no place here.
#[cold]
pub fn unexpected(tag: u8) -> Error {
    malformed().detail(format!("unexpected message {:?}", char::from(tag)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every message's length field is its length, also in the ready-made ones.
    #[test]
    fn lengths_are_right() {
        let mut out = [
            RUN_UNDO_SYNC.as_slice(),
            &RUN_FLUSH_UNDO_SYNC,
            &BEGIN_GROUP,
            &TAKE_BACK,
            &UNDO_SYNC,
        ]
        .concat();
        parse(&mut out, "s1", "SELECT 1", &[]);
        describe(&mut out, "s1");
        close(&mut out, "s1");
        let mut reader = Reader(&out);
        let mut tags = Vec::new();
        while !reader.0.is_empty() {
            tags.push(reader.array::<1>().unwrap()[0]);
            let n = reader.u32().unwrap() as usize;
            reader.take(n - 4).unwrap();
        }
        assert_eq!(tags, b"EBEBESEHBEBESBEBEBEBESPDC");
    }

    /// A length that points past the end is an error.
    #[test]
    fn a_reader_stays_inside() {
        assert!(Reader(&[0, 0, 0, 9, 1]).value().is_err());
        assert!(Reader(&[0xff, 0xff, 0xff, 0xfe]).value().is_err());
        assert_eq!(Reader(&[0xff; 4]).value().unwrap(), None);
    }
}
