//! Connections, files and connectors in the store, on SQLite, and on PostgreSQL when
//! `TEST_POSTGRES_URL` names an empty database.

use souk_domain::connections::{Need, SslMode, Target};
use souk_domain::ids::{CompanyId, ConnectionId, FileId, UserId};
use souk_domain::time::Timestamp;
use souk_store::connections::{self, ConnectionFilter, Written};
use souk_store::connectors::canaries::{self, Canary};
use souk_store::connectors::{self, CHUNK_BYTES, Choice, PLATFORM, StoredConnector};
use souk_store::files::{self, File};
use souk_store::reference::{self, StorageEngine, UPLOADED_ENGINE_ID_MIN};
use souk_store::{Db, OpenOptions, Part, StoreError, Write};

struct World {
    db: Db,
    company: CompanyId,
    user: UserId,
    _directory: tempfile::TempDir,
}

const NOW: Timestamp = Timestamp::from_micros(1_800_000_000_000_000);

async fn world() -> World {
    let directory = tempfile::tempdir().unwrap();
    let url = std::env::var("TEST_POSTGRES_URL")
        .unwrap_or_else(|_| format!("sqlite:{}", directory.path().join("souk.db").display()));
    let db = Db::open(&OpenOptions::new(url)).await.unwrap();
    let (company, user) = (CompanyId::generate(), UserId::generate());
    db.write(async |tx| -> Result<_, StoreError> {
        sqlx::query("INSERT INTO companies (id, handle, name, status, is_platform, created_at, updated_at) VALUES ($1, $1, $1, 'active', 0, 0, 0)")
            .bind(company.as_str())
            .execute(&mut **tx)
            .await
            .unwrap();
        sqlx::query("INSERT INTO users (id, company_id, name, role, status, created_at, updated_at) VALUES ($1, $2, 'x', 4, 'active', 0, 0)")
            .bind(user.as_str())
            .bind(company.as_str())
            .execute(&mut **tx)
            .await
            .unwrap();
        Ok(())
    }).await.unwrap();
    World {
        db,
        company,
        user,
        _directory: directory,
    }
}

fn written<'a>(name: &'a str, target: &'a Target) -> Written<'a> {
    Written {
        name,
        credential_type: "PASSWORD",
        credentials: b"\x00sealed\xff",
        target,
        cloud_provider_id: None,
        verified_usage_ability: true,
        statement_timeout_ms: 10_000,
    }
}

fn tcp() -> Target {
    Target::Tcp {
        host: "db.example.com".into(),
        port: 5432,
        database: "sales".into(),
        ssl_mode: SslMode::VerifyFull,
        ca_pem: None,
    }
}

/// What was saved reads back; an update needs the revision that was read; a deleted one is gone,
/// with its credentials, while its row stays for archived products.
#[tokio::test]
async fn a_connection_lives_and_dies() {
    let World {
        db,
        company,
        user,
        _directory,
    } = world().await;
    let (id, target) = (ConnectionId::generate(), tcp());
    db.write(async |tx| {
        connections::insert(tx, &id, &company, &user, 1, &written("one", &target), NOW).await
    })
    .await
    .unwrap();

    let mut read = db.read().await.unwrap();
    let found = connections::get(&mut read, &company, &id)
        .await
        .unwrap()
        .unwrap();
    assert_eq!(
        (found.engine.as_str(), found.need, found.port),
        ("postgres", Need::Tcp, Some(5432))
    );
    assert_eq!(found.credentials, b"\x00sealed\xff");
    assert_eq!(
        (
            found.status.as_str(),
            found.revision,
            found.verified_usage_ability
        ),
        ("unverified", 1, true)
    );
    assert!(
        connections::get(&mut read, &CompanyId::generate(), &id)
            .await
            .unwrap()
            .is_none()
    );

    db.write(async |tx| -> Result<_, StoreError> {
        connections::record_test(tx, &company, &id, 1, Some("no route"), NOW)
            .await
            .unwrap();
        assert!(
            connections::relabel(tx, &company, &id, &written("two", &target), NOW)
                .await
                .unwrap()
        );
        Ok(())
    })
    .await
    .unwrap();
    let found = connections::get(&mut read, &company, &id)
        .await
        .unwrap()
        .unwrap();
    assert_eq!(
        (
            found.name.as_str(),
            found.status.as_str(),
            found.last_error.as_deref()
        ),
        ("two", "failed", Some("no route"))
    );

    db.write(async |tx| -> Result<_, StoreError> {
        assert!(
            connections::update(tx, &company, &id, 1, &written("three", &target), NOW)
                .await
                .unwrap()
        );
        assert!(
            !connections::update(tx, &company, &id, 1, &written("lost", &target), NOW)
                .await
                .unwrap()
        );
        // A test of the revision before says nothing about this one.
        connections::record_test(tx, &company, &id, 1, None, NOW)
            .await
            .unwrap();
        Ok(())
    })
    .await
    .unwrap();
    let (list, total) = connections::list(
        &mut read,
        &company,
        &ConnectionFilter {
            engine_id: Some(1),
            status: Some("unverified"),
        },
        Part::first(50),
    )
    .await
    .unwrap();
    assert_eq!((list.len(), total, list[0].revision), (1, 1, 2));
    let (list, total) = connections::list(
        &mut read,
        &company,
        &ConnectionFilter {
            engine_id: Some(2),
            status: None,
        },
        Part::first(50),
    )
    .await
    .unwrap();
    assert_eq!((list.len(), total), (0, 0));

    db.write(async |tx| -> Result<_, StoreError> {
        assert!(connections::delete(tx, &company, &id, NOW).await.unwrap());
        assert!(!connections::delete(tx, &company, &id, NOW).await.unwrap());
        let (left,): (i64,) = sqlx::query_as(
            "SELECT CAST(LENGTH(credentials) AS BIGINT) FROM connections WHERE id = $1",
        )
        .bind(id.as_str())
        .fetch_one(&mut **tx)
        .await
        .unwrap();
        assert_eq!(left, 0);
        Ok(())
    })
    .await
    .unwrap();
    assert!(
        connections::get(&mut read, &company, &id)
            .await
            .unwrap()
            .is_none()
    );
}

