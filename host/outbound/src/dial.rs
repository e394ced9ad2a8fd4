//! Opens TCP connections, after asking the egress policy about every address that a name resolves to. The address that
//! was checked is the one dialled.

use std::{
    io,
    net::{IpAddr, Ipv4Addr, SocketAddr},
    sync::{Arc, LazyLock, Weak},
    time::Duration,
};

use tokio::{
    net::TcpStream,
    sync::Semaphore,
    time::{Instant, timeout, timeout_at},
};

use crate::{EgressPolicy, Error, ErrorKind, Lookups};

/// A first address that does not answer must leave time for the second.
const ATTEMPT_MIN: Duration = Duration::from_secs(2);

/// Name look-ups at once on nobody's account.
const LOOKUPS_MAX: usize = 16;

static LOOKUPS: LazyLock<Arc<Lookups>> = LazyLock::new(|| Arc::new(Lookups::new(LOOKUPS_MAX)));

/// Of them only as many are of addresses that somebody wants to save: a flood of names whose servers never answer keeps nothing that is to be sent waiting.
static CHECKS: LazyLock<Arc<Semaphore>> =
    LazyLock::new(|| Arc::new(Semaphore::new(LOOKUPS_MAX / 4)));

/// On whose account a connection is made: what it uses is counted there, and may be refused.
pub trait Account: Clone + Send + Sync + 'static {
    /// A place for one socket; dropping it gives it back.
    type Place: Send + Unpin + 'static;

    /// A place for one more socket of a [`Client`](crate::Client). `Err` says how many there are.
    fn take_socket(&self) -> Result<Self::Place, Error>;

    /// A client on this account is about to keep connections: whoever finds no place may have those of it that nobody uses
    /// ([`Lends`]).
    fn may_borrow(&self, _: Weak<dyn Lends<Self::Place>>) {}

    /// Where its names are looked up: what is found there, nobody on another account hears of.
    fn lookups(&self) -> Arc<Lookups>;

    /// The account of the next of many that a [`Clients`](crate::Clients) tells apart.
    fn apart(&self) -> Self {
        self.clone()
    }
}

/// Keeps connections for requests to come, and gives up one of them for somebody who needs its place now.
pub trait Lends<P>: Send + Sync {
    /// Connections that nobody uses at the moment.
    fn idle(&self) -> usize;

    /// Closes the one that nobody has used for longest, and gives its place. (The thread that it belongs to closes it, when it comes to that.)
    fn lend(&self) -> Option<P>;
}

/// The host's own account. Whoever uses it bounds how much is under way at once.
#[derive(Clone, Copy, Debug, Default)]
pub struct Own;

impl Account for Own {
    type Place = ();

    fn take_socket(&self) -> Result<(), Error> {
        Ok(())
    }

    fn lookups(&self) -> Arc<Lookups> {
        LOOKUPS.clone()
    }
}

/// Name look-ups at once of one [`OwnOfEach`].
const LOOKUPS_OF_EACH: usize = 2;

/// The host's own account where it acts for many: one whose names are never answered keeps nobody else from looking up theirs.
#[derive(Clone, Debug)]
pub struct OwnOfEach(Arc<Lookups>);

impl Default for OwnOfEach {
    fn default() -> OwnOfEach {
        OwnOfEach(Arc::new(Lookups::new(LOOKUPS_OF_EACH)))
    }
}

impl Account for OwnOfEach {
    type Place = ();

    fn take_socket(&self) -> Result<(), Error> {
        Ok(())
    }

    fn lookups(&self) -> Arc<Lookups> {
        self.0.clone()
    }

    fn apart(&self) -> OwnOfEach {
        OwnOfEach::default()
    }
}

/// How to reach one host.
#[derive(Clone)]
pub struct Dialer<A = Own> {
    pub host: String,
    pub port: u16,
    pub egress: EgressPolicy,
    /// From the look-up to the connection.
    pub connect_timeout: Duration,
    pub account: A,
}

impl<A: Account> Dialer<A> {
    /// Connects to the first of the host's addresses that the policy allows and that answers.
    pub async fn dial(&self) -> Result<TcpStream, Error> {
        let deadline = Instant::now() + self.connect_timeout;
        let lookups = self.account.lookups();
        let addresses = timeout_at(
            deadline,
            resolve_and_check(&self.egress, &self.host, self.port, &lookups),
        )
        .await
        .map_err(|_| unresolved(&self.host))??;
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
                    last = Some(Error::new(
                        ErrorKind::Timeout,
                        format!("{address} did not answer in time"),
                    ))
                }
            }
        }
        Err(last.unwrap_or_else(|| {
            Error::new(
                ErrorKind::Unreachable,
                format!("{} has no address", self.host),
            )
        }))
    }
}

/// The addresses of `host` that may be dialled. None: the reason is about the first one refused.
async fn resolve_and_check(
    egress: &EgressPolicy,
    host: &str,
    port: u16,
    lookups: &Lookups,
) -> Result<Vec<SocketAddr>, Error> {
    let addresses: Vec<SocketAddr> = match literal_ip(host) {
        Some(ip) => vec![SocketAddr::new(ip, port)],
        None => lookups.find(host, port).await?,
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
        (true, Some(reason)) => Err(Error::new(ErrorKind::EgressRefused, reason.to_string())),
        (true, None) => Err(Error::new(
            ErrorKind::Unreachable,
            format!("{host} has no address"),
        )),
    }
}

