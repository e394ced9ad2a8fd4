//! Columns that statements ask for again and again are unpacked once: the same rows, of which nothing is read any more.

mod common;

use common::{LIMITS, array, ask, ask_with, batch, file, parquet_with, tar};
use datafusion::arrow::array::*;
use datafusion::parquet::basic::{Compression, Encoding};
use datafusion::parquet::file::properties::WriterProperties;
use peak_alloc::PeakAlloc;
use souk_connector_files::{Session, count_memory_with};
use souk_sdk::{Limits, Value};
use std::sync::Mutex;

#[global_allocator]
static ALLOCATED: PeakAlloc = PeakAlloc;

/// What is allocated is counted: one test at a time.
static ALONE: Mutex<()> = Mutex::new(());
const ROWS: i64 = 60_000;

/// All types that are kept, with NULLs, in several row groups whose pages end elsewhere than batches, and a list, which is not.
fn rows(numbers: std::ops::Range<i64>) -> RecordBatch {
    let all = || numbers.clone();
    let some = |n: i64| (n % 7 != 3).then_some(n);
    let prices = all().map(|n| some(n).map(|n| i128::from(n) * 37));
    let prices = Decimal128Array::from_iter(prices);
    let long = |n: i64| format!("a text of some length with the number {}", n % 1_000);
    let list = all().map(|n| Some(vec![Some(n), None]));
    let list =
        ListArray::from_iter_primitive::<datafusion::arrow::datatypes::Int64Type, _, _>(list);
    batch(vec![
        ("n", array(Int64Array::from_iter_values(all()))),
        (
            "small",
            array(Int16Array::from_iter(
                all().map(|n| some(n).map(|n| (n % 300) as i16)),
            )),
        ),
        (
            "is_even",
            array(BooleanArray::from_iter(
                all().map(|n| some(n).map(|n| n % 2 == 0)),
            )),
        ),
        (
            "real",
            array(Float64Array::from_iter(
                all().map(|n| some(n).map(|n| n as f64 / 8.0)),
            )),
        ),
        (
            "price",
            array(prices.with_precision_and_scale(20, 2).unwrap()),
        ),
        (
            "day",
            array(Date32Array::from_iter(
                all().map(|n| some(n).map(|n| (n / 100) as i32)),
            )),
        ),
        (
            "at",
            array(TimestampMicrosecondArray::from_iter(
                all().map(|n| some(n).map(|n| n * 1_000_001)),
            )),
        ),
        (
            "short",
            array(StringArray::from_iter(
                all().map(|n| some(n).map(|n| format!("s{}", n % 90))),
            )),
        ),
        (
            "long",
            array(StringArray::from_iter(all().map(|n| some(n).map(long)))),
        ),
        (
            "bytes",
            array(BinaryArray::from_iter(
                all().map(|n| some(n).map(|n| n.to_be_bytes())),
            )),
        ),
        ("list", array(list)),
    ])
}

fn properties() -> WriterProperties {
    WriterProperties::builder()
        .set_max_row_group_row_count(Some(25_000))
        .set_data_page_row_count_limit(3_000)
        .set_write_batch_size(500)
        .set_compression(Compression::SNAPPY)
        .build()
}

const ALL: &str = "n, small, is_even, real, price, day, at, short, long, bytes";

fn asked(session: &mut Session, text: &str) -> Vec<String> {
    let answer = ask(session, text).unwrap_or_else(|error| panic!("{text}: {error:?}"));
    answer.lines()
}

/// What was read of the file for that.
fn read(session: &mut Session, text: &str) -> u64 {
    let before = session.bytes_read();
    asked(session, text);
    session.bytes_read() - before
}

/// The rows, or why there are none.
fn told(session: &mut Session, text: &str) -> Result<Vec<String>, String> {
    let answer = ask(session, text).map_err(|error| error.code)?;
    Ok(answer.lines())
}

/// What its columns are, of which a session is told once.
fn described(session: &mut Session, text: &str) -> String {
    let answer = ask(session, text).map(|answer| format!("{:?}", answer.columns));
    answer.unwrap_or_else(|error| error.code)
}

