//! What a cast cuts off, or makes NULL of, is gone where it is compared and sorted, too, and no page of a file is passed over by it.

use crate::common::{array, arrow, ask, batch, file, numbers, parquet_with, rows};
use datafusion::arrow::array::*;
use datafusion::parquet::file::properties::WriterProperties;
use souk_connector_files::Session;
use tempfile::TempDir;

const HOUR: i64 = 3_600_000;
const DAY: i64 = 24 * HOUR;

/// One on each layout of six rows, of which the last has NULLs.
fn sessions() -> Vec<(TempDir, Session)> {
    let decimals: [i128; 5] = [12_345, 12_399, 12_500, -5_000, 5_000];
    let decimals = decimals.map(Some).into_iter().chain([None]);
    let decimals = Decimal128Array::from_iter(decimals);
    let large = [5, 9_999_999_999, 40_000, -1, 0];
    // Ten in the morning of the first day, and each day another time.
    let moments = [
        10 * HOUR,
        DAY + 15 * HOUR,
        2 * DAY + 11 * HOUR,
        13 * HOUR - DAY,
        3 * DAY,
    ];
    let some = |values: [i64; 5]| values.map(Some).into_iter().chain([None]);
    let rows_of = batch(vec![
        ("n", numbers(6)),
        (
            "d",
            array(decimals.with_precision_and_scale(10, 4).unwrap()),
        ),
        ("big", array(Int64Array::from_iter(some(large)))),
        (
            "m",
            array(TimestampMillisecondArray::from_iter(some(moments))),
        ),
    ]);
    let layouts = [(6, 6), (3, 3), (3, 1), (1, 1)].map(|(group, page)| {
        let properties = WriterProperties::builder()
            .set_max_row_group_row_count(Some(group))
            .set_data_page_row_count_limit(page)
            .set_write_batch_size(1)
            .build();
        file("t.parquet", &parquet_with(&rows_of, properties))
    });
    let of_arrow = file("t.arrow", &arrow(&rows_of, None));
    layouts.into_iter().chain([of_arrow]).collect()
}

#[test]
fn casts_are_compared_as_what_they_make() {
    for (at, (_directory, mut session)) in sessions().into_iter().enumerate() {
        for (condition, wanted) in [
            ("CAST(d AS decimal(10, 2)) = 1.23", "1"),
            ("CAST(d AS decimal(10, 2)) IN (1.24, 7.00)", "2"),
            ("arrow_cast(d, 'Decimal128(10, 2)') = 1.23", "1"),
            ("CAST(d AS bigint) = 1", "1 2 3"),
            ("1 = CAST(d AS bigint)", "1 2 3"),
            ("CAST(d AS bigint) > 0", "1 2 3"),
            ("CAST(d AS bigint) < 0", ""),
            ("CAST(d AS bigint) IN (0, 7)", "4 5"),
            ("CAST(d AS bigint) IS NULL", "6"),
            ("TRY_CAST(big AS int) > 1", "1 3"),
            ("TRY_CAST(big AS smallint) > 1", "1"),
            ("TRY_CAST(big AS smallint) <> 5", "4 5"),
            ("TRY_CAST(big AS smallint) IS NULL", "2 3 6"),
            ("arrow_try_cast(big, 'Int16') > 1", "1"),
            ("CAST(big AS boolean) > false", "1 2 3 4"),
            ("arrow_cast(big, 'Decimal128(20, -2)') = 40000", "3"),
            ("arrow_cast(big, 'Decimal128(20, -2)') < 100", "1 4 5"),
            // The first byte of a number is its lowest.
            ("CAST(big AS bytea) > CAST(256 AS bytea)", "1 2 3 4"),
            // What loses nothing is compared as before.
            ("CAST(d AS decimal(20, 6)) = 1.2345", "1"),
            ("TRY_CAST(big AS decimal(38, 0)) > 5", "2 3"),
        ] {
            let found = rows(&mut session, condition, Vec::new());
            assert_eq!(found, wanted, "{at}: {condition}");
        }
    }
}

