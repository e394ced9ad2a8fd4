//! Statements on tables: SQLite runs them, and its columns have Databricks' types. All schemas are of one catalog.

use regex::Captures;
use rusqlite::types::{Value as Sqlite, ValueRef};
use souk_sdk::time::{iso8601, parse_iso8601, parse_rfc3339};

use super::literals::Typed;
use super::refusals::Failure;
use super::values::{Cell, Kind, Table};
use super::{CATALOG, VERSION};
use crate::remembered::ByText;
use crate::tables::{Found, Wrong, first_word, regex, sequence, uses};

pub struct Tables {
    tables: crate::tables::Tables,
    queries: ByText<Query>,
}

/// What the text of a query says.
struct Query {
    /// A catalog that is not there.
    of_another: Option<String>,
    /// It names tables, and of no catalog.
    of_the_default: bool,
    /// The markers that rows are counted by.
    counts: Vec<String>,
    /// All markers, each the first time that it is there, and whether it is cast to a clock.
    markers: Vec<(String, bool)>,
    /// As SQLite has it.
    sql: String,
}

impl Tables {
    pub fn new() -> Tables {
        let tables = crate::tables::Tables::new("bigint");
        tables.describe();
        Tables {
            tables,
            queries: ByText::default(),
        }
    }

    pub fn admin(&self, sql: &str) {
        self.tables.admin(sql);
        self.tables.describe();
        self.queries.forget();
    }

    /// Runs a query.
    pub fn query(
        &self,
        text: &str,
        catalog: &str,
        parameters: &[(String, Typed)],
    ) -> Result<Table, Failure> {
        let query = self
            .queries
            .try_of(text, || self.fits(text).map(|()| Query::read(text)))?;
        query.is_of(catalog)?;
        query.counts_in_int(parameters)?;
        let values = query.in_order(parameters)?;
        let bound: Vec<Sqlite> = values.into_iter().map(bound).collect();
        let found = self.tables.ask(&query.sql, &bound);
        found.map(table).map_err(failure)
    }

    /// Of several types of spans, a text beside one could be of any: Spark, in which this is written so, reads it as none.
    fn fits(&self, page: &str) -> Result<(), Failure> {
        for (column, operator) in uses(page) {
            let declared = self.tables.declared(column).unwrap_or_default();
            let kind = Kind::of(&declared);
            if kind.head() == "interval" && !["ORDER BY", "LIKE"].contains(&operator) {
                let text = format!(
                    "Cannot resolve \"({column} {operator} :souk_1)\" due to data type mismatch: the left and right operands of the binary operator have incompatible types (\"{}\" and \"STRING\").",
                    kind.text()
                );
                let condition = "DATATYPE_MISMATCH.BINARY_OP_DIFF_TYPES";
                return Err(Failure::new(condition, "42K09", text));
            }
        }
        Ok(())
    }

    /// Runs a statement that writes.
    pub fn write(&self, text: &str) -> Result<Table, Failure> {
        self.tables.run(&translated(text)).map_err(failure)?;
        Ok(Table {
            columns: vec![("num_affected_rows".to_owned(), Kind::of("bigint"))],
            rows: vec![vec![Cell::Text("1".to_owned())]],
        })
    }
}

impl Query {
    fn read(text: &str) -> Query {
        let named = regex(r"(?i)\b(?:FROM|JOIN)\s+`?(\w+)`?\.`?\w+`?\.`?\w+`?");
        let mut others = named.captures_iter(text).map(|names| names[1].to_owned());
        let names_tables = regex(r"(?i)\bFROM\s+[`\w]").is_match(text);
        let counted = regex(r"\b(?:LIMIT|OFFSET) :(\w+)");
        let counted = counted.captures_iter(text);
        let selected = match first_word(text).as_str() {
            "TABLE" => text.replacen("TABLE ", "SELECT * FROM ", 1),
            _ => text.to_owned(),
        };
        Query {
            of_another: others.find(|name| name != CATALOG),
            of_the_default: names_tables && !named.is_match(text),
            counts: counted.map(|counted| counted[1].to_owned()).collect(),
            markers: markers(text),
            sql: translated(&selected),
        }
    }

