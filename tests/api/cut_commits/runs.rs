//! Runs, and what they cost: whatever becomes of a commit of theirs, they are charged once.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use souk_tests::cut_commits::{CommitWire, Cut};
use souk_tests::{Answer, Company, PgCluster};

use super::{CHARGE, CLAIM, HOLD, PRICE, PURCHASE, SEEN_WITHIN, cut, host, is_balanced};
use crate::charges::slow_asset;
use crate::unique;
use crate::voids::until;

/// Of what lets go of a claim that nobody works for any more.
const RELEASE: &str = "ticket = $4 AND status IS NULL";
/// Much longer than it takes to let go of a claim, and not as long as one lasts.
const LET_GO_WITHIN: Duration = Duration::from_secs(15);

pub async fn execute(buyer: &Company, asset: &str, key: Option<&str>) -> Answer {
    let path = buyer.path(&format!("/assets/{asset}/execute"));
    let header = key.map(|key| ("idempotency-key", key));
    let body = json!({"params": {"seconds": 0}});
    let headers = header.as_slice();
    buyer.client.post_with(&path, headers, body).await
}

/// Whichever commit of a run is cut, and on which side of it: the run is charged once, for one answer, which its key gets from then on. What was
/// reserved or booked without an answer is found, so that its client need not even ask again; what comes before that can be asked again at once.
#[tokio::test]
async fn a_run_whose_commit_is_cut_is_charged_once() {
    let (wire, host) = host().await;
    let seller = host.company("seller").await;
    let asset = slow_asset(&seller, PgCluster::shared().await, PRICE as u64).await;
    for statement in [CLAIM, HOLD, PURCHASE, CHARGE] {
        for side in Cut::BOTH {
            let buyer = host.buyer(&unique("buyer"), 10).await;
            let run = execute(&buyer, &asset, Some("k"));
            let first = cut(&wire, (side, statement), run).await;
            let again = execute(&buyer, &asset, Some("k")).await.expect(200);
            let is_told = [HOLD, CHARGE].contains(&statement);
            let replayed = again.header("idempotency-replayed");
            assert_eq!(replayed == "true", is_told, "{side:?} {statement}");
            match is_told {
                true => assert_eq!(first.expect(200).body, again.body),
                false => drop(first.expect_error(503, "SERVICE_UNAVAILABLE")),
            }
            let third = execute(&buyer, &asset, Some("k")).await.expect(200);
            assert_eq!(third.header("idempotency-replayed"), "true");
            assert_eq!(third.body, again.body, "{side:?} {statement}");
            until(&buyer.client, &buyer, (10 - PRICE, 0, 1)).await;
            let path = buyer.path("/credits/transactions?type=charge");
            let charges = buyer.client.get(&path).await.expect(200);
            assert_eq!(
                charges.at("/data/0/id"),
                again.at("/meta/transaction_id"),
                "{side:?} {statement}"
            );
        }
    }
    is_balanced(&host).await;
}

/// A store that stays away behind the commit of a charge: nobody says that the run cost nothing, and where to look for that. When it is back the
/// charge is in the books, once, and a client that asks again with its key has its answer.
#[tokio::test]
async fn a_charge_that_nobody_knows_of_is_not_told_as_none() {
    let (wire, host) = host().await;
    let seller = host.company("seller").await;
    let asset = slow_asset(&seller, PgCluster::shared().await, PRICE as u64).await;
    for key in [None, Some("k")] {
        let buyer = host.buyer(&unique("buyer"), 10).await;
        // It makes the purchase.
        execute(&buyer, &asset, None).await.expect(200);
        let before = wire.cuts();
        wire.cut_off(Cut::Behind, CHARGE);
        let answer = execute(&buyer, &asset, key).await;
        assert_eq!(wire.cuts() - before, 1, "{}", answer.body);
        let charged = answer.at("/error/details/charged");
        assert_eq!(charged, &Value::Null, "{}", answer.body);
        // Also where its claim cannot be let go of, either.
        let answer = answer.expect_error(500, "INTERNAL_ERROR");
        let execution = answer.text("/error/details/execution_id");
        back(&wire, &buyer).await;
        let path = buyer.path("/credits/transactions?type=charge");
        let charges = buyer.client.get(&path).await.expect(200);
        assert_eq!(charges.at("/data/0/execution_id"), &json!(execution));
        if key.is_some() {
            let again = execute(&buyer, &asset, key).await.expect(200);
            assert_eq!(again.header("idempotency-replayed"), "true");
        }
        until(&buyer.client, &buyer, (10 - 2 * PRICE, 0, 2)).await;
    }
    is_balanced(&host).await;
}

