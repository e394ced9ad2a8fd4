//! How long the connector `files` takes for a million rows of Parquet, beside native SQLite on the same rows and, where `SOUK_DATAFUSION_PYTHON` names a
//! Python that has it (`pip install datafusion==55.*`), native DataFusion on the same file: a measurement, which `tests/load/figures files` runs on a
//! machine that does nothing else. Whoever asks writes or reads all rows; there is no HTTP.

mod common;

use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Instant;

use arrow_array::{ArrayRef, Date32Array, Decimal128Array, Int64Array, RecordBatch, StringArray};
use common::{activate, nobody, query_with, rows, within};
use parquet::arrow::ArrowWriter;
use parquet::basic::Compression;
use parquet::file::properties::WriterProperties;
use rusqlite::{Connection, params, types::ValueRef};
use serde_json::Value as Json;
use souk_sandbox::{Sandbox, Source, Value};
use tempfile::TempDir;

const ROWS: i64 = 1_000_000;
/// Rows of a batch that is written.
const WRITTEN: i64 = 100_000;
const READ: usize = 3;
const ROUNDS: usize = 15;
/// `$1` is another row's number in each round.
const NUMBER: &str = "$1";
/// What each asks, and whether it is held to SQLite's time: what counts, adds up and groups is.
const QUESTIONS: [(&str, &str, bool); 11] = [
    ("sum", "SELECT sum(price) FROM t", true),
    (
        "groups",
        "SELECT grp, sum(price) AS total, count(*) AS n, avg(qty) AS mean FROM t GROUP BY grp ORDER BY grp",
        true,
    ),
    (
        "filtered sum",
        "SELECT sum(price) FROM t WHERE day BETWEEN '2024-02-01' AND '2024-02-29' AND grp = 7",
        true,
    ),
    ("distinct", "SELECT count(DISTINCT note) FROM t", true),
    (
        "LIKE",
        "SELECT count(*) FROM t WHERE note LIKE '%abc%'",
        false,
    ),
    (
        "100 by price, 3 columns",
        "SELECT id, price, name FROM t ORDER BY price DESC, id LIMIT 100",
        false,
    ),
    (
        "100 by price, all",
        "SELECT id, day, grp, qty, price, name, note FROM t ORDER BY price DESC, id LIMIT 100",
        false,
    ),
    (
        "newest 100, all",
        "SELECT id, day, grp, qty, price, name, note FROM t ORDER BY day DESC, id DESC LIMIT 100",
        true,
    ),
    (
        "one row",
        "SELECT id, day, grp, qty, price, name, note FROM t WHERE id = $1",
        false,
    ),
    (
        "1,000 rows",
        "SELECT id, day, grp, qty, price, name, note FROM t WHERE id >= $1 AND id < $1 + 1000",
        false,
    ),
    (
        "a page of 1,000",
        "SELECT id, day, grp, qty, price, name, note FROM t WHERE id > $1 ORDER BY id LIMIT 1000",
        false,
    ),
];
/// Reads a statement a line, and answers each with the milliseconds that it took.
const DATAFUSION: &str = "
import sys, time
from datafusion import SessionConfig, SessionContext
config = SessionConfig().with_target_partitions(1).set('datafusion.sql_parser.parse_float_as_decimal', 'true')
config = config.set('datafusion.execution.parquet.pushdown_filters', sys.argv[2])
context = SessionContext(config)
context.register_parquet('t', sys.argv[1])
for line in sys.stdin:
    begun = time.perf_counter()
    rows = sum(batch.num_rows for batch in context.sql(line).collect())
    print((time.perf_counter() - begun) * 1e3, rows, flush=True)
";

