//! Statistics of assets and endpoints as they arrive. That they are sums of rows is tested in the store (`host/store/tests/uses.rs`).

use crate::world::{Company, World, now};
use serde_json::{Value, json};
use souk_domain::ids::{AssetId, CompanyId, EndpointId, ExecutionId, KeyId, RequestId};
use souk_domain::products::Product;
use souk_domain::time::DAY;
use souk_store::executions::{Billing, Outcome, Run};

/// A run that costs nothing. `blame`: it failed.
async fn request(
    world: &World,
    seller: &Company,
    by: &Company,
    product: &Product,
    blame: Option<&'static str>,
) {
    let (at, failed) = (now(), blame.is_some());
    world.teller.record(&Run {
        id: ExecutionId::generate_at(at),
        company: CompanyId::parse(&by.id).unwrap(),
        seller: CompanyId::parse(&seller.id).unwrap(),
        product: product.clone(),
        purchase: None,
        price: None,
        actor: KeyId::generate().into(),
        request: RequestId::generate_at(at),
        outcome: match blame {
            None => Outcome::Succeeded,
            Some(blame) => Outcome::Failed {
                code: blame.into(),
                blame: blame.into(),
            },
        },
        billing: match (failed, by.id == seller.id) {
            (true, _) => Billing::Failed,
            (false, true) => Billing::Owner,
            (false, false) => Billing::FreeProduct,
        },
        rows: if failed { 0 } else { 20 },
        bytes: 10,
        started_at: at,
        duration_us: if failed { 9_000 } else { 3_000 },
    });
    world.teller.flush().await;
}

/// Two companies' charged runs, one of which was given back, and somebody's star.
#[tokio::test]
async fn an_owner_sees_how_an_asset_is_used() {
    let world = World::new().await;
    let (seller, buyer, other) = (
        world.company("seller").await,
        world.company("buyer").await,
        world.company("other").await,
    );
    let asset = world.asset(&seller).await;
    let path = seller.path(&format!("/assets/{asset}/statistics"));
    let public = format!("/assets/{asset}/public-statistics");
    let idle = world.get(&seller.key, &path).await.expect(200);
    let expected = json!([0, null, null, null, null, 0]);
    let figures = |body: &Value| {
        let names = [
            "executions",
            "success_rate",
            "avg_execution_time_ms",
            "p95_execution_time_ms",
            "last_execution_at",
            "credits_earned",
        ];
        Value::from(names.map(|name| body["data"][name].clone()).to_vec())
    };
    assert_eq!(figures(&idle.body), expected);
    for (by, credits) in [(&buyer, 10), (&other, 4), (&other, 3)] {
        world.grant(by, credits).await;
        let charge = world.charge(by, &seller, &asset, credits).await;
        if credits == 3 {
            let refund = seller.path(&format!("/credits/transactions/{charge}/refund"));
            let refund = world.post(&seller.key, &refund, json!({"reason": "wrong"}));
            refund.await.expect(201);
        }
    }
    let favorites = buyer.path(&format!("/users/{}/favorites", buyer.user_id));
    let favorite = json!({"asset_id": asset});
    world
        .post(&buyer.key, &favorites, favorite)
        .await
        .expect(201);

    world.teller.flush().await;
    let today = now().date();
    for (query, period, days) in [
        ("", "30d", 30),
        ("?period=24h", "24h", 2),
        ("?period=7d", "7d", 7),
        ("?period=90d", "90d", 90),
        (
            &*format!("?start_date={today}&end_date={today}"),
            "custom",
            1,
        ),
    ] {
        let shown = world.get(&seller.key, &format!("{path}{query}")).await;
        let mut data = shown.expect(200).body["data"].clone();
        let by_day = data["executions_by_day"].take();
        let by_day = by_day.as_array().unwrap();
        assert_eq!(by_day.len(), days);
        assert_eq!(
            by_day[days - 1],
            json!({"date": today, "executions": 3, "failed_executions": 0, "unique_buyers": 2, "credits": 17})
        );
        assert!(
            by_day[..days - 1]
                .iter()
                .all(|day| day["executions"] == 0 && day["credits"] == 0)
        );
        assert!(data["last_execution_at"].take().is_string());
        let start = now().before(DAY * (days as u32 - 1)).date();
        assert_eq!(
            data,
            json!({"asset_id": asset, "period": period, "start_date": start, "end_date": today, "executions": 3,
                   "successful_executions": 3, "failed_executions": 0, "excused_executions": 0, "own_executions": 0,
                   "success_rate": 1, "unique_buyers": 2,
                   "credits_earned": 14, "refunded_credits": 3, "seller_earnings_usd": 5.6, "avg_execution_time_ms": 2,
                   "p95_execution_time_ms": 2.016, "favorites": 1, "active_purchases": 0, "last_execution_at": null, "executions_by_day": null})
        );
    }
    // What anybody may know of it has no money in it.
    let shown = world.get(&buyer.key, &public).await.expect(200);
    let mut data = shown.body["data"].clone();
    assert!(data["last_updated"].take().is_string());
    assert_eq!(
        data,
        json!({"asset_id": asset, "executions_30d": 3, "total_executions": 3, "buyers": 0, "favorites": 1, "success_rate": 1,
               "avg_execution_time_ms": 2, "last_updated": null})
    );
}