/// Whatever is asked, it is answered from what is kept as it is from the file, and what fails fails.
#[test]
fn what_is_kept_is_what_the_file_has() {
    let _alone = ALONE.lock();
    let bytes = parquet_with(&rows(0..ROWS), properties());
    let statements = [
        format!("SELECT {ALL} FROM t WHERE n BETWEEN 24990 AND 25010 ORDER BY n"),
        format!("SELECT {ALL} FROM t WHERE long LIKE '%number 99_' AND small > 250 ORDER BY n LIMIT 50"),
        format!("SELECT {ALL} FROM t ORDER BY n DESC LIMIT 20"),
        format!("SELECT {ALL} FROM t ORDER BY price DESC NULLS LAST, n LIMIT 20 OFFSET 5"),
        format!("SELECT {ALL} FROM t ORDER BY n LIMIT 900 OFFSET 24500"),
        "SELECT count(*), count(small), sum(price), min(at), max(day), sum(real), avg(small) FROM t".to_owned(),
        "SELECT short, count(*), sum(price), count(DISTINCT long) FROM t GROUP BY short ORDER BY short".to_owned(),
        "SELECT is_even, bytes FROM t WHERE bytes IS NULL OR n = 100 ORDER BY n LIMIT 30".to_owned(),
        "SELECT a.n, b.long FROM t a JOIN t b ON a.n = b.n WHERE a.n < 10 ORDER BY 1".to_owned(),
        "SELECT short FROM t WHERE n IN (SELECT max(n) FROM t GROUP BY small) AND n NOT IN (1, 2) ORDER BY n".to_owned(),
        "SELECT long || short, row_number() OVER (ORDER BY n) FROM t ORDER BY n LIMIT 40".to_owned(),
        "SELECT count(*) FROM t WHERE 10 / n > 1".to_owned(),
        "SELECT sum(n / (n - 7)) FROM t".to_owned(),
        "SELECT count(*) FROM (SELECT n FROM t WHERE day > '1970-04-01' LIMIT 100) x".to_owned(),
    ];
    for text in &statements {
        let (_directory, mut fresh) = file("t.parquet", &bytes);
        let first = told(&mut fresh, text);
        // In another shape, so that it is described.
        let again = format!("SELECT *, 1 AS one FROM ({text}) AS described_once");
        let columns = described(&mut fresh, &again);
        let (_directory, mut session) = file("t.parquet", &bytes);
        for _ in 0..6 {
            assert_eq!(told(&mut session, text), first, "{text}");
        }
        let is_read = session.bytes_read();
        assert_eq!(told(&mut session, text), first, "{text}");
        assert_eq!(described(&mut session, &again), columns, "{text}");
        assert_eq!(session.bytes_read(), is_read, "{text}");
    }
}

/// A statement that is answered goes on being answered: what can fail is computed of the rows that a sort leaves, as it is while they are read late.
#[test]
fn what_does_not_fail_does_not_fail_later() {
    let _alone = ALONE.lock();
    let bytes = parquet_with(&rows(0..ROWS), properties());
    for text in [
        "SELECT n, 100 / (n - 7) AS q FROM t ORDER BY n DESC LIMIT 5",
        "SELECT n, CAST(long AS int) FROM t WHERE n < 0 ORDER BY n DESC LIMIT 5",
        "SELECT q FROM (SELECT n, 100 / (n - 7) AS q FROM t) x ORDER BY n DESC LIMIT 5",
        "SELECT n FROM t WHERE n > -1 ORDER BY n, 100 / (n - 50000) LIMIT 5",
        "SELECT u.n FROM (VALUES (1, 0), (2, 0)) AS u(n, one) JOIN t ON u.n = t.n AND u.one = 100 / (t.n - 50000) ORDER BY 1",
        "SELECT u.n, b.q FROM (VALUES (1), (2)) AS u(n) JOIN (SELECT n, sum(100 / (n - 50000)) AS q FROM t GROUP BY n) b ON u.n = b.n ORDER BY 1",
        "SELECT min(n) FROM (SELECT n FROM t WHERE 100 / (n - 50000) < 1000 UNION ALL SELECT n FROM (VALUES (5)) AS u(n)) x",
        "SELECT a.n, b.long FROM t a JOIN t b ON a.n = b.n + 59990 ORDER BY 1",
        "SELECT input_file_name() IS NULL, n FROM t WHERE n = 5",
        "SELECT file_row_index() AS at, n FROM t WHERE n = 5",
        "SELECT is_even FROM t WHERE bytes IS NULL OR (small <> 0 AND 600 / small > 90) ORDER BY n LIMIT 30",
    ] {
        let (_directory, mut session) = file("t.parquet", &bytes);
        let first = told(&mut session, text);
        for _ in 0..6 {
            assert_eq!(told(&mut session, text), first, "{text}");
        }
        println!("{text}: {first:?}");
    }
}

