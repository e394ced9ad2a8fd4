//! Of which columns a statement's result is, before it is asked for, and the words in which it is asked for then.
//!
//! `DESCRIBE QUERY` does two things at once. It takes queries and nothing else: a text that it does not take is not run. And it says which
//! columns the API would write with fewer digits than they have. Around a statement with such a column stands another one:
//!
//! ```text
//! SELECT s.c0, unix_micros(s.c1)
//! FROM (
//! <the seller's statement>
//! ) AS s (c0, c1)
//! ```
//!
//! An order in it stays: Spark moves no sorting out of a projection.

use std::cell::RefCell;
use std::fmt::Write;

use souk_sdk::Error;
use souk_sdk::texts::Proof;

use crate::answers::{COLUMNS_MAX, Chunk, malformed};
use crate::parameters::{Bound, SqlType};
use crate::types::{DESCRIBED_BYTES_MAX, Type, Way, keeps_keys, too_long};
use crate::values;

/// What is asked before a statement.
const DESCRIBE: &str = "DESCRIBE QUERY ";
/// Types of the values of one text that are remembered: those of decimals are as many as there are digits. Past it the one that was described
/// first is described anew.
const TYPES_MAX: usize = 32;
/// What they take of memory, all of one text: a statement may have hundreds of thousands of values, and a session remembers many texts. Past it
/// the same, and what has more values by itself (some ten thousand) is described each time.
const TYPES_BYTES_MAX: usize = 32 << 10;
/// How parts of a value are written (`to_json`): moments in UTC, with all digits, and NULLs too.
const JSON_OPTIONS: &str = "map('timestampFormat', 'yyyy-MM-dd\\'T\\'HH:mm:ss.SSSSSS\\'Z\\'', 'timestampNTZFormat', 'yyyy-MM-dd\\'T\\'HH:mm:ss.SSSSSS', 'timeZone', 'UTC', 'ignoreNullFields', 'false')";

/// The columns of a statement's result: name and type of each.
#[derive(Debug, Default)]
pub struct Description {
    pub columns: Vec<(String, String)>,
    bytes: usize,
}

/// What asks for a description.
pub fn describe(statement: &str) -> String {
    format!("{DESCRIBE}{statement}")
}

impl Description {
    /// Takes the rows of an answer to [`describe`].
    pub fn take(&mut self, chunk: &Chunk<'_>) -> Result<(), Error> {
        chunk.rows(|row| {
            let [name, kind, _] = row else {
                return Err(malformed());
            };
            let (name, kind) = (values::plain(name)?, values::plain(kind)?);
            self.bytes += name.len() + kind.len();
            if self.bytes > DESCRIBED_BYTES_MAX || self.columns.len() == COLUMNS_MAX {
                return Err(too_long());
            }
            self.columns.push((name, kind));
            Ok(())
        })
    }

    /// Refuses what no words of ours can ask for with all digits.
    pub fn is_exact(&self) -> Result<(), Error> {
        let has_parts = |(_, kind): &&(String, String)| Type::of(kind).way() == Way::Json;
        for (name, kind) in self.columns.iter().filter(has_parts) {
            keeps_keys(kind).map_err(|what| {
                let message = format!("a column of the result has {what}, which Databricks cannot write exactly: write map_entries(…), or name its fields");
                Error::source_failed("inexact_type", message).detail(format!("{name}: {kind}"))
            })?;
        }
        Ok(())
    }

    /// Whether all values keep their digits as the API writes them.
    pub fn is_plain(&self) -> bool {
        let way = |(_, kind): &(String, String)| Type::of(kind).way();
        self.columns.iter().all(|column| way(column) == Way::Plain)
    }

    /// The statement in words that keep all digits.
    pub fn exact(&self, statement: &str) -> String {
        let mut text = String::from("SELECT ");
        for (place, (_, kind)) in self.columns.iter().enumerate() {
            let comma = if place > 0 { ", " } else { "" };
            // A String takes everything.
            let _ = match Type::of(kind).way() {
                Way::Plain => write!(text, "{comma}s.c{place}"),
                Way::Micros => write!(text, "{comma}unix_micros(s.c{place})"),
                Way::Sql => write!(text, "{comma}CAST(s.c{place} AS STRING)"),
                Way::Base64 => write!(text, "{comma}base64(s.c{place})"),
                Way::Json => write!(text, "{comma}to_json(s.c{place}, {JSON_OPTIONS})"),
            };
        }
        let names: Vec<String> = (0..self.columns.len()).map(|at| format!("c{at}")).collect();
        let _ = write!(text, "\nFROM (\n{statement}\n) AS s ({})", names.join(", "));
        text
    }

