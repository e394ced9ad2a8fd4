//! The messages that we send, and a reader for those that we get. No state.

use souk_sdk::{Error, short};

/// A packet holds so many bytes at most; one that holds exactly as many is followed by another of the same message.
pub const PACKET_BYTES_MAX: usize = 0xff_ffff;
/// Length and number.
pub const HEADER_BYTES: usize = 4;

/// utf8mb4_general_ci, which MySQL and MariaDB both have.
pub const UTF8MB4: u8 = 45;
/// The character set of what is no text.
pub const BINARY: u16 = 63;

/// Flags of both sides' abilities.
pub mod can {
    pub const LONG_PASSWORD: u32 = 1;
    pub const LONG_FLAG: u32 = 1 << 2;
    pub const CONNECT_WITH_DB: u32 = 1 << 3;
    pub const PROTOCOL_41: u32 = 1 << 9;
    pub const SSL: u32 = 1 << 11;
    pub const TRANSACTIONS: u32 = 1 << 13;
    pub const SECURE_CONNECTION: u32 = 1 << 15;
    pub const PLUGIN_AUTH: u32 = 1 << 19;
    pub const CONNECT_ATTRS: u32 = 1 << 20;
    pub const PLUGIN_AUTH_LENENC: u32 = 1 << 21;
    pub const DEPRECATE_EOF: u32 = 1 << 24;
}

const QUERY: u8 = 0x03;
const PREPARE: u8 = 0x16;
pub const EXECUTE: u8 = 0x17;
const CLOSE: u8 = 0x19;

/// First bytes of what servers answer.
pub const OK: u8 = 0x00;
pub const EOF: u8 = 0xfe;
pub const ERROR: u8 = 0xff;

/// Status of OK and EOF: a transaction is open, and it is one that only reads.
const IN_TRANSACTION: u16 = 1;
const READS_ONLY: u16 = 1 << 13;

/// Writes one message as as many packets as it takes, numbered from `number`.
pub fn message(out: &mut Vec<u8>, number: u8, body: impl FnOnce(&mut Vec<u8>)) {
    let start = out.len();
    out.extend_from_slice(&[0, 0, 0, number]);
    body(out);
    let length = out.len() - start - HEADER_BYTES;
    if length < PACKET_BYTES_MAX {
        out[start..start + 3].copy_from_slice(&(length as u32).to_le_bytes()[..3]);
        return;
    }
    let body = out.split_off(start + HEADER_BYTES);
    out.truncate(start);
    let mut number = number;
    // The last packet is shorter than the largest one, if need be empty.
    for at in 0..=body.len() / PACKET_BYTES_MAX {
        let from = at * PACKET_BYTES_MAX;
        let part = &body[from..body.len().min(from + PACKET_BYTES_MAX)];
        out.extend_from_slice(&(part.len() as u32).to_le_bytes()[..3]);
        out.push(number);
        out.extend_from_slice(part);
        number = number.wrapping_add(1);
    }
}

/// A statement without parameters, by its text.
pub fn query(out: &mut Vec<u8>, sql: &str) {
    command(out, QUERY, sql.as_bytes());
}

pub fn prepare(out: &mut Vec<u8>, sql: &str) {
    command(out, PREPARE, sql.as_bytes());
}

/// Forgets a prepared statement; it is not answered.
pub fn close(out: &mut Vec<u8>, statement: u32) {
    command(out, CLOSE, &statement.to_le_bytes());
}

fn command(out: &mut Vec<u8>, tag: u8, rest: &[u8]) {
    message(out, 0, |out| {
        out.push(tag);
        short::append(out, rest);
    });
}

/// A text that ends in NUL. Who calls has made sure that there is none in it.
pub fn text(out: &mut Vec<u8>, value: &str) {
    out.extend_from_slice(value.as_bytes());
    out.push(0);
}

/// A value with its length before it.
pub fn sized(out: &mut Vec<u8>, value: &[u8]) {
    match value.len() {
        n @ 0..=250 => out.push(n as u8),
        n @ 251..=0xffff => {
            out.push(0xfc);
            out.extend_from_slice(&(n as u16).to_le_bytes());
        }
        n @ 0x1_0000..=0xff_ffff => {
            out.push(0xfd);
            out.extend_from_slice(&(n as u32).to_le_bytes()[..3]);
        }
        n => {
            out.push(0xfe);
            out.extend_from_slice(&(n as u64).to_le_bytes());
        }
    }
    short::append(out, value);
}

