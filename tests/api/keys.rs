//! API keys: shown once, hashed, gated by role, revoked at once.

use serde_json::json;

use crate::{host, unique};

/// The create answer alone carries the secret; everything after shows the mask.
#[tokio::test]
async fn a_key_is_shown_once() {
    let company = host().await.company(&unique("keys")).await;
    let path = company.path("/api-keys");
    let created = company
        .client
        .post(
            &path,
            json!({"name": "ci", "permissions": ["read", "write"], "description": "for CI"}),
        )
        .await
        .expect(201);
    let (id, secret) = (created.text("/data/id"), created.text("/data/key"));
    assert!(secret.starts_with("sk_") && secret.len() > 50, "{secret}");
    assert_eq!(created.at("/data/status"), "active");
    assert!(created.header("location").ends_with(&id));

    let read = company
        .client
        .get(&format!("{path}/{id}"))
        .await
        .expect(200);
    assert_eq!(
        read.text("/data/key"),
        format!("sk_****{}", &secret[secret.len() - 4..])
    );
    let listed = company.client.get(&path).await.expect(200);
    assert!(!listed.body.to_string().contains(&secret));
    assert_eq!(listed.at("/meta/per_page"), 50);
    company
        .client
        .with_key(&secret)
        .get(&path)
        .await
        .expect(200);
}

/// A deleted key is refused from the very next request, with 410.
#[tokio::test]
async fn revocation_holds_from_the_next_request() {
    let company = host().await.company(&unique("revoke")).await;
    let path = company.path("/api-keys");
    for _ in 0..5 {
        let created = company
            .client
            .post(&path, json!({"name": "short-lived"}))
            .await
            .expect(201);
        let (id, holder) = (
            created.text("/data/id"),
            company.client.with_key(&created.text("/data/key")),
        );
        holder.get(&path).await.expect(200);
        company
            .client
            .delete(&format!("{path}/{id}"))
            .await
            .expect(204);
        let refusal = holder
            .get(&path)
            .await
            .expect_error(410, "API_KEY_DEACTIVATED");
        assert_eq!(refusal.at("/error/details/key_id"), &json!(id));
        company
            .client
            .delete(&format!("{path}/{id}"))
            .await
            .expect(204);
    }
}

/// An expired key is invalid, and the answer says since when.
#[tokio::test]
async fn an_expired_key_is_invalid() {
    let company = host().await.company(&unique("expiry")).await;
    let path = company.path("/api-keys");
    let soon = (jiff::Timestamp::now() + jiff::SignedDuration::from_secs(1)).to_string();
    let created = company
        .client
        .post(&path, json!({"name": "brief", "expires_at": soon}))
        .await
        .expect(201);
    tokio::time::sleep(std::time::Duration::from_millis(1500)).await;
    let refusal = company
        .client
        .with_key(&created.text("/data/key"))
        .get(&path)
        .await
        .expect_error(401, "INVALID_API_KEY");
    assert_eq!(refusal.at("/error/details/key_id"), created.at("/data/id"));
    assert!(refusal.at("/error/details/expires_at").is_string());
    company
        .client
        .post(
            &path,
            json!({"name": "past", "expires_at": "2020-01-01T00:00:00Z"}),
        )
        .await
        .expect_error(400, "VALIDATION_ERROR");
}

/// Nobody mints a key above their own role or permissions.
#[tokio::test]
async fn a_key_cannot_mint_above_itself() {
    let company = host().await.company(&unique("roles")).await;
    let path = company.path("/api-keys");
    let engineer = company
        .client
        .post(&path, json!({"name": "engineer", "role_id": 3}))
        .await
        .expect(201);
    let engineer = company.client.with_key(&engineer.text("/data/key"));
    for role in 1..=3 {
        engineer
            .post(&path, json!({"name": "below", "role_id": role}))
            .await
            .expect(201);
    }
    engineer
        .post(&path, json!({"name": "above", "role_id": 4}))
        .await
        .expect_error(403, "ROLE_ESCALATION");
    engineer
        .post(&path, json!({"name": "outside", "role_id": 6}))
        .await
        .expect_error(400, "VALIDATION_ERROR");
    engineer
        .post(
            &path,
            json!({"name": "contradiction", "role_id": 1, "permissions": ["write"]}),
        )
        .await
        .expect_error(400, "VALIDATION_ERROR");

    let analyst = company
        .client
        .post(&path, json!({"name": "analyst", "role_id": 1}))
        .await
        .expect(201);
    let analyst = company.client.with_key(&analyst.text("/data/key"));
    analyst.get(&path).await.expect(200);
    let refusal = analyst.post(&path, json!({"name": "no"})).await;
    assert_eq!(refusal.status.as_u16(), 403, "{}", refusal.body);
}

/// Both spellings of the collection are the same collection.
#[tokio::test]
async fn both_spellings_work() {
    let company = host().await.company(&unique("spelling")).await;
    let created = company
        .client
        .post(&company.path("/api_keys"), json!({"name": "underscore"}))
        .await
        .expect(201);
    let read = company
        .client
        .get(&company.path(&format!("/api-keys/{}", created.text("/data/id"))))
        .await
        .expect(200);
    assert_eq!(read.at("/data/name"), "underscore");
}

/// Only platform staff create companies.
#[tokio::test]
async fn only_platform_staff_create_companies() {
    let company = host().await.company(&unique("staff")).await;
    let body = json!({"name": "No", "handle": unique("no"), "contact_email": "no@example.com"});
    company
        .client
        .post("/admin/companies", body)
        .await
        .expect_error(403, "INSUFFICIENT_ROLE");
    let taken =
        json!({"name": "Again", "handle": company.handle, "contact_email": "a@example.com"});
    let refusal = host()
        .await
        .platform()
        .post("/admin/companies", taken)
        .await;
    assert_eq!(refusal.status.as_u16(), 409, "{}", refusal.body);
}
