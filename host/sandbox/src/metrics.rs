//! What the sandbox does, in Prometheus' text format. Labels are names that an operator gave, never
//! values of callers.

use std::{fmt::Write, sync::atomic::Ordering};

use crate::{connector::Scope, sandbox::Shared};

pub(crate) fn render(shared: &Shared, out: &mut String) {
    let mut totals = [0u64; 4];
    for pool in shared.pools.all() {
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
