//! What a version of a connector may do, held against the version at work: what somebody reads who decides whether it may. It knows what a host
//! says of both, and nothing else; that a version does no more than it says is the sandbox's business.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use serde_json::Value;
use souk_sandbox::{SandboxLimits, is_secret};

use super::versions::text;
use crate::commands::output::plain;

/// What one version needs, as the host read it from the component.
struct Needs {
    /// `tcp`, `http`, `directory`.
    wires: BTreeSet<String>,
    engines: BTreeSet<String>,
    /// Packages, without their versions: a runtime that has one function of a package imports all of it, and is rebuilt against a newer one now and
    /// then.
    imports: BTreeSet<String>,
    settings: Settings,
}

enum Settings {
    /// The schema names none: the connector is told whatever is given.
    All,
    Named(BTreeMap<String, Setting>),
}

#[derive(Clone, Copy)]
struct Setting {
    is_secret: bool,
    /// The host sends it as a header, and the connector is not told.
    is_sent: bool,
}

/// How a version differs from the one at work.
pub struct Difference {
    title: String,
    lines: Vec<Line>,
    widens: bool,
}

struct Line {
    sign: &'static str,
    what: String,
    widens: bool,
}

impl Difference {
    /// What `next` needs, beside what `at_work` does where there is one. Both as the API shows versions of a connector. Only more than a version
    /// at work has widens anything: whoever brings a connector that was not there has asked for it.
    pub fn between(at_work: Option<&Value>, next: &Value) -> Difference {
        let after = Needs::of(next);
        let Some(at_work) = at_work else {
            let lines = after.lines();
            let title = format!("{} needs", label(next));
            return Difference::of(title, lines);
        };
        let lines = Needs::of(at_work).compared(&after);
        let beside = format!("{} at work", plain(text(at_work, "version")));
        let title = match lines.is_empty() {
            true => format!("{} needs what {beside} needs", label(next)),
            false => format!("{} needs, in contrast to {beside}", label(next)),
        };
        Difference::of(title, lines)
    }

    fn of(title: String, lines: Vec<Line>) -> Difference {
        let widens = lines.iter().any(|line| line.widens);
        Difference {
            title,
            lines,
            widens,
        }
    }

    /// Whether it may do what the version at work may not.
    pub fn widens(&self) -> bool {
        self.widens
    }
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.title)?;
        for Line { sign, what, widens } in &self.lines {
            let mark = if *widens { "  (more than before)" } else { "" };
            write!(f, "\n  {sign} {what}{mark}")?;
        }
        Ok(())
    }
}

fn label(version: &Value) -> String {
    plain(&format!(
        "{} {}",
        text(version, "name"),
        text(version, "version")
    ))
}

impl Needs {
    fn of(version: &Value) -> Needs {
        let list = |member: &str| -> BTreeSet<String> {
            let items = version[member].as_array().into_iter().flatten();
            items.filter_map(|item| item.as_str().map(plain)).collect()
        };
        let package = |import: &String| import.split(['/', '@']).next().map(str::to_owned);
        // The contract's own types, which are no function.
        let is_foreign = |package: &String| !package.starts_with("souk:");
        Needs {
            wires: list("needs"),
            engines: list("engines"),
            imports: list("imports")
                .iter()
                .filter_map(package)
                .filter(is_foreign)
                .collect(),
            settings: Settings::of(&version["settings_schema"]),
        }
    }

    fn lines(&self) -> Vec<Line> {
        let plus = |what: String| Line {
            sign: "+",
            what,
            widens: false,
        };
        let wires = self.wires.iter().map(wire);
        let engines = self.engines.iter().map(engine);
        let imports = self.imports.iter().map(import);
        let settings = match &self.settings {
            Settings::All => vec![every_setting()],
            Settings::Named(names) => names.iter().map(setting).collect(),
        };
        let all = wires.chain(engines).chain(imports).chain(settings);
        all.map(plus).collect()
    }

    fn compared(&self, after: &Needs) -> Vec<Line> {
        let mut lines = sets(&self.wires, &after.wires, wire);
        lines.extend(sets(&self.engines, &after.engines, engine));
        lines.extend(sets(&self.imports, &after.imports, import));
        lines.extend(self.settings.compared(&after.settings));
        lines
    }
}

/// What is in one of them only.
fn sets(
    before: &BTreeSet<String>,
    after: &BTreeSet<String>,
    named: fn(&String) -> String,
) -> Vec<Line> {
    let line = |sign, name| Line {
        sign,
        what: named(name),
        widens: sign == "+",
    };
    let gone = before.difference(after).map(|name| line("-", name));
    let new = after.difference(before).map(|name| line("+", name));
    gone.chain(new).collect()
}

fn wire(name: &String) -> String {
    let limits = SandboxLimits::default();
    let (means, memory) = match name.as_str() {
        "directory" => (
            "reads one directory of files",
            limits.directory_memory_bytes,
        ),
        "http" => (
            "sends requests to the connection's base URL",
            limits.wire_memory_bytes,
        ),
        _ => (
            "speaks to the connection's host and port",
            limits.wire_memory_bytes,
        ),
    };
    format!("wire {name}: {means}, {} MiB a session", memory >> 20)
}

fn engine(slug: &String) -> String {
    format!("engine {slug}: is given its connections, with their credentials")
}

fn import(package: &String) -> String {
    format!("import {package}")
}

fn setting((name, setting): (&String, &Setting)) -> String {
    match setting.is_secret {
        true => format!("setting {name}, a secret"),
        false => format!("setting {name}"),
    }
}

