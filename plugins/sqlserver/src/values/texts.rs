//! Texts: of a code page or of two bytes a letter, in one piece or in many, and how many bytes they may become.

use encoding_rs::{CoderResult, Encoding};
use souk_sdk::{Error, short};

use crate::protocol::malformed;
use crate::rows::ROW_BYTES_MAX;

/// How much of a text in a code page is decoded at once: more than it may need for one letter.
const PIECE_BYTES: usize = 4 << 10;
/// A text that makes a column's room its own.
pub(super) const LONG_BYTES: usize = 1 << 20;
/// What a row's texts in code pages may have in UTF-8: as many as its others may, which are at most half as long again as they were.
const ROW_TEXT_BYTES_MAX: usize = ROW_BYTES_MAX / 2 * 3;

/// How many bytes a row's texts in code pages may still have, which may be three times as many in UTF-8.
pub struct Room {
    left: usize,
    refused: fn(u64) -> Error,
    bytes_max: u64,
}

impl Room {
    pub fn of(bytes_max: u64) -> Room {
        let (left, refused): (usize, fn(u64) -> Error) = match usize::try_from(bytes_max) {
            Ok(bytes) if bytes <= ROW_TEXT_BYTES_MAX => (bytes, Error::too_many_bytes),
            _ => (ROW_TEXT_BYTES_MAX, |_| row_texts_too_long()),
        };
        Room {
            left,
            refused,
            bytes_max,
        }
    }

    fn take(&mut self, bytes: usize) -> Result<(), Error> {
        let left = self.left.checked_sub(bytes);
        self.left = left.ok_or_else(|| (self.refused)(self.bytes_max))?;
        Ok(())
    }
}

fn row_texts_too_long() -> Error {
    Error::limit_exceeded("row_bytes", "a row's texts are larger than 18 MiB in UTF-8")
}

/// What the code page does not know becomes U+FFFD, as with the vendor's clients.
pub(super) fn chars<'a>(
    encoding: &'static Encoding,
    chunks: impl Iterator<Item = &'a [u8]> + Clone,
    out: &mut Vec<u8>,
    room: &mut Room,
) -> Result<(), Error> {
    // A long text is decoded twice, so that it takes no more room than it needs.
    if chunks.clone().map(<[u8]>::len).sum::<usize>() >= LONG_BYTES {
        let mut bytes = 0;
        decode(encoding, chunks.clone(), |piece| {
            bytes += piece.len();
            Ok(())
        })?;
        room.take(bytes)?;
        out.reserve_exact(bytes);
        return decode(encoding, chunks, |piece| {
            out.extend_from_slice(piece);
            Ok(())
        });
    }
    decode(encoding, chunks, |piece| {
        room.take(piece.len())?;
        out.extend_from_slice(piece);
        Ok(())
    })
}

/// Hands a text on, in UTF-8 and in pieces.
fn decode<'a>(
    encoding: &'static Encoding,
    chunks: impl Iterator<Item = &'a [u8]>,
    mut take: impl FnMut(&[u8]) -> Result<(), Error>,
) -> Result<(), Error> {
    let mut decoder = encoding.new_decoder_without_bom_handling();
    let mut piece = [0; PIECE_BYTES];
    // The last one is nothing, and ends a letter that is cut off.
    for (mut chunk, is_last) in chunks.map(|chunk| (chunk, false)).chain([(&[][..], true)]) {
        loop {
            let (result, read, written, _) = decoder.decode_to_utf8(chunk, &mut piece, is_last);
            take(&piece[..written])?;
            chunk = &chunk[read..];
            if result == CoderResult::InputEmpty {
                break;
            }
        }
    }
    Ok(())
}

