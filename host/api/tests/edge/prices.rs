//! Prices: one at a time, history unchanged.

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
        .post(&acme.key, &prices, json!({"price_credits": 0}))
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

/// What has not ended of a list of prices, in the order of time: what each costs, and when it begins if it is planned. One begins where the one
/// before it ends, and the last has no end.
async fn coming(world: &World, company: &Company, prices: &str) -> Vec<(i64, Option<String>)> {
    let listed = world.get(&company.key, prices).await.expect(200);
    let now = now();
    let instant = |price: &Value, member: &str| {
        let text = price[member].as_str()?;
        Some(Timestamp::parse(text).unwrap())
    };
    let mut all = listed.at("/data").as_array().unwrap().clone();
    all.retain(|price| instant(price, "effective_to").is_none_or(|to| to > now));
    all.reverse();
    for pair in all.windows(2) {
        assert_eq!(
            pair[0]["effective_to"], pair[1]["effective_from"],
            "{all:#?}"
        );
    }
    assert_eq!(all.last().unwrap()["effective_to"], Value::Null, "{all:#?}");
    let seen = all.iter().map(|price| {
        let planned = instant(price, "effective_from").filter(|from| *from > now);
        let credits = price["price_credits"].as_i64().unwrap();
        (credits, planned.map(|from| from.to_string()))
    });
    seen.collect()
}

/// An asset that costs ten credits, as the path of its prices.
async fn ten_credits(world: &World, company: &Company) -> String {
    let asset = world.asset(company).await;
    let prices = company.path(&format!("/assets/{asset}/prices"));
    let price = json!({"price_credits": 10});
    world.post(&company.key, &prices, price).await.expect(201);
    prices
}

/// What is set while a discount runs stays when that ends; what was planned beside it begins all the same. So does a discount that is planned, and
/// what it gives way to is what was set before it.
#[tokio::test]
async fn a_price_that_is_set_outlasts_a_discount() {
    let world = World::new().await;
    let acme = world.company("acme").await;
    let hour = |hours: u32| Some(now().after(HOUR * hours).to_string());
    let twenty = json!({"price_credits": 20});
    let set = async |path: &str, body: Value| {
        let set = world.post(&acme.key, path, body).await;
        set.expect(201)
    };

    let prices = ten_credits(&world, &acme).await;
    let first = hour(1);
    let discount = json!({"discount_percent": 50, "effective_to": first});
    set(&format!("{prices}/discount"), discount).await;
    let expected = [(5, None), (10, first)];
    assert_eq!(coming(&world, &acme, &prices).await, expected);
    let twice = set(&prices, twenty.clone()).await;
    assert_eq!(twice.at("/data/effective_to"), &Value::Null);
    assert_eq!(coming(&world, &acme, &prices).await, [(20, None)]);

    let prices = ten_credits(&world, &acme).await;
    let (first, fifth) = (hour(1), hour(5));
    set(
        &prices,
        json!({"price_credits": 30, "effective_from": fifth}),
    )
    .await;
    let discount = json!({"discount_percent": 50, "effective_to": first});
    set(&format!("{prices}/discount"), discount).await;
    set(&prices, twenty.clone()).await;
    let expected = [(20, None), (30, fifth)];
    assert_eq!(coming(&world, &acme, &prices).await, expected);

    let prices = ten_credits(&world, &acme).await;
    let (first, second) = (hour(1), hour(2));
    let discount = json!({"discount_percent": 50, "effective_from": first, "effective_to": second});
    set(&format!("{prices}/discount"), discount).await;
    set(&prices, twenty).await;
    let expected = [(20, None), (5, first), (20, second)];
    assert_eq!(coming(&world, &acme, &prices).await, expected);
}

