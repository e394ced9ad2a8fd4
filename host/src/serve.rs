//! `souk serve`.

use anyhow::{Context, Result};
use ipnet::IpNet;
use souk_outbound::EgressPolicy;

use crate::host::Host;
use crate::interfaces;
use crate::ready::{Ready, write_json};
use crate::settings::Settings;

pub async fn run(settings: Settings) -> Result<()> {
    let ready_file = settings.ready_file.clone();
    let egress = egress(&settings)?;
    let host = Host::start(settings, egress).await?;
    let ready = Ready {
        listen: host.address(),
        base_url: host.base_url.clone(),
        endpoint_base_url: host.endpoint_base_url.clone(),
        platform: host.platform.clone(),
        seller: None,
        buyer: None,
    };
    let written = ready_file.map(|path| write_json(&path, &ready));
    // Nor is it lost where the file cannot be written.
    if let Some(platform) = &host.platform
        && !matches!(written, Some(Ok(())))
    {
        // Not into the log: logs are collected and kept.
        println!(
            "The platform company {} was created. Its key, of role 5, is shown this once:\n{}",
            platform.company_id, platform.api_key
        );
    }
    written.transpose()?;
    host.serve().await
}

/// Public addresses but for this machine's own, and what the operator vouches for.
pub fn egress(settings: &Settings) -> Result<EgressPolicy> {
    let own = interfaces::addresses().context("this machine's addresses cannot be read")?;
    let policy = EgressPolicy::public_only().refuse_own(own);
    let allow = |policy: EgressPolicy, network: &IpNet| policy.allow_network(*network);
    Ok(settings.allow_network.iter().fold(policy, allow))
}
