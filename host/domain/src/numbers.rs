//! Numbers as they are written, in JSON or in an address: which of them are floats of 64 bits, and how they compare, digit for digit.
//!
//! Refuses to know parameters. Start reading at [`read`].

use std::cmp::Ordering;
use std::fmt::{self, Write};

/// Digits that a number may have which no float is, the zeros of its exponent among them. Of engines only PostgreSQL has numbers of more than a hundred.
pub const DIGITS_MAX: usize = 1_000;
/// No two numbers with so few digits are shown as the same float.
pub const SHORT_BYTES_MAX: usize = 15;
/// No text has so many digits that an exponent beyond this would matter less.
const EXPONENT_MAX: i64 = 1 << 40;
/// Whole numbers up to this are floats, and shown as themselves.
const WHOLE_MAX: u64 = 1 << 53;
/// `-2.2250738585072014e-308` has 24.
const SHORTEST_BYTES_MAX: usize = 32;

pub(crate) const NO_NUMBER: &str = "must be a number";
const OUT_OF_RANGE: &str =
    "must be a number between -1.7976931348623157e308 and 1.7976931348623157e308";
const TOO_MANY_DIGITS: &str =
    "must be a number that a 64-bit float holds, or one of at most 1000 digits";

/// A number that was read.
#[derive(Clone, Debug, PartialEq)]
pub enum Number {
    /// The float whose shortest digits say it, or its 17 digits.
    Float(f64),
    /// What no float is: in plain digits, without an exponent, and without zeros that say nothing.
    Digits(String),
}

/// The number that this text says. The error is what it should have been.
pub fn read(text: &str) -> Result<Number, &'static str> {
    let float = float(text)?;
    if text.len() <= SHORT_BYTES_MAX && float.is_normal() {
        return Ok(Number::Float(float));
    }
    let written = Written::of(text);
    let is_it = |shown: &str| written.against(Written::of(shown)) == Ordering::Equal;
    // Many programs write 0.1 with as many digits as tell every float apart: 0.10000000000000001.
    match is_it(Shortest::of(float).text()) || is_it(&format!("{float:.16e}")) {
        true => Ok(Number::Float(float)),
        false => written.plain().map(Number::Digits).ok_or(TOO_MANY_DIGITS),
    }
}

/// The same of a whole number.
pub fn whole(value: i64) -> Result<Number, &'static str> {
    match value.unsigned_abs() <= WHOLE_MAX {
        true => Ok(Number::Float(value as f64)),
        false => read(&value.to_string()),
    }
}

/// The finite float that is nearest to the number. The error is what it should have been.
pub fn float(text: &str) -> Result<f64, &'static str> {
    match text.parse::<f64>() {
        Ok(float) if float.is_finite() => Ok(float),
        // `inf` and `NaN` are read, too.
        Ok(_) if text.bytes().any(|byte| byte.is_ascii_digit()) => Err(OUT_OF_RANGE),
        _ => Err(NO_NUMBER),
    }
}

/// How two compare of which no float is one.
pub fn order(one: &str, other: &str) -> Ordering {
    Written::of(one).against(Written::of(other))
}

/// How the number that a float is shown as compares with one that no float is.
pub fn order_of_float(float: f64, digits: &str) -> Ordering {
    Written::of(Shortest::of(float).text()).against(Written::of(digits))
}

/// The digits of a number, and where its point stands.
#[derive(Clone, Copy)]
struct Written<'a> {
    is_negative: bool,
    /// Those before the point as it was written, and those behind it: together they neither begin nor end with a zero, and zero has none.
    parts: [&'a str; 2],
    /// How many of them stand before the point, its exponent applied.
    point: i64,
}

