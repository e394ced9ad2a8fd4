//! What sellers write for files: the same values, to the last digit, or the code with which it is refused. The statements are in the files of
//! `breadth/`, a block each, with the rows that DataFusion 55 answers through its own client, and PostgreSQL where it is not said otherwise in
//! the README; who misses a statement adds one.
//!
//! A block is a name behind `---`, lines of `-- :` for its parameters, and `-- =` for each row that it answers, `-- none` for none, or `-- refused`
//! with a code. What is about an order has it; rows are compared in theirs.

mod common;

use common::{Answer, LIMITS, array, ask_with, batch, directory, open, parquet, tar};
use datafusion::arrow::array::*;
use souk_sdk::{ColumnType, Value};
use tempfile::TempDir;

const STAFF: &[u8] = include_bytes!("breadth/staff.csv");
const EVENTS: &[u8] = include_bytes!("breadth/events.jsonl");
const ANSWERED: [&str; 3] = [
    include_str!("breadth/values.sql"),
    include_str!("breadth/queries.sql"),
    include_str!("breadth/parameters.sql"),
];
const REFUSED: &str = include_str!("breadth/refused.sql");

const MICROS_A_SECOND: i64 = 1_000_000;
const MICROS_A_DAY: i64 = 86_400 * MICROS_A_SECOND;

/// One statement and what it says of itself.
struct Block {
    name: &'static str,
    sql: &'static str,
    parameters: Vec<Value>,
    rows: Vec<&'static str>,
    has_none: bool,
    refused: Option<&'static str>,
}

fn blocks(file: &'static str) -> Vec<Block> {
    file.split("\n--- ").skip(1).map(Block::read).collect()
}

impl Block {
    fn read(text: &'static str) -> Block {
        let (name, mut rest) = text.split_once('\n').expect("a name and a statement");
        let mut block = Block {
            name,
            sql: "",
            parameters: Vec::new(),
            rows: Vec::new(),
            has_none: false,
            refused: None,
        };
        while let Some((line, behind)) = rest.split_once('\n')
            && block.takes(line)
        {
            rest = behind;
        }
        block.sql = rest.trim();
        let says = [
            !block.rows.is_empty(),
            block.has_none,
            block.refused.is_some(),
        ];
        let says = says.into_iter().filter(|says| *says).count();
        assert!(says == 1 && !block.sql.is_empty(), "{name} says nothing");
        block
    }

    /// Whether a line is about the statement, and not its beginning.
    fn takes(&mut self, line: &'static str) -> bool {
        if let Some(parameter) = line.strip_prefix("-- :") {
            self.parameters.push(value(parameter));
        } else if let Some(row) = line.strip_prefix("-- = ") {
            self.rows.push(row);
        } else if let Some(code) = line.strip_prefix("-- refused ") {
            self.refused = Some(code);
        } else if line == "-- none" {
            self.has_none = true;
        } else {
            return false;
        }
        true
    }
}

/// A parameter as a line has it: its kind, and behind that its value.
fn value(line: &str) -> Value {
    let (kind, text) = line.split_once(' ').expect("a kind and a value");
    let number = || text.parse::<i64>().expect("a number");
    match (kind, text) {
        ("integer", "null") => Value::Null(Some(ColumnType::Int64)),
        ("decimal", "null") => Value::Null(Some(ColumnType::Decimal)),
        ("text", "null") => Value::Null(Some(ColumnType::Text)),
        ("integer", _) => Value::Int64(number()),
        ("decimal", _) => Value::Decimal(text.to_owned()),
        ("float", _) => Value::Float64(text.parse().expect("a float")),
        ("text", _) => Value::Text(text.to_owned()),
        ("boolean", _) => Value::Boolean(text == "true"),
        ("date", _) => Value::Date(number().try_into().expect("a day")),
        ("timestamp", _) => Value::Timestamp(number()),
        ("local", _) => Value::LocalTimestamp(number()),
        _ => panic!("{line} is no parameter"),
    }
}

/// The rows of an answer as the blocks have them.
fn told(answer: &Answer) -> Vec<String> {
    let kinds = answer.kinds();
    let line = |row: &Vec<Option<String>>| {
        let cells = row.iter().zip(&kinds);
        let cells = cells.map(|(cell, kind)| match cell {
            Some(text) => spelled(*kind, text),
            None => "~".to_owned(),
        });
        cells.collect::<Vec<_>>().join("|")
    };
    answer.rows.iter().map(line).collect()
}

/// A value for people: days and moments by the calendar.
fn spelled(kind: ColumnType, text: &str) -> String {
    let number = || text.parse::<i64>().expect("a number");
    match kind {
        ColumnType::Date => day(number()),
        ColumnType::Time => clock(number()),
        ColumnType::LocalTimestamp => moment(number()),
        ColumnType::Timestamp => format!("{}Z", moment(number())),
        _ => text.to_owned(),
    }
}

fn moment(micros: i64) -> String {
    let time = clock(micros.rem_euclid(MICROS_A_DAY));
    format!("{}T{time}", day(micros.div_euclid(MICROS_A_DAY)))
}

fn clock(micros: i64) -> String {
    let (seconds, fraction) = (micros / MICROS_A_SECOND, micros % MICROS_A_SECOND);
    let (hours, minutes) = (seconds / 3_600, seconds / 60 % 60);
    format!("{hours:02}:{minutes:02}:{:02}.{fraction:06}", seconds % 60)
}

