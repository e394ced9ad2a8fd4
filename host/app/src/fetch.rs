//! Fetching a page of an endpoint: what is asked of its source, and the answer. [`crate::run`] has the steps.
//!
//! One row more than the page is asked for, so that `has_more` is knowledge. Only published fields
//! are selected, and only published fields are written.

mod asked;
mod choice;
mod columns;
mod comparable;
mod cursor;
pub mod export;
mod large;
mod learn;
mod spellings;
mod whole;

use std::sync::Arc;
use std::time::Instant;

use souk_domain::ids::CompanyId;
use souk_domain::pages::Paged;
use souk_domain::sql::Order;
pub use souk_sandbox::formats::Format;
use souk_sandbox::{Blame, Fault, FaultKind, Limits, Output, Query, Request, formats};
use souk_store::Cached;

use crate::App;
use crate::binding::named;
use crate::connections::source::source;
use crate::failure::{Cause, Failure, abandoned};
use crate::preview;
use crate::products::{EndpointSnapshot, Learned, PageStatement};
use crate::run::{self, About, Payer, Purpose, Run};
use asked::{Asked, PAGE_BYTES_MAX};
pub use choice::Choice;
use cursor::Position;
use large::{is_large, names_bytes, takes_long_to_go_through, worked};
pub use learn::{keep as keep_learned, learn};

/// How a page is answered.
pub struct Manner<'a> {
    pub format: Format,
    /// What stands before the rows.
    pub head: &'static [u8],
    /// Whether the caller has the rows with this validator already: then they do not leave, and cost nothing.
    pub has: &'a (dyn Fn(&Told) -> bool + Sync),
    /// What a retry is told beside the text that it is given.
    pub beside: &'a (dyn Fn(&Told) -> String + Sync),
}

/// What is known of a page when its rows have come.
pub struct Told {
    /// Rows before it, and how many were asked for.
    pub start: u64,
    pub limit: u32,
    pub paged: Paged,
    /// How to go on, if there is more.
    pub next: Option<Next>,
    /// Equal where this caller asked the same before, and was given the same rows.
    pub mark: u64,
}

/// Where the next page begins.
#[derive(Clone, Debug)]
pub struct Next {
    pub cursor: String,
    /// It is found by the last row's place in the order; else by counting the rows before it.
    pub by_key: bool,
}

/// What came of asking for a page.
pub enum Fetched<T> {
    /// A body, and what was made beside it.
    Page(Vec<u8>, T),
    /// The caller has it already.
    Unchanged(T),
}

/// Fetches one page: what stands before the rows, the rows, and what `finish` writes behind them.
pub async fn fetch<T>(
    app: &App,
    endpoint: &Cached<EndpointSnapshot>,
    choice: &Choice,
    payer: &Payer<'_>,
    manner: &Manner<'_>,
    finish: impl FnOnce(&mut Vec<u8>, &Told, &About<'_>) -> T,
) -> Result<Fetched<T>, Failure> {
    let sold = endpoint.sold();
    let owner = sold.is_owner(payer.company);
    let refuse = |cause: Cause| Failure::before(owner, cause);
    let (asked, learned) = choice::check(app, endpoint, choice, payer.company)
        .await
        .map_err(refuse)?;

    let mut run = Run::begin(app, sold, payer, Purpose::Result).await?;
    run.keeps_answer = manner.format == Format::Json;
    let of = (payer.company, run.deadline());
    let (statement, output) = rows(app, endpoint, &asked, learned, of)
        .await
        .map_err(|cause| run.fail(cause))?;
    let elapsed = run.started.elapsed();
    let (output, digest) = digested(app, endpoint, run.deadline(), &statement, &asked, output)
        .await
        .map_err(|cause| run.fail(cause))?;
    let mark = asked
        .mark(app, endpoint, payer.company, digest)
        .map_err(|cause| run.fail(cause))?;
    let (output, place) = placed(app, endpoint, run.deadline(), &statement, &asked, output)
        .await
        .map_err(|cause| run.fail(cause))?;
    let next = place.map(|place| next(app, endpoint, &asked, learned, &place));
    let told = Told {
        start: asked.page.start,
        limit: asked.page.limit,
        paged: asked.page.paged(output.rows),
        next: next.transpose().map_err(|cause| run.fail(cause))?,
        mark,
    };
    let (rows, bytes) = (told.paged.returned as usize, output.bytes);
    let mut made = None;
    if rows > 0 && (manner.has)(&told) {
        let run = run.found_unchanged();
        let render = |about: &About<'_>| {
            let mut nothing = Vec::new();
            made = Some(finish(&mut nothing, &told, about));
            Vec::new()
        };
        run.finish(elapsed, 0, 0, render).await?;
        return made.map(Fetched::Unchanged).ok_or_else(|| refuse(unmade()));
    }
    if rows == 0 {
        run = run.found_nothing();
    }
    if run.keeps_answer && payer.ticket.is_some() {
        run.headers = Some((manner.beside)(&told));
    }
    let names = names_bytes(manner.format, rows, statement.row_bytes);
    run.beside = names.map_err(|cause| run.fail(cause))?;
    let mut written = begin_page(
        app,
        endpoint,
        run.deadline(),
        &statement,
        (output, rows),
        manner,
    )
    .await
    .map_err(|cause| run.fail(cause))?;
    let render = |about: &About<'_>| {
        made = Some(finish(&mut written, &told, about));
        written
    };
    let body = run.finish(elapsed, rows, bytes, render).await?;
    let made = made.ok_or_else(|| refuse(unmade()))?;
    Ok(Fetched::Page(body, made))
}

