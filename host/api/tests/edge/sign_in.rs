//! Signing in by an identity provider: who shows a token that was made for this service, this attempt and now, and nobody else.

mod codes;
mod failures;
mod meanwhile;
mod tokens;

use crate::browser::{Browser, token};
use crate::provider::{Provider, nonce};
use crate::world::{Answer, Company, World, request};
use axum::body::Body;
use axum::extract::ConnectInfo;
use http::Method;
use serde_json::{Value, json};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Duration;

const ROUTE: &str = "/users/google-oauth";
const VERIFIER: &str = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk";
/// Asked again as often as wanted.
const AT_ONCE: Duration = Duration::ZERO;

impl World {
    async fn of_provider(provider: &Provider, again_after: Duration) -> (World, Company) {
        let world = World::with_identity(provider.client(again_after)).await;
        let acme = world.company("acme").await;
        let ann = json!({"email": "ann@example.org", "role_id": 3});
        world.invite(&acme, ann).await.expect(201);
        (world, acme)
    }

    /// From a new address each time, which has its own attempts.
    async fn sign_in(&self, path: &str, body: Value) -> Answer {
        static NEXT: AtomicU8 = AtomicU8::new(1);
        let address = SocketAddr::from(([192, 0, 2, NEXT.fetch_add(1, Ordering::Relaxed)], 1));
        let request = request(Method::POST, "", path)
            .extension(ConnectInfo(address))
            .header("content-type", "application/json")
            .header("user-agent", "a browser");
        self.send(request.body(Body::from(body.to_string())).unwrap())
            .await
    }

    /// By a browser that asked with the token's nonce.
    async fn with_token(&self, token: &str) -> Answer {
        self.sign_in(ROUTE, json!({"id_token": token, "nonce": nonce(token)}))
            .await
    }

    /// The same into a company that it names.
    async fn with_token_to(&self, company: &Company, token: &str) -> Answer {
        let body = json!({"id_token": token, "nonce": nonce(token)});
        self.sign_in(&company.path(ROUTE), body).await
    }
}

/// Whoever was invited comes in with a token for the invited address, and from then on is known by the provider's subject.
#[tokio::test]
async fn an_invited_user_signs_in() {
    let provider = Provider::start().await;
    let (world, acme) = World::of_provider(&provider, AT_ONCE).await;
    let entered = world
        .with_token(&provider.token(json!({})))
        .await
        .expect(200);
    for (member, value) in [
        ("/data/user/email", json!("ann@example.org")),
        ("/data/user/email_verified", json!(true)),
        ("/data/user/auth_provider", json!("google")),
        ("/data/user/status", json!("active")),
        ("/data/company/id", json!(acme.id)),
        ("/data/is_new_user", json!(true)),
    ] {
        assert_eq!(entered.at(member), &value, "{member}");
    }
    assert!(entered.at("/data/session/expires_at").is_string());
    assert_eq!(world.audited(&entered).await, ["sign_in"; 3]);
    let browser = Browser::of(&entered);
    let me = browser.get(&world, "/users/me").await.expect(200);
    assert_eq!(me.at("/data/role_id"), 3);

    // The address may change there, and another person may get it: the subject counts.
    let moved = provider.token(json!({"email": "ann.lee@example.org"}));
    let moved = world.with_token(&moved).await.expect(200);
    assert_eq!(
        (moved.text("/data/user/id"), moved.at("/data/is_new_user")),
        (browser.user.clone(), &json!(false))
    );
    let other = provider.token(json!({"sub": "1002"}));
    world
        .with_token(&other)
        .await
        .expect_error(403, "NOT_INVITED");
    let in_company = acme.path(ROUTE);
    let body = json!({"id_token": provider.token(json!({"nonce": "n-1"})), "nonce": "n-1"});
    let entered = world.sign_in(&in_company, body.clone()).await.expect(200);
    assert_eq!(world.audited(&entered).await, ["sign_in_to_company"]);
    let sessions = acme.path(&format!("/users/{}/sessions", browser.user));
    let sessions = world.get(&acme.key, &sessions).await.expect(200);
    assert_eq!(sessions.at("/meta/total"), 3);
    assert_eq!(sessions.at("/data/0/user_agent"), "a browser");

    // Nobody comes in who was not invited, into another company, or is disabled or gone.
    let stranger = world.company("other").await;
    world
        .sign_in(&stranger.path(ROUTE), body)
        .await
        .expect_error(403, "NOT_INVITED");
    for change in [
        json!({"sub": "1003", "email": "eve@example.org"}),
        json!({"sub": "1003", "email_verified": false}),
        json!({"sub": "1003", "email_verified": null}),
        json!({"sub": "1003", "email": null}),
    ] {
        world
            .with_token(&provider.token(change))
            .await
            .expect_error(403, "NOT_INVITED");
    }
    let user = acme.path(&format!("/users/{}", browser.user));
    world
        .patch(&acme.key, &user, json!({"status": "disabled"}))
        .await
        .expect(200);
    world
        .with_token(&provider.token(json!({})))
        .await
        .expect_error(403, "USER_DISABLED");
    world.delete(&acme.key, &user).await.expect(204);
    world
        .with_token(&provider.token(json!({})))
        .await
        .expect_error(403, "NOT_INVITED");
}

