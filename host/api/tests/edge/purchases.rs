//! Purchases: terms accepted, keys provisioned once.

use crate::world::{Company, World};
use serde_json::{Value, json};

/// Buying an endpoint provisions its key, shown once; buying again shows what there is.
#[tokio::test]
async fn an_endpoints_purchase_provisions_a_key_once() {
    let world = World::new().await;
    let (acme, buyer) = (world.company("acme").await, world.company("buyer").await);
    let endpoint = world.endpoint(&acme).await;
    world
        .post(
            &acme.key,
            &acme.path(&format!("/endpoints/{endpoint}/prices")),
            json!({"price_credits": 2}),
        )
        .await
        .expect(201);
    let body = json!({"product_id": endpoint, "accept_terms": true});
    let bought = world
        .post(&buyer.key, &buyer.path("/purchases"), body.clone())
        .await
        .expect(201);
    assert!(
        bought.text("/data/endpoint_key/key").starts_with("ep_")
            && !bought.text("/data/endpoint_key/key").contains('*')
    );
    assert_eq!(
        (
            bought.at("/data/price_credits_at_purchase"),
            bought.at("/data/endpoint_key/source")
        ),
        (&json!(2), &json!("marketplace"))
    );
    let again = world
        .post(&buyer.key, &buyer.path("/purchases"), body)
        .await
        .expect(200);
    assert_eq!(again.at("/data/id"), bought.at("/data/id"));
    assert!(again.text("/data/endpoint_key/key").starts_with("ep_****"));
    let id = bought.text("/data/id");
    assert_eq!(
        world
            .get(&buyer.key, &buyer.path(&format!("/purchases/{id}")))
            .await
            .expect(200)
            .at("/data/product_id"),
        &json!(endpoint)
    );
    assert_eq!(
        world
            .get(&buyer.key, &buyer.path("/purchases?product_type=endpoint"))
            .await
            .expect(200)
            .at("/meta/total"),
        1
    );
    assert_eq!(
        world
            .get(&buyer.key, &buyer.path("/purchases?product_type=asset"))
            .await
            .expect(200)
            .at("/meta/total"),
        0
    );
}

/// Terms must be accepted; unknown products are 404; one's own needs no purchase.
#[tokio::test]
async fn what_cannot_be_bought_is_refused() {
    let world = World::new().await;
    let acme = world.company("acme").await;
    let asset = world.asset(&acme).await;
    let purchases = acme.path("/purchases");
    world
        .post(
            &acme.key,
            &purchases,
            json!({"product_id": asset, "accept_terms": false}),
        )
        .await
        .expect_error(400, "VALIDATION_ERROR");
    world
        .post(&acme.key, &purchases, json!({"product_id": asset}))
        .await
        .expect_error(400, "VALIDATION_ERROR");
    world
        .post(
            &acme.key,
            &purchases,
            json!({"product_id": "ast_unknown", "accept_terms": true}),
        )
        .await
        .expect_error(404, "PRODUCT_NOT_FOUND");
    world
        .post(
            &acme.key,
            &purchases,
            json!({"product_id": asset, "accept_terms": true}),
        )
        .await
        .expect_error(409, "CONFLICT");
}