fn unmade() -> Cause {
    Cause::Internal("a page was answered without its end".to_owned())
}

/// By what a page is told from another one, of the result that comes back with it: of very much it is reckoned in a lane.
async fn digested(
    app: &App,
    endpoint: &EndpointSnapshot,
    deadline: Instant,
    statement: &Arc<PageStatement>,
    asked: &Asked<'_>,
    output: Output,
) -> Result<(Output, u64), Cause> {
    let rows = asked.page.paged(output.rows).returned as usize;
    if !takes_long_to_go_through(&output) {
        let digest = formats::digest(&output, &statement.published, rows);
        return Ok((output, digest));
    }
    let statement = statement.clone();
    let reckon = move || {
        let digest = formats::digest(&output, &statement.published, rows);
        (output, digest)
    };
    let reckoned = Box::pin(app.compute(endpoint.row.company_id.as_str(), deadline, reckon));
    reckoned.await?.ok_or_else(abandoned)
}

/// Where the page behind this one begins, if there is one, with the result: of very many rows that tie it is found in a lane.
async fn placed(
    app: &App,
    endpoint: &EndpointSnapshot,
    deadline: Instant,
    statement: &Arc<PageStatement>,
    asked: &Asked<'_>,
    output: Output,
) -> Result<(Output, Option<Position>), Cause> {
    let paged = asked.page.paged(output.rows);
    if !paged.has_more {
        return Ok((output, None));
    }
    let returned = paged.returned as usize;
    let dialect = endpoint.plan.dialect;
    if !cursor::takes_long(dialect, &output, &statement.keys, returned) {
        let place = cursor::behind(dialect, &output, &statement.keys, &asked.from, returned);
        return Ok((output, Some(place)));
    }
    let (statement, from) = (statement.clone(), asked.from.clone());
    let find = move || {
        let place = cursor::behind(dialect, &output, &statement.keys, &from, returned);
        (output, Some(place))
    };
    let found = Box::pin(app.compute(endpoint.row.company_id.as_str(), deadline, find));
    found.await?.ok_or_else(abandoned)
}

/// What the client is told of it.
fn next(
    app: &App,
    endpoint: &EndpointSnapshot,
    asked: &Asked<'_>,
    learned: Option<&Learned>,
    place: &Position,
) -> Result<Next, Cause> {
    let goes_on_with = asked.goes_on_with(endpoint, learned);
    Ok(Next {
        cursor: cursor::seal(app, endpoint, &goes_on_with, place)?,
        by_key: place.after.is_some(),
    })
}

