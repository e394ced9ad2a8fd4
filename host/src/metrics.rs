//! `GET /metrics` in Prometheus' text format, on a listener of its own: it has no key, so it must not
//! stand beside the API.

use std::fmt::Write;
use std::net::SocketAddr;

use anyhow::{Context, Result};
use axum::Router;
use axum::extract::State;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use souk_app::App;

use crate::listener::Connections;

const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// Serves until the process ends. The address comes back: port 0 picks a free one.
pub async fn start(address: SocketAddr, app: App, connections: Connections) -> Result<SocketAddr> {
    let listener = tokio::net::TcpListener::bind(address)
        .await
        .with_context(|| format!("cannot listen on {address} for metrics"))?;
    let address = listener.local_addr()?;
    let router = Router::new()
        .route("/metrics", get(metrics))
        .with_state((app, connections));
    tokio::spawn(async move {
        if let Err(error) = axum::serve(listener, router).await {
            tracing::error!(%error, "metrics are no longer served");
        }
    });
    Ok(address)
}

async fn metrics(State((app, connections)): State<(App, Connections)>) -> Response {
    let mut text = String::with_capacity(4096);
    app.sandbox.render_metrics(&mut text);
    // Writing to a string cannot fail.
    let _ = writeln!(
        text,
        "# HELP souk_client_connections Client connections open.\n\
         # TYPE souk_client_connections gauge\n\
         souk_client_connections {}",
        connections.open()
    );
    ([(header::CONTENT_TYPE, CONTENT_TYPE)], text).into_response()
}
