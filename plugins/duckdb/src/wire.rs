//! DuckDB's binary serialization, as its `BinarySerializer` writes it: fields have a number of two bytes, in rising order; objects end with
//! `0xffff`; whole numbers are LEB128, texts and blobs have their length before them.

use souk_sdk::{Error, short};

use crate::errors::malformed;

/// The number that ends an object.
const END: u16 = 0xffff;
/// What a number of 64 bits is written in.
const LEB_BYTES_MAX: u32 = 10;
/// The same of 128 bits.
const HUGE_BYTES_MAX: u32 = 19;

/// What is left to read of a message. Nothing is copied.
#[derive(Clone, Copy)]
pub struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    pub const fn new(bytes: &'a [u8]) -> Reader<'a> {
        Reader { rest: bytes }
    }

    /// What is read next is this field.
    pub fn field(&mut self, number: u16) -> Result<(), Error> {
        match self.is_field(number) {
            true => Ok(()),
            false => Err(malformed()),
        }
    }

    /// Whether this field comes next, which may be left out; it is read then.
    pub fn is_field(&mut self, number: u16) -> bool {
        match self.rest.split_first_chunk::<2>() {
            Some((field, rest)) if u16::from_le_bytes(*field) == number => {
                self.rest = rest;
                true
            }
            _ => false,
        }
    }

    /// The object ends here.
    pub fn end(&mut self) -> Result<(), Error> {
        self.field(END)
    }

    /// The message ends here.
    pub fn finish(&self) -> Result<(), Error> {
        match self.rest {
            [] => Ok(()),
            _ => Err(malformed()),
        }
    }

    pub fn byte(&mut self) -> Result<u8, Error> {
        let (byte, rest) = self.rest.split_first().ok_or_else(malformed)?;
        self.rest = rest;
        Ok(*byte)
    }

    pub fn boolean(&mut self) -> Result<bool, Error> {
        match self.byte()? {
            0 => Ok(false),
            1 => Ok(true),
            _ => Err(malformed()),
        }
    }

    pub fn bytes(&mut self, count: usize) -> Result<&'a [u8], Error> {
        let (bytes, rest) = self.rest.split_at_checked(count).ok_or_else(malformed)?;
        self.rest = rest;
        Ok(bytes)
    }

    /// What is read next are these bytes.
    pub fn exactly(&mut self, bytes: &[u8]) -> Result<(), Error> {
        if !self.goes_on_with(bytes) {
            return Err(malformed());
        }
        self.rest = &self.rest[bytes.len()..];
        Ok(())
    }

    /// Whether what is read next are these bytes, which are not read yet.
    pub fn goes_on_with(&self, bytes: &[u8]) -> bool {
        short::begins_with(self.rest, bytes)
    }

    /// An unsigned number of 64 bits.
    #[inline]
    pub fn number(&mut self) -> Result<u64, Error> {
        // As almost all are: the lengths of texts among them.
        if let Some((byte, rest)) = self.rest.split_first()
            && *byte < 0x80
        {
            self.rest = rest;
            return Ok(u64::from(*byte));
        }
        self.long_number()
    }

    fn long_number(&mut self) -> Result<u64, Error> {
        let mut number = 0_u64;
        for place in 0..LEB_BYTES_MAX {
            let byte = self.byte()?;
            let bits = u64::from(byte & 0x7f);
            let shifted = bits << (7 * place);
            if shifted >> (7 * place) != bits {
                return Err(malformed());
            }
            number |= shifted;
            if byte & 0x80 == 0 {
                return Ok(number);
            }
        }
        Err(malformed())
    }

    /// The same, signed.
    pub fn signed(&mut self) -> Result<i64, Error> {
        let mut number = 0_i64;
        for place in 0..LEB_BYTES_MAX {
            let byte = self.byte()?;
            number |= i64::from(byte & 0x7f).wrapping_shl(7 * place);
            if byte & 0x80 == 0 {
                let used = 7 * (place + 1);
                let is_negative = byte & 0x40 != 0;
                return Ok(match is_negative && used < i64::BITS {
                    true => number | (-1_i64).wrapping_shl(used),
                    false => number,
                });
            }
        }
        Err(malformed())
    }

    /// A number of 128 bits as it is written, in two halves: it is only sent back.
    pub fn huge(&mut self) -> Result<&'a [u8], Error> {
        let begin = self.rest;
        let mut left = 2;
        for count in 1..=HUGE_BYTES_MAX as usize + 1 {
            if self.byte()? & 0x80 == 0 {
                left -= 1;
            }
            if left == 0 {
                return Ok(&begin[..count]);
            }
        }
        Err(malformed())
    }

    /// A count of what is written in at least so many bytes each: more than there is room for are none.
    pub fn count(&mut self, bytes_each: usize) -> Result<usize, Error> {
        let count = usize::try_from(self.number()?).map_err(|_| malformed())?;
        match count.checked_mul(bytes_each) {
            Some(bytes) if bytes <= self.rest.len() => Ok(count),
            _ => Err(malformed()),
        }
    }

    #[inline]
    pub fn blob(&mut self) -> Result<&'a [u8], Error> {
        let count = self.count(1)?;
        self.bytes(count)
    }

    pub fn text(&mut self) -> Result<&'a str, Error> {
        std::str::from_utf8(self.blob()?).map_err(|_| malformed())
    }

    /// The bytes that `read` takes.
    pub fn span<T>(
        &mut self,
        read: impl FnOnce(&mut Self) -> Result<T, Error>,
    ) -> Result<(T, &'a [u8]), Error> {
        let begin = self.rest;
        let value = read(self)?;
        Ok((value, &begin[..begin.len() - self.rest.len()]))
    }
}

