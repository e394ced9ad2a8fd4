//! Favorites: each product once for each user, in categories of the user's own.

use crate::world::{Answer, Company, World};
use serde_json::{Value, json};

fn path(company: &Company, rest: &str) -> String {
    company.path(&format!("/users/{}/favorites{rest}", company.user_id))
}

async fn mark(world: &World, company: &Company, body: Value) -> Answer {
    world.post(&company.key, &path(company, ""), body).await
}

async fn ids(world: &World, company: &Company, rest: &str) -> Vec<String> {
    let listed = world
        .get(&company.key, &path(company, rest))
        .await
        .expect(200);
    let items = listed.at("/data").as_array().unwrap();
    assert_eq!(listed.at("/meta/total"), items.len(), "{rest}");
    let ids = items
        .iter()
        .map(|item| item["id"].as_str().unwrap().to_owned());
    ids.collect()
}

/// A product is marked once, found by its category and by itself, moved, and gone when it is removed.
#[tokio::test]
async fn a_favorite_lives() {
    let world = World::new().await;
    let (seller, acme) = (world.company("seller").await, world.company("acme").await);
    let (asset, endpoint) = (world.asset(&seller).await, world.endpoint(&acme).await);
    let body = json!({"asset_id": asset, "category": "ligue 1 / été", "note": "for Monday"});
    let first = mark(&world, &acme, body).await.expect(201);
    let id = first.text("/data/id");
    assert_eq!(first.header("location"), path(&acme, &format!("/{id}")));
    assert_eq!(
        [
            first.at("/data/product_type"),
            first.at("/data/asset_id"),
            first.at("/data/endpoint_id")
        ],
        [&json!("asset"), &json!(asset), &Value::Null]
    );
    let again = mark(&world, &acme, json!({"asset_id": asset, "category": "b"}))
        .await
        .expect(200);
    assert_eq!(again.at("/data"), first.at("/data"));
    let second = mark(&world, &acme, json!({"endpoint_id": endpoint}))
        .await
        .expect(201);
    let second = second.text("/data/id");

    assert_eq!(ids(&world, &acme, "").await, [second.as_str(), id.as_str()]);
    assert_eq!(
        ids(&world, &acme, "?product_type=asset").await,
        [id.as_str()]
    );
    assert_eq!(
        ids(&world, &acme, "/uncategorized").await,
        [second.as_str()]
    );
    let named = "/categories/ligue%201%20%2F%20%C3%A9t%C3%A9";
    assert_eq!(ids(&world, &acme, named).await, [id.as_str()]);
    assert_eq!(
        ids(&world, &acme, "/categories/other").await,
        Vec::<String>::new()
    );
    let check = async |query: &str| {
        let path = path(&acme, &format!("/check?{query}"));
        world
            .get(&acme.key, &path)
            .await
            .expect(200)
            .at("/data")
            .clone()
    };
    let known = json!({"is_favorite": true, "favorite_id": id});
    assert_eq!(check(&format!("asset_id={asset}")).await, known);
    let unknown = json!({"is_favorite": false, "favorite_id": null});
    assert_eq!(check(&format!("endpoint_id={asset}")).await, unknown);
    assert_eq!(check("asset_id=ast_nothing").await, unknown);

    let one = path(&acme, &format!("/{id}"));
    let moved = json!({"category": null, "note": "for Tuesday"});
    let moved = world.patch(&acme.key, &one, moved).await.expect(200);
    assert_eq!(
        (moved.at("/data/category"), moved.at("/data/note")),
        (&Value::Null, &json!("for Tuesday"))
    );
    assert_eq!(
        world.get(&acme.key, &one).await.expect(200).at("/data"),
        moved.at("/data")
    );
    assert_eq!(ids(&world, &acme, "/uncategorized").await.len(), 2);
    world.delete(&acme.key, &one).await.expect(204);
    world
        .delete(&acme.key, &one)
        .await
        .expect_error(404, "FAVORITE_NOT_FOUND");
    world
        .get(&acme.key, &one)
        .await
        .expect_error(404, "FAVORITE_NOT_FOUND");
    assert_eq!(ids(&world, &acme, "").await, [second]);
}

/// Two changes at the same time are both there, also where several hosts write.
#[tokio::test]
async fn changes_at_the_same_time_are_both_there() {
    let world = World::new().await;
    let acme = world.company("acme").await;
    let asset = world.asset(&acme).await;
    let made = mark(&world, &acme, json!({"asset_id": asset})).await;
    let id = made.expect(201).text("/data/id");
    let one = path(&acme, &format!("/{id}"));
    for round in 0..8 {
        let (category, note) = (format!("category {round}"), format!("note {round}"));
        let changes = [json!({"category": category}), json!({"note": note})];
        world.patch_both(&acme.key, &one, changes).await;
        let shown = world.get(&acme.key, &one).await.expect(200);
        assert_eq!(shown.text("/data/category"), category);
        assert_eq!(shown.text("/data/note"), note);
    }
}

