//! What callers may ask of an endpoint and its source can never do: a filter on a document, an order of points. Found before anybody
//! pays for it. What the type does not tell is tried.

use std::time::{Duration, Instant};

use souk_domain::sql::{self, Condition, Dialect, Operator, Order, Rows, Selected, Window};
use souk_sandbox::{Blame, ColumnKind, Fault, FaultKind, Limits, Query, Request, Value};

use crate::App;
use crate::connections::source::source;
use crate::failure::Cause;
use crate::products::{EndpointSnapshot, Learned, is_never_compared};

const TRIAL_BYTES_MAX: u64 = 1 << 20;
/// For all trials: what a source can never do it says at once.
const TRIALS_MAX: Duration = Duration::from_secs(5);

/// One use of a column that may be impossible.
struct Use<'a> {
    member: &'static str,
    column: &'a str,
    kind: ColumnKind,
    native: &'a str,
    /// `None`: it is sorted by.
    compared: Option<&'a [Operator]>,
}

/// Refuses filters on columns that nobody compares, and what the source says that it cannot do, which is noted in `learned`.
pub(super) async fn check(
    app: &App,
    endpoint: &EndpointSnapshot,
    learned: &mut Learned,
    deadline: Instant,
) -> Result<(), Cause> {
    let refused = refused(app, endpoint, learned, deadline).await?;
    if refused.is_empty() {
        return Ok(());
    }
    for one in &refused {
        learned.note_refusal(&one.column, one.compared.as_deref());
    }
    let told = refused.into_iter();
    let told = told.map(|one| (one.member, one.column, one.type_name));
    Err(Cause::Incomparable(told.collect()))
}

/// A use of a column that is impossible.
struct Refused {
    member: &'static str,
    column: String,
    type_name: String,
    compared: Option<Vec<Operator>>,
}

async fn refused(
    app: &App,
    endpoint: &EndpointSnapshot,
    learned: &Learned,
    deadline: Instant,
) -> Result<Vec<Refused>, Cause> {
    let all = uses(endpoint, learned);
    let (never, unsure): (Vec<&Use<'_>>, Vec<&Use<'_>>) = all
        .iter()
        .filter(|one| one.is_never() || one.is_unsure(endpoint.plan.dialect))
        .partition(|one| one.is_never());
    let mut refused = never;
    let row = &endpoint.row;
    let source = source(app, &row.company_id, &row.written.connection_id).await?;
    let now = Instant::now();
    let until = now + time_for_trials(deadline.saturating_duration_since(now));
    let dialect = endpoint.plan.dialect;
    let tried = async |some: &[&Use<'_>]| {
        let (text, parameters) = trial(endpoint, some);
        let request = Request::Query(Query {
            text: text.into(),
            parameters,
            limits: Limits::new(1, TRIAL_BYTES_MAX),
        });
        app.sandbox.run(source.shared(), request, until).await
    };
    // Of several that fail, each for its own reason, the source tells one.
    if !unsure.is_empty() && tried(&unsure).await.is_err() {
        for one in unsure {
            let answer = tried(&[one]).await;
            if answer.is_err_and(|fault| is_impossible(dialect, one.kind, &fault)) {
                refused.push(one);
            }
        }
    }
    let told = |one: &Use<'_>| Refused {
        member: one.member,
        column: one.column.to_owned(),
        type_name: one.type_name(),
        compared: one.compared.map(<[Operator]>::to_vec),
    };
    Ok(refused.into_iter().map(told).collect())
}

fn uses<'a>(endpoint: &'a EndpointSnapshot, learned: &'a Learned) -> Vec<Use<'a>> {
    let of = |member, column: &'a str, compared| {
        let known = learned.columns.iter().find(|known| known.name == column)?;
        Some(Use {
            member,
            column,
            kind: ColumnKind::of(&known.kind)?,
            native: &known.native,
            compared,
        })
    };
    let filters = endpoint.plan.filters.iter();
    let filters =
        filters.filter_map(|filter| of("filters", &filter.field, Some(&filter.operators[..])));
    let sortings = endpoint.sortings();
    let sortings = sortings.filter_map(|(member, sorting)| of(member, &sorting.field, None));
    filters.chain(sortings).collect()
}