/// Step three, for the company that calls, and the check that the answer has the columns that were asked for and no others.
async fn rows(
    app: &App,
    endpoint: &EndpointSnapshot,
    asked: &Asked<'_>,
    learned: Option<&Learned>,
    (caller, deadline): (&CompanyId, Instant),
) -> Result<(Arc<PageStatement>, Output), Cause> {
    if let Some(text) = endpoint.whole() {
        return Box::pin(whole::page(app, endpoint, text, asked, caller, deadline)).await;
    }
    if !endpoint.has_order(learned) {
        return Err(Cause::NoOrder);
    }
    let statement = endpoint.statement(&asked.shape, learned);
    let limits = Limits::new(asked.page.fetch(), PAGE_BYTES_MAX);
    let source = source(
        app,
        &endpoint.row.company_id,
        &endpoint.row.written.connection_id,
    )
    .await?;
    let ask = |statement: &PageStatement| {
        let request = Request::Query(Query {
            text: statement.text.clone(),
            parameters: asked.bound(&statement.slots),
            limits,
        });
        let source = source.shared();
        app.sandbox
            .run_for(caller.as_str(), source, request, deadline)
    };
    let (statement, answer) = match ask(&statement).await {
        Err(fault) if statement.by_key && fault.kind == FaultKind::LimitExceeded => {
            // What its catalog calls a key is not one row's: two of them are equal to a column that compares without regard to case, and some
            // sources do not hold their keys.
            let bounded = endpoint.statement(&asked.shape.bounded(), learned);
            let answer = Box::pin(ask(&bounded)).await;
            (bounded, answer)
        }
        answer => (statement, answer),
    };
    let output = answer.map_err(|fault| match asked.has_values() {
        true => too_large(
            named(fault, |place| asked.filter_at(&statement.slots, place)),
            limits,
        ),
        false => too_large(not_the_callers(fault), limits),
    })?;
    check_columns(&statement, &output)?;
    Ok((statement, output))
}

/// Nothing of the caller's was bound: whatever value the source refused, it is the seller's statement that made it.
fn not_the_callers(fault: Fault) -> Fault {
    match (fault.blame, fault.kind) {
        (Blame::Caller, FaultKind::InvalidRequest) => Fault {
            blame: Blame::Source,
            kind: FaultKind::SourceError,
            ..fault
        },
        _ => fault,
    }
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

fn check_columns(statement: &PageStatement, output: &Output) -> Result<(), Cause> {
    // To some engines `ID` and `id` are one column, which they give by its own name.
    let same = output.columns.len() == statement.columns.len()
        && output
            .columns
            .iter()
            .zip(&statement.columns)
            .all(|(column, name)| column.name.eq_ignore_ascii_case(name));
    // An empty result may come without its columns.
    if same || (output.rows == 0 && output.columns.is_empty()) {
        return Ok(());
    }
    Err(columns::other_columns(&statement.columns, &output.columns))
}

/// Rows for a test or a sample: the first `limit`, free, published or not.
pub struct Tested {
    pub learned: Learned,
    /// A JSON array, behind what was to stand before it.
    pub rows: Vec<u8>,
    /// What a preview shows of them. `None`: not even the first is small enough.
    pub sample: Option<String>,
    pub row_count: u32,
    /// What is wrong with them although they came.
    pub warnings: Vec<String>,
    pub elapsed_ms: u64,
}

/// Asks for them as for a page. `head` is what stands before them.
pub async fn test(
    app: &App,
    endpoint: &Cached<EndpointSnapshot>,
    limit: u32,
    head: &'static [u8],
) -> Result<Tested, Failure> {
    let mut impossible = None;
    let tested = tested(app, endpoint, limit, head, &mut impossible).await;
    if let Some(learned) = impossible {
        keep_learned(app, endpoint, &learned).await;
    }
    tested
}

/// The same of an endpoint as a change would leave it: what is learnt of it is not the stored one's, and is not kept.
pub(crate) async fn test_unsaved(
    app: &App,
    endpoint: &Cached<EndpointSnapshot>,
    limit: u32,
) -> Result<Tested, Failure> {
    tested(app, endpoint, limit, b"", &mut None).await
}

/// `impossible`: what was learnt of a source that cannot do what callers may ask of it.
async fn tested(
    app: &App,
    endpoint: &Cached<EndpointSnapshot>,
    limit: u32,
    head: &'static [u8],
    impossible: &mut Option<Learned>,
) -> Result<Tested, Failure> {
    let started = Instant::now();
    let refuse = |cause: Cause| {
        let cause = run::late(&endpoint.sold(), started.elapsed(), cause);
        Failure::before(true, cause)
    };
    let deadline = started + endpoint.timeout;
    let owner = &endpoint.row.company_id;
    let mut learned = learn(app, endpoint, owner, deadline)
        .await
        .map_err(refuse)?;
    if endpoint.whole().is_none() {
        let checked = comparable::check(app, endpoint, &mut learned, deadline).await;
        if let Err(cause) = checked {
            *impossible = Some(learned);
            return Err(refuse(cause));
        }
    }
    let asked = Asked::first(limit, Some(&learned));
    let of = (owner, deadline);
    let (statement, output) = rows(app, endpoint, &asked, Some(&learned), of)
        .await
        .map_err(refuse)?;
    let row_count = asked.page.paged(output.rows).returned;
    let warnings = ties(endpoint, &learned, &statement, &output, row_count as usize);
    let output = (output, statement.row_bytes);
    let write = move |output: Output| write_test(&statement, output, row_count as usize, head);
    let (rows, sample) = worked(app, owner, deadline, output, write)
        .await
        .map_err(refuse)?
        .map_err(refuse)?;
    Ok(Tested {
        learned,
        rows,
        sample,
        row_count,
        warnings: warnings.into_iter().collect(),
        elapsed_ms: started.elapsed().as_millis() as u64,
    })
}

/// Rows that the order does not tell apart come in any order, and in another one with the next page. (A table's primary key is a part of each order.)
fn ties(
    endpoint: &EndpointSnapshot,
    learned: &Learned,
    statement: &PageStatement,
    output: &Output,
    rows: usize,
) -> Option<String> {
    let order = endpoint.order(Some(learned), None);
    // Of other columns nothing is read: whether they tie is not known.
    let place = |order: &Order<'_>| {
        let mut names = statement.columns.iter();
        names.position(|name| name == order.field)
    };
    let columns = match statement.keys.is_empty() {
        true => order.iter().map(place).collect::<Option<Vec<usize>>>()?,
        false => statement.keys.clone(),
    };
    if columns.is_empty() || rows == 0 {
        return None;
    }
    let row = cursor::first_tie(endpoint.plan.dialect, output, &columns, rows)?;
    let names: Vec<&str> = order.iter().map(|order| order.field).collect();
    Some(format!(
        "rows {} and {} have the same {}: pages may repeat rows and leave others out; name in order_by what tells all rows apart",
        row + 1,
        row + 2,
        names.join(", "),
    ))
}

