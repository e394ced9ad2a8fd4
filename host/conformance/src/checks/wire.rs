//! What a wire does that nobody wishes: it delivers byte by byte, ends in the middle, is silent, is gone when it is needed again, says what nobody said
//! (`spoilt`).

use std::sync::Arc;
use std::time::{Duration, Instant};

use souk_outbound::TlsMode;
use souk_sandbox::{Blame, Fault, FaultKind, Output, Source};

use super::sample::{Sample, ask};
use super::together::Question;
use super::{Suite, Verdict, advice, spoilt, told};
use crate::profile::Place;
use crate::relay::{Mode, Relay};
use crate::subject::KitError;

/// How long a source is silent before its request has to end.
const DEADLINE: Duration = Duration::from_millis(1_500);
/// How much later than its deadline a request may end.
const GRACE: Duration = Duration::from_millis(1_500);
/// Where an answer is cut: in its first bytes, and in between.
const CUTS: usize = 12;
const CUT_PATIENCE: Duration = Duration::from_secs(8);
/// Within so long the host has told a connector that nobody waits for a request, and what its source has said meanwhile has arrived: most connectors go on
/// in the same session then.
const GIVEN_UP: Duration = Duration::from_millis(50);

pub async fn run(
    suite: &mut Suite<'_>,
    place: &Place,
    sample: &Sample,
    questions: &[Question],
) -> Result<(), KitError> {
    let (relay, through) = match relayed(place).await? {
        Ok(relayed) => relayed,
        Err(why) => {
            suite.note("wire", || Verdict::skipped(why));
            return Ok(());
        }
    };
    let whole = match ask(suite, &through, sample).await {
        Ok(whole) => whole,
        Err(fault) => {
            let told = told(&fault);
            suite.note("wire", || {
                Verdict::skipped(format!(
                    "the source answers otherwise when it is reached through the kit's relay: {told}"
                ))
            });
            return Ok(());
        }
    };
    let bytes = relay.heard();
    let mut others = questions.iter();
    let trial = Trial {
        other: others.find(|question| !question.is_answered_by(&whole)),
        relay: &relay,
        through: &through,
        sample,
        whole: &whole,
        bytes,
    };
    let begun = Instant::now();
    let verdict = trial.crumbs(suite).await;
    suite.found("wire.byte_by_byte", begun, verdict);
    let begun = Instant::now();
    let verdict = trial.cut(suite).await;
    suite.found("wire.cut_in_the_middle", begun, verdict);
    let begun = Instant::now();
    let verdict = trial.gone(suite).await;
    suite.found("wire.gone_between_requests", begun, verdict);
    let begun = Instant::now();
    let verdict = trial.stalled(suite).await;
    suite.found("wire.silent", begun, verdict);
    let begun = Instant::now();
    let verdict = match suite.has_cancels {
        true => trial.cancelled(suite).await,
        false => Verdict::skipped("it was to be left out"),
    };
    suite.found("cancel.session_goes_on", begun, verdict);
    let begun = Instant::now();
    let verdict = spoilt::tried(suite, place, sample, &whole).await?;
    suite.found("wire.spoilt", begun, verdict);
    Ok(())
}

/// The same place through a relay, or why there is none.
pub(super) async fn relayed(place: &Place) -> Result<Result<(Relay, Place), String>, KitError> {
    Ok(match place {
        Place::Tcp {
            host, port, tls, ..
        } => {
            let relay = Relay::to(host, *port).await?;
            let through = Place::Tcp {
                host: relay.address.ip().to_string(),
                port: relay.address.port(),
                // The relay has another name than the source: what the wire does is tried here, not the certificate.
                tls: match tls {
                    TlsMode::Disable => TlsMode::Disable,
                    _ => TlsMode::Require,
                },
                ca_pem: None,
            };
            Ok((relay, through))
        }
        Place::Http { base_url, ca_pem } => {
            let Ok(mut url) = url::Url::parse(base_url) else {
                return Ok(Err(format!("{base_url:?} is no URL")));
            };
            let (Some(host), Some(port)) = (
                url.host_str().map(str::to_owned),
                url.port_or_known_default(),
            ) else {
                return Ok(Err(format!("{base_url:?} names no host")));
            };
            // A certificate is for the source's name, which may lead to the relay only where it leads to this machine.
            let name = match url.scheme() {
                "http" => HERE,
                _ if is_here(&host) => host.as_str(),
                _ => {
                    return Ok(Err(
                        "the kit cannot stand in an https wire to another machine: name an http address of the API, or one of this machine's, to try what a wire does"
                            .to_owned(),
                    ));
                }
            };
            let relay = Relay::to(&host, port).await?;
            let moved = url.set_host(Some(name)).is_ok()
                && url.set_port(Some(relay.address.port())).is_ok();
            match moved {
                true => {
                    let base_url = url.to_string().trim_end_matches('/').to_owned();
                    let through = Place::Http {
                        base_url,
                        ca_pem: ca_pem.clone(),
                    };
                    Ok((relay, through))
                }
                false => Err(format!("{base_url:?} cannot be reached through a relay")),
            }
        }
        Place::File(_) => Err("a file has no wire".to_owned()),
    })
}

