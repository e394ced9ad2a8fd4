//! How sessions open, and how they refuse to.

use std::time::{Duration, Instant};

use serde_json::{Map, Value as Json};
use souk_outbound::TlsMode;
use souk_sandbox::{Blame, ColumnKind, FaultKind, Need, Output, PoolLimits, Request, is_secret};

use super::{Suite, Verdict, advice, told};
use crate::profile::Place;
use crate::subject::{KitError, limits};

/// Long enough for a refusal.
const PATIENCE: Duration = Duration::from_secs(15);

/// Settings that cannot work, of a session that reaches nothing.
pub async fn quick(suite: &mut Suite<'_>) {
    let place = suite.subject.place.clone();
    let place = place.unwrap_or_else(|| nowhere(suite.subject.engine.need, 9));
    settings(suite, &place).await;
}

pub async fn run(suite: &mut Suite<'_>) -> Result<(), KitError> {
    quick(suite).await;
    refused(suite).await?;
    let Some(place) = suite.subject.place.clone() else {
        return Ok(());
    };
    let begun = Instant::now();
    let verdict = ping(suite, &place).await;
    suite.found("open.ping", begun, verdict);
    secret(suite, &place).await;
    Ok(())
}

/// An address of this machine at which nothing listens, or a file that is not there.
fn nowhere(need: Need, port: u16) -> Place {
    match need {
        Need::Tcp => Place::Tcp {
            host: "127.0.0.1".to_owned(),
            port,
            tls: TlsMode::Disable,
            ca_pem: None,
        },
        Need::Http => Place::Http {
            base_url: format!("http://127.0.0.1:{port}"),
            ca_pem: None,
        },
        Need::Directory => Place::File(std::env::temp_dir().join("souk-no-such-file")),
    }
}

/// Each required setting left out, and of another type, is refused as `configuration`, and nothing traps.
async fn settings(suite: &mut Suite<'_>, place: &Place) {
    let begun = Instant::now();
    let schema: Json =
        serde_json::from_str(&suite.subject.engine.settings_schema).unwrap_or_default();
    let named = suite.subject.named().unwrap_or_default();
    let whole = filled(&named, &suite.subject.settings(place));
    let required = schema.get("required").and_then(Json::as_array);
    let required: Vec<&str> = required
        .into_iter()
        .flatten()
        .filter_map(Json::as_str)
        // The host answers for the address itself.
        .filter(|name| !["host", "port", "base_url"].contains(name))
        .collect();
    let mut wrong: Vec<(String, Map<String, Json>)> = Vec::new();
    for name in &required {
        let mut without = whole.clone();
        without.remove(*name);
        wrong.push((format!("without {name:?}"), without));
    }
    for (name, member) in &named {
        let other = match member.get("type").and_then(Json::as_str) {
            Some("string") => Json::Array(vec![7.into()]),
            Some("integer" | "number" | "boolean") => Json::Object(Map::new()),
            _ => continue,
        };
        if ["host", "port", "base_url"].contains(&name.as_str()) {
            continue;
        }
        let mut mistyped = whole.clone();
        mistyped.insert(name.clone(), other);
        wrong.push((format!("with {name:?} of another type"), mistyped));
    }
    let mut verdict = match wrong.is_empty() {
        true => Verdict::skipped("the schema requires no setting, and types none"),
        false => Verdict::passed(),
    };
    for (what, settings) in wrong {
        let source = suite
            .subject
            .source_with(place, &settings, PoolLimits::default());
        let asked = Request::Ping(limits());
        let answer = suite.subject.ask_within(&source, asked, PATIENCE).await;
        let fits = match &answer {
            Ok(_) => false,
            Err(fault) => fault.kind == FaultKind::Configuration,
        };
        if !fits {
            let seen = match &answer {
                Ok(_) => "a session opened".to_owned(),
                Err(fault) => told(fault),
            };
            let make = match &answer {
                Err(fault) if fault.blame == Blame::Connector => Verdict::failed,
                // The schema is what a host checks before: a connector may lean on it.
                _ => Verdict::warned,
            };
            verdict = make(
                format!("{what}: {seen}"),
                "settings that do not fit are an error of class `configuration` from `open` (in Rust: `settings.parse()?`)",
            );
            break;
        }
    }
    suite.found("open.settings_refused", begun, verdict);
}

/// What was given, and something of the right type for what was not.
fn filled(named: &Map<String, Json>, given: &Map<String, Json>) -> Map<String, Json> {
    let mut whole = given.clone();
    for (name, member) in named {
        let sample = || match member.get("type").and_then(Json::as_str) {
            _ if member.get("default").is_some() => member["default"].clone(),
            _ if member["enum"].is_array() => member["enum"][0].clone(),
            Some("integer" | "number") => member.get("minimum").cloned().unwrap_or(1.into()),
            Some("boolean") => false.into(),
            _ => "sample".into(),
        };
        whole.entry(name.clone()).or_insert_with(sample);
    }
    whole
}