impl<'a> Written<'a> {
    /// Of a text that was read as a finite float.
    fn of(text: &'a str) -> Written<'a> {
        let (mantissa, exponent) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
        let is_negative = mantissa.starts_with('-');
        let mantissa = mantissa.trim_start_matches(['-', '+']);
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let mut whole = whole.trim_start_matches('0');
        let mut fraction = fraction.trim_end_matches('0');
        let mut point = exponent_of(exponent) + whole.len() as i64;
        if whole.is_empty() {
            let rest = fraction.trim_start_matches('0');
            point -= (fraction.len() - rest.len()) as i64;
            fraction = rest;
        }
        if fraction.is_empty() {
            whole = whole.trim_end_matches('0');
        }
        Written {
            is_negative,
            parts: [whole, fraction],
            point,
        }
    }

    fn digits(self) -> impl Iterator<Item = u8> {
        let [whole, fraction] = self.parts;
        whole.bytes().chain(fraction.bytes())
    }

    fn count(self) -> usize {
        self.parts[0].len() + self.parts[1].len()
    }

    /// Zero has no sign.
    fn sign(self) -> i8 {
        match (self.count(), self.is_negative) {
            (0, _) => 0,
            (_, true) => -1,
            (_, false) => 1,
        }
    }

    fn against(self, other: Written<'_>) -> Ordering {
        let by_sign = self.sign().cmp(&other.sign());
        if by_sign.is_ne() || self.sign() == 0 {
            return by_sign;
        }
        let by_point = self.point.cmp(&other.point);
        let by_size = by_point.then_with(|| self.digits().cmp(other.digits()));
        match self.is_negative {
            true => by_size.reverse(),
            false => by_size,
        }
    }

    /// Without an exponent, if there are not too many digits then.
    fn plain(self) -> Option<String> {
        let count = self.count();
        let behind = (count as i64 - self.point).max(0);
        let all = self.point.max(1) + behind;
        if usize::try_from(all).ok()? > DIGITS_MAX {
            return None;
        }
        let digits: String = self.digits().map(char::from).collect();
        let sign = if self.is_negative { "-" } else { "" };
        Some(match usize::try_from(self.point) {
            Ok(point) if point >= count => format!("{sign}{digits}{}", "0".repeat(point - count)),
            Ok(point) if point > 0 => format!("{sign}{}.{}", &digits[..point], &digits[point..]),
            _ => {
                let width = behind as usize;
                format!("{sign}0.{digits:0>width$}")
            }
        })
    }
}

/// One beyond all reason is told from others by its sign only.
fn exponent_of(text: &str) -> i64 {
    let furthest = match text.starts_with('-') {
        true => -EXPONENT_MAX,
        false => EXPONENT_MAX,
    };
    let exponent = text.parse().unwrap_or(furthest);
    exponent.clamp(-EXPONENT_MAX, EXPONENT_MAX)
}

/// The shortest digits that say a float, as `-1.5e-7`. In place, because it is made of nearly every number that is given.
struct Shortest {
    bytes: [u8; SHORTEST_BYTES_MAX],
    length: usize,
}

impl Shortest {
    fn of(float: f64) -> Shortest {
        let mut shortest = Shortest {
            bytes: [0; SHORTEST_BYTES_MAX],
            length: 0,
        };
        // There is room for all that there are.
        let _ = write!(shortest, "{float:e}");
        shortest
    }

    fn text(&self) -> &str {
        std::str::from_utf8(&self.bytes[..self.length]).unwrap_or_default()
    }
}

impl Write for Shortest {
    fn write_str(&mut self, part: &str) -> fmt::Result {
        let end = self.length + part.len();
        let place = self.bytes.get_mut(self.length..end).ok_or(fmt::Error)?;
        place.copy_from_slice(part.as_bytes());
        self.length = end;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn digits(text: &str) -> Result<Number, &'static str> {
        Ok(Number::Digits(text.to_owned()))
    }

    /// Which number is a float and which is not depends on nothing but the number, however it is written.
    #[test]
    fn what_a_float_says_is_one() {
        for (text, float) in [
            ("7", 7.0),
            ("+7.", 7.0),
            (".5", 0.5),
            ("1e3", 1_000.0),
            ("62.572030410805404", 62.572030410805404),
            ("0.10000000000000001", 0.1),
            ("1.1000000000000001", 1.1),
            ("9007199254740992", 9_007_199_254_740_992.0),
            ("1000000000000000000", 1e18),
            ("1.00000000000000000000000000", 1.0),
            ("0.00000000000000000000000000e5", 0.0),
            ("0e-99999999999999999999", 0.0),
            ("1.7976931348623157e308", f64::MAX),
            ("5e-324", 5e-324),
            ("-2.2250738585072014E-308", -f64::MIN_POSITIVE),
        ] {
            assert_eq!(read(text), Ok(Number::Float(float)), "{text}");
        }
        let zero = read("-0");
        assert!(matches!(zero, Ok(Number::Float(zero)) if zero.is_sign_negative()));
    }

