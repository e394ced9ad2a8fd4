//! What an author tells the kit: where a source is, and what is known of it. A file in TOML:
//!
//! ```toml
//! [source]
//! address = "127.0.0.1:6379"        # tcp; or base_url = "http://…"; or file = "data/people.csv"
//! tls = "disable"                   # require, verify-ca, verify-full; ca_file = "ca.pem"
//! [source.settings]
//! username = "reader"
//! password = { env = "REDIS_PASSWORD" }
//!
//! [table]                           # else the first one of the catalog
//! schema = "public"
//! name = "people"
//! key = ["id"]
//!
//! [[query]]                         # a statement and the rows that it must have, as JSON
//! text = "GET greeting"
//! parameters = ["ada", 7, { decimal = "1.50" }]
//! rows = '[["hello"]]'
//!
//! [[call]]                          # a function of an API: function or path, and what it must answer
//! function = "sum_goals"
//! parameters = '{"team": "Ajax"}'
//! answer = "21"
//!
//! [[write]]                         # statements that must be refused
//! text = "SET greeting bye"
//!
//! [[answer]]                        # a server that the kit starts itself, in place of a source: HTTP …
//! path = "/scores"
//! body = '[["Ada", 7]]'
//!
//! [[line]]                          # … or a tcp server that answers lines with lines
//! receives = "GET greeting"
//! sends = ["+hello"]
//! ```

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde_json::{Map, Value as Json};
use souk_outbound::TlsMode;
use souk_sandbox::Value;

/// Why a profile cannot be used. Every message says what to change.
#[derive(Debug, thiserror::Error)]
pub enum ProfileError {
    #[error("cannot read {path}: {source}")]
    Unreadable {
        path: PathBuf,
        source: std::io::Error,
    },
    #[error("{path}: {reason}")]
    Malformed { path: PathBuf, reason: String },
    #[error(
        "the setting \"{name}\" is to come from the environment, and {variable} is not set there"
    )]
    NoVariable { name: String, variable: String },
    #[error("{0}")]
    Invalid(String),
}

/// Where the source is: the one thing that the connector is granted.
#[derive(Clone, Debug)]
pub enum Place {
    Tcp {
        host: String,
        port: u16,
        tls: TlsMode,
        ca_pem: Option<String>,
    },
    Http {
        base_url: String,
        ca_pem: Option<String>,
    },
    /// One file; its directory is granted, and `database` of the settings is its name.
    File(PathBuf),
}

/// All that the kit is told.
#[derive(Clone, Debug, Default)]
pub struct Profile {
    /// One of the connector's engines; without it the first.
    pub engine: Option<String>,
    pub place: Option<Place>,
    pub settings: Map<String, Json>,
    pub table: Option<Table>,
    pub queries: Vec<Query>,
    pub calls: Vec<Call>,
    pub writes: Vec<Write>,
    pub answers: Vec<ScriptedAnswer>,
    pub lines: Vec<ScriptedLine>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Table {
    pub schema: Option<String>,
    pub name: String,
    /// Columns that tell its rows apart.
    #[serde(default)]
    pub key: Vec<String>,
}

#[derive(Clone, Debug)]
pub struct Query {
    pub text: String,
    pub parameters: Vec<Value>,
    /// What each row must hold, as the JSON that a buyer would read.
    pub rows: Option<Vec<Vec<String>>>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Call {
    pub function: Option<String>,
    pub path: Option<String>,
    /// A JSON object.
    #[serde(default = "no_parameters")]
    pub parameters: String,
    /// JSON.
    pub answer: Option<String>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Write {
    pub text: String,
}

/// What the kit's own HTTP server answers.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScriptedAnswer {
    #[serde(default = "get")]
    pub method: String,
    /// With the query, if there is one.
    pub path: String,
    #[serde(default = "ok")]
    pub status: u16,
    #[serde(default)]
    pub headers: BTreeMap<String, String>,
    #[serde(default)]
    pub body: String,
}

/// What the kit's own tcp server answers.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScriptedLine {
    pub receives: String,
    #[serde(default)]
    pub sends: Vec<String>,
}

fn no_parameters() -> String {
    "{}".to_owned()
}

fn get() -> String {
    "GET".to_owned()
}

fn ok() -> u16 {
    200
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default)]
    source: SourceTable,
    table: Option<Table>,
    #[serde(default)]
    query: Vec<QueryTable>,
    #[serde(default)]
    call: Vec<Call>,
    #[serde(default)]
    write: Vec<Write>,
    #[serde(default)]
    answer: Vec<ScriptedAnswer>,
    #[serde(default)]
    line: Vec<ScriptedLine>,
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields, default)]
struct SourceTable {
    engine: Option<String>,
    address: Option<String>,
    base_url: Option<String>,
    file: Option<PathBuf>,
    tls: Option<String>,
    ca_file: Option<PathBuf>,
    settings: toml::Table,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct QueryTable {
    text: String,
    #[serde(default)]
    parameters: Vec<Json>,
    rows: Option<String>,
}

impl Profile {
    /// Reads a file; what it names is relative to its directory.
    pub fn read(path: &Path) -> Result<Profile, ProfileError> {
        let text = std::fs::read_to_string(path).map_err(|source| ProfileError::Unreadable {
            path: path.to_owned(),
            source,
        })?;
        let directory = path.parent().unwrap_or(Path::new("."));
        Profile::parse(&text, directory).map_err(|error| match error {
            ProfileError::Invalid(reason) => ProfileError::Malformed {
                path: path.to_owned(),
                reason,
            },
            other => other,
        })
    }

