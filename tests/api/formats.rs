//! Rows in the formats that programs read, with what the envelope says in headers; what did not change; what is compressed.

use std::io::Write;
use std::process::{Command, Stdio};

use reqwest::Method;
use serde_json::{Value, json};
use souk_tests::contract::{self, Seen};
use souk_tests::{Client, Company, PgCluster, TestHost};

use crate::pages::sqlite_file;
use crate::{host, unique};

const VALUES: &str = "
    CREATE TABLE readings (id INTEGER PRIMARY KEY, label TEXT, level NUMERIC(12,3), taken TIMESTAMP);
    INSERT INTO readings VALUES (1, 'plain', 1.250, '2026-01-02 03:04:05'), (2, 'a, \"b\"', NULL, NULL), (3, '', -0.001, '1969-12-31 23:59:59.5'),
        (4, NULL, 123456789.125, '2026-01-02 03:04:05.000001'), (5, 'more', 7, '2026-01-03 00:00:00');";

/// What curl writes, which brings decoders of its own, with these arguments: head and trailers as it dumps them, and the bytes that it unpacked.
pub fn curl(client: &Client, path: &str, arguments: &[&str]) -> (String, Vec<u8>) {
    let head = tempfile::NamedTempFile::new().expect("a file");
    let key = format!("x-api-key: {}", client.key.as_deref().unwrap_or_default());
    let output = Command::new("curl")
        .args([
            "--silent",
            "--show-error",
            "--globoff",
            "--fail",
            "--compressed",
        ])
        .args(["--max-time", "60", "--header", &key, "--dump-header"])
        .arg(head.path())
        .args(arguments)
        .arg(format!("{}{path}", client.base_url))
        .output()
        .expect("curl");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{path}: {said}");
    let head = std::fs::read_to_string(head.path()).expect("a head");
    (head.to_lowercase(), output.stdout)
}

/// What an answer is, as bytes.
pub struct Raw {
    pub status: u16,
    pub headers: reqwest::header::HeaderMap,
    pub bytes: Vec<u8>,
}

impl Raw {
    pub async fn get(client: &Client, path: &str, headers: &[(&str, &str)]) -> Raw {
        let mut request = client.request(Method::GET, path);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let response = request.send().await.expect("the host answers");
        let (status, headers) = (response.status().as_u16(), response.headers().clone());
        let url = response.url().path().to_owned();
        let bytes = response.bytes().await.expect("a whole body").to_vec();
        let raw = Raw {
            status,
            headers,
            bytes,
        };
        if raw.header("content-encoding").is_empty() {
            contract::check(&Seen {
                method: "GET",
                path: &url,
                status,
                content_type: raw.header("content-type"),
                body: &raw.bytes,
            });
        }
        raw
    }

    pub fn header(&self, name: &str) -> &str {
        let value = self.headers.get(name);
        value.and_then(|value| value.to_str().ok()).unwrap_or("")
    }

    pub fn text(&self) -> String {
        String::from_utf8(self.bytes.clone()).expect("UTF-8")
    }
}

/// A published endpoint of a source, and a buyer with its key.
pub struct Sold {
    pub endpoint: String,
    pub buyer: Company,
    pub feed: Client,
    pub path: String,
}

impl Sold {
    pub async fn new(
        seller: &Company,
        connection: &str,
        definition: Value,
        price: u64,
        credits: u64,
    ) -> Sold {
        Sold::on(
            host().await,
            seller,
            (connection, definition),
            price,
            credits,
        )
        .await
    }

    /// Of a host that is not everybody's.
    pub async fn on(
        host: &TestHost,
        seller: &Company,
        (connection, definition): (&str, Value),
        price: u64,
        credits: u64,
    ) -> Sold {
        let slug = unique("sold");
        let mut body = definition;
        body["slug"] = json!(slug);
        let endpoint = seller.endpoint(connection, body).await;
        seller.publish(&endpoint, price).await;
        let buyer = host.buyer(&unique("reader"), credits).await;
        let bought = buyer.buy(&endpoint).await;
        let feed = buyer
            .client
            .with_key(&bought.text("/data/endpoint_key/key"));
        Sold {
            path: format!("/endpoints/v1/{}/{slug}", seller.handle),
            endpoint,
            buyer,
            feed,
        }
    }
}

async fn readings() -> Vec<Sold> {
    let cluster = PgCluster::shared().await;
    let seller = host().await.company(&unique("readings")).await;
    let postgres = seller
        .postgres(cluster, &cluster.database(VALUES).await)
        .await;
    let sqlite = seller
        .sqlite("readings.db", sqlite_file(VALUES).await)
        .await;
    let mut all = Vec::new();
    for connection in [postgres, sqlite] {
        let definition = json!({"source": {"table": "readings"},
            "fields": [{"name": "id"}, {"name": "label"}, {"name": "level"}, {"name": "taken"}], "filters": ["id"]});
        all.push(Sold::new(&seller, &connection, definition, 3, 100).await);
    }
    all
}

