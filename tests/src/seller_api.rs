//! A seller's own API over real HTTP, as section 4.7 of the specification wants it, and ways for it
//! to be wrong.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use axum::serve::Listener;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::watch;

use crate::tls::{Leaf, TlsListener};

pub const API_KEY: &str = "seller-secret-0123456789";
/// In whatever the API says when a team of [`SPOILT`] is asked for.
pub const SECRET: &str = "at /srv/pricing/margins.py:42";
/// Teams by which a function that worked fails, each in its own way.
pub const SPOILT: [&str; 5] = ["Broken", "Refused", "Locked", "Garbled", "Renamed"];

/// A team that begins with it makes any function do what the function does that follows: `"As no_answer"`.
pub const AS: &str = "As ";

/// Calls of `gathers` that are answered together: as many as a host has at an API at once.
pub const GATHERED: usize = 32;
/// Within what anybody waits for a seller's API.
const GATHERS_WITHIN: Duration = Duration::from_secs(8);

/// Functions of the sample API. Every one is reached by function routing (`POST /`) and by direct
/// routing (`POST /{function_id}`).
///
/// - `sum_goals` {team}: 21 for every team, 0 for `"Nobody"`, no team: 400; [`SPOILT`] teams make it fail with a [`SECRET`] in its words
/// - `describe_team` {team}: a string
/// - `exact`: a number with more digits than a float has
/// - `differs`: another number by direct routing; `differs_a_little`: in a digit that a float does not have; `by_path_only`: fails by function routing; `counts`: another number each time
/// - `gathers`: the number of its calls, as soon as [`GATHERED`] have come; those that have waited too long for the others fail
/// - `wrong_echo`, `no_answer`, `bad_timestamp`, `not_json`, `fails`, `slow`, `huge`, `redirects`, `teapot`: the ways to be wrong
pub struct SellerApi {
    pub address: SocketAddr,
    scheme: &'static str,
    came: Arc<Came>,
    task: tokio::task::JoinHandle<()>,
}

/// What has come.
struct Came {
    calls: AtomicU64,
    /// Calls of `gathers`.
    gathering: watch::Sender<usize>,
}

impl SellerApi {
    pub async fn start() -> SellerApi {
        SellerApi::serve("http", listener().await)
    }

    /// Over TLS, with this certificate.
    pub async fn start_tls(leaf: &Leaf) -> SellerApi {
        SellerApi::serve("https", TlsListener::new(listener().await, leaf))
    }

