//! Sources that lie: servers that the kit starts, and files that it spoils. Whatever they do is the source's fault, told in time; the
//! connector neither traps nor loops nor eats all memory.

use std::path::Path;
use std::time::{Duration, Instant};

use futures_util::{StreamExt, stream};
use souk_outbound::TlsMode;
use souk_sandbox::{Blame, Fault, Need, Output, PoolLimits};

use super::sample::Sample;
use super::{Suite, Verdict, told};
use crate::profile::Place;
use crate::servers::{HttpLie, Lie, PostgresLie, Server, TcpLie};
use crate::subject::KitError;

/// How long a lie may keep a request.
const PATIENCE: Duration = Duration::from_secs(3);
/// How much later it may be told: this machine is busy with liars.
const GRACE: Duration = Duration::from_secs(4);
/// Liars at once.
const AT_ONCE: usize = 6;
const ADVICE: &str = "nothing that a source says may trap, loop or be believed without bounds: check lengths before allocating, give up on what the protocol does not allow, and fail with class `source`";

pub async fn run(suite: &mut Suite<'_>, sample: &Sample) -> Result<(), KitError> {
    let is_postgres = suite.subject.engine.dialect == "postgres";
    let lies: Vec<Lie> = match suite.subject.engine.need {
        Need::Tcp => TcpLie::ALL
            .iter()
            .copied()
            .map(Lie::Tcp)
            .chain(
                PostgresLie::ALL
                    .iter()
                    .copied()
                    .filter(|lie| is_postgres && *lie != PostgresLie::Honest)
                    .map(Lie::Postgres),
            )
            .collect(),
        Need::Http => HttpLie::ALL
            .iter()
            .copied()
            .filter(|lie| !matches!(lie, HttpLie::Honest | HttpLie::Late))
            .map(Lie::Http)
            .collect(),
        Need::Directory => return files(suite, sample).await,
    };
    let begun = Instant::now();
    let count = lies.len();
    let mut wrong = Vec::new();
    let mut trials = stream::iter(lies.into_iter().map(|lie| told_lie(suite, sample, lie)))
        .buffer_unordered(AT_ONCE);
    while let Some(trial) = trials.next().await {
        wrong.extend(trial?);
    }
    drop(trials);
    let verdict = match wrong.is_empty() {
        true => Verdict::noted(format!("{count} servers")),
        false => Verdict::failed(wrong.join("\n"), ADVICE),
    };
    suite.found("hostile.servers", begun, verdict);
    Ok(())
}

/// What is wrong with the way that one lie was taken.
async fn told_lie(
    suite: &Suite<'_>,
    sample: &Sample,
    lie: Lie,
) -> Result<Option<String>, KitError> {
    let server = Server::start(lie)?;
    let place = match lie {
        Lie::Http(_) => Place::Http {
            base_url: format!("http://{}", server.address),
            ca_pem: None,
        },
        Lie::Tcp(_) | Lie::Postgres(_) => Place::Tcp {
            host: server.address.ip().to_string(),
            port: server.address.port(),
            tls: match format!("{lie:?}").contains("Tls") {
                true => TlsMode::Require,
                false => TlsMode::Disable,
            },
            ca_pem: None,
        },
    };
    let subject = suite.subject;
    let settings = subject.settings(&place);
    let source = subject.source_with(&place, &settings, PoolLimits::default());
    let begun = Instant::now();
    let answer = subject
        .ask_within(&source, sample.request(), PATIENCE)
        .await;
    let took = begun.elapsed();
    Ok(judged(&answer, took, PATIENCE).map(|wrong| format!("{lie:?}: {wrong}")))
}

/// What is wrong with an answer to lies: one is not asked to be right.
pub(super) fn judged(
    answer: &Result<Output, Fault>,
    took: Duration,
    patience: Duration,
) -> Option<String> {
    if took > patience + GRACE {
        return Some(format!(
            "told after {took:?}, the deadline was {patience:?}"
        ));
    }
    match answer {
        Err(fault) if fault.blame == Blame::Connector || fault.code == "memory_exhausted" => {
            Some(told(fault))
        }
        _ => None,
    }
}

/// Spoilt copies of the file, and none at all.
async fn files(suite: &mut Suite<'_>, sample: &Sample) -> Result<(), KitError> {
    let begun = Instant::now();
    let Some(Place::File(path)) = suite.subject.place.clone() else {
        suite.note("hostile.files", || {
            Verdict::skipped("no file was named, so none can be spoilt")
        });
        return Ok(());
    };
    let whole = std::fs::read(&path)?;
    let directory = tempfile::tempdir()?;
    let mut wrong = Vec::new();
    let spoilt = spoilt(&whole);
    let count = spoilt.len() + 1;
    for (name, bytes) in spoilt {
        let file = directory.path().join(name);
        std::fs::write(&file, bytes)?;
        wrong.extend(opened(suite, sample, &file).await);
    }
    wrong.extend(opened(suite, sample, &directory.path().join("absent")).await);
    let verdict = match wrong.is_empty() {
        true => Verdict::noted(format!("{count} files")),
        false => Verdict::failed(wrong.join("\n"), ADVICE),
    };
    suite.found("hostile.files", begun, verdict);
    Ok(())
}

async fn opened(suite: &Suite<'_>, sample: &Sample, file: &Path) -> Option<String> {
    let source = suite.subject.source(&Place::File(file.to_owned()));
    let begun = Instant::now();
    let answer = suite
        .subject
        .ask_within(&source, sample.request(), PATIENCE)
        .await;
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    judged(&answer, begun.elapsed(), PATIENCE).map(|wrong| format!("{name}: {wrong}"))
}

/// The same bytes every time.
fn spoilt(whole: &[u8]) -> Vec<(&'static str, Vec<u8>)> {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut next = move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state as usize
    };
    let noise: Vec<u8> = (0..64 << 10).map(|_| next() as u8).collect();
    let mut flipped = whole.to_vec();
    if !flipped.is_empty() {
        for _ in 0..flipped.len() / 200 + 8 {
            let at = next() % flipped.len();
            flipped[at] ^= 1 << (next() % 8);
        }
    }
    let headed = [whole.get(..100).unwrap_or(whole), &noise].concat();
    vec![
        ("empty", Vec::new()),
        ("one-byte", whole.iter().take(1).copied().collect()),
        ("half", whole[..whole.len() / 2].to_vec()),
        ("noise", noise),
        ("noise-behind-the-head", headed),
        ("flipped-bits", flipped),
        ("nul-bytes", vec![0; 8 << 10]),
    ]
}
