use super::change;
use super::shape::CompanyOut;
use crate::refusals::COMPANY_NOT_FOUND;
use crate::words;
use crate::{ApiState, Body, Caller, Data, Operation, Path, Problem};
use axum::extract::State;
use serde::Deserialize;
use souk_domain::ids::CompanyId;
use souk_domain::plans::Plan;
use souk_domain::roles::{Permission, Role};
use utoipa::ToSchema;

pub const OPERATION: Operation = Operation::put("set_company_plan", "/admin/companies/{company_id}/plan")
    .about("Companies", "Choose how many requests a company may send in a month")
    .notes(
        "Platform staff only. Requests in a UTC month: starter 100,000, growth 10,000,000, scale 1,000,000,000, which is every new company's. It \
         holds from the next request; what was sent this month counts.",
    )
    .needs(Role::SuperAdmin, Permission::Write)
    .refuses(&[COMPANY_NOT_FOUND]);

#[derive(Deserialize, ToSchema)]
pub struct PlanIn {
    #[schema(value_type = words::Plan)]
    plan: String,
}

/// Chooses a company's plan.
pub async fn set_company_plan(
    State(api): State<ApiState>,
    caller: Caller,
    Path(id): Path<CompanyId>,
    Body(body): Body<PlanIn>,
) -> Result<Data<CompanyOut>, Problem> {
    let plan: Plan = body
        .plan
        .parse()
        .map_err(|error: souk_domain::plans::NoSuchPlan| {
            Problem::invalid("plan", error.to_string())
        })?;
    let changed = change(&api, &caller, &id, |company| {
        company.plan = plan;
        Ok(())
    });
    changed.await.map(Data)
}
