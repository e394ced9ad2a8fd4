//! What the tests of engines over HTTP sell, a hundred matches of a league in a table that each makes in its own words, and how they are stopped.

use std::pin::pin;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use souk_tests::Company;

use crate::paid_faults::Sale;
use crate::{host, unique};

/// A statement's answer to its last digit.
pub const DIGITS: &str = "12345678901234567890.00100";

/// A league as an engine names it.
pub struct League {
    pub schema: &'static str,
    /// The engine's way with names.
    pub name: fn(&str) -> String,
    /// A statement of one row that has [`DIGITS`], where the engine's numbers have so many.
    pub digits: Option<&'static str>,
}

impl League {
    /// Sells an asset and an endpoint of it; a buyer pays and reads pages, filtered.
    pub async fn is_sold(&self, seller: &Company, connection: &str) {
        let name = self.name;
        let [id, club, goals, fee] = ["id", "club", "goals", "fee"].map(name);
        let [played, kickoff, day, tags] = ["played", "kickoff", "day", "tags"].map(name);
        let matches = name("matches");
        let sum = format!(
            "SELECT SUM({goals}) AS {goals} FROM {matches} WHERE {club} = :club AND {goals} >= :least"
        );
        let asset = seller
            .asset(connection, json!({"sql_logic": sum,
                "parameters": [{"name": "club", "type": "string"}, {"name": "least", "type": "integer"}]}))
            .await;
        let fields = [&id, &club, &goals, &fee, &played, &kickoff, &day, &tags];
        let endpoint = seller
            .endpoint(connection, json!({"slug": "matches", "source": {"schema": self.schema, "table": matches},
                "fields": fields.map(|field| json!({"name": field})),
                "order_by": [id],
                "filters": [{"field": club, "operators": ["eq", "like"]}, {"field": goals, "operators": ["eq", "gt", "in"]}, {"field": fee, "operators": ["gte"]},
                    {"field": played, "operators": ["lt", "in"]}, {"field": kickoff, "operators": ["lt"]}, {"field": day, "operators": ["eq"]}]}))
            .await;
        seller.publish(&asset, 2).await;
        seller.publish(&endpoint, 1).await;

        let buyer = host().await.buyer(&unique("buyer"), 100).await;
        buyer.buy(&asset).await;
        let parameters = json!({"club": "Club 3", "least": 2});
        let answer = buyer.execute(&asset, parameters).await.expect(200);
        assert_eq!(answer.at("/data/answer_value"), 27);
        if let Some(text) = self.digits {
            digits_are_sold(seller, connection, &buyer, text).await;
        }

        let bought = buyer.buy(&endpoint).await;
        let reader = (buyer.client).with_key(&bought.text("/data/endpoint_key/key"));
        let page = async |query: &str| {
            let path = format!("/endpoints/v1/{}/matches?{query}", seller.handle);
            reader.get(&path).await.expect(200)
        };
        let first = page("limit=2").await;
        assert_eq!(first.at("/data/service/billing/credits_used"), 1);
        assert_eq!(
            first.at("/data/response/data/0"),
            &json!({&id: 1, &club: "Club 1", &goals: 1, &fee: 0.125, &played: "2026-01-01T00:01:00.000000Z",
                &kickoff: "2026-01-01T00:01:00.000000", &day: "2026-01-02", &tags: ["n", "1"]})
        );
        let ids = async |query: &str| {
            let page = page(query).await;
            let rows = page.at("/data/response/data").as_array().unwrap();
            let ids = rows.iter().map(|row| row[&id].as_i64().unwrap());
            ids.collect::<Vec<i64>>()
        };
        let mut seen = Vec::new();
        for start in [0, 40, 80] {
            seen.extend(ids(&format!("limit=40&start={start}")).await);
        }
        assert_eq!(seen, (1..=100).collect::<Vec<i64>>());
        for (query, wanted) in [
            (
                format!("{club}=Club%203&{goals}[gt]=2"),
                vec![3, 24, 38, 59, 73, 94],
            ),
            (format!("{goals}[in]=4&{club}=Club%202"), vec![9, 79]),
            (format!("{fee}[gte]=12.375&limit=10"), vec![99, 100]),
            (format!("{fee}[gte]=12.3751&limit=10"), vec![100]),
            (format!("{club}[like]=Club%206&limit=3"), vec![6, 13, 20]),
            (format!("{club}[like]=Club%25"), vec![]),
            (format!("{club}=%27%20OR%20%271%5C"), vec![]),
            (format!("{played}[lt]=2026-01-01T00:03:00Z"), vec![1, 2]),
            (format!("{played}[in]=2026-01-01T00:03:00Z"), vec![3]),
            (format!("{kickoff}[lt]=2026-01-01T00:03:00"), vec![1, 2]),
            (format!("{day}=2026-01-05"), vec![4]),
        ] {
            assert_eq!(ids(&query).await, wanted, "{query}");
        }
    }
}

