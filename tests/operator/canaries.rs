//! A version of a connector on a share of the calls: who answers, how that is seen and ended, and what happens when it breaks.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use souk_tests::command::Done;
use souk_tests::{Company, PgCluster, TestHost, guests};
use tempfile::TempDir;

use crate::connectors::{MASTER_KEY, SEEN_WITHIN, file, label, sells_fixed, versions};

const NAME: &str = "fixed-rows";

/// A host, a seller whose own connector has version 1.0.0 at work and 5.0.0 staged, and an asset that says which of them answers.
struct Tried {
    host: TestHost,
    seller: Company,
    asset: String,
    files: TempDir,
}

impl Tried {
    async fn on(host: TestHost, other: &[u8]) -> Tried {
        let seller = host.company("tries").await;
        seller.connector(guests::FIXED_ROWS).await;
        let connection = seller.nowhere("fixed").await;
        let fields =
            json!({"result_type": "string", "sql_logic": "SELECT label FROM fixed LIMIT 1"});
        let asset = seller.asset(&connection, fields).await;
        let files = tempfile::tempdir().expect("a directory");
        let tried = Tried {
            host,
            seller,
            asset,
            files,
        };
        let other = file(tried.files.path(), "other.wasm", other);
        tried.ask(&["add", &other]).await.ok();
        tried
    }

    async fn ask(&self, words: &[&str]) -> Done {
        let words = [&["connector"], words].concat();
        self.host.ask(&self.seller.key, &words).await
    }

    async fn share(&self, version: &str, percent: &str) -> Done {
        let activate = ["activate", NAME, version, "--share", percent];
        self.ask(&activate).await
    }

    /// How many of so many calls version 5.0.0 answers. None fails.
    async fn later(&self, calls: usize) -> usize {
        later(&self.seller, &self.asset, calls).await
    }

    async fn versions(&self) -> Vec<String> {
        versions(&self.host, &self.seller.key, NAME).await
    }

    async fn shown(&self) -> Value {
        self.ask(&["show", NAME, "--json"]).await.ok().json()
    }
}

async fn later(seller: &Company, asset: &str, calls: usize) -> usize {
    let mut later = 0;
    for _ in 0..calls {
        match label(seller, asset).await.as_str() {
            "later 1" => later += 1,
            other => assert_eq!(other, "row 1"),
        }
    }
    later
}

/// A tenth of the calls is a tenth, and a half a half, also after a restart; both versions' numbers are seen; all of them is the end of it, and
/// the way back is to the version of before.
#[tokio::test]
async fn a_canary_gets_its_share_of_the_calls() {
    let mut tried = Tried::on(TestHost::builder().start().await, guests::FIXED_ROWS_LATER).await;
    let begun = tried.share("5.0.0", "10").await.ok().out;
    assert!(
        begun.starts_with("fixed-rows 5.0.0 takes 10 % of the calls"),
        "{begun}"
    );
    let got = tried.later(400).await;
    assert!((36..=44).contains(&got), "{got} of 400 at 10 %");
    assert_eq!(tried.versions().await, ["1.0.0 active", "5.0.0 canary"]);
    let shown = tried.shown().await;
    assert_eq!(
        (&shown[0]["share_percent"], &shown[1]["share_percent"]),
        (&json!(90), &json!(10))
    );
    let met = |version: &Value| version["trial"]["calls"].as_u64();
    assert_eq!(
        (met(&shown[0]), met(&shown[1])),
        (Some(400 - got as u64), Some(got as u64)),
        "{shown}"
    );
    let listed = tried.ask(&["list", "--status", "canary"]).await.ok().out;
    assert!(
        listed.contains("SHARE %") && listed.contains("5.0.0"),
        "{listed}"
    );

    tried.share("5.0.0", "50").await.ok();
    let got = tried.later(100).await;
    assert!((48..=52).contains(&got), "{got} of 100 at 50 %");
    assert!(tried.host.stop().await.success());
    tried.host.start_again().await;
    tried.seller.client = tried.host.client(&tried.seller.key);
    assert_eq!(tried.versions().await, ["1.0.0 active", "5.0.0 canary"]);
    let got = tried.later(100).await;
    assert!((48..=52).contains(&got), "{got} of 100 at 50 %, again");

    tried.share("5.0.0", "100").await.ok();
    assert_eq!(tried.later(20).await, 20);
    follows(
        &tried.host,
        &tried.seller.key,
        ["1.0.0 retired", "5.0.0 active"],
    )
    .await;
    let back = tried.ask(&["rollback", NAME]).await.ok().out;
    assert_eq!(back, "fixed-rows 1.0.0 is at work\n");
    assert_eq!(tried.later(20).await, 0);
}