    /// Of other catalogs there is nothing.
    fn is_of(&self, catalog: &str) -> Result<(), Failure> {
        let default = Some(catalog).filter(|name| self.of_the_default && *name != CATALOG);
        match self.of_another.as_deref().or(default) {
            Some(name) => {
                let text = format!("Catalog '{name}' was not found.");
                Err(Failure::new("NO_SUCH_CATALOG_EXCEPTION", "42704", text))
            }
            None => Ok(()),
        }
    }

    /// Rows are counted in INT.
    fn counts_in_int(&self, parameters: &[(String, Typed)]) -> Result<(), Failure> {
        for counted in &self.counts {
            let known = parameters.iter().find(|(name, _)| name == counted);
            if known.is_some_and(|(_, typed)| typed.kind.0 != "int") {
                let text = format!("The limit like expression \"{counted}\" is invalid.");
                let condition = "INVALID_LIMIT_LIKE_EXPRESSION.DATA_TYPE";
                return Err(Failure::new(condition, "42K0E", text));
            }
        }
        Ok(())
    }

    /// The values of its markers.
    fn in_order(&self, parameters: &[(String, Typed)]) -> Result<Vec<Typed>, Failure> {
        let values = self.markers.iter().map(|(name, is_clock)| {
            let Some((_, typed)) = parameters.iter().find(|(known, _)| known == name) else {
                let text = format!("Found the unbound parameter: {name}.");
                return Err(Failure::new("UNBOUND_SQL_PARAMETER", "42P02", text));
            };
            let mut typed = typed.clone();
            if *is_clock {
                typed.kind = Kind::of("timestamp_ntz");
            }
            Ok(typed)
        });
        values.collect()
    }
}

fn markers(text: &str) -> Vec<(String, bool)> {
    let mut markers: Vec<(String, bool)> = Vec::new();
    let marker = regex(r"(CAST\()?:(\w+)(?: AS (TIMESTAMP_NTZ)\))?");
    for found in marker.captures_iter(&unquoted(text)) {
        if !markers.iter().any(|(name, _)| *name == found[2]) {
            markers.push((found[2].to_owned(), found.get(3).is_some()));
        }
    }
    markers
}

/// Without what stands in texts and comments.
fn unquoted(text: &str) -> String {
    let quoted = regex(r"(?s)'(?:[^'\\]|\\.)*'|`[^`]*`|--[^\n]*|/\*.*?\*/");
    quoted.replace_all(text, "''").into_owned()
}

/// As SQLite has it.
fn translated(text: &str) -> String {
    let text = regex(&format!(r"`?\b{CATALOG}\b`?\.")).replace_all(text, "");
    let text = regex(r"information_schema\.(\w+)").replace_all(&text, "\"information_schema.$1\"");
    let text = text.replace("full_data_type", "data_type");
    let version = "coalesce(current_version().dbsql_version, current_version().dbr_version)";
    let text = text.replace(version, &format!("'{VERSION}'"));
    let text = regex(r"CAST\((:\w+) AS TIMESTAMP_NTZ\)").replace_all(&text, "$1");
    let text = regex(r"(:\w+)::\w+").replace_all(&text, "$1");
    let range = regex(r"\brange\((\d+), (\d+)\)");
    let text = range.replace_all(&text, |parts: &Captures<'_>| {
        let until: i64 = parts[2].parse().expect("a number");
        sequence(&parts[1], &(until - 1).to_string(), "id")
    });
    text.into_owned()
}

fn failure(wrong: Wrong) -> Failure {
    match wrong {
        Wrong::Schema(table) | Wrong::Table(table) => Failure::new(
            "TABLE_OR_VIEW_NOT_FOUND",
            "42P01",
            format!("The table or view `{table}` cannot be found."),
        ),
        Wrong::Column(column) => Failure::new(
            "UNRESOLVED_COLUMN.WITHOUT_SUGGESTION",
            "42703",
            format!("A column with name `{column}` cannot be resolved."),
        ),
        Wrong::Function(function) => Failure::new(
            "UNRESOLVED_ROUTINE",
            "42883",
            format!("Cannot resolve routine `{function}`."),
        ),
        Wrong::Values(_) => Failure::new("UNBOUND_SQL_PARAMETER", "42P02", "unbound"),
        Wrong::Syntax(said) => Failure::syntax(&said),
    }
}