/// The same rows in every format, the envelope's words as headers, and a charge for each page whatever its format.
#[tokio::test]
async fn rows_come_as_they_are_asked_for() {
    for sold in readings().await {
        let path = format!("{}?limit=4", sold.path);
        let csv = Raw::get(&sold.feed, &path, &[("accept", "text/csv")]).await;
        assert_eq!(
            (csv.status, csv.header("content-type")),
            (200, "text/csv; charset=utf-8")
        );
        let text = csv.text();
        let lines: Vec<&str> = text.split_terminator("\r\n").collect();
        assert_eq!(lines[0], "id,label,level,taken");
        assert!(
            lines[1].starts_with("1,plain,1.25")
                && lines[1].ends_with(",2026-01-02T03:04:05.000000"),
            "{text}"
        );
        assert_eq!(lines[2], "2,\"a, \"\"b\"\"\",,");
        assert_eq!(lines[3], "3,\"\",-0.001,1969-12-31T23:59:59.500000");
        assert!(lines[4].starts_with("4,,123456789.125,"), "{text}");
        assert_eq!(lines.len(), 5);

        for (name, value) in [
            ("vary", "accept"),
            ("x-pagination-start", "0"),
            ("x-pagination-limit", "4"),
            ("x-pagination-returned", "4"),
            ("x-pagination-has-more", "true"),
            ("x-pagination-next-start", "4"),
            ("x-pagination-paging", "keyset"),
            ("x-billing-billable", "true"),
            ("x-billing-credits-used", "3"),
            ("x-billing-price-credits", "3"),
            ("x-billing-balance-credits", "97"),
            ("x-ai-training-allowed", "true"),
        ] {
            assert_eq!(csv.header(name), value, "{name}");
        }
        assert!(csv.header("x-billing-transaction-id").starts_with("txn_"));
        assert_eq!(sold.buyer.credits().await, (97, 0));
        let link = csv.header("link").to_owned();
        let next = link
            .strip_prefix('<')
            .and_then(|link| link.strip_suffix(">; rel=\"next\""));
        let next = next.unwrap_or_else(|| panic!("{link}"));
        let lines = Raw::get(&sold.feed, next, &[("accept", "application/x-ndjson")]).await;
        assert_eq!(lines.header("content-type"), "application/x-ndjson");
        let row: Value = serde_json::from_str(lines.text().trim_end()).expect("one line of JSON");
        assert_eq!((&row["id"], &row["label"]), (&json!(5), &json!("more")));
        assert_eq!(lines.header("link"), "");
        assert_eq!(lines.header("x-pagination-has-more"), "false");

        let arrow = Raw::get(
            &sold.feed,
            &path,
            &[("accept", "application/vnd.apache.arrow.stream")],
        )
        .await;
        let reader = arrow_ipc::reader::StreamReader::try_new(arrow.bytes.as_slice(), None);
        let reader = reader.expect("an Arrow stream");
        let names: Vec<String> = reader
            .schema()
            .fields()
            .iter()
            .map(|field| field.name().clone())
            .collect();
        assert_eq!(names, ["id", "label", "level", "taken"]);
        let rows: usize = reader.map(|batch| batch.expect("a batch").num_rows()).sum();
        assert_eq!(rows, 4);
        let parquet = Raw::get(
            &sold.feed,
            &path,
            &[("accept", "application/vnd.apache.parquet")],
        )
        .await;
        assert!(parquet.bytes.starts_with(b"PAR1") && parquet.bytes.ends_with(b"PAR1"));
        assert_eq!(sold.buyer.credits().await, (88, 0));

        // JSON is what it was, for whoever does not care.
        let page = sold.feed.get(&path).await.expect(200);
        assert_eq!(page.at("/data/service/billing/credits_used"), 3);
        assert_eq!(page.header("link"), link_of(&page));
        let refused = Raw::get(&sold.feed, &path, &[("accept", "text/html")]).await;
        assert_eq!(refused.status, 406, "{}", refused.text());
        let said: Value = serde_json::from_slice(&refused.bytes).expect("JSON");
        assert_eq!(said["error"]["code"], "NOT_ACCEPTABLE");
        assert!(
            said["error"]["details"]["formats"]
                .to_string()
                .contains("text/csv")
        );
        assert_eq!(sold.buyer.credits().await, (85, 0));
    }
}

