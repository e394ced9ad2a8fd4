//! Companies: the tenants, and the platform's own.

use crate::changes::Topic;
use crate::db::Write;
use crate::error::StoreError;
use crate::fields::{Fields, corrupt};
use crate::lists::{List, Listed, Part, Values, containing};
use crate::search::index::index_company;
use souk_domain::ids::CompanyId;
use souk_domain::plans::Plan;
use souk_domain::time::{DAY, Timestamp};
use sqlx::AnyConnection;
use sqlx::any::AnyRow;

/// A retired handle keeps routing to its company this long.
pub const HANDLE_GRACE_DAYS: u32 = 90;
/// A commit of so many holds nobody up.
const SWEPT_AT_ONCE: i64 = 500;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Company {
    pub id: CompanyId,
    /// A DNS label; the subdomain of its data routes.
    pub handle: String,
    pub name: String,
    pub description: Option<String>,
    pub profile: Profile,
    pub status: CompanyStatus,
    /// Why it has this status, where somebody said so.
    pub status_reason: Option<String>,
    pub plan: Plan,
    /// The company of the platform's own staff.
    pub is_platform: bool,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
}

/// What a company tells about itself. Nothing depends on it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Profile {
    pub website: Option<String>,
    pub logo_url: Option<String>,
    pub industry_id: Option<i64>,
    /// ISO 3166-1, two letters.
    pub country: Option<String>,
    pub contact_email: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CompanyStatus {
    Active,
    Suspended,
}

impl CompanyStatus {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Active => "active",
            Self::Suspended => "suspended",
        }
    }

    pub fn of(text: &str) -> Option<Self> {
        let all = [Self::Active, Self::Suspended];
        all.into_iter().find(|status| status.as_str() == text)
    }

    pub(crate) fn read(text: &str) -> Result<Self, StoreError> {
        Self::of(text).ok_or_else(|| corrupt("status", format!("{text:?}")))
    }
}

/// What a new company is made of.
#[derive(Debug, Clone)]
pub struct NewCompany<'a> {
    pub handle: &'a str,
    pub name: &'a str,
    pub description: Option<&'a str>,
    pub is_platform: bool,
}

/// Adds a company. [`StoreError::Conflict`]: the handle is taken, or was given up too recently.
pub async fn insert(
    write: &mut Write,
    company: &NewCompany<'_>,
    now: Timestamp,
) -> Result<Company, StoreError> {
    refuse_retired(write, company.handle, None, now).await?;
    let company = Company {
        id: CompanyId::generate(),
        handle: company.handle.to_owned(),
        name: company.name.to_owned(),
        description: company.description.map(str::to_owned),
        profile: Profile::default(),
        status: CompanyStatus::Active,
        status_reason: None,
        plan: Plan::default(),
        is_platform: company.is_platform,
        created_at: now,
        updated_at: now,
    };
    sqlx::query(
        "INSERT INTO companies (id, handle, name, description, status, is_platform, created_at, updated_at, plan)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $7, $8)",
    )
    .bind(company.id.as_str())
    .bind(&company.handle)
    .bind(&company.name)
    .bind(company.description.as_deref())
    .bind(company.status.as_str())
    .bind(i64::from(company.is_platform))
    .bind(now.micros())
    .bind(company.plan.as_str())
    .execute(&mut **write)
    .await?;
    index_company(write, &company.id, &company.name).await?;
    write.touch(Topic::Company, &company.id);
    write.touch(Topic::Handle, &company.handle);
    Ok(company)
}

macro_rules! columns {
    () => {
        "id, handle, name, description, website, logo_url, industry_id, country, contact_email, status, status_reason, plan, is_platform, created_at,
         updated_at"
    };
}

