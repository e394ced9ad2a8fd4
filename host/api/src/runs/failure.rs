//! From a failed run to a problem: the one place that knows which failure has which code and status.

use crate::Problem;
use crate::refusals::{
    CONCURRENCY_LIMIT_EXCEEDED, CONFLICT, CONNECTOR_FAULT, CONNECTOR_PAUSED, CONNECTOR_UNAVAILABLE,
    EXECUTION_TIMEOUT, INTERNAL_ERROR, INVALID_PARAMETER, INVALID_REQUEST, NOT_ENTITLED,
    PREVIEW_NOT_AVAILABLE, PRICE_ABOVE_MAX, PRIVACY_THRESHOLD, Refusal, SELLER_API_ERROR,
    SELLER_SUSPENDED, SHUTTING_DOWN, SOURCE_ERROR, SOURCE_RATE_LIMITED, SOURCE_UNAVAILABLE,
};
use serde_json::json;
use souk_app::failure::{Blame, Cause, Class, Failure, Fault, FaultKind, RefusedField};
use souk_app::run::Unread;
use souk_domain::fields::FieldError;
use souk_domain::products::ProductStatus;

/// The source's or the connector's own words are cut here: their owner needs the beginning, such as a panic's message.
const DETAIL_CHARS_MAX: usize = 1_000;
/// When to try again where nobody knows better, in seconds.
const RETRY_AFTER: u64 = 1;
/// Whoever is told to wait for longer than a day has no use for the number.
const RETRY_AFTER_MAX: u64 = 86_400;

const CHARGE_IN_DOUBT: &str = "the request failed on our side while it was charged, and it is not known whether it was: your transactions have \
                               its execution_id if so; with an Idempotency-Key it can be sent again";

/// Of a test whose answer its privacy withholds nobody knows whether anything would ever leave.
const NOTHING_LEAVES: &str = "; something of it has to leave before it is sold: send params with which enough stand behind it, or try again when the \
                              source has enough";

/// What a class of failures is answered with.
struct Answered {
    refusal: Refusal,
    /// Trying again may help: it says when.
    retry: bool,
    /// Our own trouble: it says nothing about the product.
    ours: bool,
}

/// The table. Its answers tell the blame, and that nothing was charged: a failure never is. Only where the store went away in the middle of the
/// charge's commit nobody knows, and nothing is said.
fn answered(class: Class) -> Answered {
    let (refusal, retry, ours) = match class {
        Class::Request => (INVALID_REQUEST, false, false),
        Class::Parameter => (INVALID_PARAMETER, false, false),
        Class::Private => (PRIVACY_THRESHOLD, false, false),
        Class::Source => (SOURCE_ERROR, false, false),
        Class::SellerApi => (SELLER_API_ERROR, false, false),
        Class::SourceLimited => (SOURCE_RATE_LIMITED, true, false),
        Class::SourceAway => (SOURCE_UNAVAILABLE, true, false),
        Class::Connector => (CONNECTOR_FAULT, false, false),
        Class::Paused => (CONNECTOR_PAUSED, true, false),
        Class::Timeout => (EXECUTION_TIMEOUT, false, false),
        Class::Busy => (CONCURRENCY_LIMIT_EXCEEDED, true, true),
        Class::ShuttingDown => (SHUTTING_DOWN, true, true),
        Class::Host => (CONNECTOR_UNAVAILABLE, true, true),
        Class::Internal => (INTERNAL_ERROR, false, true),
    };
    Answered {
        refusal,
        retry,
        ours,
    }
}

/// What a failed run of the product `id` is answered with.
pub fn refusal<'a>(resource: &'a str, id: &'a str) -> impl Fn(Failure) -> Problem + 'a {
    move |failure| {
        let class = failure.class();
        let is_in_doubt = matches!(failure.cause, Cause::ChargeInDoubt(_));
        let problem = match failure.cause {
            Cause::Fault(fault) => of_fault(&fault, class, failure.owner),
            cause => of_cause(resource, id, answered(class).refusal, cause, failure.owner),
        };
        match failure.execution {
            Some(execution) if !problem.status().is_client_error() && !is_in_doubt => problem
                .detail("execution_id", execution.as_str())
                .detail("charged", false),
            Some(execution) => problem.detail("execution_id", execution.as_str()),
            None => problem,
        }
    }
}

