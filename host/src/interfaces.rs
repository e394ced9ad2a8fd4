//! The addresses of this machine.

use std::ffi::c_int;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Those of all interfaces at this moment, each once. Addresses that others translate to this machine's are not known here.
#[allow(
    unsafe_code,
    reason = "one system call that hands out a list, and its counterpart that takes it back"
)]
pub fn addresses() -> io::Result<Vec<IpAddr>> {
    let mut first: *mut libc::ifaddrs = std::ptr::null_mut();
    // SAFETY: `first` is valid for writing; the list is given back below.
    if unsafe { libc::getifaddrs(&raw mut first) } != 0 {
        return Err(io::Error::last_os_error());
    }
    let mut addresses = Vec::new();
    let mut next = first;
    // SAFETY: every entry that the call links is valid until `freeifaddrs`, and its address is null or one of its family.
    while let Some(entry) = unsafe { next.as_ref() } {
        next = entry.ifa_next;
        // SAFETY: as above.
        if let Some(ip) = unsafe { ip_of(entry.ifa_addr) }
            && !addresses.contains(&ip)
        {
            addresses.push(ip);
        }
    }
    // SAFETY: `first` is what the call made, and nothing of it is used after this.
    unsafe { libc::freeifaddrs(first) };
    Ok(addresses)
}

/// # Safety
/// `address` is null, or points to a socket address as long as its family says.
#[allow(
    unsafe_code,
    reason = "a socket address is read as what its family says"
)]
unsafe fn ip_of(address: *const libc::sockaddr) -> Option<IpAddr> {
    // SAFETY: null becomes `None`.
    let family = c_int::from(unsafe { address.as_ref() }?.sa_family);
    match family {
        libc::AF_INET => {
            // SAFETY: the family says so; it need not be aligned for it.
            let address = unsafe { address.cast::<libc::sockaddr_in>().read_unaligned() };
            let ip = Ipv4Addr::from(u32::from_be(address.sin_addr.s_addr));
            Some(ip.into())
        }
        libc::AF_INET6 => {
            // SAFETY: as above.
            let address = unsafe { address.cast::<libc::sockaddr_in6>().read_unaligned() };
            Some(Ipv6Addr::from(address.sin6_addr.s6_addr).into())
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use souk_outbound::EgressPolicy;
    use std::net::{SocketAddr, UdpSocket};

    /// Every machine has itself; and what it calls others from is refused as a place to connect to.
    #[test]
    fn this_machine_is_known() {
        let own = addresses().unwrap();
        assert!(own.contains(&Ipv4Addr::LOCALHOST.into()), "{own:?}");
        let policy = EgressPolicy::public_only().refuse_own(own.clone());
        // Sends nothing: the system only decides which of its addresses it would use.
        let socket = UdpSocket::bind("0.0.0.0:0").unwrap();
        let Ok(()) = socket.connect("192.0.2.1:9") else {
            return;
        };
        let from = socket.local_addr().unwrap().ip();
        assert!(own.contains(&from), "{from} is not among {own:?}");
        assert!(policy.check(SocketAddr::new(from, 443)).is_err());
    }
}
