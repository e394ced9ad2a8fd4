//! A seller API must answer alike on both of its routings (specification 4.7). This proves it for one
//! function, or says where the answers differ.

use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::Value;
use souk_domain::ids::{CompanyId, ConnectionId, ExecutionId, RequestId};
use souk_sandbox::{Call, Cell, Fault, Limits, Request, Route, Source};
use souk_store::connections::{self, ProbeAsset};

use super::ConnectionError;
use super::check::{Report, cut, explain};
use crate::App;

/// Differences that are spelled out; the first few show what is wrong.
const DIFFERENCES_MAX: usize = 5;
/// Characters of a value that are quoted.
const VALUE_CHARS_MAX: usize = 200;
/// The answer of one function (routes 17).
const ANSWER: (u32, u64) = (1, 1024 * 1024);
/// A seller's function has ten seconds (routes 17).
const CALL_MAX: Duration = Duration::from_secs(10);
/// What the seller sees as the asset when none is involved.
const PROBE_ASSET: &str = "connection_test";

/// One function to call on both routings.
#[derive(Debug, Clone)]
pub struct Probe {
    pub function_id: String,
    /// Of direct routing; begins with `/`.
    pub path: String,
    /// A JSON object, as text.
    pub params: String,
    pub asset_id: String,
}

impl Probe {
    /// `path` absent: `/` and the function's name.
    pub fn new(function_id: &str, path: Option<&str>, params: String) -> Probe {
        Probe {
            function_id: function_id.to_owned(),
            path: path.map_or_else(|| format!("/{function_id}"), str::to_owned),
            params,
            asset_id: PROBE_ASSET.to_owned(),
        }
    }
}

/// The function of an asset that runs on this connection, if its parameters all have defaults.
pub(super) async fn probe_of_asset(
    app: &App,
    company: &CompanyId,
    id: &ConnectionId,
) -> Result<Option<Probe>, ConnectionError> {
    let assets = connections::probe_assets(&mut *app.db.read().await?, company, id).await?;
    Ok(assets.iter().find_map(probe_from))
}

fn probe_from(asset: &ProbeAsset) -> Option<Probe> {
    let declared: Vec<Value> = serde_json::from_str(&asset.parameters).ok()?;
    let mut params = serde_json::Map::new();
    for parameter in &declared {
        let name = parameter.get("name")?.as_str()?;
        match parameter
            .get("default")
            .filter(|default| !default.is_null())
        {
            Some(default) => {
                params.insert(name.to_owned(), default.clone());
            }
            None if parameter.get("required") == Some(&Value::Bool(false)) => {}
            None => return None,
        }
    }
    let function_id = asset.source.trim_start_matches('/');
    let path = (asset.source_kind == "path").then_some(asset.source.as_str());
    let probe = Probe::new(function_id, path, Value::Object(params).to_string());
    Some(Probe {
        asset_id: asset.id.clone(),
        ..probe
    })
}

/// Calls the function on both routings and writes what it finds into the report.
pub(super) async fn compare(
    app: &App,
    source: &Arc<Source>,
    probe: Option<Probe>,
    deadline: Instant,
    report: &mut Report,
) {
    let Some(probe) = probe else {
        report.warnings.push(
            "the two routings were not compared: send function_id (and params), \
             or save an asset whose parameters all have defaults"
                .to_owned(),
        );
        return;
    };
    let by_function = || {
        call(
            app,
            source,
            &probe,
            Route::Function(probe.function_id.as_str().into()),
            deadline,
        )
    };
    let by_path = || {
        call(
            app,
            source,
            &probe,
            Route::Path(probe.path.as_str().into()),
            deadline,
        )
    };
    let (first, second) = tokio::join!(by_function(), by_path());
    let function_name = format!(
        "function routing (POST / with function_id \"{}\")",
        probe.function_id
    );
    let path_name = format!("direct routing (POST {})", probe.path);
    let (first, second) = match (first, second) {
        (Ok(first), Ok(second)) => (first, second),
        (Err(fault), Ok(_)) => {
            report.error = Some(format!(
                "{path_name} answers, but {function_name} fails: {}",
                explain(&fault, source)
            ));
            return;
        }
        (Ok(_), Err(fault)) => {
            report.error = Some(format!(
                "{function_name} answers, but {path_name} fails: {}",
                explain(&fault, source)
            ));
            return;
        }
        (Err(first), Err(second)) => {
            report.error = Some(format!(
                "both routings fail: {function_name}: {}; {path_name}: {}",
                explain(&first, source),
                explain(&second, source)
            ));
            return;
        }
    };
    let mut differences = Vec::new();
    diff("/answer_value", &first, &second, &mut differences);
    if differences.is_empty() {
        return;
    }
    // A function of the present moment answers differently each time: that is no fault of a routing.
    if let Ok(again) = by_function().await
        && !equal(&first, &again)
    {
        report.warnings.push(format!(
            "the two routings cannot be compared: {function_name} answers differently each time"
        ));
        return;
    }
    let more = differences.len().saturating_sub(DIFFERENCES_MAX);
    differences.truncate(DIFFERENCES_MAX);
    let more = if more > 0 {
        format!("; and {more} more")
    } else {
        String::new()
    };
    report.error = Some(format!(
        "the two routings answer differently: {}{more} ({function_name} first, {path_name} second)",
        differences.join("; ")
    ));
}

