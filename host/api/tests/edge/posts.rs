//! Posts: drafts for their company, what is published for everybody, and readers that count once a day.

use crate::world::{Company, World, now, request};
use axum::body::Body;
use axum::extract::ConnectInfo;
use http::Method;
use serde_json::{Value, json};
use souk_domain::ids::RequestId;
use souk_store::StoreError;
use souk_store::audit::{self, Act};
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, Instant};

async fn titles(world: &World, key: &str, path: &str) -> Vec<String> {
    let listed = world.get(key, path).await.expect(200);
    let items = listed.at("/data").as_array().unwrap();
    assert_eq!(listed.at("/meta/total"), items.len(), "{path}");
    let title = |item: &Value| {
        assert_eq!(item.get("body_markdown"), None, "{item}");
        item["title"].as_str().unwrap().to_owned()
    };
    items.iter().map(title).collect()
}

/// Two changes at the same time are both there, also where several hosts write.
#[tokio::test]
async fn changes_at_the_same_time_are_both_there() {
    let world = World::new().await;
    let acme = world.company("acme").await;
    let (key, path) = (acme.key.as_str(), acme.path("/posts"));
    let body = json!({"title": "t", "body_markdown": "x"});
    let made = world.post(key, &path, body).await.expect(201);
    let one = format!("{path}/{}", made.text("/data/id"));
    for round in 0..8 {
        let (title, summary) = (format!("title {round}"), format!("summary {round}"));
        let changes = [json!({"title": title}), json!({"summary": summary})];
        world.patch_both(key, &one, changes).await;
        let shown = world.get(key, &one).await.expect(200);
        assert_eq!(shown.text("/data/title"), title);
        assert_eq!(shown.text("/data/summary"), summary);
    }
}

/// A post is written, changed, published, read by anybody, taken back, and gone when it is deleted.
#[tokio::test]
async fn a_post_lives() {
    let world = World::new().await;
    let acme = world.company("acme").await;
    let (key, path) = (acme.key.as_str(), acme.path("/posts"));
    let asset = world.asset(&acme).await;
    let body = json!({
        "title": "Goals, & more!", "body_markdown": "# Goals\n\nMany.", "summary": "About goals", "tags": ["goals", "a_b", "goals"],
        "asset_ids": [asset], "cover_image_url": "https://example.com/goals.png"
    });
    let made = world.post(key, &path, body).await.expect(201);
    let id = made.text("/data/id");
    let one = format!("{path}/{id}");
    assert_eq!(made.header("location"), one);
    let mut data = made.at("/data").clone();
    for volatile in ["id", "created_at", "updated_at"] {
        let value = data.as_object_mut().unwrap().remove(volatile);
        assert!(value.is_some_and(|value| value.is_string()), "{volatile}");
    }
    assert_eq!(
        data,
        json!({
            "company_id": acme.id, "company_handle": "acme", "company_name": "acme", "user_id": acme.user_id, "title": "Goals, & more!",
            "slug": "goals-more", "summary": "About goals", "body_markdown": "# Goals\n\nMany.",
            "cover_image_url": "https://example.com/goals.png", "tags": ["goals", "a_b"], "asset_ids": [asset], "status": "draft",
            "view_count": 0, "published_at": null
        })
    );
    let second = json!({"title": "Goals & more", "body_markdown": "x"});
    let second = world.post(key, &path, second).await.expect(201);
    assert!(second.text("/data/slug").starts_with("goals-more-"));

    // A draft is nobody else's business.
    for hidden in [format!("/posts/{id}"), "/posts/goals-more".to_owned()] {
        let answer = world.get("", &hidden).await;
        answer.expect_error(404, "POST_NOT_FOUND");
    }
    assert_eq!(titles(&world, "", "/posts").await, Vec::<String>::new());
    let published = world
        .post(key, &format!("{one}/publish"), json!({}))
        .await
        .expect(200);
    assert_eq!(published.at("/data/status"), "published");
    let again = world
        .post(key, &format!("{one}/publish"), json!({}))
        .await
        .expect(200);
    assert_eq!(again.at("/data"), published.at("/data"));
    let by_slug = world.get("", "/posts/goals-more").await.expect(200);
    assert_eq!(by_slug.at("/data/user_id"), &Value::Null);
    assert_eq!(by_slug.at("/data/body_markdown"), "# Goals\n\nMany.");
    let by_id = world.get("", &format!("/posts/{id}")).await.expect(200);
    assert_eq!(by_id.at("/data"), by_slug.at("/data"));

    let change =
        json!({"title": "Goals 2", "summary": null, "tags": null, "cover_image_url": null});
    let changed = world.patch(key, &one, change).await.expect(200);
    assert_eq!(
        [
            changed.at("/data/title"),
            changed.at("/data/slug"),
            changed.at("/data/summary"),
            changed.at("/data/tags")
        ],
        [
            &json!("Goals 2"),
            &json!("goals-more"),
            &json!(""),
            &json!([])
        ]
    );
    let renamed = world.patch(key, &one, json!({"slug": "other"})).await;
    renamed.expect_error(409, "INVALID_STATE");
    let draft = world
        .post(key, &format!("{one}/unpublish"), json!({}))
        .await
        .expect(200);
    assert_eq!(
        (draft.at("/data/status"), draft.at("/data/published_at")),
        (&json!("draft"), &Value::Null)
    );
    world
        .get("", "/posts/goals-more")
        .await
        .expect_error(404, "POST_NOT_FOUND");
    world
        .patch(key, &one, json!({"slug": "other"}))
        .await
        .expect(200);
    let taken = json!({"slug": second.text("/data/slug")});
    let taken = world.patch(key, &one, taken).await;
    taken.expect_error(409, "SLUG_TAKEN");

    let summary = world.get(key, &format!("{path}/summary")).await.expect(200);
    assert_eq!(
        summary.at("/data"),
        &json!({"total": 2, "draft": 2, "published": 0, "total_views": 0, "last_published_at": null, "publications": 0})
    );
    let company = world.get(key, &acme.path("/summary")).await.expect(200);
    assert_eq!(company.at("/data/posts"), 2);
    world.delete(key, &one).await.expect(204);
    for answer in [world.get(key, &one).await, world.delete(key, &one).await] {
        answer.expect_error(404, "POST_NOT_FOUND");
    }
}

