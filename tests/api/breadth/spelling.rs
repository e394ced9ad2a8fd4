//! How souk writes values in CSV, made from how databases write them.

use super::Row;

/// The records of CSV as RFC 4180 has it. A field that is empty is NULL; one of quotes alone is a text.
pub fn records(text: &str) -> Vec<Row> {
    let (mut records, mut record) = (Vec::new(), Row::new());
    let mut field: Option<String> = None;
    let mut is_quoted = false;
    let mut characters = text.chars().peekable();
    while let Some(character) = characters.next() {
        match character {
            '"' if is_quoted && characters.next_if_eq(&'"').is_some() => {
                field.get_or_insert_default().push('"');
            }
            '"' => {
                is_quoted = !is_quoted;
                field.get_or_insert_default();
            }
            ',' if !is_quoted => record.push(field.take()),
            '\r' if !is_quoted && characters.next_if_eq(&'\n').is_some() => {
                record.push(field.take());
                records.push(std::mem::take(&mut record));
            }
            character => field.get_or_insert_default().push(character),
        }
    }
    let is_whole = record.is_empty() && field.is_none() && !is_quoted;
    assert!(is_whole, "the last record has no end: {text}");
    records
}

/// A number by its digits: `1.50`, `15e-1` and `0.15E+1` are `15e-1`. What is no number stays what it is.
pub fn digits(text: &str) -> String {
    let (mantissa, exponent) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
    let (sign, mantissa) = match mantissa.strip_prefix('-') {
        Some(mantissa) => ("-", mantissa),
        None => ("", mantissa),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let all = format!("{whole}{fraction}");
    let (Ok(exponent), true) = (
        exponent.parse::<i64>(),
        all.bytes().all(|byte| byte.is_ascii_digit()),
    ) else {
        return text.to_owned();
    };
    let significant = all.trim_start_matches('0').trim_end_matches('0');
    let zeros = all.len() - all.trim_end_matches('0').len();
    let exponent = exponent - fraction.len() as i64 + zeros as i64;
    match significant {
        "" => format!("{sign}0"),
        significant => format!("{sign}{significant}e{exponent}"),
    }
}

/// `2026-02-28`, of PostgreSQL also `10000-01-01` and `0044-03-15 BC`.
pub fn day(text: &str) -> String {
    let (date, is_before) = match text.strip_suffix(" BC") {
        Some(date) => (date, true),
        None => (text, false),
    };
    let (year, rest) = date.split_once('-').expect("a day");
    let year: i64 = year.parse().expect("a year");
    // The year before the first one is 0.
    let year = if is_before { 1 - year } else { year };
    let sign = match year {
        ..0 => "-",
        0..=9_999 => "",
        _ => "+",
    };
    format!("{sign}{:04}-{rest}", year.abs())
}

/// `12:00`, `12:00:00`, `12:00:00.5`.
pub fn clock(text: &str) -> String {
    let (time, fraction) = text.split_once('.').unwrap_or((text, ""));
    let seconds = if time.len() == 5 { ":00" } else { "" };
    format!("{time}{seconds}.{fraction:0<6}")
}

/// A day and a time, with a blank or a `T` between them.
pub fn moment(text: &str) -> String {
    let (text, era) = match text.strip_suffix(" BC") {
        Some(text) => (text, " BC"),
        None => (text, ""),
    };
    let (date, time) = text.split_once([' ', 'T']).expect("a day and a time");
    format!("{}T{}", day(&format!("{date}{era}")), clock(time))
}

#[test]
fn numbers_are_their_digits() {
    for (text, expected) in [
        ("1.50", "15e-1"),
        ("0.15E+1", "15e-1"),
        ("1500", "15e2"),
        ("-0.0", "-0"),
        ("5e-324", "5e-324"),
        ("1e+20", "1e20"),
        ("100000000000000000000.0", "1e20"),
        ("NaN", "NaN"),
        ("-Infinity", "-Infinity"),
    ] {
        assert_eq!(digits(text), expected, "{text}");
    }
}
