//! What a thousand data connections cost: the memory of their idle sessions, and the speed of those that are used beside them.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::ensure;
use serde_json::json;
use souk_hostile::stage::unique;
use souk_hostile::watch::{MIB, Watched};
use souk_load::generator;
use souk_load::market::unlimit;
use souk_tests::PgCluster;

pub struct Plan {
    /// Data connections of the large host, nearly each with a session.
    pub connections: usize,
    /// Those of the small one, and those that are used on both.
    pub used: usize,
    pub rounds: usize,
    pub slice: Duration,
}

/// What the issue allows for an idle session.
const SESSION_BYTES_MAX: u64 = 3 * MIB / 10;
/// Of the small host's throughput; two runs of one build are this far apart.
const SPEED_MIN: f64 = 0.95;
const CLIENTS: usize = 16;
/// Of one company, which may have a hundred data connections and 64 sessions.
const OF_A_COMPANY: usize = 50;

const SCHEMA: &str = "CREATE TABLE numbers (id INT PRIMARY KEY, label TEXT); INSERT INTO numbers SELECT n, 'number ' || n FROM generate_series(1, 1000) n;";

pub async fn run(binary: PathBuf, plan: &Plan) -> anyhow::Result<()> {
    let backends = format!("max_connections={}", 2 * plan.connections + 100);
    let cluster = PgCluster::start(&[&backends]).await;
    let database = cluster.database(SCHEMA).await;
    let small = Host::start(binary.clone(), &cluster, &database, plan.used).await;
    let large = Host::start(binary, &cluster, &database, plan.connections).await;
    small.ask(0..plan.used).await;
    large.ask(0..plan.used).await;
    let before = large.watched.usage().await;
    // A host has a thousand sessions at most, and each of its workers wants one of its own to what is used.
    let idle = plan.used..plan.connections.saturating_sub(2 * plan.used);
    let wanted = idle.end as u64;
    large.ask(idle).await;
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
    is_as_fast(&large, &small, plan)
}

/// A host with sellers whose data connections have an asset each.
struct Host {
    watched: Watched,
    /// What executes each of the assets.
    requests: Vec<Vec<u8>>,
}

impl Host {
    async fn start(
        binary: PathBuf,
        cluster: &PgCluster,
        database: &str,
        connections: usize,
    ) -> Host {
        let watched = Watched::start(Some(binary)).await;
        let mut requests = Vec::with_capacity(connections);
        while requests.len() < connections {
            let seller = watched.host.company(&unique("seller")).await;
            let keys = seller.client.get(&seller.path("/api-keys")).await;
            unlimit(&seller, &keys.expect(200).text("/data/0/id")).await;
            for _ in 0..OF_A_COMPANY.min(connections - requests.len()) {
                let connection = seller.postgres(cluster, database).await;
                let label = json!({"sql_logic": "SELECT label FROM numbers WHERE id = 7", "result_type": "string"});
                let asset = seller.asset(&connection, label).await;
                let path = seller.path(&format!("/assets/{asset}/execute"));
                let key = [("x-api-key", seller.key.as_str())];
                requests.push(generator::request("POST", &path, &key, ""));
            }
        }
        Host { watched, requests }
    }

    fn address(&self) -> &str {
        let url = &self.watched.host.base_url;
        url.trim_start_matches("http://")
    }

    /// Asks each of these once, so that it has a session.
    async fn ask(&self, those: std::ops::Range<usize>) {
        let mut connection = generator::Connection::open(self.address())
            .await
            .expect("a connection");
        for request in &self.requests[those] {
            let (status, body) = connection.exchange(request).await.expect("an answer");
            assert_eq!(status, 200, "{}", String::from_utf8_lossy(body));
        }
    }
}

/// The same data connections are as fast on the host that has many more.
fn is_as_fast(large: &Host, small: &Host, plan: &Plan) -> anyhow::Result<()> {
    let rate = |host: &Host| {
        let used = &host.requests[..plan.used];
        // It has a runtime of its own.
        let run = || generator::run(host.address(), used, CLIENTS, plan.slice);
        let run = std::thread::scope(|scope| scope.spawn(run).join());
        run.expect("a thread").map(|run| run.requests_per_second)
    };
    let mut ratios = Vec::new();
    for round in 0..=plan.rounds {
        let (of_large, of_small) = match round % 2 {
            0 => {
                let large = rate(large)?;
                (large, rate(small)?)
            }
            _ => {
                let small = rate(small)?;
                (rate(large)?, small)
            }
        };
        println!("{of_large:.0}/s beside {of_small:.0}/s");
        // The first round warms up.
        if round > 0 {
            ratios.push(of_large / of_small);
        }
    }
    ratios.sort_by(f64::total_cmp);
    let ratio = ratios[ratios.len() / 2];
    println!(
        "{} of {} data connections: {ratio:.3} of the throughput of a host with no more than them",
        plan.used, plan.connections
    );
    ensure!(ratio >= SPEED_MIN, "{SPEED_MIN} of it is wanted");
    Ok(())
}
