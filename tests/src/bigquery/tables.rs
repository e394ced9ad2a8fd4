//! Statements on tables: SQLite runs them, and its columns get the names of GoogleSQL's types.

use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use rusqlite::types::{Value as Sqlite, ValueRef};
use serde_json::{Value, json};
use souk_sdk::time::{iso8601, parse_iso8601, parse_rfc3339};

use super::{BYTES_READ, PROJECT, ZONE, literals};
use crate::remembered::ByText;
use crate::tables::{Found, Wrong, engines_own, first_word, semicolon, sequence};

/// A result: fields of a schema, and cells.
#[derive(Debug, Default)]
pub struct Table {
    pub fields: Vec<Value>,
    pub rows: Vec<Vec<Value>>,
}

/// What BigQuery answers to what it does not do.
#[derive(Clone, Debug)]
pub struct Refusal {
    pub status: u16,
    pub reason: &'static str,
    pub text: String,
}

impl Refusal {
    pub fn new(status: u16, reason: &'static str, text: &str) -> Refusal {
        let text = text.to_owned();
        Refusal {
            status,
            reason,
            text,
        }
    }
}

pub struct Tables {
    tables: crate::tables::Tables,
    /// By the default dataset and the text.
    translations: ByText<String>,
}

impl Tables {
    pub fn new() -> Tables {
        let tables = crate::tables::Tables::new("INT64");
        Tables {
            tables,
            translations: ByText::default(),
        }
    }

    pub fn admin(&self, sql: &str) {
        self.tables.admin(sql);
        for dataset in self.datasets() {
            self.describe(&dataset);
        }
        self.translations.forget();
    }

    pub fn datasets(&self) -> Vec<String> {
        self.tables.schemas()
    }

    /// Runs what a request asks (`query`, `queryParameters`, `defaultDataset`, `connectionProperties`, `maximumBytesBilled`).
    pub fn run(&self, asked: &Value) -> Result<Table, Refusal> {
        let text = text(asked)?;
        let parameters = asked["queryParameters"]
            .as_array()
            .map_or(&[][..], Vec::as_slice);
        if let Some(table) = literals::row(text, parameters, zone(asked)) {
            return Ok(table);
        }
        let most = asked["maximumBytesBilled"]
            .as_str()
            .and_then(|text| text.parse().ok());
        if most.is_some_and(|most: u64| most < BYTES_READ) {
            let text = format!(
                "Query exceeded limit for bytes billed: {most:?}. {BYTES_READ} or higher required."
            );
            return Err(Refusal::new(400, "bytesBilledLimitExceeded", &text));
        }
        if statement_type(text) == "SCRIPT" {
            let ran = self.tables.run(text);
            self.translations.forget();
            return ran.map(|()| Table::default()).map_err(refusal);
        }
        let text = self.translation(text, asked);
        let values: Vec<Sqlite> = parameters.iter().map(bound).collect();
        self.tables.ask(&text, &values).map(table).map_err(refusal)
    }

    /// Whether it could be run.
    pub fn prepare(&self, asked: &Value) -> Result<(), Refusal> {
        let text = text(asked)?;
        let parameters = asked["queryParameters"]
            .as_array()
            .map_or(&[][..], Vec::as_slice);
        let is_computed = literals::row(text, parameters, zone(asked)).is_some();
        if is_computed || statement_type(text) == "SCRIPT" {
            return Ok(());
        }
        let text = self.translation(text, asked);
        self.tables.values_of(&text).map(drop).map_err(refusal)
    }

    /// What stands in the place of the views of `INFORMATION_SCHEMA`.
    fn describe(&self, dataset: &str) {
        let described = format!(
            "DROP TABLE IF EXISTS temp.\"{dataset}.TABLES\";
             CREATE TEMP TABLE \"{dataset}.TABLES\" AS SELECT '{dataset}' AS table_schema, name AS table_name,
                 CASE type WHEN 'view' THEN 'VIEW' ELSE 'BASE TABLE' END AS table_type FROM \"{dataset}\".sqlite_master WHERE type IN ('table', 'view');
             DROP TABLE IF EXISTS temp.\"{dataset}.COLUMNS\";
             CREATE TEMP TABLE \"{dataset}.COLUMNS\" AS SELECT t.name AS table_name, c.cid + 1 AS ordinal_position, c.name AS column_name,
                 CASE WHEN c.type = 'STRINGS TEXT' THEN 'ARRAY<STRING>' WHEN c.type LIKE '% TEXT' OR c.type LIKE '% BLOB' THEN substr(c.type, 1, length(c.type) - 5)
                     ELSE c.type END AS data_type,
                 CASE WHEN c.\"notnull\" OR c.type = 'STRINGS TEXT' THEN 'NO' ELSE 'YES' END AS is_nullable
                 FROM \"{dataset}\".sqlite_master AS t, pragma_table_info(t.name, '{dataset}') AS c WHERE t.type IN ('table', 'view');"
        );
        self.tables.admin(&described);
    }

