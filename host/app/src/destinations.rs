//! Addresses that companies name and that something of theirs is sent to: which are allowed.

use std::time::Duration;

use souk_outbound::{EgressPolicy, Error, ErrorKind, check_address};
use url::Url;

/// How long a name may take to be looked up while what names it is saved.
const LOOKUP_MAX: Duration = Duration::from_secs(3);
/// What is said of an address without TLS.
const NOT_NAMED: &str = "must be an https:// address; http:// is for addresses that the operator has named (--allow-network)";

/// What is said of one, besides, whose name is not known.
const NOT_KNOWN: &str = "an http:// address is for what the operator has named (--allow-network), so that its name has to be known: correct it, try again when it is, or use https://";

/// Why nothing is sent there now.
#[derive(Debug)]
pub(crate) enum Withheld {
    /// It leads where nothing is sent.
    Unsafe(String),
    /// Nobody says where it leads, which may pass.
    Unknown(String),
}

/// Whether something of a company's may be sent there, as far as that can be told before. Says why not.
pub(crate) async fn judge(egress: &EgressPolicy, url: &Url) -> Result<(), Withheld> {
    if url.scheme() != "https" {
        return judge_plain(egress, url).await;
    }
    match look(egress, url).await {
        Err(error) if error.kind == ErrorKind::EgressRefused => {
            Err(Withheld::Unsafe(error.message))
        }
        // A name that is not known yet, or whose server is down, may be there when there is something to say.
        _ => Ok(()),
    }
}

/// The same of an address without TLS, also of one that was saved before something is sent there: its name may lead elsewhere by now.
pub(crate) async fn judge_plain(egress: &EgressPolicy, url: &Url) -> Result<(), Withheld> {
    match look(&plain(egress), url).await {
        Ok(()) => Ok(()),
        Err(error) if error.kind == ErrorKind::EgressRefused => {
            Err(Withheld::Unsafe(NOT_NAMED.to_owned()))
        }
        Err(error) => Err(Withheld::Unknown(format!("{}; {NOT_KNOWN}", error.message))),
    }
}

async fn look(policy: &EgressPolicy, url: &Url) -> Result<(), Error> {
    let host = url.host_str().unwrap_or_default();
    let port = url.port_or_known_default().unwrap_or(443);
    check_address(policy, host, port, LOOKUP_MAX).await
}

/// Public addresses are reached under TLS only: whoever sits between could read events, and answer for the receiver. The operator's own
/// networks are the operator's responsibility.
pub(crate) fn plain(egress: &EgressPolicy) -> EgressPolicy {
    egress.named_only()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A name of which nobody says where it leads may be known later; one that leads elsewhere by now is refused.
    #[tokio::test]
    async fn what_is_not_known_may_pass() {
        let named = EgressPolicy::public_only().allow_network("127.0.0.0/8".parse().unwrap());
        let judged = async |url: &str| judge_plain(&named, &Url::parse(url).unwrap()).await;
        assert!(judged("http://127.0.0.1:9/x").await.is_ok());
        let elsewhere = judged("http://1.1.1.1/x").await;
        assert!(
            matches!(elsewhere, Err(Withheld::Unsafe(_))),
            "{elsewhere:?}"
        );
        let unknown = judged("http://no-such-name.invalid/").await;
        let Err(Withheld::Unknown(message)) = &unknown else {
            panic!("{unknown:?}");
        };
        assert!(
            message.starts_with("no-such-name.invalid cannot be resolved: "),
            "{message}"
        );
    }
}