/// Another value each time, as of a statement with a parameter.
#[test]
fn each_value_finds_its_row() {
    let _alone = ALONE.lock();
    let bytes = parquet_with(&rows(0..ROWS), properties());
    let (_directory, mut session) = file("t.parquet", &bytes);
    for n in [7, 0, 24_999, 25_000, ROWS - 1, ROWS, 30_000] {
        let number = vec![Value::Int64(n)];
        let sql = "SELECT n, price FROM t WHERE n = $1";
        let answer = ask_with(&mut session, sql, number, LIMITS).unwrap();
        let price = match n % 7 {
            3 => "~".to_owned(),
            _ => format!("{}.{:02}", n * 37 / 100, n * 37 % 100),
        };
        let expected = (n < ROWS).then(|| format!("{n}|{price}"));
        assert_eq!(answer.lines(), Vec::from_iter(expected));
    }
}

/// What is asked for once or twice is read, and so is always what is not kept: lists, and what rows have to say of their files.
#[test]
fn what_is_rarely_asked_for_is_read() {
    let _alone = ALONE.lock();
    let bytes = parquet_with(&rows(0..ROWS), properties());
    let (_directory, mut session) = file("t.parquet", &bytes);
    for _ in 0..2 {
        assert!(read(&mut session, "SELECT sum(n) FROM t") > 0);
    }
    let whole = read(&mut session, "SELECT sum(n) FROM t");
    assert!(whole > 0);
    assert_eq!(read(&mut session, "SELECT sum(n) FROM t"), 0);
    for _ in 0..6 {
        assert!(read(&mut session, "SELECT n, list FROM t WHERE n = 7") > 0);
        let place = "SELECT file_row_index() AS at, n FROM t WHERE n = 30000";
        assert!(read(&mut session, place) > 0);
        assert_eq!(asked(&mut session, place), ["30000|30000"]);
    }
    // Another column begins anew.
    assert!(read(&mut session, "SELECT sum(n), sum(real) FROM t") > 0);
}

/// Each table has its own columns, and one that is made of several files is kept as one.
#[test]
fn tables_are_kept_apart() {
    let _alone = ALONE.lock();
    let (one, other) = (rows(0..9_000), rows(9_000..20_000));
    let [one, other] = [one, other].map(|rows| parquet_with(&rows, properties()));
    let files: [(&str, &[u8]); 3] = [
        ("t.parquet/part-0.parquet", &one),
        ("t.parquet/part-1.parquet", &other),
        ("u.parquet", &other),
    ];
    let (_directory, mut session) = file("a.tar", &tar(&files));
    for _ in 0..6 {
        let counts = asked(
            &mut session,
            "SELECT (SELECT sum(n) FROM t), (SELECT sum(n) FROM u), (SELECT min(n) FROM u)",
        );
        let sum = |numbers: std::ops::Range<i64>| numbers.sum::<i64>();
        let expected = format!("{}|{}|9000", sum(0..20_000), sum(9_000..20_000));
        assert_eq!(counts, [expected]);
    }
    assert_eq!(read(&mut session, "SELECT max(n) FROM t"), 0);
}