impl Use<'_> {
    /// No value of a caller's is read as what this is.
    fn is_never(&self) -> bool {
        self.compared.is_some() && is_never_compared(self.kind)
    }

    /// Types that leave as texts and are none: PostgreSQL's points, XML, and what sellers make; SQL Server's `xml` and `text`, BigQuery's places, a
    /// `uuid` of Trino's.
    fn is_unsure(&self, dialect: Dialect) -> bool {
        let is_one_of = |texts: &[&str]| {
            let name = self.native.split('(').next().unwrap_or_default();
            texts.iter().any(|text| name.eq_ignore_ascii_case(text))
        };
        // Elsewhere pages are counted, and need no comparison to be sorted.
        let is_compared = self.compared.is_some() && !self.native.is_empty();
        match (self.kind, dialect) {
            (ColumnKind::Json, _) => true,
            (ColumnKind::Text, Dialect::Postgres) => {
                !is_one_of(&["text", "varchar", "char", "name"])
            }
            (ColumnKind::Text, Dialect::MsSql) => {
                is_compared && !is_one_of(&["nvarchar", "varchar", "nchar", "char"])
            }
            (ColumnKind::Text, Dialect::BigQuery | Dialect::Generic) => {
                is_compared && !is_one_of(&["string", "varchar", "text", "char"])
            }
            _ => false,
        }
    }

    fn type_name(&self) -> String {
        match self.native {
            "" => self.kind.as_str().to_owned(),
            native => native.to_owned(),
        }
    }
}

/// Whether the source says that it has no such comparison. What went wrong otherwise says nothing about the column: not every type has a
/// value that is written as an empty text.
fn is_impossible(dialect: Dialect, kind: ColumnKind, fault: &Fault) -> bool {
    let is_sources = fault.blame == Blame::Source && fault.kind == FaultKind::SourceError;
    let code = fault.source_code.as_deref().unwrap_or_default();
    let says_so = match (dialect, kind) {
        // No such operator, other types, more than one operator; and composites, of which PostgreSQL reads no value that is bound.
        (Dialect::Postgres, _) => matches!(code, "42883" | "42804" | "42725" | "0A000"),
        // Of `xml`, of `text` and `ntext`, of types that do not fit.
        (Dialect::MsSql, ColumnKind::Text) => matches!(code, "305" | "306" | "402"),
        // It reads no text as one of its places and spans, and says of all that it cannot do the same.
        (Dialect::BigQuery, ColumnKind::Text) => code == "invalidQuery",
        // Trino's. Others read a text as what it is compared with.
        (Dialect::Generic, ColumnKind::Text) => {
            matches!(code, "TYPE_MISMATCH" | "OPERATOR_NOT_FOUND")
        }
        _ => true,
    };
    is_sources && says_so
}

/// A test goes on with the rest, however long trials take.
fn time_for_trials(left: Duration) -> Duration {
    TRIALS_MAX.min(left / 2)
}

/// PostgreSQL looks for operators before it reads, and need not read. Others may find out with a row only, and SQL Server fetches no 0 rows.
fn rows_of_trial(dialect: Dialect) -> u32 {
    match dialect {
        Dialect::Postgres => 0,
        _ => 1,
    }
}