/// A canary ends when it is gone back from, when it alone is taken off work, when the version at work is to answer all calls, and with the
/// connector; while it is one, it is not deleted.
#[tokio::test]
async fn a_canary_is_ended() {
    let tried = Tried::on(TestHost::builder().start().await, guests::FIXED_ROWS_LATER).await;
    let ends: [&[&str]; 3] = [
        &["rollback", NAME],
        &["deactivate", NAME, "5.0.0"],
        &["activate", NAME, "1.0.0"],
    ];
    for end in ends {
        tried.share("5.0.0", "99").await.ok();
        assert!(tried.later(10).await > 5);
        tried
            .ask(&["remove", NAME, "5.0.0"])
            .await
            .refused("409 CONFLICT")
            .refused("is a canary");
        tried.ask(end).await.ok();
        assert_eq!(tried.later(10).await, 0, "{end:?}");
        let versions = tried.versions().await;
        assert_eq!(versions, ["1.0.0 active", "5.0.0 staged"], "{end:?}");
    }
    tried.share("5.0.0", "99").await.ok();
    tried.ask(&["deactivate", NAME]).await.ok();
    let answer = tried.seller.execute(&tried.asset, json!({})).await;
    answer.expect_error(503, "CONNECTOR_UNAVAILABLE");
    tried.ask(&["activate", NAME, "1.0.0"]).await.ok();
    assert_eq!(tried.later(10).await, 0);
    tried.ask(&["remove", NAME, "5.0.0"]).await.ok();
}

/// What cannot be asked what the version at work is asked gets no share, nor is there one beside nothing; both are told, and nothing changes.
#[tokio::test]
async fn what_cannot_stand_in_gets_no_share() {
    let tried = Tried::on(TestHost::builder().start().await, guests::FIXED_ROWS_NEXT).await;
    tried
        .share("2.0.0", "10")
        .await
        .refused("409 CONFLICT")
        .refused("1.0.0 is asked in the dialect \"generic\" of the engine \"fixed\"");
    tried
        .share("1.0.0", "10")
        .await
        .refused("409 CONFLICT")
        .refused("is at work already");
    assert_eq!(tried.versions().await, ["1.0.0 active", "2.0.0 staged"]);
    tried.share("2.0.0", "0").await.refused("1..=100");
    let path = tried.seller.path(&format!("/connectors/{NAME}/activate"));
    let body = json!({"version": "2.0.0", "share_percent": 101});
    let answer = tried.seller.client.post(&path, body).await;
    answer.expect_error(400, "VALIDATION_ERROR");
    tried.ask(&["deactivate", NAME]).await.ok();
    tried
        .share("2.0.0", "10")
        .await
        .refused("409 CONFLICT")
        .refused("no version of connector");
}

