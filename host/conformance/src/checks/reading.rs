//! Reading a table as a host reads it for an endpoint: pages, orders, filters, bound values.

use std::cmp::Ordering;
use std::time::Instant;

use souk_domain::sql::{
    After, Condition, Operator, Order, RowSource, columns, prefix_pattern, sample,
};
use souk_sandbox::{Cell, ColumnKind, Fault, Output, Value};

use super::truth::{Asked, Truth, bound, compare, has_one_order};
use super::{Suite, Verdict, advice, rows, shown, told};
use crate::profile::Place;
use crate::subject::query;

/// Sizes of pages: one row, and two that do not divide each other.
const PAGE_SIZES: [u32; 3] = [1, 3, 7];
/// Pages that are read of a size.
const PAGES_MAX: u32 = 12;
/// Columns that are ordered and filtered by.
const COLUMNS_MAX: usize = 8;

const ORDER_ADVICE: &str = "the statement's ORDER BY decides the order of the rows: a page of an endpoint is a piece of that order, and buyers pay for it";
const FILTER_ADVICE: &str = "the statement's WHERE decides which rows come back, with the values bound in order: a buyer gets, and pays for, rows that he did not ask for";

pub async fn run(suite: &mut Suite<'_>, place: &Place, truth: &Truth) {
    let begun = Instant::now();
    let verdict = repeated(suite, place, truth).await;
    suite.found("reading.repeated", begun, verdict);

    let begun = Instant::now();
    let verdict = empty(suite, place, truth).await;
    suite.found("reading.no_rows", begun, verdict);

    let begun = Instant::now();
    let verdict = statement(suite, place, truth).await;
    suite.found("reading.statement", begun, verdict);

    let begun = Instant::now();
    let verdict = paged(suite, place, truth).await;
    suite.found("paging.no_overlap", begun, verdict);

    let begun = Instant::now();
    let verdict = keyset(suite, place, truth).await;
    suite.found("paging.after_a_row", begun, verdict);

    for (check, descending) in [("order.ascending", false), ("order.descending", true)] {
        let begun = Instant::now();
        let verdict = ordered(suite, place, truth, descending).await;
        suite.found(check, begun, verdict);
    }
    for (check, operators) in [
        ("filters.equal", &[Operator::Eq, Operator::In][..]),
        (
            "filters.range",
            &[Operator::Gt, Operator::Gte, Operator::Lt, Operator::Lte],
        ),
        ("filters.prefix", &[Operator::Like]),
    ] {
        let begun = Instant::now();
        let verdict = filtered(suite, place, truth, operators).await;
        suite.found(check, begun, verdict);
    }
    let begun = Instant::now();
    let verdict = injected(suite, place, truth).await;
    suite.found("parameters.are_values", begun, verdict);
}

async fn ask(
    suite: &Suite<'_>,
    place: &Place,
    (text, values): &(String, Vec<Value>),
) -> Result<Output, Fault> {
    let source = suite.subject.source(place);
    suite
        .subject
        .ask(&source, query(text, values.clone()))
        .await
}

fn refused(text: &str, fault: &Fault) -> Verdict {
    Verdict::failed(format!("{text}\n{}", told(fault)), advice(fault))
}

/// The same again on one session: what a connector remembers of a statement does not spoil it.
async fn repeated(suite: &Suite<'_>, place: &Place, truth: &Truth) -> Verdict {
    let source = suite.subject.source(place);
    let (text, values) = truth.statement(&Asked::ordered(truth.key()));
    for round in 2..=4 {
        match suite
            .subject
            .ask(&source, query(&text, values.clone()))
            .await
        {
            Ok(output) if rows(&output) == truth.rows || !truth.is_whole => {}
            Ok(_) => {
                return Verdict::failed(
                    format!("round {round} of the same statement has other rows than the first"),
                    "does the source change meanwhile? Else what the session keeps of a statement is wrong",
                );
            }
            Err(fault) => return refused(&text, &fault),
        }
    }
    Verdict::passed()
}

