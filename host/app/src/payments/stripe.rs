//! Stripe: a Checkout session collects the money, a signed event says that it came.
//!
//! A session is made under the top-up's id as Stripe's `Idempotency-Key`, so that asking twice makes one. Only events count: that a payer's
//! browser came back proves nothing.

use futures_util::future::{BoxFuture, FutureExt};
use hmac::{Hmac, KeyInit, Mac};
use http::StatusCode;
use serde::Deserialize;
use serde_json::Value;
use sha2::Sha256;
use souk_domain::ids::TopUpId;
use souk_domain::money::UsdCents;
use souk_domain::time::Timestamp;

use super::client::{Client, Response};
use super::{
    BeginError, Begun, Checkout, Dispute, Event, EventError, News, Notice, Order, Provider,
};
use crate::protected::AddressError;

pub const BASE_URL: &str = "https://api.stripe.com";
/// How far an event's time may be from ours: Stripe's own libraries use the same. Older ones may be replays.
const TOLERANCE_SECONDS: i64 = 300;
/// The first attempt, and one more after a failure that says nothing about the request. Both together stay below the time that an
/// `Idempotency-Key` of ours is claimed for.
const ATTEMPTS: usize = 2;

pub struct Stripe {
    client: Client,
    secret_key: String,
    webhook_secret: String,
}

impl Stripe {
    pub fn new(
        base_url: &str,
        secret_key: String,
        webhook_secret: String,
    ) -> Result<Stripe, AddressError> {
        Ok(Stripe {
            client: Client::new(base_url)?,
            secret_key,
            webhook_secret,
        })
    }

    async fn open_session(&self, order: &Order) -> Result<Begun, BeginError> {
        let form = session_form(order);
        let mut failure = String::new();
        for _ in 0..ATTEMPTS {
            let answer = self
                .client
                .post_form(
                    "/v1/checkout/sessions",
                    &self.secret_key,
                    order.top_up.as_str(),
                    form.clone(),
                )
                .await;
            failure = match answer {
                Ok(answer) if is_worth_another_attempt(answer.status) => {
                    format!("Stripe answered {}", answer.status)
                }
                Ok(answer) => return read_session(&answer),
                Err(error) => error.to_string(),
            };
        }
        Err(BeginError::Unavailable(failure))
    }
}

impl Provider for Stripe {
    fn name(&self) -> &'static str {
        "stripe"
    }

    fn begin<'a>(&'a self, order: &'a Order) -> BoxFuture<'a, Result<Begun, BeginError>> {
        self.open_session(order).boxed()
    }

    fn read_event(
        &self,
        signature: Option<&str>,
        body: &[u8],
        now: Timestamp,
    ) -> Result<Option<Notice>, EventError> {
        let signature = signature.ok_or(EventError::Signature("there is none"))?;
        verify(&self.webhook_secret, signature, body, now)?;
        let event: EventIn = serde_json::from_slice(body)
            .map_err(|error| EventError::Malformed(error.to_string()))?;
        Ok(event.notice())
    }
}

fn session_form(order: &Order) -> String {
    let cents = order.credits.cents().get().to_string();
    let name = format!("{} credits", order.credits);
    let mut form = form_urlencoded::Serializer::new(String::new());
    form.append_pair("mode", "payment")
        .append_pair("client_reference_id", order.top_up.as_str())
        .append_pair("metadata[top_up_id]", order.top_up.as_str())
        .append_pair("metadata[company_id]", order.company.as_str())
        .append_pair("line_items[0][quantity]", "1")
        .append_pair("line_items[0][price_data][currency]", "usd")
        .append_pair("line_items[0][price_data][unit_amount]", &cents)
        .append_pair("line_items[0][price_data][product_data][name]", &name)
        .append_pair("success_url", &order.return_url)
        .append_pair("cancel_url", &order.return_url);
    if let Some(method) = &order.payment_method {
        form.append_pair("payment_method_types[0]", method);
    }
    form.finish()
}

/// 409: another request with this key is being executed. The rest says nothing about the request.
fn is_worth_another_attempt(status: StatusCode) -> bool {
    status == StatusCode::CONFLICT
        || status == StatusCode::TOO_MANY_REQUESTS
        || status.is_server_error()
}

#[derive(Deserialize)]
struct SessionIn {
    id: String,
    url: String,
}

#[derive(Deserialize)]
struct ErrorIn {
    error: ErrorBody,
}

#[derive(Deserialize)]
struct ErrorBody {
    message: Option<String>,
    param: Option<String>,
}

