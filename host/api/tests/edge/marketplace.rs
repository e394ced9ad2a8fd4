//! The marketplace: what is on sale, as buyers find and see it.

use crate::world::{Answer, Company, World, now};
use serde_json::{Value, json};
use souk_domain::connections::Target;
use souk_domain::ids::{CompanyId, ConnectionId, UserId};
use souk_domain::products::{ResultType, SourceKind};
use souk_domain::time::{DAY, HOUR};
use souk_store::connections::{self, Written};
use souk_store::{StoreError, search};

async fn price(world: &World, company: &Company, kind: &str, id: &str, body: Value) -> Answer {
    let path = company.path(&format!("/{kind}/{id}/prices"));
    world.post(&company.key, &path, body).await.expect(201)
}

async fn found(world: &World, key: &str, query: &str) -> Vec<String> {
    let listed = world
        .get(key, &format!("/marketplace/products?{query}"))
        .await
        .expect(200);
    let ids = listed.at("/data").as_array().unwrap();
    ids.iter()
        .map(|product| product["id"].as_str().unwrap().to_owned())
        .collect()
}

/// Terms and AI training are on the listing and in the purchase; the purchase keeps what was accepted.
#[tokio::test]
async fn a_product_says_what_may_be_done_with_it() {
    let world = World::new().await;
    let (acme, buyer) = (world.company("acme").await, world.company("buyer").await);
    let (asset, endpoint) = (world.asset(&acme).await, world.endpoint(&acme).await);
    price(&world, &acme, "assets", &asset, json!({"price_usd": 1.2})).await;
    price(
        &world,
        &acme,
        "endpoints",
        &endpoint,
        json!({"price_credits": 2}),
    )
    .await;
    let path = format!("/marketplace/products/{asset}");
    let shown = world.get(&buyer.key, &path).await.expect(200);
    for (pointer, expected) in [
        ("/data/asset_id", json!(asset)),
        ("/data/product_type", json!("asset")),
        ("/data/billing_unit", json!("execution")),
        ("/data/company/handle", json!("acme")),
        ("/data/price_credits", json!(3)),
        ("/data/price_usd", json!(1.5)),
        ("/data/result_type", json!("number")),
        ("/data/ai_training/allowed", json!(true)),
        ("/data/terms/resale", json!(false)),
        (
            "/data/access",
            json!({"purchased": false, "purchase_id": null, "endpoint_key_id": null}),
        ),
        ("/data/stats/calls_30d", json!(0)),
        ("/data/stats/success_percent_30d", Value::Null),
        ("/data/endpoint_id", Value::Null),
    ] {
        assert_eq!(shown.at(pointer), &expected, "{pointer}");
    }
    world.grant(&buyer, 10).await;
    let bought = world
        .post(
            &buyer.key,
            &buyer.path("/purchases"),
            json!({"product_id": asset, "accept_terms": true}),
        )
        .await
        .expect(201);
    let charge = world.charge(&buyer, &acme, &asset, 3).await;
    world.charge(&buyer, &acme, &asset, 3).await;
    assert_eq!(
        (
            bought.at("/data/ai_training_allowed"),
            bought.at("/data/terms_version")
        ),
        (&json!(true), shown.at("/data/terms/version"))
    );
    let purchase = buyer.path(&format!("/purchases/{}", bought.text("/data/id")));
    let refund = acme.path(&format!("/credits/transactions/{charge}/refund"));
    world
        .post(&acme.key, &refund, json!({"reason": "stale"}))
        .await
        .expect(201);
    let kept = world.get(&buyer.key, &purchase).await.expect(200);
    assert_eq!(
        (kept.at("/data/executions"), kept.at("/data/credits_spent")),
        (&json!(2), &json!(3))
    );
    let shown = world.get(&buyer.key, &path).await.expect(200);
    assert_eq!(shown.at("/data/access/purchase_id"), bought.at("/data/id"));
    assert_eq!(
        shown.at("/data/stats"),
        &json!({"buyers": 1, "calls_30d": 2, "success_percent_30d": 100, "average_duration_ms_30d": 2})
    );
    let path = format!("/marketplace/products/{endpoint}");
    let shown = world.get(&buyer.key, &path).await.expect(200);
    assert_eq!(
        (
            shown.at("/data/billing_unit"),
            shown.at("/data/ai_training/allowed"),
            shown.at("/data/fields")
        ),
        (&json!("request"), &json!(false), &json!([]))
    );
    assert!(shown.text("/data/ai_training/notice").contains("excludes"));
    world
        .get(&buyer.key, "/marketplace/products/ast_unknown")
        .await
        .expect_error(404, "PRODUCT_NOT_FOUND");
}

