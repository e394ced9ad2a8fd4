//! A company with its first user and key, in one transaction: the platform's own at the first start, others on request.

use crate::companies::{self, Company, NewCompany};
use crate::db::Write;
use crate::error::StoreError;
use crate::keys::{self, Key, NewKey};
use crate::lists::Part;
use crate::users::{self, NewUser, User, UserFilter, UserStatus};
use souk_domain::keys::{KeySecret, KeyType};
use souk_domain::limits::KEY_LIMIT_MAX;
use souk_domain::roles::{Grant, Permissions, Role};
use souk_domain::time::Timestamp;

#[derive(Debug, Clone)]
pub struct Founding<'a> {
    pub company: NewCompany<'a>,
    pub user_name: &'a str,
    pub email: Option<&'a str>,
    /// Of the user and the key.
    pub role: Role,
    pub rate_limit: i64,
}

#[derive(Debug)]
pub struct Founded {
    pub company: Company,
    pub user: User,
    pub key: Key,
    /// To be shown once.
    pub secret: KeySecret,
}

/// Adds the company, the user and the key. [`StoreError::Conflict`]: the handle is taken.
pub async fn found(
    write: &mut Write,
    founding: &Founding<'_>,
    now: Timestamp,
) -> Result<Founded, StoreError> {
    let company = companies::insert(write, &founding.company, now).await?;
    let user = NewUser {
        company_id: &company.id,
        email: founding.email,
        name: founding.user_name,
        role: founding.role,
        job_function_id: None,
        status: UserStatus::Active,
    };
    let user = users::insert(write, &user, now).await?;
    let secret = KeySecret::generate(KeyType::Analytics);
    let key = NewKey {
        company_id: &company.id,
        user_id: Some(&user.id),
        endpoint_id: None,
        purchase_id: None,
        name: "first key",
        description: None,
        grant: Grant {
            role: founding.role,
            permissions: Permissions::READ_WRITE,
        },
        rate_limit: founding.rate_limit,
        created_by: Some(user.id.as_str()),
        expires_at: None,
    };
    let key = keys::insert(write, &key, &secret, now).await?;
    Ok(Founded {
        company,
        user,
        key,
        secret,
    })
}

/// Founds the platform's company unless that was done before; `Some` only the first time.
pub async fn found_platform(
    write: &mut Write,
    now: Timestamp,
) -> Result<Option<Founded>, StoreError> {
    if companies::platform(write).await?.is_some() {
        return Ok(None);
    }
    let founding = Founding {
        company: NewCompany {
            handle: "platform",
            name: "Platform",
            description: None,
            is_platform: true,
        },
        user_name: "Operator",
        email: None,
        role: Role::SuperAdmin,
        rate_limit: KEY_LIMIT_MAX,
    };
    found(write, &founding, now).await.map(Some)
}

/// A new key of role 5 for the platform's company, as the first one was, for whoever has lost it: of the first of its staff who may sign in, or of
/// a new operator if there is none. `None`: this store was never founded.
pub async fn recover_platform_key(
    write: &mut Write,
    now: Timestamp,
) -> Result<Option<(Key, KeySecret)>, StoreError> {
    let Some(platform) = companies::platform(write).await? else {
        return Ok(None);
    };
    let staff = UserFilter {
        status: Some(UserStatus::Active),
        role: Some(Role::SuperAdmin),
        part: None,
    };
    let (mut found, _) = users::list(write, &platform.id, &staff, Part::first(1)).await?;
    let user = match found.pop() {
        Some(user) => user,
        None => {
            let user = NewUser {
                company_id: &platform.id,
                email: None,
                name: "Operator",
                role: Role::SuperAdmin,
                job_function_id: None,
                status: UserStatus::Active,
            };
            users::insert(write, &user, now).await?
        }
    };
    let secret = KeySecret::generate(KeyType::Analytics);
    let key = NewKey {
        company_id: &platform.id,
        user_id: Some(&user.id),
        endpoint_id: None,
        purchase_id: None,
        name: "recovered key",
        description: Some("made on the operator's machine: souk keys recover"),
        grant: Grant {
            role: Role::SuperAdmin,
            permissions: Permissions::READ_WRITE,
        },
        rate_limit: KEY_LIMIT_MAX,
        created_by: Some(user.id.as_str()),
        expires_at: None,
    };
    let key = keys::insert(write, &key, &secret, now).await?;
    Ok(Some((key, secret)))
}
