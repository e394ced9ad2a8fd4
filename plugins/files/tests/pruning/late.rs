//! Of rows of which the first ones are answered only these are read whole, and they are the same rows.

use crate::common::{array, ask, batch, file, parquet_with, ping, tar};
use datafusion::arrow::array::*;
use datafusion::parquet::basic::Compression;
use datafusion::parquet::file::properties::WriterProperties;
use souk_connector_files::Session;
use std::cmp::Reverse;

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

/// The numbers of the rows that are chosen, by their scores, and equal ones by their numbers.
fn sorted(is_chosen: impl Fn(i64) -> bool, score: impl Fn(i64) -> i64) -> Vec<i64> {
    let mut chosen: Vec<i64> = (0..ROWS).filter(|n| is_chosen(*n)).collect();
    chosen.sort_by_key(|n| (Reverse(score(*n)), *n));
    chosen
}

fn check(session: &mut Session) {
    let by_score = |is_chosen: &dyn Fn(i64) -> bool| sorted(is_chosen, |n| shuffled(n) / 3);
    let lines = |numbers: &[i64]| numbers.iter().map(|n| line(*n)).collect::<Vec<_>>();
    let select = "SELECT n, note, short, list FROM t";
    let order = "ORDER BY score DESC, n";
    let all = by_score(&|_| true);
    let found = asked(session, &format!("{select} {order} LIMIT 50"));
    assert_eq!(found, lines(&all[..50]));
    let found = asked(session, &format!("{select} {order} LIMIT 20 OFFSET 30"));
    assert_eq!(found, lines(&all[30..50]));

    // From far on, and behind the last one.
    for from in [15_000, 60_000, 99_990] {
        let text = format!("{select} {order} LIMIT 20 OFFSET {from}");
        let until = all.len().min(from + 20);
        assert_eq!(asked(session, &text), lines(&all[from..until]));
    }
    let text = format!("{select} {order} LIMIT 20 OFFSET 200000");
    assert_eq!(asked(session, &text), [""; 0]);
    let odd = by_score(&|n| n % 2 == 1);
    let text = format!("{select} WHERE n % 2 = 1 {order} LIMIT 7 OFFSET 40000");
    assert_eq!(asked(session, &text), lines(&odd[40_000..40_007]));
    // By texts, which are not of one length.
    let mut texts: Vec<i64> = (0..ROWS).collect();
    texts.sort_by_key(|n| (format!("s{}", n % 100), *n));
    let text = format!("{select} ORDER BY short, n LIMIT 5 OFFSET 30000");
    assert_eq!(asked(session, &text), lines(&texts[30_000..30_005]));

    // What is filtered by is read before, too, and may be what is answered.
    let sevens = by_score(&|n| n % 100 == 7);
    let text = format!("{select} WHERE short = 's7' AND note IS NOT NULL {order} LIMIT 9");
    assert_eq!(asked(session, &text), lines(&sevens[..9]));
    let has = |n: i64| (0..10).any(|digit| long(n).contains(&format!("99{digit}9")));
    let text = format!("{select} WHERE note LIKE '%99_9%' {order} LIMIT 9");
    let found = by_score(&|n| n % 10 != 3 && has(n));
    assert_eq!(asked(session, &text), lines(&found[..9]));
    // Below what adds up a filter stays above what reads.
    let text = format!("SELECT n, note FROM t WHERE short = 's7' {order} LIMIT 9");
    let text = format!("SELECT count(*), sum(n), max(note) FROM ({text}) q");
    let (sum, last) = (
        sevens[..9].iter().sum::<i64>(),
        sevens[..9].iter().map(|n| long(*n)).max(),
    );
    assert_eq!(
        asked(session, &text),
        [format!("9|{sum}|{}", last.unwrap())]
    );

    // So is what is computed to sort by, whether it is answered or not.
    let longest = sorted(|n| n % 10 != 3, |n| long(n).len() as i64 + shuffled(n) / 3);
    let from = "FROM t WHERE note IS NOT NULL ORDER BY length(note) + score DESC, n LIMIT 3";
    let expected = longest[..3]
        .iter()
        .map(|n| format!("{}|{}", n + 1, long(*n).to_uppercase()));
    let found = asked(session, &format!("SELECT n + 1, upper(note) {from}"));
    assert_eq!(found, expected.collect::<Vec<_>>());
    let text = format!("{select} ORDER BY upper(short) || 'x', n LIMIT 2");
    assert_eq!(asked(session, &text), lines(&[0, 100]));
    let text = "SELECT short || 'x' AS file, note AS row, n FROM t ORDER BY file DESC, n LIMIT 1";
    assert_eq!(asked(session, text), [format!("s9x|{}|9", long(9))]);

    // An order that goes on with another one.
    let text = "SELECT short, n FROM (SELECT short, n FROM t ORDER BY short LIMIT 3000) q ORDER BY short, n DESC LIMIT 3";
    assert_eq!(asked(session, text), ["s0|99900", "s0|99800", "s0|99700"]);
    let text = "SELECT n, short FROM (SELECT n, short FROM t WHERE n < 50000 ORDER BY n / 5000 LIMIT 40000) q ORDER BY n / 5000, n DESC LIMIT 2";
    assert_eq!(asked(session, text), ["4999|s99", "4998|s98"]);

    // None, one, and more than are read late.
    let text = format!("{select} WHERE n < 0 {order} LIMIT 5");
    assert_eq!(asked(session, &text), [""; 0]);
    let text = format!("{select} WHERE n = 77 {order} LIMIT 5");
    assert_eq!(asked(session, &text), lines(&[77]));
    let text = format!("SELECT n, note FROM t {order} LIMIT 20000");
    let text = format!("SELECT count(*), count(DISTINCT n), min(length(note)) FROM ({text}) q");
    assert_eq!(asked(session, &text), ["20000|20000|41"]);
    // What is drawn once is what it is sorted by.
    let drawn = asked(
        session,
        "SELECT random() AS it, n, note FROM t ORDER BY it LIMIT 20",
    );
    assert_eq!(drawn.len(), 20);
    assert!(drawn.is_sorted_by_key(|line| line.split('|').next().unwrap().parse::<f64>().unwrap()));
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

/// Newest first, as it is mostly asked, and from far on: one page of each column is read whole, and all of what is sorted by.
#[test]
fn what_is_not_answered_is_not_read() {
    let bytes = parquet_with(&rows(0..ROWS), properties(ROWS as usize));
    for (part, first) in [
        ("LIMIT 20", ROWS - 1),
        ("LIMIT 20 OFFSET 60000", ROWS - 60_001),
    ] {
        // What one has read it may keep.
        let (_directory, mut session) = file("t.parquet", &bytes);
        ping(&mut session).unwrap();
        let before = session.bytes_read();
        asked(
            &mut session,
            &format!("SELECT n FROM t ORDER BY n DESC {part}"),
        );
        let one = session.bytes_read() - before;
        let before = session.bytes_read();
        let found = asked(
            &mut session,
            &format!("SELECT * FROM t ORDER BY n DESC {part}"),
        );
        let all = session.bytes_read() - before;
        assert!(found[0].starts_with(&format!("{first}|")), "{}", found[0]);
        let whole = bytes.len();
        assert!(
            all - one < whole as u64 / 20,
            "{part}: {one} and {all} of {whole}"
        );
    }
}

/// DataFusion has a function that asks Parquet's reader for a row's number, too.
#[test]
fn rows_have_one_number() {
    let bytes = parquet_with(&rows(0..ROWS), properties(30_000));
    let (_directory, mut session) = file("t.parquet", &bytes);
    let select = "SELECT file_row_index() AS at, n, note FROM t ORDER BY at DESC LIMIT 2";
    let answer = ask(&mut session, select).unwrap();
    let line = |n: i64| format!("{n}|{n}|{}", long(n));
    assert_eq!(answer.lines(), [line(ROWS - 1), line(ROWS - 2)]);
}

/// A row of each of many row groups takes the memory of as many rows.
#[test]
fn rows_of_many_groups_fit() {
    let numbers = 0..100_000i64;
    let columns = (0..24)
        .map(|column| format!("c{column}"))
        .collect::<Vec<_>>();
    let values = Int64Array::from_iter_values(numbers.map(|n| n * 7_919 % 100_000));
    let values = array(values);
    let columns = columns.iter().map(|name| (name.as_str(), values.clone()));
    let properties = WriterProperties::builder()
        .set_max_row_group_row_count(Some(1_000))
        .build();
    let bytes = parquet_with(&batch(columns.collect()), properties);
    let (_directory, mut session) = file("t.parquet", &bytes);
    let found = asked(&mut session, "SELECT * FROM t ORDER BY c0 LIMIT 1000");
    let line = |n: i64| vec![n.to_string(); 24].join("|");
    assert_eq!((found.len(), &found[999]), (1_000, &line(999)));
}
