//! Nonces of ID tokens by which somebody was signed in, so that nobody is signed in by the same one again. Knows digests only.

use crate::db::Write;
use crate::error::StoreError;
use souk_domain::keys::KeyDigest;
use souk_domain::time::Timestamp;

/// A commit of so many holds nobody up.
const SWEPT_AT_ONCE: i64 = 500;

/// Spends a nonce of this provider's; false if it was spent before, by whomever and on whichever host.
pub async fn spend(
    write: &mut Write,
    provider: &str,
    nonce: &str,
    expires_at: Timestamp,
) -> Result<bool, StoreError> {
    let digest = KeyDigest::of(&format!("{provider} {nonce}"));
    let spent = sqlx::query(
        "INSERT INTO spent_nonces (digest, expires_at) VALUES ($1, $2) ON CONFLICT (digest) DO NOTHING",
    )
    .bind(digest.to_hex())
    .bind(expires_at.micros())
    .execute(&mut **write)
    .await?;
    Ok(spent.rows_affected() == 1)
}

/// Forgets some whose tokens hold no more; false if there was none.
pub async fn sweep(write: &mut Write, now: Timestamp) -> Result<bool, StoreError> {
    let forgotten = sqlx::query(
        "DELETE FROM spent_nonces
         WHERE digest IN (SELECT digest FROM spent_nonces WHERE expires_at <= $1 LIMIT $2)",
    )
    .bind(now.micros())
    .bind(SWEPT_AT_ONCE)
    .execute(&mut **write)
    .await?;
    Ok(forgotten.rows_affected() > 0)
}
