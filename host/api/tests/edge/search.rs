//! Asset search as it arrives. How words find products is tested in the store (`host/store/tests/search/words.rs`).

use crate::world::{Answer, Company, World, now};
use serde_json::{Value, json};
use souk_store::search;

async fn search(world: &World, company: &Company, query: &str) -> Answer {
    let path = company.path(&format!("/assets/search?{query}"));
    world.get(&company.key, &path).await.expect(200)
}

fn names(answer: &Answer, list: &str) -> Vec<String> {
    let list = answer.at(list).as_array().unwrap().iter();
    list.map(|asset| asset["name"].as_str().unwrap().to_owned())
        .collect()
}

async fn named(world: &World, company: &Company, name: &str, sport: &str) -> String {
    let asset = world.asset_with(company, |asset| {
        asset.name = name.into();
        asset.details.sport = Some(sport.into());
        asset.category = Some("results".into());
        asset.details.source = "SELECT secret".into();
    });
    asset.await
}

/// The columns that an asset is counted, continued and dated by leave with no result: what they are called is its owner's to know, however it is shown, and
/// so is what its seller wrote beside.
#[tokio::test]
async fn columns_that_never_leave_are_the_owners() {
    let world = World::new().await;
    let (acme, buyer) = (world.company("acme").await, world.company("buyer").await);
    let privacy = json!({"min_group_size": 5, "privacy_unit_column": "ward_7"});
    let prediction = json!({"time_column": "admitted_on", "value_column": "beds_7", "horizon": 3});
    let described = json!([{"name": "n", "type": "integer"}]);
    let remarked = json!([{"name": "n", "type": "integer", "remark": "of our archive"}]);
    let mut assets = Vec::new();
    for parameters in [&described, &remarked] {
        let asset = world.asset_with(&acme, |asset| {
            asset.details.parameters = parameters.to_string();
            asset.details.privacy = Some(privacy.to_string());
            asset.details.prediction = Some(prediction.to_string());
            asset.details.freshness_column = Some("synced_at".into());
        });
        assets.push(asset.await);
    }
    let show = async |company: &Company, asset: &str| {
        let path = company.path(&format!("/assets/{asset}"));
        world.get(&company.key, &path).await.expect(200)
    };
    let told = show(&buyer, &assets[1]).await;
    let found = search(&world, &buyer, "limit=2").await;
    for shown in [told.at("/data"), found.at("/data/0"), found.at("/data/1")] {
        assert_eq!(shown["parameters"], described);
        assert_eq!(shown["privacy"], json!({"min_group_size": 5}));
        assert_eq!(shown["prediction"], json!({"horizon": 3}));
        assert_eq!(shown["freshness_column"], Value::Null);
    }
    let own = show(&acme, &assets[0]).await;
    assert_eq!(own.at("/data/parameters"), &described);
    assert_eq!(own.at("/data/privacy"), &privacy);
    assert_eq!(own.at("/data/prediction"), &prediction);
    assert_eq!(own.at("/data/freshness_column"), "synced_at");
}

/// Assets on sale and the own ones; what only an owner may see is absent from others'.
#[tokio::test]
async fn assets_are_searched() {
    let world = World::new().await;
    let (acme, other) = (world.company("acme").await, world.company("other").await);
    named(&world, &acme, "Goals per match", "football").await;
    named(&world, &acme, "Yellow cards", "football").await;
    let draft = named(&world, &acme, "Goal drafts", "football").await;
    named(&world, &other, "Ace goals", "tennis").await;
    let unpublish = acme.path(&format!("/assets/{draft}/unpublish"));
    world
        .post(&acme.key, &unpublish, json!({}))
        .await
        .expect(200);

    search::learn(&world.db).await.unwrap();
    let found = search(&world, &other, "q=goals&sort_by=name").await;
    assert_eq!(names(&found, "/data"), ["Ace goals", "Goals per match"]);
    assert_eq!(
        found.at("/meta"),
        &json!({"total": 2, "limit": 20, "offset": 0})
    );
    let (own, foreign) = (found.at("/data/0"), found.at("/data/1"));
    assert_eq!(own["sql_logic"], "SELECT secret");
    assert!(foreign.get("sql_logic").is_none() && foreign.get("connection_id").is_none());
    assert_eq!(found.at("/recommended"), &Value::Null);
    let own = search(&world, &acme, "q=goal+drfts").await;
    assert_eq!(names(&own, "/data"), ["Goal drafts"]);
    assert_eq!(own.at("/data/0/status"), "unpublished");

    for (query, expected) in [
        ("sport=tennis", vec!["Ace goals"]),
        (
            "category=results&sort_by=name",
            vec!["Ace goals", "Goals per match", "Yellow cards"],
        ),
        ("category=none", vec![]),
        (
            "sort_by=recent",
            vec!["Ace goals", "Yellow cards", "Goals per match"],
        ),
        ("sort_by=name&limit=1&offset=1", vec!["Goals per match"]),
        ("q=yelow+crads", vec!["Yellow cards"]),
    ] {
        let found = search(&world, &other, query).await;
        assert_eq!(names(&found, "/data"), expected, "{query}");
    }
    for wrong in [
        "limit=101",
        "limit=0",
        "sort_by=price",
        "offset=100001",
        "include_schema=1",
        "page=1",
        "q=%00",
    ] {
        let path = acme.path(&format!("/assets/search?{wrong}"));
        let refused = world.get(&acme.key, &path).await;
        let refused = refused.expect_error(400, "INVALID_PARAMETER");
        let is_told = refused.text("/error/message").contains("U+0000");
        assert_eq!(is_told, wrong == "q=%00", "{}", refused.body);
    }
    let foreign = world.get(&other.key, &acme.path("/assets/search")).await;
    foreign.expect_error(403, "COMPANY_ACCESS_DENIED");
}

