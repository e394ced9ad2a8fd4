//! What the host's log must not say, whoever wants it to.

use std::collections::HashMap;

use serde_json::Value;

/// A few texts of a screen each: what guests and sources say at length is cut.
const LINE_BYTES_MAX: usize = 8 << 10;
/// Of connectors that fail, for which the host has a pace.
const PACED: [&str; 2] = ["a connector broke", "a connector failed to open a session"];
/// What is told once in ten seconds; a line may be written a little later than it was decided upon.
const APART_SECONDS_MIN: f64 = 9.0;
const DAY_SECONDS: f64 = 86_400.0;

/// What is wrong with it.
pub fn wrong(log: &str) -> Vec<String> {
    let mut wrong = Vec::new();
    let mut told = HashMap::new();
    for line in log.lines() {
        if line.len() > LINE_BYTES_MAX {
            let beginning = &line[..line.floor_char_boundary(300)];
            wrong.push(format!("a line of {} bytes: {beginning}", line.len()));
        }
        // A guest's panic is told in a line of the log, which is JSON.
        if !line.starts_with('{') && line.contains("panicked at") {
            wrong.push(format!("the host panicked: {line}"));
        }
        let Some((connection, second)) = paced(line) else {
            continue;
        };
        let before = told.insert(connection.clone(), second);
        let apart = before.map(|before: f64| (second - before).rem_euclid(DAY_SECONDS));
        if apart.is_some_and(|apart| apart < APART_SECONDS_MIN) {
            wrong.push(format!(
                "the connector of {connection} is told of after {apart:?} s"
            ));
        }
    }
    wrong
}

/// Of a line about a connector that failed: its data connection, and in which second of the day it was written.
fn paced(line: &str) -> Option<(String, f64)> {
    let line: Value = serde_json::from_str(line).ok()?;
    if !PACED.contains(&line["message"].as_str()?) {
        return None;
    }
    let (_, time) = line["timestamp"].as_str()?.split_once('T')?;
    let parts = time.trim_end_matches('Z').split(':');
    let seconds = parts
        .map(str::parse::<f64>)
        .try_fold(0.0_f64, |seconds, part| {
            part.map(|part| seconds * 60.0 + part)
        });
    Some((line["connection"].as_str()?.to_owned(), seconds.ok()?))
}

/// Each of these is noticed, and nothing else.
#[test]
fn what_is_wrong_with_a_log_is_noticed() {
    let line = |time: &str, message: &str, connection: &str| {
        format!(
            r#"{{"timestamp":"2026-11-26T{time}Z","level":"WARN","message":"{message}","connection":"{connection}"}}"#
        )
    };
    let [broke, opened] = PACED;
    let right = [
        line("23:59:55.000001", broke, "con_1"),
        line("23:59:58.5", broke, "con_2"),
        line("00:00:05.1", opened, "con_1"),
        line("00:00:05.2", "something else", "con_1"),
        r#"{"message":"the guest said: panicked at"}"#.to_owned(),
        "x".repeat(LINE_BYTES_MAX),
    ];
    assert_eq!(wrong(&right.join("\n")), Vec::<String>::new());
    for lines in [
        [line("10:00:59", broke, "c"), line("10:01:01", opened, "c")].join("\n"),
        "x".repeat(LINE_BYTES_MAX + 1),
        "thread 'main' panicked at host/src/main.rs:1:1:".to_owned(),
    ] {
        assert_eq!(wrong(&lines).len(), 1, "{lines}");
    }
}
