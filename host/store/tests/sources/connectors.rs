//! Connectors: their bytes, which version is at work, and which one beside it.

use crate::{NOW, World, world};
use souk_domain::time::Timestamp;
use souk_store::connectors::canaries::{self, Canary};
use souk_store::connectors::{self, CHUNK_BYTES, Choice, StoredConnector};
use souk_store::{StoreError, Write};

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
            for (version, is_stored) in [("1.0.0", true), ("2.0.0", false)] {
                let of = (company.as_str(), "x", version);
                assert_eq!(connectors::lock(tx, of).await.unwrap(), is_stored);
            }
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
