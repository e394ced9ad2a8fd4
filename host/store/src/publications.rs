//! Publications: posts at integrations. Asked for by a company, attempted by whichever host claims one first.
//!
//! A claim is a lease, as a delivery's (`deliveries`). Refuses to decide what a platform's answer means or when to try again. Start reading at
//! [`request`], [`due`], [`claim`] and [`record`].

use crate::db::Write;
use crate::error::StoreError;
use crate::fields::{Fields, corrupt, without_nul};
use crate::integrations::Integration;
use crate::leases::{self, Claim, Due};
use crate::lists::{List, Listed, Part, Values};
use souk_domain::ids::{CompanyId, IntegrationId, PostId, PublicationId, UserId};
use souk_domain::publications::{State, WAITING_MAX};
use souk_domain::time::Timestamp;
use sqlx::AnyConnection;
use sqlx::any::AnyRow;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Publication {
    pub id: PublicationId,
    pub company_id: CompanyId,
    pub post_id: PostId,
    pub integration_id: IntegrationId,
    /// Who asked for it last.
    pub user_id: String,
    pub platform: String,
    /// How often somebody has asked for it.
    pub requests: i64,
    pub state: State,
    /// Begun since somebody asked last, the one in flight included.
    pub attempts: i64,
    /// While it is pending or retrying.
    pub next_attempt_at: Option<Timestamp>,
    pub last_attempt_at: Option<Timestamp>,
    pub last_error: Option<String>,
    /// What the platform calls it.
    pub remote_id: Option<String>,
    pub url: Option<String>,
    /// When the platform last had it as it then was.
    pub published_at: Option<Timestamp>,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
}

/// What became of an attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Attempted {
    Published {
        /// Of the integration, at which it was published: another one knows nothing of it.
        base_url: String,
        remote_id: Option<String>,
        url: Option<String>,
    },
    /// Failed; to be tried again then.
    Again(Timestamp, String),
    /// The platform, or the integration's settings, rule it out.
    Failed(String),
    /// It was tried as often as it is.
    GivenUp(String),
}

macro_rules! columns {
    () => {
        "id, company_id, post_id, integration_id, user_id, platform, requests, state, attempts, next_attempt_at, last_attempt_at, last_error,
         remote_id, url, published_at, created_at, updated_at"
    };
}

/// Asks for a post to be at an integration as it is now: it is attempted at once, whatever became of it before. `None`: as many of the
/// company's wait as may.
pub async fn request(
    write: &mut Write,
    post: &PostId,
    integration: &Integration,
    user: &UserId,
    now: Timestamp,
) -> Result<Option<Publication>, StoreError> {
    let company = &integration.company_id;
    crate::companies::lock(write, company).await?;
    let waiting = sqlx::query(
        "SELECT COUNT(*) AS total
         FROM publications
         WHERE company_id = $1 AND next_attempt_at IS NOT NULL AND NOT (post_id = $2 AND integration_id = $3)",
    )
    .bind(company.as_str())
    .bind(post.as_str())
    .bind(integration.id.as_str())
    .fetch_one(&mut **write)
    .await?
    .number("total")?;
    if waiting >= WAITING_MAX {
        return Ok(None);
    }
    // One that is in flight stays its claimant's until the attempt has ended.
    let row = sqlx::query(concat!(
        "INSERT INTO publications (id, company_id, post_id, integration_id, user_id, platform, requests, state, attempts, next_attempt_at,
                                   created_at, updated_at)
         VALUES ($1, $2, $3, $4, $5, $6, 1, 'pending', 0, $7, $7, $7)
         ON CONFLICT (post_id, integration_id) DO UPDATE
         SET user_id = $5, requests = publications.requests + 1, state = 'pending', attempts = 0, next_attempt_at = $7, last_error = NULL,
             updated_at = $7
         RETURNING ",
        columns!()
    ))
    .bind(PublicationId::generate().as_str())
    .bind(company.as_str())
    .bind(post.as_str())
    .bind(integration.id.as_str())
    .bind(user.as_str())
    .bind(&integration.platform)
    .bind(now.micros())
    .fetch_one(&mut **write)
    .await?;
    from_row(&row).map(Some)
}

