//! Sessions: users come in by invitation, act with a cookie that no other site can use, and leave.

use crate::world::{Answer, Company, World, now, request};
use axum::body::Body;
use http::Method;
use serde_json::{Value, json};
use souk_api::Access;
use souk_domain::ids::{CompanyId, UserId};
use souk_domain::sessions::{IDLE_MAX, LIFE_MAX, Token};
use souk_domain::time::Timestamp;
use souk_store::invitations;
use souk_store::sessions::{self, NewSession};
use std::time::Duration;
use tower::ServiceExt;

/// A browser in which somebody is signed in.
pub struct Browser {
    pub cookie: String,
    pub csrf: String,
    pub session: String,
    pub user: String,
}

impl Browser {
    pub fn of(entered: &Answer) -> Browser {
        let cookie = entered.header("set-cookie");
        Browser {
            cookie: cookie.split(';').next().unwrap().to_owned(),
            csrf: entered.text("/data/session/csrf_token"),
            session: entered.text("/data/session/id"),
            user: entered.text("/data/user/id"),
        }
    }

    pub async fn ask(&self, world: &World, method: Method, path: &str, body: Value) -> Answer {
        let request = request(method, "", path)
            .header("cookie", &self.cookie)
            .header("x-csrf-token", &self.csrf)
            .header("content-type", "application/json");
        let body = match body {
            Value::Null => Body::empty(),
            body => Body::from(body.to_string()),
        };
        world.send(request.body(body).unwrap()).await
    }

    pub async fn get(&self, world: &World, path: &str) -> Answer {
        let request = request(Method::GET, "", path).header("cookie", &self.cookie);
        world.send(request.body(Body::empty()).unwrap()).await
    }
}

/// The token of the invitation that an answer shows.
pub fn token(invited: &Answer) -> String {
    let url = invited.text("/data/invitation/url");
    let (page, token) = url.split_once('#').unwrap();
    assert_eq!(page, "http://souk.example/invitation");
    token.to_owned()
}

impl World {
    pub async fn accept(&self, token: &str) -> Answer {
        let path = "/users/invitations/accept";
        self.post("", path, json!({"token": token})).await
    }

    /// As if the link with this token had been mailed, and shown to nobody.
    pub async fn mail(&self, token: &str) {
        let digest = Token::parse(token).unwrap().digest();
        let mailed = self
            .db
            .write(async |write| invitations::mailed(write, &digest).await);
        mailed.await.unwrap();
    }

    /// As if the invitation were a week old.
    pub async fn expire(&self, invited: &Answer) {
        let expired = self
            .db
            .write(async |write| -> Result<(), souk_store::StoreError> {
                let expire =
                    sqlx::query("UPDATE invitations SET expires_at = $2 WHERE user_id = $1");
                let expire = expire.bind(invited.text("/data/id")).bind(now().micros());
                expire.execute(&mut **write).await.unwrap();
                Ok(())
            });
        expired.await.unwrap();
    }

    /// Somebody with this role, who came in by invitation.
    pub async fn browser(&self, company: &Company, role: u8) -> Browser {
        let email = format!("{}@example.org", UserId::generate());
        let invited = json!({"email": email, "role_id": role});
        let invited = self.invite(company, invited).await.expect(201);
        Browser::of(&self.accept(&token(&invited)).await.expect(200))
    }

    /// A session that began at an instant and was used at another, straight in the store.
    async fn session_of(
        &self,
        browser: &Browser,
        company: &Company,
        at: Timestamp,
        seen: Timestamp,
    ) -> Browser {
        let token = Token::generate();
        let (company, user) = (
            CompanyId::parse(&company.id).unwrap(),
            UserId::parse(&browser.user).unwrap(),
        );
        let new = NewSession {
            company_id: &company,
            user_id: &user,
            auth_provider: "invitation",
            address: "192.0.2.1",
            user_agent: Some("curl"),
        };
        let begun = self
            .db
            .write(async |write| -> Result<_, souk_store::StoreError> {
                let session = sessions::insert(write, &new, &token.digest(), at).await?;
                sessions::seen(write, &session.id, seen).await?;
                Ok(session)
            });
        Browser {
            session: begun.await.unwrap().id.to_string(),
            cookie: format!("__Host-session={}", token.expose()),
            csrf: token.csrf(),
            user: browser.user.clone(),
        }
    }
}

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

