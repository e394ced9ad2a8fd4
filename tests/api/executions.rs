//! Executing an asset: the result, the charge, who pays, and what retrying costs.

use serde_json::json;

use crate::{host, league, unique};

/// The buyer gets the number and nothing else, and pays once; the seller's own calls are free.
#[tokio::test]
async fn a_buyer_pays_for_an_execution_and_the_owner_does_not() {
    let league = league().await;
    let asset = league.total_goals(3).await;
    let buyer = host().await.buyer(&unique("payer"), 10).await;

    let paid = buyer
        .execute(&asset, json!({"team": "Benfica"}))
        .await
        .expect(200);
    // 84 matches of Benfica: 1, 4, 7 … 250; goals = i % 5.
    let expected: i64 = (1..=250).filter(|i| i % 3 == 1).map(|i| i % 5).sum();
    assert_eq!(paid.at("/data/answer_value"), expected);
    assert_eq!(paid.at("/meta/credits_used"), 3);
    assert_eq!(paid.body["meta"].get("billing_reason"), None);
    assert!(paid.at("/meta/execution_time_ms").is_u64());
    assert!(paid.text("/meta/data_freshness").ends_with('Z'));
    assert_eq!(buyer.balance().await, 7);

    let own = league.seller.execute(&asset, json!({})).await.expect(200);
    assert_eq!(own.at("/meta/credits_used"), 0);
    assert_eq!(own.at("/meta/billing_reason"), "owner");
    assert_eq!(league.seller.balance().await, 0);
}

/// Whoever pays nothing reads why.
#[tokio::test]
async fn a_free_answer_says_why() {
    let league = league().await;
    let asset = league.total_goals(0).await;
    let buyer = host().await.buyer(&unique("guest"), 1).await;
    let test = league.seller.path(&format!("/assets/{asset}/test"));
    let preview = format!("/marketplace/products/{asset}/preview");
    for (answer, reason) in [
        (buyer.execute(&asset, json!({})).await, "free"),
        (league.seller.client.post(&test, json!({})).await, "test"),
        (buyer.client.get(&preview).await, "preview"),
    ] {
        assert_eq!(answer.expect(200).at("/meta/billing_reason"), reason);
    }
    assert_eq!(buyer.balance().await, 1);
}

/// The path may name the asset's owner or the caller; a third company is as unknown as any.
#[tokio::test]
async fn the_path_names_the_caller_or_the_owner() {
    let league = league().await;
    let asset = league.total_goals(1).await;
    let buyer = host().await.buyer(&unique("path"), 10).await;
    let third = host().await.company(&unique("third")).await;
    for verb in ["execute", "process"] {
        buyer
            .client
            .post(
                &league.seller.path(&format!("/assets/{asset}/{verb}")),
                json!({}),
            )
            .await
            .expect(200);
        buyer
            .client
            .post(&buyer.path(&format!("/assets/{asset}/{verb}")), json!({}))
            .await
            .expect(200);
        let refusal = buyer
            .client
            .post(&third.path(&format!("/assets/{asset}/{verb}")), json!({}))
            .await;
        refusal.expect_error(404, "ASSET_NOT_FOUND");
    }
    assert_eq!(buyer.balance().await, 6);
}

/// By handle and slug, with POST, and with GET in either spelling of a parameter.
#[tokio::test]
async fn analyze_runs_by_handle_and_slug() {
    let league = league().await;
    let asset = league.total_goals(1).await;
    let slug = league
        .seller
        .client
        .get(&league.seller.path(&format!("/assets/{asset}")))
        .await
        .expect(200)
        .text("/data/slug");
    let buyer = host().await.buyer(&unique("analyze"), 10).await;
    let path = format!("/analyze/{}/assets/{slug}", league.seller.handle);
    let posted = buyer
        .client
        .post(&path, json!({"params": {"team": "Celtic"}}))
        .await
        .expect(200);
    for query in ["team=Celtic", "params.team=Celtic"] {
        let path = format!("{path}?{query}");
        let got = buyer.client.get(&path).await.expect(200);
        assert_eq!(
            got.at("/data/answer_value"),
            posted.at("/data/answer_value")
        );
    }
    let default = buyer.client.get(&path).await.expect(200);
    assert_ne!(
        default.at("/data/answer_value"),
        posted.at("/data/answer_value")
    );
    let both = format!("{path}?team=Celtic&params.team=Celtic");
    buyer
        .client
        .get(&both)
        .await
        .expect_error(400, "INVALID_PARAMETER");
    assert_eq!(buyer.balance().await, 6);
}

