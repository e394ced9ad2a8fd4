use souk_domain::time::DAY_MICROS;
use souk_sandbox::{ColumnData, ColumnKind, Output};

use super::Point;
use crate::definition::{Prediction, Privacy};
use crate::release::tests::{output, policy, refused, texts};
use crate::release::{Insight, Policy, ResultKind};

/// 2025-01-06.
const MONDAY: i32 = 20_094;
/// Of 140 days.
const MISSING: [usize; 5] = [20, 47, 75, 103, 131];

fn prediction() -> Policy {
    policy(ResultKind::Prediction(Prediction::default()))
}

fn points(policy: &Policy, output: &Output) -> Vec<Point> {
    let Insight::Forecast(forecast) = policy.release(output).unwrap().insight else {
        panic!("no forecast");
    };
    forecast.points
}

/// What is sold on each of these days: much from Monday to Friday, some on Saturdays, nothing on Sundays.
fn sales(days: &[usize]) -> Output {
    let week = [100.0, 100.0, 100.0, 100.0, 100.0, 10.0, 0.0];
    let noise = |day: usize| ((day * 7919) % 13) as f64 / 13.0 - 0.5;
    let values = days.iter().map(|day| week[day % 7] + noise(*day)).collect();
    let units = days
        .iter()
        .map(|day| if MISSING.contains(day) { 4 } else { 5 });
    let dates = days.iter().map(|day| MONDAY + *day as i32).collect();
    output(
        vec![
            ("day", ColumnKind::Date, ColumnData::I32s(dates)),
            ("sold", ColumnKind::Float64, ColumnData::F64s(values)),
            (
                "buyers",
                ColumnKind::Int64,
                ColumnData::I64s(units.collect()),
            ),
        ],
        days.len() as u32,
    )
}

/// The column has NULL in these rows.
fn set_null(output: &mut Output, column: usize, rows: &[usize]) {
    let batch = &mut output.batches[0];
    let mut bits = vec![0xff_u8; (batch.rows as usize).div_ceil(8)];
    for row in rows {
        bits[*row / 8] &= !(1_u8 << (*row % 8));
    }
    batch.chunks[column].validity = Some(bits);
}

/// Times of that distance, and any value at each.
fn every(kind: ColumnKind, step: i64, rows: i64) -> Output {
    let first = i64::from(MONDAY) * DAY_MICROS;
    let times = (0..rows).map(|row| first + row * step).collect();
    let values = (0..rows).map(|row| (row * 7919 % 13) as f64).collect();
    output(
        vec![
            ("at", kind, ColumnData::I64s(times)),
            ("value", ColumnKind::Float64, ColumnData::F64s(values)),
        ],
        rows as u32,
    )
}

/// Whether a day is NULL, has no row or is withheld by privacy: Saturdays stay Saturdays.
#[test]
fn a_missing_day_shifts_no_season() {
    let days: Vec<usize> = (0..140).collect();
    let mut null = sales(&days);
    set_null(&mut null, 1, &MISSING);
    let kept: Vec<usize> = days
        .iter()
        .copied()
        .filter(|day| !MISSING.contains(day))
        .collect();
    let policy = Policy {
        privacy: Some(Privacy {
            min_group_size: 5,
            privacy_unit_column: "buyers".to_owned(),
        }),
        ..prediction()
    };
    for (policy, output) in [
        (prediction(), sales(&days)),
        (prediction(), null),
        (prediction(), sales(&kept)),
        (policy, sales(&days)),
    ] {
        let points = points(&policy, &output);
        for (place, t, expected) in [
            (0, "2025-05-26", 100.0),
            (4, "2025-05-30", 100.0),
            (5, "2025-05-31", 10.0),
            (6, "2025-06-01", 0.0),
            (7, "2025-06-02", 100.0),
        ] {
            let point = &points[place];
            assert_eq!(point.at, t);
            assert!((point.value - expected).abs() < 8.0, "{point:?}");
        }
    }
}

/// Points are as far apart as the rows, also where that has no name.
#[test]
fn points_are_as_far_apart_as_the_rows() {
    let minute = 60_000_000;
    for (step, rows, t) in [
        (
            1_000_000,
            90,
            ["2025-01-06T00:01:30Z", "2025-01-06T00:01:31Z"],
        ),
        (
            15 * minute,
            300,
            ["2025-01-09T03:00:00Z", "2025-01-09T03:15:00Z"],
        ),
        (
            6 * 60 * minute,
            40,
            ["2025-01-16T00:00:00Z", "2025-01-16T06:00:00Z"],
        ),
        (
            14 * DAY_MICROS,
            20,
            ["2025-10-13T00:00:00Z", "2025-10-27T00:00:00Z"],
        ),
    ] {
        let points = points(&prediction(), &every(ColumnKind::Timestamp, step, rows));
        let found = [points[0].at.as_str(), points[1].at.as_str()];
        assert_eq!(found, t);
    }
}

