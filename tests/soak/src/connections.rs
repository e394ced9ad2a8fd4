//! What a thousand data connections cost: the memory of their idle sessions, of each engine, and the speed of those that are used beside them.

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::ensure;
use clap::ValueEnum;
use serde_json::{Value, json};
use souk_hostile::files::database;
use souk_hostile::stage::unique;
use souk_hostile::watch::{MIB, Watched};
use souk_load::market::unlimit;
use souk_load::servers::Server;
use souk_load::{generator, processor};
use souk_tests::clickhouse::{self, Recorded, recorded};
use souk_tests::seller_api::{self, SellerApi};
use souk_tests::{Company, MySql, PgCluster, files, guests};

pub struct Plan {
    /// Data connections of the large host, nearly each with a session.
    pub connections: usize,
    /// Those of the small one, and those that are used on both.
    pub used: usize,
    /// What the large host has beside them.
    pub others: Others,
    /// Whether only their memory is measured.
    pub memory: bool,
    /// Whether those that are used are of a company that has no others: then these take none of its sessions.
    pub apart: bool,
    pub rounds: usize,
    pub slice: Duration,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Others {
    /// Idle sessions to the same PostgreSQL.
    Sessions,
    /// Idle sessions of a connector that has no database, and no wire.
    Guests,
    /// Idle sessions on files of SQLite: each keeps the pages that were read of its own.
    Sqlite,
    /// Idle sessions to a MariaDB.
    Mariadb,
    /// Idle sessions to a Trino, over HTTP: each with a connection that is kept for the next request. The server, as those of the engines that follow, is of
    /// this process, which needs as many open files (`ulimit -n`).
    Trino,
    Sqlserver,
    Bigquery,
    Snowflake,
    Databricks,
    /// Idle sessions to DuckDB's own servers, of which each takes a few.
    Duckdb,
    /// Idle sessions to a ClickHouse that answers what its engine was recorded to answer.
    Clickhouse,
    /// Idle sessions to a seller's own API.
    SellerApi,
    /// Idle sessions on files of the connector `files`, which SOUK_FILES_COMPONENT names where the host does not have it.
    Files,
    /// Data connections that nobody has ever asked.
    Unasked,
}

impl Others {
    /// Sessions of all engines that there are here.
    pub fn engines() -> Vec<Others> {
        let is_here = |others: &Others| match others {
            Others::Guests | Others::Unasked => false,
            Others::Files => files::component().is_some(),
            _ => true,
        };
        let all = Others::value_variants().iter().copied();
        all.filter(is_here).collect()
    }

