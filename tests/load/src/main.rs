//! One command, `tests/load/run`, measures souk against native handlers on this machine and prints
//! ratios of one interleaved run. See README.md beside this crate for figures that were reached.

mod answers;
mod native;
mod native_mysql;
mod native_sqlite;

use std::io::BufRead;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::Context;
use clap::{Parser, ValueEnum};
use souk_load::market::{self, Market, Sources};
use souk_load::{generator, queries};
use souk_tests::{MariaDb, PgCluster, guests, host};

#[derive(Parser)]
#[command(about = "Measures souk against native handlers on the same PostgreSQL, interleaved.")]
struct Options {
    /// Numbers of concurrent clients.
    #[arg(long, value_delimiter = ',', default_values_t = [1, 16, 64])]
    clients: Vec<usize>,
    /// Rounds; the first is thrown away.
    #[arg(long, default_value_t = 7)]
    rounds: usize,
    /// Milliseconds for each competitor in a round.
    #[arg(long, default_value_t = 1500)]
    slice_ms: u64,
    /// Only queries whose name contains this.
    #[arg(long, default_value = "")]
    only: String,
    /// Only competitors whose name contains this (or is this, if one has it), to profile one.
    #[arg(long, default_value = "")]
    competitor: String,
    /// The binary of another build of souk, which is measured beside this one as "other souk".
    #[arg(long)]
    other: Option<PathBuf>,
    /// The guest `fixed-rows` as a component of the other build's contract, where that is another one than ours.
    #[arg(long, requires = "other")]
    other_guest: Option<PathBuf>,
    /// Internal: serve the native handlers.
    #[arg(long, hide = true)]
    native: Option<Mode>,
    #[arg(long, hide = true, default_value = "")]
    source: String,
}

#[derive(Clone, Copy, ValueEnum)]
enum Mode {
    Pooled,
    Local,
    Sqlite,
    Mysql,
}

/// One way to answer one query.
struct Competitor {
    name: &'static str,
    /// The process that answers.
    process: u32,
    address: String,
    requests: Vec<Vec<u8>>,
}

struct Native {
    process: Child,
    address: String,
}

impl Native {
    fn start(mode: &str, source: &str) -> anyhow::Result<Native> {
        let mut process = Command::new(std::env::current_exe()?)
            .args(["--native", mode, "--source", source])
            .stdout(Stdio::piped())
            .spawn()?;
        let mut line = String::new();
        let stdout = process
            .stdout
            .take()
            .context("the native server's output")?;
        std::io::BufReader::new(stdout).read_line(&mut line)?;
        Ok(Native {
            process,
            address: line.trim().to_owned(),
        })
    }
}

