//! Previews follow the product: what its seller has withdrawn is not shown, and what a test shows is.

use serde_json::{Value, json};
use souk_tests::{Answer, Company};

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
    preview(&buyer, &endpoint)
        .await
        .expect_error(404, "PREVIEW_NOT_AVAILABLE");
    client
        .post(&format!("{own}/publish"), json!({}))
        .await
        .expect(200);
    let published = preview(&buyer, &endpoint).await.expect(200);
    assert_eq!(published.at("/data/response/data/0/id"), 250);
}

/// A new statement, and a new privacy threshold, take an asset's preview away; a test that the threshold stops makes none.
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
    let privacy = json!({"min_group_size": 1000, "privacy_unit_column": "matches"});
    client
        .patch(&own, json!({"sql_logic": sql, "privacy": privacy}))
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