/// Discounts may lie within each other, and follow each other: where one ends, that price holds again which began last of those that have not.
#[tokio::test]
async fn discounts_give_way_to_what_was_before_them() {
    let world = World::new().await;
    let acme = world.company("acme").await;
    let prices = ten_credits(&world, &acme).await;
    let hours: Vec<Option<String>> = (0..10)
        .map(|hours| Some(now().after(HOUR * hours).to_string()))
        .collect();
    let discount = async |percent: i64, from: usize, to: usize| {
        let body = json!({"discount_percent": percent, "effective_from": hours[from], "effective_to": hours[to]});
        let path = format!("{prices}/discount");
        world.post(&acme.key, &path, body).await.expect(201);
    };
    let planned = |credits: i64, hour: usize| (credits, hours[hour].clone());
    discount(50, 1, 6).await;
    discount(20, 2, 3).await;
    let mut expected = vec![(10, None), planned(5, 1), planned(4, 2), planned(5, 3)];
    expected.push(planned(10, 6));
    assert_eq!(coming(&world, &acme, &prices).await, expected);
    discount(40, 6, 7).await;
    expected.truncate(4);
    expected.extend([planned(6, 6), planned(10, 7)]);
    assert_eq!(coming(&world, &acme, &prices).await, expected);
    discount(40, 5, 6).await;
    expected.insert(4, planned(3, 5));
    assert_eq!(coming(&world, &acme, &prices).await, expected);
}

/// A price that was planned for the time of a discount and is taken back leaves the discount its end.
#[tokio::test]
async fn a_discount_ends_as_it_was_said_to() {
    let world = World::new().await;
    let acme = world.company("acme").await;
    let prices = ten_credits(&world, &acme).await;
    let hour = |hours: u32| Some(now().after(HOUR * hours).to_string());
    let (first, second, third) = (hour(1), hour(2), hour(3));
    let discount = json!({"discount_percent": 50, "effective_to": second});
    let path = format!("{prices}/discount");
    world.post(&acme.key, &path, discount).await.expect(201);
    let planned = json!({"price_credits": 20, "effective_from": first});
    let planned = world.post(&acme.key, &prices, planned).await.expect(201);
    let expected = [(5, None), (20, first)];
    assert_eq!(coming(&world, &acme, &prices).await, expected);
    let path = format!("{prices}/{}", planned.text("/data/id"));
    let later = json!({"effective_from": third});
    world.patch(&acme.key, &path, later).await.expect(200);
    let expected = [(5, None), (10, second.clone()), (20, third)];
    assert_eq!(coming(&world, &acme, &prices).await, expected);
    world.delete(&acme.key, &path).await.expect(204);
    let expected = [(5, None), (10, second)];
    assert_eq!(coming(&world, &acme, &prices).await, expected);
}

