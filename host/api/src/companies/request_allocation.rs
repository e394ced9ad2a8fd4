use crate::words;
use crate::{ApiState, Caller, Data, Operation, Problem};
use axum::extract::State;
use serde::Serialize;
use souk_domain::time::{HOUR, Timestamp};
use souk_store::companies;
use utoipa::ToSchema;

pub const OPERATION: Operation = Operation::get("request_allocation", "/companies/{company_id}/request-allocation")
    .about("Companies", "Show how many requests the plan allows")
    .notes(
        "Requests of all keys of the company, and of its people who are signed in, in the UTC month, this one not yet. `request-usage` \
         also counts those that were refused before they were looked at, for the limit of a key or for what a key may not do: they are not of the plan. Plans: starter 100,000 a month, growth 10,000,000, scale 1,000,000,000; the platform's staff chooses. When nothing remains every request \
         of the company but those about its API keys is 429 `RATE_LIMIT_EXCEEDED` with `scope` `company` until the month ends; there is no overage. Hosts that share a store \
         learn of each other's counts within 10 s. `allocations` are the hourly limits of your own key or sign-in: its own, and those of operations that have one.",
    );

#[derive(Serialize, ToSchema)]
#[schema(as = RequestAllocation)]
pub struct AllocationOut {
    #[schema(value_type = words::Plan)]
    plan: &'static str,
    /// The month, `YYYY-MM`.
    period: String,
    #[schema(minimum = 0)]
    allocated_requests: i64,
    #[schema(minimum = 0)]
    used_requests: i64,
    #[schema(minimum = 0)]
    remaining_requests: i64,
    /// Always false: what is beyond the plan is refused.
    overage_allowed: bool,
    /// The first midnight of the next month.
    #[schema(value_type = String, format = DateTime)]
    resets_at: Timestamp,
    allocations: Vec<OperationAllocation>,
}

/// A limit of the calling key in its present hour.
#[derive(Serialize, ToSchema)]
pub struct OperationAllocation {
    /// `key`: all requests of the key; else the id of an operation.
    operation: &'static str,
    limit: u32,
    used: u32,
    #[schema(value_type = String, format = DateTime)]
    resets_at: Timestamp,
}

/// Shows what the company's plan allows, and what is left of it.
pub async fn request_allocation(
    State(api): State<ApiState>,
    caller: Caller,
) -> Result<Data<AllocationOut>, Problem> {
    let now = caller.now();
    let mut read = api.db().read().await?;
    let company = companies::get(&mut read, caller.company()).await?;
    let company =
        company.ok_or_else(|| Problem::not_found("company", caller.company().as_str()))?;
    let allotment = api.allotment(&mut read, &company.id, now).await?;
    let used = allotment.sent(now);
    let left = allotment.left(company.plan.monthly_requests(), now);
    let allocations = caller
        .hourly_limits(api.limited())
        .map(|(operation, quota)| {
            let resets_at = Timestamp::from_micros(i64::from(quota.reset) * 1_000_000);
            OperationAllocation {
                operation,
                limit: quota.limit,
                used: quota.limit - quota.remaining,
                // What is not used begins its hour with the next request.
                resets_at: resets_at.max(now).min(now.after(HOUR)),
            }
        });
    Ok(Data(AllocationOut {
        plan: company.plan.as_str(),
        period: now.date()[.."2026-01".len()].to_owned(),
        allocated_requests: left.limit.into(),
        used_requests: used.into(),
        remaining_requests: left.remaining.into(),
        overage_allowed: false,
        resets_at: now.month().1,
        allocations: allocations.collect(),
    }))
}
