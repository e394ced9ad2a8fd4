//! What each platform makes of a post, and what becomes of one that a platform refuses, loses or answers with its worst.

use std::time::Duration;

use serde_json::{Value, json};
use souk_tests::platforms::{GHOST_KEY, SLACK_PATH, WORDPRESS_PASSWORD, WORDPRESS_USER};
use souk_tests::{Instead, Platform, Raw, RawServer};

use super::Author;

/// What must not happen gets this long to happen all the same.
const QUIET: Duration = Duration::from_secs(3);

/// WordPress gets a post once, though the answer to its making is lost; a change updates it; what an editor has deleted is made anew.
#[tokio::test]
async fn wordpress_has_a_post_once() {
    let (author, blog) = (Author::new("wordpress").await, Platform::wordpress().await);
    let id = author.wordpress(&blog.base_url()).await;
    let (works, message) = author.test(json!({"integration_id": id})).await;
    assert!(works && message.contains("Ann"), "{message}");
    // The tag and the search are answered, the post is made, and nobody hears of it.
    let wait = || Instead::Answer(201, None, r#"{"id": 3}"#.to_owned());
    blog.next([
        wait(),
        Instead::Answer(200, None, "[]".to_owned()),
        Instead::LoseTheAnswer,
    ]);
    author.publish(&id).await;
    let there = author.becomes(&id, "published").await;
    assert_eq!(
        (&there["external_id"], &there["attempts"]),
        (&json!("1"), &json!(2))
    );
    assert_eq!(there["external_url"], "https://blog.example.com/?p=1");
    let posts = blog.posts();
    assert_eq!(posts.len(), 1, "{posts:#?}");
    assert_eq!(
        (&posts[0]["title"], &posts[0]["status"], &posts[0]["tags"]),
        (
            &json!("Goals &amp; &lt;more&gt;"),
            &json!("publish"),
            &json!([3])
        )
    );

    author.change_title("Anew").await;
    let unpublish = format!("{}/unpublish", author.post);
    author
        .company
        .client
        .post(&unpublish, json!({}))
        .await
        .expect(200);
    author.publish(&id).await;
    author
        .until(&id, |one| {
            one["status"] == "published" && one["published_at"] != there["published_at"]
        })
        .await;
    let posts = blog.posts();
    assert_eq!(
        (posts.len(), &posts[0]["title"], &posts[0]["status"]),
        (1, &json!("Anew"), &json!("draft"))
    );
}

/// At the address that its integration is moved to a post is made, and takes no other post's place that has its number there.
#[tokio::test]
async fn a_moved_integration_overwrites_nothing() {
    let (author, other) = (Author::new("moves").await, Author::new("stays").await);
    let (former, blog) = (Platform::wordpress().await, Platform::wordpress().await);
    let theirs = other.wordpress(&blog.base_url()).await;
    other.publish(&theirs).await;
    let first = other.becomes(&theirs, "published").await;
    let id = author.wordpress(&former.base_url()).await;
    author.publish(&id).await;
    let there = author.becomes(&id, "published").await;
    assert_eq!(there["external_id"], first["external_id"]);
    let moved = json!({
        "config": {"base_url": blog.base_url()},
        "credentials": {"username": WORDPRESS_USER, "application_password": WORDPRESS_PASSWORD}
    });
    let one = format!("{}/{id}", author.integrations());
    author.company.client.patch(&one, moved).await.expect(200);
    let known = author.publication(&id).await;
    assert_eq!(
        (&known["external_id"], &known["external_url"]),
        (&Value::Null, &there["external_url"])
    );
    author.change_title("Moved").await;
    author.publish(&id).await;
    let there = author
        .until(&id, |one| one["external_id"].is_string())
        .await;
    assert_eq!(there["external_id"], "2");
    let posts = blog.posts();
    let titles: Vec<_> = posts.iter().map(|post| &post["title"]).collect();
    assert_eq!(
        titles,
        [&json!("Goals &amp; &lt;more&gt;"), &json!("Moved")]
    );
}

/// Ghost gets a post once, under tokens that it checks, and in the version that is there.
#[tokio::test]
async fn ghost_has_a_post_once() {
    let (author, blog) = (Author::new("ghost").await, Platform::ghost().await);
    let body = json!({"platform": "ghost", "name": "blog", "config": {"base_url": blog.base_url()}, "credentials": {"admin_api_key": GHOST_KEY}});
    let (works, message) = author.test(body.clone()).await;
    assert!(works, "{message}");
    let id = author.integration(body).await;
    blog.next([
        Instead::Answer(404, None, "{}".to_owned()),
        Instead::LoseTheAnswer,
    ]);
    author.publish(&id).await;
    let there = author.becomes(&id, "published").await;
    assert_eq!((&there["attempts"], blog.posts().len()), (&json!(2), 1));
    assert!(
        there["external_url"]
            .as_str()
            .unwrap()
            .starts_with("https://ghost.example.com/goals-"),
        "{there}"
    );
    author.change_title("Anew").await;
    author.publish(&id).await;
    author
        .until(&id, |one| {
            one["status"] == "published" && one["published_at"] != there["published_at"]
        })
        .await;
    let posts = blog.posts();
    assert_eq!((posts.len(), &posts[0]["title"]), (1, &json!("Anew")));
    assert!(
        posts[0]["html"]
            .as_str()
            .unwrap()
            .starts_with("<h1>Goals</h1>")
    );

    let wrong = GHOST_KEY.replace("00", "ff");
    let body = json!({"platform": "ghost", "name": "x", "config": {"base_url": blog.base_url()}, "credentials": {"admin_api_key": wrong}});
    let (works, message) = author.test(body).await;
    assert!(
        !works && message.contains("the signature is wrong"),
        "{message}"
    );
}

/// A failed publication is tried again when the platform wants it, and shown meanwhile; one that the platform refuses waits until somebody has
/// mended it and asks anew. No word of a platform brings the credential to light.
#[tokio::test]
async fn what_fails_is_tried_again_and_shown() {
    let (author, chat) = (Author::new("chats").await, Platform::slack().await);
    let id = author.slack(&chat.base_url()).await;
    let down = format!("upstream of {SLACK_PATH} is down");
    chat.next([Instead::Answer(503, Some(("retry-after", "7")), down)]);
    author.publish(&id).await;
    let waits = author.becomes(&id, "retrying").await;
    let error = waits["error"].as_str().unwrap();
    assert!(
        error.contains("503") && error.contains("is down") && !error.contains("hunter2"),
        "{error}"
    );
    let micros = |value: &Value| {
        let time: jiff::Timestamp = value.as_str().expect("a time").parse().expect("a time");
        time.as_microsecond()
    };
    let pause =
        (micros(&waits["next_attempt_at"]) - micros(&waits["last_attempt_at"])) as f64 / 1e6;
    assert!((7.0..20.0).contains(&pause), "{pause}");
    let there = author.becomes(&id, "published").await;
    assert_eq!(
        (&there["attempts"], &there["error"]),
        (&json!(2), &Value::Null)
    );
    let said = chat.asked().pop().unwrap();
    let text = said.body["text"].as_str().unwrap();
    assert!(
        text.starts_with("*<https://blog.example.com/goals-")
            && text.contains("Goals &amp; &lt;more&gt;"),
        "{text}"
    );

    chat.next([Instead::Answer(403, None, "invalid_token".to_owned())]);
    author.publish(&id).await;
    let refused = author.becomes(&id, "failed").await;
    assert_eq!(
        (&refused["next_attempt_at"], &refused["attempts"]),
        (&Value::Null, &json!(1))
    );
    assert!(
        refused["error"].as_str().unwrap().contains("invalid_token"),
        "{refused}"
    );
    let asked = chat.asked().len();
    tokio::time::sleep(QUIET).await;
    assert_eq!(chat.asked().len(), asked);
    author.publish(&id).await;
    author.becomes(&id, "published").await;

    // A chat has no drafts.
    let unpublish = format!("{}/unpublish", author.post);
    author
        .company
        .client
        .post(&unpublish, json!({}))
        .await
        .expect(200);
    author.publish(&id).await;
    let refused = author.becomes(&id, "failed").await;
    assert!(
        refused["error"].as_str().unwrap().contains("draft"),
        "{refused}"
    );
}

/// Servers that are away, hang, never end, speak nonsense, lie or send elsewhere: each is told apart in words, none is followed, and another
/// integration is served all the while.
#[tokio::test]
async fn a_platform_may_do_its_worst() {
    let author = Author::new("worst").await;
    let (elsewhere, fine) = (Platform::webhook().await, Platform::webhook().await);
    let redirecting = Platform::webhook().await;
    redirecting
        .next((0..9).map(|_| Instead::RedirectTo(format!("{}/hooks", elsewhere.base_url()))));
    let silent = Platform::webhook().await;
    silent.next((0..9).map(|_| Instead::Silence));
    let lying = Platform::wordpress().await;
    lying.next((0..9).map(|_| {
        Instead::Answer(
            200,
            None,
            r#"{"id":{},"link":"javascript:alert(1)"}"#.to_owned(),
        )
    }));
    let gone = RawServer::start(Raw::Closes).await;
    let gone_url = gone.base_url();
    drop(gone);
    let mut raws = Vec::new();
    for raw in [
        Raw::Endless,
        Raw::EndlessHead,
        Raw::Garbage,
        Raw::Closes,
        Raw::Drips,
    ] {
        raws.push(RawServer::start(raw).await);
    }
    let mut bad = vec![
        (
            author.webhook(&redirecting.base_url()).await,
            "failed",
            "redirects",
        ),
        (
            author.wordpress(&lying.base_url()).await,
            "retrying",
            "answered without",
        ),
        (
            author.webhook(&gone_url).await,
            "retrying",
            "refused the connection",
        ),
    ];
    for (raw, says) in raws.iter().zip(["too long", "", "", "", ""]) {
        let id = author.webhook(&raw.base_url()).await;
        // The last one drips until its time is over.
        if raw.address != raws[4].address {
            bad.push((id, "retrying", says));
        } else {
            author.publish(&id).await;
        }
    }
    let hangs = author.webhook(&silent.base_url()).await;
    author.publish(&hangs).await;
    for (id, _, _) in &bad {
        author.publish(id).await;
    }
    let well = author.webhook(&fine.base_url()).await;
    author.publish(&well).await;
    for (id, status, says) in &bad {
        let found = author.until(id, |one| one["error"].is_string()).await;
        let error = found["error"].as_str().unwrap();
        assert!(error.contains(says), "{says}: {error}");
        assert_eq!(found["status"], *status, "{found}");
        assert!(
            !error.contains("hunter2") && !error.contains("bbbb"),
            "{error}"
        );
        assert_eq!(
            (&found["external_id"], &found["external_url"]),
            (&Value::Null, &Value::Null)
        );
    }
    author.becomes(&well, "published").await;
    assert_eq!(elsewhere.asked().len(), 0, "a redirect was followed");
    assert_eq!(author.publication(&hangs).await["status"], "pending");
}
