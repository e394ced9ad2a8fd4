//! Timestamps without a zone and times of day, through PostgreSQL, MariaDB and a SQLite file: what a client reads, what it may ask for,
//! and that nothing claims a zone that nobody knows.

use serde_json::{Value, json};
use souk_tests::{Answer, Client, Company, MySql, PgCluster};

use crate::formats::{Raw, Sold};
use crate::pages::{ids, sqlite_file};
use crate::{host, unique};

/// A clock's reading, a time of day and a moment in each row; the second ties with the first, the third has none of them.
const ROWS: [(i64, Option<&str>, Option<&str>); 8] = [
    (1, Some("2026-11-23 05:17:45.123456"), Some("08:30:00")),
    (2, Some("2026-11-23 05:17:45.123456"), Some("08:30:00")),
    (3, None, None),
    (4, Some("1969-12-31 23:59:59.999999"), Some("00:00:00")),
    (5, Some("2026-11-23 05:17:45"), Some("23:59:59.999999")),
    (6, Some("9999-12-31 23:59:59"), Some("08:30:00.000001")),
    (7, Some("2026-11-23 05:17:00"), Some("08:29:59.5")),
    (8, Some("2026-11-23 05:17:45.123457"), Some("08:30:00")),
];

fn quoted(value: Option<impl AsRef<str>>) -> String {
    value.map_or("NULL".to_owned(), |value| format!("'{}'", value.as_ref()))
}

fn table(types: (&str, &str, &str), row: impl Fn(usize) -> String) -> String {
    let (local, time, moment) = types;
    let rows: Vec<String> = (0..ROWS.len()).map(row).collect();
    format!(
        "CREATE TABLE shifts (id INTEGER PRIMARY KEY, shown {local}, opens {time}, seen {moment}); INSERT INTO shifts VALUES {};",
        rows.join(", ")
    )
}

/// As it stands above.
fn plain(place: usize, zone: &str) -> String {
    let (id, shown, opens) = ROWS[place];
    let (shown, opens) = (quoted(shown), quoted(opens));
    format!("({id}, {shown}, {opens}, '2026-11-23 05:17:45.5{zone}')")
}

/// In a file the same is written in many ways: with a `T`, without seconds that are zero, with zeros behind the point.
fn spelled(place: usize) -> String {
    let (id, shown, opens) = ROWS[place];
    let shown = shown.map(|text| match id {
        1 => text.replace(' ', "T"),
        5 => format!("{text}.000"),
        7 => text.strip_suffix(":00").unwrap().replace(' ', "T"),
        _ => text.to_owned(),
    });
    let opens = opens.map(|text| match id {
        1 | 4 => text.strip_suffix(":00").unwrap().to_owned(),
        2 => format!("{text}.000"),
        _ => text.to_owned(),
    });
    let between = if id % 2 == 0 { " " } else { "T" };
    let (shown, opens) = (quoted(shown), quoted(opens));
    format!("({id}, {shown}, {opens}, '2026-11-23{between}05:17:45.5Z')")
}

/// The same rows, published.
struct Feed {
    source: &'static str,
    seller: Company,
    connection: String,
    sold: Sold,
}

fn definition() -> Value {
    let all = ["eq", "gt", "gte", "lt", "lte", "in"];
    json!({"source": {"table": "shifts"}, "order_by": ["id"],
        "fields": [{"name": "id"}, {"name": "shown"}, {"name": "opens"}, {"name": "seen"}],
        "filters": [{"field": "shown", "operators": all}, {"field": "opens", "operators": all}, {"field": "seen", "operators": all}],
        "sorts": [{"name": "shown", "order_by": ["shown"]}, {"name": "shown-down", "order_by": ["-shown"]},
            {"name": "opens", "order_by": ["opens"]}, {"name": "opens-down", "order_by": ["-opens"]}]})
}

