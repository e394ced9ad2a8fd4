//! Files, and the connections that read them.

use crate::{NOW, World, world, written};
use souk_domain::connections::Target;
use souk_domain::ids::{ConnectionId, FileId};
use souk_domain::time::Timestamp;
use souk_store::files::{self, File};
use souk_store::{Part, StoreError, connections};

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
