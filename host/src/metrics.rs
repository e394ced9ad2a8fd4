//! `GET /metrics` for Prometheus (OpenMetrics text), on a listener of its own: it has no key, so it must not stand beside the API.

use std::fmt;
use std::net::SocketAddr;
use std::sync::atomic::Ordering::Relaxed;

use anyhow::{Context, Result};
use axum::Router;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric, text};
use prometheus_client::metrics::TypedMetric;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::Registry;
use souk_api::ApiState;
use souk_store::idempotency::Kept;

use crate::listener::Connections;

const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

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
    // A store that does not answer is told by /readyz; the rest is still worth knowing.
    let kept = match api.app().db.read().await {
        Ok(mut read) => souk_store::idempotency::kept_in_all(&mut read).await.ok(),
        Err(_) => None,
    };
    let mut registry = Registry::with_prefix("souk");
    registry.register_collector(Box::new(api.app().sandbox.metrics()));
    registry.register_collector(Box::new(Host {
        api,
        connections,
        kept,
    }));
    let mut text = String::with_capacity(8192);
    match text::encode(&mut text, &registry) {
        Ok(()) => ([(header::CONTENT_TYPE, CONTENT_TYPE)], text).into_response(),
        Err(error) => {
            tracing::error!(%error, "the metrics could not be written");
            StatusCode::INTERNAL_SERVER_ERROR.into_response()
        }
    }
}

/// What the host and its API count, at one look.
struct Host {
    api: ApiState,
    connections: Connections,
    kept: Option<Kept>,
}

impl fmt::Debug for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Host")
    }
}

impl Collector for Host {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let app = self.api.app();
        let counts = self.connections.counts();
        let mut gauge = |name, help, value| one(&mut encoder, name, help, ConstGauge::new(value));
        gauge(
            "client_connections",
            "Client connections open",
            self.connections.open() as u64,
        )?;
        gauge(
            "unread_answer_bytes",
            "Bytes of large answers that clients have not taken yet",
            self.api.unread_bytes(),
        )?;
        gauge(
            "upload_bytes",
            "Bytes that uploads under way may come to hold",
            self.api.upload_bytes(),
        )?;
        gauge(
            "store_coherent",
            "Whether this host hears what other hosts change (1) or reads past its caches (0)",
            u64::from(app.db.is_coherent()),
        )?;
        if let Some(are_shared) = self.api.shares_limits() {
            gauge(
                "shared_limits_available",
                "Whether the server on which hosts count rate limits together answers (1) or this host counts for itself (0)",
                u64::from(are_shared),
            )?;
        }
        if let Some(kept) = &self.kept {
            gauge(
                "kept_answer_bytes",
                "Answers kept for retries with the same Idempotency-Key",
                kept.bytes.cast_unsigned(),
            )?;
            gauge(
                "kept_answer_bytes_of_largest_company",
                "Kept answers of the company that has most",
                kept.bytes_of_largest.cast_unsigned(),
            )?;
        }
        let mut counter =
            |name, help, value| one(&mut encoder, name, help, ConstCounter::new(value));
        counter(
            "execution_records_dropped",
            "Runs of owners that were not recorded because the queue was full",
            app.teller.records_dropped(),
        )?;
        counter(
            "client_connections_refused",
            "Client connections refused because too many were open",
            counts.refused.load(Relaxed),
        )?;
        counter(
            "client_connections_refused_by_address",
            "Client connections refused because their address had too many open",
            counts.refused_address.load(Relaxed),
        )?;
        counter(
            "client_connections_too_slow",
            "Client connections cut because their client took its answer too slowly",
            counts.too_slow.load(Relaxed),
        )
    }
}

fn one(
    encoder: &mut DescriptorEncoder<'_>,
    name: &str,
    help: &str,
    metric: impl EncodeMetric + TypedMetric,
) -> fmt::Result {
    metric.encode(encoder.encode_descriptor(name, help, None, metric.metric_type())?)
}
