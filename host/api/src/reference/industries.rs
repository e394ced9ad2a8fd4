use super::product_counts;
use super::shape::{Classification, IndustryOut, classified};
use crate::{ApiState, Caller, Grouped, Operation, Problem};
use axum::extract::State;
use souk_domain::reference::INDUSTRIES;

pub const OPERATION: Operation = Operation::get("list_industries", "/industries")
    .about("Reference data", "List industries")
    .notes(
        "The sectors and subsectors of NAICS 2022 (U.S. Census Bureau, in the public domain), each sector before its subsectors. An id is the \
         number of the code; of a sector with a range of codes the first.",
    );

/// Lists all industries, with how many products name each.
pub async fn list_industries(
    State(api): State<ApiState>,
    _: Caller,
) -> Result<Grouped<IndustryOut, Classification>, Problem> {
    let counts = product_counts(&api).await?;
    let industries = INDUSTRIES.iter();
    Ok(classified(
        industries
            .map(|industry| IndustryOut::of(industry, &counts))
            .collect(),
    ))
}
