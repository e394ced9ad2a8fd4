//! `souk connector`: the tools of who writes connectors. [`check`], [`run`] and [`test`] need no host: they load the component into a sandbox of
//! their own. [`remote`] handles those of a running host, [`push`] publishes them where [`add`] and [`sync`] find them, [`dev`] goes from a save to a
//! running version.
//!
//! Exit codes: 0 all is well, 1 the connector is not (a check failed, a request failed), 2 it could not be tried at all.

mod activation;
mod add;
mod build;
mod capabilities;
mod changes;
mod check;
mod dev;
mod group;
mod local;
mod lock;
mod logs;
mod new;
mod push;
mod quick;
mod registry;
mod remote;
mod run;
mod sync;
mod test;
mod versions;

use std::process::ExitCode;

use anyhow::Result;
use clap::Subcommand;

/// The connector is not well.
const NOT_WELL: u8 = 1;
/// It could not be tried; clap's own code for a command line that cannot be read.
const NOT_TRIED: u8 = 2;

const EXIT_CODES: &str = "\
Exit codes: 0 all is well, 1 the connector is not, 2 it could not be tried (no such file, no such setting).";

#[derive(Subcommand)]
pub enum Connector {
    /// Begin a connector: a project that builds, with its tests and the SDK.
    New(new::New),
    /// What a component says of itself, what it imports, what it may use, and whether a host would take it.
    #[command(after_help = EXIT_CODES)]
    Check(check::Check),
    /// Ask a component one thing, of a source or of the profile's own server, and print the answer.
    #[command(after_help = EXIT_CODES)]
    Run(run::Run),
    /// Hold a component against the contract: the conformance kit.
    #[command(after_help = EXIT_CODES)]
    Test(test::Test),
    /// Build on each save, hold the component against the contract, give it to a host, and print what it says there.
    #[command(after_help = EXIT_CODES)]
    Dev(dev::Dev),
    /// Put a component into an OCI registry, signed where a key is given. `souk connector add oci://…` takes it from there.
    #[command(after_help = EXIT_CODES)]
    Push(push::Push),
    #[command(flatten)]
    Remote(remote::Remote),
}

/// Runs the command to its end on this thread.
pub fn run(command: Connector) -> ExitCode {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build();
    let done = async {
        match command {
            Connector::New(command) => new::run(&command).map(|()| true),
            Connector::Check(command) => check::run(command).await,
            Connector::Run(command) => run::run(command).await,
            Connector::Test(command) => test::run(command).await,
            Connector::Dev(command) => dev::run(command).await,
            Connector::Push(command) => push::run(command).await,
            Connector::Remote(command) => remote::run(command).await,
        }
    };
    let ended: Result<bool> = runtime
        .map_err(anyhow::Error::from)
        .and_then(|runtime| runtime.block_on(done));
    match ended {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(NOT_WELL),
        Err(error) => {
            eprintln!("souk: {error:#}");
            match error.is::<quick::Kept>() {
                true => ExitCode::from(NOT_WELL),
                false => ExitCode::from(NOT_TRIED),
            }
        }
    }
}
