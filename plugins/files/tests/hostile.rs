//! Files and statements that mean harm. Each is answered, or told for what it is, in its time and within the memory that a component has. What a
//! host and a neighbour notice of them is in `tests/hostile`.

mod common;

use common::{LIMITS, array, ask_with, batch, directory, open, parquet, parquet_with, ping, tar};
use datafusion::arrow::array::{ArrayRef, Int64Array, RecordBatch, StringArray, StringViewArray};
use datafusion::parquet::arrow::ArrowWriter;
use datafusion::parquet::basic::{Compression, Encoding, ZstdLevel};
use datafusion::parquet::file::properties::{WriterProperties, WriterPropertiesBuilder};
use flate2::write::GzEncoder;
use peak_alloc::PeakAlloc;
use souk_sdk::{Error, ErrorClass, Limits};
use std::io::Write;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

#[global_allocator]
static MEMORY: PeakAlloc = PeakAlloc;

/// What a component has, without what its code and its stack take.
const MEMORY_MAX: usize = 480 << 20;
/// A debug build of DataFusion computes for that long between two looks at the clock.
const LATE_MAX: Duration = Duration::from_secs(15);

/// One at a time: they count the same memory.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    souk_connector_files::count_memory_with(|| MEMORY.current_usage());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What a session on this file says to the statement, and how much it took meanwhile.
fn attack(name: &str, bytes: &[u8], sql: &str) -> Result<Vec<String>, Error> {
    let directory = directory(&[(name, bytes)]);
    let before = MEMORY.current_usage();
    MEMORY.reset_peak_usage();
    let begun = Instant::now();
    let answer = session(directory.path(), name, sql);
    let took = begun.elapsed();
    let peak = MEMORY.peak_usage().saturating_sub(before);
    println!(
        "{name}, {sql:.60}: {answer:.200?} in {took:?}, {} MiB",
        peak >> 20
    );
    assert!(peak < MEMORY_MAX, "{name}, {sql:.60}: {} MiB", peak >> 20);
    let late = Duration::from_millis(LIMITS.timeout_ms.into()) + LATE_MAX;
    assert!(took < late, "{name}, {sql:.60}: {took:?}");
    answer
}

fn session(directory: &std::path::Path, name: &str, sql: &str) -> Result<Vec<String>, Error> {
    let mut session = open(directory, name)?;
    ping(&mut session)?;
    let answer = ask_with(&mut session, sql, Vec::new(), LIMITS);
    // It goes on, whatever that was.
    let next = ask_with(&mut session, "SELECT 1", Vec::new(), LIMITS)?;
    assert_eq!(next.lines(), ["1"]);
    answer.map(|answer| answer.lines())
}

/// The code of an error that blames the file, its owner's settings, or the statement.
fn told(answer: Result<Vec<String>, Error>) -> String {
    let error = answer.expect_err("an error");
    let is_theirs = matches!(
        error.class,
        ErrorClass::Source | ErrorClass::Configuration | ErrorClass::LimitExceeded
    );
    assert!(is_theirs, "{error:?}");
    error.code
}

fn packed(builder: WriterPropertiesBuilder) -> WriterProperties {
    let level = ZstdLevel::try_new(1).unwrap();
    builder.set_compression(Compression::ZSTD(level)).build()
}

fn plain() -> WriterPropertiesBuilder {
    WriterProperties::builder().set_dictionary_enabled(false)
}

/// A file of as many batches, each of one row with a text of so many bytes.
fn texts(properties: WriterProperties, rows: usize, bytes: usize) -> Vec<u8> {
    let text = "x".repeat(bytes);
    let row = batch(vec![
        ("n", array(Int64Array::from(vec![1]))),
        (
            "a",
            array(StringViewArray::from_iter_values([text.as_str()])),
        ),
    ]);
    written(properties, &row, rows)
}

