//! Who is blamed for what Databricks says.

use super::*;
use crate::parameters::bound;
use souk_sdk::ErrorClass::{self, *};
use souk_sdk::Value;

fn status(code: &str, message: &str) -> Status {
    let status =
        serde_json::json!({"state": "FAILED", "error": {"error_code": code, "message": message}});
    serde_json::from_str(&status.to_string()).unwrap()
}

#[test]
fn each_is_blamed_on_who_can_help() {
    let values = [
        Value::Text("x".into()),
        Value::Int64(300),
        Value::Text("it's. a".into()),
    ];
    let values: Vec<Bound> = values
        .iter()
        .map(|value| bound(0, value).unwrap())
        .collect();
    for (message, is_bound, class, code) in [
        (
            "\n[PARSE_SYNTAX_ERROR] Syntax error at or near 'DELETE'. SQLSTATE: 42601 (line 1, pos 0)\n\n== SQL ==\n",
            true,
            Source,
            "syntax_error",
        ),
        (
            "[TABLE_OR_VIEW_NOT_FOUND] The table or view `a` cannot be found. SQLSTATE: 42P01; line 1 pos 14",
            false,
            NotFound,
            "unknown_table",
        ),
        (
            "[UNRESOLVED_COLUMN.WITH_SUGGESTION] A column `a` cannot be resolved. SQLSTATE: 42703",
            false,
            Source,
            "unknown_column",
        ),
        (
            "[UNRESOLVED_ROUTINE] Cannot resolve routine `f`. SQLSTATE: 42883",
            false,
            NotFound,
            "unknown_function",
        ),
        (
            "[CAST_INVALID_INPUT] The value 'x' of the type \"STRING\" cannot be cast to \"INT\". SQLSTATE: 22018",
            true,
            InvalidRequest,
            "invalid_value",
        ),
        (
            "[CAST_INVALID_INPUT] The value 'x' of the type \"STRING\" cannot be cast to \"INT\". SQLSTATE: 22018",
            false,
            ErrorClass::Source,
            "invalid_value",
        ),
        (
            "[DIVIDE_BY_ZERO] Division by zero. SQLSTATE: 22012",
            true,
            Source,
            "invalid_value",
        ),
        (
            "[INVALID_TIMEZONE] The timezone: x is invalid. The timezone must be either a region-based zone ID or a zone offset. SQLSTATE: 22009",
            true,
            InvalidRequest,
            "invalid_value",
        ),
        (
            "[INVALID_TIMEZONE] The timezone: xy is invalid. SQLSTATE: 22009",
            true,
            Source,
            "invalid_value",
        ),
        // Of the seller's table.
        (
            "[CAST_INVALID_INPUT] The value 'y' of the type \"STRING\" cannot be cast to \"INT\". SQLSTATE: 22018",
            true,
            Source,
            "invalid_value",
        ),
        (
            "[CAST_OVERFLOW] The value 300L of the type \"BIGINT\" cannot be cast to \"TINYINT\" due to an overflow. SQLSTATE: 22003",
            true,
            InvalidRequest,
            "invalid_value",
        ),
        (
            "[CAST_OVERFLOW] The value 3001L of the type \"BIGINT\" cannot be cast to \"TINYINT\" due to an overflow. Use 300. SQLSTATE: 22003",
            true,
            Source,
            "invalid_value",
        ),
        (
            "[CAST_INVALID_INPUT] The value 'it\\'s. a' of the type \"STRING\" cannot be cast to \"INT\". SQLSTATE: 22018",
            true,
            InvalidRequest,
            "invalid_value",
        ),
        (
            "[INSUFFICIENT_PERMISSIONS] Insufficient privileges: User does not have SELECT SQLSTATE: 42501",
            false,
            Permission,
            "permission_denied",
        ),
        (
            "[SOMETHING_NEW] x SQLSTATE: 42501",
            false,
            Permission,
            "permission_denied",
        ),
        (
            "[NO_SUCH_CATALOG_EXCEPTION] Catalog 'Lake' was not found. SQLSTATE: 42704",
            false,
            Configuration,
            "unknown_catalog",
        ),
        (
            "[NO_SUCH_CATALOG_EXCEPTION] Catalog 'pond' was not found. SQLSTATE: 42704",
            false,
            NotFound,
            "unknown_catalog",
        ),
        (
            "[AMBIGUOUS_REFERENCE] Reference `id` is ambiguous. SQLSTATE: 42704",
            false,
            Source,
            "sql_error",
        ),
        (
            "[DATATYPE_MISMATCH.BINARY_OP_DIFF_TYPES] SQLSTATE: 42K09",
            false,
            Source,
            "type_mismatch",
        ),
        (
            "Inline byte limit exceeded. Statements executed with disposition=INLINE can have a result size of at most 26214400 bytes.",
            false,
            LimitExceeded,
            "result_too_large",
        ),
        ("something", false, Source, "sql_error"),
        ("", false, Source, "sql_error"),
        ("[", true, Source, "sql_error"),
        ("SQLSTATE: é", true, Source, "sql_error"),
    ] {
        let values = if is_bound { &values[..] } else { &[] };
        let error = told(&status("BAD_REQUEST", message), "lake", values);
        assert_eq!(
            (error.class, error.code.as_str()),
            (class, code),
            "{message}"
        );
    }
    for (word, class) in [
        ("CANCELLED", Timeout),
        ("DEADLINE_EXCEEDED", Timeout),
        ("TEMPORARILY_UNAVAILABLE", Unavailable),
        ("UNAUTHENTICATED", Authentication),
        ("RESOURCE_EXHAUSTED", LimitExceeded),
        ("INTERNAL_ERROR", Source),
        ("OF_TOMORROW", Source),
    ] {
        assert_eq!(told(&status(word, "x"), "lake", &[]).class, class, "{word}");
    }
}

