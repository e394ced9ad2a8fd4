//! Invitations: by which a user comes in who has no other way yet. One for each user; knows digests, never tokens.

use crate::db::Write;
use crate::error::StoreError;
use crate::fields::Fields;
use crate::users::User;
use souk_domain::ids::{CompanyId, UserId};
use souk_domain::keys::KeyDigest;
use souk_domain::sessions::INVITATION_LIFE;
use souk_domain::time::Timestamp;
use sqlx::AnyConnection;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Invitation {
    pub company_id: CompanyId,
    pub user_id: UserId,
    /// The link went to the user's address and to nobody else: who has it reads mail there.
    pub is_mailed: bool,
    pub expires_at: Timestamp,
}

/// Invites a user. An invitation from before is void.
pub async fn put(
    write: &mut Write,
    user: &User,
    digest: &KeyDigest,
    now: Timestamp,
) -> Result<Invitation, StoreError> {
    let invitation = Invitation {
        company_id: user.company_id.clone(),
        user_id: user.id.clone(),
        is_mailed: false,
        expires_at: now.after(INVITATION_LIFE),
    };
    remove(write, &user.id).await?;
    sqlx::query(
        "INSERT INTO invitations (user_id, company_id, digest, is_mailed, created_at, expires_at)
         VALUES ($1, $2, $3, 0, $4, $5)",
    )
    .bind(user.id.as_str())
    .bind(user.company_id.as_str())
    .bind(digest.to_hex())
    .bind(now.micros())
    .bind(invitation.expires_at.micros())
    .execute(&mut **write)
    .await?;
    Ok(invitation)
}

/// The invitation whose token has this digest; it may have expired.
pub async fn by_digest(
    db: &mut AnyConnection,
    digest: &KeyDigest,
) -> Result<Option<Invitation>, StoreError> {
    let row = sqlx::query(
        "SELECT user_id, company_id, is_mailed, expires_at FROM invitations WHERE digest = $1",
    )
    .bind(digest.to_hex())
    .fetch_optional(db)
    .await?;
    row.map(|row| {
        Ok(Invitation {
            company_id: row.id("company_id")?,
            user_id: row.id("user_id")?,
            is_mailed: row.flag("is_mailed")?,
            expires_at: row.time("expires_at")?,
        })
    })
    .transpose()
}

/// Notes that the link with this token went to the user's address and to nobody else. Of one that is void by now it changes nothing: the one in
/// its place may have been shown.
pub async fn mailed(write: &mut Write, digest: &KeyDigest) -> Result<(), StoreError> {
    sqlx::query("UPDATE invitations SET is_mailed = 1 WHERE digest = $1")
        .bind(digest.to_hex())
        .execute(&mut **write)
        .await?;
    Ok(())
}

/// Takes an invitation back, or says that it was accepted.
pub async fn remove(write: &mut Write, user: &UserId) -> Result<(), StoreError> {
    sqlx::query("DELETE FROM invitations WHERE user_id = $1")
        .bind(user.as_str())
        .execute(&mut **write)
        .await?;
    Ok(())
}