fn every_setting() -> String {
    "every setting of a connection, secrets included: its schema names none".to_owned()
}

impl Settings {
    fn of(schema: &Value) -> Settings {
        let Some(properties) = schema["properties"].as_object() else {
            return Settings::All;
        };
        let setting = |member: &Value| Setting {
            is_secret: is_secret(member),
            is_sent: member["x-souk-header"].is_string(),
        };
        let named = properties
            .iter()
            .map(|(name, member)| (plain(name), setting(member)));
        Settings::Named(named.collect())
    }

    fn compared(&self, after: &Settings) -> Vec<Line> {
        let (before, after) = match (self, after) {
            (Settings::All, Settings::All) => return Vec::new(),
            (Settings::All, Settings::Named(_)) => {
                return vec![Line {
                    sign: "-",
                    what: every_setting(),
                    widens: false,
                }];
            }
            (Settings::Named(_), Settings::All) => {
                return vec![Line {
                    sign: "+",
                    what: every_setting(),
                    widens: true,
                }];
            }
            (Settings::Named(before), Settings::Named(after)) => (before, after),
        };
        let gone = before.iter().filter(|(name, _)| !after.contains_key(*name));
        let new = after.iter().filter(|(name, _)| !before.contains_key(*name));
        let gone = gone.map(|found| Line {
            sign: "-",
            what: setting(found),
            widens: false,
        });
        let new = new.map(|found| Line {
            sign: "+",
            what: setting(found),
            widens: found.1.is_secret,
        });
        let is_told_now = |(name, now): &(&String, &Setting)| {
            let was_sent = before.get(*name).is_some_and(|setting| setting.is_sent);
            was_sent && !now.is_sent
        };
        let told = after.iter().filter(is_told_now).map(|found| Line {
            sign: "+",
            what: format!("{}, which the host has sent in its place", setting(found)),
            widens: true,
        });
        gone.chain(new).chain(told).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn version(changes: Value) -> Value {
        let mut version = json!({
            "name": "hello", "version": "1.0.0", "needs": ["http"], "engines": ["hello"],
            "imports": ["souk:connector/types@1.0.0", "wasi:io/poll@0.2.6"],
            "settings_schema": {"type": "object", "properties": {"league": {"type": "string"}}},
        });
        for (name, value) in changes.as_object().unwrap() {
            version[name] = value.clone();
        }
        version
    }

    /// Each thing that a version can do more than before is said to be more; what it no longer does, and what is no power, is not.
    #[test]
    fn what_is_more_than_before_is_told_apart() {
        let before = version(json!({}));
        for more in [
            json!({"needs": ["http", "directory"]}),
            json!({"engines": ["hello", "postgres"]}),
            json!({"imports": ["wasi:io/poll@0.2.6", "wasi:sockets/tcp@0.2.6"]}),
            json!({"settings_schema": {"properties": {"league": {}, "token": {"writeOnly": true}}}}),
            json!({"settings_schema": {"properties": {"league": {}, "token": {"format": "password"}}}}),
            json!({"settings_schema": {"type": "object"}}),
        ] {
            let after = version(more);
            let difference = Difference::between(Some(&before), &after);
            assert!(difference.widens(), "{difference}");
            assert!(difference.to_string().contains("(more than before)"));
            let back = Difference::between(Some(&after), &before);
            assert!(!back.widens(), "{back}");
            assert!(back.to_string().contains("\n  - "), "{back}");
        }
        // What the host has sent as a header is told the connector itself.
        let sent =
            json!({"properties": {"token": {"writeOnly": true, "x-souk-header": "authorization"}}});
        let sent = version(json!({"settings_schema": sent}));
        let told = json!({"properties": {"token": {"writeOnly": true}}});
        let told = version(json!({"settings_schema": told}));
        let difference = Difference::between(Some(&sent), &told);
        assert!(difference.widens(), "{difference}");
        let line =
            "+ setting token, a secret, which the host has sent in its place  (more than before)";
        assert!(difference.to_string().contains(line), "{difference}");
        assert!(!Difference::between(Some(&told), &sent).widens());
        for same in [
            json!({"imports": ["wasi:io/streams@0.2.9"]}),
            json!({"settings_schema": {"properties": {"league": {}, "season": {}}}}),
        ] {
            let difference = Difference::between(Some(&before), &version(same));
            assert!(!difference.widens(), "{difference}");
        }
        let same = Difference::between(Some(&before), &version(json!({"version": "1.0.1"})));
        assert_eq!(
            same.to_string(),
            "hello 1.0.1 needs what 1.0.0 at work needs"
        );
    }

    /// Of a connector that was not there everything is told, and nothing of it is more than before.
    #[test]
    fn a_new_connector_is_told_whole() {
        let token = json!({"properties": {"token": {"writeOnly": true}}});
        let next = version(json!({"settings_schema": token}));
        let difference = Difference::between(None, &next);
        assert!(!difference.widens());
        let told = difference.to_string();
        for line in [
            "wire http",
            "engine hello",
            "import wasi:io",
            "setting token, a secret",
        ] {
            assert!(told.contains(line), "{told}");
        }
    }

    /// What an author wrote cannot write to the terminal of who decides.
    #[test]
    fn names_hold_no_control_characters() {
        let next = version(json!({"engines": ["hello\u{1b}[2J"]}));
        assert!(
            !Difference::between(None, &next)
                .to_string()
                .contains('\u{1b}')
        );
    }
}
