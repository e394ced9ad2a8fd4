//! The statements that read an endpoint's rows.

use super::Dialect;

/// Where the rows of an endpoint come from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RowSource<'a> {
    Table {
        schema: Option<&'a str>,
        table: &'a str,
    },
    /// The text of a checked statement without parameters.
    Statement(&'a str),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Order<'a> {
    pub field: &'a str,
    pub descending: bool,
}

/// Which rows of the ordered result a page reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Window {
    /// The first rows, their number written into the statement. PostgreSQL plans a statement with a
    /// bound LIMIT anew at every execution, because its generic plan looks expensive; that costs
    /// more than reading a row.
    First(u32),
    /// The number of rows and the offset are bound, in this order, after the filters.
    Bound,
}

/// What an endpoint's source is called in its statements. Names in conditions are qualified with it: a quoted
/// name that no column has is a text to SQLite, and pages would come in no order. Qualified it is an error.
const SOURCE: &str = "s";

/// The statement that reads one page. Bound are the values of `filters` in order, then what
/// `window` says.
pub fn page(
    dialect: Dialect,
    source: &RowSource<'_>,
    fields: &[&str],
    filters: &[&str],
    order_by: &[Order<'_>],
    window: Window,
) -> String {
    let mut text = String::from("SELECT ");
    push_list(
        &mut text,
        ", ",
        fields.iter().map(|field| dialect.quote(field)),
    );
    push_source(&mut text, dialect, source);
    let mut number = 0;
    let mut placeholder = || {
        number += 1;
        dialect.placeholder(number)
    };
    if !filters.is_empty() {
        text.push_str("\nWHERE ");
        push_list(
            &mut text,
            " AND ",
            filters
                .iter()
                .map(|column| format!("{SOURCE}.{} = {}", dialect.quote(column), placeholder())),
        );
    }
    if !order_by.is_empty() {
        text.push_str("\nORDER BY ");
        let order = order_by.iter().map(|o| {
            format!(
                "{SOURCE}.{}{}",
                dialect.quote(o.field),
                if o.descending { " DESC" } else { "" }
            )
        });
        push_list(&mut text, ", ", order);
    }
    let (rows, offset) = match window {
        Window::First(rows) => (rows.to_string(), None),
        Window::Bound => (placeholder(), Some(placeholder())),
    };
    match (dialect, offset) {
        (Dialect::MsSql, offset) => {
            let offset = offset.as_deref().unwrap_or("0");
            text.push_str(&format!(
                "\nOFFSET {offset} ROWS FETCH NEXT {rows} ROWS ONLY"
            ));
        }
        (_, None) => text.push_str(&format!("\nLIMIT {rows}")),
        (_, Some(offset)) => text.push_str(&format!("\nLIMIT {rows} OFFSET {offset}")),
    }
    text
}

/// The statement whose result has all columns of the source, and no rows.
pub fn columns(dialect: Dialect, source: &RowSource<'_>) -> String {
    let mut text = String::from("SELECT *");
    push_source(&mut text, dialect, source);
    text.push_str("\nWHERE 1 = 0");
    text
}

/// The statement that reads so many rows of these columns of a statement's result, in whatever order it gives them.
pub fn sample(dialect: Dialect, statement: &str, columns: &[&str], rows: u32) -> String {
    let mut text = String::from("SELECT ");
    if dialect == Dialect::MsSql {
        text.push_str(&format!("TOP ({rows}) "));
    }
    let columns = columns.iter();
    push_list(
        &mut text,
        ", ",
        columns.map(|column| format!("{SOURCE}.{}", dialect.quote(column))),
    );
    push_source(&mut text, dialect, &RowSource::Statement(statement));
    if dialect != Dialect::MsSql {
        text.push_str(&format!("\nLIMIT {rows}"));
    }
    text
}

fn push_source(text: &mut String, dialect: Dialect, source: &RowSource<'_>) {
    match source {
        RowSource::Table { schema, table } => {
            text.push_str("\nFROM ");
            push_list(
                text,
                ".",
                schema.iter().chain([table]).map(|part| dialect.quote(part)),
            );
        }
        // The line ends are for a statement that ends in a line comment.
        RowSource::Statement(sql) => {
            text.push_str("\nFROM (\n");
            text.push_str(sql);
            text.push_str("\n)");
        }
    }
    text.push_str(" AS ");
    text.push_str(SOURCE);
}

fn push_list(text: &mut String, separator: &str, items: impl Iterator<Item = String>) {
    for (index, item) in items.enumerate() {
        if index > 0 {
            text.push_str(separator);
        }
        text.push_str(&item);
    }
}