async fn digits_are_sold(seller: &Company, connection: &str, buyer: &Company, text: &str) {
    let asset = json!({"sql_logic": text});
    let asset = seller.asset(connection, asset).await;
    seller.publish(&asset, 1).await;
    buyer.buy(&asset).await;
    // Its text, because what these tests read of JSON has the digits of a double.
    let path = buyer.path(&format!("/assets/{asset}/execute"));
    let response = buyer.client.request(reqwest::Method::POST, &path);
    let response = response.json(&json!({"params": {}})).send().await;
    let text = response.expect("an answer").text().await.expect("a body");
    assert!(text.contains(DIGITS), "{text}");
}

/// A token lets a seller in, over TLS; another one does not, and is told as what is wrong, without being shown.
pub async fn a_token_lets_in(engine: &str, place: Value, token: &str, refusal: &str) {
    let seller = host().await.company(&unique(engine)).await;
    for (shown, lets_in) in [(token, true), ("eyJhbGciOiJub25lIn0.e30.", false)] {
        let mut fields = place.clone();
        fields["credential_type"] = "API_KEY".into();
        fields["credentials"] = json!({"api_key": shown}).to_string().into();
        let connection = seller.connection(engine, fields).await;
        let path = seller.path(&format!("/connections/{connection}/test"));
        let test = seller.client.post(&path, json!({})).await;
        assert_eq!(test.at("/data/success") == true, lets_in, "{}", test.body);
        let told = test.body.to_string();
        assert_eq!(told.contains(refusal), !lets_in, "{told}");
        assert!(!told.contains(shown), "{told}");
    }
}

/// A caller hangs up once this statement has begun at the source, and nothing runs there soon after, long before its time is over. `has_begun`: it
/// has; `runs`: something does.
pub async fn is_stopped(
    seller: &Company,
    connection: &str,
    text: &str,
    has_begun: impl Fn() -> bool,
    runs: impl Fn() -> bool,
) {
    let path = seller.path(&format!("/connections/{connection}"));
    let patient = json!({"statement_timeout_ms": 60_000});
    seller.client.patch(&path, patient).await.expect(200);
    let asset = json!({"sql_logic": text, "timeout_ms": 60_000});
    let asset = seller.asset(connection, asset).await;
    let path = seller.path(&format!("/assets/{asset}/execute"));
    let client = seller.client.clone();
    let call = tokio::spawn(async move { client.post(&path, json!({"params": {}})).await });
    let since = Instant::now();
    while !has_begun() {
        if call.is_finished() {
            panic!("it has ended: {:?}", call.await);
        }
        assert!(since.elapsed() < Duration::from_secs(30), "it does not run");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    call.abort();
    let since = Instant::now();
    while runs() {
        assert!(since.elapsed() < Duration::from_secs(25), "it goes on");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// What an asset is given, and what it takes: far longer than [`ends_in_time`] looks, and than a connection allows.
const GIVEN_MS: u64 = 5_000;
const TAKEN: Duration = Duration::from_secs(300);
/// More than one only on a machine so busy that the source is not asked in time.
const ROUNDS_MAX: usize = 5;

/// What takes longer than its asset may, although its connection would let it go on, costs the buyer nothing, and nothing runs at the source soon after; the
/// next call is answered, and paid for. `takes`: makes what is asked next take so long, with these parameters; `runs`: something does.
pub async fn ends_in_time(
    seller: Company,
    connection: &str,
    mut asset: Value,
    takes: impl Fn(Duration) -> Value,
    runs: impl Fn() -> bool,
) {
    let path = seller.path(&format!("/connections/{connection}"));
    let patient = json!({"statement_timeout_ms": 60_000});
    seller.client.patch(&path, patient).await.expect(200);
    asset["timeout_ms"] = GIVEN_MS.into();
    let sale = Sale::of(seller, connection, asset).await;
    for round in 1..=ROUNDS_MAX {
        // A session is open: to open one takes of the time, too.
        let own = takes(Duration::ZERO);
        let own = sale.seller.execute(&sale.asset, own).await;
        own.expect(200);
        let mut call = pin!(sale.buy(takes(TAKEN)));
        let mut has_run = false;
        let late = loop {
            tokio::select! {
                late = &mut call => break late,
                () = tokio::time::sleep(Duration::from_millis(20)) => has_run |= runs(),
            }
        };
        let late = sale.assert_free(late, 504, "EXECUTION_TIMEOUT", "source");
        late.await;
        let since = Instant::now();
        while runs() {
            assert!(since.elapsed() < Duration::from_secs(50), "it goes on");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        if has_run {
            break;
        }
        assert!(round < ROUNDS_MAX, "it never ran");
    }
    sale.assert_works(takes(Duration::ZERO)).await;
}

/// Of a table of shirts, two of which have the same number: what a test says of an order by numbers, and of one by clubs, which are all others.
pub async fn ties(seller: &Company, connection: &str, source: Value) {
    for (order, wanted) in [
        (
            "n",
            json!([
                "rows 2 and 3 have the same n: pages may repeat rows and leave others out; name in order_by what tells all rows apart"
            ]),
        ),
        ("club", json!([])),
    ] {
        let fields = json!({"source": source, "fields": [{"name": "n"}, {"name": "club"}], "order_by": [order]});
        let endpoint = seller.endpoint(connection, fields).await;
        let path = seller.path(&format!("/endpoints/{endpoint}/test"));
        let tested = seller.client.get(&path).await.expect(200);
        assert_eq!(tested.at("/data/warnings"), &wanted, "{}", tested.body);
    }
}
