//! The connector against real HTTP servers: what leaves, and what every kind of answer becomes. The
//! host's part (carrying out requests) is played by reqwest.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::http::{HeaderMap, StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use axum::routing::any;
use souk_connector_seller_api::SellerApi;
use souk_sdk::{
    Batch, Call, ColumnData, Command, Driver, Error, ErrorClass, Event, Header, HttpFailure,
    HttpRequest, HttpResponse, Input, Limits, Machine, Request, Route, Settings, Step, WireFault,
};

const KEY: &str = "seller-secret-1";
const LIMITS: Limits = Limits {
    rows_max: 10,
    bytes_max: 1 << 20,
    timeout_ms: 20_000,
};

#[tokio::test]
async fn both_routings_answer_alike_and_carry_the_headers() {
    let seller = Seller::start(follow_the_contract).await;
    let by_function = seller
        .call(Route::Function("mean_goals".into()), r#"{"team":"A"}"#)
        .await
        .unwrap();
    let by_path = seller
        .call(Route::Path("/mean_goals".into()), r#"{"team":"A"}"#)
        .await
        .unwrap();
    assert_eq!(by_function, ("2.50".to_owned(), 1_767_225_600_000_000));
    assert_eq!(by_function, by_path);

    let seen = seller.seen.lock().unwrap();
    assert_eq!(seen[0].path, "/base/");
    assert_eq!(
        seen[0].body,
        r#"{"function_id":"mean_goals","params":{"team":"A"}}"#
    );
    assert_eq!(seen[1].path, "/base/mean_goals");
    assert_eq!(seen[1].body, r#"{"team":"A"}"#);
    for request in seen.iter() {
        let sent = |name: &str| {
            request
                .headers
                .get(name)
                .and_then(|value| value.to_str().ok())
                .unwrap_or("")
        };
        assert_eq!(sent("x-api-key"), KEY);
        assert_eq!(sent("x-asset-id"), "ast_7");
        assert_eq!(sent("content-type"), "application/json");
        assert_eq!(sent("accept-encoding"), "identity");
        assert_eq!(sent("x-request-id"), "req_7");
        assert_eq!(sent("idempotency-key"), "exe_7");
    }
}

#[tokio::test]
async fn an_unknown_function_is_the_sellers_fault_and_a_missing_parameter_the_callers() {
    let seller = Seller::start(follow_the_contract).await;
    let error = seller
        .call(Route::Function("nope".into()), "{}")
        .await
        .unwrap_err();
    assert_eq!(
        (error.class, error.code.as_str()),
        (ErrorClass::Source, "unknown_function")
    );
    let error = seller
        .call(Route::Function("mean_goals".into()), "{}")
        .await
        .unwrap_err();
    assert_eq!(
        (error.class, error.code.as_str()),
        (ErrorClass::InvalidRequest, "parameters_refused")
    );
    assert_eq!(error.detail.as_deref(), Some("team is missing"));
}

#[tokio::test]
async fn a_wrong_key_is_an_authentication_failure() {
    let mut seller = Seller::start(follow_the_contract).await;
    seller.key = "wrong".to_owned();
    let error = seller
        .call(Route::Function("mean_goals".into()), "{}")
        .await
        .unwrap_err();
    assert_eq!(
        (error.class, error.source_code.as_deref()),
        (ErrorClass::Authentication, Some("401"))
    );
    assert_eq!(
        seller.ping().await.unwrap_err().class,
        ErrorClass::Authentication
    );
}

#[tokio::test]
async fn a_ping_names_the_functions_and_runs_none() {
    let seller = Seller::start(follow_the_contract).await;
    // Each is another one: an API may keep its answers by this header.
    for _ in 0..2 {
        assert_eq!(
            seller.ping().await.unwrap(),
            "seller API, functions: mean_goals"
        );
    }
    let seen = seller.seen.lock().unwrap();
    let key = |at: usize| seen[at].headers["idempotency-key"].clone();
    assert_ne!(key(0), key(1));
}

#[tokio::test]
async fn an_answer_for_another_asset_or_beyond_the_cap_is_a_bad_answer() {
    let seller = Seller::start(|_, _| {
        (
            StatusCode::OK,
            r#"{"timestamp":"2026-01-01T00:00:00Z","answer_value":1,"asset_id":"ast_8"}"#,
        )
            .into_response()
    })
    .await;
    let error = seller
        .call(Route::Function("f".into()), "{}")
        .await
        .unwrap_err();
    assert_eq!(
        (error.class, error.code.as_str()),
        (ErrorClass::Source, "bad_answer")
    );

    let seller =
        Seller::start(|_, _| (StatusCode::OK, " ".repeat((1 << 20) + 1)).into_response()).await;
    let error = seller
        .call(Route::Function("f".into()), "{}")
        .await
        .unwrap_err();
    assert_eq!(
        (error.class, error.code.as_str()),
        (ErrorClass::Source, "bad_answer")
    );
}

#[tokio::test]
async fn a_closed_port_and_a_connection_broken_half_way_are_unavailable() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let mut seller = Seller::at(listener.local_addr().unwrap().to_string());
    let breaking = std::thread::spawn(move || drop(listener.accept().unwrap()));
    let error = seller
        .call(Route::Function("f".into()), "{}")
        .await
        .unwrap_err();
    assert_eq!(error.class, ErrorClass::Unavailable);
    breaking.join().unwrap();

    seller.origin = "127.0.0.1:1".to_owned();
    let error = seller
        .call(Route::Function("f".into()), "{}")
        .await
        .unwrap_err();
    assert_eq!(
        (error.class, error.code.as_str()),
        (ErrorClass::Unavailable, "connection_refused")
    );
}

#[tokio::test]
async fn a_seller_that_does_not_answer_is_a_timeout() {
    // Accepts into the backlog and never reads.
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let seller = Seller::at(listener.local_addr().unwrap().to_string());
    let error = seller
        .call_within(100, Route::Function("f".into()), "{}")
        .await
        .unwrap_err();
    assert_eq!(error.class, ErrorClass::Timeout);
}

#[tokio::test]
async fn calls_in_flight_together_do_not_disturb_one_another() {
    let seller = Seller::start(follow_the_contract).await;
    let mut session = seller.session();
    let mut requests = Vec::new();
    for id in 0..8 {
        let mut step = Step::default();
        session
            .submit(
                id,
                seller.request(
                    LIMITS.timeout_ms,
                    Route::Function("mean_goals".into()),
                    r#"{"team":"A"}"#,
                ),
                &mut step,
            )
            .unwrap();
        requests.extend(step.into_parts().0);
    }
    assert_eq!(requests.len(), 8);
    let mut done = Vec::new();
    for command in requests.into_iter().rev() {
        let Command::Request(request) = command else {
            panic!("no request")
        };
        let mut step = Step::default();
        session
            .receive(seller.carry_out(request).await, &mut step)
            .unwrap();
        done.extend(
            step.into_parts()
                .1
                .into_iter()
                .filter_map(|event| match event {
                    Event::Done(id) => Some(id),
                    _ => None,
                }),
        );
    }
    assert_eq!(done, [7, 6, 5, 4, 3, 2, 1, 0]);
}

// The seller's side.

struct Seen {
    path: String,
    headers: HeaderMap,
    body: String,
}

struct Seller {
    origin: String,
    key: String,
    seen: Arc<Mutex<Vec<Seen>>>,
}

impl Seller {
    fn at(origin: String) -> Seller {
        Seller {
            origin,
            key: KEY.to_owned(),
            seen: Arc::default(),
        }
    }

    async fn start(answer: fn(&Seen, &serde_json::Value) -> Response) -> Seller {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let seller = Seller::at(listener.local_addr().unwrap().to_string());
        let seen = seller.seen.clone();
        let handler = move |uri: Uri, headers: HeaderMap, body: String| async move {
            let request = Seen {
                path: uri.path().to_owned(),
                headers,
                body,
            };
            let response = answer(&request, &serde_json::from_str(&request.body).unwrap());
            seen.lock().unwrap().push(request);
            response
        };
        let app = axum::Router::new().fallback(any(handler));
        tokio::spawn(async move { axum::serve(listener, app).await });
        seller
    }

    fn session(&self) -> Driver<SellerApi> {
        let json = serde_json::json!({"api_key": self.key}).to_string();
        let mut session = Driver::<SellerApi>::open(Settings {
            engine: "seller-api".into(),
            json,
        })
        .unwrap();
        let mut step = Step::default();
        session.start(&mut step).unwrap();
        assert!(matches!(step.into_parts().1[..], [Event::Ready]));
        session
    }

    fn request(&self, timeout_ms: u32, route: Route, parameters: &str) -> Request {
        Request::Call(Call {
            route,
            parameters: parameters.to_owned(),
            asset_id: "ast_7".into(),
            request_id: "req_7".into(),
            execution_id: "exe_7".into(),
            limits: Limits {
                timeout_ms,
                ..LIMITS
            },
        })
    }

    async fn call(&self, route: Route, parameters: &str) -> Result<(String, i64), Error> {
        self.call_within(LIMITS.timeout_ms, route, parameters).await
    }

    async fn call_within(
        &self,
        timeout_ms: u32,
        route: Route,
        parameters: &str,
    ) -> Result<(String, i64), Error> {
        let batch = self
            .run(self.request(timeout_ms, route, parameters))
            .await?;
        match &batch.chunks[..] {
            [value, time] => match (&value.data, &time.data) {
                (ColumnData::VarLen(text), ColumnData::I64s(micros)) => {
                    Ok((String::from_utf8(text.bytes.clone()).unwrap(), micros[0]))
                }
                other => panic!("{other:?}"),
            },
            other => panic!("{other:?}"),
        }
    }

    async fn ping(&self) -> Result<String, Error> {
        let batch = self.run(Request::Ping(LIMITS)).await?;
        match &batch.chunks[0].data {
            ColumnData::VarLen(text) => Ok(String::from_utf8(text.bytes.clone()).unwrap()),
            other => panic!("{other:?}"),
        }
    }

    /// One request on a session of its own, to its end.
    async fn run(&self, request: Request) -> Result<Batch, Error> {
        let mut session = self.session();
        let mut step = Step::default();
        session.submit(1, request, &mut step).unwrap();
        let mut answer = None;
        loop {
            let (commands, events) = std::mem::take(&mut step).into_parts();
            for event in events {
                match event {
                    Event::Batch(rows) => answer = Some(rows.batch),
                    Event::Done(_) => return Ok(answer.unwrap()),
                    Event::Failed(failure) => return Err(failure.error),
                    _ => {}
                }
            }
            for command in commands {
                let Command::Request(request) = command else {
                    panic!("an HTTP connector asked for a wire")
                };
                session
                    .receive(self.carry_out(request).await, &mut step)
                    .unwrap();
            }
        }
    }

    /// What the host does with a request.
    async fn carry_out(&self, request: HttpRequest) -> Input {
        let id = request.id;
        match self.exchange(request).await {
            Ok(response) => Input::Response(response),
            Err(fault) => Input::RequestFailed(HttpFailure {
                id,
                fault,
                message: String::new(),
            }),
        }
    }

    async fn exchange(&self, request: HttpRequest) -> Result<HttpResponse, WireFault> {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let client = reqwest::Client::builder()
            .redirect(reqwest::redirect::Policy::none())
            .build()
            .unwrap();
        let mut outgoing = client
            .request(
                request.method.parse().unwrap(),
                format!("http://{}/base{}", self.origin, request.path),
            )
            .timeout(Duration::from_millis(request.timeout_ms.into()))
            .body(request.body);
        for header in request.headers {
            outgoing = outgoing.header(header.name, header.value);
        }
        let fault = |error: reqwest::Error| match () {
            () if error.is_timeout() => WireFault::Timeout,
            () if error.is_connect() => WireFault::Refused,
            () => WireFault::Reset,
        };
        let response = outgoing.send().await.map_err(fault)?;
        let status = response.status().as_u16();
        let headers = response
            .headers()
            .iter()
            .map(|(name, value)| Header {
                name: name.to_string(),
                value: value.to_str().unwrap().to_owned(),
            })
            .collect();
        let body = response.bytes().await.map_err(fault)?.to_vec();
        if body.len() as u64 > request.response_bytes_max {
            return Err(WireFault::BadResponse);
        }
        Ok(HttpResponse {
            id: request.id,
            status,
            headers,
            body,
        })
    }
}

/// A seller who does what section 4.7 says.
fn follow_the_contract(request: &Seen, body: &serde_json::Value) -> Response {
    let json =
        |status: StatusCode, body: serde_json::Value| (status, axum::Json(body)).into_response();
    if request.headers["x-api-key"] != KEY {
        return json(
            StatusCode::UNAUTHORIZED,
            serde_json::json!({"error": "Invalid API key"}),
        );
    }
    let (function, params) = match request.path.as_str() {
        "/base/" => (body["function_id"].as_str().unwrap(), &body["params"]),
        path => (path.trim_start_matches("/base/"), body),
    };
    if function != "mean_goals" {
        return json(
            StatusCode::BAD_REQUEST,
            serde_json::json!({"error": "Invalid function_id", "received": function, "available_functions": ["mean_goals"]}),
        );
    }
    if params["team"].is_null() {
        return json(
            StatusCode::BAD_REQUEST,
            serde_json::json!({"error": "team is missing"}),
        );
    }
    let asset_id = request.headers["x-asset-id"].to_str().unwrap();
    let body = format!(
        r#"{{"timestamp":"2026-01-01T00:00:00Z","answer_value":2.50,"asset_id":"{asset_id}"}}"#
    );
    (StatusCode::OK, body).into_response()
}
