//! Which type a column of texts gets: the one that shows each of its values as it stands in the file, or `text`.
//!
//! A column gets a type only if all of its values are written as that type writes them. So `007`, `1e5`, `+1` and `-0` make a column
//! `text`, and so do fractions of which some have zeros at their end and others have fewer digits (`1.10`, `1.9`: versions).

use super::moment::Moment;
use datafusion::arrow::datatypes::{DataType, TimeUnit};

/// Digits that a decimal holds.
const DIGITS_MAX: usize = 38;
/// Digits that a float keeps.
const FLOAT_DIGITS_MAX: usize = 15;

/// What all values of a column have been so far.
#[derive(Clone, Debug, Default)]
pub struct Profile {
    found: Option<Kind>,
    is_text: bool,
    whole: usize,
    fraction_min: usize,
    fraction_max: usize,
    /// Some fraction ends in a zero.
    padded: bool,
    /// Some whole number has more than 64 bits.
    is_wide: bool,
    /// Some number is written otherwise, which only JSON's are.
    is_float: bool,
    pub has_null: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Boolean,
    Number,
    Date,
    Local,
    Moment,
}

impl Profile {
    pub fn null(&mut self) {
        self.has_null = true;
    }

    /// A text as it stands in the file: what it says decides.
    pub fn text(&mut self, value: &str) {
        if !self.is_text {
            match kind_of(value) {
                Some(Kind::Number) => self.number(value),
                Some(kind) => self.agree(kind),
                None => self.is_text = true,
            }
        }
    }

    /// A text that is one, like JSON's: a number in it stays a text.
    pub fn quoted(&mut self, value: &str) {
        match kind_of(value) {
            _ if self.is_text => {}
            Some(kind @ (Kind::Date | Kind::Local | Kind::Moment)) => self.agree(kind),
            _ => self.is_text = true,
        }
    }

    pub fn boolean(&mut self) {
        self.agree(Kind::Boolean);
    }

    /// Digits with perhaps a sign and a point, as [`is_number`] takes them.
    pub fn number(&mut self, value: &str) {
        let (whole, fraction) = parts(value);
        let first = self.found.is_none();
        self.agree(Kind::Number);
        self.whole = self.whole.max(whole.len());
        self.fraction_min = if first {
            fraction.len()
        } else {
            self.fraction_min.min(fraction.len())
        };
        self.fraction_max = self.fraction_max.max(fraction.len());
        // Programs write `100.0` of a float.
        self.padded |= fraction.len() > 1 && fraction.ends_with('0');
        self.is_wide |= whole.len() >= 19 && fraction.is_empty() && value.parse::<i64>().is_err();
    }

    /// A number of JSON's: zeros at the end of a fraction say nothing there, and powers of ten make a float.
    pub fn json_number(&mut self, value: &str) {
        match is_number(value) {
            true => self.number(value),
            false if !is_float(value) => self.other(),
            false => {
                let digits = value
                    .bytes()
                    .take_while(|byte| !matches!(byte, b'e' | b'E'));
                let digits = digits.filter(u8::is_ascii_digit).count();
                self.agree(Kind::Number);
                self.is_float = true;
                self.whole = self.whole.max(digits);
            }
        }
        self.padded = false;
    }

    /// None of the types: what there is is kept as it is written.
    pub fn other(&mut self) {
        self.is_text = true;
    }

    fn agree(&mut self, kind: Kind) {
        match self.found {
            None => self.found = Some(kind),
            Some(found) => self.is_text |= found != kind,
        }
    }

    pub fn data_type(&self) -> DataType {
        match self.found {
            _ if self.is_text => DataType::Utf8,
            None => DataType::Utf8,
            Some(Kind::Boolean) => DataType::Boolean,
            Some(Kind::Date) => DataType::Date32,
            Some(Kind::Local) => DataType::Timestamp(TimeUnit::Microsecond, None),
            Some(Kind::Moment) => DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into())),
            Some(Kind::Number) => self.numeric(),
        }
    }

    fn numeric(&self) -> DataType {
        let digits = self.whole + self.fraction_max;
        let differ = self.fraction_min != self.fraction_max;
        match self.fraction_max {
            _ if self.is_float && digits <= FLOAT_DIGITS_MAX => DataType::Float64,
            _ if self.is_float => DataType::Utf8,
            _ if digits > DIGITS_MAX || differ && self.padded => DataType::Utf8,
            0 if !self.is_wide => DataType::Int64,
            scale => DataType::Decimal128(digits as u8, scale as i8),
        }
    }
}

fn kind_of(value: &str) -> Option<Kind> {
    match value.as_bytes() {
        b"true" | b"false" => Some(Kind::Boolean),
        [b'-' | b'0'..=b'9', ..] if is_number(value) => Some(Kind::Number),
        [b'0'..=b'9', ..] => Moment::parse(value).map(kind_of_moment),
        _ => None,
    }
}