/// Every filter and order; what is not published is nowhere.
#[tokio::test]
async fn products_are_found() {
    let world = World::new().await;
    let (acme, buyer) = (world.company("acme").await, world.company("buyer").await);
    let cheap = world.asset_with(&acme, |asset| {
        asset.name = "Goals per Match".into();
        asset.labels = r#"{"industry_ids":[1,12],"use_case_ids":[7],"tags":["2"]}"#.into();
    });
    let cheap = cheap.await;
    let dear = world.asset_with(&acme, |asset| {
        asset.name = "100%_sure".into();
        let labels =
            r#"{"industry_ids":[2],"use_case_ids":[1],"tags":["],\"use_case_ids\":[,7,]"]}"#;
        asset.labels = labels.into();
    });
    let dear = dear.await;
    let endpoint = world.endpoint(&acme).await;
    price(&world, &acme, "assets", &cheap, json!({"price_credits": 1})).await;
    price(&world, &acme, "assets", &dear, json!({"price_credits": 9})).await;
    search::learn(&world.db).await.unwrap();
    for (query, expected) in [
        ("sort_by=price_credits", vec![&cheap, &dear, &endpoint]),
        ("sort_by=name", vec![&dear, &endpoint, &cheap]),
        ("product_type=endpoint", vec![&endpoint]),
        ("product_type=asset&max_price_credits=8", vec![&cheap]),
        ("ai_training_allowed=false", vec![&endpoint]),
        ("product_type=asset&min_price_credits=2", vec![&dear]),
        (
            "min_price_credits=1&max_price_credits=9&sort_by=price_credits",
            vec![&cheap, &dear],
        ),
        (
            "result_type=number&sort_by=price_credits",
            vec![&cheap, &dear],
        ),
        ("result_type=chart", vec![]),
        ("engine_id=1", vec![]),
        ("fresh_within_days=1", vec![]),
        ("q=GOALS", vec![&cheap]),
        ("q=gaols+mat", vec![&cheap]),
        ("q=gaols+sure", vec![]),
        ("q=100%25_SU", vec![&dear]),
        ("q=%25", vec![]),
        ("q=+&sort_by=name", vec![&dear, &endpoint, &cheap]),
        ("q=ACME&sort_by=name&limit=1&offset=1", vec![&endpoint]),
        ("industry_id=1", vec![&cheap]),
        ("industry_id=12", vec![&cheap]),
        ("industry_id=2", vec![&dear]),
        ("industry_id=7", vec![]),
        ("use_case_id=7", vec![&cheap]),
        ("use_case_id=1", vec![&dear]),
        ("use_case_id=2", vec![]),
        ("category=none", vec![]),
    ] {
        let ids = found(&world, &buyer.key, query).await;
        assert_eq!(ids.iter().collect::<Vec<_>>(), expected, "{query}");
    }
    world.grant(&buyer, 10).await;
    world.charge(&buyer, &acme, &dear, 9).await;
    world.teller.flush().await;
    search::ranks::rank(&world.db, now()).await.unwrap();
    for order in ["popular", "trending"] {
        let query = format!("sort_by={order}");
        assert_eq!(found(&world, &buyer.key, &query).await[0], dear);
    }
    let page = world
        .get(&buyer.key, "/marketplace/products?limit=2&offset=2")
        .await
        .expect(200);
    assert_eq!(
        page.at("/meta"),
        &json!({"total": 3, "limit": 2, "offset": 2})
    );
    world
        .post(
            &acme.key,
            &acme.path(&format!("/assets/{cheap}/unpublish")),
            json!({}),
        )
        .await
        .expect(200);
    assert!(!found(&world, &buyer.key, "").await.contains(&cheap));
    world
        .get(&buyer.key, &format!("/marketplace/products/{cheap}"))
        .await
        .expect_error(404, "PRODUCT_NOT_FOUND");
    for wrong in [
        "limit=101",
        "sort_by=best",
        "industry_id=x",
        "page=1",
        "result_type=table",
        "min_price_credits=2&max_price_credits=1",
        "fresh_within_days=0",
    ] {
        world
            .get(&buyer.key, &format!("/marketplace/products?{wrong}"))
            .await
            .expect_error(400, "INVALID_PARAMETER");
    }
}

