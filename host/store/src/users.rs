//! People. How they sign in is not this file's business.

use crate::changes::Topic;
use crate::db::Write;
use crate::error::StoreError;
use crate::fields::{Fields, corrupt};
use crate::lists::{List, Listed, Part, Values};
use souk_domain::ids::{CompanyId, UserId};
use souk_domain::roles::Role;
use souk_domain::time::Timestamp;
use sqlx::AnyConnection;
use sqlx::any::AnyRow;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct User {
    pub id: UserId,
    pub company_id: CompanyId,
    pub email: Option<String>,
    pub name: String,
    pub role: Role,
    pub is_active: bool,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
}

#[derive(Debug, Clone)]
pub struct NewUser<'a> {
    pub company_id: &'a CompanyId,
    pub email: Option<&'a str>,
    pub name: &'a str,
    pub role: Role,
}

/// Adds a user. [`StoreError::Conflict`]: the email address belongs to another one.
pub async fn insert(
    write: &mut Write,
    user: &NewUser<'_>,
    now: Timestamp,
) -> Result<User, StoreError> {
    let user = User {
        id: UserId::generate(),
        company_id: user.company_id.clone(),
        email: user.email.map(str::to_lowercase),
        name: user.name.to_owned(),
        role: user.role,
        is_active: true,
        created_at: now,
        updated_at: now,
    };
    sqlx::query(
        "INSERT INTO users (id, company_id, email, name, role, status, created_at, updated_at)
         VALUES ($1, $2, $3, $4, $5, 'active', $6, $6)",
    )
    .bind(user.id.as_str())
    .bind(user.company_id.as_str())
    .bind(user.email.as_deref())
    .bind(&user.name)
    .bind(i64::from(user.role.level()))
    .bind(now.micros())
    .execute(&mut **write)
    .await?;
    Ok(user)
}

pub async fn get(
    db: &mut AnyConnection,
    company: &CompanyId,
    id: &UserId,
) -> Result<Option<User>, StoreError> {
    let row = sqlx::query(
        "SELECT id, company_id, email, name, role, status, created_at, updated_at
         FROM users
         WHERE id = $1 AND company_id = $2",
    )
    .bind(id.as_str())
    .bind(company.as_str())
    .fetch_optional(db)
    .await?;
    row.as_ref().map(from_row).transpose()
}

static LIST: List = List::new(
    "id, company_id, email, name, role, status, created_at, updated_at",
    "FROM users WHERE company_id = $1",
    "created_at, id",
    1,
);

/// The company's users, oldest first.
pub async fn list(
    db: &mut AnyConnection,
    company: &CompanyId,
    part: Part,
) -> Result<Listed<User>, StoreError> {
    let bind = |values: &mut Values| {
        values.text(Some(company.as_str()));
    };
    LIST.fetch(db, part, bind, from_row).await
}

/// Writes email, name, role and whether the user is active. Keys of a deactivated user stop working with it.
pub async fn update(write: &mut Write, user: &User, now: Timestamp) -> Result<(), StoreError> {
    let updated = sqlx::query(
        "UPDATE users
         SET email = $3, name = $4, role = $5, status = $6, updated_at = $7
         WHERE id = $1 AND company_id = $2",
    )
    .bind(user.id.as_str())
    .bind(user.company_id.as_str())
    .bind(user.email.as_deref())
    .bind(&user.name)
    .bind(i64::from(user.role.level()))
    .bind(if user.is_active {
        "active"
    } else {
        "deactivated"
    })
    .bind(now.micros())
    .execute(&mut **write)
    .await?;
    // Keys are cached together with the state of their user and company.
    write.touch(Topic::Company, &user.company_id);
    if updated.rows_affected() == 0 {
        Err(StoreError::NotFound)
    } else {
        Ok(())
    }
}

fn from_row(row: &AnyRow) -> Result<User, StoreError> {
    Ok(User {
        id: row.id("id")?,
        company_id: row.id("company_id")?,
        email: row.text_opt("email")?,
        name: row.text("name")?,
        role: role(row)?,
        is_active: row.text("status")? == "active",
        created_at: row.time("created_at")?,
        updated_at: row.time("updated_at")?,
    })
}

pub(crate) fn role(row: &AnyRow) -> Result<Role, StoreError> {
    let level = row.number("role")?;
    Role::from_level(level).ok_or_else(|| corrupt("role", format!("no role {level}")))
}