/// A day by its number since 1970. Years begin in March here, so that a leap day is their last.
fn day(since_1970: i64) -> String {
    let days = since_1970 + 719_468;
    let (era, of_era) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let years = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * years + years / 4 - years / 100);
    let from_march = (5 * of_year + 2) / 153;
    let day = of_year - (153 * from_march + 2) / 5 + 1;
    let month = if from_march < 10 {
        from_march + 3
    } else {
        from_march - 9
    };
    let year = era * 400 + years + i64::from(month <= 2);
    format!("{year:04}-{month:02}-{day:02}")
}

/// What `breadth/queries.sql` calls `sales`.
fn sales() -> Vec<u8> {
    let amounts = vec![
        Some(10_000),
        Some(1),
        Some(1_999),
        Some(1_999),
        None,
        Some(-500),
        Some(123_456_789),
        Some(750),
    ];
    let amounts = Decimal128Array::from(amounts);
    let staff = vec![
        Some(1),
        Some(1),
        Some(2),
        Some(2),
        Some(3),
        Some(6),
        Some(6),
        None,
    ];
    let quantities = vec![
        Some(1),
        Some(2),
        Some(3),
        Some(3),
        None,
        Some(-1),
        Some(30_000),
        Some(0),
    ];
    let prices = vec![
        Some(0.1),
        Some(0.2),
        Some(1e20),
        Some(f64::NAN),
        None,
        Some(-1.5),
        Some(f64::INFINITY),
        Some(-0.0),
    ];
    let days = vec![
        Some(20_454),
        Some(20_454),
        Some(20_484),
        Some(20_485),
        Some(20_512),
        Some(20_453),
        Some(20_513),
        None,
    ];
    let moments = vec![
        Some(1_767_225_600_000),
        Some(1_767_225_600_001),
        Some(1_769_903_999_999),
        Some(1_769_904_000_000),
        Some(1_772_236_800_000),
        Some(-1),
        None,
        Some(0),
    ];
    let large = vec![
        Some(i64::MAX),
        Some(i64::MIN),
        Some(0),
        Some(1),
        Some(-1),
        Some(2),
        Some(3),
        None,
    ];
    let mut tags = ListBuilder::new(StringBuilder::new());
    for list in [
        Some(vec![Some("a"), Some("b")]),
        Some(vec![]),
        None,
        Some(vec![Some("a")]),
        Some(vec![Some("c"), None]),
        Some(vec![Some("b")]),
        Some(vec![Some("a")]),
        None,
    ] {
        match list {
            Some(texts) => tags.append_value(texts),
            None => tags.append_null(),
        }
    }
    parquet(&batch(vec![
        ("id", array(Int64Array::from_iter_values(1..=8))),
        ("staff", array(Int32Array::from(staff))),
        (
            "amount",
            array(amounts.with_precision_and_scale(12, 2).unwrap()),
        ),
        ("qty", array(Int16Array::from(quantities))),
        ("price", array(Float64Array::from(prices))),
        ("day", array(Date32Array::from(days))),
        ("at", array(TimestampMillisecondArray::from(moments))),
        ("big", array(Int64Array::from(large))),
        ("tags", array(tags.finish())),
    ]))
}

fn shop() -> TempDir {
    let archive = tar(&[
        ("staff.csv", STAFF),
        ("events.jsonl", EVENTS),
        ("sales.parquet", &sales()),
    ]);
    directory(&[("shop.tar", &archive)])
}

/// What is wrong with what a block's statement answers.
fn fault(directory: &TempDir, block: &Block) -> Option<String> {
    // One of its own, since a shape is told once.
    let mut session = open(directory.path(), "shop.tar").unwrap();
    let answer = ask_with(&mut session, block.sql, block.parameters.clone(), LIMITS);
    let fault = match (answer, block.refused) {
        (Ok(answer), None) => {
            let told = told(&answer);
            if told == block.rows {
                return None;
            }
            format!("{}\nand not\n{}", told.join("\n"), block.rows.join("\n"))
        }
        (Err(error), Some(code)) if error.code == code => return None,
        (Ok(answer), Some(code)) => format!("{:?}, and not {code}", told(&answer)),
        (Err(error), _) => format!("it is refused: {error:?}"),
    };
    Some(format!("{}: {fault}\n{}", block.name, block.sql))
}

fn held() {
    let directory = shop();
    let answered: Vec<Block> = ANSWERED.into_iter().flat_map(blocks).collect();
    let refused = blocks(REFUSED);
    let all = answered.iter().chain(&refused);
    let faults: Vec<String> = all.filter_map(|block| fault(&directory, block)).collect();
    let (count, all) = (faults.len(), faults.join("\n\n"));
    assert_eq!(count, 0, "{all}");
    assert!(answered.len() >= 260 && refused.len() >= 30);
}

/// On a stack as large as a debug build needs.
#[test]
fn what_sellers_write_is_answered_to_the_last_digit() {
    let held = std::thread::Builder::new().stack_size(64 << 20).spawn(held);
    held.unwrap().join().unwrap();
}

/// The calendar here is the one by which the answers are held.
#[test]
fn days_are_told_by_the_calendar() {
    for (days, told) in [
        (0, "1970-01-01"),
        (-1, "1969-12-31"),
        (-719_162, "0001-01-01"),
        (2_932_896, "9999-12-31"),
        (19_782, "2024-02-29"),
        (20_484, "2026-01-31"),
    ] {
        assert_eq!(day(days), told);
    }
    assert_eq!(moment(-500_000), "1969-12-31T23:59:59.500000");
}
