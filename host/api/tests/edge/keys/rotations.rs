//! A key in another one's place: by whom, how often, and what the former one is good for then.

use crate::world::World;
use serde_json::json;

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

/// A key acts in its user's name: nobody else gets one in that name or makes more of it, and who rotates another's key has one of their own.
#[tokio::test]
async fn nobody_gets_a_key_in_anothers_name() {
    let world = World::new().await;
    let acme = world.company("acme").await;
    let pipeline = json!({"name": "pipeline", "role_id": 2, "permissions": ["read"]});
    let made = world
        .post(&acme.key, &acme.path("/api-keys"), pipeline)
        .await
        .expect(201);
    let path = acme.path(&format!("/api-keys/{}", made.text("/data/id")));
    let rotate = format!("{path}/rotate");
    let mallory = world.member(&acme, 2).await;
    let wider = json!({"permissions": ["read", "write"]});
    for refused in [
        world.post(&mallory.key, &rotate, json!({})).await,
        world.patch(&mallory.key, &path, wider).await,
    ] {
        let refused = refused.expect_error(403, "INSUFFICIENT_ROLE");
        assert_eq!(refused.at("/error/details/required_role"), 4);
        let told = refused.text("/error/message");
        assert!(told.contains(&acme.user_id), "{told}");
    }
    let admin = world.member(&acme, 4).await;
    let rotated = world
        .post(&admin.key, &rotate, json!({}))
        .await
        .expect(201)
        .text("/data/key");
    let me = world.get(&rotated, "/users/me").await.expect(200);
    assert_eq!(me.at("/data/user/id"), &json!(admin.id));
    // And loses it with their user.
    world
        .delete(&acme.key, &admin.path(&acme))
        .await
        .expect(204);
    world
        .get(&rotated, &acme.path("/credits"))
        .await
        .expect_error(410, "API_KEY_DEACTIVATED");
}