async fn feeds() -> Vec<Feed> {
    let cluster = PgCluster::shared().await;
    let seller = host().await.company(&unique("clocks")).await;
    let sql = table(("timestamp", "time", "timestamptz"), |place| {
        plain(place, "Z")
    });
    let postgres = seller
        .postgres(cluster, &cluster.database(&sql).await)
        .await;
    let sql = table(("DATETIME(6)", "TIME(6)", "TIMESTAMP(6)"), |place| {
        plain(place, "")
    });
    let sql = format!("SET time_zone = '+00:00'; {sql}");
    let server = MySql::shared();
    let mariadb = seller.mysql(server, &server.database(&sql)).await;
    let sql = table(("DATETIME", "TIME", "TIMESTAMP"), spelled);
    let sqlite = seller.sqlite("shifts.db", sqlite_file(&sql).await).await;
    let mut feeds = Vec::new();
    for (source, connection) in [
        ("postgres", postgres),
        ("mariadb", mariadb),
        ("sqlite", sqlite),
    ] {
        let sold = Sold::new(&seller, &connection, definition(), 1, 200).await;
        feeds.push(Feed {
            source,
            seller: seller.clone(),
            connection,
            sold,
        });
    }
    feeds
}

impl Feed {
    async fn get(&self, query: &str) -> Answer {
        let path = format!("{}?{query}", self.sold.path);
        self.sold.feed.get(&path).await
    }

    async fn ids(&self, query: &str) -> Vec<i64> {
        ids(&self.get(query).await.expect(200))
    }
}

/// As answers write it.
fn written(shown: &str) -> String {
    let point = if shown.contains('.') { "" } else { "." };
    format!("{:0<26}", format!("{}{point}", shown.replace(' ', "T")))
}

/// Every digit, no zone where there is none, and one where there is, in each format.
#[tokio::test]
async fn no_zone_is_claimed() {
    for feed in feeds().await {
        let source = feed.source;
        let page = feed.get("").await.expect(200);
        for (place, (id, shown, opens)) in ROWS.iter().enumerate() {
            let row = page.at(&format!("/data/response/data/{place}"));
            assert_eq!(row["id"], *id);
            assert_eq!(row["shown"], json!(shown.map(written)), "{source} {id}");
            let opens = opens.map(|opens| written(&format!("2026-11-23 {opens}"))[11..].to_owned());
            assert_eq!(row["opens"], json!(opens), "{source} {id}");
            assert_eq!(row["seen"], "2026-11-23T05:17:45.500000Z", "{source} {id}");
        }
        let accept = |format| [("accept", format)];
        let csv = Raw::get(&feed.sold.feed, &feed.sold.path, &accept("text/csv")).await;
        let csv = csv.text();
        let lines: Vec<&str> = csv.split("\r\n").collect();
        assert_eq!(
            lines[1], "1,2026-11-23T05:17:45.123456,08:30:00.000000,2026-11-23T05:17:45.500000Z",
            "{source}"
        );
        assert_eq!(lines[3], "3,,,2026-11-23T05:17:45.500000Z", "{source}");
        let format = accept("application/vnd.apache.arrow.stream");
        let arrow = Raw::get(&feed.sold.feed, &feed.sold.path, &format).await;
        let reader = arrow_ipc::reader::StreamReader::try_new(arrow.bytes.as_slice(), None);
        let schema = reader.expect("an Arrow stream").schema();
        let kinds: Vec<String> = schema
            .fields()
            .iter()
            .map(|field| format!("{:?}", field.data_type()))
            .collect();
        assert_eq!(kinds[1], "Timestamp(Microsecond, None)", "{source}");
        assert_eq!(
            kinds[3], "Timestamp(Microsecond, Some(\"UTC\"))",
            "{source}"
        );
        let format = accept("application/vnd.apache.parquet");
        let parquet = Raw::get(&feed.sold.feed, &feed.sold.path, &format).await;
        assert_eq!(parquet.status, 200, "{source}");
        let format = accept("application/x-ndjson");
        let lines = Raw::get(&feed.sold.feed, &feed.sold.path, &format).await;
        assert!(
            lines
                .text()
                .contains("\"shown\":\"1969-12-31T23:59:59.999999\","),
            "{source}"
        );
    }
}

