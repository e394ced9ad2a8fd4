//! What a company sees of itself: counts, lists, sales, customers and requests. That figures are sums of rows is tested in the store
//! (`host/store/tests/sales.rs`); here, that they arrive as they are described.

mod requests;
mod suspensions;

use crate::world::{Company, World, now};
use serde_json::{Value, json};
use souk_domain::time::DAY;

const ALL: [&str; 7] = [
    "/summary",
    "/objects",
    "/seller-dashboard",
    "/sales",
    "/asset-performance",
    "/customer-analytics",
    "/request-usage",
];

struct Market {
    world: World,
    seller: Company,
    buyers: [Company; 2],
    asset: String,
}

impl Market {
    /// Two buyers of one asset: 10 and 4 credits, and 3 that were given back.
    async fn sold() -> Market {
        let world = World::new().await;
        let seller = world.company("seller").await;
        let buyers = [world.company("one").await, world.company("two").await];
        let asset = world.asset(&seller).await;
        for (buyer, credits) in [(0, 10), (1, 4), (1, 3)] {
            world.grant(&buyers[buyer], credits).await;
            let charge = world.charge(&buyers[buyer], &seller, &asset, credits).await;
            if credits == 3 {
                let refund = seller.path(&format!("/credits/transactions/{charge}/refund"));
                let refund = world.post(&seller.key, &refund, json!({"reason": "wrong"}));
                refund.await.expect(201);
            }
        }
        Market {
            world,
            seller,
            buyers,
            asset,
        }
    }

    /// A run that began so many days ago.
    async fn sold_before(&self, days: u32, credits: i64) {
        let (world, buyer) = (&self.world, &self.buyers[0]);
        world.grant(buyer, credits).await;
        let at = now().before(DAY * days);
        world
            .charge_at(buyer, &self.seller, &self.asset, credits, at)
            .await;
    }

    async fn get(&self, rest: &str) -> Value {
        let path = self.seller.path(rest);
        self.world
            .get(&self.seller.key, &path)
            .await
            .expect(200)
            .body
    }
}

/// Whoever may read in the company sees them, nobody else, and what is wrong is named.
#[tokio::test]
async fn they_are_the_companys_own() {
    let world = World::new().await;
    let (acme, other) = (world.company("acme").await, world.company("other").await);
    let reader = json!({"name": "reader", "role_id": 1});
    let reader = world
        .post(&acme.key, &acme.path("/api-keys"), reader)
        .await
        .expect(201);
    for rest in ALL {
        let path = acme.path(rest);
        world
            .get("", &path)
            .await
            .expect_error(401, "MISSING_API_KEY");
        world
            .get(&other.key, &path)
            .await
            .expect_error(403, "COMPANY_ACCESS_DENIED");
        world
            .get(&reader.text("/data/key"), &path)
            .await
            .expect(200);
        world.get(&world.platform, &path).await.expect(200);
        let wrong = format!("{path}?colour=red&size=1");
        let wrong = world
            .get(&acme.key, &wrong)
            .await
            .expect_error(400, "INVALID_PARAMETER");
        assert_eq!(
            wrong.at("/error/details/errors").as_array().unwrap().len(),
            2,
            "{rest}"
        );
    }
    for (rest, code) in [
        ("/objects?types=assets,cats", "INVALID_PARAMETER"),
        ("/seller-dashboard?period=year", "INVALID_PARAMETER"),
        ("/asset-performance?sort_by=colour", "INVALID_PARAMETER"),
        ("/customer-analytics?period=", "INVALID_PARAMETER"),
        ("/sales?metrics=revenue_credits,profit", "INVALID_PARAMETER"),
        ("/sales?group_by=year", "INVALID_PARAMETER"),
        (
            "/sales?start_date=2026-02-30&end_date=2026-03-01",
            "INVALID_PARAMETER",
        ),
        ("/sales?start_date=2026-01-01", "INVALID_PERIOD"),
        (
            "/sales?start_date=2026-01-02&end_date=2026-01-01",
            "INVALID_PERIOD",
        ),
        (
            "/sales?start_date=2025-01-01&end_date=2026-01-02",
            "INVALID_PERIOD",
        ),
        ("/request-usage?month=2026-13", "INVALID_PARAMETER"),
        ("/request-usage?format=xml", "INVALID_PARAMETER"),
    ] {
        world
            .get(&acme.key, &acme.path(rest))
            .await
            .expect_error(400, code);
    }
}