/// Requests of the endpoint's own company are counted, and are neither buyers nor income.
#[tokio::test]
async fn an_owner_sees_how_an_endpoint_is_used() {
    let world = World::new().await;
    let (seller, buyer) = (world.company("seller").await, world.company("buyer").await);
    let endpoint = world.endpoint(&seller).await;
    let product = Product::Endpoint(EndpointId::parse(&endpoint).unwrap());
    for (by, blame) in [(&buyer, None), (&buyer, Some("source")), (&seller, None)] {
        request(&world, &seller, by, &product, blame).await;
    }
    let path = seller.path(&format!("/endpoints/{endpoint}/stats"));
    for (query, days) in [("", 30), ("?days=1", 1), ("?days=365", 365)] {
        let shown = world.get(&seller.key, &format!("{path}{query}")).await;
        let mut data = shown.expect(200).body["data"].clone();
        assert!(data["last_request_at"].take().is_string());
        let by_day = data["requests_by_day"].take();
        let by_day = by_day.as_array().unwrap();
        assert_eq!(by_day.len(), days);
        assert_eq!(
            by_day[days - 1],
            json!({"date": now().date(), "requests": 3})
        );
        assert_eq!(
            data,
            json!({"endpoint_id": endpoint, "days": days, "total_requests": 3, "successful_requests": 2, "failed_requests": 1,
                   "own_requests": 1, "rows_served": 40, "credits_earned": 0, "unique_buyers": 1, "avg_latency_ms": 5,
                   "p95_latency_ms": 9.216, "requests_by_day": null, "last_request_at": null})
        );
    }
}

/// A buyer's wrong values say nothing of what is on sale, nor does what its host cannot do.
#[tokio::test]
async fn what_others_do_wrong_is_not_held_against_a_product() {
    let world = World::new().await;
    let (seller, buyer) = (world.company("seller").await, world.company("buyer").await);
    let asset = world.asset(&seller).await;
    let product = Product::Asset(AssetId::parse(&asset).unwrap());
    for blame in [None, Some("caller"), Some("host"), Some("source"), None] {
        request(&world, &seller, &buyer, &product, blame).await;
    }
    let performance = seller.path("/asset-performance");
    let statistics = seller.path(&format!("/assets/{asset}/statistics"));
    let public = format!("/assets/{asset}/public-statistics");
    for (path, place) in [
        (&*public, "/data/success_rate"),
        (&*statistics, "/data/success_rate"),
        (&*performance, "/data/0/success_rate"),
    ] {
        let shown = world.get(&seller.key, path).await.expect(200);
        assert_eq!(shown.at(place), &json!(0.6667), "{path}");
    }
    let shown = world.get(&seller.key, &statistics).await.expect(200);
    let counted = ["executions", "failed_executions", "excused_executions"];
    let counted = counted.map(|name| shown.body["data"][name].clone());
    assert_eq!(counted, [json!(5), json!(3), json!(2)]);
    let listed = format!("/marketplace/products/{asset}");
    let shown = world.get(&buyer.key, &listed).await.expect(200);
    let stats = ["calls_30d", "success_percent_30d"];
    let stats = stats.map(|name| shown.body["data"]["stats"][name].clone());
    assert_eq!(stats, [json!(5), json!(66)]);
}

