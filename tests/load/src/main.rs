//! One command, `tests/load/run`, measures souk against native handlers on this machine and prints
//! ratios of one interleaved run. See README.md beside this crate for figures that were reached.

mod agree;
mod answers;
mod as_futures;
mod measure;
mod native;
mod native_bigquery;
mod native_clickhouse;
mod native_databricks;
mod native_duckdb;
mod native_http;
mod native_mysql;
mod native_postgres;
mod native_snowflake;
mod native_sqlite;
mod native_sqlserver;
mod native_trino;
mod natives;
mod targets;

use std::path::PathBuf;
use std::time::Duration;

use clap::Parser;
use souk_load::market::{self, Market};
use souk_load::servers::{REAL, SOURCES, Server};
use souk_tests::{guests, host};

use measure::{Competitor, measure};
use natives::{Mode, Native};

#[derive(Parser)]
#[command(about = "Measures souk against native handlers on the same sources, interleaved.")]
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
    /// Only queries whose name contains this (or is this, if one has it). Those of sources that only stand for an engine are measured where this names the source: "trino: ".
    #[arg(long, default_value = "")]
    only: String,
    /// Only competitors whose name contains this (or is this, if one has it), to profile one; given again, others too, to compare them.
    #[arg(long, default_value = "")]
    competitor: Vec<String>,
    /// Milliseconds that a statement takes at the stand-ins of Databricks and Snowflake.
    #[arg(long, default_value_t = 0)]
    statement_ms: u64,
    /// The binary of another build of souk, which is measured beside this one as "other souk".
    #[arg(long)]
    other: Option<PathBuf>,
    /// The guest `fixed-rows` as a component of the other build's contract, where that is another one than ours.
    #[arg(long, requires = "other")]
    other_guest: Option<PathBuf>,
    /// Says afterwards which targets are reached (`src/targets.rs`), and fails where one is missed, or nothing that was measured has one.
    #[arg(long)]
    hold: bool,
    /// Internal: serve the native handlers.
    #[arg(long, hide = true)]
    native: Option<Mode>,
    #[arg(long, hide = true, default_value = "")]
    source: String,
}

impl Options {
    fn wants(&self, query: &str) -> bool {
        if market::queries().any(|query| query == self.only) {
            return query == self.only;
        }
        let (source, _) = market::parts(query);
        let is_named = !source.is_empty() && self.only.contains(source);
        query.contains(&self.only) && (is_named || REAL.contains(&source))
    }

    /// Those that have exactly one of the names, if there are any, or those whose name contains one.
    fn chosen<'a>(&self, competitors: &'a [Competitor]) -> Vec<&'a Competitor> {
        let is_named = |one: &&Competitor| self.competitor.iter().any(|name| one.name == name);
        let named: Vec<_> = competitors.iter().filter(is_named).collect();
        if !named.is_empty() {
            return named;
        }
        let contains =
            |one: &&Competitor| self.competitor.iter().any(|part| one.name.contains(part));
        competitors.iter().filter(contains).collect()
    }
}

fn main() -> anyhow::Result<()> {
    let options = Options::parse();
    let threads = std::thread::available_parallelism()?.get();
    if let Some(mode) = options.native {
        return natives::run(mode, &options.source, threads);
    }
    let runtime = tokio::runtime::Runtime::new()?;
    let prepared = runtime.block_on(prepare(&options))?;
    println!(
        "{:<22} {:>7}  requests a second, median latency, processor time of the server for a request, and ratios to the first line of each group (median of rounds)",
        "query", "clients"
    );
    let slice = Duration::from_millis(options.slice_ms);
    let mut held = Vec::new();
    for (query, competitors) in &prepared.races {
        let competitors = options.chosen(competitors);
        if competitors.is_empty() {
            continue;
        }
        runtime.block_on(agree::agree(query, &competitors))?;
        for &clients in &options.clients {
            let seen = measure(query, &competitors, clients, options.rounds, slice)?;
            held.extend(targets::lines(query, clients, &seen));
        }
    }
    for market in prepared.markets {
        runtime.block_on(market.close());
    }
    match options.hold {
        true => targets::hold(&held),
        false => Ok(()),
    }
}

/// What runs while it is measured. Servers end after those that use them.
struct Prepared {
    races: Vec<(String, Vec<Competitor>)>,
    markets: Vec<Market>,
    _natives: Vec<Vec<Native>>,
    _servers: Vec<Server>,
}

async fn prepare(options: &Options) -> anyhow::Result<Prepared> {
    let queries: Vec<String> = market::queries()
        .filter(|query| options.wants(query))
        .collect();
    let mut servers = Vec::new();
    for source in SOURCES {
        let is_of = |query: &String| {
            market::parts(query).0 == source && query.as_str() != market::NO_DATABASE
        };
        if queries.iter().any(is_of) {
            let server = Server::start(source).await;
            server.takes(Duration::from_millis(options.statement_ms));
            servers.push(server);
        }
    }
    let natives = servers.iter().map(Native::start_of);
    let natives = natives.collect::<anyhow::Result<Vec<_>>>()?;
    let markets = markets(options, &servers).await?;
    let races = queries.into_iter().map(|query| {
        let competitors = competitors(&query, &servers, &natives, &markets);
        (query, competitors)
    });
    Ok(Prepared {
        races: races.collect(),
        markets,
        _natives: natives,
        _servers: servers,
    })
}

/// On this build, and on the other one where there is one.
async fn markets(options: &Options, servers: &[Server]) -> anyhow::Result<Vec<Market>> {
    let ours = guests::FIXED_ROWS.to_vec();
    let mut markets = vec![Market::open(host::binary(), ours.clone(), servers).await];
    if let Some(other) = &options.other {
        let guest = options.other_guest.as_ref();
        let guest = guest.map(std::fs::read).transpose()?;
        markets.push(Market::open(other.clone(), guest.unwrap_or(ours), servers).await);
    }
    Ok(markets)
}

/// All that answer a query, the native ones first.
fn competitors(
    query: &str,
    servers: &[Server],
    natives: &[Vec<Native>],
    markets: &[Market],
) -> Vec<Competitor> {
    let (source, what) = market::parts(query);
    let of_source = servers.iter().zip(natives);
    let of_source = of_source.filter(|(server, _)| server.source() == source);
    let of_source: Vec<_> = of_source.flat_map(|(_, natives)| natives).collect();
    let native = |name, native: &Native, requests| Competitor {
        name,
        process: native.process(),
        address: native.address.clone(),
        requests,
    };
    let natives = of_source
        .iter()
        .map(|one| native(one.name, one, natives::requests(what)));
    let paging = of_source.iter().filter(|one| one.has_pages);
    let paging = paging.map(|one| native("native, a page", one, natives::pages(what)));
    let of = |name, market: &Market, requests| Competitor {
        name,
        process: market.process,
        address: market.address.clone(),
        requests,
    };
    let owners = markets.iter().zip(["souk", "other souk"]);
    let owners = owners.map(|(market, name)| of(name, market, market.owner(query)));
    let buyers = markets.iter().zip(["souk, charged", "other souk, charged"]);
    let buyers = buyers.map(|(market, name)| of(name, market, market.charged(query)));
    let all = natives.chain(paging).chain(owners).chain(buyers);
    all.filter(|one| !one.requests.is_empty()).collect()
}
