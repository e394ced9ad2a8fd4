//! Signing in by an identity provider: who shows a token that was made for this service, this attempt and now, and nobody else.

use crate::browser::{Browser, token};
use crate::provider::{CLIENT, Key, Provider, nonce, signed, unsigned};
use crate::world::{Answer, Company, World, request};
use axum::body::Body;
use axum::extract::ConnectInfo;
use hmac::{KeyInit, Mac};
use http::Method;
use serde_json::{Value, json};
use souk_domain::time::Timestamp;
use souk_store::nonces;
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

/// A token that is not for this client and this attempt, not by this issuer, not valid now, or not signed by its key, proves nothing.
#[tokio::test]
async fn a_lie_is_refused() {
    let provider = Provider::start().await;
    let (world, _) = World::of_provider(&provider, AT_ONCE).await;
    let now = crate::world::now().seconds();
    for lie in [
        json!({"aud": "another"}),
        json!({"aud": [CLIENT, "another"]}),
        json!({"aud": []}),
        json!({"aud": null}),
        json!({"azp": "another"}),
        json!({"iss": "https://accounts.google.com"}),
        json!({"iss": [provider.issuer()]}),
        json!({"iss": null}),
        json!({"nonce": null}),
        json!({"nonce": ["n-1"]}),
        json!({"exp": now - 120}),
        json!({"exp": null}),
        json!({"exp": "never"}),
        json!({"nbf": now + 120}),
        json!({"sub": null}),
        json!({"sub": ""}),
    ] {
        let refused = world.with_token(&provider.token(lie.clone())).await;
        let refused = refused.expect_error(401, "SIGN_IN_REFUSED");
        assert_eq!(refused.header("set-cookie"), "", "{lie}");
    }
    let others = json!({"id_token": provider.token(json!({"nonce": "n-2"})), "nonce": "n-1"});
    world
        .sign_in(ROUTE, others)
        .await
        .expect_error(401, "SIGN_IN_REFUSED");
    let claims = provider.claims(json!({}));
    let good = provider.token(json!({}));
    let (message, signature) = good.rsplit_once('.').unwrap();
    let other = provider.claims(json!({"email": "admin@example.org"}));
    let (head, _) = message.split_once('.').unwrap();
    let changed = unsigned(json!({}), &other);
    let changed = changed.split_once('.').unwrap().1;
    let confused = |algorithm: &str| {
        // Signed with what is public of the provider's key, as if that were a shared secret.
        let message = unsigned(json!({"alg": algorithm, "kid": "first"}), &claims);
        let mut mac = hmac::Hmac::<sha2::Sha256>::new_from_slice(b"hello").unwrap();
        mac.update(message.as_bytes());
        let signature = base64::Engine::encode(
            &base64::engine::general_purpose::URL_SAFE_NO_PAD,
            mac.finalize().into_bytes(),
        );
        format!("{message}.{signature}")
    };
    for (token, what) in [
        (format!("{head}.{changed}.{signature}"), "other claims"),
        (format!("{message}."), "no signature"),
        (
            format!("{}.", unsigned(json!({"alg": "none"}), &claims)),
            "none",
        ),
        (confused("HS256"), "a shared secret"),
        (
            signed(
                json!({"alg": "ES256", "kid": "first"}),
                &claims,
                &Key::es256(),
            ),
            "another kind of key",
        ),
        (
            signed(
                json!({"alg": "RS256", "kid": "other"}),
                &claims,
                &Key::rsa(),
            ),
            "an unknown key",
        ),
        (
            signed(json!({"alg": "ES256"}), &claims, &Key::es256()),
            "no key of the kind",
        ),
        ("x".repeat(100), "no token"),
        ("a.b.c".to_owned(), "no token"),
    ] {
        let refused = world.with_token(&token).await;
        assert_eq!(refused.status, 401, "{what}: {}", refused.body);
        refused.expect_error(401, "SIGN_IN_REFUSED");
    }
    // After all of that, the truth.
    world.with_token(&good).await.expect(200);
    let several = provider.token(json!({"aud": [CLIENT, "another"], "azp": CLIENT}));
    world.with_token(&several).await.expect(200);
    let unnamed = signed(json!({"alg": "RS256"}), &claims, &Key::rsa());
    world.with_token(&unnamed).await.expect(200);
}

