//! What the operator decides about the sandbox, with the bounds that hold when nothing is said.

use std::{path::PathBuf, time::Duration};

use souk_outbound::EgressPolicy;

use crate::tenants::Quota;

/// How to build a `Sandbox`.
#[derive(Clone, Debug)]
pub struct Options {
    /// Private to this host (made 0700): compiled connectors and the key that authenticates them.
    pub cache_dir: PathBuf,
    pub egress: EgressPolicy,
    pub compiler: Compiler,
    pub limits: SandboxLimits,
}

/// Where connectors are compiled.
#[derive(Clone, Debug)]
pub enum Compiler {
    /// A child process with memory and time limits, which ends up in `compile_child::main`.
    Child { program: PathBuf, args: Vec<String> },
    /// This process, without limits: for tests and for tools that only see files they trust.
    InProcess,
}

/// How long a lent directory may take to come (`Lender`): what is left of the time to open a session is the connector's.
pub const LENT_WITHIN: Duration = Duration::from_secs(4);

/// Every bound of the sandbox that is not part of a source or a request.
#[derive(Clone, Debug)]
pub struct SandboxLimits {
    /// Sessions of all data connections together. Sizes the pooling allocator.
    pub sessions_total: u32,
    /// Linear memory of a session that speaks over a wire.
    pub wire_memory_bytes: usize,
    /// Linear memory of a session on a directory: a file engine keeps its page cache there.
    pub directory_memory_bytes: usize,
    /// Linear memory of all guests together.
    pub guest_memory_bytes: usize,
    /// What one company may use of all this.
    pub quota: Quota,
    /// Processor time of one call into a wire connector. A call is bounded by the bytes fed to it, so a
    /// longer one is a loop.
    pub call_budget: Duration,
    /// What a call may take more for each MiB that it is given at once, as a response: compiled code reads that in a few milliseconds, Python
    /// and JavaScript in up to a tenth of a second, and make rows of it in as much again.
    pub call_budget_per_mib: Duration,
    /// From dialling to a session that takes requests.
    pub open_timeout: Duration,
    pub connect_timeout: Duration,
    /// An unused session is closed after this time.
    pub idle_timeout: Duration,
    /// A session is not reused after this time, so that rotated passwords and moved hosts are noticed.
    pub session_age_max: Duration,
    pub columns_max: usize,
    pub component_bytes_max: usize,
    pub compile_memory_bytes: u64,
    pub compile_timeout: Duration,
}

impl Default for SandboxLimits {
    fn default() -> Self {
        SandboxLimits {
            sessions_total: 1000,
            wire_memory_bytes: 64 << 20,
            directory_memory_bytes: 512 << 20,
            guest_memory_bytes: 8 << 30,
            quota: Quota::default(),
            call_budget: Duration::from_millis(250),
            call_budget_per_mib: Duration::from_millis(250),
            open_timeout: Duration::from_secs(15),
            connect_timeout: Duration::from_secs(10),
            idle_timeout: Duration::from_secs(120),
            session_age_max: Duration::from_secs(3600),
            columns_max: 1600,
            component_bytes_max: 64 << 20,
            compile_memory_bytes: 4 << 30,
            compile_timeout: Duration::from_secs(120),
        }
    }
}

impl Options {
    pub fn new(cache_dir: impl Into<PathBuf>, egress: EgressPolicy, compiler: Compiler) -> Options {
        Options {
            cache_dir: cache_dir.into(),
            egress,
            compiler,
            limits: SandboxLimits::default(),
        }
    }
}
