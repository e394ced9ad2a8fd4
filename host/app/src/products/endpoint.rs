//! An endpoint as it is executed, and what is known of its source.

use std::collections::HashSet;
use std::sync::{Arc, OnceLock};

use serde::{Deserialize, Serialize};
use souk_domain::ids::EndpointId;
use souk_domain::sql::{
    self, Condition, Dialect, Operator, Order, RowSource, Rows, Selected, Window,
};
use souk_sandbox::{ColumnKind, Facts, json};
use souk_store::products::{EndpointDetails, Row, Written};

use super::asks;
use super::snapshot::{EndpointSnapshot, InUse, Products, Sells, read, unreadable};
use super::statements::{PageStatement, Shape, Statements, row_bytes};
use crate::definition::{self, Field, Filter, Sort, Sorting};
use crate::failure::Cause;

/// What a test learnt of an endpoint's source.
#[derive(Clone, Debug, Default, Serialize, Deserialize, PartialEq)]
pub struct Learned {
    /// Published columns, filters and what sorts, by their own names.
    pub columns: Vec<LearnedColumn>,
    /// The primary key of a table: what its rows are sorted by where nothing else is said, and what tells them apart in any order.
    #[serde(default)]
    pub key: Vec<String>,
    /// It only tells whoever saves the endpoint next what its columns are. Pages are not read by it: it is of a definition before this
    /// one, or of a test, which changes nothing for those who are reading.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub types_only: bool,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize, PartialEq)]
pub struct LearnedColumn {
    pub name: String,
    #[serde(rename = "type")]
    pub kind: String,
    pub native: String,
    /// Whether the table lets it be NULL, where its catalog says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nullable: Option<bool>,
    /// Operators that the source has refused to compare it by, all of them together in one trial.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub not_compared_by: Vec<String>,
    /// The source has refused to sort by it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub not_sorted: bool,
}

impl Learned {
    /// As it is kept beside an endpoint.
    pub(crate) fn stored(row: &Row<EndpointId>) -> Option<Learned> {
        serde_json::from_str(row.learned.as_deref()?).ok()
    }

    pub fn kind(&self, column: &str) -> Option<&str> {
        self.column(column).map(|known| known.kind.as_str())
    }

    pub(crate) fn column(&self, name: &str) -> Option<&LearnedColumn> {
        self.columns.iter().find(|known| known.name == name)
    }

    /// Notes that a trial has refused to compare a column by these operators, or to sort by it.
    pub(crate) fn note_refusal(&mut self, column: &str, operators: Option<&[Operator]>) {
        let Some(column) = self.columns.iter_mut().find(|known| known.name == column) else {
            return;
        };
        match operators {
            // Its type says so already.
            Some(operators) if column.is_never_compared(operators) => {}
            Some(operators) => {
                let words = operators.iter().map(|operator| operator.word().to_owned());
                column.not_compared_by = words.collect();
            }
            None => column.not_sorted = true,
        }
    }

    /// Whether `other` says the same of which types the columns are, and of what can be done with them. What may be NULL now, and might not be before, is
    /// another one: pages that are read as before leave its rows out.
    pub(crate) fn has_types_of(&self, other: &Learned) -> bool {
        let same = |(one, other): (&LearnedColumn, &LearnedColumn)| {
            one.name == other.name
                && one.is_of_type_of(other)
                && (one.nullable, other.nullable) != (Some(false), Some(true))
                && one.not_compared_by == other.not_compared_by
                && one.not_sorted == other.not_sorted
        };
        self.columns.len() == other.columns.len()
            && self.columns.iter().zip(&other.columns).all(same)
    }
}

impl LearnedColumn {
    pub(super) fn is_of_type_of(&self, other: &LearnedColumn) -> bool {
        self.kind == other.kind && self.native == other.native
    }

    /// By which of these callers cannot compare it, as far as is known. `None`: by all of them they can.
    pub(super) fn refuses(&self, operators: &[Operator]) -> Option<Uncompared> {
        let kind = ColumnKind::of(&self.kind);
        if let Some(never) = kind.and_then(|kind| never_compared(kind, operators)) {
            return Some(never);
        }
        let refused = &self.not_compared_by;
        let has = |word: &String| operators.iter().any(|operator| operator.word() == word);
        let is_refused = !refused.is_empty() && refused.iter().all(has);
        is_refused.then(|| Uncompared::By(refused.join(", ")))
    }

    fn is_never_compared(&self, operators: &[Operator]) -> bool {
        let kind = ColumnKind::of(&self.kind);
        kind.is_some_and(|kind| never_compared(kind, operators).is_some())
    }

