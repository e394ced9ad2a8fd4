use super::change;
use super::shape::CompanyOut;
use crate::refusals::{COMPANY_NOT_FOUND, CONFLICT};
use crate::words;
use crate::{ApiState, Body, Caller, Data, Operation, Path, Problem, Text};
use axum::extract::State;
use serde::Deserialize;
use souk_domain::ids::CompanyId;
use souk_domain::roles::{Permission, Role};
use souk_store::companies::CompanyStatus;
use utoipa::ToSchema;

pub const OPERATION: Operation = Operation::put("set_company_status", "/admin/companies/{company_id}/status")
    .about("Companies", "Suspend a company, or end that")
    .notes(
        "Platform staff only. From the next request on, the keys and sessions of a company that is `suspended` are refused (403 `COMPANY_SUSPENDED`). \
         Its products are neither found nor sold, and are not run for those who have bought them either (409 `SELLER_SUSPENDED`, free of charge); its \
         posts are neither read nor published elsewhere, and its alerts not evaluated. Nothing is lost: with `active` all is as it was. `reason` \
         is for the audit log, which has who did it. The platform's own company is always active (409 `CONFLICT`).",
    )
    .needs(Role::SuperAdmin, Permission::Write)
    .refuses(&[COMPANY_NOT_FOUND, CONFLICT]);

#[derive(Deserialize, ToSchema)]
pub struct CompanyStatusIn {
    #[schema(value_type = words::CompanyStatus)]
    status: String,
    /// Why: what the company reads of it in its audit log, once it is active again.
    #[schema(value_type = Option<String>, max_length = 500)]
    reason: Option<Text<0, 500>>,
}

/// Suspends a company, or ends that.
pub async fn set_company_status(
    State(api): State<ApiState>,
    caller: Caller,
    Path(id): Path<CompanyId>,
    Body(body): Body<CompanyStatusIn>,
) -> Result<Data<CompanyOut>, Problem> {
    let status = CompanyStatus::of(&body.status)
        .ok_or_else(|| Problem::invalid("status", "must be active or suspended"))?;
    let reason = body.reason.map(Text::into_string);
    let changed = change(&api, &caller, &id, |company| {
        if company.is_platform && status == CompanyStatus::Suspended {
            return Err(Problem::of(
                CONFLICT,
                "this is the platform's own company, without whose staff nobody could end that: disable its users or revoke its keys instead",
            ));
        }
        company.status = status;
        company.status_reason = reason;
        Ok(())
    });
    changed.await.map(Data)
}
