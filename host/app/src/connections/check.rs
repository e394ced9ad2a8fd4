//! Does a connection work, and if not, why: in words for the person who set it up.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use souk_domain::fields::{FieldError, FieldErrors};
use souk_domain::ids::{CompanyId, ConnectionId};
use souk_outbound::TlsMode;
use souk_sandbox::{Blame, Cell, Fault, FaultKind, Grant, Limits, Request, Source};
use souk_store::connections;

use super::prepare::Prepared;
use super::routings::{self, Probe};
use super::source;
use super::{ConnectionError, Input};
use crate::App;

/// Name lookup, connect, TLS and log-in on the far side of the world, and one statement.
pub(crate) const TEST_MAX: Duration = Duration::from_secs(20);
/// A ping answers one row.
const PING: (u32, u64) = (10, 64 * 1024);
/// The engine that has two routings. What others do with a path is theirs.
const SELLER_API: &str = "seller-api";
/// Of what a connector that broke has said: the message of a panic.
const CONNECTOR_CHARS_MAX: usize = 500;
/// Of what a connector warns of.
const WARNING_CHARS_MAX: usize = 500;
/// What `last_error` keeps.
const ERROR_CHARS_MAX: usize = 1_000;

/// What a test found.
#[derive(Debug, Clone, Default)]
pub struct Report {
    pub latency_ms: u64,
    pub server_version: Option<String>,
    /// Whether the source was seen to refuse a write. `None`: has no meaning for this engine.
    pub read_only_verified: Option<bool>,
    pub warnings: Vec<String>,
    pub error: Option<String>,
}

impl Report {
    pub fn success(&self) -> bool {
        self.error.is_none()
    }
}

/// Tests a saved connection on a session of its own and records the result.
pub async fn saved(
    app: &App,
    company: &CompanyId,
    id: &ConnectionId,
    probe: Option<Probe>,
) -> Result<Report, ConnectionError> {
    let stored = source::source(app, company, id).await?;
    let probe = match probe {
        Some(probe) => Some(probe),
        None => routings::probe_of_asset(app, company, id).await?,
    };
    // Another id: no session that was opened with older settings may answer, and none is left over.
    let fresh = Source {
        connection: ConnectionId::generate().to_string(),
        ..Source::clone(&stored)
    };
    let report = run(app, fresh, probe).await;

    let revision = i64::try_from(stored.revision).unwrap_or_default();
    app.db
        .write(async |tx| {
            let error = report
                .error
                .as_deref()
                .map(|error| cut(error, ERROR_CHARS_MAX));
            connections::record_test(tx, company, id, revision, error, app.clock.now()).await?;
            Ok(report)
        })
        .await
}

/// Tests a connection that is not saved; nothing is recorded. `probe`: as far as it could be read.
pub async fn unsaved(
    app: &App,
    company: &CompanyId,
    input: &Input,
    probe: Result<Option<Probe>, Vec<FieldError>>,
) -> Result<Report, ConnectionError> {
    let mut errors = FieldErrors::default();
    let probe = errors.take(probe).flatten();
    let draft = Prepared::new(app, company, input, None, errors).await?;
    let source = draft.source(app, company).await?;
    Ok(run(app, source, probe).await)
}

/// What the engine of a saved connection says of a file that is to take the place of the one that the connection reads.
pub(crate) struct TriedFile {
    /// Of the connection that it was tried with.
    pub revision: u64,
    pub report: Report,
    /// Whether it is the file that failed. All else (an engine that is busy, or takes too long) says nothing of it.
    pub is_unfit: bool,
}

/// Tries a file that nothing names yet, the only one in `directory`. Nothing is recorded.
pub(crate) async fn with_file(
    app: &App,
    company: &CompanyId,
    id: &ConnectionId,
    directory: &Path,
    deadline: Instant,
) -> Result<TriedFile, ConnectionError> {
    let stored = source::source(app, company, id).await?;
    let source = Arc::new(Source {
        connection: ConnectionId::generate().to_string(),
        grant: Grant::Directory(directory.to_owned()),
        ..Source::clone(&stored)
    });
    let _tried = app.sandbox.tried(&source);
    let (report, fault) = ping(app, &source, deadline).await;
    Ok(TriedFile {
        revision: stored.revision,
        report,
        is_unfit: fault.is_some_and(|fault| is_of_file(&fault)),
    })
}

fn is_of_file(fault: &Fault) -> bool {
    use FaultKind::{Configuration, NotFound, SourceError};
    let is_said_of_it = matches!(fault.kind, Configuration | NotFound | SourceError);
    fault.blame == Blame::Source && is_said_of_it
}

async fn run(app: &App, source: Source, probe: Option<Probe>) -> Report {
    let source = Arc::new(source);
    let _tried = app.sandbox.tried(&source);
    let deadline = Instant::now() + TEST_MAX;
    let (mut report, _) = ping(app, &source, deadline).await;
    if report.success() && source.engine == SELLER_API {
        routings::compare(app, &source, probe, deadline, &mut report).await;
    }
    report
}

