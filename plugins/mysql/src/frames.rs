//! Messages, cut from the stream of packets. A message may arrive in pieces, and be made of several packets.
//!
//! Nothing larger than [`MESSAGE_BYTES_MAX`] is ever kept; what is not wanted is thrown away while it arrives.

use crate::protocol::{HEADER_BYTES, PACKET_BYTES_MAX, malformed};
use souk_sdk::{Error, Pieces};

/// A message of the server's may be this long; a longer one is not kept. The row and its columns both have to fit into the 64 MiB that a
/// host gives a session.
pub const MESSAGE_BYTES_MAX: usize = 20 << 20;

/// Who is given the messages.
pub trait Sink {
    /// A whole message; `number` is that of its last packet.
    fn message(&mut self, number: u8, body: &[u8]) -> Result<(), Error>;

    /// Whether a message that begins with `first` and is at least so long may be thrown away unread.
    fn discards(&mut self, first: Option<u8>, length: usize) -> Result<bool, Error>;
}

/// How long the packet is that begins here: three bytes of length, and its number.
fn packet(begun: &[u8]) -> Option<usize> {
    let [a, b, c, _] = *begun.first_chunk::<HEADER_BYTES>()?;
    Some(HEADER_BYTES + u32::from_le_bytes([a, b, c, 0]) as usize)
}

#[derive(Default)]
pub struct Frames {
    /// Where packets that arrive in pieces are put together.
    pieces: Pieces,
    /// The packets before, of a message of several.
    joined: Vec<u8>,
    /// Bytes that are still to come and are thrown away.
    skip: usize,
    /// The message that is thrown away goes on in the next packet.
    skips_on: bool,
}

impl Frames {
    /// Whether nothing is begun.
    pub fn is_empty(&self) -> bool {
        self.pieces.is_empty() && self.joined.is_empty()
    }

    #[inline]
    pub fn feed(&mut self, bytes: Vec<u8>, sink: &mut impl Sink) -> Result<(), Error> {
        let skipped = self.skip.min(bytes.len());
        self.skip -= skipped;
        let mut pieces = std::mem::take(&mut self.pieces);
        pieces.feed(bytes, skipped, |bytes| self.packets(bytes, sink), packet)?;
        self.pieces = pieces;
        Ok(())
    }

    /// Takes whole packets off the front and answers how many bytes they were.
    fn packets(&mut self, buffer: &[u8], sink: &mut impl Sink) -> Result<usize, Error> {
        let mut at = 0;
        loop {
            let rest = &buffer[at..];
            let Some(&[a, b, c, number]) = rest.first_chunk::<HEADER_BYTES>() else {
                return Ok(at);
            };
            let length = u32::from_le_bytes([a, b, c, 0]) as usize;
            let goes_on = length == PACKET_BYTES_MAX;
            let here = &rest[HEADER_BYTES..];
            if self.skips_on {
                self.skips_on = goes_on;
                self.skip = length.saturating_sub(here.len());
                if self.skip > 0 {
                    return Ok(buffer.len());
                }
                at += HEADER_BYTES + length;
                continue;
            }
            let Some(body) = here.get(..length) else {
                if self.discards(here.first().copied(), length, sink)? {
                    self.skips_on = goes_on;
                    self.skip = length - here.len();
                    return Ok(buffer.len());
                }
                return Ok(at);
            };
            at += HEADER_BYTES + length;
            if !goes_on && self.joined.is_empty() {
                sink.message(number, body)?;
                continue;
            }
            if self.discards(body.first().copied(), length, sink)? {
                self.skips_on = goes_on;
                continue;
            }
            self.joined.reserve_exact(body.len());
            self.joined.extend_from_slice(body);
            if !goes_on {
                let joined = std::mem::take(&mut self.joined);
                sink.message(number, &joined)?;
            }
        }
    }

    /// Whether the packet that comes, and what of its message there is, is not wanted. What is neither wanted nor small is refused.
    fn discards(
        &mut self,
        first: Option<u8>,
        length: usize,
        sink: &mut impl Sink,
    ) -> Result<bool, Error> {
        let first = self.joined.first().copied().or(first);
        let whole = self.joined.len() + length;
        if sink.discards(first, whole)? {
            self.joined = Vec::new();
            return Ok(true);
        }
        match whole > MESSAGE_BYTES_MAX {
            true => Err(malformed().detail("a message is longer than 20 MiB")),
            false => Ok(false),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol;

    #[derive(Default)]
    struct Heard {
        lengths: Vec<usize>,
        numbers: Vec<u8>,
        limit: usize,
        discarded: usize,
    }

    impl Sink for Heard {
        fn message(&mut self, number: u8, body: &[u8]) -> Result<(), Error> {
            assert!(body.iter().all(|byte| *byte == 7));
            self.lengths.push(body.len());
            self.numbers.push(number);
            Ok(())
        }

        fn discards(&mut self, _: Option<u8>, length: usize) -> Result<bool, Error> {
            let is_over = length > self.limit;
            self.discarded += usize::from(is_over);
            Ok(is_over)
        }
    }

    fn stream(lengths: &[usize]) -> Vec<u8> {
        let mut out = Vec::new();
        for length in lengths {
            protocol::message(&mut out, 0, |out| out.resize(out.len() + length, 7));
        }
        out
    }

    fn heard(lengths: &[usize], piece: usize, limit: usize) -> Heard {
        let (mut frames, mut heard) = (
            Frames::default(),
            Heard {
                limit,
                ..Heard::default()
            },
        );
        for piece in stream(lengths).chunks(piece) {
            frames.feed(piece.to_vec(), &mut heard).unwrap();
        }
        assert!(frames.is_empty() && frames.skip == 0 && !frames.skips_on);
        heard
    }

    /// However the stream is cut, the messages are the same.
    #[test]
    fn messages_are_whole() {
        let lengths = [0, 1, 5, 300, 0, 70_000];
        for piece in [1, 2, 3, 5, 64, 1 << 20] {
            let heard = heard(&lengths, piece, usize::MAX);
            assert_eq!(heard.lengths, lengths, "{piece}");
            assert_eq!(heard.discarded, 0);
        }
    }

    /// A message of more than 16 MiB is put together, its end being an empty packet if need be.
    #[test]
    fn long_messages_are_put_together() {
        let lengths = [3, PACKET_BYTES_MAX + 10, 4, PACKET_BYTES_MAX, 5];
        for piece in [1 << 16, 100_003, 64 << 20] {
            let heard = heard(&lengths, piece, usize::MAX);
            assert_eq!(heard.lengths, lengths, "{piece}");
            assert_eq!(heard.numbers, [0, 1, 0, 1, 0]);
        }
    }

    /// What is not wanted is thrown away, however long, and what follows is heard.
    #[test]
    fn unwanted_messages_are_thrown_away() {
        let lengths = [3, 2 * PACKET_BYTES_MAX + 10, 4, 2_000, 5];
        for piece in [7_001, 1 << 16, 64 << 20] {
            let heard = heard(&lengths, piece, 1_000);
            // What is here already is not worth being thrown away.
            let kept: Vec<usize> = heard.lengths.into_iter().filter(|n| *n != 2_000).collect();
            assert_eq!(kept, [3, 4, 5], "{piece}");
        }
    }

    /// What is wanted, and too long, ends the session.
    #[test]
    fn too_long_is_refused() {
        let mut frames = Frames::default();
        let mut heard = Heard {
            limit: usize::MAX,
            ..Heard::default()
        };
        let long = stream(&[MESSAGE_BYTES_MAX + 1]);
        assert!(frames.feed(long, &mut heard).is_err());
    }
}
