//! Saved schemas: a note that the owner of an asset keeps with it.

use crate::world::World;
use serde_json::{Value, json};
use souk_domain::ids::{AssetId, CompanyId};
use souk_store::saved_schemas::{self, COMPANY_BYTES_MAX};
use souk_store::{StoreError, db::now};

/// What was saved is shown to the owner with the asset, and to nobody else; the next one takes its place.
#[tokio::test]
async fn a_saved_schema_is_the_owners() {
    let world = World::new().await;
    let (acme, other) = (world.company("acme").await, world.company("other").await);
    let asset = world.asset(&acme).await;
    let one = format!("/assets/{asset}");
    let path = acme.path(&format!("{one}/schema"));
    let shown = world.get(&acme.key, &acme.path(&one)).await.expect(200);
    assert_eq!(shown.at("/data/saved_schema"), &Value::Null);
    let field = json!({"name": "goals", "type": "int4", "nullable": false, "primary_key": false, "description": "own goals too"});
    let table =
        json!({"schema": "public", "name": "matches", "description": "all", "fields": [field]});
    let full = json!({"tables": [table]});
    let saved = world.put(&acme.key, &path, json!({"schema": full})).await;
    let saved = saved.expect(200);
    assert_eq!(
        (saved.at("/data/asset_id"), saved.at("/data/schema")),
        (&json!(asset), &full)
    );
    assert!(saved.at("/data/saved_at").is_string());
    let shown = world.get(&acme.key, &acme.path(&one)).await.expect(200);
    assert_eq!(shown.at("/data/saved_schema"), &full);
    let foreign = world.get(&other.key, &other.path(&one)).await.expect(200);
    assert_eq!(foreign.at("/data/saved_schema"), &Value::Null);

    // What is not documented is left out.
    let small = json!({"tables": [{"name": "teams", "colour": "red"}]});
    let saved = world.post(&acme.key, &path, json!({"schema": small})).await;
    let kept = json!({"tables": [{"name": "teams", "fields": []}]});
    assert_eq!(saved.expect(200).at("/data/schema"), &kept);
    let shown = world.get(&acme.key, &acme.path(&one)).await.expect(200);
    assert_eq!(shown.at("/data/saved_schema"), &kept);

    let foreign = other.path(&format!("{one}/schema"));
    let refused = world
        .put(&other.key, &foreign, json!({"schema": full}))
        .await;
    refused.expect_error(404, "ASSET_NOT_FOUND");
    world
        .put(&other.key, &path, json!({"schema": full}))
        .await
        .expect_error(403, "COMPANY_ACCESS_DENIED");
}

/// Everything wrong is named at once, and there is an end to everything.
#[tokio::test]
async fn a_schema_is_bounded() {
    let world = World::new().await;
    let acme = world.company("acme").await;
    let asset = world.asset(&acme).await;
    let path = acme.path(&format!("/assets/{asset}/schema"));
    let long = "x".repeat(256);
    let wrong = json!({"tables": [{"name": "", "fields": [{"name": long, "description": "x".repeat(2_001)}]}, {"name": "t", "schema": ""}]});
    let refused = world.put(&acme.key, &path, json!({"schema": wrong})).await;
    let refused = refused.expect_error(400, "VALIDATION_ERROR");
    assert_eq!(
        refused.fields(),
        [
            "schema.tables[0].name",
            "schema.tables[0].fields[0].name",
            "schema.tables[1].schema",
            "schema.tables[0].fields[0].description"
        ]
    );
    let tables = |tables: usize, fields: usize| {
        let fields = vec![json!({"name": "f"}); fields];
        let table = json!({"name": "t", "fields": fields});
        json!({"schema": {"tables": vec![table; tables]}})
    };
    for (tables, fits) in [
        (tables(1_000, 5), true),
        (tables(1_001, 0), false),
        (tables(1, 5_001), false),
    ] {
        let saved = world.put(&acme.key, &path, tables).await;
        match fits {
            true => drop(saved.expect(200)),
            false => drop(saved.expect_error(400, "VALIDATION_ERROR")),
        }
    }
    for malformed in [json!({}), json!({"schema": {"tables": 1}})] {
        let refused = world.put(&acme.key, &path, malformed).await;
        refused.expect_error(400, "VALIDATION_ERROR");
    }
    // More places than anybody reads of: each of them is held against those before it.
    let table = json!({"name": "t", "fields": vec![1; 100]});
    let wrong = json!({"schema": {"tables": vec![table; 100]}});
    let refused = world.put(&acme.key, &path, wrong).await;
    let refused = refused.expect_error(400, "VALIDATION_ERROR");
    assert_eq!(refused.fields().len(), 50);
}

/// What all of a company's assets have saved has an end; in the place of one another one of its length may stand, and others have room of their own.
#[tokio::test]
async fn a_company_saves_so_much() {
    let world = World::new().await;
    let (acme, other) = (world.company("acme").await, world.company("other").await);
    let asset = world.asset(&acme).await;
    let path = acme.path(&format!("/assets/{asset}/schema"));
    let small = json!({"schema": {"tables": [{"name": "t"}]}});
    world.put(&acme.key, &path, small.clone()).await.expect(200);
    let company = CompanyId::parse(&acme.id).unwrap();
    let mib = "x".repeat(1 << 20);
    let filled = world.db.write(async |write| -> Result<(), StoreError> {
        // Together with what is there already, all but a few bytes.
        for _ in 1..COMPANY_BYTES_MAX >> 20 {
            assert!(saved_schemas::save(write, &company, &AssetId::generate(), &mib, now()).await?);
        }
        let rest = &mib[..mib.len() - 100];
        assert!(saved_schemas::save(write, &company, &AssetId::generate(), rest, now()).await?);
        assert!(!saved_schemas::save(write, &company, &AssetId::generate(), rest, now()).await?);
        Ok(())
    });
    filled.await.unwrap();
    world.put(&acme.key, &path, small.clone()).await.expect(200);
    let larger = json!({"schema": {"tables": [{"name": "t", "description": "x".repeat(100)}]}});
    let refused = world.put(&acme.key, &path, larger.clone()).await;
    refused.expect_error(409, "CONFLICT");
    let asset = world.asset(&other).await;
    let path = other.path(&format!("/assets/{asset}/schema"));
    world.put(&other.key, &path, larger).await.expect(200);
}
