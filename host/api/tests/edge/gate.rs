//! The order of checks: every operation, without exception.

use crate::world::{World, now, request};
use axum::body::Body;
use http::Method;
use serde_json::json;
use souk_api::operation::CompanyRule;
use souk_api::{Access, Operation};
use souk_domain::ids::{CompanyId, KeyId};
use souk_domain::roles::{Permission, Role};

fn method(operation: &Operation) -> Method {
    operation.verb.name().parse().unwrap()
}

/// A path of the operation in this company.
fn path(operation: &Operation, company: &str) -> String {
    let segments = operation.path.split('/').map(|segment| match segment {
        "{company_id}" => company,
        parameter if parameter.starts_with('{') => "some_id",
        fixed => fixed,
    });
    segments.collect::<Vec<_>>().join("/")
}

/// No operation that needs a key answers without one, and none takes a malformed, unknown or endpoint key.
#[tokio::test]
async fn every_operation_refuses_every_wrong_key() {
    let world = World::new().await;
    let acme = world.company("acme").await;
    let endpoint = world.endpoint(&acme).await;
    let minted = world
        .post(
            &acme.key,
            &acme.path(&format!("/endpoints/{endpoint}/keys")),
            json!({"name": "reader"}),
        )
        .await
        .expect(201);
    let endpoint_key = minted.text("/data/key");
    let unknown = souk_domain::keys::KeySecret::generate(souk_domain::keys::KeyType::Analytics);

    for operation in souk_api::all()
        .operations()
        .filter(|operation| operation.access != Access::Public)
    {
        let send = async |key: &str| {
            world
                .send(
                    request(method(operation), key, &path(operation, &acme.id))
                        .body(Body::empty())
                        .unwrap(),
                )
                .await
        };
        send("").await.expect_error(401, "MISSING_API_KEY");
        let refused = send("sk_service_nonsense")
            .await
            .expect_error(401, "INVALID_API_KEY");
        assert!(
            refused.at("/error/details/key_id").is_null()
                && refused.header("www-authenticate").starts_with("ApiKey")
        );
        send(unknown.expose())
            .await
            .expect_error(401, "INVALID_API_KEY");
        if operation.access != Access::Data {
            send(&endpoint_key)
                .await
                .expect_error(403, "ENDPOINT_KEY_NOT_ALLOWED");
        }
    }
}

/// No operation is open to a key below its role or without its permission, nor to another company's; and it says so before it reads the body.
#[tokio::test]
async fn every_operation_refuses_every_insufficient_key() {
    let world = World::new().await;
    let acme = world.company("acme").await;
    let keys = acme.path("/api-keys");
    let mut made = std::collections::HashMap::new();
    for (name, grant) in [
        ("analyst", json!({"role_id": 1})),
        ("scientist", json!({"role_id": 2})),
        ("engineer", json!({"role_id": 3})),
        ("admin", json!({"role_id": 4})),
        ("reader", json!({"role_id": 4, "permissions": ["read"]})),
        ("writer", json!({"role_id": 4, "permissions": ["write"]})),
    ] {
        let mut body = grant;
        body["name"] = name.into();
        body["rate_limit"] = 1_000_000.into();
        made.insert(
            name,
            world
                .post(&acme.key, &keys, body)
                .await
                .expect(201)
                .text("/data/key"),
        );
    }
    for operation in souk_api::all().operations() {
        let Access::Key { role, permission } = operation.access else {
            continue;
        };
        let send = async |name: &str, company: &str| {
            let request = request(method(operation), &made[name], &path(operation, company))
                .header("content-type", "application/json");
            world
                .send(request.body(Body::from("{not json")).unwrap())
                .await
        };
        let below = match role {
            Role::Analyst => None,
            Role::DataScientist => Some("analyst"),
            Role::DataEngineer => Some("scientist"),
            Role::Admin => Some("engineer"),
            Role::SuperAdmin => Some("admin"),
        };
        if let Some(below) = below {
            let refused = send(below, &acme.id)
                .await
                .expect_error(403, "INSUFFICIENT_ROLE");
            assert_eq!(
                refused.at("/error/details/required_role"),
                role.level(),
                "{}",
                operation.id
            );
        }
        if role < Role::SuperAdmin {
            let other = if permission == Permission::Write {
                "reader"
            } else {
                "writer"
            };
            let refused = send(other, &acme.id)
                .await
                .expect_error(403, "INSUFFICIENT_PERMISSIONS");
            assert_eq!(
                refused.at("/error/details/required_permission"),
                permission.as_str(),
                "{}",
                operation.id
            );
        }
        if operation.company == CompanyRule::Own {
            send("admin", "cmp_other")
                .await
                .expect_error(403, "COMPANY_ACCESS_DENIED");
        }
    }
}

