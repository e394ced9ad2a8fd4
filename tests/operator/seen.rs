//! What an operator sees of a running host: in its log, its metrics, its probes.

use std::collections::BTreeSet;
use std::process::Command;
use std::time::{Duration, Instant};

use reqwest::Method;
use serde_json::{Value, json};
use souk_tests::process::{free_port, signal_pid};
use souk_tests::redis::Redis;
use souk_tests::s3::S3;
use souk_tests::{Receiver, Reply, Running, TestHost, guests};

const ALERTS: &str = include_str!("../../deploy/alerts.yaml");
const DASHBOARD: &str = include_str!("../../deploy/dashboard.json");

fn lines(host: &TestHost) -> Vec<Value> {
    let log = host.log();
    log.lines()
        .filter_map(|line| serde_json::from_str(line).ok())
        .collect()
}

/// The line of a request; it is written before the answer leaves.
fn line_of(host: &TestHost, request_id: &str) -> Value {
    let of = |line: &&Value| line["request_id"] == request_id && !line["status"].is_null();
    let lines = lines(host);
    let found: Vec<&Value> = lines.iter().filter(of).collect();
    assert_eq!(found.len(), 1, "{request_id}: {found:?} in {}", host.log());
    found[0].clone()
}

/// The request id of an answer that failed leads to one line, which says who asked for what, and what happened; the seller's own words are there
/// too. A trace that a client began is named in it.
#[tokio::test]
async fn a_request_id_leads_to_its_line() {
    let host = TestHost::builder().start().await;
    let company = host.company("seen").await;
    let missing = company.path("/assets/ast_none");
    let refused = company.client.get(&missing).await.expect(404);
    let line = line_of(&host, refused.header("x-request-id"));
    assert_eq!(line["operation"], "get_asset", "{line}");
    assert_eq!(
        (&line["status"], &line["code"]),
        (&json!(404), &json!("ASSET_NOT_FOUND"))
    );
    assert_eq!(
        (&line["company"], &line["address"]),
        (&json!(company.id), &json!("127.0.0.1"))
    );
    assert!(line["ms"].is_u64() && line["level"] == "INFO", "{line}");

    let connection = company.connection("postgres", json!({"credential_type": "PASSWORD", "host": "127.0.0.1", "port": free_port(), "database": "d",
        "credentials": json!({"username": "u", "password": "p"}).to_string()})).await;
    let asset = company
        .asset(&connection, json!({"sql_logic": "SELECT 1"}))
        .await;
    let trace = "4bf92f3577b34da6a3ce929d0e0e4736";
    let execute = company.path(&format!("/assets/{asset}/execute"));
    let parent = format!("00-{trace}-00f067aa0ba902b7-01");
    let failed = company
        .client
        .post_with(&execute, &[("traceparent", &parent)], json!({}))
        .await;
    assert!(failed.status.is_server_error(), "{}", failed.body);
    let line = line_of(&host, failed.header("x-request-id"));
    assert_eq!(
        (&line["level"], &line["trace_id"]),
        (&json!("WARN"), &json!(trace)),
        "{line}"
    );
    assert_eq!(line["blame"], failed.body["error"]["details"]["blame"]);
    assert!(
        line["message"].is_string() && line["reason"].is_string(),
        "{line}"
    );

    // What nobody asked for is no line: a page of calls that are answered well says nothing.
    let before = lines(&host).len();
    for _ in 0..20 {
        company.client.get("/companies/me").await.expect(200);
    }
    assert_eq!(lines(&host).len(), before);
}

/// With a filter, every call has its line.
#[tokio::test]
async fn an_access_log_is_a_filter_away() {
    let host = TestHost::builder()
        .arg("--log", "warn,souk::access=debug")
        .start()
        .await;
    let answer = host.platform().get("/companies/me").await.expect(200);
    let line = line_of(&host, answer.header("x-request-id"));
    assert_eq!(
        (&line["operation"], &line["status"]),
        (&json!("my_company"), &json!(200)),
        "{line}"
    );
    assert!(line["us"].is_u64(), "{line}");
}

/// The value of a line of the metrics.
fn value(text: &str, line: &str) -> f64 {
    let found = text
        .lines()
        .find_map(|text| text.strip_prefix(line)?.strip_prefix(' '));
    let found = found.and_then(|value| value.parse().ok());
    found.unwrap_or_else(|| panic!("no {line} in {text}"))
}

