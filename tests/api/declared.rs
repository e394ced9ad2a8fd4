//! What a seller declares a parameter to be holds at the source, and a refused value is told by its name.

use std::time::{Duration, Instant};

use reqwest::Method;
use serde_json::{Value, json};
use souk_tests::receiver::ARRIVES_WITHIN;
use souk_tests::{Answer, Company, PgCluster};

use crate::formats::Sold;
use crate::{host, unique};

const TABLE: &str = "CREATE TYPE status AS ENUM ('paid', 'open');
    CREATE TABLE t (id int4, small int2, team varchar(9), key uuid);
    INSERT INTO t VALUES (1, 1, 'a', 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'), (2, 2, 'a', NULL), (3, 3, 'b', NULL), (4, 4, NULL, NULL);
    CREATE TABLE amounts (anyprec numeric, near float8);
    INSERT INTO amounts VALUES (1.0000000000000000001, 1), (9007199254740993, 2), (2.5, 2.5);
    CREATE TABLE orders (id int4 PRIMARY KEY, status status, small int2, ref uuid);
    INSERT INTO orders VALUES (1, 'paid', 1, 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11')";

struct Shop {
    seller: Company,
    connection: String,
}

impl Shop {
    async fn open() -> Shop {
        let cluster = PgCluster::shared().await;
        let database = cluster.database(TABLE).await;
        let seller = host().await.company(&unique("declared")).await;
        let connection = seller.postgres(cluster, &database).await;
        Shop { seller, connection }
    }

    /// An asset with these parameters, by name and type; none has to be given.
    async fn asset(&self, sql: &str, parameters: &[(&str, &str)]) -> String {
        let parameters: Vec<Value> = parameters
            .iter()
            .map(|(name, kind)| json!({"name": name, "type": kind, "required": false}))
            .collect();
        let asset = json!({"result_type": "number", "sql_logic": sql, "parameters": parameters});
        self.seller.asset(&self.connection, asset).await
    }

    async fn ask(&self, asset: &str, params: Value) -> Answer {
        self.seller.execute(asset, params).await
    }

    /// With a body as it stands: whoever writes one by way of floats has no other numbers.
    async fn ask_in(&self, asset: &str, body: String) -> Answer {
        let path = self.seller.path(&format!("/assets/{asset}/execute"));
        self.post(&path, body).await
    }

    async fn post(&self, path: &str, body: String) -> Answer {
        let request = self.seller.client.request(Method::POST, path);
        let request = request.header("content-type", "application/json");
        Answer::of(request.body(body)).await
    }

    async fn value(&self, asset: &str, params: Value) -> Value {
        let answer = self.ask(asset, params).await.expect(200);
        answer.at("/data/answer_value").clone()
    }
}

/// A number is a number, whole or not, where the server would have taken it for a whole one.
#[tokio::test]
async fn a_number_may_have_a_fraction() {
    let shop = Shop::open().await;
    let sql = "SELECT round(sum(id) / :n, 3) FROM t";
    let asset = shop.asset(sql, &[("n", "number")]).await;
    assert_eq!(shop.value(&asset, json!({"n": 2.5})).await, 4.0);
    assert_eq!(shop.value(&asset, json!({"n": 4})).await, 2.5);
    // Where no function takes one, it is what the server said.
    let sql = "SELECT count(*) FROM t WHERE length(repeat('x', :n)) = 3";
    let asset = shop.asset(sql, &[("n", "number")]).await;
    assert_eq!(shop.value(&asset, json!({"n": 3})).await, 4);
}

/// A number that no float holds is compared, and reckoned with, as the number that was sent.
#[tokio::test]
async fn a_number_keeps_its_digits() {
    let shop = Shop::open().await;
    let x = [("x", "number")];
    let count = |condition: &str| format!("SELECT count(*) FROM amounts WHERE {condition}");
    let exact = shop.asset(&count("anyprec = :x"), &x).await;
    let near = shop.asset(&count("near = :x"), &x).await;
    // Beside whole numbers the server would read another one.
    let sql = "SELECT count(*) FROM t WHERE id < :x";
    let whole = shop.asset(sql, &x).await;
    for (asset, number, count) in [
        (&exact, "1.0000000000000000001", 1),
        (&exact, "1", 0),
        (&exact, "9007199254740993", 1),
        (&exact, "9007199254740993.0", 1),
        (&exact, "9007199254740992", 0),
        (&exact, "2.50", 1),
        (&exact, "25e-1", 1),
        (&exact, "1e-400", 0),
        (&near, "1.0000000000000000001", 1),
        (&near, "2.5", 1),
        (&whole, "1.0000000000000000001", 1),
        (&whole, "1", 0),
    ] {
        let body = format!("{{\"params\": {{\"x\": {number}}}}}");
        let answer = shop.ask_in(asset, body).await.expect(200);
        assert_eq!(answer.at("/data/answer_value"), count, "{number}");
    }
    let sum = shop
        .seller
        .asset(
            &shop.connection,
            json!({"result_type": "string", "sql_logic": "SELECT (:x::numeric + 0)::text",
                "parameters": [{"name": "x", "type": "number", "maximum": 1e20}]}),
        )
        .await;
    let of = |number: &str| shop.ask_in(&sum, format!("{{\"params\": {{\"x\": {number}}}}}"));
    for number in ["12345678901234567890.123", "9007199254740993", "2.5", "-7"] {
        let answer = of(number).await.expect(200);
        assert_eq!(answer.at("/data/answer_value"), number);
    }
    for number in ["100000000000000000000.0001", "1e-2000"] {
        let refused = of(number).await.expect_error(400, "INVALID_PARAMETER");
        assert_eq!(refused.at("/error/details/errors/0/field"), "params.x");
    }
    let endless = of("1e400").await;
    assert_eq!(endless.status, 400, "{}", endless.body);
}

/// So does a number of an alert, which is kept in between.
#[tokio::test]
async fn a_number_of_an_alert_keeps_its_digits() {
    let shop = Shop::open().await;
    let sql = "SELECT count(*) FROM amounts WHERE anyprec = :x";
    let asset = shop.asset(sql, &[("x", "number")]).await;
    let user = &shop.seller.user_id;
    let alerts = shop.seller.path(&format!("/users/{user}/alerts"));
    for (number, count) in [("1.0000000000000000001", 1.0), ("1", 0.0)] {
        let body = format!("{{\"asset_id\": \"{asset}\", \"params\": {{\"x\": {number}}}}}");
        let made = shop.post(&alerts, body).await.expect(201);
        let id = made.text("/data/id");
        let alert = shop.seller.path(&format!("/alerts/{id}"));
        let since = Instant::now();
        let found = loop {
            let shown = shop.seller.client.get(&alert).await.expect(200);
            if shown.at("/data/last_checked_at").is_string() {
                break shown;
            }
            assert!(since.elapsed() < ARRIVES_WITHIN, "{}", shown.body);
            tokio::time::sleep(Duration::from_millis(20)).await;
        };
        let value = found.at("/data/last_value").as_f64();
        assert_eq!(value, Some(count), "{number}: {}", found.body);
    }
}

/// The usual optional filter works, with and without a value, whichever comes first.
#[tokio::test]
async fn a_filter_may_be_optional() {
    let shop = Shop::open().await;
    let sql = "SELECT count(*) FROM t WHERE (:team IS NULL OR team = :team) AND (:id IS NULL OR id = :id)";
    let asset = shop
        .asset(sql, &[("team", "string"), ("id", "integer")])
        .await;
    for (params, count) in [
        (json!({}), 4),
        (json!({"team": "a"}), 2),
        (json!({"team": "a", "id": 2}), 1),
        (json!({"id": 4}), 1),
        (json!({}), 4),
    ] {
        assert_eq!(shop.value(&asset, params.clone()).await, count, "{params}");
    }
    let asset = shop
        .asset("SELECT :i + :j", &[("i", "integer"), ("j", "integer")])
        .await;
    assert_eq!(shop.value(&asset, json!({"i": 2, "j": 3})).await, 5);
}

/// A refused value is told by the name of its parameter, and is the caller's; what the statement does by itself is the seller's.
#[tokio::test]
async fn a_refused_value_is_named() {
    let shop = Shop::open().await;
    let sql = "SELECT count(*) FROM t WHERE small = :s AND key = :key";
    let asset = shop
        .asset(sql, &[("s", "integer"), ("key", "string")])
        .await;
    for (params, message) in [
        (
            json!({"s": 40_000}),
            "parameter \"s\" must be an integer between -32768 and 32767",
        ),
        (
            json!({"s": 1, "key": "nonsense"}),
            "parameter \"key\" is no value of its type",
        ),
    ] {
        let refused = shop.ask(&asset, params).await;
        let refused = refused.expect_error(400, "INVALID_PARAMETER");
        assert_eq!(refused.at("/error/message"), message);
        assert_eq!(refused.at("/error/details/blame"), "caller");
        let field = refused.text("/error/details/errors/0/field");
        assert!(["params.s", "params.key"].contains(&field.as_str()));
    }
    let asset = shop.asset("SELECT 1 / (count(*) - 4) FROM t", &[]).await;
    let failed = shop.ask(&asset, json!({})).await;
    let failed = failed.expect_error(502, "SOURCE_ERROR");
    assert_eq!(failed.at("/error/details/blame"), "source");
}

/// Of a page's filters a refused value is told by the one that it belongs to, as the buyer wrote it: in a list, in a range, and among others.
#[tokio::test]
async fn a_refused_value_of_a_filter_is_named() {
    let shop = Shop::open().await;
    let any = |field: &str| json!({"field": field, "operators": ["eq", "in", "gte", "lt"]});
    let definition = json!({
        "source": {"table": "orders"},
        "order_by": ["id"],
        "fields": [{"name": "id"}],
        "filters": [any("status"), any("ref"), any("id"), any("small")],
    });
    let sold = Sold::new(&shop.seller, &shop.connection, definition, 1, 100).await;
    let (small, whole) = (
        "must be an integer between -32768 and 32767",
        "must be an integer between -2147483648 and 2147483647",
    );
    let type_of_its = "is no value of its type";
    for (query, field, message) in [
        ("status=paid&ref=c4ca&id[in]=1,2", "ref", type_of_its),
        ("id=1&status=sold", "status", type_of_its),
        ("id[in]=1,99999999999", "id[in]", whole),
        ("filters[id][in]=1,2,99999999999", "filters[id][in]", whole),
        ("id[gte]=1&small[lt]=40000&status=paid", "small[lt]", small),
    ] {
        let refused = sold.feed.get(&format!("{}?{query}", sold.path)).await;
        let refused = refused.expect_error(400, "INVALID_PARAMETER");
        let errors = json!([{"field": field, "code": "invalid_type", "message": message}]);
        assert_eq!(refused.at("/error/details/errors"), &errors, "{query}");
        let told = format!("filter \"{field}\" {message}");
        assert_eq!(refused.at("/error/message"), told.as_str(), "{query}");
        assert_eq!(refused.at("/error/details/blame"), "caller");
    }
}
