//! What the operator chose, and who a client is behind the operator's proxies.

use crate::limiter::Shared;
use axum::extract::ConnectInfo;
use http::{Extensions, HeaderMap, header};
use ipnet::IpNet;
use souk_app::spans::Recorder;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;

/// What the operator chose.
#[derive(Clone)]
pub struct Settings {
    /// Where the management API is reached, without a trailing slash.
    pub base_url: String,
    /// Where the data route is reached; sellers' handles become its subdomains.
    pub endpoint_base_url: String,
    /// Requests an hour of an address that shows no valid key.
    pub address_rate_limit: u32,
    /// Where hosts count limits together.
    pub shared_limits: Option<Arc<Shared>>,
    /// What the kept answers of a company may take together.
    pub kept_answer_bytes_max: i64,
    /// Proxies whose `X-Forwarded-For` and `X-Forwarded-Host` are believed.
    pub trust_proxy: Vec<IpNet>,
    /// Reads of the host's own records of one company that go on at a time while another one's calls are in flight.
    pub company_reads_at_once: usize,
    /// Bytes of answers that one company's clients may leave unread before it gets no new ones.
    pub unread_bytes_max: u64,
    /// Calls of one company's keys in flight that run a connector.
    pub company_calls_max: u32,
    /// Bytes that the uploads of one company may hold in memory, and those of all.
    pub company_upload_bytes_max: u64,
    pub upload_bytes_max: u64,
    /// Who follows calls, if somebody does.
    pub recorder: Option<Arc<Recorder>>,
}

impl Settings {
    pub fn trusts(&self, peer: IpAddr) -> bool {
        self.trust_proxy
            .iter()
            .any(|network| network.contains(&peer))
    }

    /// The address of the client: the nearest one that is not a proxy of ours. An entry that cannot be read ends the walk at the proxy
    /// that wrote it: what stands before it was claimed by whoever is behind that.
    pub fn client(&self, peer: IpAddr, headers: &HeaderMap) -> IpAddr {
        if self.trust_proxy.is_empty() || !self.trusts(peer) {
            return peer;
        }
        let values = headers.get_all("x-forwarded-for").iter().rev();
        let entries = values.flat_map(|value| value.as_bytes().rsplit(|byte| *byte == b','));
        let mut nearest = peer;
        for entry in entries {
            match forwarded(entry) {
                Some(address) if self.trusts(address) => nearest = address,
                Some(address) => return address,
                None => return nearest,
            }
        }
        nearest
    }

    /// The host that the client called: `Host`, or what the proxy in front of us says that it was. A proxy that appends to what its
    /// own client sent appends at the end, so the last one counts.
    pub fn host<'a>(&self, peer: IpAddr, headers: &'a HeaderMap) -> Option<&'a str> {
        let forwarded = || headers.get_all("x-forwarded-host").iter().next_back();
        let sent = match self.trusts(peer) {
            true => forwarded().or_else(|| headers.get(header::HOST)),
            false => headers.get(header::HOST),
        };
        sent?.to_str().ok()?.rsplit(',').next().map(str::trim)
    }
}

/// An address as proxies write it: some add the port.
fn forwarded(entry: &[u8]) -> Option<IpAddr> {
    let text = std::str::from_utf8(entry).ok()?.trim();
    let with_port = || text.parse::<SocketAddr>().map(|address| address.ip());
    let address: IpAddr = text.parse().or_else(|_| with_port()).ok()?;
    Some(address.to_canonical())
}

/// Who sent a request: the other end of its connection.
pub fn peer(extensions: &Extensions) -> IpAddr {
    extensions
        .get::<ConnectInfo<SocketAddr>>()
        .map_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED), |peer| peer.0.ip())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn client(forwarded: &[&[u8]]) -> String {
        let settings = Settings {
            base_url: String::new(),
            endpoint_base_url: String::new(),
            address_rate_limit: 1,
            shared_limits: None,
            trust_proxy: vec!["10.0.0.0/8".parse().unwrap()],
            kept_answer_bytes_max: 1,
            company_reads_at_once: 2,
            unread_bytes_max: 1,
            company_calls_max: 1,
            company_upload_bytes_max: 1,
            upload_bytes_max: 1,
            recorder: None,
        };
        let mut headers = HeaderMap::new();
        for value in forwarded {
            let value = http::HeaderValue::from_bytes(value).unwrap();
            headers.append("x-forwarded-for", value);
        }
        let peer = "10.0.0.1".parse().unwrap();
        settings.client(peer, &headers).to_string()
    }

    /// The nearest address that is no proxy of ours, over all lines of the header; what its client claims to have forwarded is not asked.
    #[test]
    fn a_client_is_the_nearest_stranger() {
        assert_eq!(client(&[]), "10.0.0.1");
        assert_eq!(
            client(&[b"192.0.2.1, 198.51.100.7, 10.0.0.2"]),
            "198.51.100.7"
        );
        assert_eq!(
            client(&[b"192.0.2.1", b"198.51.100.7:4711"]),
            "198.51.100.7"
        );
        assert_eq!(client(&[b"10.0.0.9, 10.0.0.2"]), "10.0.0.9");
        assert_eq!(client(&[b"[2001:db8::1]:80"]), "2001:db8::1");
        // As proxies write it that listen to both families.
        assert_eq!(
            client(&[b"::ffff:198.51.100.7, ::ffff:10.0.0.2"]),
            "198.51.100.7"
        );
    }

    /// An entry that a proxy of ours could not write as an address is no reason to believe the one before it.
    #[test]
    fn an_unreadable_entry_ends_the_walk() {
        assert_eq!(client(&[b"192.0.2.1, unknown"]), "10.0.0.1");
        assert_eq!(client(&[b"192.0.2.1, _hidden, 10.0.0.2"]), "10.0.0.2");
        assert_eq!(client(&[b"192.0.2.1", b"\xff"]), "10.0.0.1");
        assert_eq!(client(&[b"192.0.2.1,"]), "10.0.0.1");
    }
}
