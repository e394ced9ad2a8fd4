//! `GET /metrics` for Prometheus (OpenMetrics text), on a listener of its own: it has no key, so it must not stand beside the API.

mod stored;

use std::cmp::Reverse;
use std::fmt;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use anyhow::{Context, Result};
use axum::Router;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric, NoLabelSet, text};
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::metrics::{MetricType, TypedMetric};
use prometheus_client::registry::{Registry, Unit};
use souk_api::ApiState;
use souk_api::observed::Seen;

use crate::listener::Connections;
use stored::{Looks, Stored};

const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";
/// Companies that are named for what their uploads take to compile, those that take most: as many as for anything else ([`souk_sandbox`]).
const COMPILED_MAX: usize = 20;

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
        .with_state(Watched {
            api,
            connections,
            looks: Looks::default(),
        });
    tokio::spawn(async move {
        if let Err(error) = axum::serve(listener, router).await {
            tracing::error!(%error, "metrics are no longer served");
        }
    });
    Ok(address)
}

/// What is scraped.
#[derive(Clone)]
struct Watched {
    api: ApiState,
    connections: Connections,
    looks: Looks,
}

async fn metrics(State(watched): State<Watched>) -> Response {
    let Watched {
        api,
        connections,
        looks,
    } = watched;
    // A store that does not answer is told by /readyz; the rest is still worth knowing.
    let stored = looks.now(&api.app().db).await;
    let mut registry = Registry::with_prefix("souk");
    registry.register_collector(Box::new(api.app().sandbox.metrics()));
    registry.register_collector(Box::new(Process::read()));
    registry.register_collector(Box::new(Host {
        api,
        connections,
        stored,
    }));
    let mut text = String::with_capacity(65_536);
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
    stored: Option<Stored>,
}

impl fmt::Debug for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Host")
    }
}

impl Collector for Host {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        self.calls(&mut encoder)?;
        self.money(&mut encoder)?;
        self.files(&mut encoder)?;
        self.work(&mut encoder)?;
        self.state(&mut encoder)?;
        let counts = self.connections.counts();
        let recorder = self.api.settings().recorder.clone();
        let mut counter =
            |name, help, value| one(&mut encoder, name, help, ConstCounter::new(value));
        counter(
            "execution_records_dropped",
            "Runs of owners that were not recorded because the queue was full",
            self.api.app().teller.records_dropped(),
        )?;
        if let Some(recorder) = recorder {
            counter(
                "spans_sent",
                "Spans of calls that the collector has taken",
                recorder.sent(),
            )?;
            counter(
                "spans_dropped",
                "Spans of calls that were lost: the collector did not take them, or not in time",
                recorder.dropped(),
            )?;
        }
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

impl Host {
    /// By route: the labels are the routes of the API, its statuses and its codes, so there are never more.
    fn calls(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        let seen = self.api.seen();
        let kind = MetricType::Histogram;
        let help = "From a request's head to its answer's, by route and class of status";
        let mut metric =
            encoder.encode_descriptor("request_duration", help, Some(&Unit::Seconds), kind)?;
        for Seen {
            route,
            method,
            latencies,
            ..
        } in &seen
        {
            for of in latencies {
                let labels = [("route", *route), ("method", *method), ("class", of.class)];
                metric
                    .encode_family(&labels)?
                    .encode_histogram::<NoLabelSet>(of.sum_seconds, of.count, &of.buckets, None)?;
            }
        }
        let help = "Requests answered, by route and status";
        let mut metric = encoder.encode_descriptor("requests", help, None, MetricType::Counter)?;
        for Seen {
            route,
            method,
            statuses,
            ..
        } in &seen
        {
            for (status, count) in statuses {
                let status = status.to_string();
                let labels = [("route", *route), ("method", *method), ("status", &status)];
                metric
                    .encode_family(&labels)?
                    .encode_counter::<NoLabelSet, u64, u64>(count, None)?;
            }
        }
        let help = "Requests refused, by code";
        let mut metric = encoder.encode_descriptor("refusals", help, None, MetricType::Counter)?;
        for (code, count) in self.api.refused() {
            let labels = [("code", code.as_str())];
            metric
                .encode_family(&labels)?
                .encode_counter::<NoLabelSet, u64, u64>(&count, None)?;
        }
        Ok(())
    }

