//! Whose fault a refusal is, by its reason. BigQuery's text goes into `detail` only.
//!
//! The reasons are those of Google's "HTTP status and error codes for BigQuery API". Which thing was not found, and which privilege is
//! missing, is said by the text alone.

use serde::Deserialize;
use souk_sdk::parameters::callers;
use souk_sdk::{Error, HttpResponse, Query};

#[derive(Deserialize)]
struct Body {
    error: Refusal,
}

#[derive(Deserialize)]
struct Refusal {
    #[serde(default)]
    message: String,
    #[serde(default)]
    errors: Vec<Cause>,
}

#[derive(Deserialize)]
struct Cause {
    #[serde(default)]
    reason: String,
    location: Option<String>,
}

/// The error that a response tells which is no answer. `query`: the caller's.
pub fn refused(response: HttpResponse, query: Option<&Query>) -> Error {
    let Ok(Body { error: refusal }) = serde_json::from_slice(&response.body) else {
        return foreign(response);
    };
    let cause = refusal.errors.first();
    let reason = cause.map(|cause| cause.reason.as_str()).unwrap_or_default();
    let values = query.map(|query| callers(&query.text, &query.parameters));
    let values = values.unwrap_or_default();
    let error = blame(response.status, reason, &refusal.message, &values);
    let code = match reason {
        "" => response.status.to_string(),
        reason => reason.to_owned(),
    };
    let place = cause.and_then(|cause| cause.location.as_deref());
    let detail = match place {
        Some(place) => format!("{} (in: {place})", refusal.message),
        None => refusal.message,
    };
    let error = error.detail(detail).source_code(code);
    match response.retry_after_ms() {
        Some(ms) => error.retry_after_ms(ms),
        None => error,
    }
}

fn blame(status: u16, reason: &str, text: &str, values: &[String]) -> Error {
    let says = |words: &str| text.contains(words);
    match (status, reason) {
        (_, "rateLimitExceeded" | "jobRateLimitExceeded" | "userRateLimitExceeded") | (429, _) => {
            Error::rate_limited(
                "rate_limited",
                "BigQuery has had too many requests of this project",
            )
        }
        (_, "quotaExceeded") => Error::unavailable(
            "quota_exhausted",
            "the project has used up what its quota at BigQuery allows: raise it, or wait until it begins anew",
        ),
        (401, _) => Error::authentication(
            "credentials_refused",
            "BigQuery refused the service account's key: is it disabled, or deleted?",
        ),
        (_, "accessNotConfigured" | "SERVICE_DISABLED") => Error::configuration(
            "api_disabled",
            "the BigQuery API is not enabled in the key file's project: enable bigquery.googleapis.com there",
        ),
        (_, "billingNotEnabled" | "accountDisabled") => Error::configuration(
            "billing_disabled",
            "the key file's project, which pays, has no billing account that is in order: link one, or settle it",
        ),
        (_, "bytesBilledLimitExceeded") => Error::limit_exceeded(
            "bytes_billed_limit",
            "the statement would read more than the connection's maximum_bytes_billed",
        ),
        (_, "responseTooLarge") => Error::limit_exceeded(
            "response_too_large",
            "the result is larger than BigQuery sends",
        ),
        (_, "resourcesExceeded" | "billingTierLimitExceeded") => Error::limit_exceeded(
            "resources_exceeded",
            "the statement needs more than BigQuery gives to one statement",
        ),
        (_, "timeout" | "jobTimeout") => too_long(),
        (_, "stopped") if says("timed out") => too_long(),
        (_, "stopped") => Error::timeout("cancelled", "the statement was cancelled at BigQuery"),
        // Of VPC Service Controls, which judge by addresses; no role helps.
        (403, "policyViolation") => Error::configuration(
            "perimeter_refused",
            "a service perimeter of the project's organization does not let this service in: allow its addresses in an ingress rule",
        ),
        (403, _) if says("bigquery.jobs.create") => Error::permission(
            "may_not_run_jobs",
            "the service account may not run statements in its project: give it the role BigQuery Job User",
        ),
        (403, _) => Error::permission(
            "permission_denied",
            "the service account may not read what the statement names: give it the role BigQuery Data Viewer there",
        ),
        (404, _) if says("Not found: Project") => {
            Error::configuration("unknown_project", "the project does not exist")
        }
        (404, _) if says("Not found: Dataset") => Error::not_found(
            "unknown_dataset",
            "the dataset does not exist, or not where the statement runs (the connection's location)",
        ),
        (404, _) if says("Not found: Table") => Error::not_found(
            "unknown_table",
            "the statement names a table that does not exist",
        ),
        (404, _) => Error::not_found("not_found", "BigQuery does not have what was asked for"),
        (_, "invalidQuery") if says("Function not found") => Error::not_found(
            "unknown_function",
            "the statement names a function that does not exist",
        ),
        (_, "invalidQuery") if says("Unrecognized name") => Error::source_failed(
            "unknown_column",
            "the statement names a column that does not exist",
        ),
        (_, "invalidQuery") if says("Syntax error") => {
            Error::source_failed("syntax_error", "BigQuery cannot read the statement")
        }
        (_, "invalidQuery" | "invalid") if names_one(text, values) => {
            Error::invalid_request("invalid_value", "BigQuery refused a value")
        }
        // Those of a job come with 400.
        (
            _,
            "tableUnavailable" | "backendError" | "internalError" | "jobBackendError"
            | "jobInternalError",
        )
        | (502..=504, _) => {
            Error::unavailable("unavailable", "BigQuery is not available at the moment")
        }
        (500.., _) => Error::source_failed("internal_error", "BigQuery failed"),
        _ => Error::source_failed("sql_error", "BigQuery could not run the statement"),
    }
}

/// `Invalid date: 'x'`, `Could not cast literal "x" to type DATE`, `Bad int64 value: x`.
fn names_one(text: &str, values: &[String]) -> bool {
    let is_named = |value: &String| {
        text.contains(&format!("'{value}'"))
            || text.contains(&format!("\"{value}\""))
            || text.ends_with(&format!(": {value}"))
    };
    values.iter().any(is_named)
}

fn too_long() -> Error {
    Error::timeout(
        "statement_timeout",
        "the statement runs longer than the connection allows",
    )
}

/// A response that is none of BigQuery's: a proxy's, mostly. Nobody who calls has sent anything wrong.
fn foreign(response: HttpResponse) -> Error {
    let status = response.status;
    match response.classified() {
        Err(error) if !matches!(status, 400 | 422) => error,
        _ => crate::answers::malformed().source_code(status.to_string()),
    }
}
