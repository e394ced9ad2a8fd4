//! A request that is known to work: what is asked again when a limit, a wire or a crowd is what is tried.

use souk_sandbox::{Call, Fault, Limits, Output, Request, Route, Value};

use super::truth::{Asked, Truth};
use super::{Suite, rows};
use crate::subject::{limits, query_within};

/// A page of this size is enough to be cut in the middle.
const ROWS: u32 = 50;

#[derive(Clone, Debug)]
pub enum Sample {
    Query(String, Vec<Value>),
    Call(crate::profile::Call),
    Ping,
}

impl Sample {
    /// The best there is: a page of a table, a statement of the profile, a function of the profile, a ping.
    pub fn choose(suite: &Suite<'_>, truth: Option<&Truth>) -> Sample {
        if let Some(truth) = truth {
            let mut asked = Asked::ordered(truth.key());
            asked.window = Some((ROWS, 0));
            let (text, values) = truth.statement(&asked);
            return Sample::Query(text, values);
        }
        let profile = &suite.subject.profile;
        // Of the statements the one with the most rows says the most.
        let longest = profile
            .queries
            .iter()
            .max_by_key(|query| query.rows.as_ref().map_or(0, Vec::len));
        match (longest, profile.calls.first()) {
            (Some(query), _) => Sample::Query(query.text.clone(), query.parameters.clone()),
            (None, Some(call)) => Sample::Call(call.clone()),
            (None, None) => Sample::Ping,
        }
    }

    pub fn request(&self) -> Request {
        self.within(limits())
    }

    pub fn within(&self, limits: Limits) -> Request {
        match self {
            Sample::Query(text, values) => query_within(text, values.clone(), limits),
            Sample::Call(call) => Request::Call(of(call, limits)),
            Sample::Ping => Request::Ping(limits),
        }
    }

    /// What can be compared of an answer: of a function its value, since each answer has a time of its own.
    pub fn essence(&self, output: &Output) -> Vec<Vec<String>> {
        let mut rows = rows(output);
        if let Sample::Call(_) = self {
            rows.iter_mut().for_each(|row| row.truncate(1));
        }
        rows
    }
}

/// A call of the profile as a host makes it.
pub fn of(call: &crate::profile::Call, limits: Limits) -> Call {
    let route = match (&call.path, &call.function) {
        (Some(path), _) => Route::Path(path.as_str().into()),
        (None, function) => Route::Function(function.as_deref().unwrap_or_default().into()),
    };
    Call {
        route,
        parameters: call.parameters.clone(),
        asset_id: "ast_conformance".to_owned(),
        request_id: "req_conformance".to_owned(),
        execution_id: "exe_conformance".to_owned(),
        limits,
    }
}

/// Asks on a session of its own.
pub async fn ask(
    suite: &Suite<'_>,
    place: &crate::profile::Place,
    sample: &Sample,
) -> Result<Output, Fault> {
    let source = suite.subject.source(place);
    suite.subject.ask(&source, sample.request()).await
}