/// Who sells and who buys reads the same word for the type.
#[tokio::test]
async fn the_type_has_a_name() {
    for feed in feeds().await {
        let test = feed
            .seller
            .client
            .get(&feed.seller.path(&format!(
                "/endpoints/{}/test",
                feed.seller.endpoint(&feed.connection, named()).await
            )))
            .await
            .expect(200);
        let opens = match feed.source {
            // A span of up to 838 hours.
            "mariadb" => "text",
            _ => "time",
        };
        for (place, kind) in [(1, "local_timestamp"), (2, opens), (3, "timestamp")] {
            let found = test.at(&format!("/data/fields/{place}/type"));
            assert_eq!(found, kind, "{}", feed.source);
        }
    }
}

fn named() -> Value {
    let mut definition = definition();
    definition["slug"] = json!(unique("named"));
    definition
}

/// Whatever a file's spelling, a filter finds what an answer showed, and nothing else.
#[tokio::test]
async fn what_is_shown_is_found() {
    for feed in feeds().await {
        for (query, expected) in [
            ("shown=2026-11-23T05:17:45.123456", vec![1, 2]),
            ("shown=2026-11-23%2005:17:45", vec![5]),
            ("shown=2026-11-23T05:17", vec![7]),
            ("shown=2026-11-23T05:17:45.12345", vec![]),
            ("shown=9999-12-31T23:59:59.000000", vec![6]),
            (
                "shown[in]=2026-11-23T05:17:45.000000,1969-12-31T23:59:59.999999,2020-01-01T00:00:00",
                vec![4, 5],
            ),
            ("shown[gt]=2026-11-23T05:17:45.123456", vec![6, 8]),
            ("shown[gte]=2026-11-23T05:17:45.123456", vec![1, 2, 6, 8]),
            ("shown[gt]=2026-11-23T05:17:45", vec![1, 2, 6, 8]),
            ("shown[gte]=2026-11-23T05:17:45", vec![1, 2, 5, 6, 8]),
            ("shown[lt]=2026-11-23T05:17:45.123456", vec![4, 5, 7]),
            ("shown[lte]=2026-11-23T05:17:00", vec![4, 7]),
            ("shown[lt]=2026-11-23T05:17:00", vec![4]),
            (
                "shown[gte]=2026-11-23T00:00:00&shown[lt]=2026-11-24T00:00:00",
                vec![1, 2, 5, 7, 8],
            ),
            (
                "seen[lte]=2026-11-23T06:17:45.5%2B01:00&shown[lt]=2000-01-01T00:00",
                vec![4],
            ),
            (
                "seen=2026-11-23T05:17:45.500000Z&opens=08:30:00.000001",
                vec![6],
            ),
            ("seen[gt]=2026-11-23T05:17:45.500Z", vec![]),
            (
                "seen[gte]=2026-11-23T05:17:45.5Z&shown[gt]=9000-01-01T00:00",
                vec![6],
            ),
        ] {
            assert_eq!(feed.ids(query).await, expected, "{} {query}", feed.source);
        }
        // As MariaDB has spans for it, its texts are compared as it compares them.
        for (query, expected) in [
            ("opens=08:30:00.000000", vec![1, 2, 8]),
            ("opens=08:30:00", vec![1, 2, 8]),
            ("opens[in]=08:29:59.5,00:00:00", vec![4, 7]),
            ("opens[gt]=08:30:00.000000", vec![5, 6]),
            ("opens[gte]=08:30:00.000000", vec![1, 2, 5, 6, 8]),
            ("opens[lte]=08:30:00.000000", vec![1, 2, 4, 7, 8]),
            ("opens[lt]=08:30:00.000000", vec![4, 7]),
        ] {
            assert_eq!(feed.ids(query).await, expected, "{} {query}", feed.source);
        }
    }
}