/// Where relays listen.
const HERE: &str = "127.0.0.1";

/// Whether a name leads to where relays listen.
fn is_here(host: &str) -> bool {
    matches!(host, HERE | "localhost")
}

struct Trial<'a> {
    /// Has another answer than the sample, if there is one.
    other: Option<&'a Question>,
    relay: &'a Relay,
    through: &'a Place,
    sample: &'a Sample,
    whole: &'a Output,
    /// What the source says for one answer, opening included.
    bytes: usize,
}

impl Trial<'_> {
    fn is_whole(&self, output: &Output) -> bool {
        self.sample.essence(output) == self.sample.essence(self.whole)
    }

    async fn crumbs(&self, suite: &Suite<'_>) -> Verdict {
        const ADVICE: &str = "a read ends anywhere: keep what is incomplete and go on when more arrives (in Rust: `read_exact`)";
        self.relay.set(Mode::Crumbs);
        let answer = ask(suite, self.through, self.sample).await;
        self.relay.set(Mode::Pass);
        match answer {
            Ok(output) if self.is_whole(&output) => Verdict::passed(),
            Ok(_) => Verdict::failed("delivered byte by byte the answer is another", ADVICE),
            Err(fault) => {
                Verdict::failed(format!("delivered byte by byte: {}", told(&fault)), ADVICE)
            }
        }
    }

    async fn cut(&self, suite: &Suite<'_>) -> Verdict {
        const ADVICE: &str = "an answer that ends too early is the source's failure (`unavailable`), never a shorter result: know from the protocol where an answer ends";
        for step in 0..CUTS {
            let at = match step {
                0..4 => step,
                _ => self.bytes * (step - 3) / (CUTS - 3),
            };
            if at >= self.bytes {
                break;
            }
            self.relay.set(Mode::CutAfter(at));
            let source = suite.subject.source(self.through);
            let answer = suite
                .subject
                .ask_within(&source, self.sample.request(), CUT_PATIENCE)
                .await;
            self.relay.set(Mode::Pass);
            match answer {
                // What was left out was not needed.
                Ok(output) if self.is_whole(&output) => {}
                Ok(output) => {
                    return Verdict::failed(
                        format!(
                            "cut after {at} of {} bytes the answer has {} rows, and is not the whole one",
                            self.bytes, output.rows
                        ),
                        ADVICE,
                    );
                }
                Err(fault) if fault.blame == Blame::Connector => {
                    return Verdict::failed(
                        format!("cut after {at} of {} bytes: {}", self.bytes, told(&fault)),
                        advice(&fault),
                    );
                }
                Err(fault) if fault.kind == FaultKind::Timeout => {
                    return Verdict::failed(
                        format!(
                            "cut after {at} of {} bytes nothing was told until the deadline",
                            self.bytes
                        ),
                        "when the wire is closed, fail what waits for it at once (`input::closed`, in Rust a read of 0 bytes)",
                    );
                }
                Err(_) => {}
            }
        }
        match ask(suite, self.through, self.sample).await {
            Ok(output) if self.is_whole(&output) => Verdict::passed(),
            Ok(_) => Verdict::failed("afterwards the answer is another", ADVICE),
            Err(fault) => Verdict::failed(format!("afterwards: {}", told(&fault)), advice(&fault)),
        }
    }

    /// A server that restarts costs nobody an answer.
    async fn gone(&self, suite: &Suite<'_>) -> Verdict {
        let source = suite.subject.source(self.through);
        for round in 0..3 {
            match suite.subject.ask(&source, self.sample.request()).await {
                Ok(output) if self.is_whole(&output) => {}
                Ok(_) => {
                    return Verdict::failed("on a new wire the answer is another", "begin anew");
                }
                Err(fault) => {
                    return Verdict::failed(
                        format!(
                            "in round {round}, the wire having been cut before: {}",
                            told(&fault)
                        ),
                        "end the session when its wire closes (an error of `receive`): the host opens another and asks again",
                    );
                }
            }
            self.relay.set(Mode::Cut);
            tokio::time::sleep(Duration::from_millis(50)).await;
            self.relay.set(Mode::Pass);
        }
        Verdict::passed()
    }

    async fn stalled(&self, suite: &Suite<'_>) -> Verdict {
        let source = suite.subject.source(self.through);
        if let Err(fault) = suite.subject.ask(&source, self.sample.request()).await {
            return Verdict::failed(told(&fault), advice(&fault));
        }
        self.relay.set(Mode::Stall);
        let begun = Instant::now();
        let answer = suite
            .subject
            .ask_within(&source, self.sample.request(), DEADLINE)
            .await;
        let took = begun.elapsed();
        self.relay.set(Mode::Pass);
        match answer {
            Err(fault) if fault.kind == FaultKind::Timeout && took < DEADLINE + GRACE => {}
            Err(fault) => {
                return Verdict::failed(
                    format!("a silent source is told after {took:?}: {}", told(&fault)),
                    "wait for the source; the host keeps the deadline and calls `cancel`",
                );
            }
            Ok(_) => {
                return Verdict::failed(
                    "a source that says nothing was answered for",
                    "an answer comes from the source, each time",
                );
            }
        }
        match self.goes_on(suite, &source, "timed out", advice).await {
            Ok(()) => Verdict::passed(),
            Err(verdict) => verdict,
        }
    }

    /// Asks on where a request has been given up: something else first, since who takes the late answer for that of the next request has the right one for the
    /// same.
    async fn goes_on(
        &self,
        suite: &Suite<'_>,
        source: &Arc<Source>,
        was: &str,
        advised: fn(&Fault) -> &'static str,
    ) -> Result<(), Verdict> {
        tokio::time::sleep(GIVEN_UP).await;
        let late = || {
            Verdict::failed(
                format!("after a request that {was} the next one got another answer"),
                "the late answer is still on the wire: read and drop it, or end the session in `cancel`",
            )
        };
        let failed = |fault: Fault| {
            let told = format!("after a request that {was}: {}", told(&fault));
            Verdict::failed(told, advised(&fault))
        };
        if let Some(other) = self.other {
            let answer = suite.subject.ask(source, other.request.clone()).await;
            if !other.is_answered_by(&answer.map_err(failed)?) {
                return Err(late());
            }
        }
        let answer = suite.subject.ask(source, self.sample.request()).await;
        match self.is_whole(&answer.map_err(failed)?) {
            true => Ok(()),
            false => Err(late()),
        }
    }

    async fn cancelled(&self, suite: &Suite<'_>) -> Verdict {
        let source = suite.subject.source(self.through);
        if let Err(fault) = suite.subject.ask(&source, self.sample.request()).await {
            return Verdict::failed(told(&fault), advice(&fault));
        }
        for _ in 0..3 {
            self.relay.set(Mode::Stall);
            let abandoned = suite.subject.ask(&source, self.sample.request());
            let gave_up = tokio::time::timeout(Duration::from_millis(100), abandoned).await;
            self.relay.set(Mode::Pass);
            if gave_up.is_ok() {
                return Verdict::failed(
                    "a source that says nothing was answered for",
                    "an answer comes from the source, each time",
                );
            }
            let advised =
                |_: &Fault| "a cancelled request ends with `failed`, or `cancel` ends the session";
            let went_on = self.goes_on(suite, &source, "was cancelled", advised);
            if let Err(verdict) = went_on.await {
                return verdict;
            }
        }
        Verdict::passed()
    }
}