    /// As its source calls it, if that says so.
    pub(super) fn type_name(&self) -> &str {
        match self.native.as_str() {
            "" => &self.kind,
            native => native,
        }
    }
}

/// The time that a column of a SQLite file is declared to have, if that has more than one spelling.
pub(crate) fn declared_time(native: &str) -> Option<ColumnKind> {
    let upper = native.to_ascii_uppercase();
    match upper.split('(').next().unwrap_or_default().trim() {
        "TIME" => Some(ColumnKind::Time),
        name if name == "DATETIME" || name.starts_with("TIMESTAMP") => {
            Some(ColumnKind::LocalTimestamp)
        }
        _ => None,
    }
}

/// How a column cannot be compared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Uncompared {
    /// No value of a caller's is read as what it is.
    AtAll,
    /// By these operators: `gte, like`.
    By(String),
}

impl Uncompared {
    /// What is said behind "cannot be compared with a value".
    pub(crate) fn by(&self) -> String {
        match self {
            Uncompared::AtAll => String::new(),
            Uncompared::By(words) => format!(" by {words}"),
        }
    }
}

/// How nobody compares a column of this kind who may use these operators, whatever the source is.
pub(crate) fn never_compared(kind: ColumnKind, operators: &[Operator]) -> Option<Uncompared> {
    if matches!(kind, ColumnKind::Json | ColumnKind::Bytes) {
        return Some(Uncompared::AtAll);
    }
    let never = operators.iter().filter(|one| !has_operator(kind, **one));
    let words: Vec<&str> = never.map(|operator| operator.word()).collect();
    (!words.is_empty()).then(|| Uncompared::By(words.join(", ")))
}

/// Only texts begin with something, and true and false have no order.
pub(crate) fn has_operator(kind: ColumnKind, operator: Operator) -> bool {
    match operator {
        Operator::Like => kind == ColumnKind::Text,
        operator => !(operator.is_range() && kind == ColumnKind::Boolean),
    }
}

/// Whether the rows come from the same place: what was learnt of the one holds for the other.
pub(super) fn has_same_source(
    one: &Written<EndpointDetails>,
    other: &Written<EndpointDetails>,
) -> bool {
    let (is, was) = (&one.details, &other.details);
    one.connection_id == other.connection_id
        && is.source_schema == was.source_schema
        && is.source_table == was.source_table
        && is.sql_logic == was.sql_logic
}

pub struct EndpointPlan {
    pub fields: Vec<Field>,
    pub filters: Vec<Filter>,
    pub order_by: Vec<Sorting>,
    /// Orders that callers may ask for.
    pub sorts: Vec<Sort>,
    /// As a publication has stored it, or as asked of the source when it was first needed.
    learned: OnceLock<Learned>,
    pub(crate) dialect: Dialect,
    /// What its source's connector says of types.
    pub(crate) facts: Facts,
    statement: Option<String>,
    statements: Statements,
}

impl Sells for EndpointId {
    type Plan = EndpointPlan;

    fn plan(
        row: &Row<EndpointId>,
        spoken: Option<(Dialect, Facts)>,
    ) -> Result<EndpointPlan, Cause> {
        let details = &row.written.details;
        let (dialect, facts) = spoken.ok_or_else(|| unreadable("source"))?;
        let statement = match &details.sql_logic {
            Some(sql) => Some(
                sql::prepare(dialect, sql)
                    .map_err(|_| unreadable("sql_logic"))?
                    .text,
            ),
            None if details.source_table.is_some() => None,
            None => return Err(unreadable("source")),
        };
        let fields =
            definition::fields(&read(&details.fields)?).map_err(|_| unreadable("fields"))?;
        let filters =
            definition::filters(&read(&details.filters)?).map_err(|_| unreadable("filters"))?;
        let order_by =
            definition::order_by(&read(&details.order_by)?).map_err(|_| unreadable("order_by"))?;
        let learned = OnceLock::new();
        if let Some(stored) = Learned::stored(row).filter(|stored| !stored.types_only) {
            let _ = learned.set(stored);
        }
        let sorts = definition::sorts(&read(&details.sorts)?).map_err(|_| unreadable("sorts"))?;
        Ok(EndpointPlan {
            fields,
            filters,
            order_by,
            sorts,
            learned,
            dialect,
            facts,
            statement,
            statements: Statements::new(),
        })
    }

    fn is_sql(_: &EndpointDetails) -> bool {
        true
    }

    fn shows_the_same(before: &EndpointDetails, after: &EndpointDetails) -> bool {
        // Filters, further orders and limits change what can be asked for, not what the first rows are.
        let asked = EndpointDetails {
            filters: after.filters.clone(),
            sorts: after.sorts.clone(),
            default_limit: after.default_limit,
            max_limit: after.max_limit,
            ..before.clone()
        };
        asked == *after
    }