/// The type of a file's column is told by its first row, which may have no time there: what later rows show is found all the same.
#[tokio::test]
async fn what_a_file_shows_behind_an_empty_row_is_found() {
    let seller = host().await.company(&unique("runs")).await;
    let sql = "CREATE TABLE runs (id INTEGER PRIMARY KEY, finished DATETIME); INSERT INTO runs VALUES (1, NULL), \
        (2, '2026-11-23T05:17:45Z'), (3, '2026-11-23 06:00:00.5Z'), (4, '2026-11-24 01:00')";
    let connection = seller.sqlite("runs.db", sqlite_file(sql).await).await;
    let all = ["eq", "gt", "gte", "lt", "lte", "in"];
    let definition = json!({"source": {"table": "runs"}, "order_by": ["id"], "fields": [{"name": "id"}, {"name": "finished"}],
        "filters": [{"field": "finished", "operators": all}]});
    let sold = Sold::new(&seller, &connection, definition, 1, 200).await;
    let page = sold.feed.get(&format!("{}?limit=2", sold.path)).await;
    let page = page.expect(200);
    let shown = page.at("/data/response/data/1/finished");
    assert_eq!(shown, "2026-11-23T05:17:45.000000Z");
    for (query, expected) in [
        ("finished=2026-11-23T05:17:45.000000Z", vec![2]),
        ("finished=2026-11-23T06:17:45%2B01:00", vec![2]),
        ("finished=2026-11-23T05:17:45", vec![2]),
        ("finished=2026-11-24T01:00:00", vec![4]),
        (
            "finished[in]=2026-11-23T05:17:45Z,2026-11-23T06:00:00.5Z,2026-11-24T01:00:00",
            vec![2, 3, 4],
        ),
        ("finished[gt]=2026-11-23T05:17:45Z", vec![3, 4]),
        ("finished[lte]=2026-11-23T08:00:00.5%2B02:00", vec![2, 3]),
        ("finished[lt]=2026-11-23T05:17:45Z", vec![]),
    ] {
        let page = sold.feed.get(&format!("{}?{query}", sold.path)).await;
        assert_eq!(ids(&page.expect(200)), expected, "{query}");
    }
}

/// A zone would have to be guessed, and a value between two microseconds equals nothing: the refusal says what to send.
#[tokio::test]
async fn a_zone_is_refused_where_there_is_none() {
    for feed in feeds().await {
        for (query, says) in [
            (
                "shown=2026-11-23T05:17:45Z",
                "without a zone, such as 2026-11-23T05:17:45.123456",
            ),
            ("shown[gt]=2026-11-23T05:17:45%2B02:00", "without a zone"),
            (
                "shown[in]=2026-11-23T05:17:45,2026-11-23T05:17:45z",
                "without a zone",
            ),
            ("shown=2026-11-23T05:17:45.1234567", "six digits"),
            ("shown=yesterday", "2026-11-23T05:17:45.123456"),
            ("seen=2026-11-23T05:17:45", "with an offset or Z"),
            ("seen=2026-11-23T05:17:45.0000001Z", "six digits"),
        ] {
            // Its texts may say one in some rows only.
            let is_about_zones = says.contains("zone") || says.contains("offset");
            if feed.source == "sqlite" && is_about_zones {
                feed.get(query).await.expect(200);
                continue;
            }
            let refused = feed.get(query).await.expect_error(400, "INVALID_PARAMETER");
            let message = refused.text("/error/details/errors/0/message");
            assert!(message.contains(says), "{} {query}: {message}", feed.source);
        }
        if feed.source != "mariadb" {
            let refused = feed.get("opens=noon").await;
            let refused = refused.expect_error(400, "INVALID_PARAMETER");
            let message = refused.text("/error/details/errors/0/message");
            assert!(message.contains("05:17:45.123456"), "{message}");
        }
    }
}

/// Pages of one row after the other have each row once, NULLs and ties among them, in whichever order.
#[tokio::test]
async fn pages_go_on_behind_a_clock() {
    for feed in feeds().await {
        for sort in ["shown", "shown-down", "opens", "opens-down"] {
            let whole = feed.ids(&format!("sort={sort}&limit=100")).await;
            assert_eq!(whole.len(), ROWS.len());
            if feed.source == "postgres" {
                let expected: &[i64] = match sort {
                    "shown" => &[4, 7, 5, 1, 2, 8, 6, 3],
                    "shown-down" => &[3, 6, 8, 1, 2, 5, 7, 4],
                    "opens" => &[4, 7, 1, 2, 8, 6, 5, 3],
                    _ => &[3, 5, 6, 1, 2, 8, 7, 4],
                };
                assert_eq!(whole, expected, "{sort}");
            }
            for limit in [1, 2, 3] {
                let followed = follow(&feed.sold.feed, &feed, sort, limit).await;
                assert_eq!(followed, whole, "{} {sort} {limit}", feed.source);
            }
        }
    }
}

