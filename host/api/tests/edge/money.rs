//! Companies and their credits.

use crate::world::World;
use serde_json::json;

/// A company is made with its first administrator and key; its handle is its own.
#[tokio::test]
async fn a_company_is_made_with_its_first_key() {
    let world = World::new().await;
    let body = json!({"name": "Acme", "handle": "acme", "contact_email": "a@example.com"});
    let made = world
        .post(&world.platform, "/admin/companies", body.clone())
        .await
        .expect(201);
    let (id, key) = (
        made.text("/data/company/id"),
        made.text("/data/api_key/key"),
    );
    assert_eq!(
        (
            made.at("/data/api_key/role_id"),
            made.at("/data/user/email")
        ),
        (&json!(4), &json!("a@example.com"))
    );
    assert_eq!(
        world
            .get(&key, "/companies/me")
            .await
            .expect(200)
            .text("/data/id"),
        id
    );
    assert_eq!(
        world
            .get(&key, &format!("/companies/{id}"))
            .await
            .expect(200)
            .text("/data/handle"),
        "acme"
    );
    world
        .post(&world.platform, "/admin/companies", body)
        .await
        .expect_error(409, "SLUG_TAKEN");
    let same_address =
        json!({"name": "Other", "handle": "other", "contact_email": "a@example.com"});
    let other = world
        .post(&world.platform, "/admin/companies", same_address)
        .await
        .expect(201);
    assert_eq!(other.at("/data/user/email"), "a@example.com");
    for handle in ["", "Acme", "a b", "api", "-a"] {
        let refused = world
            .post(
                &world.platform,
                "/admin/companies",
                json!({"name": "x", "handle": handle}),
            )
            .await;
        assert_eq!(
            refused.expect_error(400, "VALIDATION_ERROR").field(),
            "handle"
        );
    }
}

/// A grant is there at once.
#[tokio::test]
async fn granted_credits_are_in_the_balance() {
    let world = World::new().await;
    let acme = world.company("acme").await;
    let grants = format!("/admin/companies/{}/credits/grants", acme.id);
    let empty = world
        .get(&acme.key, &acme.path("/credits"))
        .await
        .expect(200);
    assert_eq!(
        (
            empty.at("/data/balance_credits"),
            empty.at("/data/balance_usd")
        ),
        (&json!(0), &json!(0))
    );
    let granted = world
        .post(
            &world.platform,
            &grants,
            json!({"credits": 25, "reason": "welcome"}),
        )
        .await
        .expect(201);
    assert_eq!(granted.at("/data/balance_after_credits"), 25);
    let balance = world
        .get(&acme.key, &acme.path("/credits"))
        .await
        .expect(200);
    assert_eq!(
        (
            balance.at("/data/balance_credits"),
            balance.at("/data/balance_usd")
        ),
        (&json!(25), &json!(12.5))
    );
    for name in [
        "held_credits",
        "executions_30d",
        "endpoint_requests_30d",
        "total_spent_credits_30d",
    ] {
        assert_eq!(balance.at(&format!("/data/{name}")), 0, "{name}");
    }
    for body in [
        json!({"credits": 0, "reason": "x"}),
        json!({"credits": -1, "reason": "x"}),
        json!({"credits": 1}),
    ] {
        world
            .post(&world.platform, &grants, body)
            .await
            .expect_error(400, "VALIDATION_ERROR");
    }
    let unknown = world
        .post(
            &world.platform,
            "/admin/companies/cmp_unknown/credits/grants",
            json!({"credits": 1, "reason": "x"}),
        )
        .await;
    unknown.expect_error(404, "COMPANY_NOT_FOUND");
}

/// The statement shows what came in, and the books balance.
#[tokio::test]
async fn the_statement_shows_a_grant() {
    let world = World::new().await;
    let acme = world.company("acme").await;
    let grants = format!("/admin/companies/{}/credits/grants", acme.id);
    let granted = world
        .post(
            &world.platform,
            &grants,
            json!({"credits": 25, "reason": "welcome"}),
        )
        .await
        .expect(201);
    let listed = world
        .get(&acme.key, &acme.path("/credits/transactions?type=grant"))
        .await
        .expect(200);
    assert_eq!(
        (listed.at("/meta/total"), listed.at("/data/0/id")),
        (&json!(1), granted.at("/data/id"))
    );
    assert_eq!(
        (
            listed.at("/data/0/amount_credits"),
            listed.at("/data/0/amount_usd_cents")
        ),
        (&json!(25), &json!(1250))
    );
    let location = granted.header("location").to_owned();
    assert_eq!(
        world
            .get(&acme.key, &location)
            .await
            .expect(200)
            .at("/data/description"),
        "welcome"
    );
    assert_eq!(
        world
            .get(&acme.key, &acme.path("/credits/transactions?type=charge"))
            .await
            .expect(200)
            .at("/meta/total"),
        0
    );
    world
        .get(&acme.key, &acme.path("/credits/transactions/txn_unknown"))
        .await
        .expect_error(404, "TRANSACTION_NOT_FOUND");
    let books = world
        .get(&world.platform, "/admin/ledger/reconciliation")
        .await
        .expect(200);
    assert_eq!(
        (books.at("/data/balanced"), books.at("/data/transactions")),
        (&json!(true), &json!(1))
    );
}

/// Ten former handles route to a company; another one would keep yet another name from everybody else. It may go back to any of them.
#[tokio::test]
async fn a_company_keeps_ten_former_handles() {
    let world = World::new().await;
    let acme = world.company("acme").await;
    let rename = async |handle: &str| {
        let body = json!({"handle": handle});
        world.patch(&acme.key, &acme.path(""), body).await
    };
    for number in 1..=10 {
        rename(&format!("acme-{number}")).await.expect(200);
    }
    rename("acme-11").await.expect_error(409, "CONFLICT");
    for former in ["acme-10", "acme-3", "acme"] {
        let renamed = rename(former).await.expect(200);
        assert_eq!(renamed.at("/data/handle"), former);
    }
    rename("acme-11").await.expect_error(409, "CONFLICT");
    world.company("acme-11").await;
}
