//! What a data connection must say about itself, by the kind of source it leads to.
//!
//! Refuses to know: how anything is stored or sealed, whether an address may be dialled (the
//! egress policy of `souk-outbound`), which engines are installed. Start at [`check`].

use std::collections::{BTreeMap, BTreeSet};

use crate::fields::{FieldError, FieldErrors};

/// Long enough for any label that people give a connection.
pub const NAME_CHARS_MAX: usize = 255;
/// The longest DNS name.
pub const HOST_CHARS_MAX: usize = 253;
/// Longer than any identifier of any engine, short enough for an error message.
pub const DATABASE_CHARS_MAX: usize = 255;
/// The de-facto bound of URLs.
pub const BASE_URL_CHARS_MAX: usize = 2048;
/// A chain of a dozen certificates; more is not a CA file.
pub const CA_PEM_BYTES_MAX: usize = 64 * 1024;
/// Service-account files are about 2.5 kB.
pub const CREDENTIALS_BYTES_MAX: usize = 32 * 1024;
/// Below this a statement cannot even travel to its source and back.
pub const STATEMENT_TIMEOUT_MS_MIN: i64 = 100;
pub const STATEMENT_TIMEOUT_MS_DEFAULT: i64 = 10_000;
/// Nothing runs longer than a minute on behalf of a waiting caller.
pub const STATEMENT_TIMEOUT_MS_MAX: i64 = 60_000;
/// One path segment of every file system that matters.
pub const FILE_NAME_CHARS_MAX: usize = 128;

/// The one thing that the host grants a connector.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Need {
    Tcp,
    Http,
    Directory,
}

impl Need {
    pub fn as_str(self) -> &'static str {
        match self {
            Need::Tcp => "tcp",
            Need::Http => "http",
            Need::Directory => "directory",
        }
    }

    pub fn parse(text: &str) -> Option<Need> {
        [Need::Tcp, Need::Http, Need::Directory]
            .into_iter()
            .find(|need| need.as_str() == text)
    }

    /// The members of a connection that lead to such a source: name, and whether it is required.
    pub fn fields(self) -> &'static [(&'static str, bool)] {
        match self {
            Need::Tcp => &[
                ("host", true),
                ("port", false),
                ("database", true),
                ("ssl_mode", false),
                ("ca_pem", false),
            ],
            Need::Http => &[("base_url", true), ("database", false), ("ca_pem", false)],
            Need::Directory => &[("database", true)],
        }
    }
}

/// How the certificate of a TCP source is checked; libpq's words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SslMode {
    Disable,
    Require,
    VerifyCa,
    VerifyFull,
}

impl SslMode {
    pub const ALL: [SslMode; 4] = [
        SslMode::Disable,
        SslMode::Require,
        SslMode::VerifyCa,
        SslMode::VerifyFull,
    ];

    pub fn as_str(self) -> &'static str {
        match self {
            SslMode::Disable => "disable",
            SslMode::Require => "require",
            SslMode::VerifyCa => "verify-ca",
            SslMode::VerifyFull => "verify-full",
        }
    }

    pub fn parse(text: &str) -> Option<SslMode> {
        SslMode::ALL.into_iter().find(|mode| mode.as_str() == text)
    }
}

/// What the rules depend on.
#[derive(Debug, Clone)]
pub struct Engine {
    pub slug: String,
    pub need: Need,
    pub credential_types: Vec<String>,
    /// The members of settings and credentials that its connector reads. `None`: whatever there is.
    pub members: Option<BTreeSet<String>>,
    /// Where it listens when nobody says otherwise, if its connector knows.
    pub default_port: Option<u16>,
}

impl Engine {
    fn reads(&self, member: &str) -> bool {
        self.members
            .as_ref()
            .is_none_or(|members| members.contains(member))
    }
}

/// A connection as a client describes it, before anything is checked.
#[derive(Debug, Clone, Default)]
pub struct Draft {
    pub name: String,
    pub credential_type: String,
    pub host: Option<String>,
    pub port: Option<i64>,
    pub database: Option<String>,
    pub ssl_mode: Option<String>,
    pub base_url: Option<String>,
    pub ca_pem: Option<String>,
    pub statement_timeout_ms: Option<i64>,
    /// The scalar members of the credentials, as text. Absent: the stored ones stay.
    pub credentials: Option<BTreeMap<String, String>>,
}

