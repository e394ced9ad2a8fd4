//! The statements that read an endpoint's rows: a page by its offset, or by the row after which it begins.
//!
//! A page that begins after a row (`After`) is found by comparing the columns of the order with that row's values, in a form that an
//! index of them serves: it costs what the first page costs, however many rows lie before it. Start reading at [`page`].

use super::Dialect;
use super::filters::{Condition, Operator};

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
    /// It may be NULL. Asked for only where pages begin after a row.
    pub nullable: bool,
}

/// Which rows of the ordered result a page reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Window {
    /// The first rows, their number written into the statement. PostgreSQL plans a statement with a
    /// bound LIMIT anew at every execution, because its generic plan looks expensive; that costs
    /// more than reading a row.
    First(u32),
    /// The number of rows and the offset are bound.
    Bound,
}

/// The row after which a page begins, as far as the statement's text depends on it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct After {
    /// For each column of the order whether the row's value is NULL.
    pub nulls: Box<[bool]>,
    /// Rows that tie with it are read too: the order does not tell them apart, and some of them are skipped by an offset.
    pub ties: bool,
}

/// A column that is selected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Selected<'a> {
    Field(&'a str),
    /// A column of the order that is read only to know where the next page begins, under a name of our own.
    Key {
        field: &'a str,
        /// As the source keeps it, where reading it as its declared type loses how it is written. SQLite tells no type of what is computed, and
        /// nothing is computed by a `+`: numbers among texts stay numbers, which sort before those.
        as_kept: bool,
    },
}

/// What a page reads.
#[derive(Clone, Copy, Debug)]
pub struct Rows<'a> {
    pub columns: &'a [Selected<'a>],
    pub conditions: &'a [Condition<'a>],
    pub order_by: &'a [Order<'a>],
    /// Columns of the source that its catalog says no two rows have the same values in. Empty: none are known.
    pub key: &'a [String],
    pub after: Option<&'a After>,
    pub window: Window,
}

/// What is bound at one place of a statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Slot {
    /// A value of a condition, counted over all of them.
    Value(usize),
    /// The value that the row after which the page begins has in a column of the order.
    Key(usize),
    /// How many rows are wanted.
    Rows,
    /// How many rows are left out.
    Offset,
    /// [`Slot::Rows`] and [`Slot::Offset`] together.
    Reach,
}

/// A statement, and what it binds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Statement {
    pub text: String,
    pub slots: Vec<Slot>,
    /// It has no LIMIT: its conditions leave one row at most, if the source's catalog is right about its key.
    pub by_key: bool,
}

/// What an endpoint's source is called in its statements. Names in conditions are qualified with it: a quoted
/// name that no column has is a text to SQLite, and pages would come in no order. Qualified it is an error.
const SOURCE: &str = "s";

/// What a key column is called in an answer.
pub fn key_name(place: usize) -> String {
    format!("souk_key_{place}")
}

impl Dialect {
    /// Whether pages can begin after a row: where NULL stands in an order, and that values compare as they sort, is known of these.
    pub fn pages_by_key(self) -> bool {
        matches!(self, Dialect::Postgres | Dialect::Sqlite)
    }

    /// Whether NULL comes after everything else in an order.
    fn nulls_last(self, descending: bool) -> bool {
        match self {
            // Greater than all values.
            Dialect::Postgres => !descending,
            // Smaller than all values.
            _ => descending,
        }
    }
}

/// The statement that reads one page.
pub fn page(dialect: Dialect, source: &RowSource<'_>, rows: &Rows<'_>) -> Statement {
    let mut writer = Writer {
        dialect,
        source,
        rows,
        slots: Vec::new(),
    };
    let parts = writer.parts();
    let text = match parts.as_slice() {
        [] => writer.select(None, false),
        [one] => writer.select(Some(one), false),
        several => writer.union(several),
    };
    Statement {
        text,
        by_key: writer.is_one_row(),
        slots: writer.slots,
    }
}

struct Writer<'a> {
    dialect: Dialect,
    source: &'a RowSource<'a>,
    rows: &'a Rows<'a>,
    slots: Vec<Slot>,
}

/// A part of what lies behind a row: with a value in the first column of the order, or without.
enum Part {
    /// From the row's own value on.
    Values,
    /// The row has none, and neither has this part.
    RestOfNulls,
    /// All rows without one.
    Nulls,
    /// All rows with one.
    NotNulls,
}

