//! API keys: shown once, never above their creator, changed and revoked at once.

use crate::world::{Company, World};
use serde_json::{Value, json};
use souk_domain::ids::{CompanyId, EndpointId};
use souk_domain::keys::{KeySecret, KeyType, LIVE_KEYS_MAX};
use souk_domain::roles::{Grant, Permissions, Role};
use souk_domain::time::{HOUR, Timestamp};
use souk_store::db::now;
use souk_store::keys::{self, Key, NewKey};
use souk_store::{StoreError, Write};

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

/// A rotation hands out a key, so it takes the permissions that creating it would take; under either spelling.
#[tokio::test]
async fn a_rotation_hands_out_no_more_than_the_caller_has() {
    let world = World::new().await;
    let acme = world.company("acme").await;
    let mut keys = Vec::new();
    for permissions in [json!(["write"]), json!(["read", "write"])] {
        let body = json!({"name": "k", "role_id": 3, "permissions": permissions});
        let made = world
            .post(&acme.key, &acme.path("/api-keys"), body)
            .await
            .expect(201);
        keys.push((made.text("/data/id"), made.text("/data/key")));
    }
    let (writer, both) = (&keys[0], &keys[1]);
    for spelling in ["api-keys", "api_keys"] {
        let rotate = acme.path(&format!("/{spelling}/{}/rotate", both.0));
        world
            .post(&writer.1, &rotate, json!({}))
            .await
            .expect_error(403, "ROLE_ESCALATION");
        let own = acme.path(&format!("/{spelling}/current"));
        let own = world.get(&both.1, &own).await.expect(200);
        assert_eq!(own.text("/data/id"), both.0);
    }
    let rotate = acme.path(&format!("/api_keys/{}/rotate", writer.0));
    let rotated = world.post(&both.1, &rotate, json!({})).await.expect(201);
    assert_eq!(rotated.at("/data/permissions"), &json!(["write"]));
    // The key that was refused goes on.
    world.get(&both.1, &acme.path("/credits")).await.expect(200);
}

/// One of many keys.
async fn insert(
    write: &mut Write,
    company: &CompanyId,
    endpoint: Option<&EndpointId>,
    expires_at: Option<Timestamp>,
) -> Result<Key, StoreError> {
    let secret = KeySecret::generate(match endpoint {
        Some(_) => KeyType::Endpoint,
        None => KeyType::Analytics,
    });
    let key = NewKey {
        company_id: company,
        user_id: None,
        endpoint_id: endpoint,
        purchase_id: None,
        name: "one of many",
        description: None,
        grant: Grant {
            role: Role::Analyst,
            permissions: Permissions::READ,
        },
        rate_limit: 1,
        created_by: None,
        expires_at,
    };
    keys::insert(write, &key, &secret, now()).await
}

/// As many keys as may work.
async fn fill(world: &World, company: &Company) {
    let company = CompanyId::parse(&company.id).unwrap();
    let filled = world.db.write(async |write| -> Result<(), StoreError> {
        while keys::counts(write, &company, now()).await?.live < LIVE_KEYS_MAX {
            insert(write, &company, None, None).await?;
        }
        Ok(())
    });
    filled.await.unwrap();
}

/// A company with as many keys as may work gets no more of them, by whatever way, but for one in another one's place.
#[tokio::test]
async fn a_company_has_so_many_keys() {
    let world = World::new().await;
    let acme = world.company("acme").await;
    let made = world
        .post(&acme.key, &acme.path("/api-keys"), json!({"name": "k"}))
        .await
        .expect(201);
    fill(&world, &acme).await;
    let path = acme.path("/api-keys");
    let create = || world.post(&acme.key, &path, json!({"name": "one more"}));
    create().await.expect_error(409, "CONFLICT");
    let rotate = acme.path(&format!("/api-keys/{}/rotate", made.text("/data/id")));
    let patient = json!({"grace_seconds": 3_600});
    let rotated = world.post(&acme.key, &rotate, patient.clone()).await;
    let rotated = rotated.expect(201);
    // The old one goes on for a while: another key in its place would be one more.
    let again = world.post(&acme.key, &rotate, patient).await;
    again.expect_error(409, "CONFLICT");
    let new = acme.path(&format!("/api-keys/{}", rotated.text("/data/id")));
    world.delete(&acme.key, &new).await.expect(204);
    create().await.expect(201);
}

