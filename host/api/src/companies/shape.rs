//! Companies and their users as clients see them.

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
    /// `active` or `suspended`
    pub status: &'static str,
    #[schema(value_type = String, format = DateTime)]
    pub created_at: Timestamp,
    #[schema(value_type = String, format = DateTime)]
    pub updated_at: Timestamp,
}

impl From<&Company> for CompanyOut {
    fn from(company: &Company) -> CompanyOut {
        CompanyOut {
            id: company.id.clone(),
            name: company.name.clone(),
            handle: company.handle.clone(),
            description: company.description.clone(),
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
    pub email: Option<String>,
    pub name: String,
    pub role_id: u8,
    /// `active` or `disabled`
    pub status: &'static str,
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
            name: user.name.clone(),
            role_id: user.role.level(),
            status: if user.is_active { "active" } else { "disabled" },
            created_at: user.created_at,
            updated_at: user.updated_at,
        }
    }
}