/// The former price that holds again after a discount is in the list: moved it ends the discount at another time, with another amount it is a price
/// that was planned, and without it the discount stays.
#[tokio::test]
async fn the_price_behind_a_discount_can_be_changed() {
    let world = World::new().await;
    let acme = world.company("acme").await;
    let hour = |hours: u32| Some(now().after(HOUR * hours).to_string());
    let twenty = json!({"price_credits": 20});
    let (first, second) = (hour(1), hour(2));
    let discounted = async || {
        let prices = ten_credits(&world, &acme).await;
        let discount = json!({"discount_percent": 50, "effective_to": first});
        let path = format!("{prices}/discount");
        world.post(&acme.key, &path, discount).await.expect(201);
        let listed = world.get(&acme.key, &prices).await.expect(200);
        assert_eq!(listed.at("/data/0/price_credits"), 10);
        let again = format!("{prices}/{}", listed.text("/data/0/id"));
        (prices, again)
    };

    let (prices, again) = discounted().await;
    let later = json!({"effective_from": second});
    let moved = world.patch(&acme.key, &again, later).await.expect(200);
    assert!(again.ends_with(&moved.text("/data/id")));
    let expected = [(5, None), (10, second.clone())];
    assert_eq!(coming(&world, &acme, &prices).await, expected);
    let sooner = json!({"effective_from": first});
    world.patch(&acme.key, &again, sooner).await.expect(200);
    let expected = [(5, None), (10, first.clone())];
    assert_eq!(coming(&world, &acme, &prices).await, expected);
    let set = world.post(&acme.key, &prices, twenty.clone()).await;
    set.expect(201);
    assert_eq!(coming(&world, &acme, &prices).await, [(20, None)]);

    let (prices, again) = discounted().await;
    let dearer = json!({"price_credits": 12});
    world.patch(&acme.key, &again, dearer).await.expect(200);
    world.post(&acme.key, &prices, twenty).await.expect(201);
    let expected = [(20, None), (12, first.clone())];
    assert_eq!(coming(&world, &acme, &prices).await, expected);

    let (prices, again) = discounted().await;
    world.delete(&acme.key, &again).await.expect(204);
    assert_eq!(coming(&world, &acme, &prices).await, [(5, None)]);

    // At once: the discount is over, and does not come again behind another one.
    let (prices, again) = discounted().await;
    let at_once = json!({"effective_from": now().to_string()});
    world.patch(&acme.key, &again, at_once).await.expect(200);
    assert_eq!(coming(&world, &acme, &prices).await, [(10, None)]);
    let soon = Some(now().after(HOUR / 2).to_string());
    let discount = json!({"discount_percent": 20, "effective_to": soon});
    let path = format!("{prices}/discount");
    world.post(&acme.key, &path, discount).await.expect(201);
    let planned = json!({"price_credits": 30, "effective_from": second});
    world.post(&acme.key, &prices, planned).await.expect(201);
    let expected = [(8, None), (10, soon), (30, second)];
    assert_eq!(coming(&world, &acme, &prices).await, expected);
}

/// Wherever a planned price is moved, no instant has two prices, and none has no price: what it is moved into ends there, what it leaves goes on,
/// and after an end the price before holds again. It passes no other price.
#[tokio::test]
async fn moved_prices_leave_no_gap_and_no_overlap() {
    let world = World::new().await;
    let acme = world.company("acme").await;
    let prices = ten_credits(&world, &acme).await;
    let minutes = |minutes: u32| Some(now().after(HOUR / 60 * minutes).to_string());
    let (first, second, fifth) = (minutes(60), minutes(120), minutes(300));
    let plan = async |credits: i64, from: &Option<String>| {
        let planned = json!({"price_credits": credits, "effective_from": from});
        let planned = world.post(&acme.key, &prices, planned).await.expect(201);
        format!("{prices}/{}", planned.text("/data/id"))
    };
    let (three, four) = (plan(3, &first).await, plan(4, &fifth).await);
    let begun = [(10, None), (3, first.clone())];
    let expect = async |rest: &[(i64, Option<String>)]| {
        let expected = [&begun[..], rest].concat();
        assert_eq!(coming(&world, &acme, &prices).await, expected);
    };
    expect(&[(4, fifth.clone())]).await;

    let ends = json!({"effective_to": second});
    let changed = world.patch(&acme.key, &three, ends).await.expect(200);
    assert_eq!(changed.at("/data/effective_to"), &json!(second));
    let whole = [(10, second.clone()), (4, fifth.clone())];
    expect(&whole).await;

    let within = minutes(90);
    let sooner = json!({"effective_from": within});
    world.patch(&acme.key, &four, sooner).await.expect(200);
    expect(&[(4, within.clone())]).await;
    let before = json!({"effective_from": minutes(30)});
    let refused = world.patch(&acme.key, &four, before).await;
    refused.expect_error(409, "PRICE_OVERLAP");
    let behind = json!({"effective_from": minutes(100)});
    let refused = world.patch(&acme.key, &three, behind).await;
    refused.expect_error(409, "PRICE_OVERLAP");
    let same = json!({"effective_from": first});
    let refused = world.patch(&acme.key, &four, same).await;
    refused.expect_error(409, "PRICE_OVERLAP");
    expect(&[(4, within)]).await;

    let back = json!({"effective_from": fifth});
    world.patch(&acme.key, &four, back).await.expect(200);
    expect(&whole).await;
    let endless = json!({"effective_to": null});
    world.patch(&acme.key, &three, endless).await.expect(200);
    expect(&[(4, fifth)]).await;
}