/// Reads a message without ever going past its end.
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
    pub fn u8(&mut self) -> Result<u8, Error> {
        Ok(self.array::<1>()?[0])
    }

    #[inline]
    pub fn u16(&mut self) -> Result<u16, Error> {
        Ok(u16::from_le_bytes(self.array()?))
    }

    #[inline]
    pub fn u32(&mut self) -> Result<u32, Error> {
        Ok(u32::from_le_bytes(self.array()?))
    }

    /// A number of one to nine bytes.
    #[inline]
    pub fn length(&mut self) -> Result<usize, Error> {
        let length = match self.u8()? {
            n @ 0..=250 => u64::from(n),
            0xfc => u64::from(self.u16()?),
            0xfd => {
                let [a, b, c] = self.array()?;
                u64::from(u32::from_le_bytes([a, b, c, 0]))
            }
            0xfe => u64::from_le_bytes(self.array()?),
            // 0xfb is NULL, which no binary value is.
            _ => return Err(malformed()),
        };
        usize::try_from(length).map_err(|_| malformed())
    }

    /// A value with its length before it.
    #[inline]
    pub fn sized(&mut self) -> Result<&'a [u8], Error> {
        let length = self.length()?;
        self.take(length)
    }

    /// Up to the next NUL, or to the end.
    pub fn text(&mut self) -> &'a [u8] {
        let end = self.0.iter().position(|byte| *byte == 0);
        let (text, rest) = match end {
            Some(end) => (&self.0[..end], &self.0[end + 1..]),
            None => (self.0, &[][..]),
        };
        self.0 = rest;
        text
    }
}

/// The status in an OK, or in the EOF that is one.
fn status(body: &[u8]) -> Result<u16, Error> {
    let mut reader = Reader(body);
    reader.u8()?;
    reader.length()?;
    reader.length()?;
    reader.u16()
}

/// The transaction that is open behind a command.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Transaction {
    None,
    ReadOnly,
    Other,
}

/// What an OK says of it.
pub fn transaction(body: &[u8]) -> Result<Transaction, Error> {
    let status = status(body)?;
    Ok(match status & IN_TRANSACTION != 0 {
        true if status & READS_ONLY != 0 => Transaction::ReadOnly,
        true => Transaction::Other,
        false => Transaction::None,
    })
}

/// The server's bytes are not what the protocol allows. Ends the session.
#[cold]
pub fn malformed() -> Error {
    Error::source_failed(
        "protocol_error",
        "the source's answer does not follow the MySQL protocol; check that host and port are those of such a server",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The headers of what was written, and the number of bytes behind each.
    fn packets(mut out: &[u8]) -> Vec<(usize, u8)> {
        let mut found = Vec::new();
        while let [a, b, c, number, rest @ ..] = out {
            let length = u32::from_le_bytes([*a, *b, *c, 0]) as usize;
            found.push((length, *number));
            out = &rest[length..];
        }
        found
    }

    /// A message fills packets, and the last one is never a full one.
    #[test]
    fn long_messages_take_several_packets() {
        const MAX: usize = PACKET_BYTES_MAX;
        for (length, wanted) in [
            (0, vec![(0, 0)]),
            (MAX - 1, vec![(MAX - 1, 0)]),
            (MAX, vec![(MAX, 0), (0, 1)]),
            (MAX + 7, vec![(MAX, 0), (7, 1)]),
            (2 * MAX, vec![(MAX, 0), (MAX, 1), (0, 2)]),
        ] {
            let mut out = Vec::new();
            message(&mut out, 0, |out| out.resize(HEADER_BYTES + length, 7));
            assert_eq!(packets(&out), wanted, "{length}");
        }
    }

    /// A length is read as it is written, and one that points past the end is an error.
    #[test]
    fn lengths_come_back() {
        for length in [0, 250, 251, 0xffff, 0x1_0000, PACKET_BYTES_MAX + 1] {
            let mut out = Vec::new();
            sized(&mut out, &vec![b'x'; length]);
            let mut reader = Reader(&out);
            assert_eq!(reader.sized().unwrap().len(), length);
            assert!(reader.0.is_empty());
            out.pop();
            assert!(Reader(&out).sized().is_err());
        }
        assert!(Reader(&[0xfb]).sized().is_err());
        assert!(Reader(&[0xfe; 9]).sized().is_err());
    }
}
