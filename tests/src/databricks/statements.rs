//! What a statement does: what describes a query, a query around another one, queries, writes.

use std::sync::LazyLock;

use serde_json::Value;

use super::CATALOG;
use super::literals::{self, Typed};
use super::refusals::Failure;
use super::tables::Tables;
use super::values::{Cell, Kind, Table};
use crate::remembered::ByText;
use crate::tables::{first_word, regex, semicolon};

/// What a query begins with.
const QUERIES: [&str; 5] = ["SELECT", "WITH", "VALUES", "TABLE", "FROM"];

/// Carries out what is asked.
pub fn outcome(tables: &Tables, text: &str, asked: &Value) -> Result<Table, Failure> {
    let parameters = literals::parameters(asked)?;
    let text = text.trim();
    if let Some(at) = semicolon(text, &['\'', '"', '`'])
        && !text[at + 1..].trim().is_empty()
    {
        return Err(Failure::syntax(first_word(&text[at + 1..]).as_str()));
    }
    let text = text.trim_end_matches(';');
    let catalog = asked["catalog"].as_str().unwrap_or(CATALOG);
    if let Some(query) = text.strip_prefix("DESCRIBE QUERY ") {
        is_query(query)?;
        return Ok(described(&run(tables, query, catalog, &parameters)?));
    }
    run(tables, text, catalog, &parameters)
}

/// Whether the parser takes it where a query must stand.
fn is_query(text: &str) -> Result<(), Failure> {
    let first = first_word(text);
    let writes = regex(r"(?i)\)\s*(INSERT|UPDATE|DELETE|MERGE|FROM\s+\w+\s+INSERT)\b");
    let multi = regex(r"(?i)^\s*FROM\s+\w+\s+INSERT\b");
    if let Some(found) = writes.captures(text) {
        return Err(Failure::syntax(&found[1]));
    }
    match QUERIES.contains(&first.as_str()) && !multi.is_match(text) {
        true => Ok(()),
        false => Err(Failure::syntax(&first)),
    }
}

/// Names and types of columns.
fn described(table: &Table) -> Table {
    let string = || Kind::of("string");
    let columns = ["col_name", "data_type", "comment"].map(|name| (name.to_owned(), string()));
    let rows = table.columns.iter();
    let rows = rows.map(|(name, kind)| {
        vec![
            Cell::Text(name.clone()),
            Cell::Text(kind.0.clone()),
            Cell::Null,
        ]
    });
    Table {
        columns: columns.into(),
        rows: rows.collect(),
    }
}

fn run(
    tables: &Tables,
    text: &str,
    catalog: &str,
    parameters: &[(String, Typed)],
) -> Result<Table, Failure> {
    if let Some(table) = around(tables, text, catalog, parameters)? {
        return Ok(table);
    }
    if let Some(table) = literals::row(text, parameters)? {
        return Ok(table);
    }
    match first_word(text).as_str() {
        "INSERT" | "UPDATE" | "DELETE" | "CREATE" | "DROP" => tables.write(text),
        first if QUERIES.contains(&first) => tables.query(text, catalog, parameters),
        first => Err(Failure::syntax(first)),
    }
}

/// A query of columns of another one that is its only source: `SELECT s.c0, unix_micros(s.c1)\nFROM (\n…\n) AS s (c0, c1)`.
struct Around {
    inner: String,
    /// How many columns the other one must have.
    width: usize,
    calls: Vec<Call>,
    /// Why the next one is none.
    failure: Option<Failure>,
}

/// What is made of one of the columns.
struct Call {
    text: String,
    way: usize,
    from: usize,
}

fn around(
    tables: &Tables,
    text: &str,
    catalog: &str,
    parameters: &[(String, Typed)],
) -> Result<Option<Table>, Failure> {
    static READ: LazyLock<ByText<Option<Around>>> = LazyLock::new(ByText::default);
    let read = READ.of(text, || Around::read(text));
    let Some(around) = &*read else {
        return Ok(None);
    };
    let mut inner = run(tables, &around.inner, catalog, parameters)?;
    if around.width != inner.columns.len() {
        return Err(Failure::new(
            "ASSIGNMENT_ARITY_MISMATCH",
            "42802",
            "The number of columns or variables assigned or aliased does not match the number of source expressions.",
        ));
    }
    let mut table = Table {
        rows: vec![Vec::new(); inner.rows.len()],
        ..Table::default()
    };
    for Call { text, way, from } in &around.calls {
        let (name, kind) = &inner.columns[*from];
        let wanted = match way {
            1 => "",
            2 => "timestamp",
            3 => "timestamp_ntz",
            4 => "binary",
            _ => "array map struct variant",
        };
        if *way > 1 && !wanted.split(' ').any(|head| head == kind.head()) {
            let text = format!("Cannot resolve \"{text}\" due to data type mismatch");
            return Err(Failure::new("DATATYPE_MISMATCH", "42K09", text));
        }
        let kind = match way {
            1 => kind.clone(),
            2 => Kind::of("bigint"),
            _ => Kind::of("string"),
        };
        table.columns.push((name.clone(), kind));
        let mut others = around.calls.iter().filter(|call| call.from == *from);
        let is_alone = others.nth(1).is_none();
        for (row, cells) in inner.rows.iter_mut().zip(&mut table.rows) {
            cells.push(match (way, &mut row[*from]) {
                (2, Cell::Moment(micros)) => Cell::Text(micros.to_string()),
                (3, cell) => cell.sql(),
                (_, cell) if is_alone => std::mem::replace(cell, Cell::Null),
                (_, cell) => cell.clone(),
            });
        }
    }
    match &around.failure {
        Some(failure) => Err(failure.clone()),
        None => Ok(Some(table)),
    }
}

impl Around {
    fn read(text: &str) -> Option<Around> {
        let shape = regex(r"(?s)^SELECT (.*?)\nFROM \(\n(.*)\n\) AS s \(((?:c\d+(?:, )?)+)\)$");
        let found = shape.captures(text)?;
        let names: Vec<&str> = found[3].split(", ").collect();
        let (mut rest, mut calls, mut failure) = (&found[1], Vec::new(), None);
        while !rest.is_empty() && failure.is_none() {
            match Call::read(rest, &names) {
                Ok(call) => {
                    rest = &rest[call.text.len()..];
                    calls.push(call);
                }
                Err(wrong) => failure = Some(wrong),
            }
        }
        Some(Around {
            inner: found[2].to_owned(),
            width: names.len(),
            calls,
            failure,
        })
    }
}

impl Call {
    /// The first of these.
    fn read(calls: &str, names: &[&str]) -> Result<Call, Failure> {
        let call = regex(
            r"^(?:s\.(c\d+)|unix_micros\(s\.(c\d+)\)|CAST\(s\.(c\d+) AS STRING\)|base64\(s\.(c\d+)\)|to_json\(s\.(c\d+), (map\(.*?'false'\))\))(?:, |$)",
        );
        let called = call.captures(calls);
        let called = called.ok_or_else(|| Failure::syntax(calls))?;
        let way = (1..=5).find(|at| called.get(*at).is_some()).expect("one");
        let from = names.iter().position(|name| *name == &called[way]);
        let from = from.ok_or_else(|| Failure::syntax(&called[way]))?;
        Ok(Call {
            text: called[0].to_owned(),
            way,
            from,
        })
    }
}
