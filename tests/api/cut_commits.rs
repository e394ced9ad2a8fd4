//! The connection to the store ends in the middle of a commit, so that nobody knows whether it went through: what the client is told, and what is in
//! the books and at work then.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use souk_tests::cut_commits::{CommitWire, Cut};
use souk_tests::{Answer, Client, Company, PgCluster, Receiver, TestHost, guests};

use crate::charges::slow_asset;
use crate::sqlite_source::dataset;
use crate::unique;
use crate::voids::{books, until};
use crate::webhooks::{Hook, QUIET, revoke_a_key};

/// Statements of the transactions whose commits are cut, in the order of a first paid run with a key.
const CLAIM: &str = "INSERT INTO idempotency";
const HOLD: &str = "INSERT INTO holds";
const PURCHASE: &str = "INSERT INTO purchases";
const CHARGE: &str = "INSERT INTO transactions";
/// Of an answer that is kept when what it tells of is committed.
const KEEP: &str = "UPDATE idempotency";
/// Of a claim that nobody works for any more.
const RELEASE: &str = "ticket = $4 AND status IS NULL";
/// Of work that has come due, by which a host has it for a minute at least.
const LEASE: &str = "lease_until = $4";

const PRICE: i64 = 3;
/// A host looks again after two seconds; a loaded machine gets a multiple.
const SEEN_WITHIN: Duration = Duration::from_secs(60);
/// Much longer than it takes to let go of a claim, and not as long as one lasts.
const LET_GO_WITHIN: Duration = Duration::from_secs(15);
/// What a revoked key is answered.
const GONE: u16 = 410;
/// What is looked for again has been by then, on any machine that is not overloaded.
const LOOKED_AGAIN: Duration = Duration::from_secs(5);

