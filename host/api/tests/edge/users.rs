//! Users: who may manage whom, and that a company always has somebody who administers it.

use crate::world::{Answer, Company, World};
use serde_json::{Value, json};

impl World {
    pub async fn invite(&self, company: &Company, body: Value) -> Answer {
        self.post(&company.key, &company.path("/users"), body).await
    }

    /// A user who came in, straight in the store, with a key of its role.
    pub async fn member(&self, company: &Company, role: u8) -> Member {
        let email = format!("{}@example.org", souk_domain::ids::UserId::generate());
        let invited = json!({"email": email, "role_id": role});
        let invited = self.invite(company, invited).await.expect(201);
        let id = invited.text("/data/id");
        let key = json!({"name": email, "role_id": role});
        let key = self
            .post(&company.key, &company.path("/api-keys"), key)
            .await;
        let key = key.expect(201);
        let key_id = key.text("/data/id");
        let written = self
            .db
            .write(async |write| -> Result<_, souk_store::StoreError> {
                for (sql, of) in [
                    (
                        "UPDATE users SET status = 'active' WHERE id = $1 AND id <> $2",
                        [&id, &key_id],
                    ),
                    (
                        "UPDATE api_keys SET user_id = $1 WHERE id = $2",
                        [&id, &key_id],
                    ),
                ] {
                    let query = sqlx::query(sql).bind(of[0]).bind(of[1]);
                    query.execute(&mut **write).await.unwrap();
                }
                Ok(())
            });
        written.await.unwrap();
        Member {
            id,
            key: key.text("/data/key"),
        }
    }
}

pub struct Member {
    pub id: String,
    pub key: String,
}

impl Member {
    pub fn path(&self, company: &Company) -> String {
        company.path(&format!("/users/{}", self.id))
    }
}

/// An invited user has what it was given, is found by it, and is changed and removed.
#[tokio::test]
async fn a_user_lives() {
    let world = World::new().await;
    let acme = world.company("acme").await;
    let body =
        json!({"email": "Ann@Example.org", "name": "Ann", "role_id": 2, "job_function_id": 5});
    let made = world.invite(&acme, body).await.expect(201);
    let (id, path) = (made.text("/data/id"), made.header("location").to_owned());
    assert_eq!(path, acme.path(&format!("/users/{id}")));
    let user = world.get(&acme.key, &path).await.expect(200);
    for (member, value) in [
        ("company_id", json!(acme.id)),
        ("email", json!("ann@example.org")),
        ("email_verified", json!(false)),
        ("name", json!("Ann")),
        ("avatar_url", Value::Null),
        ("role_id", json!(2)),
        ("job_function_id", json!(5)),
        ("auth_provider", Value::Null),
        ("status", json!("invited")),
        ("last_login_at", Value::Null),
    ] {
        assert_eq!(user.at("/data")[member], value, "{member}");
    }
    let plain = world
        .invite(&acme, json!({"email": "bob@example.org"}))
        .await;
    let plain = plain.expect(201);
    assert_eq!(
        (plain.at("/data/name"), plain.at("/data/role_id")),
        (&json!("bob"), &json!(1))
    );

    let listed = async |query: &str| -> Vec<String> {
        let path = acme.path(&format!("/users?{query}"));
        let listed = world.get(&acme.key, &path).await.expect(200);
        let users = listed.at("/data").as_array().unwrap().iter();
        let names: Vec<_> = users
            .map(|user| user["name"].as_str().unwrap().to_owned())
            .collect();
        assert_eq!(listed.at("/meta/total"), names.len(), "{query}");
        names
    };
    assert_eq!(listed("").await, ["Administrator", "Ann", "bob"]);
    assert_eq!(listed("status=invited&q=ANN").await, ["Ann"]);
    assert_eq!(listed("q=b@example").await, ["bob"]);
    assert_eq!(listed("q=%25").await, Vec::<String>::new());
    assert_eq!(listed("role_id=4&status=active").await, ["Administrator"]);

    let change = json!({"name": "Ann Lee", "avatar_url": "https://example.org/ann.png", "job_function_id": null, "role_id": 3});
    let changed = world.patch(&acme.key, &path, change).await.expect(200);
    assert_eq!(
        world.get(&acme.key, &path).await.expect(200).at("/data"),
        changed.at("/data")
    );
    assert_eq!(
        [
            changed.at("/data/name"),
            changed.at("/data/role_id"),
            changed.at("/data/job_function_id")
        ],
        [&json!("Ann Lee"), &json!(3), &Value::Null]
    );
    world
        .patch(&acme.key, &path, json!({"status": "active"}))
        .await
        .expect_error(409, "INVALID_STATE");

    world.delete(&acme.key, &path).await.expect(204);
    for gone in [
        world.get(&acme.key, &path).await,
        world.delete(&acme.key, &path).await,
        world.patch(&acme.key, &path, json!({"name": "A"})).await,
    ] {
        gone.expect_error(404, "USER_NOT_FOUND");
    }
    assert_eq!(listed("").await, ["Administrator", "bob"]);
    // The address is free again.
    world
        .invite(&acme, json!({"email": "ann@example.org"}))
        .await
        .expect(201);
}