/// A message that is being written.
#[derive(Default)]
pub struct Writer {
    bytes: Vec<u8>,
}

impl Writer {
    pub fn with_room(bytes: usize) -> Writer {
        Writer {
            bytes: Vec::with_capacity(bytes),
        }
    }

    pub fn field(mut self, number: u16) -> Writer {
        self.bytes.extend_from_slice(&number.to_le_bytes());
        self
    }

    pub fn end(self) -> Writer {
        self.field(END)
    }

    pub fn number(mut self, mut number: u64) -> Writer {
        while number >= 0x80 {
            self.bytes.push((number & 0x7f) as u8 | 0x80);
            number >>= 7;
        }
        self.bytes.push(number as u8);
        self
    }

    pub fn text(self, text: &str) -> Writer {
        self.number(text.len() as u64).raw(text.as_bytes())
    }

    pub fn raw(mut self, bytes: &[u8]) -> Writer {
        short::append(&mut self.bytes, bytes);
        self
    }

    pub fn finish(self) -> Vec<u8> {
        self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_come_back() {
        for number in [0, 1, 127, 128, 300, u64::from(u32::MAX), u64::MAX] {
            let bytes = Writer::default().number(number).finish();
            assert_eq!(Reader::new(&bytes).number().unwrap(), number);
        }
        for (bytes, wanted) in [
            (&[0][..], 0),
            (&[0x3f], 63),
            (&[0x40], -64),
            (&[0x7f], -1),
            (&[0xff, 0x00], 127),
            (&[0x80, 0x7f], -128),
            (
                &[0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x7f],
                i64::MIN,
            ),
        ] {
            assert_eq!(Reader::new(bytes).signed().unwrap(), wanted, "{bytes:?}");
        }
    }

    /// What is longer than it can be, or ends before its end, is nothing.
    #[test]
    fn numbers_have_an_end() {
        for bytes in [&[][..], &[0x80], &[0xff; 11], &[0x80; 30]] {
            assert!(Reader::new(bytes).number().is_err());
            assert!(Reader::new(bytes).signed().is_err());
            assert!(Reader::new(bytes).huge().is_err());
        }
        let too_large = [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x02];
        assert!(Reader::new(&too_large).number().is_err());
        assert_eq!(
            Reader::new(&[0x80, 0x01, 0x05, 9]).huge().unwrap(),
            [0x80, 1, 5]
        );
    }

    /// A length is believed as far as there are bytes.
    #[test]
    fn lengths_do_not_lie() {
        assert!(Reader::new(&[3, 1, 2]).blob().is_err());
        assert_eq!(Reader::new(&[2, 1, 2]).blob().unwrap(), [1, 2]);
        assert!(Reader::new(&[2, 1, 2]).count(2).is_err());
        let endless = Writer::default().number(u64::MAX).finish();
        assert!(Reader::new(&endless).count(usize::MAX).is_err());
        assert!(Reader::new(&[1, 0xff]).text().is_err());
    }
}
