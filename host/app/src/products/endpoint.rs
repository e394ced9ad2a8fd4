//! An endpoint as it is executed, and what is known of its source.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, OnceLock};

use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use souk_domain::ids::EndpointId;
use souk_domain::pages::Page;
use souk_domain::sql::{self, Dialect, Order, RowSource, Window};
use souk_sandbox::{ColumnKind, json};
use souk_store::products::{EndpointDetails, Row};

use super::{EndpointSnapshot, InUse, Products, Sells, read, unreadable};
use crate::definition::{self, Field, Sorting};
use crate::failure::Cause;

/// Texts of one endpoint's page query, one for each set of filters and length of a first page that
/// callers use. Beyond them lengths are bound; beyond twice as many, all are made anew.
const TEXTS_MAX: usize = 64;

/// What a test learnt of an endpoint's source.
#[derive(Clone, Debug, Default, Serialize, Deserialize, PartialEq)]
pub struct Learned {
    /// Published columns, filters and what sorts, by their own names.
    pub columns: Vec<LearnedColumn>,
    /// The primary key, when the rows are sorted by it.
    #[serde(default)]
    pub key: Vec<String>,
}

#[derive(Clone, Debug, Serialize, Deserialize, PartialEq)]
pub struct LearnedColumn {
    pub name: String,
    #[serde(rename = "type")]
    pub kind: String,
    pub native: String,
}

impl Learned {
    pub fn kind(&self, column: &str) -> Option<&str> {
        self.columns
            .iter()
            .find(|known| known.name == column)
            .map(|known| known.kind.as_str())
    }
}

pub struct EndpointPlan {
    pub fields: Vec<Field>,
    pub filters: Vec<String>,
    pub order_by: Vec<Sorting>,
    /// As stored, or as asked of the source when it was first needed.
    learned: OnceLock<Learned>,
    dialect: Dialect,
    statement: Option<String>,
    /// By the filters that are used, one bit each.
    texts: Mutex<HashMap<(u32, bool, Window), Arc<str>>>,
    pub(crate) published: Vec<json::Field>,
    /// What names and punctuation add to a row.
    pub(crate) row_bytes: usize,
}

impl Sells for EndpointId {
    type Plan = EndpointPlan;

    fn plan(row: &Row<EndpointId>, dialect: Option<Dialect>) -> Result<EndpointPlan, Cause> {
        let details = &row.written.details;
        let dialect = dialect.ok_or_else(|| unreadable("source"))?;
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
        if let Some(stored) = row
            .learned
            .as_deref()
            .and_then(|text| serde_json::from_str::<Learned>(text).ok())
        {
            let _ = learned.set(stored);
        }
        let published = fields
            .iter()
            .enumerate()
            .map(|(index, field)| json::Field::new(index, field.published()))
            .collect();
        let row_bytes = fields
            .iter()
            .map(|field| field.published().len() + 10)
            .sum();
        Ok(EndpointPlan {
            fields,
            filters,
            order_by,
            learned,
            dialect,
            statement,
            texts: Mutex::default(),
            published,
            row_bytes,
        })
    }

    fn is_sql(_: &EndpointDetails) -> bool {
        true
    }

    fn shows_the_same(before: &EndpointDetails, after: &EndpointDetails) -> bool {
        // Filters and limits change what can be asked for, not what the first rows are.
        let asked = EndpointDetails {
            filters: after.filters.clone(),
            default_limit: after.default_limit,
            max_limit: after.max_limit,
            ..before.clone()
        };
        asked == *after
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

    fn source(&self) -> RowSource<'_> {
        match (&self.plan.statement, &self.row.written.details.source_table) {
            (Some(statement), _) => RowSource::Statement(statement),
            (None, table) => RowSource::Table {
                schema: self.row.written.details.source_schema.as_deref(),
                table: table.as_deref().unwrap_or_default(),
            },
        }
    }

    /// What rows are sorted by: as the seller says, else by the primary key. Empty: not known yet.
    pub fn order<'a>(&'a self, learned: Option<&'a Learned>) -> Vec<Order<'a>> {
        if !self.plan.order_by.is_empty() {
            return self.plan.order_by.iter().map(Sorting::order).collect();
        }
        let key = learned.map_or(&[][..], |learned| &learned.key);
        key.iter()
            .map(|field| Order {
                field,
                descending: false,
            })
            .collect()
    }

    /// The statement for a page with these filters (indices into `filters`, ascending). A first page
    /// has its length written into the statement, as long as few lengths are asked for.
    pub fn text(
        &self,
        used: &[usize],
        learned: Option<&Learned>,
        page: Page,
    ) -> (Arc<str>, Window) {
        let bits = used.iter().fold(0u32, |bits, index| bits | 1 << index);
        let first = match page.start {
            0 => Window::First(page.fetch()),
            _ => Window::Bound,
        };
        let mut texts = self.plan.texts.lock();
        let window = match texts.contains_key(&(bits, learned.is_some(), first)) {
            false if texts.len() >= TEXTS_MAX => Window::Bound,
            _ => first,
        };
        if texts.len() >= 2 * TEXTS_MAX {
            texts.clear();
        }
        let text = texts
            .entry((bits, learned.is_some(), window))
            .or_insert_with(|| {
                let fields: Vec<&str> = self
                    .plan
                    .fields
                    .iter()
                    .map(|field| field.name.as_str())
                    .collect();
                let filters: Vec<&str> = used
                    .iter()
                    .map(|index| self.plan.filters[*index].as_str())
                    .collect();
                let order = self.order(learned);
                sql::page(
                    self.plan.dialect,
                    &self.source(),
                    &fields,
                    &filters,
                    &order,
                    window,
                )
                .into()
            });
        (text.clone(), window)
    }

    /// The columns that pages need: published ones, then filters, then those that sort, each once.
    pub fn needed(&self) -> Vec<&str> {
        let fields = self.plan.fields.iter().map(|field| field.name.as_str());
        let filters = self.plan.filters.iter().map(String::as_str);
        let order = self
            .plan
            .order_by
            .iter()
            .map(|sorting| sorting.field.as_str());
        let mut seen = HashSet::new();
        let columns = fields.chain(filters).chain(order);
        columns.filter(|column| seen.insert(*column)).collect()
    }

    /// Reads one row of the columns that pages need, to learn their types.
    pub fn probe(&self) -> String {
        let needed = self.needed();
        sql::page(
            self.plan.dialect,
            &self.source(),
            &needed,
            &[],
            &[],
            Window::Bound,
        )
    }

    /// Reads no row of all columns of the source, to learn their names.
    pub fn columns(&self) -> String {
        sql::columns(self.plan.dialect, &self.source())
    }

    /// The names in `filters` and `order_by` that the source does not have, each with the member it stands in.
    pub fn missing(&self, has: impl Fn(&str) -> bool) -> Vec<(&'static str, String)> {
        let filters = self.plan.filters.iter().map(|name| ("filters", name));
        let order = self
            .plan
            .order_by
            .iter()
            .map(|sorting| ("order_by", &sorting.field));
        filters
            .chain(order)
            .filter(|(_, name)| !has(name))
            .map(|(member, name)| (member, name.clone()))
            .collect()
    }
}

pub(crate) fn kind_of(word: &str) -> Option<ColumnKind> {
    use ColumnKind::*;
    [
        Boolean, Int64, Float64, Decimal, Text, Bytes, Date, Time, Timestamp, Json,
    ]
    .into_iter()
    .find(|kind| kind.as_str() == word)
}
