//! What callers may ask of an endpoint and its source can never do: a filter on a document, an order of points. Found before anybody
//! pays for it. What the type does not tell is tried.

use std::time::{Duration, Instant};

use souk_domain::sql::{self, Condition, Dialect, Operator, Order, Rows, Selected, Window};
use souk_sandbox::{
    Blame, ColumnKind, Fact, Facts, Fault, FaultKind, Limits, Query, Request, Value,
};

use crate::App;
use crate::connections::source::source;
use crate::failure::{Cause, Incomparable};
use crate::products::{EndpointSnapshot, Learned, Uncompared, never_compared};

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
    let told = refused.into_iter().map(|one| Incomparable {
        member: one.member,
        column: one.column,
        type_name: one.type_name,
        by: one.by,
    });
    Err(Cause::Incomparable(told.collect()))
}

/// A use of a column that is impossible.
struct Refused {
    member: &'static str,
    column: String,
    type_name: String,
    /// Of the operators, which; empty where that is not known, or all of them.
    by: String,
    compared: Option<Vec<Operator>>,
}

async fn refused(
    app: &App,
    endpoint: &EndpointSnapshot,
    learned: &Learned,
    deadline: Instant,
) -> Result<Vec<Refused>, Cause> {
    let all = uses(endpoint, learned);
    let (dialect, facts) = (endpoint.plan.dialect, &endpoint.plan.facts);
    let (never, unsure): (Vec<&Use<'_>>, Vec<&Use<'_>>) = all
        .iter()
        .filter(|one| one.never().is_some() || one.is_unsure(dialect, facts))
        .partition(|one| one.never().is_some());
    let mut refused = never;
    let row = &endpoint.row;
    let source = source(app, &row.company_id, &row.written.connection_id).await?;
    let now = Instant::now();
    let until = now + time_for_trials(deadline.saturating_duration_since(now));
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
            if answer.is_err_and(|fault| is_impossible(dialect, facts, one.kind, &fault)) {
                refused.push(one);
            }
        }
    }
    let told = |one: &Use<'_>| Refused {
        member: one.member,
        column: one.column.to_owned(),
        type_name: one.type_name(),
        by: one.never().map_or_else(String::new, |how| how.by()),
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
    /// No value of a caller's is read as what this is, or compared so.
    fn never(&self) -> Option<Uncompared> {
        never_compared(self.kind, self.compared?)
    }

    /// Types that leave as texts and are none: PostgreSQL's points, XML, and what sellers make; SQL Server's `xml` and `text`, BigQuery's places, a
    /// `uuid`, and what the connector says. And what its vendor says that nothing is sorted by.
    fn is_unsure(&self, dialect: Dialect, facts: &Facts) -> bool {
        let (kind, is_compared) = (self.kind, self.compared.is_some());
        match (kind, dialect) {
            (ColumnKind::Json, _) => true,
            (ColumnKind::Text, Dialect::Postgres) => {
                !self.is_one_of(&["text", "varchar", "char", "name"])
            }
            // A connector that says no types.
            _ if self.native.is_empty() => false,
            // Pages are counted there, and need no comparison to be sorted.
            (ColumnKind::Text | ColumnKind::Bytes, _) if !is_compared => {
                facts.has(Fact::Unsorted, self.first_word(), unsorted(dialect))
            }
            (ColumnKind::Text, _) if facts.has(Fact::Uncompared, self.first_word(), &[]) => true,
            // `json` and `vector` of SQL Server 2025 come as texts of no length.
            (ColumnKind::Text, Dialect::MsSql) => {
                !self.is_one_of(&["nvarchar", "varchar", "nchar", "char"])
                    || self.native.to_ascii_lowercase().ends_with("(max)")
            }
            (ColumnKind::Text, Dialect::BigQuery | Dialect::Generic) => {
                !self.is_one_of(&["string", "varchar", "text", "char"])
            }
            // Those of its own, as `UUID` and `IPv4`, have no beginning.
            (ColumnKind::Text, Dialect::ClickHouse) => {
                let compared = self.compared.unwrap_or_default();
                compared.contains(&Operator::Like) && !self.native.contains("String")
            }
            // MySQL compares everything with a text.
            _ => false,
        }
    }

    /// Of its type: `varchar(9)`, `RANGE<DATE>`, `INTERVAL DAY TO SECOND`, `STRING COLLATE UTF8_LCASE`.
    fn first_word(&self) -> &str {
        let name = self.native.split(['(', '<', ' ']).next();
        name.unwrap_or_default()
    }

    fn is_one_of(&self, types: &[&str]) -> bool {
        let name = self.first_word();
        types.iter().any(|kind| name.eq_ignore_ascii_case(kind))
    }

    fn type_name(&self) -> String {
        match self.native {
            "" => self.kind.as_str().to_owned(),
            native => native.to_owned(),
        }
    }
}