/// A connection that obeys the rules: exactly the members of its engine's need are present.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Checked {
    pub name: String,
    pub credential_type: String,
    pub target: Target,
    pub statement_timeout_ms: i64,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target {
    Tcp {
        host: String,
        port: u16,
        database: String,
        ssl_mode: SslMode,
        ca_pem: Option<String>,
    },
    Http {
        base_url: String,
        /// Of an engine that has databases and was told one.
        database: Option<String>,
        ca_pem: Option<String>,
    },
    File {
        name: String,
    },
}

/// Checks a draft against its engine's rules and reports every member that breaks one.
pub fn check(engine: &Engine, draft: &Draft) -> Result<Checked, Vec<FieldError>> {
    let mut errors = FieldErrors::default();
    let name = check_name(draft, &mut errors);
    if !engine.credential_types.contains(&draft.credential_type) {
        let known = engine.credential_types.join(", ");
        let message = format!(
            "credential_type \"{}\" does not fit {}: use {known}",
            draft.credential_type, engine.slug
        );
        errors.add("credential_type", "unsupported", message);
    } else if let Some(credentials) = &draft.credentials {
        check_credentials(engine, &draft.credential_type, credentials, &mut errors);
    }
    let statement_timeout_ms = check_statement_timeout(draft, &mut errors);
    let target = match engine.need {
        Need::Tcp => check_tcp(engine, draft, &mut errors),
        Need::Http => check_http(engine, draft, &mut errors),
        Need::Directory => check_file(draft, &mut errors),
    };
    check_lengths(draft, &mut errors);
    if engine.need != Need::Tcp {
        check_ssl_mode(draft, &mut errors);
        if draft.port.is_some_and(|port| !(1..=65_535).contains(&port)) {
            errors.add("port", "out_of_range", "port must be 1 to 65535");
        }
    }
    match target {
        Some(target) => errors.or(Checked {
            name,
            credential_type: draft.credential_type.clone(),
            target,
            statement_timeout_ms,
        }),
        None => Err(errors.into_vec()),
    }
}

/// What is too long is so for engines too that have no use for it.
fn check_lengths(draft: &Draft, errors: &mut FieldErrors) {
    for (name, text, max) in [
        ("host", &draft.host, HOST_CHARS_MAX),
        ("database", &draft.database, DATABASE_CHARS_MAX),
        ("base_url", &draft.base_url, BASE_URL_CHARS_MAX),
        ("ca_pem", &draft.ca_pem, CA_PEM_BYTES_MAX),
    ] {
        let is_long = text.as_ref().is_some_and(|text| text.chars().count() > max);
        if is_long && !errors.names().any(|wrong| wrong == name) {
            let message = format!("{name} must have at most {max} characters");
            errors.add(name, "length", message);
        }
    }
}

/// The rules that hold whatever the engine is, for a draft that names none.
pub fn check_without_engine(draft: &Draft) -> Vec<FieldError> {
    let mut errors = FieldErrors::default();
    check_name(draft, &mut errors);
    if draft.credential_type.is_empty() {
        let message = "credential_type is required: see GET /storage-engines";
        errors.add("credential_type", "required", message);
    }
    check_statement_timeout(draft, &mut errors);
    errors.into_vec()
}

fn check_name(draft: &Draft, errors: &mut FieldErrors) -> String {
    let name = draft.name.trim();
    if name.is_empty() || name.chars().count() > NAME_CHARS_MAX || name.contains('\0') {
        errors.add(
            "name",
            "length",
            format!("name must have 1 to {NAME_CHARS_MAX} characters, and no NUL"),
        );
    }
    name.to_owned()
}

fn check_statement_timeout(draft: &Draft, errors: &mut FieldErrors) -> i64 {
    let milliseconds = draft
        .statement_timeout_ms
        .unwrap_or(STATEMENT_TIMEOUT_MS_DEFAULT);
    if !(STATEMENT_TIMEOUT_MS_MIN..=STATEMENT_TIMEOUT_MS_MAX).contains(&milliseconds) {
        let message = format!(
            "statement_timeout_ms must be {STATEMENT_TIMEOUT_MS_MIN} to {STATEMENT_TIMEOUT_MS_MAX}"
        );
        errors.add("statement_timeout_ms", "out_of_range", message);
    }
    milliseconds
}

