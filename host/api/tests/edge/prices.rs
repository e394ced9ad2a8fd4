//! Prices: one at a time, history unchanged.

mod times;

use crate::world::{Answer, Company, World, now, request};
use axum::body::Body;
use bytes::Bytes;
use futures_util::stream;
use http::{Method, Request};
use serde_json::{Value, json};
use souk_domain::time::{DAY, HOUR, Timestamp};
use souk_store::StoreError;
use std::convert::Infallible;
use std::time::Duration;

/// A new price ends the former one; the history keeps both.
#[tokio::test]
async fn a_new_price_ends_the_former_one() {
    let world = World::new().await;
    let acme = world.company("acme").await;
    let prices = acme.path(&format!("/assets/{}/prices", world.asset(&acme).await));
    world
        .get(&acme.key, &format!("{prices}/active"))
        .await
        .expect_error(404, "PRICE_NOT_FOUND");
    let first = world
        .post(&acme.key, &prices, json!({"price_usd": 1.01}))
        .await
        .expect(201);
    assert_eq!(
        (first.at("/data/price_credits"), first.at("/data/price_usd")),
        (&json!(3), &json!(1.01))
    );
    let second = world
        .post(&acme.key, &prices, json!({"price_credits": 5}))
        .await
        .expect(201);
    let active = world
        .get(&acme.key, &format!("{prices}/active"))
        .await
        .expect(200);
    assert_eq!(
        (active.text("/data/id"), active.at("/data/price_usd")),
        (second.text("/data/id"), &json!(2.5))
    );
    let listed = world.get(&acme.key, &prices).await.expect(200);
    assert_eq!(
        (
            listed.at("/meta/total"),
            listed.at("/data/0/id"),
            listed.at("/data/1/is_active")
        ),
        (&json!(2), second.at("/data/id"), &json!(false))
    );
    assert_eq!(
        listed.at("/data/1/effective_to"),
        second.at("/data/effective_from")
    );
}

/// A hundred prices may be planned, wherever the next one would stand; one that holds from now on is none of them.
#[tokio::test]
async fn a_hundred_prices_may_be_planned() {
    let world = World::new().await;
    let acme = world.company("acme").await;
    let prices = acme.path(&format!("/assets/{}/prices", world.asset(&acme).await));
    let at = |hours: u32| now().after(HOUR * hours).to_string();
    let plan = async |hours: u32| {
        let price = json!({"price_credits": hours, "effective_from": at(hours)});
        world.post(&acme.key, &prices, price).await
    };
    for hours in 2..102 {
        plan(hours).await.expect(201);
    }
    // Behind all of them and before.
    for hours in [102, 1] {
        plan(hours).await.expect_error(409, "PRICE_OVERLAP");
    }
    let holds = json!({"price_credits": 7});
    let holds = world.post(&acme.key, &prices, holds).await.expect(201);
    let end = holds.at("/data/effective_to").clone();
    let listed = format!("{prices}?per_page=100");
    let listed = world.get(&acme.key, &listed).await.expect(200);
    let all = listed.at("/data").as_array().unwrap().clone();
    let first = all
        .iter()
        .find(|price| price["price_credits"] == 2)
        .unwrap();
    assert_eq!(end, first["effective_from"]);
    let path = format!("{prices}/{}", first["id"].as_str().unwrap());
    world.delete(&acme.key, &path).await.expect(204);
    plan(1).await.expect(201);
}

/// A discount that ends plans the price after it: of discounts within each other each counts among the hundred.
#[tokio::test]
async fn a_discount_that_ends_is_a_planned_price() {
    let world = World::new().await;
    let acme = world.company("acme").await;
    let prices = acme.path(&format!("/assets/{}/prices", world.asset(&acme).await));
    let first = json!({"price_credits": 100_000});
    world.post(&acme.key, &prices, first).await.expect(201);
    let path = format!("{prices}/discount");
    let discount = async |hours: u32| {
        let until = now().after(HOUR * hours).to_string();
        let body = json!({"discount_percent": 1, "effective_to": until});
        world.post(&acme.key, &path, body).await
    };
    for hours in (2..102).rev() {
        discount(hours).await.expect(201);
    }
    discount(1).await.expect_error(409, "PRICE_OVERLAP");
}