/// Requests by route and status, their durations, refusals by code, charges and holds, and how the store is.
#[tokio::test]
async fn metrics_count_calls_and_money() {
    let metrics = format!("127.0.0.1:{}", free_port());
    let host = TestHost::builder()
        .arg("--metrics-listen", &metrics)
        .start()
        .await;
    host.platform()
        .post_wasm("/connectors?activate=true", guests::FIXED_ROWS.to_vec())
        .await
        .expect(201);
    let seller = host.company("seller").await;
    let connection = seller.nowhere("fixed").await;
    let label = json!({"result_type": "string", "sql_logic": "SELECT label FROM fixed LIMIT 1"});
    let asset = seller.asset(&connection, label).await;
    seller.publish(&asset, 5).await;
    let (buyer, poor) = (host.buyer("buyer", 100).await, host.company("poor").await);
    for _ in 0..3 {
        buyer.execute(&asset, json!({})).await.expect(200);
    }
    poor.execute(&asset, json!({})).await.expect(402);
    host.anonymous().get("/companies/me").await.expect(401);
    host.anonymous().get("/nowhere").await.expect(404);

    let text = scraped(&metrics).await;
    let execute = r#"route="/companies/{company_id}/assets/{asset_id}/execute",method="POST""#;
    assert_eq!(
        value(
            &text,
            &format!("souk_requests_total{{{execute},status=\"200\"}}")
        ),
        3.0
    );
    assert_eq!(
        value(
            &text,
            &format!("souk_requests_total{{{execute},status=\"402\"}}")
        ),
        1.0
    );
    let of = format!("{{{execute},class=\"2xx\"}}");
    assert_eq!(
        value(&text, &format!("souk_request_duration_seconds_count{of}")),
        3.0
    );
    assert!(value(&text, &format!("souk_request_duration_seconds_sum{of}")) > 0.0);
    let all =
        format!("souk_request_duration_seconds_bucket{{le=\"+Inf\",{execute},class=\"2xx\"}}");
    assert_eq!(value(&text, &all), 3.0);
    assert_eq!(
        value(&text, r#"souk_refusals_total{code="INSUFFICIENT_CREDITS"}"#),
        1.0
    );
    assert!(value(&text, r#"souk_refusals_total{code="MISSING_API_KEY"}"#) >= 1.0);
    assert!(
        value(
            &text,
            r#"souk_requests_total{route="none",method="any",status="404"}"#
        ) >= 1.0
    );
    assert_eq!(value(&text, "souk_charges_total"), 3.0);
    assert_eq!(value(&text, "souk_charged_credits_total"), 15.0);
    assert_eq!(value(&text, "souk_holds_refused_total"), 1.0);
    assert_eq!(value(&text, "souk_store_available"), 1.0);
    assert!(value(&text, "souk_charge_log_bytes") > 0.0);
    assert!(value(&text, "souk_process_resident_memory_bytes") > 1e6);
    assert!(text.ends_with("# EOF\n"));
}

async fn scraped(metrics: &str) -> String {
    let answer = reqwest::get(format!("http://{metrics}/metrics")).await;
    let text = answer.expect("an answer").text().await;
    text.expect("text")
}

/// What a company's guests compute and hold, what it has in the store, and what of its webhooks is attempted and waits, is seen; and every name
/// that the alerting rules and the dashboard ask for is there.
#[tokio::test]
async fn what_is_watched_is_there() {
    let (redis, files) = (Redis::start().await, S3::start().await);
    let metrics = format!("127.0.0.1:{}", free_port());
    let host = TestHost::builder()
        .arg("--metrics-listen", &metrics)
        .env("SOUK_REDIS_URL", &redis.url());
    let host = files.used_by(host).start().await;
    let seller = host.company("watched").await;
    seller.connector(guests::MOODY).await;
    let connection = seller.nowhere("moody").await;
    let fields = json!({
        "result_type": "string", "sql_logic": "SELECT :wish",
        "parameters": [{"name": "wish", "type": "string", "required": true}],
    });
    let asset = seller.asset(&connection, fields).await;
    for wish in ["loops", "fine"] {
        seller.execute(&asset, json!({"wish": wish})).await;
    }
    let file = seller.path("/files/some.db");
    let put = seller.client.put_bytes(&file, vec![7; 1_000]).await;
    put.expect(201);
    let (receiver, silent) = (Receiver::start().await, Receiver::start().await);
    receiver.always(Reply::Status(500));
    silent.always(Reply::Silence);
    let hooks = seller.path("/webhooks");
    for receiver in [&receiver, &silent] {
        let hook = json!({"url": receiver.url(), "event_types": ["api_key.revoked"]});
        seller.client.post(&hooks, hook).await.expect(201);
    }
    let keys = seller.path("/api-keys");
    let key = seller.client.post(&keys, json!({"name": "brief"})).await;
    let key = format!("{keys}/{}", key.expect(201).text("/data/id"));
    seller.client.delete(&key).await.expect(204);
    receiver.wait_for(1).await;
    silent.wait_for(1).await;

    let text = scraped(&metrics).await;
    let of = |name: &str| value(&text, &format!("{name}{{company=\"{}\"}}", seller.id));
    // The guest that loops is stopped after a quarter of a second.
    assert!(of("souk_company_guest_seconds_total") > 0.1, "{text}");
    assert!(of("souk_company_guest_memory_bytes") > 1e5, "{text}");
    assert_eq!(of("souk_company_sessions_open"), 1.0);
    assert!(
        value(&text, "souk_sandbox_guest_memory_bytes") >= of("souk_company_guest_memory_bytes")
    );
    assert_eq!(of("souk_company_data_connections_in_use"), 1.0);
    // One is attempted again in some seconds, and is not late until then; the other is being attempted.
    assert_eq!(value(&text, "souk_webhook_deliveries_waiting"), 2.0);
    assert!(value(&text, "souk_webhook_delivery_delay_seconds") < 5.0);
    let attempted = value(&text, "souk_webhook_deliveries_in_flight");
    assert!(attempted >= 1.0, "{text}");
    assert_eq!(
        of("souk_company_webhook_deliveries_in_flight"),
        attempted,
        "{text}"
    );
    for (name, has) in [
        ("data_connections", 1),
        ("uploaded_connector_bytes", guests::MOODY.len()),
        ("file_bytes", 1_000),
    ] {
        for whose in ["", "_of_largest_company"] {
            let name = format!("souk_{name}{whose}");
            assert_eq!(value(&text, &name), has as f64, "{name}");
        }
    }
    assert!(value(&text, "souk_compile_seconds_total") >= 0.0);
    let names: BTreeSet<&str> = [ALERTS, DASHBOARD]
        .iter()
        .flat_map(|text| {
            text.split(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_')
        })
        .filter(|word| word.starts_with("souk_"))
        .collect();
    assert!(names.len() > 20, "{names:?}");
    let is_there = |name: &&&str| {
        let named = |line: &str| {
            line.strip_prefix(**name)
                .is_some_and(|rest| rest.starts_with(['{', ' ']))
        };
        text.lines().any(named)
    };
    let missing: Vec<_> = names.iter().filter(|name| !is_there(name)).collect();
    assert!(missing.is_empty(), "{missing:?} are not in {text}");
}

/// The rules are ones that Prometheus takes, where its tool is installed.
#[test]
fn alerting_rules_are_rules() {
    let rules = concat!(env!("CARGO_MANIFEST_DIR"), "/../deploy/alerts.yaml");
    match Command::new("promtool")
        .args(["check", "rules", rules])
        .output()
    {
        Ok(done) => assert!(done.status.success(), "{done:?}"),
        Err(_) => eprintln!("SKIPPED: promtool is not installed"),
    }
}

/// What waits for a source takes as long as that does: the rule about slow calls leaves it out.
#[test]
fn the_rule_about_slow_calls_leaves_out_what_asks_a_source() {
    let (_, rule) = ALERTS.split_once("alert: SoukSlow").expect("the rule");
    let (_, routes) = rule.split_once(r#"route!~".*("#).expect("routes");
    let (routes, rest) = routes.split_once(r#").*","#).expect("their end");
    // Where a change is tested before it is saved.
    assert!(rest.starts_with(r#"method!="PATCH"}"#), "{rest}");
    let document = include_str!("../../openapi.json");
    let document: Value = serde_json::from_str(document).expect("JSON");
    let mut asking = 0;
    for (path, operations) in document["paths"].as_object().expect("paths") {
        for (method, operation) in operations.as_object().expect("operations") {
            if operation["responses"]["504"].is_null() || method == "patch" {
                continue;
            }
            let is_left_out = routes.split('|').any(|part| path.contains(part));
            assert!(is_left_out, "{method} {path}");
            asking += 1;
        }
    }
    assert!(asking > 10, "{asking}");
}

/// /readyz says that a host is ready when others find what they wait for, the ready file, and not before.
#[tokio::test]
async fn a_host_is_ready_when_its_ready_file_is_there() {
    let mut host = TestHost::builder().start().await;
    assert!(host.stop().await.success());
    let (ready, listen) = (
        host.data_dir.join("again.json"),
        format!("127.0.0.1:{}", free_port()),
    );
    let [data, file] = [&host.data_dir, &ready].map(|path| path.to_string_lossy().into_owned());
    let serve = ["serve", "--listen", &listen, "--data-dir", &data];
    let serve = [&serve[..], &["--ready-file", &file]].concat();
    let _serving = Running::start(&host.data_dir, &serve, &[]);
    let begun = Instant::now();
    loop {
        let answer = reqwest::get(format!("http://{listen}/readyz")).await;
        match answer.map(|answer| answer.status().as_u16()) {
            Ok(200) => break,
            Ok(status) => assert_eq!(status, 503),
            // It does not listen yet.
            Err(_) => {}
        }
        assert!(begun.elapsed() < Duration::from_secs(60), "it is not ready");
    }
    assert!(ready.is_file());
}

/// Probes of all kinds: HEAD gets what GET gets, without a body, wherever it costs nothing, and never runs what is billed.
#[tokio::test]
async fn head_is_answered_where_it_costs_nothing() {
    let host = TestHost::builder().start().await;
    let platform = host.platform();
    for path in [
        "/",
        "/healthz",
        "/readyz",
        "/openapi.json",
        "/companies/me",
        "/connectors",
    ] {
        let get = platform.get(path).await.expect(200);
        let head = platform
            .request(Method::HEAD, path)
            .send()
            .await
            .expect("an answer");
        assert_eq!(head.status(), 200, "{path}");
        assert_eq!(
            head.headers()["content-type"],
            get.header("content-type"),
            "{path}"
        );
        assert!(head.bytes().await.expect("a body").is_empty(), "{path}");
    }
    let unknown = host.anonymous().request(Method::HEAD, "/companies/me");
    assert_eq!(unknown.send().await.expect("an answer").status(), 401);
    let billed = "/analyze/nobody/assets/nothing";
    let refused = platform
        .request(Method::HEAD, billed)
        .send()
        .await
        .expect("an answer");
    assert_eq!(refused.status(), 405);
    let allow = refused.headers()["allow"].to_str().expect("text");
    assert!(!allow.contains("HEAD"), "{allow}");
}

/// At SIGTERM a host that has a delay says at /readyz that it stops, serves everybody until it is over, and then ends in order. The ready file
/// names the address although clients use another.
#[tokio::test]
async fn a_host_that_stops_says_so_first() {
    let mut host = TestHost::builder()
        .arg("--drain-delay-seconds", "8")
        .arg("--base-url", "https://api.example.com")
        .start()
        .await;
    assert_eq!(host.base_url, "https://api.example.com");
    let listen = host.ready["listen"]
        .as_str()
        .expect("an address")
        .to_owned();
    host.base_url = format!("http://{listen}");
    let platform = host.platform();
    platform.get("/readyz").await.expect(200);
    let begun = Instant::now();
    signal_pid(host.pid(), libc::SIGTERM);
    loop {
        let ready = platform.get("/readyz").await;
        if ready.status.as_u16() == 503 {
            assert!(
                ready.text("/error/message").contains("about to stop"),
                "{}",
                ready.body
            );
            break;
        }
        assert!(
            begun.elapsed() < Duration::from_secs(6),
            "/readyz is still well"
        );
    }
    platform.get("/healthz").await.expect(200);
    platform.get("/companies/me").await.expect(200);
    assert!(
        begun.elapsed() < Duration::from_secs(8),
        "this machine is too slow for this test"
    );
    assert!(host.stopped().await.success());
    assert!(begun.elapsed() >= Duration::from_secs(8));
}
