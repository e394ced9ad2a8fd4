//! People: who they are, in which company and role, and whether they may come in. How they show who they are is not this file's business.

use crate::changes::Topic;
use crate::db::Write;
use crate::error::StoreError;
use crate::fields::{Fields, corrupt};
use crate::lists::{List, Listed, Part, Values, containing};
use souk_domain::ids::{CompanyId, UserId};
use souk_domain::roles::Role;
use souk_domain::time::Timestamp;
use sqlx::AnyConnection;
use sqlx::any::AnyRow;

/// More than a company of this service has people who touch its data; what counts them is an administrator, not a script.
pub const USERS_MAX: i64 = 1_000;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UserStatus {
    /// Has not come in yet.
    Invited,
    Active,
    /// May not come in, and nor may its keys.
    Disabled,
}

impl UserStatus {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Invited => "invited",
            Self::Active => "active",
            Self::Disabled => "disabled",
        }
    }

    pub(crate) fn read(text: &str) -> Result<Self, StoreError> {
        [Self::Invited, Self::Active, Self::Disabled]
            .into_iter()
            .find(|status| status.as_str() == text)
            .ok_or_else(|| corrupt("status", format!("{text:?}")))
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct User {
    pub id: UserId,
    pub company_id: CompanyId,
    /// In lower case; no other user of the company has it.
    pub email: Option<String>,
    /// Somebody who reads mail there has shown it: of all companies' users with this address one has.
    pub email_verified: bool,
    pub name: String,
    pub avatar_url: Option<String>,
    pub role: Role,
    pub job_function_id: Option<i64>,
    /// By which the user signed in.
    pub auth_provider: Option<String>,
    pub status: UserStatus,
    pub last_login_at: Option<Timestamp>,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
}

#[derive(Debug, Clone)]
pub struct NewUser<'a> {
    pub company_id: &'a CompanyId,
    pub email: Option<&'a str>,
    pub name: &'a str,
    pub role: Role,
    pub job_function_id: Option<i64>,
    pub status: UserStatus,
}

/// Adds a user. [`StoreError::Conflict`]: another one of the company has the email address.
pub async fn insert(
    write: &mut Write,
    user: &NewUser<'_>,
    now: Timestamp,
) -> Result<User, StoreError> {
    let user = User {
        id: UserId::generate(),
        company_id: user.company_id.clone(),
        email: user.email.map(str::to_lowercase),
        email_verified: false,
        name: user.name.to_owned(),
        avatar_url: None,
        role: user.role,
        job_function_id: user.job_function_id,
        auth_provider: None,
        status: user.status,
        last_login_at: None,
        created_at: now,
        updated_at: now,
    };
    sqlx::query(
        "INSERT INTO users (id, company_id, email, name, role, job_function_id, status, created_at, updated_at)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $8)",
    )
    .bind(user.id.as_str())
    .bind(user.company_id.as_str())
    .bind(user.email.as_deref())
    .bind(&user.name)
    .bind(i64::from(user.role.level()))
    .bind(user.job_function_id)
    .bind(user.status.as_str())
    .bind(now.micros())
    .execute(&mut **write)
    .await?;
    Ok(user)
}

macro_rules! columns {
    () => {
        "id, company_id, email, email_verified, name, avatar_url, role, job_function_id, auth_provider, status, last_login_at,
         created_at, updated_at"
    };
}

/// A user of the company's, unless it was removed.
pub async fn get(
    db: &mut AnyConnection,
    company: &CompanyId,
    id: &UserId,
) -> Result<Option<User>, StoreError> {
    let row = sqlx::query(concat!(
        "SELECT ",
        columns!(),
        " FROM users WHERE id = $1 AND company_id = $2 AND deleted_at IS NULL"
    ))
    .bind(id.as_str())
    .bind(company.as_str())
    .fetch_optional(db)
    .await?;
    row.as_ref().map(from_row).transpose()
}

/// The user whom a provider knows by this subject.
pub async fn by_identity(
    db: &mut AnyConnection,
    provider: &str,
    subject: &str,
) -> Result<Option<User>, StoreError> {
    let row = sqlx::query(concat!(
        "SELECT ",
        columns!(),
        " FROM users WHERE auth_provider = $1 AND auth_subject = $2 AND deleted_at IS NULL"
    ))
    .bind(provider)
    .bind(subject)
    .fetch_optional(db)
    .await?;
    row.as_ref().map(from_row).transpose()
}