/// Popular and trending are counted from runs; what is recommended is what others run most of what one likes, and has not.
#[tokio::test]
async fn popular_assets_are_recommended() {
    let world = World::new().await;
    let (seller, buyer, other) = (
        world.company("seller").await,
        world.company("buyer").await,
        world.company("other").await,
    );
    let goals = named(&world, &seller, "goals", "football").await;
    let cards = named(&world, &seller, "cards", "football").await;
    let aces = world.asset_with(&seller, |asset| {
        asset.name = "aces".into();
        asset.details.sport = Some("tennis".into());
    });
    let aces = aces.await;
    named(&world, &buyer, "mine", "football").await;
    world.grant(&other, 20).await;
    for (asset, runs) in [(&aces, 3), (&cards, 2), (&goals, 1)] {
        for _ in 0..runs {
            world.charge(&other, &seller, asset, 1).await;
        }
    }
    world.teller.flush().await;
    search::ranks::rank(&world.db, now()).await.unwrap();
    for order in ["popular", "trending"] {
        let found = search(&world, &buyer, &format!("sort_by={order}")).await;
        assert_eq!(names(&found, "/data"), ["aces", "cards", "goals", "mine"]);
    }
    let recommended = search(&world, &buyer, "q=nothing&include_recommended=true").await;
    assert_eq!(names(&recommended, "/data"), [""; 0]);
    assert_eq!(
        names(&recommended, "/recommended"),
        ["aces", "cards", "goals"]
    );
    // Who likes football is told of football, and not of what he has.
    let favorites = buyer.path(&format!("/users/{}/favorites", buyer.user_id));
    let favorite = json!({"asset_id": goals});
    world
        .post(&buyer.key, &favorites, favorite)
        .await
        .expect(201);
    let recommended = search(&world, &buyer, "include_recommended=true").await;
    assert_eq!(names(&recommended, "/recommended"), ["cards", "goals"]);
    let prices = seller.path(&format!("/assets/{cards}/prices"));
    let price = json!({"price_credits": 1});
    world.post(&seller.key, &prices, price).await.expect(201);
    let purchase = json!({"product_id": cards, "accept_terms": true});
    let bought = world
        .post(&buyer.key, &buyer.path("/purchases"), purchase)
        .await;
    bought.expect(201);
    let recommended = search(&world, &buyer, "include_recommended=true").await;
    assert_eq!(names(&recommended, "/recommended"), ["goals"]);
}

/// Saved schemas come with a search on demand, and to their owner.
#[tokio::test]
async fn schemas_are_included_on_demand() {
    let world = World::new().await;
    let (acme, other) = (world.company("acme").await, world.company("other").await);
    let asset = world.asset(&acme).await;
    let schema = json!({"tables": [{"name": "t", "fields": []}]});
    let path = acme.path(&format!("/assets/{asset}/schema"));
    let saved = world.put(&acme.key, &path, json!({"schema": schema})).await;
    saved.expect(200);
    for (company, query, shown) in [
        (&acme, "include_schema=true", &schema),
        (&acme, "include_schema=false", &Value::Null),
        (&acme, "", &Value::Null),
        (&other, "include_schema=true", &Value::Null),
    ] {
        let found = search(&world, company, query).await;
        assert_eq!(found.at("/data/0/saved_schema"), shown, "{query}");
    }
}
