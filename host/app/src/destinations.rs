//! Addresses that companies name and that something of theirs is sent to: which are allowed.

use std::time::Duration;

use souk_outbound::{EgressPolicy, ErrorKind, check_address};
use url::Url;

/// How long a name may take to be looked up while what names it is saved.
const LOOKUP_MAX: Duration = Duration::from_secs(3);

/// Whether something of a company's may be sent there, as far as that can be told before. Says why not.
pub(crate) async fn judge(egress: &EgressPolicy, url: &Url) -> Result<(), String> {
    let is_protected = url.scheme() == "https";
    let policy = match is_protected {
        true => egress.clone(),
        false => plain(egress),
    };
    let host = url.host_str().unwrap_or_default();
    let port = url.port_or_known_default().unwrap_or(443);
    match check_address(&policy, host, port, LOOKUP_MAX).await {
        Ok(()) => Ok(()),
        Err(error) if is_protected && error.kind == ErrorKind::EgressRefused => Err(error.message),
        // A name that is not known yet, or whose server is down, may be there when there is something to say.
        Err(_) if is_protected => Ok(()),
        Err(_) => Err(
            "must be an https:// address; http:// is for addresses that the operator has named (--allow-network)".to_owned(),
        ),
    }
}

/// Public addresses are reached under TLS only: whoever sits between could read events, and answer for the receiver. The operator's own
/// networks are the operator's responsibility.
pub(crate) fn plain(egress: &EgressPolicy) -> EgressPolicy {
    egress.named_only()
}
