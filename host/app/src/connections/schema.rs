//! A connector's JSON Schema of its settings: which members it is told, which of them are secrets, which the host sends in their place, and
//! whether what somebody wants to save follows it.
//!
//! The schema is whoever's the connector is, so checking it must end, and take little memory: it is small ([`SCHEMA_BYTES_MAX`]), it refers to
//! nothing (`$ref`), and its patterns are few ([`PATTERNS_MAX`]), small ([`PATTERN_MEMORY_MAX`]) and matched in linear time.

use std::collections::BTreeSet;

use jsonschema::PatternOptions;
use jsonschema::error::ValidationErrorKind;
use serde_json::{Map, Value};
use souk_domain::fields::FieldError;
use souk_domain::spelling::is_near;
use souk_sandbox::{EngineInfo, refused_header};

/// A form for people with a hundred fields is smaller.
pub(crate) const SCHEMA_BYTES_MAX: usize = 16 * 1024;
/// Patterns in it. Each is compiled whenever a connection is saved.
const PATTERNS_MAX: usize = 32;
/// What each of them may take once it is compiled: a counted class of letters (`\pL{200}`) multiplies a few characters by a million.
const PATTERN_MEMORY_MAX: usize = 512 << 10;
/// Values of the settings times values of the schema: each may be held against each, and what is wrong with it is put together before the first of it
/// is looked at. It takes a second at most, which no one else's computing can interrupt.
const CHECKS_MAX: usize = 100_000;
/// How many values of a schema a multiple of a fraction counts for: whether a number is one is found with numbers of three hundred digits.
const FRACTION_COUNTS: usize = 500;
/// So many bytes of a text count for a value more: a rule may look at each of them.
const TEXT_BYTES: usize = 128;
/// What is told of all that is wrong.
const ERRORS_MAX: usize = 50;
/// What a connection says itself: members of the body and not of the credentials.
const OF_CONNECTION: [&str; 6] = [
    "host",
    "port",
    "database",
    "ssl_mode",
    "base_url",
    "statement_timeout_ms",
];
/// Names the header in which the host sends a member that the connector is not told.
const HEADER: &str = "x-souk-header";
/// What stands before the value there: `Bearer `.
const HEADER_PREFIX: &str = "x-souk-header-prefix";
/// Words that make a schema refer to another one, or to itself.
const REFERENCES: [&str; 3] = ["$ref", "$dynamicRef", "$recursiveRef"];
/// Words by which a validator compiles patterns again wherever they stand, without a bound.
const UNBOUNDED: [&str; 2] = ["unevaluatedProperties", "unevaluatedItems"];
/// Keys of a service account are a file that somebody else wrote.
const WHOLE_FILE: &str = "SERVICE_ACCOUNT";
/// As many members of such a file are looked at: whoever sends more of them means something else.
const LOOKED_AT_MAX: usize = 100;

/// What a connector asks for.
pub(crate) struct Asked {
    schema: Value,
}

/// A header that the host adds when a request leaves.
#[derive(PartialEq)]
pub(crate) struct Header<'a> {
    pub member: &'a str,
    pub name: &'a str,
    pub prefix: &'a str,
}

impl Asked {
    pub fn of(engine: &EngineInfo) -> Asked {
        Asked::by(&engine.settings_schema)
    }

    pub fn by(settings_schema: &str) -> Asked {
        Asked {
            schema: serde_json::from_str(settings_schema).unwrap_or_default(),
        }
    }

    /// Whether what is put together for the one does for the other: texts and bounds may differ.
    pub fn is_like(&self, other: &Asked) -> bool {
        self.members() == other.members() && self.headers().eq(other.headers())
    }

    fn properties(&self) -> Option<&Map<String, Value>> {
        self.schema.get("properties").and_then(Value::as_object)
    }

    /// The members that it names. `None`: all there are.
    pub fn members(&self) -> Option<BTreeSet<String>> {
        Some(self.properties()?.keys().cloned().collect())
    }

    /// Where the engine listens when nobody says otherwise.
    pub fn default_port(&self) -> Option<u16> {
        let port = self.properties()?.get("port")?.get("default")?;
        u16::try_from(port.as_u64()?).ok()
    }

