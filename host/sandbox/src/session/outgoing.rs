//! What a guest sends otherwise than over its stream: HTTP requests, and second wires that tell a source to stop.

use std::time::Duration;

use futures_util::future::BoxFuture;
use tokio::io::AsyncWriteExt;

use super::guests::broken;
use crate::{
    fault::Fault,
    v1::{HttpFailure, HttpRequest, HttpResponse},
    wire::{Dialer, HttpOrigin},
};

/// For a second wire that only carries a cancel request.
const ASIDE_TIMEOUT: Duration = Duration::from_secs(5);
/// A cancel request has 16 bytes.
const ASIDE_BYTES_MAX: usize = 4 << 10;
/// HTTP requests of one session at once.
pub(super) const EXCHANGES_MAX: usize = 64;
/// HTTP requests for one answer that are sent at once, as one after the other; further ones at this pace. A page takes an API longer, and
/// a guest that asks for ever does so two hundred times a second.
pub(super) const EXCHANGES_FREE: usize = 64;
const EXCHANGE_PACE: Duration = Duration::from_millis(5);

pub(super) type Exchange = BoxFuture<'static, Result<HttpResponse, HttpFailure>>;

/// An HTTP request under way. `paced`: it waits for its turn first.
pub(super) fn exchange(
    origin: &HttpOrigin,
    request: HttpRequest,
    paced: bool,
) -> Result<Exchange, Fault> {
    let id = request.id;
    let exchange = origin.send(request).map_err(|refused| broken(refused.0))?;
    Ok(Box::pin(async move {
        if paced {
            tokio::time::sleep(EXCHANGE_PACE).await;
        }
        exchange.await.map_err(|error| HttpFailure {
            id,
            fault: error.kind.into(),
            message: error.message,
        })
    }))
}

/// Opens a second wire to the same address, sends, closes. Nobody waits for it; where the company may not have it
/// now, the source is not told.
pub(super) fn aside(dialer: Dialer, bytes: Vec<u8>) -> Result<(), Fault> {
    if bytes.len() > ASIDE_BYTES_MAX {
        return Err(broken(format!(
            "it sent more than {ASIDE_BYTES_MAX} bytes aside"
        )));
    }
    let Some(socket) = dialer.account.aside() else {
        return Ok(());
    };
    tokio::spawn(async move {
        let _socket = socket;
        let sent = tokio::time::timeout(ASIDE_TIMEOUT, async {
            let mut stream = dialer.dial().await.map_err(|error| error.message)?;
            stream
                .write_all(&bytes)
                .await
                .map_err(|error| error.to_string())?;
            stream.shutdown().await.map_err(|error| error.to_string())
        })
        .await;
        if let Ok(Err(error)) = sent {
            tracing::debug!(error, "a cancel request was not sent");
        }
    });
    Ok(())
}