/// A code is changed for a token once, with the verifier and the address that it was asked for with.
#[tokio::test]
async fn a_code_is_redeemed_with_its_verifier() {
    let provider = Provider::start().await;
    let (world, _) = World::of_provider(&provider, AT_ONCE).await;
    let body = |code: &str, verifier: &str, back: &str| json!({"code": code, "code_verifier": verifier, "redirect_uri": back, "nonce": "n-1"});
    let back = "https://app.example/back";
    for code in ["one", "two", "three", "four"] {
        provider.code(code, VERIFIER, json!({"nonce": "n-1"}));
    }
    let other = VERIFIER.replace('d', "e");
    for wrong in [
        body("one", &other, back),
        body("two", VERIFIER, "https://evil.example/"),
        body("no", VERIFIER, back),
    ] {
        world
            .sign_in(ROUTE, wrong)
            .await
            .expect_error(401, "SIGN_IN_REFUSED");
    }
    let right = body("three", VERIFIER, back);
    world.sign_in(ROUTE, right.clone()).await.expect(200);
    world
        .sign_in(ROUTE, right)
        .await
        .expect_error(401, "SIGN_IN_REFUSED");
    let mut attempt = body("four", VERIFIER, back);
    attempt["nonce"] = json!("n-2");
    world
        .sign_in(ROUTE, attempt)
        .await
        .expect_error(401, "SIGN_IN_REFUSED");

    for (wrong, fields) in [
        (
            json!({"nonce": "n-1"}),
            &["code", "code_verifier", "redirect_uri"][..],
        ),
        (
            json!({"nonce": "n-1", "code": "c", "code_verifier": VERIFIER}),
            &["redirect_uri"],
        ),
        (
            json!({"nonce": "n-1", "id_token": "t", "code": "c"}),
            &["code"],
        ),
        (json!({"id_token": ""}), &["id_token", "nonce"]),
        (
            json!({"nonce": "n-1", "code": "c", "code_verifier": "short", "redirect_uri": back}),
            &["code_verifier"],
        ),
    ] {
        let refused = world
            .sign_in(ROUTE, wrong)
            .await
            .expect_error(400, "VALIDATION_ERROR");
        assert_eq!(refused.fields(), fields);
    }
}

/// A provider that keeps an ID token to who it is tells the address where it is asked with the access token, and is believed there as far as in
/// a token: of the same person, with its own word for the address.
#[tokio::test]
async fn an_address_may_be_told_elsewhere() {
    let provider = Provider::start().await;
    let told = |change: Value| {
        let mut told = json!({"sub": "1001", "email": "Ann@example.org", "email_verified": true});
        let members = change.as_object().unwrap().clone();
        told.as_object_mut().unwrap().extend(members);
        provider.tell(told);
    };
    told(json!({}));
    let (world, _) = World::of_provider(&provider, AT_ONCE).await;
    let come = async |name: &str, claims: Value| {
        let mut claims = claims;
        claims["nonce"] = json!(name);
        provider.code(name, VERIFIER, claims);
        let back = "https://app.example/back";
        let body =
            json!({"code": name, "code_verifier": VERIFIER, "redirect_uri": back, "nonce": name});
        world.sign_in(ROUTE, body).await
    };
    let silent = || json!({"email": null, "email_verified": null});
    for (name, change) in [
        ("unverified", json!({"email_verified": false})),
        ("unsaid", json!({"email_verified": null})),
        ("none", json!({"email": null})),
        ("other", json!({"email": "eve@example.org"})),
    ] {
        told(change);
        let refused = come(name, silent()).await;
        refused.expect_error(403, "NOT_INVITED");
    }
    // It speaks of somebody else: nobody's word for this address.
    told(json!({"sub": "1002"}));
    let refused = come("another", silent()).await;
    refused.expect_error(503, "IDENTITY_PROVIDER_UNAVAILABLE");
    told(json!({}));
    // What the token says is not asked again.
    let unverified = json!({"email_verified": false});
    come("said", unverified)
        .await
        .expect_error(403, "NOT_INVITED");
    // Who comes with a token and no code has nothing to ask with.
    let token = provider.token(silent());
    world
        .with_token(&token)
        .await
        .expect_error(403, "NOT_INVITED");
    let entered = come("right", silent()).await.expect(200);
    assert_eq!(entered.at("/data/user/email_verified"), true);
    // Who is known needs no address, and is not kept out by what cannot be asked.
    told(json!({"sub": "1002"}));
    come("known", silent()).await.expect(200);
}

