//! A SQLite file as a source, through the file connector.

use std::time::{Duration, Instant};

use serde_json::json;
use souk_tests::TestHost;
use souk_tests::process::free_port;

use crate::exact::{wide_leaves, wide_table};
use crate::numbers::{Numbers, PAIRS, ROWS, SOON};
use crate::pages::sqlite_file;
use crate::{host, unique};

/// A database file with a table of sales.
pub(crate) async fn dataset(rows: u32) -> Vec<u8> {
    let sql = format!(
        "CREATE TABLE sales (id INTEGER PRIMARY KEY, shop TEXT NOT NULL, amount REAL, note BLOB); \
         WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {rows}) \
         INSERT INTO sales SELECT i, 'shop ' || (i % 4), i * 0.5, NULL FROM n"
    );
    sqlite_file(&sql).await
}

/// Mathematics, medians and R-Trees are there, as in the shell that the seller made the file with; a write to an R-Tree is refused.
#[tokio::test]
async fn what_sqlite_is_built_with_is_there() {
    let places = "CREATE VIRTUAL TABLE places USING rtree(id, west, east); \
        INSERT INTO places VALUES (1, 0, 1), (2, 5, 6), (3, 5.5, 9)";
    let seller = host().await.company(&unique("places")).await;
    let connection = seller.sqlite("places.db", sqlite_file(places).await).await;
    for (sql, value) in [
        ("SELECT sqrt(16) + floor(2.7) + power(2, 10)", 1030.0),
        ("SELECT median(id) + percentile(id, 100) FROM places", 5.0),
        (
            "SELECT count(*) FROM places WHERE east >= 5.5 AND west <= 5.2",
            1.0,
        ),
    ] {
        let asset = json!({"result_type": "number", "sql_logic": sql});
        let asset = seller.asset(&connection, asset).await;
        let answer = seller.execute(&asset, json!({})).await.expect(200);
        assert_eq!(
            answer.at("/data/answer_value").as_f64(),
            Some(value),
            "{sql}"
        );
    }
}

#[tokio::test]
async fn a_calculation_runs_in_the_file() {
    let seller = host().await.company(&unique("sqlite")).await;
    let connection = seller.sqlite("sales.db", dataset(100).await).await;
    let test = seller
        .client
        .post(
            &seller.path(&format!("/connections/{connection}/test")),
            json!({}),
        )
        .await
        .expect(200);
    assert_eq!(test.at("/data/success"), true, "{}", test.body);
    let asset = seller
        .asset(&connection, json!({"sql_logic": "SELECT sum(amount) FROM sales WHERE id <= :upto", "parameters": [{"name": "upto", "type": "integer"}]}))
        .await;
    assert_eq!(
        seller
            .execute(&asset, json!({"upto": 10}))
            .await
            .expect(200)
            .at("/data/answer_value"),
        27.5
    );
}

/// With STAT4 SQLite parses and plans a statement again whenever another value is bound to an indexed column: a sixth of a small aggregate.
#[tokio::test]
async fn sqlite_is_built_without_stat4() {
    let seller = host().await.company(&unique("planned")).await;
    let connection = seller.sqlite("sales.db", dataset(1).await).await;
    let sql = "SELECT sqlite_compileoption_used('ENABLE_STAT4')";
    let asset = seller.asset(&connection, json!({"sql_logic": sql})).await;
    let answer = seller.execute(&asset, json!({})).await.expect(200);
    assert_eq!(answer.at("/data/answer_value"), 0);
}

