//! Files as a source, through the connector `files`. It takes many minutes to build, so that debug builds do not bundle it: these tests put it to
//! work as an operator does, and are run by `tests/run --all-engines`.

use serde_json::json;
use souk_tests::files::{self, archive};
use souk_tests::{Company, PgCluster};
use tokio::sync::OnceCell;

use crate::league::{DIGITS, League};
use crate::numbers::{Numbers, PAIRS, ROWS};
use crate::{host, unique};

const SOLD: League = League {
    schema: "public",
    name: str::to_owned,
    digits: Some("SELECT CAST('12345678901234567890.00100' AS decimal(25, 5)) AS fee"),
};

/// A hundred matches, a line each.
fn league() -> String {
    let line = |n: u32| {
        let mut line = json!({"id": n, "club": format!("Club {}", n % 7),
            "played": format!("2026-01-01T{:02}:{:02}:00Z", n / 60, n % 60), "kickoff": format!("2026-01-01 {:02}:{:02}:00", n / 60, n % 60),
            "day": day(n), "tags": ["n", n.to_string()]});
        if !n.is_multiple_of(11) {
            line["goals"] = (n % 5).into();
        }
        // As JSON numbers are written, not as floats are printed.
        let fee = f64::from(n) / 8.0;
        let text = line.to_string();
        format!("{},\"fee\":{fee}}}", text.trim_end_matches('}'))
    };
    (1..=100).map(|n| line(n) + "\n").collect()
}

/// So many days after New Year of 2026.
fn day(n: u32) -> String {
    let (month, day) = match n {
        0..31 => (1, n + 1),
        31..59 => (2, n - 30),
        59..90 => (3, n - 58),
        _ => (4, n - 89),
    };
    format!("2026-{month:02}-{day:02}")
}

/// Puts the connector to work for the platform, once for all tests of this host.
pub async fn put_to_work() {
    static DONE: OnceCell<()> = OnceCell::const_new();
    DONE.get_or_init(|| async { files::put_to_work(&host().await.platform()).await })
        .await;
}

async fn seller(name: &str, bytes: Vec<u8>) -> (Company, String) {
    put_to_work().await;
    let seller = host().await.company(&unique("files")).await;
    let connection = seller.file("files", name, bytes).await;
    (seller, connection)
}

async fn test(seller: &Company, connection: &str) -> souk_tests::Answer {
    let path = seller.path(&format!("/connections/{connection}/test"));
    seller.client.post(&path, json!({})).await
}

async fn answer(seller: &Company, connection: &str, sql: &str) -> souk_tests::Answer {
    let asset = json!({"sql_logic": sql});
    let asset = seller.asset(connection, asset).await;
    seller.execute(&asset, json!({})).await
}

/// A seller uploads a file, sees that it is read, and what is in it, and sells an asset and an endpoint of it; a buyer pays and reads pages, filtered,
/// to the last digit.
#[tokio::test]
#[ignore = "needs the connector `files`: tests/run --all-engines"]
async fn real_files_are_sold() {
    let (seller, connection) = seller("matches.jsonl", league().into_bytes()).await;
    let tested = test(&seller, &connection).await.expect(200);
    assert_eq!(tested.at("/data/success"), true, "{}", tested.body);
    assert_eq!(
        tested.at("/data/read_only_verified"),
        true,
        "{}",
        tested.body
    );
    let path = seller.path(&format!("/connections/{connection}/schema"));
    let schema = seller.client.get(&path).await.expect(200);
    let text = schema.body.to_string();
    assert!(
        text.contains("Decimal128(5, 3)") && text.contains("kickoff"),
        "{text}"
    );
    SOLD.is_sold(&seller, &connection).await;
}