fn written(properties: WriterProperties, rows: &RecordBatch, times: usize) -> Vec<u8> {
    let mut file = Vec::new();
    let mut writer = ArrowWriter::try_new(&mut file, rows.schema(), Some(properties)).unwrap();
    for _ in 0..times {
        writer.write(rows).unwrap();
    }
    writer.close().unwrap();
    file
}

/// Two gigabytes in pages that are each of a size that is allowed.
#[test]
fn pages_of_one_batch_are_counted_together() {
    let _alone = alone();
    let properties = plain().set_data_page_size_limit(1 << 20);
    let file = texts(packed(properties), 60, 40 << 20);
    assert!(file.len() < 1 << 20, "{}", file.len());
    for sql in [
        "SELECT sum(length(a)) FROM t",
        "SELECT max(length(a)) FROM t WHERE n = 1",
        "SELECT count(DISTINCT a) FROM t",
    ] {
        assert!(attack("t.parquet", &file, sql).is_ok(), "{sql}");
    }
    let answer = attack("t.parquet", &file, "SELECT sum(n) FROM t");
    assert_eq!(answer.unwrap(), ["60"]);
}

/// Honest texts of 50 KB: more than a component has of them is read.
#[test]
fn large_texts_are_read_some_at_a_time() {
    let _alone = alone();
    let file = texts(packed(plain()), 10_000, 50_000);
    for (sql, answer) in [
        ("SELECT sum(length(a)) FROM t", "500000000"),
        ("SELECT count(*) FROM t WHERE a LIKE '%y%'", "0"),
        (
            "SELECT sum(length(upper(a))) FROM t WHERE n = 1",
            "500000000",
        ),
    ] {
        assert_eq!(attack("t.parquet", &file, sql).unwrap(), [answer], "{sql}");
    }
}

/// A page of a megabyte says that it holds two thousand texts of a megabyte, each like the one before.
#[test]
fn shared_beginnings_are_counted() {
    let _alone = alone();
    let delta = || plain().set_column_encoding("a".into(), Encoding::DELTA_BYTE_ARRAY);
    let file = texts(packed(delta()), 2_000, 1 << 20);
    assert!(file.len() < 1 << 20, "{}", file.len());
    let answer = attack("t.parquet", &file, "SELECT sum(length(a)) FROM t");
    assert_eq!(told(answer), "page_too_large");
    // Honest ones are read.
    let names: Vec<String> = (0..20_000).map(|n| format!("name of number {n}")).collect();
    let rows = batch(vec![("a", array(StringArray::from(names.clone())))]);
    for properties in [packed(delta()), delta().build()] {
        let file = parquet_with(&rows, properties);
        let bytes: usize = names.iter().map(String::len).sum();
        let answer = attack("t.parquet", &file, "SELECT sum(length(a)) FROM t");
        assert_eq!(answer.unwrap(), [bytes.to_string()]);
    }
}

/// A page of nothing says that it has the lengths of 268 million texts.
#[test]
fn lengths_that_are_not_there_are_told() {
    const ROWS: usize = 3_000_000;
    let _alone = alone();
    for encoding in [
        Encoding::DELTA_LENGTH_BYTE_ARRAY,
        Encoding::DELTA_BYTE_ARRAY,
    ] {
        let properties = plain()
            .set_encoding(encoding)
            .set_data_page_row_count_limit(ROWS)
            .set_max_row_group_row_count(Some(ROWS))
            .set_write_batch_size(ROWS)
            .build();
        let rows = batch(vec![("a", array(StringArray::from(vec![""; ROWS])))]);
        let mut file = parquet_with(&rows, properties);
        // Blocks of 128 numbers in 4 parts, and how many numbers there are.
        let head = [0x80, 0x01, 0x04, 0xc0, 0x8d, 0xb7, 0x01];
        let places = file.windows(head.len()).enumerate();
        let places: Vec<usize> = places
            .filter_map(|(at, bytes)| (bytes == head).then_some(at))
            .collect();
        assert!(!places.is_empty(), "{encoding}");
        let whole = attack("t.parquet", &file, "SELECT max(a) FROM t");
        assert_eq!(whole.unwrap(), [""], "{encoding}");
        for at in places {
            file[at + 3..at + 7].copy_from_slice(&[0xff, 0xff, 0xff, 0x7f]);
        }
        let answer = attack("t.parquet", &file, "SELECT max(a) FROM t");
        assert_eq!(told(answer), "file_broken", "{encoding}");
    }
}

