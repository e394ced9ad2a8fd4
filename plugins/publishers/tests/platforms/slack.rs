//! Slack: a message, which has no address of its own.

use crate::{check, json_of, publication, publish};
use serde_json::json;
use souk_sdk::ErrorClass;
use souk_sdk::publisher::Visibility;

/// A message has title, summary and link, in which nothing of the post makes links of its own; a draft is not told.
#[test]
fn slack_is_told() {
    let settings = json!({"path": "/services/T/B/x", "link": "https://blog.example.com/{slug}"});
    let mut sent = Vec::new();
    let told = publish("slack", settings.clone(), publication(), |request| {
        sent.push((request.path.clone(), json_of(request)));
        (200, json!("ok"))
    });
    let told = told.unwrap();
    assert_eq!(
        (told.remote_id, told.url.as_deref()),
        (None, Some("https://blog.example.com/goals"))
    );
    let text = "*<https://blog.example.com/goals|Goals &amp; &lt;more&gt;>*\nAbout goals &amp; &lt;more&gt;";
    assert_eq!(
        sent,
        [("/services/T/B/x".to_owned(), json!({"text": text}))]
    );
    let mut draft = publication();
    draft.post.visibility = Visibility::Draft;
    let error = publish("slack", settings.clone(), draft, |_| unreachable!()).unwrap_err();
    assert_eq!(error.class, ErrorClass::Unsupported);
    assert!(check("slack", settings.clone(), |_| (400, json!("no_text"))).is_ok());
    let error = check("slack", settings, |_| {
        (404, json!("no_service /services/T/B/x"))
    })
    .unwrap_err();
    assert_eq!(
        (error.class, error.detail.as_deref()),
        (ErrorClass::NotFound, Some("no_service …"))
    );
}
