//! The child process that compiles one component: the host binary's hidden `compile` subcommand.
//! It reads a component from standard input, writes native code to standard output, and limits
//! itself before it reads anything.

use std::{
    io::{self, Read, Write},
    process::ExitCode,
};

use crate::{
    engine,
    threads::{PATIENT, lower_priority, set_slice},
};

/// Tells the child how much address space it may use, in bytes.
pub(crate) const MEMORY_VARIABLE: &str = "SOUK_COMPILE_MEMORY_BYTES";
/// Tells the child how much CPU time it may use, in seconds.
pub(crate) const CPU_VARIABLE: &str = "SOUK_COMPILE_CPU_SECONDS";

/// Tells the child by how much to lower its priority.
pub(crate) const NICE_VARIABLE: &str = "SOUK_COMPILE_NICE";

/// The child's exit code when there is no room for what it has compiled; nothing else of it ends so.
pub(crate) const DISK_FULL: u8 = 28;

/// Why there is no native code.
enum Failure {
    Refused(String),
    DiskFull(io::Error),
}

impl From<String> for Failure {
    fn from(reason: String) -> Failure {
        Failure::Refused(reason)
    }
}

/// Exit codes: 0 compiled, 1 refused (the reason is on standard error), `DISK_FULL`. Anything else: a limit.
pub fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(Failure::Refused(reason)) => {
            let _ = writeln!(io::stderr(), "{reason}");
            ExitCode::FAILURE
        }
        Err(Failure::DiskFull(error)) => {
            let _ = writeln!(io::stderr(), "{error}");
            ExitCode::from(DISK_FULL)
        }
    }
}

fn run() -> Result<(), Failure> {
    limit(libc::RLIMIT_CORE, 0)?;
    if let Some(bytes) = variable(MEMORY_VARIABLE) {
        limit(libc::RLIMIT_AS, bytes)?;
    }
    if let Some(seconds) = variable(CPU_VARIABLE) {
        limit(libc::RLIMIT_CPU, seconds)?;
    }
    if let Some(nice) = variable(NICE_VARIABLE) {
        lower_priority(i32::try_from(nice).unwrap_or(0));
    }
    set_slice(PATIENT);
    let mut wasm = Vec::new();
    io::stdin()
        .lock()
        .read_to_end(&mut wasm)
        .map_err(|error| format!("cannot read the component: {error}"))?;
    let code = compile(&wasm)?;
    let mut out = io::stdout().lock();
    out.write_all(&code)
        .and_then(|()| out.flush())
        .map_err(|error| match is_full(&error) {
            true => Failure::DiskFull(error),
            false => Failure::Refused(format!("cannot write native code: {error}")),
        })
}

/// Whether something could not be written for want of room.
pub(crate) fn is_full(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded
    )
}

pub(crate) fn compile(wasm: &[u8]) -> Result<Vec<u8>, String> {
    let engine = engine::compiler().map_err(|error| format!("{error:#}"))?;
    engine
        .precompile_component(wasm)
        .map_err(|error| format!("{error:#}"))
}

fn variable(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

#[allow(unsafe_code)]
fn limit(resource: libc::__rlimit_resource_t, value: u64) -> Result<(), String> {
    let limit = libc::rlimit {
        rlim_cur: value,
        rlim_max: value,
    };
    // SAFETY: `limit` is a valid struct for the duration of the call.
    if unsafe { libc::setrlimit(resource, &limit) } != 0 {
        return Err(format!(
            "cannot limit the compiler: {}",
            io::Error::last_os_error()
        ));
    }
    Ok(())
}
