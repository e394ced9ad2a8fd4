//! Which addresses a wire may be dialled to. Public ones, and what the operator adds. Knows nothing
//! of names: `dial` resolves, asks here about every address, and dials the one that was asked.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use ipnet::{IpNet, Ipv4Net, Ipv6Net};

/// The operator's decision. Private by default: only addresses that the public internet routes.
#[derive(Clone, Debug, Default)]
pub struct EgressPolicy {
    networks: Vec<IpNet>,
    sockets: Vec<SocketAddr>,
    /// Addresses of this machine's interfaces, public ones among them.
    own: Vec<IpAddr>,
    /// Not even public addresses, only what was added.
    named_only: bool,
}

/// The reason names the address and what it is, never more.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{address} is {what}, which this service does not connect to unless its operator allows it (--allow-network)"
)]
pub struct EgressRefused {
    pub address: IpAddr,
    pub what: &'static str,
}

/// IPv4 ranges that are not the public internet (IANA special-purpose registry).
const REFUSED_V4: &[(Ipv4Addr, u8, &str)] = &[
    (Ipv4Addr::new(0, 0, 0, 0), 8, "an unspecified address"),
    (Ipv4Addr::new(10, 0, 0, 0), 8, "a private address"),
    (
        Ipv4Addr::new(100, 64, 0, 0),
        10,
        "a carrier-internal address",
    ),
    // Alibaba's metadata service lives in the range above; Oracle's and everybody's are below.
    (Ipv4Addr::new(127, 0, 0, 0), 8, "a loopback address"),
    (
        Ipv4Addr::new(169, 254, 0, 0),
        16,
        "a link-local or metadata address",
    ),
    (Ipv4Addr::new(172, 16, 0, 0), 12, "a private address"),
    (
        Ipv4Addr::new(192, 0, 0, 0),
        24,
        "a protocol-assignment or metadata address",
    ),
    (Ipv4Addr::new(192, 0, 2, 0), 24, "a documentation address"),
    (Ipv4Addr::new(192, 88, 99, 0), 24, "a 6to4 relay address"),
    (Ipv4Addr::new(192, 168, 0, 0), 16, "a private address"),
    (Ipv4Addr::new(198, 18, 0, 0), 15, "a benchmarking address"),
    (
        Ipv4Addr::new(198, 51, 100, 0),
        24,
        "a documentation address",
    ),
    (Ipv4Addr::new(203, 0, 113, 0), 24, "a documentation address"),
    (Ipv4Addr::new(224, 0, 0, 0), 4, "a multicast address"),
    (Ipv4Addr::new(240, 0, 0, 0), 4, "a reserved address"),
    // Azure's platform address: public by number, internal by meaning.
    (Ipv4Addr::new(168, 63, 129, 16), 32, "a metadata address"),
];

/// IPv6 ranges inside 2000::/3 that are not the public internet. Outside of it nothing is.
const REFUSED_V6: &[(Ipv6Addr, u8, &str)] = &[
    (
        Ipv6Addr::new(0x2001, 0, 0, 0, 0, 0, 0, 0),
        23,
        "a protocol-assignment address",
    ),
    (
        Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 0),
        32,
        "a documentation address",
    ),
    (
        Ipv6Addr::new(0x3fff, 0, 0, 0, 0, 0, 0, 0),
        20,
        "a documentation address",
    ),
];

const GLOBAL_V6: (Ipv6Addr, u8) = (Ipv6Addr::new(0x2000, 0, 0, 0, 0, 0, 0, 0), 3);
const NAT64: (Ipv6Addr, u8) = (Ipv6Addr::new(0x64, 0xff9b, 0, 0, 0, 0, 0, 0), 96);

impl EgressPolicy {
    /// Public addresses only.
    pub fn public_only() -> EgressPolicy {
        EgressPolicy::default()
    }

