//! Where a row's values stand (MS-TDS 2.2.7.19, 2.2.7.14). Nothing is copied before a row is there as a whole, and of one that is not it is known
//! how many bytes it has at least.

use souk_sdk::Error;

use crate::protocol::malformed;
use crate::types::{Length, Reading};

/// A value in chunks: NULL, or of a length that nobody knows yet.
const CHUNKS_NULL: u64 = u64::MAX;
const CHUNKS_UNKNOWN: u64 = u64::MAX - 1;
/// What follows a pointer that is there.
const TIMESTAMP_BYTES: usize = 8;
const SHORT_NULL: u16 = 0xffff;
/// No value of a type without chunks has more.
const SHORT_BYTES_MAX: usize = 8_000;
/// Of `sql_variant`: 8,000 bytes and what says of which type they are.
const LONG_BYTES_MAX: usize = 8_016 + 64;

/// What a row may have. It and its text, which is half as long again of letters with three bytes in UTF-8, have room in a session's memory at once.
pub const ROW_BYTES_MAX: usize = 12 << 20;

/// Where a value is, as from the beginning of its row.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Place {
    Null,
    At(usize, usize),
    /// Chunks, each with its length before it, of so many bytes together; ends behind the last one.
    Chunks(usize, usize),
}

#[derive(Debug, PartialEq)]
pub enum Found {
    /// A row of so many bytes.
    Row(usize),
    /// It has so many bytes at least.
    More(usize),
}

/// Finds the values of the row that `body` begins with, behind its token.
pub fn find(
    readings: &[Reading],
    body: &[u8],
    is_compact: bool,
    places: &mut Vec<Place>,
) -> Result<Found, Error> {
    places.clear();
    places.reserve_exact(readings.len());
    let mut walk = Walk { body, at: 0 };
    match walk.row(readings, is_compact, places) {
        Ok(()) => Ok(Found::Row(walk.at)),
        Err(Stop::More(bytes)) => Ok(Found::More(bytes)),
        Err(Stop::Malformed) => Err(malformed()),
    }
}

/// The chunks of a value that begin at `from`, which lie one behind the other with their lengths between them.
pub fn chunks(row: &[u8], from: usize) -> impl Iterator<Item = &[u8]> + Clone {
    let rest = row.get(from..).unwrap_or_default();
    std::iter::successors(first_chunk(rest), |(_, rest)| first_chunk(rest)).map(|(chunk, _)| chunk)
}

/// A chunk and what is behind it; none is the end.
fn first_chunk(rest: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, rest) = rest.split_first_chunk::<4>()?;
    match u32::from_le_bytes(*length) as usize {
        0 => None,
        length => rest.split_at_checked(length),
    }
}

enum Stop {
    More(usize),
    Malformed,
}

struct Walk<'a> {
    body: &'a [u8],
    at: usize,
}

