//! The HTTP interface: what a request looks like.

use souk_sdk::http::encoded;
use souk_sdk::parameters::refused;
use souk_sdk::{Header, HttpRequest, Limits, Value, short};
use std::fmt::Write;

use crate::parameters;
use crate::settings::Settings;

/// The format that is asked for, and that an answer must say it has.
pub const FORMAT: &str = "RowBinaryWithNamesAndTypes";
/// What the host reads of a response at most, as much as the largest page (16 MiB) asks for: it is one answer, in which a text of one letter takes
/// two bytes. It stands in a session's 64 MiB beside the rows that it becomes.
const RESPONSE_BYTES_MAX: u64 = 33 << 20;
/// Of an answer without rows.
const SMALL_RESPONSE_BYTES: u64 = 1 << 20;
/// No value takes more in the server's memory than so many times what it takes in an answer: an empty text, of which the length is kept.
const MEMORY_FACTOR: u64 = 10;
/// What stands in an answer beside the values: names and types, lengths, marks of NULL.
const OVERHEAD_BYTES: u64 = 1 << 20;
/// What an address has beside what stands in every one, so that it is written without being moved.
const PATH_BYTES: usize = 400;
/// The user, the key and what a body is.
const HEADERS_MAX: usize = 3;
/// What a part of a form has beside its boundary and its value.
const PART_BYTES: usize = 70;

/// How much a user's profile leaves to us: the value that its setting `readonly` has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Profile {
    /// We hold read-only ourselves, and send settings.
    Free,
    /// It is held, and settings may be sent (2).
    ReadOnly,
    /// It is held, and no setting may be sent (1).
    Fixed,
}

/// All that requests of one session have in common.
pub struct Api {
    user: Option<String>,
    password: String,
    /// What stands in every address behind the name of its statement.
    usual: String,
    timeout_ms: u32,
    pub profile: Profile,
    /// Whether the server knows how to write JSON as text.
    pub writes_json: bool,
}

impl Api {
    pub fn new(settings: Settings) -> Api {
        let mut usual = format!("&default_format={FORMAT}&wait_end_of_query=1");
        if let Some(database) = &settings.database {
            add(&mut usual, "database", database);
        }
        Api {
            usual,
            timeout_ms: settings.statement_timeout_ms(),
            user: settings.username,
            password: settings.password,
            profile: Profile::Free,
            writes_json: false,
        }
    }

    /// Whether JSON comes as text.
    pub fn json_as_text(&self) -> bool {
        self.writes_json && self.profile != Profile::Fixed
    }

    /// A statement for rows, with what bounds it at the server.
    pub fn query(
        &self,
        id: u32,
        query_id: &str,
        text: String,
        values: &[Vec<u8>],
        limits: &Limits,
    ) -> HttpRequest {
        let mut path = self.path(query_id);
        self.bound(&mut path, limits);
        let mut request = self.request(id, path, limits.timeout_ms);
        request.response_bytes_max = response_bytes(limits.bytes_max);
        match values {
            [] => request.body = text.into_bytes(),
            values => form(&mut request, &text, values),
        }
        request
    }

    /// A statement of our own, with only what keeps it from writing.
    pub fn own(
        &self,
        id: u32,
        query_id: &str,
        text: &str,
        timeout_ms: u32,
        held: bool,
    ) -> HttpRequest {
        let mut path = self.path(query_id);
        if held {
            self.hold(&mut path);
        }
        let mut request = self.request(id, path, timeout_ms);
        request.body = text.as_bytes().to_vec();
        request
    }

    fn path(&self, query_id: &str) -> String {
        let mut path = String::with_capacity(PATH_BYTES + self.usual.len());
        for part in ["/?query_id=", query_id, self.usual.as_str()] {
            path.push_str(part);
        }
        path
    }

    fn hold(&self, path: &mut String) {
        match self.profile {
            Profile::Free => path.push_str("&readonly=1"),
            Profile::ReadOnly => path.push_str("&readonly=2"),
            Profile::Fixed => {}
        }
    }

