//! Where the coordinator is, and where it may lead. It says where an answer goes on by a whole address (`nextUri`), of which only the path is
//! asked for, and only if the rest is the connection's own.

/// What every statement is asked and followed under.
pub const STATEMENT: &str = "/v1/statement";
/// A path that a coordinator leads to has a query's id, a secret and a number.
const PATH_BYTES_MAX: usize = 2_048;

/// An address without its last slash.
#[derive(Debug, PartialEq)]
pub struct Address {
    /// It is spoken to through TLS.
    pub is_secret: bool,
    /// In small letters, without the port that the scheme has anyway.
    authority: String,
    path: String,
}

impl Address {
    /// `None`: it is none of HTTP's.
    pub fn parse(text: &str) -> Option<Address> {
        let (is_secret, authority, path) = parts(text)?;
        Some(Address {
            is_secret,
            authority: authority.to_ascii_lowercase(),
            path: path.to_owned(),
        })
    }

    /// The path that an address names below this one; `None` where it names another place, or nothing of a statement's.
    pub fn path_of(&self, link: &str) -> Option<String> {
        if link.len() > PATH_BYTES_MAX || !link.bytes().all(is_plain) {
            return None;
        }
        let (is_secret, authority, path) = parts(link)?;
        if is_secret != self.is_secret || !authority.eq_ignore_ascii_case(&self.authority) {
            return None;
        }
        // A coordinator does not know of a proxy's path before its own.
        let path = path.strip_prefix(self.path.as_str()).unwrap_or(path);
        let below = path.strip_prefix(STATEMENT)?;
        let is_whole = |segment: &str| !matches!(segment, "" | "." | "..");
        // The first of them is what lies before the first slash: nothing.
        let (first, more) = below.split('?').next()?.split_once('/')?;
        (first.is_empty() && more.split('/').all(is_whole)).then(|| path.to_owned())
    }
}

/// Whether it is spoken to through TLS; host and port, without the port that the scheme has anyway; the rest without its last slashes.
fn parts(address: &str) -> Option<(bool, &str, &str)> {
    let (scheme, rest) = address.split_once("://")?;
    let is = |name: &str| scheme.eq_ignore_ascii_case(name);
    let (is_secret, usual_port) = match () {
        () if is("https") => (true, ":443"),
        () if is("http") => (false, ":80"),
        () => return None,
    };
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let (authority, path) = rest.split_at(end);
    let authority = authority.strip_suffix(usual_port).unwrap_or(authority);
    if authority.is_empty() || authority.contains('@') {
        return None;
    }
    Some((is_secret, authority, path.trim_end_matches('/')))
}

/// What an address of a coordinator's is written in: no blank, and nothing that is read in two ways (`%2e`).
fn is_plain(byte: u8) -> bool {
    byte.is_ascii_alphanumeric()
        || matches!(
            byte,
            b':' | b'/' | b'.' | b'-' | b'_' | b'~' | b'?' | b'=' | b'&' | b'[' | b']'
        )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_place_is_the_same_however_it_is_written() {
        let address = |text: &str| Address::parse(text).unwrap();
        assert_eq!(address("https://Trino:443/"), address("HTTPS://trino"));
        assert_eq!(address("http://trino:80"), address("http://trino"));
        assert_ne!(address("http://trino"), address("https://trino"));
        assert_ne!(address("https://trino:8443"), address("https://trino"));
        for none in [
            "",
            "trino:8080",
            "ftp://trino",
            "https://",
            "https://a@trino",
        ] {
            assert_eq!(Address::parse(none), None, "{none}");
        }
    }

    /// Nothing but the path of a statement at the connection's own place is followed.
    #[test]
    fn a_coordinator_leads_nowhere_else() {
        let address = Address::parse("https://trino:8443").unwrap();
        let path = "/v1/statement/executing/20261125_000000_00001_abcde/y1a2b3/0";
        let link = format!("https://TRINO:8443{path}");
        assert_eq!(address.path_of(&link).as_deref(), Some(path));
        let more = format!("{link}?maxWait=1s");
        assert_eq!(address.path_of(&more), Some(format!("{path}?maxWait=1s")));
        for elsewhere in [
            format!("http://trino:8443{path}"),
            format!("https://trino{path}"),
            format!("https://evil:8443{path}"),
            format!("https://trino:8443@evil{path}"),
            format!("https://trino:8443.evil{path}"),
            format!("//trino:8443{path}"),
            path.to_owned(),
            "https://trino:8443".to_owned(),
            "https://trino:8443/v1/statement".to_owned(),
            "https://trino:8443/v1/statement/".to_owned(),
            "https://trino:8443/v1/statement?/executing/a".to_owned(),
            "https://trino:8443/v1/statement/?a".to_owned(),
            "https://trino:8443/v1/statements/executing/a".to_owned(),
            "https://trino:8443/v1/statement/../query/a".to_owned(),
            "https://trino:8443/v1/statement/executing//a".to_owned(),
            "https://trino:8443/v1/statement/executing/a b".to_owned(),
            "https://trino:8443/v1/statement/executing/a#b".to_owned(),
            "https://trino:8443/v1/statement/executing/ä".to_owned(),
            "https://trino:8443/v1/statement/%2e%2e/query/a".to_owned(),
            "https://trino:8443/v1/statement/executing/a%2Fb".to_owned(),
            format!(
                "https://trino:8443/v1/statement/{}",
                "a".repeat(PATH_BYTES_MAX)
            ),
        ] {
            assert_eq!(address.path_of(&elsewhere), None, "{elsewhere}");
        }
        let behind = Address::parse("https://proxy/trino/").unwrap();
        for link in [
            "https://proxy/v1/statement/a",
            "https://proxy/trino/v1/statement/a",
        ] {
            assert_eq!(behind.path_of(link).as_deref(), Some("/v1/statement/a"));
        }
    }
}