/// Of a text of Databricks' nothing is shown to a caller.
#[test]
fn texts_are_for_the_owner() {
    let text = "[CAST_INVALID_INPUT] The value 'secret' SQLSTATE: 22018";
    let error = told(&status("BAD_REQUEST", text), "lake", &[]);
    assert!(!error.message.contains("secret"));
    assert_eq!(error.detail.as_deref(), Some(text));
    assert_eq!(error.source_code.as_deref(), Some("CAST_INVALID_INPUT"));
}

#[test]
fn responses_are_told_apart() {
    let refused_as = |status, body: &str, is_first| {
        let response = HttpResponse {
            id: 1,
            status,
            headers: Vec::new(),
            body: body.into(),
        };
        let error = refused(response, is_first);
        (error.class, error.code)
    };
    for (status, body, is_first, class, code) in [
        (
            401,
            r#"{"error_code":401,"message":"Credential was not sent"}"#,
            true,
            Authentication,
            "credentials_refused",
        ),
        (
            403,
            r#"{"error_code":403,"message":"Invalid access token."}"#,
            true,
            Authentication,
            "credentials_refused",
        ),
        (
            403,
            r#"{"error_code":"PERMISSION_DENIED","message":"no"}"#,
            true,
            Permission,
            "warehouse_refused",
        ),
        (
            403,
            r#"{"error_code":"403","message":"Source IP address: 192.0.2.7 is blocked by Databricks IP ACL for workspace: 1"}"#,
            true,
            Configuration,
            "address_refused",
        ),
        (
            404,
            r#"{"error_code":"NOT_FOUND","message":"x"}"#,
            true,
            Configuration,
            "unknown_warehouse",
        ),
        (
            400,
            r#"{"error_code":"INVALID_PARAMETER_VALUE","message":"a1 is not a valid endpoint id."}"#,
            true,
            Configuration,
            "unknown_warehouse",
        ),
        (
            400,
            r#"{"error_code":"INVALID_PARAMETER_VALUE","message":"x"}"#,
            true,
            Source,
            "bad_request",
        ),
        (404, "<html>", true, Configuration, "no_databricks"),
        (
            404,
            r#"{"error_code":"ENDPOINT_NOT_FOUND","message":"No API found"}"#,
            true,
            Configuration,
            "no_databricks",
        ),
        (
            404,
            r#"{"error_code":"NOT_FOUND","message":"x"}"#,
            false,
            Unavailable,
            "statement_lost",
        ),
        (503, "", true, Unavailable, "unavailable"),
    ] {
        assert_eq!(
            refused_as(status, body, is_first),
            (class, code.into()),
            "{status} {body}"
        );
    }
}