/// A host learns the columns of a product from a statement that has no rows.
async fn empty(suite: &Suite<'_>, place: &Place, truth: &Truth) -> Verdict {
    let source = RowSource::Table {
        schema: truth.table.schema.as_deref(),
        table: &truth.table.name,
    };
    let text = columns(truth.dialect, &source);
    let output = match ask(suite, place, &(text.clone(), Vec::new())).await {
        Ok(output) => output,
        Err(fault) => return refused(&text, &fault),
    };
    if output.rows > 0 {
        return Verdict::failed(
            format!("{text}\nanswers {} rows", output.rows),
            FILTER_ADVICE,
        );
    }
    let kinds = |output: &Output| -> Vec<(String, ColumnKind)> {
        let columns = output.columns.iter();
        columns
            .map(|column| (column.name.clone(), column.kind))
            .take(truth.table.fields.len())
            .collect()
    };
    match kinds(&output) == kinds(&truth.output) {
        true => Verdict::passed(),
        false => Verdict::failed(
            format!(
                "without rows the columns are {:?}, with rows {:?}",
                kinds(&output),
                kinds(&truth.output)
            ),
            "a column's type belongs to the statement, not to the rows that happen to come: buyers are told it before",
        ),
    }
}

/// A seller's own statement as a source of rows.
async fn statement(suite: &Suite<'_>, place: &Place, truth: &Truth) -> Verdict {
    let (inner, _) = truth.statement(&Asked::ordered(truth.key()));
    let names: Vec<&str> = truth
        .table
        .fields
        .iter()
        .map(|field| field.name.as_str())
        .collect();
    let text = sample(truth.dialect, &inner, &names, 2);
    match ask(suite, place, &(text.clone(), Vec::new())).await {
        Ok(output) if output.rows == truth.rows.len().min(2) => Verdict::passed(),
        Ok(output) => Verdict::failed(
            format!("{text}\nanswers {} rows", output.rows),
            "a statement may stand in FROM: a seller's own becomes the source of an endpoint so",
        ),
        Err(fault) => Verdict::failed(
            format!("{text}\n{}", told(&fault)),
            "a statement may stand in FROM: a seller's own becomes the source of an endpoint so",
        ),
    }
}

/// Pages of several sizes, laid end to end, are the table: no row twice, none left out.
async fn paged(suite: &Suite<'_>, place: &Place, truth: &Truth) -> Verdict {
    let source = suite.subject.source(place);
    for size in PAGE_SIZES {
        let mut offset = 0;
        for _ in 0..PAGES_MAX {
            let mut asked = Asked::ordered(truth.key());
            asked.window = Some((size, offset));
            let (text, values) = truth.statement(&asked);
            let output = match suite.subject.ask(&source, query(&text, values)).await {
                Ok(output) => output,
                Err(fault) => return refused(&text, &fault),
            };
            let begin = (offset as usize).min(truth.rows.len());
            let end = (begin + size as usize).min(truth.rows.len());
            let (wanted, found) = (&truth.rows[begin..end], rows(&output));
            if found != wanted {
                let seen = found.iter().zip(wanted).find(|(left, right)| left != right);
                let what = match seen {
                    Some((row, _)) => match truth.rows.iter().position(|known| known == row) {
                        Some(at) => format!(
                            "holds the row {}, which is row {} of the whole",
                            shown(row),
                            at + 1
                        ),
                        None => format!("holds the row {}, which the whole has not", shown(row)),
                    },
                    None => format!("has {} rows instead of {}", found.len(), wanted.len()),
                };
                return Verdict::failed(
                    format!("the page of {size} rows after {offset} {what}:\n{text}"),
                    "LIMIT and OFFSET are bound values; ORDER BY stands in every page, and rows come in the same order each time",
                );
            }
            offset += size;
            if begin == truth.rows.len() {
                break;
            }
        }
    }
    Verdict::passed()
}

/// Pages that begin after a row, as hosts read them where they know how NULLs sort.
async fn keyset(suite: &Suite<'_>, place: &Place, truth: &Truth) -> Verdict {
    if !truth.dialect.pages_by_key() {
        return Verdict::skipped("hosts page by offset in this dialect");
    }
    if !truth.is_distinct() {
        return Verdict::skipped("the table's rows are not told apart by its columns");
    }
    let keys: Vec<usize> = truth
        .table
        .key
        .iter()
        .filter_map(|name| truth.column(name))
        .collect();
    for at in [0, truth.rows.len() / 2] {
        let cells: Vec<Cell<'_>> = keys
            .iter()
            .map(|column| truth.output.cell(at, *column))
            .collect();
        let after = After {
            nulls: cells.iter().map(Cell::is_null).collect(),
            ties: false,
        };
        let Some(values) = cells
            .iter()
            .map(|cell| match cell.is_null() {
                true => Some(Value::Null(None)),
                false => bound(cell),
            })
            .collect()
        else {
            return Verdict::skipped("a column of the key is of a type that no host binds");
        };
        let mut asked = Asked::ordered(truth.key());
        asked.after = Some((&after, values));
        asked.window = Some((5, 0));
        let statement = truth.statement(&asked);
        let output = match ask(suite, place, &statement).await {
            Ok(output) => output,
            Err(fault) => return refused(&statement.0, &fault),
        };
        let begin = (at + 1).min(truth.rows.len());
        let end = (begin + 5).min(truth.rows.len());
        if rows(&output) != truth.rows[begin..end] {
            return Verdict::failed(
                format!(
                    "the page after row {} is not what follows it:\n{}",
                    at + 1,
                    statement.0
                ),
                "comparisons of the key must agree with its order, NULLs included",
            );
        }
    }
    Verdict::passed()
}

