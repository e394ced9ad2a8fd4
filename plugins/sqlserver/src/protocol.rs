//! Packets: a header of eight bytes and a piece of a message (MS-TDS 2.2.3.1). Messages are cut into them, and put together again by the one
//! who reads them: no message is held here.

use souk_sdk::Error;

pub const RPC: u8 = 0x03;
pub const REPLY: u8 = 0x04;
pub const ATTENTION: u8 = 0x06;
pub const LOGIN: u8 = 0x10;
pub const PRELOGIN: u8 = 0x12;

pub const HEADER_BYTES: usize = 8;
/// What a packet has until a login has agreed on more.
pub const PACKET_BYTES: usize = 4_096;
/// What a login asks for, as the vendor's clients do.
pub const PACKET_BYTES_WANTED: u32 = 8_000;
const PACKET_BYTES_MIN: usize = 512;
const PACKET_BYTES_MAX: usize = 32_767;
/// The last packet of a message.
const END: u8 = 0x01;

/// Appends a message, in packets of this size at most.
pub fn message(out: &mut Vec<u8>, kind: u8, packet_bytes: usize, body: &[u8]) {
    let room = packet_bytes.clamp(PACKET_BYTES_MIN, PACKET_BYTES_MAX) - HEADER_BYTES;
    let mut pieces = body.chunks(room).peekable();
    // Counted from one, beginning anew behind 255; nobody looks.
    let mut number = 1u8;
    // A message without a body is one packet, too.
    let mut piece = pieces.next().unwrap_or_default();
    loop {
        let is_last = pieces.peek().is_none();
        let length = ((piece.len() + HEADER_BYTES) as u16).to_be_bytes();
        let status = if is_last { END } else { 0 };
        out.extend_from_slice(&[kind, status, length[0], length[1], 0, 0, number, 0]);
        out.extend_from_slice(piece);
        match pieces.next() {
            Some(next) => piece = next,
            None => return,
        }
        number = number.wrapping_add(1);
    }
}

/// The same of a body that is written where it stands, as mostly it is one packet. What is refused leaves nothing.
pub fn written(
    out: &mut Vec<u8>,
    kind: u8,
    packet_bytes: usize,
    write: impl FnOnce(&mut Vec<u8>) -> Result<(), Error>,
) -> Result<(), Error> {
    let begin = out.len();
    out.extend_from_slice(&[0; HEADER_BYTES]);
    if let Err(refused) = write(out) {
        out.truncate(begin);
        return Err(refused);
    }
    let length = out.len() - begin;
    if length <= packet_bytes.clamp(PACKET_BYTES_MIN, PACKET_BYTES_MAX) {
        let [high, low] = (length as u16).to_be_bytes();
        let header = [kind, END, high, low, 0, 0, 1, 0];
        out[begin..begin + HEADER_BYTES].copy_from_slice(&header);
        return Ok(());
    }
    let body = out.split_off(begin + HEADER_BYTES);
    out.truncate(begin);
    message(out, kind, packet_bytes, &body);
    Ok(())
}

/// Where in a packet the stream is.
#[derive(Default)]
pub struct Packets {
    header: [u8; HEADER_BYTES],
    known: usize,
    /// Of the payload, what is still to come.
    left: usize,
}

impl Packets {
    /// Takes the next piece of a message from `input`, and says whether the message ends with it. `None`: there is no more.
    pub fn next<'a>(&mut self, input: &mut &'a [u8]) -> Result<Option<(&'a [u8], bool)>, Error> {
        if self.known == 0
            && let Some((header, rest)) = input.split_first_chunk::<HEADER_BYTES>()
        {
            // As it mostly comes, and without a copy whose length only the run knows.
            self.header = *header;
            self.known = HEADER_BYTES;
            *input = rest;
            self.left = self.payload()?;
        } else if self.known < HEADER_BYTES {
            let count = input.len().min(HEADER_BYTES - self.known);
            let (head, rest) = input.split_at(count);
            self.header[self.known..self.known + count].copy_from_slice(head);
            self.known += count;
            *input = rest;
            if self.known < HEADER_BYTES {
                return Ok(None);
            }
            self.left = self.payload()?;
        } else if input.is_empty() {
            return Ok(None);
        }
        let count = input.len().min(self.left);
        let (piece, rest) = input.split_at(count);
        *input = rest;
        self.left -= count;
        let is_over = self.left == 0;
        if is_over {
            self.known = 0;
        }
        Ok(Some((piece, is_over && self.header[1] & END != 0)))
    }

    /// How many bytes of a message the packet has.
    fn payload(&self) -> Result<usize, Error> {
        let length = usize::from(u16::from_be_bytes([self.header[2], self.header[3]]));
        match self.header[0] == REPLY && (HEADER_BYTES..=PACKET_BYTES_MAX).contains(&length) {
            true => Ok(length - HEADER_BYTES),
            false => Err(malformed()),
        }
    }
}

/// The server's bytes are not what the protocol allows. Ends the session.
#[cold]
pub fn malformed() -> Error {
    Error::source_failed(
        "protocol_error",
        "the source's answer does not follow the Tabular Data Stream protocol; check that host and port are those of a SQL Server",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(bytes: &[u8], piece: usize) -> Vec<(Vec<u8>, usize)> {
        let mut packets = Packets::default();
        let (mut messages, mut body) = (Vec::new(), (Vec::new(), 0));
        for mut input in bytes.chunks(piece) {
            while let Some((payload, is_end)) = packets.next(&mut input).unwrap() {
                body.0.extend_from_slice(payload);
                body.1 += 1;
                if is_end {
                    messages.push(std::mem::take(&mut body));
                }
            }
        }
        assert!(packets.known == 0 && body.0.is_empty());
        messages
    }

    /// A message comes back whole, however it is cut into packets and reads; a full packet is followed by none that is empty.
    #[test]
    fn messages_come_back() {
        for length in [0_usize, 1, 504, 505, 1_008, 5_000] {
            let body: Vec<u8> = (0..length).map(|at| at as u8).collect();
            let mut out = Vec::new();
            message(&mut out, REPLY, 512, &body);
            let mut same = b"before".to_vec();
            written(&mut same, REPLY, 512, |out| {
                out.extend_from_slice(&body);
                Ok(())
            })
            .unwrap();
            assert!(same.strip_prefix(b"before") == Some(&out[..]), "{length}");
            let refused = written(&mut same, REPLY, 512, |out| {
                out.push(1);
                Err(malformed())
            });
            assert!(refused.is_err() && same.len() == 6 + out.len());
            let packets = length.div_ceil(504).max(1);
            assert_eq!(out.len(), length + packets * HEADER_BYTES, "{length}");
            message(&mut out, REPLY, 512, b"next");
            for piece in [1, 7, 512, 100_000] {
                let messages = read(&out, piece);
                assert_eq!(messages.len(), 2);
                assert_eq!(messages[0].0, body, "{length} by {piece}");
                assert_eq!(messages[1].0, b"next");
            }
        }
    }

    #[test]
    fn what_is_no_packet_is_refused() {
        for header in [
            [REPLY, 1, 0, 7, 0, 0, 1, 0],
            [REPLY, 1, 0x80, 0, 0, 0, 1, 0],
            [RPC, 1, 0, 9, 0, 0, 1, 0],
            *b"HTTP/1.1",
        ] {
            let mut input = &header[..];
            assert!(Packets::default().next(&mut input).is_err(), "{header:?}");
        }
    }
}
