//! Results that would hold a worker are gone through elsewhere, and answered as small ones are.

use axum::Router;
use axum::routing::get;
use serde_json::{Value, json};
use souk_tests::guests;

use crate::pages::sqlite_file;
use crate::{host, unique};

/// Of half a megabyte together.
const SCORES: i64 = 8_000;

fn player(number: i64) -> String {
    format!("player{number:050}")
}

/// The address of a board with so many scores, for the connector of the README.
async fn board() -> String {
    let scores: Vec<Value> = (0..SCORES)
        .map(|number| json!([player(number), number]))
        .collect();
    let scores = Value::from(scores).to_string();
    let board = Router::new()
        .route("/", get(|| async { "a board" }))
        .route("/scores", get(|| async move { scores }));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await;
    let listener = listener.expect("a port");
    let address = listener.local_addr().expect("its address");
    tokio::spawn(async move { axum::serve(listener, board).await });
    format!("http://{address}")
}

/// Pages of an engine with a text of its own are cut from the whole result, wherever they begin.
#[tokio::test]
async fn pages_are_cut_from_a_large_result() {
    let seller = host().await.company(&unique("board")).await;
    seller.connector(guests::HELLO).await;
    let connection = json!({"credential_type": "NONE", "credentials": r#"{"league":"north"}"#, "base_url": board().await});
    let connection = seller.connection("hello", connection).await;
    let endpoint = json!({"slug": "scores", "sql_logic": "/scores",
        "fields": [{"name": "points"}, {"name": "player", "alias": "who"}]});
    let endpoint = seller.endpoint(&connection, endpoint).await;
    seller.publish(&endpoint, 1).await;
    let path = seller.path(&format!("/endpoints/{endpoint}/execute"));
    let page = async |query: &str| {
        let page = seller.client.get(&format!("{path}?{query}")).await;
        page.expect(200)
    };
    let rows = |from: i64, to: i64| {
        let row = |number: i64| json!({"points": number, "who": player(number)});
        Value::from((from..to).map(row).collect::<Vec<Value>>())
    };
    for (query, from, to) in [
        ("limit=3", 0, 3),
        ("start=1&limit=1000", 1, 1_001),
        ("start=4003&limit=3", 4_003, 4_006),
        ("start=7998&limit=5", SCORES - 2, SCORES),
        ("start=8000", SCORES, SCORES),
    ] {
        let page = page(query).await;
        assert_eq!(page.at("/data/response/data"), &rows(from, to), "{query}");
        let has_more = page.at("/data/service/pagination/has_more");
        assert_eq!(has_more, to < SCORES, "{query}");
    }
    let before = page("start=4003&limit=3").await;
    let cursor = before.text("/data/service/pagination/next_cursor");
    let next = page(&format!("cursor={cursor}&limit=3")).await;
    assert_eq!(next.at("/data/response/data"), &rows(4_006, 4_009));
    let own = seller.path(&format!("/endpoints/{endpoint}/test?limit=3"));
    let tested = seller.client.get(&own).await.expect(200);
    assert_eq!(tested.at("/data/rows"), &rows(0, 3));
}

/// A test of rows that are large is answered with all of them and what describes them, as one of small rows is.
#[tokio::test]
async fn a_test_shows_large_rows() {
    const ROWS: i64 = 20;
    let sql = format!(
        "CREATE TABLE notes (id INTEGER PRIMARY KEY, body TEXT NOT NULL); \
         WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {ROWS}) \
         INSERT INTO notes SELECT i, i || ' ' || hex(zeroblob(50000)) FROM n"
    );
    let seller = host().await.company(&unique("notes")).await;
    let connection = seller.sqlite("notes.db", sqlite_file(&sql).await).await;
    let endpoint = json!({"slug": "notes", "source": {"table": "notes"}, "fields": [{"name": "id"}, {"name": "body", "alias": "text"}]});
    let endpoint = seller.endpoint(&connection, endpoint).await;
    // 100 KB are written at once, 2 MB elsewhere.
    for limit in [1, ROWS] {
        let path = seller.path(&format!("/endpoints/{endpoint}/test?limit={limit}"));
        let tested = seller.client.get(&path).await.expect(200);
        let row = |id: i64| json!({"id": id, "text": format!("{id} {}", "00".repeat(50_000))});
        let rows = Value::from((1..=limit).map(row).collect::<Vec<Value>>());
        assert!(tested.at("/data/rows") == &rows, "of {limit}");
        assert_eq!(
            tested.at("/data/fields"),
            &json!([{"name": "id", "type": "int64"}, {"name": "text", "type": "text"}])
        );
        assert_eq!(tested.at("/data/row_count"), limit);
        assert_eq!(tested.at("/data/sample"), true);
    }
}

/// A catalogue of nearly as many fields as are told is told whole, in its order.
#[tokio::test]
async fn a_large_catalogue_is_told_whole() {
    const TABLES: usize = 49;
    const FIELDS: usize = 1_000;
    let fields: Vec<String> = (0..FIELDS)
        .map(|number| format!("field_{number:03} INTEGER"))
        .collect();
    let fields = fields.join(", ");
    let tables: String = (0..TABLES)
        .map(|number| format!("CREATE TABLE table_{number:02} ({fields}); "))
        .collect();
    let seller = host().await.company(&unique("catalogue")).await;
    let connection = seller.sqlite("wide.db", sqlite_file(&tables).await).await;
    let path = seller.path(&format!("/connections/{connection}/schema"));
    let told = seller.client.get(&path).await.expect(200);
    assert!(told.at("/data/fetched_at").is_string());
    let schemas = told.at("/data/schemas").as_array().expect("schemas");
    assert_eq!((schemas.len(), &schemas[0]["name"]), (1, &json!("main")));
    let tables = schemas[0]["tables"].as_array().expect("tables");
    assert_eq!(tables.len(), TABLES);
    let field = |number: usize| json!({"name": format!("field_{number:03}"), "type": "INTEGER", "nullable": true, "primary_key": false});
    let fields = Value::from((0..FIELDS).map(field).collect::<Vec<Value>>());
    for (number, table) in tables.iter().enumerate() {
        assert_eq!(table["name"], format!("table_{number:02}"));
        assert_eq!(table["type"], "table");
        assert!(table["fields"] == fields, "{}", table["name"]);
    }
}
