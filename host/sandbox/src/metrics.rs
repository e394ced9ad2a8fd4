//! What the sandbox does, in Prometheus' text format. Labels are names that an operator gave, never
//! values of callers.

use std::{fmt::Write, sync::atomic::Ordering};

use crate::{connector::Scope, pool::Pools, shared::Shared, tenants::Tenant};

pub(crate) fn render(shared: &Shared, pools: &Pools, out: &mut String) {
    let mut totals = [0u64; 4];
    for pool in pools.all() {
        for (total, count) in totals.iter_mut().zip(pool.counts()) {
            *total += count;
        }
    }
    let names = [
        "sessions_open",
        "sessions_idle",
        "requests_queued",
        "requests_in_flight",
    ];
    for (name, total) in names.iter().zip(totals) {
        let _ = writeln!(
            out,
            "# TYPE souk_sandbox_{name} gauge\nsouk_sandbox_{name} {total}"
        );
    }
    companies(shared, out);
    let connectors = shared.registry.all();
    for name in ["calls", "failures", "traps"] {
        let _ = writeln!(out, "# TYPE souk_connector_{name}_total counter");
        for connector in &connectors {
            let stats = &connector.stats;
            let value = match name {
                "calls" => &stats.calls,
                "failures" => &stats.failures,
                _ => &stats.traps,
            }
            .load(Ordering::Relaxed);
            let scope = match &connector.scope {
                Scope::Platform => "platform",
                Scope::Company(company) => company,
            };
            let (connector, version) = (&connector.name, &connector.version);
            let _ = writeln!(
                out,
                "souk_connector_{name}_total{{connector=\"{connector}\",version=\"{version}\",scope=\"{scope}\"}} {value}"
            );
        }
    }
}

/// Companies that are named, those that have computed most: a label for each of thousands helps nobody.
const COMPANIES_MAX: usize = 100;

/// What companies use, and what all of them do together.
fn companies(shared: &Shared, out: &mut String) {
    let _ = writeln!(
        out,
        "# TYPE souk_sandbox_guest_memory_bytes gauge\nsouk_sandbox_guest_memory_bytes {}",
        shared.host.memory()
    );
    let mut tenants = shared.tenants.all();
    tenants.retain(|tenant| !tenant.company.is_empty());
    tenants.sort_by_key(|tenant| std::cmp::Reverse(tenant.computed_us()));
    tenants.truncate(COMPANIES_MAX);
    type Read = fn(&Tenant) -> f64;
    let families: [(&str, &str, Read); 6] = [
        ("guest_seconds_total", "counter", |tenant| {
            tenant.computed_us() as f64 / 1e6
        }),
        ("guest_memory_bytes", "gauge", |tenant| {
            tenant.memory() as f64
        }),
        ("sessions_open", "gauge", |tenant| tenant.sessions() as f64),
        ("calls_in_flight", "gauge", |tenant| tenant.calls() as f64),
        ("sockets_open", "gauge", |tenant| tenant.sockets() as f64),
        ("refused_total", "counter", |tenant| tenant.refused() as f64),
    ];
    for (name, kind, read) in families {
        let _ = writeln!(out, "# TYPE souk_company_{name} {kind}");
        for tenant in &tenants {
            let (company, value) = (&tenant.company, read(tenant));
            let _ = writeln!(out, "souk_company_{name}{{company=\"{company}\"}} {value}");
        }
    }
}
