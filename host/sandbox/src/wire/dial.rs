//! Opens TCP connections to the one address of a data connection, after asking the egress policy
//! about every address that its name resolves to. The address that was checked is the one dialled.

use std::{io, net::SocketAddr, time::Duration};

use tokio::{
    net::{TcpStream, lookup_host},
    time::{Instant, timeout, timeout_at},
};

use super::WireError;
use crate::{egress::EgressPolicy, source::literal_ip, v1::WireFault};

/// Addresses tried of one name: a name with more is not waiting for us to reach the last one.
const ADDRESSES_MAX: usize = 8;
/// A first address that does not answer must leave time for the second.
const ATTEMPT_MIN: Duration = Duration::from_secs(2);

/// How to reach one host.
#[derive(Clone, Debug)]
pub(crate) struct Dialer {
    pub host: String,
    pub port: u16,
    pub egress: EgressPolicy,
    pub connect_timeout: Duration,
}

impl Dialer {
    pub async fn dial(&self) -> Result<TcpStream, WireError> {
        let deadline = Instant::now() + self.connect_timeout;
        let addresses = timeout_at(
            deadline,
            resolve_and_check(&self.egress, &self.host, self.port),
        )
        .await
        .map_err(|_| {
            WireError::new(
                WireFault::Timeout,
                format!("{} was not resolved in time", self.host),
            )
        })??;
        let mut last = None;
        let count = addresses.len() as u32;
        for (tried, address) in addresses.into_iter().enumerate() {
            let left = deadline.saturating_duration_since(Instant::now());
            let attempt = (left / (count - tried as u32)).max(ATTEMPT_MIN).min(left);
            match timeout(attempt, TcpStream::connect(address)).await {
                Ok(Ok(stream)) => {
                    // Requests are whole messages: waiting for more to send only adds latency.
                    let _ = stream.set_nodelay(true);
                    return Ok(stream);
                }
                Ok(Err(error)) => last = Some(connect_error(address, &error)),
                Err(_) => {
                    last = Some(WireError::new(
                        WireFault::Timeout,
                        format!("{address} did not answer in time"),
                    ))
                }
            }
        }
        Err(last.unwrap_or_else(|| {
            WireError::new(
                WireFault::Unreachable,
                format!("{} has no address", self.host),
            )
        }))
    }
}

/// The addresses of `host` that may be dialled. None: the reason is about the first one refused.
pub(crate) async fn resolve_and_check(
    egress: &EgressPolicy,
    host: &str,
    port: u16,
) -> Result<Vec<SocketAddr>, WireError> {
    let addresses: Vec<SocketAddr> = match literal_ip(host) {
        Some(ip) => vec![SocketAddr::new(ip, port)],
        None => lookup_host((host, port))
            .await
            .map_err(|error| {
                WireError::new(
                    WireFault::Unreachable,
                    format!("{host} cannot be resolved: {error}"),
                )
            })?
            .take(ADDRESSES_MAX)
            .collect(),
    };
    let mut allowed = Vec::with_capacity(addresses.len());
    let mut refused = None;
    for address in addresses {
        // Dialled in the form in which it was judged.
        let address = SocketAddr::new(address.ip().to_canonical(), port);
        match egress.check(address) {
            Ok(()) => allowed.push(address),
            Err(reason) => refused = refused.or(Some(reason)),
        }
    }
    match (allowed.is_empty(), refused) {
        (false, _) => Ok(allowed),
        (true, Some(reason)) => Err(WireError::new(WireFault::EgressRefused, reason.to_string())),
        (true, None) => Err(WireError::new(
            WireFault::Unreachable,
            format!("{host} has no address"),
        )),
    }
}

fn connect_error(address: SocketAddr, error: &io::Error) -> WireError {
    let fault = match error.kind() {
        io::ErrorKind::ConnectionRefused => WireFault::Refused,
        io::ErrorKind::TimedOut => WireFault::Timeout,
        io::ErrorKind::ConnectionReset => WireFault::Reset,
        _ => WireFault::Unreachable,
    };
    WireError::new(fault, format!("{address}: {error}"))
}
