//! One attempt: the post as it is now is handed to the publisher of its integration, and what that answers decides what follows.

use std::time::{Duration, Instant};

use souk_domain::integrations::Texts;
use souk_domain::markdown;
use souk_domain::publications::retry_pause;
use souk_sandbox::{Blame, Fault, FaultKind, Limits, Output, Request, Visibility};
use souk_store::posts::{self, Post};
use souk_store::publications::{self, Attempted, Publication};
use souk_store::{StoreError, integrations};
use url::Url;

use crate::App;
use crate::integrations::{IntegrationError, check, source};

/// What one attempt may take: some requests to a slow blog.
pub(super) const ATTEMPT_MAX: Duration = Duration::from_secs(60);
/// A publication answers one row.
const ANSWER: (u32, u64) = (1, 64 << 10);
/// Longer ones are not kept.
const REMOTE_ID_BYTES_MAX: usize = 200;
const URL_BYTES_MAX: usize = 2_000;

/// Why there is no post at the platform.
struct Trouble {
    message: String,
    /// It may pass by itself.
    passes: bool,
    asked_pause: Option<Duration>,
}

/// Attempts a claimed publication, whatever goes wrong.
pub(super) async fn attempt(app: &App, publication: &Publication) -> Attempted {
    match publish(app, publication).await {
        Ok((base_url, output)) => Attempted::Published {
            base_url,
            remote_id: remote_id(check::text(&output, "remote_id")),
            url: address(check::text(&output, "url")),
        },
        Err(trouble) => conclude(app, publication, trouble),
    }
}

/// An attempt that this host did not finish.
pub(super) fn unfinished(app: &App, publication: &Publication) -> Attempted {
    let trouble = Trouble::passing("the platform did not answer in time".to_owned());
    conclude(app, publication, trouble)
}

fn conclude(app: &App, publication: &Publication, trouble: Trouble) -> Attempted {
    let message = trouble.message;
    if !trouble.passes {
        return Attempted::Failed(message);
    }
    let attempts = u32::try_from(publication.attempts).unwrap_or(u32::MAX);
    match retry_pause(attempts, trouble.asked_pause, rand::random()) {
        Some(pause) => Attempted::Again(app.clock.now().after(pause), message),
        None => Attempted::GivenUp(message),
    }
}

/// At which address of the integration, and what was answered there.
async fn publish(app: &App, publication: &Publication) -> Result<(String, Output), Trouble> {
    let (company, id) = (&publication.company_id, &publication.integration_id);
    // Within the attempt's time: what the store does not answer is not told as a platform that is silent.
    let found = app.db.ask(async |db| {
        let post = posts::get(db, company, &publication.post_id).await?;
        let integration = integrations::get(db, company, id).await?;
        // After the address: a number of a former one would be somebody else's post there.
        let remote_id = publications::remote_id(db, &publication.id).await?;
        Ok((post, integration, remote_id))
    });
    let (post, integration, remote_id) = found.await.map_err(Trouble::of_store)?;
    let gone = |what: &str| Trouble::lasting(format!("the {what} was deleted"));
    let post = post.ok_or_else(|| gone("post"))?;
    let integration = integration.ok_or_else(|| gone("integration"))?;
    let (source, credentials) = source(app, &integration)
        .await
        .map_err(Trouble::of_source)?;
    let request = Request::Publish(Box::new(question(
        publication,
        remote_id,
        post,
        app.clock.now().micros(),
    )));
    let ran = app
        .sandbox
        .run(&source, request, Instant::now() + ATTEMPT_MAX)
        .await;
    let output = ran.map_err(|fault| Trouble::of_fault(&fault, &credentials))?;
    Ok((integration.base_url, output))
}

fn question(
    publication: &Publication,
    remote_id: Option<String>,
    post: Post,
    now: i64,
) -> souk_sandbox::Publication {
    let written = post.written;
    souk_sandbox::Publication {
        request_id: format!("{}-{}", publication.id, publication.requests),
        attempt: u32::try_from(publication.attempts).unwrap_or(u32::MAX),
        remote_id,
        post: souk_sandbox::Post {
            id: post.id.to_string(),
            title: written.title,
            slug: written.slug,
            summary: written.summary,
            html: markdown::html(&written.body_markdown),
            markdown: written.body_markdown,
            tags: written.tags,
            cover_image_url: written.cover_image_url,
            visibility: match post.published_at {
                Some(_) => Visibility::Published,
                None => Visibility::Draft,
            },
            published_at: post.published_at.map(|at| at.micros()),
            updated_at: post.updated_at.micros(),
        },
        now,
        limits: Limits::new(ANSWER.0, ANSWER.1),
    }
}