async fn call(
    app: &App,
    source: &Arc<Source>,
    probe: &Probe,
    route: Route,
    deadline: Instant,
) -> Result<Value, Fault> {
    let now = app.clock.now();
    let call = Call {
        route,
        parameters: probe.params.clone(),
        asset_id: probe.asset_id.clone(),
        request_id: RequestId::generate_at(now).to_string(),
        // Two executions: a seller that keeps answers by execution would make the routings look alike.
        execution_id: ExecutionId::generate_at(now).to_string(),
        limits: Limits::new(ANSWER.0, ANSWER.1),
    };
    let deadline = deadline.min(Instant::now() + CALL_MAX);
    let output = app
        .sandbox
        .run(source, Request::Call(call), deadline)
        .await?;
    let cell = output
        .column("answer_value")
        .map_or(Cell::Null, |column| output.cell(0, column));
    Ok(cell
        .as_str()
        .and_then(|text| serde_json::from_str(text).ok())
        .unwrap_or_default())
}

/// Notes every place where two documents differ, as a JSON pointer with both values.
fn diff(pointer: &str, first: &Value, second: &Value, found: &mut Vec<String>) {
    match (first, second) {
        (Value::Object(a), Value::Object(b)) => {
            let names: std::collections::BTreeSet<&String> = a.keys().chain(b.keys()).collect();
            for name in names {
                let inner = format!("{pointer}/{}", name.replace('~', "~0").replace('/', "~1"));
                pair(&inner, a.get(name), b.get(name), found);
            }
        }
        (Value::Array(a), Value::Array(b)) => {
            for index in 0..a.len().max(b.len()) {
                pair(
                    &format!("{pointer}/{index}"),
                    a.get(index),
                    b.get(index),
                    found,
                );
            }
        }
        _ if equal(first, second) => {}
        _ => found.push(format!(
            "{pointer} is {} and {}",
            quote(Some(first)),
            quote(Some(second))
        )),
    }
}

fn pair(pointer: &str, first: Option<&Value>, second: Option<&Value>, found: &mut Vec<String>) {
    match (first, second) {
        (Some(first), Some(second)) => diff(pointer, first, second, found),
        _ => found.push(format!(
            "{pointer} is {} and {}",
            quote(first),
            quote(second)
        )),
    }
}

/// Numbers are compared as numbers: `1` and `1.0` are the same answer.
fn equal(first: &Value, second: &Value) -> bool {
    match (first, second) {
        (Value::Number(a), Value::Number(b)) => {
            a == b || (a.is_f64() || b.is_f64()) && a.as_f64() == b.as_f64()
        }
        (Value::Array(a), Value::Array(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| equal(a, b))
        }
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len()
                && a.iter()
                    .all(|(name, a)| b.get(name).is_some_and(|b| equal(a, b)))
        }
        _ => first == second,
    }
}

fn quote(value: Option<&Value>) -> String {
    match value {
        None => "absent".to_owned(),
        Some(value) => cut(&value.to_string(), VALUE_CHARS_MAX).to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn differences(first: Value, second: Value) -> Vec<String> {
        let mut found = Vec::new();
        diff("/answer_value", &first, &second, &mut found);
        found
    }

    /// A difference is named by its JSON pointer and both values.
    #[test]
    fn differences_are_pointed_at() {
        assert_eq!(differences(json!(1), json!(1.0)), Vec::<String>::new());
        assert_eq!(
            differences(json!(1), json!("1")),
            ["/answer_value is 1 and \"1\""]
        );
        assert_eq!(
            differences(
                json!({"a": [1, 2], "b/c": true}),
                json!({"a": [1, 3], "d": null})
            ),
            [
                "/answer_value/a/1 is 2 and 3",
                "/answer_value/b~1c is true and absent",
                "/answer_value/d is absent and null"
            ]
        );
    }

    fn asset(kind: &str, source: &str, parameters: Value) -> ProbeAsset {
        ProbeAsset {
            id: "ast_1".to_owned(),
            source_kind: kind.to_owned(),
            source: source.to_owned(),
            parameters: parameters.to_string(),
        }
    }

    /// An asset can be called without anybody's values only if its parameters have defaults.
    #[test]
    fn an_asset_is_a_probe_when_its_parameters_have_defaults() {
        let probe = probe_from(&asset(
            "function",
            "get_goals_v2",
            json!([{"name": "team", "default": "A"}]),
        ))
        .unwrap();
        assert_eq!(
            (probe.function_id.as_str(), probe.path.as_str()),
            ("get_goals_v2", "/get_goals_v2")
        );
        assert_eq!(probe.params, r#"{"team":"A"}"#);
        let probe = probe_from(&asset(
            "path",
            "/get_goals",
            json!([{"name": "x", "required": false}]),
        ))
        .unwrap();
        assert_eq!(
            (probe.function_id.as_str(), probe.path.as_str()),
            ("get_goals", "/get_goals")
        );
        assert!(
            probe_from(&asset(
                "function",
                "f",
                json!([{"name": "team", "required": true}])
            ))
            .is_none()
        );
    }
}
