//! A compressed answer as it is read: a small one may become a large one, and is read no further than is allowed.

use std::io::{self, BufReader, Read};

use flate2::read::MultiGzDecoder;

/// What an answer may become: three times the largest that Snowflake's documentation has.
const BYTES_MAX: u64 = 256 << 20;
/// And a text in it: while it is read it is held three times.
const TEXT_BYTES_MAX: usize = 8 << 20;
const GZIP: [u8; 2] = [0x1f, 0x8b];

/// `None`: it is not compressed.
pub fn unpacked(body: &[u8]) -> Option<impl Read> {
    let is_packed = body.starts_with(&GZIP);
    is_packed.then(|| {
        BufReader::new(Bounded {
            inner: MultiGzDecoder::new(body),
            left: BYTES_MAX,
            text: None,
            is_escaped: false,
        })
    })
}

/// Reads JSON, and fails where there is too much of it.
struct Bounded<R> {
    inner: R,
    left: u64,
    /// How long the text is that was begun.
    text: Option<usize>,
    is_escaped: bool,
}

impl<R: Read> Read for Bounded<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.inner.read(buffer)?;
        self.left = self
            .left
            .checked_sub(read as u64)
            .ok_or_else(|| io::Error::other("an answer becomes longer than 256 MiB"))?;
        for byte in &buffer[..read] {
            self.text = match (self.text, byte) {
                (None, b'"') => Some(0),
                (None, _) => None,
                (Some(_), b'"') if !self.is_escaped => None,
                (Some(TEXT_BYTES_MAX), _) => {
                    return Err(io::Error::other("a text of an answer is longer than 8 MiB"));
                }
                (Some(length), _) => Some(length + 1),
            };
            self.is_escaped = *byte == b'\\' && self.text.is_some() && !self.is_escaped;
        }
        Ok(read)
    }
}
