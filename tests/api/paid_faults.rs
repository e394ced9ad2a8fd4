//! A buyer who pays, and a source or a connector that fails: each fault has its status and its blame, costs the buyer nothing and holds
//! nothing back, and the next request succeeds.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::SeqCst};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use souk_tests::breaking_api::{BreakingApi, Breaks};
use souk_tests::receiver::ARRIVES_WITHIN;
use souk_tests::seller_api::{API_KEY, AS, SellerApi};
use souk_tests::{Answer, Client, Company, PgCluster, guests};

use crate::{LEAGUE, host, unique};

const PRICE: i64 = 2;

/// A published asset, and a buyer with 10 credits.
pub struct Sale {
    pub seller: Company,
    pub buyer: Company,
    pub asset: String,
}

impl Sale {
    pub async fn of(seller: Company, connection: &str, asset: Value) -> Sale {
        let asset = seller.asset(connection, asset).await;
        seller.publish(&asset, PRICE as u64).await;
        let buyer = host().await.buyer(&unique("faultless"), 10).await;
        Sale {
            seller,
            buyer,
            asset,
        }
    }

    /// A connection, and an asset on it, that a buyer can break by what he asks for.
    async fn moody() -> Sale {
        let seller = host().await.company(&unique("moody")).await;
        seller.connector(guests::MOODY).await;
        let connection = seller.nowhere("moody").await;
        let asset = json!({"result_type": "string", "timeout_ms": 10_000, "sql_logic": "SELECT mood FROM t WHERE wish = :wish",
            "parameters": [{"name": "wish", "type": "string", "default": "fine"}]});
        Sale::of(seller, &connection, asset).await
    }

    pub async fn buy(&self, params: Value) -> Answer {
        self.buyer.execute(&self.asset, params).await
    }

    /// The refusal is as expected and cost nothing.
    pub async fn assert_free(
        &self,
        refusal: Answer,
        status: u16,
        code: &str,
        blame: &str,
    ) -> Answer {
        let after = self.buyer.credits().await;
        let refusal = refusal.expect_error(status, code);
        assert_eq!(
            refusal.at("/error/details/blame"),
            blame,
            "{}",
            refusal.body
        );
        assert_eq!(refusal.at("/error/details/charged"), false);
        assert_eq!(after, (10, 0), "{}", refusal.body);
        refusal
    }

    /// The next request succeeds, and is paid for.
    pub async fn assert_works(&self, params: Value) {
        let answer = self.buy(params).await.expect(200);
        assert_eq!(answer.at("/meta/credits_used"), PRICE);
        assert_eq!(self.buyer.credits().await, (10 - PRICE, 0));
    }

    /// Changes the connection that the asset is on, which is tested at once.
    pub async fn change(&self, connection: &str, change: Value) -> Answer {
        let path = self.seller.path(&format!("/connections/{connection}"));
        self.seller.client.patch(&path, change).await.expect(200)
    }
}

/// Whatever a connector does, it is to blame for it, and its next session works.
#[tokio::test]
async fn a_connectors_fault_costs_the_buyer_nothing() {
    for (wish, reason) in [
        ("traps", "trapped"),
        ("loops", "trapped"),
        ("exhausts_memory", "out_of_memory"),
        ("says_five_rows", "contract_broken"),
        ("breaks_utf8", "contract_broken"),
        // Told at once, and not at the deadline.
        ("waits_for_nothing", "contract_broken"),
    ] {
        let sale = Sale::moody().await;
        let refusal = sale.buy(json!({"wish": wish})).await;
        let refusal = sale.assert_free(refusal, 502, "CONNECTOR_FAULT", "connector");
        let refusal = refusal.await;
        assert_eq!(refusal.at("/error/details/reason"), reason, "{wish}");
        sale.assert_works(json!({})).await;
    }
}

