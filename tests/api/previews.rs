//! Previews follow the product: what its seller has withdrawn is not shown, and what a test shows is.

use serde_json::{Value, json};
use souk_tests::{Answer, Company};

use crate::pages::sqlite_file;
use crate::{host, league, unique};

async fn preview(buyer: &Company, product: &str) -> Answer {
    let path = format!("/marketplace/products/{product}/preview");
    buyer.client.get(&path).await
}

async fn is_on_show(buyer: &Company, product: &str) -> Value {
    let path = format!("/marketplace/products/{product}");
    let shown = buyer.client.get(&path).await.expect(200);
    shown.at("/data/preview_available").clone()
}

/// A field that was taken back is not shown from the next request on; the next test makes a preview of what is sold now.
#[tokio::test]
async fn an_endpoints_preview_shows_no_withdrawn_field() {
    let league = league().await;
    let (endpoint, _) = league.matches(1).await;
    let buyer = host().await.buyer(&unique("looker"), 10).await;
    let own = league.seller.path(&format!("/endpoints/{endpoint}"));
    let client = &league.seller.client;
    let before = preview(&buyer, &endpoint).await.expect(200);
    assert_eq!(
        before.at("/data/response/data/0"),
        &json!({"id": 1, "team": "Benfica", "scored": 1, "played_on": "2026-01-02"})
    );
    // What is sold stays the same.
    client
        .patch(
            &own,
            json!({"name": "All matches", "max_limit": 100, "filters": ["team"]}),
        )
        .await
        .expect(200);
    preview(&buyer, &endpoint).await.expect(200);

    let fields = json!([{"name": "id"}, {"name": "team", "alias": "club"}]);
    client
        .patch(&own, json!({"fields": fields}))
        .await
        .expect(200);
    preview(&buyer, &endpoint)
        .await
        .expect_error(404, "PREVIEW_NOT_AVAILABLE");
    assert_eq!(is_on_show(&buyer, &endpoint).await, false);
    client
        .get(&format!("{own}/test?limit=20"))
        .await
        .expect(200);
    let after = preview(&buyer, &endpoint).await.expect(200);
    assert_eq!(
        after.at("/data/response/data"),
        &json!([{"id": 1, "club": "Benfica"}, {"id": 2, "club": "Celtic"}, {"id": 3, "club": "Ajax"}])
    );
    assert_eq!(is_on_show(&buyer, &endpoint).await, true);

    let order = json!({"order_by": ["-id"]});
    client.patch(&own, order).await.expect(200);
    // What the change was tested with is shown.
    let changed = preview(&buyer, &endpoint).await.expect(200);
    assert_eq!(changed.at("/data/response/data/0/id"), 250);
    client
        .post(&format!("{own}/publish"), json!({}))
        .await
        .expect(200);
    let published = preview(&buyer, &endpoint).await.expect(200);
    assert_eq!(published.at("/data/response/data/0/id"), 250);
}

/// A new statement shows what its test returned, and a new privacy threshold takes an asset's preview away; a test that the threshold stops makes none.
#[tokio::test]
async fn an_assets_preview_follows_its_source_and_privacy() {
    let league = league().await;
    let asset = league.total_goals(1).await;
    let buyer = host().await.buyer(&unique("looker"), 10).await;
    let own = league.seller.path(&format!("/assets/{asset}"));
    let client = &league.seller.client;
    let before = preview(&buyer, &asset).await.expect(200);
    let goals = before.at("/data/answer_value").clone();
    assert!(goals.as_i64().is_some_and(|goals| goals > 0), "{goals}");
    client
        .patch(&own, json!({"description": "of all seasons"}))
        .await
        .expect(200);
    preview(&buyer, &asset).await.expect(200);

    let sql = "SELECT sum(goals) AS goals, count(*) AS matches FROM matches WHERE team = :team";
    let strict = json!({"min_group_size": 1000, "privacy_unit_column": "matches"});
    let withheld = json!({"sql_logic": sql, "privacy": strict});
    client
        .patch(&own, withheld)
        .await
        .expect_error(409, "INVALID_STATE");
    let stays = preview(&buyer, &asset).await.expect(200);
    assert_eq!(stays.at("/data/answer_value"), &goals);
    let privacy = json!({"min_group_size": 20, "privacy_unit_column": "matches"});
    client
        .patch(&own, json!({"sql_logic": sql, "privacy": privacy}))
        .await
        .expect(200);
    let changed = preview(&buyer, &asset).await.expect(200);
    assert_eq!(changed.at("/data/answer_value"), &goals);
    // How strict it is asks no source.
    client
        .patch(&own, json!({"privacy": strict}))
        .await
        .expect(200);
    preview(&buyer, &asset)
        .await
        .expect_error(404, "PREVIEW_NOT_AVAILABLE");
    let test = format!("{own}/test");
    let body = json!({"params": {"team": "Ajax"}});
    client
        .post(&test, body.clone())
        .await
        .expect_error(403, "PRIVACY_THRESHOLD");
    preview(&buyer, &asset)
        .await
        .expect_error(404, "PREVIEW_NOT_AVAILABLE");

    let privacy = json!({"min_group_size": 10, "privacy_unit_column": "matches"});
    client
        .patch(&own, json!({"privacy": privacy}))
        .await
        .expect(200);
    client.post(&test, body).await.expect(200);
    let after = preview(&buyer, &asset).await.expect(200);
    assert_eq!(after.at("/data/answer_value"), &goals);
}

