//! What is on the market stays what has passed its test: a change that asks the source for more is tested before it is saved, and buyers are
//! served what was until it is.

use serde_json::{Value, json};
use souk_tests::postgres::{GATED, Gate};
use souk_tests::{Answer, Client, Company, PgCluster};

use crate::pages::sqlite_file;
use crate::{host, unique};

const GOODS: &str = "
    CREATE TABLE goods (id INTEGER PRIMARY KEY, name TEXT NOT NULL, price INTEGER NOT NULL);
    INSERT INTO goods VALUES (1, 'one', 10), (2, 'two', 20), (3, 'three', 30);
    CREATE TABLE labels (id INTEGER PRIMARY KEY, label TEXT NOT NULL);
    INSERT INTO labels VALUES (7, 'seven');";

/// A published endpoint and a published asset of `GOODS`, and who has bought both.
struct Stall {
    seller: Company,
    connection: String,
    /// Paths of the seller's.
    endpoint: String,
    asset: String,
    asset_id: String,
    endpoint_id: String,
    buyer: Company,
    reader: Client,
    pages: String,
}

async fn stall(seller: Company, connection: String) -> Stall {
    let slug = unique("goods");
    let endpoint = json!({"slug": slug, "source": {"table": "goods"}, "fields": [{"name": "id"}, {"name": "name"}], "order_by": ["id"],
        "filters": ["id"], "timeout_ms": 30_000});
    let endpoint_id = seller.endpoint(&connection, endpoint).await;
    let asset = json!({"sql_logic": "SELECT sum(price) AS price FROM goods WHERE id >= :least",
        "parameters": [{"name": "least", "type": "integer"}]});
    let asset_id = seller.asset(&connection, asset).await;
    seller.publish(&endpoint_id, 1).await;
    seller.publish(&asset_id, 1).await;
    let buyer = host().await.buyer(&unique("shopper"), 1_000).await;
    buyer.buy(&asset_id).await;
    let bought = buyer.buy(&endpoint_id).await;
    let key = bought.text("/data/endpoint_key/key");
    Stall {
        endpoint: seller.path(&format!("/endpoints/{endpoint_id}")),
        asset: seller.path(&format!("/assets/{asset_id}")),
        pages: format!("/endpoints/v1/{}/{slug}", seller.handle),
        reader: buyer.client.with_key(&key),
        seller,
        connection,
        asset_id,
        endpoint_id,
        buyer,
    }
}

/// The same goods in PostgreSQL and in a SQLite file.
async fn stalls() -> [Stall; 2] {
    let cluster = PgCluster::shared().await;
    let database = cluster.database(GOODS).await;
    let postgres = host().await.company(&unique("stall")).await;
    let connection = postgres.postgres(cluster, &database).await;
    let sqlite = host().await.company(&unique("stall")).await;
    let file = sqlite.sqlite("goods.db", sqlite_file(GOODS).await).await;
    [stall(postgres, connection).await, stall(sqlite, file).await]
}

impl Stall {
    async fn change(&self, path: &str, change: Value) -> Answer {
        self.seller.client.patch(path, change).await
    }

    async fn shown(&self, path: &str) -> Value {
        let shown = self.seller.client.get(path).await.expect(200);
        shown.at("/data").clone()
    }

    /// What a buyer reads.
    async fn rows(&self) -> Value {
        let page = self.reader.get(&self.pages).await.expect(200);
        page.at("/data/response/data").clone()
    }

    async fn answer(&self, params: Value) -> Value {
        let answer = self.buyer.execute(&self.asset_id, params).await;
        answer.expect(200).at("/data/answer_value").clone()
    }

    async fn preview(&self, product: &str) -> Answer {
        let path = format!("/marketplace/products/{product}/preview");
        self.buyer.client.get(&path).await
    }

    /// The change is refused, and the product is as it was. Returns what the test said.
    async fn refuses(&self, path: &str, change: Value) -> String {
        let before = self.shown(path).await;
        let refused = self.change(path, change.clone()).await;
        let refused = refused.expect_error(409, "INVALID_STATE");
        assert_eq!(refused.at("/error/details/status"), "published");
        let told = refused.text("/error/message");
        assert!(told.starts_with("the test failed: "), "{change}: {told}");
        assert_eq!(self.shown(path).await, before, "{change}");
        refused.text("/error/details/test_error")
    }
}