fn link_of(page: &souk_tests::Answer) -> String {
    format!(
        "<{}>; rel=\"next\"",
        page.text("/data/service/pagination/next_url")
    )
}

/// Rows that the caller has already are not sent and not charged again, in each format; whatever changes them is.
#[tokio::test]
async fn what_did_not_change_is_free() {
    for sold in readings().await {
        let path = format!("{}?limit=2", sold.path);
        let mut seen = Vec::new();
        let mut left = 100;
        for accept in [
            "application/json",
            "text/csv",
            "application/x-ndjson",
            "application/vnd.apache.parquet",
        ] {
            let first = Raw::get(&sold.feed, &path, &[("accept", accept)]).await;
            left -= 3;
            let tag = first.header("etag").to_owned();
            assert_eq!(tag.starts_with("W/"), accept == "application/json", "{tag}");
            assert!(!seen.contains(&tag), "{tag}");
            let again = Raw::get(
                &sold.feed,
                &path,
                &[("accept", accept), ("if-none-match", &tag)],
            )
            .await;
            assert_eq!((again.status, again.bytes.len()), (304, 0), "{accept}");
            let billed = again.header("x-billing-reason");
            assert_eq!(billed, "not_modified", "{accept}");
            assert_eq!(again.header("etag"), tag);
            assert_eq!(sold.buyer.credits().await, (left, 0));
            let other = format!("{path}&id=1");
            let other = Raw::get(
                &sold.feed,
                &other,
                &[("accept", accept), ("if-none-match", &tag)],
            )
            .await;
            left -= 3;
            assert_eq!(other.status, 200);
            assert_eq!(sold.buyer.credits().await, (left, 0));
            seen.push(tag);
        }
    }
    let cluster = PgCluster::shared().await;
    let seller = host().await.company(&unique("changing")).await;
    let database = cluster.database(VALUES).await;
    let connection = seller.postgres(cluster, &database).await;
    let definition =
        json!({"source": {"table": "readings"}, "fields": [{"name": "id"}, {"name": "level"}]});
    let sold = Sold::new(&seller, &connection, definition, 1, 10).await;
    let path = format!("{}?limit=2", sold.path);
    let first = Raw::get(&sold.feed, &path, &[]).await;
    let tag = first.header("etag").to_owned();
    let source = cluster.client(&database).await;
    // A change of what is not published is none; one behind the page is none either.
    for (sql, status) in [
        ("UPDATE readings SET label = 'other' WHERE id = 1", 304),
        ("UPDATE readings SET level = 9 WHERE id = 3", 304),
        ("UPDATE readings SET level = 9 WHERE id = 2", 200),
    ] {
        source.batch_execute(sql).await.expect("DML");
        let again = Raw::get(&sold.feed, &path, &[("if-none-match", &tag)]).await;
        assert_eq!(again.status, status, "{sql}");
    }
    assert_eq!(sold.buyer.credits().await, (8, 0));
}

/// A tag is known to whom it was told, for what was asked: it says for nothing neither that there are rows, nor which other filters a row that was paid
/// for passes, nor what place it has.
#[tokio::test]
async fn a_tag_tells_nothing_that_was_not_paid_for() {
    let cluster = PgCluster::shared().await;
    let seller = host().await.company(&unique("tagged")).await;
    let connection = seller
        .postgres(cluster, &cluster.database(VALUES).await)
        .await;
    let definition = json!({"source": {"table": "readings"}, "fields": [{"name": "id"}, {"name": "label"}],
        "filters": ["id", {"field": "level", "operators": ["gte"]}]});
    let sold = Sold::new(&seller, &connection, definition, 1, 10).await;
    let ask = async |sold: &Sold, query: &str, tag: &str| {
        let path = format!("{}?{query}", sold.path);
        let headers = [("if-none-match", tag)];
        let answer = Raw::get(&sold.feed, &path, &headers).await;
        (answer.status, answer.header("etag").to_owned())
    };
    let (status, tag) = ask(&sold, "id=1", "\"j0\"").await;
    assert_eq!(status, 200);
    assert_eq!(ask(&sold, "id=1", &tag).await, (304, tag.clone()));
    assert_eq!(sold.buyer.credits().await, (9, 0));
    for (query, named) in [
        ("id=1", "*"),
        ("id=1&level[gte]=1", tag.as_str()),
        ("limit=1", tag.as_str()),
    ] {
        let (status, other) = ask(&sold, query, named).await;
        assert_eq!(status, 200, "{query}");
        assert_eq!(other == tag, query == "id=1", "{query}");
    }
    assert_eq!(sold.buyer.credits().await, (6, 0));
    let other = host().await.buyer(&unique("other"), 10).await;
    let bought = other.buy(&sold.endpoint).await;
    let key = bought.text("/data/endpoint_key/key");
    let feed = other.client.with_key(&key);
    let path = format!("{}?id=1", sold.path);
    let answer = Raw::get(&feed, &path, &[("if-none-match", &tag)]).await;
    assert_eq!(answer.status, 200);
    assert_ne!(answer.header("etag"), tag);
}

