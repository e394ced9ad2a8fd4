//! Alerts as they are written and read. Nothing is evaluated here: `tests/api/alerts.rs` has what becomes of one.

use crate::world::{Answer, Company, World, request};
use axum::body::Body;
use http::Method;
use http_body_util::BodyExt;
use serde_json::{Value, json};
use souk_domain::products::{ResultType, SourceKind};
use tower::ServiceExt;

fn path(company: &Company) -> String {
    company.path(&format!("/users/{}/alerts", company.user_id))
}

/// A published asset that needs no connector to be understood, with a parameter.
async fn asset(world: &World, seller: &Company, result_type: ResultType) -> String {
    let asset = world.asset_with(seller, |asset| {
        asset.details.source_kind = SourceKind::Path;
        asset.details.source = "/goals".into();
        asset.details.result_type = result_type;
        asset.details.parameters =
            json!([{"name": "team", "type": "string", "required": false}]).to_string();
    });
    asset.await
}

async fn watch(world: &World, company: &Company, body: Value) -> Answer {
    world.post(&company.key, &path(company), body).await
}

async fn ids(world: &World, company: &Company, path: &str) -> Vec<String> {
    let listed = world.get(&company.key, path).await.expect(200);
    let items = listed.at("/data").as_array().unwrap();
    assert_eq!(listed.at("/meta/total"), items.len(), "{path}");
    let ids = items
        .iter()
        .map(|item| item["id"].as_str().unwrap().to_owned());
    ids.collect()
}

/// What the specification shows is enough for an alert: it watches for changes, hourly, with a bound on what it spends.
#[tokio::test]
async fn an_asset_is_enough_for_an_alert() {
    let world = World::new().await;
    let (seller, acme) = (world.company("seller").await, world.company("acme").await);
    let asset = asset(&world, &seller, ResultType::Number).await;
    let body = json!({"asset_id": asset, "user_id": acme.user_id, "company_id": acme.id, "is_active": true});
    let made = watch(&world, &acme, body).await.expect(201);
    let id = made.text("/data/id");
    assert_eq!(made.header("location"), acme.path(&format!("/alerts/{id}")));
    let shown = world
        .get(&acme.key, made.header("location"))
        .await
        .expect(200);
    assert_eq!(shown.at("/data"), made.at("/data"));
    let mut data = made.at("/data").clone();
    for volatile in [
        "id",
        "alert_id",
        "created_at",
        "updated_at",
        "next_check_at",
    ] {
        let value = data.as_object_mut().unwrap().remove(volatile);
        assert!(value.is_some_and(|value| value.is_string()), "{volatile}");
    }
    assert_eq!(
        data,
        json!({
            "asset_id": asset, "company_id": acme.id, "user_id": acme.user_id, "is_active": true, "name": "an asset", "params": {},
            "condition": {"operator": "changed", "threshold": null, "field": null},
            "check_interval_seconds": 3600, "consecutive_breaches": 1, "rearm_seconds": 0, "webhook_ids": [],
            "max_credits_per_day": 100, "notify_by_mail": false, "credits_spent_today": 0, "state": "unknown", "breaches": 0, "last_value": null,
            "last_checked_at": null, "last_triggered_at": null, "last_error": null
        })
    );
    let summary = world.get(&acme.key, &acme.path("/summary")).await;
    assert_eq!(summary.expect(200).at("/data/alerts"), 1);
}