/// All that is wrong is named; an address has one user in a company; nobody gives what they do not have.
#[tokio::test]
async fn what_is_no_user_is_refused() {
    let world = World::new().await;
    let (acme, other) = (world.company("acme").await, world.company("other").await);
    let wrong = json!({"email": "ann", "name": "", "role_id": "4", "job_function_id": 1.5});
    let wrong = world
        .invite(&acme, wrong)
        .await
        .expect_error(400, "VALIDATION_ERROR");
    assert_eq!(
        wrong.fields(),
        ["job_function_id", "name", "role_id", "email"]
    );
    let wrong = json!({"email": "ann", "role_id": 6, "job_function_id": 98});
    let wrong = world
        .invite(&acme, wrong)
        .await
        .expect_error(400, "VALIDATION_ERROR");
    assert_eq!(wrong.fields(), ["email", "role_id", "job_function_id"]);
    world
        .invite(&acme, json!({}))
        .await
        .expect_error(400, "VALIDATION_ERROR");
    let foreign = json!({"email": "ann@example.org", "company_id": other.id});
    world
        .invite(&acme, foreign)
        .await
        .expect_error(400, "PATH_BODY_MISMATCH");
    let staff = json!({"email": "ann@example.org", "role_id": 5});
    world
        .invite(&acme, staff.clone())
        .await
        .expect_error(403, "ROLE_ESCALATION");
    let by_staff = world
        .post(&world.platform, &acme.path("/users"), staff)
        .await;
    by_staff.expect_error(403, "ROLE_ESCALATION");

    let ann = world
        .invite(&other, json!({"email": "ann@example.org"}))
        .await
        .expect(201);
    // Another company's users are nobody, and nobody is told of them.
    let own = world
        .invite(&acme, json!({"email": "ANN@example.org"}))
        .await
        .expect(201);
    assert_eq!(own.at("/data/email"), "ann@example.org");
    let again = json!({"email": "Ann@example.org"});
    world
        .invite(&acme, again)
        .await
        .expect_error(409, "EMAIL_TAKEN");
    let path = acme.path(&format!("/users/{}", ann.text("/data/id")));
    world
        .get(&acme.key, &path)
        .await
        .expect_error(404, "USER_NOT_FOUND");
    let change = world.patch(&acme.key, &path, json!({"name": "x"})).await;
    change.expect_error(404, "USER_NOT_FOUND");

    let own = acme.path(&format!("/users/{}", acme.user_id));
    let wrong = json!({"avatar_url": "javascript:alert(1)", "job_function_id": 98, "role_id": 0, "status": "invited"});
    let wrong = world
        .patch(&acme.key, &own, wrong)
        .await
        .expect_error(400, "VALIDATION_ERROR");
    assert_eq!(
        wrong.fields(),
        ["avatar_url", "job_function_id", "role_id", "status"]
    );
    let mismatch = world
        .patch(&acme.key, &own, json!({"user_id": "usr_1"}))
        .await;
    mismatch.expect_error(400, "PATH_BODY_MISMATCH");
}