fn read_session(answer: &Response) -> Result<Begun, BeginError> {
    if answer.status.is_success() {
        let session: SessionIn = serde_json::from_slice(&answer.body)
            .map_err(|error| BeginError::Unavailable(format!("Stripe's answer: {error}")))?;
        return Ok(Begun::Waiting {
            checkout: Some(Checkout {
                reference: session.id,
                url: session.url,
            }),
        });
    }
    let error = serde_json::from_slice::<ErrorIn>(&answer.body).ok();
    let (message, param) = match error {
        Some(ErrorIn { error }) => (error.message, error.param),
        None => (None, None),
    };
    let message = message.unwrap_or_else(|| format!("Stripe answered {}", answer.status));
    match answer.status {
        // Our own key is wrong, or may not do this.
        StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => Err(BeginError::Unavailable(message)),
        _ if param.is_some_and(|name| name.starts_with("payment_method_types")) => {
            Err(BeginError::PaymentMethod(message))
        }
        _ => Err(BeginError::Refused(message)),
    }
}

/// Checks `t=<seconds>,v1=<hex>[,v1=<hex>…]`: while a secret is being replaced there are several signatures, of which one must fit.
fn verify(secret: &str, header: &str, body: &[u8], now: Timestamp) -> Result<(), EventError> {
    let mut time = None;
    let mut signatures = Vec::new();
    for part in header.split(',') {
        match part.trim().split_once('=') {
            Some(("t", value)) => time = Some(value),
            Some(("v1", value)) => signatures.extend(hex::decode(value).ok()),
            _ => {}
        }
    }
    let time = time.ok_or(EventError::Signature("it has no time"))?;
    let seconds: i64 = time
        .parse()
        .map_err(|_| EventError::Signature("its time is no number"))?;
    let mut mac = Hmac::<Sha256>::new_from_slice(secret.as_bytes())
        .map_err(|_| EventError::Signature("the secret cannot be used"))?;
    mac.update(time.as_bytes());
    mac.update(b".");
    mac.update(body);
    // `verify_slice` compares in constant time.
    let fits = signatures
        .iter()
        .any(|signature| mac.clone().verify_slice(signature).is_ok());
    if !fits {
        return Err(EventError::Signature("it was made with another secret"));
    }
    if seconds.abs_diff(now.seconds()) > TOLERANCE_SECONDS.unsigned_abs() {
        return Err(EventError::Signature(
            "its time is more than 5 minutes away",
        ));
    }
    Ok(())
}

#[derive(Deserialize)]
struct EventIn {
    id: String,
    #[serde(rename = "type")]
    kind: String,
    data: DataIn,
}

#[derive(Deserialize)]
struct DataIn {
    /// A Checkout session or a dispute in the events that matter here, anything in others.
    object: Value,
}

#[derive(Deserialize)]
struct PaidSession {
    id: String,
    client_reference_id: Option<String>,
    payment_status: Option<String>,
    amount_total: Option<i64>,
    currency: Option<String>,
    #[serde(default)]
    payment_intent: Value,
}

#[derive(Deserialize)]
struct DisputeIn {
    id: String,
    #[serde(default)]
    payment_intent: Value,
    amount: i64,
    currency: String,
    status: String,
}

/// Of something that is named, or shown whole.
fn id_of(thing: &Value) -> Option<String> {
    let id = thing.as_str().or_else(|| thing["id"].as_str());
    id.map(str::to_owned)
}

impl DisputeIn {
    /// By the state that it was in then, whichever event tells it: they come in no order.
    fn read(self) -> Option<Dispute> {
        let is_won = match self.status.as_str() {
            "won" => true,
            "needs_response" | "under_review" | "lost" => false,
            // An inquiry (`warning_…`), or one that was kept away: the money is where it was.
            _ => return None,
        };
        let is_dollars = self.currency == "usd" && self.amount > 0;
        Some(Dispute {
            id: self.id,
            payment: id_of(&self.payment_intent)?,
            amount: is_dollars.then(|| UsdCents::new(self.amount)),
            is_won,
        })
    }
}

impl EventIn {
    fn notice(self) -> Option<Notice> {
        if self.kind.starts_with("charge.dispute.") {
            let dispute: DisputeIn = serde_json::from_value(self.data.object).ok()?;
            return dispute.read().map(Notice::Dispute);
        }
        self.about_top_up().map(Notice::Payment)
    }

