//! What each operation can refuse with: what its properties and its handler's types imply, and what it names itself.

use crate::describe::Description;
use crate::operation::{Access, CompanyRule, Operation, Verb};
use crate::refusals::*;

/// What a request may be refused with before it is anybody's, whatever it asks for.
const BEFORE_ALL: &[Refusal] = &[
    INVALID_REQUEST,
    HEADERS_TOO_LARGE,
    TOO_MANY_CONNECTIONS,
    HOST_CONNECTIONS,
    PAYLOAD_TOO_LARGE,
    INVALID_PARAMETER,
    INTERNAL_ERROR,
];
/// What a request is refused with that no operation takes.
pub const UNROUTED: &[Refusal] = &[ROUTE_NOT_FOUND, METHOD_NOT_ALLOWED, RATE_LIMIT_EXCEEDED];
/// What the gate refuses keys with.
const OF_KEYS: &[Refusal] = &[
    MISSING_API_KEY,
    INVALID_API_KEY,
    API_KEY_DEACTIVATED,
    COMPANY_SUSPENDED,
    INSUFFICIENT_ROLE,
    INSUFFICIENT_PERMISSIONS,
    RATE_LIMIT_EXCEEDED,
    SERVICE_UNAVAILABLE,
];
/// What the gate refuses cookies with.
const OF_SESSIONS: &[Refusal] = &[SESSION_EXPIRED, CSRF_TOKEN_REQUIRED];
const OF_IDEMPOTENCY: &[Refusal] = &[
    IDEMPOTENCY_IN_PROGRESS,
    IDEMPOTENCY_ANSWER_TOO_LARGE,
    IDEMPOTENCY_KEY_REUSED,
    IDEMPOTENCY_LIMIT_EXCEEDED,
];
/// How a connector's run ends badly, and what no run begins without.
const OF_CONNECTORS: &[Refusal] = &[
    CONCURRENCY_LIMIT_EXCEEDED,
    CONNECTOR_FAULT,
    SOURCE_ERROR,
    SELLER_API_ERROR,
    SOURCE_RATE_LIMITED,
    SOURCE_UNAVAILABLE,
    CONNECTOR_PAUSED,
    CONNECTOR_UNAVAILABLE,
    SHUTTING_DOWN,
    EXECUTION_TIMEOUT,
];
/// How the run of a product ends badly for its buyer.
const OF_BILLING: &[Refusal] = &[
    INSUFFICIENT_CREDITS,
    NOT_ENTITLED,
    PRIVACY_THRESHOLD,
    SELLER_SUSPENDED,
    INVALID_STATE,
    PRICE_ABOVE_MAX,
];

/// What a request that no operation takes can be refused with, by status and code.
pub fn of_unrouted() -> Vec<Refusal> {
    let mut all = [BEFORE_ALL, UNROUTED].concat();
    all.sort();
    all
}

/// All that an operation can refuse with, by status and code.
pub fn of(operation: &Operation, description: &Description) -> Vec<Refusal> {
    let mut all = BEFORE_ALL.to_vec();
    let mut add = |holds: bool, refusals: &[Refusal]| {
        if holds {
            all.extend_from_slice(refusals);
        }
    };
    let has_key = operation.access != Access::Public;
    add(has_key, OF_KEYS);
    add(!has_key && !operation.is_probe(), &[RATE_LIMIT_EXCEEDED]);
    // Others without a key have left too much unread.
    add(
        !has_key && !operation.is_probe() && operation.verb == Verb::Get,
        &[SERVICE_UNAVAILABLE],
    );
    add(
        has_key && operation.access != Access::Data,
        &[ENDPOINT_KEY_NOT_ALLOWED],
    );
    add(operation.takes_sessions(), OF_SESSIONS);
    add(
        operation.company == CompanyRule::Own,
        &[COMPANY_ACCESS_DENIED, COMPANY_NOT_FOUND],
    );
    add(
        has_key && (operation.runs_connector || operation.verb == Verb::Get),
        &[TOO_MANY_UNREAD_ANSWERS],
    );
    add(
        description.upload_bytes_max > 0,
        &[TOO_MANY_UPLOADS, HOST_UPLOADS],
    );
    add(
        has_key && (operation.keeps_answers() || operation.billed),
        OF_IDEMPOTENCY,
    );
    add(
        description.repeats_path && operation.path.contains("{company_id}"),
        &[PATH_BODY_MISMATCH],
    );
    add(
        has_key && operation.reads_records(),
        &[CONCURRENCY_LIMIT_EXCEEDED],
    );
    add(operation.runs_connector, OF_CONNECTORS);
    add(operation.billed, OF_BILLING);
    add(true, &description.refusals);
    add(true, operation.refusals);
    all.sort();
    all.dedup_by_key(|refusal| (refusal.status, refusal.code));
    all
}
