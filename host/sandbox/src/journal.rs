//! What guests print and how they break, kept for whoever wrote or uses them: the last lines of each company, by connector and data
//! connection, in memory. Knows nothing of guests: [`Speaker`] is told what was said.
//!
//! Everything is bounded: a call, a connector and a company by bytes, a company's pace by the second, companies by number. What had no
//! place is counted. Secrets of the connection's settings never get in.

use std::{
    collections::{BTreeSet, HashMap, VecDeque},
    ops::Range,
    sync::{Arc, OnceLock},
};

use parking_lot::Mutex;
use serde_json::Value;

use crate::{clock::now_micros, connector::Scope};

/// What one call may print: the message of a panic and a backtrace, or some lines of a debugger by hand.
pub(crate) const CALL_BYTES: usize = 4 << 10;
/// A line is for a screen.
const LINE_BYTES: usize = 1 << 10;
/// Lines of one connector of a company, with [`OVERHEAD_BYTES`] each.
const CONNECTOR_BYTES: usize = 64 << 10;
/// Lines of all connectors of a company.
const COMPANY_BYTES: usize = 256 << 10;
/// What a kept line costs beside its text.
const OVERHEAD_BYTES: usize = 128;
/// What a company's guests may add within a second: whoever prints on every call of thousands is not worth the time of others.
const SECOND_BYTES: usize = 64 << 10;
/// Companies whose lines are kept. The one that was silent for longest is forgotten first.
const COMPANIES_MAX: usize = 256;
/// A shorter secret is a word that any text may contain.
const SECRET_BYTES_MIN: usize = 4;
/// Secrets that are looked for: each is looked for in all that a call prints.
const SECRETS_MAX: usize = 32;
/// What stands in the place of one.
const SECRET: &str = "[secret]";

/// Where a line came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stream {
    Stdout,
    Stderr,
    /// The host says how a guest broke.
    Fault,
}

impl Stream {
    pub const ALL: [Stream; 3] = [Stream::Stdout, Stream::Stderr, Stream::Fault];

    pub const fn as_str(self) -> &'static str {
        match self {
            Stream::Stdout => "stdout",
            Stream::Stderr => "stderr",
            Stream::Fault => "fault",
        }
    }
}

/// A line that a guest has printed, or that was said about it.
#[derive(Clone, Debug)]
pub struct LogLine {
    /// Grows with time, also over restarts: microseconds since the epoch, made unique.
    pub id: u64,
    /// Whose data connection the guest spoke for. Empty: nobody's, as while it was checked.
    pub company: Arc<str>,
    pub scope: Scope,
    pub connector: Arc<str>,
    pub version: Arc<str>,
    /// Absent outside of a session.
    pub connection: Option<Arc<str>>,
    pub stream: Stream,
    pub text: String,
}

impl LogLine {
    fn bytes(&self) -> usize {
        self.text.len() + OVERHEAD_BYTES
    }
}

/// Which lines are asked for.
#[derive(Clone, Copy, Debug)]
pub struct LogFilter<'a> {
    /// Of one company, or of all.
    pub company: Option<&'a str>,
    /// Of connectors of this scope, or of any.
    pub scope: Option<&'a Scope>,
    pub connector: &'a str,
    pub connection: Option<&'a str>,
    /// Only lines after this one, from the first on; else the last ones.
    pub after: Option<u64>,
    pub lines_max: usize,
}

/// The lines of all companies.
#[derive(Default)]
pub(crate) struct Journals(Mutex<HashMap<Arc<str>, Arc<Mutex<Journal>>>>);

/// The lines of one company, oldest first.
#[derive(Default)]
struct Journal {
    lines: VecDeque<LogLine>,
    bytes: usize,
    /// The last line's.
    last_id: u64,
    /// Which second it is, and what was added in it.
    second: u64,
    second_bytes: usize,
    /// Lines that had no place in this second.
    unkept: u64,
}