/// A cookie alone changes nothing, whatever is asked; and on the data route it is nothing at all.
#[tokio::test]
async fn another_site_cannot_use_the_cookie() {
    let world = World::new().await;
    let acme = world.company("acme").await;
    let (ann, bob) = (world.browser(&acme, 4).await, world.browser(&acme, 4).await);
    let routes = souk_api::all();
    let mut guarded = 0;
    for operation in routes.operations() {
        let path = operation
            .path
            .replace("{company_id}", &acme.id)
            .replace(['{', '}'], "");
        let send = async |csrf: Option<&str>| {
            let request = request(operation.verb.name().parse().unwrap(), "", &path)
                .header("cookie", &ann.cookie);
            let request = match csrf {
                Some(csrf) => request.header("x-csrf-token", csrf),
                None => request,
            };
            world.send(request.body(Body::empty()).unwrap()).await
        };
        match operation.access {
            Access::Public => {}
            Access::Data => {
                send(Some(&ann.csrf))
                    .await
                    .expect_error(401, "MISSING_API_KEY");
            }
            Access::Key { .. }
                if operation.verb != souk_api::operation::Verb::Get
                    || operation.billed
                    || operation.runs_connector =>
            {
                guarded += 1;
                for wrong in [None, Some(&*bob.csrf), Some("")] {
                    send(wrong).await.expect_error(403, "CSRF_TOKEN_REQUIRED");
                }
            }
            Access::Key { .. } => {
                let code = send(None).await;
                assert_ne!(
                    code.at("/error/code"),
                    "CSRF_TOKEN_REQUIRED",
                    "{}",
                    operation.id
                );
            }
        }
    }
    assert!(guarded > 50, "{guarded}");
    // A key goes before a cookie, and needs no token.
    let both = request(Method::POST, &acme.key, &acme.path("/users"))
        .header("cookie", &ann.cookie)
        .header("content-type", "application/json")
        .body(Body::from(r#"{"email": "eve@example.org"}"#));
    world.send(both.unwrap()).await.expect(201);
    for wrong in [
        "__Host-session=short".to_owned(),
        format!("{}; {}", ann.cookie, ann.cookie),
        format!("__Host-session={}", Token::generate().expose()),
    ] {
        let request = request(Method::GET, "", "/users/me").header("cookie", wrong);
        world
            .send(request.body(Body::empty()).unwrap())
            .await
            .expect_error(401, "SESSION_EXPIRED");
    }
}

/// A session ends when it is not used, and when it is old however much it is used.
#[tokio::test]
async fn a_session_ends_by_itself() {
    let world = World::new().await;
    let acme = world.company("acme").await;
    let ann = world.browser(&acme, 3).await;
    let minute = Duration::from_secs(60);
    let ago = |ago: Duration| now().before(ago);
    let idle = world
        .session_of(&ann, &acme, ago(IDLE_MAX + minute), ago(IDLE_MAX + minute))
        .await;
    let old = world
        .session_of(&ann, &acme, ago(LIFE_MAX + minute), now())
        .await;
    for over in [&idle, &old] {
        over.get(&world, "/users/me")
            .await
            .expect_error(401, "SESSION_EXPIRED");
    }
    let used = world
        .session_of(&ann, &acme, ago(LIFE_MAX - minute), ago(IDLE_MAX - minute))
        .await;
    let me = used.get(&world, "/users/me").await.expect(200);
    let ends = Timestamp::parse(&me.text("/data/session/expires_at")).unwrap();
    assert!(ends > now() && ends < now().after(minute * 2), "{ends}");
    // Its use was noted, and those that are over are listed no more.
    let path = acme.path(&format!("/users/{}/sessions", ann.user));
    let listed = used.get(&world, &path).await.expect(200);
    assert_eq!(listed.at("/meta/total"), 2);
    let first = listed.at("/data/0");
    assert_eq!(
        (&first["id"], &first["is_current"]),
        (&json!(used.session), &json!(true))
    );
    assert_eq!(
        (&first["address"], &first["user_agent"]),
        (&json!("192.0.2.1"), &json!("curl"))
    );
    let seen = Timestamp::parse(first["last_seen_at"].as_str().unwrap()).unwrap();
    assert!(seen > ago(minute), "{seen}");
    let swept = world
        .db
        .write(async |write| sessions::sweep(write, now()).await);
    assert!(swept.await.unwrap());
    let mut read = world.db.read().await.unwrap();
    let left = sqlx::query("SELECT id FROM sessions")
        .fetch_all(&mut *read)
        .await
        .unwrap();
    assert_eq!(left.len(), 2);
}

/// What becomes of a user holds for its sessions from the next request on.
#[tokio::test]
async fn sessions_follow_their_user() {
    let world = World::new().await;
    let acme = world.company("acme").await;
    let ann = world.browser(&acme, 4).await;
    let other = world.session_of(&ann, &acme, now(), now()).await;
    let (user, log) = (
        acme.path(&format!("/users/{}", ann.user)),
        acme.path("/audit-log"),
    );
    ann.get(&world, &log).await.expect(200);
    world
        .patch(&acme.key, &user, json!({"role_id": 3}))
        .await
        .expect(200);
    ann.get(&world, &log)
        .await
        .expect_error(403, "INSUFFICIENT_ROLE");

    // One's own sessions, and nobody else's without role 4.
    let sessions = format!("{user}/sessions");
    let listed = ann.get(&world, &sessions).await.expect(200);
    assert_eq!(listed.at("/meta/total"), 2);
    let eve = world.browser(&acme, 3).await;
    eve.get(&world, &sessions)
        .await
        .expect_error(403, "INSUFFICIENT_ROLE");
    let one = format!("{sessions}/{}", other.session);
    eve.ask(&world, Method::DELETE, &one, Value::Null)
        .await
        .expect_error(403, "INSUFFICIENT_ROLE");
    other.get(&world, "/users/me").await.expect(200);
    ann.ask(&world, Method::DELETE, &one, Value::Null)
        .await
        .expect(204);
    ann.ask(&world, Method::DELETE, &one, Value::Null)
        .await
        .expect_error(404, "SESSION_NOT_FOUND");
    other
        .get(&world, "/users/me")
        .await
        .expect_error(401, "SESSION_EXPIRED");
    let unknown = acme.path("/users/usr_unknown/sessions");
    world
        .get(&acme.key, &unknown)
        .await
        .expect_error(404, "USER_NOT_FOUND");

    // Signed out here, or everywhere.
    let here = world.session_of(&ann, &acme, now(), now()).await;
    let only = json!({"all_sessions": false});
    world
        .post(&acme.key, "/users/logout", only.clone())
        .await
        .expect_error(400, "VALIDATION_ERROR");
    here.ask(&world, Method::POST, "/users/logout", only)
        .await
        .expect(204);
    here.get(&world, "/users/me").await.expect(401);
    ann.get(&world, "/users/me").await.expect(200);
    let reader = world.browser(&acme, 1).await;
    let second = world.session_of(&reader, &acme, now(), now()).await;
    reader
        .ask(&world, Method::POST, "/users/logout", json!({}))
        .await
        .expect(204);
    second
        .get(&world, "/users/me")
        .await
        .expect_error(401, "SESSION_EXPIRED");

    for (change, undo) in [("disabled", "active")] {
        world
            .patch(&acme.key, &user, json!({"status": change}))
            .await
            .expect(200);
        ann.get(&world, "/users/me")
            .await
            .expect_error(401, "SESSION_EXPIRED");
        world
            .patch(&acme.key, &user, json!({"status": undo}))
            .await
            .expect(200);
        ann.get(&world, "/users/me")
            .await
            .expect_error(401, "SESSION_EXPIRED");
    }
    let again = world.session_of(&ann, &acme, now(), now()).await;
    again.get(&world, "/users/me").await.expect(200);
    world.delete(&acme.key, &user).await.expect(204);
    again
        .get(&world, "/users/me")
        .await
        .expect_error(401, "SESSION_EXPIRED");
    let suspended = world.browser(&acme, 2).await;
    world.suspend(&acme).await;
    suspended
        .get(&world, "/users/me")
        .await
        .expect_error(403, "COMPANY_SUSPENDED");
}

/// An analyst reads, and has favorites and a name of its own; those of others are not for it.
#[tokio::test]
async fn an_analyst_who_is_signed_in_writes_its_own() {
    let world = World::new().await;
    let acme = world.company("acme").await;
    let (endpoint, reader) = (world.endpoint(&acme).await, world.browser(&acme, 1).await);
    let own = acme.path(&format!("/users/{}", reader.user));
    let others = acme.path(&format!("/users/{}", acme.user_id));
    let mark = json!({"endpoint_id": endpoint});
    let favorites = |user: &str| format!("{user}/favorites");
    let marked = reader
        .ask(&world, Method::POST, &favorites(&own), mark.clone())
        .await
        .expect(201);
    let one = marked.header("location").to_owned();
    reader
        .ask(&world, Method::PATCH, &one, json!({"note": "n"}))
        .await
        .expect(200);
    reader
        .ask(&world, Method::DELETE, &one, Value::Null)
        .await
        .expect(204);
    let marked = world
        .post(&acme.key, &favorites(&others), mark.clone())
        .await
        .expect(201);
    let one = marked.header("location").to_owned();
    for (method, path, body) in [
        (Method::POST, favorites(&others), mark),
        (Method::PATCH, one.clone(), json!({"note": "n"})),
        (Method::DELETE, one, Value::Null),
        (Method::PATCH, others, json!({"name": "x"})),
        (Method::POST, acme.path("/api-keys"), json!({"name": "k"})),
    ] {
        let refused = reader.ask(&world, method, &path, body).await;
        refused.expect_error(403, "INSUFFICIENT_ROLE");
    }
    reader
        .ask(&world, Method::PATCH, &own, json!({"name": "Rea"}))
        .await
        .expect(200);
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