impl Trouble {
    fn passing(message: String) -> Trouble {
        Trouble {
            message,
            passes: true,
            asked_pause: None,
        }
    }

    fn lasting(message: String) -> Trouble {
        Trouble {
            passes: false,
            ..Trouble::passing(message)
        }
    }

    fn of_store(error: StoreError) -> Trouble {
        tracing::warn!(%error, "a post could not be published");
        Trouble::passing("this service could not publish the post at the moment".to_owned())
    }

    fn of_source(error: IntegrationError) -> Trouble {
        match error {
            IntegrationError::Store(error) => Trouble::of_store(error),
            error @ (IntegrationError::NoPublisher(_) | IntegrationError::UnknownAddress(_)) => {
                Trouble::passing(error.to_string())
            }
            error => Trouble::lasting(error.to_string()),
        }
    }

    fn of_fault(fault: &Fault, credentials: &Texts) -> Trouble {
        Trouble {
            message: check::explain(fault, credentials),
            passes: passes(fault),
            asked_pause: fault.retry_after_ms.map(Duration::from_millis),
        }
    }
}

/// Whether another attempt may succeed although nobody changes anything.
fn passes(fault: &Fault) -> bool {
    match (fault.blame, fault.kind) {
        (Blame::Host | Blame::Connector, _) => true,
        (Blame::Caller, _) => false,
        (
            Blame::Source,
            FaultKind::Unreachable
            | FaultKind::Refused
            | FaultKind::Timeout
            | FaultKind::Busy
            | FaultKind::RateLimited
            | FaultKind::SourceError
            | FaultKind::BadAnswer,
        ) => true,
        (Blame::Source, _) => false,
    }
}

/// What a platform calls a post is sent to it again, and nowhere else.
fn remote_id(id: Option<String>) -> Option<String> {
    id.filter(|id| {
        id.len() <= REMOTE_ID_BYTES_MAX && id.bytes().all(|byte| byte.is_ascii_graphic())
    })
}

/// Whoever follows it comes to a page of the web.
fn address(url: Option<String>) -> Option<String> {
    url.filter(|text| {
        let url = Url::parse(text);
        text.len() <= URL_BYTES_MAX && url.is_ok_and(|url| matches!(url.scheme(), "https" | "http"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What somebody has to mend is not tried again; what may pass is, whoever is to blame.
    #[test]
    fn what_may_pass_is_tried_again() {
        for (blame, kind, expected) in [
            (Blame::Source, FaultKind::Refused, true),
            (Blame::Source, FaultKind::RateLimited, true),
            (Blame::Source, FaultKind::BadAnswer, true),
            (Blame::Connector, FaultKind::Trapped, true),
            (Blame::Host, FaultKind::ShuttingDown, true),
            (Blame::Source, FaultKind::Authentication, false),
            (Blame::Source, FaultKind::EgressRefused, false),
            (Blame::Source, FaultKind::Tls, false),
            (Blame::Source, FaultKind::NotFound, false),
            (Blame::Caller, FaultKind::InvalidRequest, false),
        ] {
            assert_eq!(passes(&Fault::new(blame, kind, "x")), expected, "{kind:?}");
        }
    }

    /// An address that nobody knows at the moment is tried again, one that is not sent to is not.
    #[test]
    fn an_address_may_be_known_later() {
        let of = |error: IntegrationError| Trouble::of_source(error).passes;
        assert!(of(IntegrationError::UnknownAddress("x".into())));
        assert!(!of(IntegrationError::UnsafeAddress("x".into())));
    }

    /// Nobody is led where a platform should not lead anybody.
    #[test]
    fn what_a_platform_says_is_looked_at() {
        assert!(address(Some("https://example.com/x".into())).is_some());
        for bad in ["javascript:alert(1)", "x", ""] {
            assert_eq!(address(Some(bad.into())), None, "{bad}");
        }
        assert_eq!(remote_id(Some("7 7".into())), None);
        assert_eq!(remote_id(Some("x".repeat(201))), None);
    }
}
