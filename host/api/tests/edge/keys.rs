//! API keys: shown once, never above their creator, changed and revoked at once.

mod of_endpoints;
mod room;
mod rotations;

use crate::world::World;
use serde_json::{Value, json};

/// The create answer alone carries the secret.
#[tokio::test]
async fn a_key_is_shown_once() {
    let world = World::new().await;
    let acme = world.company("acme").await;
    let body = json!({"name": "ci", "permissions": ["read", "write"], "description": "for CI", "rate_limit": 50});
    let made = world
        .post(&acme.key, &acme.path("/api_keys"), body)
        .await
        .expect(201);
    let (id, secret) = (made.text("/data/id"), made.text("/data/key"));
    assert_eq!(
        made.header("location"),
        acme.path(&format!("/api-keys/{id}"))
    );
    assert_eq!(
        (
            made.at("/data/role_id"),
            made.at("/data/status"),
            made.at("/data/rate_limit")
        ),
        (&json!(2), &json!("active"), &json!(50))
    );
    let read = world
        .get(&acme.key, &acme.path(&format!("/api-keys/{id}")))
        .await
        .expect(200);
    assert_eq!(
        read.text("/data/key"),
        format!("sk_****{}", &secret[secret.len() - 4..])
    );
    let listed = world
        .get(&acme.key, &acme.path("/api-keys"))
        .await
        .expect(200);
    assert!(!listed.body.to_string().contains(&secret));
    assert_eq!(
        listed.at("/meta"),
        &json!({"total": 2, "page": 1, "per_page": 50})
    );
    let own = world
        .get(&secret, &acme.path("/api-keys/current"))
        .await
        .expect(200);
    assert_eq!(own.text("/data/id"), id);
}

/// What a request leaves out is filled in; what contradicts itself or asks for too much is refused.
#[tokio::test]
async fn grants_follow_the_creator() {
    let world = World::new().await;
    let acme = world.company("acme").await;
    let path = acme.path("/api-keys");
    let engineer = world
        .post(
            &acme.key,
            &path,
            json!({"name": "e", "role_id": 3, "permissions": ["read", "write"]}),
        )
        .await
        .expect(201);
    let engineer = engineer.text("/data/key");
    let made = world
        .post(
            &engineer,
            &path,
            json!({"name": "r", "permissions": ["read"]}),
        )
        .await
        .expect(201);
    assert_eq!(made.at("/data/role_id"), 1);
    world
        .post(&engineer, &path, json!({"name": "up", "role_id": 4}))
        .await
        .expect_error(403, "ROLE_ESCALATION");
    for (body, field) in [
        (json!({"name": "x", "role_id": 6}), "role_id"),
        (
            json!({"name": "x", "role_id": 1, "permissions": ["write"]}),
            "permissions",
        ),
        (json!({"name": "x", "permissions": []}), "permissions"),
        (
            json!({"name": "x", "permissions": ["admin"]}),
            "permissions[0]",
        ),
        (json!({"name": ""}), "name"),
        (json!({"name": "x", "rate_limit": 0}), "rate_limit"),
        (json!({"name": "x", "key_type": "endpoint"}), "key_type"),
        (
            json!({"name": "x", "expires_at": "2020-01-01T00:00:00Z"}),
            "expires_at",
        ),
        (json!({"name": "x", "expires_at": "tomorrow"}), "expires_at"),
    ] {
        let refused = world.post(&acme.key, &path, body).await;
        assert_eq!(refused.expect_error(400, "VALIDATION_ERROR").field(), field);
    }
}

/// Metadata changes hold from the next request; the value, role and type never change.
#[tokio::test]
async fn metadata_can_be_changed() {
    let world = World::new().await;
    let acme = world.company("acme").await;
    let made = world
        .post(
            &acme.key,
            &acme.path("/api-keys"),
            json!({"name": "old", "description": "d", "role_id": 2}),
        )
        .await
        .expect(201);
    let (path, key) = (
        acme.path(&format!("/api-keys/{}", made.text("/data/id"))),
        made.text("/data/key"),
    );
    let changed = world
        .patch(
            &acme.key,
            &path,
            json!({"name": "new", "description": null, "permissions": ["read"]}),
        )
        .await
        .expect(200);
    assert_eq!(
        (changed.at("/data/name"), changed.at("/data/description")),
        (&json!("new"), &Value::Null)
    );
    world
        .post(&key, &acme.path("/api-keys"), json!({"name": "x"}))
        .await
        .expect_error(403, "INSUFFICIENT_PERMISSIONS");
    for body in [
        json!({"key": "sk_x"}),
        json!({"role_id": 4}),
        json!({"key_type": "endpoint"}),
    ] {
        world
            .patch(&acme.key, &path, body)
            .await
            .expect_error(400, "KEY_VALUE_IMMUTABLE");
    }
    world
        .patch(
            &acme.key,
            &path,
            json!({"expires_at": "2020-01-01T00:00:00Z"}),
        )
        .await
        .expect_error(400, "VALIDATION_ERROR");
}

/// Nobody manages a key above their own role.
#[tokio::test]
async fn a_higher_key_is_out_of_reach() {
    let world = World::new().await;
    let acme = world.company("acme").await;
    let admin = world
        .post(
            &acme.key,
            &acme.path("/api-keys"),
            json!({"name": "a", "role_id": 4}),
        )
        .await
        .expect(201);
    let scientist = world
        .post(
            &acme.key,
            &acme.path("/api-keys"),
            json!({"name": "s", "role_id": 2}),
        )
        .await
        .expect(201)
        .text("/data/key");
    let path = acme.path(&format!("/api-keys/{}", admin.text("/data/id")));
    world
        .delete(&scientist, &path)
        .await
        .expect_error(403, "INSUFFICIENT_ROLE");
    world
        .patch(&scientist, &path, json!({"name": "mine"}))
        .await
        .expect_error(403, "INSUFFICIENT_ROLE");
    world
        .post(&scientist, &format!("{path}/rotate"), json!({}))
        .await
        .expect_error(403, "ROLE_ESCALATION");
}

