//! What is left of an answer, and the values that are of so many bytes.

use souk_sdk::Error;
use souk_sdk::numbers::widened;
use souk_sdk::time::{DAYS, MOMENTS};

use crate::types::Type;

/// Digits of `DateTime64` that a timestamp keeps.
pub(super) const MICROS: u32 = 6;

#[cold]
pub fn malformed() -> Error {
    Error::source_failed(
        "bad_answer",
        "the server's answer is not what it says it is",
    )
}

/// What is left of an answer.
pub struct Reader<'a>(pub &'a [u8]);

impl<'a> Reader<'a> {
    #[inline]
    pub fn take(&mut self, count: usize) -> Result<&'a [u8], Error> {
        let (taken, rest) = self.0.split_at_checked(count).ok_or_else(malformed)?;
        self.0 = rest;
        Ok(taken)
    }

    #[inline]
    pub(super) fn array<const N: usize>(&mut self) -> Result<[u8; N], Error> {
        let (taken, rest) = self.0.split_first_chunk().ok_or_else(malformed)?;
        self.0 = rest;
        Ok(*taken)
    }

    #[inline]
    pub(super) fn u8(&mut self) -> Result<u8, Error> {
        Ok(self.array::<1>()?[0])
    }

    /// A length, seven bits at a time.
    #[inline]
    pub fn length(&mut self) -> Result<usize, Error> {
        // As that of almost every text.
        if let Some((byte, rest)) = self.0.split_first()
            && *byte < 0x80
        {
            self.0 = rest;
            return Ok(usize::from(*byte));
        }
        self.long_length()
    }

    fn long_length(&mut self) -> Result<usize, Error> {
        let mut value = 0u64;
        for shift in (0..63).step_by(7) {
            let byte = self.u8()?;
            value |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return usize::try_from(value).map_err(|_| malformed());
            }
        }
        Err(malformed())
    }

    #[inline]
    pub fn sized(&mut self) -> Result<&'a [u8], Error> {
        let length = self.length()?;
        self.take(length)
    }

    /// A number of up to eight bytes.
    pub(super) fn int(&mut self, bytes: usize, is_signed: bool) -> Result<i64, Error> {
        Ok(match (bytes, is_signed) {
            (1, true) => i64::from(i8::from_le_bytes(self.array()?)),
            (1, false) => i64::from(self.u8()?),
            (2, true) => i64::from(i16::from_le_bytes(self.array()?)),
            (2, false) => i64::from(u16::from_le_bytes(self.array()?)),
            (4, true) => i64::from(i32::from_le_bytes(self.array()?)),
            (4, false) => i64::from(u32::from_le_bytes(self.array()?)),
            (8, true) => i64::from_le_bytes(self.array()?),
            _ => return Err(malformed()),
        })
    }

    pub(super) fn float(&mut self, kind: &Type) -> Result<f64, Error> {
        Ok(match kind {
            Type::Float64 => f64::from_le_bytes(self.array()?),
            Type::Float32 => widened(f32::from_le_bytes(self.array()?)),
            _ => {
                let upper = u16::from_le_bytes(self.array()?);
                widened(f32::from_bits(u32::from(upper) << 16))
            }
        })
    }

    pub(super) fn days(&mut self, kind: &Type) -> Result<i32, Error> {
        match kind {
            Type::Date => Ok(i32::from(u16::from_le_bytes(self.array()?))),
            _ => match i32::from_le_bytes(self.array()?) {
                days if DAYS.contains(&i64::from(days)) => Ok(days),
                _ => Err(out_of_range()),
            },
        }
    }

    /// Microseconds.
    pub(super) fn moment(&mut self, kind: &Type) -> Result<i64, Error> {
        let (ticks, digits) = match kind {
            Type::DateTime64(digits) => (i64::from_le_bytes(self.array()?), *digits),
            _ => (i64::from(u32::from_le_bytes(self.array()?)), 0),
        };
        let scale = 10i64.pow(MICROS.saturating_sub(digits));
        let micros = ticks.checked_mul(scale);
        let micros = micros.filter(|micros| MOMENTS.contains(micros));
        micros.ok_or_else(out_of_range)
    }
}

/// 64 bits of them reach further than a column does.
#[cold]
fn out_of_range() -> Error {
    Error::source_failed(
        "year_out_of_range",
        "the result has a date or a moment of a year beyond 99999: read it with toString",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What no column has is the source's fault, and known before it is one.
    #[test]
    fn years_have_a_bound() {
        let moment = |ticks: i64, digits| {
            let bytes = ticks.to_le_bytes();
            Reader(&bytes).moment(&Type::DateTime64(digits))
        };
        let (first, last) = (*MOMENTS.start(), *MOMENTS.end());
        assert_eq!(moment(first, 6).unwrap(), first);
        assert_eq!(moment(last, 6).unwrap(), last);
        assert_eq!(moment(-1, 0).unwrap(), -1_000_000);
        for (ticks, digits) in [(first - 1, 6), (last + 1, 6), (i64::MIN, 6), (i64::MAX, 0)] {
            let error = moment(ticks, digits).unwrap_err();
            assert_eq!(error.code, "year_out_of_range", "{ticks} {digits}");
        }
        let days = |days: i32| Reader(&days.to_le_bytes()).days(&Type::Date32);
        assert_eq!(days(-1).unwrap(), -1);
        assert_eq!(days(i32::MAX).unwrap_err().code, "year_out_of_range");
    }
}
