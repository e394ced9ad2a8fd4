//! A seller API must answer alike on both of its routings (specification 4.7). This proves it for one
//! function, or says where the answers differ.

use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::Value;
use serde_json::value::RawValue;
use souk_domain::ids::{CompanyId, ConnectionId, ExecutionId, RequestId};
use souk_domain::products::SourceKind;
use souk_sandbox::{Call, Cell, Fault, Limits, Request, Route, Source};
use souk_store::connections::{self, ProbeAsset};

use super::ConnectionError;
use super::check::{Report, explain};
use super::differences::differences;
use crate::App;

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
    let path = (asset.source_kind == SourceKind::Path).then_some(asset.source.as_str());
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
    let found = differences("/answer_value", &first, &second);
    if found.count == 0 {
        return;
    }
    // A function of the present moment answers differently each time: that is no fault of a routing.
    if let Ok(again) = by_function().await
        && differences("/answer_value", &first, &again).count > 0
    {
        report.warnings.push(format!(
            "the two routings cannot be compared: {function_name} answers differently each time"
        ));
        return;
    }
    let more = match found.count - found.spelled.len() {
        0 => String::new(),
        more => format!("; and {more} more"),
    };
    report.error = Some(format!(
        "the two routings answer differently: {}{more} ({function_name} first, {path_name} second)",
        found.spelled.join("; ")
    ));
}

async fn call(
    app: &App,
    source: &Arc<Source>,
    probe: &Probe,
    route: Route,
    deadline: Instant,
) -> Result<Box<RawValue>, Fault> {
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
    let text = cell.as_str().unwrap_or("null").to_owned();
    Ok(RawValue::from_string(text).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn asset(kind: SourceKind, source: &str, parameters: Value) -> ProbeAsset {
        ProbeAsset {
            id: "ast_1".to_owned(),
            source_kind: kind,
            source: source.to_owned(),
            parameters: parameters.to_string(),
        }
    }

    /// An asset can be called without anybody's values only if its parameters have defaults.
    #[test]
    fn an_asset_is_a_probe_when_its_parameters_have_defaults() {
        let probe = probe_from(&asset(
            SourceKind::Function,
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
            SourceKind::Path,
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
                SourceKind::Function,
                "f",
                json!([{"name": "team", "required": true}])
            ))
            .is_none()
        );
    }
}
