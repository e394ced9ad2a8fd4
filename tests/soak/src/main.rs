//! Long runs, which are no tests of every day: `tests/soak/run`, `tests/soak/run swaps` and `tests/soak/run connections`. Each ends with an error if what it proves does
//! not hold.

mod companies;
mod connections;
mod swaps;

use std::path::PathBuf;
use std::time::Duration;

use clap::{Parser, Subcommand};
use connections::Others;
use souk_tests::host;

#[derive(Parser)]
#[command(
    about = "Runs twenty companies, five of them hostile, for minutes, and balances the books."
)]
struct Options {
    #[command(subcommand)]
    command: Option<Command>,
    /// The build of souk that is run [default: the one beside this command].
    #[arg(long, global = true)]
    host: Option<PathBuf>,
    /// How long companies are served.
    #[arg(long, default_value_t = 10.0)]
    minutes: f64,
    #[arg(long, default_value_t = 20)]
    companies: usize,
    /// How many of them are hostile.
    #[arg(long, default_value_t = 5)]
    hostile: usize,
}

#[derive(Subcommand)]
enum Command {
    /// Loads, activates, rolls back and unloads a connector again and again, then swaps versions under load.
    Swaps {
        #[arg(long, default_value_t = 1_000)]
        loads: u32,
        /// Memory is compared with what it was after so many.
        #[arg(long, default_value_t = 50)]
        settled_after: u32,
        /// Different components; the later loads of one find it compiled.
        #[arg(long, default_value_t = 25)]
        components: u32,
        #[arg(long, default_value_t = 200)]
        swaps: u32,
    },
    /// What a thousand data connections cost: memory, and the speed of those that are used.
    Connections {
        #[arg(long, default_value_t = 1_000)]
        connections: usize,
        /// How many are used.
        #[arg(long, default_value_t = 10)]
        used: usize,
        /// What the large host has beside them: several, by commas, are measured one after the other [default: sessions; with --memory those of all engines].
        #[arg(long, value_enum, value_delimiter = ',')]
        others: Vec<Others>,
        /// Only what an idle session takes.
        #[arg(long)]
        memory: bool,
        /// Those that are used are of a company that has no others.
        #[arg(long)]
        apart: bool,
        #[arg(long, default_value_t = 25)]
        rounds: usize,
        #[arg(long, default_value_t = 1_000)]
        slice_ms: u64,
    },
}

fn main() -> anyhow::Result<()> {
    let options = Options::parse();
    let binary = options.host.clone().unwrap_or_else(host::binary);
    let runtime = tokio::runtime::Runtime::new()?;
    let run = async move {
        match options.command {
            Some(Command::Swaps {
                loads,
                settled_after,
                components,
                swaps,
            }) => {
                let plan = swaps::Plan {
                    loads,
                    settled_after,
                    components,
                    swaps,
                };
                swaps::run(binary, &plan).await
            }
            Some(Command::Connections {
                connections,
                used,
                others,
                memory,
                apart,
                rounds,
                slice_ms,
            }) => {
                let others = match (others.is_empty(), memory) {
                    (true, true) => Others::engines(),
                    (true, false) => vec![Others::Sessions],
                    (false, _) => others,
                };
                let plan = |others| connections::Plan {
                    connections,
                    used,
                    others,
                    memory,
                    apart,
                    rounds,
                    slice: Duration::from_millis(slice_ms),
                };
                let plans: Vec<_> = others.into_iter().map(plan).collect();
                connections::run_each(&binary, &plans).await
            }
            None => {
                let plan = companies::Plan {
                    minutes: options.minutes,
                    companies: options.companies,
                    hostile: options.hostile,
                };
                companies::run(binary, &plan).await
            }
        }
    };
    runtime.block_on(run)
}