/// An alert is changed, paused, woken, found by its user, its asset and its state, and gone when it is deleted.
#[tokio::test]
async fn an_alert_lives() {
    let world = World::new().await;
    let (seller, acme) = (world.company("seller").await, world.company("acme").await);
    let numbers = asset(&world, &seller, ResultType::Number).await;
    let texts = asset(&world, &seller, ResultType::String).await;
    let hook = json!({"url": "https://93.184.216.34/souk"});
    let hook = world
        .post(&acme.key, &acme.path("/webhooks"), hook)
        .await
        .expect(201)
        .text("/data/id");
    let body = json!({
        "asset_id": numbers, "name": "goals", "params": {"team": "Ajax"}, "condition": {"operator": "gt", "threshold": 12.5},
        "check_interval_seconds": 60, "consecutive_breaches": 3, "rearm_seconds": 600, "webhook_ids": [hook, hook],
        "max_credits_per_day": 7
    });
    let first = watch(&world, &acme, body).await.expect(201);
    assert_eq!(first.at("/data/params"), &json!({"team": "Ajax"}));
    assert_eq!(first.at("/data/webhook_ids"), &json!([hook]));
    let first = first.text("/data/id");
    let body = json!({"asset_id": texts, "condition": {"operator": "eq", "threshold": "red"}, "is_active": false});
    let second = watch(&world, &acme, body).await.expect(201);
    assert_eq!(
        [
            second.at("/data/state"),
            second.at("/data/next_check_at"),
            second.at("/data/condition/threshold")
        ],
        [&json!("paused"), &Value::Null, &json!("red")]
    );
    let second = second.text("/data/id");

    let all = path(&acme);
    assert_eq!(
        ids(&world, &acme, &all).await,
        [second.as_str(), first.as_str()]
    );
    for (query, expected) in [
        ("is_active=true", &first),
        ("state=unknown", &first),
        ("state=paused", &second),
        (&*format!("asset_id={texts}"), &second),
    ] {
        let found = ids(&world, &acme, &format!("{all}?{query}")).await;
        assert_eq!(found, [expected.as_str()], "{query}");
    }
    let none = ids(&world, &acme, &format!("{all}?state=paused&is_active=true")).await;
    assert_eq!(none, Vec::<String>::new());
    let of_asset = acme.path(&format!("/assets/{numbers}/alerts"));
    assert_eq!(ids(&world, &acme, &of_asset).await, [first.as_str()]);
    // The seller does not see who watches.
    let of_asset = seller.path(&format!("/assets/{numbers}/alerts"));
    assert_eq!(ids(&world, &seller, &of_asset).await, Vec::<String>::new());

    let one = acme.path(&format!("/alerts/{first}"));
    let change = json!({"name": "renamed", "webhook_ids": null, "max_credits_per_day": 0, "check_interval_seconds": 61});
    let changed = world.patch(&acme.key, &one, change).await.expect(200);
    assert_eq!(
        [
            changed.at("/data/name"),
            changed.at("/data/webhook_ids"),
            changed.at("/data/params"),
            changed.at("/data/condition/threshold"),
        ],
        [
            &json!("renamed"),
            &json!([]),
            &json!({"team": "Ajax"}),
            &json!(12.5)
        ]
    );
    let change = json!({"condition": {"operator": "anomaly"}, "params": null, "is_active": false});
    let changed = world.patch(&acme.key, &one, change).await.expect(200);
    assert_eq!(
        [
            changed.at("/data/condition/threshold"),
            changed.at("/data/params"),
            changed.at("/data/state")
        ],
        [&json!(3.5), &json!({}), &json!("paused")]
    );
    let woken = world
        .patch(&acme.key, &one, json!({"is_active": true}))
        .await
        .expect(200);
    assert_eq!(woken.at("/data/state"), "unknown");
    assert!(woken.at("/data/next_check_at").is_string());
    let events = format!("{one}/events");
    assert_eq!(ids(&world, &acme, &events).await, Vec::<String>::new());

    world.delete(&acme.key, &one).await.expect(204);
    for gone in [&one, &events] {
        let answer = world.get(&acme.key, gone).await;
        answer.expect_error(404, "ALERT_NOT_FOUND");
    }
    world
        .delete(&acme.key, &one)
        .await
        .expect_error(404, "ALERT_NOT_FOUND");
    assert_eq!(ids(&world, &acme, &all).await, [second]);
}