/// A suspension stops the buyer, also from cancelling around it, until the platform ends it.
#[tokio::test]
async fn a_purchase_is_suspended_and_resumed() {
    let world = World::new().await;
    let (acme, buyer) = (world.company("acme").await, world.company("buyer").await);
    let endpoint = world.endpoint(&acme).await;
    price(
        &world,
        &acme,
        "endpoints",
        &endpoint,
        json!({"price_credits": 2}),
    )
    .await;
    let body = json!({"product_id": endpoint, "accept_terms": true});
    let bought = world
        .post(&buyer.key, &buyer.path("/purchases"), body.clone())
        .await
        .expect(201);
    let id = bought.text("/data/id");
    let (own, admin) = (
        buyer.path(&format!("/purchases/{id}")),
        format!("/admin/purchases/{id}"),
    );
    world
        .post(&buyer.key, &format!("{admin}/suspend"), json!({}))
        .await
        .expect_error(403, "INSUFFICIENT_ROLE");
    let suspended = world
        .post(&world.platform, &format!("{admin}/suspend"), json!({}))
        .await
        .expect(200);
    assert_eq!(suspended.at("/data/status"), "suspended");
    world
        .post(&buyer.key, &format!("{own}/access"), json!({}))
        .await
        .expect_error(409, "INVALID_STATE");
    world
        .delete(&buyer.key, &own)
        .await
        .expect_error(409, "INVALID_STATE");
    let again = world
        .post(&buyer.key, &buyer.path("/purchases"), body)
        .await
        .expect(200);
    assert_eq!(again.at("/data/status"), "suspended");
    let shown = world
        .get(&buyer.key, &format!("/marketplace/products/{endpoint}"))
        .await
        .expect(200);
    assert_eq!(shown.at("/data/access/purchased"), false);
    world
        .post(&world.platform, &format!("{admin}/resume"), json!({}))
        .await
        .expect(200);
    world
        .post(&buyer.key, &format!("{own}/access"), json!({}))
        .await
        .expect(200);
    world.delete(&buyer.key, &own).await.expect(204);
    for verb in ["suspend", "resume"] {
        world
            .post(&world.platform, &format!("{admin}/{verb}"), json!({}))
            .await
            .expect_error(409, "INVALID_STATE");
        world
            .post(
                &world.platform,
                &format!("/admin/purchases/pur_unknown/{verb}"),
                json!({}),
            )
            .await
            .expect_error(404, "PURCHASE_NOT_FOUND");
    }
}

