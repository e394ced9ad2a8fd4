//! Plans: what a company may send in a month, counted over all its keys and people, shown as it is enforced.

use crate::browser::{Browser, token};
use crate::world::{World, now, request};
use axum::body::Body;
use http::Method;
use http_body_util::BodyExt;
use serde_json::json;
use souk_store::StoreError;
use tower::ServiceExt;

impl World {
    /// As if this key or user had sent so many requests this month.
    async fn pretend_use(&self, actor: &str, requests: i64) {
        self.db
            .write(async |write| -> Result<_, StoreError> {
                for sql in [
                    "INSERT INTO key_usage (company_id, hour, key_id, route, requests, failed)
                     SELECT company_id, $2, id, '/pretended', $3, 0
                     FROM (SELECT id, company_id FROM api_keys UNION ALL SELECT id, company_id FROM users) a
                     WHERE id = $1",
                    "INSERT INTO company_months (company_id, month, requests)
                     SELECT company_id, $2, $3
                     FROM (SELECT id, company_id FROM api_keys UNION ALL SELECT id, company_id FROM users) a
                     WHERE id = $1
                     ON CONFLICT (company_id, month) DO UPDATE SET requests = company_months.requests + excluded.requests",
                ] {
                    sqlx::query(sql)
                        .bind(actor)
                        .bind(now().month().0.micros())
                        .bind(requests)
                        .execute(&mut **write)
                        .await
                        .unwrap();
                }
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
    // Whoever has used the month up can still lose the key.
    world.get(&acme.key, &keys).await.expect(200);
    let used_up = format!("{keys}/{}", second.text("/data/id"));
    world.delete(&acme.key, &used_up).await.expect(204);
    // Another plan holds at once, and staff sees what the company does.
    let growth = json!({"plan": "growth"});
    world.put(&world.platform, &plan, growth).await.expect(200);
    world.teller.flush().await;
    let usage = acme.path("/request-usage");
    let usage = world.get(&world.platform, &usage).await.expect(200);
    let shown = world.get(&world.platform, &path).await.expect(200);
    assert_eq!(shown.at("/data/plan"), &json!("growth"));
    // The month's are those that were not refused for it.
    let used = shown.at("/data/used_requests").as_i64().unwrap();
    assert_eq!(usage.at("/data/total_requests"), used + 2);
    world.get(&acme.key, &path).await.expect(200);
}

/// Nothing limits what is refused: a key that may send one request an hour uses up one, whatever its holder sends.
#[tokio::test]
async fn what_is_refused_is_not_of_the_plan() {
    let world = World::new().await;
    let acme = world.company("acme").await;
    let (path, keys) = (acme.path("/request-allocation"), acme.path("/api-keys"));
    let weak = json!({"name": "weak", "rate_limit": 1, "role_id": 1});
    let weak = world.post(&world.platform, &keys, weak).await.expect(201);
    let key = weak.text("/data/key");
    world.get(&key, &acme.path("/assets")).await.expect(200);
    for _ in 0..3 {
        world
            .get(&key, &acme.path("/assets"))
            .await
            .expect_error(429, "RATE_LIMIT_EXCEEDED");
        world
            .post(&key, &keys, json!({"name": "a"}))
            .await
            .expect(403);
    }
    for used in [1, 2] {
        let shown = world.get(&acme.key, &path).await.expect(200);
        assert_eq!(shown.at("/data/used_requests"), used);
        // The same after the store was asked.
        world.teller.flush().await;
    }
    let usage = acme.path("/request-usage");
    let usage = world.get(&world.platform, &usage).await.expect(200);
    assert_eq!(usage.at("/data/total_requests"), 9);
}

/// Who is signed in counts like a key: shown by name and in the table, and refused when the company has nothing left.
#[tokio::test]
async fn people_count_against_their_companys_plan() {
    let world = World::new().await;
    let acme = world.company("acme").await;
    let starter = json!({"plan": "starter"});
    let plan = format!("/admin/companies/{}/plan", acme.id);
    world.put(&world.platform, &plan, starter).await.expect(200);
    world.pretend_use(&acme.user_id, 100_000 - 5).await;
    // By the platform's staff: the company has sent nothing else yet.
    let ann = json!({"email": "ann@example.org", "role_id": 4});
    let invited = world.post(&world.platform, &acme.path("/users"), ann).await;
    let browser = world.accept(&token(&invited.expect(201))).await;
    let browser = Browser::of(&browser.expect(200));

    let (usage, unknown) = (acme.path("/request-usage"), acme.path("/assets/ast_x"));
    browser.get(&world, &unknown).await.expect(404);
    browser.get(&world, &usage).await.expect(200);
    world.teller.flush().await;
    let shown = browser.get(&world, &usage).await.expect(200);
    assert_eq!(
        [
            shown.at("/data/total_requests"),
            shown.at("/data/failed_requests"),
            shown.at("/data/by_key"),
            shown.at("/data/by_user/0/user_id"),
            shown.at("/data/by_user/1/user_id"),
            shown.at("/data/by_user/1/requests"),
        ],
        [
            &json!(99_997),
            &json!(1),
            &json!([]),
            &json!(acme.user_id),
            &json!(browser.user),
            &json!(2)
        ]
    );
    let table = request(Method::GET, "", &format!("{usage}?format=csv"));
    let table = table.header("cookie", &browser.cookie);
    let table = table.body(Body::empty()).unwrap();
    let table = world.router.clone().oneshot(table).await.unwrap();
    let table = table.into_body().collect().await.unwrap().to_bytes();
    let table = String::from_utf8(table.to_vec()).unwrap();
    let (begins, ends) = (
        format!("{},/assets,,", now().date()),
        format!(",1,1,{}", browser.user),
    );
    let mut lines = table.lines();
    let is_found = lines.any(|line| line.starts_with(&begins) && line.ends_with(&ends));
    assert!(is_found, "{table}");

    let allocation = acme.path("/request-allocation");
    let last = browser.get(&world, &allocation).await.expect(200);
    assert_eq!(last.at("/data/remaining_requests"), &json!(1));
    for refused in [
        browser.get(&world, &allocation).await,
        world.get(&acme.key, &allocation).await,
    ] {
        let refused = refused.expect_error(429, "RATE_LIMIT_EXCEEDED");
        assert_eq!(refused.text("/error/details/scope"), "company");
        assert_eq!(refused.header("x-ratelimit-limit"), "100000");
    }
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