/// A file whose row groups have few rows, of which a reader makes room for a batch each, and one whose texts are written as differences, take no more than
/// is counted; and what is kept is let go of where a statement needs its room.
#[test]
fn what_is_kept_is_bounded() {
    count_memory_with(|| ALLOCATED.current_usage());
    let _alone = ALONE.lock();
    let numbers = 0..400_000i64;
    let columns = (0..24)
        .map(|column| format!("c{column}"))
        .collect::<Vec<_>>();
    let values = array(Int64Array::from_iter_values(
        numbers.map(|n| n * 7_919 % 100_003),
    ));
    let wide = columns.iter().map(|name| (name.as_str(), values.clone()));
    let small = WriterProperties::builder()
        .set_max_row_group_row_count(Some(1_000))
        .set_dictionary_enabled(false);
    let bytes = parquet_with(&batch(wide.collect()), small.build());
    let (_directory, mut session) = file("t.parquet", &bytes);
    let sum = |column: &String| format!("SELECT sum({column}) FROM t");
    let sums = columns.iter().map(|column| format!("sum({column})"));
    let all = format!("SELECT {} FROM t", sums.collect::<Vec<_>>().join(", "));
    asked(&mut session, &all);
    // Nothing is unpacked that would take too much of a statement's time.
    let hurried = Limits {
        timeout_ms: 4_000,
        ..LIMITS
    };
    for _ in 0..5 {
        let before = session.bytes_read();
        let none = "SELECT * FROM t WHERE c0 = 5 AND c1 = 6";
        // A loaded machine may be late.
        let answer = ask_with(&mut session, none, Vec::new(), hurried);
        assert!(session.bytes_read() > before || answer.is_err());
    }
    let before = ALLOCATED.current_usage();
    ALLOCATED.reset_peak_usage();
    for _ in 0..4 {
        asked(&mut session, &all);
    }
    let (held, peak) = (
        ALLOCATED.current_usage() - before,
        ALLOCATED.peak_usage() - before,
    );
    println!("{} MiB are held of 73, at most {}", held >> 20, peak >> 20);
    assert!((73 << 20..90 << 20).contains(&held), "{held}");
    assert!(peak < 130 << 20, "{peak}");
    assert_eq!(read(&mut session, &sum(&columns[0])), 0);
    // What needs more than is left beside it is answered without it.
    let needs_room = (16..40).find(|more| {
        let hungry = format!(
            "SELECT count(*) FROM (SELECT DISTINCT c0, g.n FROM generate_series(1, {more}) AS g(n) CROSS JOIN t) x"
        );
        assert_eq!(asked(&mut session, &hungry), [(100_003 * more).to_string()]);
        read(&mut session, &sum(&columns[0])) > 0
    });
    println!("what is kept is let go of for {needs_room:?} times as many groups");
    assert!(needs_room.is_some());
    let held = ALLOCATED.current_usage().saturating_sub(before);
    assert!(held < 20 << 20, "{held}");
    // Others are kept again, if they are asked for twice as often: this is asked the second time.
    for _ in 0..5 {
        assert!(read(&mut session, &sum(&columns[0])) > 0);
    }
    assert_eq!(read(&mut session, &sum(&columns[0])), 0);
    // A megabyte of differences is forty of texts.
    let long = |n: i64| format!("{}{n:07}", "a beginning that all of them have ".repeat(6));
    let texts = array(StringArray::from_iter_values((0..700_000).map(long)));
    let differences = WriterProperties::builder()
        .set_dictionary_enabled(false)
        .set_encoding(Encoding::DELTA_BYTE_ARRAY);
    let bytes = parquet_with(&batch(vec![("s", texts)]), differences.build());
    assert!(bytes.len() < 20 << 20, "{}", bytes.len());
    let (_directory, mut session) = file("t.parquet", &bytes);
    let before = ALLOCATED.current_usage();
    for _ in 0..5 {
        assert!(read(&mut session, "SELECT max(s) FROM t") > 0);
    }
    let held = ALLOCATED.current_usage().saturating_sub(before);
    assert!(held < 20 << 20, "{held}");
}