/// A page of what is compared with a text, in this order. A page behind a row compares the columns of the order, too.
fn trial(endpoint: &EndpointSnapshot, uses: &[&Use<'_>]) -> (String, Vec<Value>) {
    let mut conditions = Vec::new();
    for one in uses {
        let behind_a_row: &[Operator] = match one.kind {
            ColumnKind::Json => &[],
            _ => &[Operator::Gte],
        };
        let operators = one.compared.unwrap_or(behind_a_row).iter();
        conditions.extend(operators.map(|operator| Condition {
            column: one.column,
            operator: *operator,
            values: 1,
            is_spelled: false,
        }));
    }
    let sorted = uses.iter().filter(|one| one.compared.is_none());
    let order_by = sorted.map(|one| Order {
        field: one.column,
        descending: false,
        nullable: true,
    });
    let columns: Vec<Selected<'_>> = uses
        .iter()
        .take(1)
        .map(|one| Selected::Field(one.column))
        .collect();
    let rows = Rows {
        columns: &columns,
        conditions: &conditions,
        order_by: &order_by.collect::<Vec<Order<'_>>>(),
        after: None,
        window: Window::First(rows_of_trial(endpoint.plan.dialect)),
    };
    let text = sql::page(endpoint.plan.dialect, &endpoint.source(), &rows).text;
    // Not NULL, which every type has: what is no value of the type is the caller's fault and says that there is one.
    let values = vec![Value::Text(String::new()); conditions.len()];
    (text, values)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What says nothing about the column refuses nothing.
    #[test]
    fn only_a_missing_comparison_refuses() {
        let of = |dialect, kind, code: &str| {
            let fault = Fault::new(Blame::Source, FaultKind::SourceError, "it cannot");
            let source_code = Some(code.to_owned());
            is_impossible(
                dialect,
                kind,
                &Fault {
                    source_code,
                    ..fault
                },
            )
        };
        let (json, text) = (ColumnKind::Json, ColumnKind::Text);
        for code in ["42883", "42804", "42725", "0A000"] {
            assert!(of(Dialect::Postgres, text, code), "{code}");
        }
        for code in ["XX000", "42602", "42P01"] {
            assert!(!of(Dialect::Postgres, text, code), "{code}");
        }
        assert!(of(Dialect::MySql, json, "1235"));
        for (dialect, refuses, other) in [
            // A text that is no `uniqueidentifier`, a row that is locked.
            (Dialect::MsSql, "305", "8169"),
            (Dialect::MsSql, "402", "1222"),
            (Dialect::BigQuery, "invalidQuery", "backendError"),
            (Dialect::Generic, "TYPE_MISMATCH", "INVALID_CAST_ARGUMENT"),
        ] {
            assert!(of(dialect, text, refuses), "{refuses}");
            assert!(!of(dialect, text, other), "{other}");
        }
        let late = Fault::new(Blame::Source, FaultKind::Timeout, "it is late");
        assert!(!is_impossible(Dialect::MySql, json, &late));
    }

    /// What is a text is not tried; what only leaves as one is, where callers may compare it.
    #[test]
    fn texts_that_are_none_are_tried() {
        let of = |dialect, native, is_filter| {
            let one = Use {
                member: "filters",
                column: "c",
                kind: ColumnKind::Text,
                native,
                compared: match is_filter {
                    true => Some(&[Operator::Eq]),
                    false => None,
                },
            };
            one.is_unsure(dialect)
        };
        for (dialect, text, none) in [
            (Dialect::Postgres, "varchar(9)", "point"),
            (Dialect::MsSql, "nvarchar(40)", "xml"),
            (Dialect::MsSql, "varchar(max)", "text"),
            (Dialect::BigQuery, "STRING", "GEOGRAPHY"),
            (Dialect::Generic, "VARCHAR", "uuid"),
        ] {
            assert!(!of(dialect, text, true), "{text}");
            assert!(of(dialect, none, true), "{none}");
            assert_eq!(of(dialect, none, false), dialect == Dialect::Postgres);
        }
        // A connector that says no types, and sources that compare everything with a text.
        assert!(!of(Dialect::Generic, "", true));
        assert!(!of(Dialect::MySql, "enum", true) && !of(Dialect::ClickHouse, "UUID", true));
    }

    /// Whatever a trial does, the test has time left, and PostgreSQL reads nothing for it.
    #[test]
    fn trials_are_short() {
        let seconds = Duration::from_secs;
        assert_eq!(time_for_trials(seconds(60)), TRIALS_MAX);
        assert_eq!(time_for_trials(seconds(2)), seconds(1));
        assert_eq!(time_for_trials(seconds(0)), seconds(0));
        assert_eq!(rows_of_trial(Dialect::Postgres), 0);
        assert_eq!(rows_of_trial(Dialect::MsSql), 1);
    }
}