/// A panic is told to the seller in its own words, in the answer of its own call, in the list of failed runs and in the connector's log;
/// the buyer, whose run it was, learns the request id that leads there and nothing of it.
#[tokio::test]
async fn a_sellers_connector_is_heard() {
    let sale = Sale::moody().await;
    let (seller, other) = (&sale.seller, host().await.company(&unique("deaf")).await);
    let refusal = sale.buy(json!({"wish": "panics"})).await;
    let refusal = sale.assert_free(refusal, 502, "CONNECTOR_FAULT", "connector");
    let refusal = refusal.await;
    assert!(
        !refusal.body.to_string().contains("x = 42"),
        "{}",
        refusal.body
    );
    assert_eq!(refusal.at("/error/details/fault_code"), "trapped");
    let request = refusal.text("/error/details/request_id");

    let own = seller.execute(&sale.asset, json!({"wish": "panics"})).await;
    let own = own.expect_error(502, "CONNECTOR_FAULT");
    let said = own.text("/error/details/source_message");
    assert!(
        said.contains("x = 42") && said.contains("guest.rs"),
        "{said}"
    );

    let path = seller.path("/connectors/moody/logs");
    let log = seller.client.get(&path).await.expect(200);
    let lines = log
        .at("/data/lines")
        .as_array()
        .cloned()
        .unwrap_or_default();
    let panic = lines
        .iter()
        .find(|line| line["text"] == "x = 42")
        .unwrap_or_else(|| panic!("{}", log.body));
    assert_eq!(
        (&panic["stream"], &panic["version"], &panic["company_id"]),
        (&json!("stderr"), &json!("1.0.0"), &json!(seller.id))
    );
    assert!(
        panic["connection_id"]
            .as_str()
            .is_some_and(|id| id.starts_with("con_"))
    );
    let next = log.at("/data/next").as_u64().unwrap_or_default();
    sale.assert_works(json!({"wish": "prints"})).await;
    let after = seller.client.get(&format!("{path}?after={next}")).await;
    let after = after.expect(200);
    assert_eq!(after.at("/data/lines/0/text"), "a line for its author");
    assert_eq!(after.at("/data/lines/1"), &Value::Null);
    for (client, path) in [
        (&other.client, other.path("/connectors/moody/logs")),
        (&other.client, "/connectors/moody/logs".to_owned()),
    ] {
        let status = client.get(&path).await.status.as_u16();
        assert!([403, 404].contains(&status), "{status}");
    }

    let failed = seller.path(&format!("/failed-executions?request_id={request}"));
    let failed = eventually(&seller.client, &failed).await;
    for (member, expected) in [
        ("class", json!("connector")),
        ("blame", json!("connector")),
        ("reason", json!("trapped")),
        ("product_id", json!(sale.asset)),
        ("company_id", json!(sale.buyer.id)),
        (
            "execution_id",
            refusal.at("/error/details/execution_id").clone(),
        ),
    ] {
        assert_eq!(failed[member], expected, "{member}: {failed}");
    }
    assert!(
        failed["source_message"]
            .as_str()
            .is_some_and(|text| text.contains("x = 42"))
    );
    let buyers = sale.buyer.path("/failed-executions");
    let buyers = sale.buyer.client.get(&buyers).await.expect(200);
    assert_eq!(buyers.at("/meta/total"), 0);
}