/// Whoever writes parameters beside `params` does not pay for the answer of other ones. All else that nobody knows is ignored.
#[tokio::test]
async fn parameters_beside_params_are_refused_and_free() {
    let league = league().await;
    let asset = league.total_goals(1).await;
    let buyer = host().await.buyer(&unique("beside"), 10).await;
    let path = buyer.path(&format!("/assets/{asset}/execute"));
    for (body, field) in [
        (json!({"team": "Celtic"}), "team"),
        (json!({"params": {}, "team": "Celtic"}), "team"),
        (json!({"param": {"team": "Celtic"}}), "param"),
        (json!({"Params": {"team": "Celtic"}}), "Params"),
        (json!({"parameters": {"team": "Celtic"}}), "parameters"),
    ] {
        let refused = buyer.client.post(&path, body).await;
        assert_eq!(
            *refused.at("/error/details/errors"),
            json!([{
                "field": field, "code": "misplaced",
                "message": "parameters are sent in params: {\"params\": {\"team\": …}}",
            }])
        );
        refused.expect_error(400, "INVALID_PARAMETER");
    }
    assert_eq!(buyer.balance().await, 10);
    let more = json!({"params": {"team": "Celtic"}, "team": "Ajax", "trace": 7});
    buyer.client.post(&path, more).await.expect(200);
    buyer
        .client
        .post(&path, json!({"trace": 7}))
        .await
        .expect(200);
    assert_eq!(buyer.balance().await, 8);
}

/// Nor does whoever sells it believe to have tried, or published, what was not asked for.
#[tokio::test]
async fn parameters_beside_params_are_refused_in_tests_too() {
    let league = league().await;
    let asset = league.total_goals(1).await;
    let seller = &league.seller;
    for verb in ["test", "publish"] {
        let path = seller.path(&format!("/assets/{asset}/{verb}"));
        for (body, field) in [
            (json!({"team": "Celtic"}), "team"),
            (json!({"parameters": {"team": "Celtic"}}), "parameters"),
        ] {
            let refused = seller.client.post(&path, body).await;
            let refused = refused.expect_error(400, "INVALID_PARAMETER");
            assert_eq!(
                *refused.at("/error/details/errors"),
                json!([{
                    "field": field, "code": "misplaced",
                    "message": "parameters are sent in params: {\"params\": {\"team\": …}}",
                }]),
                "{verb}"
            );
        }
        for body in [json!({"params": {"team": "Celtic"}}), json!({"limit": 5})] {
            seller.client.post(&path, body).await.expect(200);
        }
    }
}

/// A default is taken where a parameter is left out; null is none, and costs nothing.
#[tokio::test]
async fn null_takes_the_place_of_no_default() {
    let league = league().await;
    let asset = league.total_goals(1).await;
    let buyer = host().await.buyer(&unique("nulls"), 10).await;
    let refused = buyer.execute(&asset, json!({"team": null})).await;
    let refused = refused.expect_error(400, "INVALID_PARAMETER");
    assert_eq!(refused.at("/error/details/errors/0/field"), "params.team");
    assert_eq!(buyer.balance().await, 10);
    buyer.execute(&asset, json!({})).await.expect(200);
    assert_eq!(buyer.balance().await, 9);
}

