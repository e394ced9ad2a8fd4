//! A stand-in for Stripe on this machine: it checks what it is sent as Stripe's documentation says, answers like it, and signs events.

use crate::world::now;
use axum::body::Bytes;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use axum::{Json, Router};
use hmac::{Hmac, KeyInit, Mac};
use http::{HeaderMap, StatusCode};
use serde_json::{Value, json};
use sha2::Sha256;
use souk_app::payments::stripe::Stripe;
use std::collections::HashMap;
use std::sync::{Arc, Mutex};

pub const SECRET_KEY: &str = "sk_test_souk";
pub const WEBHOOK_SECRET: &str = "whsec_souk";

/// How it answers the next requests.
#[derive(Clone, Copy, PartialEq)]
pub enum Mood {
    Well,
    /// 500 to the first attempt of every request.
    Stumbling,
    /// 500 to everything.
    Down,
    /// 402 to everything.
    Refusing,
    /// More bytes than any answer has.
    Flooding,
}

type Form = HashMap<String, String>;

#[derive(Default)]
pub struct Seen {
    /// By `Idempotency-Key`.
    sessions: HashMap<String, (Form, Value)>,
    pub requests: usize,
}

#[derive(Clone)]
pub struct StandIn {
    url: String,
    mood: Arc<Mutex<Mood>>,
    seen: Arc<Mutex<Seen>>,
}

impl StandIn {
    pub async fn start() -> StandIn {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let stand_in = StandIn {
            url: format!("http://{}", listener.local_addr().unwrap()),
            mood: Arc::new(Mutex::new(Mood::Well)),
            seen: Arc::default(),
        };
        let router = Router::new()
            .route("/v1/checkout/sessions", post(create_session))
            .with_state(stand_in.clone());
        tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
        stand_in
    }

    pub fn provider(&self) -> Arc<Stripe> {
        let (key, secret) = (SECRET_KEY.to_owned(), WEBHOOK_SECRET.to_owned());
        Arc::new(Stripe::new(&self.url, key, secret).unwrap())
    }

    pub fn feel(&self, mood: Mood) {
        *self.mood.lock().unwrap() = mood;
    }

    pub fn requests(&self) -> usize {
        self.seen.lock().unwrap().requests
    }

    /// The form that made the session of a top-up, and the session.
    pub fn session(&self, top_up: &str) -> (Form, Value) {
        self.seen.lock().unwrap().sessions[top_up].clone()
    }

    /// An event about a session, as Stripe writes it.
    pub fn event(&self, id: &str, kind: &str, top_up: &str, payment_status: &str) -> Value {
        let (_, mut session) = self.session(top_up);
        session["payment_status"] = payment_status.into();
        json!({
            "id": id, "object": "event", "api_version": "2024-06-20", "created": now().seconds(), "livemode": false,
            "pending_webhooks": 1, "request": {"id": null, "idempotency_key": null}, "type": kind, "data": {"object": session},
        })
    }
}

fn error(status: u16, kind: &str, message: &str, param: Option<&str>) -> Response {
    let body = json!({"error": {"type": kind, "message": message, "param": param}});
    (StatusCode::from_u16(status).unwrap(), Json(body)).into_response()
}

async fn create_session(
    State(stand_in): State<StandIn>,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    let header = |name: &str| {
        headers
            .get(name)
            .and_then(|value| value.to_str().ok())
            .unwrap_or_default()
            .to_owned()
    };
    let mood = *stand_in.mood.lock().unwrap();
    let mut seen = stand_in.seen.lock().unwrap();
    seen.requests += 1;
    match mood {
        Mood::Down => return error(500, "api_error", "down", None),
        Mood::Stumbling if seen.requests % 2 == 1 => {
            return error(500, "api_error", "stumbled", None);
        }
        Mood::Refusing => return error(402, "card_error", "your account is closed", None),
        Mood::Flooding => return "x".repeat(1 << 20).into_response(),
        Mood::Well | Mood::Stumbling => {}
    }
    if header("authorization") != format!("Bearer {SECRET_KEY}") {
        return error(
            401,
            "invalid_request_error",
            "Invalid API Key provided",
            None,
        );
    }
    assert_eq!(header("content-type"), "application/x-www-form-urlencoded");
    let key = header("idempotency-key");
    assert!(!key.is_empty(), "no Idempotency-Key");
    let form: Form = form_urlencoded::parse(&body)
        .map(|(name, value)| (name.into_owned(), value.into_owned()))
        .collect();
    if let Some((known, session)) = seen.sessions.get(&key) {
        return match *known == form {
            true => Json(session.clone()).into_response(),
            false => error(
                400,
                "idempotency_error",
                "Keys for idempotent requests can only be used with the same parameters",
                None,
            ),
        };
    }
    for required in [
        "mode",
        "success_url",
        "line_items[0][quantity]",
        "line_items[0][price_data][currency]",
        "line_items[0][price_data][product_data][name]",
    ] {
        if !form.contains_key(required) {
            let message = format!("Missing required param: {required}.");
            return error(400, "invalid_request_error", &message, Some(required));
        }
    }
    if let Some(method) = form.get("payment_method_types[0]")
        && !["card", "sepa_debit"].contains(&method.as_str())
    {
        let message = format!("Invalid payment_method_types[0]: {method}");
        return error(
            400,
            "invalid_request_error",
            &message,
            Some("payment_method_types[0]"),
        );
    }
    let cents: i64 = form["line_items[0][price_data][unit_amount]"]
        .parse()
        .unwrap();
    let id = format!("cs_test_{}", seen.sessions.len());
    let session = json!({
        "id": id, "object": "checkout.session", "amount_subtotal": cents, "amount_total": cents,
        "client_reference_id": form.get("client_reference_id"), "currency": form["line_items[0][price_data][currency]"],
        "livemode": false, "mode": form["mode"], "payment_intent": null, "payment_status": "unpaid", "status": "open",
        "success_url": form["success_url"], "url": format!("https://checkout.stripe.com/c/pay/{id}"),
    });
    seen.sessions.insert(key, (form, session.clone()));
    Json(session).into_response()
}

/// `Stripe-Signature` of a body.
pub fn sign(secret: &str, seconds: i64, body: &str) -> String {
    let mut mac = Hmac::<Sha256>::new_from_slice(secret.as_bytes()).unwrap();
    mac.update(format!("{seconds}.{body}").as_bytes());
    let signature = hex::encode(mac.finalize().into_bytes());
    format!("t={seconds},v1={signature},v0=0000")
}
