//! Exports whose source breaks off in the middle. What has left is paid and whole, what has not is neither, and the rest is there once the source is whole
//! again.
//!
//! A source is asked once more for a page that it breaks off, on another session: it is torn so that the first page comes on any, and no other on any.

use reqwest::Method;
use serde_json::{Value, json};
use souk_tests::torn::{Ends, TornFront, TornWire};
use souk_tests::{MySql, PgCluster, Trino, trino};

use crate::exports::ids;
use crate::formats::{Raw, Sold};
use crate::paid_faults::BROKEN;
use crate::torn_tls::{login, seller_over};
use crate::{host, unique};

const PRICE: i64 = 2;

/// What leads to a source.
trait Torn {
    /// From now on what has so many bytes does not come whole.
    fn tear(&self, bytes: usize);
    fn mend(&self);
    /// How often something did not.
    fn torn(&self) -> usize;
}

impl Torn for TornWire {
    fn tear(&self, bytes: usize) {
        TornWire::tear(self, bytes);
    }

    fn mend(&self) {
        TornWire::mend(self);
    }

    fn torn(&self) -> usize {
        TornWire::torn(self)
    }
}

impl Torn for TornFront {
    fn tear(&self, bytes: usize) {
        TornFront::tear(self, bytes);
    }

    fn mend(&self) {
        TornFront::mend(self);
    }

    fn torn(&self) -> usize {
        TornFront::torn(self)
    }
}

/// What is exported: numbered rows, each with so many letters.
struct Feed {
    rows: usize,
    /// Of a page.
    limit: usize,
    /// Of the first page and the row behind it, by which it is known that there are more.
    letters: usize,
    /// Of all others.
    more_letters: usize,
    /// The first page has fewer bytes, with a login before it, and the second one has more.
    tears_at: usize,
}

const FEW: Feed = Feed {
    rows: 250,
    limit: 100,
    letters: 10,
    more_letters: 2_000,
    tears_at: 100_000,
};

/// The longest pages that there are: of what is torn the host has thousands of rows already.
const MANY: Feed = Feed {
    rows: 30_000,
    limit: 10_000,
    letters: 100,
    more_letters: 250,
    tears_at: 2_000_000,
};

impl Feed {
    fn definition(&self, source: &Value) -> Value {
        json!({"source": source, "fields": [{"name": "id"}, {"name": "pad"}], "order_by": ["id"], "max_limit": self.limit, "timeout_ms": 30_000})
    }

    /// The numbers of the first page, and of those behind it.
    fn numbers(&self) -> (Vec<i64>, Vec<i64>) {
        let mut first: Vec<i64> = (1..).take(self.rows).collect();
        let others = first.split_off(self.limit);
        (first, others)
    }

    /// While its source is torn nobody is given a part for the whole, or pays for what does not come; whatever came is whole, and the rest follows.
    async fn breaks_off(&self, sold: &Sold, source: &impl Torn, what: &str) {
        let (first, others) = self.numbers();
        let torn = source.torn();
        let mut left = sold.buyer.balance().await;
        source.tear(self.tears_at);

        let export = format!("{}?export=true", sold.path);
        let with_checkpoints = format!("{export}&checkpoints=true");
        let told = Raw::get(&sold.feed, &with_checkpoints, &[]).await.text();
        let checkpoint = last_checkpoint(&told);
        let said = json!([
            checkpoint["complete"],
            checkpoint["rows"],
            checkpoint["pages"],
            checkpoint["credits_used"],
            checkpoint["error"]["code"],
        ]);
        let expected = json!([false, self.limit, 1, PRICE, "SOURCE_ERROR"]);
        assert_eq!(said, expected, "{what}");
        let message = checkpoint["error"]["message"].as_str();
        assert!(
            message.is_some_and(|message| message.ends_with(BROKEN)),
            "{what}"
        );
        assert!(ids(&told) == first, "{what}");
        left -= PRICE;
        is_paid(sold, left).await;

        let part = until_the_cut(sold, &export).await;
        assert!(ids(&part) == first, "{what}");
        left -= PRICE;
        is_paid(sold, left).await;

        // By itself such a page is a refusal.
        let page = format!("{}?start={}&limit={}", sold.path, self.limit, self.limit);
        let refusal = sold.feed.get(&page).await;
        let refusal = refusal.expect_error(502, "SOURCE_ERROR");
        let details = refusal.at("/error/details");
        assert_eq!(details["reason"], "unreachable", "{what}: {details}");
        assert_eq!(details["charged"], false, "{what}: {details}");
        is_paid(sold, left).await;
        assert!(source.torn() > torn, "{what}");

        source.mend();
        let cursor = checkpoint["cursor"].as_str().expect("a cursor");
        let rest = format!("{with_checkpoints}&cursor={cursor}");
        let rest = Raw::get(&sold.feed, &rest, &[]).await.text();
        assert!(ids(&rest) == others, "{what}");
        let pages = others.len().div_ceil(self.limit);
        let end = last_checkpoint(&rest);
        let said = json!([end["complete"], end["rows"], end["pages"]]);
        assert_eq!(said, json!([true, others.len(), pages]), "{what}");
        left -= PRICE * pages as i64;
        is_paid(sold, left).await;
    }
}

