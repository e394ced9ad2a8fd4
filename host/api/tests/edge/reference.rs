//! Reference data: known lists, for everybody with a key.

use crate::world::World;
use serde_json::{Value, json};
use souk_store::products::{AssetDetails, Written};

const LISTS: [(&str, usize, &[&str]); 5] = [
    ("/cloud-providers", 12, &["id", "name", "regions", "slug"]),
    ("/job-functions", 31, &["id", "name"]),
    (
        "/asset-use-cases",
        28,
        &["description", "id", "name", "slug"],
    ),
    (
        "/industries",
        116,
        &[
            "code",
            "description",
            "id",
            "name",
            "product_count",
            "sector_id",
            "slug",
        ],
    ),
    ("/industries/active-products", 0, &[]),
];

/// Whole, counted, each item with its members and a slug of its own; not for strangers, nor with parameters.
#[tokio::test]
async fn lists_are_whole() {
    let world = World::new().await;
    let acme = world.company("acme").await;
    for (path, count, members) in LISTS {
        let list = world.get(&acme.key, path).await.expect(200);
        let items = list.at("/data").as_array().unwrap();
        let mut meta = json!({"total": count});
        if path.starts_with("/industries") {
            meta["source"] = json!("NAICS 2022, U.S. Census Bureau, public domain");
        }
        assert_eq!((items.len(), list.at("/meta")), (count, &meta), "{path}");
        let mut slugs = Vec::new();
        for item in items {
            let names: Vec<_> = item.as_object().unwrap().keys().collect();
            assert_eq!(names, members, "{path}");
            slugs.extend(item["slug"].as_str());
        }
        let known = slugs.len();
        slugs.sort_unstable();
        slugs.dedup();
        assert!(slugs.len() == known && !slugs.contains(&""), "{path}");
        world
            .get("", path)
            .await
            .expect_error(401, "MISSING_API_KEY");
        let wrong = world.get(&acme.key, &format!("{path}?page=2&q=x")).await;
        let wrong = wrong.expect_error(400, "INVALID_PARAMETER");
        assert_eq!(
            wrong.at("/error/details/errors").as_array().unwrap().len(),
            2
        );
        world
            .post(&acme.key, path, json!({}))
            .await
            .expect_error(405, "METHOD_NOT_ALLOWED");
    }
    let clouds = world.get(&acme.key, "/cloud-providers").await;
    assert_eq!(
        clouds.at("/data/0/regions/0"),
        &json!({"code": "us-east-1", "name": "N. Virginia"})
    );
}

/// What names an entry of a list names one that is there; all that do not are told at once.
#[tokio::test]
async fn labels_are_entries_of_the_lists() {
    let world = World::new().await;
    let acme = world.company("acme").await;
    let labels = ["industry_ids", "use_case_ids", "tags"];
    let body = json!({"industry_ids": [711, 3], "use_case_ids": [99], "tags": ["x".repeat(1000)]});
    for path in ["/assets", "/endpoints"] {
        let refused = world.post(&acme.key, &acme.path(path), body.clone()).await;
        let refused = refused.expect_error(400, "VALIDATION_ERROR");
        for field in labels {
            assert!(refused.fields().contains(&field), "{path}: {field}");
        }
    }
    let body = json!({"name": "x", "cloud_provider_id": 77});
    let refused = world
        .post(&acme.key, &acme.path("/connections"), body)
        .await;
    let refused = refused.expect_error(400, "VALIDATION_ERROR");
    assert!(refused.fields().contains(&"cloud_provider_id"));

    let asset = world.asset(&acme).await;
    let path = acme.path(&format!("/assets/{asset}"));
    for (field, value) in [
        ("industry_ids", json!([3])),
        ("use_case_ids", json!([0])),
        ("tags", json!(["x".repeat(1000)])),
    ] {
        let mut change = json!({});
        change[field] = value;
        let refused = world.patch(&acme.key, &path, change).await;
        let refused = refused.expect_error(400, "VALIDATION_ERROR");
        assert!(refused.fields().contains(&field), "{field}");
    }
    // The connection of an asset that was only written down cannot be found.
    let known = json!({"industry_ids": [711], "use_case_ids": [28], "tags": ["home"]});
    let refused = world.patch(&acme.key, &path, known).await;
    let refused = refused.expect_error(400, "VALIDATION_ERROR");
    assert_eq!(refused.fields(), ["connection_id"]);
}

/// An industry counts what the marketplace lists under it: published products of active sellers, each once.
#[tokio::test]
async fn industries_count_what_is_on_sale() {
    let world = World::new().await;
    let (acme, gone) = (world.company("acme").await, world.company("gone").await);
    let label = |labels: &'static str| {
        move |asset: &mut Written<AssetDetails>| asset.labels = labels.into()
    };
    let both = r#"{"industry_ids":[71,711],"use_case_ids":[],"tags":[]}"#;
    let one = r#"{"industry_ids":[711],"use_case_ids":[71],"tags":["71"]}"#;
    for labels in [both, both, one] {
        world.asset_with(&acme, label(labels)).await;
    }
    world.asset_with(&gone, label(both)).await;
    let unpublished = world.asset_with(&acme, label(both)).await;
    let path = acme.path(&format!("/assets/{unpublished}/unpublish"));
    world.post(&acme.key, &path, json!({})).await.expect(200);
    world.suspend(&gone).await;

    let count = async |path: &str| -> Value {
        let answer = world.get(&acme.key, path).await.expect(200);
        answer.at("/data/product_count").clone()
    };
    assert_eq!(
        (
            count("/industries/71").await,
            count("/industries/711").await
        ),
        (json!(2), json!(3))
    );
    assert_eq!(count("/industries/712").await, 0);
    for id in [71, 711] {
        let path = format!("/marketplace/products?industry_id={id}");
        let listed = world.get(&acme.key, &path).await.expect(200);
        assert_eq!(
            listed.at("/meta/total"),
            &count(&format!("/industries/{id}")).await
        );
    }
    let active = world
        .get(&acme.key, "/industries/active-products")
        .await
        .expect(200);
    let ids: Vec<_> = active
        .at("/data")
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one["id"].clone())
        .collect();
    assert_eq!(ids, [71, 711]);
    assert_eq!(active.at("/data/1/sector_id"), 71);
    for unknown in ["1", "710", "naics", "9999999999999999999999"] {
        let path = format!("/industries/{unknown}");
        world
            .get(&acme.key, &path)
            .await
            .expect_error(404, "INDUSTRY_NOT_FOUND");
    }
    world
        .get("", "/industries/71")
        .await
        .expect_error(401, "MISSING_API_KEY");
}