/// The user of whom it was shown that this address, which is in lower case, is theirs.
pub async fn by_proven_email(
    db: &mut AnyConnection,
    email: &str,
) -> Result<Option<User>, StoreError> {
    let row = sqlx::query(concat!(
        "SELECT ",
        columns!(),
        " FROM users WHERE email = $1 AND email_verified = 1 AND deleted_at IS NULL"
    ))
    .bind(email)
    .fetch_optional(db)
    .await?;
    row.as_ref().map(from_row).transpose()
}

/// Users, of one company or of any, of whom only their company says that this address, which is in lower case, is theirs: who came in, or whose
/// invitation holds. At most two: whoever is looked for is the only one, or is not found.
pub async fn by_unproven_email(
    db: &mut AnyConnection,
    email: &str,
    company: Option<&CompanyId>,
    now: Timestamp,
) -> Result<Vec<User>, StoreError> {
    let rows = sqlx::query(concat!(
        "SELECT ",
        columns!(),
        " FROM users
         WHERE email = $1 AND email_verified = 0 AND auth_provider IS NULL AND deleted_at IS NULL
           AND (CAST($2 AS TEXT) IS NULL OR company_id = $2)
           AND (status <> 'invited'
                OR EXISTS (SELECT i.user_id FROM invitations AS i WHERE i.user_id = users.id AND i.expires_at > $3))
         LIMIT 2"
    ))
    .bind(email)
    .bind(company.map(CompanyId::as_str))
    .bind(now.micros())
    .fetch_all(db)
    .await?;
    rows.iter().map(from_row).collect()
}

/// Which of a company's users to list. Empty fields match all.
#[derive(Debug, Clone, Default)]
pub struct UserFilter {
    pub status: Option<UserStatus>,
    pub role: Option<Role>,
    /// In name or email address.
    pub part: Option<String>,
}

static LIST: List = List::new(
    columns!(),
    "FROM users
     WHERE company_id = $1 AND deleted_at IS NULL
       AND (CAST($2 AS TEXT) IS NULL OR status = $2)
       AND (CAST($3 AS BIGINT) IS NULL OR role = $3)
       AND (CAST($4 AS TEXT) IS NULL OR LOWER(name || ' ' || COALESCE(email, '')) LIKE LOWER($4) ESCAPE '!')",
    "created_at, id",
    4,
);

/// The company's users, oldest first.
pub async fn list(
    db: &mut AnyConnection,
    company: &CompanyId,
    filter: &UserFilter,
    part: Part,
) -> Result<Listed<User>, StoreError> {
    let pattern = filter.part.as_deref().map(containing);
    let bind = |values: &mut Values| {
        values
            .text(Some(company.as_str()))
            .text(filter.status.map(UserStatus::as_str))
            .number(filter.role.map(|role| i64::from(role.level())))
            .text(pattern.as_deref());
    };
    LIST.fetch(db, part, bind, from_row).await
}

/// The company's first user who is active: whom staff act for there.
pub async fn first(
    db: &mut AnyConnection,
    company: &CompanyId,
) -> Result<Option<UserId>, StoreError> {
    let filter = UserFilter {
        status: Some(UserStatus::Active),
        ..UserFilter::default()
    };
    let (first, _) = list(db, company, &filter, Part::first(1)).await?;
    Ok(first.into_iter().next().map(|user| user.id))
}

/// How many users the company has, whatever their status.
pub async fn count(db: &mut AnyConnection, company: &CompanyId) -> Result<i64, StoreError> {
    sqlx::query("SELECT COUNT(*) AS total FROM users WHERE company_id = $1 AND deleted_at IS NULL")
        .bind(company.as_str())
        .fetch_one(db)
        .await?
        .number("total")
}

/// How many active users besides this one have at least `role`.
pub async fn others_with(
    db: &mut AnyConnection,
    company: &CompanyId,
    id: &UserId,
    role: Role,
) -> Result<i64, StoreError> {
    sqlx::query(
        "SELECT COUNT(*) AS total
         FROM users
         WHERE company_id = $1 AND id <> $2 AND role >= $3 AND status = 'active' AND deleted_at IS NULL",
    )
    .bind(company.as_str())
    .bind(id.as_str())
    .bind(i64::from(role.level()))
    .fetch_one(db)
    .await?
    .number("total")
}