/// Resolves a name and checks every address, without dialling: for refusing one when it is saved.
pub async fn check_address(
    egress: &EgressPolicy,
    host: &str,
    port: u16,
    within: Duration,
) -> Result<(), Error> {
    // Companies save addresses: what one has looked up is nothing that another could notice.
    let lookups = Lookups::among(CHECKS.clone());
    let checked = resolve_and_check(egress, host, port, &lookups);
    match timeout(within, checked).await {
        Ok(checked) => checked.map(drop),
        Err(_) => Err(unresolved(host)),
    }
}

/// The address that a text stands for without asking anybody: a literal in any of the forms that resolvers read (`127.1`, `0x7f000001`), or
/// a name of this host.
pub fn written_address(host: &str) -> Option<IpAddr> {
    if let Some(ip) = literal_ip(host) {
        return Some(ip);
    }
    match url::Host::parse(host).ok()? {
        url::Host::Ipv4(ip) => Some(ip.into()),
        url::Host::Ipv6(ip) => Some(ip.into()),
        url::Host::Domain(name) => {
            let name = name.trim_end_matches('.');
            let local = name == "localhost" || name.ends_with(".localhost");
            local.then_some(IpAddr::V4(Ipv4Addr::LOCALHOST))
        }
    }
}

/// The host part of an address: a literal is not looked up.
fn literal_ip(host: &str) -> Option<IpAddr> {
    host.strip_prefix('[')
        .and_then(|rest| rest.strip_suffix(']'))
        .unwrap_or(host)
        .parse()
        .ok()
}

fn unresolved(host: &str) -> Error {
    let message = format!("{host} was not resolved in time");
    Error::new(ErrorKind::Timeout, message)
}

fn connect_error(address: SocketAddr, error: &io::Error) -> Error {
    let fault = match error.kind() {
        io::ErrorKind::ConnectionRefused => ErrorKind::Refused,
        io::ErrorKind::TimedOut => ErrorKind::Timeout,
        io::ErrorKind::ConnectionReset => ErrorKind::Reset,
        _ => ErrorKind::Unreachable,
    };
    Error::new(fault, format!("{address}: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// However an address is written, it is known without asking anybody; a name of this machine is this machine.
    #[test]
    fn written_addresses_are_read() {
        for (text, ip) in [
            ("127.0.0.1", "127.0.0.1"),
            ("127.1", "127.0.0.1"),
            ("0x7f000001", "127.0.0.1"),
            ("2130706433", "127.0.0.1"),
            ("[::1]", "::1"),
            ("::ffff:10.0.0.1", "::ffff:10.0.0.1"),
            ("localhost", "127.0.0.1"),
            ("a.localhost.", "127.0.0.1"),
        ] {
            assert_eq!(written_address(text), Some(ip.parse().unwrap()), "{text}");
        }
        for name in ["example.com", "localhost.example.com", "", "a b"] {
            assert_eq!(written_address(name), None, "{name}");
        }
    }

    /// An address is judged before anything is sent there, and a name that leads nowhere is no address.
    #[tokio::test]
    async fn addresses_are_checked_without_dialling() {
        let policy = EgressPolicy::public_only();
        let check = |host: &'static str| check_address(&policy, host, 443, Duration::from_secs(30));
        assert!(check("1.1.1.1").await.is_ok());
        for host in ["10.0.0.1", "[::1]", "localhost"] {
            let refused = check(host).await.unwrap_err();
            assert_eq!(refused.kind, ErrorKind::EgressRefused, "{host}");
        }
        let unknown = check("no-such-name.invalid").await.unwrap_err();
        assert_eq!(unknown.kind, ErrorKind::Unreachable);
    }

    /// Looks up as many names as there are permits.
    #[derive(Clone)]
    struct Names(Arc<Lookups>);

    impl Account for Names {
        type Place = ();

        fn take_socket(&self) -> Result<(), Error> {
            Ok(())
        }

        fn lookups(&self) -> Arc<Lookups> {
            self.0.clone()
        }
    }

    /// A name for which there is no place waits for one within the time to connect, and gives it back; a literal needs none.
    #[tokio::test]
    async fn names_wait_for_a_place() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let names = Arc::new(Lookups::new(0));
        let dial = async |host: &str, within| {
            let dialer = Dialer {
                host: host.to_owned(),
                port: address.port(),
                egress: EgressPolicy::public_only().allow_socket(address),
                connect_timeout: within,
                account: Names(names.clone()),
            };
            dialer.dial().await
        };
        let late = dial("localhost", Duration::from_millis(100)).await;
        assert_eq!(late.unwrap_err().kind, ErrorKind::Timeout);
        let patient = Duration::from_secs(30);
        assert!(dial("127.0.0.1", patient).await.is_ok());
        names.places.add_permits(1);
        assert!(dial("localhost", patient).await.is_ok());
        assert_eq!(names.places.available_permits(), 1);
    }

    /// Nobody listens there, and it is said so at once.
    #[tokio::test]
    async fn refused_connections_are_told() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let dialer = Dialer {
            host: "127.0.0.1".to_owned(),
            port: address.port(),
            egress: EgressPolicy::public_only().allow_socket(address),
            connect_timeout: Duration::from_secs(30),
            account: Own,
        };
        assert!(dialer.dial().await.unwrap().nodelay().unwrap());
        drop(listener);
        assert_eq!(dialer.dial().await.unwrap_err().kind, ErrorKind::Refused);
    }
}