/// The dashboard of each period shows what was sold in it, what came before it, and how that differs.
#[tokio::test]
async fn a_dashboard_shows_what_was_sold() {
    let market = Market::sold().await;
    // Each is behind one period more, and in those that are longer.
    for (days, credits) in [(1, 7), (8, 20), (31, 5), (91, 41)] {
        market.sold_before(days, credits).await;
    }
    let grown = |revenue: Value, executions: i64| json!({"revenue_credits": revenue, "executions": executions, "endpoint_requests": null, "active_buyers": 100});
    for (period, days, sold, uses, before, growth) in [
        ("day", 1, 14, 3, 7, grown(json!(100), 200)),
        ("week", 7, 21, 4, 20, grown(json!(5), 300)),
        ("month", 30, 41, 5, 5, grown(json!(720), 400)),
        ("quarter", 90, 46, 6, 41, grown(json!(12.2), 500)),
    ] {
        let body = market
            .get(&format!("/seller-dashboard?period={period}"))
            .await;
        let mut data = body["data"].clone();
        let start = now().before(DAY * (days - 1)).date();
        let expected = [json!(period), json!(start), json!(now().date())];
        assert_eq!(
            ["period", "start", "end"].map(|name| data[name].take()),
            expected
        );
        let former = figures(before, 0, 1, 1);
        assert_eq!(data["previous"].take(), former, "{period}");
        assert_eq!(data["change_percent"].take(), growth, "{period}");
        let top = json!([{"product_id": market.asset, "product_type": "asset", "name": "an asset", "revenue_credits": sold, "uses": uses, "buyers": 2}]);
        assert_eq!(data["top_products"].take(), top);
        let data = data.as_object().unwrap();
        let shown = data.iter().filter(|(_, value)| !value.is_null());
        let shown: Value = Value::Object(
            shown
                .map(|(name, value)| (name.clone(), value.clone()))
                .collect(),
        );
        assert_eq!(shown, figures(sold, 3, uses, 2), "{period}");
    }
    assert_eq!(
        market.get("/seller-dashboard").await["data"]["period"],
        "month"
    );
    // All that was ever earned is what the ledger says.
    let earned = market.get("/earnings").await;
    assert_eq!(earned["data"]["gross_credits"], 14 + 7 + 20 + 5 + 41);
}

/// What a dashboard says of a period in which assets were sold for so many credits.
fn figures(credits: i64, refunded: i64, executions: i64, buyers: i64) -> Value {
    let usd = |cents: i64| match cents % 100 {
        0 => json!(cents / 100),
        _ => json!(cents as f64 / 100.0),
    };
    json!({"revenue_credits": credits, "revenue_usd": usd(50 * credits), "seller_earnings_usd": usd(40 * credits),
           "platform_fee_usd": usd(10 * credits), "refunded_credits": refunded, "executions": executions, "endpoint_requests": 0,
           "failed_runs": 0, "active_buyers": buyers})
}

/// Sales by time have no gaps, by product and buyer the highest come first, and only what is asked for is shown.
#[tokio::test]
async fn sales_are_grouped_as_asked() {
    let market = Market::sold().await;
    let by_day = market.get("/sales").await;
    let days = by_day["data"].as_array().unwrap();
    assert_eq!(days.len(), 30);
    let sold = json!({"revenue_credits": 14, "revenue_usd": 7, "seller_earnings_usd": 5.6, "executions": 3, "requests": 0, "buyers": 2, "refunds": 3});
    let mut today = days[29].clone();
    assert_eq!(today["group"], now().date().as_str());
    today.as_object_mut().unwrap().remove("group");
    assert_eq!(today, sold);
    assert_eq!(
        (&by_day["meta"]["totals"], &by_day["meta"]["truncated"]),
        (&sold, &json!(false))
    );
    assert!(
        days[..29]
            .iter()
            .all(|day| day["revenue_credits"] == 0 && day["buyers"] == 0)
    );

    let today = now().date();
    let range = format!("start_date={today}&end_date={today}");
    for (group_by, group) in [("day", today.clone()), ("month", today[..7].to_owned())] {
        let path =
            format!("/sales?{range}&group_by={group_by}&metrics=executions,%20buyers,executions");
        let body = market.get(&path).await;
        assert_eq!(
            body["data"],
            json!([{"group": group, "executions": 3, "buyers": 2}])
        );
        assert_eq!(
            body["meta"],
            json!({"group_by": group_by, "metrics": ["executions", "buyers"], "start_date": today, "end_date": today, "truncated": false,
                   "totals": {"executions": 3, "buyers": 2}})
        );
    }
    let year = market
        .get("/sales?start_date=2024-01-01&end_date=2024-12-31&group_by=week")
        .await;
    let weeks = year["data"].as_array().unwrap();
    assert_eq!(
        (weeks.len(), &weeks[0]["group"], &weeks[52]["group"]),
        (53, &json!("2024-01-01"), &json!("2024-12-30"))
    );
    let year = market
        .get("/sales?start_date=2024-01-15&end_date=2024-12-31&group_by=month")
        .await;
    assert_eq!(year["data"].as_array().unwrap().len(), 12);
    let products = market
        .get("/sales?group_by=product&metrics=revenue_credits,refunds")
        .await;
    let product =
        json!([{"group": market.asset, "name": "an asset", "revenue_credits": 14, "refunds": 3}]);
    assert_eq!(products["data"], product);
    let buyers = market
        .get("/sales?group_by=buyer&metrics=revenue_credits")
        .await;
    assert_eq!(
        buyers["data"],
        json!([{"group": market.buyers[0].id, "name": "one", "revenue_credits": 10}, {"group": market.buyers[1].id, "name": "two", "revenue_credits": 4}])
    );
}