/// A file's name is one path segment of letters, digits, `_`, `.` and `-` that begins with a letter,
/// a digit or `_`: nothing that a file system or a shell reads in its own way, and no hidden file.
pub fn is_file_name(name: &str) -> bool {
    let bytes = name.as_bytes();
    let plain = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
    !bytes.is_empty()
        && bytes.len() <= FILE_NAME_CHARS_MAX
        && plain(&bytes[0])
        && bytes
            .iter()
            .all(|byte| plain(byte) || matches!(byte, b'.' | b'-'))
        && !bytes.ends_with(b".")
        && !name.contains("..")
}

fn check_credentials(
    engine: &Engine,
    credential_type: &str,
    credentials: &BTreeMap<String, String>,
    errors: &mut FieldErrors,
) {
    let required: &[&str] = match credential_type {
        "PASSWORD" => &["username", "password"],
        "API_KEY" => &["api_key"],
        "SERVICE_ACCOUNT" => &["client_email", "private_key"],
        _ => &[],
    };
    for member in required.iter().filter(|member| engine.reads(member)) {
        if credentials.get(*member).is_none_or(|text| text.is_empty()) {
            let message = format!(
                "credentials of type {credential_type} need a member \"{member}\" that is a non-empty string"
            );
            errors.add("credentials", "missing_member", message);
        }
    }
    // An API key travels as a header: a line break in it would start another one.
    if credential_type == "API_KEY"
        && credentials
            .get("api_key")
            .is_some_and(|key| !key.bytes().all(|byte| (0x20..0x7f).contains(&byte)))
    {
        errors.add(
            "credentials",
            "characters",
            "\"api_key\" must be visible ASCII",
        );
    }
}

fn check_tcp(engine: &Engine, draft: &Draft, errors: &mut FieldErrors) -> Option<Target> {
    let host = draft.host.as_deref().map(str::trim).unwrap_or_default();
    let host = host
        .strip_prefix('[')
        .and_then(|inner| inner.strip_suffix(']'))
        .unwrap_or(host);
    if host.is_empty() {
        errors.add(
            "host",
            "required",
            format!("host is required for {}: a name or an address", engine.slug),
        );
    } else if !is_host(host) {
        errors.add(
            "host",
            "format",
            format!(
                "host \"{host}\" is not a name or an address: send it without scheme, port or path"
            ),
        );
    }
    let port = draft.port.or(engine.default_port.map(i64::from));
    let port = match port.map(u16::try_from) {
        Some(Ok(port)) if port > 0 => Some(port),
        Some(_) => {
            errors.add("port", "out_of_range", "port must be 1 to 65535");
            None
        }
        None => {
            errors.add(
                "port",
                "required",
                format!("port is required for {}", engine.slug),
            );
            None
        }
    };
    let database = check_database(draft, engine, errors);
    let ssl_mode = check_ssl_mode(draft, errors);
    let ca_pem = check_ca(draft, errors);
    refuse(draft.base_url.is_some(), "base_url", engine, errors);
    Some(Target::Tcp {
        host: host.to_owned(),
        port: port?,
        database: database?,
        ssl_mode: ssl_mode?,
        ca_pem,
    })
}

/// A word that is none is wrong for engines too that have no use for it.
fn check_ssl_mode(draft: &Draft, errors: &mut FieldErrors) -> Option<SslMode> {
    let ssl_mode = match draft.ssl_mode.as_deref() {
        None => Some(SslMode::Require),
        Some(text) => SslMode::parse(text),
    };
    if ssl_mode.is_none() {
        errors.add(
            "ssl_mode",
            "unsupported",
            "ssl_mode must be disable, require, verify-ca or verify-full",
        );
    }
    ssl_mode
}

fn check_http(engine: &Engine, draft: &Draft, errors: &mut FieldErrors) -> Option<Target> {
    let ca_pem = check_ca(draft, errors);
    let names_one = draft
        .database
        .as_deref()
        .is_some_and(|name| !name.is_empty());
    let database = match names_one && engine.reads("database") {
        true => check_database(draft, engine, errors),
        false => None,
    };
    let Some(text) = draft
        .base_url
        .as_deref()
        .map(str::trim)
        .filter(|text| !text.is_empty())
    else {
        errors.add(
            "base_url",
            "required",
            "base_url is required: https://host[:port][/path]",
        );
        return None;
    };
    match check_base_url(text) {
        Ok(base_url) => Some(Target::Http {
            base_url,
            database,
            ca_pem,
        }),
        Err(message) => {
            errors.add("base_url", "format", message);
            None
        }
    }
}