/// What the last line says.
fn last_checkpoint(export: &str) -> Value {
    let last = export.lines().last().unwrap_or_default();
    let mut last: Value = serde_json::from_str(last).expect("JSON");
    last["$checkpoint"].take()
}

/// So many credits are left, and none is held.
async fn is_paid(sold: &Sold, left: i64) {
    sold.buyer.holds(0).await;
    assert_eq!(sold.buyer.credits().await, (left, 0));
}

/// What comes of an export whose connection is cut.
async fn until_the_cut(sold: &Sold, path: &str) -> String {
    let request = sold.feed.request(Method::GET, path);
    let mut response = request.send().await.expect("a head");
    let mut bytes = Vec::new();
    let end = loop {
        match response.chunk().await {
            Ok(Some(chunk)) => bytes.extend_from_slice(&chunk),
            end => break end,
        }
    };
    assert!(end.is_err(), "a whole export of {} bytes", bytes.len());
    String::from_utf8(bytes).expect("UTF-8")
}

/// The feed of a source that this wire leads to.
async fn is_borne_on_a_wire(feed: &Feed, engine: &str, port: u16, fields: Value, source: &Value) {
    let wire = TornWire::to(port).await;
    let (seller, connection) = seller_over(&wire, engine, fields).await;
    let definition = feed.definition(source);
    let sold = Sold::new(&seller, &connection, definition, PRICE as u64, 100).await;
    for _ in 0..2 {
        feed.breaks_off(&sold, &wire, engine).await;
    }
}

/// PostgreSQL has a wire of its own, and its pages begin behind a row.
#[tokio::test]
async fn an_export_of_postgres_that_breaks_off_is_never_a_shorter_one() {
    let cluster = PgCluster::shared().await;
    for feed in [FEW, MANY] {
        let Feed {
            rows,
            limit,
            letters,
            more_letters,
            ..
        } = feed;
        let table = format!(
            "CREATE TABLE matches (id bigint PRIMARY KEY, pad text NOT NULL);
            INSERT INTO matches SELECT i, repeat('x', CASE WHEN i > {limit} + 1 THEN {more_letters} ELSE {letters} END) FROM generate_series(1, {rows}) AS i;"
        );
        let database = cluster.database(&table).await;
        let credentials = json!({"username": cluster.user, "password": cluster.password});
        let fields = login(&credentials, &database, &cluster.ca_pem);
        let source = json!({"table": "matches"});
        is_borne_on_a_wire(&feed, "postgres", cluster.port, fields, &source).await;
    }
}

/// So has MariaDB, of whose pages the rows before them are counted.
#[tokio::test]
async fn an_export_of_mariadb_that_breaks_off_is_never_a_shorter_one() {
    let server = MySql::shared();
    let Feed {
        rows,
        limit,
        letters,
        more_letters,
        ..
    } = MANY;
    let database = server.database(&format!(
        "CREATE TABLE matches (id BIGINT PRIMARY KEY, pad TEXT NOT NULL);
        INSERT INTO matches SELECT seq, REPEAT('x', IF(seq > {limit} + 1, {more_letters}, {letters})) FROM seq_1_to_{rows};"
    ));
    let credentials = json!({"username": server.user, "password": server.password});
    let fields = login(&credentials, &database, &server.ca_pem);
    let source = json!({"schema": database, "table": "matches"});
    is_borne_on_a_wire(&MANY, "mysql", server.port, fields, &source).await;
}

/// Trino answers over HTTP, whichever way says there where a body ends.
#[tokio::test]
async fn an_export_of_trino_that_breaks_off_is_never_a_shorter_one() {
    let server = Trino::start().await;
    let Feed {
        rows,
        limit,
        letters,
        more_letters,
        ..
    } = FEW;
    server.admin(&format!(
        "ATTACH ':memory:' AS league; CREATE TABLE league.matches (id bigint NOT NULL, pad varchar);
        WITH RECURSIVE s(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM s WHERE n < {rows})
        INSERT INTO league.matches SELECT n, replace(hex(zeroblob(CASE WHEN n > {limit} + 1 THEN {more_letters} ELSE {letters} END / 2)), '0', 'x') FROM s;"
    ));
    let front = TornFront::before(&server.base_url()).await;
    let credentials = json!({"username": trino::USER}).to_string();
    let fields = json!({"credential_type": "NONE", "credentials": credentials, "database": format!("{}.league", trino::CATALOG),
        "base_url": front.base_url(), "ca_pem": front.ca_pem});
    let seller = host().await.company(&unique("trino")).await;
    let connection = seller.connection("trino", fields).await;
    let definition = FEW.definition(&json!({"schema": "league", "table": "matches"}));
    let sold = Sold::new(&seller, &connection, definition, PRICE as u64, 100).await;
    for ends in Ends::ALL {
        front.ends(ends);
        FEW.breaks_off(&sold, &front, &format!("{ends:?}")).await;
    }
}
