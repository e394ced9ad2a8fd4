//! A seller's own receiver: what it is sent is signed.

use crate::{header, hmac, json_of, publication, publish};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::json;
use souk_sdk::{ErrorClass, Published};

/// A request is signed over its id, its time and its body; what the receiver calls the post is kept.
#[test]
fn a_webhook_is_signed() {
    for (secret, key) in [
        (
            "a secret of some length",
            b"a secret of some length".to_vec(),
        ),
        ("whsec_AAECAwQFBgcICQoLDA0ODw==", (0..16).collect()),
    ] {
        let settings = json!({"path": "/hooks", "secret": secret});
        let answered = publish("webhook", settings, publication(), |request| {
            let body = std::str::from_utf8(&request.body).unwrap();
            let (id, timestamp) = (
                header(request, "webhook-id"),
                header(request, "webhook-timestamp"),
            );
            assert_eq!((id, timestamp), ("pub_1-1", "1795341600"));
            let expected = STANDARD.encode(hmac(&key, &format!("{id}.{timestamp}.{body}")));
            assert_eq!(
                header(request, "webhook-signature"),
                format!("v1,{expected}")
            );
            let body = json_of(request);
            assert_eq!(
                (&body["type"], &body["timestamp"]),
                (
                    &json!("post.published"),
                    &json!("2026-11-22T10:00:00.000000Z")
                )
            );
            assert_eq!(
                body["data"]["post"]["body_html"],
                "<h1>Goals</h1> [gallery]"
            );
            (200, json!({"id": 7, "url": "https://example.com/7"}))
        });
        let answered = answered.unwrap();
        assert_eq!(
            (answered.remote_id.as_deref(), answered.url.as_deref()),
            (Some("7"), Some("https://example.com/7"))
        );
    }
    let settings = json!({"secret": "a secret of some length"});
    let silent = publish("webhook", settings.clone(), publication(), |request| {
        assert_eq!(request.path, "/");
        (204, json!(""))
    });
    assert_eq!(silent.unwrap(), Published::default());
    let error = publish("webhook", settings, publication(), |_| (410, json!("gone"))).unwrap_err();
    assert_eq!(error.class, ErrorClass::NotFound);
}