/// Lets nobody else who asks for this go on until `tx` ends: for counting what a company has before one more is inserted or one is
/// taken away. Two at once would both count before either is done. A store with one writer needs no asking.
pub async fn lock(tx: &mut Write, id: &CompanyId) -> Result<(), StoreError> {
    if tx.is_shared() {
        sqlx::query("UPDATE companies SET status = status WHERE id = $1")
            .bind(id.as_str())
            .execute(&mut **tx)
            .await?;
    }
    Ok(())
}

pub async fn get(db: &mut AnyConnection, id: &CompanyId) -> Result<Option<Company>, StoreError> {
    let row = sqlx::query(concat!(
        "SELECT ",
        columns!(),
        " FROM companies WHERE id = $1"
    ))
    .bind(id.as_str())
    .fetch_optional(db)
    .await?;
    row.as_ref().map(from_row).transpose()
}

/// The company that a handle routes to: its own, or the one that gave it up not long ago.
pub async fn by_handle(
    db: &mut AnyConnection,
    handle: &str,
    now: Timestamp,
) -> Result<Option<Company>, StoreError> {
    let row = sqlx::query(concat!(
        "SELECT ",
        columns!(),
        " FROM companies
         WHERE handle = $1
            OR id = (SELECT company_id FROM retired_handles WHERE handle = $1 AND expires_at > $2)"
    ))
    .bind(handle)
    .bind(now.micros())
    .fetch_optional(db)
    .await?;
    row.as_ref().map(from_row).transpose()
}

static LIST: List = List::new(
    columns!(),
    "FROM companies
     WHERE CAST($1 AS TEXT) IS NULL OR LOWER(name || ' ' || handle) LIKE LOWER($1) ESCAPE '!'",
    "created_at DESC, id DESC",
    1,
);

/// All companies, newest first; of those with `part_of_name` only those that have it in their name or handle, in whatever case.
pub async fn list(
    db: &mut AnyConnection,
    part_of_name: Option<&str>,
    part: Part,
) -> Result<Listed<Company>, StoreError> {
    let pattern = part_of_name.map(containing);
    let bind = |values: &mut Values| {
        values.text(pattern.as_deref());
    };
    LIST.fetch(db, part, bind, from_row).await
}

/// Of every company.
pub async fn ids(db: &mut AnyConnection) -> Result<Vec<CompanyId>, StoreError> {
    let rows = sqlx::query("SELECT id FROM companies")
        .fetch_all(db)
        .await?;
    rows.iter().map(|row| row.id("id")).collect()
}

/// The platform's company, once the store has been founded.
pub async fn platform(db: &mut AnyConnection) -> Result<Option<Company>, StoreError> {
    let row = sqlx::query(concat!(
        "SELECT ",
        columns!(),
        " FROM companies
         WHERE is_platform = 1
         ORDER BY created_at
         LIMIT 1"
    ))
    .fetch_optional(db)
    .await?;
    row.as_ref().map(from_row).transpose()
}

/// Writes name, description, profile, handle, status with its reason, and plan of `company`, as they are now. The former handle keeps routing for 90 days.
pub async fn update(
    write: &mut Write,
    company: &Company,
    now: Timestamp,
) -> Result<(), StoreError> {
    let former = get(write, &company.id).await?.ok_or(StoreError::NotFound)?;
    if former.handle != company.handle {
        refuse_retired(write, &company.handle, Some(&company.id), now).await?;
        retire_handle(write, &former, now).await?;
        write.touch(Topic::Handle, &former.handle);
        write.touch(Topic::Handle, &company.handle);
    }
    sqlx::query(
        "UPDATE companies
         SET handle = $2, name = $3, description = $4, status = $5, updated_at = $6, website = $7, logo_url = $8, industry_id = $9,
             country = $10, contact_email = $11, plan = $12, status_reason = $13
         WHERE id = $1",
    )
    .bind(company.id.as_str())
    .bind(&company.handle)
    .bind(&company.name)
    .bind(company.description.as_deref())
    .bind(company.status.as_str())
    .bind(now.micros())
    .bind(company.profile.website.as_deref())
    .bind(company.profile.logo_url.as_deref())
    .bind(company.profile.industry_id)
    .bind(company.profile.country.as_deref())
    .bind(company.profile.contact_email.as_deref())
    .bind(company.plan.as_str())
    .bind(company.status_reason.as_deref())
    .execute(&mut **write)
    .await?;
    index_company(write, &company.id, &company.name).await?;
    write.touch(Topic::Company, &company.id);
    Ok(())
}

