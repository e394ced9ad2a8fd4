//! Who answers for what a request changes: what the audit log says of it.

use crate::caller::Caller;
use crate::operation::Operation;
use http::Uri;
use souk_domain::ids::RequestId;
use souk_store::audit::{Act, ActedBy};
use std::net::IpAddr;
use std::sync::Arc;

/// A path of souk's own routes is shorter; what is longer is cut.
const PATH_CHARS_MAX: usize = 1_000;

/// Who answers for what a request changes.
pub(crate) fn act(
    operation: &Operation,
    caller: Option<&Caller>,
    uri: &Uri,
    address: IpAddr,
    request: &RequestId,
) -> Arc<Act> {
    Arc::new(Act {
        company: caller.map(|caller| caller.company().clone()),
        by: caller.map(|caller| ActedBy {
            company: caller.payer().clone(),
            actor: caller.actor().clone(),
            user: caller.user().cloned(),
            role: caller.role().level(),
        }),
        address,
        operation: operation.id,
        method: operation.verb.name(),
        path: uri.path().chars().take(PATH_CHARS_MAX).collect(),
        request: request.clone(),
        is_keyless: caller.is_none(),
    })
}