/// Files of one archive are tables that a statement joins; the next upload is read from the next request on.
#[tokio::test]
#[ignore = "needs the connector `files`: tests/run --all-engines"]
async fn real_files_of_an_archive_are_joined() {
    let clubs = "club,city\nClub 1,Rome\nClub 2,Oslo\n";
    let matches = league();
    let (seller, connection) = seller(
        "league.tar",
        archive(&[("matches.jsonl", matches.as_str()), ("clubs.csv", clubs)]),
    )
    .await;
    let sql = "SELECT sum(goals) FROM matches JOIN clubs USING (club) WHERE city = 'Rome'";
    let before = answer(&seller, &connection, sql).await.expect(200);
    assert_eq!(before.at("/data/answer_value"), 24);
    let clubs = "club,city\nClub 2,Rome\n";
    let path = seller.path("/files/league.tar");
    let replaced = seller
        .client
        .put_bytes(
            &path,
            archive(&[("matches.jsonl", matches.as_str()), ("clubs.csv", clubs)]),
        )
        .await;
    replaced.expect(200);
    let after = answer(&seller, &connection, sql).await.expect(200);
    assert_eq!(after.at("/data/answer_value"), 26);
}

/// What a feed writes is a file that can be sold: of a PostgreSQL's rows the same bytes come back, whichever format was between.
#[tokio::test]
#[ignore = "needs the connector `files`: tests/run --all-engines"]
async fn real_files_read_what_feeds_write() {
    let cluster = PgCluster::shared().await;
    let database = cluster
        .database(
            "CREATE TABLE stock (id int PRIMARY KEY, name text, goals int, fee numeric(20,5), played timestamptz, shown timestamp, day date, weight float8, sold boolean, doc jsonb);
             INSERT INTO stock SELECT n, 'a \"' || n || '\", grüße', CASE WHEN n % 11 > 0 THEN n % 5 END, 1234567890123.00000 + n / 3.0, TIMESTAMPTZ '2026-01-01 00:00Z' + n * INTERVAL '1 minute',
                 CASE WHEN n % 4 > 0 THEN TIMESTAMP '2026-01-01 00:00:00.000001' + n * INTERVAL '1 hour' END, DATE '2026-01-01' - n, n + 0.5, n % 2 = 0,
                 CASE WHEN n % 7 > 0 THEN jsonb_build_object('n', n, 'text', 'a \"' || n, 'list', jsonb_build_array(n / 8.0, NULL)) END FROM generate_series(1, 100) n",
        )
        .await;
    put_to_work().await;
    let seller = host().await.company(&unique("files")).await;
    let connection = seller.postgres(cluster, &database).await;
    let page = async |connection: &str, accept: &str| {
        let fields = [
            "id", "name", "goals", "fee", "played", "shown", "day", "weight", "sold", "doc",
        ];
        let fields = fields.map(|name| json!({"name": name}));
        let definition = json!({"slug": unique("stock"), "source": {"table": "stock"}, "fields": fields, "order_by": ["id"]});
        let endpoint = seller.endpoint(connection, definition).await;
        let path = seller.path(&format!("/endpoints/{endpoint}/execute?limit=1000"));
        let request = seller.client.request(reqwest::Method::GET, &path);
        let answer = request.header("accept", accept).send().await;
        let answer = answer.expect("an answer");
        let status = answer.status();
        let bytes = answer.bytes().await.expect("a page").to_vec();
        assert_eq!(status, 200, "{accept}: {}", String::from_utf8_lossy(&bytes));
        bytes
    };
    let written = page(&connection, "text/csv").await;
    for (format, accept) in [
        ("csv", "text/csv"),
        ("jsonl", "application/x-ndjson"),
        ("parquet", "application/vnd.apache.parquet"),
    ] {
        let file = page(&connection, accept).await;
        let folder = archive(&[(&format!("stock.{format}"), &file)]);
        let name = format!("{format}.tar");
        let connection = seller.file("files", &name, folder).await;
        let read = page(&connection, "text/csv").await;
        let [read, written] = [&read, &written].map(|bytes| String::from_utf8_lossy(bytes));
        assert_eq!(read, written, "{format}");
        // What is JSON is no text, but in a CSV.
        let lines = page(&connection, "application/x-ndjson").await;
        let lines = String::from_utf8_lossy(&lines);
        let is_json = lines.contains(r#""doc":{"#);
        assert_eq!(is_json, format != "csv", "{format}: {lines}");
        // A decimal is one in Arrow, too, with the digits that the file declares, or has.
        let arrow = page(&connection, "application/vnd.apache.arrow.stream").await;
        let reader = arrow_ipc::reader::StreamReader::try_new(arrow.as_slice(), None);
        let schema = reader.expect("an Arrow stream").schema();
        let fee = schema.field_with_name("fee").expect("a fee");
        let wanted = match format {
            "parquet" => "Decimal128(20, 5)",
            _ => "Decimal128(18, 5)",
        };
        assert_eq!(fee.data_type().to_string(), wanted, "{format}");
    }
}

/// Nothing but queries of the file's own tables is run, and what is wrong with a file is told to who owns it.
#[tokio::test]
#[ignore = "needs the connector `files`: tests/run --all-engines"]
async fn real_files_are_only_read() {
    let csv = format!("n,code\n{DIGITS},007\n");
    let (seller, connection) = seller("t.csv", csv.into_bytes()).await;
    for sql in [
        "WITH x AS (INSERT INTO t VALUES (1, 'x')) SELECT 1",
        "SELECT 1 INTO x",
        "SELECT count(*) FROM '/data/t.csv'",
        "SELECT count(*) FROM information_schema.tables",
    ] {
        let body = json!({"connection_id": connection, "asset_type": "CALCULATION", "name": "bad", "result_type": "number", "sql_logic": sql});
        let created = seller.client.post(&seller.path("/assets"), body).await;
        let status = created.status.as_u16();
        // The host knows some of them for what they are; what it takes for a query the connector refuses.
        assert!([201, 400, 422].contains(&status), "{sql}: {}", created.body);
        if status == 201 {
            let refused = seller
                .execute(&created.text("/data/asset_id"), json!({}))
                .await;
            assert_eq!(refused.status.as_u16(), 502, "{sql}: {}", refused.body);
        }
    }
    let kept = answer(
        &seller,
        &connection,
        "SELECT count(*) FROM t WHERE code = '007'",
    )
    .await;
    assert_eq!(kept.expect(200).at("/data/answer_value"), 1);

    let broken = seller
        .file(
            "files",
            "broken.parquet",
            b"this is no Parquet, whatever its name says".to_vec(),
        )
        .await;
    let tested = test(&seller, &broken).await;
    let text = tested.body.to_string();
    assert!(
        text.contains("the file is damaged, or not what its name says"),
        "{text}"
    );
    let unknown = seller.file("files", "sheet.xlsx", b"PK".to_vec()).await;
    let tested = test(&seller, &unknown).await;
    let text = tested.body.to_string();
    assert!(text.contains("says no format that is known here"), "{text}");
}

/// A seller of the numbers in a CSV.
async fn numbers() -> Numbers {
    put_to_work().await;
    let lines: String = (0..ROWS).map(|n| format!("{n}\n")).collect();
    let file = format!("n\n{lines}").into_bytes();
    Numbers::sold(host().await, "files", "t.csv", file).await
}

/// A statement that does not end ends with the time that it has, and costs nothing. The next one is answered at once.
#[tokio::test]
#[ignore = "needs the connector `files`: tests/run --all-engines"]
async fn real_files_stop_in_time() {
    let numbers = numbers().await;
    for sql in PAIRS {
        numbers.are_late(sql).await;
        numbers.are_answered().await;
    }
}

/// A caller who hangs up pays nothing, has nothing held long before the statement's time is over, and is answered what it asks next. What nobody waits
/// for is computed no more: `host/sandbox/tests/files.rs`.
#[tokio::test]
#[ignore = "needs the connector `files`: tests/run --all-engines"]
async fn real_files_stop_for_a_caller_who_hangs_up() {
    let numbers = numbers().await;
    for sql in PAIRS {
        let asked = numbers.asked(sql).await;
        numbers.hang_up(asked).await;
        numbers.are_answered().await;
    }
}
