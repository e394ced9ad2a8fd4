//! What company A notices while company B does its worst. One command, `tests/hostile/run`; see README.md beside this crate.
//!
//! A is the benchmark's owner path: a single row of PostgreSQL, 16 clients. In each round it is measured alone and then with B, on this
//! build and on the other one, if there is one; ratios are taken within a round, and their median is told.

mod report;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use clap::Parser;
use souk_hostile::flood::{Flood, Tally};
use souk_hostile::scenarios::{self, Ask, Scenario, Source, Work};
use souk_hostile::stage::{Stage, unique};
use souk_hostile::watch::{Usage, Watched};
use souk_load::generator;
use souk_load::market::{Market, unlimit};
use souk_load::servers::Server;
use souk_tests::{Company, guests, host};

use report::{Probe, Round, Shares};

#[derive(Parser)]
#[command(about = "Measures what one company notices of another that does its worst.")]
struct Options {
    /// The build of souk that is measured [default: the one beside this command].
    #[arg(long)]
    host: Option<PathBuf>,
    /// Another build, measured in turns with the first: before and after in one run.
    #[arg(long)]
    other: Option<PathBuf>,
    /// Only scenarios whose name contains this.
    #[arg(long, default_value = "")]
    only: String,
    /// Also the lies and files that are not measured otherwise.
    #[arg(long)]
    all: bool,
    /// Seconds for each measurement, alone and with company B.
    #[arg(long, default_value_t = 2.0)]
    seconds: f64,
    #[arg(long, default_value_t = 3)]
    rounds: usize,
    /// Requests that company B keeps in flight.
    #[arg(long, default_value_t = 16)]
    in_flight: usize,
    /// Clients of company A.
    #[arg(long, default_value_t = 16)]
    clients: usize,
}

/// What B began ends by its deadline, whatever it is.
const SETTLES_WITHIN: Duration = Duration::from_secs(30);

/// One build under test, with company A on it.
struct Build {
    name: &'static str,
    watched: Watched,
    market: Market,
}

fn main() -> anyhow::Result<()> {
    let options = Options::parse();
    let runtime = tokio::runtime::Runtime::new()?;
    let servers = runtime.block_on(servers());
    let builds = runtime.block_on(open(&options, &servers));
    report::head(&options);
    let mut all = scenarios::all();
    all.retain(|scenario| scenario.name.contains(&options.only));
    all.retain(|scenario| options.all || scenarios::is_measured(scenario));
    let mut missed = 0;
    for scenario in all {
        missed += measure(&runtime, &builds, &scenario, &options)?;
    }
    if "two heavy companies".contains(&options.only) {
        for build in &builds {
            let shares = two_heavy(&runtime, build, &options);
            report::shares(build.name, &shares);
        }
    }
    println!("{missed} of this build's bounds were missed");
    drop(builds);
    Ok(())
}

/// What company A reads.
async fn servers() -> [Server; 2] {
    [Server::start("").await, Server::start("file").await]
}

async fn open(options: &Options, servers: &[Server]) -> Vec<Build> {
    let first = options.host.clone().unwrap_or_else(host::binary);
    let binaries = [("this", Some(first)), ("other", options.other.clone())];
    let mut builds = Vec::new();
    for (name, binary) in binaries {
        let Some(binary) = binary else { continue };
        let watched = Watched::start(Some(binary)).await;
        let market = Market::on(&watched.host, guests::FIXED_ROWS.to_vec(), servers).await;
        builds.push(Build {
            name,
            watched,
            market,
        });
    }
    builds
}

/// A company without a limit of requests.
async fn company(build: &Build) -> Company {
    let company = build.watched.host.company(&unique("company-b")).await;
    let keys = company.client.get(&company.path("/api-keys")).await;
    unlimit(&company, &keys.expect(200).text("/data/0/id")).await;
    company
}

/// Prints a line for each build, and returns how many bounds the first one missed.
fn measure(
    runtime: &tokio::runtime::Runtime,
    builds: &[Build],
    scenario: &Scenario,
    options: &Options,
) -> anyhow::Result<usize> {
    let mut rounds: Vec<Vec<Round>> = builds.iter().map(|_| Vec::new()).collect();
    let mut usages = Vec::new();
    let mut stages = Vec::new();
    for build in builds {
        let before = runtime.block_on(build.watched.usage());
        usages.push((before, before));
        let stage = Stage::set(
            &build.watched.host,
            runtime.block_on(company(build)),
            scenario.clone(),
        );
        stages.push(Arc::new(runtime.block_on(stage)));
    }
    for round in 0..options.rounds.max(1) {
        for turn in 0..builds.len() {
            let index = (turn + round) % builds.len();
            let (build, stage) = (&builds[index], stages[index].clone());
            let alone = neighbour(build, options, None)?;
            let with = neighbour(build, options, Some(stage))?;
            rounds[index].push(Round { alone, with });
            let quiet = |usage: &Usage| usage.in_flight == 0;
            runtime.block_on(build.watched.until(SETTLES_WITHIN, quiet));
        }
    }
    let mut missed = 0;
    for (index, build) in builds.iter().enumerate() {
        runtime.block_on(stages[index].strike());
        let quiet = |usage: &Usage| usage.in_flight == 0;
        usages[index].1 = runtime.block_on(build.watched.until(SETTLES_WITHIN, quiet));
        let misses = report::line(build.name, scenario, &rounds[index], &usages[index]);
        missed += if index == 0 { misses } else { 0 };
    }
    Ok(missed)
}

/// One measurement of company A, `/healthz` beside it, and what B got meanwhile.
fn neighbour(
    build: &Build,
    options: &Options,
    stage: Option<Arc<Stage>>,
) -> anyhow::Result<(generator::Measured, Probe, Tally)> {
    let address = &build.market.address;
    let length = Duration::from_secs_f64(options.seconds);
    let flood = stage.map(|stage| Flood::start(address, options.in_flight, move || stage.bytes()));
    let probe = Probe::start(address, length);
    let requests = build.market.owner("single row");
    let measured = generator::measure(address, &requests, options.clients, length);
    let tally = flood.map(Flood::stop).unwrap_or_default();
    Ok((measured?, probe.end(), tally))
}

/// Two companies with the same honest work: one asks 16 times at once, the other once.
fn two_heavy(runtime: &tokio::runtime::Runtime, build: &Build, options: &Options) -> Shares {
    let joins = Scenario {
        name: "two heavy companies".to_owned(),
        source: Source::Work(Work::Joins),
        ask: Ask::Asset,
        timeout_ms: 20_000,
        right: &[],
    };
    let stage = || {
        let company = runtime.block_on(company(build));
        let stage = Stage::set(&build.watched.host, company, joins.clone());
        Arc::new(runtime.block_on(stage))
    };
    let (many, one) = (stage(), stage());
    let flood = |stage: &Arc<Stage>, clients| {
        let stage = stage.clone();
        Flood::start(&build.market.address, clients, move || stage.bytes())
    };
    let (floods, singles) = (flood(&many, options.in_flight), flood(&one, 1));
    // Long enough for dozens of joins.
    std::thread::sleep(Duration::from_secs_f64(
        options.seconds * options.rounds as f64,
    ));
    let shares = Shares {
        many: floods.succeeded(),
        one: singles.succeeded(),
    };
    let (many_seen, one_seen) = (floods.stop(), singles.stop());
    println!(
        "  in words: {} | {}",
        many_seen.in_words(),
        one_seen.in_words()
    );
    for stage in [many, one] {
        runtime.block_on(stage.strike());
    }
    shares
}
