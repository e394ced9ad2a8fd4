//! A whole feed as one answer: every row once, every page paid before it leaves, to be continued where it ended.

use std::io::{Seek as _, Write as _};
use std::process::Command;
use std::time::{Duration, Instant};

use reqwest::Method;
use serde_json::{Value, json};
use socket2::SockRef;
use souk_tests::process::free_port;
use souk_tests::{Client, Company, PgCluster, TestHost};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};

use crate::formats::{Raw, Sold, curl};
use crate::pages::sqlite_file;
use crate::{LEAGUE, host, unique};

/// Of an export that goes on another page would have been charged by then, on a loaded machine too.
const STILL: Duration = Duration::from_secs(2);

fn definition() -> Value {
    json!({"source": {"table": "matches"}, "fields": [{"name": "id"}, {"name": "team"}, {"name": "goals"}],
        "filters": [{"field": "id", "operators": ["lte"]}], "sorts": [{"name": "goals", "order_by": ["-goals"]}], "max_limit": 100})
}

async fn seller() -> (Company, String) {
    let cluster = PgCluster::shared().await;
    let seller = host().await.company(&unique("exporter")).await;
    let database = cluster.database(LEAGUE).await;
    let connection = seller.postgres(cluster, &database).await;
    (seller, connection)
}

pub fn ids(text: &str) -> Vec<i64> {
    let rows = text
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).expect("JSON"));
    rows.filter_map(|row| row["id"].as_i64()).collect()
}

/// Every row comes once in each format, and each page of `limit` rows is a charge, from both kinds of source.
#[tokio::test]
async fn an_export_has_every_row_and_is_charged_by_the_page() {
    let (seller, postgres) = seller().await;
    let table = "CREATE TABLE matches (id INTEGER PRIMARY KEY, team TEXT, goals INTEGER);
        WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 250)
        INSERT INTO matches SELECT i, 'team ' || (i % 3), i % 5 FROM n;";
    let sqlite = seller.sqlite("matches.db", sqlite_file(table).await).await;
    for connection in [postgres, sqlite] {
        let sold = Sold::new(&seller, &connection, definition(), 2, 100).await;
        let all: Vec<i64> = (1..=250).collect();
        // 100, 100 and 50 rows.
        let lines = Raw::get(&sold.feed, &format!("{}?export=true", sold.path), &[]).await;
        assert_eq!(
            (lines.status, lines.header("content-type")),
            (200, "application/x-ndjson")
        );
        assert_eq!(ids(&lines.text()), all);
        assert_eq!(sold.buyer.credits().await, (94, 0));

        let csv = format!("{}?export=true&limit=50&id[lte]=120", sold.path);
        let csv = Raw::get(&sold.feed, &csv, &[("accept", "text/csv")]).await;
        assert_eq!(csv.text().matches("\r\n").count(), 121);
        assert_eq!(csv.text().matches("team,goals").count(), 1);
        assert_eq!(sold.buyer.credits().await, (88, 0));

        let arrow = format!("{}?export=true&sort=goals&fields=goals", sold.path);
        let arrow = Raw::get(
            &sold.feed,
            &arrow,
            &[("accept", "application/vnd.apache.arrow.stream")],
        )
        .await;
        let reader = arrow_ipc::reader::StreamReader::try_new(arrow.bytes.as_slice(), None);
        let rows = reader
            .expect("an Arrow stream")
            .map(|batch| batch.expect("a batch").num_rows());
        assert_eq!(rows.sum::<usize>(), 250);
        let parquet = format!("{}?export=true", sold.path);
        let parquet = Raw::get(
            &sold.feed,
            &parquet,
            &[("accept", "application/vnd.apache.parquet")],
        )
        .await;
        assert!(parquet.bytes.starts_with(b"PAR1") && parquet.bytes.ends_with(b"PAR1"));
        assert_eq!(sold.buyer.credits().await, (76, 0));
        let empty = format!("{}?export=true&id[lte]=0", sold.path);
        assert_eq!(Raw::get(&sold.feed, &empty, &[]).await.text(), "");
        assert_eq!(sold.buyer.credits().await, (76, 0));
    }
}

