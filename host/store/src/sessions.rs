//! Sessions: in which browsers users are signed in. Knows digests, never tokens. A session that ended is gone; the audit log tells of it.

use crate::changes::Topic;
use crate::companies::CompanyStatus;
use crate::db::Write;
use crate::error::StoreError;
use crate::fields::Fields;
use crate::lists::{List, Listed, Part, Values};
use crate::users::UserStatus;
use souk_domain::ids::{CompanyId, SessionId, UserId};
use souk_domain::keys::KeyDigest;
use souk_domain::plans::Plan;
use souk_domain::roles::Role;
use souk_domain::sessions::{IDLE_MAX, LIFE_MAX, SESSIONS_MAX, ends_at};
use souk_domain::time::Timestamp;
use sqlx::AnyConnection;
use sqlx::any::AnyRow;

/// A commit of so many holds nobody up.
const SWEPT_AT_ONCE: i64 = 500;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Session {
    pub id: SessionId,
    pub company_id: CompanyId,
    pub user_id: UserId,
    /// What let the user in: `invitation`, or the name of an identity provider.
    pub auth_provider: String,
    /// From where the user signed in.
    pub address: String,
    pub user_agent: Option<String>,
    pub created_at: Timestamp,
    /// To within some minutes.
    pub last_seen_at: Timestamp,
    pub expires_at: Timestamp,
}

impl Session {
    /// When it ends by itself, if it is not used again.
    pub fn ends_at(&self) -> Timestamp {
        ends_at(self.last_seen_at, self.expires_at)
    }
}

/// A session and what must hold of its surroundings for it to work: what the gate caches.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KnownSession {
    pub session: Session,
    pub role: Role,
    pub user_status: UserStatus,
    pub company_handle: String,
    pub company_status: CompanyStatus,
    pub company_plan: Plan,
}

#[derive(Debug, Clone)]
pub struct NewSession<'a> {
    pub company_id: &'a CompanyId,
    pub user_id: &'a UserId,
    pub auth_provider: &'a str,
    pub address: &'a str,
    pub user_agent: Option<&'a str>,
}

macro_rules! columns {
    () => {
        "s.id, s.company_id, s.user_id, s.auth_provider, s.address, s.user_agent, s.created_at, s.last_seen_at, s.expires_at"
    };
}

/// What must hold of a session's surroundings, and from where all of it is read. Whoever was removed has none, whatever was written of them since.
macro_rules! surroundings {
    () => {
        ", u.role, u.status AS user_status, c.handle AS company_handle, c.status AS company_status, c.plan AS company_plan
         FROM sessions s
         JOIN users u ON u.id = s.user_id
         JOIN companies c ON c.id = s.company_id
         WHERE u.deleted_at IS NULL AND "
    };
}

/// Signs a user in. Of too many sessions those go that were idle for longest.
pub async fn insert(
    write: &mut Write,
    new: &NewSession<'_>,
    digest: &KeyDigest,
    now: Timestamp,
) -> Result<Session, StoreError> {
    let session = Session {
        id: SessionId::generate(),
        company_id: new.company_id.clone(),
        user_id: new.user_id.clone(),
        auth_provider: new.auth_provider.to_owned(),
        address: new.address.to_owned(),
        user_agent: new.user_agent.map(str::to_owned),
        created_at: now,
        last_seen_at: now,
        expires_at: now.after(LIFE_MAX),
    };
    let ended = sqlx::query(
        "DELETE FROM sessions
         WHERE id IN (SELECT id FROM sessions WHERE user_id = $1 ORDER BY last_seen_at DESC, id LIMIT 1000 OFFSET $2)
         RETURNING id",
    )
    .bind(session.user_id.as_str())
    .bind(SESSIONS_MAX - 1)
    .fetch_all(&mut **write)
    .await?;
    tell_ended(write, &ended)?;
    sqlx::query(
        "INSERT INTO sessions (id, company_id, user_id, digest, auth_provider, address, user_agent, created_at, last_seen_at, expires_at)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $8, $9)",
    )
    .bind(session.id.as_str())
    .bind(session.company_id.as_str())
    .bind(session.user_id.as_str())
    .bind(digest.to_hex())
    .bind(&session.auth_provider)
    .bind(&session.address)
    .bind(session.user_agent.as_deref())
    .bind(now.micros())
    .bind(session.expires_at.micros())
    .execute(&mut **write)
    .await?;
    write.touch(Topic::Key, &session.id);
    Ok(session)
}

/// The session whose token has this digest, if it has not been ended nor its user removed; it may be over by the clock.
pub async fn by_digest(
    db: &mut AnyConnection,
    digest: &KeyDigest,
) -> Result<Option<KnownSession>, StoreError> {
    let row = sqlx::query(concat!(
        "SELECT ",
        columns!(),
        surroundings!(),
        "s.digest = $1"
    ))
    .bind(digest.to_hex())
    .fetch_optional(db)
    .await?;
    row.as_ref().map(known_from).transpose()
}

