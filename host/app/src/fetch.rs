//! Fetching a page of an endpoint: what is asked of its source, and the answer. [`crate::run`] has the steps.
//!
//! One row more than the page is asked for, so that `has_more` is knowledge. Only published fields
//! are selected, and only published fields are written.

mod learn;

use std::sync::Arc;
use std::time::Instant;

use souk_domain::fields::FieldErrors;
use souk_domain::pages::{Page, Paged};
use souk_domain::parameters::{self, Kind, Raw};
use souk_domain::sql::Window;
use souk_sandbox::{ColumnKind, Fault, FaultKind, Limits, Output, Query, Request, Value, json};

use crate::App;
use crate::connections::source::source;
use crate::execute::value;
use crate::failure::{Cause, Failure, abandoned};
use crate::products::{EndpointSnapshot, Learned, kind_of};
use crate::run::{About, Payer, Purpose, Run};
pub use learn::learn;

/// A page as JSON stays well below what a client can parse at once.
const PAGE_BYTES_MAX: u64 = 16 << 20;
/// Rows that every preview of an endpoint shows.
pub const PREVIEW_ROWS: u32 = 3;

/// What is fetched.
pub struct Wanted<'a> {
    pub page: Page,
    /// `column=value` pairs of the query string.
    pub filters: &'a [(String, String)],
}

/// Fetches one page. The answer is `head`, the rows as a JSON array, and what `finish` writes behind them.
pub async fn fetch(
    app: &App,
    endpoint: &Arc<EndpointSnapshot>,
    wanted: &Wanted<'_>,
    payer: &Payer<'_>,
    head: &'static [u8],
    finish: impl FnOnce(&mut Vec<u8>, Paged, &About<'_>),
) -> Result<Vec<u8>, Failure> {
    let sold = endpoint.sold();
    let owner = sold.is_owner(payer.company);
    let refuse = |cause: Cause| Failure::before(owner, cause);
    let used = filters_used(endpoint, wanted.filters).map_err(refuse)?;
    let late;
    let learned = match needs_learning(endpoint, !used.is_empty()) {
        false => endpoint.learned(),
        true => {
            late = learn(app, endpoint, Instant::now() + endpoint.timeout)
                .await
                .map_err(refuse)?;
            Some(endpoint.keep_learned(late))
        }
    };
    let values = filter_values(learned, &used).map_err(refuse)?;

    let page = wanted.page;
    let mut run = Run::begin(app, sold, payer, Purpose::Result).await?;
    let places: Vec<usize> = used.iter().map(|(place, _)| *place).collect();
    let output = rows(
        app,
        endpoint,
        &places,
        values,
        page,
        learned,
        run.deadline(),
    )
    .await
    .map_err(|cause| run.fail(cause))?;
    let elapsed = run.started.elapsed();
    let paged = page.paged(output.rows);
    let (rows, bytes) = (paged.returned as usize, output.bytes);
    if rows == 0 {
        run = run.found_nothing();
    }
    let mut written = begin_page(app, endpoint, output, rows, head)
        .await
        .map_err(|cause| run.fail(cause))?;
    let render = |about: &About<'_>| {
        finish(&mut written, paged, about);
        written
    };
    run.finish(elapsed, rows, bytes, render).await
}

fn needs_learning(endpoint: &EndpointSnapshot, filtered: bool) -> bool {
    endpoint.learned().is_none() && (filtered || endpoint.plan.order_by.is_empty())
}

/// The place of a filter that is used, and its name and text.
type Used<'a> = (usize, &'a (String, String));

/// Which filters are used, in the endpoint's own order, with their texts.
fn filters_used<'a>(
    endpoint: &EndpointSnapshot,
    given: &'a [(String, String)],
) -> Result<Vec<Used<'a>>, Cause> {
    let mut errors = FieldErrors::default();
    let mut used = Vec::with_capacity(given.len());
    for pair in given {
        match endpoint
            .plan
            .filters
            .iter()
            .position(|filter| *filter == pair.0)
        {
            Some(place) => used.push((place, pair)),
            None => {
                let message = match endpoint.plan.filters.is_empty() {
                    true => "is not a parameter: this endpoint takes start and limit".to_owned(),
                    false => format!(
                        "is not a parameter: this endpoint takes start, limit and {}",
                        endpoint.plan.filters.join(", ")
                    ),
                };
                errors.add(&pair.0, "unknown", message);
            }
        }
    }
    used.sort_by_key(|(place, _)| *place);
    errors.or(used).map_err(Cause::Parameters)
}

/// The filters' values, read by the types of their columns.
fn filter_values(
    learned: Option<&Learned>,
    used: &[(usize, &(String, String))],
) -> Result<Vec<Value>, Cause> {
    let mut errors = FieldErrors::default();
    let mut values = Vec::with_capacity(used.len() + 2);
    for (_, (name, text)) in used {
        let kind = learned
            .and_then(|learned| learned.kind(name))
            .and_then(kind_of)
            .unwrap_or(ColumnKind::Text);
        match filter_value(kind, text) {
            Ok(value) => values.push(value),
            Err(message) => errors.add(name, "invalid_type", message),
        }
    }
    errors.or(values).map_err(Cause::Parameters)
}