/// An answer that is no JSON is charged once for an `Idempotency-Key`, and its repetition is told which run it was; in another format it is
/// another request.
#[tokio::test]
async fn other_formats_are_charged_once_per_key() {
    let sold = &readings().await[0];
    let path = format!("{}?limit=2", sold.path);
    let key = ("idempotency-key", "one");
    let arrow = ("accept", "application/vnd.apache.arrow.stream");
    assert_eq!(Raw::get(&sold.feed, &path, &[key, arrow]).await.status, 200);
    let again = Raw::get(&sold.feed, &path, &[key, arrow]).await;
    assert_eq!(again.status, 409, "{}", again.text());
    assert!(again.text().contains("IDEMPOTENCY_ANSWER_TOO_LARGE") && again.text().contains("exe_"));
    let other = Raw::get(&sold.feed, &path, &[key, ("accept", "text/csv")]).await;
    assert_eq!(other.status, 422, "{}", other.text());
    assert_eq!(sold.buyer.credits().await, (97, 0));
}

fn unzipped(bytes: &[u8]) -> Vec<u8> {
    let mut child = Command::new("gzip")
        .arg("-dc")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("gzip");
    let mut input = child.stdin.take().expect("its input");
    let bytes = bytes.to_vec();
    let writing = std::thread::spawn(move || input.write_all(&bytes));
    let output = child.wait_with_output().expect("its output");
    writing.join().expect("a thread").expect("written");
    output.stdout
}

/// Whoever asks gets large answers compressed, with the same bytes inside and a validator of its own strength; small ones and failures not.
#[tokio::test]
async fn large_answers_are_compressed_for_whoever_asks() {
    let league = crate::league().await;
    let (_, slug) = league.matches(1).await;
    let path = format!("/endpoints/v1/{}/{slug}?limit=250", league.seller.handle);
    let client = &league.seller.client;
    let accept = ("accept", "application/x-ndjson");
    let plain = Raw::get(client, &path, &[accept]).await;
    assert_eq!(plain.header("content-encoding"), "");
    assert_eq!(
        plain.header("content-length"),
        plain.bytes.len().to_string()
    );
    assert_eq!(
        plain.bytes.iter().filter(|byte| **byte == b'\n').count(),
        250
    );
    for encoding in ["gzip", "br", "zstd"] {
        let packed = Raw::get(client, &path, &[accept, ("accept-encoding", encoding)]).await;
        assert_eq!(
            (packed.status, packed.header("content-encoding")),
            (200, encoding)
        );
        assert!(
            packed.bytes.len() < plain.bytes.len() / 2,
            "{encoding}: {}",
            packed.bytes.len()
        );
        assert!(
            packed
                .headers
                .get_all("vary")
                .iter()
                .any(|vary| vary == "accept-encoding")
        );
        assert!(!packed.header("x-ratelimit-remaining").is_empty());
        assert_eq!(packed.header("etag"), format!("W/{}", plain.header("etag")));
        let asks = format!("accept-encoding: {encoding}");
        let lines = format!("accept: {}", accept.1);
        let (head, unpacked) = curl(client, &path, &["--header", &asks, "--header", &lines]);
        assert!(
            head.contains(&format!("content-encoding: {encoding}")),
            "{head}"
        );
        assert!(unpacked == plain.bytes, "{encoding}");
    }
    let asks = ("accept-encoding", "gzip");
    let small = path.replace("limit=250", "limit=1");
    assert_eq!(
        Raw::get(client, &small, &[accept, asks])
            .await
            .header("content-encoding"),
        ""
    );
    let parquet = ("accept", "application/vnd.apache.parquet");
    assert_eq!(
        Raw::get(client, &path, &[parquet, asks])
            .await
            .header("content-encoding"),
        ""
    );
    let list = Raw::get(client, "/openapi.json", &[asks]).await;
    assert_eq!(list.header("content-encoding"), "gzip");
    let document: Value = serde_json::from_slice(&unzipped(&list.bytes)).expect("JSON");
    assert_eq!(document["openapi"], "3.1.0");
    let head = client
        .request(Method::HEAD, &path)
        .header("accept-encoding", "gzip");
    assert_eq!(head.send().await.expect("an answer").status(), 405);
}
