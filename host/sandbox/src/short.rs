//! Appends what is a few bytes long, as most of an answer is: keys, numbers, names. A call of `memmove` for each, of a length that only
//! it looks at, took a tenth of the time in which a page is written.

/// The longest that is put down in one piece.
const PIECE: usize = 32;

/// A text that is appended again and again.
#[derive(Clone, Debug)]
pub(crate) struct Stamp {
    text: Vec<u8>,
    /// The same, where it is no longer than that.
    piece: [u8; PIECE],
}

impl Stamp {
    pub fn new(text: Vec<u8>) -> Stamp {
        let mut piece = [0; PIECE];
        if let Some(place) = piece.get_mut(..text.len()) {
            place.copy_from_slice(&text);
        }
        Stamp { text, piece }
    }

    pub fn bytes(&self) -> usize {
        self.text.len()
    }

    #[inline]
    pub fn append(&self, out: &mut Vec<u8>) {
        if self.text.len() > PIECE {
            return out.extend_from_slice(&self.text);
        }
        let end = out.len() + self.text.len();
        out.extend_from_slice(&self.piece);
        out.truncate(end);
    }
}

/// Appends any text; those of up to 16 bytes are quick.
#[inline]
pub(crate) fn append(out: &mut Vec<u8>, text: &[u8]) {
    let (begin, length) = (out.len(), text.len());
    if length > 16 {
        return out.extend_from_slice(text);
    }
    out.extend_from_slice(&[0; 16]);
    put(&mut out[begin..], text);
    out.truncate(begin + length);
}

/// Appends a text of up to 16 bytes between quotes.
#[inline]
pub(crate) fn append_quoted(out: &mut Vec<u8>, text: &[u8]) {
    let (begin, length) = (out.len(), text.len());
    out.extend_from_slice(&[b'"'; 24]);
    put(&mut out[begin + 1..], text);
    // What was not written over is the quote behind it.
    out.truncate(begin + length + 2);
}

/// Appends a number below 10,000.
#[inline]
pub(crate) fn append_small(out: &mut Vec<u8>, value: u16) {
    let blank = u32::from(value < 10) + u32::from(value < 100) + u32::from(value < 1_000);
    let digit = |power: u16| b'0' + (value / power % 10) as u8;
    let digits = u32::from_be_bytes([digit(1_000), digit(100), digit(10), digit(1)]);
    let end = out.len() + 4 - blank as usize;
    out.extend_from_slice(&(digits << (8 * blank)).to_be_bytes());
    out.truncate(end);
}

/// At the beginning of `to`, by two words of a fixed length that overlap.
#[inline]
fn put(to: &mut [u8], text: &[u8]) {
    match text.len() {
        0 => {}
        length @ 1..4 => {
            to[0] = text[0];
            to[length / 2] = text[length / 2];
            to[length - 1] = text[length - 1];
        }
        4..8 => put_words::<4>(to, text),
        8..=16 => put_words::<8>(to, text),
        length => to[..length].copy_from_slice(text),
    }
}

#[inline]
fn put_words<const WORD: usize>(to: &mut [u8], text: &[u8]) {
    let last = text.len() - WORD;
    to[..WORD].copy_from_slice(&text[..WORD]);
    to[last..last + WORD].copy_from_slice(&text[last..]);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_of_every_length_are_appended_whole() {
        let text: Vec<u8> = (b'A'..=b'z').collect();
        for length in 0..=text.len() {
            let text = &text[..length];
            let mut out = b"before".to_vec();
            append(&mut out, text);
            Stamp::new(text.to_vec()).append(&mut out);
            if length <= 16 {
                append_quoted(&mut out, text);
            }
            let text = std::str::from_utf8(text).unwrap();
            let mut wanted = format!("before{text}{text}");
            if length <= 16 {
                wanted += &format!("\"{text}\"");
            }
            assert_eq!(String::from_utf8(out).unwrap(), wanted);
        }
    }

    #[test]
    fn small_numbers_have_their_digits() {
        for value in 0..10_000 {
            let mut out = b"-".to_vec();
            append_small(&mut out, value);
            assert_eq!(String::from_utf8(out).unwrap(), format!("-{value}"));
        }
    }
}
