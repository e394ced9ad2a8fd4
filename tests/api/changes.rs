//! A change holds from the next request: what was cached of an asset, an endpoint or a connection is not served again.

use serde_json::json;
use souk_tests::PgCluster;

use crate::{LEAGUE, host, league, unique};

/// Another statement, other parameters: the next run is the new asset's. One that is not published any more is for those who bought it.
#[tokio::test]
async fn a_changed_asset_runs_as_it_is_now() {
    let league = league().await;
    let seller = &league.seller;
    let asset = league.total_goals(1).await;
    let path = seller.path(&format!("/assets/{asset}"));
    let buyer = host().await.buyer(&unique("follows"), 10).await;
    buyer.execute(&asset, json!({})).await.expect(200);

    let change = json!({"sql_logic": "SELECT min(id) FROM matches WHERE id > :least", "parameters": [{"name": "least", "type": "integer", "default": 41}]});
    seller.client.patch(&path, change).await.expect(200);
    let (ran, shown) = tokio::join!(
        buyer.execute(&asset, json!({"least": 7})),
        seller.client.get(&path)
    );
    assert_eq!(ran.expect(200).at("/data/answer_value"), 8);
    assert_eq!(shown.expect(200).at("/data/parameters/0/name"), "least");
    buyer
        .execute(&asset, json!({"team": "Ajax"}))
        .await
        .expect_error(400, "INVALID_PARAMETER");

    let unpublish = format!("{path}/unpublish");
    seller.client.post(&unpublish, json!({})).await.expect(200);
    let stranger = host().await.buyer(&unique("late"), 10).await;
    stranger
        .execute(&asset, json!({}))
        .await
        .expect_error(404, "ASSET_NOT_FOUND");
    buyer.execute(&asset, json!({})).await.expect(200);
    assert_eq!((buyer.balance().await, stranger.balance().await), (7, 10));
}

/// `GET …/process` takes its parameters from the query and costs what an execution costs.
#[tokio::test]
async fn an_asset_is_processed_by_its_query() {
    let league = league().await;
    let asset = league.total_goals(2).await;
    let buyer = host().await.buyer(&unique("by-query"), 10).await;
    let executed = buyer.execute(&asset, json!({"team": "Celtic"})).await;
    let executed = executed.expect(200);
    for query in ["team=Celtic", "params.team=Celtic"] {
        let path = buyer.path(&format!("/assets/{asset}/process?{query}"));
        let processed = buyer.client.get(&path).await.expect(200);
        assert_eq!(
            processed.at("/data/answer_value"),
            executed.at("/data/answer_value")
        );
        assert_eq!(processed.at("/meta/credits_used"), 2);
    }
    assert_eq!(buyer.balance().await, 4);
}

/// A field that is not published any more does not leave any more, though the endpoint's pages were cached.
#[tokio::test]
async fn a_changed_endpoint_shows_what_it_publishes_now() {
    let league = league().await;
    let seller = &league.seller;
    let (endpoint, slug) = league.matches(1).await;
    let path = seller.path(&format!("/endpoints/{endpoint}"));
    let page = format!("{path}/execute?limit=1");
    let row = json!([{"id": 1, "team": "Benfica", "scored": 1, "played_on": "2026-01-02"}]);
    let before = seller.client.get(&page).await.expect(200);
    assert_eq!(before.at("/data/response/data"), &row);

    let change = json!({"fields": [{"name": "team", "alias": "club"}]});
    seller.client.patch(&path, change).await.expect(200);
    let after = seller.client.get(&page).await.expect(200);
    assert_eq!(
        after.at("/data/response/data"),
        &json!([{"club": "Benfica"}])
    );
    let shown = seller.client.get(&path).await.expect(200);
    assert_eq!(shown.at("/data/slug"), &json!(slug));
    assert_eq!(shown.at("/data/fields/0/alias"), "club");
}

/// A connection that is pointed elsewhere is read there from the next run on, although a session to where it was is open.
#[tokio::test]
async fn a_changed_connection_is_read_where_it_points_now() {
    let league = league().await;
    let cluster = PgCluster::shared().await;
    let asset = league.total_goals(1).await;
    let buyer = host().await.buyer(&unique("moves"), 10).await;
    let before = buyer.execute(&asset, json!({})).await.expect(200);
    assert_ne!(before.at("/data/answer_value"), 100);
    let elsewhere = cluster
        .database(&format!(
            "{LEAGUE} DELETE FROM matches WHERE id > 3; UPDATE matches SET goals = 100;"
        ))
        .await;
    let path = league
        .seller
        .path(&format!("/connections/{}", league.connection));
    let moved = json!({"database": elsewhere});
    league.seller.client.patch(&path, moved).await.expect(200);
    let after = buyer.execute(&asset, json!({})).await.expect(200);
    assert_eq!(after.at("/data/answer_value"), 100);
}