/// Posts are found by state, tag and words, for their company and for everybody; those of a suspended company are read by nobody.
#[tokio::test]
async fn posts_are_found() {
    let world = World::new().await;
    let (acme, other) = (world.company("acme").await, world.company("other").await);
    let write = async |company: &Company, title: &str, tag: &str, publish: bool| {
        let body =
            json!({"title": title, "body_markdown": "x", "summary": "100% true", "tags": [tag]});
        let made = world
            .post(&company.key, &company.path("/posts"), body)
            .await
            .expect(201);
        if publish {
            let path = company.path(&format!("/posts/{}/publish", made.text("/data/id")));
            world.post(&company.key, &path, json!({})).await.expect(200);
        }
    };
    write(&acme, "One", "a_b", true).await;
    write(&acme, "Two", "axb", false).await;
    write(&other, "Three", "a_b", true).await;
    let path = acme.path("/posts");
    for (query, expected) in [
        ("", vec!["Two", "One"]),
        ("?status=draft", vec!["Two"]),
        ("?status=published", vec!["One"]),
        ("?tag=a_b", vec!["One"]),
        ("?tag=a", vec![]),
        ("?q=100%25", vec!["Two", "One"]),
        ("?q=tw", vec!["Two"]),
        ("?q=", vec!["Two", "One"]),
        ("?q=1_0", vec![]),
    ] {
        let found = titles(&world, &acme.key, &format!("{path}{query}")).await;
        assert_eq!(found, expected, "{query}");
    }
    for (query, expected) in [
        ("", vec!["Three", "One"]),
        ("?company_handle=acme", vec!["One"]),
        ("?tag=a_b", vec!["Three", "One"]),
        ("?q=THREE", vec!["Three"]),
    ] {
        let found = titles(&world, "", &format!("/posts{query}")).await;
        assert_eq!(found, expected, "{query}");
    }
    let long = format!("/posts?q={}", "a".repeat(101));
    let refused = world.get("", &long).await;
    refused.expect_error(400, "INVALID_PARAMETER");
    world.suspend(&other).await;
    assert_eq!(titles(&world, "", "/posts").await, ["One"]);
    let answer = world.get("", "/posts/three").await;
    answer.expect_error(404, "POST_NOT_FOUND");
}