/// One text of a megabyte that a dictionary has once, and five hundred rows have.
#[test]
fn texts_of_a_dictionary_are_unfolded_some_at_a_time() {
    let _alone = alone();
    let file = texts(packed(WriterProperties::builder()), 500, 1 << 20);
    assert!(file.len() < 1 << 20, "{}", file.len());
    let sql = "SELECT max(length(upper(a))), count(DISTINCT concat(a, '!')) FROM t";
    let answer = attack("t.parquet", &file, sql);
    assert_eq!(answer.unwrap(), ["1048576|1"]);
    let answer = attack("t.parquet", &file, "SELECT upper(a) FROM t");
    assert_eq!(told(answer), "bytes_limit");
}

/// Tables that are each small enough, and together are not.
#[test]
fn footers_are_counted_together() {
    let _alone = alone();
    let columns: Vec<(String, ArrayRef)> = (0..400)
        .map(|n| (format!("column {n}"), array(Int64Array::from(vec![n]))))
        .collect();
    let columns = columns
        .iter()
        .map(|(name, array)| (name.as_str(), array.clone()));
    let rows = batch(columns.collect());
    let properties = WriterProperties::builder()
        .set_max_row_group_row_count(Some(1))
        .build();
    let footer = written(properties, &rows, 20);
    let names: Vec<String> = (0..400).map(|n| format!("t{n}.parquet")).collect();
    let files: Vec<(&str, &[u8])> = names
        .iter()
        .map(|name| (name.as_str(), footer.as_slice()))
        .collect();
    println!("a file of {} KiB", footer.len() >> 10);
    let answer = attack("few.tar", &tar(&files[..3]), "SELECT count(*) FROM t2");
    assert_eq!(answer.unwrap(), ["20"]);
    let answer = attack("many.tar", &tar(&files), "SELECT count(*) FROM t2");
    assert_eq!(told(answer), "tables_too_large");
}

/// What these keep is not counted by DataFusion.
#[test]
fn what_is_put_together_is_counted() {
    let _alone = alone();
    for sql in [
        "SELECT length(string_agg(repeat('x', 1000), '')) FROM generate_series(1, 1000000) AS g(v)",
        "SELECT array_length(array_agg(repeat('x', 1000))) FROM generate_series(1, 1000000) AS g(v)",
        "SELECT length(string_agg(DISTINCT concat(v, repeat('x', 1000)), '')) FROM generate_series(1, 1000000) AS g(v)",
        "SELECT v % 3, length(string_agg(repeat('x', 1000), '' ORDER BY v)) FROM generate_series(1, 1000000) AS g(v) GROUP BY 1",
    ] {
        let answer = attack("t.csv", b"n\n1\n", sql);
        assert_eq!(told(answer), "out_of_memory", "{sql}");
    }
    // What has its room is answered.
    let sql =
        "SELECT length(string_agg(CAST(v AS text), ',')) FROM generate_series(1, 1000000) AS g(v)";
    let answer = attack("t.csv", b"n\n1\n", sql);
    assert_eq!(answer.unwrap(), ["6888895"]);
}