fn filter_value(kind: ColumnKind, text: &str) -> Result<Value, String> {
    let read = |kind| parameters::read(kind, &Raw::Query(text)).map(|bound| value(&bound));
    match kind {
        ColumnKind::Boolean => read(Kind::Boolean),
        ColumnKind::Int64 => read(Kind::Integer),
        ColumnKind::Float64 => read(Kind::Number),
        // Checked as a number, sent digit for digit.
        ColumnKind::Decimal => read(Kind::Number).map(|_| Value::Decimal(text.to_owned())),
        ColumnKind::Date => read(Kind::Date),
        ColumnKind::Timestamp => read(Kind::Timestamp),
        ColumnKind::Text | ColumnKind::Time => read(Kind::String),
        ColumnKind::Bytes | ColumnKind::Json => {
            Err("this column cannot be compared with a value".to_owned())
        }
    }
}

/// Step three, and the check that the answer has the published columns and no others.
async fn rows(
    app: &App,
    endpoint: &EndpointSnapshot,
    places: &[usize],
    mut values: Vec<Value>,
    page: Page,
    learned: Option<&Learned>,
    deadline: Instant,
) -> Result<Output, Cause> {
    if endpoint.order(learned).is_empty() {
        return Err(Cause::NoOrder);
    }
    let (text, window) = endpoint.text(places, learned, page);
    if window == Window::Bound {
        values.push(Value::Int64(i64::from(page.fetch())));
        values.push(Value::Int64(page.start as i64));
    }
    let limits = Limits::new(page.fetch(), PAGE_BYTES_MAX);
    let source = source(
        app,
        &endpoint.row.company_id,
        &endpoint.row.written.connection_id,
    )
    .await?;
    let request = Request::Query(Query {
        text,
        parameters: values,
        limits,
    });
    let output = app
        .sandbox
        .run(&source, request, deadline)
        .await
        .map_err(|fault| too_large(fault, limits))?;
    check_columns(endpoint, &output)?;
    Ok(output)
}

fn too_large(fault: Fault, limits: Limits) -> Cause {
    match fault.kind {
        FaultKind::LimitExceeded => Cause::bad_answer(format!(
            "the page is larger than {} rows or {} bytes; ask for a smaller limit",
            limits.rows_max, limits.bytes_max
        )),
        _ => Cause::Fault(fault),
    }
}

fn check_columns(endpoint: &EndpointSnapshot, output: &Output) -> Result<(), Cause> {
    let same = output.columns.len() == endpoint.plan.fields.len()
        && output
            .columns
            .iter()
            .zip(&endpoint.plan.fields)
            .all(|(column, field)| column.name == field.name);
    // An empty result may come without its columns.
    if same || (output.rows == 0 && output.columns.is_empty()) {
        return Ok(());
    }
    Err(Cause::bad_answer(
        "the source answered with other columns than the published ones",
    ))
}

/// Rows for a test or a sample: the first `limit`, free, published or not.
pub struct Tested {
    pub learned: Learned,
    /// A JSON array.
    pub rows: Vec<u8>,
    pub row_count: u32,
    pub elapsed_ms: u64,
}

pub async fn test(
    app: &App,
    endpoint: &Arc<EndpointSnapshot>,
    limit: u32,
) -> Result<Tested, Failure> {
    let refuse = |cause: Cause| Failure::before(true, cause);
    let started = Instant::now();
    let deadline = started + endpoint.timeout;
    let learned = learn(app, endpoint, deadline).await.map_err(refuse)?;
    let page = Page { start: 0, limit };
    let output = rows(
        app,
        endpoint,
        &[],
        Vec::new(),
        page,
        Some(&learned),
        deadline,
    )
    .await
    .map_err(refuse)?;
    let paged = page.paged(output.rows);
    let mut rows = Vec::new();
    json::write_rows(
        &mut rows,
        &output,
        &endpoint.plan.published,
        0..paged.returned as usize,
    );
    Ok(Tested {
        learned,
        rows,
        row_count: paged.returned,
        elapsed_ms: started.elapsed().as_millis() as u64,
    })
}

/// A page that is larger takes a worker longer to write than others should wait: some thousand rows.
const INLINE_BYTES_MAX: usize = 256 << 10;
/// What comes after the rows.
const TAIL_BYTES: usize = 2_048;

/// The answer up to the end of the rows, with room for the rest.
async fn begin_page(
    app: &App,
    endpoint: &Arc<EndpointSnapshot>,
    output: Output,
    rows: usize,
    head: &'static [u8],
) -> Result<Vec<u8>, Cause> {
    if output.bytes <= INLINE_BYTES_MAX {
        return Ok(write_page(endpoint, &output, rows, head));
    }
    let (company, written) = (endpoint.row.company_id.as_str(), endpoint.clone());
    app.sandbox
        .compute(company, move || write_page(&written, &output, rows, head))
        .await
        .ok_or_else(abandoned)
}

fn write_page(endpoint: &EndpointSnapshot, output: &Output, rows: usize, head: &[u8]) -> Vec<u8> {
    // Grown to its size at once: copying a page of a hundred kilobytes over and over costs more than
    // writing it.
    let size = TAIL_BYTES + output.bytes * 3 / 2 + rows * endpoint.plan.row_bytes;
    let mut out = Vec::with_capacity(size.min(PAGE_BYTES_MAX as usize));
    out.extend_from_slice(head);
    json::write_rows(&mut out, output, &endpoint.plan.published, 0..rows);
    out
}
