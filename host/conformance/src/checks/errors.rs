//! What a source refuses: its blame, its words, and the session afterwards.

use std::time::Instant;

use souk_sandbox::{Blame, Fault, PoolLimits};

use super::sample::{Sample, ask};
use super::{Suite, Verdict, advice, told};
use crate::profile::Place;
use crate::subject::query;

/// A sentence is no longer.
const MESSAGE_CHARS_MAX: usize = 300;

pub async fn run(suite: &mut Suite<'_>, place: &Place, sample: &Sample) {
    let begun = Instant::now();
    let statements: &[&str] = match suite.dialect {
        Some(_) => &[
            "SELECT souk_no_such_column FROM souk_no_such_table",
            "SELECT FROM WHERE",
            "",
        ],
        None => &[""],
    };
    let takes_queries = suite.dialect.is_some() || matches!(sample, Sample::Query(..));
    let verdict = match takes_queries {
        true => refused(suite, place, sample, statements).await,
        false => Verdict::skipped("the engine takes no statements"),
    };
    suite.found("errors.bad_statement", begun, verdict);
}

async fn refused(
    suite: &Suite<'_>,
    place: &Place,
    sample: &Sample,
    statements: &[&str],
) -> Verdict {
    let subject = suite.subject;
    let one = PoolLimits {
        sessions_max: 1,
        ..PoolLimits::default()
    };
    let source = subject.source_with(place, &subject.settings(place), one);
    let whole = match subject.ask(&source, sample.request()).await {
        Ok(whole) => sample.essence(&whole),
        Err(fault) => return Verdict::failed(told(&fault), advice(&fault)),
    };
    for text in statements {
        match subject.ask(&source, query(text, Vec::new())).await {
            Ok(output) if suite.dialect.is_some() => {
                return Verdict::failed(
                    format!("{text:?} is no statement, and answers {} rows", output.rows),
                    "hand on what the source refuses",
                );
            }
            Ok(_) => {}
            Err(fault) if fault.blame == Blame::Connector => {
                return Verdict::failed(format!("{text:?}: {}", told(&fault)), advice(&fault));
            }
            Err(fault) => {
                if let Some(wrong) = unfit(&fault) {
                    return Verdict::failed(
                        format!("{wrong}: {}", told(&fault)),
                        "`code` is stable and lower_snake, `message` one sentence that any buyer may read, `detail` the source's own text",
                    );
                }
            }
        }
        match subject.ask(&source, sample.request()).await {
            Ok(again) if sample.essence(&again) == whole => {}
            Ok(_) => {
                // Rows that a session of its own has not either any more are others at the source.
                let fresh = ask(suite, place, sample).await;
                if fresh.is_ok_and(|fresh| sample.essence(&fresh) != whole) {
                    continue;
                }
                return Verdict::failed(
                    format!("after {text:?} the next statement has other rows than before"),
                    "what the source says of a statement that fails is read to its end, or the session ended",
                );
            }
            Err(fault) => {
                return Verdict::failed(
                    format!("after {text:?}: {}", told(&fault)),
                    "a statement that fails leaves the session in order, or ends it with an error of `receive`",
                );
            }
        }
    }
    Verdict::passed()
}

/// What is wrong with an error's words.
fn unfit(fault: &Fault) -> Option<&'static str> {
    let is_word = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
    if fault.code.is_empty() || !fault.code.bytes().all(is_word) {
        return Some("the code is not lower_snake");
    }
    if fault.message.is_empty() || fault.message.contains('\n') {
        return Some("the message is no sentence");
    }
    if fault.message.chars().count() > MESSAGE_CHARS_MAX {
        return Some("the message is longer than a sentence");
    }
    let detail = fault.detail.as_deref().unwrap_or_default();
    match detail.len() > 8 && fault.message.contains(detail) {
        true => Some("the message repeats the source's own text"),
        false => None,
    }
}