/// The same of a session that is known already.
pub async fn known(
    db: &mut AnyConnection,
    company: &CompanyId,
    id: &SessionId,
) -> Result<Option<KnownSession>, StoreError> {
    let row = sqlx::query(concat!(
        "SELECT ",
        columns!(),
        surroundings!(),
        "s.id = $1 AND s.company_id = $2"
    ))
    .bind(id.as_str())
    .bind(company.as_str())
    .fetch_optional(db)
    .await?;
    row.as_ref().map(known_from).transpose()
}

fn known_from(row: &AnyRow) -> Result<KnownSession, StoreError> {
    Ok(KnownSession {
        session: from_row(row)?,
        role: crate::users::role(row)?,
        user_status: UserStatus::read(&row.text("user_status")?)?,
        company_handle: row.text("company_handle")?,
        company_status: CompanyStatus::read(&row.text("company_status")?)?,
        company_plan: row.id("company_plan")?,
    })
}

static LIST: List = List::new(
    columns!(),
    "FROM sessions s
     WHERE s.company_id = $1 AND s.user_id = $2 AND s.expires_at > $3 AND s.last_seen_at > $4",
    "s.last_seen_at DESC, s.id",
    4,
);

/// Where a user is signed in at present, what was used last first.
pub async fn list(
    db: &mut AnyConnection,
    company: &CompanyId,
    user: &UserId,
    now: Timestamp,
    part: Part,
) -> Result<Listed<Session>, StoreError> {
    let bind = |values: &mut Values| {
        values
            .text(Some(company.as_str()))
            .text(Some(user.as_str()))
            .number(Some(now.micros()))
            .number(Some(now.before(IDLE_MAX).micros()));
    };
    LIST.fetch(db, part, bind, from_row).await
}

/// Notes that a session is in use. Nothing that is cached changes: whoever finds a cached session idle reads it anew.
pub async fn seen(write: &mut Write, id: &SessionId, now: Timestamp) -> Result<(), StoreError> {
    sqlx::query("UPDATE sessions SET last_seen_at = $2 WHERE id = $1 AND last_seen_at < $2")
        .bind(id.as_str())
        .bind(now.micros())
        .execute(&mut **write)
        .await?;
    Ok(())
}

/// Ends one session of a user's; false if there is none.
pub async fn end(
    write: &mut Write,
    company: &CompanyId,
    user: &UserId,
    id: &SessionId,
) -> Result<bool, StoreError> {
    let ended = sqlx::query(
        "DELETE FROM sessions WHERE id = $1 AND user_id = $2 AND company_id = $3 RETURNING id",
    )
    .bind(id.as_str())
    .bind(user.as_str())
    .bind(company.as_str())
    .fetch_all(&mut **write)
    .await?;
    tell_ended(write, &ended)?;
    Ok(!ended.is_empty())
}

/// Ends all sessions of a user.
pub async fn end_all(write: &mut Write, user: &UserId) -> Result<(), StoreError> {
    let ended = sqlx::query("DELETE FROM sessions WHERE user_id = $1 RETURNING id")
        .bind(user.as_str())
        .fetch_all(&mut **write)
        .await?;
    tell_ended(write, &ended)
}

/// Forgets some sessions that are over; false if there was none.
pub async fn sweep(write: &mut Write, now: Timestamp) -> Result<bool, StoreError> {
    let ended = sqlx::query(
        "DELETE FROM sessions
         WHERE id IN (SELECT id FROM sessions WHERE expires_at <= $1 OR last_seen_at <= $2 LIMIT $3)
         RETURNING id",
    )
    .bind(now.micros())
    .bind(now.before(IDLE_MAX).micros())
    .bind(SWEPT_AT_ONCE)
    .fetch_all(&mut **write)
    .await?;
    tell_ended(write, &ended)?;
    Ok(!ended.is_empty())
}

fn tell_ended(write: &mut Write, ended: &[AnyRow]) -> Result<(), StoreError> {
    for row in ended {
        write.touch(Topic::Key, &row.text("id")?);
    }
    Ok(())
}

fn from_row(row: &AnyRow) -> Result<Session, StoreError> {
    Ok(Session {
        id: row.id("id")?,
        company_id: row.id("company_id")?,
        user_id: row.id("user_id")?,
        auth_provider: row.text("auth_provider")?,
        address: row.text("address")?,
        user_agent: row.text_opt("user_agent")?,
        created_at: row.time("created_at")?,
        last_seen_at: row.time("last_seen_at")?,
        expires_at: row.time("expires_at")?,
    })
}
