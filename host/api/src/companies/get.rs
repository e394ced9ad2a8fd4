use super::shape::CompanyOut;
use crate::refusals::COMPANY_NOT_FOUND;
use crate::{ApiState, Caller, Data, Operation, Problem};
use axum::extract::State;
use souk_store::{companies, ledger};

pub const OPERATION: Operation = Operation::get("get_company", "/companies/{company_id}")
    .about("Companies", "Show the own company");

pub const ME: Operation = Operation::get("my_company", "/companies/me")
    .about("Companies", "Show the company of the key")
    .any_company()
    .refuses(&[COMPANY_NOT_FOUND]);

/// Shows the path's company.
pub async fn get_company(
    State(api): State<ApiState>,
    caller: Caller,
) -> Result<Data<CompanyOut>, Problem> {
    let mut read = api.db().read().await?;
    let company = companies::get(&mut read, caller.company()).await?;
    let company =
        company.ok_or_else(|| Problem::not_found("company", caller.company().as_str()))?;
    let low_at = ledger::low_at(&mut read, &company.id).await?;
    Ok(Data(CompanyOut::of(&company, low_at)))
}

/// Shows the key's company.
pub async fn my_company(api: State<ApiState>, caller: Caller) -> Result<Data<CompanyOut>, Problem> {
    get_company(api, caller).await
}