/// A test is written for the webhooks that would be told: those that are named, whatever they want, or those that want it.
#[tokio::test]
async fn a_test_goes_to_whom_the_alert_tells() {
    let world = World::new().await;
    let acme = world.company("acme").await;
    let asset = asset(&world, &acme, ResultType::Number).await;
    let hook = async |types: Value| {
        let body = json!({"url": "https://93.184.216.34/souk", "event_types": types});
        let made = world.post(&acme.key, &acme.path("/webhooks"), body).await;
        made.expect(201).text("/data/id")
    };
    let (credits, alerts, all) = (
        hook(json!(["credits.low"])).await,
        hook(json!(["alert.triggered"])).await,
        hook(json!([])).await,
    );
    let deliveries = async |hook: &str| {
        let path = acme.path(&format!("/webhooks/{hook}/deliveries"));
        let found = world.get(&acme.key, &path).await.expect(200);
        found.at("/data").as_array().unwrap().clone()
    };
    let test = async |webhooks: Value| {
        let body = json!({"asset_id": asset, "webhook_ids": webhooks, "condition": {"operator": "gte", "threshold": 3}});
        let made = watch(&world, &acme, body).await.expect(201);
        let path = acme.path(&format!("/alerts/{}/test", made.text("/data/id")));
        let sent = world.post(&acme.key, &path, json!({})).await.expect(202);
        let sent = sent.at("/data/delivery_ids").as_array().unwrap().clone();
        (made.text("/data/id"), sent)
    };
    let (_, sent) = test(json!([])).await;
    assert_eq!(sent.len(), 2);
    assert_eq!(deliveries(&credits).await.len(), 0);
    assert_eq!(deliveries(&alerts).await.len(), 1);
    assert_eq!(deliveries(&all).await.len(), 1);
    let (alert, sent) = test(json!([credits])).await;
    assert_eq!(sent.len(), 1);
    let told = deliveries(&credits).await;
    assert_eq!(told[0]["id"], sent[0]);
    let payload = &told[0]["payload"];
    assert_eq!(payload["type"], "alert.triggered");
    let data = &payload["data"];
    assert_eq!(
        (&data["test"], &data["alert_id"], &data["threshold"]),
        (&json!(true), &json!(alert), &json!(3))
    );
    assert_eq!(deliveries(&all).await.len(), 1);
}