impl Journals {
    /// The journal of a company; the one that was silent for longest makes room for a new one.
    fn of(&self, company: &Arc<str>) -> Arc<Mutex<Journal>> {
        let mut all = self.0.lock();
        if let Some(journal) = all.get(company) {
            return journal.clone();
        }
        if all.len() >= COMPANIES_MAX
            && let Some(silent) = all
                .iter()
                .min_by_key(|(_, journal)| journal.lock().last_id)
                .map(|(company, _)| company.clone())
        {
            all.remove(&silent);
        }
        all.entry(company.clone()).or_default().clone()
    }

    /// The lines that `filter` names, oldest first.
    pub fn lines(&self, filter: &LogFilter<'_>) -> Vec<LogLine> {
        let journals: Vec<Arc<Mutex<Journal>>> = {
            let all = self.0.lock();
            match filter.company {
                Some(company) => all.get(company).cloned().into_iter().collect(),
                None => all.values().cloned().collect(),
            }
        };
        let mut found = Vec::new();
        for journal in journals {
            let journal = journal.lock();
            let wanted = journal.lines.iter().filter(|line| filter.names(line));
            found.extend(wanted.cloned());
        }
        found.sort_by_key(|line| line.id);
        match filter.after {
            Some(_) => found.truncate(filter.lines_max),
            None => drop(found.drain(..found.len().saturating_sub(filter.lines_max))),
        }
        found
    }
}

impl LogFilter<'_> {
    fn names(&self, line: &LogLine) -> bool {
        *self.connector == *line.connector
            && self.scope.is_none_or(|scope| *scope == line.scope)
            && self.after.is_none_or(|after| line.id > after)
            && self
                .connection
                .is_none_or(|id| line.connection.as_deref() == Some(id))
    }
}

impl Journal {
    fn add(&mut self, now_us: u64, mut line: LogLine) {
        let second = now_us / 1_000_000;
        if self.second != second {
            (self.second, self.second_bytes) = (second, 0);
            let unkept = std::mem::take(&mut self.unkept);
            if unkept > 0 {
                let text = format!(
                    "{unkept} lines were not kept: more than {SECOND_BYTES} bytes in a second"
                );
                let stream = Stream::Fault;
                let told = LogLine {
                    stream,
                    text,
                    ..line.clone()
                };
                self.keep(now_us, told);
            }
        }
        // What the host says is little, and told at the pace of failures.
        self.second_bytes += line.bytes();
        if self.second_bytes > SECOND_BYTES && line.stream != Stream::Fault {
            self.unkept += 1;
            return;
        }
        line.text.shrink_to_fit();
        self.keep(now_us, line);
    }

    fn keep(&mut self, now_us: u64, mut line: LogLine) {
        line.id = now_us.max(self.last_id + 1);
        self.last_id = line.id;
        self.bytes += line.bytes();
        let same = |other: &LogLine| other.connector == line.connector && other.scope == line.scope;
        let mut of_connector = line.bytes();
        let mut too_old = 0;
        // From the newest on: what is beyond the connector's share is older than what stays.
        for other in self.lines.iter().rev().filter(|other| same(other)) {
            of_connector += other.bytes();
            if of_connector > CONNECTOR_BYTES {
                too_old = other.id;
                break;
            }
        }
        if too_old > 0 {
            let bytes = &mut self.bytes;
            self.lines.retain(|other| {
                let stays = other.id > too_old || !same(other);
                *bytes -= if stays { 0 } else { other.bytes() };
                stays
            });
        }
        self.lines.push_back(line);
        while self.bytes > COMPANY_BYTES {
            let Some(oldest) = self.lines.pop_front() else {
                break;
            };
            self.bytes -= oldest.bytes();
        }
    }
}

/// Who speaks: one connector, in one version, for one data connection. What it says is labelled so.
pub(crate) struct Speaker {
    journals: Arc<Journals>,
    company: Arc<str>,
    scope: Scope,
    connector: Arc<str>,
    version: Arc<str>,
    connection: Option<Arc<str>>,
    /// The settings with their schema: which of their texts are secrets is found out when something is said for the first time.
    settings: Option<(String, String)>,
    secrets: OnceLock<BTreeSet<String>>,
}

