//! Reference data: what people choose from. Storage engines have a module of their own, since they come and go with connectors.

pub mod asset_use_cases;
pub mod cloud_providers;
pub mod industries;
pub mod industries_active;
pub mod industry;
pub mod job_functions;
pub mod shape;

use crate::{ApiState, Problem, Routes};
use souk_store::labels;
use std::collections::HashMap;

pub fn routes() -> Routes {
    Routes::new()
        .add(
            cloud_providers::OPERATION,
            cloud_providers::list_cloud_providers,
        )
        .add(job_functions::OPERATION, job_functions::list_job_functions)
        .add(
            asset_use_cases::OPERATION,
            asset_use_cases::list_asset_use_cases,
        )
        .add(industries::OPERATION, industries::list_industries)
        .add(
            industries_active::OPERATION,
            industries_active::list_active_industries,
        )
        .add(industry::OPERATION, industry::get_industry)
}

/// How many products on sale name each industry.
async fn product_counts(api: &ApiState) -> Result<HashMap<i64, i64>, Problem> {
    let mut read = api.db().read().await?;
    Ok(labels::products_by_industry(&mut read).await?)
}