/// What may be attempted now: companies by turns, and of each the most overdue first, at most so many of one company. Nothing leaves for one that is
/// suspended.
pub async fn due(
    db: &mut AnyConnection,
    now: Timestamp,
    per_company: i64,
    limit: i64,
) -> Result<Vec<Due<PublicationId>>, StoreError> {
    leases::due(
        db,
        "SELECT id, company_id
         FROM (SELECT publications.id, publications.company_id, publications.next_attempt_at,
                      ROW_NUMBER() OVER (PARTITION BY publications.company_id ORDER BY publications.next_attempt_at, publications.id) AS turn
               FROM publications
               JOIN companies ON companies.id = publications.company_id
               WHERE publications.next_attempt_at <= $1 AND (publications.lease_until IS NULL OR publications.lease_until <= $1)
                 AND companies.status = 'active') AS waiting
         WHERE turn <= $2
         ORDER BY turn, next_attempt_at, id
         LIMIT $3",
        now,
        per_company,
        limit,
    )
    .await
}

/// Takes a publication that is due, again if need be, which is no other attempt. `None`: somebody else was first, or it is not due any more.
pub async fn claim(
    write: &mut Write,
    id: &PublicationId,
    claim: &Claim<'_>,
) -> Result<Option<Publication>, StoreError> {
    const SQL: &str = concat!(
        "UPDATE publications
         SET claimed_by = $2, lease_until = $4, last_attempt_at = $3,
             attempts = attempts + CASE WHEN claimed_by = $2 AND lease_until > $3 AND attempts > 0 THEN 0 ELSE 1 END
         WHERE id = $1 AND next_attempt_at <= $3 AND (lease_until IS NULL OR lease_until <= $3 OR claimed_by = $2)
         RETURNING ",
        columns!()
    );
    leases::claim(write, SQL, id.as_str(), claim, from_row).await
}

/// Writes down what became of an attempt at `publication` as it was claimed, and lets go of the claim. What the platform calls the post is
/// kept in any case, unless its integration has another address by now; if somebody has asked anew meanwhile, the rest is left to the next attempt.
/// `false`: the claim had ended.
pub async fn record(
    write: &mut Write,
    publication: &Publication,
    claimant: &str,
    attempted: &Attempted,
    now: Timestamp,
) -> Result<bool, StoreError> {
    let (state, next, error) = match attempted {
        Attempted::Published { .. } => (State::Published, None, None),
        Attempted::Again(at, error) => (State::Retrying, Some(at.micros()), Some(error)),
        Attempted::Failed(error) => (State::Failed, None, Some(error)),
        Attempted::GivenUp(error) => (State::GivenUp, None, Some(error)),
    };
    let (remote_id, url, published_at) = match attempted {
        Attempted::Published { remote_id, url, .. } => {
            (remote_id.as_deref(), url.as_deref(), Some(now.micros()))
        }
        _ => (None, None, None),
    };
    let recorded = sqlx::query(
        "UPDATE publications
         SET state = CASE WHEN requests = $3 THEN $4 ELSE state END,
             next_attempt_at = CASE WHEN requests = $3 THEN CAST($5 AS BIGINT) ELSE next_attempt_at END,
             last_error = CASE WHEN requests = $3 THEN CAST($6 AS TEXT) ELSE last_error END,
             remote_id = COALESCE(CAST($7 AS TEXT), remote_id), url = COALESCE(CAST($8 AS TEXT), url),
             published_at = COALESCE(CAST($9 AS BIGINT), published_at), claimed_by = NULL, lease_until = NULL, updated_at = $10
         WHERE id = $1 AND claimed_by = $2",
    )
    .bind(publication.id.as_str())
    .bind(claimant)
    .bind(publication.requests)
    .bind(state.as_str())
    .bind(next)
    .bind(error.map(String::as_str).map(without_nul))
    .bind(remote_id.map(without_nul))
    .bind(url.map(without_nul))
    .bind(published_at)
    .bind(now.micros())
    .execute(&mut **write)
    .await?;
    let is_written = recorded.rows_affected() == 1;
    if is_written && let Attempted::Published { base_url, .. } = attempted {
        forget_former(write, &publication.id, base_url).await?;
    }
    Ok(is_written)
}

/// Forgets what the platform calls a post if its integration has left the address at which it is called so. A statement of its own: the row is
/// this transaction's by now, so that whoever moves the integration has either done so or comes to this row later ([`forget_remote`]).
async fn forget_former(
    write: &mut Write,
    id: &PublicationId,
    base_url: &str,
) -> Result<(), StoreError> {
    sqlx::query(
        "UPDATE publications
         SET remote_id = NULL
         WHERE id = $1
           AND EXISTS (SELECT 1
                       FROM integrations
                       WHERE integrations.id = publications.integration_id AND integrations.base_url <> $2)",
    )
    .bind(id.as_str())
    .bind(base_url)
    .execute(&mut **write)
    .await?;
    Ok(())
}

