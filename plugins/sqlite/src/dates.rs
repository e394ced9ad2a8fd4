//! Dates and times as SQLite's own functions write them, without loss or not at all.

use souk_sdk::time::{DAY_US, Date, TimeOfDay};

/// `YYYY-MM-DD` as days since 1970-01-01.
pub fn date(text: &[u8]) -> Option<i32> {
    let [y0, y1, y2, y3, b'-', m0, m1, b'-', d0, d1] = *text else {
        return None;
    };
    let year = number(&[y0, y1, y2, y3])?;
    let (month, day) = (number(&[m0, m1])?, number(&[d0, d1])?);
    Some(Date::new(year, month as u8, day as u8)?.days() as i32)
}

/// `HH:MM[:SS[.ffffff]]` as microseconds since midnight.
pub fn time(text: &[u8]) -> Option<i64> {
    let (clock, fraction) = match text.iter().position(|&byte| byte == b'.') {
        Some(dot) => (&text[..dot], Some(&text[dot + 1..])),
        None => (text, None),
    };
    let (hour, minute, second) = match *clock {
        [h0, h1, b':', m0, m1] if fraction.is_none() => (number(&[h0, h1])?, number(&[m0, m1])?, 0),
        [h0, h1, b':', m0, m1, b':', s0, s1] => {
            (number(&[h0, h1])?, number(&[m0, m1])?, number(&[s0, s1])?)
        }
        _ => return None,
    };
    let micros = match fraction {
        None => 0,
        Some(digits) if (1..=6).contains(&digits.len()) => {
            number(digits)? * 10_i64.pow(6 - digits.len() as u32)
        }
        Some(_) => return None,
    };
    let valid = hour < 24 && minute < 60 && second < 60;
    valid.then_some(((hour * 60 + minute) * 60 + second) * 1_000_000 + micros)
}

/// `YYYY-MM-DD HH:MM[:SS[.ffffff]]Z`, with a blank or a `T`, as microseconds since 1970-01-01T00:00:00Z.
pub fn timestamp(text: &[u8]) -> Option<i64> {
    local_timestamp(text.strip_suffix(b"Z")?)
}

/// The same without the `Z`: of a clock of which nobody knows where it hangs.
pub fn local_timestamp(text: &[u8]) -> Option<i64> {
    let (day, clock) = text.split_at_checked(10)?;
    let clock = clock
        .strip_prefix(b" ")
        .or_else(|| clock.strip_prefix(b"T"))?;
    Some(i64::from(date(day)?) * DAY_US + time(clock)?)
}

/// `YYYY-MM-DD`; nothing outside the years that SQLite knows.
pub fn write_date(days: i64) -> Option<String> {
    let date = Date::from_days(days);
    (0..=9999).contains(&date.year).then(|| date.to_string())
}

/// `YYYY-MM-DD HH:MM:SS[.ffffff]`.
pub fn write_timestamp(micros: i64) -> Option<String> {
    let date = write_date(micros.div_euclid(DAY_US))?;
    Some(format!("{date} {}", write_time(micros.rem_euclid(DAY_US))))
}

/// `HH:MM:SS[.ffffff]`.
pub fn write_time(micros: i64) -> String {
    let clock = TimeOfDay(micros).to_string();
    clock
        .strip_suffix(".000000")
        .map_or(clock.clone(), str::to_owned)
}

fn number(digits: &[u8]) -> Option<i64> {
    digits.iter().try_fold(0, |value, digit| {
        digit
            .is_ascii_digit()
            .then(|| value * 10 + i64::from(digit - b'0'))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every day that SQLite can write comes back as itself.
    #[test]
    fn dates_round_trip() {
        for days in date(b"0000-01-01").unwrap()..=date(b"9999-12-31").unwrap() {
            assert_eq!(
                date(write_date(days.into()).unwrap().as_bytes()),
                Some(days)
            );
        }
        assert_eq!(date(b"2000-02-29"), Some(11_016));
        assert_eq!(write_date(i32::MAX.into()), None);
    }

    #[test]
    fn what_is_no_date_stays_text() {
        for text in [
            "2023-02-29",
            "2023-13-01",
            "2023-00-10",
            "2023-1-1",
            "20230101",
            "2023-01-01 ",
            "+023-01-01",
        ] {
            assert_eq!(date(text.as_bytes()), None, "{text}");
        }
    }

    #[test]
    fn times_and_timestamps() {
        assert_eq!(time(b"23:59:59.000001"), Some(86_399_000_001));
        assert_eq!(time(b"01:02"), Some(3_720_000_000));
        for text in [
            "24:00",
            "1:00",
            "10:60:00",
            "10:00:00.",
            "10:00:00.1234567",
            "10:00.5",
        ] {
            assert_eq!(time(text.as_bytes()), None, "{text}");
        }
        assert_eq!(timestamp(b"1969-12-31T23:59:59.5Z"), Some(-500_000));
        assert_eq!(timestamp(b"1969-12-31T23:59:59.5"), None);
        assert_eq!(local_timestamp(b"1969-12-31 23:59:59.5"), Some(-500_000));
        assert_eq!(local_timestamp(b"1969-12-31 23:59:59.5Z"), None);
        assert_eq!(local_timestamp(b"1970-01-01"), None);
        assert_eq!(write_time(30_600_000_000), "08:30:00");
        assert_eq!(write_time(1), "00:00:00.000001");
        assert_eq!(timestamp(b"1970-01-01 00:00:00+01:00"), None);
        assert_eq!(
            write_timestamp(-500_000).as_deref(),
            Some("1969-12-31 23:59:59.500000")
        );
        assert_eq!(write_timestamp(0).as_deref(), Some("1970-01-01 00:00:00"));
    }
}
