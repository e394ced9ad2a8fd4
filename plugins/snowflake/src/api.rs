//! The SQL API: what a request looks like.

use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};

use serde::ser::{Serialize, SerializeMap, Serializer};
use souk_sdk::http::{Request, encoded};
use souk_sdk::{Error, HttpRequest, Limits, Value};

use crate::parameters::{Bindings, bindings};
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

/// A statement as it is asked, and asked again.
#[derive(Default)]
pub struct Asked {
    text: String,
    bindings: Bindings,
    /// By which Snowflake knows it.
    request_id: String,
}

impl Asked {
    pub fn new(text: String, values: &[Value]) -> Result<Asked, Error> {
        Ok(Asked {
            text,
            bindings: bindings(values)?,
            request_id: request_id(),
        })
    }
}

/// It, and what bounds it, as the API takes that: written straight into its request.
#[derive(serde::Serialize)]
struct Body<'a> {
    statement: &'a str,
    timeout: u32,
    database: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    schema: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    warehouse: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    role: Option<&'a str>,
    parameters: Parameters,
    #[serde(skip_serializing_if = "Bindings::is_empty")]
    bindings: &'a Bindings,
}

/// Those of the session that a statement has to itself.
struct Parameters {
    rows_max: u32,
}

impl Serialize for Parameters {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let mut map = to.serialize_map(Some(FORMATS.len() + 2))?;
        for (name, value) in FORMATS {
            map.serialize_entry(name, value)?;
        }
        map.serialize_entry("MULTI_STATEMENT_COUNT", "1")?;
        map.serialize_entry("ROWS_PER_RESULTSET", &self.rows_max)?;
        map.end()
    }
}

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

    /// A statement, which is carried out whether or not anybody asks after it. One that is asked again is carried out once.
    pub fn statement(&self, asked: &Asked, limits: &Limits, is_again: bool) -> Request {
        let settings = &self.settings;
        let ms = settings.statement_timeout_ms.min(limits.timeout_ms).max(1);
        let body = Body {
            statement: &asked.text,
            timeout: ms.div_ceil(1_000),
            database: &settings.database,
            schema: settings.schema.as_deref(),
            warehouse: settings.warehouse.as_deref(),
            role: settings.role.as_deref(),
            parameters: Parameters {
                // One more than is allowed tells that there are too many.
                rows_max: limits.rows_max.saturating_add(1),
            },
            bindings: &asked.bindings,
        };
        // A Vec takes everything, and its members' names are texts.
        let body = serde_json::to_vec(&body).unwrap_or_default();
        let again = if is_again { "&retry=true" } else { "" };
        let id = &asked.request_id;
        Request::post(format!("{STATEMENTS}?requestId={id}&async=true{again}"))
            .json(body)
            .timeout_ms(limits.timeout_ms)
            .response_bytes_max(response_bytes(limits.bytes_max))
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
    pub fn numbered(&self, request: Request, number: u32) -> HttpRequest {
        let request = request
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
                .header("authorization", signer.authorization()),
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