/// A file is read whatever its program set it to: with a write-ahead log (which most set), pages of any size, texts of UTF-16, and columns that are computed.
#[tokio::test]
async fn files_are_read_as_programs_leave_them() {
    const SHELVES: &str = "CREATE TABLE shelves (id INTEGER PRIMARY KEY, place TEXT, width INT, double INT GENERATED ALWAYS AS (width * 2)) STRICT; \
        INSERT INTO shelves (id, place, width) VALUES (1, 'zwölf 😀', 9223372036854775807 / 2), (2, NULL, NULL), (3, '', -1)";
    let seller = host().await.company(&unique("programs")).await;
    for (name, set) in [
        ("wal", "PRAGMA journal_mode = WAL"),
        ("wide", "PRAGMA page_size = 65536"),
        ("narrow", "PRAGMA page_size = 512"),
        ("utf16", "PRAGMA encoding = 'UTF-16be'"),
        ("vacuumed", "PRAGMA auto_vacuum = FULL"),
    ] {
        let file = sqlite_file(&format!("{set}; {SHELVES}")).await;
        assert_eq!(file[18..20], if name == "wal" { [2, 2] } else { [1, 1] });
        let connection = seller.sqlite(&format!("{name}.db"), file).await;
        let test = seller.path(&format!("/connections/{connection}/test"));
        let test = seller.client.post(&test, json!({})).await.expect(200);
        assert_eq!(test.at("/data/success"), true, "{name}: {}", test.body);
        let fields = ["id", "place", "width", "double"].map(|name| json!({"name": name}));
        let endpoint =
            json!({"source": {"table": "shelves"}, "order_by": ["id"], "fields": fields});
        let endpoint = seller.endpoint(&connection, endpoint).await;
        let page = seller.path(&format!("/endpoints/{endpoint}/execute"));
        let page = seller.client.get(&page).await.expect(200);
        assert_eq!(
            page.at("/data/response/data"),
            &json!([
                {"id": 1, "place": "zwölf 😀", "width": 4_611_686_018_427_387_903_i64, "double": 9_223_372_036_854_775_806_i64},
                {"id": 2, "place": null, "width": null, "double": null},
                {"id": 3, "place": "", "width": -1, "double": -2},
            ]),
            "{name}"
        );
    }
}

/// Two hundred columns leave in their order, to the last digit. Decimals of so many digits are texts to SQLite.
#[tokio::test]
async fn two_hundred_columns_of_a_file_leave() {
    let table = wide_table("wide", str::to_owned, ["INTEGER", "TEXT", "TEXT"]);
    let seller = host().await.company(&unique("wide")).await;
    let connection = seller.sqlite("wide.db", sqlite_file(&table).await).await;
    let table = json!({"table": "wide"});
    wide_leaves(&seller, &connection, table, str::to_owned, false).await;
}

/// A name that a program wrote in a code page is no text, and can stand in no statement: it is not listed, and nothing else of the file is kept from being
/// read, nor what has the name.
#[tokio::test]
async fn names_in_a_code_page_break_nothing() {
    let goods = "CREATE TABLE goods (id INTEGER PRIMARY KEY, groXe INT); CREATE TABLE maXe (n INT); INSERT INTO goods VALUES (1, 7), (2, 9)";
    let mut file = sqlite_file(goods).await;
    for at in 0..file.len() {
        if file[at..].starts_with(b"Xe") {
            // In ISO 8859-1.
            file[at] = 0xdf;
        }
    }
    let seller = host().await.company(&unique("pages")).await;
    let connection = seller.sqlite("pages.db", file).await;
    let schema = seller.path(&format!("/connections/{connection}/schema"));
    let schema = seller.client.get(&schema).await.expect(200);
    let tables = schema.at("/data/schemas/0/tables");
    assert_eq!(tables.as_array().map(Vec::len), Some(1), "{tables}");
    let fields = tables[0]["fields"].as_array().map(Vec::len);
    assert_eq!((&tables[0]["name"], fields), (&json!("goods"), Some(1)));
    let count = "SELECT count(*) FROM (SELECT * FROM goods)";
    let count = seller.asset(&connection, json!({"sql_logic": count})).await;
    let answer = seller.execute(&count, json!({})).await.expect(200);
    assert_eq!(answer.at("/data/answer_value"), 2);
}

/// Replacing the file changes the answers from the next request.
#[tokio::test]
async fn a_replaced_file_is_seen_at_once() {
    let seller = host().await.company(&unique("replace")).await;
    let connection = seller.sqlite("sales.db", dataset(100).await).await;
    let asset = seller
        .asset(
            &connection,
            json!({"sql_logic": "SELECT count(*) FROM sales"}),
        )
        .await;
    assert_eq!(
        seller
            .execute(&asset, json!({}))
            .await
            .expect(200)
            .at("/data/answer_value"),
        100
    );
    let replaced = seller
        .client
        .put_bytes(&seller.path("/files/sales.db"), dataset(7).await)
        .await;
    assert!(replaced.status.is_success(), "{}", replaced.body);
    assert_eq!(
        seller
            .execute(&asset, json!({}))
            .await
            .expect(200)
            .at("/data/answer_value"),
        7
    );
}

