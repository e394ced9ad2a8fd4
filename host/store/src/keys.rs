//! API keys, analytics and endpoint ones in one table. Knows digests, never secrets.

use crate::changes::Topic;
use crate::companies::{self, CompanyStatus};
use crate::db::Write;
use crate::error::StoreError;
use crate::events::{self, Event};
use crate::fields::{Fields, corrupt};
use crate::lists::{List, Listed, Part, Values};
use serde_json::json;
use souk_domain::actors::STAFF;
use souk_domain::ids::{CompanyId, EndpointId, KeyId, PurchaseId, UserId};
use souk_domain::keys::{KeyDigest, KeySecret, KeyState, KeyType, mask};
use souk_domain::plans::Plan;
use souk_domain::roles::{Grant, Permissions, Role};
use souk_domain::time::{DAY, Timestamp};
use souk_domain::webhooks::EventType;
use sqlx::AnyConnection;
use sqlx::any::AnyRow;

/// The reason code of a key in whose place rotation has put another one.
pub const ROTATED: &str = "rotated";
/// Why the keys of an endpoint end that its seller archives. Whoever still calls with one is told: no other key reads that endpoint.
pub const ENDPOINT_ARCHIVED: &str = "the endpoint was archived by its seller";

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Key {
    pub id: KeyId,
    /// Whose key it is: its runs are this company's.
    pub company_id: CompanyId,
    /// Whom the key acts for; absent on keys that the marketplace provisioned.
    pub user_id: Option<UserId>,
    pub key_type: KeyType,
    /// The one endpoint of an endpoint key.
    pub endpoint_id: Option<EndpointId>,
    /// The purchase that provisioned it.
    pub purchase_id: Option<PurchaseId>,
    pub name: String,
    pub description: Option<String>,
    pub last4: String,
    pub grant: Grant,
    /// Requests per hour over all routes.
    pub rate_limit: i64,
    /// The key or user that created it.
    pub created_by: Option<String>,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
    pub expires_at: Option<Timestamp>,
    /// May lie ahead, in the grace period of a rotation.
    pub deactivated_at: Option<Timestamp>,
    pub revoked_by: Option<String>,
    pub revocation_reason: Option<String>,
    pub reason_code: Option<String>,
    pub first_used_at: Option<Timestamp>,
    pub last_used_at: Option<Timestamp>,
    pub usage_count: i64,
    pub failed_count: i64,
}

impl Key {
    pub fn state(&self, now: Timestamp) -> KeyState {
        KeyState::at(now, self.expires_at, self.deactivated_at)
    }

    /// It ended with its endpoint.
    pub fn is_of_archived_endpoint(&self) -> bool {
        let reason = self.revocation_reason.as_deref();
        // What was written until 2026-11-30.
        let is_said =
            reason == Some(ENDPOINT_ARCHIVED) || reason == Some("the endpoint was archived");
        self.endpoint_id.is_some() && is_said
    }

    /// `sk_****` or `ep_****` and the last four characters.
    pub fn masked(&self) -> String {
        mask(self.key_type, &self.last4)
    }
}

/// A key and what must hold of its surroundings for it to work: what the gate caches.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KnownKey {
    pub key: Key,
    pub company_handle: String,
    pub company_status: CompanyStatus,
    pub company_plan: Plan,
    /// False when the key's user was disabled or removed.
    pub user_is_active: bool,
}

#[derive(Debug, Clone)]
pub struct NewKey<'a> {
    pub company_id: &'a CompanyId,
    pub user_id: Option<&'a UserId>,
    /// `Some`: an endpoint key.
    pub endpoint_id: Option<&'a EndpointId>,
    pub purchase_id: Option<&'a PurchaseId>,
    pub name: &'a str,
    pub description: Option<&'a str>,
    pub grant: Grant,
    pub rate_limit: i64,
    pub created_by: Option<&'a str>,
    pub expires_at: Option<Timestamp>,
}