/// A change to what does not work at the source is refused as a publication of it would be, with the name of a column that the source does not have, and
/// buyers are served what was.
#[tokio::test]
async fn what_does_not_work_is_not_saved() {
    for stall in stalls().await {
        let seller = &stall.seller;
        let empty = sqlite_file("CREATE TABLE other_goods (id INTEGER PRIMARY KEY)").await;
        let empty = seller.sqlite("empty.db", empty).await;
        let rows = stall.rows().await;
        assert_eq!(rows.as_array().map(Vec::len), Some(3), "{rows}");
        for change in [
            json!({"fields": [{"name": "id"}, {"name": "nope"}]}),
            json!({"source": {"table": "nowhere"}}),
            json!({"source": {"table": "labels"}}),
            json!({"sql_logic": "SELECT id, nickname FROM goods"}),
            json!({"order_by": ["nope"]}),
            json!({"filters": ["id", "nope"]}),
            json!({"sorts": [{"name": "odd", "order_by": ["nope"]}]}),
            json!({"connection_id": empty}),
            json!({"name": "renamed", "description": "of nothing", "price_credits": 7, "connection_id": empty}),
        ] {
            let told = stall.refuses(&stall.endpoint, change.clone()).await;
            assert_eq!(stall.rows().await, rows, "{change}");
            let is_of_column = change.to_string().contains("nope");
            assert!(!is_of_column || told.contains("nope"), "{change}: {told}");
        }
        stall.preview(&stall.endpoint_id).await.expect(200);

        assert_eq!(stall.answer(json!({"least": 2})).await, 50);
        for change in [
            json!({"sql_logic": "SELECT sum(cost) AS price FROM goods WHERE id >= :least"}),
            json!({"sql_logic": "SELECT sum(price) AS price FROM nowhere WHERE id >= :least"}),
            json!({"sql_logic": "SELECT id, price FROM goods WHERE id >= :least"}),
            json!({"privacy": {"min_group_size": 1, "privacy_unit_column": "nope"}}),
            json!({"freshness_column": "nope"}),
            json!({"connection_id": empty}),
        ] {
            stall.refuses(&stall.asset, change.clone()).await;
            assert_eq!(stall.answer(json!({"least": 2})).await, 50, "{change}");
        }
        stall.preview(&stall.asset_id).await.expect(200);

        // In the words of a publication.
        let wrong = json!({"slug": unique("wrong"), "sql_logic": "SELECT id, nickname FROM goods", "fields": [{"name": "id"}, {"name": "name"}],
            "order_by": ["id"]});
        let draft = seller.endpoint(&stall.connection, wrong.clone()).await;
        let publish = seller.path(&format!("/endpoints/{draft}/publish"));
        let published = seller.client.post(&publish, json!({"price_credits": 1}));
        let published = published.await.expect_error(409, "INVALID_STATE");
        let change = json!({"sql_logic": wrong["sql_logic"]});
        assert_eq!(
            stall.refuses(&stall.endpoint, change).await,
            published.text("/error/details/test_error")
        );
    }
}

/// A source that has lost a column since its endpoint was published: whoever changes the endpoint, publishes it anew or tries it is told which.
#[tokio::test]
async fn a_column_that_was_lost_is_named() {
    let seller = host().await.company(&unique("stall")).await;
    let connection = seller.sqlite("goods.db", sqlite_file(GOODS).await).await;
    let stall = stall(seller, connection).await;
    let seller = &stall.seller;
    let lost = sqlite_file(&format!("{GOODS} ALTER TABLE goods DROP COLUMN name;")).await;
    let file = seller.path("/files/goods.db");
    let replaced = seller.client.put_bytes(&file, lost).await;
    assert!(replaced.status.is_success(), "{}", replaced.body);

    let more = json!({"fields": [{"name": "id"}, {"name": "name"}, {"name": "price"}]});
    let told = stall.refuses(&stall.endpoint, more).await;
    assert!(told.contains("no such column: \"name\""), "{told}");
    let publish = format!("{}/publish", stall.endpoint);
    let refused = seller.client.post(&publish, json!({})).await;
    let refused = refused.expect_error(409, "INVALID_STATE");
    assert_eq!(refused.text("/error/details/test_error"), told);
    let tried = seller.client.get(&format!("{}/test", stall.endpoint)).await;
    let tried = tried.expect_error(502, "SOURCE_ERROR");
    let said = tried.text("/error/details/source_message");
    assert!(said.starts_with("no such column: \"name\""), "{said}");
    // Buyers need not know what the source calls its columns.
    let page = stall.reader.get(&stall.pages).await;
    let page = page.expect_error(502, "SOURCE_ERROR");
    assert!(
        !page.body.to_string().contains("\\\"name\\\""),
        "{}",
        page.body
    );
    let less = json!({"fields": [{"name": "id"}]});
    stall.change(&stall.endpoint, less).await.expect(200);
    let rows = json!([{"id": 1}, {"id": 2}, {"id": 3}]);
    assert_eq!(stall.rows().await, rows);
}