/// Neither another file nor a write is to be had: what the host does not see through SQLite refuses, and the rows are those that there were.
#[tokio::test]
async fn the_file_is_all_there_is_and_it_is_read_only() {
    let seller = host().await.company(&unique("locked")).await;
    let connection = seller.sqlite("sales.db", dataset(3).await).await;
    for sql in [
        "SELECT load_extension('x')",
        "SELECT readfile('/etc/passwd')",
        "SELECT writefile('x', 'y')",
        "DELETE FROM sales RETURNING shop",
        "WITH x AS (SELECT 1) UPDATE sales SET shop = 'gone' RETURNING shop",
        "SELECT shop FROM sales; DELETE FROM sales",
        "ATTACH 'other.db' AS other",
        "PRAGMA writable_schema = 1",
    ] {
        let body = json!({"connection_id": connection, "asset_type": "CALCULATION", "name": "bad", "result_type": "string", "sql_logic": sql});
        let created = seller.client.post(&seller.path("/assets"), body).await;
        let status = created.status.as_u16();
        assert!([201, 400, 422].contains(&status), "{sql}: {}", created.body);
        if status == 201 {
            let asset = created.text("/data/asset_id");
            let answer = seller.execute(&asset, json!({})).await;
            assert_eq!(answer.status.as_u16(), 502, "{sql}: {}", answer.body);
        }
    }
    let left = json!({"sql_logic": "SELECT count(*) FROM sales WHERE shop LIKE 'shop %'"});
    let left = seller.asset(&connection, left).await;
    let answer = seller.execute(&left, json!({})).await.expect(200);
    assert_eq!(answer.at("/data/answer_value"), 3);
}

/// A file that is no database says so.
#[tokio::test]
async fn a_file_that_is_no_database_says_so() {
    let seller = host().await.company(&unique("nodb")).await;
    let connection = seller
        .sqlite(
            "fake.db",
            b"this is not a database, whatever its name says".repeat(100),
        )
        .await;
    let test = seller
        .client
        .post(
            &seller.path(&format!("/connections/{connection}/test")),
            json!({}),
        )
        .await
        .expect(200);
    assert_eq!(test.at("/data/success"), false, "{}", test.body);
    assert!(
        test.at("/data/error").to_string().contains("database"),
        "{}",
        test.body
    );
}

/// A statement that would run for ever ends at the asset's deadline, and the next one works.
#[tokio::test]
async fn an_endless_statement_ends_at_the_deadline() {
    let seller = host().await.company(&unique("endless")).await;
    let connection = seller.sqlite("sales.db", dataset(3).await).await;
    let endless =
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT sum(i) FROM n";
    let asset = seller
        .asset(
            &connection,
            json!({"sql_logic": endless, "timeout_ms": 1000}),
        )
        .await;
    seller
        .execute(&asset, json!({}))
        .await
        .expect_error(504, "EXECUTION_TIMEOUT");
    let asset = seller
        .asset(
            &connection,
            json!({"sql_logic": "SELECT count(*) FROM sales"}),
        )
        .await;
    assert_eq!(
        seller
            .execute(&asset, json!({}))
            .await
            .expect(200)
            .at("/data/answer_value"),
        3
    );
}

/// Rows that are compared, rows that are added up, and one function, within which SQLite does not look at the time.
const ENDLESS: [&str; 3] = [
    PAIRS[0],
    PAIRS[1],
    "SELECT instr(hex(zeroblob(:rows * 5)), hex(zeroblob(:rows * 5 / 2)) || '1')",
];

/// A host of a test's own, on which nobody else computes, and where it tells what its sessions do.
async fn watched() -> (TestHost, String) {
    let metrics = format!("127.0.0.1:{}", free_port());
    let host = TestHost::builder().arg("--metrics-listen", &metrics);
    (host.start().await, metrics)
}

/// A seller of the numbers in a SQLite file.
async fn numbers(host: &TestHost) -> Numbers {
    let sql = format!(
        "CREATE TABLE t (n INTEGER); \
         WITH RECURSIVE s(n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM s WHERE n < {ROWS} - 1) INSERT INTO t SELECT n FROM s"
    );
    Numbers::sold(host, "sqlite", "t.db", sqlite_file(&sql).await).await
}