impl Walk<'_> {
    fn row(
        &mut self,
        readings: &[Reading],
        is_compact: bool,
        places: &mut Vec<Place>,
    ) -> Result<(), Stop> {
        let nulls = match is_compact {
            true => self.skip(readings.len().div_ceil(8))?,
            false => 0,
        };
        for (at, reading) in readings.iter().enumerate() {
            let is_null = is_compact && self.body[nulls + at / 8] >> (at % 8) & 1 == 1;
            let place = match is_null {
                true => Place::Null,
                false => self.value(reading.length)?,
            };
            places.push(place);
        }
        Ok(())
    }

    fn value(&mut self, length: Length) -> Result<Place, Stop> {
        let bytes = match length {
            Length::Fixed(0) => return Ok(Place::Null),
            Length::Fixed(bytes) => bytes,
            Length::Byte => match self.number::<1>()? as usize {
                0 => return Ok(Place::Null),
                bytes => bytes,
            },
            Length::Short => match self.number::<2>()? as u16 {
                SHORT_NULL => return Ok(Place::Null),
                bytes if usize::from(bytes) > SHORT_BYTES_MAX => return Err(Stop::Malformed),
                bytes => bytes.into(),
            },
            Length::Long => match self.number::<4>()? as usize {
                0 => return Ok(Place::Null),
                bytes if bytes > LONG_BYTES_MAX => return Err(Stop::Malformed),
                bytes => bytes,
            },
            Length::Pointer => match self.number::<1>()? as usize {
                0 => return Ok(Place::Null),
                pointer => {
                    self.skip(pointer + TIMESTAMP_BYTES)?;
                    self.number::<4>()? as usize
                }
            },
            Length::Chunks => return self.chunks(),
        };
        let from = self.skip(bytes)?;
        Ok(Place::At(from, bytes))
    }

    /// Chunks until one of no bytes; where a length is said before, theirs is the same.
    fn chunks(&mut self) -> Result<Place, Stop> {
        let said = self.number::<8>()?;
        if said == CHUNKS_NULL {
            return Ok(Place::Null);
        }
        // Added in 64 bits: what is there and one length more is beyond the 32 of a component's `usize`.
        let (from, mut bytes, mut count) = (self.at, 0_u64, 0);
        loop {
            let chunk = self.number::<4>()?;
            bytes += chunk;
            if said != CHUNKS_UNKNOWN && bytes > said {
                return Err(Stop::Malformed);
            }
            if chunk == 0 {
                break;
            }
            self.skip(chunk as usize)?;
            count += 1;
        }
        if said != CHUNKS_UNKNOWN && bytes != said {
            return Err(Stop::Malformed);
        }
        // All of them are there, in a row that fits into memory.
        let bytes = bytes as usize;
        Ok(match count {
            0 => Place::At(from, 0),
            1 => Place::At(from + 4, bytes),
            _ => Place::Chunks(from, bytes),
        })
    }

    /// Of so many bytes, which the compiler knows: a copy of others is a call of the host.
    #[inline]
    fn number<const BYTES: usize>(&mut self) -> Result<u64, Stop> {
        let from = self.skip(BYTES)?;
        let mut wide = [0; 8];
        wide[..BYTES].copy_from_slice(&self.body[from..from + BYTES]);
        Ok(u64::from_le_bytes(wide))
    }

    /// Where the bytes begin that are passed. An end that a component's 32 bits cannot hold is as far away as one can be, and no row has so many: it is
    /// told as it is where there are 64.
    fn skip(&mut self, bytes: usize) -> Result<usize, Stop> {
        let end = self.at.saturating_add(bytes);
        match end <= self.body.len() {
            true => Ok(std::mem::replace(&mut self.at, end)),
            false => Err(Stop::More(end)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::Kind;

    fn found(
        lengths: &[Length],
        body: &[u8],
        is_compact: bool,
    ) -> Result<(Found, Vec<Place>), Error> {
        let readings: Vec<Reading> = lengths
            .iter()
            .map(|length| Reading {
                kind: Kind::Bytes,
                length: *length,
            })
            .collect();
        let mut places = Vec::new();
        let found = find(&readings, body, is_compact, &mut places)?;
        Ok((found, places))
    }

    fn chunked(said: u64, chunks: &[&[u8]]) -> Vec<u8> {
        let mut bytes = said.to_le_bytes().to_vec();
        for chunk in chunks {
            bytes.extend_from_slice(&(chunk.len() as u32).to_le_bytes());
            bytes.extend_from_slice(chunk);
        }
        bytes
    }

    /// Of each way to say a length a value and NULL, whole and cut anywhere.
    #[test]
    fn each_length_is_read_or_waited_for() {
        let pointer = [&[2, 9, 9][..], &[0; 8], &[1, 0, 0, 0, 7]].concat();
        for (length, body, place) in [
            (Length::Fixed(0), vec![], Place::Null),
            (Length::Fixed(4), vec![1, 2, 3, 4], Place::At(0, 4)),
            (Length::Byte, vec![0], Place::Null),
            (Length::Byte, vec![2, 1, 2], Place::At(1, 2)),
            (Length::Short, vec![0xff, 0xff], Place::Null),
            (Length::Short, vec![0, 0], Place::At(2, 0)),
            (Length::Short, vec![1, 0, 7], Place::At(2, 1)),
            (Length::Long, vec![0; 4], Place::Null),
            (Length::Long, vec![1, 0, 0, 0, 7], Place::At(4, 1)),
            (Length::Pointer, vec![0], Place::Null),
            (Length::Pointer, pointer, Place::At(15, 1)),
            (
                Length::Chunks,
                CHUNKS_NULL.to_le_bytes().into(),
                Place::Null,
            ),
            (Length::Chunks, chunked(0, &[b""]), Place::At(8, 0)),
            (Length::Chunks, chunked(3, &[b"abc", b""]), Place::At(12, 3)),
            (
                Length::Chunks,
                chunked(CHUNKS_UNKNOWN, &[b"ab", b"c", b""]),
                Place::Chunks(8, 3),
            ),
        ] {
            let whole = found(&[length], &body, false).unwrap();
            assert_eq!(whole, (Found::Row(body.len()), vec![place]), "{length:?}");
            for cut in 0..body.len() {
                let (part, _) = found(&[length], &body[..cut], false).unwrap();
                let Found::More(least) = part else {
                    panic!("{length:?} at {cut}: {part:?}");
                };
                assert!(
                    (cut + 1..=body.len()).contains(&least),
                    "{length:?} at {cut}"
                );
            }
        }
    }

    #[test]
    fn chunks_are_joined() {
        let body = chunked(CHUNKS_UNKNOWN, &[b"ab", b"c", b"", b"next"]);
        let joined = |from| chunks(&body, from).flatten().copied().collect::<Vec<u8>>();
        assert_eq!(joined(8), b"abc");
        assert_eq!(joined(1_000), b"");
    }

    /// A row of which NULLs are left out says which.
    #[test]
    fn nulls_are_left_out_of_compact_rows() {
        let lengths = [Length::Byte; 9];
        let body = [0b1111_1101, 0b0, 1, 7, 1, 8];
        let (whole, places) = found(&lengths, &body, true).unwrap();
        assert_eq!(whole, Found::Row(6));
        assert_eq!(places[1], Place::At(3, 1));
        assert_eq!(places[8], Place::At(5, 1));
        assert_eq!(
            places.iter().filter(|place| **place == Place::Null).count(),
            7
        );
    }

    /// What lies is refused, and what is too long is known before it is there.
    #[test]
    fn lengths_that_lie_are_seen() {
        for body in [
            chunked(2, &[b"abc", b""]),
            chunked(4, &[b"abc", b""]),
            chunked(0, &[b"a", b""]),
        ] {
            assert!(found(&[Length::Chunks], &body, false).is_err());
        }
        assert!(found(&[Length::Short], &[0xfe, 0xff], false).is_err());
        assert!(found(&[Length::Long], &[0xff; 4], false).is_err());
        let longest = u32::MAX as usize;
        let pointer = [&[1, 9][..], &[0; 8], &[0xff; 4]].concat();
        for (length, body, least) in [
            (Length::Chunks, chunked(CHUNKS_UNKNOWN, &[]), 12 + longest),
            // Both together have more than 32 bits.
            (
                Length::Chunks,
                chunked(CHUNKS_UNKNOWN, &[b"ab"]),
                18 + longest,
            ),
            (
                Length::Chunks,
                chunked(u64::from(u32::MAX) + 2, &[b"ab"]),
                18 + longest,
            ),
            (Length::Pointer, pointer, 14 + longest),
        ] {
            let endless = match length {
                Length::Chunks => [body, vec![0xff; 4]].concat(),
                _ => body,
            };
            let (more, _) = found(&[length], &endless, false).unwrap();
            assert_eq!(more, Found::More(least), "{endless:x?}");
        }
        let short = [chunked(u64::from(u32::MAX) + 1, &[b"ab"]), vec![0xff; 4]];
        assert!(found(&[Length::Chunks], &short.concat(), false).is_err());
    }

    /// Where numbers have 32 bits an end beyond them is no smaller one: it is told as the furthest that there is.
    #[test]
    fn no_end_is_beyond_the_furthest() {
        let mut walk = Walk {
            body: &[0; 9],
            at: 9,
        };
        let stop = walk.skip(usize::MAX);
        assert!(matches!(stop, Err(Stop::More(usize::MAX))));
        assert_eq!(walk.at, 9);
    }
}