fn check_file(draft: &Draft, errors: &mut FieldErrors) -> Option<Target> {
    match draft.database.as_deref().unwrap_or_default() {
        "" => {
            errors.add(
                "database",
                "required",
                "database is required: the name of one of the company's files",
            );
            None
        }
        name if !is_file_name(name) => {
            errors.add(
                "database",
                "format",
                format!("\"{name}\" is not a file's name"),
            );
            None
        }
        name => Some(Target::File {
            name: name.to_owned(),
        }),
    }
}

fn check_database(draft: &Draft, engine: &Engine, errors: &mut FieldErrors) -> Option<String> {
    let database = draft.database.as_deref().unwrap_or_default();
    // An engine that has no databases, such as a cache.
    if database.is_empty() && !engine.reads("database") {
        return Some(String::new());
    }
    if database.is_empty() {
        errors.add(
            "database",
            "required",
            format!("database is required for {}", engine.slug),
        );
        return None;
    }
    if database.chars().count() > DATABASE_CHARS_MAX || database.chars().any(char::is_control) {
        errors.add(
            "database",
            "format",
            format!("database must have at most {DATABASE_CHARS_MAX} printable characters"),
        );
        return None;
    }
    Some(database.to_owned())
}

/// Only the frame is checked here; whether the certificate is any good shows when it is used.
fn check_ca(draft: &Draft, errors: &mut FieldErrors) -> Option<String> {
    let pem = draft
        .ca_pem
        .as_deref()
        .filter(|pem| !pem.trim().is_empty())?;
    if pem.len() > CA_PEM_BYTES_MAX {
        errors.add(
            "ca_pem",
            "length",
            format!("ca_pem must have at most {CA_PEM_BYTES_MAX} bytes"),
        );
    } else if pem.contains('\0') {
        errors.add("ca_pem", "format", "ca_pem must be text");
    } else if pem.contains("PRIVATE KEY") {
        errors.add(
            "ca_pem",
            "format",
            "ca_pem holds a private key: send the CA's certificate only",
        );
    } else if !(pem.contains("-----BEGIN CERTIFICATE-----")
        && pem.contains("-----END CERTIFICATE-----"))
    {
        errors.add(
            "ca_pem",
            "format",
            "ca_pem must hold at least one PEM block \"CERTIFICATE\"",
        );
    }
    Some(pem.to_owned())
}

/// `http` and `https`, a host, no credentials, query or fragment. Returned without its last slash.
pub fn check_base_url(text: &str) -> Result<String, String> {
    if text.len() > BASE_URL_CHARS_MAX {
        return Err(format!(
            "base_url must have at most {BASE_URL_CHARS_MAX} characters"
        ));
    }
    let url = url::Url::parse(text).map_err(|error| format!("base_url is not a URL: {error}"))?;
    if !matches!(url.scheme(), "http" | "https") || url.host_str().is_none_or(str::is_empty) {
        return Err("base_url must begin with https:// (or http://) and name a host".to_owned());
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(
            "base_url must not hold a user name or password: send them as credentials".to_owned(),
        );
    }
    if url.query().is_some() || url.fragment().is_some() {
        return Err("base_url must not have a query or a fragment".to_owned());
    }
    if url.port() == Some(0) {
        return Err("base_url must not name port 0".to_owned());
    }
    Ok(url.as_str().trim_end_matches('/').to_owned())
}

fn is_host(host: &str) -> bool {
    if host.parse::<std::net::IpAddr>().is_ok() {
        return true;
    }
    let label = |label: &str| {
        (1..=63).contains(&label.len())
            && label
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'))
            && !label.starts_with('-')
            && !label.ends_with('-')
    };
    host.len() <= HOST_CHARS_MAX && host.strip_suffix('.').unwrap_or(host).split('.').all(label)
}

fn refuse(present: bool, field: &'static str, engine: &Engine, errors: &mut FieldErrors) {
    if present {
        errors.add(
            field,
            "unsupported",
            format!("{field} has no meaning for {}", engine.slug),
        );
    }
}

#[cfg(test)]
#[path = "connections_tests.rs"]
mod tests;