/// Cancelling takes the key away; coming back to a purchase whose key is gone makes a new one.
#[tokio::test]
async fn access_is_renewed_until_it_is_cancelled() {
    let world = World::new().await;
    let (acme, buyer) = (world.company("acme").await, world.company("buyer").await);
    let endpoint = world.endpoint(&acme).await;
    let body = json!({"product_id": endpoint, "accept_terms": true});
    let bought = world
        .post(&buyer.key, &buyer.path("/purchases"), body.clone())
        .await
        .expect(201);
    let path = buyer.path(&format!("/purchases/{}", bought.text("/data/id")));
    let masked = world
        .post(&buyer.key, &format!("{path}/access"), json!({}))
        .await
        .expect(200);
    assert!(masked.text("/data/endpoint_key/key").starts_with("ep_****"));

    let key = bought.text("/data/endpoint_key/id");
    world
        .delete(&buyer.key, &buyer.path(&format!("/api-keys/{key}")))
        .await
        .expect(204);
    let renewed = world
        .post(&buyer.key, &format!("{path}/access"), json!({}))
        .await
        .expect(201);
    assert!(!renewed.text("/data/endpoint_key/key").contains('*'));
    assert_ne!(renewed.text("/data/endpoint_key_id"), key);

    let renewed_id = renewed.text("/data/endpoint_key_id");
    let path_of_key = buyer.path(&format!("/api-keys/{renewed_id}"));
    let reason = json!({"reason": "lost", "reason_code": "compromised"});
    let revoke = format!("{path_of_key}/revoke");
    world.post(&buyer.key, &revoke, reason).await.expect(200);
    let revoked = world.get(&buyer.key, &path_of_key).await.expect(200);
    assert_eq!(revoked.at("/data/reason_code"), "compromised");
    let told = world
        .get(&renewed.text("/data/endpoint_key/key"), "/endpoints/v1/any")
        .await
        .expect_error(410, "API_KEY_DEACTIVATED");
    assert!(told.text("/error/message").contains("POST …/purchases"));
    let renewed = world
        .post(&buyer.key, &buyer.path("/purchases"), body.clone())
        .await
        .expect(201);
    assert!(!renewed.text("/data/endpoint_key/key").contains('*'));
    assert_ne!(renewed.text("/data/endpoint_key_id"), renewed_id);
    assert_eq!(renewed.at("/data/id"), bought.at("/data/id"));
    let same = world
        .post(&buyer.key, &buyer.path("/purchases"), body.clone())
        .await
        .expect(200);
    assert_eq!(
        same.at("/data/endpoint_key_id"),
        renewed.at("/data/endpoint_key_id")
    );

    world.delete(&buyer.key, &path).await.expect(204);
    world
        .get(&renewed.text("/data/endpoint_key/key"), "/endpoints/v1/any")
        .await
        .expect_error(410, "API_KEY_DEACTIVATED");
    world
        .post(&buyer.key, &format!("{path}/access"), json!({}))
        .await
        .expect_error(409, "INVALID_STATE");
    assert_eq!(
        world
            .get(&buyer.key, &path)
            .await
            .expect(200)
            .at("/data/status"),
        "cancelled"
    );
    let again = world
        .post(&buyer.key, &buyer.path("/purchases"), body)
        .await
        .expect(201);
    assert_eq!(
        (again.at("/data/status"), again.at("/data/id")),
        (&json!("active"), bought.at("/data/id"))
    );
    assert!(!again.text("/data/endpoint_key/key").contains('*'));
}

/// A purchase says what was bought, as it is today, wherever in its life; in a list each has its own.
#[tokio::test]
async fn a_purchase_says_what_was_bought() {
    let world = World::new().await;
    let (acme, buyer) = (world.company("acme").await, world.company("buyer").await);
    let asset = world.asset_with(&acme, |asset| {
        asset.name = "Goals".into();
        asset.slug = "goals".into();
    });
    let (asset, endpoint) = (asset.await, world.endpoint(&acme).await);
    let prices = acme.path(&format!("/assets/{asset}/prices"));
    let price = async |credits: i64| {
        let body = json!({"price_credits": credits});
        world.post(&acme.key, &prices, body).await.expect(201);
    };
    price(2).await;
    for product in [&asset, &endpoint] {
        let body = json!({"product_id": product, "accept_terms": true});
        let bought = world
            .post(&buyer.key, &buyer.path("/purchases"), body)
            .await
            .expect(201);
        assert_eq!(bought.at("/data/product/status"), "published");
    }
    price(5).await;
    let told = |status: &str| {
        json!({"name": "Goals", "slug": "goals", "status": status, "price_credits": 5,
            "company": {"id": acme.id, "name": "acme", "handle": "acme"}})
    };
    let listed = async || {
        let path = buyer.path("/purchases");
        let listed = world.get(&buyer.key, &path).await.expect(200);
        let rows = listed.at("/data").as_array().unwrap().clone();
        let of = |id: &str| rows.iter().find(|row| row["product_id"] == *id).cloned();
        (of(&asset).unwrap(), of(&endpoint).unwrap())
    };
    let (first, second) = listed().await;
    assert_eq!(first["product"], told("published"));
    assert_eq!(first["price_credits_at_purchase"], 2);
    assert_eq!(second["product"]["name"], "an endpoint");
    assert_eq!(second["product"]["price_credits"], json!(null));
    let path = acme.path(&format!("/assets/{asset}"));
    let unpublish = format!("{path}/unpublish");
    world
        .post(&acme.key, &unpublish, json!({}))
        .await
        .expect(200);
    assert_eq!(listed().await.0["product"], told("unpublished"));
    let one = buyer.path(&format!("/purchases/{}", first["id"].as_str().unwrap()));
    let shown = world.get(&buyer.key, &one).await.expect(200);
    assert_eq!(shown.at("/data/product"), &told("unpublished"));
    let force = format!("{path}?force=true");
    world.delete(&acme.key, &force).await.expect(204);
    assert_eq!(listed().await.0["product"], told("archived"));
}

