//! What a request may hold: the connector stops early, and the session goes on.

use std::time::Instant;

use souk_sandbox::{FaultKind, Limits, PoolLimits};

use super::sample::Sample;
use super::{Suite, Verdict, advice, told};
use crate::profile::Place;
use crate::subject::BYTES_MAX;

pub async fn run(suite: &mut Suite<'_>, place: &Place, sample: &Sample) {
    for (check, limits) in [
        ("limits.rows", Limits::new(1, BYTES_MAX)),
        ("limits.bytes", Limits::new(1_000, 3)),
    ] {
        let begun = Instant::now();
        let verdict = limited(suite, place, sample, limits).await;
        suite.found(check, begun, verdict);
    }
}

async fn limited(suite: &Suite<'_>, place: &Place, sample: &Sample, limits: Limits) -> Verdict {
    if !matches!(sample, Sample::Query(..)) {
        return Verdict::skipped("there is no statement that answers several rows");
    }
    let subject = suite.subject;
    let one = PoolLimits {
        sessions_max: 1,
        ..PoolLimits::default()
    };
    let source = subject.source_with(place, &subject.settings(place), one);
    let whole = match subject.ask(&source, sample.request()).await {
        Ok(whole) if whole.rows < 2 => {
            return Verdict::skipped("there is no statement that answers several rows");
        }
        Ok(whole) => whole,
        Err(fault) => return Verdict::failed(told(&fault), advice(&fault)),
    };
    let verdict = match subject.ask(&source, sample.within(limits)).await {
        Ok(output) => Verdict::failed(
            format!(
                "{} rows of {} bytes were answered where {} rows and {} bytes are allowed",
                output.rows, output.bytes, limits.rows_max, limits.bytes_max
            ),
            "fail with `limit-exceeded`: a result that is cut short without a word is a wrong one",
        ),
        Err(fault) if fault.kind == FaultKind::LimitExceeded && fault.is_stopped => {
            Verdict::warned(
                "the connector went on past the limit until the host stopped it",
                "stop at `limits` of the request and fail with `limit-exceeded` (in Rust `rows.push(…)?` does)",
            )
        }
        Err(fault) if fault.kind == FaultKind::LimitExceeded => Verdict::passed(),
        Err(fault) => Verdict::failed(told(&fault), advice(&fault)),
    };
    match subject.ask(&source, sample.request()).await {
        Ok(again) if sample.essence(&again) == sample.essence(&whole) => verdict,
        Ok(_) => Verdict::failed(
            "after a result that was too large the same statement has other rows",
            "what was left of the answer must be read, or the session ended",
        ),
        Err(fault) => Verdict::failed(
            format!("after a result that was too large: {}", told(&fault)),
            "a request that fails leaves the session in order, or ends it",
        ),
    }
}
