//! Invitations: whom they let in, once, and whose an address is by them.

use crate::browser::{Browser, token};
use crate::world::{Answer, World, request};
use axum::body::Body;
use http::Method;
use serde_json::{Value, json};
use souk_domain::sessions::Token;
use tower::ServiceExt;

/// Whoever is invited comes in once, is active then, and acts with its own role until it leaves.
#[tokio::test]
async fn an_invited_user_comes_in_and_leaves() {
    let world = World::new().await;
    let acme = world.company("acme").await;
    let ann = json!({"email": "ann@example.org", "name": "Ann", "role_id": 3});
    let ann = world.invite(&acme, ann).await.expect(201);
    assert_eq!(ann.at("/data/invitation/mail_sent"), false);
    let token = token(&ann);
    let entered = world.accept(&token).await.expect(200);
    let cookie = entered.header("set-cookie").to_owned();
    let (value, rest) = cookie.split_once("; ").unwrap();
    assert!(value.starts_with("__Host-session="), "{cookie}");
    assert_eq!(
        rest,
        "Path=/; Secure; HttpOnly; SameSite=Lax; Max-Age=604800"
    );
    assert_eq!(entered.header("cache-control"), "no-store");
    for (member, value) in [
        ("/data/user/status", json!("active")),
        // Whoever invited has had the link, too.
        ("/data/user/email_verified", json!(false)),
        ("/data/company/id", json!(acme.id)),
        ("/data/is_new_user", json!(true)),
    ] {
        assert_eq!(entered.at(member), &value, "{member}");
    }
    world
        .accept(&token)
        .await
        .expect_error(404, "INVITATION_NOT_FOUND");

    let browser = Browser::of(&entered);
    let me = browser.get(&world, "/users/me").await.expect(200);
    assert_eq!(
        [
            me.at("/data/user/name"),
            me.at("/data/role_id"),
            me.at("/data/session/csrf_token"),
            me.at("/data/api_key_id")
        ],
        [&json!("Ann"), &json!(3), &json!(browser.csrf), &Value::Null]
    );
    assert!(me.at("/data/user/last_login_at").is_string());
    browser
        .get(&world, &acme.path("/credits"))
        .await
        .expect(200);
    let hook = json!({"url": "https://93.184.216.34/souk"});
    let hook = browser
        .ask(&world, Method::POST, &acme.path("/webhooks"), hook)
        .await
        .expect(201);
    // What it does is its own.
    let log = acme.path(&format!(
        "/audit-log?request_id={}",
        hook.header("x-request-id")
    ));
    let log = world.get(&acme.key, &log).await.expect(200);
    assert_eq!(
        [
            log.at("/data/0/actor/type"),
            log.at("/data/0/actor/user_id"),
            log.at("/data/0/actor/api_key_id")
        ],
        [&json!("user"), &json!(browser.user), &Value::Null]
    );
    let entry = acme.path("/audit-log?operation=accept_invitation&subject_type=session");
    let entry = world.get(&acme.key, &entry).await.expect(200);
    assert_eq!(entry.at("/data/0/actor/type"), "none");
    assert_eq!(entry.at("/data/0/after/user_id"), &json!(browser.user));
    assert!(!entry.body.to_string().contains(value));

    // No key of its own and no role 4.
    browser
        .get(&world, &acme.path("/api-keys/current"))
        .await
        .expect_error(404, "API_KEY_NOT_FOUND");
    browser
        .get(&world, &acme.path("/audit-log"))
        .await
        .expect_error(403, "INSUFFICIENT_ROLE");
    browser
        .get(&world, "/companies/cmp_other/credits")
        .await
        .expect_error(403, "COMPANY_ACCESS_DENIED");

    let left = browser
        .ask(&world, Method::POST, "/users/logout", Value::Null)
        .await
        .expect(204);
    assert!(left.header("set-cookie").starts_with("__Host-session=;"));
    let over = browser
        .get(&world, "/users/me")
        .await
        .expect_error(401, "SESSION_EXPIRED");
    assert!(over.header("set-cookie").ends_with("Max-Age=0"));
}

/// An invitation that is not known, has expired or was taken back lets nobody in; nor do too many attempts.
#[tokio::test]
async fn a_wrong_invitation_lets_nobody_in() {
    let world = World::new().await;
    let acme = world.company("acme").await;
    let ann = world
        .invite(&acme, json!({"email": "ann@example.org"}))
        .await
        .expect(201);
    let bob = world
        .invite(&acme, json!({"email": "bob@example.org"}))
        .await
        .expect(201);
    world.expire(&ann).await;
    world
        .delete(&acme.key, bob.header("location"))
        .await
        .expect(204);
    let unknown = Token::generate();
    for wrong in [&*token(&ann), &token(&bob), unknown.expose(), "short"] {
        world
            .accept(wrong)
            .await
            .expect_error(404, "INVITATION_NOT_FOUND");
    }
    world
        .post("", "/users/invitations/accept", json!({}))
        .await
        .expect_error(400, "VALIDATION_ERROR");
    for _ in 5..20 {
        world.accept("short").await.expect(404);
    }
    let refused = world
        .accept("short")
        .await
        .expect_error(429, "RATE_LIMIT_EXCEEDED");
    assert_eq!(
        [
            refused.at("/error/details/scope"),
            refused.at("/error/details/limit")
        ],
        [&json!("ip"), &json!(20)]
    );
}