/// A host whose store is behind a wire.
async fn host() -> (CommitWire, TestHost) {
    let cluster = PgCluster::shared().await;
    let wire = CommitWire::to(cluster.port).await;
    let database = cluster.database("SELECT 1").await;
    // What is said within TLS nobody else can read.
    let url = format!("{}?sslmode=disable", cluster.url_by(wire.port, &database));
    let host = TestHost::builder()
        .arg("--database-url", url)
        .env("SOUK_IP_RATE_LIMIT", "1000000")
        .start()
        .await;
    (wire, host)
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

async fn execute(buyer: &Company, asset: &str, key: Option<&str>) -> Answer {
    let path = buyer.path(&format!("/assets/{asset}/execute"));
    let header = key.map(|key| ("idempotency-key", key));
    let body = json!({"params": {"seconds": 0}});
    let headers = header.as_slice();
    buyer.client.post_with(&path, headers, body).await
}

/// What somebody with a key does is looked for in the audit log: the client is told that it is done where it is, and to try again where it is not.
fn told(answer: Answer, side: Cut, status: u16) {
    match side {
        Cut::Before => answer.expect_error(503, "SERVICE_UNAVAILABLE"),
        Cut::Behind => answer.expect(status),
    };
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

/// A delivery that was claimed without an answer is attempted, once, before its lease has ended.
#[tokio::test]
async fn a_delivery_whose_claim_is_cut_arrives_once() {
    let (wire, host) = host().await;
    for side in Cut::BOTH {
        let company = host.company(&unique("told")).await;
        let receiver = Receiver::start().await;
        let hook = Hook::new(&company, &receiver, &["api_key.revoked"]).await;
        let before = wire.cuts();
        wire.cut(side, LEASE);
        revoke_a_key(&company).await;
        receiver.wait_for(1).await;
        assert_eq!(wire.cuts() - before, 1, "{side:?}");
        let is_delivered = |delivery: &Value| delivery["status"] == "delivered";
        let delivery = hook.delivery(&company, is_delivered).await;
        assert_eq!(delivery["attempts"], 1, "{side:?}");
        tokio::time::sleep(QUIET).await;
        assert_eq!(receiver.received().len(), 1, "{side:?}");
    }
}

/// What an alert has spent counts once against what it may spend in a day, also where that was written down without an answer; and where its claim was
/// not answered it is evaluated before its lease has ended.
#[tokio::test]
async fn what_an_alert_spends_counts_once() {
    let (wire, host) = host().await;
    let seller = host.company("seller").await;
    let asset = slow_asset(&seller, PgCluster::shared().await, PRICE as u64).await;
    let cuts = [LEASE, "SET spent_credits"];
    for (statement, side) in cuts
        .into_iter()
        .flat_map(|cut| Cut::BOTH.map(|side| (cut, side)))
    {
        let buyer = host.buyer(&unique("watching"), 10).await;
        let path = buyer.path(&format!("/users/{}/alerts", buyer.user_id));
        let condition = json!({"operator": "gt", "threshold": 1_000_000});
        let body = json!({"name": "n", "asset_id": asset, "condition": condition, "check_interval_seconds": 31 * 86_400});
        let before = wire.cuts();
        wire.cut(side, statement);
        // It is evaluated at once.
        let alert = buyer.client.post(&path, body).await.expect(201);
        let alert = buyer.path(&format!("/alerts/{}", alert.text("/data/id")));
        let begun = Instant::now();
        let is_checked = async || {
            let shown = buyer.client.get(&alert).await.expect(200);
            !shown.at("/data/last_checked_at").is_null()
        };
        while wire.cuts() == before || !is_checked().await {
            assert!(begun.elapsed() < SEEN_WITHIN, "{side:?} {statement}");
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        tokio::time::sleep(LOOKED_AGAIN).await;
        let shown = buyer.client.get(&alert).await.expect(200);
        let spent = shown.at("/data/credits_spent_today");
        assert_eq!(spent, PRICE, "{side:?} {statement}: {}", shown.body);
        until(&buyer.client, &buyer, (10 - PRICE, 0, 1)).await;
    }
    is_balanced(&host).await;
}

/// Use of a key counts once, also where that was written without an answer, and where the commit comes later.
#[tokio::test]
async fn use_that_was_counted_without_an_answer_counts_once() {
    const USES: i64 = 5;
    let (wire, host) = host().await;
    let company = host.company(&unique("counted")).await;
    let keys = company.path("/api-keys");
    for fate in [Some(Cut::Before), Some(Cut::Behind), None] {
        let made = company.client.post(&keys, json!({"name": "used"})).await;
        let made = made.expect(201);
        let user = host.client(&made.text("/data/key"));
        let key = format!("{keys}/{}", made.text("/data/id"));
        let credits = company.path("/credits");
        let counted = async || {
            let shown = company.client.get(&key).await.expect(200);
            shown.at("/data/usage_count").as_i64()
        };
        let before = wire.cuts();
        match fate {
            Some(side) => wire.cut(side, "INSERT INTO key_usage"),
            None => wire.delay("INSERT INTO key_usage"),
        }
        for _ in 0..USES {
            user.get(&credits).await;
        }
        let begun = Instant::now();
        while wire.cuts() == before || counted().await < Some(USES) {
            assert!(begun.elapsed() < SEEN_WITHIN, "{fate:?}");
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        tokio::time::sleep(LOOKED_AGAIN).await;
        assert_eq!(counted().await, Some(USES), "{fate:?}");
    }
}

/// An upload whose row may have been written is a file, with its bytes, or neither is there.
#[tokio::test]
async fn a_file_whose_commit_is_cut_is_whole_or_not_there() {
    let (wire, host) = host().await;
    for side in Cut::BOTH {
        let seller = host.company(&unique("filer")).await;
        let path = seller.path("/files/sales.db");
        let bytes = dataset(3).await;
        let put = seller.client.put_bytes(&path, bytes.clone());
        let put = cut(&wire, (side, "INSERT INTO files"), put).await;
        told(put, side, 201);
        let uploads = host.data_dir.join("files").join(&seller.id);
        let found = seller.client.get(&path).await;
        match side {
            Cut::Before => {
                found.expect(404);
                let begun = Instant::now();
                while std::fs::read_dir(&uploads).is_ok_and(|left| left.count() > 0) {
                    assert!(begun.elapsed() < SEEN_WITHIN, "its bytes stay");
                    tokio::time::sleep(Duration::from_millis(100)).await;
                }
                seller.client.put_bytes(&path, bytes).await.expect(201);
            }
            Cut::Behind => {
                let size = found.expect(200).at("/data/size_bytes").as_u64();
                assert_eq!(size, Some(bytes.len() as u64));
            }
        }
        let fields =
            json!({"credential_type": "NONE", "credentials": "{}", "database": "sales.db"});
        let connection = seller.connection("sqlite", fields).await;
        let count = json!({"sql_logic": "SELECT count(*) FROM sales"});
        let asset = seller.asset(&connection, count).await;
        let counted = seller.execute(&asset, json!({})).await.expect(200);
        assert_eq!(counted.at("/data/answer_value"), 3, "{side:?}");
    }
}

const SECOND: &str = "2.0.0";

/// `version: status` of every version of the connector that the tests of activations have.
async fn versions(client: &Client) -> Vec<String> {
    let answer = client.get("/connectors/fixed-rows").await.expect(200);
    let versions = answer.at("/data/versions").as_array().cloned();
    let text = |version: &Value| format!("{}: {}", version["version"], version["status"]);
    let versions = versions.unwrap_or_default();
    versions
        .iter()
        .map(|version| text(version).replace('"', ""))
        .collect()
}

/// A version whose choice may have been written down: the one that the store has is at work, and stays so.
#[tokio::test]
async fn an_activation_whose_commit_is_cut_is_what_the_store_has() {
    let (wire, host) = host().await;
    for side in Cut::BOTH {
        let seller = host.company(&unique("activating")).await;
        seller.connector(guests::FIXED_ROWS).await;
        let path = seller.path("/connectors");
        let second = guests::FIXED_ROWS_NEXT.to_vec();
        let second = seller.client.post_wasm(&path, second).await;
        second.expect(201);
        let path = seller.path("/connectors/fixed-rows/activate");
        let activate = || seller.client.post(&path, json!({"version": SECOND}));
        let statement = "INSERT INTO connector_choices";
        let answer = cut(&wire, (side, statement), activate()).await;
        told(answer, side, 200);
        let expected = match side {
            Cut::Before => ["1.0.0: active", "2.0.0: staged"],
            Cut::Behind => ["1.0.0: retired", "2.0.0: active"],
        };
        let begun = Instant::now();
        while versions(&seller.client).await != expected {
            assert!(begun.elapsed() < SEEN_WITHIN, "{side:?}");
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        activate().await.expect(200);
        assert_eq!(
            versions(&seller.client).await,
            ["1.0.0: retired", "2.0.0: active"],
            "{side:?}"
        );
    }
}

/// A connector whose commit was cut can be sent again, and is there once.
#[tokio::test]
async fn a_connector_whose_commit_is_cut_can_be_sent_again() {
    let (wire, host) = host().await;
    for side in Cut::BOTH {
        let seller = host.company(&unique("uploading")).await;
        let path = seller.path("/connectors?activate=true");
        let upload = || seller.client.post_wasm(&path, guests::FIXED_ROWS.to_vec());
        let first = cut(&wire, (side, "INSERT INTO connectors "), upload()).await;
        told(first, side, 201);
        upload().await.expect(201);
        assert_eq!(
            versions(&seller.client).await,
            ["1.0.0: active"],
            "{side:?}"
        );
    }
}