/// A column by which privacy is counted is never released: where the source has lost it, the asset's owner is told which one it is, and its buyers are not.
#[tokio::test]
async fn a_column_that_is_never_released_is_not_named_to_buyers() {
    const TOTALS: &str = "CREATE TABLE totals (price INTEGER NOT NULL, ward_7 INTEGER NOT NULL); INSERT INTO totals VALUES (60, 9);";
    let seller = host().await.company(&unique("stall")).await;
    let file = sqlite_file(TOTALS).await;
    let connection = seller.sqlite("totals.db", file).await;
    let privacy = json!({"min_group_size": 5, "privacy_unit_column": "ward_7"});
    let asset = json!({"sql_logic": "SELECT * FROM totals", "privacy": privacy});
    let asset = seller.asset(&connection, asset).await;
    seller.publish(&asset, 1).await;
    let buyer = host().await.buyer(&unique("shopper"), 10).await;
    buyer.buy(&asset).await;
    let answer = buyer.execute(&asset, json!({})).await.expect(200);
    assert_eq!(answer.at("/data/answer_value"), 60);
    let lost = sqlite_file(&format!("{TOTALS} ALTER TABLE totals DROP COLUMN ward_7;")).await;
    let file = seller.path("/files/totals.db");
    let replaced = seller.client.put_bytes(&file, lost).await;
    assert!(replaced.status.is_success(), "{}", replaced.body);

    let told = buyer.execute(&asset, json!({})).await;
    let told = told.expect_error(502, "SOURCE_ERROR");
    assert!(!told.body.to_string().contains("ward_7"), "{}", told.body);
    let test = seller.path(&format!("/assets/{asset}/test"));
    let tried = seller.client.post(&test, json!({})).await;
    let tried = tried.expect_error(502, "SOURCE_ERROR");
    let said = tried.text("/error/details/source_message");
    assert!(said.contains("\"ward_7\""), "{said}");
}

/// A change that works is served from then on, with a preview of what its test returned, and a price that came with it.
#[tokio::test]
async fn what_works_is_served_at_once() {
    for stall in stalls().await {
        let all = json!([{"name": "name"}, {"name": "price", "alias": "costs"}]);
        let change = json!({"fields": all, "order_by": ["-id"], "price_credits": 4});
        let changed = stall.change(&stall.endpoint, change).await.expect(200);
        assert_eq!(changed.at("/data/price_credits"), 4);
        assert_eq!(changed.at("/data/status"), "published");
        assert!(
            changed.at("/data/fields/1/type").is_string(),
            "{}",
            changed.body
        );
        let expected = json!([{"name": "three", "costs": 30}, {"name": "two", "costs": 20}, {"name": "one", "costs": 10}]);
        assert_eq!(stall.rows().await, expected);
        let preview = stall.preview(&stall.endpoint_id).await.expect(200);
        assert_eq!(preview.at("/data/response/data"), &expected);

        let other =
            json!({"source": {"table": "labels"}, "fields": [{"name": "id"}, {"name": "label"}]});
        stall.change(&stall.endpoint, other).await.expect(200);
        let expected = json!([{"id": 7, "label": "seven"}]);
        assert_eq!(stall.rows().await, expected);

        let change = json!({"sql_logic": "SELECT max(price) AS price FROM goods WHERE id <= :most",
            "parameters": [{"name": "most", "type": "integer", "default": 2}]});
        stall.change(&stall.asset, change).await.expect(200);
        assert_eq!(stall.answer(json!({"most": 1})).await, 10);
        let preview = stall.preview(&stall.asset_id).await.expect(200);
        assert_eq!(preview.at("/data/answer_value"), 20);
        // That a value which nobody has chosen finds nothing says nothing about the asset, which is not seen to work either.
        let mut change = json!({"sql_logic": "SELECT price FROM goods WHERE id = :id",
            "parameters": [{"name": "id", "type": "integer", "minimum": 0}]});
        let refused = stall.change(&stall.asset, change.clone()).await;
        let refused = refused.expect_error(409, "INVALID_STATE");
        assert_eq!(refused.at("/error/details/made_up_params"), &json!(["id"]));
        change["params"] = json!({"id": 2});
        stall.change(&stall.asset, change).await.expect(200);
        let preview = stall.preview(&stall.asset_id).await.expect(200);
        assert_eq!(preview.at("/data/answer_value"), 20);
        assert_eq!(stall.answer(json!({"id": 1})).await, 10);
    }
}