    /// As SQLite has it, as long as the tables stay what they are.
    fn translation(&self, text: &str, asked: &Value) -> Arc<String> {
        let default = asked["defaultDataset"]["datasetId"].as_str();
        let named = format!("{} {text}", default.unwrap_or_default());
        self.translations
            .of(&named, || self.translated(text, default))
    }

    fn translated(&self, text: &str, default: Option<&str>) -> String {
        let mut text = text.replace("MOD(n, 3)", "n % 3");
        for dataset in self.datasets() {
            for view in ["TABLES", "COLUMNS"] {
                let named = format!("`{PROJECT}`.`{dataset}`.INFORMATION_SCHEMA.{view}");
                text = text.replace(&named, &format!("\"{dataset}.{view}\""));
            }
        }
        // A name without a dataset is of the default one.
        if let Some(dataset) = default {
            for table in self.tables.tables(dataset) {
                text = text.replace(&format!("FROM {table}"), &format!("FROM {dataset}.{table}"));
            }
        }
        while let Some(at) = text.find("STARTS_WITH(") {
            let end = at + text[at..].find(')').expect("its end");
            text.insert_str(end + 1, " = 1");
            text.replace_range(at..at + "STARTS_WITH".len(), "instr");
        }
        match text.split_once("UNNEST(GENERATE_ARRAY(1, ") {
            Some((before, after)) => {
                let (last, after) = after.split_once("))").expect("its end");
                format!("{before}{}{after}", sequence("1", last, "n"))
            }
            None => text,
        }
    }
}

fn text(asked: &Value) -> Result<&str, Refusal> {
    match asked["query"].as_str() {
        Some(text) if !text.is_empty() => Ok(text),
        _ => Err(Refusal::new(
            400,
            "required",
            "Required parameter is missing: query",
        )),
    }
}

/// In which a request asks to run, or the project's own.
fn zone(asked: &Value) -> &str {
    let mut properties = asked["connectionProperties"]
        .as_array()
        .into_iter()
        .flatten();
    let asked_for = properties.find(|property| property["key"] == "time_zone");
    asked_for
        .and_then(|property| property["value"].as_str())
        .unwrap_or(ZONE)
}

/// What BigQuery calls a statement by what it does.
pub fn statement_type(text: &str) -> &'static str {
    let end = semicolon(text, &['\'', '"', '`']);
    if end.is_some_and(|at| !text[at + 1..].trim().is_empty()) {
        return "SCRIPT";
    }
    match first_word(text).as_str() {
        "SELECT" | "WITH" => "SELECT",
        "INSERT" => "INSERT",
        "UPDATE" => "UPDATE",
        "DELETE" => "DELETE",
        _ => "SCRIPT",
    }
}

fn refusal(wrong: Wrong) -> Refusal {
    let not_found = |what: String| {
        let text = format!("Not found: {what} was not found in location EU");
        Refusal::new(404, "notFound", &text)
    };
    let text = match wrong {
        Wrong::Schema(dataset) => return not_found(format!("Dataset {PROJECT}:{dataset}")),
        Wrong::Table(table) => return not_found(format!("Table {PROJECT}:{table}")),
        Wrong::Column(column) => format!("Unrecognized name: {column} at [1:8]"),
        Wrong::Function(function) => format!("Function not found: {function} at [1:8]"),
        Wrong::Values(wanted) => format!("Query takes {wanted} positional parameters"),
        Wrong::Syntax(said) => format!("Syntax error: {said} at [1:1]"),
    };
    Refusal::new(400, "invalidQuery", &text)
}

