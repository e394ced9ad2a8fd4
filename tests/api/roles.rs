//! Who may do what with what is sold: analytics are a data scientist's, sources, prices and the market a data engineer's.

use reqwest::Method;
use serde_json::json;
use souk_tests::Answer;

use crate::{league, unique};

/// Role 2 changes a published asset, which is tested first; neither its price, nor whether it is on the market, nor what pages are read from.
#[tokio::test]
async fn a_data_scientist_changes_analytics_and_nothing_else_that_is_sold() {
    let league = league().await;
    let seller = &league.seller;
    let asset = league.total_goals(2).await;
    let (endpoint, _) = league.matches(3).await;
    let key = json!({"name": unique("scientist"), "role_id": 2});
    let key = seller.client.post(&seller.path("/api-keys"), key).await;
    let scientist = seller.client.with_key(&key.expect(201).text("/data/key"));

    let asset = seller.path(&format!("/assets/{asset}"));
    let fewer = "SELECT sum(goals) AS goals FROM matches WHERE team = :team AND goals > 1";
    let change = json!({"sql_logic": fewer, "price_credits": 9});
    let changed = scientist.patch(&asset, change).await.expect(200);
    assert_eq!(changed.at("/data/sql_logic"), fewer);
    assert_eq!(changed.at("/data/status"), "published");
    assert_eq!(changed.at("/data/price_credits"), 2);
    let broken = json!({"sql_logic": "SELECT sum(nope) AS goals FROM matches WHERE team = :team"});
    let broken = scientist.patch(&asset, broken).await;
    broken.expect_error(409, "INVALID_STATE");

    let endpoint = seller.path(&format!("/endpoints/{endpoint}"));
    let connection = seller.path(&format!("/connections/{}", league.connection));
    for (method, path, body) in [
        (Method::POST, format!("{asset}/unpublish"), json!({})),
        (Method::POST, format!("{asset}/publish"), json!({})),
        (
            Method::POST,
            format!("{asset}/prices"),
            json!({"price_credits": 9}),
        ),
        (
            Method::PATCH,
            endpoint.clone(),
            json!({"fields": [{"name": "secret"}]}),
        ),
        (Method::POST, format!("{endpoint}/publish"), json!({})),
        (Method::PATCH, connection, json!({"name": "mine"})),
    ] {
        let request = scientist.request(method, &path).json(&body);
        let refused = Answer::of(request).await;
        let refused = refused.expect_error(403, "INSUFFICIENT_ROLE");
        assert_eq!(refused.at("/error/details/required_role"), 3, "{path}");
    }
}