/// An asset that a made-up value tells nothing of, or nothing that may leave, is changed as it was published: with `params` for the test.
#[tokio::test]
async fn a_change_is_tested_with_the_values_that_come_with_it() {
    for stall in stalls().await {
        let seller = &stall.seller;
        let private = json!({"min_group_size": 2, "privacy_unit_column": "people"});
        let sql = "SELECT sum(price) AS price, count(*) AS people FROM goods WHERE id >= :least";
        let parameters = json!([{"name": "least", "type": "integer", "minimum": 0, "maximum": 9}, {"name": "most", "type": "integer", "default": 9}]);
        let among = format!("{sql} AND id <= :most AND :least > 0");
        let change = json!({"sql_logic": among, "parameters": parameters, "privacy": private});
        let refused = stall.change(&stall.asset, change.clone()).await;
        let refused = refused.expect_error(409, "INVALID_STATE");
        assert_eq!(
            refused.at("/error/details/made_up_params"),
            &json!(["least"])
        );
        let said = refused.text("/error/message");
        assert!(said.contains("values of least were made up"), "{said}");
        assert!(
            !refused
                .text("/error/details/test_error")
                .contains("made up"),
            "{said}"
        );

        let with = |params: Value| {
            let mut change = change.clone();
            change["params"] = params;
            change
        };
        for (params, status, code) in [
            (json!({"lowest": 2}), 400, "INVALID_PARAMETER"),
            (json!({"least": 10}), 400, "INVALID_PARAMETER"),
            (json!({"least": 3}), 409, "INVALID_STATE"),
            (json!(5), 400, "VALIDATION_ERROR"),
        ] {
            let refused = stall.change(&stall.asset, with(params)).await;
            let refused = refused.expect_error(status, code);
            assert!(refused.at("/error/details/made_up_params").is_null());
        }
        assert_eq!(stall.answer(json!({"least": 3})).await, 30);

        let changed = stall.change(&stall.asset, with(json!({"least": 2}))).await;
        let changed = changed.expect(200);
        assert!(changed.at("/data/params").is_null(), "{}", changed.body);
        assert_eq!(stall.answer(json!({"least": 1})).await, 60);
        let preview = stall.preview(&stall.asset_id).await.expect(200);
        assert_eq!(preview.at("/data/answer_value"), 50);
        // What is not tested needs none.
        let named = json!({"name": "Worth", "params": {"least": 2}});
        stall.change(&stall.asset, named).await.expect(200);

        let publish = format!("{}/publish", stall.asset);
        let refused = seller.client.post(&publish, json!({})).await;
        let refused = refused.expect_error(409, "INVALID_STATE");
        assert_eq!(
            refused.at("/error/details/made_up_params"),
            &json!(["least"])
        );
    }
}

