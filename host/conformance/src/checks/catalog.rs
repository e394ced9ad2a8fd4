//! The catalog: its columns, its order, what its filter means. It also finds the table that the kit reads.

use std::time::Instant;

use souk_sandbox::{ColumnKind, Fault, Output, Request, SchemaFilter};

use super::{Suite, Verdict, advice, opening, told};
use crate::profile::Place;
use crate::subject::limits;

const COLUMNS: [(&str, ColumnKind); 8] = [
    ("schema", ColumnKind::Text),
    ("table", ColumnKind::Text),
    ("type", ColumnKind::Text),
    ("row_estimate", ColumnKind::Int64),
    ("field", ColumnKind::Text),
    ("field_type", ColumnKind::Text),
    ("nullable", ColumnKind::Boolean),
    ("primary_key", ColumnKind::Boolean),
];
/// Statements over hundreds of columns say no more than over these.
const FIELDS_MAX: usize = 24;

/// A table that the kit reads.
#[derive(Clone, Debug)]
pub struct Table {
    pub schema: Option<String>,
    pub name: String,
    pub fields: Vec<Field>,
    /// Columns that tell its rows apart; all of them where nothing better is known.
    pub key: Vec<String>,
}

#[derive(Clone, Debug)]
pub struct Field {
    pub name: String,
    pub nullable: bool,
    primary_key: bool,
}

/// The table to read, if the engine has one.
pub async fn run(suite: &mut Suite<'_>, place: &Place) -> Option<Table> {
    if !suite.subject.engine.has("schema") {
        let has_sql = suite.dialect.is_some();
        suite.note("schema", || match has_sql {
            true => Verdict::skipped("the connector has no ability \"schema\": without it the kit finds no table, and neither does a seller"),
            false => Verdict::skipped("the engine has no tables"),
        });
        return None;
    }
    let begun = Instant::now();
    let whole = match ask(suite, place, &[], true).await {
        Ok(whole) => whole,
        Err(fault) => {
            suite.found(
                "schema.answers",
                begun,
                Verdict::failed(told(&fault), advice(&fault)),
            );
            return None;
        }
    };
    let verdict = match opening::shape(&whole, &COLUMNS) {
        Some(wrong) => Verdict::failed(wrong, "in Rust: `rows.columns(Rows::schema_columns())?`"),
        None if whole.rows == 0 => Verdict::warned(
            "the catalog is empty: there is nothing to read",
            "point the kit to a source with a table in it",
        ),
        None => Verdict::passed(),
    };
    let has_failed = verdict.is_failed();
    suite.found("schema.answers", begun, verdict);
    if has_failed || whole.rows == 0 {
        return None;
    }
    suite.note("schema.ordered", || ordered(&whole));
    let table = chosen(suite, &whole);
    let begun = Instant::now();
    let verdict = match &table {
        Some(table) => filtered(suite, place, &whole, &table.name).await,
        None => Verdict::skipped("no table"),
    };
    suite.found("schema.filter", begun, verdict);
    table
}

async fn ask(
    suite: &Suite<'_>,
    place: &Place,
    tables: &[&str],
    include_fields: bool,
) -> Result<Output, Fault> {
    let source = suite.subject.source(place);
    let filter = SchemaFilter {
        schemas: Vec::new(),
        tables: tables.iter().map(|name| (*name).to_owned()).collect(),
        include_fields,
        limits: limits(),
    };
    suite.subject.ask(&source, Request::Schema(filter)).await
}

fn text(output: &Output, row: usize, column: usize) -> &str {
    match output.cell(row, column) {
        souk_sandbox::Cell::Text(text) => text,
        _ => "",
    }
}

/// By schema and table, each table in one piece.
fn ordered(whole: &Output) -> Verdict {
    let names: Vec<(&str, &str)> = (0..whole.rows)
        .map(|row| (text(whole, row, 0), text(whole, row, 1)))
        .collect();
    let mut tables = names.clone();
    tables.dedup();
    let mut distinct = tables.clone();
    distinct.sort_unstable();
    distinct.dedup();
    if distinct.len() != tables.len() {
        return Verdict::failed(
            "the rows of a table do not follow each other",
            "order the catalog by schema, table and position",
        );
    }
    match tables == distinct {
        true => Verdict::passed(),
        false => Verdict::warned(
            "tables are not ordered by name",
            "order the catalog by schema, table and position",
        ),
    }
}

