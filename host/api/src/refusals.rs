//! The catalogue of refusals: every code that this API answers, with its status and an example of its words.
//!
//! An operation names those that only it knows of (`.refuses(&[…])`); the others follow from what its handler takes and answers
//! ([`crate::describe`]) and from its properties ([`crate::refused`]). `openapi.json` lists them, and the tests hold every answer that they see
//! against it: a code that is not listed for its operation fails the test that saw it.

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Refusal {
    pub status: u16,
    pub code: &'static str,
    /// What such an answer says, or may say.
    pub message: &'static str,
}

macro_rules! catalogue {
    ($($status:literal { $($code:ident: $message:literal,)+ })+) => {
        $($(pub const $code: Refusal = Refusal {
            status: $status,
            code: stringify!($code),
            message: $message,
        };)+)+

        /// The whole catalogue.
        pub const ALL: &[Refusal] = &[$($($code,)+)+];
    };
}

catalogue! {
    400 {
        INVALID_REQUEST: "the body is not valid JSON: expected value at line 1 column 1",
        VALIDATION_ERROR: "name: is required",
        INVALID_PARAMETER: "per_page: must be an integer from 1 to 100",
        INVALID_PATH_PARAMETER: "path: an id has 1 to 255 characters of a-z, A-Z, 0-9, _ and -",
        INVALID_PERIOD: "end_date must be after start_date",
        INVALID_SIGNATURE: "the signature does not belong to this event",
        PATH_BODY_MISMATCH: "company_id: must equal the `company_id` of the path, or be left out",
        KEY_VALUE_IMMUTABLE: "the value, role and type of a key cannot be changed; create another key",
        SQL_NOT_READ_ONLY: "sql_logic: DELETE is not allowed: the statement must only read",
        UNSAFE_URL: "url: the address is not allowed",
        CONNECTOR_INVALID: "the component imports what no connector may import",
    }
    401 {
        MISSING_API_KEY: "send your API key in the header x-api-key",
        INVALID_API_KEY: "this API key is not known here",
        SIGN_IN_REFUSED: "the ID token is refused: ExpiredSignature",
        SESSION_EXPIRED: "this session is over; sign in again",
    }
    402 {
        INSUFFICIENT_CREDITS: "the balance does not cover this call; buy credits (POST /companies/{company_id}/credits/top-ups) and try again",
    }
    403 {
        COMPANY_ACCESS_DENIED: "this key belongs to another company; use your own company_id in the path",
        COMPANY_SUSPENDED: "this company is suspended; ask the platform's staff",
        CSRF_TOKEN_REQUIRED: "send the session's csrf_token (GET /users/me) in the header x-csrf-token",
        ENDPOINT_KEY_NOT_ALLOWED: "an endpoint key only reads its endpoint through /endpoints/v1/; use an analytics key here",
        ENDPOINT_SCOPE_MISMATCH: "this key reads another endpoint; use the key that was made for this one",
        INSUFFICIENT_PERMISSIONS: "this needs a key with the permission write",
        INSUFFICIENT_ROLE: "this needs a key with role 3 or higher",
        NOT_ENTITLED: "your company's purchase of this asset is cancelled; purchase it again",
        NOT_INVITED: "nobody has invited you here; ask an administrator of your company",
        PRIVACY_THRESHOLD: "fewer than 10 people stand behind this answer",
        ROLE_ESCALATION: "a key cannot grant more than it has",
        USER_DISABLED: "you may not come in at present; ask an administrator of your company",
    }
    404 {
        ALERT_NOT_FOUND: "there is no alert \"alr_…\" that this key can see",
        API_KEY_NOT_FOUND: "there is no API key \"key_…\" that this key can see",
        ASSET_NOT_FOUND: "there is no asset \"ast_…\" that this key can see",
        COMPANY_NOT_FOUND: "there is no company \"cmp_…\" that this key can see",
        CONNECTION_NOT_FOUND: "there is no connection \"con_…\" that this key can see",
        CONNECTOR_NOT_FOUND: "there is no connector \"postgres\" that this key can see",
        DELIVERY_NOT_FOUND: "there is no delivery \"dlv_…\" that this key can see",
        ENDPOINT_NOT_FOUND: "there is no endpoint \"end_…\" that this key can see",
        FAVORITE_NOT_FOUND: "there is no favorite \"fav_…\" that this key can see",
        FILE_NOT_FOUND: "there is no file \"goals.db\" that this key can see",
        INDUSTRY_NOT_FOUND: "there is no industry \"999\" that this key can see",
        INTEGRATION_NOT_FOUND: "there is no integration \"int_…\" that this key can see",
        INVITATION_NOT_FOUND: "this invitation is not known here, was accepted, or has expired; ask for another one",
        PAYMENT_PROVIDER_NOT_FOUND: "there is no payment provider \"…\" that this key can see",
        PAYOUT_METHOD_NOT_FOUND: "there is no payout method \"cmp_…\" that this key can see",
        PAYOUT_NOT_FOUND: "there is no payout \"pay_…\" that this key can see",
        POST_NOT_FOUND: "there is no post \"pst_…\" that this key can see",
        PREVIEW_NOT_AVAILABLE: "this product has no preview at the moment; it gets one when its seller tests or publishes it",
        PRICE_NOT_FOUND: "there is no price \"prc_…\" that this key can see",
        PRODUCT_NOT_FOUND: "there is no product \"ast_…\" that this key can see",
        PURCHASE_NOT_FOUND: "there is no purchase \"pur_…\" that this key can see",
        ROUTE_NOT_FOUND: "there is no such route; see /openapi.json",
        SESSION_NOT_FOUND: "there is no session \"ses_…\" that this key can see",
        TOP_UP_NOT_FOUND: "there is no top-up \"top_…\" that this key can see",
        TRANSACTION_NOT_FOUND: "there is no transaction \"txn_…\" that this key can see",
        USER_NOT_FOUND: "there is no user \"usr_…\" that this key can see",
        WEBHOOK_NOT_FOUND: "there is no webhook \"whk_…\" that this key can see",
    }
    405 {
        METHOD_NOT_ALLOWED: "this route takes GET, POST",
    }
    406 {
        NOT_ACCEPTABLE: "rows come as application/json, text/csv, …; name one of them in Accept",
    }
    409 {
        CONFLICT: "somebody else has changed this meanwhile; read it again",
        CONNECTION_LIMIT_REACHED: "a company has at most 100 connections",
        CONNECTOR_BLOCKED: "the platform has taken this connector off work",
        CONNECTOR_QUOTA_EXCEEDED: "delete versions that are not used first",
        CONNECTOR_UNHEALTHY: "the version is stored but could not be activated",
        EMAIL_TAKEN: "another user of this company has the address ann@example.org",
        ENGINE_RESERVED: "the engine \"postgres\" is the platform's; choose a slug of your own",
        FILE_QUOTA_EXCEEDED: "the company's files, with those that are being uploaded, may have at most 17179869184 bytes together; delete some first",
        IDEMPOTENCY_ANSWER_TOO_LARGE: "the request with this Idempotency-Key was executed, once, and its answer was not kept, being large or no JSON; send a new key to execute it anew",
        IDEMPOTENCY_IN_PROGRESS: "a request with this Idempotency-Key is being executed; retry in a moment",
        INVALID_STATE: "its state does not allow this",
        LAST_ADMINISTRATOR: "nobody else could administer the company: give somebody else the role 4 first",
        PAYABLE_TOO_LOW: "less is payable than a payout takes",
        PAYOUT_METHOD_MISSING: "say where the money goes first: PUT /companies/{company_id}/payout-method",
        PRICE_ABOVE_MAX: "it costs 9 credits now, more than the 5 that the caller would pay; nothing was run and nothing charged",
        PRICE_OVERLAP: "another price holds in this period",
        REFUND_NOT_COVERED: "the seller's earnings do not cover this refund",
        RESOURCE_IN_USE: "others still use this",
        SELLER_SUSPENDED: "the seller of this product is suspended; nothing was run and nothing charged",
        SEVERAL_COMPANIES: "several companies name this address: sign in to the one you mean, or open the link of its invitation",
        SLUG_TAKEN: "the slug is taken; choose another",
    }
    410 {
        API_KEY_DEACTIVATED: "this API key has been deactivated; create a new one",
    }
    413 {
        PAYLOAD_TOO_LARGE: "the body is larger than 1048576 bytes",
    }
    415 {
        UNSUPPORTED_MEDIA_TYPE: "send the body with Content-Type: application/json",
    }
    422 {
        IDEMPOTENCY_KEY_REUSED: "this Idempotency-Key was used for another request; use a new key for every new request",
    }
    429 {
        COMPILE_TIME_EXCEEDED: "compiling has taken its share of the hour; try again later",
        CONCURRENCY_LIMIT_EXCEEDED: "too many calls are in flight; try again shortly",
        IDEMPOTENCY_LIMIT_EXCEEDED: "the answers kept for your company's Idempotency-Keys take all the room they may",
        RATE_LIMIT_EXCEEDED: "the limit of 1000 requests an hour is used up; try again in 1200 s",
        SOURCE_RATE_LIMITED: "the seller's source asks for patience; try again in 7 s",
        TOO_MANY_CONNECTIONS: "this address has too many connections open; use those, or close some",
        TOO_MANY_UNREAD_ANSWERS: "2097152 bytes of answers wait for this company's clients to read them, more than 1048576; read them, or close those connections",
        TOO_MANY_UPLOADS: "other uploads of this company are under way; send this one when one of them has ended",
    }
    431 {
        HEADERS_TOO_LARGE: "the request line and headers are too large; send at most 100 headers of 32 KiB together",
    }
    500 {
        INTERNAL_ERROR: "the request failed on our side; try again, and report the request id if it persists",
    }
    502 {
        CONNECTOR_FAULT: "the connector failed",
        PAYMENT_PROVIDER_ERROR: "the payment provider refused",
        SELLER_API_ERROR: "the seller's API failed",
        SOURCE_ERROR: "the source failed",
    }
    503 {
        CONNECTOR_PAUSED: "the connector failed again and again and is left alone for a while",
        CONNECTOR_UNAVAILABLE: "the connector for postgres is not available on this service at the moment",
        IDENTITY_PROVIDER_UNAVAILABLE: "google cannot be asked at the moment; try again",
        PAYMENT_PROVIDER_UNAVAILABLE: "the payment provider cannot be reached; try again",
        SERVICE_UNAVAILABLE: "the store is not available; try again",
        SIGN_IN_NOT_CONFIGURED: "this host has no identity provider: people come in by invitation",
        SHUTTING_DOWN: "this host is stopping; try again",
        SOURCE_UNAVAILABLE: "the seller's source is away, and says for how long",
    }
    504 {
        EXECUTION_TIMEOUT: "the source did not answer in time: it had 10000 ms, the asset's timeout_ms; ask for less, or tell the seller",
    }
}

/// [`TOO_MANY_UPLOADS`] and [`TOO_MANY_CONNECTIONS`] when it is everybody's, not one's own.
pub(crate) const HOST_UPLOADS: Refusal = Refusal {
    status: 503,
    message: "this host is busy with the uploads of others; try again shortly",
    ..TOO_MANY_UPLOADS
};
pub(crate) const HOST_CONNECTIONS: Refusal = Refusal {
    status: 503,
    message: "this host has no room for another connection; try again shortly",
    ..TOO_MANY_CONNECTIONS
};

/// Whether the catalogue has this code with this status. What a library refuses may have any status.
pub fn is_known(status: u16, code: &str) -> bool {
    let is = |refusal: &Refusal| refusal.code == code && refusal.status == status;
    ALL.iter().chain(&[HOST_UPLOADS, HOST_CONNECTIONS]).any(is) || code == INVALID_REQUEST.code
}
