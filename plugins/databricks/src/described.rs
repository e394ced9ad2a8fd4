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

use std::collections::VecDeque;
use std::fmt::Write;
use std::rc::Rc;

use souk_sdk::Error;

use crate::answers::{COLUMNS_MAX, Chunk, malformed};
use crate::statements::Prepared;
use crate::types::{DESCRIBED_BYTES_MAX, Type, Way, keeps_keys, too_long};
use crate::values;

/// What is asked before a statement.
const DESCRIBE: &str = "DESCRIBE QUERY ";
/// Statements that are remembered; past it the oldest is asked about anew. With their columns they take no more memory than this.
const KNOWN_MAX: usize = 64;
const KNOWN_BYTES_MAX: usize = 4 << 20;
/// What a column and a value take beside their texts.
const PART_BYTES: usize = 64;
/// A statement is asked about anew after this long. Meanwhile its columns may change, which the answer says itself.
const KNOWN_S: u64 = 300;
/// How parts of a value are written (`to_json`): moments in UTC, with all digits, and NULLs too.
const JSON_OPTIONS: &str = "map('timestampFormat', 'yyyy-MM-dd\\'T\\'HH:mm:ss.SSSSSS\\'Z\\'', 'timestampNTZFormat', 'yyyy-MM-dd\\'T\\'HH:mm:ss.SSSSSS', 'timeZone', 'UTC', 'ignoreNullFields', 'false')";

/// The columns of a statement's result: name and type of each.
#[derive(Debug, Default)]
pub struct Description {
    pub columns: Vec<(String, String)>,
    bytes: usize,
}

/// What asks for a description.
pub fn describe(statement: &Prepared) -> String {
    format!("{DESCRIBE}{}", statement.text)
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

    /// The memory that it takes.
    fn bytes(&self) -> usize {
        self.bytes + PART_BYTES * self.columns.len()
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

    /// What tells it from others.
    pub fn key(&self) -> Vec<u8> {
        let mut key = vec![b'='];
        for (name, kind) in &self.columns {
            for part in [name, kind] {
                key.extend_from_slice(&(part.len() as u64).to_le_bytes());
                key.extend_from_slice(part.as_bytes());
            }
        }
        key
    }
}

/// Statements that Databricks has described, and that are sent as they are. One in other words is described each time: its answer would
/// not say that a column of it has another name by now, or stands elsewhere.
#[derive(Default)]
pub struct Known {
    statements: VecDeque<Entry>,
}

struct Entry {
    statement: Prepared,
    at: u64,
    description: Rc<Description>,
}

impl Entry {
    /// The memory that it takes, without what may be told about values.
    fn bytes(&self) -> usize {
        let values = &self.statement.values;
        let values = values.iter();
        let texts: usize = values
            .map(|value| value.name.len() + value.marker.len() + value.kind.len() + PART_BYTES)
            .sum();
        self.statement.text.len() + texts + self.description.bytes()
    }

    /// Values do not matter, but their types do.
    fn is_of(&self, statement: &Prepared) -> bool {
        let kinds = |statement: &Prepared| {
            let values = statement.values.iter();
            values.map(|value| value.kind.clone()).collect::<Vec<_>>()
        };
        self.statement.text == statement.text && kinds(&self.statement) == kinds(statement)
    }
}

impl Known {
    /// The description of a statement, if it is known at `now`.
    pub fn find(&self, statement: &Prepared, now: u64) -> Option<Rc<Description>> {
        let mut entries = self.statements.iter();
        let entry = entries.find(|entry| entry.is_of(statement))?;
        let lasts = entry.at..entry.at.saturating_add(KNOWN_S);
        lasts.contains(&now).then(|| entry.description.clone())
    }

    pub fn add(&mut self, statement: &Prepared, now: u64, description: &Rc<Description>) {
        self.forget(statement);
        if !description.is_plain() {
            return;
        }
        let mut statement = statement.clone();
        statement
            .values
            .iter_mut()
            .for_each(|value| value.value = None);
        self.statements.push_back(Entry {
            statement,
            at: now,
            description: description.clone(),
        });
        while self.statements.len() > KNOWN_MAX || self.bytes() > KNOWN_BYTES_MAX {
            self.statements.pop_front();
        }
    }

    fn bytes(&self) -> usize {
        self.statements.iter().map(Entry::bytes).sum()
    }

    /// It was not what it is any more.
    pub fn forget(&mut self, statement: &Prepared) {
        self.statements.retain(|entry| !entry.is_of(statement));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parameters::bound;
    use souk_sdk::Value;

    fn description(kinds: &[&str]) -> Description {
        let columns = kinds
            .iter()
            .map(|kind| ("a".to_owned(), (*kind).to_owned()));
        Description {
            columns: columns.collect(),
            bytes: 0,
        }
    }

    fn statement(text: &str, values: &[Value]) -> Prepared {
        let callers = values.len();
        let values = values.iter().enumerate();
        Prepared {
            text: text.into(),
            callers,
            values: values
                .map(|(at, value)| bound(at, value).unwrap())
                .collect(),
        }
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
    fn descriptions_are_kept_for_a_while() {
        let mut known = Known::default();
        let one = statement("SELECT ?", &[Value::Int64(1)]);
        let same = statement("SELECT ?", &[Value::Int64(2)]);
        let other = statement("SELECT ?", &[Value::Boolean(true)]);
        known.add(&one, 1_000, &Rc::new(description(&["bigint"])));
        assert!(known.find(&same, 1_000).is_some() && known.find(&same, 1_299).is_some());
        assert!(known.find(&same, 999).is_none() && known.find(&same, 1_300).is_none());
        assert!(known.find(&other, 1_000).is_none());
        known.forget(&same);
        assert!(known.find(&one, 1_000).is_none());
        for n in 0..=KNOWN_MAX {
            let text = format!("SELECT {n}");
            known.add(&statement(&text, &[]), 1_000, &Rc::default());
        }
        assert_eq!(known.statements.len(), KNOWN_MAX);
        assert!(known.find(&statement("SELECT 0", &[]), 1_000).is_none());
    }

    /// By all that they hold: a short statement may have many columns.
    #[test]
    fn descriptions_are_bounded() {
        let mut known = Known::default();
        let many = Rc::new(description(&["int"; COLUMNS_MAX]));
        for n in 0..20 {
            known.add(&statement(&format!("SELECT {n}"), &[]), 1_000, &many);
            assert!(known.bytes() <= KNOWN_BYTES_MAX);
        }
        assert_eq!(known.statements.len(), KNOWN_BYTES_MAX / (64 * COLUMNS_MAX));
        let long = Description {
            bytes: DESCRIBED_BYTES_MAX,
            ..Description::default()
        };
        let long = Rc::new(long);
        for n in 0..20 {
            known.add(&statement(&format!("SELECT {n}"), &[]), 1_000, &long);
        }
        assert_eq!(known.statements.len(), 3);
        assert!(known.find(&statement("SELECT 19", &[]), 1_000).is_some());
        let one = statement("SELECT ?", &[Value::Int64(1)]);
        known.add(&statement(&"x".repeat(KNOWN_BYTES_MAX), &[]), 1_000, &long);
        assert!(known.statements.is_empty());
        known.add(&one, 1_000, &long);
        assert!(known.find(&one, 1_000).is_some());
    }

    #[test]
    fn descriptions_are_told_apart() {
        let one = description(&["int", "string"]);
        assert_eq!(one.key(), description(&["int", "string"]).key());
        assert_ne!(one.key(), description(&["string", "int"]).key());
    }
}
