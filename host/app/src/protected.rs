//! Addresses that the operator names and that secrets go to, and how they are asked.

use std::time::Duration;

use souk_outbound::{Bounds, Client, EgressPolicy, Own, Reach, Trust};
use url::{Host, Url};

#[derive(Debug, thiserror::Error)]
pub enum AddressError {
    #[error("must be https://…, or http://… of this machine")]
    Insecure,
    #[error("is not an address: {0}")]
    Malformed(String),
}

/// Reads an address. What goes there has to be protected, unless it never leaves the machine.
pub fn protected(address: &str) -> Result<Url, AddressError> {
    let malformed = |error: String| AddressError::Malformed(error);
    let address = Url::parse(address).map_err(|error| malformed(error.to_string()))?;
    let is_local = match address.host() {
        Some(Host::Domain(name)) => name == "localhost",
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        None => return Err(malformed("it names no host".to_owned())),
    };
    match address.scheme() == "https" || (address.scheme() == "http" && is_local) {
        true => Ok(address),
        false => Err(AddressError::Insecure),
    }
}

/// A client of such an address, which may be one of the operator's own network. `timeout`: from the look-up of the name to the last byte.
pub fn client(timeout: Duration, trust: Trust) -> Client {
    let reach = Reach {
        egress: EgressPolicy::unrestricted(),
        egress_plain: EgressPolicy::unrestricted(),
        trust: Some(trust),
        account: Own,
    };
    let bounds = Bounds {
        connect: timeout,
        // Many times what any server sends.
        head_bytes: 64 << 10,
        // Top-ups and people come one by one.
        idle_per_host: 2,
        idle_total: 2,
        // Before common servers close: they wait for 5 seconds or longer.
        idle: Some(Duration::from_secs(3)),
    };
    Client::new(reach, bounds)
}