/// A thousand prices of a product, of which the last ended then.
async fn end_thousand(world: &World, company: &Company, product: &str, last: Timestamp) {
    let ended = world.db.write(async |write| -> Result<(), StoreError> {
        sqlx::query(
            "WITH RECURSIVE n (i) AS (SELECT CAST(1 AS BIGINT) UNION ALL SELECT i + 1 FROM n WHERE i < 1000)
             INSERT INTO prices (price_id, company_id, product_id, price_credits, price_cents, effective_from, effective_to, created_by,
                                 created_at, updated_at)
             SELECT CAST($1 AS TEXT) || i, CAST($2 AS TEXT), CAST($3 AS TEXT), 1, 50, $4 - i, $4 - i + 1, 'key_1', 0, 0 FROM n",
        )
        .bind(format!("prc_{}_", last.micros()))
        .bind(&company.id)
        .bind(product)
        .bind(last.micros())
        .execute(&mut **write)
        .await?;
        Ok(())
    });
    ended.await.unwrap();
}

/// A product of which a thousand prices have ended within thirty days keeps the one that it has, whichever way another one is asked for. What has
/// ended earlier does not count.
#[tokio::test]
async fn a_thousand_prices_may_end_in_thirty_days() {
    let world = World::new().await;
    let acme = world.company("acme").await;
    let endpoint = world.endpoint(&acme).await;
    let prices = acme.path(&format!("/endpoints/{endpoint}/prices"));
    let discounts = format!("{prices}/discount");
    let publish = acme.path(&format!("/endpoints/{endpoint}/publish"));
    let price = |credits: i64| json!({"price_credits": credits});
    end_thousand(&world, &acme, &endpoint, now().before(DAY * 31)).await;
    for credits in [1, 2] {
        let set = world.post(&acme.key, &prices, price(credits)).await;
        set.expect(201);
    }
    end_thousand(&world, &acme, &endpoint, now().before(DAY)).await;
    let discount = json!({"discount_percent": 10});
    for (path, body, code) in [
        (&prices, price(3), "PRICE_OVERLAP"),
        (&discounts, discount, "PRICE_OVERLAP"),
        (&publish, price(3), "CONFLICT"),
    ] {
        let refused = world.post(&acme.key, path, body).await;
        refused.expect_error(409, code);
    }
    let active = world.get(&acme.key, &format!("{prices}/active")).await;
    assert_eq!(active.expect(200).at("/data/price_credits"), 2);
}

/// A price that comes with a publication holds when its test has passed, and not before.
#[tokio::test]
async fn a_price_comes_with_its_publication_or_not_at_all() {
    let world = World::new().await;
    let acme = world.company("acme").await;
    let endpoint = world.endpoint(&acme).await;
    let prices = acme.path(&format!("/endpoints/{endpoint}/prices"));
    let publish = acme.path(&format!("/endpoints/{endpoint}/publish"));
    let price = |credits: i64| json!({"price_credits": credits});
    world.post(&acme.key, &prices, price(2)).await.expect(201);
    // There is no source that could be asked.
    let refused = world.post(&acme.key, &publish, price(3)).await;
    assert!(!refused.status.is_success());
    let active = world.get(&acme.key, &format!("{prices}/active")).await;
    assert_eq!(active.expect(200).at("/data/price_credits"), 2);
}

