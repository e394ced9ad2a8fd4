//! Plans: what a company may send in a month, counted over all its keys, shown as it is enforced.

use crate::world::{World, now};
use serde_json::json;
use souk_domain::ids::KeyId;
use souk_store::StoreError;

impl World {
    /// As if this key had sent so many requests this month.
    async fn pretend_use(&self, key: &str, requests: i64) {
        let key = KeyId::parse(key).unwrap();
        self.db
            .write(async |write| -> Result<_, StoreError> {
                sqlx::query(
                    "INSERT INTO key_usage (key_id, hour, route, requests, failed) VALUES ($1, $2, '/pretended', $3, 0)",
                )
                .bind(key.as_str())
                .bind(now().month().0.micros())
                .bind(requests)
                .execute(&mut **write)
                .await
                .unwrap();
                Ok(())
            })
            .await
            .unwrap();
    }
}

/// What is shown as used is what the month's requests are, and what remains is exactly what still passes.
#[tokio::test]
async fn a_plan_is_shown_as_it_is_enforced() {
    let world = World::new().await;
    let acme = world.company("acme").await;
    let other = world.company("other").await;
    let path = acme.path("/request-allocation");
    let keys = acme.path("/api-keys");
    // Made by the platform's staff, so that the company has sent nothing yet.
    let made = json!({"name": "second"});
    let second = world.post(&world.platform, &keys, made).await.expect(201);
    world
        .pretend_use(&second.text("/data/id"), 100_000 - 5)
        .await;
    let plan = format!("/admin/companies/{}/plan", acme.id);
    let starter = world.put(&world.platform, &plan, json!({"plan": "starter"}));
    assert_eq!(
        starter.await.expect(200).at("/data/plan"),
        &json!("starter")
    );

    let shown = world.get(&acme.key, &path).await.expect(200);
    let mut data = shown.body["data"].clone();
    let allocations = data["allocations"].take();
    let month = now().month();
    assert_eq!(
        data,
        json!({"plan": "starter", "period": now().date()[..7], "allocated_requests": 100_000, "used_requests": 99_995,
               "remaining_requests": 5, "overage_allowed": false, "resets_at": month.1, "allocations": null})
    );
    assert_eq!(
        (&allocations[0]["operation"], &allocations[0]["used"]),
        (&json!("key"), &json!(1))
    );
    let listed = allocations.as_array().unwrap().iter();
    let listed = listed.filter(|one| one["operation"] == "list_keys");
    let listed: Vec<_> = listed.map(|one| (&one["limit"], &one["used"])).collect();
    assert_eq!(listed, [(&json!(100), &json!(0))]);

    // Either key's requests count, and those that are refused for what they ask.
    world
        .get(&second.text("/data/key"), &keys)
        .await
        .expect(200);
    world
        .get(&acme.key, &acme.path("/assets/ast_x"))
        .await
        .expect(404);
    let shown = world.get(&acme.key, &path).await.expect(200);
    assert_eq!(
        (
            shown.at("/data/used_requests"),
            shown.at("/data/remaining_requests")
        ),
        (&json!(99_998), &json!(2))
    );
    // The one after that is the last.
    world.get(&acme.key, &path).await.expect(200);
    for key in [acme.key.as_str(), &second.text("/data/key")] {
        let refused = world.get(key, &path).await;
        let refused = refused.expect_error(429, "RATE_LIMIT_EXCEEDED");
        let details = refused.at("/error/details");
        assert_eq!(
            (
                &details["scope"],
                &details["limit"],
                &details["remaining"],
                &details["reset"]
            ),
            (
                &json!("company"),
                &json!(100_000),
                &json!(0),
                &json!(month.1.seconds())
            )
        );
        assert_eq!(refused.header("x-ratelimit-limit"), "100000");
        assert_eq!(refused.header("x-ratelimit-remaining"), "0");
        assert!(
            refused
                .header("ratelimit-policy")
                .starts_with("\"company\"")
        );
    }
    world
        .get(&other.key, &keys.replace(&acme.id, &other.id))
        .await
        .expect(200);
    // Another plan holds at once, and staff sees what the company does.
    let growth = json!({"plan": "growth"});
    world.put(&world.platform, &plan, growth).await.expect(200);
    world.teller.flush().await;
    let usage = acme.path("/request-usage");
    let usage = world.get(&world.platform, &usage).await.expect(200);
    let shown = world.get(&world.platform, &path).await.expect(200);
    assert_eq!(shown.at("/data/plan"), &json!("growth"));
    assert_eq!(
        shown.at("/data/used_requests"),
        usage.at("/data/total_requests")
    );
    world.get(&acme.key, &path).await.expect(200);
}

/// Only the platform's staff chooses plans, of which there are three.
#[tokio::test]
async fn only_staff_chooses_a_plan() {
    let world = World::new().await;
    let acme = world.company("acme").await;
    let plan = format!("/admin/companies/{}/plan", acme.id);
    let growth = json!({"plan": "growth"});
    world
        .put(&acme.key, &plan, growth.clone())
        .await
        .expect_error(403, "INSUFFICIENT_ROLE");
    for wrong in [json!({"plan": "gold"}), json!({})] {
        let refused = world.put(&world.platform, &plan, wrong).await;
        let refused = refused.expect_error(400, "VALIDATION_ERROR");
        assert_eq!(refused.fields(), ["plan"]);
    }
    world
        .put(&world.platform, "/admin/companies/cmp_nobody/plan", growth)
        .await
        .expect_error(404, "COMPANY_NOT_FOUND");
    let own = world.get(&acme.key, &acme.path("")).await.expect(200);
    assert_eq!(own.at("/data/plan"), &json!("scale"));
}
