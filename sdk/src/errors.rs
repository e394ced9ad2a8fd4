//! Errors of the contract: whose fault it is, in a stable code and a sentence that anyone may read.
//!
//! `message` never holds the source's own text; that goes into `detail`, which only the owner of the
//! connection is shown.

use crate::{Error, ErrorClass, HttpFailure, WireFault};

/// The source's own text is cut here: it is for a person, and it is stored with the run.
const DETAIL_BYTES_MAX: usize = 2_000;

macro_rules! constructors {
    ($($(#[$doc:meta])* $name:ident = $class:ident;)*) => {
        $($(#[$doc])* pub fn $name(code: impl Into<String>, message: impl Into<String>) -> Error {
            Error::new(ErrorClass::$class, code, message)
        })*
    };
}

impl Error {
    pub fn new(class: ErrorClass, code: impl Into<String>, message: impl Into<String>) -> Error {
        Error {
            class,
            code: code.into(),
            message: message.into(),
            detail: None,
            source_code: None,
            retry_after_ms: None,
            parameter: None,
        }
    }

    constructors! {
        /// The seller must change the connection's settings.
        configuration = Configuration;
        /// The source refused the credentials.
        authentication = Authentication;
        /// The source refused this operation for these credentials.
        permission = Permission;
        /// The caller sent a value that cannot be used.
        invalid_request = InvalidRequest;
        /// The named thing does not exist at the source.
        not_found = NotFound;
        rate_limited = RateLimited;
        /// The source cannot be reached, or broke the connection.
        unavailable = Unavailable;
        timeout = Timeout;
        limit_exceeded = LimitExceeded;
        /// The source failed in its own right, or answered nonsense.
        source_failed = Source;
        /// This connector failed.
        internal = Internal;
    }

    /// `unsupported`: this connector does not do `what` ("queries").
    pub fn unsupported(what: &str) -> Error {
        Error::new(
            ErrorClass::Unsupported,
            "unsupported",
            format!("this connector does not support {what}"),
        )
    }

    /// The result has more rows than the request allows.
    pub fn too_many_rows(rows_max: u32) -> Error {
        Error::limit_exceeded(
            "rows_limit",
            format!("the result has more than {rows_max} rows"),
        )
    }

    /// The result has more bytes than the request allows.
    pub fn too_many_bytes(bytes_max: u64) -> Error {
        Error::limit_exceeded(
            "bytes_limit",
            format!("the result has more than {bytes_max} bytes"),
        )
    }

    /// Says which of the query's parameters it is about, the first one being 0; the host knows its name.
    pub fn parameter(mut self, index: usize) -> Error {
        self.parameter = u32::try_from(index).ok();
        self
    }

    /// Adds the source's own text, cut to 2,000 bytes.
    pub fn detail(mut self, text: impl Into<String>) -> Error {
        let mut text = text.into();
        if text.len() > DETAIL_BYTES_MAX {
            let end = (0..=DETAIL_BYTES_MAX)
                .rev()
                .find(|&i| text.is_char_boundary(i))
                .unwrap_or(0);
            text.truncate(end);
        }
        self.detail = Some(text);
        self
    }

    /// Adds the source's own code (SQLSTATE, HTTP status).
    pub fn source_code(mut self, code: impl Into<String>) -> Error {
        self.source_code = Some(code.into());
        self
    }

    pub fn retry_after_ms(mut self, ms: u64) -> Error {
        self.retry_after_ms = Some(ms);
        self
    }
}

impl HttpFailure {
    /// The error of a request whose answer may have so many bytes (`16 MiB`): one that is longer is no HTTP to the host either.
    pub fn within(self, bytes_max: &str) -> Error {
        match self.fault {
            WireFault::BadResponse => Error::source_failed(
                "bad_response",
                format!("the answer broke off, is not valid HTTP, or is longer than {bytes_max}"),
            )
            .detail(self.message),
            _ => Error::from(self),
        }
    }
}

/// What the host saw on the wire, as an error of the request that waited for it.
impl From<HttpFailure> for Error {
    fn from(failure: HttpFailure) -> Error {
        let error = match failure.fault {
            WireFault::Refused => {
                Error::unavailable("connection_refused", "the source refused the connection")
            }
            WireFault::Unreachable => {
                Error::unavailable("unreachable", "the source cannot be reached")
            }
            WireFault::EgressRefused => Error::configuration(
                "egress_refused",
                "the operator does not allow connections to this address",
            ),
            WireFault::Tls => Error::configuration(
                "tls_failed",
                "the source could not prove its identity over TLS",
            ),
            WireFault::Timeout => {
                Error::timeout("source_timeout", "the source did not answer in time")
            }
            WireFault::Reset => {
                Error::unavailable("connection_lost", "the source broke the connection")
            }
            WireFault::BadResponse => Error::source_failed(
                "bad_response",
                "the source's answer is not valid HTTP or is too long",
            ),
        };
        error.detail(failure.message)
    }
}