/// Nor does one that has expired work again by another time, under its endpoint neither, until there is room for it.
#[tokio::test]
async fn an_expired_key_needs_room_to_work_again() {
    let world = World::new().await;
    let acme = world.company("acme").await;
    let endpoint = world.endpoint(&acme).await;
    let company = CompanyId::parse(&acme.id).unwrap();
    let of = EndpointId::parse(&endpoint).unwrap();
    let over = Some(now().before(HOUR));
    let inserted = world.db.write(async |write| -> Result<_, StoreError> {
        let own = insert(write, &company, None, over).await?;
        let of_endpoint = insert(write, &company, Some(&of), over).await?;
        let working = insert(write, &company, None, None).await?;
        Ok((own, of_endpoint, working))
    });
    let (own, of_endpoint, working) = inserted.await.unwrap();
    fill(&world, &acme).await;
    let paths = [
        acme.path(&format!("/api-keys/{}", own.id)),
        acme.path(&format!("/endpoints/{endpoint}/keys/{}", of_endpoint.id)),
    ];
    let another = json!({"expires_at": "2099-01-01T00:00:00Z"});
    for path in &paths {
        for body in [json!({"expires_at": null}), another.clone()] {
            let refused = world.patch(&acme.key, path, body).await;
            let refused = refused.expect_error(400, "VALIDATION_ERROR");
            assert_eq!(refused.fields(), ["expires_at"], "{path}");
        }
        let named = json!({"name": "it stays expired"});
        let named = world.patch(&acme.key, path, named).await.expect(200);
        assert_eq!(named.at("/data/status"), "expired", "{path}");
    }
    let working = acme.path(&format!("/api-keys/{}", working.id));
    world.delete(&acme.key, &working).await.expect(204);
    let again = world.patch(&acme.key, &paths[1], another.clone()).await;
    assert_eq!(again.expect(200).at("/data/status"), "active");
    let full = world.patch(&acme.key, &paths[0], another).await;
    full.expect_error(400, "VALIDATION_ERROR");
}

