//! Keys that a seller hands out for one of its endpoints.

use crate::world::World;
use serde_json::json;

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

/// Two changes at the same time are both there, also where several hosts write.
#[tokio::test]
async fn changes_at_the_same_time_are_both_there() {
    let world = World::new().await;
    let acme = world.company("acme").await;
    let endpoint = world.endpoint(&acme).await;
    let keys = acme.path(&format!("/endpoints/{endpoint}/keys"));
    let made = world.post(&acme.key, &keys, json!({"name": "a"})).await;
    let one = format!("{keys}/{}", made.expect(201).text("/data/id"));
    for round in 1..8 {
        let name = format!("name {round}");
        let changes = [json!({"name": name}), json!({"rate_limit": round})];
        world.patch_both(&acme.key, &one, changes).await;
        let shown = world.get(&acme.key, &keys).await.expect(200);
        assert_eq!(shown.text("/data/0/name"), name);
        assert_eq!(shown.at("/data/0/rate_limit"), round);
    }
}