/// Exactly one of the two units, exact, not negative, not in the past.
#[tokio::test]
async fn what_is_no_price_is_refused() {
    let world = World::new().await;
    let acme = world.company("acme").await;
    let prices = acme.path(&format!("/assets/{}/prices", world.asset(&acme).await));
    for body in [
        json!({}),
        json!({"price_usd": 1, "price_credits": 2}),
        json!({"price_usd": 1.005}),
        json!({"price_usd": "1.00"}),
        json!({"price_usd": -1}),
        json!({"price_credits": -1}),
        json!({"price_credits": 1.5}),
        json!({"price_credits": 1, "effective_from": "2020-01-01T00:00:00Z"}),
        // It would not end.
        json!({"price_credits": 1, "effective_to": "2999-01-01T00:00:00Z"}),
    ] {
        world
            .post(&acme.key, &prices, body)
            .await
            .expect_error(400, "VALIDATION_ERROR");
    }
    world
        .post(
            &acme.key,
            &acme.path("/assets/ast_unknown/prices"),
            json!({"price_credits": 1}),
        )
        .await
        .expect_error(404, "ASSET_NOT_FOUND");
    world
        .post(
            &acme.key,
            &prices,
            json!({"price_credits": 0, "effective_to": null}),
        )
        .await
        .expect(201);
}

/// A planned price waits; it can be removed, and then the one before it goes on.
#[tokio::test]
async fn a_planned_price_can_be_removed() {
    let world = World::new().await;
    let acme = world.company("acme").await;
    let prices = acme.path(&format!(
        "/endpoints/{}/prices",
        world.endpoint(&acme).await
    ));
    let current = world
        .post(&acme.key, &prices, json!({"price_credits": 2}))
        .await
        .expect(201);
    let later = now().after(HOUR).to_string();
    let planned = world
        .post(
            &acme.key,
            &prices,
            json!({"price_credits": 4, "effective_from": later}),
        )
        .await
        .expect(201);
    assert_eq!(planned.at("/data/is_active"), false);
    let path = format!("{prices}/{}", current.text("/data/id"));
    assert_eq!(
        world
            .get(&acme.key, &path)
            .await
            .expect(200)
            .at("/data/effective_to"),
        planned.at("/data/effective_from")
    );
    world
        .post(
            &acme.key,
            &prices,
            json!({"price_credits": 3, "effective_from": later}),
        )
        .await
        .expect_error(409, "PRICE_OVERLAP");
    world
        .delete(&acme.key, &path)
        .await
        .expect_error(409, "INVALID_STATE");
    world
        .delete(&acme.key, &format!("{prices}/{}", planned.text("/data/id")))
        .await
        .expect(204);
    assert_eq!(
        world
            .get(&acme.key, &path)
            .await
            .expect(200)
            .at("/data/effective_to"),
        &Value::Null
    );
}

/// A discount that ends gives way to the price before it.
#[tokio::test]
async fn a_discount_ends() {
    let world = World::new().await;
    let acme = world.company("acme").await;
    let prices = acme.path(&format!("/assets/{}/prices", world.asset(&acme).await));
    world
        .post(
            &acme.key,
            &format!("{prices}/discount"),
            json!({"discount_percent": 10}),
        )
        .await
        .expect_error(404, "PRICE_NOT_FOUND");
    world
        .post(&acme.key, &prices, json!({"price_credits": 10}))
        .await
        .expect(201);
    let until = now().after(HOUR).to_string();
    let body = json!({"discount_percent": 25, "effective_to": until});
    let discount = world
        .post(&acme.key, &format!("{prices}/discount"), body)
        .await
        .expect(201);
    assert_eq!(
        (
            discount.at("/data/price_credits"),
            discount.at("/data/original_price_credits")
        ),
        (&json!(8), &json!(10))
    );
    let listed = world.get(&acme.key, &prices).await.expect(200);
    assert_eq!(
        (listed.at("/meta/total"), listed.at("/data/0/price_credits")),
        (&json!(3), &json!(10))
    );
    assert_eq!(
        listed.at("/data/0/effective_from"),
        discount.at("/data/effective_to")
    );
    for body in [
        json!({"discount_percent": 0}),
        json!({"discount_percent": 101}),
        json!({"discount_percent": 5, "effective_to": "2020-01-01T00:00:00Z"}),
    ] {
        world
            .post(&acme.key, &format!("{prices}/discount"), body)
            .await
            .expect_error(400, "VALIDATION_ERROR");
    }
}