/// The rows of a test, and what a preview shows of them.
fn write_test(
    statement: &PageStatement,
    output: Output,
    rows: usize,
    head: &[u8],
) -> Result<(Vec<u8>, Option<String>), Cause> {
    let sample = preview::first_rows(&output, &statement.published, rows);
    let mut written = write_page(statement, output, rows, Format::Json, head)?;
    // The fields come after them: growing for those, a worker would copy all rows.
    written.reserve(TAIL_BYTES + FIELD_BYTES * statement.row_bytes);
    Ok((written, sample))
}

/// What comes after the rows.
const TAIL_BYTES: usize = 2_048;
/// What describing a field takes, for each byte that its name and punctuation add to a row.
const FIELD_BYTES: usize = 8;

/// The answer up to the end of the rows, with room for the rest.
async fn begin_page(
    app: &App,
    endpoint: &EndpointSnapshot,
    deadline: Instant,
    statement: &Arc<PageStatement>,
    (output, rows): (Output, usize),
    manner: &Manner<'_>,
) -> Result<Vec<u8>, Cause> {
    let (format, head) = (manner.format, manner.head);
    // What Parquet compresses takes longer than to write it.
    if !is_large(&output, statement.row_bytes) && format != Format::Parquet {
        return write_page(statement, output, rows, format, head);
    }
    let (company, statement) = (endpoint.row.company_id.as_str(), statement.clone());
    let write = move || write_page(&statement, output, rows, format, head);
    let written = Box::pin(app.compute(company, deadline, write));
    written.await?.ok_or_else(abandoned)?
}

fn write_page(
    statement: &PageStatement,
    output: Output,
    rows: usize,
    format: Format,
    head: &[u8],
) -> Result<Vec<u8>, Cause> {
    // Grown to its size at once: copying a page of a hundred kilobytes over and over costs more than
    // writing it.
    let size = TAIL_BYTES + output.bytes * 3 / 2 + rows * statement.row_bytes;
    let mut out = Vec::with_capacity(size.min(PAGE_BYTES_MAX as usize));
    out.extend_from_slice(head);
    formats::write(format, &mut out, output, &statement.published, rows)
        .map_err(|unfit| Cause::bad_answer(unfit.to_string()))?;
    Ok(out)
}