/// A client that asks for trailers is told behind the last row how much it was and what it cost, in each coding alike; the rows that it
/// unpacks are the same, over several pages. Others are sent no trailers.
#[tokio::test]
async fn an_export_ends_with_its_sums() {
    let (seller, connection) = seller().await;
    let sold = Sold::new(&seller, &connection, definition(), 3, 1000).await;
    let path = format!("{}?export=true", sold.path);
    let plain = Raw::get(&sold.feed, &path, &[]).await;
    assert_eq!(ids(&plain.text()), (1..=250).collect::<Vec<i64>>());
    assert_eq!(
        plain.header("trailer"),
        "x-export-rows, x-export-pages, x-export-credits-used"
    );
    for encoding in ["identity", "gzip", "br", "zstd"] {
        let asks = format!("accept-encoding: {encoding}");
        let (head, rows) = curl(&sold.feed, &path, &["--header", &asks]);
        assert!(rows == plain.bytes, "{encoding}");
        assert!(!head.contains("x-export-rows:"), "{head}");
        let asks = ["--header", "te: trailers", "--header", &asks];
        let (head, rows) = curl(&sold.feed, &path, &asks);
        assert!(rows == plain.bytes, "{encoding}");
        let coded = format!("content-encoding: {encoding}");
        assert_eq!(head.contains(&coded), encoding != "identity", "{head}");
        let (_, trailers) = head.split_once("\r\n\r\n").expect("trailers");
        for sum in [
            "x-export-rows: 250\r\n",
            "x-export-pages: 3\r\n",
            "x-export-credits-used: 9\r\n",
        ] {
            assert!(trailers.contains(sum), "{encoding}: {head}");
        }
    }
    assert_eq!(sold.buyer.credits().await, (1000 - 9 * 9, 0));
}

/// Where the credits end the export ends, after what was paid; with checkpoints its last line says where to go on, and going on there
/// brings the rest and nothing twice.
#[tokio::test]
async fn an_export_goes_on_where_it_ended() {
    let (seller, connection) = seller().await;
    let sold = Sold::new(&seller, &connection, definition(), 3, 7).await;
    let path = format!("{}?export=true&checkpoints=true", sold.path);
    let first = Raw::get(&sold.feed, &path, &[]).await;
    assert_eq!(first.status, 200);
    let text = first.text();
    let last: Value = serde_json::from_str(text.lines().last().unwrap_or_default()).expect("JSON");
    let checkpoint = &last["$checkpoint"];
    assert_eq!(
        checkpoint["error"]["code"], "INSUFFICIENT_CREDITS",
        "{last}"
    );
    let said = json!([
        checkpoint["complete"],
        checkpoint["rows"],
        checkpoint["pages"],
        checkpoint["credits_used"]
    ]);
    assert_eq!(said, json!([false, 200, 2, 6]));
    assert_eq!(ids(&text), (1..=200).collect::<Vec<i64>>());
    assert_eq!(sold.buyer.credits().await, (1, 0));
    // Without checkpoints the connection is cut: nobody takes a part for the whole.
    host().await.grant(&sold.buyer, 5).await;
    let plain = sold
        .feed
        .request(Method::GET, &format!("{}?export=true", sold.path));
    let cut = plain.send().await.expect("a head").bytes().await;
    assert!(cut.is_err(), "{cut:?}");
    assert_eq!(sold.buyer.credits().await, (0, 0));

    host().await.grant(&sold.buyer, 5).await;
    let cursor = checkpoint["cursor"].as_str().expect("a cursor");
    let rest = Raw::get(&sold.feed, &format!("{path}&cursor={cursor}"), &[])
        .await
        .text();
    assert_eq!(ids(&rest), (201..=250).collect::<Vec<i64>>());
    let last: Value = serde_json::from_str(rest.lines().last().unwrap_or_default()).expect("JSON");
    assert_eq!(last["$checkpoint"]["complete"], true);
    assert_eq!(last["$checkpoint"]["cursor"], Value::Null);
    assert_eq!(sold.buyer.credits().await, (2, 0));

    // What fails before the first page is a refusal like any other.
    let refused = Raw::get(&sold.feed, &path, &[]).await;
    assert_eq!(refused.status, 402, "{}", refused.text());
    let dear = Raw::get(&sold.feed, &path, &[("x-max-credits", "0")]).await;
    assert_eq!(dear.status, 409, "{}", dear.text());
    assert!(dear.text().contains("PRICE_ABOVE_MAX"), "{}", dear.text());
    let keyed = Raw::get(&sold.feed, &path, &[("idempotency-key", "k")]).await;
    assert_eq!(keyed.status, 400, "{}", keyed.text());
    let wrong = Raw::get(&sold.feed, &path, &[("accept", "application/json")]).await;
    assert_eq!(wrong.status, 406, "{}", wrong.text());
    assert_eq!(sold.buyer.credits().await, (2, 0));
}