/// As in the `params` of a call, the numbers of an alert keep the digits that they were sent with: what is shown, what the bounds are held against, and
/// what counts as a change.
#[tokio::test]
async fn numbers_keep_their_digits() {
    let world = World::new().await;
    let (seller, acme) = (world.company("seller").await, world.company("acme").await);
    let asset = world.asset_with(&seller, |asset| {
        asset.details.source_kind = SourceKind::Path;
        asset.details.source = "/goals".into();
        asset.details.result_type = ResultType::Number;
        let parameters =
            json!([{"name": "x", "type": "number", "required": false, "maximum": 2.5}]);
        asset.details.parameters = parameters.to_string();
    });
    let asset = asset.await;
    // With a body as it stands, and the answer as it came: what reads them makes floats of their numbers.
    let send = async |method: Method, path: &str, body: String| {
        let request = request(method, &acme.key, path).header("content-type", "application/json");
        let request = request.body(Body::from(body)).unwrap();
        let answer = world.router.clone().oneshot(request).await.unwrap();
        let status = answer.status().as_u16();
        let bytes = answer.into_body().collect().await.unwrap().to_bytes();
        (status, String::from_utf8(bytes.to_vec()).unwrap())
    };
    let with = |x: &str| format!(r#"{{"asset_id": "{asset}", "params": {{"x": {x}}}}}"#);
    let (status, made) = send(Method::POST, &path(&acme), with("1.0000000000000000001")).await;
    assert_eq!(status, 201, "{made}");
    assert!(
        made.contains(r#""params":{"x":1.0000000000000000001}"#),
        "{made}"
    );
    // The float that is nearest to it is 2.5.
    let (status, refused) = send(Method::POST, &path(&acme), with("2.5000000000000000001")).await;
    assert_eq!(status, 400, "{refused}");
    assert!(
        refused.contains("params.x") && refused.contains("must not be greater than 2.5"),
        "{refused}"
    );
    let made: Value = serde_json::from_str(&made).unwrap();
    let one = acme.path(&format!("/alerts/{}", made["data"]["id"].as_str().unwrap()));
    for (x, shown) in [
        ("1.0000000000000000002", "1.0000000000000000002"),
        ("2.50", "2.5"),
        ("25e-1", "2.5"),
    ] {
        let body = format!(r#"{{"params": {{"x": {x}}}}}"#);
        let (status, changed) = send(Method::PATCH, &one, body).await;
        assert_eq!(status, 200, "{changed}");
        let expected = format!(r#""params":{{"x":{shown}}}"#);
        assert!(changed.contains(&expected), "{changed}");
    }
    // What is no object is refused as it was.
    for wrong in ["5", "[1]", r#""x""#] {
        let body =
            json!({"asset_id": asset, "params": serde_json::from_str::<Value>(wrong).unwrap()});
        let refused = watch(&world, &acme, body).await;
        let refused = refused.expect_error(400, "VALIDATION_ERROR");
        assert_eq!(refused.fields(), ["params"]);
    }
    let (status, refused) = send(Method::POST, &path(&acme), with("1e400")).await;
    assert_eq!(status, 400, "{refused}");
    assert!(refused.contains(r#""field":"params.x""#), "{refused}");
}

/// What is wrong is named, all of it; what cannot be watched, and what may not be seen, is refused.
#[tokio::test]
async fn what_cannot_be_watched_is_refused() {
    let world = World::new().await;
    let (seller, acme) = (world.company("seller").await, world.company("acme").await);
    let number = asset(&world, &seller, ResultType::Number).await;
    let text = asset(&world, &seller, ResultType::String).await;
    let chart = asset(&world, &seller, ResultType::Chart).await;
    let wrong = json!({
        "asset_id": "no id", "name": "", "params": {"team": "x".repeat(4_096)}, "condition": {"operator": "above", "field": "upper"},
        "check_interval_seconds": 59, "consecutive_breaches": 0, "rearm_seconds": -1, "webhook_ids": ["no id"],
        "max_credits_per_day": 1_000_001
    });
    let wrong = watch(&world, &acme, wrong)
        .await
        .expect_error(400, "VALIDATION_ERROR");
    assert_eq!(
        wrong.fields(),
        [
            "asset_id",
            "name",
            "params",
            "condition.operator",
            "check_interval_seconds",
            "consecutive_breaches",
            "rearm_seconds",
            "max_credits_per_day",
            "webhook_ids[0]",
        ]
    );
    for (body, fields) in [
        (json!({}), vec!["asset_id"]),
        (
            json!({"asset_id": number, "params": {"team": 1, "city": "x"}, "condition": {"operator": "eq", "threshold": "x"}}),
            vec!["params.team", "params.city", "condition.threshold"],
        ),
        (
            json!({"asset_id": text, "condition": {"operator": "gt", "threshold": 1, "field": "upper"}}),
            vec!["condition.operator", "condition.field"],
        ),
        (
            json!({"asset_id": number, "condition": {"operator": "gt"}}),
            vec!["condition.threshold"],
        ),
        (
            json!({"asset_id": number, "condition": {"operator": "gt", "threshold": [1]}}),
            vec!["condition.threshold"],
        ),
        (json!({"asset_id": chart}), vec!["asset_id"]),
        (
            json!({"asset_id": number, "webhook_ids": ["whk_1"]}),
            vec!["webhook_ids[0]"],
        ),
    ] {
        let refused = watch(&world, &acme, body.clone())
            .await
            .expect_error(400, "VALIDATION_ERROR");
        let mut found = refused.fields();
        found.sort_unstable();
        let mut fields = fields;
        fields.sort_unstable();
        assert_eq!(found, fields, "{body}");
    }
    for mismatch in [
        json!({"asset_id": number, "company_id": seller.id}),
        json!({"asset_id": number, "user_id": seller.user_id}),
    ] {
        let refused = watch(&world, &acme, mismatch).await;
        refused.expect_error(400, "PATH_BODY_MISMATCH");
    }
    let made = watch(&world, &acme, json!({"asset_id": number}))
        .await
        .expect(201);
    let one = acme.path(&format!("/alerts/{}", made.text("/data/id")));
    let change = json!({"asset_id": text, "user_id": seller.user_id, "name": ""});
    let refused = world
        .patch(&acme.key, &one, change)
        .await
        .expect_error(400, "VALIDATION_ERROR");
    assert_eq!(refused.fields(), ["asset_id", "user_id", "name"]);
    let change = json!({"condition": {"operator": "eq", "threshold": "x"}});
    let refused = world.patch(&acme.key, &one, change).await;
    assert_eq!(refused.expect(400).field(), "condition.threshold");

    // What is no more on sale cannot be watched anew; who watches it still sees that.
    let unpublish = seller.path(&format!("/assets/{number}/unpublish"));
    world
        .post(&seller.key, &unpublish, json!({}))
        .await
        .expect(200);
    watch(&world, &acme, json!({"asset_id": number}))
        .await
        .expect_error(404, "ASSET_NOT_FOUND");
    watch(&world, &acme, json!({"asset_id": "ast_1"}))
        .await
        .expect_error(404, "ASSET_NOT_FOUND");
    let of_asset = acme.path(&format!("/assets/{number}/alerts"));
    assert_eq!(ids(&world, &acme, &of_asset).await.len(), 1);
    let others = world.company("others").await;
    let of_asset = others.path(&format!("/assets/{number}/alerts"));
    let hidden = world.get(&others.key, &of_asset).await;
    hidden.expect_error(404, "ASSET_NOT_FOUND");

    let foreign = acme.path(&format!("/users/{}/alerts", seller.user_id));
    let answer = world.get(&acme.key, &foreign).await;
    answer.expect_error(404, "USER_NOT_FOUND");
    let answer = world
        .post(&acme.key, &foreign, json!({"asset_id": text}))
        .await;
    answer.expect_error(404, "USER_NOT_FOUND");
    let theirs = others.path(&format!("/alerts/{}", made.text("/data/id")));
    for answer in [
        world.get(&others.key, &theirs).await,
        world
            .patch(&others.key, &theirs, json!({"name": "x"}))
            .await,
        world.delete(&others.key, &theirs).await,
        world
            .post(&others.key, &format!("{theirs}/test"), json!({}))
            .await,
    ] {
        answer.expect_error(404, "ALERT_NOT_FOUND");
    }
}

/// A company has as many alerts as it may have, and no more.
#[tokio::test]
async fn alerts_are_counted() {
    let world = World::new().await;
    let acme = world.company("acme").await;
    let asset = asset(&world, &acme, ResultType::Number).await;
    let body = || json!({"asset_id": asset, "is_active": false});
    let made = watch(&world, &acme, body()).await.expect(201);
    let insert = "INSERT INTO alerts
                  SELECT id || '-' || n.number, company_id, user_id, asset_id, name, params, operator, threshold, answer_field,
                         check_interval_seconds, consecutive_breaches, rearm_seconds, webhook_ids, max_credits_per_day, is_active,
                         created_at, updated_at, revision, state, breaches, delays, last_value, history, last_checked_at,
                         last_triggered_at, last_error, spent_on, spent_credits, next_check_at, claimed_by, lease_until, notify_by_mail,
                         was_triggered
                  FROM alerts
                  CROSS JOIN (WITH RECURSIVE n (number) AS (SELECT 1 UNION ALL SELECT number + 1 FROM n WHERE number < 999) SELECT number FROM n) AS n
                  WHERE id = $1";
    world
        .db
        .write(async |write| -> Result<_, souk_store::StoreError> {
            sqlx::query(insert)
                .bind(made.text("/data/id"))
                .execute(&mut **write)
                .await
                .unwrap();
            Ok(())
        })
        .await
        .unwrap();
    let refused = watch(&world, &acme, body()).await;
    refused.expect_error(409, "CONFLICT");
    let one = acme.path(&format!("/alerts/{}", made.text("/data/id")));
    world.delete(&acme.key, &one).await.expect(204);
    watch(&world, &acme, body()).await.expect(201);
    watch(&world, &acme, body()).await.expect(409);
}

/// A company has a hundred tests an hour, whichever of its keys asks; another one has its own, and nothing is sent beyond.
#[tokio::test]
async fn tests_are_counted_for_their_company() {
    let world = World::new().await;
    let (acme, other) = (world.company("acme").await, world.company("other").await);
    let asset = asset(&world, &other, ResultType::Number).await;
    let hook = json!({"url": "https://93.184.216.34/souk"});
    let hook = world.post(&acme.key, &acme.path("/webhooks"), hook).await;
    let hook = hook.expect(201).text("/data/id");
    let made = watch(&world, &acme, json!({"asset_id": asset})).await;
    let test = acme.path(&format!(
        "/alerts/{}/test",
        made.expect(201).text("/data/id")
    ));
    let key = json!({"name": "second", "role_id": 4});
    let second = world.post(&acme.key, &acme.path("/api-keys"), key).await;
    let second = second.expect(201).text("/data/key");
    for (key, times) in [(&acme.key, 60), (&second, 40)] {
        for _ in 0..times {
            world.post(key, &test, json!({})).await.expect(202);
        }
    }
    let refused = world.post(&second, &test, json!({})).await;
    let refused = refused.expect_error(429, "RATE_LIMIT_EXCEEDED");
    assert_eq!(refused.text("/error/details/scope"), "company");
    let wait: u64 = refused.header("retry-after").parse().unwrap();
    assert!((3_000..=3_600).contains(&wait), "{wait}");
    let deliveries = acme.path(&format!("/webhooks/{hook}/deliveries"));
    let sent = world.get(&acme.key, &deliveries).await.expect(200);
    assert_eq!(sent.at("/meta/total"), 100);

    let made = watch(&world, &other, json!({"asset_id": asset})).await;
    let test = other.path(&format!(
        "/alerts/{}/test",
        made.expect(201).text("/data/id")
    ));
    world.post(&other.key, &test, json!({})).await.expect(202);
}