/// A reader counts once a day, whoever asks how often; a draft is read by nobody.
#[tokio::test]
async fn readers_count_once_a_day() {
    let world = World::new().await;
    let acme = world.company("acme").await;
    let path = acme.path("/posts");
    let body = json!({"title": "Read me", "body_markdown": "x"});
    let made = world.post(&acme.key, &path, body).await.expect(201);
    let id = made.text("/data/id");
    let read = async |address: &str, path: &str| {
        let peer: SocketAddr = address.parse().unwrap();
        let sent = request(Method::POST, "", path).extension(ConnectInfo(peer));
        world.send(sent.body(Body::empty()).unwrap()).await
    };
    let views = format!("/posts/{id}/views");
    let answer = read("192.0.2.1:1", &views).await;
    answer.expect_error(404, "POST_NOT_FOUND");
    world
        .post(&acme.key, &format!("{path}/{id}/publish"), json!({}))
        .await
        .expect(200);
    let own = format!("{path}/{id}/views");
    for (address, path, count) in [
        ("192.0.2.1:1", &views, 1),
        ("192.0.2.1:2", &views, 1),
        ("192.0.2.2:1", &own, 2),
        ("192.0.2.1:3", &own, 2),
        ("[2001:db8::1]:1", &views, 3),
        ("[2001:db8::2]:1", &views, 3),
        ("[2001:db8:0:1::1]:1", &views, 4),
    ] {
        let answer = read(address, path).await.expect(200);
        assert_eq!(
            answer.at("/data"),
            &json!({"post_id": id, "view_count": count}),
            "{address}"
        );
    }
    let other = world.company("other").await;
    let foreign = other.path(&format!("/posts/{id}/views"));
    let answer = read("192.0.2.9:1", &foreign).await;
    answer.expect_error(404, "POST_NOT_FOUND");
    // It costs its address a call, as anything without a key.
    let answer = read("192.0.2.77:1", &views).await.expect(200);
    assert_eq!(answer.header("x-ratelimit-remaining"), "5999");

    // The next day.
    world
        .db
        .write(async |write| -> Result<_, StoreError> {
            sqlx::query("UPDATE post_views SET viewed_on = viewed_on - 86400000000")
                .execute(&mut **write)
                .await
                .unwrap();
            Ok(())
        })
        .await
        .unwrap();
    let answer = read("192.0.2.1:1", &views).await.expect(200);
    assert_eq!(answer.at("/data/view_count"), 6);
    let mut db = world.db.read().await.unwrap();
    let kept = sqlx::query("SELECT COUNT(*) AS kept FROM post_views");
    let kept = kept.fetch_one(&mut *db).await.unwrap();
    assert_eq!(souk_store::Fields::number(&kept, "kept").unwrap(), 1);
    let summary = world.get(&acme.key, &format!("{path}/summary")).await;
    assert_eq!(summary.expect(200).at("/data/total_views"), 6);
}

/// Who reads a post waits behind all others who are not signed in, and a company behind none of them.
#[tokio::test]
async fn readers_write_in_a_line_of_their_own() {
    const LONG: Duration = Duration::from_millis(500);
    /// A loaded machine may take longer for the change than that line rests, but not each time.
    const TRIES: usize = 5;
    let world = World::new().await;
    let acme = world.company("acme").await;
    let path = acme.path("/posts");
    let body = json!({"title": "Read me", "body_markdown": "x"});
    let made = world.post(&acme.key, &path, body).await.expect(201);
    let id = made.text("/data/id");
    let publish = format!("{path}/{id}/publish");
    world.post(&acme.key, &publish, json!({})).await.expect(200);
    let act = Arc::new(Act {
        company: None,
        by: None,
        address: Ipv4Addr::LOCALHOST.into(),
        operation: "test",
        method: "POST",
        path: "/test".into(),
        request: RequestId::generate_at(now()),
        is_keyless: true,
    });
    let mut seen = Vec::new();
    for number in 0..TRIES {
        // As many as stand in line with others on a shared store. After each their line rests for as long.
        let long = (0..4).map(|_| {
            let slow = world.db.write(async |_| -> Result<(), StoreError> {
                tokio::time::sleep(LONG).await;
                Ok(())
            });
            audit::acting(act.clone(), slow)
        });
        for done in futures_util::future::join_all(long).await {
            done.unwrap();
        }
        let begun = Instant::now();
        let views = format!("/posts/{id}/views");
        let viewed = world.post("", &views, json!({}));
        let changed = async {
            let title = json!({"title": format!("Read me again {number}")});
            let one = format!("{path}/{id}");
            world.patch(&acme.key, &one, title).await.expect(200);
            begun.elapsed()
        };
        let (viewed, changed) = tokio::join!(viewed, changed);
        viewed.expect(200);
        let viewed = begun.elapsed();
        if viewed >= LONG / 2 && changed < viewed {
            return;
        }
        seen.push((changed, viewed));
    }
    panic!("{seen:?}");
}