/// A canary that breaks is left alone at once where it has broken, and withdrawn by itself within seconds, with the numbers at the version, in the audit
/// log and in the log. The version at work answers all the while.
#[tokio::test]
async fn a_canary_that_breaks_is_withdrawn() {
    let tried = Tried::on(
        TestHost::builder().start().await,
        guests::FIXED_ROWS_FRAGILE,
    )
    .await;
    tried.share("4.0.0", "50").await.ok();
    let (mut broken, mut answered) = (0, 0);
    let begun = Instant::now();
    while tried.versions().await[1] == "4.0.0 canary" {
        assert!(begun.elapsed() < SEEN_WITHIN, "{}", tried.host.log());
        for _ in 0..10 {
            let answer = tried.seller.execute(&tried.asset, json!({})).await;
            if answer.status == 200 {
                answered += 1;
            } else {
                answer.expect_error(502, "CONNECTOR_FAULT");
                broken += 1;
            }
        }
        // A key has a thousand calls an hour.
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    // It pauses after five, so that a share of the calls is no share of failures; each pause lets one through.
    assert!(
        (5..=10).contains(&broken) && answered >= broken,
        "{broken} broken, {answered} answered"
    );
    assert_eq!(tried.later(50).await, 0);
    let shown = tried.shown().await;
    let error = shown[1]["error"].as_str().unwrap_or_default();
    assert!(
        error.starts_with("as a canary, with 50 percent of the calls, it broke")
            && error.ends_with("so 1.0.0 answers all of them again"),
        "{shown}"
    );
    assert_eq!(shown[0]["share_percent"], 100);
    let log = tried
        .seller
        .path("/audit-log?operation=withdraw_connector_canary");
    let log = tried.seller.client.get(&log).await.expect(200);
    let subjects: Vec<&Value> = log
        .at("/data")
        .as_array()
        .map(|lines| lines.iter().map(|line| &line["subject_type"]).collect())
        .unwrap_or_default();
    assert!(
        subjects.contains(&&json!("connector_canary")) && subjects.contains(&&json!("connector")),
        "{}",
        log.body
    );
    assert!(tried.host.log().contains("a canary broke"));
}

/// One company's calls alone take no canary of the platform's from the others.
#[tokio::test]
async fn a_canary_of_the_platform_is_withdrawn_when_two_companies_meet_its_faults() {
    let host = TestHost::builder().start().await;
    let files = tempfile::tempdir().expect("a directory");
    let good = file(files.path(), "good.wasm", guests::FIXED_ROWS);
    let bad = file(files.path(), "bad.wasm", guests::FIXED_ROWS_FRAGILE);
    let operate = async |words: &[&str]| {
        let words = [&["connector"], words, &["--platform"]].concat();
        host.operate(&words).await.ok();
    };
    operate(&["add", &good, "--activate"]).await;
    let (one, first) = sells_fixed(&host, "one").await;
    let (other, second) = sells_fixed(&host, "other").await;
    operate(&["add", &bad]).await;
    operate(&["activate", NAME, "4.0.0", "--share", "99"]).await;
    let breaks = async |company: &Company, asset: &str, times: usize| {
        let mut broken = 0;
        while broken < times {
            broken += usize::from(company.execute(asset, json!({})).await.status == 502);
        }
    };
    breaks(&one, &first, 5).await;
    // Three looks.
    tokio::time::sleep(Duration::from_secs(3)).await;
    let now = versions(&host, &one.key, NAME).await;
    assert_eq!(now, ["1.0.0 active", "4.0.0 canary"]);
    breaks(&other, &second, 1).await;
    let begun = Instant::now();
    while versions(&host, &one.key, NAME).await[1] == "4.0.0 canary" {
        assert!(begun.elapsed() < SEEN_WITHIN, "{}", host.log());
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    assert_eq!(later(&one, &first, 20).await, 0);
    assert_eq!(later(&other, &second, 20).await, 0);
}

/// Hosts that share a store share canaries: begun on one and ended on the other, both follow.
#[tokio::test]
async fn hosts_of_one_store_share_canaries() {
    let cluster = PgCluster::shared().await;
    let url = cluster.url(&cluster.database("").await);
    let start = || {
        TestHost::builder()
            .arg("--database-url", &url)
            .env("SOUK_MASTER_KEY", MASTER_KEY)
            .start()
    };
    let tried = Tried::on(start().await, guests::FIXED_ROWS_LATER).await;
    let other = start().await;
    tried.share("5.0.0", "25").await.ok();
    follows(&other, &tried.seller.key, ["1.0.0 active", "5.0.0 canary"]).await;
    let there = Company {
        client: other.client(&tried.seller.key),
        ..tried.seller.clone()
    };
    let got = later(&there, &tried.asset, 100).await;
    assert!((22..=28).contains(&got), "{got} of 100 at 25 %");
    let rollback = ["connector", "rollback", NAME];
    other.ask(&tried.seller.key, &rollback).await.ok();
    follows(
        &tried.host,
        &tried.seller.key,
        ["1.0.0 active", "5.0.0 staged"],
    )
    .await;
    assert_eq!(tried.later(20).await, 0);
    assert_eq!(later(&there, &tried.asset, 20).await, 0);
}

async fn follows(host: &TestHost, key: &str, wanted: [&str; 2]) {
    let begun = Instant::now();
    loop {
        let seen = versions(host, key, NAME).await;
        if seen == wanted {
            return;
        }
        assert!(begun.elapsed() < SEEN_WITHIN, "{seen:?}\n{}", host.log());
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}
