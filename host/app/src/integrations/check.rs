//! Does an integration work, and if not, why: in words for the person who set it up, and without what was sealed.

use std::sync::Arc;
use std::time::{Duration, Instant};

use souk_domain::fields::FieldErrors;
use souk_domain::ids::{CompanyId, IntegrationId};
use souk_domain::integrations::Texts;
use souk_sandbox::{Cell, Check, Fault, FaultKind, Limits, Output, Request, Source};
use souk_store::integrations;

use super::prepare::Prepared;
use super::{Input, IntegrationError, built, get, source};
use crate::App;

/// Name lookup, connect, TLS and one answer on the far side of the world.
const TEST_MAX: Duration = Duration::from_secs(20);
/// A check answers one row.
const ANSWER: (u32, u64) = (1, 64 << 10);
/// Of what went wrong, so much is kept and told.
const ERROR_CHARS_MAX: usize = 500;
/// Shorter credentials are not looked for in what a platform says: they would be found in any text.
const SECRET_CHARS_MIN: usize = 4;

/// What a test found.
#[derive(Debug, Clone)]
pub struct Report {
    pub latency_ms: u64,
    /// Whose credentials these are, as the platform says; or why it does not work.
    pub result: Result<Option<String>, String>,
}

/// Tests a saved integration on a session of its own, and writes down what was found.
pub async fn saved(
    app: &App,
    company: &CompanyId,
    id: &IntegrationId,
) -> Result<Report, IntegrationError> {
    let integration = get(app, company, id).await?;
    let began = Instant::now();
    let report = match source(app, &integration).await {
        Ok((source, credentials)) => {
            // Another id: no session that was opened with older settings may answer, and none is left over.
            let fresh = Source {
                connection: IntegrationId::generate().to_string(),
                ..Source::clone(&source)
            };
            run(app, fresh, &credentials).await
        }
        // As what is dialled and not found.
        Err(IntegrationError::UnknownAddress(message)) => Report {
            latency_ms: began.elapsed().as_millis() as u64,
            result: Err(message.chars().take(ERROR_CHARS_MAX).collect()),
        },
        Err(error) => return Err(error),
    };
    let (error, now) = (report.result.as_ref().err(), app.clock.now());
    app.db
        .write(async |write| {
            integrations::record_test(write, &integration, error.map(String::as_str), now).await?;
            Ok(report.clone())
        })
        .await
}

/// Tests an integration that is not saved; nothing is written down.
pub async fn unsaved(
    app: &App,
    company: &CompanyId,
    input: &Input,
) -> Result<Report, IntegrationError> {
    // A name is for finding it again.
    let named = Input {
        name: Some(input.name.clone().unwrap_or_else(|| "a test".to_owned())),
        ..input.clone()
    };
    let draft = Prepared::new(app, company, &named, None, FieldErrors::default()).await?;
    let (checked, id) = (draft.checked, IntegrationId::generate().to_string());
    let credentials = checked.credentials.unwrap_or_default();
    let whose = (company, id, 0);
    let source = built(
        whose,
        draft.engine,
        &checked.base_url,
        &checked.config,
        &credentials,
    );
    Ok(run(app, source, &credentials).await)
}

async fn run(app: &App, source: Source, credentials: &Texts) -> Report {
    let (source, began) = (Arc::new(source), Instant::now());
    let _tried = app.sandbox.tried(&source);
    let check = Request::Check(Check {
        request_id: source.connection.clone(),
        now: app.clock.now().micros(),
        limits: Limits::new(ANSWER.0, ANSWER.1),
    });
    let answer = app.sandbox.run(&source, check, began + TEST_MAX).await;
    Report {
        latency_ms: began.elapsed().as_millis() as u64,
        result: match answer {
            Ok(output) => Ok(text(&output, "account").map(|text| told(&text, credentials))),
            Err(fault) => Err(explain(&fault, credentials)),
        },
    }
}

/// A text of the one row that was answered.
pub(crate) fn text(output: &Output, name: &str) -> Option<String> {
    let column = output.column(name)?;
    match output.cell(0, column) {
        Cell::Text(text) if !text.is_empty() => Some(text.to_owned()),
        _ => None,
    }
}

/// A fault in words for the owner of the integration, without what is sealed of it.
pub(crate) fn explain(fault: &Fault, credentials: &Texts) -> String {
    let detail = match fault.kind {
        // What a publisher did wrong inside is in the log; its owner cannot act on a backtrace.
        FaultKind::Trapped | FaultKind::ContractBroken | FaultKind::OutOfMemory => None,
        _ => fault.detail.as_deref(),
    };
    let said = match (detail, &fault.source_code) {
        (Some(detail), Some(code)) => format!("{}: {detail} (status {code})", fault.message),
        (Some(detail), None) => format!("{}: {detail}", fault.message),
        (None, Some(code)) => format!("{} (status {code})", fault.message),
        (None, None) => fault.message.clone(),
    };
    told(&said, credentials)
}

/// A platform may repeat what it was sent, and a publisher may be a stranger's: neither shows a credential to those who may only read.
fn told(said: &str, credentials: &Texts) -> String {
    let mut said = said.to_owned();
    let secrets = credentials.values();
    for secret in secrets.filter(|secret| secret.chars().count() >= SECRET_CHARS_MIN) {
        said = said.replace(secret.as_str(), "…");
    }
    said.chars().take(ERROR_CHARS_MAX).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use souk_sandbox::Blame;

    /// What is told holds the platform's words and status, and no credential.
    #[test]
    fn no_credential_is_told() {
        let credentials = Texts::from([("key".to_owned(), "hunter2".to_owned())]);
        let mut fault = Fault::new(Blame::Source, FaultKind::Permission, "not allowed")
            .detail("hunter2 is no key, hunter2!");
        fault.source_code = Some("403".to_owned());
        assert_eq!(
            explain(&fault, &credentials),
            "not allowed: … is no key, …! (status 403)"
        );
        let fault =
            Fault::new(Blame::Connector, FaultKind::Trapped, "it crashed").detail("wasm trap");
        assert_eq!(explain(&fault, &credentials), "it crashed");
        let long = Fault::new(Blame::Source, FaultKind::SourceError, "x".repeat(1_000));
        assert_eq!(explain(&long, &credentials).len(), ERROR_CHARS_MAX);
    }
}