    /// As the command line has it, and `souk_load` its server.
    fn name(self) -> String {
        let shown = self.to_possible_value().expect("none is hidden");
        shown.get_name().to_owned()
    }
}

/// What the issue allows for an idle session.
const SESSION_BYTES_MAX: u64 = 3 * MIB / 10;
/// Of the small host's throughput; two runs of one build are this far apart.
const SPEED_MIN: f64 = 0.95;
const CLIENTS: usize = 16;
/// Of one company, which may have a hundred data connections and 64 sessions.
const OF_A_COMPANY: usize = 50;
/// At one DuckDB: it has 128 threads, of which each connection has one for as long as it is kept.
const OF_A_DUCKDB: usize = 64;

const SCHEMA: &str = "CREATE TABLE numbers (id INT PRIMARY KEY, label TEXT); INSERT INTO numbers SELECT n, 'number ' || n FROM generate_series(1, 1000) n;";
const MARIADB_SCHEMA: &str = "CREATE TABLE numbers (id INT PRIMARY KEY, label VARCHAR(20)); INSERT INTO numbers SELECT seq, CONCAT('number ', seq) FROM seq_1_to_1000;";
const SQLITE_SCHEMA: &str = "CREATE TABLE numbers (id INTEGER PRIMARY KEY, label TEXT);
    WITH RECURSIVE s(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM s WHERE n < 1000) INSERT INTO numbers SELECT n, 'number ' || n FROM s;";

/// The same rows as a file for an archive.
fn numbers() -> (&'static str, String) {
    let rows: String = (1..=1000).map(|n| format!("{n},number {n}\n")).collect();
    ("numbers.csv", format!("id,label\n{rows}"))
}

/// One after the other. What does not hold of one is told, and the next one is measured all the same.
pub async fn run_each(binary: &Path, plans: &[Plan]) -> anyhow::Result<()> {
    let mut failed = Vec::new();
    for plan in plans {
        let name = plan.others.name();
        println!("{name}");
        if let Err(error) = run(binary.to_owned(), plan).await {
            println!("{error:#}");
            failed.push(name);
        }
    }
    ensure!(failed.is_empty(), "it does not hold: {}", failed.join(", "));
    Ok(())
}

async fn run(binary: PathBuf, plan: &Plan) -> anyhow::Result<()> {
    let sessions_max = 2 * plan.connections + 100;
    let cluster = PgCluster::start(&[&format!("max_connections={sessions_max}")]).await;
    let others = Place::start(plan, sessions_max).await;
    let small = match plan.memory {
        true => None,
        false => Some(Host::start(binary.clone(), &cluster, &others, plan, plan.used).await),
    };
    let large = Host::start(binary, &cluster, &others, plan, plan.connections).await;
    if let Some(small) = &small {
        small.ask(0..plan.used).await?;
    }
    large.ask(0..plan.used).await?;
    if plan.others != Others::Unasked {
        open_others(&large, plan).await?;
    }
    match small {
        Some(small) => speed(&large, &small, &cluster, plan).await,
        None => Ok(()),
    }
}

/// What is used on both hosts is as fast on the large one.
async fn speed(large: &Host, small: &Host, cluster: &PgCluster, plan: &Plan) -> anyhow::Result<()> {
    let opened = (
        large.backends_ever(cluster).await,
        small.backends_ever(cluster).await,
    );
    let ratio = compare(large, small, plan)?;
    for (name, host, before) in [("large", large, opened.0), ("small", small, opened.1)] {
        let new = host.backends_ever(cluster).await - before;
        let sessions = host.watched.usage().await.sessions;
        println!("{name} host: {sessions} sessions, {new} of PostgreSQL opened while it was used");
    }
    compare_each(large, small, plan)?;
    println!(
        "{} of {} data connections: {ratio:.3} of the throughput of a host with no more than them",
        plan.used, plan.connections
    );
    ensure!(ratio >= SPEED_MIN, "{SPEED_MIN} of it is wanted");
    Ok(())
}

/// Opens a session to each of the others, and says what one takes.
async fn open_others(large: &Host, plan: &Plan) -> anyhow::Result<()> {
    let before = large.watched.usage().await;
    // A host has a thousand sessions at most, and each of its workers wants one of its own to what is used.
    let idle = plan.used..plan.connections.saturating_sub(2 * plan.used);
    let wanted = idle.end as u64;
    large.ask(idle).await?;
    let after = large.watched.usage().await;
    let opened = (after.sessions - before.sessions).max(1);
    let each = after.resident_bytes.saturating_sub(before.resident_bytes) / opened;
    println!(
        "{} idle sessions: {} MiB, before {opened} of them {} MiB: {} KiB each",
        after.idle,
        after.resident_bytes / MIB,
        before.resident_bytes / MIB,
        each >> 10
    );
    ensure!(after.sessions >= wanted, "{wanted} are open: {after:?}");
    ensure!(
        each <= SESSION_BYTES_MAX,
        "an idle session takes {each} bytes"
    );
    Ok(())
}

/// Where data connections lead.
enum Place {
    /// To the cluster, which both hosts have.
    Postgres,
    Nowhere,
    /// To a file of this engine, with this extension and content, each to its own.
    File(&'static str, &'static str, Vec<u8>),
    /// To this database.
    MariaDb(MySql, String),
    /// To these servers with the players of `souk_load`, by turns.
    Servers(Vec<Server>),
    ClickHouse(Recorded),
    SellerApi(SellerApi),
}

impl Place {
    /// With a server of its own, which takes so many sessions, where there is one.
    async fn start(plan: &Plan, sessions_max: usize) -> Place {
        match plan.others {
            Others::Sessions | Others::Unasked => Place::Postgres,
            Others::Guests => Place::Nowhere,
            Others::Sqlite => Place::File("sqlite", "db", database(SQLITE_SCHEMA)),
            Others::Files => Place::File("files", "tar", files::archive(&[numbers()])),
            Others::Mariadb => {
                let server = MySql::start(&[&format!("--max-connections={sessions_max}")]);
                let database = server.database(MARIADB_SCHEMA);
                Place::MariaDb(server, database)
            }
            Others::Clickhouse => {
                let server = Recorded::start().await;
                server.keeps_a_note(9);
                Place::ClickHouse(server)
            }
            Others::SellerApi => Place::SellerApi(SellerApi::start().await),
            Others::Duckdb => {
                Place::servers(plan.others, plan.connections.div_ceil(OF_A_DUCKDB)).await
            }
            Others::Trino
            | Others::Sqlserver
            | Others::Bigquery
            | Others::Snowflake
            | Others::Databricks => Place::servers(plan.others, 1).await,
        }
    }