#[tokio::test]
#[ignore = "measures: tests/load/figures files"]
async fn files_beside_native_engines() {
    let directory = TempDir::new().unwrap();
    let (parquet, sqlite) = (
        directory.path().join("t.parquet"),
        directory.path().join("t.db"),
    );
    write(&parquet, &sqlite);
    let sandbox = nobody::sandbox();
    let component = std::env::var_os("SOUK_FILES_COMPONENT").expect("a component of files");
    activate(&sandbox, std::fs::read(component).unwrap()).await;
    let source = nobody::source("files", directory.path(), "t.parquet");
    let native = Connection::open(&sqlite).unwrap();
    // As large as the file, so that it is all in memory.
    native.pragma_update(None, "cache_size", -200_000).unwrap();
    let python = std::env::var_os("SOUK_DATAFUSION_PYTHON");
    // Whichever is quicker there: filters while it reads, or after.
    let mut datafusions: Vec<DataFusion> = match &python {
        Some(python) => ["false", "true"]
            .map(|filters| DataFusion::begin(Path::new(python), &parquet, filters))
            .into(),
        None => Vec::new(),
    };

    let mut slow = Vec::new();
    for (name, text, is_held) in QUESTIONS {
        let (mut ours, mut theirs, mut theirs_too) = (Vec::new(), Vec::new(), Vec::new());
        let mut first = 0.0;
        for round in 0..READ + ROUNDS {
            let number = (round as i64 * 618_034) % (ROWS - 2_000) + 1;
            let has_number = text.contains(NUMBER);
            let of_ours = async {
                let begun = Instant::now();
                let answer = asked(&sandbox, &source, text, has_number.then_some(number)).await;
                (milliseconds_since(begun), answer)
            };
            let of_native = || {
                let begun = Instant::now();
                let answer = told(&native, text, has_number.then_some(number));
                (milliseconds_since(begun), answer)
            };
            let ((our, answer), (their, expected)) = match round % 2 {
                0 => (of_ours.await, of_native()),
                _ => {
                    let native = of_native();
                    (of_ours.await, native)
                }
            };
            if round == 0 {
                let (answer, expected) = (numbers(&answer), numbers(&expected));
                assert!(
                    alike(&answer, &expected),
                    "{name}: {answer:?}, {expected:?}"
                );
            }
            let too = datafusions
                .iter_mut()
                .map(|datafusion| datafusion.takes(&text.replace(NUMBER, &number.to_string())));
            let too = too.fold(f64::INFINITY, f64::min);
            // Three times columns are read, and the third time unpacked for those that follow.
            if round == 0 {
                first = our;
            }
            if round >= READ {
                ours.push(our);
                theirs.push(their);
                theirs_too.push(too);
            }
        }
        let [our, their, too] = [ours, theirs, theirs_too].map(median);
        let ratio = our / their;
        print!(
            "{name:<24}: souk {our:>7.1} ms (first {first:>6.1}), SQLite {their:>7.1} ms, {ratio:>6.2}"
        );
        match datafusions.is_empty() {
            true => println!(),
            false => println!(", DataFusion {too:>6.1} ms, {:>5.2}", our / too),
        }
        if is_held && ratio > 1.0 {
            slow.push(name);
        }
    }
    assert!(slow.is_empty(), "slower than native SQLite: {slow:?}");
}

/// A file of each kind with the same rows: in the order of their numbers and days, the rest in none.
fn write(parquet: &Path, sqlite: &Path) {
    let properties = WriterProperties::builder().set_compression(Compression::SNAPPY);
    let properties = properties.build();
    let mut writer: Option<ArrowWriter<File>> = None;
    let mut connection = Connection::open(sqlite).unwrap();
    connection
        .execute_batch(
            "CREATE TABLE t (id integer PRIMARY KEY, day text NOT NULL, grp integer NOT NULL, qty integer NOT NULL, price real NOT NULL,
                 name text NOT NULL, note text NOT NULL)",
        )
        .unwrap();
    let mut seed = 1u64;
    let mut any = |below: u64| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (seed >> 33) % below
    };
    for first in (1..=ROWS).step_by(WRITTEN as usize) {
        let ids: Vec<i64> = (first..first + WRITTEN).collect();
        // From 2023-01-01 on, a day for each thousand rows.
        let days: Vec<i32> = ids.iter().map(|id| 19_358 + (id / 1_000) as i32).collect();
        let groups: Vec<i64> = ids.iter().map(|_| any(100) as i64).collect();
        let amounts: Vec<i64> = ids.iter().map(|_| any(50) as i64).collect();
        let cents: Vec<i64> = ids.iter().map(|_| any(1_000_000) as i64).collect();
        let names: Vec<String> = ids
            .iter()
            .map(|_| format!("Customer {}", any(5_000)))
            .collect();
        let mut letters = |_: &i64| (0..20).map(|_| char::from(b'a' + any(26) as u8)).collect();
        let notes: Vec<String> = ids.iter().map(&mut letters).collect();

        let prices = cents.iter().map(|cents| i128::from(*cents));
        let prices = Decimal128Array::from_iter_values(prices);
        let prices = prices.with_precision_and_scale(12, 2).unwrap();
        let batch = RecordBatch::try_from_iter([
            ("id", Arc::new(Int64Array::from(ids.clone())) as ArrayRef),
            ("day", Arc::new(Date32Array::from(days.clone()))),
            ("grp", Arc::new(Int64Array::from(groups.clone()))),
            ("qty", Arc::new(Int64Array::from(amounts.clone()))),
            ("price", Arc::new(prices)),
            ("name", Arc::new(StringArray::from(names.clone()))),
            ("note", Arc::new(StringArray::from(notes.clone()))),
        ]);
        let batch = batch.unwrap();
        let writer = writer.get_or_insert_with(|| {
            let file = File::create(parquet).unwrap();
            ArrowWriter::try_new(file, batch.schema(), Some(properties.clone())).unwrap()
        });
        writer.write(&batch).unwrap();

        let transaction = connection.transaction().unwrap();
        let mut insert = transaction
            .prepare("INSERT INTO t VALUES (?1, date(?2 * 86400, 'unixepoch'), ?3, ?4, ?5, ?6, ?7)")
            .unwrap();
        for at in 0..ids.len() {
            let price = cents[at] as f64 / 100.0;
            let row = params![
                ids[at],
                days[at],
                groups[at],
                amounts[at],
                price,
                names[at],
                notes[at]
            ];
            insert.execute(row).unwrap();
        }
        drop(insert);
        transaction.commit().unwrap();
    }
    writer.unwrap().close().unwrap();
    connection.execute_batch("ANALYZE").unwrap();
    let megabytes = |path: &Path| std::fs::metadata(path).unwrap().len() / 1_000_000;
    println!(
        "{ROWS} rows: Parquet {} MB, SQLite {} MB",
        megabytes(parquet),
        megabytes(sqlite)
    );
}