    /// What tells it from others, where the API describes the result in its other words like this. No such description begins so.
    pub fn key(&self, sent: &str) -> Vec<u8> {
        let mut key = vec![b'='];
        key.extend_from_slice(&(self.columns.len() as u64).to_le_bytes());
        for (name, kind) in &self.columns {
            for part in [name, kind] {
                key.extend_from_slice(&(part.len() as u64).to_le_bytes());
                key.extend_from_slice(part.as_bytes());
            }
        }
        // Nothing stands behind it.
        key.extend_from_slice(sent.as_bytes());
        key
    }
}

/// For values of which types a text is asked for in its own words, without being described before: Databricks has described it as a query of
/// columns that keep all their digits. One in other words is described each time: its answer would not say that a column of it has another name
/// by now, or stands elsewhere.
#[derive(Debug, Default)]
pub struct Plain {
    /// The types of the values, and when it was described; that was asked for last stands last.
    known: RefCell<Vec<(Box<[SqlType]>, Proof)>>,
}

impl Plain {
    /// Whether it is to be described first by who asks at this time of day, in seconds: where that is not known, and of many who ask at the end of its
    /// time by one. The values themselves do not matter, but their types do.
    pub fn is_wanted(&self, values: &[Bound], now: u64) -> bool {
        let known = self.known.borrow();
        let known = known.iter().find(|(types, _)| is_of(types, values));
        known.is_none_or(|(_, proof)| proof.is_wanted(now))
    }

    /// It was described so, which was asked for at this time of day in seconds.
    pub fn give(&self, values: &[Bound], asked_at: u64) {
        self.withdraw(values);
        let bytes = size_of::<SqlType>() * values.len();
        if bytes > TYPES_BYTES_MAX {
            return;
        }
        // Columns of other types are seen in the answer.
        let proof = Proof::for_five_minutes();
        proof.give(asked_at);
        let mut known = self.known.borrow_mut();
        let mut held: usize = known.iter().map(|(types, _)| size_of_val(&**types)).sum();
        while known.len() == TYPES_MAX || held + bytes > TYPES_BYTES_MAX {
            let (first, _) = known.remove(0);
            held -= size_of_val(&*first);
        }
        known.push((values.iter().map(|value| value.kind).collect(), proof));
    }

    /// It is not so any more.
    pub fn withdraw(&self, values: &[Bound]) {
        let mut known = self.known.borrow_mut();
        known.retain(|(types, _)| !is_of(types, values));
    }
}