/// Without the credits nothing runs and nothing is charged.
#[tokio::test]
async fn too_few_credits_is_402() {
    let league = league().await;
    let asset = league.total_goals(5).await;
    let buyer = host().await.buyer(&unique("poor"), 4).await;
    let refusal = buyer
        .execute(&asset, json!({}))
        .await
        .expect_error(402, "INSUFFICIENT_CREDITS");
    assert_eq!(refusal.at("/error/details/required_credits"), 5);
    assert_eq!(refusal.at("/error/details/balance_credits"), 4);
    assert_eq!(buyer.balance().await, 4);
    // And it is told where to buy some: a route that there is.
    let said = refusal.text("/error/message");
    let route = "/companies/{company_id}/credits/top-ups";
    assert!(said.contains(&format!("POST {route}")), "{said}");
    let document = buyer.client.get("/openapi.json").await.expect(200);
    assert!(document.body["paths"][route]["post"].is_object());
}

/// Twenty calls race for ten credits: ten are answered, ten are refused, none overspends.
#[tokio::test]
async fn concurrent_calls_never_overspend() {
    let league = league().await;
    let asset = league.total_goals(1).await;
    let buyer = host().await.buyer(&unique("race"), 10).await;
    let calls = (0..20).map(|_| {
        let (buyer, asset) = (buyer.clone(), asset.clone());
        tokio::spawn(async move { buyer.execute(&asset, json!({})).await.status.as_u16() })
    });
    let mut statuses = Vec::new();
    for call in calls.collect::<Vec<_>>() {
        statuses.push(call.await.expect("no panic"));
    }
    assert_eq!(
        statuses.iter().filter(|status| **status == 200).count(),
        10,
        "{statuses:?}"
    );
    assert_eq!(
        statuses.iter().filter(|status| **status == 402).count(),
        10,
        "{statuses:?}"
    );
    assert_eq!(buyer.balance().await, 0);
}

/// Retrying with the same idempotency key returns the first answer and charges once.
#[tokio::test]
async fn a_retry_with_the_same_key_charges_once() {
    let league = league().await;
    let asset = league.total_goals(2).await;
    let buyer = host().await.buyer(&unique("retry"), 10).await;
    let path = buyer.path(&format!("/assets/{asset}/execute"));
    let header = [("idempotency-key", "order-1")];
    let first = buyer
        .client
        .post_with(&path, &header, json!({"params": {"team": "Ajax"}}))
        .await
        .expect(200);
    let again = buyer
        .client
        .post_with(&path, &header, json!({"params": {"team": "Ajax"}}))
        .await
        .expect(200);
    assert_eq!(first.body, again.body);
    assert_eq!(again.header("idempotency-replayed"), "true");
    buyer
        .client
        .post_with(&path, &header, json!({"params": {"team": "Celtic"}}))
        .await
        .expect_error(422, "IDEMPOTENCY_KEY_REUSED");
    assert_eq!(buyer.balance().await, 8);
}

/// A price that has risen is not paid by whoever says what it would pay.
#[tokio::test]
async fn nobody_pays_more_than_it_says() {
    let league = league().await;
    let asset = league.total_goals(3).await;
    let buyer = host().await.buyer(&unique("careful"), 10).await;
    let path = buyer.path(&format!("/assets/{asset}/execute"));
    let up_to = async |most: &str| {
        let body = json!({"params": {"team": "Ajax"}});
        buyer
            .client
            .post_with(&path, &[("x-max-credits", most)], body)
            .await
    };
    let refused = up_to("2").await.expect_error(409, "PRICE_ABOVE_MAX");
    let details = refused.at("/error/details");
    assert_eq!(
        [
            &details["price_credits"],
            &details["max_credits"],
            &details["charged"]
        ],
        [&json!(3), &json!(2), &json!(false)]
    );
    for wrong in ["", "-1", "1.5", "many", "3, 3"] {
        up_to(wrong).await.expect_error(400, "VALIDATION_ERROR");
    }
    assert_eq!(buyer.balance().await, 10);
    up_to("3").await.expect(200);
    assert_eq!(buyer.balance().await, 7);
    let prices = league.seller.path(&format!("/assets/{asset}/prices"));
    let dearer = league
        .seller
        .client
        .post(&prices, json!({"price_credits": 7}));
    dearer.await.expect(201);
    up_to("3").await.expect_error(409, "PRICE_ABOVE_MAX");
    assert_eq!(buyer.balance().await, 7);
}

