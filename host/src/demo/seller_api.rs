//! The sample seller's API: an ordinary HTTP server that follows section 4.7 of the interface
//! specification, so that the demo calls a real one. It knows nothing of souk but the contract.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use axum::Router;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use serde_json::{Map, Value, json};
use tokio::net::TcpListener;

use super::dataset::TEAMS;

type Params = Map<String, Value>;
/// The error is the text of a 400.
type Function = fn(&Params) -> Result<Value, String>;

/// Matching is case-sensitive and exact.
const FUNCTIONS: &[(&str, Function)] = &[
    ("calculate_win_probability", calculate_win_probability),
    ("estimate_ticket_price", estimate_ticket_price),
    ("find_strongest_team", find_strongest_team),
];

/// A rating difference of this many points makes the stronger team ten times as likely to win.
const RATING_SCALE: f64 = 400.0;
/// What playing at home is worth.
const HOME_ADVANTAGE: f64 = 65.0;

/// Serves until the process ends.
pub fn start(listener: TcpListener, api_key: String) -> io::Result<SocketAddr> {
    let address = listener.local_addr()?;
    let app = Router::new()
        .route("/", post(by_function_id))
        .route("/{function_id}", post(by_path))
        .fallback(|| async { refusal(StatusCode::NOT_FOUND, json!({"error": "Unknown path"})) })
        .with_state(Arc::<str>::from(api_key));
    tokio::spawn(async move {
        if let Err(error) = axum::serve(listener, app).await {
            tracing::error!(%error, "the sample seller API stopped");
        }
    });
    Ok(address)
}

/// Function routing: `POST /` with `{function_id, params}`.
async fn by_function_id(
    State(api_key): State<Arc<str>>,
    headers: HeaderMap,
    body: String,
) -> Response {
    let Ok(Value::Object(mut body)) = serde_json::from_str(&body) else {
        return refusal(
            StatusCode::BAD_REQUEST,
            json!({"error": "The body must be a JSON object"}),
        );
    };
    let Some(Value::String(function_id)) = body.remove("function_id") else {
        return refusal(
            StatusCode::BAD_REQUEST,
            json!({"error": "function_id is missing"}),
        );
    };
    let params = match body.remove("params") {
        Some(Value::Object(params)) => params,
        _ => Map::new(),
    };
    answer(&api_key, &headers, &function_id, &params)
}

/// Direct routing: `POST /<function>` with the parameters as the body.
async fn by_path(
    State(api_key): State<Arc<str>>,
    Path(function_id): Path<String>,
    headers: HeaderMap,
    body: String,
) -> Response {
    let Ok(Value::Object(params)) = serde_json::from_str(&body) else {
        return refusal(
            StatusCode::BAD_REQUEST,
            json!({"error": "The body must be a JSON object"}),
        );
    };
    answer(&api_key, &headers, &function_id, &params)
}

/// The same for both routings, so that they cannot differ.
fn answer(api_key: &str, headers: &HeaderMap, function_id: &str, params: &Params) -> Response {
    let header = |name: &str| {
        headers
            .get(name)
            .and_then(|value| value.to_str().ok())
            .unwrap_or("")
    };
    if header("x-api-key") != api_key {
        return refusal(
            StatusCode::UNAUTHORIZED,
            json!({"error": "Invalid API key"}),
        );
    }
    let Some((_, function)) = FUNCTIONS.iter().find(|(name, _)| *name == function_id) else {
        let available: Vec<&str> = FUNCTIONS.iter().map(|(name, _)| *name).collect();
        return refusal(
            StatusCode::BAD_REQUEST,
            json!({"error": "Invalid function_id", "received": function_id, "available_functions": available}),
        );
    };
    match function(params) {
        Ok(answer_value) => {
            let body = json!({
                "timestamp": jiff::Timestamp::now().to_string(),
                "answer_value": answer_value,
                "asset_id": header("x-asset-id"),
            });
            (StatusCode::OK, axum::Json(body)).into_response()
        }
        Err(text) => refusal(StatusCode::BAD_REQUEST, json!({"error": text})),
    }
}

fn refusal(status: StatusCode, body: Value) -> Response {
    (status, axum::Json(body)).into_response()
}

/// Share of matches that the home team wins, from the teams' ratings.
fn calculate_win_probability(params: &Params) -> Result<Value, String> {
    let home = rating(params, "home_team")?;
    let away = rating(params, "away_team")?;
    let odds = 10_f64.powf((away - home - HOME_ADVANTAGE) / RATING_SCALE);
    Ok(json!(rounded(1.0 / (1.0 + odds), 3)))
}

/// In US dollars.
fn estimate_ticket_price(params: &Params) -> Result<Value, String> {
    let home = rating(params, "home_team")?;
    let away = rating(params, "away_team")?;
    Ok(json!(rounded(12.0 + (home + away - 2800.0) / 20.0, 2)))
}

fn find_strongest_team(_: &Params) -> Result<Value, String> {
    let strongest = TEAMS
        .iter()
        .max_by_key(|(_, rating)| *rating)
        .map(|(name, _)| *name);
    Ok(json!(strongest))
}

fn rating(params: &Params, name: &str) -> Result<f64, String> {
    let team = params
        .get(name)
        .and_then(Value::as_str)
        .ok_or_else(|| format!("Missing required parameter: {name}"))?;
    let found = TEAMS.iter().find(|(known, _)| *known == team);
    found
        .map(|(_, rating)| f64::from(*rating))
        .ok_or_else(|| format!("Unknown team: {team}"))
}

fn rounded(value: f64, digits: i32) -> f64 {
    let scale = 10_f64.powi(digits);
    (value * scale).round() / scale
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(key: &str, function: &str, params: Value) -> Response {
        let mut headers = HeaderMap::new();
        headers.insert("x-api-key", key.parse().unwrap());
        headers.insert("x-asset-id", "ast_1".parse().unwrap());
        answer("k", &headers, function, params.as_object().unwrap())
    }

    #[test]
    fn every_case_of_the_contract_has_its_status() {
        let params = json!({"home_team": TEAMS[0].0, "away_team": TEAMS[1].0});
        assert_eq!(
            call("k", "calculate_win_probability", params.clone()).status(),
            200
        );
        assert_eq!(
            call("k", "estimate_ticket_price", params.clone()).status(),
            200
        );
        assert_eq!(call("k", "find_strongest_team", json!({})).status(), 200);
        assert_eq!(
            call("k", "Calculate_Win_Probability", params.clone()).status(),
            400
        );
        assert_eq!(
            call("k", "calculate_win_probability", json!({})).status(),
            400
        );
        assert_eq!(call("x", "calculate_win_probability", params).status(), 401);
    }
}