    /// Whether it names this member; a schema that names none asks for everything.
    pub fn names(&self, member: &str) -> bool {
        self.properties()
            .is_none_or(|properties| properties.contains_key(member))
    }

    /// What the host sends in its place.
    pub fn headers(&self) -> impl Iterator<Item = Header<'_>> {
        let properties = self.properties().into_iter().flatten();
        properties.filter_map(|(member, property)| {
            Some(Header {
                member,
                name: property.get(HEADER)?.as_str()?,
                prefix: property
                    .get(HEADER_PREFIX)
                    .and_then(Value::as_str)
                    .unwrap_or_default(),
            })
        })
    }

    /// What the connector is told of all that is known.
    pub fn told(&self, mut settings: Map<String, Value>) -> Map<String, Value> {
        settings.retain(|name, _| {
            self.names(name) && self.headers().all(|header| header.member != name)
        });
        settings
    }

    /// What is wrong with `settings`, of which `credentials` are a part, by the fields of a connection. No message repeats a value.
    pub fn check(
        &self,
        settings: &Map<String, Value>,
        credential_type: &str,
        credentials: &Map<String, Value>,
    ) -> Vec<FieldError> {
        let mut errors = Vec::new();
        let unknown = credentials
            .keys()
            .filter(|name| !self.names(name) && !OF_CONNECTION.contains(&name.as_str()));
        match credential_type {
            WHOLE_FILE => {
                let misspelt = unknown.take(LOOKED_AT_MAX);
                let misspelt = misspelt.filter_map(|name| self.misspelt(name, credentials));
                errors.extend(misspelt.take(ERRORS_MAX));
            }
            _ => errors.extend(unknown.take(ERRORS_MAX).map(|name| self.unknown(name))),
        }
        for header in self.headers() {
            let value = settings.get(header.member).and_then(Value::as_str);
            if value.is_some_and(|value| !value.bytes().all(|byte| (0x20..0x7f).contains(&byte))) {
                let message = format!("is sent as the header {}: use visible ASCII", header.name);
                errors.push(FieldError::new(field(header.member), "characters", message));
            }
        }
        // One that was stored before schemas were checked.
        let Ok(validator) = compiled(&self.schema) else {
            return errors;
        };
        let settings = Value::Object(
            settings
                .iter()
                .filter(|(name, _)| self.names(name))
                .map(|(name, value)| (name.clone(), value.clone()))
                .collect(),
        );
        let checks = rules(&self.schema).saturating_mul(values(&settings));
        if checks > CHECKS_MAX {
            let message =
                "have more values than this engine's connector can be asked about: leave some out";
            errors.push(FieldError::new("credentials", "too_many", message));
            return errors;
        }
        for error in validator.iter_errors(&settings).take(ERRORS_MAX) {
            match error.kind() {
                ValidationErrorKind::Required { property } => {
                    let name = property.as_str().unwrap_or_default();
                    let message = "is required by this engine's connector";
                    errors.push(FieldError::new(field(name), "required", message));
                }
                ValidationErrorKind::AdditionalProperties { unexpected } => {
                    let unexpected = unexpected.iter().take(ERRORS_MAX);
                    errors.extend(unexpected.map(|name| self.unknown(name)));
                }
                _ => {
                    let place = error.instance_path().as_str();
                    let place = place.trim_start_matches('/').replace('/', ".");
                    let message = format!("{}", error.masked_with("the value"));
                    errors.push(FieldError::new(field(&place), "invalid", message));
                }
            }
        }
        errors
    }

    /// A file that somebody else wrote has members that nobody reads here. Not those that look like one which is read, and is not there.
    fn misspelt(&self, name: &str, credentials: &Map<String, Value>) -> Option<FieldError> {
        let mut known = self.properties()?.keys();
        let meant =
            known.find(|known| !credentials.contains_key(*known) && is_near(name, known))?;
        let message = format!("is read by nobody: is \"{meant}\" meant?");
        Some(FieldError::new(field(name), "unknown", message))
    }

    fn unknown(&self, name: &str) -> FieldError {
        let known = self.properties().into_iter().flatten();
        let known: Vec<&str> = known
            .map(|(name, _)| name.as_str())
            .filter(|name| !OF_CONNECTION.contains(name))
            .collect();
        let message = match known.is_empty() {
            true => {
                "is read by nobody: this engine's connector takes no settings of its own".to_owned()
            }
            false => format!(
                "is read by nobody: this engine's connector knows {}",
                known.join(", ")
            ),
        };
        FieldError::new(field(name), "unknown", message)
    }
}