#[test]
fn archives_of_tiny_files_have_bounds() {
    let _alone = alone();
    let names: Vec<String> = (0..10_001)
        .map(|n| match n {
            ..1_000 => format!("orders.csv/part-{n}.csv"),
            _ => format!("notes/{n}.txt"),
        })
        .collect();
    let files: Vec<(&str, &[u8])> = names
        .iter()
        .map(|name| (name.as_str(), b"n\n1\n".as_slice()))
        .collect();
    let sql = "SELECT sum(n) FROM orders";
    let answer = attack("t.tar", &tar(&files[..10_000]), sql);
    assert_eq!(answer.unwrap(), ["1000"]);
    let answer = attack("t.tar", &tar(&files), sql);
    assert_eq!(told(answer), "too_many_files");
    let inner = tar(&files[..10]);
    let nested = tar(&[("inner.tar", &inner), ("more.tar", &inner)]);
    let answer = attack("t.tar", &nested, sql);
    assert_eq!(told(answer), "unknown_format");
}

/// Names of a hundred megabytes, sizes beyond all files, and packed archives.
#[test]
fn lies_of_archives_are_told() {
    let _alone = alone();
    for kind in [b'L', b'K', b'x', b'g'] {
        let mut header = tar::Header::new_gnu();
        header.set_entry_type(tar::EntryType::new(kind));
        header.set_size(600 << 20);
        header.set_cksum();
        let mut archive = header.as_bytes().to_vec();
        archive.resize(archive.len() + (600 << 20), b'x');
        let answer = attack("t.tar", &archive, "SELECT 1");
        assert_eq!(told(answer), "archive_broken", "{}", char::from(kind));
    }
    for size in [
        [0xff; 12],
        [
            0x80, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
        ],
    ] {
        let mut header = tar::Header::new_gnu();
        header.set_path("t.csv").unwrap();
        header.as_mut_bytes()[124..136].copy_from_slice(&size);
        header.set_cksum();
        let archive = [header.as_bytes().as_slice(), &[0; 1_024]].concat();
        let answer = attack("t.tar", &archive, "SELECT 1");
        assert_eq!(told(answer), "archive_broken", "{size:?}");
    }
}

/// Half a gigabyte in a line, packed and not.
#[test]
fn lines_without_an_end_are_told() {
    let _alone = alone();
    let large = b"x".repeat(500 << 20);
    let packed = gzip(&large[..10 << 20]).repeat(50);
    for (name, first) in [
        ("t.csv", "n\n"),
        ("t.csv", "n\n\""),
        ("t.csv", ""),
        ("t.csv.gz", "n\n"),
        ("t.csv.gz", ""),
        ("t.jsonl", "{\"a\":\""),
        ("t.jsonl.gz", "{\"a\":\""),
    ] {
        let file = match name.ends_with(".gz") {
            true => [gzip(first.as_bytes()), packed.clone()].concat(),
            false => [first.as_bytes(), &large].concat(),
        };
        let answer = attack(name, &file, "SELECT count(*) FROM t");
        assert_eq!(told(answer), "record_too_long", "{name} {first:?}");
    }
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut packed = GzEncoder::new(Vec::new(), flate2::Compression::fast());
    packed.write_all(bytes).unwrap();
    packed.finish().unwrap()
}

/// Gigabytes that are packed into little, and little that is packed a million times.
#[test]
fn what_takes_too_long_to_unpack_ends_in_time() {
    let _alone = alone();
    let limits = Limits {
        timeout_ms: 1_000,
        ..LIMITS
    };
    let zeros = gzip(&b"0\n".repeat(5 << 20)).repeat(40);
    let nothing = gzip(b"").repeat(2_000_000);
    for bytes in [
        [gzip(b"n\n"), zeros].concat(),
        [gzip(b"n\n"), nothing].concat(),
    ] {
        let directory = directory(&[("t.csv.gz", &bytes)]);
        let mut session = open(directory.path(), "t.csv.gz").unwrap();
        let begun = Instant::now();
        let answer = ask_with(&mut session, "SELECT count(*) FROM t", Vec::new(), limits);
        let error = answer.err().unwrap();
        println!(
            "{} bytes: {error:?} after {:?}",
            bytes.len(),
            begun.elapsed()
        );
        assert_eq!(error.code, "statement_timeout");
        assert!(
            begun.elapsed() < Duration::from_secs(1) + LATE_MAX,
            "{:?}",
            begun.elapsed()
        );
    }
}