/// What leaves as text or bytes and has no order by its vendor's own word. Not more than that is tried: a source that can sort by a column reads all of
/// it for the trial.
fn unsorted(dialect: Dialect) -> &'static [&'static str] {
    match dialect {
        Dialect::MsSql => &["text", "ntext", "image", "xml"],
        Dialect::BigQuery => &["geography"],
        _ => &[],
    }
}

/// The codes by which a source of this dialect says that it has no such comparison.
fn no_such_operator(dialect: Dialect) -> &'static [&'static str] {
    match dialect {
        // No such operator, other types, more than one operator; and composites, of which PostgreSQL reads no value that is bound.
        Dialect::Postgres => &["42883", "42804", "42725", "0A000"],
        // Of `xml`, of `text`, `ntext` and `image`, of types that do not fit, of those that LIKE and operators do not take, and of `json` and `vector`.
        Dialect::MsSql => &["305", "306", "402", "8116", "8117", "13636", "42213"],
        // It reads no text as one of its places and spans, and says of all that it cannot do the same.
        Dialect::BigQuery => &["invalidQuery"],
        _ => &[],
    }
}

/// Whether the source says that it has no such comparison. What went wrong otherwise says nothing about the column: not every type has a
/// value that is written as an empty text.
fn is_impossible(dialect: Dialect, facts: &Facts, kind: ColumnKind, fault: &Fault) -> bool {
    let is_sources = fault.blame == Blame::Source && fault.kind == FaultKind::SourceError;
    let code = fault.source_code.as_deref().unwrap_or_default();
    let says_so = match (dialect, kind) {
        // Where no code is known, a text is read as what it is compared with.
        (Dialect::Postgres | Dialect::MsSql, _)
        | (Dialect::BigQuery | Dialect::Generic | Dialect::MySql, ColumnKind::Text) => {
            facts.has(Fact::NoSuchOperator, code, no_such_operator(dialect))
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
    let dialect = endpoint.plan.dialect;
    let mut conditions = Vec::new();
    for one in uses {
        let behind_a_row: &[Operator] = match one.kind {
            ColumnKind::Json => &[],
            _ if !dialect.pages_by_key() => &[],
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
        key: &[],
        after: None,
        window: Window::First(rows_of_trial(dialect)),
    };
    let text = sql::page(dialect, &endpoint.source(), &rows).text;
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
        let nothing = Facts::default();
        let told = |dialect, facts: &Facts, kind, code: &str| {
            let fault = Fault::new(Blame::Source, FaultKind::SourceError, "it cannot");
            let source_code = Some(code.to_owned());
            is_impossible(
                dialect,
                facts,
                kind,
                &Fault {
                    source_code,
                    ..fault
                },
            )
        };
        let of = |dialect, kind, code: &str| told(dialect, &nothing, kind, code);
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
            (Dialect::MsSql, "8116", "241"),
            (Dialect::MsSql, "13636", "245"),
            (Dialect::BigQuery, "invalidQuery", "backendError"),
        ] {
            assert!(of(dialect, text, refuses), "{refuses}");
            assert!(!of(dialect, text, other), "{other}");
        }
        // Whose connector says it.
        for (dialect, refuses, other) in [
            (Dialect::Generic, "TYPE_MISMATCH", "INVALID_CAST_ARGUMENT"),
            (Dialect::Generic, "001044", "100038"),
            // A text that is no span of time says that texts are read as spans.
            (Dialect::MySql, "DATATYPE_MISMATCH", "CAST_INVALID_INPUT"),
        ] {
            let facts = Facts::of([format!("no-such-operator:{refuses}").as_str()]);
            assert!(told(dialect, &facts, text, refuses), "{refuses}");
            assert!(!told(dialect, &facts, text, other), "{other}");
            assert!(!of(dialect, text, refuses), "{refuses}");
        }
        assert!(of(Dialect::MsSql, ColumnKind::Bytes, "306"));
        assert!(!of(Dialect::MsSql, ColumnKind::Bytes, "1222"));
        let late = Fault::new(Blame::Source, FaultKind::Timeout, "it is late");
        assert!(!is_impossible(Dialect::MySql, &nothing, json, &late));
    }

    /// Of a connector that says so much of its types.
    fn is_unsure(
        dialect: Dialect,
        said: &[&str],
        kind: ColumnKind,
        native: &str,
        is_filter: bool,
    ) -> bool {
        let one = Use {
            member: "filters",
            column: "c",
            kind,
            native,
            compared: match is_filter {
                true => Some(&[Operator::Eq]),
                false => None,
            },
        };
        one.is_unsure(dialect, &Facts::of(said.iter().copied()))
    }

    /// What is a text is not tried; what only leaves as one is, where callers may compare it.
    #[test]
    fn texts_that_are_none_are_tried() {
        let said = ["uncompared:interval", "uncompared:geography"];
        let of = |dialect, native| is_unsure(dialect, &said, ColumnKind::Text, native, true);
        for (dialect, text, none) in [
            (Dialect::Postgres, "varchar(9)", "point"),
            (Dialect::MsSql, "nvarchar(40)", "xml"),
            (Dialect::MsSql, "varchar(8000)", "text"),
            (Dialect::MsSql, "varchar(40)", "nvarchar(max)"),
            (Dialect::BigQuery, "STRING", "GEOGRAPHY"),
            (Dialect::BigQuery, "STRING(9)", "RANGE<DATE>"),
            (Dialect::Generic, "VARCHAR", "uuid"),
            (Dialect::Generic, "varchar(9)", "interval day to second"),
            (
                Dialect::MySql,
                "STRING COLLATE UTF8_LCASE",
                "INTERVAL DAY TO SECOND",
            ),
            (Dialect::MySql, "enum", "GEOGRAPHY(4326)"),
        ] {
            assert!(!of(dialect, text), "{text}");
            assert!(of(dialect, none), "{none}");
        }
        // A connector that says no types, and sources that compare everything with a text.
        assert!(!of(Dialect::Generic, ""));
        assert!(!of(Dialect::ClickHouse, "UUID"));
        let text = ColumnKind::Text;
        assert!(!is_unsure(Dialect::MySql, &[], text, "geography", true));
    }

    /// An order is tried of what its vendor says that has none, and of nothing that would be read whole for the trial.
    #[test]
    fn orders_that_a_vendor_does_not_have_are_tried() {
        let (text, bytes) = (ColumnKind::Text, ColumnKind::Bytes);
        let said = ["hyperloglog", "qdigest", "sphericalgeography", "geometry"];
        let said = said.map(|name| format!("unsorted:{name}"));
        let said: Vec<&str> = said.iter().map(String::as_str).collect();
        let (said, nothing): (&[&str], &[&str]) = (&said, &[]);
        for (dialect, said, kind, sorted, never) in [
            (Dialect::Postgres, nothing, text, "varchar(9)", "point"),
            (Dialect::MsSql, nothing, text, "nvarchar(max)", "ntext"),
            (Dialect::MsSql, nothing, text, "sql_variant", "xml"),
            (Dialect::MsSql, nothing, bytes, "varbinary(max)", "image"),
            (Dialect::BigQuery, nothing, text, "INTERVAL", "GEOGRAPHY"),
            (Dialect::BigQuery, nothing, text, "RANGE<DATE>", "geography"),
            (Dialect::Generic, said, text, "ipaddress", "HyperLogLog"),
            (Dialect::Generic, said, text, "uuid", "qdigest(double)"),
            (Dialect::Generic, said, text, "", "SphericalGeography"),
            (Dialect::MySql, said, text, "INTERVAL YEAR", "GEOMETRY(ANY)"),
        ] {
            let of = |native| is_unsure(dialect, said, kind, native, false);
            assert!(!of(sorted), "{sorted}");
            assert!(of(never), "{never}");
        }
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