/// What is wrong is named, all of it; what a company may not see is no product, and another's users are nobody.
#[tokio::test]
async fn what_is_no_favorite_is_refused() {
    let world = World::new().await;
    let (seller, acme) = (world.company("seller").await, world.company("acme").await);
    let asset = world.asset(&seller).await;
    let wrong = json!({"category": "", "note": "n".repeat(1_001)});
    let wrong = mark(&world, &acme, wrong)
        .await
        .expect_error(400, "VALIDATION_ERROR");
    let fields = wrong.at("/error/details/errors").as_array().unwrap();
    let fields: Vec<_> = fields
        .iter()
        .map(|error| error["field"].as_str().unwrap())
        .collect();
    assert_eq!(fields, ["asset_id", "category", "note"]);
    let both = json!({"asset_id": asset, "endpoint_id": "end_1"});
    assert_eq!(
        mark(&world, &acme, both).await.expect(400).field(),
        "endpoint_id"
    );
    let path_of_check = path(&acme, "/check");
    world
        .get(&acme.key, &path_of_check)
        .await
        .expect_error(400, "INVALID_PARAMETER");
    for mismatch in [
        json!({"asset_id": asset, "company_id": seller.id}),
        json!({"asset_id": asset, "user_id": seller.user_id}),
    ] {
        mark(&world, &acme, mismatch)
            .await
            .expect_error(400, "PATH_BODY_MISMATCH");
    }
    mark(&world, &acme, json!({"asset_id": "ast_1"}))
        .await
        .expect_error(404, "ASSET_NOT_FOUND");
    mark(&world, &acme, json!({"endpoint_id": "end_1"}))
        .await
        .expect_error(404, "ENDPOINT_NOT_FOUND");
    let unpublish = seller.path(&format!("/assets/{asset}/unpublish"));
    world
        .post(&seller.key, &unpublish, json!({}))
        .await
        .expect(200);
    mark(&world, &acme, json!({"asset_id": asset}))
        .await
        .expect_error(404, "ASSET_NOT_FOUND");
    // Its seller still sees it.
    let own = mark(&world, &seller, json!({"asset_id": asset}))
        .await
        .expect(201);

    let id = own.text("/data/id");
    let one = path(&seller, &format!("/{id}"));
    for (mismatch, field) in [
        (json!({"company_id": acme.id}), "company_id"),
        (json!({"user_id": acme.user_id}), "user_id"),
    ] {
        let refused = world.patch(&seller.key, &one, mismatch).await;
        let refused = refused.expect_error(400, "PATH_BODY_MISMATCH");
        assert_eq!(refused.field(), field);
    }
    let same = json!({"company_id": seller.id, "user_id": seller.user_id});
    world.patch(&seller.key, &one, same).await.expect(200);
    let foreign = acme.path(&format!("/users/{}/favorites", seller.user_id));
    let own_path = path(&acme, "");
    for (rest, status) in [
        ("", 404),
        ("/uncategorized", 404),
        ("/check?asset_id=a", 404),
        (&*format!("/{id}"), 404),
    ] {
        let answer = world.get(&acme.key, &format!("{foreign}{rest}")).await;
        answer.expect_error(status, "USER_NOT_FOUND");
        world
            .get("", &format!("{own_path}{rest}"))
            .await
            .expect_error(401, "MISSING_API_KEY");
        let other = world.get(&seller.key, &format!("{own_path}{rest}")).await;
        other.expect_error(403, "COMPANY_ACCESS_DENIED");
    }
    let body = json!({"asset_id": asset});
    world
        .post(&acme.key, &foreign, body)
        .await
        .expect_error(404, "USER_NOT_FOUND");
    world
        .get(&acme.key, &path(&acme, &format!("/{id}")))
        .await
        .expect_error(404, "FAVORITE_NOT_FOUND");
    world
        .delete(&acme.key, &path(&acme, &format!("/{id}")))
        .await
        .expect_error(404, "FAVORITE_NOT_FOUND");

    let reader = json!({"name": "reader", "role_id": 1});
    let reader = world
        .post(&acme.key, &acme.path("/api-keys"), reader)
        .await
        .expect(201);
    let reader = reader.text("/data/key");
    world.get(&reader, &own_path).await.expect(200);
    world
        .post(&reader, &own_path, json!({"asset_id": asset}))
        .await
        .expect_error(403, "INSUFFICIENT_PERMISSIONS");
}
