use crate::query::parameters;
use crate::{ApiState, Caller, List, Operation, Paging, Problem, Query, Text, words};
use axum::extract::State;
use serde::Serialize;
use souk_domain::ids::CompanyId;
use souk_domain::roles::{Permission, Role};
use souk_domain::time::Timestamp;
use souk_store::companies::{self, Company};
use utoipa::ToSchema;

pub const OPERATION: Operation = Operation::get("list_all_companies", "/admin/companies")
    .about("Companies", "List all companies, newest first")
    .notes("Platform staff only.")
    .needs(Role::SuperAdmin, Permission::Read);

parameters! {
    pub struct Wanted {
        ..paging: Paging,
        /// Only companies with this in their name or handle; a to z in whatever case.
        q: Option<Text<0, 255>>,
    }
}

#[derive(Serialize, ToSchema)]
pub struct ListedCompany {
    #[schema(value_type = String)]
    id: CompanyId,
    name: String,
    handle: String,
    contact_email: Option<String>,
    #[schema(value_type = words::Plan)]
    plan: &'static str,
    #[schema(value_type = words::CompanyStatus)]
    status: &'static str,
    /// The company of the platform's own staff.
    is_platform: bool,
    #[schema(value_type = String, format = DateTime)]
    created_at: Timestamp,
}

impl From<Company> for ListedCompany {
    fn from(company: Company) -> ListedCompany {
        ListedCompany {
            plan: company.plan.as_str(),
            status: company.status.as_str(),
            id: company.id,
            name: company.name,
            handle: company.handle,
            contact_email: company.profile.contact_email,
            is_platform: company.is_platform,
            created_at: company.created_at,
        }
    }
}

pub async fn list_all_companies(
    State(api): State<ApiState>,
    _: Caller,
    Query(query): Query<Wanted>,
) -> Result<List<ListedCompany>, Problem> {
    let page = query.paging.page();
    let mut read = api.db().read().await?;
    let listed = companies::list(&mut read, query.q.as_deref(), page.part()).await?;
    Ok(List::of(page, listed, ListedCompany::from))
}