/// A body that is no JSON is not executed and costs nothing, also when what is wrong with it stands where nobody looks.
#[tokio::test]
async fn a_body_that_is_no_text_costs_nothing() {
    let league = league().await;
    let asset = league.total_goals(3).await;
    let buyer = host().await.buyer(&unique("garbled"), 10).await;
    for ignored in [&b"\xff"[..], br"\ud800", br"\udc00x"] {
        let body = [
            br#"{"params": {"team": "Benfica"}, "note": ""#,
            ignored,
            br#""}"#,
        ]
        .concat();
        let request = buyer
            .client
            .request(
                reqwest::Method::POST,
                &buyer.path(&format!("/assets/{asset}/execute")),
            )
            .header("content-type", "application/json")
            .body(body);
        souk_tests::Answer::of(request)
            .await
            .expect_error(400, "INVALID_REQUEST");
    }
    assert_eq!(buyer.balance().await, 10);
}

/// Parameters are bound: a value is never SQL.
#[tokio::test]
async fn parameters_are_bound_never_pasted() {
    let league = league().await;
    let asset = league.total_goals(1).await;
    let nasty = [
        "'; DROP TABLE matches; --",
        "' OR '1'='1",
        ":team",
        "$1",
        "\\",
        "Ajax\u{0}",
    ];
    for team in nasty {
        let answer = league.seller.execute(&asset, json!({"team": team})).await;
        match team.contains('\u{0}') {
            // PostgreSQL has no NUL in text: the caller's value, the caller's fault.
            true => assert_eq!(answer.status.as_u16(), 400, "{}", answer.body),
            false => assert!(
                answer.expect(200).at("/data/answer_value").is_null(),
                "{team}"
            ),
        }
    }
    league
        .seller
        .execute(&asset, json!({"team": "Ajax"}))
        .await
        .expect(200);
    league
        .seller
        .execute(&asset, json!({"team": 7}))
        .await
        .expect_error(400, "INVALID_PARAMETER");
    league
        .seller
        .execute(&asset, json!({"city": "Lisbon"}))
        .await
        .expect_error(400, "INVALID_PARAMETER");
}

/// A statement must be one that begins as a query does, and is refused when it is saved. What writes nevertheless
/// is refused by its source: `sql.rs`.
#[tokio::test]
async fn what_is_no_query_is_refused_when_saved() {
    let league = league().await;
    let statements = [
        "DELETE FROM matches",
        "SELECT 1; SELECT 2",
        "COPY matches TO '/tmp/x'",
        "SET search_path = public",
        "",
    ];
    for sql in statements {
        let body = json!({"connection_id": league.connection, "asset_type": "CALCULATION", "name": "bad", "result_type": "number", "sql_logic": sql});
        let refusal = league
            .seller
            .client
            .post(&league.seller.path("/assets"), body)
            .await;
        assert_eq!(refusal.status.as_u16(), 400, "{sql}: {}", refusal.body);
    }
}

/// A draft is nobody else's business.
#[tokio::test]
async fn a_foreign_draft_is_not_found() {
    let league = league().await;
    let draft = league
        .seller
        .asset(&league.connection, json!({"sql_logic": "SELECT 1 AS one"}))
        .await;
    let buyer = host().await.buyer(&unique("curious"), 10).await;
    buyer
        .execute(&draft, json!({}))
        .await
        .expect_error(404, "ASSET_NOT_FOUND");
    buyer
        .execute("ast_doesnotexist", json!({}))
        .await
        .expect_error(404, "ASSET_NOT_FOUND");
    league.seller.execute(&draft, json!({})).await.expect(200);

    // Nor what its slug is, which parameters it takes, and what its id is.
    let slug = unique("takeover");
    let draft = json!({"slug": slug, "sql_logic": "SELECT :margin AS one", "parameters": [{"name": "margin", "type": "integer"}]});
    let draft = league.seller.asset(&league.connection, draft).await;
    let of = |slug: &str| format!("/analyze/{}/assets/{slug}", league.seller.handle);
    for body in [json!({}), json!({"margin": 1}), json!({"parameters": {}})] {
        let told = buyer.client.post(&of(&slug), body.clone()).await;
        let told = told.expect_error(404, "ASSET_NOT_FOUND");
        let unknown = buyer.client.post(&of("unknown"), body.clone()).await;
        let unknown = unknown.expect_error(404, "ASSET_NOT_FOUND");
        assert_eq!(told.at("/error/details/id"), &json!(slug));
        assert_eq!(
            told.text("/error/message").replace(&slug, "unknown"),
            unknown.text("/error/message")
        );
        buyer
            .execute(&draft, body)
            .await
            .expect_error(404, "ASSET_NOT_FOUND");
    }
}