/// Another company's retired handle would take its traffic.
async fn refuse_retired(
    write: &mut Write,
    handle: &str,
    own: Option<&CompanyId>,
    now: Timestamp,
) -> Result<(), StoreError> {
    let row = sqlx::query(
        "SELECT company_id
         FROM retired_handles
         WHERE handle = $1 AND expires_at > $2 AND company_id <> $3",
    )
    .bind(handle)
    .bind(now.micros())
    .bind(own.map_or("", CompanyId::as_str))
    .fetch_optional(&mut **write)
    .await?;
    if row.is_some() {
        Err(StoreError::Conflict)
    } else {
        Ok(())
    }
}

async fn retire_handle(
    write: &mut Write,
    company: &Company,
    now: Timestamp,
) -> Result<(), StoreError> {
    sqlx::query(
        "INSERT INTO retired_handles (handle, company_id, expires_at)
         VALUES ($1, $2, $3)
         ON CONFLICT (handle) DO UPDATE SET company_id = $2, expires_at = $3",
    )
    .bind(&company.handle)
    .bind(company.id.as_str())
    .bind(now.after(DAY * HANDLE_GRACE_DAYS).micros())
    .execute(&mut **write)
    .await?;
    Ok(())
}

/// How many handles a company has given up that still route to it, but for two: its present one may have been given up before, and the one
/// that it wants to have again is none any more.
pub async fn retired_handles(
    db: &mut AnyConnection,
    company: &CompanyId,
    present: &str,
    wanted: &str,
    now: Timestamp,
) -> Result<i64, StoreError> {
    sqlx::query(
        "SELECT COUNT(*) AS retired
         FROM retired_handles
         WHERE company_id = $1 AND expires_at > $2 AND handle NOT IN ($3, $4)",
    )
    .bind(company.as_str())
    .bind(now.micros())
    .bind(present)
    .bind(wanted)
    .fetch_one(db)
    .await?
    .number("retired")
}

/// Forgets some retired handles that route nowhere any more; false if there was none.
pub async fn sweep_handles(write: &mut Write, now: Timestamp) -> Result<bool, StoreError> {
    // On a shared store one may be given up anew meanwhile: then it is looked at again, and stays.
    let forgotten = sqlx::query(
        "DELETE FROM retired_handles
         WHERE handle IN (SELECT handle FROM retired_handles WHERE expires_at <= $1 LIMIT $2) AND expires_at <= $1
         RETURNING handle",
    )
    .bind(now.micros())
    .bind(SWEPT_AT_ONCE)
    .fetch_all(&mut **write)
    .await?;
    for row in &forgotten {
        write.touch(Topic::Handle, row.text("handle")?);
    }
    Ok(!forgotten.is_empty())
}

fn from_row(row: &AnyRow) -> Result<Company, StoreError> {
    Ok(Company {
        id: row.id("id")?,
        handle: row.text("handle")?,
        name: row.text("name")?,
        description: row.text_opt("description")?,
        profile: Profile {
            website: row.text_opt("website")?,
            logo_url: row.text_opt("logo_url")?,
            industry_id: row.number_opt("industry_id")?,
            country: row.text_opt("country")?,
            contact_email: row.text_opt("contact_email")?,
        },
        status: CompanyStatus::read(&row.text("status")?)?,
        status_reason: row.text_opt("status_reason")?,
        plan: row.id("plan")?,
        is_platform: row.flag("is_platform")?,
        created_at: row.time("created_at")?,
        updated_at: row.time("updated_at")?,
    })
}