/// Revoking records why, once; deleting again is 204 again; an unknown key is 404.
#[tokio::test]
async fn revocation_is_recorded_and_repeatable() {
    let world = World::new().await;
    let acme = world.company("acme").await;
    let made = world
        .post(&acme.key, &acme.path("/api-keys"), json!({"name": "x"}))
        .await
        .expect(201);
    let path = acme.path(&format!("/api-keys/{}", made.text("/data/id")));
    let body = json!({"reason": "leaked", "reason_code": "compromised"});
    let revoked = world
        .post(&acme.key, &format!("{path}/revoke"), body)
        .await
        .expect(200);
    assert_eq!(
        (revoked.at("/data/status"), revoked.at("/data/reason_code")),
        (&json!("deactivated"), &json!("compromised"))
    );
    let again = world
        .post(
            &acme.key,
            &format!("{path}/revoke"),
            json!({"reason": "other"}),
        )
        .await
        .expect(200);
    assert_eq!(again.at("/data/revocation_reason"), "leaked");
    world.delete(&acme.key, &path).await.expect(204);
    world
        .delete(&acme.key, &acme.path("/api-keys/key_unknown"))
        .await
        .expect_error(404, "API_KEY_NOT_FOUND");
}

/// Statistics count what a key did, failures apart.
#[tokio::test]
async fn statistics_count_requests_and_failures() {
    let world = World::new().await;
    let acme = world.company("acme").await;
    let made = world
        .post(&acme.key, &acme.path("/api-keys"), json!({"name": "x"}))
        .await
        .expect(201);
    let (id, key) = (made.text("/data/id"), made.text("/data/key"));
    let stats = acme.path(&format!("/api-keys/{id}/stats"));
    let unused = world.get(&acme.key, &stats).await.expect(200);
    assert_eq!(
        (
            unused.at("/data/total_requests"),
            unused.at("/data/first_used")
        ),
        (&json!(0), &Value::Null)
    );
    world.get(&key, &acme.path("/credits")).await.expect(200);
    world.get(&key, &acme.path("/api-keys")).await.expect(200);
    world
        .get(&key, "/companies/cmp_other/credits")
        .await
        .expect(403);
    world.teller.flush().await;
    let used = world
        .get(&acme.key, &format!("{stats}?period=7d"))
        .await
        .expect(200);
    assert_eq!(
        (
            used.at("/data/total_requests"),
            used.at("/data/failed_requests")
        ),
        (&json!(3), &json!(1))
    );
    assert_eq!(
        used.at("/data/usage_by_endpoint"),
        &json!({"/credits": 2, "/api-keys": 1})
    );
    assert_eq!(used.at("/data/usage_by_day/6/requests"), 3);
    assert!(used.at("/data/first_used").is_string() && used.at("/data/last_used").is_string());
    let read = world
        .get(&acme.key, &acme.path(&format!("/api-keys/{id}")))
        .await
        .expect(200);
    assert_eq!(read.at("/data/usage_count"), 3);
}

/// A client is told of all its wrong fields at once, in words that name no type of the code.
#[tokio::test]
async fn every_wrong_field_of_a_key_is_named() {
    let world = World::new().await;
    let acme = world.company("acme").await;
    let wrong = json!({
        "name": "x", "rate_limit": 0, "role_id": 9, "key_type": "endpoint", "expires_at": "2020-01-01T00:00:00Z",
    });
    let refused = world.post(&acme.key, &acme.path("/api-keys"), wrong).await;
    let refused = refused.expect_error(400, "VALIDATION_ERROR");
    assert_eq!(
        refused.fields(),
        ["expires_at", "rate_limit", "key_type", "role_id"]
    );
    let wrong = json!({"name": 1, "rate_limit": "x", "permissions": "read", "role_id": 1.5});
    let refused = world.post(&acme.key, &acme.path("/api-keys"), wrong).await;
    let refused = refused.expect_error(400, "VALIDATION_ERROR");
    let named: Vec<&str> = refused.fields();
    assert_eq!(named.len(), 4, "{}", refused.body);
    let text = refused.body.to_string();
    for leak in ["expected", "invalid type", "i64", "struct", "sequence"] {
        assert!(!text.contains(leak), "{leak}: {text}");
    }
    let immutable = json!({"key": "x", "role_id": 1});
    let own = world.get(&acme.key, &acme.path("/api-keys/current")).await;
    let path = acme.path(&format!("/api-keys/{}", own.expect(200).text("/data/id")));
    let refused = world.patch(&acme.key, &path, immutable).await;
    let refused = refused.expect_error(400, "KEY_VALUE_IMMUTABLE");
    assert_eq!(refused.fields(), ["key", "role_id"]);
}

/// `1000.0` is the integer 1000 to JSON Schema, so it is to us.
#[tokio::test]
async fn a_whole_number_with_a_fraction_of_zeros_is_an_integer() {
    let world = World::new().await;
    let acme = world.company("acme").await;
    let body = json!({"name": "x", "rate_limit": 1000.0, "role_id": 2.0});
    let made = world.post(&acme.key, &acme.path("/api-keys"), body).await;
    let made = made.expect(201);
    assert_eq!(made.at("/data/rate_limit"), &json!(1000));
    let listed = world
        .get(&acme.key, &acme.path("/api-keys?per_page=5.0"))
        .await;
    assert_eq!(listed.expect(200).at("/meta/per_page"), &json!(5));
}