/// Times of day begin anew each day.
#[test]
fn times_of_day_are_found_on_each_day() {
    for (at, (_directory, mut session)) in sessions().into_iter().enumerate() {
        for (condition, wanted) in [
            ("CAST(m AS time) > TIME '12:00:00'", "2 4"),
            ("CAST(m AS time) < TIME '10:30:00'", "1 5"),
            ("CAST(m AS time) = TIME '11:00:00'", "3"),
            ("TRY_CAST(m AS time) > TIME '12:00:00'", "2 4"),
            ("CAST(m AS time) <= TIME '23:00:00'", "1 2 3 4 5"),
        ] {
            let found = rows(&mut session, condition, Vec::new());
            assert_eq!(found, wanted, "{at}: {condition}");
        }
        for (sql, wanted) in [
            ("FROM t ORDER BY CAST(m AS time) LIMIT 2", "5 1"),
            ("FROM t ORDER BY CAST(m AS time)", "5 1 3 4 2 6"),
            (
                "FROM (SELECT n, m FROM t ORDER BY m LIMIT 5) AS s ORDER BY CAST(m AS time)",
                "5 1 3 4 2",
            ),
        ] {
            let sql = format!("SELECT n {sql}");
            let answer = ask(&mut session, &sql);
            let answer = answer.unwrap_or_else(|error| panic!("{at}: {sql}: {error:?}"));
            assert_eq!(answer.lines().join(" "), wanted, "{at}: {sql}");
        }
    }
}

/// What clocks show is another moment in each zone.
#[test]
fn clocks_of_a_zone_are_compared_as_what_they_show() {
    for (at, (_directory, mut session)) in sessions().into_iter().enumerate() {
        for (condition, wanted) in [
            ("= TIMESTAMP '1970-01-01 10:00:00'", "1"),
            ("< '1970-01-01 11:00:00'", "1 4"),
            ("<> '1970-01-01T09:00:00Z'", "2 3 4 5"),
            ("IN ('1970-01-02 15:00:00', '1970-01-02 14:00:00')", "2"),
        ] {
            let berlin = "arrow_cast(m, 'Timestamp(ms, \"Europe/Berlin\")')";
            let condition = format!("{berlin} {condition}");
            let found = rows(&mut session, &condition, Vec::new());
            assert_eq!(found, wanted, "{at}: {condition}");
        }
        // In UTC they show the moment itself.
        let condition = "CAST(m AS timestamptz) = TIMESTAMP '1970-01-01 10:00:00'";
        let found = rows(&mut session, condition, Vec::new());
        assert_eq!(found, "1", "{at}: {condition}");
    }
}

/// Decimals of hundreds, which Arrow has and Parquet has not.
#[test]
fn decimals_of_hundreds_are_compared() {
    let hundreds = Decimal128Array::from(vec![5, 0, -3]);
    let hundreds = hundreds.with_precision_and_scale(5, -2).unwrap();
    let rows_of = batch(vec![("n", numbers(3)), ("h", array(hundreds))]);
    let (_directory, mut session) = file("t.arrow", &arrow(&rows_of, None));
    for (condition, wanted) in [
        ("h = 500", "1"),
        ("h > 499", "1"),
        ("h = 500.5", ""),
        ("h IN (-300, 7)", "3"),
        ("CAST(h AS bigint) < 1", "2 3"),
    ] {
        let found = rows(&mut session, condition, Vec::new());
        assert_eq!(found, wanted, "{condition}");
    }
}

/// Columns, groups and joins of what is cast are those of before.
#[test]
fn what_is_cast_is_selected_grouped_and_joined() {
    for (at, (_directory, mut session)) in sessions().into_iter().enumerate() {
        let sql = "SELECT CAST(d AS bigint), count(*) FROM t GROUP BY CAST(d AS bigint) ORDER BY 1";
        let answer = ask(&mut session, sql).unwrap_or_else(|error| panic!("{at}: {error:?}"));
        assert_eq!(answer.lines(), ["0|2", "1|3", "~|1"], "{at}");
        assert_eq!(answer.columns[0].name, "t.d", "{at}");
        let sql = "SELECT count(*), max(a.n) FROM t a JOIN t b ON CAST(a.d AS bigint) = b.n";
        let answer = ask(&mut session, sql).unwrap_or_else(|error| panic!("{at}: {error:?}"));
        assert_eq!(answer.lines(), ["3|3"], "{at}");
        let sql = "SELECT sum(CAST(d AS bigint)), count(TRY_CAST(big AS smallint)) FROM t";
        let answer = ask(&mut session, sql).unwrap_or_else(|error| panic!("{at}: {error:?}"));
        assert_eq!(answer.lines(), ["3|3"], "{at}");
    }
}
