//! Connections of the host's own to addresses that customers name. They are resolved, judged and dialled like a connector's; what is said
//! over them is the caller's business.

use std::time::Duration;

use tokio::{net::TcpStream, time::timeout};

use crate::{
    egress::EgressPolicy,
    fault::Fault,
    v1::WireFault,
    wire::{Dialer, WireError, resolve_and_check, shared_lookups},
};

/// Opens a connection to the first of a name's addresses that the policy allows and that answers.
pub async fn dial(
    egress: &EgressPolicy,
    host: &str,
    port: u16,
    within: Duration,
) -> Result<TcpStream, Fault> {
    let dialer = Dialer {
        host: host.to_owned(),
        port,
        egress: egress.clone(),
        connect_timeout: within,
        account: None,
    };
    Ok(dialer.dial().await?)
}

/// Resolves a name and checks every address, without dialling: for refusing one when it is saved.
pub async fn check_address(
    egress: &EgressPolicy,
    host: &str,
    port: u16,
    within: Duration,
) -> Result<(), Fault> {
    match timeout(
        within,
        resolve_and_check(egress, host, port, shared_lookups()),
    )
    .await
    {
        Ok(checked) => Ok(checked.map(drop)?),
        Err(_) => {
            let message = format!("{host} was not resolved in time");
            Err(WireError::new(WireFault::Timeout, message).into())
        }
    }
}
