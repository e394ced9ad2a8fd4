use super::shape::TransactionOut;
use crate::refusals::TRANSACTION_NOT_FOUND;
use crate::{ApiState, Caller, Data, Operation, Path, Problem};
use axum::extract::State;
use souk_domain::ids::CompanyId;
use souk_store::statements;

pub const OPERATION: Operation = Operation::get(
    "get_transaction",
    "/companies/{company_id}/credits/transactions/{transaction_id}",
)
.about("Credits", "Show a line of the statement")
.refuses(&[TRANSACTION_NOT_FOUND]);

/// Shows a line of a company's statement.
pub async fn get_transaction(
    State(api): State<ApiState>,
    caller: Caller,
    Path((_, id)): Path<(CompanyId, String)>,
) -> Result<Data<TransactionOut>, Problem> {
    let mut read = api.db().read().await?;
    let line = statements::get(&mut read, caller.company(), &id).await?;
    let line = line.ok_or_else(|| Problem::not_found("transaction", &id))?;
    Ok(Data(line.into()))
}