impl Drop for Native {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn main() -> anyhow::Result<()> {
    let options = Options::parse();
    let threads = std::thread::available_parallelism()?.get();
    if let Some(mode) = options.native {
        return native::run(mode, &options.source, threads);
    }
    let runtime = tokio::runtime::Runtime::new()?;
    let prepared = runtime.block_on(prepare(&options))?;
    println!(
        "{:<16} {:>7}  requests a second, median latency, processor time of the server for a request, and ratios to the first line of each group (median of rounds)",
        "query", "clients"
    );
    for (query, competitors) in &prepared.races {
        if !query.contains(&options.only) {
            continue;
        }
        let is_a_name = competitors
            .iter()
            .any(|competitor| competitor.name == options.competitor);
        let competitors: Vec<_> = competitors
            .iter()
            .filter(|competitor| match is_a_name {
                true => competitor.name == options.competitor,
                false => competitor.name.contains(&options.competitor),
            })
            .collect();
        if competitors.is_empty() {
            continue;
        }
        for &clients in &options.clients {
            measure(query, &competitors, clients, &options)?;
        }
    }
    Ok(())
}

fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// Rounds in which every competitor runs once, in rotating order; ratios are taken within a round.
fn measure(
    query: &str,
    competitors: &[&Competitor],
    clients: usize,
    options: &Options,
) -> anyhow::Result<()> {
    let slice = Duration::from_millis(options.slice_ms);
    let mut rates = vec![Vec::new(); competitors.len()];
    let mut latencies = vec![Vec::new(); competitors.len()];
    let mut costs = vec![Vec::new(); competitors.len()];
    for round in 0..options.rounds.max(2) {
        for turn in 0..competitors.len() {
            let index = (turn + round) % competitors.len();
            let competitor = competitors[index];
            let before = processor_time(competitor.process);
            let run = generator::run(&competitor.address, &competitor.requests, clients, slice)
                .with_context(|| format!("{} on {query}", competitor.name))?;
            let used = processor_time(competitor.process).saturating_sub(before);
            if round > 0 {
                // The warm-up is in both.
                let requests = run.requests_per_second * slice.as_secs_f64();
                costs[index].push(used.as_secs_f64() * 1e6 / requests);
                rates[index].push(run.requests_per_second);
                latencies[index].push(run.median_us);
            }
        }
    }
    for (index, competitor) in competitors.iter().enumerate() {
        let ratio = |of: &[Vec<f64>]| {
            median(
                &mut of[index]
                    .iter()
                    .zip(&of[0])
                    .map(|(a, b)| a / b)
                    .collect::<Vec<_>>(),
            )
        };
        let (rate_ratio, latency_ratio) = (ratio(&rates), ratio(&latencies));
        let cost_ratio = ratio(&costs);
        println!(
            "{query:<16} {clients:>7}  {:<15} {:>9.0}/s {:>8.0} us   throughput {rate_ratio:>5.2}x   latency {latency_ratio:>5.2}x   processor {:>6.1} us {cost_ratio:>5.2}x",
            competitor.name,
            median(&mut rates[index]),
            median(&mut latencies[index]),
            median(&mut costs[index]),
        );
    }
    Ok(())
}

/// What a process has used so far on all its threads. Unlike the clock on the wall it does not count what others take of the machine.
#[allow(unsafe_code)]
fn processor_time(process: u32) -> Duration {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: both functions are given valid places to write to; a process that is gone leaves zero.
    unsafe {
        let mut clock = 0;
        if libc::clock_getcpuclockid(process as libc::pid_t, &mut clock) == 0 {
            libc::clock_gettime(clock, &mut time);
        }
    }
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// What runs while it is measured. The cluster ends after those that use it.
struct Prepared {
    races: Vec<(&'static str, Vec<Competitor>)>,
    _markets: Vec<Market>,
    _natives: [Native; 4],
    _cluster: PgCluster,
    _mariadb: MariaDb,
    _files: tempfile::TempDir,
}

async fn prepare(options: &Options) -> anyhow::Result<Prepared> {
    let cluster = PgCluster::start(&[]).await;
    let database = cluster.database(queries::SCHEMA).await;
    let url = cluster.url(&database);
    let files = tempfile::tempdir()?;
    let file = files.path().join("players.db");
    native_sqlite::write(&file)?;
    let mariadb = MariaDb::start(&[]);
    let schema = mariadb.database(queries::MARIADB_SCHEMA);
    let natives = [
        Native::start("pooled", &url)?,
        Native::start("local", &url)?,
        Native::start("sqlite", &file.to_string_lossy())?,
        Native::start("mysql", &mariadb.url(&schema))?,
    ];
    let ours = guests::FIXED_ROWS.to_vec();
    let mut builds = vec![(host::binary(), ours.clone(), Some((&mariadb, &*schema)))];
    if let Some(other) = &options.other {
        let guest = options
            .other_guest
            .as_ref()
            .map(std::fs::read)
            .transpose()?;
        // It may be one from before that engine.
        builds.push((other.clone(), guest.unwrap_or(ours), None));
    }
    let mut markets = Vec::new();
    for (binary, guest, mariadb) in builds {
        let sources = Sources {
            cluster: &cluster,
            database: &database,
            file: &file,
            mariadb,
        };
        markets.push(Market::open(binary, guest, &sources).await);
    }
    let races = market::QUERIES.iter().map(|&query| {
        let competitors = natives_for(query, &natives)
            .into_iter()
            .chain(
                markets
                    .iter()
                    .zip(["souk", "other souk"])
                    .map(|(market, name)| Competitor {
                        name,
                        process: market.process,
                        address: market.address.clone(),
                        requests: market.owner(query),
                    }),
            )
            .chain(
                markets
                    .iter()
                    .zip(["souk, charged", "other souk, charged"])
                    .map(|(market, name)| Competitor {
                        name,
                        process: market.process,
                        address: market.address.clone(),
                        requests: market.charged(query),
                    }),
            )
            .filter(|competitor| !competitor.requests.is_empty());
        (query, competitors.collect())
    });
    Ok(Prepared {
        races: races.collect(),
        _markets: markets,
        _natives: natives,
        _cluster: cluster,
        _mariadb: mariadb,
        _files: files,
    })
}

/// The native handlers that answer a query.
fn natives_for(query: &str, [pooled, local, sqlite, mysql]: &[Native; 4]) -> Vec<Competitor> {
    let (source, what) = market::parts(query);
    let requests = match what {
        "single row" => queries::ids()
            .map(|id| generator::request("GET", &format!("/single?id={id}"), &[], ""))
            .collect(),
        "aggregate" => vec![generator::request("GET", "/aggregate", &[], "")],
        "50 rows" => vec![generator::request("GET", "/rows?limit=50", &[], "")],
        "1,000 rows" => vec![generator::request("GET", "/rows?limit=1000", &[], "")],
        _ => return Vec::new(),
    };
    let natives = match source {
        "file" => vec![("native", sqlite)],
        "mariadb" => vec![("native", mysql)],
        _ => vec![("native pooled", pooled), ("native local", local)],
    };
    let competitor = |(name, native): (&'static str, &Native)| Competitor {
        name,
        process: native.process.id(),
        address: native.address.clone(),
        requests: requests.clone(),
    };
    natives.into_iter().map(competitor).collect()
}