/// Whoever points a connection elsewhere is told how many published products are answered from there now, and finds and tries them; a product
/// that is given another connection is tested there first.
#[tokio::test]
async fn a_connection_that_is_pointed_elsewhere_says_what_is_untested() {
    let seller = host().await.company(&unique("stall")).await;
    let connection = seller.sqlite("goods.db", sqlite_file(GOODS).await).await;
    let stall = stall(seller, connection).await;
    let seller = &stall.seller;
    let empty = sqlite_file("CREATE TABLE other_goods (id INTEGER PRIMARY KEY)").await;
    seller.sqlite("empty.db", empty).await;
    let draft =
        json!({"slug": unique("draft"), "sql_logic": "SELECT count(*) AS goods FROM goods"});
    seller.asset(&stall.connection, draft).await;

    let path = seller.path(&format!("/connections/{}", stall.connection));
    let named = json!({"name": "another name"});
    let named = stall.change(&path, named).await.expect(200);
    assert!(named.at("/data/untested_products").is_null());
    let pointed = json!({"database": "empty.db"});
    let pointed = stall.change(&path, pointed).await.expect(200);
    assert_eq!(pointed.at("/data/status"), "active", "{}", pointed.body);
    assert_eq!(
        pointed.at("/data/untested_products"),
        &json!({"assets": 1, "endpoints": 1})
    );
    let shown = stall.shown(&path).await;
    assert!(shown.get("untested_products").is_none(), "{shown}");
    for (things, id, test) in [
        (
            "assets",
            &stall.asset_id,
            format!("{}/test?least=1", stall.asset),
        ),
        (
            "endpoints",
            &stall.endpoint_id,
            format!("{}/test", stall.endpoint),
        ),
    ] {
        let on_it = format!(
            "/{things}?status=published&connection_id={}",
            stall.connection
        );
        let on_it = seller.client.get(&seller.path(&on_it)).await.expect(200);
        assert_eq!(on_it.at("/data/0/id"), id.as_str());
        assert!(on_it.at("/data/1").is_null(), "{}", on_it.body);
        let tried = seller.client.get(&test).await;
        assert!(!tried.status.is_success(), "{things}: {}", tried.body);
    }
}

/// A price that comes with a change holds for good, even where a discount has made it that already: it does not end with the discount.
#[tokio::test]
async fn a_price_that_comes_along_does_not_end_with_a_discount() {
    for stall in stalls().await {
        let client = &stall.seller.client;
        let prices = format!("{}/prices", stall.endpoint);
        let ten = json!({"price_credits": 10});
        client.post(&prices, ten).await.expect(201);
        let discount = json!({"discount_percent": 50, "effective_to": "2099-01-01T00:00:00Z"});
        let discounts = format!("{prices}/discount");
        client.post(&discounts, discount).await.expect(201);
        let five = json!({"price_credits": 5});
        stall.change(&stall.endpoint, five).await.expect(200);
        let active = client.get(&format!("{prices}/active")).await.expect(200);
        let said = ["price_credits", "discount_percent", "effective_to"]
            .map(|member| active.at(&format!("/data/{member}")));
        assert_eq!(said, [&json!(5), &Value::Null, &Value::Null]);
        let listed = client.get(&prices).await.expect(200);
        assert_eq!(listed.at("/data/0/id"), active.at("/data/id"));
    }
}

/// While the source is away, all that does not concern it can be changed, and less of it can be sold; what asks it for more is refused, unless
/// the product is taken off the market first.
#[tokio::test]
async fn other_changes_need_no_source() {
    let cluster = PgCluster::start(&[]).await;
    let database = cluster.database(GOODS).await;
    let seller = host().await.company(&unique("stall")).await;
    let connection = seller.postgres(&cluster, &database).await;
    let stall = stall(seller, connection).await;
    let seller = &stall.seller;
    let draft =
        json!({"slug": unique("draft"), "source": {"table": "goods"}, "fields": [{"name": "id"}]});
    let draft = seller.endpoint(&stall.connection, draft).await;
    let chart = json!({"asset_type": "VISUALIZATION", "result_type": "chart", "slug": unique("chart"),
        "sql_logic": "SELECT name, price FROM goods", "visualization": {"x": "name", "title": "Worth"}});
    let chart = seller.asset(&stall.connection, chart).await;
    seller.publish(&chart, 1).await;
    let chart = seller.path(&format!("/assets/{chart}"));
    drop(cluster);

    for change in [
        json!({"name": "All goods", "description": "of all shops", "category": "goods", "tags": ["goods"]}),
        json!({"price_credits": 5}),
        json!({"timeout_ms": 5_000, "default_limit": 5, "max_limit": 50, "allow_ai_training": false}),
        json!({"fields": [{"name": "name", "alias": "good", "description": "what it is"}], "filters": []}),
    ] {
        stall.change(&stall.endpoint, change).await.expect(200);
    }
    for change in [
        json!({"name": "Worth", "description": "of all goods", "tags": ["goods"]}),
        json!({"unit": "credits", "sport": "none", "timeout_ms": 5_000}),
    ] {
        stall.change(&stall.asset, change).await.expect(200);
    }
    let drawn = json!({"visualization": {"x": "name", "title": "Prices", "mark": "point"}});
    stall.change(&chart, drawn.clone()).await.expect(200);
    assert_eq!(
        stall.shown(&chart).await["visualization"],
        drawn["visualization"]
    );
    let other = json!({"visualization": {"x": "label", "title": "Prices"}});
    stall.refuses(&chart, other).await;
    let prices = format!("{}/prices", stall.asset);
    let price = json!({"price_credits": 6});
    seller.client.post(&prices, price).await.expect(201);

    let more = json!({"fields": [{"name": "name"}, {"name": "price"}]});
    stall.refuses(&stall.endpoint, more.clone()).await;
    let other = json!({"sql_logic": "SELECT max(price) AS price FROM goods WHERE id >= :least"});
    stall.refuses(&stall.asset, other.clone()).await;

    // What nobody can buy is tested when it is published.
    let draft = seller.path(&format!("/endpoints/{draft}"));
    stall.change(&draft, more.clone()).await.expect(200);
    for (path, change) in [(&stall.endpoint, more), (&stall.asset, other)] {
        let unpublish = format!("{path}/unpublish");
        seller.client.post(&unpublish, json!({})).await.expect(200);
        stall.change(path, change).await.expect(200);
        let publish = format!("{path}/publish");
        let refused = seller.client.post(&publish, json!({})).await;
        refused.expect_error(409, "INVALID_STATE");
    }
}