    fn bound(&self, path: &mut String, limits: &Limits) {
        self.hold(path);
        if self.profile == Profile::Fixed {
            return;
        }
        let ms = self.timeout_ms.min(limits.timeout_ms).max(1);
        let (seconds, thousandths) = (ms / 1_000, ms % 1_000);
        let (rows, bytes) = (
            limits.rows_max,
            response_bytes(limits.bytes_max) * MEMORY_FACTOR,
        );
        // At once: each of them is of signs that have no meaning in a path. A String takes everything.
        let _ = write!(
            path,
            "&max_execution_time={seconds}.{thousandths:03}&timeout_overflow_mode=throw\
             &max_result_rows={rows}&max_result_bytes={bytes}&result_overflow_mode=throw\
             &cancel_http_readonly_queries_on_client_close=1"
        );
        if self.writes_json {
            // Until 25.8 its whole numbers would be texts.
            path.push_str(
                "&output_format_binary_write_json_as_string=1&output_format_json_quote_64bit_integers=0",
            );
        }
    }

    fn request(&self, id: u32, path: String, timeout_ms: u32) -> HttpRequest {
        let mut headers = Vec::with_capacity(HEADERS_MAX);
        if let Some(user) = &self.user {
            headers.push(header("x-clickhouse-user", user.as_str()));
            headers.push(header("x-clickhouse-key", self.password.as_str()));
        }
        HttpRequest {
            id,
            method: "POST".into(),
            path,
            headers,
            body: Vec::new(),
            timeout_ms,
            response_bytes_max: SMALL_RESPONSE_BYTES,
        }
    }
}

fn response_bytes(bytes_max: u64) -> u64 {
    bytes_max
        .saturating_mul(2)
        .saturating_add(OVERHEAD_BYTES)
        .min(RESPONSE_BYTES_MAX)
}

fn add(path: &mut String, name: &str, value: &str) {
    // A String takes everything.
    let _ = write!(path, "&{name}={}", encoded(value));
}

fn header(name: &str, value: impl Into<String>) -> Header {
    Header {
        name: name.to_owned(),
        value: value.into(),
    }
}

/// The statement and its parameters as a form: an address has no room for them, and is written into logs.
fn form(request: &mut HttpRequest, text: &str, values: &[Vec<u8>]) {
    let mut boundary = "souk-end-of-part".to_owned();
    let occurs = |boundary: &str| {
        let mut all = values.iter().map(Vec::as_slice).chain([text.as_bytes()]);
        all.any(|value| has(value, boundary.as_bytes()))
    };
    // Each round it is longer than anything that was made for the one before.
    while occurs(&boundary) {
        boundary.push('-');
    }
    let bytes: usize = values.iter().map(Vec::len).sum();
    let parts = PART_BYTES + boundary.len();
    let mut body = Vec::with_capacity(text.len() + bytes + parts * (values.len() + 2));
    let mut part = |name: &str, value: &[u8]| {
        for piece in [
            b"--".as_slice(),
            boundary.as_bytes(),
            b"\r\nContent-Disposition: form-data; name=\"",
            name.as_bytes(),
            b"\"\r\n\r\n",
            value,
            b"\r\n",
        ] {
            short::append(&mut body, piece);
        }
    };
    part("query", text.as_bytes());
    for (place, value) in values.iter().enumerate() {
        part(&format!("param_p{}", place + 1), value);
    }
    for piece in ["--", &boundary, "--\r\n"] {
        short::append(&mut body, piece.as_bytes());
    }
    let kind = ["multipart/form-data; boundary=", &boundary].concat();
    request.headers.push(header("content-type", kind));
    request.body = body;
}

/// Whether a part stands anywhere in a value.
fn has(value: &[u8], part: &[u8]) -> bool {
    let Some(first) = part.first() else {
        return true;
    };
    let begins = value.iter().enumerate().filter(|(_, byte)| *byte == first);
    let mut rests = begins.map(|(at, _)| &value[at..]);
    rests.any(|rest| rest.starts_with(part))
}

/// Texts of bound values, in their order.
pub fn texts(values: &[Value]) -> Result<Vec<Vec<u8>>, souk_sdk::Error> {
    let texts = values.iter().enumerate();
    texts
        .map(|(place, value)| parameters::text_of(value).map_err(|wanted| refused(place, wanted)))
        .collect()
}