fn kind_of_moment(moment: Moment) -> Kind {
    match (moment.micros, moment.offset_minutes) {
        (None, _) => Kind::Date,
        (Some(_), None) => Kind::Local,
        (Some(_), Some(_)) => Kind::Moment,
    }
}

/// Whether it is written as a number is: `0`, `-5`, `1.50`, and not `007`, `1e5`, `.5`, `5.`, `-0`.
pub fn is_number(value: &str) -> bool {
    let unsigned = value.strip_prefix('-').unwrap_or(value);
    let (whole, fraction) = unsigned.split_once('.').unwrap_or((unsigned, "0"));
    let digits = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    let is_minus_zero =
        value.starts_with('-') && !value.bytes().any(|byte| matches!(byte, b'1'..=b'9'));
    digits(whole) && digits(fraction) && (whole == "0" || !whole.starts_with('0')) && !is_minus_zero
}

/// Whether a float of 64 bits has all its digits: not what it makes infinite or zero of, nor what it keeps but some digits of.
fn is_float(value: &str) -> bool {
    let digits = value.split(['e', 'E']).next().unwrap_or_default();
    let is_zero = !digits.bytes().any(|byte| matches!(byte, b'1'..=b'9'));
    let float = value.parse::<f64>();
    float.is_ok_and(|float| float.is_normal() || is_zero)
}

fn parts(value: &str) -> (&str, &str) {
    let unsigned = value.strip_prefix('-').unwrap_or(value);
    unsigned.split_once('.').unwrap_or((unsigned, ""))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(values: &[&str]) -> DataType {
        let mut profile = Profile::default();
        values.iter().for_each(|value| profile.text(value));
        profile.data_type()
    }

    fn decimal(precision: u8, scale: i8) -> DataType {
        DataType::Decimal128(precision, scale)
    }

    #[test]
    fn numbers_are_those_that_are_written_so() {
        assert_eq!(of(&["0", "-5", "9223372036854775807"]), DataType::Int64);
        assert_eq!(of(&["1", "9223372036854775808"]), decimal(19, 0));
        assert_eq!(of(&["1.50", "20.25"]), decimal(4, 2));
        assert_eq!(of(&["19.99", "5", "3.5"]), decimal(4, 2));
        assert_eq!(of(&["100.0", "0.125"]), decimal(6, 3));
        // Versions, numbers of articles, what a program wrote of a float, and more digits than there are.
        for values in [
            &["1.10", "1.9"][..],
            &["007"],
            &["1", "007"],
            &["1e5"],
            &["+1"],
            &["-0"],
            &["-0.0"],
            &["1."],
            &[".5"],
            &["1 000"],
            &["NaN"],
            &["123456789012345678901234567890123456789"],
        ] {
            assert_eq!(of(values), DataType::Utf8, "{values:?}");
        }
    }

    #[test]
    fn dates_and_times_are_those_of_the_calendar() {
        let local = DataType::Timestamp(TimeUnit::Microsecond, None);
        let moment = DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into()));
        assert_eq!(of(&["2024-02-29", "1999-12-31"]), DataType::Date32);
        assert_eq!(
            of(&["2024-02-29 00:00:00", "2024-02-29T23:59:59.999999"]),
            local
        );
        assert_eq!(
            of(&["2024-02-29T00:00:00Z", "2024-02-29 01:00:00.5+01:00"]),
            moment
        );
        for values in [
            &["2023-02-29"][..],
            &["2024-1-1"],
            &["2024-01-01", "2024-01-01 00:00:00"],
            &["2024-01-01 24:00:00"],
            &["2024-01-01 00:00:60"],
            &["2024-01-01 00:00:00.1234567"],
            &["2024-01-01 00:00:00", "2024-01-01 00:00:00Z"],
            &["0000-01-01"],
            &["2024-01-01 00:00"],
            &["é024-01-01"],
        ] {
            assert_eq!(of(values), DataType::Utf8, "{values:?}");
        }
    }

    #[test]
    fn what_is_not_certain_is_text() {
        assert_eq!(of(&["true", "false"]), DataType::Boolean);
        for values in [&[][..], &["True"], &["true", "1"], &["1", "x"], &["x", "1"]] {
            assert_eq!(of(values), DataType::Utf8, "{values:?}");
        }
        let mut quoted = Profile::default();
        quoted.quoted("12");
        assert_eq!(quoted.data_type(), DataType::Utf8);
        for (values, kind) in [
            (&["1", "2.50", "3.125"][..], decimal(4, 3)),
            (&["1e-05", "0.25"], DataType::Float64),
            (&["1e-05", "1234567890123456789"], DataType::Utf8),
        ] {
            let mut profile = Profile::default();
            values.iter().for_each(|value| profile.json_number(value));
            assert_eq!(profile.data_type(), kind, "{values:?}");
        }
    }
}