/// One table alone, no table at all, tables without their fields.
async fn filtered(suite: &Suite<'_>, place: &Place, whole: &Output, name: &str) -> Verdict {
    const ADVICE: &str = "`schemas` and `tables` of the filter name what is wanted, empty means all; with `include-fields` false there is one row a table and `field` is NULL";
    let wanted = (0..whole.rows)
        .filter(|row| text(whole, *row, 1) == name)
        .count();
    let one = match ask(suite, place, &[name], true).await {
        Ok(one) => one,
        Err(fault) => return Verdict::failed(told(&fault), advice(&fault)),
    };
    if one.rows != wanted || (0..one.rows).any(|row| text(&one, row, 1) != name) {
        return Verdict::failed(
            format!(
                "asked for the table {name:?} it answers {} rows, {wanted} of the whole catalog are its",
                one.rows
            ),
            ADVICE,
        );
    }
    match ask(suite, place, &["souk no such table"], true).await {
        Ok(none) if none.rows == 0 => {}
        Ok(some) => {
            return Verdict::failed(
                format!("a table that is not there has {} rows", some.rows),
                ADVICE,
            );
        }
        Err(fault) => {
            return Verdict::failed(told(&fault), "a table that is not there has no rows");
        }
    }
    let tables = match ask(suite, place, &[], false).await {
        Ok(tables) => tables,
        Err(fault) => return Verdict::failed(told(&fault), advice(&fault)),
    };
    let mut names: Vec<(&str, &str)> = (0..whole.rows)
        .map(|row| (text(whole, row, 0), text(whole, row, 1)))
        .collect();
    names.dedup();
    let is_bare = (0..tables.rows).all(|row| tables.cell(row, 4).is_null());
    match tables.rows == names.len() && is_bare {
        true => Verdict::passed(),
        false => Verdict::failed(
            format!(
                "without fields it answers {} rows for {} tables{}",
                tables.rows,
                names.len(),
                if is_bare { "" } else { ", and names fields" }
            ),
            ADVICE,
        ),
    }
}

/// The table that the profile names, or the first real one that has fields.
fn chosen(suite: &Suite<'_>, whole: &Output) -> Option<Table> {
    let asked = suite.subject.profile.table.as_ref();
    let fits = |row: &usize| match asked {
        Some(asked) => {
            text(whole, *row, 1) == asked.name
                && asked
                    .schema
                    .as_deref()
                    .is_none_or(|schema| text(whole, *row, 0) == schema)
        }
        None => !whole.cell(*row, 4).is_null(),
    };
    let is_table = |row: &usize| text(whole, *row, 2) == "table";
    let first = (0..whole.rows)
        .find(|row| fits(row) && is_table(row))
        .or_else(|| (0..whole.rows).find(fits))?;
    let (schema, name) = (text(whole, first, 0), text(whole, first, 1));
    let rows = (0..whole.rows)
        .filter(|row| text(whole, *row, 0) == schema && text(whole, *row, 1) == name);
    let fields: Vec<Field> = rows
        .map(|row| Field {
            name: text(whole, row, 4).to_owned(),
            nullable: whole.cell(row, 6).as_bool().unwrap_or(true),
            primary_key: whole.cell(row, 7).as_bool().unwrap_or(false),
        })
        .take(FIELDS_MAX)
        .collect();
    let named = asked.map(|asked| asked.key.clone()).unwrap_or_default();
    let primary = fields.iter().filter(|field| field.primary_key);
    let primary: Vec<String> = primary.map(|field| field.name.clone()).collect();
    let key = match (named.is_empty(), primary.is_empty()) {
        (false, _) => named,
        (true, false) => primary,
        (true, true) => fields.iter().map(|field| field.name.clone()).collect(),
    };
    Some(Table {
        schema: Some(schema.to_owned()).filter(|schema| !schema.is_empty()),
        name: name.to_owned(),
        fields,
        key,
    })
}