/// A planned discount that gets another amount is none any more, and does not say that it is; moved it stays one.
#[tokio::test]
async fn a_discount_with_another_amount_is_a_price() {
    let world = World::new().await;
    let acme = world.company("acme").await;
    let prices = acme.path(&format!("/assets/{}/prices", world.asset(&acme).await));
    let price = json!({"price_credits": 10});
    world.post(&acme.key, &prices, price).await.expect(201);
    let at = |hours: u32| now().after(HOUR * hours).to_string();
    let discount = json!({"discount_percent": 25, "effective_from": at(1)});
    let discount = world
        .post(&acme.key, &format!("{prices}/discount"), discount)
        .await
        .expect(201);
    let path = format!("{prices}/{}", discount.text("/data/id"));
    let said = |answer: &Answer| {
        let members = [
            "price_credits",
            "discount_percent",
            "original_price_credits",
        ];
        members.map(|member| answer.at(&format!("/data/{member}")).clone())
    };
    for (change, expected) in [
        (
            json!({"effective_from": at(2)}),
            [json!(8), json!(25), json!(10)],
        ),
        (
            json!({"price_credits": 8}),
            [json!(8), json!(25), json!(10)],
        ),
        (
            json!({"price_credits": 9}),
            [json!(9), Value::Null, Value::Null],
        ),
    ] {
        let changed = world.patch(&acme.key, &path, change.clone()).await;
        assert_eq!(said(&changed.expect(200)), expected, "{change}");
        let shown = world.get(&acme.key, &path).await.expect(200);
        assert_eq!(said(&shown), expected, "{change}");
    }
}

/// Conversion stores nothing; published prices are seen by other companies, histories are not.
#[tokio::test]
async fn conversion_and_visibility() {
    let world = World::new().await;
    let (acme, buyer) = (world.company("acme").await, world.company("buyer").await);
    let asset = world.asset(&acme).await;
    let prices = acme.path(&format!("/assets/{asset}/prices"));
    let converted = world
        .post(
            &acme.key,
            &format!("{prices}/convert"),
            json!({"price_usd": 1.2}),
        )
        .await
        .expect(200);
    assert_eq!(
        converted.at("/data"),
        &json!({"price_usd": 1.2, "price_credits": 3, "credit_value_usd": 0.5, "effective_price_usd": 1.5, "seller_earnings_usd": 1.2})
    );
    world
        .post(&acme.key, &prices, json!({"price_credits": 7}))
        .await
        .expect(201);
    let seen = world
        .get(
            &buyer.key,
            &buyer.path(&format!("/assets/{asset}/prices/active")),
        )
        .await
        .expect(200);
    assert_eq!(seen.at("/data/price_credits"), 7);
    world
        .get(&buyer.key, &buyer.path(&format!("/assets/{asset}/prices")))
        .await
        .expect_error(404, "ASSET_NOT_FOUND");
}

/// A planned price can be moved, and takes the end of the one before it along; one that has begun cannot.
#[tokio::test]
async fn a_planned_price_can_be_changed() {
    let world = World::new().await;
    let acme = world.company("acme").await;
    let prices = acme.path(&format!("/assets/{}/prices", world.asset(&acme).await));
    let current = world
        .post(&acme.key, &prices, json!({"price_credits": 2}))
        .await
        .expect(201);
    let at = |hours: u32| now().after(HOUR * hours).to_string();
    let planned = world
        .post(
            &acme.key,
            &prices,
            json!({"price_credits": 4, "effective_from": at(1)}),
        )
        .await
        .expect(201);
    world
        .post(
            &acme.key,
            &prices,
            json!({"price_credits": 9, "effective_from": at(5)}),
        )
        .await
        .expect(201);
    let path = format!("{prices}/{}", planned.text("/data/id"));
    let moved = world
        .patch(
            &acme.key,
            &path,
            json!({"price_usd": 3, "effective_from": at(2)}),
        )
        .await
        .expect(200);
    assert_eq!(
        (moved.at("/data/price_credits"), moved.at("/data/id")),
        (&json!(6), planned.at("/data/id"))
    );
    let before = world
        .get(&acme.key, &format!("{prices}/{}", current.text("/data/id")))
        .await
        .expect(200);
    assert_eq!(
        before.at("/data/effective_to"),
        moved.at("/data/effective_from")
    );
    world
        .patch(&acme.key, &path, json!({"effective_to": at(6)}))
        .await
        .expect_error(409, "PRICE_OVERLAP");
    world
        .patch(&acme.key, &path, json!({"effective_to": at(1)}))
        .await
        .expect_error(400, "VALIDATION_ERROR");
    let begun = format!("{prices}/{}", current.text("/data/id"));
    world
        .patch(&acme.key, &begun, json!({"price_credits": 1}))
        .await
        .expect_error(409, "INVALID_STATE");
}

