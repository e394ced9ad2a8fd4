//! One command, `tests/load/run`, measures souk against native handlers on this machine and prints
//! ratios of one interleaved run. See README.md beside this crate for figures that were reached.

mod generator;
mod native;
mod native_sqlite;
mod queries;

use std::io::BufRead;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::Context;
use clap::{Parser, ValueEnum};
use serde_json::json;
use souk_tests::{PgCluster, TestHost, guests};

#[derive(Parser)]
#[command(about = "Measures souk against native handlers on the same PostgreSQL, interleaved.")]
struct Options {
    /// Numbers of concurrent clients.
    #[arg(long, value_delimiter = ',', default_values_t = [1, 16, 64])]
    clients: Vec<usize>,
    /// Rounds; the first is thrown away.
    #[arg(long, default_value_t = 6)]
    rounds: usize,
    /// Milliseconds for each competitor in a round.
    #[arg(long, default_value_t = 700)]
    slice_ms: u64,
    /// Only queries whose name contains this.
    #[arg(long, default_value = "")]
    only: String,
    /// Only competitors whose name contains this, to profile one.
    #[arg(long, default_value = "")]
    competitor: String,
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
}

/// One way to answer one query.
struct Competitor {
    name: &'static str,
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
    let (cluster, host, competitors, _natives, _files) = runtime.block_on(prepare())?;
    println!(
        "{:<16} {:>7}  requests a second, median latency, and ratio to the first line of each group (median of rounds)",
        "query", "clients"
    );
    for (query, competitors) in &competitors {
        if !query.contains(&options.only) {
            continue;
        }
        let competitors: Vec<_> = competitors
            .iter()
            .filter(|competitor| competitor.name.contains(&options.competitor))
            .collect();
        for &clients in &options.clients {
            measure(query, &competitors, clients, &options)?;
        }
    }
    drop((host, cluster));
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
    for round in 0..options.rounds.max(2) {
        for turn in 0..competitors.len() {
            let index = (turn + round) % competitors.len();
            let competitor = competitors[index];
            let run = generator::run(&competitor.address, &competitor.requests, clients, slice)
                .with_context(|| format!("{} on {query}", competitor.name))?;
            if round > 0 {
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
        println!(
            "{query:<16} {clients:>7}  {:<15} {:>9.0}/s {:>8.0} us   throughput {rate_ratio:>5.2}x   latency {latency_ratio:>5.2}x",
            competitor.name,
            median(&mut rates[index]),
            median(&mut latencies[index]),
        );
    }
    Ok(())
}

type Prepared = (
    PgCluster,
    TestHost,
    Vec<(&'static str, Vec<Competitor>)>,
    [Native; 3],
    tempfile::TempDir,
);

async fn prepare() -> anyhow::Result<Prepared> {
    let cluster = PgCluster::start(&[]).await;
    let database = cluster.database(queries::SCHEMA).await;
    let url = cluster.url(&database);
    let files = tempfile::tempdir()?;
    let file = files.path().join("players.db");
    native_sqlite::write(&file)?;
    let natives = [
        Native::start("pooled", &url)?,
        Native::start("local", &url)?,
        Native::start("sqlite", &file.to_string_lossy())?,
    ];

    let host = TestHost::builder().start().await;
    let seller = host.company("bench-seller").await;
    let buyer = host.buyer("bench-buyer", 100_000_000).await;
    for key in [&seller, &buyer] {
        // A key's default limit is 1,000 requests an hour.
        let path = key.path("/api-keys");
        let keys = key.client.get(&path).await.expect(200);
        let id = keys.text("/data/0/id");
        key.client
            .patch(
                &format!("{path}/{id}"),
                json!({"rate_limit": 1_000_000_000}),
            )
            .await
            .expect(200);
    }
    let connection = seller.postgres(&cluster, &database).await;
    let asset = seller
        .asset(
            &connection,
            json!({"name": "goals", "slug": "goals", "sql_logic": queries::ASSET_SQL,
                   "parameters": [{"name": "team", "type": "string", "default": queries::TEAM}]}),
        )
        .await;
    let fields: Vec<_> = queries::FIELDS
        .iter()
        .map(|name| json!({"name": name}))
        .collect();
    let endpoint = seller
        .endpoint(
            &connection,
            json!({"name": "players", "slug": "players", "source": {"schema": "public", "table": "players"},
                   "fields": fields, "order_by": ["id"], "filters": ["id"], "max_limit": 1000}),
        )
        .await;
    seller.publish(&asset, 1).await;
    seller.publish(&endpoint, 1).await;
    let file = seller.sqlite("players.db", std::fs::read(&file)?).await;
    let file_asset = seller
        .asset(
            &file,
            json!({"name": "file goals", "slug": "file-goals", "sql_logic": queries::ASSET_SQL,
                   "parameters": [{"name": "team", "type": "string", "default": queries::TEAM}]}),
        )
        .await;
    let file_endpoint = seller
        .endpoint(
            &file,
            json!({"name": "file players", "slug": "file-players", "source": {"table": "players"},
                   "fields": fields, "order_by": ["id"], "filters": ["id"], "max_limit": 1000}),
        )
        .await;
    seller.publish(&file_asset, 1).await;
    seller.publish(&file_endpoint, 1).await;

    let address = host.base_url.trim_start_matches("http://").to_owned();
    let owner = [("x-api-key", seller.key.as_str())];
    let paying = [("x-api-key", buyer.key.as_str())];
    let page_of = |endpoint: &str, query: &str| {
        let path = format!(
            "/companies/{}/endpoints/{endpoint}/execute?{query}",
            seller.id
        );
        generator::request("GET", &path, &owner, "")
    };
    let page = |query: &str| page_of(&endpoint, query);
    let execute_of = |asset: &str, headers: &[(&str, &str)]| {
        let path = format!("/companies/{}/assets/{asset}/execute", seller.id);
        vec![generator::request("POST", &path, headers, "")]
    };
    let execute = |headers: &[(&str, &str)]| execute_of(&asset, headers);
    let ids: Vec<u32> = (0..1000).map(|i| i * 9 + 1).collect();
    let natively = |path: &str| -> Vec<Vec<u8>> {
        match path {
            "/single" => ids
                .iter()
                .map(|id| generator::request("GET", &format!("/single?id={id}"), &[], ""))
                .collect(),
            _ => vec![generator::request("GET", path, &[], "")],
        }
    };
    let race = |path: &str, souk: Vec<Vec<u8>>| {
        vec![
            Competitor {
                name: "native pooled",
                address: natives[0].address.clone(),
                requests: natively(path),
            },
            Competitor {
                name: "native local",
                address: natives[1].address.clone(),
                requests: natively(path),
            },
            Competitor {
                name: "souk",
                address: address.clone(),
                requests: souk,
            },
        ]
    };
    let single = ids
        .iter()
        .map(|id| page(&format!("id={id}&limit=1")))
        .collect();
    let mut aggregate = race("/aggregate", execute(&owner));
    aggregate.push(Competitor {
        name: "souk, charged",
        address: address.clone(),
        requests: execute(&paying),
    });
    // No database behind it: what is left is the host, the sandbox and the ledger.
    host.platform()
        .post_wasm("/connectors?activate=true", guests::FIXED_ROWS.to_vec())
        .await
        .expect(201);
    let nothing =
        json!({"credential_type": "NONE", "credentials": "{}", "base_url": "http://127.0.0.1:1"});
    let nothing = seller.connection("fixed", nothing).await;
    let label = json!({"name": "label", "slug": "label", "result_type": "string", "sql_logic": "SELECT label FROM fixed LIMIT 1"});
    let label = seller.asset(&nothing, label).await;
    seller.publish(&label, 1).await;
    let free = |name, headers: &[(&str, &str)]| Competitor {
        name,
        address: address.clone(),
        requests: vec![generator::request(
            "POST",
            &format!("/companies/{}/assets/{label}/execute", seller.id),
            headers,
            "",
        )],
    };
    let on_file = |path: &str, souk: Vec<Vec<u8>>| {
        vec![
            Competitor {
                name: "native",
                address: natives[2].address.clone(),
                requests: natively(path),
            },
            Competitor {
                name: "souk",
                address: address.clone(),
                requests: souk,
            },
        ]
    };
    let file_single = ids
        .iter()
        .map(|id| page_of(&file_endpoint, &format!("id={id}&limit=1")))
        .collect();
    let competitors = vec![
        (
            "no database",
            vec![free("souk", &owner), free("souk, charged", &paying)],
        ),
        ("single row", race("/single", single)),
        ("aggregate", aggregate),
        ("50 rows", race("/rows?limit=50", vec![page("limit=50")])),
        (
            "1,000 rows",
            race("/rows?limit=1000", vec![page("limit=1000")]),
        ),
        ("file: single row", on_file("/single", file_single)),
        (
            "file: aggregate",
            on_file("/aggregate", execute_of(&file_asset, &owner)),
        ),
        (
            "file: 50 rows",
            on_file("/rows?limit=50", vec![page_of(&file_endpoint, "limit=50")]),
        ),
        (
            "file: 1,000 rows",
            on_file(
                "/rows?limit=1000",
                vec![page_of(&file_endpoint, "limit=1000")],
            ),
        ),
    ];
    Ok((cluster, host, competitors, natives, files))
}
