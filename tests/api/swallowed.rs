//! A network swallows what a host asks its store, so that no answer ever comes: whoever waits for that is told so in time, and nobody waits for good.

use std::time::{Duration, Instant};

use souk_tests::cut_commits::CommitWire;
use souk_tests::{PgCluster, Receiver};

use crate::charges::slow_asset;
use crate::cut_commits::host;
use crate::cut_commits::runs::execute;
use crate::unique;
use crate::webhooks::{Hook, revoke_a_key};

/// A host gives up what is not answered within half a minute; a loaded machine gets a multiple.
const GIVEN_UP_WITHIN: Duration = Duration::from_secs(90);

/// Waits until the next statement with this text has been swallowed.
async fn swallowed(wire: &CommitWire, statement: &'static str) {
    let before = wire.cuts();
    wire.swallow_question(statement);
    let begun = Instant::now();
    while wire.cuts() == before {
        assert!(begun.elapsed() < GIVEN_UP_WITHIN, "{statement}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// Whose question is swallowed is told to try again, in time: who is looked up, and who lists something. Others are answered meanwhile, and so is who asks
/// again.
#[tokio::test]
async fn a_question_that_is_swallowed_is_told_in_time() {
    let (wire, host) = host().await;
    let other = host.company(&unique("other")).await;
    let others = other.path("/webhooks");
    other.client.get(&others).await.expect(200);
    let asking = host.company(&unique("asking")).await;
    let path = asking.path("/webhooks");
    for statement in ["WHERE k.digest = $1", "FROM webhooks WHERE company_id = $1"] {
        let begun = Instant::now();
        let ask = async {
            // Once it is known what becomes of that.
            tokio::time::sleep(Duration::from_millis(100)).await;
            asking.client.get(&path).await
        };
        let meanwhile = async {
            swallowed(&wire, statement).await;
            other.client.get(&others).await.expect(200);
        };
        let (told, ()) = tokio::join!(ask, meanwhile);
        told.expect_error(503, "SERVICE_UNAVAILABLE");
        assert!(begun.elapsed() < GIVEN_UP_WITHIN, "{statement}");
        asking.client.get(&path).await.expect(200);
    }
}

/// What a host looks for by itself keeps nobody waiting for good, either: who reserves credits waits behind holds whose time is over, and a webhook behind
/// what is due.
#[tokio::test]
async fn what_a_host_asks_by_itself_keeps_nobody_waiting() {
    let (wire, host) = host().await;
    let seller = host.company("seller").await;
    let asset = slow_asset(&seller, PgCluster::shared().await, 3).await;
    let buyer = host.buyer(&unique("buyer"), 10).await;
    swallowed(&wire, "FROM holds WHERE expires_at").await;
    let begun = Instant::now();
    while execute(&buyer, &asset, None).await.status != 200 {
        assert!(begun.elapsed() < GIVEN_UP_WITHIN, "nothing is reserved");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    let receiver = Receiver::start().await;
    Hook::new(&seller, &receiver, &["api_key.revoked"]).await;
    swallowed(&wire, "WITH receivers (webhook_id)").await;
    revoke_a_key(&seller).await;
    let begun = Instant::now();
    while receiver.received().is_empty() {
        assert!(begun.elapsed() < GIVEN_UP_WITHIN, "nothing is delivered");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}