/// The newest runs of a seller's products are there with who asked and what it paid, and for the seller only.
#[tokio::test]
async fn sellers_list_their_newest_runs() {
    let market = Market::sold().await;
    market.world.teller.flush().await;
    let listed = market.get("/executions?status=succeeded&per_page=2").await;
    assert_eq!(
        listed["meta"],
        json!({"total": 3, "page": 1, "per_page": 2})
    );
    let last = market.get("/executions?per_page=1&page=3").await;
    let first = &last["data"][0];
    for (member, expected) in [
        ("product_id", json!(market.asset)),
        ("product_type", json!("asset")),
        ("company_id", json!(market.buyers[0].id)),
        ("status", json!("succeeded")),
        ("billing", json!("charged")),
        ("class", Value::Null),
    ] {
        assert_eq!(first[member], expected, "{member}: {first}");
    }
    assert!(first["credits"].as_i64().is_some_and(|credits| credits > 0));
    let request = first["request_id"].as_str().unwrap();
    let found = market
        .get(&format!("/executions?request_id={request}"))
        .await;
    assert_eq!(found["meta"]["total"], 1);
    assert_eq!(
        market.get("/executions?status=failed").await["meta"]["total"],
        0
    );
    let (key, buyer) = (&market.buyers[0].key, &market.buyers[0]);
    let bought = market.world.get(key, &buyer.path("/executions")).await;
    assert_eq!(bought.expect(200).body["meta"]["total"], 0);
}

/// Staff finds a company by what is in its name, in whatever case a to z are, and other letters as they were written.
#[tokio::test]
async fn staff_finds_companies_by_their_names() {
    let world = World::new().await;
    let new = json!({"name": "Ärzte GmbH", "handle": "aerzte"});
    let made = world.post(&world.platform, "/admin/companies", new).await;
    let id = made.expect(201).text("/data/company/id");
    world.company("other").await;
    for text in ["%C3%84RZTE%20g", "AERZ"] {
        let path = format!("/admin/companies?q={text}");
        let found = world.get(&world.platform, &path).await.expect(200);
        assert_eq!(found.body["meta"]["total"], 1, "{text}");
        assert_eq!(found.text("/data/0/id"), id);
    }
    let none = world.get(&world.platform, "/admin/companies?q=%25").await;
    assert_eq!(none.expect(200).body["meta"]["total"], 0);
}

/// Assets and customers.
#[tokio::test]
async fn assets_and_customers_are_told_apart() {
    let market = Market::sold().await;
    let idle = market.world.asset(&market.seller).await;
    let performance = market.get("/asset-performance?period=week").await;
    assert_eq!(
        performance["meta"],
        json!({"total": 2, "page": 1, "per_page": 50})
    );
    assert_eq!(
        performance["data"],
        json!([
            {"asset_id": market.asset, "name": "an asset", "status": "published", "executions": 3, "failed_executions": 0, "success_rate": 1,
             "credits_earned": 14, "unique_buyers": 2, "avg_execution_time_ms": 2, "trend_percent": null},
            {"asset_id": idle, "name": "an asset", "status": "published", "executions": 0, "failed_executions": 0, "success_rate": null,
             "credits_earned": 0, "unique_buyers": 0, "avg_execution_time_ms": null, "trend_percent": null},
        ])
    );
    let last = market
        .get("/asset-performance?sort_by=executions&sort_order=asc&per_page=1&page=2")
        .await;
    assert_eq!(last["data"][0]["asset_id"], market.asset.as_str());

    let customers = market.get("/customer-analytics?period=week").await;
    let data = &customers["data"];
    let counts = [
        "total_customers",
        "new_customers",
        "returning_customers",
        "churned_customers",
    ];
    assert_eq!(
        counts.map(|name| data[name].clone()),
        [2, 2, 0, 0].map(Value::from)
    );
    assert_eq!(
        data["top_customers"],
        json!([{"company_id": market.buyers[0].id, "name": "one", "credits_spent": 10, "executions": 1},
               {"company_id": market.buyers[1].id, "name": "two", "credits_spent": 4, "executions": 2}])
    );
    let days = data["customers_by_day"].as_array().unwrap();
    assert_eq!(
        (days.len(), &days[6]),
        (7, &json!({"date": now().date(), "customers": 2}))
    );
    // Who buys does not see what others sell.
    let buyer = &market.buyers[0];
    let own = market
        .world
        .get(&buyer.key, &buyer.path("/seller-dashboard"))
        .await
        .expect(200);
    assert_eq!(own.at("/data/revenue_credits"), 0);
}

