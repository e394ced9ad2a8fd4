//! Which integrations there may be, of publishers of the platform's and of a company's own.

use serde_json::{Value, json};
use souk_tests::platforms::WEBHOOK_SECRET;
use souk_tests::{Answer, Instead, Platform, guests};

use super::Author;
use crate::host;

/// All that is wrong with an integration is named; addresses that nothing is sent to are refused; a new address needs the credentials again;
/// who may only read may not write, and another company's is not there.
#[tokio::test]
async fn what_is_no_integration_is_refused() {
    let (author, platform) = (Author::new("wrong").await, Platform::webhook().await);
    let (client, path) = (&author.company.client, author.integrations());
    let fields = |answer: &Answer| -> Vec<String> {
        let errors = answer
            .at("/error/details/errors")
            .as_array()
            .expect("errors");
        errors
            .iter()
            .map(|error| error["field"].as_str().expect("a field").to_owned())
            .collect()
    };
    let empty = client
        .post(&path, json!({}))
        .await
        .expect_error(400, "VALIDATION_ERROR");
    assert_eq!(fields(&empty), ["platform", "name", "config"]);
    let wrong = json!({
        "platform": "wordpress", "name": "", "user_id": "no id", "config": {"base_url": "ftp://x", "username": "ann", "depth": 7},
        "credentials": {"application_password": "short", "other": "x"}
    });
    let wrong = client
        .post(&path, wrong)
        .await
        .expect_error(400, "VALIDATION_ERROR");
    assert_eq!(
        fields(&wrong),
        [
            "user_id",
            "config.depth",
            "name",
            "config.username",
            "credentials.application_password",
            "credentials.username",
            "credentials.other",
            "config.base_url"
        ]
    );
    let unknown = json!({"platform": "postgres", "name": "x", "config": {}, "credentials": {}});
    let unknown = client
        .post(&path, unknown)
        .await
        .expect_error(400, "VALIDATION_ERROR");
    assert_eq!(fields(&unknown), ["platform"]);
    let at = |base_url: &str| json!({"platform": "webhook", "name": "x", "config": {"base_url": base_url}, "credentials": {"secret": WEBHOOK_SECRET}});
    for unsafe_url in [
        "https://10.0.0.1",
        "http://1.1.1.1",
        "https://169.254.169.254/latest",
        "https://[::1]:1",
        "https://0x0a.1",
    ] {
        let refused = client
            .post(&path, at(unsafe_url))
            .await
            .expect_error(400, "UNSAFE_URL");
        assert_eq!(fields(&refused), ["config.base_url"], "{unsafe_url}");
        let tested = client.post(&format!("{path}/test"), at(unsafe_url)).await;
        tested.expect_error(400, "UNSAFE_URL");
    }
    let unknown = client
        .post(&path, at("http://no-such-name.invalid"))
        .await
        .expect_error(400, "VALIDATION_ERROR");
    assert_eq!(fields(&unknown), ["config.base_url"]);
    let said = unknown.text("/error/message");
    assert!(said.contains("cannot be resolved"), "{said}");

    let id = author.webhook(&platform.base_url()).await;
    let one = format!("{path}/{id}");
    let other = Platform::webhook().await;
    let moved = json!({"config": {"base_url": other.base_url()}});
    let refused = client
        .patch(&one, moved)
        .await
        .expect_error(400, "VALIDATION_ERROR");
    assert_eq!(fields(&refused), ["credentials"]);
    let platform_changed = client.patch(&one, json!({"platform": "ghost"})).await;
    assert_eq!(
        fields(&platform_changed.expect_error(400, "VALIDATION_ERROR")),
        ["platform"]
    );
    let renamed = client
        .patch(&one, json!({"name": "other name"}))
        .await
        .expect(200);
    assert_eq!(renamed.at("/data/name"), "other name");
    let moved = json!({"config": {"base_url": other.base_url()}, "credentials": {"secret": WEBHOOK_SECRET}});
    client.patch(&one, moved).await.expect(200);
    author.publish(&id).await;
    author.becomes(&id, "published").await;
    assert_eq!((platform.asked().len(), other.asked().len()), (0, 1));
    let wrong_secret = json!({"credentials": {"secret": "another secret of mine"}});
    client.patch(&one, wrong_secret).await.expect(200);
    let (works, message) = author.test(json!({"integration_id": id})).await;
    assert!(
        !works && message.contains("the signature is wrong"),
        "{message}"
    );
    let shown = client.get(&one).await.expect(200);
    assert_eq!(shown.at("/data/status"), "failed");
    assert!(shown.at("/data/last_error").is_string());

    let keys = author.company.path("/api-keys");
    let reader = client
        .post(&keys, json!({"name": "reader", "role_id": 2}))
        .await
        .expect(201);
    let reader = host().await.client(&reader.text("/data/key"));
    reader.get(&path).await.expect(200);
    reader
        .post(&path, json!({}))
        .await
        .expect_error(403, "INSUFFICIENT_ROLE");
    reader
        .delete(&one)
        .await
        .expect_error(403, "INSUFFICIENT_ROLE");
    let stranger = Author::new("stranger").await;
    let foreign = format!("{}/publish/{id}", stranger.post);
    let refused = stranger.company.client.post(&foreign, json!({})).await;
    refused.expect_error(404, "INTEGRATION_NOT_FOUND");
    let theirs = stranger
        .company
        .path(&format!("/postgen_integrations/{id}"));
    for answer in [
        stranger.company.client.get(&theirs).await,
        stranger
            .company
            .client
            .patch(&theirs, json!({"name": "x"}))
            .await,
        stranger.company.client.delete(&theirs).await,
    ] {
        answer.expect_error(404, "INTEGRATION_NOT_FOUND");
    }
    let tested = json!({"integration_id": id});
    let tested = stranger
        .company
        .client
        .post(&stranger.company.path("/postgen_integrations/test"), tested)
        .await;
    tested.expect_error(404, "INTEGRATION_NOT_FOUND");
    // The platforms of publishers are no engines of connections.
    let engines = client.get("/storage-engines").await.expect(200);
    assert!(
        !engines.body.to_string().contains("wordpress"),
        "{}",
        engines.body
    );
}