/// By each column whose order every source agrees on; of texts one direction is the other one reversed.
async fn ordered(suite: &Suite<'_>, place: &Place, truth: &Truth, descending: bool) -> Verdict {
    let mut tried = 0;
    for (at, column) in truth.output.columns.iter().enumerate().take(COLUMNS_MAX) {
        if !has_one_order(column.kind) {
            continue;
        }
        let order = vec![Order {
            field: &column.name,
            descending,
            nullable: true,
        }];
        let statement = truth.statement(&Asked::ordered(order));
        let output = match ask(suite, place, &statement).await {
            Ok(output) => output,
            Err(fault) => return refused(&statement.0, &fault),
        };
        tried += 1;
        let cells: Vec<Cell<'_>> = output.cells(at).filter(|cell| !cell.is_null()).collect();
        let wrong = if descending {
            Ordering::Less
        } else {
            Ordering::Greater
        };
        let is_wrong = |pair: &&[Cell<'_>]| compare(&pair[0], &pair[1]) == Some(wrong);
        if let Some(pair) = cells.windows(2).find(is_wrong) {
            return Verdict::failed(
                format!(
                    "ordered by {:?} {:?} comes before {:?}:\n{}",
                    column.name, pair[0], pair[1], statement.0
                ),
                ORDER_ADVICE,
            );
        }
        let values: Vec<Option<bool>> = output.cells(at).map(|cell| Some(cell.is_null())).collect();
        let turns = values.windows(2).filter(|pair| pair[0] != pair[1]).count();
        if turns > 1 {
            return Verdict::failed(
                format!(
                    "ordered by {:?} the rows without a value are scattered:\n{}",
                    column.name, statement.0
                ),
                "NULLs stand together, at the beginning or at the end",
            );
        }
        if truth.is_whole && sorted(&rows(&output)) != sorted(&truth.rows) {
            return Verdict::failed(
                format!(
                    "ordered by {:?} there are other rows than before:\n{}",
                    column.name, statement.0
                ),
                ORDER_ADVICE,
            );
        }
    }
    match tried {
        0 => Verdict::skipped("the table has no column of numbers or dates to order by"),
        _ => Verdict::passed(),
    }
}

fn sorted(rows: &[Vec<String>]) -> Vec<&Vec<String>> {
    let mut sorted: Vec<&Vec<String>> = rows.iter().collect();
    sorted.sort_unstable();
    sorted
}

/// By each column that these operators compare: exactly the rows that hold.
async fn filtered(
    suite: &Suite<'_>,
    place: &Place,
    truth: &Truth,
    operators: &[Operator],
) -> Verdict {
    if !truth.is_whole {
        return Verdict::skipped("the table is too large to be held against: name a smaller one");
    }
    let mut tried = 0;
    for (at, column) in truth.output.columns.iter().enumerate().take(COLUMNS_MAX) {
        // A value from the middle, where there is something on both sides.
        let middle = truth.rows.len() / 2;
        let Some(row) = (middle..truth.rows.len())
            .chain(0..middle)
            .find(|row| !truth.output.cell(*row, at).is_null())
        else {
            continue;
        };
        let cell = truth.output.cell(row, at);
        for operator in operators {
            let Some((values, holds)) = comparison(truth, *operator, at, &cell) else {
                continue;
            };
            let conditions = [Condition {
                column: &column.name,
                operator: *operator,
                values: values.len(),
                is_spelled: false,
            }];
            let statement = truth.statement(&Asked {
                conditions: &conditions,
                values,
                ..Asked::ordered(truth.key())
            });
            let output = match ask(suite, place, &statement).await {
                Ok(output) => output,
                Err(fault) => return refused(&statement.0, &fault),
            };
            tried += 1;
            let wanted: Vec<Vec<String>> = (0..truth.rows.len())
                .filter(|row| holds(&truth.output.cell(*row, at)))
                .map(|row| truth.rows[row].clone())
                .collect();
            let found = rows(&output);
            if sorted(&found) != sorted(&wanted) {
                let stranger = found.iter().find(|row| !wanted.contains(row));
                let stranger =
                    stranger.map_or(String::new(), |row| format!(", among them {}", shown(row)));
                return Verdict::failed(
                    format!(
                        "{} of {:?} with {cell:?} answers {} rows{stranger}; {} hold:\n{}",
                        operator.word(),
                        column.name,
                        found.len(),
                        wanted.len(),
                        statement.0
                    ),
                    FILTER_ADVICE,
                );
            }
        }
    }
    match tried {
        0 => Verdict::skipped("the table has no column that these operators compare"),
        _ => Verdict::passed(),
    }
}

type Holds<'a> = Box<dyn Fn(&Cell<'_>) -> bool + 'a>;