/// The SQL is the seller's own: a buyer never sees it.
#[tokio::test]
async fn sql_is_for_the_owner_only() {
    let league = league().await;
    let asset = league.total_goals(1).await;
    let buyer = host().await.buyer(&unique("reader"), 1).await;
    let own = league
        .seller
        .client
        .get(&league.seller.path(&format!("/assets/{asset}")))
        .await
        .expect(200);
    assert!(own.body.to_string().contains("SELECT sum(goals)"));
    let foreign = buyer
        .client
        .get(&buyer.path(&format!("/assets/{asset}")))
        .await
        .expect(200);
    assert!(
        !foreign.body.to_string().contains("SELECT"),
        "{}",
        foreign.body
    );
}

/// A chart is a Vega-Lite specification that the host built from columns.
#[tokio::test]
async fn a_visualization_is_vega_lite_built_by_the_host() {
    let league = league().await;
    let asset = league
        .seller
        .asset(
            &league.connection,
            json!({"asset_type": "VISUALIZATION", "result_type": "chart", "name": "Goals by team",
                "sql_logic": "SELECT team, sum(goals) AS goals FROM matches GROUP BY team ORDER BY team",
                "visualization": {"mark": "bar", "x": "team", "y": "goals", "title": "Goals"}}),
        )
        .await;
    let answer = league.seller.execute(&asset, json!({})).await.expect(200);
    assert_eq!(answer.at("/data/visualization/format"), "vega-lite");
    let values = answer
        .at("/data/visualization/spec/data/values")
        .as_array()
        .expect("inline data")
        .clone();
    assert_eq!(values.len(), 3, "{values:?}");
    assert_eq!(values[0]["team"], "Ajax");
    assert!(answer.at("/data/visualization/spec/data/url").is_null());
}

/// A number of many rows is refused with what to do about it.
#[tokio::test]
async fn a_number_of_many_rows_says_what_to_do() {
    let league = league().await;
    let asset = json!({"slug": unique("many"), "sql_logic": "SELECT goals FROM matches"});
    let asset = league.seller.asset(&league.connection, asset).await;
    let refused = league.seller.execute(&asset, json!({})).await;
    let message = refused.text("/error/message");
    let expected = "the result has more than one row, or is larger than a number may be (";
    assert!(message.starts_with(expected), "{message}");
    assert!(
        message.ends_with(": aggregate the rows, or take the first one only"),
        "{message}"
    );
    refused.expect_error(502, "SOURCE_ERROR");
}

/// A forecast has a point for every step of the horizon, inside its interval.
#[tokio::test]
async fn a_prediction_has_points_inside_their_intervals() {
    let league = league().await;
    let asset = league
        .seller
        .asset(
            &league.connection,
            json!({"asset_type": "PREDICTION", "result_type": "prediction", "name": "Goals to come",
                "sql_logic": "SELECT played_on, goals + id * 0.1 AS goals FROM matches ORDER BY played_on",
                "prediction": {"time_column": "played_on", "value_column": "goals", "frequency": "day", "horizon": 7, "level": 0.9}}),
        )
        .await;
    let answer = league.seller.execute(&asset, json!({})).await.expect(200);
    let points = answer
        .at("/data/prediction/points")
        .as_array()
        .expect("points")
        .clone();
    assert_eq!(points.len(), 7, "{}", answer.body);
    for point in &points {
        let [lower, value, upper] =
            ["lower", "value", "upper"].map(|name| point[name].as_f64().expect("a number"));
        assert!(lower <= value && value <= upper, "{point}");
        assert!(
            (15.0..45.0).contains(&value),
            "the trend goes on from about 25: {point}"
        );
    }
}
