//! Opens TCP connections to the one address of a data connection, after asking the egress policy
//! about every address that its name resolves to. The address that was checked is the one dialled.

use std::{
    io,
    net::{SocketAddr, ToSocketAddrs},
    sync::{Arc, LazyLock},
    time::Duration,
};

use tokio::{
    net::TcpStream,
    sync::Semaphore,
    time::{Instant, timeout, timeout_at},
};

use super::WireError;
use crate::{
    egress::EgressPolicy,
    source::literal_ip,
    tenants::{Held, Tenant},
    v1::WireFault,
};

/// Addresses tried of one name: a name with more is not waiting for us to reach the last one.
const ADDRESSES_MAX: usize = 8;
/// A first address that does not answer must leave time for the second.
const ATTEMPT_MIN: Duration = Duration::from_secs(2);

/// Name look-ups at once on nobody's account. They block a thread each, some resolvers for half a minute.
const LOOKUPS_MAX: usize = 16;

static LOOKUPS: LazyLock<Arc<Semaphore>> = LazyLock::new(|| Arc::new(Semaphore::new(LOOKUPS_MAX)));

/// How to reach one host.
#[derive(Clone)]
pub(crate) struct Dialer {
    pub host: String,
    pub port: u16,
    pub egress: EgressPolicy,
    pub connect_timeout: Duration,
    /// `None`: the host's own business.
    pub account: Option<Account>,
}

/// On whose account a host is reached.
#[derive(Clone)]
pub(crate) struct Account {
    pub tenant: Arc<Tenant>,
    pub sockets_max: usize,
}

impl Dialer {
    /// A place for a socket beyond the one that each session has.
    pub fn socket(&self) -> Result<Option<Held>, WireError> {
        let Some(Account {
            tenant,
            sockets_max,
        }) = &self.account
        else {
            return Ok(None);
        };
        match tenant.take_socket(*sockets_max) {
            Some(held) => Ok(Some(held)),
            None => Err(WireError::new(
                WireFault::Unreachable,
                format!(
                    "{sockets_max} connections to this company's sources are open, as many as one company may have: try again shortly"
                ),
            )),
        }
    }

    /// As [`socket`](Dialer::socket), for a wire that carries one cancel request. `None`: the company has sent as many as
    /// it may lately, or has no socket left for it.
    pub fn aside(&self) -> Option<Option<Held>> {
        let may = |account: &Account| account.tenant.may_send_aside();
        match self.account.as_ref().is_none_or(may) {
            true => self.socket().ok(),
            false => None,
        }
    }

    fn lookups(&self) -> Arc<Semaphore> {
        match &self.account {
            Some(account) => account.tenant.lookups(),
            None => LOOKUPS.clone(),
        }
    }

    pub async fn dial(&self) -> Result<TcpStream, WireError> {
        let deadline = Instant::now() + self.connect_timeout;
        let addresses = timeout_at(
            deadline,
            resolve_and_check(&self.egress, &self.host, self.port, self.lookups()),
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
    lookups: Arc<Semaphore>,
) -> Result<Vec<SocketAddr>, WireError> {
    let addresses: Vec<SocketAddr> = match literal_ip(host) {
        Some(ip) => vec![SocketAddr::new(ip, port)],
        None => lookup(host, port, lookups).await?,
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

/// Blocks a thread of the runtime until the resolver answers, also when nobody waits any more: so long its place
/// is taken.
async fn lookup(
    host: &str,
    port: u16,
    lookups: Arc<Semaphore>,
) -> Result<Vec<SocketAddr>, WireError> {
    let place = lookups.acquire_owned().await;
    let name = host.to_owned();
    let found = tokio::task::spawn_blocking(move || {
        let _place = place;
        let found = (name.as_str(), port).to_socket_addrs()?;
        Ok::<_, io::Error>(found.take(ADDRESSES_MAX).collect())
    });
    let found = found
        .await
        .unwrap_or_else(|error| Err(io::Error::other(error)));
    found.map_err(|error| {
        WireError::new(
            WireFault::Unreachable,
            format!("{host} cannot be resolved: {error}"),
        )
    })
}

/// Look-ups on nobody's account.
pub(crate) fn shared_lookups() -> Arc<Semaphore> {
    LOOKUPS.clone()
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