/// Asks the source for a sign of life; beside what that found, the fault that it ended with.
async fn ping(app: &App, source: &Arc<Source>, deadline: Instant) -> (Report, Option<Fault>) {
    let began = Instant::now();
    let mut report = Report {
        warnings: warnings(source),
        ..Report::default()
    };
    let ping = Request::Ping(Limits::new(PING.0, PING.1));
    let answer = app.sandbox.run(source, ping, deadline).await;
    report.latency_ms = began.elapsed().as_millis() as u64;
    match answer {
        Ok(output) => {
            let cell = |name: &str| {
                output
                    .column(name)
                    .map_or(Cell::Null, |column| output.cell(0, column))
            };
            report.server_version = cell("server_version").as_str().map(str::to_owned);
            report.read_only_verified = cell("read_only").as_bool();
            if report.read_only_verified == Some(false) {
                report.warnings.push(WRITABLE.to_owned());
            }
            if let Some(warning) = cell("warning").as_str() {
                let warning = cut(warning, WARNING_CHARS_MAX);
                report.warnings.push(warning.to_owned());
            }
        }
        Err(fault) => {
            report.error = Some(explain(&fault, source));
            return (report, Some(fault));
        }
    }
    (report, None)
}

/// What a seller looks for last, and what is mostly missing.
const LETS_IN: &str = "that its firewall or list of allowed addresses lets this service in (its operator knows from which addresses it comes)";
const WRITABLE: &str = "the source did not refuse a write: use a user that may only read";

/// What works but should not stay so.
fn warnings(source: &Source) -> Vec<String> {
    let mut warnings = Vec::new();
    let mut warn = |text: &str| warnings.push(text.to_owned());
    match &source.grant {
        Grant::Tcp {
            tls: TlsMode::Disable,
            ..
        } => {
            warn("ssl_mode is disable: credentials and data travel unencrypted");
        }
        Grant::Tcp {
            tls: TlsMode::Require,
            ..
        } => {
            warn("ssl_mode is require: the server's certificate is not checked; use verify-full");
        }
        Grant::Tcp {
            tls: TlsMode::VerifyCa,
            ..
        } => {
            warn("ssl_mode is verify-ca: the server's name is not checked; use verify-full");
        }
        Grant::Http { base_url, .. } if base_url.starts_with("http:") => {
            warn("base_url is http: credentials and data travel unencrypted; use https");
        }
        _ => {}
    }
    warnings
}

/// A fault in words for the owner of the connection: what happened, where, what to do.
pub fn explain(fault: &Fault, source: &Source) -> String {
    let place = place(&source.grant);
    let said = match (&fault.detail, &fault.source_code) {
        (Some(detail), Some(code)) => format!("{} ({detail}, code {code})", fault.message),
        (Some(detail), None) => format!("{} ({detail})", fault.message),
        (None, Some(code)) => format!("{} (code {code})", fault.message),
        (None, None) => fault.message.clone(),
    };
    match fault.kind {
        // Nothing that its owner could do.
        FaultKind::Unreachable if fault.blame == Blame::Host => said,
        FaultKind::Unreachable => match fault.code.as_str() {
            "unreachable" | "connect_timeout" => {
                format!(
                    "cannot reach {place}: {said}; check the host name, the port, and {LETS_IN}"
                )
            }
            "connection_reset" | "connection_closed" | "connection_lost" | "open_timeout"
                if fault.source_code.is_none() =>
            {
                format!("{place} was reached, and no more: {said}; check the port, and {LETS_IN}")
            }
            // It says itself why it does not serve now.
            _ => said,
        },
        FaultKind::Refused => format!(
            "{place} refuses connections: {said}; check that the server runs and listens there"
        ),
        FaultKind::EgressRefused => format!("{place} may not be connected to: {said}"),
        FaultKind::Tls => {
            let said = fault.detail.as_ref().unwrap_or(&fault.message);
            let settings = match &source.grant {
                Grant::Http { .. } => "the host name in base_url, and ca_pem",
                _ => "ssl_mode and ca_pem",
            };
            format!("TLS with {place} failed: {said}; check {settings}")
        }
        // A key that is none is not sent to anybody.
        FaultKind::Authentication => format!("{place} is not opened by the credentials: {said}"),
        // Over HTTP a packet that a firewall drops looks like an answer that takes long.
        FaultKind::Timeout if fault.code == "source_timeout" => {
            format!("{place} did not answer in time: {said}; check the address, and {LETS_IN}")
        }
        FaultKind::Timeout => format!("{place} did not answer in time: {said}"),
        FaultKind::Busy => format!("too many requests are waiting: {said}; try again"),
        FaultKind::RateLimited => format!("{place} asks for patience: {said}; try again later"),
        // The beginning is what the connector said itself; what follows is a backtrace.
        FaultKind::Trapped | FaultKind::ContractBroken | FaultKind::OutOfMemory => {
            format!(
                "the connector for {} failed: {}",
                source.engine,
                cut(&said, CONNECTOR_CHARS_MAX)
            )
        }
        _ => said,
    }
}

fn place(grant: &Grant) -> String {
    match grant {
        Grant::Tcp { host, port, .. } if host.contains(':') => format!("[{host}]:{port}"),
        Grant::Tcp { host, port, .. } => format!("{host}:{port}"),
        Grant::Http { base_url, .. } => base_url.clone(),
        Grant::Directory(_) | Grant::Lent(_) => "the file".to_owned(),
    }
}

/// At most `chars` characters of a text.
pub(super) fn cut(text: &str, chars: usize) -> &str {
    match text.char_indices().nth(chars) {
        Some((end, _)) => &text[..end],
        None => text,
    }
}
