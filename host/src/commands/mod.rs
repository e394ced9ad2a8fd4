//! The commands beside `serve` and `demo`: what an operator asks of a running host, over its REST API ([`client`]), and what he does to a store
//! that no host holds.
//!
//! One file per subject. A command gets what it needs from [`client::Client`] and hands what it found to [`output`], which knows tables and JSON;
//! it decides nothing that the host decides. [`connector`] is for who writes connectors, and mostly needs no host.

mod backup;
mod client;
mod companies;
mod completions;
pub mod connector;
mod credits;
mod doctor;
mod keys;
mod output;
mod progress;
mod store;
mod users;
mod webhooks;

use anyhow::Result;
use clap::Subcommand;

#[derive(Subcommand)]
pub enum Command {
    /// Companies of a running host.
    #[command(subcommand)]
    Companies(companies::Companies),
    /// Users of a company, on a running host.
    #[command(subcommand)]
    Users(users::Users),
    /// API keys of a company, on a running host; a lost key, and the secrets under the master key.
    #[command(subcommand)]
    Keys(keys::Keys),
    /// Credits of a company, on a running host.
    #[command(subcommand)]
    Credits(credits::Credits),
    /// Hold the ledger of a running host against itself; fails when the books do not balance.
    Reconcile(credits::Reconcile),
    /// Webhooks of a company, on a running host.
    #[command(subcommand)]
    Webhooks(webhooks::Webhooks),
    /// Take a backup of a running host: store, files, and the fingerprint of the master key, which is not in it. Needs role 5.
    ///
    /// What was answered before is in it, and calls go on meanwhile. `souk restore` makes a data directory of it.
    Backup(backup::Backup),
    /// Make a data directory of a backup, if all of it is there and unharmed.
    Restore(backup::Restore),
    /// Look whether a data directory and its store are well: modes, space, master key, books, files.
    ///
    /// Opens the store as `souk serve` does, so on SQLite no host may hold it; a newer souk brings its schema up to date.
    Doctor(doctor::Doctor),
    /// Print what makes a shell complete souk's commands and settings.
    ///
    /// `souk completions bash > /etc/bash_completion.d/souk`, say.
    Completions(completions::Completions),
}

/// Runs the command to its end on this thread.
pub fn run(command: Command) -> Result<()> {
    let done = async {
        match command {
            Command::Companies(command) => companies::run(command).await,
            Command::Users(command) => users::run(command).await,
            Command::Keys(command) => keys::run(command).await,
            Command::Credits(command) => credits::run(command).await,
            Command::Reconcile(command) => credits::reconcile(command).await,
            Command::Webhooks(command) => webhooks::run(command).await,
            Command::Backup(command) => backup::backup(command).await,
            Command::Restore(command) => backup::restore(command),
            Command::Doctor(command) => doctor::run(command).await,
            Command::Completions(command) => completions::run(&command),
        }
    };
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?
        .block_on(done)
}
