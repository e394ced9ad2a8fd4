//! The SQL API: what a request looks like.

use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};

use serde_json::{Map, Value as Json, json};
use souk_sdk::http::{Request, encoded};
use souk_sdk::{Error, HttpRequest, Limits, Value};

use crate::parameters;
use crate::settings::{Login, Settings, TokenType};
use crate::token::Signer;

const STATEMENTS: &str = "/api/v2/statements";
/// What is read of an answer at most: a quarter of a session's memory, in which its rows have to stand as well. What was compressed is never
/// held as a whole.
const RESPONSE_BYTES_MAX: u64 = 16 << 20;
/// What an answer may have beside values that are all told: one value is longer as JSON, and Snowflake makes its partitions of a size of its
/// own.
const RESPONSE_BYTES_MORE: u64 = 4 << 20;
/// Of an answer without rows.
pub const SMALL_RESPONSE_BYTES: u64 = 1 << 20;
/// How times and bytes are written: by these, whatever the user's own formats are.
const FORMATS: [(&str, &str); 8] = [
    ("TIMEZONE", "UTC"),
    ("DATE_OUTPUT_FORMAT", "YYYY-MM-DD"),
    ("TIME_OUTPUT_FORMAT", "HH24:MI:SS.FF9"),
    (
        "TIMESTAMP_NTZ_OUTPUT_FORMAT",
        "YYYY-MM-DD\"T\"HH24:MI:SS.FF9",
    ),
    (
        "TIMESTAMP_LTZ_OUTPUT_FORMAT",
        "YYYY-MM-DD\"T\"HH24:MI:SS.FF9TZH:TZM",
    ),
    (
        "TIMESTAMP_TZ_OUTPUT_FORMAT",
        "YYYY-MM-DD\"T\"HH24:MI:SS.FF9TZH:TZM",
    ),
    ("BINARY_OUTPUT_FORMAT", "HEX"),
    ("QUERY_TAG", "souk"),
];

/// All that requests of one session have in common.
pub struct Api {
    pub settings: Settings,
    login: Shown,
}

/// How it is shown who asks.
enum Shown {
    ByHost(TokenType),
    Signed(Box<Signer>),
}

impl Api {
    pub fn new(settings: Settings) -> Result<Api, Error> {
        let login = match &settings.login {
            Login::Token(kind) => Shown::ByHost(*kind),
            Login::Key {
                account,
                username,
                pem,
            } => Shown::Signed(Box::new(Signer::new(account, username, pem)?)),
        };
        Ok(Api { settings, login })
    }

    /// Makes a new token where one is needed.
    pub fn renew(&mut self, now: u64) -> Result<(), Error> {
        match &mut self.login {
            Shown::ByHost(_) => Ok(()),
            Shown::Signed(signer) => signer.renew(now),
        }
    }

    /// A statement, which is carried out whether or not anybody asks after it.
    pub fn statement(
        &self,
        text: &str,
        values: &[Value],
        limits: &Limits,
    ) -> Result<Request, Error> {
        let settings = &self.settings;
        let ms = settings.statement_timeout_ms.min(limits.timeout_ms).max(1);
        let mut parameters: Map<String, Json> = FORMATS
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).into()))
            .collect();
        parameters.insert("MULTI_STATEMENT_COUNT".to_owned(), "1".into());
        // One more than is allowed tells that there are too many.
        let rows_max = limits.rows_max.saturating_add(1);
        parameters.insert("ROWS_PER_RESULTSET".to_owned(), rows_max.into());
        let mut body = json!({
            "statement": text,
            "timeout": ms.div_ceil(1_000),
            "database": settings.database,
            "parameters": parameters,
        });
        let names = [
            ("schema", &settings.schema),
            ("warehouse", &settings.warehouse),
            ("role", &settings.role),
        ];
        for (name, value) in names {
            if let Some(value) = value {
                body[name] = value.as_str().into();
            }
        }
        if !values.is_empty() {
            body["bindings"] = parameters::bindings(values)?;
        }
        let path = format!("{STATEMENTS}?requestId={}&async=true", request_id());
        Ok(Request::post(path)
            .json(body.to_string())
            .timeout_ms(limits.timeout_ms)
            .response_bytes_max(response_bytes(limits.bytes_max)))
    }

    /// The same statement once more, which Snowflake carries out once.
    pub fn again(&self, request: Request) -> Request {
        request.query("retry", true)
    }

    /// Asks after a statement, or for a later part of its rows.
    pub fn answer(&self, handle: &str, partition: Option<usize>, limits: &Limits) -> Request {
        let request = Request::get(format!("{STATEMENTS}/{}", encoded(handle)));
        let request = match partition {
            Some(partition) => request.query("partition", partition),
            None => request,
        };
        request
            .timeout_ms(limits.timeout_ms)
            .response_bytes_max(response_bytes(limits.bytes_max))
    }

    /// Stops a statement.
    pub fn stop(&self, handle: &str) -> Request {
        Request::post(format!("{STATEMENTS}/{}/cancel", encoded(handle)))
            .json("{}")
            .response_bytes_max(SMALL_RESPONSE_BYTES)
    }

    /// As it leaves: it is said who asks.
    pub fn numbered(&self, request: &Request, number: u32) -> HttpRequest {
        let request = request
            .clone()
            .header("accept", "application/json")
            // Snowflake answers nobody without a name.
            .header("user-agent", concat!("souk/", env!("CARGO_PKG_VERSION")));
        let kind = "x-snowflake-authorization-token-type";
        let request = match &self.login {
            Shown::ByHost(TokenType::ProgrammaticAccessToken) => {
                request.header(kind, "PROGRAMMATIC_ACCESS_TOKEN")
            }
            Shown::ByHost(TokenType::OAuth) => request.header(kind, "OAUTH"),
            Shown::Signed(signer) => request
                .header(kind, "KEYPAIR_JWT")
                .header("authorization", format!("Bearer {}", signer.current())),
        };
        request.numbered(number)
    }
}

fn response_bytes(bytes_max: u64) -> u64 {
    bytes_max
        .saturating_mul(2)
        .saturating_add(RESPONSE_BYTES_MORE)
        .min(RESPONSE_BYTES_MAX)
}

/// A UUID by which Snowflake knows a request that comes once more.
fn request_id() -> String {
    let random = || RandomState::new().build_hasher().finish();
    let (high, low) = (random(), random());
    format!(
        "{:08x}-{:04x}-4{:03x}-a{:03x}-{:012x}",
        high >> 32,
        high >> 16 & 0xffff,
        high & 0xfff,
        low >> 48 & 0xfff,
        low & 0xffff_ffff_ffff
    )
}
