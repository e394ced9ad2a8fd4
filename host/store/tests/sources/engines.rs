//! The ids of engines.

use crate::{World, world};
use souk_domain::connections::Need;
use souk_store::StoreError;
use souk_store::connectors::PLATFORM;
use souk_store::reference::{self, StorageEngine, UPLOADED_ENGINE_ID_MIN};

/// Bundled engines have the ids of the specification's clients; others get ids of their own, once.
#[tokio::test]
async fn engine_ids_are_stable() {
    let World {
        db,
        company,
        _directory,
        ..
    } = world().await;
    let new = StorageEngine {
        id: 0,
        scope: company.to_string(),
        slug: format!("duck-{company}"),
        name: "Duck".into(),
        dialect: "generic".into(),
        need: Need::Http,
        credential_types: vec!["API_KEY".into()],
    };
    let id = db
        .write(async |tx| -> Result<_, StoreError> {
            let postgres = StorageEngine {
                slug: "postgres".into(),
                ..new.clone()
            };
            assert_eq!(reference::ensure_engine(tx, &postgres).await.unwrap(), 1);
            let id = reference::ensure_engine(tx, &new).await.unwrap();
            assert_eq!(reference::ensure_engine(tx, &new).await.unwrap(), id);
            Ok(id)
        })
        .await
        .unwrap();
    assert!(id >= UPLOADED_ENGINE_ID_MIN);
    let mut read = db.read().await.unwrap();
    assert_eq!(
        reference::engine_by_id(&mut read, company.as_str(), id)
            .await
            .unwrap()
            .unwrap()
            .slug,
        new.slug
    );
    // Another company does not see it.
    assert!(
        reference::engine_by_id(&mut read, "com_other", id)
            .await
            .unwrap()
            .is_none()
    );
    let slugs: Vec<String> = reference::engines(&mut read, PLATFORM)
        .await
        .unwrap()
        .into_iter()
        .map(|engine| engine.slug)
        .collect();
    assert_eq!(
        slugs[..11],
        [
            "postgres",
            "mysql",
            "sqlserver",
            "sqlite",
            "clickhouse",
            "bigquery",
            "seller-api",
            "trino",
            "snowflake",
            "databricks",
            "duckdb"
        ]
    );
}
