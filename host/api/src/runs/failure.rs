//! From a failed execution to a problem: the one place that knows which refusal has which status.

use crate::Problem;
use crate::refusals::{
    CONFLICT, CONNECTOR_UNAVAILABLE, INVALID_PARAMETER, NOT_ENTITLED, PREVIEW_NOT_AVAILABLE,
    PRIVACY_THRESHOLD, SELLER_SUSPENDED,
};
use http::StatusCode;
use souk_app::failure::{Class, Failure, Refusal, Trouble};
use souk_app::publish::Unpublished;
use souk_app::release::Withheld;
use souk_domain::pages::PageError;
use souk_domain::products::ProductStatus;

/// The source's own words are cut here: its owner needs the beginning.
const DETAIL_CHARS_MAX: usize = 200;

/// What a failed run of the product `id` is answered with.
pub fn refusal<'a>(resource: &'a str, id: &'a str) -> impl Fn(Failure) -> Problem + 'a {
    move |failure| {
        let problem = match failure.trouble() {
            Some(trouble) => troubled(&trouble, failure.owner),
            None => refused(resource, id, failure.refusal),
        };
        match failure.execution {
            Some(execution) if !problem.status().is_client_error() => problem
                .detail("execution_id", execution.as_str())
                .detail("charged", false),
            Some(execution) => problem.detail("execution_id", execution.as_str()),
            None => problem,
        }
    }
}

fn troubled(trouble: &Trouble<'_>, owner: bool) -> Problem {
    let seconds = trouble
        .retry_after_ms
        .map_or(1, |ms| ms.div_ceil(1_000).max(1));
    let message = trouble.message.clone().into_owned();
    let problem = match trouble.class {
        // Whose share is used up is in the message and the reason.
        Class::Busy => {
            return Problem::busy(seconds)
                .worded(message)
                .detail("blame", trouble.blame)
                .detail("reason", trouble.reason)
                .detail("exhausted", trouble.exhausted);
        }
        Class::Paused => Problem::new(StatusCode::SERVICE_UNAVAILABLE, trouble.code, message)
            .retry_after(seconds),
        Class::Parameter => Problem::of(INVALID_PARAMETER, message),
        Class::Source => Problem::new(StatusCode::BAD_GATEWAY, trouble.code, message),
        Class::Connector => Problem::new(StatusCode::BAD_GATEWAY, trouble.code, message),
        Class::Timeout => Problem::new(StatusCode::GATEWAY_TIMEOUT, trouble.code, message),
        Class::ShuttingDown | Class::Host => {
            tracing::warn!(
                reason = trouble.reason,
                message,
                detail = trouble.detail,
                "execution failed at the host"
            );
            Problem::new(StatusCode::SERVICE_UNAVAILABLE, trouble.code, message)
                .retry_after(seconds)
        }
    };
    let mut problem = problem
        .detail("blame", trouble.blame)
        .detail("reason", trouble.reason)
        .detail("charged", false);
    if let Some(code) = trouble.source_code {
        problem = problem.detail("source_code", code);
    }
    if let (true, Some(detail)) = (owner, trouble.detail) {
        let cut: String = detail.chars().take(DETAIL_CHARS_MAX).collect();
        problem = problem.detail("source_message", cut);
    }
    problem
}

fn refused(resource: &str, id: &str, refusal: Refusal) -> Problem {
    match refusal {
        Refusal::NotFound => Problem::not_found(resource, id),
        Refusal::Parameters(errors) => Problem::fields(INVALID_PARAMETER, errors),
        Refusal::Page(error @ PageError::Start) => Problem::parameter("start", error.to_string()),
        Refusal::Page(error @ PageError::Limit(_)) => {
            Problem::parameter("limit", error.to_string())
        }
        Refusal::NotEntitled { status } => Problem::of(
            NOT_ENTITLED,
            format!(
                "your company's purchase of this {resource} is {}; purchase it again",
                status.as_str()
            ),
        ),
        error @ Refusal::NoPreview => {
            Problem::of(PREVIEW_NOT_AVAILABLE, error.to_string()).detail("id", id)
        }
        error @ Refusal::SellerSuspended => {
            Problem::of(SELLER_SUSPENDED, error.to_string()).detail("charged", false)
        }
        error @ (Refusal::NoPrice | Refusal::NoOrder | Refusal::NoSuchColumns(_)) => {
            Problem::state("unusable", error.to_string())
        }
        Refusal::InsufficientCredits {
            required,
            balance,
            held,
        } => Problem::insufficient_credits(required, balance, held),
        Refusal::Withheld(error @ Withheld::Private { min_group_size }) => {
            Problem::of(PRIVACY_THRESHOLD, error.to_string())
                .detail("min_group_size", min_group_size)
        }
        Refusal::NoConnector(engine) => {
            let message = format!(
                "the connector for {engine} is not available on this service at the moment"
            );
            Problem::of(CONNECTOR_UNAVAILABLE, message).retry_after(1)
        }
        Refusal::Store(error) => error.into(),
        error @ (Refusal::Withheld(_) | Refusal::Fault(_) | Refusal::Internal(_)) => {
            Problem::internal(error)
        }
    }
}

/// Why a product was not published.
pub fn unpublished<'a>(
    resource: &'a str,
    id: &'a str,
    status: ProductStatus,
) -> impl Fn(Unpublished) -> Problem + 'a {
    move |error| match error {
        Unpublished::NoPrice => Problem::state(
            status.as_str(),
            format!("set a price first: POST …/{resource}s/{id}/prices"),
        ),
        Unpublished::Changed => Problem::of(CONFLICT, error.to_string()),
        Unpublished::Other(refusal_) => refusal(resource, id)(Failure::before(true, refusal_)),
        Unpublished::Test(failure) => {
            // Our own trouble says nothing about the product.
            let ours = |trouble: &Trouble<'_>| {
                matches!(
                    trouble.class,
                    Class::Busy | Class::ShuttingDown | Class::Host
                )
            };
            let cause = match failure.trouble() {
                Some(trouble) if ours(&trouble) => return refusal(resource, id)(*failure),
                Some(trouble) => told(&trouble),
                None => match &failure.refusal {
                    Refusal::Parameters(errors) => {
                        return Problem::fields(INVALID_PARAMETER, errors.clone());
                    }
                    Refusal::Store(_)
                    | Refusal::Internal(_)
                    | Refusal::NotFound
                    | Refusal::NoConnector(_) => {
                        return refusal(resource, id)(*failure);
                    }
                    other => other.to_string(),
                },
            };
            Problem::state(status.as_str(), format!("the test failed: {cause}"))
                .detail("test_error", cause)
        }
    }
}

fn told(trouble: &Trouble<'_>) -> String {
    match trouble.detail {
        Some(detail) => {
            let cut: String = detail.chars().take(DETAIL_CHARS_MAX).collect();
            format!("{} ({cut})", trouble.message)
        }
        None => trouble.message.clone().into_owned(),
    }
}