/// A parameter as the tables hold values of its type.
fn bound(parameter: &Value) -> Sqlite {
    let Some(text) = parameter["parameterValue"]["value"].as_str() else {
        return match &parameter["parameterValue"]["value"] {
            Value::Number(number) => Sqlite::Real(number.as_f64().expect("a number")),
            _ => Sqlite::Null,
        };
    };
    let number = || Sqlite::Real(text.parse().expect("a number"));
    match parameter["parameterType"]["type"].as_str().expect("a type") {
        "INT64" => Sqlite::Integer(text.parse().expect("a whole number")),
        "FLOAT64" | "NUMERIC" | "BIGNUMERIC" => number(),
        "BOOL" => Sqlite::Integer(i64::from(text == "true")),
        "BYTES" => Sqlite::Blob(STANDARD.decode(text).expect("base64")),
        "TIMESTAMP" => Sqlite::Integer(parse_rfc3339(text).expect("a moment")),
        "DATETIME" => Sqlite::Text(datetime(text)),
        _ => Sqlite::Text(text.to_owned()),
    }
}

/// As BigQuery writes it: without a fraction where there is none.
pub fn datetime(text: &str) -> String {
    let whole = iso8601(parse_iso8601(text).expect("a time"));
    whole.strip_suffix(".000000").unwrap_or(&whole).to_owned()
}

fn table(found: Found) -> Table {
    let declared = found.declared.iter().enumerate();
    let kinds: Vec<String> = declared
        .map(|(at, declared)| match declared {
            Some(declared) => engines_own(declared).to_owned(),
            // What is computed is what it looks like.
            None => {
                let mut values = found.rows.iter().map(|row| &row[at]);
                let first = values.find(|value| **value != Sqlite::Null);
                first.map_or("INT64", kind_of).to_owned()
            }
        })
        .collect();
    let fields = found
        .names
        .iter()
        .zip(&kinds)
        .map(|(name, kind)| match kind.as_str() {
            "STRINGS" => json!({"name": name, "type": "STRING", "mode": "REPEATED"}),
            kind => with_name(name, field(kind)),
        });
    let cells = |row: &Vec<Sqlite>| {
        let cells = row
            .iter()
            .zip(&kinds)
            .map(|(value, kind)| cell(kind, value));
        cells.collect()
    };
    Table {
        fields: fields.collect(),
        rows: found.rows.iter().map(cells).collect(),
    }
}

fn kind_of(value: &Sqlite) -> &'static str {
    match value {
        Sqlite::Real(_) => "FLOAT64",
        Sqlite::Text(_) => "STRING",
        Sqlite::Blob(_) => "BYTES",
        Sqlite::Null | Sqlite::Integer(_) => "INT64",
    }
}

/// The field of a schema that has this type, without its name: of a scalar, a range or a struct of scalars (`STRUCT<n NUMERIC, at TIMESTAMP>`).
pub fn field(kind: &str) -> Value {
    let within = |head: &str| kind.strip_prefix(head)?.strip_suffix('>');
    if let Some(element) = within("RANGE<") {
        return json!({"type": "RANGE", "mode": "NULLABLE", "rangeElementType": {"type": element}});
    }
    let Some(fields) = within("STRUCT<") else {
        return json!({"type": named(kind), "mode": "NULLABLE"});
    };
    let fields = fields.split(", ").map(|part| {
        let (name, kind) = part.split_once(' ').expect("a name and a type");
        with_name(name, field(kind))
    });
    json!({"type": "RECORD", "mode": "NULLABLE", "fields": fields.collect::<Vec<Value>>()})
}

fn with_name(name: &str, mut field: Value) -> Value {
    field["name"] = name.into();
    field
}

/// The API's name of a type.
fn named(kind: &str) -> &str {
    match kind {
        "INT64" => "INTEGER",
        "FLOAT64" => "FLOAT",
        "BOOL" => "BOOLEAN",
        kind => kind,
    }
}

fn cell(kind: &str, value: &Sqlite) -> Value {
    match (kind, ValueRef::from(value)) {
        ("STRINGS", ValueRef::Text(text)) => cells(text),
        ("STRINGS", _) => json!([]),
        (kind, ValueRef::Text(text)) if kind.starts_with("STRUCT<") => json!({"f": cells(text)}),
        (_, ValueRef::Null) => Value::Null,
        ("BOOL", ValueRef::Integer(number)) => (number != 0).to_string().into(),
        (_, ValueRef::Integer(number)) => number.to_string().into(),
        (_, ValueRef::Real(number)) => number.to_string().into(),
        (_, ValueRef::Text(text)) => String::from_utf8_lossy(text).into(),
        (_, ValueRef::Blob(bytes)) => STANDARD.encode(bytes).into(),
    }
}

/// Those of an array or of a struct, which is kept as a list of what BigQuery sends of each.
fn cells(kept: &[u8]) -> Value {
    let kept: Vec<Value> = serde_json::from_slice(kept).expect("a list");
    kept.into_iter().map(|value| json!({"v": value})).collect()
}