fn of_fault(fault: &Fault, class: Class, owner: bool) -> Problem {
    let Answered { refusal, retry, .. } = answered(class);
    let seconds = fault
        .retry_after_ms
        .map_or(RETRY_AFTER, |ms| ms.div_ceil(1_000).max(1));
    let told = |problem: Problem| {
        problem
            .detail("blame", fault.blame.as_str())
            .detail("reason", fault.kind.as_str())
    };
    let seconds = seconds.min(RETRY_AFTER_MAX);
    if class == Class::Busy {
        // Whose share is used up is in the message and the reason.
        let problem = Problem::busy(seconds).worded(fault.message.clone());
        return told(problem).detail("exhausted", fault.code.as_str());
    }
    let mut problem =
        told(Problem::of(refusal, message(fault, class, owner))).detail("charged", false);
    if let Some(detail) = &fault.detail {
        problem = problem.caused_by(cut_for_log(detail));
    }
    if retry {
        problem = problem.retry_after(seconds).detail("retry_after", seconds);
    }
    if let Some(code) = fault.stable_code() {
        problem = problem.detail("fault_code", code);
    }
    if let Some(code) = &fault.source_code {
        problem = problem.detail("source_code", code.as_str());
    }
    if let Some(field) = &fault.field {
        let RefusedField { name, message } = &**field;
        let errors = [FieldError::new(name, "invalid_type", message)];
        problem = problem.detail("errors", json!(errors));
    }
    if let (true, Some(detail)) = (owner, &fault.detail) {
        problem = problem.detail("source_message", cut(detail));
    }
    problem
}

/// What happened, and what to do about it where the caller can: whoever has noticed that a source is away, or its wire broke, says only that.
fn message(fault: &Fault, class: Class, owner: bool) -> String {
    match (class, fault.kind) {
        (Class::Timeout, _) if owner => {
            format!(
                "{}; allow it more, or ask the source for less",
                fault.message
            )
        }
        (Class::Timeout, _) => format!("{}; ask for less, or tell the seller", fault.message),
        // Connectors say it of some failures by themselves.
        (Class::Source | Class::SellerApi, FaultKind::Unreachable)
            if owner && !fault.message.ends_with("try again") =>
        {
            format!("{}; try again", fault.message)
        }
        _ if owner => fault.message.clone(),
        _ => to_a_buyer(fault, class),
    }
}

/// What a source or its connector says is for the seller. A buyer is told first what it means, and what to do.
fn to_a_buyer(fault: &Fault, class: Class) -> String {
    let said = &fault.message;
    let failed = match class {
        _ if !matches!(fault.blame, Blame::Source | Blame::Connector) => return said.clone(),
        Class::Source => "the seller's source",
        Class::SellerApi => "the seller's API",
        Class::Connector => "the connector to the seller's source",
        _ => return said.clone(),
    };
    match fault.kind {
        // It comes again with the same question, and perhaps not with another one, as for fewer rows.
        FaultKind::BadAnswer => format!(
            "{failed} gave no answer that can be passed on, and nothing was charged for it; tell the seller, unless you can ask otherwise: {said}"
        ),
        _ => format!(
            "{failed} failed, and nothing was charged for it; try again later, or tell the seller: {said}"
        ),
    }
}

