//! What the profile knows: statements with their rows, functions with their answers.

use std::time::Instant;

use souk_sandbox::{ColumnKind, Request};

use super::{Suite, Verdict, advice, opening, rows, sample, shown, told};
use crate::profile::{Call, Place, Query};
use crate::subject::{limits, query};

pub async fn run(suite: &mut Suite<'_>, place: &Place) {
    let profile = suite.subject.profile.clone();
    if profile.queries.is_empty() && profile.calls.is_empty() && suite.dialect.is_none() {
        suite.note("expected", || {
            Verdict::skipped("the engine takes text of its own or has functions only: write statements with their rows ([[query]]) or functions with their answers ([[call]]) into the profile")
        });
    }
    for (number, known) in profile.queries.iter().enumerate() {
        let begun = Instant::now();
        let verdict = queried(suite, place, known).await;
        suite.found(&format!("expected.query_{}", number + 1), begun, verdict);
    }
    for (number, known) in profile.calls.iter().enumerate() {
        let begun = Instant::now();
        let verdict = called(suite, place, known).await;
        suite.found(&format!("expected.call_{}", number + 1), begun, verdict);
    }
    if suite.subject.engine.has("functions") && !profile.calls.is_empty() {
        let begun = Instant::now();
        let verdict = unknown(suite, place).await;
        suite.found("functions.unknown", begun, verdict);
    }
}

async fn queried(suite: &Suite<'_>, place: &Place, known: &Query) -> Verdict {
    let source = suite.subject.source(place);
    let asked = query(&known.text, known.parameters.clone());
    let output = match suite.subject.ask(&source, asked).await {
        Ok(output) => output,
        Err(fault) => {
            return Verdict::failed(format!("{}: {}", known.text, told(&fault)), advice(&fault));
        }
    };
    let found = rows(&output);
    let Some(wanted) = &known.rows else {
        return Verdict::noted(format!("{} rows", found.len()));
    };
    let same = |left: &Vec<String>, right: &Vec<String>| {
        left.len() == right.len()
            && left
                .iter()
                .zip(right)
                .all(|(left, right)| is_same(left, right))
    };
    let differs = wanted
        .iter()
        .zip(&found)
        .position(|(wanted, found)| !same(wanted, found));
    let what = match differs {
        Some(at) => format!(
            "row {} is {}, not {}",
            at + 1,
            shown(&found[at]),
            shown(&wanted[at])
        ),
        None if found.len() != wanted.len() => {
            format!("{} rows came, {} were expected", found.len(), wanted.len())
        }
        None => return Verdict::passed(),
    };
    Verdict::failed(
        format!("{}: {what}", known.text),
        "mend the connector, or the profile if the source has changed",
    )
}

/// Numbers digit by digit, everything else by what it means: JSON writes one text in several ways.
fn is_same(left: &str, right: &str) -> bool {
    let parse = |text: &str| serde_json::from_str::<serde_json::Value>(text).ok();
    match (parse(left), parse(right)) {
        (Some(serde_json::Value::Number(_)), Some(_)) => left == right,
        (Some(one), Some(other)) => one == other,
        _ => false,
    }
}

async fn called(suite: &Suite<'_>, place: &Place, known: &Call) -> Verdict {
    let source = suite.subject.source(place);
    let asked = Request::Call(sample::of(known, limits()));
    let name = known.path.as_ref().or(known.function.as_ref());
    let name = name.cloned().unwrap_or_default();
    let output = match suite.subject.ask(&source, asked).await {
        Ok(output) => output,
        Err(fault) => return Verdict::failed(format!("{name}: {}", told(&fault)), advice(&fault)),
    };
    let wanted = [
        ("answer_value", ColumnKind::Json),
        ("timestamp", ColumnKind::Timestamp),
    ];
    if let Some(wrong) = opening::shape(&output, &wanted) {
        return Verdict::failed(wrong, "in Rust: `rows.columns(Rows::call_columns())?`");
    }
    let found = rows(&output);
    match (&found[..], &known.answer) {
        ([row], Some(answer)) if !is_same(answer, &row[0]) => Verdict::failed(
            format!("{name} answers {}, not {answer}", row[0]),
            "mend the connector, or the profile if the source has changed",
        ),
        ([_], _) => Verdict::passed(),
        (rows, _) => Verdict::failed(
            format!("{name} answers {} rows", rows.len()),
            "a function is answered by exactly one row",
        ),
    }
}

/// A function that is not there is the source's failure, or the caller's.
async fn unknown(suite: &Suite<'_>, place: &Place) -> Verdict {
    let call = Call {
        function: Some("souk_no_such_function".to_owned()),
        path: None,
        parameters: "{}".to_owned(),
        answer: None,
    };
    let source = suite.subject.source(place);
    let asked = Request::Call(sample::of(&call, limits()));
    match suite.subject.ask(&source, asked).await {
        Ok(_) => Verdict::warned(
            "a function that is not there was answered",
            "an API that does not know a function answers 404: hand that on as `not-found`",
        ),
        Err(fault) if fault.blame == souk_sandbox::Blame::Connector => {
            Verdict::failed(told(&fault), advice(&fault))
        }
        Err(_) => Verdict::passed(),
    }
}