/// Whoever has only failed is no customer, nor among those that spent most.
#[tokio::test]
async fn who_got_nothing_is_no_customer() {
    let world = World::new().await;
    let seller = world.company("seller").await;
    let (buyer, other) = (world.company("buyer").await, world.company("other").await);
    let product = Product::Asset(AssetId::parse(&world.asset(&seller).await).unwrap());
    for (by, blame) in [(&buyer, None), (&other, Some("source"))] {
        request(&world, &seller, by, &product, blame).await;
    }
    let path = seller.path("/customer-analytics?period=week");
    let shown = world.get(&seller.key, &path).await.expect(200);
    assert_eq!(shown.at("/data/total_customers"), 1);
    assert_eq!(
        shown.at("/data/top_customers"),
        &json!([{"company_id": buyer.id, "name": "buyer", "credits_spent": 0, "executions": 1}])
    );
}

/// Figures of an own product are nobody else's; public ones are of what is on sale.
#[tokio::test]
async fn statistics_are_the_owners_and_public_ones_of_what_is_on_sale() {
    let world = World::new().await;
    let (seller, other) = (world.company("seller").await, world.company("other").await);
    let (asset, endpoint) = (world.asset(&seller).await, world.endpoint(&seller).await);
    let public = format!("/assets/{asset}/public-statistics");
    for rest in [
        format!("/assets/{asset}/statistics"),
        format!("/endpoints/{endpoint}/stats"),
    ] {
        world
            .get(&other.key, &seller.path(&rest))
            .await
            .expect_error(403, "COMPANY_ACCESS_DENIED");
        let foreign = world.get(&other.key, &other.path(&rest)).await;
        assert_eq!(foreign.status, 404, "{rest}");
        world
            .get(&world.platform, &seller.path(&rest))
            .await
            .expect(200);
        let wrong = world
            .get(&seller.key, &seller.path(&format!("{rest}?a=1&b=2")))
            .await
            .expect_error(400, "INVALID_PARAMETER");
        assert_eq!(wrong.fields(), ["a", "b"]);
    }
    let statistics = seller.path(&format!("/assets/{asset}/statistics"));
    let stats = seller.path(&format!("/endpoints/{endpoint}/stats"));
    for (path, code) in [
        (format!("{statistics}?period=1y"), "INVALID_PARAMETER"),
        (
            format!("{statistics}?start_date=2026-01-01"),
            "INVALID_PERIOD",
        ),
        (
            format!("{statistics}?period=7d&start_date=2026-01-01&end_date=2026-01-02"),
            "INVALID_PERIOD",
        ),
        (
            format!("{statistics}?start_date=2026-01-02&end_date=2026-01-01"),
            "INVALID_PERIOD",
        ),
        (
            format!("{statistics}?start_date=2024-01-01&end_date=2026-01-01"),
            "INVALID_PERIOD",
        ),
        (format!("{stats}?days=0"), "INVALID_PARAMETER"),
        (format!("{stats}?days=366"), "INVALID_PARAMETER"),
    ] {
        let refused = world.get(&seller.key, &path).await;
        refused.expect_error(400, code);
    }
    world.get(&other.key, &public).await.expect(200);
    let unpublish = seller.path(&format!("/assets/{asset}/unpublish"));
    world
        .post(&seller.key, &unpublish, json!({}))
        .await
        .expect(200);
    for key in [&seller.key, &other.key] {
        world
            .get(key, &public)
            .await
            .expect_error(404, "ASSET_NOT_FOUND");
    }
    let gone = world.asset(&seller).await;
    world.suspend(&seller).await;
    world
        .get(&other.key, &format!("/assets/{gone}/public-statistics"))
        .await
        .expect_error(404, "ASSET_NOT_FOUND");
}