/// Lets the host reach its store again, and waits until it has noticed.
async fn back(wire: &CommitWire, company: &Company) {
    wire.come_back();
    let begun = Instant::now();
    let path = company.path("/credits");
    while company.client.get(&path).await.status != 200 {
        assert!(begun.elapsed() < SEEN_WITHIN, "the store is not back");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

/// The same without a key: an answer is paid once, and what is refused costs nothing.
#[tokio::test]
async fn a_run_without_a_key_whose_commit_is_cut_is_charged_once() {
    let (wire, host) = host().await;
    let seller = host.company("seller").await;
    let asset = slow_asset(&seller, PgCluster::shared().await, PRICE as u64).await;
    for statement in [HOLD, PURCHASE, CHARGE] {
        for side in Cut::BOTH {
            let buyer = host.buyer(&unique("buyer"), 10).await;
            let run = execute(&buyer, &asset, None);
            let answer = cut(&wire, (side, statement), run).await;
            let expected = match statement {
                PURCHASE => {
                    answer.expect_error(503, "SERVICE_UNAVAILABLE");
                    (10, 0, 0)
                }
                _ => {
                    assert_eq!(answer.expect(200).at("/meta/credits_used"), PRICE);
                    (10 - PRICE, 0, 1)
                }
            };
            until(&buyer.client, &buyer, expected).await;
            // And from then on as if nothing had been.
            execute(&buyer, &asset, None).await.expect(200);
            let (balance, charges) = (expected.0 - PRICE, expected.2 + 1);
            until(&buyer.client, &buyer, (balance, 0, charges)).await;
        }
    }
    is_balanced(&host).await;
}

/// Charges of several clients share a commit: if that is cut, each of them is booked once.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn charges_that_share_a_commit_that_is_cut_are_booked_once() {
    const CALLS: i64 = 12;
    let (wire, host) = host().await;
    let seller = host.company("seller").await;
    let asset = slow_asset(&seller, PgCluster::shared().await, PRICE as u64).await;
    for side in Cut::BOTH {
        let buyer = host.buyer(&unique("buyer"), 100).await;
        let keys: Vec<String> = (0..CALLS).map(|call| format!("k{call}")).collect();
        let calls = keys
            .iter()
            .map(|key| execute(&buyer, &asset, Some(key.as_str())));
        // The first makes the purchase, the others are charged beside each other.
        execute(&buyer, &asset, None).await.expect(200);
        let before = wire.cuts();
        wire.cut(side, CHARGE);
        let answers = futures_util::future::join_all(calls).await;
        assert_eq!(wire.cuts() - before, 1, "{side:?}");
        for (key, answer) in keys.iter().zip(answers) {
            let answer = answer.expect(200);
            let again = execute(&buyer, &asset, Some(key.as_str())).await;
            assert_eq!(again.expect(200).body, answer.body, "{side:?}");
        }
        let charges = CALLS + 1;
        until(&buyer.client, &buyer, (100 - PRICE * charges, 0, charges)).await;
    }
    is_balanced(&host).await;
}

/// The answer to a request that is sent again and again while its key is claimed.
async fn unclaimed(request: impl AsyncFn() -> Answer) -> Answer {
    let begun = Instant::now();
    loop {
        let answer = request().await;
        if answer.status != 409 {
            return answer;
        }
        answer.expect_error(409, "IDEMPOTENCY_IN_PROGRESS");
        assert!(begun.elapsed() < LET_GO_WITHIN, "its key is claimed");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

/// What became of a request is told, a refusal as well as what a free run found, whatever becomes of its claim, which nobody needs any more; and its key
/// can be sent again soon.
#[tokio::test]
async fn a_claim_that_is_let_go_of_hides_no_answer() {
    let (wire, host) = host().await;
    let seller = host.company("seller").await;
    let asset = slow_asset(&seller, PgCluster::shared().await, PRICE as u64).await;
    for side in Cut::BOTH {
        let poor = host.company(&unique("poor")).await;
        let run = || execute(&poor, &asset, Some("k"));
        let refused = cut(&wire, (side, RELEASE), run()).await;
        refused.expect_error(402, "INSUFFICIENT_CREDITS");
        let again = unclaimed(run).await;
        again.expect_error(402, "INSUFFICIENT_CREDITS");
        // Its owner's runs are free.
        let key = unique("k");
        let run = || execute(&seller, &asset, Some(key.as_str()));
        cut(&wire, (side, RELEASE), run()).await.expect(200);
        unclaimed(run).await.expect(200);
    }
}

/// The most that an asset may take: its hold outlives what is waited for.
const PATIENT: u64 = 60_000;

async fn patient_asset(seller: &Company) -> String {
    let asset = slow_asset(seller, PgCluster::shared().await, PRICE as u64).await;
    let path = seller.path(&format!("/assets/{asset}"));
    let change = json!({"timeout_ms": PATIENT});
    seller.client.patch(&path, change).await.expect(200);
    asset
}

/// A server that has not learnt that its client has gone keeps the locks of what was under way for some seconds: what is reserved or booked is tried
/// again behind that, once, and a key can be sent again.
#[tokio::test]
async fn a_transaction_that_its_server_keeps_holds_nobody_up_for_long() {
    let (wire, host) = host().await;
    let seller = host.company("seller").await;
    let asset = patient_asset(&seller).await;
    for statement in [CLAIM, HOLD, CHARGE] {
        let buyer = host.buyer(&unique("buyer"), 10).await;
        // It makes the purchase.
        execute(&buyer, &asset, None).await.expect(200);
        let before = wire.cuts();
        wire.forget(statement);
        let begun = Instant::now();
        let first = execute(&buyer, &asset, Some("k")).await;
        assert_eq!(wire.cuts() - before, 1, "{statement}: {}", first.body);
        match statement {
            CLAIM => first.expect_error(503, "SERVICE_UNAVAILABLE"),
            _ => first.expect(200),
        };
        execute(&buyer, &asset, Some("k")).await.expect(200);
        assert!(begun.elapsed() < SEEN_WITHIN, "{statement}");
        until(&buyer.client, &buyer, (10 - 2 * PRICE, 0, 2)).await;
    }
    is_balanced(&host).await;
}

/// A server that is not heard any more, and hears nothing, is given up: the charge is booked by another connection, once.
#[tokio::test]
async fn a_charge_whose_wire_swallows_its_commit_is_booked_once() {
    let (wire, host) = host().await;
    let seller = host.company("seller").await;
    let asset = patient_asset(&seller).await;
    let buyer = host.buyer(&unique("buyer"), 10).await;
    execute(&buyer, &asset, None).await.expect(200);
    let before = wire.cuts();
    wire.swallow(CHARGE);
    let begun = Instant::now();
    let answer = execute(&buyer, &asset, None).await;
    assert_eq!(wire.cuts() - before, 1, "{}", answer.body);
    assert_eq!(answer.expect(200).at("/meta/credits_used"), PRICE);
    assert!(begun.elapsed() < SEEN_WITHIN);
    until(&buyer.client, &buyer, (10 - 2 * PRICE, 0, 2)).await;
    is_balanced(&host).await;
}