/// What curl unpacks of an export until that is cut.
fn until_the_cut(client: &Client, path: &str, asks: &str) -> Vec<u8> {
    let key = format!("x-api-key: {}", client.key.as_deref().unwrap_or_default());
    let output = Command::new("curl")
        .args(["--silent", "--globoff", "--compressed", "--max-time", "60"])
        .args(["--header", &key, "--header", asks])
        .arg(format!("{}{path}", client.base_url))
        .output()
        .expect("curl");
    assert!(!output.status.success(), "{asks}: it was not cut");
    output.stdout
}

/// What arrives of an export at a client to which it leaves in small pieces, until it is cut: as it is, or what can be unpacked of it.
async fn in_small_pieces(client: &Client, path: &str, is_gzip: bool) -> String {
    let address = client.base_url.trim_start_matches("http://");
    let socket = TcpSocket::new_v4().expect("a socket");
    socket.set_recv_buffer_size(16 << 10).expect("a small one");
    // As on a network: over loopback the kernel takes a page whole.
    let mss = SockRef::from(&socket).set_tcp_mss(1_460);
    mss.expect("small segments");
    let connected = socket.connect(address.parse().expect("an address"));
    let mut stream = connected.await.expect("a connection");
    let key = client.key.as_deref().unwrap_or_default();
    let asks = match is_gzip {
        true => "accept-encoding: gzip\r\n",
        false => "",
    };
    let request =
        format!("GET {path} HTTP/1.1\r\nhost: {address}\r\nx-api-key: {key}\r\n{asks}\r\n");
    stream.write_all(request.as_bytes()).await.expect("sent");
    let mut answer = Vec::new();
    while let Ok(1..) = stream.read_buf(&mut answer).await {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let head = answer.windows(4).position(|four| four == b"\r\n\r\n");
    let body = joined(&answer[head.expect("a head") + 4..]);
    let body = match is_gzip {
        true => unpacked(&body),
        false => body,
    };
    String::from_utf8(body).expect("UTF-8")
}

/// The chunks of a body, the last one as far as it came.
fn joined(mut body: &[u8]) -> Vec<u8> {
    let mut all = Vec::new();
    while let Some(end) = body.windows(2).position(|two| two == b"\r\n") {
        let size = std::str::from_utf8(&body[..end]).expect("a size");
        let size = usize::from_str_radix(size, 16).expect("a size");
        let chunk = &body[end + 2..];
        all.extend_from_slice(&chunk[..size.min(chunk.len())]);
        body = chunk.get(size + 2..).unwrap_or_default();
    }
    all
}

/// As much as there is of it.
fn unpacked(body: &[u8]) -> Vec<u8> {
    let mut file = tempfile::tempfile().expect("a file");
    file.write_all(body).expect("written");
    file.rewind().expect("from its beginning");
    let gzip = Command::new("gzip").args(["-dc"]).stdin(file).output();
    gzip.expect("gzip").stdout
}

/// What is answered to a client of HTTP/1.0, until the connection ends.
async fn over_http_1_0(client: &Client, path: &str) -> String {
    let address = client.base_url.trim_start_matches("http://");
    let mut stream = TcpStream::connect(address).await.expect("a connection");
    let key = client.key.as_deref().unwrap_or_default();
    let request = format!("GET {path} HTTP/1.0\r\nhost: {address}\r\nx-api-key: {key}\r\n\r\n");
    stream.write_all(request.as_bytes()).await.expect("sent");
    let mut answer = String::new();
    let read = stream.read_to_string(&mut answer).await;
    read.expect("an answer");
    answer
}

/// Where a body ends with its connection, a part would be taken for the whole: an export is refused there, and costs nothing, unless its last line says
/// whether it is one.
#[tokio::test]
async fn an_export_is_not_cut_where_nobody_sees_it() {
    let (seller, connection) = seller().await;
    // Two of three pages can be paid.
    let sold = Sold::new(&seller, &connection, definition(), 3, 6).await;
    let export = format!("{}?export=true", sold.path);
    let refused = over_http_1_0(&sold.feed, &export).await;
    assert!(refused.starts_with("HTTP/1.0 400 "), "{refused}");
    assert!(refused.contains("proxy_http_version"), "{refused}");
    assert_eq!(sold.buyer.credits().await, (6, 0));
    let told = over_http_1_0(&sold.feed, &format!("{export}&checkpoints=true")).await;
    assert!(told.starts_with("HTTP/1.0 200 "), "{told}");
    assert!(told.contains("\"complete\":false"), "{told}");
    assert_eq!(sold.buyer.credits().await, (0, 0));
}

/// What was paid has left to its last byte before the connection is cut, in each coding, however large a page is and however early it is known that the
/// next one fails.
#[tokio::test]
async fn what_was_paid_leaves_before_the_cut() {
    let cluster = PgCluster::shared().await;
    let seller = host().await.company(&unique("cut")).await;
    // A page of a megabyte, in digits that get half as long at best.
    let wide = "CREATE TABLE matches (id bigint PRIMARY KEY, pad text NOT NULL);
        INSERT INTO matches SELECT i, (SELECT string_agg(md5((i * 1000 + n)::text), '') FROM generate_series(1, 300) AS n) FROM generate_series(1, 200) AS i;";
    let connection = seller
        .postgres(cluster, &cluster.database(wide).await)
        .await;
    let definition = json!({"source": {"table": "matches"}, "fields": [{"name": "id"}, {"name": "pad"}], "max_limit": 100});
    let sold = Sold::new(&seller, &connection, definition, 1, 1).await;
    let path = format!("{}?export=true", sold.path);
    for encoding in ["identity", "gzip", "br", "zstd"] {
        let page = until_the_cut(&sold.feed, &path, &format!("accept-encoding: {encoding}"));
        let page = String::from_utf8(page).expect("UTF-8");
        assert_eq!(ids(&page), (1..=100).collect::<Vec<i64>>(), "{encoding}");
        assert_eq!(sold.buyer.credits().await, (0, 0));
        host().await.grant(&sold.buyer, 1).await;
    }
    for is_gzip in [false, true] {
        let page = in_small_pieces(&sold.feed, &path, is_gzip).await;
        let whole: Vec<i64> = (1..=100).collect();
        assert_eq!(ids(&page), whole, "packed: {is_gzip}");
        host().await.grant(&sold.buyer, 1).await;
    }
}

/// A Parquet file can be read by its end alone: one of the pages that were paid has one, whatever the next page failed for.
#[tokio::test]
async fn what_was_paid_is_a_parquet_file() {
    let cluster = PgCluster::shared().await;
    let seller = host().await.company(&unique("parquet")).await;
    let sql = "CREATE TABLE matches (id bigint PRIMARY KEY, pad text NOT NULL);
        INSERT INTO matches SELECT i, md5(i::text) FROM generate_series(1, 250) AS i;
        CREATE VIEW fails AS SELECT id, CASE WHEN id > 220 THEN (id / 0)::text ELSE pad END AS pad FROM matches;";
    let database = cluster.database(sql).await;
    let connection = seller.postgres(cluster, &database).await;
    for (table, credits, paid) in [("matches", 2, 2), ("fails", 9, 2)] {
        let definition = json!({"source": {"table": table}, "fields": [{"name": "id"}, {"name": "pad"}], "order_by": ["id"], "max_limit": 100});
        let sold = Sold::new(&seller, &connection, definition, 1, credits).await;
        let path = format!("{}?export=true", sold.path);
        let asks = "accept: application/vnd.apache.parquet";
        let file = until_the_cut(&sold.feed, &path, asks);
        assert!(
            file.starts_with(b"PAR1") && file.ends_with(b"PAR1"),
            "{table}"
        );
        // Of 200 rows: 32 digits each that nothing makes much shorter.
        assert!(file.len() > 200 * 16, "{table}: {}", file.len());
        let (left, held) = sold.buyer.credits().await;
        assert_eq!((left, held), (credits as i64 - paid, 0), "{table}");
    }
}

/// A client that stops reading is not sent more, and not charged more than the page that it was being sent and those on the way; what
/// an export holds ends with its connection.
#[tokio::test]
async fn a_client_that_stops_reading_pays_no_more() {
    let cluster = PgCluster::shared().await;
    let seller = host().await.company(&unique("wide")).await;
    let wide = "CREATE TABLE matches (id bigint PRIMARY KEY, pad text NOT NULL);
        INSERT INTO matches SELECT i, repeat('x', 10000) FROM generate_series(1, 20000) AS i;";
    let connection = seller
        .postgres(cluster, &cluster.database(wide).await)
        .await;
    let definition = json!({"source": {"table": "matches"}, "fields": [{"name": "id"}, {"name": "pad"}], "max_limit": 1000});
    let sold = Sold::new(&seller, &connection, definition, 1, 1000).await;
    // 20 pages of 10 MB.
    let path = format!("{}?export=true", sold.path);
    let mut response = sold
        .feed
        .request(Method::GET, &path)
        .send()
        .await
        .expect("a head");
    response.chunk().await.expect("a chunk");
    let begun = Instant::now();
    // What is only held is not paid.
    let posted = async || {
        let (left, held) = sold.buyer.credits().await;
        left + held
    };
    // Until nothing more is charged.
    let (mut before, mut since) = (posted().await, Instant::now());
    while since.elapsed() < STILL && begun.elapsed() < 10 * STILL {
        tokio::time::sleep(Duration::from_millis(100)).await;
        let now = posted().await;
        if now != before {
            (before, since) = (now, Instant::now());
        }
    }
    assert!(before >= 995, "{} pages were charged", 1000 - before);
    drop(response);
    sold.buyer.holds(0).await;
    assert_eq!(sold.buyer.credits().await.0, before);
}

/// What an export has read ahead for a client that does not read is counted with what the client has not read.
#[tokio::test]
async fn what_is_read_ahead_is_counted() {
    const PAGE_BYTES: f64 = 14e6;
    let metrics = format!("127.0.0.1:{}", free_port());
    let host = TestHost::builder()
        .arg("--metrics-listen", &metrics)
        .start()
        .await;
    let cluster = PgCluster::shared().await;
    let seller = host.company("ahead").await;
    let wide = "CREATE TABLE matches (id bigint PRIMARY KEY, pad text NOT NULL);
        INSERT INTO matches SELECT i, repeat('x', 14000) FROM generate_series(1, 4000) AS i;";
    let connection = seller
        .postgres(cluster, &cluster.database(wide).await)
        .await;
    let definition = json!({"source": {"table": "matches"}, "fields": [{"name": "id"}, {"name": "pad"}], "max_limit": 1000});
    let sold = Sold::on(&host, &seller, (&connection, definition), 1, 100).await;
    let unread = async || {
        let text = reqwest::get(format!("http://{metrics}/metrics")).await;
        let text = text.expect("metrics").text().await.expect("a text");
        let mut lines = text.lines();
        let bytes = lines.find_map(|line| line.strip_prefix("souk_unread_answer_bytes "));
        bytes.expect("the metric").parse::<f64>().expect("a number")
    };
    let path = format!("{}?export=true", sold.path);
    let request = sold.feed.request(Method::GET, &path);
    let response = request.send().await.expect("a head");
    let since = Instant::now();
    // The page that is being sent, and the one that is there for when it has left.
    while unread().await < 1.5 * PAGE_BYTES {
        let waited = since.elapsed();
        assert!(waited < Duration::from_secs(30), "{}", unread().await);
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    drop(response);
    while unread().await > 0.0 {
        let waited = since.elapsed();
        assert!(waited < Duration::from_secs(60), "{}", unread().await);
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// What exports read ahead ends none of them: pages that their clients ask for have room, where that and what was read ahead is too much together.
#[tokio::test]
async fn exports_are_not_ended_by_what_they_read_ahead() {
    const ROWS: usize = 3000;
    // Four pages of 14 MB, of each export the one that is being sent; not as many again.
    let host = TestHost::builder().arg("--company-unread-mib", "60");
    let host = host.start().await;
    let cluster = PgCluster::shared().await;
    let seller = host.company("four").await;
    let wide = format!(
        "CREATE TABLE matches (id bigint PRIMARY KEY, pad text NOT NULL);
        INSERT INTO matches SELECT i, repeat('x', 14000) FROM generate_series(1, {ROWS}) AS i;"
    );
    let connection = seller
        .postgres(cluster, &cluster.database(&wide).await)
        .await;
    let definition = json!({"source": {"table": "matches"}, "fields": [{"name": "id"}, {"name": "pad"}], "max_limit": 1000});
    let sold = Sold::on(&host, &seller, (&connection, definition), 1, 100).await;
    let path = format!("{}?export=true", sold.path);
    let begin = async || {
        let request = sold.feed.request(Method::GET, &path);
        request.send().await.expect("a head")
    };
    let begun = tokio::join!(begin(), begin(), begin(), begin());
    // One after another, while the others' pages lie there.
    for export in <[_; 4]>::from(begun) {
        assert_eq!(export.status(), 200);
        let text = export.text().await.expect("a whole export");
        assert_eq!(text.lines().count(), ROWS);
    }
    assert_eq!(sold.buyer.credits().await, (88, 0));
}

/// A client that takes a page more slowly than the next one's credits are held for gets that one all the same, and pays for it once.
#[tokio::test]
async fn a_slow_client_gets_what_it_pays_for() {
    let cluster = PgCluster::shared().await;
    let seller = host().await.company(&unique("slow")).await;
    let wide = "CREATE TABLE matches (id bigint PRIMARY KEY, pad text NOT NULL);
        INSERT INTO matches SELECT i, repeat('x', 10000) FROM generate_series(1, 3000) AS i;";
    let connection = seller
        .postgres(cluster, &cluster.database(wide).await)
        .await;
    let definition = json!({"source": {"table": "matches"}, "fields": [{"name": "id"}, {"name": "pad"}], "max_limit": 1000, "timeout_ms": 5000});
    let sold = Sold::new(&seller, &connection, definition, 1, 10).await;
    let request = sold
        .feed
        .request(Method::GET, &format!("{}?export=true", sold.path));
    let mut response = request.send().await.expect("a head");
    let mut bytes = response
        .chunk()
        .await
        .expect("a chunk")
        .map_or(0, |chunk| chunk.len());
    // The endpoint's deadline, and ten seconds.
    tokio::time::sleep(Duration::from_secs(16)).await;
    while let Some(chunk) = response.chunk().await.expect("the rest") {
        bytes += chunk.len();
    }
    assert!(bytes > 30_000_000, "{bytes}");
    assert_eq!(sold.buyer.credits().await, (7, 0));
}

/// A company has four exports under way at most; one that ends makes room. A key that is revoked ends its export.
#[tokio::test]
async fn exports_are_bounded_and_end_with_their_key() {
    let cluster = PgCluster::shared().await;
    let seller = host().await.company(&unique("bounded")).await;
    let wide = "CREATE TABLE matches (id bigint PRIMARY KEY, pad text NOT NULL);
        INSERT INTO matches SELECT i, repeat('x', 10000) FROM generate_series(1, 20000) AS i;";
    let connection = seller
        .postgres(cluster, &cluster.database(wide).await)
        .await;
    let definition = json!({"source": {"table": "matches"}, "fields": [{"name": "id"}, {"name": "pad"}], "max_limit": 1000});
    let sold = Sold::new(&seller, &connection, definition, 1, 1000).await;
    let path = format!("{}?export=true", sold.path);
    let mut under_way = Vec::new();
    for _ in 0..4 {
        let response = sold
            .feed
            .request(Method::GET, &path)
            .send()
            .await
            .expect("a head");
        assert_eq!(response.status(), 200);
        under_way.push(response);
    }
    let refused = Raw::get(&sold.feed, &path, &[]).await;
    assert_eq!(refused.status, 429, "{}", refused.text());
    assert!(
        refused.text().contains("exports_exhausted"),
        "{}",
        refused.text()
    );
    let ended = under_way.pop();
    drop(ended);
    let begun = Instant::now();
    loop {
        let request = sold.feed.request(Method::GET, &path);
        let response = request.send().await.expect("a head");
        if response.status() == 200 {
            under_way.push(response);
            break;
        }
        assert!(begun.elapsed() < Duration::from_secs(30));
        tokio::time::sleep(Duration::from_millis(50)).await;
    }

    let keys = sold
        .buyer
        .client
        .get(&sold.buyer.path("/api-keys?per_page=100"))
        .await
        .expect(200);
    let keys = keys.at("/data").as_array().cloned().unwrap_or_default();
    let key = keys
        .iter()
        .find(|key| key["key_type"] == "endpoint")
        .expect("the key of the purchase");
    let key = key["api_key_id"]
        .as_str()
        .or(key["id"].as_str())
        .expect("its id");
    let revoke = sold.buyer.path(&format!("/api-keys/{key}"));
    sold.buyer.client.delete(&revoke).await.expect(204);
    let left = sold.buyer.credits().await.0;
    let mut read = 0;
    let mut last = under_way.pop().expect("one that goes on");
    let end = loop {
        match last.chunk().await {
            Ok(Some(bytes)) => read += bytes.len(),
            other => break other,
        }
    };
    assert!(end.is_err(), "{end:?} after {read}");
    assert!(read < 200_000_000);
    assert!(left - sold.buyer.credits().await.0 <= 1);
}