/// While a change is tested, buyers are served what was. A product that is changed otherwise meanwhile is not what the test was of.
#[tokio::test]
async fn a_change_that_was_overtaken_is_not_saved() {
    let cluster = PgCluster::shared().await;
    let slow = format!("CREATE VIEW slow AS SELECT id, name FROM goods, {GATED};");
    let database = cluster.database(&format!("{GOODS} {slow}")).await;
    let seller = host().await.company(&unique("stall")).await;
    let connection = seller.postgres(cluster, &database).await;
    let stall = stall(seller, connection).await;
    let rows = stall.rows().await;

    let gate = Gate::shut(cluster, &database).await;
    let meanwhile = async {
        gate.is_reached().await;
        let renamed = json!({"name": "renamed"});
        stall.change(&stall.endpoint, renamed).await.expect(200);
        assert_eq!(stall.rows().await, rows);
        gate.open().await;
    };
    let change = json!({"source": {"table": "slow"}, "description": "slow"});
    let (overtaken, ()) = tokio::join!(stall.change(&stall.endpoint, change.clone()), meanwhile);
    overtaken.expect_error(409, "CONFLICT");
    let shown = stall.shown(&stall.endpoint).await;
    assert_eq!(
        (
            &shown["name"],
            &shown["source"]["table"],
            &shown["description"]
        ),
        (&json!("renamed"), &json!("goods"), &json!(""))
    );
    assert_eq!(stall.rows().await, rows);

    let again = stall.change(&stall.endpoint, change).await.expect(200);
    assert_eq!(again.at("/data/source/table"), "slow");
    assert_eq!(stall.rows().await, rows);
}

/// A connection that is deleted while an asset is tested on it is not given to the asset, whose buyers go on with what was.
#[tokio::test]
async fn a_connection_that_is_deleted_meanwhile_takes_no_asset_along() {
    let cluster = PgCluster::shared().await;
    let slow = format!("CREATE VIEW slow AS SELECT price FROM goods, {GATED};");
    let database = cluster.database(&format!("{GOODS} {slow}")).await;
    let seller = host().await.company(&unique("stall")).await;
    let connection = seller.postgres(cluster, &database).await;
    let other = seller.postgres(cluster, &database).await;
    let stall = stall(seller, connection).await;

    let gate = Gate::shut(cluster, &database).await;
    let meanwhile = async {
        gate.is_reached().await;
        let other = stall.seller.path(&format!("/connections/{other}"));
        stall.seller.client.delete(&other).await.expect(204);
        gate.open().await;
    };
    let change = json!({"connection_id": other, "timeout_ms": 30_000,
        "sql_logic": "SELECT sum(price) AS price FROM slow WHERE price >= :least"});
    let (late, ()) = tokio::join!(stall.change(&stall.asset, change), meanwhile);
    let late = late.expect_error(400, "VALIDATION_ERROR");
    assert_eq!(late.at("/error/details/errors/0/field"), "connection_id");
    let shown = stall.shown(&stall.asset).await;
    assert_eq!(shown["connection_id"], stall.connection.as_str());
    assert_eq!(stall.answer(json!({"least": 2})).await, 50);
}