impl Writer<'_> {
    /// What a page that begins after a row is made of. Rows with and without a value in the first column are two parts, because no
    /// engine reads both from an index in one.
    fn parts(&self) -> Vec<Part> {
        let (Some(after), Some(first)) = (self.rows.after, self.rows.order_by.first()) else {
            return Vec::new();
        };
        let last = self.dialect.nulls_last(first.descending);
        match after.nulls.first() {
            Some(true) if last => vec![Part::RestOfNulls],
            Some(true) => vec![Part::RestOfNulls, Part::NotNulls],
            _ if first.nullable && last => vec![Part::Values, Part::Nulls],
            _ => vec![Part::Values],
        }
    }

    /// Each part reads no more than a page needs, and what they found is sorted again.
    fn union(&mut self, parts: &[Part]) -> String {
        let selects: Vec<String> = parts
            .iter()
            .map(|part| self.select(Some(part), true))
            .collect();
        let mut text = String::new();
        for (index, select) in selects.iter().enumerate() {
            if index > 0 {
                text.push_str("\nUNION ALL\n");
            }
            text.push_str(&format!("SELECT * FROM (\n{select}\n) AS p{index}"));
        }
        // By its place in the answer: the key column where it is also a field, since keys are selected last.
        let position = |order: &Order<'_>| {
            let is_it = |column: &Selected<'_>| match column {
                Selected::Field(field) | Selected::Key { field, .. } => *field == order.field,
            };
            let place = self.rows.columns.iter().rposition(is_it);
            place.map_or(1, |place| place + 1)
        };
        let order = self.rows.order_by.iter().map(|order| {
            let direction = if order.descending { " DESC" } else { "" };
            format!("{}{direction}", position(order))
        });
        text.push_str("\nORDER BY ");
        push_list(&mut text, ", ", order);
        self.push_window(&mut text, false);
        text
    }

    fn select(&mut self, part: Option<&Part>, in_union: bool) -> String {
        let rows = self.rows;
        let mut text = String::from("SELECT ");
        let columns = rows.columns.iter().enumerate();
        let columns = columns.map(|(place, column)| match column {
            Selected::Field(field) => self.dialect.quote(field),
            Selected::Key { field, as_kept } => {
                let as_kept = if *as_kept { "+" } else { "" };
                let name = self.dialect.quote(&key_name(place));
                format!("{as_kept}{} AS {name}", self.column(field))
            }
        });
        push_list(&mut text, ", ", columns);
        push_source(&mut text, self.dialect, self.source);
        let mut conditions = Vec::new();
        let mut value = 0;
        for condition in rows.conditions {
            let bound: Vec<String> = (0..condition.values)
                .map(|offset| self.bind(Slot::Value(value + offset)))
                .collect();
            value += condition.values;
            let column = self.column(condition.column);
            conditions.push(condition.text(self.dialect, &column, &bound));
        }
        conditions.extend(part.map(|part| self.part(part)));
        if !conditions.is_empty() {
            text.push_str("\nWHERE ");
            push_list(&mut text, " AND ", conditions.into_iter());
        }
        let order = rows.order_by.iter();
        let mut order = order.filter(|order| !self.is_one_value(order)).peekable();
        if order.peek().is_some() {
            text.push_str("\nORDER BY ");
            let order = order.map(|order| {
                let direction = if order.descending { " DESC" } else { "" };
                format!("{}{direction}", self.column(order.field))
            });
            push_list(&mut text, ", ", order);
        }
        if !self.is_one_row() {
            self.push_window(&mut text, in_union);
        }
        text
    }

    /// Whether all rows have the same value in this column of the order, so that it orders nothing. Most planners see that by themselves. DuckDB
    /// does not, and reads one row by its key in a third of the time without the order; nor does ClickHouse.
    fn is_one_value(&self, order: &Order<'_>) -> bool {
        let is_unseen = matches!(self.dialect, Dialect::Generic | Dialect::ClickHouse);
        is_unseen && self.is_equal(order.field)
    }

    /// Whether the conditions leave one row, so that a LIMIT bounds nothing. To most engines one costs nothing; DuckDB makes a stage of its plan of
    /// it, which takes a seventh of what reading one row by its key does, PostgreSQL a node with a row of its own, a tenth of it. Never of ClickHouse,
    /// whose primary keys many rows may share.
    fn is_one_row(&self) -> bool {
        let Rows {
            key, after, window, ..
        } = self.rows;
        let is_first = after.is_none() && matches!(window, Window::First(_));
        matches!(self.dialect, Dialect::Generic | Dialect::Postgres)
            && is_first
            && !key.is_empty()
            && key.iter().all(|column| self.is_equal(column))
    }

    /// Whether a condition has this column equal to one value.
    fn is_equal(&self, column: &str) -> bool {
        let mut conditions = self.rows.conditions.iter();
        conditions.any(|condition| condition.column == column && condition.operator == Operator::Eq)
    }

    /// The rows of this part that lie behind the row.
    fn part(&mut self, part: &Part) -> String {
        let Some((first, rest)) = self.rows.order_by.split_first() else {
            return "1 = 1".to_owned();
        };
        let column = self.column(first.field);
        match part {
            Part::Nulls => format!("{column} IS NULL"),
            Part::NotNulls => format!("{column} IS NOT NULL"),
            Part::RestOfNulls => format!("{column} IS NULL AND {}", self.behind(1)),
            Part::Values if self.compares_as_one() => {
                let rows = self.rows;
                let (mut columns, mut values) = (Vec::new(), Vec::new());
                for (place, order) in rows.order_by.iter().enumerate() {
                    columns.push(self.column(order.field));
                    values.push(self.bind(Slot::Key(place)));
                }
                let beyond = self.beyond(first.descending);
                match rest {
                    [] => format!("{column} {beyond} {}", values[0]),
                    _ => format!("({}) {beyond} ({})", columns.join(", "), values.join(", ")),
                }
            }
            // An index of the first column finds where to begin.
            Part::Values => {
                let value = self.bind(Slot::Key(0));
                let beyond = if first.descending { "<" } else { ">" };
                let tail = self.behind(1);
                format!(
                    "{column} {beyond}= {value} AND ({column} {beyond} {value} OR {column} = {value} AND {tail})"
                )
            }
        }
    }

    /// Whether all columns can be compared at once: in one direction, and none of them NULL.
    fn compares_as_one(&self) -> bool {
        let order = self.rows.order_by;
        let nulls = self.rows.after.map_or(&[][..], |after| &after.nulls);
        let one_direction = order
            .windows(2)
            .all(|pair| pair[0].descending == pair[1].descending);
        // Of the first column NULL is dealt with by parts.
        one_direction && !nulls.contains(&true) && order.iter().skip(1).all(|order| !order.nullable)
    }

    fn beyond(&self, descending: bool) -> &'static str {
        let ties = self.rows.after.is_some_and(|after| after.ties);
        match (descending, ties) {
            (false, false) => ">",
            (false, true) => ">=",
            (true, false) => "<",
            (true, true) => "<=",
        }
    }

    /// Behind the row by the columns from `place` on, all before being equal.
    fn behind(&mut self, place: usize) -> String {
        let rows = self.rows;
        let after = rows.after;
        let Some(order) = rows.order_by.get(place) else {
            return match after.is_some_and(|after| after.ties) {
                true => "1 = 1".to_owned(),
                false => "1 = 0".to_owned(),
            };
        };
        let column = self.column(order.field);
        let is_null = after.is_some_and(|after| after.nulls.get(place) == Some(&true));
        let nulls_last = self.dialect.nulls_last(order.descending);
        let (beyond, equal) = match is_null {
            true if nulls_last => ("1 = 0".to_owned(), format!("{column} IS NULL")),
            true => (format!("{column} IS NOT NULL"), format!("{column} IS NULL")),
            false => {
                let value = self.bind(Slot::Key(place));
                let than = if order.descending { "<" } else { ">" };
                let or_null = match order.nullable && nulls_last {
                    true => format!(" OR {column} IS NULL"),
                    false => String::new(),
                };
                (
                    format!("{column} {than} {value}{or_null}"),
                    format!("{column} = {value}"),
                )
            }
        };
        let tail = self.behind(place + 1);
        format!("({beyond} OR {equal} AND {tail})")
    }

    fn column(&self, name: &str) -> String {
        format!("{SOURCE}.{}", self.dialect.quote(name))
    }

    fn bind(&mut self, slot: Slot) -> String {
        if self.dialect.numbers_placeholders()
            && let Some(place) = self.slots.iter().position(|known| *known == slot)
        {
            return self.dialect.placeholder(place + 1);
        }
        self.slots.push(slot);
        self.dialect.placeholder(self.slots.len())
    }

    /// `in_union`: of a part, of which the beginning may be left out later.
    fn push_window(&mut self, text: &mut String, in_union: bool) {
        let (rows, offset) = match self.rows.window {
            Window::First(rows) => (rows.to_string(), None),
            Window::Bound if in_union => (self.bind(Slot::Reach), None),
            Window::Bound => (self.bind(Slot::Rows), Some(self.bind(Slot::Offset))),
        };
        match (self.dialect, offset) {
            (Dialect::MsSql, offset) => {
                let offset = offset.as_deref().unwrap_or("0");
                text.push_str(&format!(
                    "\nOFFSET {offset} ROWS FETCH NEXT {rows} ROWS ONLY"
                ));
            }
            (_, None) => text.push_str(&format!("\nLIMIT {rows}")),
            (_, Some(offset)) => text.push_str(&format!("\nLIMIT {rows} OFFSET {offset}")),
        }
    }
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