/// Forgets what the platform of an integration calls posts, if `integration`, as it is about to be written over a row that is locked, has another address:
/// at that one a number of before is nobody's, or somebody else's post.
pub(crate) async fn forget_remote(
    write: &mut Write,
    integration: &Integration,
) -> Result<(), StoreError> {
    // All rows, those in flight too, which are written down after this one commits.
    sqlx::query(
        "UPDATE publications
         SET remote_id = NULL
         WHERE company_id = $1 AND integration_id = $2
           AND EXISTS (SELECT 1
                       FROM integrations
                       WHERE integrations.id = $2 AND integrations.base_url <> $3)",
    )
    .bind(integration.company_id.as_str())
    .bind(integration.id.as_str())
    .bind(&integration.base_url)
    .execute(&mut **write)
    .await?;
    Ok(())
}

/// What the platform calls a post now. Whoever has read the address of the integration before reads nothing that was said at another one later.
pub async fn remote_id(
    db: &mut AnyConnection,
    id: &PublicationId,
) -> Result<Option<String>, StoreError> {
    let row = sqlx::query("SELECT remote_id FROM publications WHERE id = $1")
        .bind(id.as_str())
        .fetch_optional(db)
        .await?;
    row.map_or(Ok(None), |row| row.text_opt("remote_id"))
}

/// Gives up what waits for an integration that is deleted. An attempt in flight ends by itself.
pub(crate) async fn give_up_all(
    write: &mut Write,
    integration: &IntegrationId,
    now: Timestamp,
) -> Result<(), StoreError> {
    sqlx::query(
        "UPDATE publications
         SET state = 'given_up', next_attempt_at = NULL, last_error = 'the integration was deleted', updated_at = $2
         WHERE integration_id = $1 AND next_attempt_at IS NOT NULL",
    )
    .bind(integration.as_str())
    .bind(now.micros())
    .execute(&mut **write)
    .await?;
    Ok(())
}

/// Forgets where a post was published: it is deleted. What platforms have of it stays theirs.
pub(crate) async fn delete_of(write: &mut Write, post: &PostId) -> Result<(), StoreError> {
    sqlx::query("DELETE FROM publications WHERE post_id = $1")
        .bind(post.as_str())
        .execute(&mut **write)
        .await?;
    Ok(())
}

/// Ends all claims: of a host that has its store to itself and has just started, so that nobody holds one.
pub async fn release_all(write: &mut Write) -> Result<(), StoreError> {
    sqlx::query(
        "UPDATE publications SET claimed_by = NULL, lease_until = NULL WHERE lease_until IS NOT NULL",
    )
    .execute(&mut **write)
    .await?;
    Ok(())
}

static LIST: List = List::new(
    columns!(),
    "FROM publications WHERE post_id = $1",
    "created_at, id",
    1,
);

/// Where a post was or is to be published, in the order in which that was first asked for.
pub async fn list(
    db: &mut AnyConnection,
    post: &PostId,
    part: Part,
) -> Result<Listed<Publication>, StoreError> {
    let bind = |values: &mut Values| {
        values.text(Some(post.as_str()));
    };
    LIST.fetch(db, part, bind, from_row).await
}

fn from_row(row: &AnyRow) -> Result<Publication, StoreError> {
    let state = row.text("state")?;
    Ok(Publication {
        id: row.id("id")?,
        company_id: row.id("company_id")?,
        post_id: row.id("post_id")?,
        integration_id: row.id("integration_id")?,
        user_id: row.text("user_id")?,
        platform: row.text("platform")?,
        requests: row.number("requests")?,
        state: State::parse(&state).ok_or_else(|| corrupt("state", state))?,
        attempts: row.number("attempts")?,
        next_attempt_at: row.time_opt("next_attempt_at")?,
        last_attempt_at: row.time_opt("last_attempt_at")?,
        last_error: row.text_opt("last_error")?,
        remote_id: row.text_opt("remote_id")?,
        url: row.text_opt("url")?,
        published_at: row.time_opt("published_at")?,
        created_at: row.time("created_at")?,
        updated_at: row.time("updated_at")?,
    })
}