/// A new invitation makes the one before void, and whoever came in needs none.
#[tokio::test]
async fn a_user_is_invited_again() {
    let world = World::new().await;
    let acme = world.company("acme").await;
    let ann = json!({"email": "ann@example.org", "role_id": 2});
    let ann = world.invite(&acme, ann).await.expect(201);
    let again = format!("{}/invitation", ann.header("location"));
    let invited = world
        .post_keyed(&acme.key, &again, "once", json!({}))
        .await
        .expect(200);
    let url = invited.text("/data/url");
    // The link is not shown twice, however it is asked for.
    let replayed = world
        .post_keyed(&acme.key, &again, "once", json!({}))
        .await
        .expect(200);
    assert_eq!(replayed.at("/data/url"), &Value::Null);
    world
        .accept(&token(&ann))
        .await
        .expect_error(404, "INVITATION_NOT_FOUND");
    let (_, new) = url.split_once('#').unwrap();
    // That the former one was mailed is noted late, and says nothing of one that was shown.
    world.mail(&token(&ann)).await;
    let entered = world.accept(new).await.expect(200);
    assert_eq!(entered.at("/data/user/email_verified"), false);
    world
        .post(&acme.key, &again, json!({}))
        .await
        .expect_error(409, "INVALID_STATE");
}

/// Whoever first shows that an address is theirs has it, until that user is removed: any company invites under it, and in none somebody else comes
/// in by a mailed link. A link that whoever invited has had shows nothing, and takes nothing from anybody.
#[tokio::test]
async fn an_address_is_whose_who_shows_it() {
    let world = World::new().await;
    let mut invited = Vec::new();
    for handle in ["acme", "other", "third", "fourth"] {
        let company = world.company(handle).await;
        let ann = json!({"email": "ann@example.org"});
        let ann = world.invite(&company, ann).await.expect(201);
        invited.push((company, token(&ann)));
    }
    let [shown, mailed, late, last] = &*invited else {
        unreachable!("there are four");
    };
    let is_proven =
        |entered: &Answer| entered.at("/data/user/email_verified").as_bool() == Some(true);
    let first = world.accept(&shown.1).await.expect(200);
    assert!(!is_proven(&first));
    world.mail(&mailed.1).await;
    world.mail(&late.1).await;
    let owner = world.accept(&mailed.1).await.expect(200);
    assert!(is_proven(&owner));

    let owner = format!("/users/{}", owner.text("/data/user/id"));
    let owner = mailed.0.path(&owner);
    for status in ["active", "disabled"] {
        let change = json!({"status": status});
        let changed = world.patch(&mailed.0.key, &owner, change).await;
        changed.expect(200);
        let refused = world.accept(&late.1).await;
        let refused = refused.expect_error(409, "EMAIL_TAKEN");
        assert_eq!(refused.header("set-cookie"), "");
    }
    let second = world.accept(&last.1).await.expect(200);
    assert!(!is_proven(&second));
    for unproven in [&first, &second] {
        let browser = Browser::of(unproven);
        let me = browser.get(&world, "/users/me").await.expect(200);
        assert_eq!(me.at("/data/user/email"), "ann@example.org");
    }
    // Whoever was refused may come in once the address is free.
    world.delete(&mailed.0.key, &owner).await.expect(204);
    let next = world.accept(&late.1).await.expect(200);
    assert!(is_proven(&next));
}

/// The page that the link leads to runs its own script and nothing else.
#[tokio::test]
async fn the_invitation_page_is_closed() {
    let world = World::new().await;
    let page = request(Method::GET, "", "/invitation")
        .body(Body::empty())
        .unwrap();
    let page = world.router.clone().oneshot(page).await.unwrap();
    assert_eq!(page.status(), 200);
    let policy = page.headers()["content-security-policy"]
        .to_str()
        .unwrap()
        .to_owned();
    assert!(
        policy.contains("default-src 'none'") && policy.contains("frame-ancestors 'none'"),
        "{policy}"
    );
    let body = axum::body::to_bytes(page.into_body(), 1 << 20)
        .await
        .unwrap();
    let body = std::str::from_utf8(&body).unwrap();
    let (_, script) = body.split_once("<script>").unwrap();
    let (script, _) = script.split_once("</script>").unwrap();
    let digest = <sha2::Sha256 as sha2::Digest>::digest(script);
    let digest = base64::Engine::encode(&base64::engine::general_purpose::STANDARD, digest);
    assert!(
        policy.contains(&format!("script-src 'sha256-{digest}'")),
        "{policy}"
    );
}