/// A file that is replaced keeps its first date, and the connections that read it are known.
#[tokio::test]
async fn a_file_is_replaced_and_knows_its_readers() {
    let World {
        db,
        company,
        user,
        _directory,
    } = world().await;
    let later = Timestamp::from_micros(NOW.micros() + 1);
    let file = |time| File {
        name: "sales.db".into(),
        upload_id: FileId::generate().to_string(),
        size_bytes: 7,
        sha256: "ab".into(),
        created_at: time,
        updated_at: time,
    };
    let id = ConnectionId::generate();
    let target = Target::File {
        name: "sales.db".into(),
    };
    db.write(async |tx| -> Result<_, StoreError> {
        assert!(!files::lock(tx, &company, "sales.db").await.unwrap());
        files::put(tx, &company, &file(NOW)).await.unwrap();
        files::put(tx, &company, &file(later)).await.unwrap();
        assert!(files::lock(tx, &company, "sales.db").await.unwrap());
        connections::insert(tx, &id, &company, &user, 4, &written("file", &target), NOW)
            .await
            .unwrap();
        let readers = files::put(tx, &company, &file(later)).await.unwrap();
        assert_eq!(readers, std::slice::from_ref(&id));
        Ok(())
    })
    .await
    .unwrap();

    let mut read = db.read().await.unwrap();
    assert_eq!(
        connections::get(&mut read, &company, &id)
            .await
            .unwrap()
            .unwrap()
            .revision,
        2
    );
    let found = files::get(&mut read, &company, "sales.db")
        .await
        .unwrap()
        .unwrap();
    assert_eq!((found.created_at, found.updated_at), (NOW, later));
    assert_eq!(files::totals(&mut read, &company).await.unwrap(), (1, 7));
    assert_eq!(
        files::uploads(&mut read)
            .await
            .unwrap()
            .iter()
            .filter(|(owner, _)| owner == company.as_str())
            .count(),
        1
    );
    assert_eq!(
        files::list(&mut read, &company, Part::first(10))
            .await
            .unwrap()
            .1,
        1
    );
    drop(read);
    db.write(async |tx| {
        assert!(files::delete(tx, &company, "sales.db").await?);
        assert!(!files::delete(tx, &company, "sales.db").await?);
        Ok::<_, StoreError>(())
    })
    .await
    .unwrap();
}