/// The first of a list that is written behind the requests' backs.
pub async fn eventually(client: &Client, path: &str) -> Value {
    let since = Instant::now();
    loop {
        let listed = client.get(path).await.expect(200);
        if listed.at("/meta/total") != 0 {
            return listed.at("/data/0").clone();
        }
        assert!(since.elapsed() < ARRIVES_WITHIN, "nothing at {path}");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

/// A source that asks for patience, or is away for a while, says so to the buyer: with a status of its own, when to come again, and the
/// connector's word for it.
#[tokio::test]
async fn a_source_that_asks_for_patience_is_heard() {
    let sale = Sale::moody().await;
    for (wish, status, code, reason, word) in [
        (
            "is_rate_limited",
            429,
            "SOURCE_RATE_LIMITED",
            "rate_limited",
            "too_fast",
        ),
        (
            "is_down",
            503,
            "SOURCE_UNAVAILABLE",
            "unreachable",
            "under_repair",
        ),
    ] {
        let refusal = sale.buy(json!({"wish": wish})).await;
        let refusal = sale.assert_free(refusal, status, code, "source").await;
        assert_eq!(refusal.header("retry-after"), "7");
        let details = refusal.at("/error/details");
        assert_eq!(
            (
                &details["retry_after"],
                &details["reason"],
                &details["fault_code"]
            ),
            (&json!(7), &json!(reason), &json!(word)),
            "{details}"
        );
    }
    sale.assert_works(json!({})).await;
}

/// A connector that waits, for whatever it is, costs its caller the deadline and nothing else.
#[tokio::test]
async fn silence_costs_the_buyer_nothing() {
    let sale = Sale::moody().await;
    let refusal = sale.buy(json!({"wish": "is_silent"})).await;
    sale.assert_free(refusal, 504, "EXECUTION_TIMEOUT", "source")
        .await;
    sale.assert_works(json!({})).await;
}

/// More rows than the asset may have.
#[tokio::test]
async fn too_many_rows_cost_the_buyer_nothing() {
    let sale = Sale::moody().await;
    let refusal = sale.buy(json!({"wish": "floods"})).await;
    let refusal = sale
        .assert_free(refusal, 502, "SOURCE_ERROR", "source")
        .await;
    assert_eq!(refusal.at("/error/details/reason"), "bad_answer");
    sale.assert_works(json!({})).await;
}

/// While one seller's connector loops, again and again, another seller's calls are answered.
#[tokio::test]
async fn a_hostile_connector_does_not_stop_anothers_calls() {
    let hostile = Arc::new(Sale::moody().await);
    let other = Sale::moody().await;
    let (looped, stop) = (
        Arc::new(AtomicU32::new(0)),
        Arc::new(AtomicBool::new(false)),
    );
    let looping = {
        let (hostile, looped, stop) = (hostile.clone(), looped.clone(), stop.clone());
        tokio::spawn(async move {
            while !stop.load(SeqCst) {
                let refusal = hostile.buy(json!({"wish": "loops"})).await;
                refusal.expect_error(502, "CONNECTOR_FAULT");
                looped.fetch_add(1, SeqCst);
            }
        })
    };
    while looped.load(SeqCst) == 0 {
        assert!(!looping.is_finished(), "it did not loop");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    for _ in 0..5 {
        other.buy(json!({})).await.expect(200);
    }
    stop.store(true, SeqCst);
    looping.await.expect("a connector's fault each time");
    assert_eq!(
        (hostile.buyer.credits().await, other.buyer.credits().await),
        ((10, 0), (0, 0))
    );
}

/// A PostgreSQL source that worked, and then: its password is changed, it is not there, it speaks no TLS. The change of the connection
/// holds from the next execution, so none of them is served from a session of before.
#[tokio::test]
async fn a_sources_fault_costs_the_buyer_nothing() {
    let cluster = PgCluster::shared().await;
    let database = cluster.database(LEAGUE).await;
    let plaintext = PgCluster::start(&["ssl=off"]).await;
    let without_tls = plaintext.database(LEAGUE).await;
    let good = json!({"username": cluster.user, "password": cluster.password}).to_string();
    let wrong = json!({"username": cluster.user, "password": "not this"}).to_string();
    let elsewhere = json!({"username": plaintext.user, "password": plaintext.password}).to_string();
    let back = json!({"credential_type": "PASSWORD", "credentials": good, "host": "127.0.0.1", "port": cluster.port, "database": database, "ssl_mode": "disable"});
    for (change, reason) in [
        (
            json!({"credential_type": "PASSWORD", "credentials": wrong}),
            "authentication",
        ),
        (
            json!({"credential_type": "PASSWORD", "credentials": good, "port": 1}),
            "refused",
        ),
        (
            json!({"credential_type": "PASSWORD", "credentials": elsewhere, "port": plaintext.port, "database": without_tls, "ssl_mode": "require"}),
            "configuration",
        ),
    ] {
        let seller = host().await.company(&unique("breaks")).await;
        let connection = seller.postgres(cluster, &database).await;
        let asset = json!({"sql_logic": "SELECT sum(goals) FROM matches"});
        let sale = Sale::of(seller, &connection, asset).await;
        // A session is open before the connection changes.
        let test = sale.seller.path(&format!("/assets/{}/test", sale.asset));
        sale.seller.client.post(&test, json!({})).await.expect(200);
        sale.change(&connection, change).await;
        let refusal = sale.buy(json!({})).await;
        let refusal = sale
            .assert_free(refusal, 502, "SOURCE_ERROR", "source")
            .await;
        assert_eq!(
            refusal.at("/error/details/reason"),
            reason,
            "{}",
            refusal.body
        );
        sale.change(&connection, back.clone()).await;
        sale.assert_works(json!({})).await;
    }
}

/// A function that worked when it was published, and whatever its seller's API does wrong then, up to not being there any more.
#[tokio::test]
async fn a_seller_apis_fault_costs_the_buyer_nothing() {
    let api = SellerApi::start().await;
    let seller = host().await.company(&unique("faulty")).await;
    let connection = seller.seller_api(&api.base_url(), API_KEY).await;
    let function = json!({"function_id": "sum_goals", "timeout_ms": 3000,
        "parameters": [{"name": "team", "type": "string", "default": "Ajax"}]});
    let sale = Sale::of(seller, &connection, function).await;
    for (wrong, status, code) in [
        ("wrong_echo", 502, "SELLER_API_ERROR"),
        ("no_answer", 502, "SELLER_API_ERROR"),
        ("bad_timestamp", 502, "SELLER_API_ERROR"),
        ("not_json", 502, "SELLER_API_ERROR"),
        ("fails", 502, "SELLER_API_ERROR"),
        ("teapot", 502, "SELLER_API_ERROR"),
        ("redirects", 502, "SELLER_API_ERROR"),
        ("huge", 502, "SELLER_API_ERROR"),
        ("no_such_function", 502, "SELLER_API_ERROR"),
        ("slow", 504, "EXECUTION_TIMEOUT"),
    ] {
        let refusal = sale.buy(json!({"team": format!("{AS}{wrong}")})).await;
        sale.assert_free(refusal, status, code, "source").await;
        let own = sale.seller.execute(&sale.asset, json!({})).await;
        own.expect(200);
    }
    sale.assert_works(json!({})).await;
    drop(api);
    let refusal = sale.buy(json!({})).await;
    let refusal = refusal.expect_error(502, "SELLER_API_ERROR");
    // Or it was asked over a connection of before, which broke just then.
    let reason = refusal.text("/error/details/reason");
    assert!(
        ["refused", "unreachable"].contains(&reason.as_str()),
        "{reason}"
    );
    assert_eq!(refusal.at("/error/details/charged"), false);
    assert_eq!(sale.buyer.credits().await, (10 - PRICE, 0));
}

/// A function that answers 21 until its API breaks off.
async fn breaking(api: &BreakingApi) -> Sale {
    let seller = host().await.company(&unique("breaking")).await;
    let connection = seller.seller_api(&api.base_url(), API_KEY).await;
    let function = json!({"function_id": "sum_goals", "timeout_ms": 5000});
    Sale::of(seller, &connection, function).await
}

/// What is said of a wire that broke, beside what to do.
pub const BROKEN: &str = "the source broke the connection";

/// An API that breaks off in the middle of an answer: nobody pays, however much had arrived, and the function is not run again behind its
/// seller's back.
#[tokio::test]
async fn an_answer_that_breaks_off_costs_the_buyer_nothing() {
    for (breaks, reason, message) in [
        (Breaks::BeforeTheHead, "unreachable", BROKEN),
        (Breaks::InTheHead, "unreachable", BROKEN),
        (Breaks::InTheBody, "unreachable", BROKEN),
        (Breaks::InAChunk, "unreachable", BROKEN),
        (Breaks::BetweenChunks, "unreachable", BROKEN),
        (
            Breaks::WithoutALength,
            "bad_answer",
            "the seller's API answered with a body that is not the contract's JSON object",
        ),
    ] {
        let api = BreakingApi::start().await;
        let sale = breaking(&api).await;
        breaks_off(&api, &sale, breaks, (reason, message)).await;
    }
}

/// An answer breaks off, also one on a connection that was kept since the answer before: it is told so, free, and asked for once.
pub async fn breaks_off(
    api: &BreakingApi,
    sale: &Sale,
    breaks: Breaks,
    (reason, message): (&str, &str),
) {
    let is_told = |refusal: &Answer| {
        let details = refusal.at("/error/details");
        assert_eq!(details["reason"], reason, "{breaks:?}: {}", refusal.body);
        let said = refusal.text("/error/message");
        assert!(said.contains(message), "{breaks:?}: {said}");
    };
    let calls = api.calls();
    api.next(breaks);
    let refusal = sale.buy(json!({})).await;
    let refusal = sale.assert_free(refusal, 502, "SELLER_API_ERROR", "source");
    is_told(&refusal.await);
    assert_eq!(api.calls(), calls + 1, "{breaks:?}");

    // Not one of them goes on another connection.
    let mut kept = 0;
    for _ in 0..5 {
        let own = sale.seller.execute(&sale.asset, json!({})).await;
        own.expect(200);
        let (calls, opened) = (api.calls(), api.opened());
        api.next(breaks);
        let own = sale.seller.execute(&sale.asset, json!({})).await;
        is_told(&own.expect_error(502, "SELLER_API_ERROR"));
        assert_eq!(api.calls(), calls + 1, "{breaks:?}");
        kept += u64::from(api.opened() == opened);
    }
    assert!(kept > 0, "{breaks:?}: no connection was kept");
    sale.assert_works(json!({})).await;
}

/// An API that closes its connection between two answers, without a word before, costs nobody an answer.
#[tokio::test]
async fn a_connection_closed_between_answers_is_no_fault() {
    let api = BreakingApi::start().await;
    let sale = breaking(&api).await;
    closes_between_answers(&api, &sale).await;
}

pub async fn closes_between_answers(api: &BreakingApi, sale: &Sale) {
    let calls = api.calls();
    for _ in 0..5 {
        api.next(Breaks::AfterTheAnswer);
        let own = sale.seller.execute(&sale.asset, json!({})).await;
        own.expect(200);
        api.close().await;
    }
    sale.assert_works(json!({})).await;
    assert_eq!(api.calls(), calls + 6);
}