/// Adds a key for `secret`, whose digest and last four characters are kept.
pub async fn insert(
    write: &mut Write,
    new: &NewKey<'_>,
    secret: &KeySecret,
    now: Timestamp,
) -> Result<Key, StoreError> {
    let key = Key {
        id: KeyId::generate(),
        company_id: new.company_id.clone(),
        user_id: new.user_id.cloned(),
        key_type: secret.key_type(),
        endpoint_id: new.endpoint_id.cloned(),
        purchase_id: new.purchase_id.cloned(),
        name: new.name.to_owned(),
        description: new.description.map(str::to_owned),
        last4: secret.last4().to_owned(),
        grant: new.grant,
        rate_limit: new.rate_limit,
        created_by: new.created_by.map(str::to_owned),
        created_at: now,
        updated_at: now,
        expires_at: new.expires_at,
        deactivated_at: None,
        revoked_by: None,
        revocation_reason: None,
        reason_code: None,
        first_used_at: None,
        last_used_at: None,
        usage_count: 0,
        failed_count: 0,
    };
    sqlx::query(
        "INSERT INTO api_keys (id, company_id, user_id, key_type, endpoint_id, purchase_id, name, description, digest, last4,
                               role, permissions, rate_limit, created_by, created_at, updated_at, expires_at)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $15, $16)",
    )
    .bind(key.id.as_str())
    .bind(key.company_id.as_str())
    .bind(key.user_id.as_ref().map(UserId::as_str))
    .bind(key.key_type.as_str())
    .bind(key.endpoint_id.as_ref().map(EndpointId::as_str))
    .bind(key.purchase_id.as_ref().map(PurchaseId::as_str))
    .bind(&key.name)
    .bind(key.description.as_deref())
    .bind(secret.digest().to_hex())
    .bind(&key.last4)
    .bind(i64::from(key.grant.role.level()))
    .bind(key.grant.permissions.bits())
    .bind(key.rate_limit)
    .bind(key.created_by.as_deref())
    .bind(now.micros())
    .bind(key.expires_at.map(Timestamp::micros))
    .execute(&mut **write)
    .await?;
    write.touch(Topic::Key, &key.id);
    if key.key_type == KeyType::Endpoint {
        events::emit(write, &[provisioned(&key, now)]).await?;
    }
    Ok(key)
}

/// How many keys a company has.
pub struct KeyCounts {
    /// Neither expired nor deactivated, nor about to be.
    pub live: i64,
    /// Made within a day.
    pub of_day: i64,
}

/// Counts a company's keys before one more is inserted: until `write` ends, nobody else inserts one.
pub async fn counts(
    write: &mut Write,
    company: &CompanyId,
    now: Timestamp,
) -> Result<KeyCounts, StoreError> {
    companies::lock(write, company).await?;
    let row = sqlx::query(
        "SELECT (SELECT COUNT(*) FROM api_keys WHERE company_id = $1 AND deactivated_at IS NULL AND expires_at IS NULL)
              + (SELECT COUNT(*) FROM api_keys WHERE company_id = $1 AND deactivated_at IS NULL AND expires_at > $2) AS live,
                (SELECT COUNT(*) FROM api_keys WHERE company_id = $1 AND created_at > $3) AS of_day",
    )
    .bind(company.as_str())
    .bind(now.micros())
    .bind(now.before(DAY).micros())
    .fetch_one(&mut **write)
    .await?;
    Ok(KeyCounts {
        live: row.number("live")?,
        of_day: row.number("of_day")?,
    })
}

/// Every column of a key. A macro, because SQL is literal text and three statements share it.
macro_rules! columns {
    () => {
        "k.id, k.company_id, k.user_id, k.key_type, k.endpoint_id, k.purchase_id, k.name, k.description, k.last4,
         k.role, k.permissions, k.rate_limit, k.created_by, k.created_at, k.updated_at, k.expires_at,
         k.deactivated_at, k.revoked_by, k.revocation_reason, k.reason_code,
         k.first_used_at, k.last_used_at, k.usage_count, k.failed_count"
    };
}

/// What must hold of a key's surroundings, and from where all of it is read.
macro_rules! surroundings {
    () => {
        ", c.handle AS company_handle, c.status AS company_status, c.plan AS company_plan, u.status AS user_status
         FROM api_keys k
         JOIN companies c ON c.id = k.company_id
         LEFT JOIN users u ON u.id = k.user_id
         WHERE "
    };
}

