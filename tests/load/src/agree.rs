//! That competitors answer the same, before any of them is measured.

use anyhow::{Context, ensure};
use serde_json::Value;
use souk_load::generator::Connection;

use crate::measure::Competitor;

/// Where a page has its rows, a calculation its number, and a chart its rows.
const TOLD: [&str; 3] = [
    "/data/response/data",
    "/data/answer_value",
    "/data/visualization/spec/data/values",
];

/// The first request of each has the rows, or the number, of the first competitor's.
pub async fn agree(query: &str, competitors: &[&Competitor]) -> anyhow::Result<()> {
    let mut first: Option<Value> = None;
    for competitor in competitors {
        let name = competitor.name;
        let answer = answer(competitor)
            .await
            .with_context(|| format!("{name} on {query}"))?;
        match &first {
            None => first = Some(answer),
            Some(first) => ensure!(
                are_equal(first, &answer),
                "{name} answers another thing than {} on {query}: {:.400} is not {:.400}",
                competitors[0].name,
                answer.to_string(),
                first.to_string()
            ),
        }
    }
    Ok(())
}

async fn answer(competitor: &Competitor) -> anyhow::Result<Value> {
    let mut connection = Connection::open(&competitor.address).await?;
    let request = competitor.requests.first().context("no request")?;
    let (status, body) = connection.exchange(request).await?;
    ensure!(
        status == 200,
        "answer {status}: {}",
        String::from_utf8_lossy(body)
    );
    told(body)
}

fn told(body: &[u8]) -> anyhow::Result<Value> {
    let body: Value = serde_json::from_slice(body)?;
    let told = TOLD.iter().find_map(|place| body.pointer(place));
    told.cloned().context("no rows and no number")
}

/// 1 and 1.0 are the same number, and so is true, which is a number in MariaDB and none as the native handlers write it.
fn are_equal(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Array(one), Value::Array(other)) => {
            let mut both = one.iter().zip(other);
            one.len() == other.len() && both.all(|(one, other)| are_equal(one, other))
        }
        (Value::Object(one), Value::Object(other)) => {
            let is_there = |(name, value): (&String, &Value)| {
                other.get(name).is_some_and(|other| are_equal(value, other))
            };
            one.len() == other.len() && one.iter().all(is_there)
        }
        (Value::Number(one), Value::Number(other)) => one.as_f64() == other.as_f64(),
        (Value::Bool(bool), Value::Number(number)) | (Value::Number(number), Value::Bool(bool)) => {
            number.as_u64() == Some(u64::from(*bool))
        }
        _ => one == other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_is_told_is_found() {
        let rows = json!([{"shirt": 1}]);
        for (body, expected) in [
            (json!({"data": {"response": {"data": rows}}}), &rows),
            (json!({"data": {"answer_value": 7}}), &json!(7)),
            (
                json!({"data": {"visualization": {"spec": {"mark": "bar", "data": {"values": rows}}}}}),
                &rows,
            ),
        ] {
            let told = told(body.to_string().as_bytes()).expect("an answer");
            assert_eq!(&told, expected);
        }
        assert!(told(br#"{"data":{}}"#).is_err());
    }

    #[test]
    fn what_differs_is_seen() {
        let one = json!([{"id": 1, "rating": 1.0}]);
        assert!(are_equal(&one, &json!([{"rating": 1, "id": 1}])));
        for other in [
            json!([]),
            json!([{"id": 1}]),
            json!([{"id": 1, "rating": 1.1}]),
            json!([{"id": "1", "rating": 1.0}]),
        ] {
            assert!(!are_equal(&one, &other), "{other}");
        }
    }
}