/// A company keeps an administrator, whoever asks and however.
#[tokio::test]
async fn the_last_administrator_stays() {
    let world = World::new().await;
    let acme = world.company("acme").await;
    let own = acme.path(&format!("/users/{}", acme.user_id));
    // Neither who has not come in nor who is disabled could take over.
    world
        .invite(&acme, json!({"email": "ann@example.org", "role_id": 4}))
        .await
        .expect(201);
    let disabled = world.member(&acme, 4).await;
    let disable = json!({"status": "disabled"});
    world
        .patch(&acme.key, &disabled.path(&acme), disable.clone())
        .await
        .expect(200);
    for key in [&acme.key, &world.platform] {
        world
            .delete(key, &own)
            .await
            .expect_error(409, "LAST_ADMINISTRATOR");
        for change in [json!({"role_id": 3}), disable.clone()] {
            world
                .patch(key, &own, change)
                .await
                .expect_error(409, "LAST_ADMINISTRATOR");
        }
    }
    world
        .patch(&acme.key, &own, json!({"role_id": 4, "status": "active"}))
        .await
        .expect(200);

    let second = world.member(&acme, 4).await;
    // Of two who go at once one stays.
    let second_path = second.path(&acme);
    let (one, two) = tokio::join!(
        world.delete(&second.key, &own),
        world.delete(&acme.key, &second_path)
    );
    let mut statuses = [one.status.as_u16(), two.status.as_u16()];
    statuses.sort();
    assert!(matches!(statuses, [204, 409 | 410]), "{statuses:?}");
    // The platform keeps its last member of staff likewise.
    let me = world.get(&world.platform, "/users/me").await.expect(200);
    let (company, user) = (me.text("/data/company/id"), me.text("/data/user/id"));
    let staff = format!("/companies/{company}/users/{user}");
    world
        .patch(&world.platform, &staff, json!({"role_id": 4}))
        .await
        .expect_error(409, "LAST_ADMINISTRATOR");
}

/// Everybody changes what they tell of themselves; the rest is for administrators, up to their own role.
#[tokio::test]
async fn users_are_managed_by_administrators() {
    let world = World::new().await;
    let acme = world.company("acme").await;
    let (engineer, other) = (world.member(&acme, 3).await, world.member(&acme, 2).await);
    let (own, others) = (engineer.path(&acme), other.path(&acme));
    let name = json!({"name": "Eve"});
    world
        .patch(&engineer.key, &own, name.clone())
        .await
        .expect(200);
    world
        .patch(&engineer.key, &others, name.clone())
        .await
        .expect_error(403, "INSUFFICIENT_ROLE");
    for change in [json!({"role_id": 2}), json!({"status": "active"})] {
        let refused = world.patch(&engineer.key, &own, change).await;
        let refused = refused.expect_error(403, "INSUFFICIENT_ROLE");
        assert_eq!(refused.at("/error/details/required_role"), 4);
    }
    world
        .delete(&engineer.key, &own)
        .await
        .expect_error(403, "INSUFFICIENT_ROLE");
    world.patch(&acme.key, &others, name).await.expect(200);
    world
        .patch(&acme.key, &others, json!({"role_id": 5}))
        .await
        .expect_error(403, "ROLE_ESCALATION");
    // An administrator of the platform does not touch its staff.
    let me = world.get(&world.platform, "/users/me").await.expect(200);
    let (company, user) = (me.text("/data/company/id"), me.text("/data/user/id"));
    let keys = format!("/companies/{company}/api-keys");
    let admin = json!({"name": "admin", "role_id": 4});
    let admin = world.post(&world.platform, &keys, admin).await.expect(201);
    let admin = admin.text("/data/key");
    let staff = format!("/companies/{company}/users/{user}");
    world
        .delete(&admin, &staff)
        .await
        .expect_error(403, "INSUFFICIENT_ROLE");
    // Whoever calls is told who they are.
    let me = world.get(&engineer.key, "/users/me").await.expect(200);
    assert_eq!(
        [
            me.at("/data/user/id"),
            me.at("/data/company/id"),
            me.at("/data/role_id"),
            me.at("/data/permissions")
        ],
        [
            &json!(engineer.id),
            &json!(acme.id),
            &json!(3),
            &json!(["read", "write"])
        ]
    );
}

