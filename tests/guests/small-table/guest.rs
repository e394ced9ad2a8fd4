//! A `generic` engine of one table, `"main"."items"`, that reads the host's statements as they should be read, or with the flaw that the
//! setting `flaw` names: `ignores_order`, `overlapping_pages`, `ignores_filter`, `cuts_short`, `bad_decimal`, `null_where_none_is_said`,
//! `forgets_types`, `takes_writes`, `traps`, `repeats_the_source`, `answers_anything`, `other_columns`; with `warns` its ping has a warning. It needs a file
//! and never reads it.

#[path = "statement.rs"]
mod statement;

use serde::Deserialize;
use souk_guests::souk_sdk;
use souk_sdk::{
    Cell, ColumnType, Connector, Descriptor, Error, Io, Limits, Need, Query, Rows, SchemaFilter,
    Settings, column,
};
use statement::{Datum, Statement};

#[derive(Deserialize)]
struct Given {
    flaw: String,
}

struct SmallTable {
    flaw: String,
}

souk_sdk::export!(SmallTable);

const FIELDS: [(&str, ColumnType, &str, bool); 5] = [
    ("id", ColumnType::Int64, "integer", false),
    ("name", ColumnType::Text, "text", false),
    ("price", ColumnType::Decimal, "decimal(10,2)", true),
    ("day", ColumnType::Date, "date", true),
    ("weight", ColumnType::Float64, "double", true),
];

/// Not in the order of any column.
fn table() -> Vec<Vec<Datum>> {
    let row = |id: i64| {
        let null_or = |is_null: bool, datum| if is_null { Datum::Null } else { datum };
        vec![
            Datum::Int(id),
            Datum::Text(format!(
                "{} {id}",
                ["pear", "apple", "fig"][id as usize % 3]
            )),
            null_or(
                id % 5 == 0,
                Datum::Decimal(format!("{}.{:02}", id * 7 % 11, id)),
            ),
            null_or(id % 7 == 0, Datum::Date(20_000 - (id * 13 % 17) as i32)),
            null_or(id % 4 == 0, Datum::Float(id as f64 * 1.5)),
        ]
    };
    (1..=23).map(|at| row(at * 10 % 23 + 1)).collect()
}

impl Connector for SmallTable {
    fn describe() -> Descriptor {
        Descriptor::new("small-table", "1.0.0", Need::Directory)
            .engine("small", "Small table", "generic", &["NONE"])
            .settings_schema(
                r#"{"type":"object","required":["flaw"],"properties":{"flaw":{"type":"string"}}}"#,
            )
            .abilities(&["schema"])
    }

    async fn open(settings: Settings, _io: Io) -> Result<Self, Error> {
        let given: Given = settings.parse()?;
        match given.flaw.as_str() {
            "no_file" => Err(Error::unavailable("no_file", "the file is not there")),
            _ => Ok(SmallTable { flaw: given.flaw }),
        }
    }

    async fn query(&self, query: Query, rows: &mut Rows) -> Result<(), Error> {
        let flaw = |name: &str| self.flaw == name;
        let parsed = Statement::parse(&query.text, &query.parameters);
        let mut statement = match parsed {
            Ok(statement) => statement,
            Err(_) if flaw("traps") => panic!("not a statement"),
            Err(_) if flaw("answers_anything") => Statement::nothing(),
            Err(_) if flaw("takes_writes") && !query.text.starts_with("SELECT") => {
                Statement::nothing()
            }
            Err(reason) if flaw("repeats_the_source") => {
                let message = format!("the source said: {reason}");
                return Err(Error::source_failed("bad_statement", message).detail(reason));
            }
            Err(reason) => {
                return Err(
                    Error::source_failed("bad_statement", "the statement cannot be read")
                        .detail(reason),
                );
            }
        };
        if flaw("ignores_order") {
            statement.ignore_order();
        }
        if flaw("ignores_filter") {
            statement.ignore_filter();
        }
        if flaw("overlapping_pages") {
            statement.begin_earlier();
        }
        let names: Vec<&str> = FIELDS.iter().map(|field| field.0).collect();
        let (chosen, found) = statement.run(&names, table()).map_err(|reason| {
            Error::source_failed("bad_statement", "the statement names what is not there")
                .detail(reason)
        })?;
        let columns: Vec<_> = chosen
            .iter()
            .map(|at| {
                let (name, kind, native, _) = FIELDS[*at];
                let name = if flaw("other_columns") {
                    "secret"
                } else {
                    name
                };
                let kind = match flaw("forgets_types") && found.is_empty() {
                    true => ColumnType::Text,
                    false => kind,
                };
                let mut column = column(name, kind, native);
                column.nullable = !flaw("null_where_none_is_said");
                column
            })
            .collect();
        rows.columns(columns)?;
        for row in &found {
            if flaw("cuts_short") && rows.rows_left() == 0 {
                break;
            }
            rows.push(chosen.iter().map(|at| match &row[*at] {
                Datum::Null => Cell::Null,
                Datum::Int(value) => Cell::Int64(*value),
                Datum::Float(value) => Cell::Float64(*value),
                Datum::Decimal(_) if flaw("bad_decimal") => Cell::Decimal("12,5 EUR"),
                Datum::Decimal(digits) => Cell::Decimal(digits),
                Datum::Date(days) => Cell::Date(*days),
                Datum::Text(text) => Cell::Text(text),
            }))?;
        }
        Ok(())
    }

    async fn schema(&self, filter: SchemaFilter, rows: &mut Rows) -> Result<(), Error> {
        rows.columns(Rows::schema_columns())?;
        let wants =
            |list: &[String], name: &str| list.is_empty() || list.iter().any(|one| one == name);
        if !wants(&filter.schemas, "main") || !wants(&filter.tables, "items") {
            return Ok(());
        }
        let table = [
            Cell::Text("main"),
            Cell::Text("items"),
            Cell::Text("table"),
            Cell::Int64(23),
        ];
        if !filter.include_fields {
            return rows.push(table.into_iter().chain([Cell::Null; 4]));
        }
        for (name, _, native, nullable) in FIELDS {
            rows.push(table.into_iter().chain([
                Cell::Text(name),
                Cell::Text(native),
                Cell::Boolean(nullable),
                Cell::Boolean(name == "id"),
            ]))?;
        }
        Ok(())
    }

    async fn ping(&self, _limits: Limits, rows: &mut Rows) -> Result<(), Error> {
        if self.flaw != "warns" {
            return rows.alive();
        }
        let mut columns = Rows::ping_columns();
        columns.push(column("warning", ColumnType::Text, ""));
        rows.columns(columns)?;
        rows.push([Cell::Null, Cell::Null, Cell::Text("the table is small")])
    }
}