    fn asks_no_more(before: &EndpointDetails, after: &EndpointDetails) -> bool {
        // Names and descriptions of fields, and how long pages are, concern no source.
        let named = EndpointDetails {
            fields: after.fields.clone(),
            ..before.clone()
        };
        EndpointId::shows_the_same(&named, after) && asks::no_more(before, after)
    }

    fn still_learned(before: &Row<EndpointId>, after: &Written<EndpointDetails>) -> Option<String> {
        let learned =
            Learned::stored(before).filter(|_| has_same_source(&before.written, after))?;
        // Pages that ask for no more go on as they were read: else every host would ask the source again, whenever it reads the endpoint anew.
        let is_read_as_before = EndpointId::asks_no_more(&before.written.details, &after.details);
        let left = Learned {
            types_only: learned.types_only || !is_read_as_before,
            ..learned
        };
        serde_json::to_string(&left).ok()
    }

    fn in_use(products: &Products) -> &InUse<EndpointId> {
        &products.endpoints
    }
}

impl EndpointSnapshot {
    pub fn learned(&self) -> Option<&Learned> {
        self.plan.learned.get()
    }

    /// Keeps what the source said, for as long as this snapshot lives.
    pub(crate) fn keep_learned(&self, learned: Learned) -> &Learned {
        self.plan.learned.get_or_init(|| learned)
    }

