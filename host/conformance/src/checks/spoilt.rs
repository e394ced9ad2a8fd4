//! What arrives is not what the source has said: here and there a byte is another one, in the middle of a session. A connector reads lengths that lie,
//! kinds that there are not, values of other types; its component does so with numbers of 32 bits, where its own tests have 64. It answers or fails in
//! time, and what fails is the source's. That an answer is right is not asked for: some of those bytes are values. Within TLS only the source itself can say
//! them, if it is made for that (`Doors`).

use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::{StreamExt, stream};
use souk_outbound::TlsMode;
use souk_sandbox::{FaultKind, Output, PoolLimits, Request, Source};

use super::hostile::judged;
use super::liar::Liar;
use super::sample::{Sample, ask};
use super::{Suite, Verdict, advice, told};
use crate::profile::Place;
use crate::relay::Spoilt;
use crate::subject::{KitError, limits};

/// Data connections that are lied to, as long as there is time. A host tells failures more slowly where one has many, so none of them has.
const CONNECTIONS: u64 = 40;
const ANSWERS_EACH: u64 = 5;
/// Data connections at once: some wait for bytes that a length has promised.
const AT_ONCE: usize = 6;
/// Sessions of each: one whose answer never comes is left behind, and ends some seconds later.
const SESSIONS_MAX: usize = 3;
/// After it none is begun.
const BUDGET: Duration = Duration::from_secs(5);
/// How long a lie may keep a request. An honest answer is mostly there long before; those that wait for what never comes would take all of the time.
const PATIENCE: Duration = Duration::from_millis(700);
/// Where honest answers take longer, so many of them, and no more than this.
const HONEST_ANSWERS: u32 = 3;
const PATIENCE_MAX: Duration = Duration::from_secs(3);
/// Of what is wrong so much is told.
const WRONG_MAX: usize = 3;
const ADVICE: &str = "nothing that a source says may trap, loop or be believed without bounds: check lengths before allocating or adding them (a component's `usize` has 32 bits), check values against their column's type, and fail with class `source`";

pub async fn tried(
    suite: &Suite<'_>,
    place: &Place,
    sample: &Sample,
    whole: &Output,
) -> Result<Verdict, KitError> {
    if is_within_tls(place) && suite.subject.doors.is_none() {
        return Ok(Verdict::skipped(
            "within TLS a byte that is another one ends the connection, and no connector sees it: name an address of the source that is spoken to without TLS, in a network of your own, to have wrong bytes tried",
        ));
    }
    let (liar, through) = match Liar::before(suite.subject, place).await? {
        Ok(before) => before,
        Err(why) => return Ok(Verdict::skipped(why)),
    };
    let source = suite.subject.source(&through);
    let (mut span, mut patience) = (0, PATIENCE);
    // The second answer is one without an opening; the first one says how long that takes.
    for _ in 0..2 {
        let (before, begun) = (liar.heard(), Instant::now());
        if let Err(fault) = suite.subject.ask(&source, sample.request()).await {
            return Ok(Verdict::failed(told(&fault), advice(&fault)));
        }
        span = liar.heard() - before;
        let honest = begun.elapsed() * HONEST_ANSWERS;
        patience = patience.max(honest.min(PATIENCE_MAX));
    }
    drop(liar);
    let trial = Trial {
        suite,
        place,
        sample,
        whole,
        span: span as u64,
        patience,
        until: Instant::now() + BUDGET,
    };
    let mut found = Found::default();
    let mut wrong = Vec::new();
    let mut connections = stream::iter((0..CONNECTIONS).map(|number| trial.connection(number)))
        .buffer_unordered(AT_ONCE);
    while let Some(connection) = connections.next().await {
        let connection = connection?;
        found.answers += connection.answers;
        found.spoilt += connection.spoilt;
        found.refused |= connection.refused;
        wrong.extend(connection.wrong);
        if found.refused || wrong.len() >= WRONG_MAX {
            break;
        }
    }
    drop(connections);
    if wrong.is_empty() && !found.refused {
        match ask(suite, place, sample).await {
            Ok(output) if trial.is_whole(&output) => {}
            Ok(_) => wrong.push("afterwards the answer is another".to_owned()),
            Err(fault) => wrong.push(format!("afterwards: {}", told(&fault))),
        }
    }
    Ok(match (wrong.is_empty(), found.spoilt) {
        (false, _) => Verdict::failed(wrong.join("\n"), ADVICE),
        (true, 0) => Verdict::skipped(
            "no byte of an answer could be another: the source ends each connection behind its answer, or refuses requests that come fast. Name one that keeps connections (HTTP's keep-alive) and bears some hundred requests to have wrong bytes tried",
        ),
        (true, spoilt) => {
            let what = match &suite.subject.doors {
                None => "of their bytes being others",
                Some(_) => "messages being spoilt by the source itself",
            };
            Verdict::noted(format!("{} answers, {spoilt} {what}", found.answers))
        }
    })
}

