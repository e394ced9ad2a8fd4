//! Companies: made by platform staff, seen and described by themselves.

pub mod asset_performance;
pub mod create;
pub mod customer_analytics;
pub mod executions;
pub mod failed_executions;
pub mod get;
pub mod list_all;
pub mod objects;
pub mod request_allocation;
pub mod request_usage;
pub mod sales;
pub mod seller_dashboard;
pub mod set_plan;
pub mod set_status;
pub mod shape;
pub mod summary;
pub mod update;

use crate::{ApiState, Caller, Problem, Routes};
use shape::CompanyOut;
use souk_domain::emails::parse_email;
use souk_domain::ids::CompanyId;
use souk_store::companies::Company;
use souk_store::{companies, ledger};

pub fn routes() -> Routes {
    Routes::new()
        .add(create::OPERATION, create::create_company)
        .add(list_all::OPERATION, list_all::list_all_companies)
        .add(get::ME, get::my_company)
        .add(get::OPERATION, get::get_company)
        .add(update::OPERATION, update::update_company)
        .add(summary::OPERATION, summary::company_summary)
        .add(objects::OPERATION, objects::company_objects)
        .add(
            seller_dashboard::OPERATION,
            seller_dashboard::seller_dashboard,
        )
        .add(sales::OPERATION, sales::company_sales)
        .add(
            asset_performance::OPERATION,
            asset_performance::asset_performance,
        )
        .add(
            customer_analytics::OPERATION,
            customer_analytics::customer_analytics,
        )
        .add(executions::OPERATION, executions::list_executions)
        .add(
            failed_executions::OPERATION,
            failed_executions::list_failed_executions,
        )
        .add(request_usage::OPERATION, request_usage::request_usage)
        .add(
            request_allocation::OPERATION,
            request_allocation::request_allocation,
        )
        .add(set_plan::OPERATION, set_plan::set_company_plan)
        .add(set_status::OPERATION, set_status::set_company_status)
}

/// What staff changes of a company.
async fn change(
    api: &ApiState,
    caller: &Caller,
    id: &CompanyId,
    change: impl FnOnce(&mut Company) -> Result<(), Problem>,
) -> Result<CompanyOut, Problem> {
    let changed = api.db().write(async |write| -> Result<_, Problem> {
        // All that a company is gets written at once: whoever changes something else waits.
        companies::lock(write, id).await?;
        let company = companies::get(write, id).await?;
        let mut company = company.ok_or_else(|| Problem::not_found("company", id.as_str()))?;
        change(&mut company)?;
        companies::update(write, &company, caller.now()).await?;
        company.updated_at = caller.now();
        let low_at = ledger::low_at(write, id).await?;
        Ok(CompanyOut::of(&company, low_at))
    });
    changed.await
}

/// Whether mail can be sent there shows when it is sent.
fn check_email(email: &str) -> Result<(), Problem> {
    parse_email(email)
        .map(drop)
        .map_err(|error| Problem::invalid("contact_email", error.to_string()))
}