/// A user's keys go with it, stop while it is disabled, and those above a lower role are revoked; from the next request on.
#[tokio::test]
async fn keys_follow_their_user() {
    let world = World::new().await;
    let acme = world.company("acme").await;
    let (member, credits) = (world.member(&acme, 3).await, acme.path("/credits"));
    let path = member.path(&acme);
    world.get(&member.key, &credits).await.expect(200);
    for (status, answered) in [("disabled", 410), ("active", 200)] {
        world
            .patch(&acme.key, &path, json!({"status": status}))
            .await
            .expect(200);
        world.get(&member.key, &credits).await.expect(answered);
    }
    let reader = json!({"name": "reader", "role_id": 1});
    let reader = world
        .post(&member.key, &acme.path("/api-keys"), reader)
        .await
        .expect(201);
    world
        .patch(&acme.key, &path, json!({"role_id": 2}))
        .await
        .expect(200);
    world
        .get(&member.key, &credits)
        .await
        .expect_error(410, "API_KEY_DEACTIVATED");
    let reader_key = reader.text("/data/key");
    world.get(&reader_key, &credits).await.expect(200);

    world.delete(&acme.key, &path).await.expect(204);
    world
        .get(&reader_key, &credits)
        .await
        .expect_error(410, "API_KEY_DEACTIVATED");
    let reader = acme.path(&format!("/api-keys/{}", reader.text("/data/id")));
    let reader = world.get(&acme.key, &reader).await.expect(200);
    assert_eq!(reader.at("/data/revocation_reason"), "its user was removed");
}

/// A company has two hundred invitations an hour, first ones and further ones, whichever of its keys asks; another one has its own.
#[tokio::test]
async fn invitations_are_counted_for_their_company() {
    let world = World::new().await;
    let (acme, other) = (world.company("acme").await, world.company("other").await);
    let ann = json!({"email": "ann@example.org"});
    let ann = world.invite(&acme, ann).await.expect(201);
    let again = acme.path(&format!("/users/{}/invitation", ann.text("/data/id")));
    let key = json!({"name": "second", "role_id": 4});
    let second = world.post(&acme.key, &acme.path("/api-keys"), key).await;
    let second = second.expect(201).text("/data/key");
    for (key, times) in [(&acme.key, 100), (&second, 99)] {
        for _ in 0..times {
            world.post(key, &again, json!({})).await.expect(200);
        }
    }
    let bob = json!({"email": "bob@example.org"});
    for refused in [
        world.post(&second, &again, json!({})).await,
        world.invite(&acme, bob.clone()).await,
    ] {
        let refused = refused.expect_error(429, "RATE_LIMIT_EXCEEDED");
        assert_eq!(refused.text("/error/details/scope"), "company");
        let wait: u64 = refused.header("retry-after").parse().unwrap();
        assert!((3_000..=3_600).contains(&wait), "{wait}");
    }
    // Nothing was written.
    let bobs = acme.path("/users?q=bob");
    let bobs = world.get(&acme.key, &bobs).await.expect(200);
    assert_eq!(bobs.at("/meta/total"), 0);
    world.invite(&other, bob).await.expect(201);
}
