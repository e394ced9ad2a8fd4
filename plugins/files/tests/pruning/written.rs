//! What row groups and pages of Parquet say of their values passes over nothing that is there, whoever wrote it.

use crate::common::{array, ask, batch, file, parquet_with};
use datafusion::arrow::array::*;
use datafusion::parquet::data_type::Int96;
use datafusion::parquet::file::properties::WriterProperties;
use souk_connector_files::Session;

/// The numbers of the rows for which the condition holds.
fn rows(session: &mut Session, condition: &str) -> String {
    let sql = format!("SELECT n FROM t WHERE {condition} ORDER BY n");
    let answer = ask(session, &sql);
    let answer = answer.unwrap_or_else(|error| panic!("{condition}: {error:?}"));
    answer.lines().join(" ")
}

/// Each value is compared with each other one as written, and the rows are those that the values themselves say.
fn is_found<T: PartialOrd>(session: &mut Session, column: &str, values: &[Option<(T, String)>]) {
    type Holds<T> = fn(&T, &T) -> bool;
    let operators: [(&str, Holds<T>); 5] = [
        ("=", |one, other| one == other),
        ("<>", |one, other| one != other),
        ("<", |one, other| one < other),
        (">", |one, other| one > other),
        (">=", |one, other| one >= other),
    ];
    for (with, written) in values.iter().flatten() {
        for (operator, holds) in &operators {
            let holds = |value: &Option<(T, String)>| match value {
                Some((value, _)) => holds(value, with),
                None => false,
            };
            let found = (1..).zip(values).filter(|(_, value)| holds(value));
            let wanted: Vec<String> = found.map(|(row, _): (i64, _)| row.to_string()).collect();
            let condition = format!("{column} {operator} {written}");
            assert_eq!(rows(session, &condition), wanted.join(" "), "{condition}");
            // Row groups of which all rows are wanted may be all that is read.
            let sql = format!("SELECT n FROM t WHERE {condition} LIMIT 3");
            let limited = ask(session, &sql).unwrap().lines().len();
            assert_eq!(limited, wanted.len().min(3), "{sql}");
        }
    }
    let nulls = (1..).zip(values).filter(|(_, value)| value.is_none());
    let nulls: Vec<String> = nulls.map(|(row, _): (i64, _)| row.to_string()).collect();
    let condition = format!("{column} IS NULL");
    assert_eq!(rows(session, &condition), nulls.join(" "), "{condition}");
}

/// Values of every kind of order, in row groups and pages of a few rows, whose bounds are cut to two bytes.
#[test]
fn nothing_is_passed_over_that_is_there() {
    let texts = [
        "aaaa",
        "aaab",
        "",
        "b",
        "m\u{e9}",
        "mz",
        "\u{e9}",
        "zz",
        "z\u{10ffff}",
        "aa",
    ];
    let texts = texts.map(|text| (text.to_owned(), format!("'{text}'")));
    let whole = [
        0u64,
        1,
        127,
        128,
        255,
        1 << 31,
        (1 << 31) - 1,
        u64::from(u32::MAX),
        7,
        8,
    ];
    let whole = whole.map(|number| (number, number.to_string()));
    let long = [0u64, 1, 1 << 63, u64::MAX, (1 << 63) - 1, 5, 6, 7, 8, 9];
    let long = long.map(|number| (number, number.to_string()));
    let units: [i128; 10] = [-1, 5, 0, -500, 128, -128, 99_999, -99_999, 255, 256];
    let decimals = units.map(|units| (units, format!("{}.{:02}", units / 100, units.abs() % 100)));
    let decimals = decimals.map(|(units, text)| match units {
        -99..=-1 => (units, format!("-{text}")),
        _ => (units, text),
    });
    // The fourth and the seventh are none.
    fn some<T: Clone>(values: &[(T, String); 10]) -> Vec<Option<(T, String)>> {
        let values = values.iter().enumerate();
        let values = values.map(|(at, value)| (at != 3 && at != 6).then(|| value.clone()));
        values.collect()
    }
    let (texts, whole, long, decimals) = (some(&texts), some(&whole), some(&long), some(&decimals));
    let of_texts = texts
        .iter()
        .map(|value| value.as_ref().map(|(text, _)| text.clone()));
    let of_whole = whole.iter().map(|value| {
        let number = value.as_ref().map(|(number, _)| *number);
        number.map(|number| u32::try_from(number).unwrap())
    });
    let of_long = long
        .iter()
        .map(|value| value.as_ref().map(|(number, _)| *number));
    let of_decimals = |digits| {
        let units = decimals
            .iter()
            .map(|value| value.as_ref().map(|(units, _)| *units));
        let decimals = Decimal128Array::from_iter(units);
        array(decimals.with_precision_and_scale(digits, 2).unwrap())
    };
    let rows_of = batch(vec![
        ("n", array(Int64Array::from_iter_values(1..=10))),
        ("s", array(StringArray::from_iter(of_texts))),
        ("u", array(UInt32Array::from_iter(of_whole))),
        ("l", array(UInt64Array::from_iter(of_long))),
        ("d8", of_decimals(8)),
        ("d30", of_decimals(30)),
    ]);
    for (group, page) in [(10, 10), (10, 1), (3, 2), (1, 1)] {
        let properties = WriterProperties::builder()
            .set_max_row_group_row_count(Some(group))
            .set_data_page_row_count_limit(page)
            .set_write_batch_size(1)
            .set_statistics_truncate_length(Some(2))
            .set_column_index_truncate_length(Some(2))
            .build();
        let (_directory, mut session) = file("t.parquet", &parquet_with(&rows_of, properties));
        is_found(&mut session, "s", &texts);
        is_found(&mut session, "u", &whole);
        is_found(&mut session, "l", &long);
        is_found(&mut session, "d8", &decimals);
        is_found(&mut session, "d30", &decimals);
        assert_eq!(rows(&mut session, "s LIKE 'aaa%'"), "1 2", "{group}");
        let sql = "SELECT min(s), max(s), count(s), count(*), max(u), min(d30) FROM t";
        let extremes = ask(&mut session, sql).unwrap().lines();
        assert_eq!(
            extremes,
            ["|z\u{10ffff}|8|10|4294967295|-999.99"],
            "{group}"
        );
    }
}