/// What was unpublished is still shown to those who have it, and its key renewed; to others, and to those who have given it up, it is gone.
#[tokio::test]
async fn an_unpublished_product_stays_with_its_buyers() {
    let world = World::new().await;
    let (acme, buyer) = (world.company("acme").await, world.company("buyer").await);
    let other = world.company("other").await;
    let endpoint = world.endpoint(&acme).await;
    let (purchases, order) = (
        buyer.path("/purchases"),
        json!({"product_id": endpoint, "accept_terms": true}),
    );
    let buy = || world.post(&buyer.key, &purchases, order.clone());
    let bought = buy().await.expect(201);
    let product = format!("/marketplace/products/{endpoint}");
    let shown = world.get(&buyer.key, &product).await.expect(200);
    assert_eq!(shown.at("/data/status"), "published");
    let path = acme.path(&format!("/endpoints/{endpoint}"));
    let unpublish = format!("{path}/unpublish");
    world
        .post(&acme.key, &unpublish, json!({}))
        .await
        .expect(200);
    let shown = world.get(&buyer.key, &product).await.expect(200);
    assert_eq!(shown.at("/data/status"), "unpublished");
    assert_eq!(shown.at("/data/access/purchase_id"), bought.at("/data/id"));
    for stranger in [&other, &acme] {
        let refused = world.get(&stranger.key, &product).await;
        refused.expect_error(404, "PRODUCT_NOT_FOUND");
    }
    world
        .post(&other.key, &other.path("/purchases"), order.clone())
        .await
        .expect_error(404, "PRODUCT_NOT_FOUND");
    let listed = world.get(&buyer.key, "/marketplace/products").await;
    assert_eq!(listed.expect(200).at("/data"), &json!([]));

    let key = buyer.path(&format!(
        "/api-keys/{}",
        bought.text("/data/endpoint_key_id")
    ));
    world.delete(&buyer.key, &key).await.expect(204);
    let renewed = buy().await.expect(201);
    assert!(!renewed.text("/data/endpoint_key/key").contains('*'));

    let purchase = format!("{purchases}/{}", bought.text("/data/id"));
    world.delete(&buyer.key, &purchase).await.expect(204);
    let refused = world.get(&buyer.key, &product).await;
    refused.expect_error(404, "PRODUCT_NOT_FOUND");
    buy().await.expect_error(404, "PRODUCT_NOT_FOUND");
}

/// Of requests that buy the same endpoint at once, one is shown a key, and it is the only one.
#[tokio::test]
async fn a_race_provisions_one_key() {
    let world = World::new().await;
    let (acme, buyer) = (world.company("acme").await, world.company("buyer").await);
    let endpoint = world.endpoint(&acme).await;
    let (path, body) = (
        buyer.path("/purchases"),
        json!({"product_id": endpoint, "accept_terms": true}),
    );
    // First bought, then renewed.
    for _ in 0..2 {
        let buy = || world.post(&buyer.key, &path, body.clone());
        let answers = tokio::join!(buy(), buy(), buy(), buy());
        let answers = [answers.0, answers.1, answers.2, answers.3];
        let mut statuses: Vec<_> = answers.iter().map(|a| a.status.as_u16()).collect();
        statuses.sort_unstable();
        assert_eq!(statuses, [200, 200, 200, 201]);
        let keys = answers.iter().map(|a| a.text("/data/endpoint_key_id"));
        assert_eq!(keys.collect::<std::collections::HashSet<_>>().len(), 1);
        let purchase = format!("{path}/{}", answers[0].text("/data/id"));
        let key = answers[0].text("/data/endpoint_key_id");
        world
            .delete(&buyer.key, &buyer.path(&format!("/api-keys/{key}")))
            .await
            .expect(204);
        let access = format!("{purchase}/access");
        let come_back = || world.post(&buyer.key, &access, json!({}));
        let (one, two) = tokio::join!(come_back(), come_back());
        assert_eq!(one.status.as_u16() + two.status.as_u16(), 200 + 201);
        assert_eq!(
            one.at("/data/endpoint_key_id"),
            two.at("/data/endpoint_key_id")
        );
        world.delete(&buyer.key, &purchase).await.expect(204);
    }
}