    async fn servers(others: Others, count: usize) -> Place {
        let mut servers = Vec::with_capacity(count);
        for _ in 0..count {
            servers.push(Server::start(&others.name()).await);
        }
        Place::Servers(servers)
    }

    /// What is sold there, beside the connection.
    fn label(&self) -> Value {
        let sql = match self {
            Place::Nowhere => "SELECT label FROM fixed LIMIT 1",
            Place::Servers(_) => "SELECT name FROM players WHERE id = 7",
            Place::ClickHouse(_) => "SELECT note FROM notes",
            Place::SellerApi(_) => return json!({"function_id": "exact", "result_type": "number"}),
            _ => "SELECT label FROM numbers WHERE id = 7",
        };
        json!({"sql_logic": sql, "result_type": "string"})
    }
}

/// A host with sellers whose data connections have an asset each.
struct Host {
    watched: Watched,
    /// Its sellers' own, so that it is known who opens sessions there.
    database: String,
    /// What executes each of the assets.
    requests: Vec<Vec<u8>>,
}

impl Host {
    async fn start(
        binary: PathBuf,
        cluster: &PgCluster,
        others: &Place,
        plan: &Plan,
        connections: usize,
    ) -> Host {
        let used = Place::Postgres;
        let mut host = Host {
            watched: Watched::start(Some(binary)).await,
            database: cluster.database(SCHEMA).await,
            requests: Vec::with_capacity(connections),
        };
        if plan.others == Others::Guests {
            let platform = host.watched.host.platform();
            let guest = guests::FIXED_ROWS.to_vec();
            let uploaded = platform.post_wasm("/connectors?activate=true", guest);
            uploaded.await.expect(201);
        }
        // It takes long to compile, and who has only those that are used needs it not.
        if plan.others == Others::Files && connections > plan.used {
            files::put_to_work(&host.watched.host.platform()).await;
        }
        while host.requests.len() < connections {
            let seller = host.watched.host.company(&unique("seller")).await;
            let keys = seller.client.get(&seller.path("/api-keys")).await;
            unlimit(&seller, &keys.expect(200).text("/data/0/id")).await;
            let until = match plan.apart && host.requests.len() < plan.used {
                true => plan.used,
                false => connections,
            };
            let left = until - host.requests.len();
            for _ in 0..OF_A_COMPANY.min(left) {
                let place = match host.requests.len() < plan.used {
                    true => &used,
                    false => others,
                };
                let asset = host.asset(&seller, cluster, place).await;
                let path = seller.path(&format!("/assets/{asset}/execute"));
                let key = [("x-api-key", seller.key.as_str())];
                let request = generator::request("POST", &path, &key, "");
                host.requests.push(request);
            }
        }
        host
    }

    /// An asset on a data connection of its own.
    async fn asset(&self, seller: &Company, cluster: &PgCluster, place: &Place) -> String {
        let connection = match place {
            Place::Postgres => seller.postgres(cluster, &self.database).await,
            Place::Nowhere => seller.nowhere("fixed").await,
            Place::File(engine, extension, bytes) => {
                let name = format!("{}.{extension}", unique("numbers"));
                seller.file(engine, &name, bytes.clone()).await
            }
            Place::MariaDb(server, database) => seller.mysql(server, database).await,
            Place::Servers(servers) => {
                let server = &servers[self.requests.len() % servers.len()];
                server.connect(seller).await.0
            }
            Place::ClickHouse(server) => to_recorded(seller, server).await,
            Place::SellerApi(server) => {
                let key = seller_api::API_KEY;
                seller.seller_api(&server.base_url(), key).await
            }
        };
        seller.asset(&connection, place.label()).await
    }