    pub(crate) fn source(&self) -> RowSource<'_> {
        match (&self.plan.statement, &self.row.written.details.source_table) {
            (Some(statement), _) => RowSource::Statement(statement),
            (None, table) => RowSource::Table {
                schema: self.row.written.details.source_schema.as_deref(),
                table: table.as_deref().unwrap_or_default(),
            },
        }
    }

    /// The text of an engine that takes one of its own. It gives the whole result, in an order of its own; pages are cut from that here.
    pub(crate) fn whole(&self) -> Option<&str> {
        match self.plan.dialect {
            Dialect::Opaque => self.plan.statement.as_deref(),
            _ => None,
        }
    }

    /// Whether it is known what rows are sorted by.
    pub(crate) fn has_order(&self, learned: Option<&Learned>) -> bool {
        !self.plan.order_by.is_empty() || learned.is_some_and(|learned| !learned.key.is_empty())
    }

    /// What rows are sorted by: by what is asked for, then as the seller says, then by the primary key. Empty: not known yet.
    pub(crate) fn order<'a>(
        &'a self,
        learned: Option<&'a Learned>,
        sort: Option<usize>,
    ) -> Vec<Order<'a>> {
        let is_nullable = |field: &str| {
            let column = learned.and_then(|learned| learned.column(field));
            column.and_then(|column| column.nullable).unwrap_or(true)
        };
        let by = |sorting: &'a Sorting| Order {
            field: &sorting.field,
            descending: sorting.descending,
            nullable: sorting
                .nullable
                .unwrap_or_else(|| is_nullable(&sorting.field)),
        };
        let sort = sort.and_then(|place| self.plan.sorts.get(place));
        let asked = sort.map_or(&[][..], |sort| sort.order_by.as_slice());
        let mut order: Vec<Order<'_>> = asked.iter().map(by).collect();
        let own = self.plan.order_by.iter().map(by);
        let key = learned.map_or(&[][..], |learned| &learned.key);
        let key = key.iter().map(|field| Order {
            field,
            descending: false,
            nullable: is_nullable(field),
        });
        // The tail that tells all rows apart.
        for tail in own.chain(key) {
            if order.iter().all(|before| before.field != tail.field) {
                order.push(tail);
            }
        }
        order
    }

    /// The fields of a page of this shape, in the order in which they are wanted.
    pub(crate) fn wanted(&self, shape: &Shape) -> Vec<&Field> {
        let fields = &self.plan.fields;
        match &shape.fields {
            None => fields.iter().collect(),
            Some(places) => places
                .iter()
                .filter_map(|place| fields.get(*place))
                .collect(),
        }
    }

    /// The statement for a page of this shape, or for its like with a bound length.
    pub(crate) fn statement(&self, shape: &Shape, learned: Option<&Learned>) -> Arc<PageStatement> {
        let statements = &self.plan.statements;
        statements.get(shape, |shape| self.write(shape, learned))
    }

    fn write(&self, shape: &Shape, learned: Option<&Learned>) -> PageStatement {
        let plan = &self.plan;
        let wanted = self.wanted(shape);
        let filters = shape.conditions.iter();
        let conditions: Vec<Condition<'_>> = filters
            .filter_map(|chosen| {
                let column = &plan.filters.get(chosen.filter)?.field;
                Some(Condition {
                    column,
                    operator: chosen.operator,
                    values: chosen.values,
                    is_spelled: self.is_spelled(learned, column),
                })
            })
            .collect();
        let order = self.order(learned, shape.sort);
        let mut columns: Vec<Selected<'_>> = wanted
            .iter()
            .map(|field| Selected::Field(&field.name))
            .collect();
        let mut keys = Vec::new();
        for order in order.iter().filter(|_| plan.dialect.pages_by_key()) {
            let as_kept = self.is_read_otherwise(learned, order.field);
            let is_it = |column: &Selected<'_>| matches!(column, Selected::Field(name) if *name == order.field);
            match columns.iter().position(is_it) {
                Some(place) if !as_kept => keys.push(place),
                _ => {
                    keys.push(columns.len());
                    columns.push(Selected::Key {
                        field: order.field,
                        as_kept,
                    });
                }
            }
        }
        let rows = Rows {
            columns: &columns,
            conditions: &conditions,
            order_by: &order,
            key: learned.map_or(&[][..], |learned| &learned.key),
            after: shape.after.as_ref(),
            window: shape.window,
        };
        let statement = sql::page(plan.dialect, &self.source(), &rows);
        let published = wanted.iter().enumerate();
        let published: Vec<json::Field> = published
            .map(|(index, field)| json::Field::new(index, field.published()))
            .collect();
        let names = columns
            .iter()
            .enumerate()
            .map(|(place, column)| match column {
                Selected::Field(name) => (*name).to_owned(),
                Selected::Key { .. } => sql::key_name(place),
            });
        PageStatement {
            text: statement.text.into(),
            slots: statement.slots,
            columns: names.collect(),
            row_bytes: row_bytes(&published),
            published,
            keys,
            by_key: statement.by_key,
        }
    }

    /// One timestamp of a SQLite file has many texts.
    fn is_spelled(&self, learned: Option<&Learned>, column: &str) -> bool {
        let time = self.time_in_file(learned, column);
        matches!(
            time,
            Some(ColumnKind::Timestamp | ColumnKind::LocalTimestamp)
        )
    }

    /// Dates and times of a SQLite file are texts, or numbers, which sort as they are kept and not as what they are read as.
    fn is_read_otherwise(&self, learned: Option<&Learned>, column: &str) -> bool {
        self.time_in_file(learned, column).is_some()
    }

    /// What kind of time a SQLite file has in this column.
    fn time_in_file(&self, learned: Option<&Learned>, column: &str) -> Option<ColumnKind> {
        if self.plan.dialect != Dialect::Sqlite {
            return None;
        }
        let known = learned?.column(column)?;
        match ColumnKind::of(&known.kind)? {
            // Not all of the rows that were looked at had one.
            ColumnKind::Text => declared_time(&known.native),
            kind @ (ColumnKind::Date
            | ColumnKind::Time
            | ColumnKind::Timestamp
            | ColumnKind::LocalTimestamp) => Some(kind),
            _ => None,
        }
    }

    /// The columns that pages need: published ones, then filters, then those that sort, each once.
    pub fn needed(&self) -> Vec<&str> {
        let fields = self.plan.fields.iter().map(|field| field.name.as_str());
        let filters = self.plan.filters.iter().map(|filter| filter.field.as_str());
        let order = self.sortings().map(|(_, sorting)| sorting.field.as_str());
        let mut seen = HashSet::new();
        let columns = fields.chain(filters).chain(order);
        columns.filter(|column| seen.insert(*column)).collect()
    }

    /// Whatever rows are ever sorted by, with the member that it stands in.
    pub(crate) fn sortings(&self) -> impl Iterator<Item = (&'static str, &Sorting)> {
        let own = self.plan.order_by.iter();
        let sorts = self.plan.sorts.iter().flat_map(|sort| &sort.order_by);
        own.map(|sorting| ("order_by", sorting))
            .chain(sorts.map(|sorting| ("sorts", sorting)))
    }

    /// Reads some rows of the columns that pages need, to learn their types.
    pub fn probe(&self, rows: u32) -> String {
        let needed = self.needed();
        let columns: Vec<Selected<'_>> = needed.into_iter().map(Selected::Field).collect();
        let window = Window::First(rows);
        let rows = Rows {
            columns: &columns,
            conditions: &[],
            order_by: &[],
            key: &[],
            after: None,
            window,
        };
        sql::page(self.plan.dialect, &self.source(), &rows).text
    }

    /// Reads no row of all columns of the source, to learn their names.
    pub fn columns(&self) -> String {
        sql::columns(self.plan.dialect, &self.source())
    }

    /// The names in `filters` and `order_by` that the source does not have, each with the member it stands in.
    pub fn missing(&self, has: impl Fn(&str) -> bool) -> Vec<(&'static str, String)> {
        let filters = self.plan.filters.iter();
        let filters = filters.map(|filter| ("filters", &filter.field));
        let order = self.sortings();
        let order = order.map(|(member, sorting)| (member, &sorting.field));
        filters
            .chain(order)
            .filter(|(_, name)| !has(name))
            .map(|(member, name)| (member, name.clone()))
            .collect()
    }
}