/// A line of nothing but brackets, numbers of millions of digits, and lines that each have another name.
#[test]
fn json_has_bounds() {
    let _alone = alone();
    let deep = format!(
        "{{\"a\":{}{}}}\n",
        "[".repeat(4_000_000),
        "]".repeat(4_000_000)
    );
    let answer = attack("t.jsonl", deep.as_bytes(), "SELECT length(a) FROM t");
    assert_eq!(answer.unwrap(), ["8000000"]);
    let long = format!("{{\"a\":{}}}\n", "9".repeat(8_000_000)).repeat(8);
    let answer = attack("t.jsonl", long.as_bytes(), "SELECT max(length(a)) FROM t");
    assert_eq!(answer.unwrap(), ["8000000"]);
    let names: String = (0..2_500)
        .map(|n| format!("{{\"c{n}\":{n}.5}}\n"))
        .collect();
    let answer = attack("t.jsonl", names.as_bytes(), "SELECT * FROM t");
    assert!(["rows_limit", "bytes_limit"].contains(&told(answer).as_str()));
    let wide = |name: usize| format!("{{\"{name:01000}\":1}}\n");
    let names: String = (0..10_000).map(wide).collect();
    let names = names.as_bytes();
    let tables: Vec<String> = (0..40).map(|n| format!("t{n}.jsonl")).collect();
    let files: Vec<(&str, &[u8])> = tables.iter().map(|table| (table.as_str(), names)).collect();
    let answer = attack("t.tar", &tar(&files), "SELECT 1");
    assert_eq!(told(answer), "tables_too_large");
}

/// Two thousand million rows in a batch of no bytes.
#[test]
fn batches_of_arrow_are_computed_some_rows_at_a_time() {
    use datafusion::arrow::array::{Int32Array, RunArray};
    use datafusion::arrow::datatypes::Int32Type;
    use datafusion::arrow::ipc::writer::FileWriter;
    let _alone = alone();
    let ends = Int32Array::from(vec![i32::MAX]);
    let text = StringArray::from(vec!["x".repeat(1_000)]);
    let runs = RunArray::<Int32Type>::try_new(&ends, &text).unwrap();
    let rows = batch(vec![("a", array(runs))]);
    let mut writer = FileWriter::try_new(Vec::new(), &rows.schema()).unwrap();
    writer.write(&rows).unwrap();
    writer.finish().unwrap();
    let file = writer.get_ref().clone();
    for sql in ["SELECT count(*) FROM t", "SELECT a FROM t LIMIT 3"] {
        attack("t.arrow", &file, sql).unwrap();
    }
    let answer = attack("t.arrow", &file, "SELECT max(concat(a, '!')) FROM t");
    assert!(
        matches!(&answer, Err(error) if error.class == ErrorClass::Timeout),
        "{answer:?}"
    );
}

#[test]
fn files_of_nothing_are_told() {
    let _alone = alone();
    let rows = batch(vec![("n", array(Int64Array::from(vec![1])))]);
    let whole = parquet(&rows);
    for (name, bytes) in [
        ("t.parquet", &b"PAR1\xff\xff\xff\x7fPAR1"[..]),
        ("t.parquet", &[0; 64]),
        ("t.parquet", &whole[..whole.len() - 9]),
        ("t.csv", b""),
        ("t.csv.gz", &[0x1f, 0x8b]),
        ("t.jsonl", b"[1]"),
        ("t.tar", &[b'x'; 2_000]),
        ("t.arrow", &b"ARROW1\0\0\xff\xff\xff\x7fARROW1"[..]),
    ] {
        told(attack(name, bytes, "SELECT count(*) FROM t"));
    }
}