/// Half a pair (a text cut in its middle) becomes U+FFFD.
pub(super) fn wide(bytes: &[u8], out: &mut Vec<u8>) -> Result<(), Error> {
    let (units, rest) = bytes.as_chunks::<2>();
    if !rest.is_empty() {
        return Err(malformed());
    }
    // Most letters are of ASCII, which are looked at and written many at a time.
    let beyond = |[low, high]: &[u8; 2]| (low & 0x80) | high;
    let others = units
        .iter()
        .fold(0_u8, |others, unit| others | beyond(unit));
    if others == 0 {
        match units.len() {
            LONG_BYTES.. => out.reserve_exact(units.len()),
            _ => out.reserve(units.len()),
        }
        out.extend(units.iter().map(|unit| unit[0]));
        return Ok(());
    }
    letters(units.iter().map(|unit| u16::from_le_bytes(*unit)), out);
    Ok(())
}

pub(super) fn letters(units: impl Iterator<Item = u16> + Clone, out: &mut Vec<u8>) {
    let chars = || {
        let chars = char::decode_utf16(units.clone());
        chars.map(|char| char.unwrap_or(char::REPLACEMENT_CHARACTER))
    };
    // A long text takes no more room than it needs.
    let bytes = chars().map(char::len_utf8).sum();
    match bytes {
        LONG_BYTES.. => out.reserve_exact(bytes),
        _ => out.reserve(bytes),
    }
    for char in chars() {
        let mut buffer = [0; 4];
        short::append(out, char.encode_utf8(&mut buffer).as_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::Kind;
    use crate::values::write;

    /// Cut anywhere, a text in a code page is the same, and a long one is no larger than its row may be.
    #[test]
    fn texts_in_pages_come_in_pieces() {
        let (euro, japanese) = (encoding_rs::WINDOWS_1252, encoding_rs::SHIFT_JIS);
        let of = |encoding, chunks: &[&[u8]], room: u64| {
            let mut out = Vec::new();
            let read = chars(
                encoding,
                chunks.iter().copied(),
                &mut out,
                &mut Room::of(room),
            );
            read.map(|()| String::from_utf8(out).unwrap())
        };
        let text = b"\x93\xfa\x96\x7b".repeat(3_000);
        for cut in [0, 1, 2, 3, 4_095, 4_096, 4_097, text.len() - 1] {
            let (before, after) = text.split_at(cut);
            let whole = of(japanese, &[before, after], 1 << 30).unwrap();
            assert_eq!(whole, "日本".repeat(3_000), "{cut}");
        }
        assert_eq!(of(japanese, &[b"\x93"], 9).unwrap(), "\u{fffd}");
        let mut long = vec![b'a'; 4 << 20];
        long[3 << 20] = 0xe4;
        let read = of(euro, &[&long[..1_000], &long[1_000..]], 64 << 20).unwrap();
        assert_eq!((read.len(), &read[3 << 20..][..2]), ((4 << 20) + 1, "ä"));
        let error = of(euro, &[&long], 4 << 20).unwrap_err();
        assert_eq!(error.code, "bytes_limit");
        // Three times as long in UTF-8, each: €, and what is no UTF-8.
        for (encoding, byte) in [(euro, 0x80), (encoding_rs::UTF_8, 0xff)] {
            let nine = [byte; 9];
            assert_eq!(of(encoding, &[&nine], 26).unwrap_err().code, "bytes_limit");
            assert_eq!(of(encoding, &[&nine], 27).unwrap().len(), 27);
        }
        // Whatever is wanted, a row has no more than a session holds.
        assert!(Room::of(64 << 20).take(18 << 20).is_ok());
        let error = Room::of(64 << 20).take((18 << 20) + 1).unwrap_err();
        assert_eq!(error.code, "row_bytes");
        // All of a row's have that room together.
        let mut room = Room::of(5);
        let mut out = Vec::new();
        write(Kind::Chars(euro), b"abc", &mut out, &mut room).unwrap();
        assert!(write(Kind::Chars(euro), b"abc", &mut out, &mut room).is_err());
    }
}