/// The key whose secret has this digest, whatever its state.
pub async fn by_digest(
    db: &mut AnyConnection,
    digest: &KeyDigest,
) -> Result<Option<KnownKey>, StoreError> {
    let row = sqlx::query(concat!(
        "SELECT ",
        columns!(),
        surroundings!(),
        "k.digest = $1"
    ))
    .bind(digest.to_hex())
    .fetch_optional(db)
    .await?;
    row.as_ref().map(known_from).transpose()
}

/// The same of a key that is known already.
pub async fn known(
    db: &mut AnyConnection,
    company: &CompanyId,
    id: &KeyId,
) -> Result<Option<KnownKey>, StoreError> {
    let row = sqlx::query(concat!(
        "SELECT ",
        columns!(),
        surroundings!(),
        "k.id = $1 AND k.company_id = $2"
    ))
    .bind(id.as_str())
    .bind(company.as_str())
    .fetch_optional(db)
    .await?;
    row.as_ref().map(known_from).transpose()
}

fn known_from(row: &AnyRow) -> Result<KnownKey, StoreError> {
    Ok(KnownKey {
        key: from_row(row)?,
        company_handle: row.text("company_handle")?,
        company_status: CompanyStatus::read(&row.text("company_status")?)?,
        company_plan: row.id("company_plan")?,
        user_is_active: row
            .text_opt("user_status")?
            .is_none_or(|status| status == "active"),
    })
}

pub async fn get(
    db: &mut AnyConnection,
    company: &CompanyId,
    id: &KeyId,
) -> Result<Option<Key>, StoreError> {
    let row = sqlx::query(concat!(
        "SELECT ",
        columns!(),
        " FROM api_keys k
         WHERE k.id = $1 AND k.company_id = $2"
    ))
    .bind(id.as_str())
    .bind(company.as_str())
    .fetch_optional(db)
    .await?;
    row.as_ref().map(from_row).transpose()
}

/// Which of a company's keys to list.
#[derive(Debug, Clone, Default)]
pub struct KeyFilter {
    pub key_type: Option<KeyType>,
    pub state: Option<KeyState>,
    pub endpoint_id: Option<EndpointId>,
    pub purchase_id: Option<PurchaseId>,
}

static LIST: List = List::new(
    columns!(),
    "FROM api_keys k
     WHERE k.company_id = $1
       AND (CAST($2 AS TEXT) IS NULL OR k.key_type = $2)
       AND (CAST($3 AS TEXT) IS NULL OR k.endpoint_id = $3)
       AND (CAST($4 AS TEXT) IS NULL OR k.purchase_id = $4)
       AND (CAST($5 AS TEXT) IS NULL
            OR ($5 = 'deactivated' AND k.deactivated_at <= $6)
            OR ($5 = 'expired' AND k.expires_at <= $6
                               AND (k.deactivated_at IS NULL OR k.deactivated_at > $6))
            OR ($5 = 'active' AND (k.expires_at IS NULL OR k.expires_at > $6)
                              AND (k.deactivated_at IS NULL OR k.deactivated_at > $6)))",
    "k.created_at DESC, k.id",
    6,
);

/// The company's keys, newest first.
pub async fn list(
    db: &mut AnyConnection,
    company: &CompanyId,
    filter: &KeyFilter,
    now: Timestamp,
    part: Part,
) -> Result<Listed<Key>, StoreError> {
    let bind = |values: &mut Values| {
        values
            .text(Some(company.as_str()))
            .text(filter.key_type.map(KeyType::as_str))
            .text(filter.endpoint_id.as_ref().map(EndpointId::as_str))
            .text(filter.purchase_id.as_ref().map(PurchaseId::as_str))
            .text(filter.state.map(KeyState::as_str))
            .number(Some(now.micros()));
    };
    LIST.fetch(db, part, bind, from_row).await
}

