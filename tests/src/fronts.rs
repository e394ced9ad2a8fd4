//! What servers of the tests that speak HTTP have in common.

use axum::serve::{Listener, ListenerExt};
use tokio::net::TcpListener;

/// With answers that are sent as soon as they are written: the end of a long one would wait for its client to acknowledge its beginning.
pub fn prompt(listener: TcpListener) -> impl Listener<Addr = std::net::SocketAddr> {
    listener.tap_io(|socket| {
        let _ = socket.set_nodelay(true);
    })
}