    /// Reads the text of a file that lies in `directory`.
    pub fn parse(text: &str, directory: &Path) -> Result<Profile, ProfileError> {
        let file: File =
            toml::from_str(text).map_err(|error| ProfileError::Invalid(error.to_string()))?;
        let source = file.source;
        let mut settings = Map::new();
        for (name, value) in source.settings {
            let value = setting(&name, value)?;
            settings.insert(name, value);
        }
        let ca_pem = source.ca_file.map(|file| read(&directory.join(file)));
        let ca_pem = ca_pem.transpose()?;
        let places = [
            source.address.is_some(),
            source.base_url.is_some(),
            source.file.is_some(),
        ];
        if places.into_iter().filter(|given| *given).count() > 1 {
            return Err(ProfileError::Invalid(
                "[source] takes one of address (tcp), base_url (http) and file (directory)"
                    .to_owned(),
            ));
        }
        let place = match (source.address, source.base_url, source.file) {
            (Some(address), _, _) => {
                Some(Place::tcp(&address, source.tls.as_deref(), ca_pem.clone())?)
            }
            (_, Some(base_url), _) => Some(Place::Http { base_url, ca_pem }),
            (_, _, Some(file)) => Some(Place::File(directory.join(file))),
            _ => None,
        };
        let queries = file.query.into_iter().map(query);
        Ok(Profile {
            engine: source.engine,
            place,
            settings,
            table: file.table,
            queries: queries.collect::<Result<_, _>>()?,
            calls: file.call,
            writes: file.write,
            answers: file.answer,
            lines: file.line,
        })
    }
}

impl Place {
    /// `host:port`, and libpq's words for TLS; without one there is none.
    pub fn tcp(
        address: &str,
        tls: Option<&str>,
        ca_pem: Option<String>,
    ) -> Result<Place, ProfileError> {
        let found = address.rsplit_once(':').and_then(|(host, port)| {
            let host = host.trim_start_matches('[').trim_end_matches(']');
            Some((host.to_owned(), port.parse().ok()?))
        });
        let (host, port) = found.filter(|(host, _)| !host.is_empty()).ok_or_else(|| {
            ProfileError::Invalid(format!(
                "the address {address:?} must be HOST:PORT, as in 127.0.0.1:6379"
            ))
        })?;
        let tls = match tls.unwrap_or("disable") {
            "disable" => TlsMode::Disable,
            "require" => TlsMode::Require,
            "verify-ca" => TlsMode::VerifyCa,
            "verify-full" => TlsMode::VerifyFull,
            other => {
                return Err(ProfileError::Invalid(format!(
                    "tls is {other:?}: use disable, require, verify-ca or verify-full"
                )));
            }
        };
        Ok(Place::Tcp {
            host,
            port,
            tls,
            ca_pem,
        })
    }
}

fn read(path: &Path) -> Result<String, ProfileError> {
    std::fs::read_to_string(path).map_err(|source| ProfileError::Unreadable {
        path: path.to_owned(),
        source,
    })
}

/// A setting as JSON; `{ env = "NAME" }` is read from the environment, so that no secret is kept in the file.
fn setting(name: &str, value: toml::Value) -> Result<Json, ProfileError> {
    if let toml::Value::Table(table) = &value
        && table.len() == 1
        && let Some(toml::Value::String(variable)) = table.get("env")
    {
        let found = std::env::var(variable).map_err(|_| ProfileError::NoVariable {
            name: name.to_owned(),
            variable: variable.clone(),
        })?;
        return Ok(Json::String(found));
    }
    serde_json::to_value(value)
        .map_err(|error| ProfileError::Invalid(format!("the setting \"{name}\": {error}")))
}

fn query(table: QueryTable) -> Result<Query, ProfileError> {
    let parameters = table.parameters.iter().map(parameter);
    let rows = table.rows.as_deref().map(rows).transpose()?;
    Ok(Query {
        parameters: parameters.collect::<Result<_, _>>()?,
        text: table.text,
        rows,
    })
}

/// Rows as JSON, each value kept as it was written: digits are compared, not floats.
fn rows(text: &str) -> Result<Vec<Vec<String>>, ProfileError> {
    let rows: Vec<Vec<Box<serde_json::value::RawValue>>> =
        serde_json::from_str(text).map_err(|error| {
            ProfileError::Invalid(format!(
                "rows must be a JSON array of arrays, as in [[\"Ada\", 7]]: {error}"
            ))
        })?;
    let values = |row: Vec<Box<serde_json::value::RawValue>>| {
        row.iter().map(|value| value.get().to_owned()).collect()
    };
    Ok(rows.into_iter().map(values).collect())
}

/// A parameter as JSON: a text, a number, true, or `{"decimal": "1.50"}`, `{"date": 19723}` (days), `{"time": 0}`, `{"timestamp": 0}` and
/// `{"local_timestamp": 0}` (microseconds),
/// `{"json": "[1]"}`, `{"null": true}`.
pub fn parameter(value: &Json) -> Result<Value, ProfileError> {
    let typed = |value: &Map<String, Json>| {
        let (kind, value) = value.iter().next().filter(|_| value.len() == 1)?;
        Some(match (kind.as_str(), value) {
            ("null", _) => Value::Null(None),
            ("decimal", Json::String(digits)) => Value::Decimal(digits.clone()),
            ("json", Json::String(text)) => Value::Json(text.clone()),
            ("text", Json::String(text)) => Value::Text(text.clone()),
            ("date", value) => Value::Date(i32::try_from(value.as_i64()?).ok()?),
            ("time", value) => Value::Time(value.as_i64()?),
            ("timestamp", value) => Value::Timestamp(value.as_i64()?),
            ("local_timestamp", value) => Value::LocalTimestamp(value.as_i64()?),
            _ => return None,
        })
    };
    let parsed = match value {
        Json::Null => Some(Value::Null(None)),
        Json::Bool(value) => Some(Value::Boolean(*value)),
        Json::Number(number) => match number.as_i64() {
            Some(value) => Some(Value::Int64(value)),
            None => number.as_f64().map(Value::Float64),
        },
        Json::String(text) => Some(Value::Text(text.clone())),
        Json::Object(members) => typed(members),
        Json::Array(_) => None,
    };
    parsed.ok_or_else(|| {
        ProfileError::Invalid(format!(
            "the parameter {value} is none: use a text, a number, true, or one of {{\"decimal\": \"1.50\"}}, {{\"date\": days}}, {{\"time\": microseconds}}, {{\"timestamp\": microseconds}}, {{\"local_timestamp\": microseconds}}, {{\"json\": \"…\"}}, {{\"null\": true}}"
        ))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const WHOLE: &str = r#"
        [source]
        engine = "redis"
        address = "[::1]:6379"
        tls = "require"
        [source.settings]
        username = "reader"
        port_of_call = 7
        [table]
        name = "people"
        [[query]]
        text = "GET greeting"
        parameters = ["ada", 7, 1.5, true, { decimal = "1.50" }, { null = true }]
        rows = '[["hello", 1.50]]'
        [[call]]
        function = "sum"
        [[answer]]
        path = "/scores"
        [[line]]
        receives = "PING"
        sends = ["+PONG"]
    "#;

    /// Everything that the documentation shows is read, and digits stay digits.
    #[test]
    fn a_profile_is_read() {
        let profile = Profile::parse(WHOLE, Path::new("/p")).unwrap();
        assert!(matches!(
            profile.place,
            Some(Place::Tcp { ref host, port: 6379, tls: TlsMode::Require, .. }) if host == "::1"
        ));
        assert_eq!(profile.settings["port_of_call"], 7);
        let query = &profile.queries[0];
        assert_eq!(query.parameters[4], Value::Decimal("1.50".to_owned()));
        assert_eq!(query.parameters[5], Value::Null(None));
        assert_eq!(
            query.rows.as_ref().unwrap()[0],
            ["\"hello\"".to_owned(), "1.50".to_owned()]
        );
        assert_eq!(profile.answers[0].status, 200);
    }

    /// What is wrong is named, with what to write instead.
    #[test]
    fn a_wrong_profile_is_explained() {
        for (text, word) in [
            ("[sauce]", "sauce"),
            ("[source]\naddress = \"localhost\"", "HOST:PORT"),
            ("[source]\naddress = \"a:1\"\nfile = \"b\"", "one of"),
            ("[source]\naddress = \"a:1\"\ntls = \"on\"", "verify-full"),
            (
                "[source.settings]\nkey = { env = \"SOUK_NO_SUCH_VARIABLE\" }",
                "SOUK_NO_SUCH_VARIABLE",
            ),
            ("[[query]]\ntext = \"x\"\nrows = \"7\"", "array"),
            (
                "[[query]]\ntext = \"x\"\nparameters = [[1]]",
                "is none: use a text",
            ),
        ] {
            let error = Profile::parse(text, Path::new(".")).unwrap_err();
            assert!(error.to_string().contains(word), "{text}: {error}");
        }
    }
}