/// A planned price begins by itself, also in what is cached; who came before it pays the former one.
#[tokio::test]
async fn a_planned_price_begins_by_itself() {
    let world = World::new().await;
    let acme = world.company("acme").await;
    let asset = world
        .asset_with(&acme, |asset| {
            asset.details.source_kind = SourceKind::Path;
            asset.details.source = "/goals".into();
        })
        .await;
    let product = souk_domain::ids::AssetId::parse(&asset).unwrap();
    let credits = async |at| {
        let snapshot = souk_app::products::get(world.state.app(), &product, at).await;
        let snapshot = snapshot.unwrap();
        snapshot
            .priced
            .price
            .as_ref()
            .map(|price| price.credits.get())
    };
    assert_eq!(credits(crate::world::now()).await, None);
    price(&world, &acme, "assets", &asset, json!({"price_credits": 2})).await;
    let now = crate::world::now();
    assert_eq!(credits(now).await, Some(2));
    let begins = now.after(HOUR);
    let planned = json!({"price_credits": 5, "effective_from": begins.to_string()});
    price(&world, &acme, "assets", &asset, planned).await;
    let admitted = souk_app::products::get(world.state.app(), &product, now)
        .await
        .unwrap();
    let just_before = begins.before(std::time::Duration::from_micros(1));
    for (at, expected) in [
        (now, 2),
        (just_before, 2),
        (begins, 5),
        (just_before, 2),
        (begins.after(HOUR), 5),
    ] {
        assert_eq!(credits(at).await, Some(expected), "{at}");
    }
    // What a run was admitted with stays what it pays, whatever is cached meanwhile.
    let price = admitted.priced.price.as_ref().unwrap();
    assert_eq!(price.credits.get(), 2);
}

/// A company that is suspended sells nothing new.
#[tokio::test]
async fn a_suspended_seller_sells_nothing() {
    let world = World::new().await;
    let (acme, buyer) = (world.company("acme").await, world.company("buyer").await);
    let asset = world.asset(&acme).await;
    let body = json!({"product_id": asset, "accept_terms": true});
    world.suspend(&acme).await;
    world
        .get(&buyer.key, &format!("/marketplace/products/{asset}"))
        .await
        .expect_error(404, "PRODUCT_NOT_FOUND");
    assert!(found(&world, &buyer.key, "").await.is_empty());
    world
        .post(&buyer.key, &buyer.path("/purchases"), body)
        .await
        .expect_error(404, "PRODUCT_NOT_FOUND");
}

/// A suspended company's products are not run: the buyer is told, and pays nothing.
#[tokio::test]
async fn a_suspended_sellers_products_are_not_run() {
    let world = World::new().await;
    let (acme, buyer) = (world.company("acme").await, world.company("buyer").await);
    let asset = world.sample(&acme, "{}").await;
    price(&world, &acme, "assets", &asset, json!({"price_credits": 2})).await;
    world.grant(&buyer, 10).await;
    let body = json!({"product_id": asset, "accept_terms": true});
    world
        .post(&buyer.key, &buyer.path("/purchases"), body)
        .await
        .expect(201);
    let run = buyer.path(&format!("/assets/{asset}/execute"));
    let before = world.post(&buyer.key, &run, json!({})).await;
    assert_ne!(before.at("/error/code"), "SELLER_SUSPENDED");
    world.suspend(&acme).await;
    let refused = world.post_keyed(&buyer.key, &run, "k", json!({})).await;
    let refused = refused.expect_error(409, "SELLER_SUSPENDED");
    assert_eq!(refused.at("/error/details/charged"), false);
    let preview = format!("/marketplace/products/{asset}/preview");
    world
        .get(&buyer.key, &preview)
        .await
        .expect_error(409, "SELLER_SUSPENDED");
    assert_eq!(world.balance(&buyer).await, 10);
    world.assert_books().await;
}

