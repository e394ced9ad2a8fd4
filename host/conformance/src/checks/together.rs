//! Many requests at once: on one session where the connector pipelines, over several where it does not. Each gets its own answer.

use std::time::Instant;

use futures_util::future::join_all;
use souk_domain::sql::{Condition, Operator};
use souk_sandbox::{Output, PoolLimits, Request, Value};

use super::truth::{Asked, Truth, bound};
use super::{Suite, Verdict, advice, rows, sample, told};
use crate::profile::Place;
use crate::subject::{limits, query};

/// Requests in flight.
const AT_ONCE: usize = 24;

pub async fn run(suite: &mut Suite<'_>, place: &Place, questions: &[Question]) {
    let begun = Instant::now();
    let verdict = match questions.len() {
        0 | 1 => Verdict::skipped(
            "there are no two questions with answers that can be told apart: write some into the profile",
        ),
        _ => asked(suite, place, questions).await,
    };
    let check = match suite.subject.engine.has("pipelining") {
        true => "together.pipelining",
        false => "together.sessions",
    };
    suite.found(check, begun, verdict);
}

/// A question and the rows (as far as they are compared) that are its answer.
pub struct Question {
    pub request: Request,
    answer: Vec<Vec<String>>,
    /// Columns that are compared.
    columns: usize,
}

impl Question {
    pub fn is_answered_by(&self, output: &Output) -> bool {
        let same = |left: &String, right: &String| {
            let parse = |text: &str| serde_json::from_str::<serde_json::Value>(text).ok();
            left == right || parse(left).is_some() && parse(left) == parse(right)
        };
        let found = self.compared(output);
        found.len() == self.answer.len()
            && found.iter().zip(&self.answer).all(|(found, wanted)| {
                found.len() == wanted.len()
                    && found
                        .iter()
                        .zip(wanted)
                        .all(|(left, right)| same(left, right))
            })
    }

    fn compared(&self, output: &Output) -> Vec<Vec<String>> {
        let mut found = rows(output);
        found.iter_mut().for_each(|row| row.truncate(self.columns));
        found
    }
}

/// Those whose answers are known. What the profile knows otherwise than the source answers is told by `expected`, and by nothing else.
pub async fn questions(suite: &Suite<'_>, place: &Place, truth: Option<&Truth>) -> Vec<Question> {
    let mut questions = truth.map(rows_by_key).unwrap_or_default();
    for question in known(suite) {
        let source = suite.subject.source(place);
        let answer = suite.subject.ask(&source, question.request.clone()).await;
        if answer.is_ok_and(|output| question.is_answered_by(&output)) {
            questions.push(question);
        }
    }
    questions
}

/// Each row by the first column whose values are all different.
fn rows_by_key(truth: &Truth) -> Vec<Question> {
    let columns = truth.output.columns.iter().enumerate();
    let mut distinct = columns.filter(|(at, _)| {
        let mut values: Vec<&String> = truth.rows.iter().map(|row| &row[*at]).collect();
        values.sort_unstable();
        values.windows(2).all(|pair| pair[0] != pair[1])
            && truth.output.cells(*at).all(|cell| bound(&cell).is_some())
    });
    let Some((at, column)) = distinct.next() else {
        return Vec::new();
    };
    let conditions = [Condition {
        column: &column.name,
        operator: Operator::Eq,
        values: 1,
        is_spelled: false,
    }];
    let questions = truth.output.cells(at).zip(&truth.rows).take(AT_ONCE);
    let questions = questions.map(|(cell, row)| {
        let (text, values) = truth.statement(&Asked {
            conditions: &conditions,
            values: bound(&cell).into_iter().collect::<Vec<Value>>(),
            ..Asked::ordered(truth.key())
        });
        Question {
            request: query(&text, values),
            answer: vec![row.clone()],
            columns: row.len(),
        }
    });
    questions.collect()
}

/// What the profile knows the answers of.
fn known(suite: &Suite<'_>) -> Vec<Question> {
    let profile = &suite.subject.profile;
    let queries = profile.queries.iter().filter_map(|known| {
        Some(Question {
            request: query(&known.text, known.parameters.clone()),
            answer: known.rows.clone()?,
            columns: usize::MAX,
        })
    });
    let calls = profile.calls.iter().filter_map(|known| {
        Some(Question {
            request: Request::Call(sample::of(known, limits())),
            answer: vec![vec![known.answer.clone()?]],
            columns: 1,
        })
    });
    queries.chain(calls).collect()
}

async fn asked(suite: &Suite<'_>, place: &Place, questions: &[Question]) -> Verdict {
    let subject = suite.subject;
    let sessions_max = match subject.engine.has("pipelining") {
        true => 1,
        false => 4,
    };
    let limits = PoolLimits {
        sessions_max,
        ..PoolLimits::default()
    };
    let source = subject.source_with(place, &subject.settings(place), limits);
    let order = (0..AT_ONCE.max(questions.len())).map(|at| &questions[at % questions.len()]);
    let answers = join_all(order.map(|question| {
        let source = source.clone();
        async move {
            (
                question,
                subject.ask(&source, question.request.clone()).await,
            )
        }
    }))
    .await;
    for (question, answer) in answers {
        let output = match answer {
            Ok(output) => output,
            Err(fault) => return Verdict::failed(told(&fault), advice(&fault)),
        };
        if !question.is_answered_by(&output) {
            return Verdict::failed(
                format!(
                    "with {AT_ONCE} requests at once one got another's answer: {:?} instead of {:?}",
                    question.compared(&output),
                    question.answer
                ),
                "an answer belongs to the request's `id`; without the ability \"pipelining\" a host submits one at a time",
            );
        }
    }
    Verdict::noted(format!("{AT_ONCE} at once on {sessions_max} sessions"))
}