/// Where a member stands in the body.
fn field(member: &str) -> String {
    let first = member.split('.').next().unwrap_or_default();
    match first.is_empty() || OF_CONNECTION.contains(&first) {
        true if first.is_empty() => "credentials".to_owned(),
        true => member.to_owned(),
        false => format!("credentials.{member}"),
    }
}

/// Refuses a schema that connections could not be checked against.
pub(crate) fn check_schema(text: &str) -> Result<(), String> {
    if text.len() > SCHEMA_BYTES_MAX {
        return Err(format!(
            "the settings schema has {} bytes, and may have {SCHEMA_BYTES_MAX}",
            text.len()
        ));
    }
    let asked = Asked::by(text);
    for Header { member, name, .. } in asked.headers() {
        if let Some(reason) = refused_header(name) {
            return Err(format!(
                "the settings schema has \"{member}\" sent as the header \"{name}\", which {reason}"
            ));
        }
    }
    compiled(&asked.schema).map(drop)
}

fn compiled(schema: &Value) -> Result<jsonschema::Validator, String> {
    if let Some(word) = word_of(schema, &UNBOUNDED) {
        return Err(format!(
            "the settings schema has \"{word}\", which is not supported: use \"additionalProperties\" or \"items\""
        ));
    }
    if let Some(word) = word_of(schema, &REFERENCES) {
        return Err(format!(
            "the settings schema has a \"{word}\": write out what it refers to"
        ));
    }
    let patterns = patterns(schema);
    if patterns > PATTERNS_MAX {
        return Err(format!(
            "the settings schema has {patterns} patterns, and may have {PATTERNS_MAX}"
        ));
    }
    let bounded = PatternOptions::regex()
        .size_limit(PATTERN_MEMORY_MAX)
        .dfa_size_limit(PATTERN_MEMORY_MAX);
    jsonschema::options()
        .with_pattern_options(bounded)
        .build(schema)
        .map_err(|error| {
            format!(
                "the settings schema is no JSON Schema whose patterns take at most {} KiB each: {error}",
                PATTERN_MEMORY_MAX >> 10
            )
        })
}

/// How many values there are in settings, themselves among them, and in their texts.
fn values(settings: &Value) -> usize {
    let within: usize = match settings {
        Value::Object(members) => members
            .iter()
            .map(|(name, value)| name.len() / TEXT_BYTES + values(value))
            .sum(),
        Value::Array(items) => items.iter().map(values).sum(),
        Value::String(text) => text.len() / TEXT_BYTES,
        _ => 0,
    };
    within + 1
}

/// How many values there are in a schema, itself among them, and what some of them count for.
fn rules(schema: &Value) -> usize {
    let within: usize = match schema {
        Value::Object(members) => members
            .iter()
            .map(|(name, value)| match (name.as_str(), value.as_f64()) {
                ("multipleOf", Some(of)) if of.fract() != 0.0 => FRACTION_COUNTS,
                _ => rules(value),
            })
            .sum(),
        Value::Array(items) => items.iter().map(rules).sum(),
        _ => 0,
    };
    within + 1
}

/// How many regular expressions there are at most in it: a member of that name may also be a setting.
fn patterns(schema: &Value) -> usize {
    match schema {
        Value::Object(members) => members
            .iter()
            .map(|(name, value)| match (name.as_str(), value) {
                ("pattern", Value::String(_)) => 1,
                ("patternProperties", Value::Object(each)) => each.len() + patterns(value),
                _ => patterns(value),
            })
            .sum(),
        Value::Array(items) => items.iter().map(patterns).sum(),
        _ => 0,
    }
}

