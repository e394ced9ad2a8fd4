//! Reference data as clients see it.

use crate::Grouped;
use serde::Serialize;
use souk_domain::reference::Choice;
use souk_domain::reference::cloud_providers::CloudProvider;
use souk_domain::reference::industries::{self, Industry};
use souk_domain::slugs::slug_from;
use std::collections::HashMap;
use utoipa::ToSchema;

#[derive(Serialize, ToSchema)]
#[schema(as = CloudProvider)]
pub struct CloudProviderOut {
    #[schema(minimum = 1)]
    id: i64,
    name: &'static str,
    slug: &'static str,
    regions: Vec<RegionOut>,
}

#[derive(Serialize, ToSchema)]
#[schema(as = CloudRegion)]
pub struct RegionOut {
    /// As the provider writes it.
    code: &'static str,
    /// Where it is.
    name: &'static str,
}

impl From<&CloudProvider> for CloudProviderOut {
    fn from(provider: &CloudProvider) -> CloudProviderOut {
        let regions = provider.regions.iter();
        CloudProviderOut {
            id: provider.id,
            name: provider.name,
            slug: provider.slug,
            regions: regions
                .map(|(code, name)| RegionOut { code, name })
                .collect(),
        }
    }
}

#[derive(Serialize, ToSchema)]
#[schema(as = JobFunction)]
pub struct JobFunctionOut {
    #[schema(minimum = 1)]
    id: i64,
    name: &'static str,
}

impl From<&Choice> for JobFunctionOut {
    fn from(choice: &Choice) -> JobFunctionOut {
        JobFunctionOut {
            id: choice.id,
            name: choice.name,
        }
    }
}

#[derive(Serialize, ToSchema)]
#[schema(as = AssetUseCase)]
pub struct UseCaseOut {
    #[schema(minimum = 1)]
    id: i64,
    name: &'static str,
    slug: String,
    description: &'static str,
}

impl From<&Choice> for UseCaseOut {
    fn from(choice: &Choice) -> UseCaseOut {
        UseCaseOut {
            id: choice.id,
            name: choice.name,
            slug: slug_from(choice.name).unwrap_or_default(),
            description: choice.description,
        }
    }
}

#[derive(Serialize, ToSchema)]
#[schema(as = Industry)]
pub struct IndustryOut {
    #[schema(minimum = 1)]
    id: i64,
    /// As NAICS writes it; a sector may have a range.
    code: &'static str,
    name: &'static str,
    slug: String,
    /// The sector that a subsector belongs to, in words.
    description: String,
    /// Of a subsector the id of its sector.
    sector_id: Option<i64>,
    /// Products on sale that name this industry: as many as `GET /marketplace/products?industry_id=` lists.
    #[schema(minimum = 0)]
    pub product_count: i64,
}

/// Of a list of industries: how many there are, and who classifies so.
#[derive(Serialize, ToSchema)]
pub struct Classification {
    total: usize,
    source: &'static str,
}

/// All of these, with their classification.
pub fn classified(data: Vec<IndustryOut>) -> Grouped<IndustryOut, Classification> {
    let (total, source) = (data.len(), industries::SOURCE);
    let meta = Classification { total, source };
    Grouped { data, meta }
}

impl IndustryOut {
    pub fn of(industry: &Industry, counts: &HashMap<i64, i64>) -> IndustryOut {
        let sector = industry.sector.and_then(industries::industry);
        IndustryOut {
            id: industry.id,
            code: industry.code,
            name: industry.name,
            // A name may belong to a sector and to its only subsector.
            slug: slug_from(&format!("{} {}", industry.code, industry.name)).unwrap_or_default(),
            description: match sector {
                Some(sector) => format!(
                    "Subsector {} of {} (sector {})",
                    industry.code, sector.name, sector.code
                ),
                None => format!("Sector {}", industry.code),
            },
            sector_id: industry.sector,
            product_count: counts.get(&industry.id).copied().unwrap_or(0),
        }
    }
}