/// Waits until a session is at work, or none.
async fn until_at_work(metrics: &str, wanted: bool) {
    let since = Instant::now();
    loop {
        let text = reqwest::get(format!("http://{metrics}/metrics")).await;
        let text = text.expect("metrics").text().await.expect("a text");
        let count = |name: &str| {
            let mut lines = text.lines();
            lines
                .find_map(|line| line.strip_prefix(name))
                .expect("the metric")
        };
        let (open, idle) = (
            count("souk_sandbox_sessions_open "),
            count("souk_sandbox_sessions_idle "),
        );
        if (open != idle) == wanted {
            return;
        }
        assert!(since.elapsed() < SOON, "{open} are open, {idle} idle");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

/// A statement that does not end ends with the time that it has, and costs nothing: its session is free, and the next one is answered at once.
#[tokio::test]
async fn a_sqlite_file_stops_in_time() {
    let (host, metrics) = watched().await;
    let numbers = numbers(&host).await;
    for sql in ENDLESS {
        numbers.are_late(sql).await;
        until_at_work(&metrics, false).await;
        numbers.are_answered().await;
    }
}

/// A caller who hangs up in the middle of it pays nothing, and has nothing held long before the statement's time is over: the session is free, and what
/// is asked next is answered. What nobody waits for is computed no more: `host/sandbox/tests/sqlite.rs`.
#[tokio::test]
async fn a_sqlite_file_stops_for_a_caller_who_hangs_up() {
    let (host, metrics) = watched().await;
    let numbers = numbers(&host).await;
    for sql in ENDLESS {
        let asked = numbers.asked(sql).await;
        until_at_work(&metrics, true).await;
        numbers.hang_up(asked).await;
        until_at_work(&metrics, false).await;
        numbers.are_answered().await;
    }
}

/// `ID` and `id` are one column to SQLite, in a statement and in a table.
#[tokio::test]
async fn names_match_as_sqlite_matches_them() {
    let file = sqlite_file("CREATE TABLE t (ID INTEGER PRIMARY KEY, Name TEXT); INSERT INTO t VALUES (1, 'a'), (2, 'b')").await;
    let seller = host().await.company(&unique("cases")).await;
    let connection = seller.sqlite("cases.db", file).await;
    let definition = |source: serde_json::Value| {
        let mut all = json!({"fields": [{"name": "id"}, {"name": "NAME"}], "order_by": ["id"], "filters": ["name"]});
        all.as_object_mut()
            .expect("an object")
            .extend(source.as_object().expect("an object").clone());
        all
    };
    for source in [
        json!({"sql_logic": "SELECT ID, Name FROM t"}),
        json!({"source": {"table": "t"}}),
    ] {
        let endpoint = seller
            .endpoint(&connection, definition(source.clone()))
            .await;
        let tested = seller
            .client
            .get(&seller.path(&format!("/endpoints/{endpoint}/test")))
            .await
            .expect(200);
        assert_eq!(
            tested.at("/data/rows/1"),
            &json!({"id": 2, "NAME": "b"}),
            "{source}"
        );
        let path = seller.path(&format!("/endpoints/{endpoint}/execute?name=b"));
        let page = seller.client.get(&path).await.expect(200);
        assert_eq!(
            page.at("/data/response/data"),
            &json!([{"id": 2, "NAME": "b"}]),
            "{source}"
        );
    }
}

/// A chart of nothing is an empty chart, although a file says no types of what it computes then.
#[tokio::test]
async fn a_chart_without_rows_is_empty() {
    let seller = host().await.company(&unique("chart")).await;
    let file = sqlite_file(
        "CREATE TABLE sales (day TEXT, amount INTEGER); INSERT INTO sales VALUES ('2026-11-23', 3)",
    );
    let connection = seller.sqlite("sales.db", file.await).await;
    let asset = json!({"asset_type": "VISUALIZATION", "result_type": "chart", "parameters": [{"name": "day", "type": "string"}],
        "sql_logic": "SELECT day, sum(amount) AS total FROM sales WHERE day = :day GROUP BY day"});
    let asset = seller.asset(&connection, asset).await;
    for (day, rows) in [("2026-11-23", 1), ("2026-11-24", 0)] {
        let answer = seller
            .execute(&asset, json!({"day": day}))
            .await
            .expect(200);
        let shown = answer.body.to_string();
        assert_eq!(shown.matches("\"total\":3").count(), rows, "{shown}");
    }
}

/// Of parameters that are not valid nobody knows whether a statement's own are among them.
#[tokio::test]
async fn a_wrong_parameter_is_told_by_itself() {
    let seller = host().await.company(&unique("wrong")).await;
    let file = sqlite_file("CREATE TABLE sales (day TEXT)").await;
    let connection = seller.sqlite("sales.db", file).await;
    let body = json!({"connection_id": connection, "asset_type": "CALCULATION", "name": "a sum", "result_type": "number",
        "sql_logic": "SELECT count(*) FROM sales WHERE day = :day", "parameters": [{"name": "day", "type": "days"}]});
    let refused = seller.client.post(&seller.path("/assets"), body).await;
    let fields = refused.fields();
    assert_eq!(fields, ["parameters[0].type"], "{}", refused.body);
}