/// What is bound, and which values hold; `None` where this operator says nothing sure of this kind.
fn comparison<'a>(
    truth: &Truth,
    operator: Operator,
    at: usize,
    cell: &'a Cell<'a>,
) -> Option<(Vec<Value>, Holds<'a>)> {
    let kind = truth.output.columns[at].kind;
    let value = bound(cell)?;
    if operator.is_range() {
        if !has_one_order(kind) {
            return None;
        }
        let allowed: &[Ordering] = match operator {
            Operator::Gt => &[Ordering::Greater],
            Operator::Gte => &[Ordering::Greater, Ordering::Equal],
            Operator::Lt => &[Ordering::Less],
            _ => &[Ordering::Less, Ordering::Equal],
        };
        let holds =
            move |other: &Cell<'_>| compare(other, cell).is_some_and(|is| allowed.contains(&is));
        return Some((vec![value], Box::new(holds)));
    }
    match operator {
        // Floats are equal where they are the same to the last bit, which a source's text form may not keep.
        Operator::Eq | Operator::In if kind == ColumnKind::Float64 => None,
        Operator::Eq | Operator::In => {
            let values = match operator {
                Operator::Eq => vec![value],
                _ => vec![value.clone(), value],
            };
            let holds = move |other: &Cell<'_>| match kind {
                ColumnKind::Decimal => compare(other, cell) == Some(Ordering::Equal),
                _ => other == cell,
            };
            Some((values, Box::new(holds)))
        }
        _ => {
            let Cell::Text(text) = cell else { return None };
            let prefix: String = text.chars().take(2).collect();
            let pattern = prefix_pattern(truth.dialect, &prefix);
            let holds = move |other: &Cell<'_>| matches!(other, Cell::Text(text) if text.starts_with(&prefix));
            Some((vec![Value::Text(pattern)], Box::new(holds)))
        }
    }
}

/// A value is never read as a part of the statement.
async fn injected(suite: &Suite<'_>, place: &Place, truth: &Truth) -> Verdict {
    const VALUES: [&str; 5] = [
        "' OR '1'='1",
        "x'; DELETE FROM souk; --",
        "\" OR \"\"=\"",
        "\\' OR 1=1 -- ",
        "?\n$1 :souk 日本",
    ];
    let columns = truth.output.columns.iter().enumerate();
    let mut texts = columns.filter(|(_, column)| column.kind == ColumnKind::Text);
    let Some((at, column)) = texts.next() else {
        return Verdict::skipped("the table has no column of text");
    };
    for value in VALUES {
        if truth.output.cells(at).any(|cell| cell == Cell::Text(value)) {
            continue;
        }
        let conditions = [Condition {
            column: &column.name,
            operator: Operator::Eq,
            values: 1,
            is_spelled: false,
        }];
        let statement = truth.statement(&Asked {
            conditions: &conditions,
            values: vec![Value::Text(value.to_owned())],
            ..Asked::ordered(truth.key())
        });
        match ask(suite, place, &statement).await {
            Ok(output) if output.rows == 0 => {}
            Ok(output) => {
                return Verdict::failed(
                    format!("{value:?} bound as a value finds {} rows", output.rows),
                    "bind values by the source's protocol; where it has none, quote them as the source's documentation says, NULs, quotes and backslashes included",
                );
            }
            Err(fault) => {
                return Verdict::failed(
                    format!("{value:?} bound as a value: {}", told(&fault)),
                    "bind values by the source's protocol; where it has none, quote them as the source's documentation says, NULs, quotes and backslashes included",
                );
            }
        }
    }
    Verdict::passed()
}
