//! The README's connector is sold as the README says, command by command, as it stands there.

use std::process::{Command, Stdio};

use serde_json::{Value, json};
use souk_tests::{TestHost, guests};

use crate::formats::Raw;

/// The shell commands between the fences that follow `after`.
fn commands(after: &str) -> String {
    let readme = include_str!("../../README.md");
    let (_, rest) = readme.split_once(after).expect("the README has it");
    let (_, rest) = rest.split_once("```sh\n").expect("commands follow");
    let (block, _) = rest.split_once("```").expect("they end");
    block.to_owned()
}

/// Runs them in `directory` with a shell, as somebody who pastes them; returns what the last command printed.
fn walk(script: &str, directory: &std::path::Path, settings: &[(&str, &str)]) -> String {
    let mut shell = Command::new("bash");
    shell
        .args(["-euc", script])
        .current_dir(directory)
        .stderr(Stdio::piped());
    for (name, value) in settings {
        shell.env(name, value);
    }
    let done = shell.output().expect("a shell");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert!(
        done.status.success(),
        "{script}\n{}\n{}",
        text(&done.stdout),
        text(&done.stderr)
    );
    text(&done.stdout)
}

fn free_port() -> u16 {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    listener.local_addr().expect("its number").port()
}

/// From nothing to a paid call: the connector of the README is built, uploaded, connected, priced, published, bought and called, by the
/// README's own lines.
#[tokio::test]
async fn the_readmes_connector_is_sold() {
    let host = TestHost::builder().start().await;
    let (seller, buyer) = (host.company("board").await, host.buyer("fan", 10).await);
    let directory = tempfile::tempdir().expect("a directory");
    let built = directory.path().join("target/wasm32-wasip2/release");
    std::fs::create_dir_all(&built).expect("a directory");
    std::fs::write(built.join("souk_example_hello.wasm"), guests::HELLO).expect("a file");

    // What cargo makes of it is there already: the tests' build has compiled the same sources.
    let upload = commands("[`sdk/examples/hello`](sdk/examples/hello) is that connector");
    let (_, upload) = upload.split_once("curl").expect("an upload");
    let upload = format!("curl -sf{upload}")
        .replace("http://127.0.0.1:8080", &host.base_url)
        .replace(
            "<role 5>",
            host.ready["platform"]["api_key"].as_str().expect("a key"),
        );
    let uploaded: Value =
        serde_json::from_str(&walk(&upload, directory.path(), &[])).expect("JSON");
    assert_eq!(uploaded["data"]["status"], "active");

    let sale = commands("<!-- walk: sale -->");
    let (placeholders, sale) = sale.split_once('\n').expect("a first line");
    assert!(placeholders.starts_with("HOST="), "{placeholders}");
    let port = free_port();
    let sale = sale.replace("9000", &port.to_string());
    let sale = format!("trap 'kill $(jobs -p)' EXIT\n{sale}");
    let printed = walk(
        &sale,
        directory.path(),
        &[
            ("HOST", &host.base_url),
            ("SELLER", &seller.id),
            ("SELLER_KEY", &seller.key),
            ("BUYER", &buyer.id),
            ("BUYER_KEY", &buyer.key),
            ("BOARD", &format!("http://127.0.0.1:{port}")),
        ],
    );
    let page = printed
        .rfind("{\"data\":{\"response\"")
        .map(|start| &printed[start..]);
    let page: Value = serde_json::from_str(page.unwrap_or_default())
        .unwrap_or_else(|error| panic!("{error}: {printed}"));
    let response = &page["data"]["response"];
    assert_eq!(
        response["data"],
        json!([{"player": "ada", "points": 7}]),
        "{page}"
    );
    assert_eq!(page["data"]["service"]["pagination"]["has_more"], true);
    assert_eq!(buyer.credits().await, (7, 0));
}