/// A component of several pieces reads back whole, or not at all.
#[tokio::test]
async fn connectors_keep_their_bytes() {
    let World {
        db,
        company,
        _directory,
        ..
    } = world().await;
    let wasm: Vec<u8> = (0..CHUNK_BYTES * 2 + 3).map(|index| index as u8).collect();
    let digest = format!("digest-{company}");
    for (piece, bytes) in wasm.chunks(CHUNK_BYTES).enumerate() {
        db.write(async |tx| -> Result<_, StoreError> {
            connectors::put_chunk(tx, &digest, piece as i64, bytes, NOW)
                .await
                .unwrap();
            connectors::put_chunk(tx, &digest, piece as i64, bytes, NOW)
                .await
                .unwrap();
            Ok(())
        })
        .await
        .unwrap();
    }
    let stored = StoredConnector {
        described: None,
        error: None,
        scope: company.to_string(),
        name: "x".into(),
        version: "1.0.0".into(),
        digest: digest.clone(),
        size_bytes: wasm.len() as i64,
        uploaded_by: "key_1".into(),
        created_at: NOW,
    };
    let choice = Choice {
        scope: company.to_string(),
        name: "x".into(),
        version: "1.0.0".into(),
        previous_version: None,
        activated_at: NOW,
        deactivated_at: None,
        blocked: false,
        reason: None,
    };
    let next = db
        .write(async |tx| -> Result<_, StoreError> {
            connectors::insert(tx, &stored).await.unwrap();
            connectors::choose(tx, &choice).await.unwrap();
            let next = Choice {
                version: "2.0.0".into(),
                previous_version: Some("1.0.0".into()),
                ..choice.clone()
            };
            connectors::choose(tx, &next).await.unwrap();
            connectors::sweep_chunks(tx, Timestamp::from_micros(i64::MAX))
                .await
                .unwrap();
            Ok(next)
        })
        .await
        .unwrap();

    let mut read = db.read().await.unwrap();
    assert_eq!(
        connectors::bytes(&mut read, &digest, stored.size_bytes)
            .await
            .unwrap()
            .unwrap(),
        wasm
    );
    assert!(
        connectors::bytes(&mut read, &digest, stored.size_bytes + CHUNK_BYTES as i64)
            .await
            .unwrap()
            .is_none()
    );
    assert!(
        connectors::get(&mut read, company.as_str(), "x", "1.0.0")
            .await
            .unwrap()
            .is_some()
    );
    assert!(
        connectors::list(&mut read)
            .await
            .unwrap()
            .iter()
            .any(|one| one.digest == digest)
    );
    assert_eq!(
        connectors::choice_of(&mut read, company.as_str(), "x")
            .await
            .unwrap()
            .unwrap(),
        next
    );
    assert!(
        connectors::choices(&mut read)
            .await
            .unwrap()
            .contains(&next)
    );
    drop(read);
    db.write(async |tx| -> Result<_, StoreError> {
        connectors::forget_previous(tx, company.as_str(), "x", "1.0.0")
            .await
            .unwrap();
        assert_eq!(
            connectors::choice_of(tx, company.as_str(), "x")
                .await
                .unwrap()
                .unwrap()
                .previous_version,
            None
        );
        let counted = connectors::stored_to_insert(tx, &company).await.unwrap();
        assert_eq!((counted.versions, counted.bytes), (1, stored.size_bytes));
        // Neither what a connector names nor what was written since is dropped.
        let whole = async |tx: &mut Write| {
            connectors::is_whole(tx, &digest, stored.size_bytes)
                .await
                .unwrap()
        };
        let drop_first = async |tx: &mut Write, before: i64| {
            let before = Timestamp::from_micros(before);
            connectors::drop_chunk(tx, &digest, 0, before)
                .await
                .unwrap();
        };
        drop_first(tx, NOW.micros()).await;
        assert!(whole(tx).await);
        assert!(
            connectors::delete(tx, company.as_str(), "x", "1.0.0")
                .await
                .unwrap()
        );
        drop_first(tx, NOW.micros() - 1).await;
        assert!(whole(tx).await);
        drop_first(tx, NOW.micros()).await;
        assert!(!whole(tx).await);
        assert!(
            connectors::sweep_chunks(tx, Timestamp::from_micros(i64::MAX))
                .await
                .unwrap()
                >= 2
        );
        Ok(())
    })
    .await
    .unwrap();
}

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

/// One canary of a connector at a time, with the share that it was given last, until somebody chooses what is at work.
#[tokio::test]
async fn a_canary_lasts_until_a_version_is_chosen() {
    let World {
        db,
        company,
        _directory,
        ..
    } = world().await;
    let (scope, name) = (company.as_str(), "x");
    let begun = Canary {
        scope: scope.to_owned(),
        name: name.to_owned(),
        version: "2.0.0".into(),
        beside_version: "1.0.0".into(),
        share_percent: 10,
        since: NOW,
    };
    let raised = Canary {
        share_percent: 99,
        ..begun.clone()
    };
    let chosen = Choice {
        scope: scope.to_owned(),
        name: name.to_owned(),
        version: "3.0.0".into(),
        previous_version: None,
        activated_at: NOW,
        deactivated_at: None,
        blocked: false,
        reason: None,
    };
    db.write(async |tx| -> Result<_, StoreError> {
        for canary in [&begun, &raised] {
            canaries::begin(tx, canary).await.unwrap();
            let found = canaries::of(tx, scope, name).await.unwrap();
            assert_eq!(found.as_ref(), Some(canary));
        }
        assert!(canaries::all(tx).await.unwrap().contains(&raised));
        assert!(canaries::end(tx, scope, name).await.unwrap());
        assert!(!canaries::end(tx, scope, name).await.unwrap());
        canaries::begin(tx, &begun).await.unwrap();
        connectors::choose(tx, &chosen).await.unwrap();
        assert_eq!(canaries::of(tx, scope, name).await.unwrap(), None);
        Ok(())
    })
    .await
    .unwrap();
}