fn is_of(types: &[SqlType], values: &[Bound]) -> bool {
    values.iter().map(|value| &value.kind).eq(types)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parameters::bound;
    use souk_sdk::{ColumnType, Value};

    impl Plain {
        /// Whether it is known at this time.
        fn holds(&self, values: &[Bound], now: u64) -> bool {
            let known = self.known.borrow();
            let mut known = known.iter();
            known.any(|(types, proof)| is_of(types, values) && proof.holds(now))
        }
    }

    fn description(kinds: &[&str]) -> Description {
        let columns = kinds
            .iter()
            .map(|kind| ("a".to_owned(), (*kind).to_owned()));
        Description {
            columns: columns.collect(),
            bytes: 0,
        }
    }

    fn values(values: &[Value]) -> Vec<Bound> {
        let values = values.iter().enumerate();
        values
            .map(|(at, value)| bound(at, value).unwrap())
            .collect()
    }

    #[test]
    fn what_would_lose_digits_is_asked_for_in_other_words() {
        assert!(description(&["int", "decimal(38,10)", "string", "date", "double"]).is_plain());
        for kind in [
            "timestamp",
            "timestamp_ntz",
            "array<int>",
            "variant",
            "binary",
        ] {
            assert!(!description(&["int", kind]).is_plain(), "{kind}");
        }
        let exact = description(&["int", "timestamp", "timestamp_ntz", "binary", "array<int>"]);
        assert_eq!(
            exact.exact("SELECT 1 -- x"),
            format!(
                "SELECT s.c0, unix_micros(s.c1), CAST(s.c2 AS STRING), base64(s.c3), to_json(s.c4, {JSON_OPTIONS})\nFROM (\nSELECT 1 -- x\n) AS s (c0, c1, c2, c3, c4)"
            )
        );
    }

    #[test]
    fn a_text_is_not_described_again_for_a_while() {
        let plain = Plain::default();
        let one = values(&[Value::Int64(1)]);
        let same = values(&[Value::Int64(2)]);
        assert!(!plain.holds(&one, 1_000));
        plain.give(&one, 1_000);
        assert!(plain.holds(&same, 1_000) && plain.holds(&same, 1_299));
        assert!(!plain.holds(&same, 999) && !plain.holds(&same, 1_300));
        plain.give(&same, 1_300);
        assert!(plain.holds(&one, 1_599));
        plain.withdraw(&same);
        assert!(!plain.holds(&one, 1_300));
    }

    /// The others ask it in its own words while one has it described again.
    #[test]
    fn a_text_is_described_by_one_before_its_end() {
        let plain = Plain::default();
        let one = values(&[Value::Int64(1)]);
        let same = values(&[Value::Int64(2)]);
        assert!(plain.is_wanted(&one, 1_000) && plain.is_wanted(&same, 1_000));
        plain.give(&one, 1_000);
        assert!(!plain.is_wanted(&same, 1_249));
        assert!(plain.is_wanted(&same, 1_250) && !plain.is_wanted(&one, 1_250));
        assert!(plain.is_wanted(&values(&[]), 1_250));
        plain.give(&same, 1_250);
        assert!(!plain.is_wanted(&one, 1_301));
        assert!(plain.is_wanted(&one, 1_550) && plain.is_wanted(&one, 1_550));
    }

    /// By the types of its values as they stand in the statement, however they are sent, and by nothing else.
    #[test]
    fn values_of_other_types_are_another_statement() {
        let of_types = [
            vec![],
            vec![Value::Text("00".into())],
            vec![Value::Bytes(vec![0])],
            vec![Value::LocalTimestamp(0)],
            vec![Value::Int64(1)],
            vec![Value::Int64(1), Value::Int64(1)],
            vec![Value::Decimal("1.5".into())],
            vec![Value::Decimal("10.5".into())],
        ];
        for given in &of_types {
            let plain = Plain::default();
            plain.give(&values(given), 1_000);
            for asked in &of_types {
                let is_known = plain.holds(&values(asked), 1_000);
                assert_eq!(is_known, asked == given, "{asked:?} after {given:?}");
            }
        }
        let plain = Plain::default();
        plain.give(&values(&[Value::Bytes(vec![0])]), 1_000);
        let null = values(&[Value::Null(Some(ColumnType::Bytes))]);
        assert!(plain.holds(&null, 1_000));
    }

    #[test]
    fn types_of_values_have_a_bound() {
        let decimal = |digits| values(&[Value::Decimal("1".repeat(digits))]);
        let plain = Plain::default();
        for digits in 1..=TYPES_MAX + 1 {
            plain.give(&decimal(digits), 1_000);
            plain.give(&decimal(digits), 1_000);
        }
        assert!(!plain.holds(&decimal(1), 1_000));
        assert!((2..=TYPES_MAX + 1).all(|digits| plain.holds(&decimal(digits), 1_000)));
        assert_eq!(plain.known.borrow().len(), TYPES_MAX);
    }

    /// Of many values few lists of types are remembered, and of too many none: each of those is described each time.
    #[test]
    fn types_of_many_values_take_little_memory() {
        let numbers = |count: usize| values(&vec![Value::Int64(1); count]);
        let held = |plain: &Plain| -> usize {
            let known = plain.known.borrow();
            known.iter().map(|(types, _)| size_of_val(&**types)).sum()
        };
        let all = TYPES_BYTES_MAX / size_of::<SqlType>();
        let plain = Plain::default();
        for count in [1, all / 2 - 1, all / 2, all / 2 + 2] {
            plain.give(&numbers(count), 1_000);
            assert!(plain.holds(&numbers(count), 1_000), "{count}");
            assert!(held(&plain) <= TYPES_BYTES_MAX, "{count}");
        }
        // The last one has no room beside another half.
        assert!(!plain.holds(&numbers(all / 2), 1_000));
        plain.give(&numbers(all), 1_000);
        assert!(plain.holds(&numbers(all), 1_000) && !plain.holds(&numbers(1), 1_000));
        plain.give(&numbers(all + 1), 1_000);
        assert!(!plain.holds(&numbers(all + 1), 1_000));
        // What is remembered has nothing to make room for it.
        assert!(plain.holds(&numbers(all), 1_000));
    }

    #[test]
    fn descriptions_are_told_apart() {
        let one = description(&["int", "string"]);
        assert_eq!(one.key("[]"), description(&["int", "string"]).key("[]"));
        assert_ne!(one.key("[]"), description(&["string", "int"]).key("[]"));
        assert_ne!(one.key("[]"), one.key("[ ]"));
    }
}