impl Speaker {
    /// A guest of this connector in a session for `connection`.
    pub fn new(
        journals: &Arc<Journals>,
        company: &str,
        (scope, connector, version): (&Scope, &str, &str),
    ) -> Speaker {
        Speaker {
            journals: journals.clone(),
            company: company.into(),
            scope: scope.clone(),
            connector: connector.into(),
            version: version.into(),
            connection: None,
            settings: None,
            secrets: OnceLock::new(),
        }
    }

    /// In a session of this data connection, with these settings after this schema.
    pub fn on(mut self, connection: &str, settings: &str, schema: &str) -> Speaker {
        self.connection = Some(connection.into());
        self.settings = Some((settings.to_owned(), schema.to_owned()));
        self
    }

    /// Keeps what was said, line by line.
    pub fn say(&self, stream: Stream, text: &str) {
        let journal = self.journals.of(&self.company);
        let now_us = u64::try_from(now_micros()).unwrap_or_default();
        for line in text.lines().filter(|line| !line.trim().is_empty()) {
            let line = LogLine {
                id: 0,
                company: self.company.clone(),
                scope: self.scope.clone(),
                connector: self.connector.clone(),
                version: self.version.clone(),
                connection: self.connection.clone(),
                stream,
                text: printable(line),
            };
            journal.lock().add(now_us, line);
        }
    }

    /// `text` without the secrets that the guest was told. They are looked for in what was said, and not in what has been put in their place: parts of
    /// that may be secrets, too.
    pub fn redacted(&self, text: String) -> String {
        let secrets = self.secrets.get_or_init(|| self.find_secrets());
        if secrets.len() > SECRETS_MAX {
            return format!(
                "{SECRET}: of a connection with more than {SECRETS_MAX} secrets nothing is shown\n"
            );
        }
        let found = secrets.iter().flat_map(|secret| {
            let places = text.match_indices(secret.as_str());
            places.map(|(at, secret)| at..at + secret.len())
        });
        let mut found: Vec<Range<usize>> = found.collect();
        if found.is_empty() {
            return text;
        }
        found.sort_unstable_by_key(|place| place.start);
        let mut shown = String::with_capacity(text.len());
        let mut end = 0;
        for place in found {
            // What touches or overlaps the one before is one with it.
            if place.start > end || shown.is_empty() {
                shown.push_str(&text[end..place.start]);
                shown.push_str(SECRET);
            }
            end = end.max(place.end);
        }
        shown.push_str(&text[end..]);
        shown
    }

    fn find_secrets(&self) -> BTreeSet<String> {
        let Some((settings, schema)) = &self.settings else {
            return BTreeSet::new();
        };
        let parse = |text: &str| serde_json::from_str::<Value>(text).unwrap_or_default();
        let (settings, schema) = (parse(settings), parse(schema));
        let is_secret_of = |schema: &Value, name: &str| is_secret(&schema["properties"][name]);
        // A publisher of several platforms has the schema of each there.
        let platforms = schema["$defs"].as_object();
        let is_left_out = |name: &str| {
            let mut platforms = platforms.into_iter().flat_map(|all| all.values());
            is_secret_of(&schema, name) || platforms.any(|schema| is_secret_of(schema, name))
        };
        let members = settings.as_object().into_iter().flatten();
        members
            .filter(|(name, _)| is_left_out(name))
            .filter_map(|(_, value)| value.as_str())
            .filter(|text| text.len() >= SECRET_BYTES_MIN)
            .map(str::to_owned)
            .collect()
    }
}

/// Whether the schema of a setting calls it a secret, by the words of `wit/v1`.
pub fn is_secret(member: &Value) -> bool {
    member["writeOnly"] == true || member["format"] == "password"
}

