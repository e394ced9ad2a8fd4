//! Companies and their users as clients see them.

use crate::words;
use serde::Serialize;
use souk_domain::ids::{CompanyId, UserId};
use souk_domain::time::Timestamp;
use souk_store::companies::Company;
use souk_store::users::User;
use utoipa::ToSchema;

#[derive(Clone, Serialize, ToSchema)]
#[schema(as = Company)]
pub struct CompanyOut {
    #[schema(value_type = String)]
    pub id: CompanyId,
    pub name: String,
    /// The subdomain of the company's data routes.
    pub handle: String,
    pub description: Option<String>,
    pub website: Option<String>,
    pub logo_url: Option<String>,
    pub industry_id: Option<i64>,
    /// ISO 3166-1, two letters.
    pub country: Option<String>,
    pub contact_email: Option<String>,
    /// Below so many credits the company's balance is low, and `credits.low` is sent to its webhooks. 0: never.
    #[schema(minimum = 0)]
    pub credits_low_threshold: i64,
    #[schema(value_type = words::Plan)]
    pub plan: &'static str,
    #[schema(value_type = words::CompanyStatus)]
    pub status: &'static str,
    #[schema(value_type = String, format = DateTime)]
    pub created_at: Timestamp,
    #[schema(value_type = String, format = DateTime)]
    pub updated_at: Timestamp,
}

impl CompanyOut {
    pub fn of(company: &Company, credits_low_threshold: i64) -> CompanyOut {
        let profile = company.profile.clone();
        CompanyOut {
            id: company.id.clone(),
            name: company.name.clone(),
            handle: company.handle.clone(),
            description: company.description.clone(),
            website: profile.website,
            logo_url: profile.logo_url,
            industry_id: profile.industry_id,
            country: profile.country,
            contact_email: profile.contact_email,
            credits_low_threshold,
            plan: company.plan.as_str(),
            status: company.status.as_str(),
            created_at: company.created_at,
            updated_at: company.updated_at,
        }
    }
}

#[derive(Clone, Serialize, ToSchema)]
#[schema(as = User)]
pub struct UserOut {
    #[schema(value_type = String)]
    pub id: UserId,
    #[schema(value_type = String)]
    pub company_id: CompanyId,
    /// In lower case. No other user of the company has it.
    pub email: Option<String>,
    /// Somebody who reads mail there has shown it, or the provider by which the user signs in vouches for it: of all companies' users with one
    /// address one at most.
    pub email_verified: bool,
    pub name: String,
    pub avatar_url: Option<String>,
    #[schema(maximum = 5, minimum = 1)]
    pub role_id: u8,
    /// One of `GET /job-functions`.
    pub job_function_id: Option<i64>,
    /// By which the user signed in first; `null` before that.
    pub auth_provider: Option<String>,
    /// `active`, `invited` (has not come in yet) or `disabled` (may not come in, and nor may its keys)
    #[schema(value_type = words::UserStatus)]
    pub status: &'static str,
    #[schema(value_type = Option<String>, format = DateTime)]
    pub last_login_at: Option<Timestamp>,
    #[schema(value_type = String, format = DateTime)]
    pub created_at: Timestamp,
    #[schema(value_type = String, format = DateTime)]
    pub updated_at: Timestamp,
}

impl From<&User> for UserOut {
    fn from(user: &User) -> UserOut {
        UserOut {
            id: user.id.clone(),
            company_id: user.company_id.clone(),
            email: user.email.clone(),
            email_verified: user.email_verified,
            name: user.name.clone(),
            avatar_url: user.avatar_url.clone(),
            role_id: user.role.level(),
            job_function_id: user.job_function_id,
            auth_provider: user.auth_provider.clone(),
            status: user.status.as_str(),
            last_login_at: user.last_login_at,
            created_at: user.created_at,
            updated_at: user.updated_at,
        }
    }
}