/// Previews are counted for each product, however it is spelled.
#[tokio::test]
async fn sixty_previews_an_hour_of_each_product() {
    let world = World::new().await;
    let (acme, buyer) = (world.company("acme").await, world.company("buyer").await);
    let sample = r#"{"result":{"answer_value":2.5},"data_freshness":null,"taken_at":"2026-01-01T00:00:00Z"}"#;
    let one = world.sample(&acme, sample).await;
    let other = world.sample(&acme, sample).await;
    let spellings = [
        format!("/marketplace/products/{one}/preview"),
        format!("/marketplace/products/%61{}/preview", &one[1..]),
    ];
    for number in 0..60 {
        let shown = world.get(&buyer.key, &spellings[number % 2]).await;
        let shown = shown.expect(200);
        assert_eq!(shown.at("/data/answer_value"), 2.5);
        assert_eq!(shown.header("x-ratelimit-limit"), "60");
        let left = (59 - number).to_string();
        assert_eq!(shown.header("x-ratelimit-remaining"), left);
    }
    for path in &spellings {
        let refused = world.get(&buyer.key, path).await;
        let refused = refused.expect_error(429, "RATE_LIMIT_EXCEEDED");
        assert_eq!(refused.at("/error/details/operation"), "preview_product");
    }
    let path = format!("/marketplace/products/{other}/preview");
    world.get(&buyer.key, &path).await.expect(200);
}

/// A source of this storage engine, straight in the store.
async fn source(world: &World, company: &Company, engine: i64) -> ConnectionId {
    let id = ConnectionId::generate();
    let written = Written {
        name: "a source",
        credential_type: "none",
        credentials: b"sealed",
        target: &Target::File {
            name: "games".to_owned(),
        },
        cloud_provider_id: None,
        verified_usage_ability: true,
        statement_timeout_ms: 1_000,
    };
    let (company, user) = (
        CompanyId::parse(&company.id).unwrap(),
        UserId::parse(&company.user_id).unwrap(),
    );
    let added = world.db.write(async |write| {
        connections::insert(write, &id, &company, &user, engine, &written, now()).await
    });
    added.await.unwrap();
    id
}

/// Products are found by what they are made of: the engine of their source, the kind of their result, and how old their preview is.
#[tokio::test]
async fn products_are_found_by_their_making() {
    let world = World::new().await;
    let (acme, buyer) = (world.company("acme").await, world.company("buyer").await);
    let mut assets = Vec::new();
    for (name, engine, result_type, days) in [
        ("a", 1, ResultType::Number, Some(0)),
        ("b", 2, ResultType::String, Some(3)),
        ("c", 2, ResultType::Chart, None),
    ] {
        let connection = source(&world, &acme, engine).await;
        let asset = world.asset_with(&acme, |asset| {
            asset.name = name.into();
            asset.connection_id = connection;
            asset.details.result_type = result_type;
        });
        let asset = asset.await;
        let sampled_at = days.map(|days| now().before(DAY * days).micros());
        world
            .db
            .write(async |write| -> Result<_, StoreError> {
                sqlx::query("UPDATE products SET sampled_at = $1 WHERE id = $2")
                    .bind(sampled_at)
                    .bind(&asset)
                    .execute(&mut **write)
                    .await
                    .unwrap();
                Ok(())
            })
            .await
            .unwrap();
        assets.push(asset);
    }
    let [a, b, c] = assets.try_into().unwrap();
    for (query, expected) in [
        ("engine_id=1", vec![&a]),
        ("engine_id=2", vec![&b, &c]),
        ("engine_id=3", vec![]),
        ("result_type=string", vec![&b]),
        ("result_type=chart", vec![&c]),
        ("result_type=prediction", vec![]),
        ("fresh_within_days=1", vec![&a]),
        ("fresh_within_days=3", vec![&a]),
        ("fresh_within_days=4", vec![&a, &b]),
        ("engine_id=2&fresh_within_days=4", vec![&b]),
        ("engine_id=1&result_type=string", vec![]),
    ] {
        let ids = found(&world, &buyer.key, &format!("{query}&sort_by=name")).await;
        assert_eq!(ids.iter().collect::<Vec<_>>(), expected, "{query}");
    }
}
