//! What the sandbox does, for Prometheus. Labels are names that an operator gave and companies, never values of callers.

use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};
use std::fmt::{Debug, Error, Formatter};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::metrics::{MetricType, TypedMetric};

use crate::connector::{Scope, Status};
use crate::loaded::Connector;
use crate::pool::Pools;
use crate::shared::Shared;
use crate::tenants::Tenant;

/// Of each kind of use those companies are named that have most of it, so a hundred in all: a label for each of thousands helps nobody.
const NAMED_FOR_EACH: usize = 20;
const USES: [fn(&Tenant) -> u64; 5] = [
    |tenant| tenant.sessions() as u64,
    |tenant| tenant.memory() as u64,
    |tenant| tenant.calls() as u64,
    |tenant| tenant.sockets() as u64,
    |tenant| tenant.computed_us(),
];

/// Reads the sandbox when it is scraped.
pub struct Metrics {
    pub(crate) shared: Arc<Shared>,
    pub(crate) pools: Arc<Pools>,
}

impl Debug for Metrics {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result<(), Error> {
        f.write_str("Metrics")
    }
}

impl Collector for Metrics {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), Error> {
        self.sessions(&mut encoder)?;
        self.companies(&mut encoder)?;
        self.connectors(&mut encoder)
    }
}

impl Metrics {
    fn sessions(&self, encoder: &mut DescriptorEncoder<'_>) -> Result<(), Error> {
        let mut totals = [0u64; 4];
        for pool in self.pools.all() {
            for (total, count) in totals.iter_mut().zip(pool.counts()) {
                *total += count;
            }
        }
        let families = [
            ("sandbox_sessions_open", "Sessions at sources"),
            (
                "sandbox_sessions_idle",
                "Sessions at sources without a request",
            ),
            (
                "sandbox_requests_queued",
                "Requests that wait for a session",
            ),
            (
                "sandbox_requests_in_flight",
                "Requests that a session works on",
            ),
        ];
        for ((name, help), total) in families.into_iter().zip(totals) {
            gauge(encoder, name, help, total)?;
        }
        let memory = self.shared.host.memory() as u64;
        let help = "Memory of all guests";
        gauge(encoder, "sandbox_guest_memory_bytes", help, memory)
    }

    /// What companies use.
    fn companies(&self, encoder: &mut DescriptorEncoder<'_>) -> Result<(), Error> {
        let mut tenants = self.shared.tenants.all();
        tenants.retain(|tenant| !tenant.company.is_empty());
        let tenants = foremost(tenants);
        let pools = self.pools.all();
        let mut connections: HashMap<&str, HashSet<&str>> = HashMap::new();
        for pool in &pools {
            let of_company = connections.entry(&pool.source.company).or_default();
            of_company.insert(&pool.source.connection);
        }
        let mut family = |name, help, read: &dyn Fn(&Tenant) -> u64| {
            let values = tenants.iter().map(|tenant| {
                let labels = [("company", tenant.company.as_str())];
                (labels, ConstGauge::new(read(tenant)))
            });
            labelled(encoder, name, help, values)
        };
        family(
            "company_guest_memory_bytes",
            "Memory of guests",
            &|tenant| tenant.memory() as u64,
        )?;
        family("company_sessions_open", "Sessions at sources", &|tenant| {
            tenant.sessions() as u64
        })?;
        family(
            "company_data_connections_in_use",
            "Data connections that were asked of late",
            &|tenant| {
                let own = connections.get(tenant.company.as_str());
                own.map_or(0, |own| own.len() as u64)
            },
        )?;
        family(
            "company_calls_in_flight",
            "Calls of connectors in flight",
            &|tenant| tenant.calls() as u64,
        )?;
        family("company_sockets_open", "Sockets of sessions", &|tenant| {
            tenant.sockets() as u64
        })?;
        let seconds = tenants.iter().map(|tenant| {
            let labels = [("company", tenant.company.as_str())];
            (labels, ConstCounter::new(tenant.computed_us() as f64 / 1e6))
        });
        let help = "Processor time of guests";
        labelled(encoder, "company_guest_seconds", help, seconds)?;
        let refused = tenants.iter().map(|tenant| {
            let labels = [("company", tenant.company.as_str())];
            (labels, ConstCounter::new(tenant.refused()))
        });
        let help = "Calls that were refused because a bound of the company was reached";
        labelled(encoder, "company_refused", help, refused)
    }

