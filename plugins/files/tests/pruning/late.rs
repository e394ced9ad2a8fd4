//! Of rows of which the first ones are answered only these are read whole, and they are the same rows.

use crate::common::{array, ask, batch, file, parquet_with, ping, tar};
use datafusion::arrow::array::*;
use datafusion::parquet::basic::Compression;
use datafusion::parquet::file::properties::WriterProperties;
use souk_connector_files::Session;

const ROWS: i64 = 100_000;

/// Shuffled, so that neighbours lie in other pages; a third of the scores is shared by three.
fn shuffled(n: i64) -> i64 {
    n * 7_919 % ROWS
}

fn long(n: i64) -> String {
    format!("a note of some length about the number {n}")
}

fn rows(numbers: impl Iterator<Item = i64> + Clone) -> RecordBatch {
    let notes = numbers.clone().map(|n| (n % 10 != 3).then(|| long(n)));
    let short = numbers.clone().map(|n| format!("s{}", n % 100));
    let lists = numbers.clone().map(|n| Some(vec![Some(n), None]));
    let lists =
        ListArray::from_iter_primitive::<datafusion::arrow::datatypes::Int64Type, _, _>(lists);
    batch(vec![
        ("n", array(Int64Array::from_iter_values(numbers.clone()))),
        (
            "score",
            array(Int64Array::from_iter_values(
                numbers.clone().map(|n| shuffled(n) / 3),
            )),
        ),
        ("note", array(StringArray::from_iter(notes))),
        ("short", array(StringArray::from_iter_values(short))),
        ("list", array(lists)),
    ])
}

fn properties(rows_of_group: usize) -> WriterProperties {
    WriterProperties::builder()
        .set_max_row_group_row_count(Some(rows_of_group))
        .set_data_page_row_count_limit(1_000)
        .set_write_batch_size(500)
        .set_dictionary_enabled(false)
        .set_compression(Compression::SNAPPY)
        .build()
}

fn line(n: i64) -> String {
    let note = if n % 10 == 3 { "~".to_owned() } else { long(n) };
    format!("{n}|{note}|s{}|[{n},null]", n % 100)
}

fn asked(session: &mut Session, text: &str) -> Vec<String> {
    let answer = ask(session, text).unwrap_or_else(|error| panic!("{text}: {error:?}"));
    answer.lines()
}

fn check(session: &mut Session) {
    let by = |from: usize, to: usize, is_among: &dyn Fn(i64) -> bool| {
        let mut all: Vec<i64> = (0..ROWS).filter(|n| is_among(*n)).collect();
        all.sort_by_key(|n| (std::cmp::Reverse(shuffled(*n) / 3), *n));
        all[from..to].iter().map(|n| line(*n)).collect::<Vec<_>>()
    };
    let select = "SELECT n, note, short, list FROM t";
    let order = "ORDER BY score DESC, n";
    let found = asked(session, &format!("{select} {order} LIMIT 50"));
    assert_eq!(found, by(0, 50, &|_| true));
    let found = asked(session, &format!("{select} {order} LIMIT 20 OFFSET 30"));
    assert_eq!(found, by(30, 50, &|_| true));
    // What is filtered by is read before, too, and may be what is answered.
    let text = format!("{select} WHERE short = 's7' AND note IS NOT NULL {order} LIMIT 9");
    assert_eq!(asked(session, &text), by(0, 9, &|n| n % 100 == 7));
    let text = format!("{select} WHERE note LIKE '%99_9%' {order} LIMIT 9");
    let has = |n: i64| n % 10 != 3 && (0..10).any(|digit| long(n).contains(&format!("99{digit}9")));
    assert_eq!(asked(session, &text), by(0, 9, &has));
    // So is what is computed to sort by.
    let text =
        format!("SELECT n + 1, upper(note) FROM t ORDER BY length(note) + score DESC, n LIMIT 3");
    let mut all: Vec<i64> = (0..ROWS).filter(|n| n % 10 != 3).collect();
    all.sort_by_key(|n| {
        (
            std::cmp::Reverse(long(*n).len() as i64 + shuffled(*n) / 3),
            *n,
        )
    });
    // NULLs are the greatest.
    let text = text.replace("FROM t", "FROM t WHERE note IS NOT NULL");
    let expected = all[..3]
        .iter()
        .map(|n| format!("{}|{}", n + 1, long(*n).to_uppercase()));
    assert_eq!(asked(session, &text), expected.collect::<Vec<_>>());
    // None, one, and more than are read late.
    assert_eq!(
        asked(session, &format!("{select} WHERE n < 0 {order} LIMIT 5")),
        [""; 0]
    );
    assert_eq!(
        asked(session, &format!("{select} WHERE n = 77 {order} LIMIT 5")),
        [line(77)]
    );
    let text = format!("SELECT n, note FROM t {order} LIMIT 20000");
    let counted = format!("SELECT count(*), count(DISTINCT n), min(length(note)) FROM ({text}) q");
    assert_eq!(asked(session, &counted), ["20000|20000|41"]);
    let text = format!(
        "SELECT q.note, r.n FROM ({select} {order} LIMIT 3) q JOIN t r ON r.n = q.n + 1 ORDER BY r.n"
    );
    assert_eq!(asked(session, &text).len(), 3);
}

#[test]
fn rows_are_the_same_where_they_are_read_late() {
    let (_directory, mut session) = file(
        "t.parquet",
        &parquet_with(&rows(0..ROWS), properties(30_000)),
    );
    check(&mut session);
}

/// Each file has a row of each number.
#[test]
fn rows_of_several_files_are_not_mistaken() {
    let part = |from, to| parquet_with(&rows(from..to), properties(30_000));
    let parts = [part(0, 10), part(10, 60_000), part(60_000, ROWS)];
    let files: [(&str, &[u8]); 3] = [
        ("t.parquet/b.parquet", &parts[1]),
        ("t.parquet/a.parquet", &parts[0]),
        ("t.parquet/c.parquet", &parts[2]),
    ];
    let (_directory, mut session) = file("t.tar", &tar(&files));
    check(&mut session);
}

/// Newest first, as it is mostly asked: one page of each column is read whole, and all of what is sorted by.
#[test]
fn what_is_not_answered_is_not_read() {
    let bytes = parquet_with(&rows(0..ROWS), properties(ROWS as usize));
    let (_directory, mut session) = file("t.parquet", &bytes);
    ping(&mut session).unwrap();
    let before = session.bytes_read();
    asked(&mut session, "SELECT n FROM t ORDER BY n DESC LIMIT 20");
    let one = session.bytes_read() - before;
    let before = session.bytes_read();
    let found = asked(&mut session, "SELECT * FROM t ORDER BY n DESC LIMIT 20");
    let all = session.bytes_read() - before;
    assert!(
        found[0].starts_with(&format!("{}|", ROWS - 1)),
        "{}",
        found[0]
    );
    println!("of {}: one column {one}, all {all}", bytes.len());
    assert!(
        all - one < bytes.len() as u64 / 20,
        "{one} and {all} of {}",
        bytes.len()
    );
}