/// Whoever is signed in may do what a key of its role may: every operation refuses every role below its own, each by a key and by a session, and
/// lets its own role pass the gate; neither reaches into another company.
#[tokio::test]
async fn every_operation_refuses_every_role_below() {
    let world = World::new().await;
    let (acme, other) = (world.company("acme").await, world.company("other").await);
    let mut callers = Vec::new();
    for role in 1..=4_u8 {
        let body = json!({"name": "one", "role_id": role, "rate_limit": 1_000_000});
        let made = world.post(&acme.key, &acme.path("/api-keys"), body).await;
        let key = made.expect(201).text("/data/key");
        callers.push((role, key, world.browser(&acme, role).await));
    }
    let mut told = 0;
    for operation in souk_api::all().operations() {
        let Access::Key { role, .. } = operation.access else {
            continue;
        };
        for (level, key, browser) in &callers {
            let keyed = |path: &str| request(method(operation), key, path);
            let signed = |path: &str| {
                let request = request(method(operation), "", path);
                let request = request.header("cookie", &browser.cookie);
                request.header("x-csrf-token", &browser.csrf)
            };
            let send = async |request: http::request::Builder| {
                let request = request.header("content-type", "application/json");
                let request = request.body(Body::from("{not json"));
                world.send(request.unwrap()).await
            };
            let own = path(operation, &acme.id);
            let foreign = path(operation, &other.id);
            for (at_home, abroad) in [
                (keyed(&own), keyed(&foreign)),
                (signed(&own), signed(&foreign)),
            ] {
                if *level < role.level() {
                    let refused = send(at_home).await;
                    let refused = refused.expect_error(403, "INSUFFICIENT_ROLE");
                    assert_eq!(refused.at("/error/details/required_role"), role.level());
                    told += 1;
                } else if *level == role.level() {
                    // What ends the caller itself is left out: there would be nobody to go on with.
                    if operation.id != "logout" {
                        let passed = send(at_home).await;
                        // A thing of another user's may need more than the operation does.
                        let needs = passed.at("/error/details/required_role").as_u64();
                        let is_refused = passed.status == 401 || needs == Some(role.level().into());
                        assert!(!is_refused, "{} {level}: {}", operation.id, passed.body);
                    }
                    if operation.company == CompanyRule::Own {
                        let refused = send(abroad).await;
                        refused.expect_error(403, "COMPANY_ACCESS_DENIED");
                        told += 1;
                    }
                }
            }
        }
    }
    assert!(told > 500, "{told}");
}

/// Companies that exist and those that do not answer alike; staff pass, and learn which exist.
#[tokio::test]
async fn foreign_companies_answer_alike_except_to_staff() {
    let world = World::new().await;
    let (acme, other) = (world.company("acme").await, world.company("other").await);
    let foreign = world
        .get(&acme.key, &other.path("/api-keys"))
        .await
        .expect_error(403, "COMPANY_ACCESS_DENIED");
    let unknown = world
        .get(&acme.key, "/companies/cmp_unknown/api-keys")
        .await
        .expect_error(403, "COMPANY_ACCESS_DENIED");
    assert_eq!(foreign.at("/error/message"), unknown.at("/error/message"));
    world
        .get(&world.platform, &other.path("/api-keys"))
        .await
        .expect(200);
    world
        .get(&world.platform, "/companies/cmp_unknown/api-keys")
        .await
        .expect_error(404, "COMPANY_NOT_FOUND");
}

/// Deactivated is 410 from the next request on, expired is 401 and says since when.
#[tokio::test]
async fn dead_keys_are_told_apart() {
    let world = World::new().await;
    let acme = world.company("acme").await;
    let made = world
        .post(&acme.key, &acme.path("/api-keys"), json!({"name": "short"}))
        .await
        .expect(201);
    let (id, key) = (made.text("/data/id"), made.text("/data/key"));
    world.get(&key, &acme.path("/credits")).await.expect(200);
    world
        .delete(&acme.key, &acme.path(&format!("/api-keys/{id}")))
        .await
        .expect(204);
    let refused = world
        .get(&key, &acme.path("/credits"))
        .await
        .expect_error(410, "API_KEY_DEACTIVATED");
    assert_eq!(refused.text("/error/details/key_id"), id);
    assert!(refused.at("/error/details/deactivated_at").is_string());

    let made = world
        .post(
            &acme.key,
            &acme.path("/api-keys"),
            json!({"name": "expiring"}),
        )
        .await
        .expect(201);
    let (id, key) = (made.text("/data/id"), made.text("/data/key"));
    world
        .db
        .write(async |write| -> Result<_, souk_store::StoreError> {
            let company = CompanyId::parse(&acme.id).unwrap();
            let mut row = souk_store::keys::get(write, &company, &KeyId::parse(&id).unwrap())
                .await
                .unwrap()
                .unwrap();
            row.expires_at = Some(now());
            souk_store::keys::update(write, &row, now()).await.unwrap();
            Ok(())
        })
        .await
        .unwrap();
    let refused = world
        .get(&key, &acme.path("/credits"))
        .await
        .expect_error(401, "INVALID_API_KEY");
    assert_eq!(refused.text("/error/details/key_id"), id);
    assert!(refused.at("/error/details/expires_at").is_string());
}

/// Suspending a company holds from the next request on.
#[tokio::test]
async fn a_suspended_company_is_refused() {
    let world = World::new().await;
    let acme = world.company("acme").await;
    world
        .get(&acme.key, &acme.path("/credits"))
        .await
        .expect(200);
    world.suspend(&acme).await;
    world
        .get(&acme.key, &acme.path("/credits"))
        .await
        .expect_error(403, "COMPANY_SUSPENDED");
}
