//! Archiving: sellers are asked before buyers lose what they pay for, and buyers are told why it is gone.

use crate::world::{Answer, Company, World};
use serde_json::json;

async fn buy(world: &World, buyer: &Company, product: &str) -> Answer {
    let body = json!({"product_id": product, "accept_terms": true});
    world
        .post(&buyer.key, &buyer.path("/purchases"), body)
        .await
        .expect(201)
}

/// An asset or an endpoint that companies have bought is archived only by force, and the refusal counts them.
#[tokio::test]
async fn what_was_bought_is_archived_by_force_alone() {
    let world = World::new().await;
    let acme = world.company("acme").await;
    let (one, two) = (world.company("one").await, world.company("two").await);
    for (kind, id) in [
        ("asset", world.asset(&acme).await),
        ("endpoint", world.endpoint(&acme).await),
    ] {
        let path = acme.path(&format!("/{kind}s/{id}"));
        for (buyer, have) in [(&one, "1 company has"), (&two, "2 companies have")] {
            buy(&world, buyer, &id).await;
            let refused = world.delete(&acme.key, &path).await;
            let refused = refused.expect_error(409, "RESOURCE_IN_USE");
            let wanted = format!("{have} bought this {kind}; archive it with force=true");
            assert_eq!(refused.text("/error/message"), wanted);
        }
        world.get(&acme.key, &path).await.expect(200);
        let force = format!("{path}?force=true");
        world.delete(&acme.key, &force).await.expect(204);
        world.delete(&acme.key, &path).await.expect(404);
        // To its seller it is gone, too, but for the list of what was archived.
        world.get(&acme.key, &path).await.expect(404);
        let archived = acme.path(&format!("/{kind}s?status=archived"));
        let listed = world.get(&acme.key, &archived).await.expect(200);
        assert_eq!(listed.at("/data/0/id"), &json!(id));
    }
}

/// Who buys at the moment in which the seller archives has bought what the seller was told of, or nothing: on a PostgreSQL both may be at work at once.
#[tokio::test]
async fn nothing_is_bought_between_the_count_and_the_archive() {
    let world = World::new().await;
    let acme = world.company("acme").await;
    let mut buyers = Vec::new();
    for number in 0..4 {
        buyers.push(world.company(&format!("buyer-{number}")).await);
    }
    for buyer in &buyers {
        let endpoint = world.endpoint(&acme).await;
        let path = acme.path(&format!("/endpoints/{endpoint}"));
        let (purchases, body) = (
            buyer.path("/purchases"),
            json!({"product_id": endpoint, "accept_terms": true}),
        );
        let (archived, bought) = tokio::join!(
            world.delete(&acme.key, &path),
            world.post(&buyer.key, &purchases, body)
        );
        match archived.status.as_u16() {
            204 => bought.expect_error(404, "PRODUCT_NOT_FOUND"),
            _ => {
                archived.expect_error(409, "RESOURCE_IN_USE");
                bought.expect(201)
            }
        };
    }
}

/// What nobody has bought, or whose buyers have all cancelled, needs no force.
#[tokio::test]
async fn what_nobody_has_is_archived_at_once() {
    let world = World::new().await;
    let (acme, buyer) = (world.company("acme").await, world.company("buyer").await);
    let endpoint = world.endpoint(&acme).await;
    let bought = buy(&world, &buyer, &endpoint).await;
    let purchase = buyer.path(&format!("/purchases/{}", bought.text("/data/id")));
    world.delete(&buyer.key, &purchase).await.expect(204);
    let path = acme.path(&format!("/endpoints/{endpoint}"));
    world.delete(&acme.key, &path).await.expect(204);
}

/// A key of an archived endpoint says why it ended, and gives no advice that cannot work; other reasons stay with the key's company.
#[tokio::test]
async fn a_key_of_an_archived_endpoint_says_so() {
    let world = World::new().await;
    let (acme, buyer) = (world.company("acme").await, world.company("buyer").await);
    let endpoint = world.endpoint(&acme).await;
    let of_purchase = buy(&world, &buyer, &endpoint)
        .await
        .text("/data/endpoint_key/key");
    let keys = acme.path(&format!("/endpoints/{endpoint}/keys"));
    let minted = world
        .post(&acme.key, &keys, json!({"name": "reader"}))
        .await
        .expect(201)
        .text("/data/key");
    let path = acme.path(&format!("/endpoints/{endpoint}?force=true"));
    world.delete(&acme.key, &path).await.expect(204);
    for key in [of_purchase, minted] {
        let told = world.get(&key, "/endpoints/v1/any").await;
        let told = told.expect_error(410, "API_KEY_DEACTIVATED");
        let message = told.text("/error/message");
        assert!(message.contains("archived by its seller"), "{message}");
        assert!(!message.contains("POST …/purchases"), "{message}");
        let reason = told.text("/error/details/reason");
        assert_eq!(reason, "the endpoint was archived by its seller");
    }
    let listed = buyer.path("/api-keys?key_type=endpoint");
    let listed = world.get(&buyer.key, &listed).await.expect(200);
    let reason = listed.text("/data/0/revocation_reason");
    assert_eq!(reason, "the endpoint was archived by its seller");

    let revoked = world
        .post(
            &acme.key,
            &acme.path("/api-keys"),
            json!({"name": "k", "role_id": 2}),
        )
        .await
        .expect(201);
    let revoke = acme.path(&format!("/api-keys/{}/revoke", revoked.text("/data/id")));
    let reason = json!({"reason": "Ann's laptop was stolen"});
    world.post(&acme.key, &revoke, reason).await.expect(200);
    let told = world.get(&revoked.text("/data/key"), "/users/me").await;
    let told = told.expect_error(410, "API_KEY_DEACTIVATED");
    assert!(!told.body.to_string().contains("Ann"), "{}", told.body);
}

/// Who has bought an archived asset is told what became of it; to others it is as one that never was.
#[tokio::test]
async fn a_call_of_an_archived_asset_says_so_to_its_buyers() {
    let world = World::new().await;
    let acme = world.company("acme").await;
    let (buyer, other) = (world.company("buyer").await, world.company("other").await);
    let asset = world.sample(&acme, "{}").await;
    buy(&world, &buyer, &asset).await;
    let path = acme.path(&format!("/assets/{asset}?force=true"));
    world.delete(&acme.key, &path).await.expect(204);
    for (company, is_told) in [(&buyer, true), (&other, false)] {
        let run = company.path(&format!("/assets/{asset}/execute"));
        let refused = world.post(&company.key, &run, json!({})).await;
        let refused = refused.expect_error(404, "ASSET_NOT_FOUND");
        let message = refused.text("/error/message");
        assert_eq!(message.contains("archived by its seller"), is_told);
    }
}
