//! The binary `souk`: reads the command line and starts what it names. See `cli.rs` for the settings,
//! `host.rs` for how the parts are put together.

mod busy_poll;
mod c_heap;
mod cli;
mod commands;
mod demo;
mod descriptors;
mod host;
mod interfaces;
mod listener;
mod logs;
mod master_key;
mod metrics;
mod private;
mod ready;
mod refusals;
mod serve;
mod settings;
mod traces;

use std::process::ExitCode;

use anyhow::Result;
use clap::Parser;

use cli::{Cli, Command};
use settings::Settings;

/// A charge or an answer is many small pieces of memory, made on one thread and often freed on another: glibc's allocator took a tenth of the
/// processor for them.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// For what is no request: the store's housekeeping, jobs, the demo's own API. Requests have threads
/// of their own, see `listener.rs`.
const BACKGROUND_THREADS: usize = 2;

fn main() -> ExitCode {
    let result = match Cli::parse().command {
        Command::Serve(options) => Settings::resolve(options, &settings::SERVE)
            .and_then(|settings| block_on(settings, serve::run)),
        Command::Demo(options) => Settings::resolve(options, &settings::DEMO)
            .and_then(|settings| block_on(settings, demo::run)),
        Command::Operate(command) => commands::run(command),
        Command::Connector(command) => return commands::connector::run(command),
        Command::Compile => return souk_sandbox::compile_child::main(),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("souk: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn block_on<F: Future<Output = Result<()>>>(
    settings: Settings,
    run: fn(Settings) -> F,
) -> Result<()> {
    private::keep_to_owner();
    c_heap::share();
    logs::start(&settings.log, settings.log_format)?;
    let unread = cli::unread_variables(std::env::vars_os());
    if !unread.is_empty() {
        // Without values: one may be a secret.
        tracing::warn!(
            variables = unread.join(", "),
            "no setting has this name: `souk serve --help` says how they are written"
        );
    }
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(BACKGROUND_THREADS)
        .thread_name("background")
        .enable_all()
        .build()?
        .block_on(run(settings))
}
