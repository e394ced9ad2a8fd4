//! Addresses that the operator names and that secrets go to.

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
