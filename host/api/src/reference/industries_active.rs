use super::product_counts;
use super::shape::{Classification, IndustryOut, classified};
use crate::{ApiState, Caller, Grouped, Operation, Problem};
use axum::extract::State;
use souk_domain::reference::INDUSTRIES;

pub const OPERATION: Operation =
    Operation::get("list_active_industries", "/industries/active-products").about(
        "Reference data",
        "List industries that have products on sale",
    );

/// Lists the industries that at least one product on sale names.
pub async fn list_active_industries(
    State(api): State<ApiState>,
    _: Caller,
) -> Result<Grouped<IndustryOut, Classification>, Problem> {
    let counts = product_counts(&api).await?;
    let industries = INDUSTRIES.iter();
    Ok(classified(
        industries
            .map(|industry| IndustryOut::of(industry, &counts))
            .filter(|industry| industry.product_count > 0)
            .collect(),
    ))
}