/// Whether the relay would spoil TLS's bytes, and not the source's.
fn is_within_tls(place: &Place) -> bool {
    match place {
        Place::Tcp { tls, .. } => *tls != TlsMode::Disable,
        Place::Http { base_url, .. } => {
            url::Url::parse(base_url).is_ok_and(|url| url.scheme() == "https")
        }
        Place::File(_) => false,
    }
}

struct Trial<'a> {
    suite: &'a Suite<'a>,
    place: &'a Place,
    sample: &'a Sample,
    whole: &'a Output,
    /// What the source says for one answer.
    span: u64,
    patience: Duration,
    until: Instant,
}

/// What has come of data connections.
#[derive(Default)]
struct Found {
    answers: usize,
    /// Bytes; of a source that lies by itself, messages.
    spoilt: usize,
    /// The source has had enough of us, as it says.
    refused: bool,
    wrong: Option<String>,
}

/// An answer of a session that nobody lies to.
enum Honest {
    Whole,
    Refused,
    Wrong(String),
}

impl Trial<'_> {
    fn is_whole(&self, output: &Output) -> bool {
        self.sample.essence(output) == self.sample.essence(self.whole)
    }

    /// A data connection over a liar of its own, which ends all its wires with itself.
    async fn connection(&self, number: u64) -> Result<Found, KitError> {
        let mut found = Found::default();
        // The first ones are tried on however slow a machine.
        if number >= AT_ONCE as u64 && Instant::now() >= self.until {
            return Ok(found);
        }
        let subject = self.suite.subject;
        let (liar, through) = match Liar::before(subject, self.place).await? {
            Ok(before) => before,
            Err(why) => {
                found.wrong = Some(why);
                return Ok(found);
            }
        };
        let pool = PoolLimits {
            sessions_max: SESSIONS_MAX,
            ..PoolLimits::default()
        };
        let source = subject.source_with(&through, &subject.settings(&through), pool);
        match self.honest(&source).await {
            Honest::Whole => {}
            Honest::Refused => {
                found.refused = true;
                return Ok(found);
            }
            Honest::Wrong(wrong) => found.wrong = Some(wrong),
        }
        for round in 0..ANSWERS_EACH {
            // What a lie has left behind shows here; where a session has not outlived it, another one is opened. Every other time that has not been asked
            // the statement yet, whose first answer says more than those behind it.
            if round > 0 && found.wrong.is_none() {
                liar.tell(None);
                let opener = match round % 2 {
                    0 => self.sample.request(),
                    _ => Request::Ping(limits()),
                };
                found.wrong = self.told_lies(&source, opener).await;
            }
            if found.wrong.is_some() {
                break;
            }
            let (seed, span) = (number * ANSWERS_EACH + round, self.span);
            liar.tell(Some(Spoilt { seed, span }));
            let wrong = self.told_lies(&source, self.sample.request()).await;
            found.wrong = wrong.map(|wrong| format!("answer {seed}: {wrong}"));
            found.answers += 1;
        }
        found.spoilt = liar.spoilt();
        Ok(found)
    }

    /// What is wrong with the answer of a session that nobody lies to, while others are lied to.
    async fn honest(&self, source: &Arc<Source>) -> Honest {
        let answer = self.suite.subject.ask(source, self.sample.request()).await;
        match answer {
            Ok(output) if self.is_whole(&output) => Honest::Whole,
            Ok(_) => Honest::Wrong(
                "a new session has another answer, after others were told wrong bytes".to_owned(),
            ),
            // It takes no more requests, or sessions, of ours.
            Err(fault) if matches!(fault.kind, FaultKind::RateLimited | FaultKind::Unreachable) => {
                Honest::Refused
            }
            Err(fault) => Honest::Wrong(format!(
                "a new session, after others were told wrong bytes: {}",
                told(&fault)
            )),
        }
    }

    /// What is wrong with the way that lies were taken, or what they have left behind.
    async fn told_lies(&self, source: &Arc<Source>, request: Request) -> Option<String> {
        let begun = Instant::now();
        let subject = self.suite.subject;
        let answer = subject.ask_within(source, request, self.patience).await;
        judged(&answer, begun.elapsed(), self.patience)
    }
}
