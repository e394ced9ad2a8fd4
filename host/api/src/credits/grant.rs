use crate::idempotency::Once;
use crate::refusals::COMPANY_NOT_FOUND;
use crate::words;
use crate::{ApiState, Body, Caller, Created, Operation, Path, Problem, Text};
use axum::extract::State;
use serde::{Deserialize, Serialize};
use souk_domain::ids::{CompanyId, TransactionId};
use souk_domain::money::Credits;
use souk_domain::roles::{Permission, Role};
use souk_domain::time::Timestamp;
use souk_store::{companies, ledger};
use utoipa::ToSchema;

pub const OPERATION: Operation = Operation::post(
    "grant_credits",
    "/admin/companies/{company_id}/credits/grants",
)
.about("Credits", "Give credits to a company")
.notes("Platform staff only.")
.needs(Role::SuperAdmin, Permission::Write)
.refuses(&[COMPANY_NOT_FOUND]);

/// A bound against typing errors.
const GRANT_CREDITS_MAX: i64 = 1_000_000_000;

#[derive(Deserialize, ToSchema)]
pub struct GrantIn {
    #[schema(minimum = 1, maximum = 1000000000)]
    credits: i64,
    #[schema(value_type = String, min_length = 1, max_length = 500)]
    reason: Text<1, 500>,
}

#[derive(Serialize, ToSchema)]
#[schema(as = Grant)]
pub struct GrantOut {
    #[schema(value_type = String)]
    id: TransactionId,
    #[schema(value_type = String)]
    company_id: CompanyId,
    #[schema(value_type = words::TransactionType)]
    r#type: &'static str,
    #[schema(value_type = words::TransactionStatus)]
    status: &'static str,
    #[schema(minimum = 0)]
    amount_credits: i64,
    balance_after_credits: Option<i64>,
    description: Option<String>,
    #[schema(value_type = String, format = DateTime)]
    created_at: Timestamp,
}

/// Gives credits out of the platform's pocket.
pub async fn grant_credits(
    State(api): State<ApiState>,
    caller: Caller,
    Path(company): Path<CompanyId>,
    once: Once,
    Body(body): Body<GrantIn>,
) -> Result<Created<GrantOut>, Problem> {
    if !(1..=GRANT_CREDITS_MAX).contains(&body.credits) {
        return Err(Problem::invalid(
            "credits",
            format!("must be 1 to {GRANT_CREDITS_MAX}"),
        ));
    }
    let credits = Credits::new(body.credits)
        .map_err(|error| Problem::invalid("credits", error.to_string()))?;
    api.db()
        .write(async |write| {
            companies::get(write, &company)
                .await?
                .ok_or_else(|| Problem::not_found("company", company.as_str()))?;
            // Not when its head came: the statement is in the order of its times, and its body may have been long on its way.
            let now = api.app().clock.now();
            let transaction = ledger::grant(
                write,
                &company,
                credits,
                &body.reason,
                Some(caller.actor()),
                now,
            )
            .await?;
            let granted = Created {
                location: format!(
                    "/companies/{company}/credits/transactions/{}",
                    transaction.id
                ),
                data: GrantOut {
                    id: transaction.id,
                    company_id: company,
                    r#type: "grant",
                    status: "posted",
                    amount_credits: transaction.credits,
                    balance_after_credits: transaction.balance_after,
                    description: transaction.description,
                    created_at: transaction.created_at,
                },
            };
            once.keep(write, &granted).await?;
            Ok(granted)
        })
        .await
}