/// A company's own publisher serves its integrations and nobody else's; what it does wrong fails one attempt, and what it says is looked at.
#[tokio::test]
async fn a_company_brings_its_own_publisher() {
    let (author, stranger) = (Author::new("own").await, Author::new("without").await);
    let platform = Platform::webhook().await;
    let client = &author.company.client;
    let body = || json!({"platform": "acme-notes", "name": "notes", "config": {"base_url": platform.base_url()}});
    let unknown = client.post(&author.integrations(), body()).await;
    unknown.expect_error(400, "VALIDATION_ERROR");
    let upload = author.company.path("/connectors?activate=true");
    let uploaded = client
        .post_wasm(&upload, guests::NOTES_PUBLISHER.to_vec())
        .await;
    assert_eq!(uploaded.expect(201).at("/data/status"), "active");
    let id = author.integration(body()).await;
    let foreign = stranger
        .company
        .client
        .post(&stranger.integrations(), body())
        .await;
    foreign.expect_error(400, "VALIDATION_ERROR");
    let ok = || Instead::Answer(200, None, String::new());
    platform.next([ok(), ok()]);
    let (works, message) = author.test(json!({"integration_id": id})).await;
    assert!(works, "{message}");
    author.publish(&id).await;
    let there = author.becomes(&id, "published").await;
    let post = author.post.rsplit('/').next().unwrap();
    assert_eq!(
        (&there["external_id"], &there["external_url"]),
        (&json!(post), &Value::Null)
    );
    let put = platform.asked().pop().unwrap();
    assert_eq!(
        (put.method, put.path),
        ("PUT".to_owned(), format!("/notes/{post}"))
    );
    assert!(put.text.starts_with("<h1>Goals</h1>"), "{}", put.text);

    let asked = platform.asked().len();
    for title in ["crash", "loop", "escape"] {
        author.change_title(title).await;
        author.publish(&id).await;
        let fails = author.until(&id, |one| one["error"].is_string()).await;
        assert_eq!(fails["status"], "retrying", "{title}: {fails}");
        assert!(
            !fails["error"].as_str().unwrap().contains("wasm"),
            "{fails}"
        );
    }
    assert_eq!(platform.asked().len(), asked);
}