/// What there is is counted and listed, what was is not.
#[tokio::test]
async fn what_a_company_has_is_counted_and_listed() {
    let world = World::new().await;
    let acme = world.company("acme").await;
    let keys = acme.path("/api-keys");
    let made = world
        .post(&acme.key, &keys, json!({"name": "gone"}))
        .await
        .expect(201);
    world
        .delete(&acme.key, &format!("{keys}/{}", made.text("/data/id")))
        .await
        .expect(204);
    let (asset, endpoint) = (world.asset(&acme).await, world.endpoint(&acme).await);
    let archived = world.asset(&acme).await;
    world
        .delete(&acme.key, &acme.path(&format!("/assets/{archived}")))
        .await
        .expect(204);
    let hook = json!({"url": "https://93.184.216.34/souk"});
    world
        .post(&acme.key, &acme.path("/webhooks"), hook)
        .await
        .expect(201);
    let favorites = acme.path(&format!("/users/{}/favorites", acme.user_id));
    world
        .post(&acme.key, &favorites, json!({"asset_id": asset}))
        .await
        .expect(201);
    let summary = world
        .get(&acme.key, &acme.path("/summary"))
        .await
        .expect(200);
    assert_eq!(
        summary.at("/data"),
        &json!({"assets": 1, "endpoints": 1, "connections": 0, "files": 0, "api_keys": 1, "users": 1, "webhooks": 1, "purchases": 0, "favorites": 1, "alerts": 0, "posts": 0})
    );
    let objects = world
        .get(&acme.key, &acme.path("/objects"))
        .await
        .expect(200);
    let data = objects.at("/data");
    assert_eq!(
        data["assets"],
        json!([{"id": asset, "name": "an asset", "status": "published"}])
    );
    assert_eq!(
        data["endpoints"],
        json!([{"id": endpoint, "name": "an endpoint", "status": "published"}])
    );
    assert_eq!(data["webhooks"][0]["name"], "https://93.184.216.34/souk");
    let keys = data["api_keys"].as_array().unwrap();
    let states: Vec<_> = keys
        .iter()
        .map(|key| key["status"].as_str().unwrap())
        .collect();
    assert_eq!(states.len(), 2);
    assert!(states.contains(&"active") && states.contains(&"deactivated"));
    assert_eq!(
        (&data["connections"], &data["truncated"]),
        (&json!([]), &json!([]))
    );
    let some = world
        .get(&acme.key, &acme.path("/objects?types=users,%20files"))
        .await
        .expect(200);
    let names: Vec<_> = some.at("/data").as_object().unwrap().keys().collect();
    assert_eq!(names, ["files", "truncated", "users"]);
}

/// A name is one line: it stands in the midst of others' texts, and in mails that leave under the operator's address.
#[tokio::test]
async fn a_name_is_one_line() {
    let world = World::new().await;
    let acme = world.company("acme").await;
    let user = acme.path(&format!("/users/{}", acme.user_id));
    for name in ["a\nb", "a\r\nBcc: x@example.org", "a\u{2028}b", "a\u{7}"] {
        let (alone, own) = (json!({"name": name}), acme.path(""));
        let company = json!({"name": name, "handle": "other"});
        let invited = json!({"name": name, "email": "ann@example.org"});
        for refused in [
            world
                .post(&world.platform, "/admin/companies", company)
                .await,
            world.patch(&acme.key, &own, alone.clone()).await,
            world.invite(&acme, invited).await,
            world.patch(&acme.key, &user, alone).await,
        ] {
            let refused = refused.expect_error(400, "VALIDATION_ERROR");
            assert_eq!(refused.field(), "name", "{name:?}");
        }
    }
}