/// A price ends only where another one goes on: without it nothing could be bought from then on.
#[tokio::test]
async fn the_first_price_does_not_end() {
    let world = World::new().await;
    let acme = world.company("acme").await;
    let prices = acme.path(&format!("/assets/{}/prices", world.asset(&acme).await));
    let at = |hours: u32| now().after(HOUR * hours).to_string();
    let planned = json!({"price_credits": 3, "effective_from": at(1)});
    let planned = world.post(&acme.key, &prices, planned).await.expect(201);
    let path = format!("{prices}/{}", planned.text("/data/id"));
    let ends = json!({"effective_to": at(2)});
    let refused = world.patch(&acme.key, &path, ends).await;
    let refused = refused.expect_error(400, "VALIDATION_ERROR");
    assert_eq!(refused.fields(), ["effective_to"]);
    let shown = world.get(&acme.key, &path).await.expect(200);
    assert_eq!(shown.at("/data/effective_to"), &Value::Null);
}

/// A price that another one gives way to is neither taken back nor given an end where there is none beside it: nothing could be bought once that one has
/// ended. The first prices of a product that is not sold yet may be taken back, the last of them first.
#[tokio::test]
async fn a_price_that_others_give_way_to_stays() {
    let world = World::new().await;
    let acme = world.company("acme").await;
    let prices = acme.path(&format!("/assets/{}/prices", world.asset(&acme).await));
    let hour = |hours: u32| Some(now().after(HOUR * hours).to_string());
    let (first, second, third, fifth) = (hour(1), hour(2), hour(3), hour(5));
    let plan = async |path: &str, body: Value| {
        let planned = world.post(&acme.key, path, body).await.expect(201);
        format!("{prices}/{}", planned.text("/data/id"))
    };
    let price = json!({"price_credits": 10, "effective_from": first});
    let price = plan(&prices, price).await;
    let discount = json!({"discount_percent": 50, "effective_from": second, "effective_to": third});
    let discount = plan(&format!("{prices}/discount"), discount).await;
    let refused = world.delete(&acme.key, &price).await;
    refused.expect_error(409, "INVALID_STATE");
    let ends = json!({"effective_to": second});
    let refused = world.patch(&acme.key, &price, ends).await;
    let refused = refused.expect_error(400, "VALIDATION_ERROR");
    assert_eq!(refused.fields(), ["effective_to"]);

    // Also where one is planned for later: until then there would be none.
    let later = json!({"price_credits": 30, "effective_from": fifth});
    plan(&prices, later).await;
    let refused = world.delete(&acme.key, &price).await;
    refused.expect_error(409, "INVALID_STATE");
    let expected = [(10, first), (5, second), (10, third), (30, fifth.clone())];
    assert_eq!(coming(&world, &acme, &prices).await, expected);
    for path in [discount, price] {
        world.delete(&acme.key, &path).await.expect(204);
    }
    assert_eq!(coming(&world, &acme, &prices).await, [(30, fifth)]);
}