/// A request with this body, which comes when that instant has.
fn late(method: Method, key: &str, path: &str, body: &Value, at: Timestamp) -> Request<Body> {
    let bytes = Bytes::from(body.to_string());
    let coming = stream::once(async move {
        while now() <= at {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        Ok::<_, Infallible>(bytes)
    });
    let request = request(method, key, path).header("content-type", "application/json");
    request.body(Body::from_stream(coming)).unwrap()
}

/// A price begins when it is written, and what has begun then is history: however long ago the request began whose body says so. What was
/// paid meanwhile stays what it cost.
#[tokio::test]
async fn what_comes_late_changes_nothing_that_has_begun() {
    let world = World::new().await;
    let acme = world.company("acme").await;
    let asset = world.asset(&acme).await;
    let prices = acme.path(&format!("/assets/{asset}/prices"));
    let price = json!({"price_credits": 2});
    world.post(&acme.key, &prices, price).await.expect(201);
    for (path, body) in [
        (prices.clone(), json!({"price_credits": 4})),
        (
            format!("{prices}/discount"),
            json!({"discount_percent": 50}),
        ),
    ] {
        let comes_at = now().after(Duration::from_millis(300));
        let set = late(Method::POST, &acme.key, &path, &body, comes_at);
        let set = world.send(set).await.expect(201);
        let from = Timestamp::parse(&set.text("/data/effective_from")).unwrap();
        assert!(from > comes_at, "{path}: {from}, and not {comes_at}");
        assert_eq!(set.at("/data/is_active"), true, "{path}");
        let listed = world.get(&acme.key, &prices).await.expect(200);
        assert_eq!(
            listed.at("/data/1/effective_to"),
            set.at("/data/effective_from")
        );
    }
    let begins = now().after(Duration::from_secs(1));
    let planned = json!({"price_credits": 7, "effective_from": begins.to_string()});
    let planned = world.post(&acme.key, &prices, planned).await.expect(201);
    let path = format!("{prices}/{}", planned.text("/data/id"));
    let change = json!({"price_credits": 9});
    let change = late(Method::PATCH, &acme.key, &path, &change, begins);
    let refused = world.send(change).await;
    refused.expect_error(409, "INVALID_STATE");
    let shown = world.get(&acme.key, &path).await.expect(200);
    assert_eq!(shown.at("/data/price_credits"), 7);
}

/// Prices that are set at once take their turns: whatever the order, at most one holds at an instant.
#[tokio::test]
async fn concurrent_prices_do_not_overlap() {
    let world = World::new().await;
    let acme = world.company("acme").await;
    let prices = acme.path(&format!("/assets/{}/prices", world.asset(&acme).await));
    let post = |credits: i64| world.post(&acme.key, &prices, json!({"price_credits": credits}));
    let answers = tokio::join!(post(1), post(2), post(3), post(4), post(5), post(6));
    let answers = [
        answers.0, answers.1, answers.2, answers.3, answers.4, answers.5,
    ];
    for answer in answers {
        assert!(
            [201, 409].contains(&answer.status.as_u16()),
            "{}",
            answer.body
        );
    }
    let listed = world.get(&acme.key, &prices).await.expect(200);
    let listed = listed.at("/data").as_array().unwrap();
    assert_eq!(listed[0]["effective_to"], Value::Null);
    for pair in listed.windows(2) {
        assert_eq!(pair[1]["effective_to"], pair[0]["effective_from"]);
    }
}