async fn asked(sandbox: &Sandbox, source: &Arc<Source>, text: &str, number: Option<i64>) -> String {
    let parameters = number.map(Value::Int64).into_iter().collect();
    let output = sandbox
        .run(source, query_with(text, parameters), within(60))
        .await;
    rows(&output.unwrap())
}

/// The same rows of SQLite, as JSON, too.
fn told(connection: &Connection, text: &str, number: Option<i64>) -> String {
    let mut statement = connection.prepare_cached(text).unwrap();
    let names: Vec<String> = statement
        .column_names()
        .iter()
        .map(|name| format!("\"{name}\":"))
        .collect();
    let mut rows = match number {
        Some(number) => statement.query([number]),
        None => statement.query([]),
    }
    .unwrap();
    let mut body = String::from("[");
    while let Some(row) = rows.next().unwrap() {
        body.push('{');
        for (at, name) in names.iter().enumerate() {
            body.push_str(name);
            match row.get_ref(at).unwrap() {
                ValueRef::Integer(value) => body.push_str(itoa::Buffer::new().format(value)),
                ValueRef::Real(value) => body.push_str(zmij::Buffer::new().format(value)),
                ValueRef::Text(value) => {
                    // None of these has anything that would have to be escaped.
                    body.push('"');
                    body.push_str(std::str::from_utf8(value).unwrap());
                    body.push('"');
                }
                other => panic!("{other:?}"),
            }
            body.push(',');
        }
        body.pop();
        body.push_str("},");
    }
    if body.ends_with(',') {
        body.pop();
    }
    body.push(']');
    body
}

/// The values of an answer, of which those that are numbers are numbers.
fn numbers(answer: &str) -> Vec<Vec<Result<f64, String>>> {
    let rows: Vec<serde_json::Map<String, Json>> = serde_json::from_str(answer).unwrap();
    let value = |value: &Json| {
        let text = value
            .as_str()
            .map_or_else(|| value.to_string(), str::to_owned);
        text.parse().map_err(|_| text)
    };
    rows.iter()
        .map(|row| row.values().map(value).collect())
        .collect()
}

/// The same but for what floats lose.
fn alike(ours: &[Vec<Result<f64, String>>], theirs: &[Vec<Result<f64, String>>]) -> bool {
    let is_near =
        |(ours, theirs): (&Result<f64, String>, &Result<f64, String>)| match (ours, theirs) {
            (Ok(ours), Ok(theirs)) => (ours - theirs).abs() <= 1e-9 * theirs.abs(),
            (ours, theirs) => ours == theirs,
        };
    ours.len() == theirs.len()
        && ours.iter().zip(theirs).all(|(ours, theirs)| {
            ours.len() == theirs.len() && ours.iter().zip(theirs).all(is_near)
        })
}

/// DataFusion's own client, with one thread.
struct DataFusion {
    process: Child,
    answers: BufReader<std::process::ChildStdout>,
}

impl DataFusion {
    fn begin(python: &Path, file: &Path, filters: &str) -> DataFusion {
        let mut process = Command::new(python)
            .args(["-c", DATAFUSION])
            .arg(file)
            .arg(filters)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let answers = BufReader::new(process.stdout.take().unwrap());
        DataFusion { process, answers }
    }

    /// How many milliseconds it takes for a statement.
    fn takes(&mut self, text: &str) -> f64 {
        writeln!(self.process.stdin.as_mut().unwrap(), "{text}").unwrap();
        let mut answer = String::new();
        self.answers.read_line(&mut answer).unwrap();
        let took = answer.split(' ').next().unwrap();
        took.parse()
            .unwrap_or_else(|_| panic!("{text}: {answer:?}"))
    }
}

impl Drop for DataFusion {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn milliseconds_since(begun: Instant) -> f64 {
    begun.elapsed().as_secs_f64() * 1e3
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}