/// A cursor goes on with the filter as it was asked, however the source is asked for it.
#[tokio::test]
async fn a_cursor_knows_the_operator_that_was_asked() {
    for feed in feeds().await {
        let at = "2026-11-23T05:17:45.123456";
        let page = feed.get(&format!("shown={at}&limit=1")).await.expect(200);
        assert_eq!(ids(&page), [1], "{}", feed.source);
        let cursor = page.text("/data/service/pagination/next_cursor");
        let next = format!("limit=1&cursor={cursor}");
        let rest = feed.ids(&format!("shown={at}&{next}")).await;
        assert_eq!(rest, [2], "{}", feed.source);
        let other = feed.get(&format!("shown[in]={at}&{next}")).await;
        other.expect_error(400, "INVALID_PARAMETER");
    }
}

async fn follow(client: &Client, feed: &Feed, sort: &str, limit: usize) -> Vec<i64> {
    let mut page = feed
        .get(&format!("sort={sort}&limit={limit}"))
        .await
        .expect(200);
    let mut all = ids(&page);
    while let Value::String(next) = page.at("/data/service/pagination/next_url").clone() {
        if feed.source != "mariadb" {
            assert_eq!(page.at("/data/service/pagination/paging"), "keyset");
        }
        page = client.get(&next).await.expect(200);
        all.extend(ids(&page));
    }
    all
}

/// A declared `timestamp` is a moment: a column without a zone is compared with what a clock in UTC shows then. The age of an asset's data
/// is read from such a column as in UTC, in whichever year.
#[tokio::test]
async fn moments_and_clocks_meet_in_utc() {
    for feed in feeds().await {
        // Texts, which the seller's statement compares as they stand.
        if feed.source == "sqlite" {
            continue;
        }
        let counts = json!({"result_type": "number", "freshness_column": "newest", "parameters": [{"name": "until", "type": "timestamp"}],
            "sql_logic": "SELECT count(*) AS n, max(shown) AS newest FROM shifts WHERE shown < :until"});
        let asset = feed.seller.asset(&feed.connection, counts).await;
        for (until, count, newest) in [
            ("2026-11-23T05:17:45.123456Z", 3, "2026-11-23T05:17:45Z"),
            (
                "2026-11-23T07:17:45.123457+02:00",
                5,
                "2026-11-23T05:17:45.123456Z",
            ),
            ("9999-12-30T00:00:00Z", 6, "2026-11-23T05:17:45.123457Z"),
        ] {
            let answer = feed.seller.execute(&asset, json!({"until": until})).await;
            let answer = answer.expect(200);
            assert_eq!(
                answer.at("/data/answer_value"),
                count,
                "{} {until}",
                feed.source
            );
            assert_eq!(answer.at("/meta/data_freshness"), newest, "{}", feed.source);
        }
        // Where a page of rows refuses it, too: cut off, it would be another moment.
        let until = json!({"until": "2026-11-23T05:17:45.1234567Z"});
        let refused = feed.seller.execute(&asset, until).await;
        let refused = refused.expect_error(400, "INVALID_PARAMETER");
        assert_eq!(refused.at("/error/details/errors/0/field"), "params.until");
        let message = refused.text("/error/details/errors/0/message");
        assert!(message.contains("six digits"), "{message}");
        let text = json!({"result_type": "string", "sql_logic": "SELECT max(shown) FROM shifts"});
        let text = feed.seller.asset(&feed.connection, text).await;
        let answer = feed.seller.execute(&text, json!({})).await.expect(200);
        assert_eq!(
            answer.at("/data/answer_value"),
            "9999-12-31T23:59:59.000000"
        );
        let last = json!({"result_type": "number", "freshness_column": "newest",
            "sql_logic": "SELECT count(*) AS n, max(shown) AS newest FROM shifts"});
        let last = feed.seller.asset(&feed.connection, last).await;
        let answer = feed.seller.execute(&last, json!({})).await.expect(200);
        let newest = answer.at("/meta/data_freshness");
        assert_eq!(newest, "9999-12-31T23:59:59Z", "{}", feed.source);
    }
}