    fn about_top_up(self) -> Option<Event> {
        let topic = self.kind.strip_prefix("checkout.session.")?;
        let session: PaidSession = serde_json::from_value(self.data.object).ok()?;
        let top_up = TopUpId::parse(&session.client_reference_id?).ok()?;
        let paid = News::Paid {
            amount: session
                .amount_total
                .filter(|_| session.currency.as_deref() == Some("usd"))
                .map(UsdCents::new),
        };
        let news = match (topic, session.payment_status.as_deref()) {
            ("completed", Some("paid")) | ("async_payment_succeeded", _) => paid,
            // A debit, say: the money takes days, and an event will tell.
            ("completed", _) => News::Waiting,
            ("async_payment_failed", _) => News::Failed {
                reason: "the payment failed".to_owned(),
            },
            ("expired", _) => News::Failed {
                reason: "the checkout expired before it was paid".to_owned(),
            },
            _ => return None,
        };
        Some(Event {
            id: self.id,
            kind: self.kind,
            top_up,
            reference: session.id,
            payment: id_of(&session.payment_intent),
            news,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECRET: &str = "whsec_test";
    const NOW: i64 = 1_700_000_000;

    fn signed(secret: &str, seconds: i64, body: &[u8]) -> String {
        let mut mac = Hmac::<Sha256>::new_from_slice(secret.as_bytes()).unwrap();
        mac.update(format!("{seconds}.").as_bytes());
        mac.update(body);
        hex::encode(mac.finalize().into_bytes())
    }

    fn check(header: &str, body: &[u8]) -> Result<(), EventError> {
        verify(
            SECRET,
            header,
            body,
            Timestamp::from_micros(NOW * 1_000_000),
        )
    }

    /// The signature covers time and body; either changed, it does not fit. Old and future ones are refused.
    #[test]
    fn signatures_cover_time_and_body() {
        let good = signed(SECRET, NOW, b"{}");
        assert!(check(&format!("t={NOW},v1={good}"), b"{}").is_ok());
        assert!(check(&format!("t={NOW},v0=00,v1=00,v1={good}"), b"{}").is_ok());
        assert!(check(&format!("t={NOW},v1={good}"), b"{ }").is_err());
        assert!(check(&format!("t={},v1={good}", NOW - 1), b"{}").is_err());
        assert!(
            check(
                &format!("t={NOW},v1={}", signed("other", NOW, b"{}")),
                b"{}"
            )
            .is_err()
        );
        for (seconds, accepted) in [
            (NOW - 300, true),
            (NOW - 301, false),
            (NOW + 300, true),
            (NOW + 301, false),
        ] {
            let header = format!("t={seconds},v1={}", signed(SECRET, seconds, b"{}"));
            assert_eq!(check(&header, b"{}").is_ok(), accepted, "{seconds}");
        }
        for malformed in [
            "",
            "t=",
            "v1=",
            &format!("v1={good}"),
            &format!("t={NOW}"),
            &format!("t=x,v1={good}"),
        ] {
            assert!(check(malformed, b"{}").is_err(), "{malformed}");
        }
    }

    /// Money is away while a dispute is open and when it is lost, and back when it is won, whichever event says so; an inquiry moves none.
    #[test]
    fn a_dispute_is_what_its_state_says() {
        let read = |status: &str, currency: &str, payment: Value| {
            let event = serde_json::json!({
                "id": "evt_1", "type": "charge.dispute.closed",
                "data": {"object": {"id": "du_1", "amount": 2000, "currency": currency, "status": status, "payment_intent": payment}},
            });
            let event: EventIn = serde_json::from_value(event).unwrap();
            match event.notice() {
                Some(Notice::Dispute(dispute)) => {
                    assert_eq!(
                        (dispute.id.as_str(), dispute.payment.as_str()),
                        ("du_1", "pi_1")
                    );
                    Some((dispute.is_won, dispute.amount.map(UsdCents::get)))
                }
                _ => None,
            }
        };
        let named = || Value::from("pi_1");
        for (status, is_won) in [
            ("needs_response", Some(false)),
            ("under_review", Some(false)),
            ("lost", Some(false)),
            ("won", Some(true)),
            ("warning_needs_response", None),
            ("warning_closed", None),
        ] {
            let expected = is_won.map(|is_won| (is_won, Some(2_000)));
            assert_eq!(read(status, "usd", named()), expected, "{status}");
        }
        assert_eq!(read("lost", "eur", named()), Some((false, None)));
        let whole = serde_json::json!({"id": "pi_1", "object": "payment_intent"});
        assert_eq!(read("won", "usd", whole), Some((true, Some(2_000))));
        assert_eq!(read("won", "usd", Value::Null), None);
    }

    /// A secret is not sent in the clear, except within the machine.
    #[test]
    fn secrets_travel_protected() {
        let make = |url: &str| Stripe::new(url, "sk".into(), "whsec".into()).is_ok();
        assert!(make(BASE_URL) && make("http://127.0.0.1:1") && make("http://[::1]:1"));
        assert!(!make("http://api.stripe.com") && !make("ftp://x") && !make("api.stripe.com"));
    }
}