/// Writes what may change: name, description, permissions, rate limit and expiry. Returns when it was updated.
pub async fn update(write: &mut Write, key: &Key, now: Timestamp) -> Result<Key, StoreError> {
    let updated = sqlx::query(
        "UPDATE api_keys
         SET name = $3, description = $4, permissions = $5, rate_limit = $6, expires_at = $7, updated_at = $8
         WHERE id = $1 AND company_id = $2",
    )
    .bind(key.id.as_str())
    .bind(key.company_id.as_str())
    .bind(&key.name)
    .bind(key.description.as_deref())
    .bind(key.grant.permissions.bits())
    .bind(key.rate_limit)
    .bind(key.expires_at.map(Timestamp::micros))
    .bind(now.micros())
    .execute(&mut **write)
    .await?;
    if updated.rows_affected() == 0 {
        return Err(StoreError::NotFound);
    }
    write.touch(Topic::Key, &key.id);
    Ok(Key {
        updated_at: now,
        ..key.clone()
    })
}

/// From when on a key stops working, and why.
#[derive(Debug, Clone, Copy, Default)]
pub struct Deactivation<'a> {
    pub at: Timestamp,
    /// The key or user that did it, or [`STAFF`].
    pub by: Option<&'a str>,
    pub reason: Option<&'a str>,
    pub reason_code: Option<&'a str>,
}

/// Deactivates a key and returns it as it then is. A key that is already deactivated by then keeps its first metadata.
pub async fn deactivate(
    write: &mut Write,
    company: &CompanyId,
    id: &KeyId,
    deactivation: &Deactivation<'_>,
    now: Timestamp,
) -> Result<Option<Key>, StoreError> {
    let deactivated = sqlx::query(
        "UPDATE api_keys
         SET deactivated_at = $3, revoked_by = $4, revocation_reason = $5, reason_code = $6, updated_at = $7
         WHERE id = $1 AND company_id = $2 AND (deactivated_at IS NULL OR deactivated_at > $3)",
    )
    .bind(id.as_str())
    .bind(company.as_str())
    .bind(deactivation.at.micros())
    .bind(deactivation.by)
    .bind(deactivation.reason)
    .bind(deactivation.reason_code)
    .bind(now.micros())
    .execute(&mut **write)
    .await?;
    write.touch(Topic::Key, id);
    let key = get(write, company, id).await?;
    if let (true, Some(key)) = (deactivated.rows_affected() > 0, &key) {
        events::emit(write, &[revoked(key, deactivation, now)]).await?;
    }
    Ok(key)
}

/// Deactivates every key of an endpoint, whoever owns it. Who did it is told to its own company and no other; that it was staff, to all.
pub async fn deactivate_of_endpoint(
    write: &mut Write,
    seller: &CompanyId,
    endpoint: &EndpointId,
    deactivation: &Deactivation<'_>,
) -> Result<(), StoreError> {
    let deactivated = sqlx::query(
        "UPDATE api_keys
         SET deactivated_at = $2, revoked_by = CASE WHEN company_id = $6 THEN CAST($3 AS TEXT) ELSE CAST($7 AS TEXT) END, revocation_reason = $4, reason_code = $5,
             updated_at = $2
         WHERE endpoint_id = $1 AND (deactivated_at IS NULL OR deactivated_at > $2)
         RETURNING id, company_id",
    )
    .bind(endpoint.as_str())
    .bind(deactivation.at.micros())
    .bind(deactivation.by)
    .bind(deactivation.reason)
    .bind(deactivation.reason_code)
    .bind(seller.as_str())
    .bind(deactivation.by.filter(|by| *by == STAFF))
    .fetch_all(&mut **write)
    .await?;
    tell_revoked(write, &deactivated, deactivation).await
}

/// Deactivates every key that a purchase provisioned, those that were rotated and live on for a grace period included.
pub async fn deactivate_of_purchase(
    write: &mut Write,
    buyer: &CompanyId,
    purchase: &PurchaseId,
    deactivation: &Deactivation<'_>,
) -> Result<(), StoreError> {
    let deactivated = sqlx::query(
        "UPDATE api_keys
         SET deactivated_at = $3, revoked_by = $4, revocation_reason = $5, reason_code = $6, updated_at = $3
         WHERE company_id = $1 AND purchase_id = $2 AND (deactivated_at IS NULL OR deactivated_at > $3)
         RETURNING id, company_id",
    )
    .bind(buyer.as_str())
    .bind(purchase.as_str())
    .bind(deactivation.at.micros())
    .bind(deactivation.by)
    .bind(deactivation.reason)
    .bind(deactivation.reason_code)
    .fetch_all(&mut **write)
    .await?;
    tell_revoked(write, &deactivated, deactivation).await
}