    fn connectors(&self, encoder: &mut DescriptorEncoder<'_>) -> Result<(), Error> {
        let connectors = self.shared.registry.all();
        let takes_calls = |connector: &&Arc<Connector>| {
            matches!(connector.status(), Status::Active | Status::Canary)
        };
        let shares = connectors.iter().filter(takes_calls).map(|connector| {
            let share = u64::from(connector.share_percent());
            (labels_of(connector), ConstGauge::new(share))
        });
        let help = "Of the calls of its data connections, those that this version takes";
        labelled(encoder, "connector_share_percent", help, shares)?;
        let mut family = |name, help, read: fn(&Connector) -> u64| {
            let values = connectors
                .iter()
                .map(|connector| (labels_of(connector), ConstCounter::new(read(connector))));
            labelled(encoder, name, help, values)
        };
        family("connector_calls", "Calls, health checks too", |connector| {
            connector.stats.calls()
        })?;
        family("connector_failures", "Calls that failed", |connector| {
            connector.stats.failures()
        })?;
        family("connector_traps", "Calls that trapped", |connector| {
            connector.stats.traps.load(Relaxed)
        })
    }
}

/// Who has most of anything. Where few have any of it, the others are those that have computed most.
fn foremost(mut tenants: Vec<Arc<Tenant>>) -> Vec<Arc<Tenant>> {
    let mut named = Vec::new();
    for used in USES {
        // Each is read once: what is counted changes while it is sorted.
        tenants.sort_by_cached_key(|tenant| Reverse((used(tenant), tenant.computed_us())));
        let most = tenants.len().min(NAMED_FOR_EACH);
        named.extend(tenants.drain(..most));
    }
    named
}

fn labels_of(connector: &Connector) -> [(&str, &str); 3] {
    let scope = match &connector.scope {
        Scope::Platform => "platform",
        Scope::Company(company) => company,
    };
    [
        ("connector", connector.name.as_str()),
        ("version", connector.version.as_str()),
        ("scope", scope),
    ]
}

fn gauge(
    encoder: &mut DescriptorEncoder<'_>,
    name: &str,
    help: &str,
    value: u64,
) -> Result<(), Error> {
    let family = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
    ConstGauge::new(value).encode(family)
}

/// A family with a value for each set of labels.
fn labelled<'a, const N: usize, M: EncodeMetric + TypedMetric>(
    encoder: &mut DescriptorEncoder<'_>,
    name: &str,
    help: &str,
    values: impl Iterator<Item = ([(&'a str, &'a str); N], M)>,
) -> Result<(), Error> {
    let mut family = encoder.encode_descriptor(name, help, None, M::TYPE)?;
    for (labels, value) in values {
        value.encode(family.encode_family(&labels)?)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tenants::Tenants;

    /// Whoever has most of anything is named, although its guests never compute; the others by what theirs have computed, a hundred in all.
    #[test]
    fn whoever_has_most_of_anything_is_named() {
        let tenants = Tenants::default();
        for number in 0..200 {
            tenants
                .of(&format!("com_{number}"))
                .computed(1_000 + number);
        }
        let [silent, large, wide] = ["silent", "large", "wide"].map(|company| tenants.of(company));
        let sessions: Vec<_> = (0..64).map_while(|_| silent.take_session(64)).collect();
        let socket = wide.take_socket(256);
        assert!(sessions.len() == 64 && socket.is_some());
        assert!(large.take_memory(1 << 30, 1 << 30));
        let named = foremost(tenants.all());
        assert_eq!(named.len(), NAMED_FOR_EACH * USES.len());
        let is_named = |company: &str| named.iter().any(|tenant| tenant.company == company);
        for company in ["silent", "large", "wide", "com_199", "com_103"] {
            assert!(is_named(company), "{company}");
        }
        assert!(!is_named("com_102"));
    }

    /// Where there are few, all are named.
    #[test]
    fn few_companies_are_all_named() {
        let tenants = Tenants::default();
        for company in ["one", "other"] {
            tenants.of(company);
        }
        assert_eq!(foremost(tenants.all()).len(), 2);
    }
}
