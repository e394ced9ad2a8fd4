//! That competitors answer the same, before any of them is measured.

use anyhow::{Context, ensure};
use serde_json::Value;
use souk_load::generator::Connection;

use crate::measure::Competitor;

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
    let mut body: Value = serde_json::from_slice(body)?;
    let rows = body.pointer_mut("/data/response/data").map(Value::take);
    let number = || body.pointer("/data/answer_value").cloned();
    rows.or_else(number).context("no rows and no number")
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