/// Deactivates the keys of a user whose role is higher than `beyond`; all of them without it.
pub async fn deactivate_of_user(
    write: &mut Write,
    user: &UserId,
    beyond: Option<Role>,
    deactivation: &Deactivation<'_>,
) -> Result<(), StoreError> {
    let deactivated = sqlx::query(
        "UPDATE api_keys
         SET deactivated_at = $3, revoked_by = $4, revocation_reason = $5, reason_code = $6, updated_at = $3
         WHERE user_id = $1 AND role > $2 AND (deactivated_at IS NULL OR deactivated_at > $3)
         RETURNING id, company_id",
    )
    .bind(user.as_str())
    .bind(beyond.map_or(0, |role| i64::from(role.level())))
    .bind(deactivation.at.micros())
    .bind(deactivation.by)
    .bind(deactivation.reason)
    .bind(deactivation.reason_code)
    .fetch_all(&mut **write)
    .await?;
    tell_revoked(write, &deactivated, deactivation).await
}

async fn tell_revoked(
    write: &mut Write,
    deactivated: &[AnyRow],
    deactivation: &Deactivation<'_>,
) -> Result<(), StoreError> {
    let mut told = Vec::with_capacity(deactivated.len());
    for row in deactivated {
        let (id, company) = (row.id("id")?, row.id("company_id")?);
        write.touch(Topic::Key, &id);
        let key = get(write, &company, &id)
            .await?
            .ok_or(StoreError::NotFound)?;
        told.push(revoked(&key, deactivation, deactivation.at));
    }
    events::emit(write, &told).await
}

/// What its company is told of a new endpoint key.
fn provisioned(key: &Key, now: Timestamp) -> Event {
    Event {
        company: key.company_id.clone(),
        kind: EventType::EndpointKeyProvisioned,
        at: now,
        data: json!({
            "company_id": key.company_id,
            "api_key_id": key.id,
            "name": key.name,
            "endpoint_id": key.endpoint_id,
            "purchase_id": key.purchase_id,
            "source": if key.purchase_id.is_some() { "marketplace" } else { "seller" },
        }),
    }
}

/// The key stops working at `deactivation.at`, which may lie ahead.
fn revoked(key: &Key, deactivation: &Deactivation<'_>, now: Timestamp) -> Event {
    Event {
        company: key.company_id.clone(),
        kind: EventType::ApiKeyRevoked,
        at: now,
        data: json!({
            "company_id": key.company_id,
            "api_key_id": key.id,
            "name": key.name,
            "key_type": key.key_type.as_str(),
            "endpoint_id": key.endpoint_id,
            "revoked_at": deactivation.at.to_string(),
            "revoked_by": key.revoked_by,
            "reason": deactivation.reason,
            "reason_code": deactivation.reason_code,
        }),
    }
}

fn from_row(row: &AnyRow) -> Result<Key, StoreError> {
    let key_type = row.text("key_type")?;
    Ok(Key {
        id: row.id("id")?,
        company_id: row.id("company_id")?,
        user_id: row.id_opt("user_id")?,
        key_type: KeyType::parse(&key_type).ok_or_else(|| corrupt("key_type", key_type))?,
        endpoint_id: row.id_opt("endpoint_id")?,
        purchase_id: row.id_opt("purchase_id")?,
        name: row.text("name")?,
        description: row.text_opt("description")?,
        last4: row.text("last4")?,
        grant: Grant {
            role: crate::users::role(row)?,
            permissions: Permissions::from_bits(row.number("permissions")?),
        },
        rate_limit: row.number("rate_limit")?,
        created_by: row.text_opt("created_by")?,
        created_at: row.time("created_at")?,
        updated_at: row.time("updated_at")?,
        expires_at: row.time_opt("expires_at")?,
        deactivated_at: row.time_opt("deactivated_at")?,
        revoked_by: row.text_opt("revoked_by")?,
        revocation_reason: row.text_opt("revocation_reason")?,
        reason_code: row.text_opt("reason_code")?,
        first_used_at: row.time_opt("first_used_at")?,
        last_used_at: row.time_opt("last_used_at")?,
        usage_count: row.number("usage_count")?,
        failed_count: row.number("failed_count")?,
    })
}