/// Nothing listens: the source is blamed, at once.
async fn refused(suite: &mut Suite<'_>) -> Result<(), KitError> {
    let begun = Instant::now();
    let subject = suite.subject;
    let free = tokio::net::TcpListener::bind(("127.0.0.1", 0)).await?;
    let port = free.local_addr()?.port();
    drop(free);
    let place = nowhere(subject.engine.need, port);
    let given = match &place {
        // The name of a file that is not there is the setting itself.
        Place::File(_) => subject.settings(&place),
        _ => filled(
            &subject.named().unwrap_or_default(),
            &subject.settings(&place),
        ),
    };
    let source = subject.source_with(&place, &given, PoolLimits::default());
    let answer = subject
        .ask_within(&source, Request::Ping(limits()), PATIENCE)
        .await;
    let verdict = match answer {
        Ok(_) => Verdict::warned(
            "a ping succeeded where nothing listens",
            "a ping proves that the source answers: ask it something",
        ),
        Err(fault) if fault.blame == Blame::Source => Verdict::passed(),
        Err(fault) if fault.kind == FaultKind::Unsupported => Verdict::failed(
            told(&fault),
            "answer `ping`: it is how a seller tests a connection",
        ),
        Err(fault) => Verdict::failed(
            told(&fault),
            "what keeps a source from being reached is the source's: hand the failure on (in Rust with `?`)",
        ),
    };
    suite.found("open.unreachable", begun, verdict);
    Ok(())
}

/// One row of the contract's columns, or of those and a warning, which hosts have learned to read since.
async fn ping(suite: &Suite<'_>, place: &Place) -> Verdict {
    let source = suite.subject.source(place);
    let output = match suite.subject.ask(&source, Request::Ping(limits())).await {
        Ok(output) => output,
        Err(fault) => return Verdict::failed(told(&fault), advice(&fault)),
    };
    let mut wanted = vec![
        ("server_version", ColumnKind::Text),
        ("read_only", ColumnKind::Boolean),
    ];
    if output.column("warning").is_some() {
        wanted.push(("warning", ColumnKind::Text));
    }
    match shape(&output, &wanted) {
        Some(wrong) => Verdict::failed(
            wrong,
            "answer a ping with `server_version` text and `read_only` boolean, each NULL where it is not known",
        ),
        None if output.rows != 1 => Verdict::failed(
            format!("a ping answered {} rows", output.rows),
            "answer exactly one",
        ),
        None => match (output.cell(0, 1).as_bool(), output.cell(0, 2).as_str()) {
            (Some(false), _) => Verdict::warned(
                "the ping says that these credentials may write",
                "give the kit, and your buyers, credentials that only read",
            ),
            (_, Some(warning)) => Verdict::warned(
                format!("the ping warns: {warning}"),
                "the connection's test tells its owner so: what it asks for is done at the source",
            ),
            _ => Verdict::passed(),
        },
    }
}

/// What is wrong with the columns, if they are others than these.
pub(super) fn shape(output: &Output, wanted: &[(&str, ColumnKind)]) -> Option<String> {
    let found = output
        .columns
        .iter()
        .map(|column| (column.name.as_str(), column.kind));
    match found.clone().eq(wanted.iter().copied()) {
        true => None,
        false => {
            let words = |columns: &mut dyn Iterator<Item = (&str, ColumnKind)>| {
                let words = columns.map(|(name, kind)| format!("{name} {}", kind.as_str()));
                words.collect::<Vec<_>>().join(", ")
            };
            Some(format!(
                "the columns are ({}), not ({})",
                words(&mut found.into_iter()),
                words(&mut wanted.iter().copied())
            ))
        }
    }
}

/// A wrong secret is refused as `authentication`.
async fn secret(suite: &mut Suite<'_>, place: &Place) {
    let begun = Instant::now();
    let subject = suite.subject;
    let given = subject.settings(place);
    let named = subject.named().unwrap_or_default();
    let secret = named
        .iter()
        .find(|(name, member)| is_secret(member) && given.get(*name).is_some_and(Json::is_string));
    let Some((name, _)) = secret else {
        return suite.note("open.wrong_secret", || {
            Verdict::skipped("no setting that was given is marked as a secret (`writeOnly`)")
        });
    };
    let mut wrong = given.clone();
    wrong.insert(name.clone(), "souk-wrong-secret".into());
    let source = subject.source_with(place, &wrong, PoolLimits::default());
    let asked = Request::Ping(limits());
    let verdict = match subject.ask_within(&source, asked, PATIENCE).await {
        Err(fault) if fault.kind == FaultKind::Authentication => Verdict::passed(),
        Err(fault) => Verdict::failed(
            told(&fault),
            "a secret that the source refuses is an error of class `authentication` (401 of an API, SQLSTATE 28P01, NOAUTH)",
        ),
        Ok(_) if subject.is_scripted() => {
            Verdict::skipped("the kit's own server looks at no secret")
        }
        Ok(_) => Verdict::warned(
            format!("the source took a wrong {name:?}"),
            "does the source check it, and does a ping ask for something that needs it?",
        ),
    };
    suite.found("open.wrong_secret", begun, verdict);
}