    /// Every address: for what the operator has written into the settings, never for what a customer names.
    pub fn unrestricted() -> EgressPolicy {
        EgressPolicy {
            networks: vec![Ipv4Net::default().into(), Ipv6Net::default().into()],
            ..EgressPolicy::default()
        }
    }

    /// Adds a network that the operator vouches for: `--allow-network`.
    pub fn allow_network(mut self, network: IpNet) -> EgressPolicy {
        self.networks.push(network);
        self
    }

    /// Refuses these addresses too, unless the operator names them: this machine's own. What listens here for this machine alone is often
    /// guarded by nothing but the address that it is called at.
    pub fn refuse_own(mut self, addresses: impl IntoIterator<Item = IpAddr>) -> EgressPolicy {
        self.own
            .extend(addresses.into_iter().map(|ip| ip.to_canonical()));
        self
    }

    /// Adds exactly one address and port, as for the demo's sample API.
    pub fn allow_socket(mut self, socket: SocketAddr) -> EgressPolicy {
        self.sockets.push(socket);
        self
    }

    /// What the operator has named, and nothing else: for what should not cross the public internet.
    pub fn named_only(&self) -> EgressPolicy {
        EgressPolicy {
            named_only: true,
            ..self.clone()
        }
    }

    /// Whether a wire may be dialled to `address`.
    pub fn check(&self, address: SocketAddr) -> Result<(), EgressRefused> {
        let ip = address.ip().to_canonical();
        if self.sockets.contains(&SocketAddr::new(ip, address.port()))
            || self.networks.iter().any(|net| net.contains(&ip))
        {
            return Ok(());
        }
        let refused = match ip {
            _ if self.named_only => Some("an address that the operator has not named"),
            _ if self.own.contains(&ip) => Some("an address of this host"),
            IpAddr::V4(v4) => refused_v4(v4),
            IpAddr::V6(v6) => self.refused_v6(v6, address.port()),
        };
        match refused {
            Some(what) => Err(EgressRefused { address: ip, what }),
            None => Ok(()),
        }
    }

    fn refused_v6(&self, ip: Ipv6Addr, port: u16) -> Option<&'static str> {
        // Addresses that carry an IPv4 address reach that one: it is the one to judge.
        if let Some(inner) = embedded_v4(ip) {
            return self
                .check(SocketAddr::new(inner.into(), port))
                .err()
                .map(|refused| refused.what);
        }
        if ip.is_loopback() {
            return Some("a loopback address");
        }
        if ip.is_unspecified() {
            return Some("an unspecified address");
        }
        if ip.is_multicast() {
            return Some("a multicast address");
        }
        if ip.is_unique_local() {
            return Some("a private address");
        }
        if ip.is_unicast_link_local() {
            return Some("a link-local address");
        }
        if !within_v6(ip, GLOBAL_V6) {
            return Some("not a public address");
        }
        REFUSED_V6
            .iter()
            .find(|(net, prefix, _)| within_v6(ip, (*net, *prefix)))
            .map(|(_, _, what)| *what)
    }
}

fn refused_v4(ip: Ipv4Addr) -> Option<&'static str> {
    REFUSED_V4
        .iter()
        .find(|(net, prefix, _)| Ipv4Net::new(*net, *prefix).is_ok_and(|net| net.contains(&ip)))
        .map(|(_, _, what)| *what)
}

fn within_v6(ip: Ipv6Addr, (net, prefix): (Ipv6Addr, u8)) -> bool {
    Ipv6Net::new(net, prefix).is_ok_and(|net| net.contains(&ip))
}

