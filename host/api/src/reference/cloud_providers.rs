use super::shape::CloudProviderOut;
use crate::{Caller, Operation, Problem, Whole};
use souk_domain::reference::CLOUD_PROVIDERS;

pub const OPERATION: Operation = Operation::get("list_cloud_providers", "/cloud-providers")
    .about("Reference data", "List cloud providers and their regions")
    .notes("For `cloud_provider_id` of a connection. The ids are stable.");

/// List cloud providers and their regions.
pub async fn list_cloud_providers(_: Caller) -> Result<Whole<CloudProviderOut>, Problem> {
    Ok(Whole(
        CLOUD_PROVIDERS.iter().map(CloudProviderOut::from).collect(),
    ))
}