/// A value as the tables hold those of its type.
fn bound(typed: Typed) -> Sqlite {
    match (typed.cell, typed.kind.head()) {
        (Cell::Null, _) => Sqlite::Null,
        (Cell::Bytes(bytes), _) => Sqlite::Blob(bytes),
        (Cell::Moment(micros), _) => Sqlite::Integer(micros),
        (Cell::Clock(micros), _) => Sqlite::Text(clock(micros)),
        (Cell::Text(text) | Cell::Json(text), head) => match head {
            "boolean" => Sqlite::Integer(i64::from(text == "true")),
            "tinyint" | "smallint" | "int" | "bigint" => {
                Sqlite::Integer(text.parse().expect("a whole number"))
            }
            "decimal" | "float" | "double" => Sqlite::Real(text.parse().expect("a number")),
            "timestamp_ntz" => Sqlite::Text(clock(parse_iso8601(&text).expect("a time"))),
            "timestamp" => Sqlite::Integer(parse_rfc3339(&text).expect("a moment")),
            _ => Sqlite::Text(text),
        },
    }
}

fn clock(micros: i64) -> String {
    iso8601(micros).replacen('T', " ", 1)
}

fn table(found: Found) -> Table {
    let declared = found.declared.iter().enumerate();
    let kinds: Vec<Kind> = declared
        .map(|(at, declared)| match declared {
            Some(declared) => Kind::of(declared),
            // What is computed is what it looks like.
            None => {
                let mut values = found.rows.iter().map(|row| &row[at]);
                let first = values.find(|value| **value != Sqlite::Null);
                Kind::of(match first {
                    Some(Sqlite::Real(_)) => "double",
                    Some(Sqlite::Text(_)) => "string",
                    Some(Sqlite::Blob(_)) => "binary",
                    Some(Sqlite::Integer(_)) => "bigint",
                    Some(Sqlite::Null) | None => "void",
                })
            }
        })
        .collect();
    let cells = |row: &Vec<Sqlite>| {
        let cells = row.iter().zip(&kinds);
        cells.map(|(value, kind)| cell(kind, value)).collect()
    };
    let rows = found.rows.iter().map(cells).collect();
    Table {
        columns: found.names.into_iter().zip(kinds).collect(),
        rows,
    }
}

fn cell(kind: &Kind, value: &Sqlite) -> Cell {
    match (kind.head(), ValueRef::from(value)) {
        (_, ValueRef::Null) => Cell::Null,
        ("boolean", ValueRef::Integer(number)) => Cell::Text((number != 0).to_string()),
        ("decimal", ValueRef::Integer(number)) => decimal(number as f64, kind),
        ("decimal", ValueRef::Real(number)) => decimal(number, kind),
        ("timestamp", ValueRef::Integer(micros)) => Cell::Moment(micros),
        ("timestamp_ntz", ValueRef::Text(text)) => {
            let text = String::from_utf8_lossy(text);
            Cell::Clock(parse_iso8601(&text).expect("a time"))
        }
        ("float" | "double", ValueRef::Integer(number)) => Cell::Text(format!("{number}.0")),
        ("float" | "double", ValueRef::Real(number)) => Cell::Text(format!("{number:?}")),
        ("array" | "map" | "struct" | "variant", ValueRef::Text(text)) => {
            Cell::Json(String::from_utf8_lossy(text).into_owned())
        }
        (_, ValueRef::Integer(number)) => Cell::Text(number.to_string()),
        (_, ValueRef::Real(number)) => Cell::Text(number.to_string()),
        (_, ValueRef::Text(text)) => Cell::Text(String::from_utf8_lossy(text).into_owned()),
        (_, ValueRef::Blob(bytes)) => Cell::Bytes(bytes.to_vec()),
    }
}

/// With all digits of its scale.
fn decimal(number: f64, kind: &Kind) -> Cell {
    let scale = kind.digits().map_or(0, |(_, scale)| scale as usize);
    Cell::Text(format!("{number:.scale$}"))
}