/// A stranger's token names a key that nobody knows, for which the provider is asked; whoever has one of a known key does not wait for that.
#[tokio::test]
async fn a_made_up_key_keeps_nobody_waiting() {
    let provider = Provider::start().await;
    let (world, _) = World::of_provider(&provider, AT_ONCE).await;
    world
        .with_token(&provider.token(json!({})))
        .await
        .expect(200);
    let token = provider.token(json!({"nonce": "another"}));
    let head = json!({"alg": "RS256", "kid": "made up"});
    let made_up = signed(head, &provider.claims(json!({})), &Key::rsa());
    provider.set_slow(Duration::from_secs(60));
    let mut stranger = std::pin::pin!(world.with_token(&made_up));
    let known = async {
        tokio::time::sleep(Duration::from_millis(300)).await;
        world.with_token(&token).await.expect(200)
    };
    tokio::select! {
        _ = &mut stranger => panic!("it did not wait for the provider"),
        _ = known => {}
    }
}

/// A nonce is good for one session, whoever shows which token with it and on however many hosts at once; an attempt that came to nothing does
/// not spend it. It is remembered for as long as its token holds.
#[tokio::test]
async fn a_nonce_signs_in_once() {
    let provider = Provider::start().await;
    let (world, acme) = World::of_provider(&provider, AT_ONCE).await;
    let stolen = provider.token(json!({}));
    let others = provider.token(json!({"nonce": nonce(&stolen), "iat": 1}));
    assert_ne!(stolen, others);
    let (one, two) = tokio::join!(world.with_token(&stolen), world.with_token(&stolen));
    let mut statuses = [one.status.as_u16(), two.status.as_u16()];
    statuses.sort_unstable();
    assert_eq!(statuses, [200, 401]);
    for token in [&stolen, &others] {
        let refused = world.with_token(token).await;
        let refused = refused.expect_error(401, "SIGN_IN_REFUSED");
        assert!(refused.text("/error/message").contains("nonce"));
        assert_eq!(refused.header("set-cookie"), "");
    }
    let body = json!({"code": "one", "code_verifier": VERIFIER, "redirect_uri": "https://app.example/back", "nonce": nonce(&stolen)});
    provider.code("one", VERIFIER, json!({"nonce": nonce(&stolen)}));
    world
        .sign_in(ROUTE, body)
        .await
        .expect_error(401, "SIGN_IN_REFUSED");

    let early = provider.token(json!({"sub": "1002", "email": "eve@example.org"}));
    world
        .with_token(&early)
        .await
        .expect_error(403, "NOT_INVITED");
    let eve = json!({"email": "eve@example.org"});
    world.invite(&acme, eve).await.expect(201);
    world.with_token(&early).await.expect(200);

    let sweep = async |at: Timestamp| {
        let swept = world.db.write(async |write| nonces::sweep(write, at).await);
        swept.await.unwrap()
    };
    let minutes = |count: u64| Duration::from_secs(60 * count);
    let now = crate::world::now();
    // They hold for five minutes, and clocks differ.
    assert!(!sweep(now.after(minutes(6))).await);
    assert!(sweep(now.after(minutes(8))).await);
}

