//! How a source writes its times, and how what follows them is written likewise.
//!
//! Knows times only: microseconds since 1970, on the clock that the source shows. Start reading at [`Written`].

use jiff::civil::DateTime;
use souk_domain::time::Timestamp;
use souk_sandbox::ColumnKind;

/// Where a time of day begins.
const TIME_AT: usize = "2026-01-31T".len();
const SECONDS_LENGTH: usize = "2026-01-31T12:00:00".len();
/// Nobody writes more digits than those of nanoseconds.
const LENGTH_MAX: usize = "2026-01-31T12:00:00.000000000".len();

pub(super) enum Written {
    Date,
    /// With a `Z`.
    Moment,
    /// What a clock showed, without a zone.
    Reading,
    /// As a text.
    Like(Form),
}

/// What is the same in the next text.
pub(super) struct Form {
    /// A `T` or a blank.
    between: char,
    /// Without the zone: `2026-01` has seven letters.
    length: usize,
    zone: String,
    /// How much later its clock is than one in UTC.
    ahead: i64,
}

impl Written {
    /// In a column of `kind`; of texts those with the most digits say how.
    pub(super) fn of<'a>(kind: ColumnKind, texts: impl Iterator<Item = &'a str>) -> Written {
        match kind {
            ColumnKind::Date => Written::Date,
            ColumnKind::Timestamp => Written::Moment,
            ColumnKind::LocalTimestamp => Written::Reading,
            _ => match texts.max_by_key(|text| (text.len(), *text)) {
                Some(text) => Written::like(text),
                None => Written::Moment,
            },
        }
    }

    fn like(text: &str) -> Written {
        match Form::of(text) {
            Some(form) => Written::Like(form),
            None if text.parse::<jiff::Timestamp>().is_ok() => Written::Moment,
            None => Written::Reading,
        }
    }

    /// The time of a text, by the clock that times are written by here.
    pub(super) fn read(&self, text: &str) -> Option<i64> {
        let ahead = match self {
            Written::Like(form) => form.ahead,
            _ => 0,
        };
        Some(instant(text)? + ahead)
    }

    pub(super) fn write(&self, at: i64) -> String {
        let at = Timestamp::from_micros(at);
        match self {
            Written::Date => at.date(),
            Written::Moment => at.to_string(),
            Written::Reading => without_zone(at),
            Written::Like(form) => form.write(at),
        }
    }
}

impl Form {
    /// `None` where it is one that cannot be repeated, such as `20260131T120000Z`.
    fn of(text: &str) -> Option<Form> {
        if !text.is_ascii() {
            return None;
        }
        let is_of_time = |char: char| char.is_ascii_digit() || char == ':' || char == '.';
        let time = text.get(TIME_AT..).unwrap_or_default();
        let length = match time.find(|char| !is_of_time(char)) {
            Some(at) => TIME_AT + at,
            None => text.len(),
        };
        let (shown, zone) = text.split_at(length);
        let shown = reading(shown)?;
        let form = Form {
            between: text.chars().nth(TIME_AT - 1).unwrap_or('T'),
            length,
            zone: zone.to_owned(),
            ahead: shown - instant(text)?,
        };
        // A zone is repeated as it stands: nothing but a zone.
        let is_zone = zone
            .chars()
            .all(|char| char.is_ascii_digit() || "+-:Zz".contains(char));
        (is_zone && form.write(Timestamp::from_micros(shown)) == text).then_some(form)
    }

    fn write(&self, at: Timestamp) -> String {
        let mut text = without_zone(at);
        if text.len() == SECONDS_LENGTH {
            text.push('.');
        }
        while text.len() < LENGTH_MAX {
            text.push('0');
        }
        text.replace_range(TIME_AT - 1..TIME_AT, &self.between.to_string());
        text.truncate(self.length);
        text + &self.zone
    }
}

/// A fraction only where there is one.
fn without_zone(at: Timestamp) -> String {
    let mut text = at.to_string();
    text.pop();
    text
}

/// ISO 8601 with or without a time and an offset; without one it is UTC. Also `2026-01` and `2026`.
pub(super) fn instant(text: &str) -> Option<i64> {
    match text.parse::<jiff::Timestamp>() {
        Ok(at) => Some(at.as_microsecond()),
        Err(_) => reading(text),
    }
}

/// What a clock showed, as one in UTC would show it.
fn reading(text: &str) -> Option<i64> {
    let padded = match text.len() {
        4 => format!("{text}-01-01"),
        7 => format!("{text}-01"),
        _ => text.to_owned(),
    };
    let reading: DateTime = padded.parse().ok()?;
    let at = reading.to_zoned(jiff::tz::TimeZone::UTC).ok()?;
    Some(at.timestamp().as_microsecond())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A second later than the last of the texts, as they are written.
    fn next(texts: &[&str]) -> String {
        let written = Written::of(ColumnKind::Text, texts.iter().copied());
        let times = texts.iter().map(|text| written.read(text).unwrap());
        written.write(times.max().unwrap() + 1_000_000)
    }

    /// What follows a text is written like it: its digits, its blank, its zone, which nobody made up.
    #[test]
    fn times_are_written_as_they_were() {
        for (text, expected) in [
            ("2026-01-31 23:59:59", "2026-02-01 00:00:00"),
            ("2026-01-31T23:59:59", "2026-02-01T00:00:00"),
            ("2026-01-31T23:59:59Z", "2026-02-01T00:00:00Z"),
            ("2026-01-31T23:59:59.50Z", "2026-02-01T00:00:00.50Z"),
            ("2026-01-31 23:59:59.123456", "2026-02-01 00:00:00.123456"),
            ("2026-01-31T23:59:59+02:00", "2026-02-01T00:00:00+02:00"),
            (
                "2026-01-31T23:59:59.000-05:30",
                "2026-02-01T00:00:00.000-05:30",
            ),
            ("2026-01-31T23:59", "2026-01-31T23:59"),
            ("2026-01-31", "2026-01-31"),
            ("2026-01", "2026-01"),
            ("2026", "2026"),
            // What cannot be repeated is written as ISO 8601 has it.
            ("20260131T235959Z", "2026-02-01T00:00:00Z"),
            ("20260131T235959", "2026-02-01T00:00:00"),
        ] {
            assert_eq!(next(&[text]), expected);
        }
    }

    /// Where texts differ those with the most digits say how, and of these the last.
    #[test]
    fn the_longest_text_says_how() {
        let texts = [
            "2026-01-01",
            "2026-01-01T06:00:00+01:00",
            "2026-01-01T06:00:00+02:00",
        ];
        assert_eq!(next(&texts), "2026-01-01T07:00:01+02:00");
        assert!(
            Written::of(ColumnKind::Text, [].into_iter())
                .read("no time")
                .is_none()
        );
    }
}