/// What is wrong is named, all of it; what is another company's is not there.
#[tokio::test]
async fn what_is_no_post_is_refused() {
    let world = World::new().await;
    let (acme, other) = (world.company("acme").await, world.company("other").await);
    let (key, path) = (acme.key.as_str(), acme.path("/posts"));
    let wrong = json!({
        "title": "", "body_markdown": "x".repeat(50_001), "slug": "No Slug", "summary": "s".repeat(1_001), "tags": [""],
        "cover_image_url": "http://example.com/x.png", "asset_ids": ["no id"], "user_id": "no id"
    });
    let wrong = world
        .post(key, &path, wrong)
        .await
        .expect_error(400, "VALIDATION_ERROR");
    assert_eq!(
        wrong.fields(),
        [
            "user_id",
            "title",
            "slug",
            "summary",
            "body_markdown",
            "cover_image_url",
            "tags[0]",
            "asset_ids[0]"
        ]
    );
    let missing = world
        .post(key, &path, json!({}))
        .await
        .expect_error(400, "VALIDATION_ERROR");
    assert_eq!(missing.fields(), ["title", "body_markdown"]);
    let draft = world.asset(&other).await;
    let unpublish = other.path(&format!("/assets/{draft}/unpublish"));
    world
        .post(&other.key, &unpublish, json!({}))
        .await
        .expect(200);
    let about = json!({"title": "t", "body_markdown": "x", "asset_ids": ["ast_1", draft]});
    let refused = world
        .post(key, &path, about)
        .await
        .expect_error(400, "VALIDATION_ERROR");
    assert_eq!(refused.fields(), ["asset_ids[0]", "asset_ids[1]"]);
    let theirs = json!({"title": "t", "body_markdown": "x", "user_id": other.user_id});
    let refused = world.post(key, &path, theirs).await;
    refused.expect_error(404, "USER_NOT_FOUND");
    let body = json!({"title": "t", "body_markdown": "x", "slug": "t", "company_id": other.id});
    let refused = world.post(key, &path, body).await;
    refused.expect_error(400, "PATH_BODY_MISMATCH");
    let body = json!({"title": "t", "body_markdown": "x", "slug": "t"});
    let made = world.post(key, &path, body.clone()).await.expect(201);
    let taken = world.post(&other.key, &other.path("/posts"), body).await;
    taken.expect_error(409, "SLUG_TAKEN");
    let foreign = other.path(&format!("/posts/{}", made.text("/data/id")));
    for answer in [
        world.get(&other.key, &foreign).await,
        world
            .patch(&other.key, &foreign, json!({"title": "x"}))
            .await,
        world.delete(&other.key, &foreign).await,
        world
            .post(&other.key, &format!("{foreign}/publish"), json!({}))
            .await,
    ] {
        answer.expect_error(404, "POST_NOT_FOUND");
    }
    let reader = json!({"name": "reader", "role_id": 1});
    let reader = world
        .post(key, &acme.path("/api-keys"), reader)
        .await
        .expect(201);
    let reader = reader.text("/data/key");
    world.get(&reader, &path).await.expect(200);
    let refused = world.post(&reader, &path, json!({})).await;
    assert_eq!(refused.status, 403);
}
