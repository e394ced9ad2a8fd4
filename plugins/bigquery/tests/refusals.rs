//! Whose fault it is what BigQuery refuses.

mod common;

use common::{Talk, class_and_code, dry, query, raw, refuses};
use serde_json::json;
use souk_sdk::{ErrorClass, Value, WireFault};
use souk_tests::wire::LIMITS;

#[test]
fn errors_are_blamed_by_their_reason() {
    use ErrorClass as Class;
    let mut talk = Talk::usual();
    for (status, reason, text, class, word) in [
        (
            400,
            "invalidQuery",
            "Syntax error: Expected end of input at [1:8]",
            Class::Source,
            "syntax_error",
        ),
        (
            400,
            "invalidQuery",
            "Unrecognized name: x at [1:8]",
            Class::Source,
            "unknown_column",
        ),
        (
            400,
            "invalidQuery",
            "Function not found: f at [1:8]",
            Class::NotFound,
            "unknown_function",
        ),
        (
            400,
            "invalidQuery",
            "division by zero: 1 / 0",
            Class::Source,
            "sql_error",
        ),
        (
            400,
            "bytesBilledLimitExceeded",
            "Query exceeded limit",
            Class::LimitExceeded,
            "bytes_billed_limit",
        ),
        (
            400,
            "resourcesExceeded",
            "x",
            Class::LimitExceeded,
            "resources_exceeded",
        ),
        (400, "stopped", "x", Class::Timeout, "cancelled"),
        (400, "timeout", "x", Class::Timeout, "statement_timeout"),
        (
            400,
            "stopped",
            "Job execution was cancelled: Job timed out after 3 sec",
            Class::Timeout,
            "statement_timeout",
        ),
        (
            401,
            "authError",
            "Invalid Credentials",
            Class::Authentication,
            "credentials_refused",
        ),
        (
            403,
            "accessDenied",
            "Access Denied: Table p:d.t: User does not have permission",
            Class::Permission,
            "permission_denied",
        ),
        (
            403,
            "accessDenied",
            "Access Denied: Project p: User does not have bigquery.jobs.create permission",
            Class::Permission,
            "may_not_run_jobs",
        ),
        (
            403,
            "rateLimitExceeded",
            "x",
            Class::RateLimited,
            "rate_limited",
        ),
        (
            403,
            "quotaExceeded",
            "x",
            Class::Unavailable,
            "quota_exhausted",
        ),
        (
            403,
            "billingNotEnabled",
            "x",
            Class::Configuration,
            "billing_disabled",
        ),
        (
            403,
            "policyViolation",
            "VPC Service Controls: Request is prohibited by organization's policy.",
            Class::Configuration,
            "perimeter_refused",
        ),
        (
            403,
            "responseTooLarge",
            "x",
            Class::LimitExceeded,
            "response_too_large",
        ),
        (
            404,
            "notFound",
            "Not found: Dataset p:d was not found in location US",
            Class::NotFound,
            "unknown_dataset",
        ),
        (
            404,
            "notFound",
            "Not found: Table p:d.t was not found in location EU",
            Class::NotFound,
            "unknown_table",
        ),
        (
            404,
            "notFound",
            "Not found: Project p",
            Class::Configuration,
            "unknown_project",
        ),
        (429, "", "x", Class::RateLimited, "rate_limited"),
        (500, "", "x", Class::Source, "internal_error"),
        (500, "internalError", "x", Class::Unavailable, "unavailable"),
        (
            400,
            "jobBackendError",
            "x",
            Class::Unavailable,
            "unavailable",
        ),
        (
            400,
            "jobInternalError",
            "x",
            Class::Unavailable,
            "unavailable",
        ),
        (503, "backendError", "x", Class::Unavailable, "unavailable"),
    ] {
        let error = talk
            .ask(
                query("SELECT 1", vec![], LIMITS),
                [refuses(status, reason, text)],
            )
            .error();
        assert_eq!(class_and_code(&error), (class, word), "{reason}: {text}");
        assert_eq!(error.detail.as_deref(), Some(text));
        assert!(!error.message.contains(text) || text == "x");
        let code = match reason {
            "" => status.to_string(),
            reason => reason.to_owned(),
        };
        assert_eq!(error.source_code, Some(code));
    }
    // Where it is wrong is for the owner; how long to wait for everybody.
    let cause = json!({"message": "m", "reason": "invalidQuery", "location": "query", "locationType": "parameter"});
    let refusal = json!({"error": {"code": 400, "message": "m", "errors": [cause]}}).to_string();
    let error = talk
        .ask(query("SELECT 1", vec![], LIMITS), [raw(400, &[], refusal)])
        .error();
    assert_eq!(error.detail.as_deref(), Some("m (in: query)"));
    let limited = json!({"error": {"code": 403, "message": "m", "errors": [{"reason": "rateLimitExceeded"}]}}).to_string();
    let error = talk
        .ask(
            query("SELECT 1", vec![], LIMITS),
            [raw(403, &[("Retry-After", "7")], limited)],
        )
        .error();
    assert_eq!(error.retry_after_ms, Some(7_000));
}