/// Rows of a hundred kilobytes are sold and not shown, and of smaller ones as many as a preview may have; the same holds for an asset's result.
#[tokio::test]
async fn a_preview_is_small() {
    let sql = "CREATE TABLE large (id INTEGER PRIMARY KEY, body TEXT NOT NULL); \
        CREATE TABLE medium (id INTEGER PRIMARY KEY, body TEXT NOT NULL); \
        WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 5) \
        INSERT INTO large SELECT i, i || ' ' || hex(zeroblob(51200)) FROM n; \
        INSERT INTO medium SELECT id, substr(body, 1, 30000) FROM large";
    let seller = host().await.company(&unique("verbose")).await;
    let connection = seller.sqlite("verbose.db", sqlite_file(sql).await).await;
    let buyer = host().await.buyer(&unique("looker"), 10).await;
    let published = async |table: &str| {
        let endpoint = json!({"slug": table, "source": {"table": table}, "fields": [{"name": "id"}, {"name": "body"}]});
        let endpoint = seller.endpoint(&connection, endpoint).await;
        seller.publish(&endpoint, 1).await;
        endpoint
    };
    let large = published("large").await;
    let hidden = async |product: &str| {
        preview(&buyer, product)
            .await
            .expect_error(404, "PREVIEW_NOT_AVAILABLE");
        assert_eq!(is_on_show(&buyer, product).await, false);
    };
    hidden(&large).await;
    let own = seller.path(&format!("/endpoints/{large}"));
    let tested = seller.client.get(&format!("{own}/test")).await.expect(200);
    assert_eq!(tested.at("/data/row_count"), 5);
    hidden(&large).await;
    let page = seller.client.get(&format!("{own}/execute")).await;
    assert_eq!(page.expect(200).at("/data/service/pagination/returned"), 5);

    let medium = published("medium").await;
    let shown = preview(&buyer, &medium).await.expect(200);
    let row = |id: i64| json!({"id": id, "body": format!("{id} {}", "0".repeat(29_998))});
    assert!(shown.at("/data/response/data") == &json!([row(1), row(2)]));
    assert_eq!(is_on_show(&buyer, &medium).await, true);

    let of_text = |table: &str| {
        let sql = format!("SELECT body FROM {table} WHERE id = 1");
        json!({"slug": format!("{table}-text"), "result_type": "string", "sql_logic": sql})
    };
    let text = seller.asset(&connection, of_text("large")).await;
    seller.publish(&text, 1).await;
    hidden(&text).await;
    seller.execute(&text, json!({})).await.expect(200);
    hidden(&text).await;
    let text = seller.asset(&connection, of_text("medium")).await;
    seller.publish(&text, 1).await;
    let shown = preview(&buyer, &text).await.expect(200);
    assert_eq!(shown.text("/data/answer_value").len(), 30_000);
}

/// A chart may be without a row: one of too few, or of nobody, is sold, withheld from whoever asks, and shows nothing until there are enough. A number that
/// is withheld is not sold.
#[tokio::test]
async fn a_chart_of_too_few_is_sold_and_not_shown() {
    let sql = "CREATE TABLE visits (region TEXT, spent INTEGER, people INTEGER); \
        CREATE TABLE few (region TEXT, spent INTEGER, people INTEGER); INSERT INTO few VALUES ('north', 3, 2), ('south', 4, 1)";
    let seller = host().await.company(&unique("crowds")).await;
    let connection = seller.sqlite("visits.db", sqlite_file(sql).await).await;
    let buyer = host().await.buyer(&unique("looker"), 10).await;
    let privacy = json!({"min_group_size": 5, "privacy_unit_column": "people"});
    for table in ["visits", "few"] {
        let chart = json!({"asset_type": "VISUALIZATION", "result_type": "chart", "privacy": privacy, "visualization": {"y": "spent"},
            "sql_logic": format!("SELECT region, spent, people FROM {table}")});
        let chart = seller.asset(&connection, chart).await;
        seller.publish(&chart, 1).await;
        preview(&buyer, &chart)
            .await
            .expect_error(404, "PREVIEW_NOT_AVAILABLE");
        assert_eq!(is_on_show(&buyer, &chart).await, false);
        let told = buyer.execute(&chart, json!({})).await;
        told.expect_error(403, "PRIVACY_THRESHOLD");

        // What would fail with more of them fails now.
        let own = seller.path(&format!("/assets/{chart}"));
        let wrong = json!({"visualization": {"y": "earned"}});
        let refused = seller.client.patch(&own, wrong).await;
        refused.expect_error(409, "INVALID_STATE");

        let number = json!({"privacy": privacy, "sql_logic": format!("SELECT sum(spent) AS spent, count(*) AS people FROM {table}")});
        let number = seller.asset(&connection, number).await;
        let path = seller.path(&format!("/assets/{number}"));
        let price = json!({"price_credits": 1});
        let prices = format!("{path}/prices");
        seller.client.post(&prices, price).await.expect(201);
        let publish = format!("{path}/publish");
        let refused = seller.client.post(&publish, json!({})).await;
        let refused = refused.expect_error(409, "INVALID_STATE");
        let message = refused.text("/error/message");
        assert!(message.contains("when the source has enough"), "{message}");
    }
    // What was held for it is let go of a moment later.
    let (left, held) = buyer.credits().await;
    assert_eq!(left + held, 10);
}
