//! How many keys of a company may work.

use crate::world::{Company, World};
use serde_json::json;
use souk_domain::ids::{CompanyId, EndpointId};
use souk_domain::keys::{KeySecret, KeyType, LIVE_KEYS_MAX};
use souk_domain::roles::{Grant, Permissions, Role};
use souk_domain::time::{HOUR, Timestamp};
use souk_store::db::now;
use souk_store::keys::{self, Key, NewKey};
use souk_store::{StoreError, Write};

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