    fn address(&self) -> &str {
        let url = &self.watched.host.base_url;
        url.trim_start_matches("http://")
    }

    /// Asks each of these once, so that it has a session.
    async fn ask(&self, those: Range<usize>) -> anyhow::Result<()> {
        let mut connection = generator::Connection::open(self.address()).await?;
        for request in &self.requests[those] {
            let (status, body) = connection.exchange(request).await?;
            ensure!(
                status == 200,
                "answer {status}: {}",
                String::from_utf8_lossy(body)
            );
        }
        Ok(())
    }

    /// Sessions that were ever opened to its database.
    async fn backends_ever(&self, cluster: &PgCluster) -> i64 {
        // A backend tells at most once a second what it has counted.
        tokio::time::sleep(Duration::from_secs(2)).await;
        let client = cluster.client("postgres").await;
        let counted = client
            .query_one(
                "SELECT sessions FROM pg_stat_database WHERE datname = $1",
                &[&self.database],
            )
            .await;
        counted.expect("a count").get(0)
    }

    /// Uses these for a while.
    fn slice(&self, those: Range<usize>, length: Duration) -> anyhow::Result<Slice> {
        let process = self.watched.host.pid();
        let before = processor::time_of(process);
        // It has a runtime of its own.
        let run = || generator::run(self.address(), &self.requests[those], CLIENTS, length);
        let run = std::thread::scope(|scope| scope.spawn(run).join()).expect("a thread")?;
        let processor = processor::time_of(process).saturating_sub(before);
        // The warm-up is in both.
        let requests = run.requests_per_second * length.as_secs_f64();
        Ok(Slice {
            rate: run.requests_per_second,
            median_us: run.median_us,
            processor_us: processor.as_secs_f64() * 1e6 / requests,
        })
    }
}

async fn to_recorded(seller: &Company, server: &Recorded) -> String {
    let credentials = json!({"username": clickhouse::USER, "password": clickhouse::PASSWORD});
    let fields = json!({"credential_type": "PASSWORD", "credentials": credentials.to_string(), "base_url": server.base_url(), "database": recorded::SCHEMA});
    seller.connection("clickhouse", fields).await
}

/// What was seen of a host while it was used.
struct Slice {
    rate: f64,
    median_us: f64,
    /// Of the host itself, for a request.
    processor_us: f64,
}

/// The throughput of the same data connections on the host that has many more, beside that on the other one.
fn compare(large: &Host, small: &Host, plan: &Plan) -> anyhow::Result<f64> {
    let slice = |host: &Host| host.slice(0..plan.used, plan.slice);
    let mut slices = Vec::new();
    for round in 0..=plan.rounds {
        let (of_large, of_small) = match round % 2 {
            0 => {
                let large = slice(large)?;
                (large, slice(small)?)
            }
            _ => {
                let small = slice(small)?;
                (slice(large)?, small)
            }
        };
        println!("{:.0}/s beside {:.0}/s", of_large.rate, of_small.rate);
        // The first round warms up.
        if round > 0 {
            slices.push((of_large, of_small));
        }
    }
    let medians = |of: fn(&Slice) -> f64| {
        let large = median(slices.iter().map(|(large, _)| of(large)));
        let small = median(slices.iter().map(|(_, small)| of(small)));
        format!("{large:.1} us beside {small:.1} us")
    };
    println!(
        "processor time of the host for a request {}, latency {}",
        medians(|slice| slice.processor_us),
        medians(|slice| slice.median_us)
    );
    let ratios = slices.iter().map(|(large, small)| large.rate / small.rate);
    Ok(median(ratios))
}

/// Each data connection alone: one whose guests were sent to the lanes, or that has no session on each worker, stands out.
fn compare_each(large: &Host, small: &Host, plan: &Plan) -> anyhow::Result<()> {
    let length = plan.slice / 4;
    let mut ratios = Vec::new();
    for one in 0..plan.used {
        let large = large.slice(one..one + 1, length)?.rate;
        let small = small.slice(one..one + 1, length)?.rate;
        ratios.push(format!("{:.2}", large / small));
    }
    println!("each of them alone: {}", ratios.join(" "));
    Ok(())
}

fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<_> = values.collect();
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}