/// A rotated key of a purchase takes the old one's place: coming back to the purchase finds it, and giving the purchase up ends it, and the
/// old one with it, however long its grace period was to be.
#[tokio::test]
async fn a_rotated_key_stays_its_purchases_key() {
    let world = World::new().await;
    let (acme, buyer) = (world.company("acme").await, world.company("buyer").await);
    let endpoint = world.endpoint(&acme).await;
    let prices = acme.path(&format!("/endpoints/{endpoint}/prices"));
    world
        .post(&acme.key, &prices, json!({"price_credits": 2}))
        .await
        .expect(201);
    let role = json!({"name": "k", "role_id": 2});
    let scientist = world
        .post(&buyer.key, &buyer.path("/api-keys"), role)
        .await
        .expect(201)
        .text("/data/key");
    let order = json!({"product_id": endpoint, "accept_terms": true});
    let bought = world
        .post(&scientist, &buyer.path("/purchases"), order)
        .await
        .expect(201);
    let purchase = buyer.path(&format!("/purchases/{}", bought.text("/data/id")));
    let old = bought.text("/data/endpoint_key/id");
    let rotate = buyer.path(&format!("/api-keys/{old}/rotate"));
    let grace = json!({"grace_seconds": 3600});
    let rotated = world
        .post(&scientist, &rotate, grace.clone())
        .await
        .expect(201);
    let new = rotated.text("/data/id");
    // The old one lives on, but has been replaced.
    world
        .post(&scientist, &rotate, grace)
        .await
        .expect_error(409, "INVALID_STATE");

    let access = format!("{purchase}/access");
    let shown = world.post(&scientist, &access, json!({})).await.expect(200);
    assert_eq!(shown.at("/data/endpoint_key/id"), &json!(new));
    let listed = world
        .get(&buyer.key, &buyer.path("/api-keys?key_type=endpoint"))
        .await
        .expect(200);
    assert_eq!(listed.at("/meta/total"), 2, "{}", listed.body);

    world.delete(&scientist, &purchase).await.expect(204);
    for id in [old, new] {
        let key = buyer.path(&format!("/api-keys/{id}"));
        let key = world.get(&buyer.key, &key).await.expect(200);
        assert_eq!(key.at("/data/status"), "deactivated");
    }
}

/// Who works at a seller is not told to its buyers: neither who made or priced what they buy, nor who took it away.
#[tokio::test]
async fn a_sellers_people_are_its_own() {
    let world = World::new().await;
    let (acme, buyer) = (world.company("acme").await, world.company("buyer").await);
    let (asset, endpoint) = (world.asset(&acme).await, world.endpoint(&acme).await);
    for (kind, id) in [("assets", &asset), ("endpoints", &endpoint)] {
        let prices = |of: &Company| of.path(&format!("/{kind}/{id}/prices"));
        let price = json!({"price_credits": 2});
        let made = world.post(&acme.key, &prices(&acme), price).await;
        let by = made.expect(201).text("/data/created_by");
        let active = async |of: &Company| {
            let active = format!("{}/active", prices(of));
            world.get(&of.key, &active).await.expect(200)
        };
        assert_eq!(active(&acme).await.at("/data/created_by"), &json!(by));
        assert_eq!(active(&buyer).await.at("/data/created_by"), &Value::Null);
    }
    for (path, member) in [
        (format!("/assets/{asset}"), "/data/user_id"),
        ("/assets/search".to_owned(), "/data/0/user_id"),
    ] {
        let shown = async |to: &Company| world.get(&to.key, &to.path(&path)).await.expect(200);
        assert_eq!(shown(&acme).await.at(member), &json!(acme.user_id));
        assert_eq!(shown(&buyer).await.at(member), &Value::Null);
    }

    let own = acme.path(&format!("/endpoints/{endpoint}"));
    let key = json!({"name": "a customer"});
    let made = world.post(&acme.key, &format!("{own}/keys"), key).await;
    made.expect(201);
    let body = json!({"product_id": endpoint, "accept_terms": true});
    let purchases = buyer.path("/purchases");
    let bought = world.post(&buyer.key, &purchases, body);
    bought.await.expect(201);
    let archived = format!("{own}?force=true");
    world.delete(&acme.key, &archived).await.expect(204);
    for (company, is_told) in [(&acme, true), (&buyer, false)] {
        let keys = company.path("/api-keys?key_type=endpoint");
        let keys = world.get(&company.key, &keys).await.expect(200);
        assert_eq!(keys.at("/data/0/status"), "deactivated");
        assert_eq!(
            keys.at("/data/0/revocation_reason"),
            "the endpoint was archived by its seller"
        );
        let by = keys.at("/data/0/revoked_by");
        assert_eq!(by.is_string(), is_told, "{by}");
    }
}
