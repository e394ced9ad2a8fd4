//! Platforms that do their worst to each of the bundled publishers, as their company sees it. What a company's own publisher may do wrong is in
//! `publishing/integrations.rs`.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use souk_tests::platforms::GHOST_KEY;
use souk_tests::{Instead, Platform, Raw, RawServer};

use crate::publishing::Author;

const PLATFORMS: [&str; 4] = ["wordpress", "ghost", "slack", "webhook"];
/// All that an answer to a test of an integration may take, and what a loaded machine adds.
const TESTED_WITHIN: Duration = Duration::from_secs(60);

async fn integration(author: &Author, platform: &str, base_url: &str) -> String {
    match platform {
        "wordpress" => author.wordpress(base_url).await,
        "slack" => author.slack(base_url).await,
        "webhook" => author.webhook(base_url).await,
        _ => {
            let credentials = json!({"admin_api_key": GHOST_KEY});
            let body = json!({"platform": "ghost", "name": "ghost", "config": {"base_url": base_url}, "credentials": credentials});
            author.integration(body).await
        }
    }
}

/// What stands at a failed publication is short, in words, and without what is secret.
#[track_caller]
fn assert_told(what: &str, found: &Value) {
    let error = found["error"].as_str().expect("an error");
    assert!((5..600).contains(&error.len()), "{what}: {error}");
    let secrets = ["hunter2", "bbbb", "00112233", "xxxxxxxx"];
    let told: Vec<_> = secrets.iter().filter(|one| error.contains(**one)).collect();
    assert!(told.is_empty(), "{what}: {error}");
    let there = [&found["external_id"], &found["external_url"]];
    assert_eq!(there, [&Value::Null; 2], "{what}: {found}");
}

/// Whichever publisher it is, and whatever its server sends (without end, without sense, or of another length than it says): the publication
/// is told to have failed for now, a test of the integration says so in time, and a platform that is well is served all the while.
#[tokio::test]
async fn no_server_harms_a_publisher() {
    let fine = Platform::webhook().await;
    for platform in PLATFORMS {
        let author = Author::new("besieged").await;
        let well = author.webhook(&fine.base_url()).await;
        let mut besieged = Vec::new();
        for raw in [
            Raw::Endless,
            Raw::EndlessHead,
            Raw::Garbage,
            Raw::Closes,
            Raw::PromisesMore,
            Raw::TwoLengths,
            Raw::NoLength,
            Raw::LargePiece,
        ] {
            let server = RawServer::start(raw).await;
            let id = integration(&author, platform, &server.base_url()).await;
            author.publish(&id).await;
            besieged.push((raw, server, id));
        }
        author.publish(&well).await;
        author.becomes(&well, "published").await;
        for (raw, _, id) in &besieged {
            let what = format!("{platform} at a server that {raw:?}");
            let found = author.until(id, |one| one["error"].is_string()).await;
            assert_eq!(found["status"], "retrying", "{what}: {found}");
            assert_told(&what, &found);
        }
        for (raw, _, id) in &besieged[..2] {
            let since = Instant::now();
            let (works, message) = author.test(json!({"integration_id": id})).await;
            assert!(!works && message.len() < 600, "{raw:?}: {message}");
            assert!(since.elapsed() < TESTED_WITHIN, "{raw:?}");
        }
    }
}

/// An answer that nobody has asked for is nobody's: neither this publication's nor the next one's, though the connection that it came on
/// would be kept for that.
#[tokio::test]
async fn an_answer_behind_the_answer_is_dropped() {
    let author = Author::new("unasked").await;
    let server = RawServer::start(Raw::PromisesLess).await;
    let id = author.webhook(&server.base_url()).await;
    for round in 0..5 {
        author.publish(&id).await;
        let found = author.until(&id, |one| one["status"] != "pending").await;
        assert_eq!(found["status"], "published", "{round}: {found}");
        assert_eq!(found["external_id"], Value::Null, "{round}: {found}");
    }
}

/// No publisher follows a redirect: it would carry the credentials to wherever the server likes.
#[tokio::test]
async fn nobody_is_sent_elsewhere() {
    for platform in PLATFORMS {
        let author = Author::new("sent-away").await;
        let (sending, elsewhere) = (Platform::webhook().await, Platform::webhook().await);
        let target = format!("{}/hooks", elsewhere.base_url());
        sending.next((0..9).map(|_| Instead::RedirectTo(target.clone())));
        let id = integration(&author, platform, &sending.base_url()).await;
        let (works, message) = author.test(json!({"integration_id": id})).await;
        assert!(!works && message.contains("redirects"), "{message}");
        author.publish(&id).await;
        let found = author.becomes(&id, "failed").await;
        assert_told(platform, &found);
        let error = found["error"].as_str().expect("an error");
        assert!(error.contains("redirects"), "{platform}: {error}");
        assert_eq!(elsewhere.asked().len(), 0, "{platform} went elsewhere");
    }
}
