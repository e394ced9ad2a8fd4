//! Calls as a collector of traces sees them.

use std::time::{Duration, Instant};

use serde_json::json;
use souk_tests::collector::{Collector, Span};
use souk_tests::host::Builder;
use souk_tests::process::free_port;
use souk_tests::{Company, TestHost, guests};

const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
const PARENT: &str = "00f067aa0ba902b7";
const SEEN_WITHIN: Duration = Duration::from_secs(60);

/// A host that sends this collector so many of a hundred calls.
fn followed(collector: &Collector, percent: &str) -> Builder {
    TestHost::builder()
        .arg("--otlp-url", collector.url())
        .arg("--otlp-sample-percent", percent)
}

fn traceparent(trace: &str, flags: &str) -> String {
    format!("00-{trace}-{PARENT}-{flags}")
}

struct Market {
    seller: Company,
    buyer: Company,
    asset: String,
}

impl Market {
    async fn on(host: &TestHost) -> Market {
        let seller = host.company("seller").await;
        seller.connector(guests::FIXED_ROWS).await;
        let connection = seller.nowhere("fixed").await;
        let label =
            json!({"result_type": "string", "sql_logic": "SELECT label FROM fixed LIMIT 1"});
        let asset = seller.asset(&connection, label).await;
        seller.publish(&asset, 1).await;
        let buyer = host.buyer("buyer", 1_000).await;
        Market {
            seller,
            buyer,
            asset,
        }
    }

    async fn execute(&self, headers: &[(&str, &str)]) -> souk_tests::Answer {
        let path = format!("/companies/{}/assets/{}/execute", self.buyer.id, self.asset);
        self.buyer.client.post_with(&path, headers, json!({})).await
    }
}

/// The one span of these that is a call, and the one that is a part of it.
fn call_and_part(spans: Vec<Span>) -> (Span, Span) {
    let (calls, parts): (Vec<_>, Vec<_>) = spans.into_iter().partition(|span| span.kind == 2);
    let [call] = &calls[..] else {
        panic!("{calls:?}");
    };
    let [part] = &parts[..] else {
        panic!("{parts:?}");
    };
    assert_eq!(part.parent, call.id);
    assert!(
        part.began >= call.began && part.ended <= call.ended,
        "{part:?} {call:?}"
    );
    (call.clone(), part.clone())
}

/// A call goes on with its client's trace: who asked for what and how that ended, and which connector answered, by its digest; nothing of what
/// was asked and answered.
#[tokio::test]
async fn a_call_is_seen_with_its_connector() {
    let collector = Collector::start().await;
    let host = followed(&collector, "100").start().await;
    let market = Market::on(&host).await;
    let digest = market.seller.client.get("/connectors/fixed-rows").await;
    let digest = digest.expect(200).body.to_string();

    let header = traceparent(TRACE, "00");
    let answer = market
        .execute(&[("traceparent", &header)])
        .await
        .expect(200);
    let (call, part) = call_and_part(collector.trace(TRACE, 2).await);
    assert_eq!(call.parent, PARENT);
    let route = "/companies/{company_id}/assets/{asset_id}/execute";
    assert_eq!(call.name, format!("POST {route}"));
    for (name, value) in [
        ("souk.request_id", answer.header("x-request-id")),
        ("http.request.method", "POST"),
        ("http.route", route),
        ("http.response.status_code", "200"),
        ("souk.operation", "execute_asset"),
        ("souk.company_id", market.buyer.id.as_str()),
    ] {
        assert_eq!(call.label(name), value, "{call:?}");
    }
    assert_eq!(call.status, 0);
    assert_eq!(call.resource["service.name"], "souk");
    assert_eq!(part.name, "query fixed-rows");
    assert_eq!(part.label("souk.rows"), "1");
    assert!(
        digest.contains(part.label("souk.connector.digest")),
        "{digest}"
    );
    let said = format!("{call:?} {part:?}");
    assert!(
        !said.contains("SELECT") && !said.contains(&market.asset),
        "{said}"
    );

    // What goes on for its client, in a task of its own, belongs to the call.
    let other = "0af7651916cd43dd8448eb211c80319c";
    let header = traceparent(other, "01");
    let keyed = [
        ("traceparent", header.as_str()),
        ("idempotency-key", "once"),
    ];
    market.execute(&keyed).await.expect(200);
    call_and_part(collector.trace(other, 2).await);

    // Without one it begins a trace of its own.
    let own = market.execute(&[]).await.expect(200);
    let own = collector.call(own.header("x-request-id")).await;
    assert!(own.parent.is_empty() && own.trace.len() == 32 && own.trace != TRACE);
}