    fn serve<L>(scheme: &'static str, listener: L) -> SellerApi
    where
        L: Listener<Addr = SocketAddr>,
    {
        let came = Arc::new(Came {
            calls: AtomicU64::new(0),
            gathering: watch::Sender::new(0),
        });
        let address = listener.local_addr().expect("an address");
        let router = Router::new().fallback(answer).with_state(Arc::clone(&came));
        let task = tokio::spawn(async move {
            axum::serve(listener, router)
                .await
                .expect("the sample API serves");
        });
        SellerApi {
            address,
            scheme,
            came,
            task,
        }
    }

    pub fn base_url(&self) -> String {
        format!("{}://{}", self.scheme, self.address)
    }

    /// Requests that arrived, refused ones included.
    pub fn calls(&self) -> u64 {
        self.came.calls.load(Ordering::Relaxed)
    }
}

impl Came {
    /// Whether all of them come while one waits.
    async fn gathers(&self) -> bool {
        self.gathering.send_modify(|came| *came += 1);
        let mut gathering = self.gathering.subscribe();
        let all = gathering.wait_for(|came| *came >= GATHERED);
        tokio::time::timeout(GATHERS_WITHIN, all).await.is_ok()
    }
}

impl Drop for SellerApi {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn listener() -> TcpListener {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await;
    listener.expect("a port")
}

async fn answer(
    State(came): State<Arc<Came>>,
    uri: Uri,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    came.calls.fetch_add(1, Ordering::Relaxed);
    let header = |name: &str| {
        headers
            .get(name)
            .and_then(|value| value.to_str().ok())
            .unwrap_or("")
            .to_owned()
    };
    if header("x-api-key") != API_KEY {
        return (
            StatusCode::UNAUTHORIZED,
            axum::Json(json!({"error": "Invalid API key"})),
        )
            .into_response();
    }
    let Ok(body) = serde_json::from_slice::<Value>(&body) else {
        return (
            StatusCode::BAD_REQUEST,
            axum::Json(json!({"error": "the body is no JSON"})),
        )
            .into_response();
    };
    let direct = uri.path() != "/";
    let (function, params) = match direct {
        true => (uri.path().trim_start_matches('/').to_owned(), body),
        false => (
            body["function_id"].as_str().unwrap_or("").to_owned(),
            body["params"].clone(),
        ),
    };
    let instead = params["team"]
        .as_str()
        .and_then(|team| team.strip_prefix(AS));
    let function = instead.map_or(function, str::to_owned);
    let asset_id = header("x-asset-id");
    let ok = |value: Value| {
        axum::Json(json!({"timestamp": "2026-11-20T08:00:00Z", "answer_value": value, "asset_id": asset_id})).into_response()
    };
    match function.as_str() {
        "sum_goals" => match params["team"].as_str() {
            None => (StatusCode::BAD_REQUEST, axum::Json(json!({"error": "Missing required parameter: team"}))).into_response(),
            Some("Nobody") => ok(json!(0)),
            Some("Broken") => (StatusCode::INTERNAL_SERVER_ERROR, axum::Json(json!({"error": SECRET}))).into_response(),
            Some("Refused") => (StatusCode::BAD_REQUEST, axum::Json(json!({"error": SECRET}))).into_response(),
            Some("Locked") => (StatusCode::UNAUTHORIZED, axum::Json(json!({"error": SECRET}))).into_response(),
            Some("Garbled") => format!("<html>{SECRET}</html>").into_response(),
            Some("Renamed") => {
                let body = json!({"error": SECRET, "received": SECRET, "available_functions": [SECRET]});
                (StatusCode::BAD_REQUEST, axum::Json(body)).into_response()
            }
            Some(_) => ok(json!(21)),
        },
        "describe_team" => ok(json!(format!("a team called {}", params["team"].as_str().unwrap_or("?")))),
        "exact" => {
            let text = format!(
                r#"{{"timestamp":"2026-11-20T08:00:00Z","answer_value":12345678901234567890.123456789,"asset_id":"{asset_id}"}}"#
            );
            ([("content-type", "application/json")], text).into_response()
        }
        "differs_a_little" => {
            let digit = if direct { 3 } else { 2 };
            let text = format!(r#"{{"timestamp":"2026-11-20T08:00:00Z","answer_value":900719925474099{digit},"asset_id":"{asset_id}"}}"#);
            ([("content-type", "application/json")], text).into_response()
        }
        "differs" => ok(json!(if direct { 2 } else { 1 })),
        "counts" => ok(json!(came.calls.load(Ordering::Relaxed))),
        "gathers" => match came.gathers().await {
            true => ok(json!(GATHERED)),
            false => (StatusCode::SERVICE_UNAVAILABLE, axum::Json(json!({"error": "the others did not come"}))).into_response(),
        },
        "by_path_only" if !direct => (StatusCode::INTERNAL_SERVER_ERROR, axum::Json(json!({"error": "not here"}))).into_response(),
        "by_path_only" => ok(json!(1)),
        "wrong_echo" => {
            axum::Json(json!({"timestamp": "2026-11-20T08:00:00Z", "answer_value": 1, "asset_id": "ast_somebodyelse"})).into_response()
        }
        "no_answer" => axum::Json(json!({"timestamp": "2026-11-20T08:00:00Z", "asset_id": asset_id})).into_response(),
        "bad_timestamp" => {
            axum::Json(json!({"timestamp": "yesterday", "answer_value": 1, "asset_id": asset_id})).into_response()
        }
        "not_json" => "<html>hello</html>".into_response(),
        "fails" => (StatusCode::INTERNAL_SERVER_ERROR, axum::Json(json!({"error": "the seller's secret stack trace"}))).into_response(),
        "teapot" => StatusCode::IM_A_TEAPOT.into_response(),
        "redirects" => (StatusCode::FOUND, [("location", "http://169.254.169.254/")]).into_response(),
        "slow" => {
            tokio::time::sleep(Duration::from_secs(60)).await;
            ok(json!(1))
        }
        "huge" => ok(json!("x".repeat(3 << 20))),
        _ => {
            let available = ["sum_goals", "describe_team", "exact"];
            let body = json!({"error": "Invalid function_id", "received": function, "available_functions": available});
            (StatusCode::BAD_REQUEST, axum::Json(body)).into_response()
        }
    }
}