/// A new key is believed as soon as the provider publishes it, and the former one no more; made-up keys cost the provider nothing.
#[tokio::test]
async fn keys_are_rotated() {
    let provider = Provider::start().await;
    let (world, _) = World::of_provider(&provider, AT_ONCE).await;
    let [before, stale] = [(); 2].map(|()| provider.token(json!({})));
    world.with_token(&before).await.expect(200);
    provider.rotate("second", Key::es256());
    world
        .with_token(&provider.token(json!({})))
        .await
        .expect(200);
    world
        .with_token(&stale)
        .await
        .expect_error(401, "SIGN_IN_REFUSED");

    let (patient, _) = World::of_provider(&provider, Duration::from_secs(3_600)).await;
    patient
        .with_token(&provider.token(json!({})))
        .await
        .expect(200);
    let asked = provider.asked();
    for number in 0..5 {
        let head = json!({"alg": "ES256", "kid": format!("made up {number}")});
        let made_up = signed(head, &provider.claims(json!({})), &Key::es256());
        patient
            .with_token(&made_up)
            .await
            .expect_error(401, "SIGN_IN_REFUSED");
    }
    assert_eq!(provider.asked(), asked);
}

/// A provider that fails, is slow or is another one lets nobody in and says so; what is known of it holds meanwhile.
#[tokio::test]
async fn a_provider_may_fail() {
    const UNAVAILABLE: &str = "IDENTITY_PROVIDER_UNAVAILABLE";
    let provider = Provider::start().await;
    let (world, _) = World::of_provider(&provider, AT_ONCE).await;
    provider.set_down(true);
    let refused = world.with_token(&provider.token(json!({}))).await;
    let refused = refused.expect_error(503, UNAVAILABLE);
    assert_eq!(refused.header("retry-after"), "10");
    provider.set_down(false);
    world
        .with_token(&provider.token(json!({})))
        .await
        .expect(200);
    provider.set_down(true);
    world
        .with_token(&provider.token(json!({})))
        .await
        .expect(200);
    provider.code("one", VERIFIER, json!({}));
    let code = json!({"code": "one", "code_verifier": VERIFIER, "redirect_uri": "https://app.example/back", "nonce": "n-1"});
    world
        .sign_in(ROUTE, code.clone())
        .await
        .expect_error(503, UNAVAILABLE);

    // One that has just failed is left alone.
    let (patient, _) = World::of_provider(&provider, Duration::from_secs(3_600)).await;
    for is_down in [true, false] {
        provider.set_down(is_down);
        patient
            .with_token(&provider.token(json!({})))
            .await
            .expect_error(503, UNAVAILABLE);
    }
    let (hasty, _) = World::of_provider(&provider, AT_ONCE).await;
    provider.set_slow(Duration::from_secs(60));
    let began = std::time::Instant::now();
    hasty
        .with_token(&provider.token(json!({})))
        .await
        .expect_error(503, UNAVAILABLE);
    assert!(
        began.elapsed() < Duration::from_secs(20),
        "{:?}",
        began.elapsed()
    );
    provider.set_slow(Duration::ZERO);
    provider.name_itself("https://evil.example");
    hasty
        .with_token(&provider.token(json!({})))
        .await
        .expect_error(503, UNAVAILABLE);

    let unconfigured = World::new().await;
    let body = json!({"id_token": provider.token(json!({})), "nonce": "n-1"});
    unconfigured
        .sign_in(ROUTE, body)
        .await
        .expect_error(503, "SIGN_IN_NOT_CONFIGURED");
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