/// What fails is a failure of the call's when it is ours or the source's, and has its code in any case.
#[tokio::test]
async fn failures_are_seen() {
    let collector = Collector::start().await;
    let host = followed(&collector, "100").start().await;
    let seller = host.company("seller").await;
    let missing = seller
        .client
        .get(&seller.path("/assets/ast_none"))
        .await
        .expect(404);
    let missing = collector.call(missing.header("x-request-id")).await;
    assert_eq!(
        (missing.status, missing.label("souk.code")),
        (0, "ASSET_NOT_FOUND")
    );

    let connection = seller
        .connection(
            "postgres",
            json!({"credential_type": "PASSWORD", "host": "127.0.0.1", "port": free_port(),
        "database": "d", "credentials": json!({"username": "u", "password": "p"}).to_string()}),
        )
        .await;
    let asset = seller
        .asset(&connection, json!({"sql_logic": "SELECT 1"}))
        .await;
    let failed = seller.execute(&asset, json!({})).await;
    assert!(failed.status.is_server_error(), "{}", failed.body);
    let call = collector.call(failed.header("x-request-id")).await;
    let (call, part) = call_and_part(collector.trace(&call.trace, 2).await);
    assert_eq!((call.status, part.status), (2, 2));
    assert_eq!(call.label("souk.code"), failed.body["error"]["code"]);
    assert_eq!(call.label("error.type"), call.label("souk.code"));
    assert_eq!(
        (part.label("souk.blame"), part.label("souk.reason")),
        ("source", "refused")
    );
}

/// Nobody's header makes a host follow its calls, but what comes through the operator's own proxies does as it says; and without a collector a trace
/// is named and that is all.
#[tokio::test]
async fn who_is_followed_is_the_operators_choice() {
    let collector = Collector::start().await;
    let start = async |proxy: &str| {
        followed(&collector, "0")
            .arg("--trust-proxy", proxy)
            .start()
            .await
    };
    let (wary, trusting) = (start("192.0.2.0/24").await, start("127.0.0.0/8").await);
    let (strangers, unwanted) = ("1".repeat(32), "2".repeat(32));
    for (host, trace, flags) in [
        (&wary, &strangers, "01"),
        (&trusting, &unwanted, "00"),
        (&trusting, &TRACE.to_owned(), "01"),
    ] {
        let header = traceparent(trace, flags);
        let request = host
            .platform()
            .request(reqwest::Method::GET, "/companies/me");
        let answer = request
            .header("traceparent", header)
            .send()
            .await
            .expect("an answer");
        assert_eq!(answer.status(), 200);
    }
    let spans = collector.trace(TRACE, 1).await;
    assert_eq!(spans[0].parent, PARENT);
    assert_eq!(collector.spans().len(), 1, "{:?}", collector.spans());
}

/// A collector that does not take what it is sent holds nobody up: it is tried again, what is lost is counted, and what comes later is taken.
#[tokio::test]
async fn a_collector_that_is_away_costs_its_spans_only() {
    let (collector, metrics) = (
        Collector::start().await,
        format!("127.0.0.1:{}", free_port()),
    );
    collector.answer(503);
    let mut host = followed(&collector, "100")
        .arg("--metrics-listen", &metrics)
        .start()
        .await;
    let count = async |name: &str| -> u64 {
        let text = reqwest::get(format!("http://{metrics}/metrics"))
            .await
            .expect("an answer");
        let text = text.text().await.expect("text");
        let line = text
            .lines()
            .find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        line.and_then(|value| value.parse().ok())
            .unwrap_or_else(|| panic!("no {name} in {text}"))
    };
    host.platform().get("/companies/me").await.expect(200);
    let begun = Instant::now();
    while count("souk_spans_dropped_total").await == 0 {
        assert!(begun.elapsed() < SEEN_WITHIN, "it is not given up");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    assert!(collector.asked() >= 3, "tried {} times", collector.asked());
    assert_eq!(count("souk_spans_sent_total").await, 0);
    assert!(host.log().contains("the collector does not take spans"));

    collector.answer(200);
    let answer = host.platform().get("/companies/me").await.expect(200);
    collector.call(answer.header("x-request-id")).await;
    // A host that stops sends what it has.
    let last = host.platform().get("/companies/me").await.expect(200);
    host.stop().await;
    let ids = collector.spans();
    let is_there = ids
        .iter()
        .any(|span| span.label("souk.request_id") == last.header("x-request-id"));
    assert!(is_there, "{ids:?}");
}