/// NAT64 and 6to4. (Mapped addresses are canonicalised before; Teredo is refused as a whole.)
fn embedded_v4(ip: Ipv6Addr) -> Option<Ipv4Addr> {
    let s = ip.segments();
    let v4 = |high: u16, low: u16| Ipv4Addr::from((u32::from(high) << 16) | u32::from(low));
    if within_v6(ip, NAT64) {
        Some(v4(s[6], s[7]))
    } else if s[0] == 0x2002 {
        Some(v4(s[1], s[2]))
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(policy: &EgressPolicy, ip: &str) -> bool {
        policy
            .check(SocketAddr::new(ip.parse().unwrap(), 5432))
            .is_err()
    }

    /// Without the operator's word, no wire reaches anything but the public internet.
    #[test]
    fn only_public_addresses_by_default() {
        let policy = EgressPolicy::public_only();
        for ip in [
            "127.0.0.1",
            "10.1.2.3",
            "172.31.0.1",
            "192.168.1.1",
            "169.254.169.254",
            "100.64.0.1",
            "100.100.100.200",
            "0.0.0.0",
            "224.0.0.1",
            "255.255.255.255",
            "192.0.2.1",
            "198.18.0.1",
            "168.63.129.16",
            "::",
            "::1",
            "::ffff:127.0.0.1",
            "::ffff:10.0.0.1",
            "fe80::1",
            "fc00::1",
            "fd00:ec2::254",
            "ff02::1",
            "64:ff9b::7f00:1",
            "64:ff9b::a9fe:a9fe",
            "64:ff9b:1::1",
            "2002:7f00:1::",
            "2002:a00:1::1",
            "2001::1",
            "2001:db8::1",
            "3fff::1",
            "::127.0.0.1",
            "5f00::1",
            "100::1",
        ] {
            assert!(refused(&policy, ip), "{ip} must be refused");
        }
        for ip in [
            "1.1.1.1",
            "8.8.8.8",
            "2606:4700::1111",
            "64:ff9b::101:101",
            "2002:101:101::1",
            "172.32.0.1",
        ] {
            assert!(!refused(&policy, ip), "{ip} must be allowed");
        }
    }

    /// What the operator's own settings name may be anywhere.
    #[test]
    fn the_operators_own_words_are_not_judged() {
        let policy = EgressPolicy::unrestricted();
        for ip in ["127.0.0.1", "10.0.0.1", "1.1.1.1", "::1", "fd00::1"] {
            assert!(!refused(&policy, ip), "{ip}");
        }
    }

    /// An allowed network opens exactly that network, however the address is written.
    #[test]
    fn the_operator_can_allow_a_network() {
        let policy = EgressPolicy::public_only().allow_network("127.0.0.0/8".parse().unwrap());
        assert!(!refused(&policy, "127.0.0.1"));
        assert!(!refused(&policy, "::ffff:127.0.0.1"));
        assert!(refused(&policy, "::1"));
        assert!(refused(&policy, "10.0.0.1"));
        assert!(!refused(&policy, "1.1.1.1") && refused(&policy.named_only(), "1.1.1.1"));
        assert!(!refused(&policy.named_only(), "127.0.0.1"));
        let policy = EgressPolicy::public_only().allow_socket("127.0.0.1:5432".parse().unwrap());
        assert!(!refused(&policy, "127.0.0.1"));
        assert!(policy.check("127.0.0.1:5433".parse().unwrap()).is_err());
    }

    /// Every interface is this machine, whatever its address looks like from elsewhere, unless the operator names it.
    #[test]
    fn this_machines_addresses_are_refused() {
        let own = ["1.1.1.1", "2606:4700::1111"].map(|ip| ip.parse().unwrap());
        let policy = EgressPolicy::public_only().refuse_own(own);
        for ip in [
            "1.1.1.1",
            "::ffff:1.1.1.1",
            "64:ff9b::101:101",
            "2002:101:101::1",
            "2606:4700::1111",
        ] {
            assert!(refused(&policy, ip), "{ip} is this host");
        }
        assert!(!refused(&policy, "1.1.1.2"));
        let named = policy.allow_network("1.1.1.0/30".parse().unwrap());
        assert!(!refused(&named, "1.1.1.1") && refused(&named, "2606:4700::1111"));
    }
}