/// `refusal` is what its class is answered with; most causes are told more precisely, and what names the source's own tables and columns to the product's
/// `owner` alone.
fn of_cause(resource: &str, id: &str, refusal: Refusal, cause: Cause, owner: bool) -> Problem {
    if let (false, Some(message)) = (owner, cause.without_names()) {
        return Problem::state("unusable", message).caused_by(cause.to_string());
    }
    match cause {
        Cause::NotFound => Problem::not_found(resource, id),
        Cause::Archived => Problem::not_found(resource, id).worded(format!(
            "this {resource} was archived by its seller, and nobody can call it any more; look for another product (GET /marketplace/products)"
        )),
        Cause::Parameters(errors) => Problem::fields(INVALID_PARAMETER, errors),
        Cause::NotEntitled { status } => Problem::of(
            NOT_ENTITLED,
            format!(
                "your company's purchase of this {resource} is {}; purchase it again",
                status.as_str()
            ),
        ),
        cause @ Cause::NoPreview => {
            Problem::of(PREVIEW_NOT_AVAILABLE, cause.to_string()).detail("id", id)
        }
        cause @ Cause::SellerSuspended => {
            Problem::of(SELLER_SUSPENDED, cause.to_string()).detail("charged", false)
        }
        cause @ (Cause::NoPrice
        | Cause::NoOrder
        | Cause::NoSuchTable(_)
        | Cause::SeveralTables(_)
        | Cause::NoSuchColumns(_)
        | Cause::Incomparable(_)) => Problem::state("unusable", cause.to_string()),
        Cause::InsufficientCredits {
            required,
            balance,
            held,
        } => Problem::insufficient_credits(required, balance, held),
        cause @ Cause::TooDear { price, most } => Problem::of(PRICE_ABOVE_MAX, cause.to_string())
            .detail("price_credits", price)
            .detail("max_credits", most)
            .detail("charged", false),
        cause @ Cause::Private { min_group_size } => {
            Problem::of(refusal, cause.to_string()).detail("min_group_size", min_group_size)
        }
        cause @ Cause::Changed => Problem::of(CONFLICT, cause.to_string()),
        Cause::Unread(Unread { bytes, bytes_max }) => Problem::unread(bytes, bytes_max),
        cause @ Cause::TooLong(_) => Problem::of(refusal, cause.to_string()),
        Cause::NoConnector(engine) => {
            let message = format!(
                "the connector for {engine} is not available on this service at the moment"
            );
            Problem::of(refusal, message).retry_after(RETRY_AFTER)
        }
        Cause::Store(error) => error.into(),
        cause @ Cause::ChargeInDoubt(_) => Problem::internal(cause).worded(CHARGE_IN_DOUBT),
        cause @ (Cause::Fault(_) | Cause::Internal(_)) => Problem::internal(cause),
    }
}

/// Why a product was not published. `status`: of the product.
pub fn unpublished<'a>(
    resource: &'a str,
    id: &'a str,
    status: ProductStatus,
) -> impl Fn(Failure) -> Problem + 'a {
    move |failure| {
        let is_ours = answered(failure.class()).ours;
        let cause = match &failure.cause {
            Cause::NoPrice if !failure.in_test => {
                let message = format!("set a price first: POST …/{resource}s/{id}/prices");
                return Problem::state(status.as_str(), message);
            }
            Cause::Parameters(errors) => return Problem::fields(INVALID_PARAMETER, errors.clone()),
            Cause::Fault(fault) if failure.in_test && !is_ours => told(fault),
            Cause::NotFound => return refusal(resource, id)(failure),
            cause if failure.in_test && !is_ours => cause.to_string(),
            _ => {
                let failure = Failure {
                    owner: true,
                    ..failure
                };
                return refusal(resource, id)(failure);
            }
        };
        let (status, made_up) = (status.as_str(), failure.made_up);
        if made_up.is_empty() {
            let next = match &failure.cause {
                Cause::Private { .. } => NOTHING_LEAVES,
                _ => "",
            };
            return Problem::state(status, format!("the test failed: {cause}{next}"))
                .detail("test_error", cause);
        }
        let names = made_up.join(", ");
        let message = format!(
            "the test failed: {cause}; values of {names} were made up: send some with which it answers as params"
        );
        Problem::state(status, message)
            .detail("test_error", cause)
            .detail("made_up_params", made_up)
    }
}

fn told(fault: &Fault) -> String {
    match &fault.detail {
        Some(detail) => format!("{} ({})", fault.message, cut(detail)),
        None => fault.message.clone(),
    }
}

/// A log keeps more than its owner needs, and still not all.
fn cut_for_log(detail: &str) -> String {
    const LOGGED_CHARS_MAX: usize = 2_000;
    detail.chars().take(LOGGED_CHARS_MAX).collect()
}

fn cut(detail: &str) -> String {
    detail.chars().take(DETAIL_CHARS_MAX).collect()
}

#[cfg(test)]
mod tests {
    use souk_app::failure::Incomparable;

    use super::*;