/// One of these words, if it is a member of the schema anywhere.
fn word_of<'a>(schema: &'a Value, words: &[&str]) -> Option<&'a str> {
    match schema {
        Value::Object(members) => {
            members
                .iter()
                .find_map(|(name, value)| match words.contains(&name.as_str()) {
                    true => Some(name.as_str()),
                    false => word_of(value, words),
                })
        }
        Value::Array(items) => items.iter().find_map(|item| word_of(item, words)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn asked(schema: Value) -> Asked {
        Asked { schema }
    }

    fn object(value: Value) -> Map<String, Value> {
        value.as_object().cloned().unwrap_or_default()
    }

    /// Many settings against a schema of many rules are refused before they are held against each other.
    #[test]
    fn rules_times_settings_are_bounded() {
        let rules: Vec<bool> = vec![false; 2_500];
        let asked = asked(json!({"properties": {"a": {"items": {"allOf": rules}}}}));
        let many = object(json!({"a": vec![0; 10_000]}));
        let errors = asked.check(&many, "PASSWORD", &many);
        let told: Vec<_> = errors
            .iter()
            .map(|error| (error.field.as_str(), error.code))
            .collect();
        assert_eq!(told, [("credentials", "too_many")]);
        let few = object(json!({"a": vec![0; 30]}));
        assert_eq!(asked.check(&few, "PASSWORD", &few).len(), ERRORS_MAX);
    }

    /// So are few of them that take long: multiples of fractions, and rules for long texts.
    #[test]
    fn what_takes_long_counts_for_more() {
        let each = |rule: Value, count: usize| {
            asked(json!({"additionalProperties": {"allOf": vec![rule; count]}}))
        };
        let numbers: Map<String, Value> = (0..50)
            .map(|number| (format!("n{number}"), json!(1e300)))
            .collect();
        let text = |bytes: usize| object(json!({"a": "x".repeat(bytes)}));
        let named = |bytes: usize| object(json!({"x".repeat(bytes): "a"}));
        let (fraction, format) = (json!({"multipleOf": 1.5}), json!({"format": "email"}));
        for (asked, settings, refused) in [
            (each(fraction.clone(), 1), numbers.clone(), false),
            (each(fraction, 10), numbers.clone(), true),
            (each(json!({"multipleOf": 2}), 500), numbers, false),
            (each(format.clone(), 300), text(4 << 10), false),
            (each(format.clone(), 300), text(32 << 10), true),
            (each(format, 300), named(32 << 10), true),
        ] {
            let errors = asked.check(&settings, "PASSWORD", &settings);
            let is_refused = errors.iter().any(|error| error.code == "too_many");
            assert_eq!(is_refused, refused, "{}", asked.schema);
        }
    }

    /// All that is wrong is told at once, by the field in which it stands, and no value is repeated.
    #[test]
    fn settings_are_held_against_the_schema() {
        let asked = asked(json!({
            "type": "object",
            "required": ["league", "token", "base_url"],
            "properties": {
                "league": {"type": "string", "enum": ["north", "south"]},
                "token": {"type": "string", "minLength": 8, "writeOnly": true},
                "seasons": {"type": "array", "items": {"type": "integer"}},
                "base_url": {"type": "string", "pattern": "^https:"},
            }
        }));
        let check = |connection: Value, credentials: Value| {
            let credentials = object(credentials);
            let mut settings = credentials.clone();
            settings.extend(object(connection));
            let errors = asked.check(&settings, "NONE", &credentials);
            assert!(
                errors.iter().all(|error| !error.message.contains("hush")),
                "{errors:?}"
            );
            let told = errors
                .into_iter()
                .map(|error| (error.field.to_string(), error.code.to_string()));
            let mut told: Vec<(String, String)> = told.collect();
            told.sort();
            told
        };
        let of = |pairs: &[(&str, &str)]| -> Vec<(String, String)> {
            pairs
                .iter()
                .map(|(field, code)| ((*field).to_owned(), (*code).to_owned()))
                .collect()
        };
        let fine = json!({"league": "north", "token": "hush-hush", "seasons": [1]});
        assert_eq!(check(json!({"base_url": "https://x", "port": 1}), fine), []);
        assert_eq!(
            check(
                json!({"base_url": "http://x"}),
                json!({"league": "hush", "token": "hush", "seasons": [1, "hush"], "leage": 1})
            ),
            of(&[
                ("base_url", "invalid"),
                ("credentials.leage", "unknown"),
                ("credentials.league", "invalid"),
                ("credentials.seasons.1", "invalid"),
                ("credentials.token", "invalid"),
            ])
        );
        assert_eq!(
            check(json!({"base_url": "https://x"}), json!({})),
            of(&[
                ("credentials.league", "required"),
                ("credentials.token", "required")
            ])
        );
    }

    /// A key file has members of its own; what looks like a member of ours is one, misspelt.
    #[test]
    fn members_beside_a_key_file_are_spelt_as_they_are() {
        let asked = asked(json!({"properties": {
            "private_key": {}, "client_email": {}, "maximum_bytes_billed": {}, "role": {},
        }}));
        let file = json!({"type": "service_account", "private_key": "k", "private_key_id": "i", "client_email": "e", "client_id": "1",
            "auth_uri": "u", "token_uri": "u", "universe_domain": "d"});
        let checked = |more: Value| {
            let mut file = object(file.clone());
            file.extend(object(more));
            let errors = asked.check(&file, WHOLE_FILE, &file);
            errors
                .into_iter()
                .map(|error| error.field.to_string())
                .collect::<Vec<_>>()
        };
        assert_eq!(checked(json!({})), [""; 0]);
        assert_eq!(
            checked(json!({"maximum_bytes_billed": 1, "role": "r"})),
            [""; 0]
        );
        assert_eq!(
            checked(json!({"maximum_byte_billed": 1, "Role": "r"})),
            ["credentials.Role", "credentials.maximum_byte_billed"]
        );
    }

    /// What the host sends as a header is not told to the connector, and must fit into one.
    #[test]
    fn headers_are_the_hosts() {
        let asked = asked(json!({"properties": {
            "token": {"type": "string", "x-souk-header": "authorization", "x-souk-header-prefix": "Bearer "},
            "league": {},
        }}));
        let settings = object(json!({"token": "t", "league": "l", "other": 1}));
        assert_eq!(asked.told(settings), object(json!({"league": "l"})));
        let headers: Vec<_> = asked
            .headers()
            .map(|header| (header.member, header.name, header.prefix))
            .collect();
        assert_eq!(headers, [("token", "authorization", "Bearer ")]);
        let smuggled = object(json!({"token": "t\r\nx-admin: 1"}));
        let errors = asked.check(&smuggled, "NONE", &smuggled);
        assert_eq!(errors.len(), 1, "{errors:?}");
        assert!(asked.names("league") && !asked.names("other"));
    }

    /// A schema that names nothing asks for everything; one that refers to others, is too large or none at all is refused.
    #[test]
    fn schemas_are_checked() {
        assert!(asked(json!({"type": "object"})).names("anything"));
        assert!(check_schema(r#"{"type":"object"}"#).is_ok());
        for (schema, word) in [
            (
                r##"{"$defs":{"a":{"anyOf":[{"$ref":"#/$defs/a"}]}}}"##.to_owned(),
                "$ref",
            ),
            (r#"{"type":"objekt"}"#.to_owned(), "no JSON Schema"),
            (
                format!(r#"{{"title":"{}"}}"#, "x".repeat(SCHEMA_BYTES_MAX)),
                "may have",
            ),
            (
                json!({"allOf": [{"unevaluatedProperties": false}]}).to_string(),
                "unevaluatedProperties",
            ),
            (
                json!({"properties": {"a": {"x-souk-header": "Content-Length"}}}).to_string(),
                "is the host's own",
            ),
            (
                json!({"properties": {"a": {"x-souk-header": "x a"}}}).to_string(),
                "is no header name",
            ),
            (
                json!({"patternProperties": {r"\pL{200}": {}}}).to_string(),
                "KiB each",
            ),
            (
                json!({"anyOf": vec![json!({"pattern": "a"}); PATTERNS_MAX + 1]}).to_string(),
                "patterns, and may have",
            ),
        ] {
            let refused = check_schema(&schema).unwrap_err();
            assert!(refused.contains(word), "{refused}");
        }
        let dates = json!({"pattern": r"^\d{4}-(0[1-9]|1[0-2])-[0-3]\d$"});
        let dates = json!({"anyOf": vec![dates; PATTERNS_MAX]}).to_string();
        assert_eq!(check_schema(&dates), Ok(()));
    }
}
