use super::shape::UseCaseOut;
use crate::{Caller, Operation, Problem, Whole};
use souk_domain::reference::ASSET_USE_CASES;

pub const OPERATION: Operation = Operation::get("list_asset_use_cases", "/asset-use-cases")
    .about("Reference data", "List what assets are used for")
    .notes("For `use_case_ids` of a product. The ids are stable.");

/// List what assets are used for.
pub async fn list_asset_use_cases(_: Caller) -> Result<Whole<UseCaseOut>, Problem> {
    Ok(Whole(
        ASSET_USE_CASES.iter().map(UseCaseOut::from).collect(),
    ))
}