    /// Everything else keeps its digits, in plain ones.
    #[test]
    fn what_no_float_says_keeps_its_digits() {
        for (text, plain) in [
            ("1.0000000000000000001", "1.0000000000000000001"),
            ("9007199254740993", "9007199254740993"),
            ("+009007199254740993.00", "9007199254740993"),
            ("12345678901234567890.123", "12345678901234567890.123"),
            ("-1234567890123456789e2", "-123456789012345678900"),
            ("-1234567890123456789E-2", "-12345678901234567.89"),
            ("1234567890123456789e-21", "0.001234567890123456789"),
            ("1152921504606846977", "1152921504606846977"),
            // The nearest float is 2^60, which is shown as 1152921504606847000.
            ("1152921504606846976", "1152921504606846976"),
        ] {
            assert_eq!(read(text), digits(plain), "{text}");
        }
        let tiny = format!("0.{}1", "0".repeat(399));
        assert_eq!(read("1e-400"), digits(&tiny));
        assert_eq!(whole(i64::MAX), digits("9223372036854775807"));
        assert_eq!(whole(-3), Ok(Number::Float(-3.0)));
        assert_eq!(whole(1 << 60), digits("1152921504606846976"));
    }

    /// What has no end, or too many digits, is told as what it is.
    #[test]
    fn what_is_no_number_here_is_refused() {
        for text in [
            "",
            "x",
            "inf",
            "-Infinity",
            "NaN",
            "1,5",
            "0x10",
            "1e",
            "--1",
        ] {
            assert_eq!(read(text), Err(NO_NUMBER), "{text}");
        }
        for text in ["1e400", "-1e309", "1e99999999999999999999"] {
            assert_eq!(read(text), Err(OUT_OF_RANGE), "{text}");
        }
        let long = |count: usize| format!("0.{}", "7".repeat(count));
        assert_eq!(read(&long(DIGITS_MAX - 1)), digits(&long(DIGITS_MAX - 1)));
        for text in [
            long(DIGITS_MAX).as_str(),
            "1e-1000",
            "1e-99999999999999999999",
        ] {
            assert_eq!(read(text), Err(TOO_MANY_DIGITS), "{text}");
        }
        assert!(TOO_MANY_DIGITS.contains(&DIGITS_MAX.to_string()));
    }

    /// Numbers compare as numbers.
    #[test]
    fn numbers_are_in_order() {
        let ascending = [
            "-12345678901234567890.5",
            "-1.0000000000000000001",
            "-0.00000000000000000000000000012345678901234567890",
            "0.99999999999999999999",
            "1.0000000000000000001",
            "1.00000000000000000011",
            "9007199254740993",
            "12345678901234567890.123",
        ];
        for pair in ascending.windows(2) {
            assert_eq!(order(pair[0], pair[1]), Ordering::Less, "{pair:?}");
            assert_eq!(order(pair[1], pair[0]), Ordering::Greater, "{pair:?}");
        }
        for (float, digits, expected) in [
            (1.0, "1.0000000000000000001", Ordering::Less),
            (-1.0, "-1.0000000000000000001", Ordering::Greater),
            (0.0, "-0.99999999999999999999", Ordering::Greater),
            (9_007_199_254_740_992.0, "9007199254740993", Ordering::Less),
            (0.1, "0.10000000000000000555", Ordering::Less),
            (1e300, "9007199254740993", Ordering::Greater),
        ] {
            assert_eq!(order_of_float(float, digits), expected, "{float} {digits}");
        }
    }

    proptest! {
        /// A float that is written is read as itself, however it is written.
        #[test]
        fn a_float_is_read_as_itself(bits in any::<u64>()) {
            let float = f64::from_bits(bits);
            prop_assume!(float.is_finite());
            for text in [float.to_string(), format!("{float:e}"), format!("{float:?}000e0")] {
                // `{:?}` has an exponent of its own where it is needed.
                if text.matches('e').count() < 2 {
                    prop_assert_eq!(read(&text), Ok(Number::Float(float)));
                }
            }
        }

        /// What keeps its digits is read from them as the same.
        #[test]
        fn digits_are_read_as_themselves(whole in any::<i64>(), fraction in 1u64.., exponent in -30i32..30) {
            let Ok(Number::Digits(plain)) = read(&format!("{whole}.{fraction}e{exponent}")) else {
                return Ok(());
            };
            prop_assert_eq!(read(&plain), Ok(Number::Digits(plain.clone())));
            prop_assert_eq!(order(&plain, &format!("{whole}.{fraction}e{exponent}")), Ordering::Equal);
        }
    }
}