    fn money(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        let app = self.api.app();
        let counts = app.teller.counts();
        let mut counter = |name, help, value: &AtomicU64| {
            let value = value.load(Relaxed);
            one(encoder, name, help, ConstCounter::new(value))
        };
        counter(
            "holds",
            "Times that credits were held for a run",
            &counts.holds,
        )?;
        counter(
            "holds_refused",
            "Runs that did not begin for want of credits",
            &counts.holds_refused,
        )?;
        counter(
            "charges",
            "Charges booked durably and answered",
            &counts.charges,
        )?;
        counter(
            "charged_credits",
            "Credits of those charges",
            &counts.charged_credits,
        )?;
        counter(
            "charges_failed",
            "Charges that could not be booked: nothing was charged, and the call failed",
            &counts.charges_failed,
        )?;
        let Some((frames, bytes)) = app.db.charge_log_lag() else {
            return Ok(());
        };
        let mut gauge = |name, help, value: u64| one(encoder, name, help, ConstGauge::new(value));
        gauge(
            "charge_log_lag_frames",
            "Frames of charges that are durable in the charge log and not in the books yet",
            frames,
        )?;
        gauge("charge_log_bytes", "Size of the charge log", bytes)
    }

    /// Where hosts share files.
    fn files(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        let Some(files) = &self.api.app().shared_files else {
            return Ok(());
        };
        let mut counter = |name, help, value: &AtomicU64| {
            let value = value.load(Relaxed);
            one(encoder, name, help, ConstCounter::new(value))
        };
        counter(
            "files_fetched",
            "Files that were fetched from the object store",
            &files.fetched,
        )?;
        counter(
            "files_not_fetched",
            "Files that could not be fetched: calls that need them are answered 503",
            &files.not_fetched,
        )?;
        let bytes = ConstGauge::new(files.cached_bytes());
        let help = "Copies of files of the object store on the disk of this host";
        one(encoder, "files_cached_bytes", help, bytes)
    }

    /// What is done for companies beside their calls.
    fn work(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        let app = self.api.app();
        let in_flight = app.deliveries.by_company();
        let all: u64 = in_flight.iter().map(|(_, attempts)| attempts).sum();
        one(
            encoder,
            "webhook_deliveries_in_flight",
            "Deliveries to webhooks that are being attempted",
            ConstGauge::new(all),
        )?;
        let help = "Deliveries to a company's webhooks that are being attempted";
        let values = in_flight
            .iter()
            .map(|(company, attempts)| (company.as_str(), *attempts));
        of_companies(
            encoder,
            "company_webhook_deliveries_in_flight",
            help,
            values,
        )?;
        one(
            encoder,
            "compile_seconds",
            "Time that companies' uploads of connectors took to compile",
            ConstCounter::new(app.connectors.compiled_for().as_secs_f64()),
        )?;
        let mut compiled = app.connectors.compiled_by_company();
        compiled.sort_unstable_by_key(|(_, spent)| Reverse(*spent));
        compiled.truncate(COMPILED_MAX);
        let help = "The same of a company in the hour that began with the first of them";
        let values = compiled
            .iter()
            .map(|(company, spent)| (company.as_str(), spent.as_secs()));
        of_companies(encoder, "company_compile_seconds", help, values)
    }