/// Whom several companies have invited comes in to the one that they name, and is known from then on; the others cannot have them, nor whoever gets
/// their address later.
#[tokio::test]
async fn somebody_invited_twice_says_where_to() {
    let provider = Provider::start().await;
    let (world, acme) = World::of_provider(&provider, AT_ONCE).await;
    let ann = || provider.token(json!({}));
    let (other, late) = (world.company("other").await, world.company("late").await);
    let again = json!({"email": "ann@example.org"});
    let invited = world.invite(&other, again.clone()).await.expect(201);
    let refused = world.with_token(&ann()).await;
    let refused = refused.expect_error(409, "SEVERAL_COMPANIES");
    assert_eq!(refused.header("set-cookie"), "");
    // An invitation that is over counts no more.
    world.expire(&invited).await;
    world
        .with_token_to(&other, &ann())
        .await
        .expect_error(403, "NOT_INVITED");
    let link = format!("{}/invitation", invited.header("location"));
    world.post(&other.key, &link, json!({})).await.expect(200);
    world
        .with_token(&ann())
        .await
        .expect_error(409, "SEVERAL_COMPANIES");

    let entered = world.with_token_to(&other, &ann()).await.expect(200);
    assert_eq!(entered.at("/data/company/id"), &json!(other.id));
    world.invite(&late, again).await.expect(201);
    let known = world.with_token(&ann()).await.expect(200);
    assert_eq!(known.at("/data/user/id"), entered.at("/data/user/id"));
    let heir = provider.token(json!({"sub": "1002"}));
    for refused in [
        world.with_token_to(&acme, &ann()).await,
        world.with_token_to(&late, &ann()).await,
        world.with_token(&heir).await,
        world.with_token_to(&late, &heir).await,
    ] {
        refused.expect_error(409, "EMAIL_TAKEN");
    }
    let stranger = world.company("stranger").await;
    world
        .with_token_to(&stranger, &ann())
        .await
        .expect_error(403, "NOT_INVITED");
    let user = entered.text("/data/user/id");
    let user = other.path(&format!("/users/{user}"));
    world.delete(&other.key, &user).await.expect(204);
    world.with_token_to(&late, &heir).await.expect(200);
}

/// Whoever has shown by a mail that an address is theirs signs in as that user; one who has not does so only where nobody else is named by it.
#[tokio::test]
async fn an_address_leads_to_whose_it_is() {
    let provider = Provider::start().await;
    let (world, acme) = World::of_provider(&provider, AT_ONCE).await;
    let other = world.company("other").await;
    let proof = |number: u32, name: &str| {
        let email = format!("{name}@example.org");
        provider.token(json!({"sub": number.to_string(), "email": email}))
    };
    let invite = async |company: &Company, name: &str| {
        let email = json!({"email": format!("{name}@example.org")});
        token(&world.invite(company, email).await.expect(201))
    };
    // Mailed here, invited there.
    let mailed = invite(&acme, "bob").await;
    invite(&other, "bob").await;
    world.mail(&mailed).await;
    let bob = world.accept(&mailed).await.expect(200);
    let entered = world.with_token(&proof(1, "bob")).await.expect(200);
    assert_eq!(entered.at("/data/user/id"), bob.at("/data/user/id"));
    assert_eq!(entered.at("/data/is_new_user"), false);

    // Came in by a link that others had, and is named by nobody else.
    let shown = invite(&acme, "eve").await;
    let eve = world.accept(&shown).await.expect(200);
    let entered = world.with_token(&proof(2, "eve")).await.expect(200);
    assert_eq!(entered.at("/data/user/id"), eve.at("/data/user/id"));
    assert_eq!(entered.at("/data/user/email_verified"), true);

    // The same where another company says so, too: whichever of them has made it up.
    let made_up = invite(&other, "joe").await;
    let made_up = world.accept(&made_up).await.expect(200);
    invite(&acme, "joe").await;
    let refused = world.with_token(&proof(3, "joe")).await;
    refused.expect_error(409, "SEVERAL_COMPANIES");
    let joe = world.with_token_to(&acme, &proof(3, "joe")).await;
    assert_eq!(joe.expect(200).at("/data/company/id"), &json!(acme.id));
    let refused = world.with_token_to(&other, &proof(3, "joe")).await;
    refused.expect_error(409, "EMAIL_TAKEN");
    let browser = Browser::of(&made_up);
    let me = browser.get(&world, "/users/me").await.expect(200);
    assert_eq!(me.at("/data/user/email_verified"), false);
}

/// Twenty attempts an hour for one address, whatever comes of them.
#[tokio::test]
async fn attempts_are_counted_by_address() {
    let provider = Provider::start().await;
    let (world, acme) = World::of_provider(&provider, AT_ONCE).await;
    for attempt in 0..20 {
        let path = if attempt % 2 == 0 {
            ROUTE.to_owned()
        } else {
            acme.path(ROUTE)
        };
        let body = json!({"id_token": provider.token(json!({"nonce": attempt.to_string()})), "nonce": attempt.to_string()});
        world.post("", &path, body).await.expect(200);
    }
    let body = json!({"id_token": provider.token(json!({})), "nonce": "n-1"});
    let refused = world
        .post("", ROUTE, body)
        .await
        .expect_error(429, "RATE_LIMIT_EXCEEDED");
    assert_eq!(refused.at("/error/details/scope"), "ip");
}