/// An engine with a text of its own: an endpoint's pages are cut from the whole result, by position and by cursor, in the fields that are
/// asked for; an asset's parameters are bound in their order; and what would have to be added to the text is refused by name.
#[tokio::test]
async fn an_opaque_engine_sells_pages_and_insights() {
    let host = TestHost::builder().start().await;
    let (seller, buyer) = (host.company("board").await, host.buyer("fan", 20).await);
    seller.connector(guests::HELLO).await;
    let scores: Vec<Value> = (0..7).map(|n| json!([format!("p{n}"), n * n])).collect();
    let scores = Value::from(scores).to_string();
    let board = axum::Router::new()
        .route("/", axum::routing::get(|| async { "a board" }))
        .route(
            "/scores",
            axum::routing::get(|query: axum::extract::RawQuery| async move {
                match query.0 {
                    Some(player) => format!(r#"[["{player}", 7]]"#),
                    None => scores,
                }
            }),
        );
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0")
        .await
        .expect("a port");
    let board_url = format!("http://{}", listener.local_addr().expect("its address"));
    tokio::spawn(async move { axum::serve(listener, board).await });
    let connection = seller
        .connection(
            "hello",
            json!({"credential_type": "NONE", "credentials": r#"{"league":"north"}"#, "base_url": board_url}),
        )
        .await;

    let refused = json!({"connection_id": connection, "name": "x", "source": {"table": "scores"}, "fields": [{"name": "player"}],
        "order_by": ["player"], "filters": ["player"]});
    let refused = seller
        .client
        .post(&seller.path("/endpoints"), refused)
        .await;
    let refused = refused.expect_error(400, "VALIDATION_ERROR");
    let named = refused.fields();
    assert_eq!(named, ["source", "order_by", "filters"], "{}", refused.body);

    let endpoint = json!({"slug": "scores", "sql_logic": "/scores", "max_limit": 5,
        "fields": [{"name": "points"}, {"name": "player", "alias": "who"}]});
    let endpoint = seller.endpoint(&connection, endpoint).await;
    seller.publish(&endpoint, 1).await;
    let bought = buyer.buy(&endpoint).await;
    let key = host.client(&bought.text("/data/endpoint_key/key"));
    let path = format!("/endpoints/v1/{}/scores", seller.handle);
    let fetch = async |query: &str| {
        let page = key.get(&format!("{path}?{query}")).await.expect(200);
        let rows = page.at("/data/response/data").clone();
        (rows, page)
    };
    let (rows, page) = fetch("limit=3").await;
    let row = |n: i64| json!({"points": n * n, "who": format!("p{n}")});
    assert_eq!(rows, json!([row(0), row(1), row(2)]), "{}", page.body);
    let (rows, _) = fetch("start=5&limit=3").await;
    assert_eq!(rows, json!([row(5), row(6)]));
    let (_, next) = fetch("limit=3&fields=who").await;
    let next = next.text("/data/service/pagination/next_url");
    let (_, next) = next.split_once('?').expect("a query");
    let (rows, _) = fetch(next).await;
    assert_eq!(rows, json!([{"who": "p3"}, {"who": "p4"}, {"who": "p5"}]));
    let csv = format!("{path}?limit=2&fields=who,points");
    let csv = Raw::get(&key, &csv, &[("accept", "text/csv")]).await;
    assert_eq!(csv.text(), "who,points\r\np0,0\r\np1,1\r\n");
    let (rows, page) = fetch("start=7").await;
    assert_eq!(rows, json!([]), "{}", page.body);

    let asset = seller
        .asset(
            &connection,
            json!({"asset_type": "VISUALIZATION", "result_type": "chart", "sql_logic": "/scores",
                "parameters": [{"name": "player", "type": "string"}]}),
        )
        .await;
    seller.publish(&asset, 2).await;
    let chart = buyer
        .execute(&asset, json!({"player": "ada"}))
        .await
        .expect(200);
    assert!(
        chart.body.to_string().contains("player=ada"),
        "{}",
        chart.body
    );
    // Five pages with rows, and a chart; the empty page is free.
    assert_eq!(buyer.credits().await, (20 - 5 - 2, 0));
}

/// Settings are held against the connector's schema when a connection is saved, all that is wrong at once; the schema is there to read.
#[tokio::test]
async fn settings_follow_the_connectors_schema() {
    let host = TestHost::builder().start().await;
    let seller = host.company("board").await;
    seller.connector(guests::HELLO).await;
    let engines = seller.client.get("/storage-engines").await.expect(200);
    let engines = engines.at("/data").as_array().cloned().unwrap_or_default();
    let hello = engines
        .iter()
        .find(|engine| engine["slug"] == "hello")
        .expect("the engine");
    assert_eq!(
        hello["settings_schema"]["properties"]["league"]["type"],
        "string"
    );
    let save = async |credentials: &str| {
        let body = json!({"engine_id": hello["id"], "name": "x", "credential_type": "NONE", "credentials": credentials,
            "base_url": "http://127.0.0.1:1"});
        seller.client.post(&seller.path("/connections"), body).await
    };
    for (credentials, expected) in [
        ("{}", json!([["credentials.league", "required"]])),
        (
            r#"{"league":7}"#,
            json!([["credentials.league", "invalid"]]),
        ),
        (
            r#"{"leage":"hush-hush"}"#,
            json!([
                ["credentials.leage", "unknown"],
                ["credentials.league", "required"]
            ]),
        ),
    ] {
        let refused = save(credentials)
            .await
            .expect_error(400, "VALIDATION_ERROR");
        let errors = refused
            .at("/error/details/errors")
            .as_array()
            .cloned()
            .unwrap_or_default();
        let told: Vec<Value> = errors
            .iter()
            .map(|error| json!([error["field"], error["code"]]))
            .collect();
        assert_eq!(Value::from(told), expected, "{}", refused.body);
        assert!(
            !refused.body.to_string().contains("hush"),
            "{}",
            refused.body
        );
    }
    let saved = save(r#"{"league":"north"}"#)
        .await
        .expect(201)
        .text("/data/connection_id");
    let path = seller.path(&format!("/connections/{saved}"));
    let changed = json!({"credential_type": "NONE", "credentials": "{}"});
    seller
        .client
        .patch(&path, changed)
        .await
        .expect_error(400, "VALIDATION_ERROR");
    seller
        .client
        .patch(&path, json!({"name": "y"}))
        .await
        .expect(200);
}
