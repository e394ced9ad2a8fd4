use super::product_counts;
use super::shape::IndustryOut;
use crate::refusals::INDUSTRY_NOT_FOUND;
use crate::{ApiState, Caller, Data, Operation, Path, Problem};
use axum::extract::State;
use souk_domain::reference::industries;

pub const OPERATION: Operation = Operation::get("get_industry", "/industries/{industry_id}")
    .about("Reference data", "Get an industry")
    .refuses(&[INDUSTRY_NOT_FOUND]);

/// Gets an industry, with how many products name it.
pub async fn get_industry(
    State(api): State<ApiState>,
    _: Caller,
    Path(id): Path<String>,
) -> Result<Data<IndustryOut>, Problem> {
    let found = id.parse().ok().and_then(industries::industry);
    let industry = found.ok_or_else(|| Problem::not_found("industry", &id))?;
    Ok(Data(IndustryOut::of(
        industry,
        &product_counts(&api).await?,
    )))
}
