//! The connection to the store ends in the middle of a commit, so that nobody knows whether it went through: what the client is told, and what is in
//! the books and at work then.

mod background;
pub mod runs;
mod uploads;

use std::time::{Duration, Instant};

use serde_json::json;
use souk_tests::cut_commits::{CommitWire, Cut};
use souk_tests::host::Builder;
use souk_tests::{Answer, PgCluster, TestHost};

use crate::unique;
use crate::voids::books;

/// Statements of the transactions whose commits are cut, in the order of a first paid run with a key.
const CLAIM: &str = "INSERT INTO idempotency";
const HOLD: &str = "INSERT INTO holds";
const PURCHASE: &str = "INSERT INTO purchases";
const CHARGE: &str = "INSERT INTO transactions";
/// Of an answer that is kept when what it tells of is committed.
const KEEP: &str = "UPDATE idempotency";

const PRICE: i64 = 3;
/// A host looks again after two seconds; a loaded machine gets a multiple.
const SEEN_WITHIN: Duration = Duration::from_secs(60);
/// What a revoked key is answered.
const GONE: u16 = 410;

/// A host whose store is behind a wire.
pub async fn host() -> (CommitWire, TestHost) {
    let (wire, builder) = behind_a_wire().await;
    (wire, builder.start().await)
}

/// The same before it starts.
pub async fn behind_a_wire() -> (CommitWire, Builder) {
    let cluster = PgCluster::shared().await;
    let wire = CommitWire::to(cluster.port).await;
    let database = cluster.database("SELECT 1").await;
    // What is said within TLS nobody else can read.
    let url = format!("{}?sslmode=disable", cluster.url_by(wire.port, &database));
    let builder = TestHost::builder()
        .arg("--database-url", url)
        .env("SOUK_IP_RATE_LIMIT", "1000000");
    (wire, builder)
}

/// Sends the request; exactly one commit was cut when it has been answered.
async fn cut(
    wire: &CommitWire,
    (cut, statement): (Cut, &'static str),
    request: impl Future<Output = Answer>,
) -> Answer {
    let before = wire.cuts();
    wire.cut(cut, statement);
    let answer = request.await;
    let cuts = wire.cuts() - before;
    assert_eq!(cuts, 1, "{cut:?} {statement}: {}", answer.body);
    answer
}

async fn is_balanced(host: &TestHost) {
    let platform = host.platform();
    let proof = platform.get("/admin/ledger/reconciliation").await;
    let proof = proof.expect(200);
    let sum = proof.at("/data/sum_all_accounts");
    assert_eq!(
        (proof.at("/data/balanced"), sum),
        (&json!(true), &json!(0)),
        "{}",
        proof.body
    );
}

/// Credits that are granted with a key arrive once, whichever side of the commit is cut; the client is told so or to try again, and learns the same then.
#[tokio::test]
async fn a_grant_whose_commit_is_cut_arrives_once() {
    let (wire, host) = host().await;
    let platform = host.platform();
    for statement in [CLAIM, CHARGE] {
        for side in Cut::BOTH {
            let buyer = host.company(&unique("buyer")).await;
            let path = format!("/admin/companies/{}/credits/grants", buyer.id);
            let key = unique("grant");
            let grant = async || {
                let header = [("idempotency-key", key.as_str())];
                let body = json!({"credits": 7, "reason": "test"});
                platform.post_with(&path, &header, body).await
            };
            let first = cut(&wire, (side, statement), grant()).await;
            let has_arrived = (statement, side) == (CHARGE, Cut::Behind);
            match has_arrived {
                true => first.expect(201),
                false => first.expect_error(503, "SERVICE_UNAVAILABLE"),
            };
            let again = grant().await.expect(201);
            let replayed = again.header("idempotency-replayed");
            assert_eq!(replayed == "true", has_arrived, "{side:?} {statement}");
            assert_eq!(again.at("/data/balance_after_credits"), 7);
            assert_eq!(grant().await.expect(201).body, again.body);
            assert_eq!(books(&buyer.client, &buyer).await, (7, 0, 0));
        }
    }
    is_balanced(&host).await;
}

/// What was made is made: that its commit was not answered, or that its answer could not be kept at once, is not told as a failure, which would have it
/// made again.
#[tokio::test]
async fn what_is_made_is_made_once_whatever_becomes_of_its_answer() {
    let (wire, host) = host().await;
    let cuts = [
        (KEEP, Cut::Before),
        (KEEP, Cut::Behind),
        ("INSERT INTO api_keys", Cut::Behind),
    ];
    for (statement, side) in cuts {
        let company = host.company(&unique("making")).await;
        let path = company.path("/api-keys");
        let make = async || {
            let header = [("idempotency-key", "key")];
            let body = json!({"name": "made once"});
            company.client.post_with(&path, &header, body).await
        };
        let first = cut(&wire, (side, statement), make()).await.expect(201);
        let again = make().await.expect(201);
        let replayed = again.header("idempotency-replayed");
        assert_eq!(replayed, "true", "{side:?} {statement}");
        assert_eq!(again.at("/data/id"), first.at("/data/id"));
        let all = company.client.get(&path).await.expect(200);
        let all = all.at("/data").as_array().cloned().unwrap_or_default();
        let made = all.iter().filter(|key| key["name"] == "made once");
        assert_eq!(made.count(), 1, "{side:?} {statement}");
    }
}

/// A commit that arrives behind the end of its connection is waited for and told as done; and what it has replaced is served by nobody from then on,
/// though it was asked for meanwhile, and also where whoever wanted it has hung up.
#[tokio::test]
async fn a_commit_that_is_late_is_told_and_heard_of() {
    let (wire, host) = host().await;
    let company = host.company(&unique("late")).await;
    let keys = company.path("/api-keys");
    let credits = company.path("/credits");
    for hangs_up in [false, true] {
        let before = wire.cuts();
        wire.delay("INSERT INTO api_keys");
        let made = company.client.post(&keys, json!({"name": "late"})).await;
        let made = made.expect(201);
        assert_eq!(wire.cuts() - before, 1);
        let holder = host.client(&made.text("/data/key"));
        let asked = async || holder.get(&credits).await.status;
        assert_ne!(asked().await, GONE);
        wire.delay("SET deactivated_at = $3");
        let key = format!("{keys}/{}", made.text("/data/id"));
        {
            let revoked = company.client.delete(&key);
            tokio::pin!(revoked);
            while !(hangs_up && wire.cuts() - before == 2) {
                tokio::select! {
                    revoked = &mut revoked => {
                        revoked.expect(204);
                        assert_eq!(asked().await, GONE);
                        break;
                    }
                    _ = asked() => tokio::time::sleep(Duration::from_millis(20)).await,
                }
            }
        }
        assert_eq!(wire.cuts() - before, 2);
        let begun = Instant::now();
        while asked().await != GONE {
            assert!(begun.elapsed() < SEEN_WITHIN, "it is served still");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
}