    fn state(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        let app = self.api.app();
        let mut gauge = |name, help, value| one(encoder, name, help, ConstGauge::new(value));
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
        gauge(
            "store_available",
            "Whether the store answered just now (1), or the figures that it knows are left out (0)",
            u64::from(self.stored.is_some()),
        )?;
        if let Some(are_shared) = self.api.shares_limits() {
            gauge(
                "shared_limits_available",
                "Whether the server on which hosts count rate limits together answers (1) or this host counts for itself (0)",
                u64::from(are_shared),
            )?;
        }
        let Some(Stored { now, shares }) = &self.stored else {
            return Ok(());
        };
        gauge(
            "kept_answer_bytes",
            "Answers kept for retries with the same Idempotency-Key",
            now.kept.bytes.cast_unsigned(),
        )?;
        gauge(
            "kept_answer_bytes_of_largest_company",
            "Kept answers of the company that has most",
            now.kept.bytes_of_largest.cast_unsigned(),
        )?;
        gauge(
            "webhook_deliveries_waiting",
            "Deliveries to webhooks that are to be attempted, now or later",
            now.deliveries_waiting.cast_unsigned(),
        )?;
        gauge(
            "webhook_delivery_delay_seconds",
            "For how long the delivery that should have been attempted first has been due",
            now.delivery_delay.as_secs(),
        )?;
        let Some(shares) = shares else {
            return Ok(());
        };
        for (name, help, value) in [
            (
                "data_connections",
                "Data connections that companies have",
                shares.connections.in_all,
            ),
            (
                "data_connections_of_largest_company",
                "Data connections of the company that has most",
                shares.connections.by_largest,
            ),
            (
                "uploaded_connector_bytes",
                "Versions of connectors that companies have uploaded",
                shares.connector_bytes.in_all,
            ),
            (
                "uploaded_connector_bytes_of_largest_company",
                "Uploaded connectors of the company that has most",
                shares.connector_bytes.by_largest,
            ),
            ("file_bytes", "Companies' files", shares.file_bytes.in_all),
            (
                "file_bytes_of_largest_company",
                "Files of the company that has most",
                shares.file_bytes.by_largest,
            ),
        ] {
            gauge(name, help, value.cast_unsigned())?;
        }
        Ok(())
    }
}

/// This process, under the names that every Prometheus client has for it; `souk_` stands before them.
#[derive(Debug)]
struct Process {
    resident_bytes: u64,
    processor_seconds: f64,
    open_files: u64,
}

impl Process {
    /// Zeros where `/proc` is not to be read.
    fn read() -> Process {
        let text = |name: &str| std::fs::read_to_string(format!("/proc/self/{name}")).ok();
        let field = |text: &str, place: usize| text.split(' ').nth(place)?.parse::<u64>().ok();
        let pages = text("statm").and_then(|text| field(&text, 1)).unwrap_or(0);
        // After the name, which may have blanks: user and system time are the 14th and 15th field of all.
        let ticks = text("stat").and_then(|text| {
            let (_, rest) = text.rsplit_once(") ")?;
            Some(field(rest, 11)? + field(rest, 12)?)
        });
        let files = std::fs::read_dir("/proc/self/fd").map_or(0, Iterator::count);
        Process {
            resident_bytes: pages * PAGE_BYTES,
            processor_seconds: ticks.unwrap_or(0) as f64 / TICKS_PER_SECOND,
            open_files: files as u64,
        }
    }
}

/// Of every Linux that souk is built for.
const PAGE_BYTES: u64 = 4_096;
/// `USER_HZ`.
const TICKS_PER_SECOND: f64 = 100.0;

impl Collector for Process {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        one(
            &mut encoder,
            "process_resident_memory_bytes",
            "Memory of this process",
            ConstGauge::new(self.resident_bytes),
        )?;
        one(
            &mut encoder,
            "process_cpu_seconds",
            "Processor time of this process, its compilers aside",
            ConstCounter::new(self.processor_seconds),
        )?;
        one(
            &mut encoder,
            "process_open_fds",
            "Files and sockets that this process has open",
            ConstGauge::new(self.open_files),
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

/// A gauge with a value for each of these companies.
fn of_companies<'a>(
    encoder: &mut DescriptorEncoder<'_>,
    name: &str,
    help: &str,
    values: impl Iterator<Item = (&'a str, u64)>,
) -> fmt::Result {
    let mut family = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
    for (company, value) in values {
        let labels = [("company", company)];
        ConstGauge::new(value).encode(family.encode_family(&labels)?)?;
    }
    Ok(())
}