/// Rotations are as rare as creations.
#[tokio::test]
async fn ten_rotations_an_hour() {
    let world = World::new().await;
    let acme = world.company("acme").await;
    let made = world
        .post(&acme.key, &acme.path("/api-keys"), json!({"name": "k"}))
        .await
        .expect(201);
    let mut id = made.text("/data/id");
    for _ in 0..10 {
        let rotate = acme.path(&format!("/api-keys/{id}/rotate"));
        let rotated = world.post(&acme.key, &rotate, json!({})).await.expect(201);
        id = rotated.text("/data/id");
    }
    let rotate = acme.path(&format!("/api_keys/{id}/rotate"));
    let refused = world.post(&acme.key, &rotate, json!({})).await;
    let refused = refused.expect_error(429, "RATE_LIMIT_EXCEEDED");
    assert_eq!(refused.at("/error/details/operation"), "rotate_key");
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

/// A rotated key goes on for its grace period beside the new one.
#[tokio::test]
async fn rotation_has_a_grace_period() {
    let world = World::new().await;
    let acme = world.company("acme").await;
    let made = world
        .post(&acme.key, &acme.path("/api-keys"), json!({"name": "x"}))
        .await
        .expect(201);
    let path = acme.path(&format!("/api-keys/{}/rotate", made.text("/data/id")));
    let new = world
        .post(&acme.key, &path, json!({"grace_seconds": 60}))
        .await
        .expect(201);
    world
        .get(&made.text("/data/key"), &acme.path("/credits"))
        .await
        .expect(200);
    world
        .get(&new.text("/data/key"), &acme.path("/credits"))
        .await
        .expect(200);
    let next = world
        .post(
            &acme.key,
            &acme.path(&format!("/api-keys/{}/rotate", new.text("/data/id"))),
            json!({}),
        )
        .await
        .expect(201);
    world
        .get(&new.text("/data/key"), &acme.path("/credits"))
        .await
        .expect_error(410, "API_KEY_DEACTIVATED");
    world
        .get(&next.text("/data/key"), &acme.path("/credits"))
        .await
        .expect(200);
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

/// Endpoint keys belong to one endpoint of the company.
#[tokio::test]
async fn endpoint_keys_belong_to_their_endpoint() {
    let world = World::new().await;
    let acme = world.company("acme").await;
    let (one, two) = (world.endpoint(&acme).await, world.endpoint(&acme).await);
    let keys = acme.path(&format!("/endpoints/{one}/keys"));
    let made = world
        .post(&acme.key, &keys, json!({"name": "reader"}))
        .await
        .expect(201);
    assert!(made.text("/data/key").starts_with("ep_"));
    assert_eq!(
        (
            made.at("/data/role_id"),
            made.at("/data/source"),
            made.at("/data/endpoint_id")
        ),
        (&json!(1), &json!("seller"), &json!(one))
    );
    assert_eq!(
        world
            .get(&acme.key, &keys)
            .await
            .expect(200)
            .at("/meta/total"),
        1
    );
    let id = made.text("/data/id");
    world
        .delete(
            &acme.key,
            &acme.path(&format!("/endpoints/{two}/keys/{id}")),
        )
        .await
        .expect_error(404, "API_KEY_NOT_FOUND");
    let changed = world
        .patch(&acme.key, &format!("{keys}/{id}"), json!({"rate_limit": 7}))
        .await
        .expect(200);
    assert_eq!(changed.at("/data/rate_limit"), 7);
    world
        .delete(&acme.key, &format!("{keys}/{id}"))
        .await
        .expect(204);
    world
        .post(
            &acme.key,
            &acme.path("/endpoints/end_unknown/keys"),
            json!({"name": "x"}),
        )
        .await
        .expect_error(404, "ENDPOINT_NOT_FOUND");
}

/// A seller's endpoint keys need role 3 under every path that reaches them.
#[tokio::test]
async fn endpoint_keys_are_managed_with_role_3() {
    let world = World::new().await;
    let acme = world.company("acme").await;
    let endpoint = world.endpoint(&acme).await;
    let keys = acme.path(&format!("/endpoints/{endpoint}/keys"));
    let made = world
        .post(&acme.key, &keys, json!({"name": "customer"}))
        .await
        .expect(201);
    let id = made.text("/data/id");
    let mut by_role = Vec::new();
    for role in [2, 3] {
        let body = json!({"name": "k", "role_id": role});
        let made = world
            .post(&acme.key, &acme.path("/api-keys"), body)
            .await
            .expect(201);
        by_role.push(made.text("/data/key"));
    }
    let (scientist, engineer) = (&by_role[0], &by_role[1]);
    for spelling in ["api-keys", "api_keys"] {
        let path = acme.path(&format!("/{spelling}/{id}"));
        for refused in [
            world
                .patch(scientist, &path, json!({"rate_limit": 1}))
                .await,
            world
                .post(scientist, &format!("{path}/rotate"), json!({}))
                .await,
            world
                .post(scientist, &format!("{path}/revoke"), json!({}))
                .await,
            world.delete(scientist, &path).await,
        ] {
            let refused = refused.expect_error(403, "INSUFFICIENT_ROLE");
            assert_eq!(refused.at("/error/details/required_role"), 3);
        }
        world.get(scientist, &path).await.expect(200);
    }
    let path = acme.path(&format!("/api-keys/{id}"));
    let rotated = world
        .post(engineer, &format!("{path}/rotate"), json!({}))
        .await
        .expect(201);
    assert!(rotated.text("/data/key").starts_with("ep_"));
    let path = acme.path(&format!("/api-keys/{}", rotated.text("/data/id")));
    world.delete(engineer, &path).await.expect(204);
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