    /// Whoever buys is told what a failed source means for it, and then the words that are the seller's alone; what is the buyer's to mend begins with itself.
    #[test]
    fn a_buyer_is_told_what_a_failed_source_means() {
        let words = "the database user may not read what the statement names";
        let told = |owner, blame, kind| {
            let failure = Failure::before(owner, Fault::new(blame, kind, words));
            refusal("asset", "ast_1")(failure).message().to_owned()
        };
        for (blame, kind, begins) in [
            (
                Blame::Source,
                FaultKind::Permission,
                "the seller's source failed, and nothing was charged for it",
            ),
            (
                Blame::Source,
                FaultKind::BadAnswer,
                "the seller's source gave no answer that can be passed on",
            ),
            (
                Blame::Connector,
                FaultKind::Trapped,
                "the connector to the seller's source failed",
            ),
        ] {
            assert_eq!(told(true, blame, kind), words, "{kind:?}");
            let buyer = told(false, blame, kind);
            assert!(buyer.starts_with(begins), "{buyer}");
            assert!(buyer.contains("tell the seller"), "{buyer}");
            assert!(buyer.ends_with(words), "{buyer}");
        }
        for kind in [FaultKind::InvalidRequest, FaultKind::Unsupported] {
            assert_eq!(told(false, Blame::Caller, kind), words, "{kind:?}");
        }
    }

    /// What to do is said once, whoever says it first.
    #[test]
    fn an_owner_is_told_once_to_try_again() {
        for words in ["the source is away", "the source is away; try again"] {
            let fault = Fault::new(Blame::Source, FaultKind::Unreachable, words);
            let told = refusal("asset", "ast_1")(Failure::before(true, fault));
            assert_eq!(told.message(), "the source is away; try again");
        }
    }

    /// Of what its privacy withholds in a test the seller is told what to do, unless it is to send values anyway.
    #[test]
    fn a_withheld_test_says_what_to_do() {
        let told = |made_up: &[&str]| {
            let failure = Failure {
                in_test: true,
                made_up: made_up.iter().map(|name| (*name).to_owned()).collect(),
                ..Failure::before(true, Cause::Private { min_group_size: 5 })
            };
            let problem = unpublished("asset", "ast_1", ProductStatus::Draft)(failure);
            assert_eq!(problem.code(), "INVALID_STATE");
            problem.message().to_owned()
        };
        let begins = "the test failed: the result stands for fewer than 5 units and is withheld; ";
        for (made_up, goes_on) in [
            (
                &[][..],
                "something of it has to leave before it is sold: send params with which enough stand behind it, or try again when the source has enough",
            ),
            (
                &["team"][..],
                "values of team were made up: send some with which it answers as params",
            ),
        ] {
            let message = told(made_up);
            assert_eq!(message.strip_prefix(begins), Some(goes_on), "{message}");
        }
    }

    /// What the source calls its tables and columns may be hidden behind other names: it is told to the product's owner and to nobody else, who gets the same
    /// status and code.
    #[test]
    fn names_of_the_source_are_told_to_the_owner_alone() {
        let name = || "cost_2024".to_owned();
        let causes: [fn(String) -> Cause; 4] = [
            Cause::NoSuchTable,
            Cause::SeveralTables,
            |name| Cause::NoSuchColumns(vec![("order_by", name)]),
            |column| {
                Cause::Incomparable(vec![Incomparable {
                    member: "sorts",
                    column,
                    type_name: "point".to_owned(),
                    by: String::new(),
                }])
            },
        ];
        for cause in causes {
            let told = |owner| refusal("endpoint", "end_1")(Failure::before(owner, cause(name())));
            let (owner, buyer) = (told(true), told(false));
            assert!(owner.message().contains(&name()), "{}", owner.message());
            assert!(!buyer.message().contains(&name()), "{}", buyer.message());
            let of = |problem: &Problem| (problem.status(), problem.code().to_owned());
            assert_eq!(of(&owner), of(&buyer));
            assert_eq!(buyer.code(), "INVALID_STATE");
            // Who operates the host finds it in the line of the call.
            let logged = buyer.cause().unwrap_or_default();
            assert!(logged.contains(&name()), "{logged}");
        }
    }
}
