//! A request of the host's on its way through statements: what it is about, how far it is, and which statement comes next.

use std::borrow::Cow;
use std::rc::Rc;

use souk_sdk::catalog::Listing;
use souk_sdk::json::Reading;
use souk_sdk::looks::Look;
use souk_sdk::texts::Texts;
use souk_sdk::{Error, Limits, Query, Request};

use crate::answers::COLUMNS_MAX;
use crate::api::{Asked, ID_MS};
use crate::catalog;
use crate::described::{Description, describe};
use crate::parameters::Bound;
use crate::ping::{self, Ping};
use crate::settings::Settings;
use crate::statements::{self, Prepared, Read, prepare};
use crate::types::Sent;

/// A description has a row for each column.
const DESCRIBED_ROWS_MAX: u32 = COLUMNS_MAX as u32;

/// A request of the host's that is under way.
pub struct Job {
    pub id: u32,
    /// The HTTP request or the pause that it waits for.
    pub waits_for: u32,
    pub is_paused: bool,
    pub waits_for_token: bool,
    /// The number of the token that went with what was asked last.
    pub token: u32,
    /// That one was refused, and so the same was asked again.
    pub is_let_in_again: bool,
    pub work: Work,
    pub stage: Stage,
    pub limits: Limits,
    /// The time of day at which it began, in seconds.
    pub now: u64,
    /// How many parts of the connection's limit are left, where that is less than the host's.
    pub ticks: Option<u32>,
    /// The statement, from when its id is known, as long as it runs.
    pub running: Option<String>,
    /// Whether it had not begun when it was asked after last.
    pub is_pending: bool,
    /// How long it was waited for.
    pub look: Look,
    /// Of its rows, how many it has and how many came.
    pub rows: u64,
    pub taken: u64,
    /// Of what was asked last.
    pub tries: u32,
    pub is_cancelled: bool,
    /// Why nobody waits for the statement that is about to begin.
    pub over: Option<Error>,
}

pub enum Work {
    Query(Box<Reader>),
    Catalog(Listing),
    Ping { ping: Ping, is_probed: bool },
}

/// A query on its way.
pub struct Reader {
    /// Of the seller's text.
    pub read: Rc<Read>,
    pub statement: Prepared,
    /// Until it is described, what is known of that.
    pub description: Description,
    /// Once it is.
    pub words: Option<Words>,
    pub reading: Reading<Sent>,
}

/// In which words a statement is asked for.
pub enum Words {
    Own,
    /// In those that keep all digits of these columns.
    Exact(Description),
}

pub enum Stage {
    Begin,
    Follow,
    /// More rows of this statement, by the number of their chunk.
    Chunk(String, u32),
    /// Being stopped because of this.
    Stop(Error),
}

impl Job {
    /// The error that it ends with: why it is not wanted any more, else this one.
    pub fn ends_with(&mut self, error: Error) -> Error {
        match (self.over.take(), &mut self.stage) {
            (Some(over), _) => over,
            (None, Stage::Stop(because)) => std::mem::replace(because, error),
            (None, _) => error,
        }
    }
}

impl Reader {
    /// The values that are the caller's.
    pub fn callers_values(&self) -> &[Bound] {
        let values = &self.statement.values;
        values.get(..self.statement.callers).unwrap_or(values)
    }

    /// Whether it is asked for in other words than its own.
    pub fn is_in_other_words(&self) -> bool {
        matches!(self.words, Some(Words::Exact(_)))
    }
}

impl Work {
    /// What a request becomes.
    pub fn of(
        request: Request,
        texts: &mut Texts<Read>,
        now: u64,
    ) -> Result<(Work, Limits), Error> {
        match request {
            Request::Query(Query {
                text,
                parameters,
                limits,
            }) => {
                let read = texts.read(&text, statements::read)?;
                let statement = prepare(&text, &read, &parameters)?;
                let is_plain = !read.plain.is_wanted(&statement.values, now);
                let reader = Reader {
                    words: is_plain.then_some(Words::Own),
                    read,
                    statement,
                    description: Description::default(),
                    reading: Reading::default(),
                };
                Ok((Work::Query(Box::new(reader)), limits))
            }
            Request::Schema(filter) => {
                let limits = filter.limits;
                Ok((Work::Catalog(catalog::listing(filter)), limits))
            }
            Request::Ping(limits) => {
                let (ping, is_probed) = (Ping::default(), false);
                Ok((Work::Ping { ping, is_probed }, limits))
            }
            Request::Call(_) => Err(Error::unsupported("functions")),
            Request::Errand(_) => Err(Error::unsupported("errands")),
        }
    }

    /// The statement that is asked next.
    pub fn statement(&self, settings: &Settings, limits: &Limits) -> Asked<'_> {
        // At the end of its time a statement may have begun, and its id be on its way.
        let late_ms = limits.timeout_ms.saturating_add(ID_MS);
        let of_ours = |(text, values): (String, Vec<Bound>), rows_max, begins_within_ms| Asked {
            text: Cow::Owned(text),
            values: Cow::Owned(values),
            rows_max,
            begins_within_ms,
        };
        match self {
            Work::Query(reader) => {
                let text = &reader.statement.text;
                let (text, rows_max) = match &reader.words {
                    None => (Cow::Owned(describe(text)), DESCRIBED_ROWS_MAX),
                    Some(Words::Own) => (Cow::Borrowed(text.as_str()), limits.rows_max),
                    Some(Words::Exact(columns)) => {
                        (Cow::Owned(columns.exact(text)), limits.rows_max)
                    }
                };
                Asked {
                    text,
                    values: Cow::Borrowed(reader.statement.values.as_slice()),
                    rows_max,
                    begins_within_ms: late_ms,
                }
            }
            Work::Catalog(listing) => {
                let statement = catalog::statement(&settings.catalog, listing.filter());
                of_ours(statement, limits.rows_max, late_ms)
            }
            // Short ones. Who does not answer a connection's test is told as that, and not as a request that took too long.
            Work::Ping {
                is_probed: false, ..
            } => of_ours(ping::look(settings), 1, limits.timeout_ms),
            Work::Ping { .. } => {
                let probe = (ping::PROBE.to_owned(), Vec::new());
                of_ours(probe, DESCRIBED_ROWS_MAX, limits.timeout_ms)
            }
        }
    }
}