/// A value that BigQuery cannot read is its caller's where it is named, whether it is a dry run that tells, and the statement's where it is not.
#[test]
fn values_are_their_callers() {
    let text = "SELECT CAST(? AS DATE) FROM t WHERE n = ?\nLIMIT ? OFFSET ?";
    let (callers, statements) = (
        (ErrorClass::InvalidRequest, "invalid_value"),
        (ErrorClass::Source, "sql_error"),
    );
    for (said, wanted) in [
        ("Invalid date: 'x'", callers),
        (
            "Could not cast literal \"x\" to type DATE at [1:8]",
            callers,
        ),
        ("Bad int64 value: x", callers),
        ("Invalid NUMERIC value: 300", callers),
        ("Invalid date: 'y'", statements),
        ("Bad int64 value: 51", statements),
        ("division by zero: 300 / 0", statements),
        (
            "Unrecognized name: x",
            (ErrorClass::Source, "unknown_column"),
        ),
    ] {
        for is_dry in [true, false] {
            let values = ["x".into(), "300".into()].map(Value::Text);
            let page = [Value::Int64(51), Value::Int64(0)];
            let values = values.into_iter().chain(page).collect();
            let refusal = refuses(400, "invalidQuery", said);
            let replies = match is_dry {
                true => vec![refusal],
                false => vec![dry("SELECT"), refusal],
            };
            let answer = Talk::usual().ask(query(text, values, LIMITS), replies);
            assert_eq!(class_and_code(&answer.error()), wanted, "{said}");
        }
    }
}

/// What is not BigQuery is not the caller's mistake.
#[test]
fn strangers_are_the_sources() {
    for (reply, class) in [
        (raw(200, &[], "<html>hello</html>"), ErrorClass::Source),
        (raw(200, &[], ""), ErrorClass::Source),
        (raw(400, &[], "what?"), ErrorClass::Source),
        (
            raw(302, &[("location", "/login")], ""),
            ErrorClass::Configuration,
        ),
        (raw(401, &[], "who?"), ErrorClass::Authentication),
        (raw(502, &[], "busy"), ErrorClass::Unavailable),
        (Err(WireFault::Refused), ErrorClass::Unavailable),
        (Err(WireFault::Tls), ErrorClass::Configuration),
        (Err(WireFault::BadResponse), ErrorClass::Source),
    ] {
        let error = Talk::open(json!({}), reply).err().unwrap();
        assert_eq!(error.class, class, "{error:?}");
    }
    let error = Talk::open(json!({"private_key": "sample"}), dry("SELECT"))
        .err()
        .unwrap();
    assert_eq!(
        class_and_code(&error),
        (ErrorClass::Authentication, "bad_private_key")
    );
}