/// Discounts that lie within each other are all over where the price behind them is moved to: none holds again between there and its own end.
#[tokio::test]
async fn discounts_that_are_ended_do_not_hold_again() {
    let world = World::new().await;
    let acme = world.company("acme").await;
    let minutes = |minutes: u32| Some(now().after(HOUR / 60 * minutes).to_string());
    let (within, sooner, end) = (minutes(30), minutes(60), minutes(120));
    for outer in [&sooner, &end] {
        for at in [Some(now().to_string()), within.clone()] {
            let prices = ten_credits(&world, &acme).await;
            for (percent, until) in [(50, outer), (20, &end)] {
                let discount = json!({"discount_percent": percent, "effective_to": until});
                let path = format!("{prices}/discount");
                world.post(&acme.key, &path, discount).await.expect(201);
            }
            let expected = [(4, None), (10, end.clone())];
            assert_eq!(coming(&world, &acme, &prices).await, expected);
            let listed = world.get(&acme.key, &prices).await.expect(200);
            let again = format!("{prices}/{}", listed.text("/data/0/id"));
            let moved = json!({"effective_from": at});
            let moved = world.patch(&acme.key, &again, moved).await.expect(200);
            let expected = match at == within {
                true => {
                    assert_eq!(moved.at("/data/effective_from"), &json!(within));
                    vec![(4, None), (10, at)]
                }
                false => vec![(10, None)],
            };
            assert_eq!(coming(&world, &acme, &prices).await, expected);
        }
    }
}

/// A planned discount can be changed although another price begins before its end: one that cuts it short, or a discount within it. What begins beyond
/// that end it does not pass.
#[tokio::test]
async fn a_discount_with_another_price_in_it_can_be_changed() {
    let world = World::new().await;
    let acme = world.company("acme").await;
    let prices = ten_credits(&world, &acme).await;
    let minutes = |minutes: u32| Some(now().after(HOUR / 60 * minutes).to_string());
    let (begin, inner, outer) = (minutes(60), minutes(90), minutes(100));
    let (end, fourth, fifth) = (minutes(180), minutes(240), minutes(300));
    let set = async |path: &str, body: Value| {
        let set = world.post(&acme.key, path, body).await.expect(201);
        format!("{prices}/{}", set.text("/data/id"))
    };
    let discounts = format!("{prices}/discount");
    let discount = json!({"discount_percent": 50, "effective_from": begin, "effective_to": end});
    let discount = set(&discounts, discount).await;
    let cuts = json!({"price_credits": 20, "effective_from": outer});
    let cuts = set(&prices, cuts).await;
    let six = json!({"price_credits": 6});
    world.patch(&acme.key, &discount, six).await.expect(200);
    let expected = [(10, None), (6, begin.clone()), (20, outer.clone())];
    assert_eq!(coming(&world, &acme, &prices).await, expected);
    world.delete(&acme.key, &cuts).await.expect(204);
    let expected = [(10, None), (6, begin.clone()), (10, end.clone())];
    assert_eq!(coming(&world, &acme, &prices).await, expected);

    let within = json!({"discount_percent": 50, "effective_from": inner, "effective_to": outer});
    set(&discounts, within).await;
    let eight = json!({"price_credits": 8});
    world.patch(&acme.key, &discount, eight).await.expect(200);
    let mut expected = vec![(10, None), (8, begin), (3, inner), (8, outer), (10, end)];
    assert_eq!(coming(&world, &acme, &prices).await, expected);
    let planned = json!({"price_credits": 20, "effective_from": fourth});
    set(&prices, planned).await;
    let longer = json!({"effective_to": fifth});
    let refused = world.patch(&acme.key, &discount, longer).await;
    refused.expect_error(409, "PRICE_OVERLAP");
    expected.push((20, fourth));
    assert_eq!(coming(&world, &acme, &prices).await, expected);
}

