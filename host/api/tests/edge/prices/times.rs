//! Which of the prices that were asked for holds when: discounts, planned prices and what comes again behind them (`docs/prices.md`).

use crate::world::{Company, World, now};
use serde_json::{Value, json};
use souk_domain::time::{HOUR, Timestamp};
use souk_store::StoreError;

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
