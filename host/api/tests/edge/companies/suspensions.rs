//! What becomes of a company, and of what it sells, while staff has suspended it.

use crate::world::World;
use serde_json::json;

/// Staff suspends a company and ends that, for a reason that its audit log keeps; the platform's own is always active.
#[tokio::test]
async fn staff_suspends_a_company_and_ends_that() {
    let world = World::new().await;
    let acme = world.company("acme").await;
    let status = format!("/admin/companies/{}/status", acme.id);
    let suspend = json!({"status": "suspended", "reason": "a complaint"});
    world
        .put(&acme.key, &status, suspend.clone())
        .await
        .expect_error(403, "INSUFFICIENT_ROLE");
    world
        .get(&acme.key, &acme.path("/credits"))
        .await
        .expect(200);
    let changed = world.put(&world.platform, &status, suspend.clone()).await;
    assert_eq!(changed.expect(200).at("/data/status"), "suspended");
    world
        .get(&acme.key, &acme.path("/credits"))
        .await
        .expect_error(403, "COMPANY_SUSPENDED");
    // A plan is no way out of it.
    let plan = format!("/admin/companies/{}/plan", acme.id);
    let planned = world.put(&world.platform, &plan, json!({"plan": "growth"}));
    assert_eq!(planned.await.expect(200).at("/data/status"), "suspended");
    let active = json!({"status": "active"});
    let changed = world.put(&world.platform, &status, active).await;
    assert_eq!(changed.expect(200).at("/data/status"), "active");

    let log = acme.path("/audit-log?operation=set_company_status");
    let log = world.get(&acme.key, &log).await.expect(200);
    let entries = log.at("/data").as_array().unwrap();
    let of = |place: usize| {
        let after = &entries[place]["after"];
        (&after["status"], &after["status_reason"])
    };
    assert_eq!(entries.len(), 2, "{}", log.body);
    assert_eq!(of(1), (&json!("suspended"), &json!("a complaint")));
    assert_eq!(of(0), (&json!("active"), &json!(null)));

    let gone = json!({"status": "gone"});
    let wrong = world.put(&world.platform, &status, gone).await;
    assert_eq!(
        wrong.expect_error(400, "VALIDATION_ERROR").field(),
        "status"
    );
    let unknown = "/admin/companies/cmp_unknown/status";
    let unknown = world.put(&world.platform, unknown, suspend.clone()).await;
    unknown.expect_error(404, "COMPANY_NOT_FOUND");
    let own = world.get(&world.platform, "/users/me").await.expect(200);
    let own = own.text("/data/company/id");
    let own = format!("/admin/companies/{own}/status");
    let refused = world.put(&world.platform, &own, suspend).await;
    refused.expect_error(409, "CONFLICT");
}

/// What a suspended company sells is not there for others, but for those who have bought it; afterwards all is as before.
#[tokio::test]
async fn what_a_suspended_company_sells_is_not_shown() {
    let world = World::new().await;
    let (acme, other) = (world.company("acme").await, world.company("other").await);
    let buyer = world.company("buyer").await;
    let asset = world.asset(&acme).await;
    let prices = acme.path(&format!("/assets/{asset}/prices"));
    let price = json!({"price_credits": 2});
    world.post(&acme.key, &prices, price).await.expect(201);
    let body = json!({"product_id": asset, "accept_terms": true});
    let purchases = buyer.path("/purchases");
    let bought = world.post(&buyer.key, &purchases, body);
    bought.await.expect(201);
    let shown = other.path(&format!("/assets/{asset}"));
    let reads = [
        shown.clone(),
        format!("{shown}/prices/active"),
        format!("{shown}/alerts"),
    ];
    for path in &reads {
        world.get(&other.key, path).await.expect(200);
    }
    let status = format!("/admin/companies/{}/status", acme.id);
    let set = async |status_of: &str| {
        let body = json!({"status": status_of});
        world.put(&world.platform, &status, body).await.expect(200);
    };
    set("suspended").await;
    for path in &reads {
        let hidden = world.get(&other.key, path).await;
        hidden.expect_error(404, "ASSET_NOT_FOUND");
    }
    let known = buyer.path(&format!("/assets/{asset}"));
    world.get(&buyer.key, &known).await.expect(200);
    let post = json!({"title": "t", "body_markdown": "x", "asset_ids": [asset]});
    let posts = other.path("/posts");
    let refused = world.post(&other.key, &posts, post.clone());
    let refused = refused.await.expect_error(400, "VALIDATION_ERROR");
    assert_eq!(refused.field(), "asset_ids[0]");
    set("active").await;
    for path in &reads {
        world.get(&other.key, path).await.expect(200);
    }
    let written = world.post(&other.key, &other.path("/posts"), post).await;
    written.expect(201);
}
