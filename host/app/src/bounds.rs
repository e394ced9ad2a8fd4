//! What one company may use of what all companies share. Each bound is a setting of the host (`--company-…`); the constants are what holds
//! when nothing is said.

/// One company's share.
#[derive(Clone, Copy, Debug)]
pub struct CompanyBounds {
    /// Data connections that are not deleted.
    pub connections: u32,
    /// MiB that the stored versions of all its connectors have together.
    pub connector_mib: u32,
    /// … and how many versions.
    pub connector_versions: u32,
    /// Seconds that compiling its uploads may take, of each hour, on each host.
    pub compile_seconds: u32,
    /// Attempts to deliver to its webhooks at once, on each host.
    pub deliveries: u32,
    /// Alerts, active or not.
    pub alerts: u32,
    /// Evaluations of its alerts at once, on each host.
    pub evaluations: u32,
    /// Attempts to publish its posts at once, on each host.
    pub publications: u32,
}

impl CompanyBounds {
    /// A large seller has tens of sources; each can become sessions, sockets and memory.
    pub const CONNECTIONS: u32 = 100;
    /// A component with a language runtime and a database library inside stays below 20 MiB, so this is a dozen of the largest.
    pub const CONNECTOR_MIB: u32 = 256;
    /// Enough to go back and to try several connectors; every host that shares the store may be asked for each of them.
    pub const CONNECTOR_VERSIONS: u32 = 20;
    /// An honest component compiles in seconds. One may take 120 of them, so this is five of the worst.
    pub const COMPILE_SECONDS: u32 = 600;
    /// An eighth of what a host delivers at once: it takes eight companies whose receivers hang to be in the way of others.
    pub const DELIVERIES: u32 = 8;
    /// Each minute, this is seventeen runs a second.
    pub const ALERTS: u32 = 1_000;
    /// A sixteenth of what a host evaluates at once: a thousand alerts each minute when a run takes less than a second.
    pub const EVALUATIONS: u32 = 16;
    /// An eighth of what a host publishes at once: it takes eight companies whose platforms hang to be in the way of others.
    pub const PUBLICATIONS: u32 = 4;

    pub fn connector_bytes(&self) -> i64 {
        i64::from(self.connector_mib) << 20
    }
}

impl Default for CompanyBounds {
    fn default() -> CompanyBounds {
        CompanyBounds {
            connections: CompanyBounds::CONNECTIONS,
            connector_mib: CompanyBounds::CONNECTOR_MIB,
            connector_versions: CompanyBounds::CONNECTOR_VERSIONS,
            compile_seconds: CompanyBounds::COMPILE_SECONDS,
            deliveries: CompanyBounds::DELIVERIES,
            alerts: CompanyBounds::ALERTS,
            evaluations: CompanyBounds::EVALUATIONS,
            publications: CompanyBounds::PUBLICATIONS,
        }
    }
}