/// Writes what may change: the name and what else users tell of themselves, role and status. Keys of a disabled user stop working with it.
pub async fn update(write: &mut Write, user: &User, now: Timestamp) -> Result<(), StoreError> {
    let updated = sqlx::query(
        "UPDATE users
         SET name = $3, avatar_url = $4, role = $5, job_function_id = $6, status = $7, updated_at = $8
         WHERE id = $1 AND company_id = $2 AND deleted_at IS NULL",
    )
    .bind(user.id.as_str())
    .bind(user.company_id.as_str())
    .bind(&user.name)
    .bind(user.avatar_url.as_deref())
    .bind(i64::from(user.role.level()))
    .bind(user.job_function_id)
    .bind(user.status.as_str())
    .bind(now.micros())
    .execute(&mut **write)
    .await?;
    // Credentials are cached together with the state of their user and company.
    write.touch(Topic::Company, &user.company_id);
    if updated.rows_affected() == 0 {
        Err(StoreError::NotFound)
    } else {
        Ok(())
    }
}

/// How a user came in.
#[derive(Debug, Clone, Copy)]
pub struct Arrival<'a> {
    /// By which identity provider, and as whom there. `None`: by an invitation.
    pub identity: Option<(&'a str, &'a str)>,
    /// It was shown that the user reads mail at its address.
    pub email_verified: bool,
}

/// Notes that a user came in: whoever was invited is active from here on. [`StoreError::Conflict`]: another user is the same one there, or it was
/// shown before that the address is another user's. [`StoreError::NotFound`]: the user was removed meanwhile.
pub async fn arrive(
    write: &mut Write,
    user: &User,
    arrival: &Arrival<'_>,
    now: Timestamp,
) -> Result<User, StoreError> {
    let (provider, subject) = arrival.identity.unzip();
    let arrived = sqlx::query(
        "UPDATE users
         SET status = 'active', email_verified = $3, auth_provider = COALESCE($4, auth_provider),
             auth_subject = COALESCE($5, auth_subject), last_login_at = $6
         WHERE id = $1 AND company_id = $2 AND deleted_at IS NULL",
    )
    .bind(user.id.as_str())
    .bind(user.company_id.as_str())
    .bind(i64::from(user.email_verified || arrival.email_verified))
    .bind(provider)
    .bind(subject)
    .bind(now.micros())
    .execute(&mut **write)
    .await?;
    if arrived.rows_affected() == 0 {
        return Err(StoreError::NotFound);
    }
    write.touch(Topic::Company, &user.company_id);
    Ok(User {
        status: UserStatus::Active,
        email_verified: user.email_verified || arrival.email_verified,
        auth_provider: provider
            .map(str::to_owned)
            .or_else(|| user.auth_provider.clone()),
        last_login_at: Some(now),
        ..user.clone()
    })
}

/// Removes a user: the address is free again, in all companies, and what others made with it keeps its id and name.
pub async fn remove(write: &mut Write, user: &User, now: Timestamp) -> Result<(), StoreError> {
    sqlx::query(
        "UPDATE users
         SET email = NULL, email_verified = 0, avatar_url = NULL, auth_provider = NULL, auth_subject = NULL, status = 'disabled',
             deleted_at = $3, updated_at = $3
         WHERE id = $1 AND company_id = $2 AND deleted_at IS NULL",
    )
    .bind(user.id.as_str())
    .bind(user.company_id.as_str())
    .bind(now.micros())
    .execute(&mut **write)
    .await?;
    crate::alerts::pause_all_of(write, &user.id, now).await?;
    write.touch(Topic::Company, &user.company_id);
    Ok(())
}

fn from_row(row: &AnyRow) -> Result<User, StoreError> {
    Ok(User {
        id: row.id("id")?,
        company_id: row.id("company_id")?,
        email: row.text_opt("email")?,
        email_verified: row.flag("email_verified")?,
        name: row.text("name")?,
        avatar_url: row.text_opt("avatar_url")?,
        role: role(row)?,
        job_function_id: row.number_opt("job_function_id")?,
        auth_provider: row.text_opt("auth_provider")?,
        status: UserStatus::read(&row.text("status")?)?,
        last_login_at: row.time_opt("last_login_at")?,
        created_at: row.time("created_at")?,
        updated_at: row.time("updated_at")?,
    })
}

pub(crate) fn role(row: &AnyRow) -> Result<Role, StoreError> {
    let level = row.number("role")?;
    Role::from_level(level).ok_or_else(|| corrupt("role", format!("no role {level}")))
}