/// One line for a terminal: nothing in it moves a cursor or colours what follows.
fn printable(line: &str) -> String {
    let end = line.floor_char_boundary(line.len().min(LINE_BYTES));
    let line = line[..end].trim_end();
    let shown = |letter: char| match letter.is_control() && letter != '\t' {
        true => char::REPLACEMENT_CHARACTER,
        false => letter,
    };
    line.chars().map(shown).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn speaker(journals: &Arc<Journals>, company: &str, connector: &str) -> Speaker {
        Speaker::new(journals, company, (&Scope::Platform, connector, "1.0.0"))
    }

    fn asked<'a>(company: Option<&'a str>, connector: &'a str) -> LogFilter<'a> {
        LogFilter {
            company,
            scope: None,
            connector,
            connection: None,
            after: None,
            lines_max: 10_000,
        }
    }

    fn texts(journals: &Journals, filter: &LogFilter<'_>) -> Vec<String> {
        let lines = journals.lines(filter);
        lines.into_iter().map(|line| line.text).collect()
    }

    /// Lines come in order, are found by who said them, and each company's are its own.
    #[test]
    fn lines_are_found_by_who_said_them() {
        let journals = Arc::new(Journals::default());
        let one = speaker(&journals, "one", "hello").on("con_1", "{}", "{}");
        one.say(Stream::Stderr, "a\nb\n\n");
        one.say(Stream::Stdout, "\u{1b}[31mred");
        speaker(&journals, "one", "other").say(Stream::Stdout, "c");
        speaker(&journals, "two", "hello").say(Stream::Fault, "d");
        let of_one = asked(Some("one"), "hello");
        assert_eq!(texts(&journals, &of_one), ["a", "b", "\u{fffd}[31mred"]);
        let first = journals.lines(&of_one)[0].id;
        let after = LogFilter {
            after: Some(first),
            lines_max: 1,
            ..of_one
        };
        assert_eq!(texts(&journals, &after), ["b"]);
        assert_eq!(
            texts(
                &journals,
                &LogFilter {
                    lines_max: 1,
                    ..of_one
                }
            ),
            ["\u{fffd}[31mred"]
        );
        let elsewhere = LogFilter {
            connection: Some("con_2"),
            ..of_one
        };
        assert!(texts(&journals, &elsewhere).is_empty());
        assert_eq!(texts(&journals, &asked(None, "hello")).len(), 4);
    }

    /// Secrets are taken out of what was said, once, whatever stands in their place: parts of that may be secrets of a company that wants it so.
    #[test]
    fn what_stands_for_a_secret_is_not_looked_at() {
        let journals = Arc::new(Journals::default());
        let members = |value: &dyn Fn(usize) -> String, count: usize| {
            let all = (0..count).map(|at| (format!("a{at:02}"), value(at)));
            let schema = all
                .clone()
                .map(|(name, _)| (name, serde_json::json!({"writeOnly": true})));
            let schema: serde_json::Map<_, _> = schema.collect();
            let settings: serde_json::Map<_, _> =
                all.map(|(name, value)| (name, value.into())).collect();
            let schema = serde_json::json!({"properties": schema});
            (Value::Object(settings).to_string(), schema.to_string())
        };
        let halves = |at: usize| ["[sec", "ret]"][at % 2].to_owned();
        let (settings, schema) = members(&halves, 40);
        let one = speaker(&journals, "one", "hello").on("con_1", &settings, &schema);
        let said = one.redacted("[sec ".repeat(1_000));
        assert_eq!(said, "[secret] ".repeat(1_000));
        // One that is in another one, touches it or overlaps it is shown as one with it.
        let (settings, schema) = members(&|at| ["token", "a token", "kenwood"][at].to_owned(), 3);
        let one = speaker(&journals, "one", "hello").on("con_1", &settings, &schema);
        let said = one.redacted("tokentoken, a tokenwood, no toke".into());
        assert_eq!(said, "[secret], [secret], no toke");
        let (settings, schema) = members(&|at| format!("secret {at}"), SECRETS_MAX + 1);
        let one = speaker(&journals, "one", "hello").on("con_1", &settings, &schema);
        let said = one.redacted("nothing in it".into());
        assert!(
            said.starts_with(SECRET) && !said.contains("nothing in it"),
            "{said}"
        );
    }

    /// However much is said, a connector keeps its newest lines, and takes no room from another one; a second has its bound.
    #[test]
    fn what_is_kept_is_bounded() {
        let mut journal = Journal::default();
        let line = |connector: &str, text: String| LogLine {
            id: 0,
            company: "one".into(),
            scope: Scope::Platform,
            connector: connector.into(),
            version: "1.0.0".into(),
            connection: None,
            stream: Stream::Stdout,
            text,
        };
        journal.add(0, line("quiet", "here".into()));
        for second in 1..1_000u64 {
            let text = format!("{second:0>1000}");
            journal.add(second * 1_000_000, line("loud", text));
        }
        assert!(
            journal.bytes <= CONNECTOR_BYTES + 2 * LINE_BYTES,
            "{}",
            journal.bytes
        );
        let texts: Vec<&str> = journal
            .lines
            .iter()
            .map(|line| line.text.as_str())
            .collect();
        assert_eq!(texts[0], "here");
        assert!(texts.last().is_some_and(|text| text.ends_with("999")));
        for connector in 0..10 {
            for second in 0..100 {
                journal.add(
                    (2_000 + connector * 100 + second) * 1_000_000,
                    line(&connector.to_string(), "x".repeat(1_000)),
                );
            }
        }
        assert!(journal.bytes <= COMPANY_BYTES, "{}", journal.bytes);
        let bytes: usize = journal.lines.iter().map(LogLine::bytes).sum();
        assert_eq!(journal.bytes, bytes);

        let mut flooded = Journal::default();
        for _ in 0..1_000 {
            flooded.add(5_000_000, line("loud", "y".repeat(1_000)));
        }
        let kept = flooded.lines.len();
        assert!(kept <= SECOND_BYTES / 1_000, "{kept}");
        flooded.add(6_000_000, line("loud", "z".into()));
        let told = &flooded.lines[flooded.lines.len() - 2].text;
        assert!(
            told.starts_with(&format!("{} lines were not kept", 1_000 - kept)),
            "{told}"
        );
    }

    /// Of many companies the one that was silent for longest is forgotten.
    #[test]
    fn companies_are_bounded() {
        let journals = Arc::new(Journals::default());
        for company in 0..=COMPANIES_MAX {
            speaker(&journals, &company.to_string(), "hello").say(Stream::Stdout, "here");
        }
        assert!(texts(&journals, &asked(Some("0"), "hello")).is_empty());
        assert_eq!(texts(&journals, &asked(None, "hello")).len(), COMPANIES_MAX);
    }

    /// What the schema calls a secret is not kept.
    #[test]
    fn secrets_are_left_out() {
        let schema = r#"{"properties":{"token":{"writeOnly":true},"pass":{"format":"password"},"league":{}}}"#;
        let settings = r#"{"token":"tok-12345","pass":"tok-12345-long","league":"north"}"#;
        let speaker = speaker(&Arc::default(), "one", "hello").on("con_1", settings, schema);
        let said = speaker.redacted("north tok-12345-long and tok-12345".to_owned());
        assert_eq!(said, "north [secret] and [secret]");
    }

    /// Nor is what the schema of one of a publisher's platforms calls so.
    #[test]
    fn secrets_of_platforms_are_left_out() {
        let schema = r#"{"$defs":{"blog":{"properties":{"key":{"writeOnly":true}}},"chat":{"properties":{"link":{}}}}}"#;
        let settings = r#"{"key":"key-12345","link":"https://x"}"#;
        let speaker = speaker(&Arc::default(), "one", "notes").on("int_1", settings, schema);
        let said = speaker.redacted("key-12345 to https://x".to_owned());
        assert_eq!(said, "[secret] to https://x");
    }
}