/// Days and moments in each unit, before 1970, too, and patterns that are escaped.
#[test]
fn nothing_is_passed_over_of_days_moments_and_patterns() {
    let days = [
        (-1, "1969-12-31"),
        (0, "1970-01-01"),
        (-719_162, "0001-01-01"),
        (2_932_896, "9999-12-31"),
        (1, "1970-01-02"),
    ];
    let millis = [
        (-1, "1969-12-31 23:59:59.999"),
        (0, "1970-01-01 00:00:00"),
        (-86_400_000, "1969-12-31 00:00:00"),
        (4_102_444_800_000, "2100-01-01 00:00:00"),
        (1, "1970-01-01 00:00:00.001"),
    ];
    let moments = |count: i64| millis.map(|(moment, _)| moment * count).to_vec();
    let texts = ["a_b1", "axb", r"a\b", "50%", "a"];
    let rows_of = batch(vec![
        ("n", array(Int64Array::from_iter_values(1..=5))),
        (
            "day",
            array(Date32Array::from(days.map(|(day, _)| day).to_vec())),
        ),
        ("ms", array(TimestampMillisecondArray::from(moments(1)))),
        (
            "us",
            array(TimestampMicrosecondArray::from(moments(1_000)).with_timezone("UTC")),
        ),
        (
            "ns",
            array(TimestampNanosecondArray::from(moments(1_000_000))),
        ),
        ("s", array(StringArray::from(texts.to_vec()))),
    ]);
    let days = days.map(|(day, text)| Some((i64::from(day), format!("DATE '{text}'"))));
    let millis = millis.map(|(moment, text)| Some((moment, format!("TIMESTAMP '{text}'"))));
    for (group, page) in [(5, 5), (5, 1), (2, 1)] {
        let properties = WriterProperties::builder()
            .set_max_row_group_row_count(Some(group))
            .set_data_page_row_count_limit(page)
            .set_write_batch_size(1)
            .build();
        let (_directory, mut session) = file("t.parquet", &parquet_with(&rows_of, properties));
        is_found(&mut session, "\"day\"", &days);
        for column in ["ms", "us", "ns"] {
            is_found(&mut session, column, &millis);
        }
        for (condition, wanted) in [
            (r"s LIKE 'a\_b%'", "1"),
            ("s LIKE 'a!_b%' ESCAPE '!'", "1"),
            (r"s LIKE 'a\\b'", "3"),
            (r"s LIKE '50\%'", "4"),
            (r"s NOT LIKE 'a\_b%'", "2 3 4 5"),
            ("s LIKE 'a%'", "1 2 3 5"),
        ] {
            let found = rows(&mut session, condition);
            assert_eq!(found, wanted, "{group}: {condition}");
        }
    }
}

/// Moments of Spark's old kind have no order; bounds of them are those of their bytes.
#[test]
fn bounds_of_old_moments_are_not_believed() {
    use datafusion::parquet::data_type::{Int64Type, Int96Type};
    use datafusion::parquet::file::writer::SerializedFileWriter;
    use datafusion::parquet::schema::parser::parse_message_type;
    use std::sync::Arc;

    let schema = "message m { REQUIRED INT64 n; REQUIRED INT96 moment; }";
    let schema = Arc::new(parse_message_type(schema).unwrap());
    let mut writer = SerializedFileWriter::new(Vec::new(), schema, Arc::default()).unwrap();
    let mut group = writer.next_row_group().unwrap();
    let mut column = group.next_column().unwrap().unwrap();
    let numbers = column.typed::<Int64Type>();
    numbers.write_batch(&[1, 2, 3], None, None).unwrap();
    column.close().unwrap();
    // Noon of 1970-01-01, the midnight after it, and the one a day before; 2,440,588 is the number of the first day.
    let moment = |nanos: u64, day: u32| {
        let mut moment = Int96::new();
        moment.set_data(nanos as u32, (nanos >> 32) as u32, day);
        moment
    };
    let moments = [
        moment(43_200_000_000_000, 2_440_588),
        moment(0, 2_440_589),
        moment(0, 2_440_588),
    ];
    let mut column = group.next_column().unwrap().unwrap();
    let (least, greatest) = (Some(&moments[2]), Some(&moments[0]));
    let at = column.typed::<Int96Type>();
    at.write_batch_with_statistics(&moments, None, None, least, greatest, None)
        .unwrap();
    column.close().unwrap();
    group.close().unwrap();
    let (_directory, mut session) = file("t.parquet", &writer.into_inner().unwrap());
    for (condition, wanted) in [
        ("moment > TIMESTAMP '1970-01-01 18:00:00'", "2"),
        ("moment = TIMESTAMP '1970-01-02 00:00:00'", "2"),
        ("moment < TIMESTAMP '1970-01-01 12:00:00'", "3"),
    ] {
        assert_eq!(rows(&mut session, condition), wanted, "{condition}");
    }
    let extremes = ask(&mut session, "SELECT max(moment), min(moment) FROM t").unwrap();
    assert_eq!(extremes.lines(), ["86400000000|0"]);
}
