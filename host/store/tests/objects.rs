//! Objects that no file names, in the store, on SQLite and on PostgreSQL: whoever claims one has it alone, and what a file names is nobody's.

mod support;

use std::time::Duration;

use souk_domain::ids::{CompanyId, FileId};
use souk_domain::time::Timestamp;
use souk_store::files::{self, File};
use souk_store::leases::Claim;
use souk_store::{Db, StoreError, objects};
use support::{company, stores};

const NOW: Timestamp = Timestamp::from_micros(1_800_000_000_000_000);

fn at(seconds: u64) -> Timestamp {
    NOW.after(Duration::from_secs(seconds))
}

async fn due(db: &Db, seconds: u64) -> Vec<FileId> {
    let mut read = db.read().await.unwrap();
    let due = objects::due(&mut read, at(seconds), 10, 10).await.unwrap();
    due.into_iter().map(|due| due.id).collect()
}

/// Takes it until ten seconds later.
async fn claim(db: &Db, upload: &FileId, by: &str, seconds: u64) -> Option<i64> {
    let claim = Claim {
        by,
        now: at(seconds),
        until: at(seconds + 10),
    };
    let claimed = db
        .write(async |write| objects::claim(write, upload, &claim).await)
        .await;
    claimed.unwrap().map(|claimed| claimed.attempts)
}

async fn is_named(db: &Db, upload: &FileId) -> bool {
    let named = db.write(async |write| objects::name(write, upload.as_str()).await);
    named.await.unwrap()
}

async fn unnamed(db: &Db, company: &CompanyId) -> FileId {
    let upload = FileId::generate();
    db.write(async |write| objects::unname(write, company, upload.as_str(), at(1)).await)
        .await
        .unwrap();
    upload
}

/// One that no file names is deleted when it is due, by one host at a time; from when somebody has claimed it no file can name it any more.
#[tokio::test]
async fn what_no_file_names_is_deleted_once() {
    for store in stores().await {
        let db = &store.db;
        let owner = company(db, "owner").await.company.id;
        let left = unnamed(db, &owner).await;
        assert!(due(db, 0).await.is_empty());
        assert_eq!(due(db, 1).await, std::slice::from_ref(&left));
        assert_eq!(claim(db, &left, "one", 1).await, Some(1));
        assert_eq!(claim(db, &left, "other", 1).await, None);
        // Whoever has it may not know, where the commit of its claim was not answered.
        assert_eq!(claim(db, &left, "one", 1).await, Some(1));
        assert!(!is_named(db, &left).await, "{}", store.name);

        // The host died; another could not delete it, and then could.
        assert!(due(db, 10).await.is_empty());
        assert_eq!(claim(db, &left, "other", 11).await, Some(2));
        db.write(async |write| -> Result<_, StoreError> {
            objects::put_off(write, &left, "one", at(0)).await?;
            objects::put_off(write, &left, "other", at(20)).await
        })
        .await
        .unwrap();
        assert!(due(db, 19).await.is_empty());
        assert_eq!(claim(db, &left, "other", 20).await, Some(3));
        for (by, is_left) in [("one", true), ("other", false)] {
            db.write(async |write| objects::deleted(write, &left, by).await)
                .await
                .unwrap();
            assert_eq!(due(db, 1_000).await.contains(&left), is_left);
        }
    }
}

/// One that a file names is never due, whatever the table says, until the file is replaced or deleted.
#[tokio::test]
async fn what_a_file_names_stays() {
    for store in stores().await {
        let db = &store.db;
        let owner = company(db, "owner").await.company.id;
        let [taken, kept] = [unnamed(db, &owner).await, unnamed(db, &owner).await];
        assert!(is_named(db, &taken).await);
        for (name, upload) in [("taken.db", &taken), ("kept.db", &kept)] {
            let file = File {
                name: name.into(),
                upload_id: upload.to_string(),
                size_bytes: 7,
                sha256: "ab".into(),
                created_at: NOW,
                updated_at: NOW,
            };
            db.write(async |write| files::put(write, &owner, &file).await)
                .await
                .unwrap();
        }
        assert!(due(db, 1).await.is_empty(), "{}", store.name);
        assert_eq!(claim(db, &kept, "one", 1).await, None);
        db.write(async |write| -> Result<_, StoreError> {
            files::delete(write, &owner, "taken.db").await?;
            objects::unname(write, &owner, taken.as_str(), at(5)).await
        })
        .await
        .unwrap();
        assert_eq!(due(db, 5).await, std::slice::from_ref(&taken));
    }
}