/// Writes past the host, as one of another release would, of a price.
async fn write_past(world: &World, price: &str, statements: &[&'static str]) {
    let written = world.db.write(async |write| -> Result<(), StoreError> {
        for statement in statements {
            sqlx::query(*statement)
                .bind(price)
                .execute(&mut **write)
                .await?;
        }
        Ok(())
    });
    written.await.unwrap();
}

/// A host of the release before, which shares the store until it is upgraded, changes the price behind a discount and knows not what it is: what it has
/// written stays when the next price is set.
#[tokio::test]
async fn what_a_host_of_before_has_changed_stays() {
    const DEARER: &[&str] =
        &["UPDATE prices SET price_credits = 12, price_cents = 600 WHERE price_id = $1"];
    const REMOVED: &[&str] = &[
        "UPDATE prices SET effective_to = NULL
         WHERE (product_id, effective_to) = (SELECT product_id, effective_from FROM prices WHERE price_id = $1)",
        "DELETE FROM prices WHERE price_id = $1",
    ];
    const MOVED: &[&str] = &[
        "UPDATE prices SET effective_to = effective_to + 3600000000
         WHERE (product_id, effective_to) = (SELECT product_id, effective_from FROM prices WHERE price_id = $1)",
        "UPDATE prices SET effective_from = effective_from + 3600000000 WHERE price_id = $1",
    ];
    let world = World::new().await;
    let acme = world.company("acme").await;
    let begun = now();
    let at = |hours: u32| Some(begun.after(HOUR * hours).to_string());
    let (first, second, third) = (at(1), at(2), at(3));
    for (statements, expected) in [
        (DEARER, vec![(5, None), (12, first.clone())]),
        (REMOVED, vec![(5, None)]),
        (MOVED, vec![(5, None), (10, second)]),
    ] {
        let prices = ten_credits(&world, &acme).await;
        let discount = json!({"discount_percent": 50, "effective_to": first});
        let path = format!("{prices}/discount");
        world.post(&acme.key, &path, discount).await.expect(201);
        let listed = world.get(&acme.key, &prices).await.expect(200);
        write_past(&world, &listed.text("/data/0/id"), statements).await;
        assert_eq!(coming(&world, &acme, &prices).await, expected);
        let planned = json!({"price_credits": 30, "effective_from": third});
        let planned = world.post(&acme.key, &prices, planned).await.expect(201);
        let mut with_it = expected.clone();
        with_it.push((30, third.clone()));
        assert_eq!(coming(&world, &acme, &prices).await, with_it);
        let path = format!("{prices}/{}", planned.text("/data/id"));
        world.delete(&acme.key, &path).await.expect(204);
        assert_eq!(coming(&world, &acme, &prices).await, expected);
    }
}

/// What has begun by the clock of another host, which is ahead, or by this one's before it was set back, has begun: it stays, and the next price that
/// is set begins after it, and does not end with it.
#[tokio::test]
async fn what_a_clock_ahead_has_begun_is_history() {
    const AHEAD: &[&str] = &[
        "UPDATE prices SET effective_to = effective_to + 30000000, updated_at = updated_at + 30000000
         WHERE (product_id, effective_to) = (SELECT product_id, effective_from FROM prices WHERE price_id = $1)",
        "UPDATE prices SET effective_from = effective_from + 30000000, created_at = created_at + 30000000, updated_at = updated_at + 30000000
         WHERE price_id = $1",
    ];
    let world = World::new().await;
    let acme = world.company("acme").await;
    let prices = ten_credits(&world, &acme).await;
    let price = |credits: i64| json!({"price_credits": credits});
    let ahead = world.post(&acme.key, &prices, price(20)).await.expect(201);
    let ahead = ahead.text("/data/id");
    write_past(&world, &ahead, AHEAD).await;
    let path = format!("{prices}/{ahead}");
    let refused = world.patch(&acme.key, &path, price(21)).await;
    refused.expect_error(409, "INVALID_STATE");
    let refused = world.delete(&acme.key, &path).await;
    refused.expect_error(409, "INVALID_STATE");
    world.post(&acme.key, &prices, price(30)).await.expect(201);
    let all = coming(&world, &acme, &prices).await;
    let credits: Vec<i64> = all.iter().map(|(credits, _)| *credits).collect();
    assert_eq!(credits, [10, 20, 30]);
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