/// What has been the last day of each month is that of the next ones.
#[test]
fn ends_of_months_stay_ends_of_months() {
    let epoch = jiff::civil::date(1970, 1, 1);
    let end = |months: i32| {
        let month = jiff::civil::date(2024, 1, 1).checked_add(jiff::Span::new().months(months));
        let days = month
            .unwrap()
            .last_of_month()
            .duration_since(epoch)
            .as_hours()
            / 24;
        i32::try_from(days).unwrap()
    };
    let ends: Vec<i32> = (0..14).map(end).collect();
    let values: Vec<f64> = (0..14).map(|month| f64::from(month % 5)).collect();
    let history = output(
        vec![
            ("month", ColumnKind::Date, ColumnData::I32s(ends)),
            ("value", ColumnKind::Float64, ColumnData::F64s(values)),
        ],
        14,
    );
    let points = points(&prediction(), &history);
    let found: Vec<&str> = points
        .iter()
        .take(3)
        .map(|point| point.at.as_str())
        .collect();
    assert_eq!(found, ["2025-03-31", "2025-04-30", "2025-05-31"]);
}

/// How many points are needed, and how many there were, is told to everybody; what can be done about it, and how much there is, to the owner.
#[test]
fn what_is_missing_of_a_series_is_told() {
    let days: Vec<usize> = (0..10).collect();
    let mut short = sales(&days);
    set_null(&mut short, 1, &[1, 2, 3, 4, 5, 6, 7]);
    let (message, detail) = refused(&prediction(), &short);
    assert_eq!(
        message,
        "the series has 3 points with a value; at least 8 are needed"
    );
    assert!(detail.contains("rows without a value"), "{detail}");

    let daily = policy(ResultKind::Prediction(Prediction {
        frequency: Some("day".to_owned()),
        ..Prediction::default()
    }));
    let weekly: Vec<usize> = (0..20).map(|week| week * 7).collect();
    let (message, detail) = refused(&daily, &sales(&weekly));
    assert_eq!(
        message,
        "more than half of the periods of the series have no value"
    );
    assert!(
        detail.contains("134 periods of 1 day only 20 have one"),
        "{detail}"
    );
    let (message, detail) = refused(&daily, &every(ColumnKind::Timestamp, 3_600_000_000, 48));
    assert_eq!(
        message,
        "the rows of the series are closer together than its periods"
    );
    assert!(detail.contains("GROUP BY"), "{detail}");
}

/// Several rows of one time are no series: which of them is meant is the seller's to say. One with a value among those without is meant.
#[test]
fn several_rows_of_one_time_are_refused() {
    let mut days: Vec<usize> = (0..30).collect();
    days.extend(0..5);
    let (message, detail) = refused(&prediction(), &sales(&days));
    assert_eq!(
        message,
        "several rows of the series have the same time: aggregate them (GROUP BY)"
    );
    assert_eq!(detail, "it is in the column \"day\"");
    // One of many, as an hour that a clock shows twice, is no reason, with a value or without.
    let mut days: Vec<usize> = (0..30).collect();
    days.push(7);
    let mut twice = sales(&days);
    assert_eq!(points(&prediction(), &twice)[0].at, "2025-02-05");
    set_null(&mut twice, 1, &[7]);
    assert_eq!(points(&prediction(), &twice)[0].at, "2025-02-05");
}

/// Times that are texts go on as they are written, and without a zone where they have none.
#[test]
fn texts_of_times_are_continued_as_they_are_written() {
    let months: Vec<String> = (0..24)
        .map(|month| format!("{}-{:02}", 2024 + month / 12, month % 12 + 1))
        .collect();
    let hours: Vec<String> = (0..24)
        .map(|hour| format!("2026-01-31 {hour:02}:00:00"))
        .collect();
    let zoned: Vec<String> = hours.iter().map(|text| format!("{text}+01:00")).collect();
    for (written, expected) in [
        (months, ["2026-01", "2026-02"]),
        (hours, ["2026-02-01 00:00:00", "2026-02-01 01:00:00"]),
        (
            zoned,
            ["2026-02-01 00:00:00+01:00", "2026-02-01 01:00:00+01:00"],
        ),
    ] {
        let written: Vec<&str> = written.iter().map(String::as_str).collect();
        let values = (0..24).map(|row| f64::from(row % 5)).collect();
        let history = output(
            vec![
                ("at", ColumnKind::Text, texts(&written)),
                ("value", ColumnKind::Float64, ColumnData::F64s(values)),
            ],
            24,
        );
        let points = points(&prediction(), &history);
        assert_eq!([points[0].at.as_str(), points[1].at.as_str()], expected);
    }
}
