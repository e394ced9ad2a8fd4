//! `GET /metrics` in Prometheus' text format, on a listener of its own: it has no key, so it must not
//! stand beside the API.

use std::fmt::Write;
use std::net::SocketAddr;
use std::sync::atomic::Ordering::Relaxed;

use anyhow::{Context, Result};
use axum::Router;
use axum::extract::State;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use souk_api::ApiState;

use crate::listener::Connections;

const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// Serves until the process ends. The address comes back: port 0 picks a free one.
pub async fn start(
    address: SocketAddr,
    api: ApiState,
    connections: Connections,
) -> Result<SocketAddr> {
    let listener = tokio::net::TcpListener::bind(address)
        .await
        .with_context(|| format!("cannot listen on {address} for metrics"))?;
    let address = listener.local_addr()?;
    let router = Router::new()
        .route("/metrics", get(metrics))
        .with_state((api, connections));
    tokio::spawn(async move {
        if let Err(error) = axum::serve(listener, router).await {
            tracing::error!(%error, "metrics are no longer served");
        }
    });
    Ok(address)
}

async fn metrics(State((api, connections)): State<(ApiState, Connections)>) -> Response {
    let mut text = String::with_capacity(4096);
    api.app().sandbox.render_metrics(&mut text);
    let counts = connections.counts();
    let mut families = vec![
        ("unread_answer_bytes", "gauge", api.unread_bytes() as i64),
        ("upload_bytes", "gauge", api.upload_bytes() as i64),
        (
            "store_coherent",
            "gauge",
            i64::from(api.app().db.is_coherent()),
        ),
        (
            "execution_records_dropped_total",
            "counter",
            api.app().teller.records_dropped() as i64,
        ),
        (
            "client_connections_refused_total",
            "counter",
            counts.refused.load(Relaxed) as i64,
        ),
        (
            "client_connections_refused_by_address_total",
            "counter",
            counts.refused_address.load(Relaxed) as i64,
        ),
        (
            "client_connections_too_slow_total",
            "counter",
            counts.too_slow.load(Relaxed) as i64,
        ),
    ];
    // A store that does not answer is told by /readyz; the rest is still worth knowing.
    if let Ok(mut read) = api.app().db.read().await
        && let Ok(kept) = souk_store::idempotency::kept_in_all(&mut read).await
    {
        families.push(("kept_answer_bytes", "gauge", kept.bytes));
        families.push((
            "kept_answer_bytes_of_largest_company",
            "gauge",
            kept.bytes_of_largest,
        ));
    }
    for (name, kind, value) in families {
        let _ = writeln!(text, "# TYPE souk_{name} {kind}\nsouk_{name} {value}");
    }
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
