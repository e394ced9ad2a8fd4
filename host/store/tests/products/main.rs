//! Products in the store, on SQLite and on PostgreSQL.

#[path = "../support/mod.rs"]
mod support;

mod bought;
mod lists;
mod prices;
mod saving;
mod yesterday;

use souk_domain::ids::{AssetId, CompanyId, EndpointId, UserId};
use souk_domain::time::Timestamp;
use souk_store::products::{self, Kept};
use souk_store::{Db, StoreError};
use support::{asset, endpoint};

const NOW: Timestamp = Timestamp::from_micros(1_800_000_000_000_000);

/// The preview, and nothing of the source.
const KEPT: Kept<'static> = Kept {
    sample: true,
    learned: None,
};

fn after(micros: i64) -> Timestamp {
    Timestamp::from_micros(NOW.micros() + micros)
}

async fn company(db: &Db, handle: &str) -> CompanyId {
    let id = CompanyId::generate();
    db.write(async |tx| -> Result<_, StoreError> {
        sqlx::query("INSERT INTO companies (id, handle, name, status, is_platform, created_at, updated_at) VALUES ($1, $2, $2, 'active', 0, 0, 0)")
            .bind(id.as_str())
            .bind(handle)
            .execute(&mut **tx)
            .await
            .unwrap();
        Ok(())
    }).await.unwrap();
    id
}

/// Adds an asset and an endpoint of this name.
async fn both(db: &Db, owner: &CompanyId, name: &str, slug: &str, at: Timestamp) -> Both {
    let (a, e, user) = (
        AssetId::generate(),
        EndpointId::generate(),
        UserId::generate(),
    );
    db.write(async |tx| {
        products::insert(tx, &a, owner, &user, &asset(name, slug), at).await?;
        products::insert(tx, &e, owner, &user, &endpoint(name, slug), at).await?;
        Ok::<_, StoreError>(())
    })
    .await
    .unwrap();
    (a, e)
}

type Both = (AssetId, EndpointId);
