//! Companies that sell to each other, and some that want to hurt them, for minutes. At the end the books balance, everybody has paid for
//! what was answered and for nothing else, and nothing is left open.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::ensure;
use bytes::Bytes;
use serde_json::json;
use souk_hostile::flood::Flood;
use souk_hostile::scenarios::{self, Scenario, Source};
use souk_hostile::stage::{Stage, unique};
use souk_hostile::watch::{MIB, Usage, Watched};
use souk_load::generator;
use souk_load::market::unlimit;
use souk_tests::{Company, PgCluster};

pub struct Plan {
    pub minutes: f64,
    pub companies: usize,
    pub hostile: usize,
}

/// Far more than can be spent.
const CREDITS: u64 = 1_000_000_000;
const PRICE: u64 = 1;
/// Requests that an honest company has in flight.
const HONEST_IN_FLIGHT: usize = 2;
const HOSTILE_IN_FLIGHT: usize = 4;
/// A hostile company does something else after so long.
const TURN: Duration = Duration::from_secs(8);
/// Idle sessions are closed after two minutes, wires and runs before that.
const SETTLES_WITHIN: Duration = Duration::from_secs(200);
/// Of this process's own idle connections to the host.
const DESCRIPTORS_MORE_MAX: usize = 60;

/// A company that buys from its neighbour.
struct Trader {
    company: Company,
    flood: Flood,
}

pub async fn run(binary: PathBuf, plan: &Plan) -> anyhow::Result<()> {
    ensure!(
        plan.hostile + 2 <= plan.companies,
        "at least two companies must be honest"
    );
    let cluster = PgCluster::start(&[]).await;
    let database = cluster
        .database("CREATE TABLE goals AS SELECT 1::bigint AS id, 42::bigint AS goals")
        .await;
    let watched = Arc::new(Watched::start(Some(binary)).await);
    let before = watched.usage().await;
    println!("begins: {}", in_words(&before));
    let traders = traders(&watched, &cluster, &database, plan.companies - plan.hostile).await;
    let end = Instant::now() + Duration::from_secs_f64(plan.minutes * 60.0);
    let hostiles: Vec<_> = (0..plan.hostile)
        .map(|number| tokio::spawn(hostile(watched.clone(), number, end)))
        .collect();
    while Instant::now() < end {
        let left = end.saturating_duration_since(Instant::now());
        tokio::time::sleep(left.min(Duration::from_secs(30))).await;
        let answered: u64 = traders.iter().map(|trader| trader.flood.succeeded()).sum();
        println!(
            "{answered} paid answers: {}",
            in_words(&watched.usage().await)
        );
    }
    for hostile in hostiles {
        hostile.await?;
    }
    books(&watched, traders).await?;
    let settled = |usage: &Usage| {
        usage.in_flight == 0
            && usage.sessions <= before.sessions
            && usage.descriptors <= before.descriptors + DESCRIPTORS_MORE_MAX
    };
    let after = watched.until(SETTLES_WITHIN, settled).await;
    println!("ends: {}", in_words(&after));
    ensure!(
        settled(&after),
        "left over: before {before:?}, after {after:?}"
    );
    println!("the books balance, nothing is left over");
    Ok(())
}

fn in_words(usage: &Usage) -> String {
    format!(
        "{} MiB, {} descriptors, {} sessions, {} in flight",
        usage.resident_bytes / MIB,
        usage.descriptors,
        usage.sessions,
        usage.in_flight
    )
}

async fn traders(
    watched: &Watched,
    cluster: &PgCluster,
    database: &str,
    count: usize,
) -> Vec<Trader> {
    let mut companies = Vec::new();
    for _ in 0..count {
        let company = watched.host.buyer(&unique("trader"), CREDITS).await;
        let keys = company.client.get(&company.path("/api-keys")).await;
        unlimit(&company, &keys.expect(200).text("/data/0/id")).await;
        let connection = company.postgres(cluster, database).await;
        let asset = json!({"sql_logic": "SELECT goals FROM goals", "slug": unique("goals")});
        let asset = company.asset(&connection, asset).await;
        company.publish(&asset, PRICE).await;
        companies.push((company, asset));
    }
    let assets: Vec<String> = companies.iter().map(|(_, asset)| asset.clone()).collect();
    let traders = companies
        .into_iter()
        .enumerate()
        .map(|(number, (company, _))| {
            let asset = &assets[(number + 1) % assets.len()];
            let path = company.path(&format!("/assets/{asset}/execute"));
            let request: Bytes =
                generator::request("POST", &path, &[("x-api-key", &company.key)], "{}").into();
            let address = watched.host.base_url.trim_start_matches("http://");
            let flood = Flood::start(address, HONEST_IN_FLIGHT, move || request.clone());
            Trader { company, flood }
        });
    traders.collect()
}

/// One hostile company's life: another behaviour every few seconds.
async fn hostile(watched: Arc<Watched>, number: usize, end: Instant) {
    let company = watched.host.company(&unique("villain")).await;
    let keys = company.client.get(&company.path("/api-keys")).await;
    unlimit(&company, &keys.expect(200).text("/data/0/id")).await;
    let deeds: Vec<Scenario> = scenarios::all()
        .into_iter()
        .filter(|scenario| scenarios::is_measured(scenario) && !is_for_staff(scenario))
        .collect();
    // Each begins elsewhere in the list.
    let mut next = number * deeds.len() / 5;
    while Instant::now() < end {
        let scenario = deeds[next % deeds.len()].clone();
        next += 1;
        let name = scenario.name.clone();
        let stage = Arc::new(Box::pin(Stage::set(&watched.host, company.clone(), scenario)).await);
        let asks = stage.clone();
        let address = watched
            .host
            .base_url
            .trim_start_matches("http://")
            .to_owned();
        let flood = Flood::start(&address, HOSTILE_IN_FLIGHT, move || asks.bytes());
        let left = end.saturating_duration_since(Instant::now());
        tokio::time::sleep(left.min(TURN)).await;
        let tally = tokio::task::spawn_blocking(move || flood.stop()).await;
        println!(
            "  {name}: {}",
            tally.map(|tally| tally.in_words()).unwrap_or_default()
        );
        stage.strike().await;
    }
}

/// Keeps fifty versions for ever, which is not what this is about.
fn is_for_staff(scenario: &Scenario) -> bool {
    scenario.source == Source::Work(scenarios::Work::Uploads)
}

/// Everybody has paid for every answer, and the ledger agrees.
async fn books(watched: &Watched, traders: Vec<Trader>) -> anyhow::Result<()> {
    let mut wrong = Vec::new();
    for trader in traders {
        let company = trader.company;
        let tally = tokio::task::spawn_blocking(move || trader.flood.stop()).await?;
        // Runs in flight when their caller hung up end, and void their hold or charge.
        let (mut credits, deadline) = (company.credits().await, Instant::now() + SETTLES_WITHIN);
        while credits.1 > 0 && Instant::now() < deadline {
            tokio::time::sleep(Duration::from_millis(200)).await;
            credits = company.credits().await;
        }
        let (paid, answered) = (CREDITS as i64 - credits.0, (tally.of(200) * PRICE) as i64);
        // An answer that was charged while its caller hung up is not counted here.
        let unseen = (HONEST_IN_FLIGHT as u64 * PRICE) as i64;
        if !(answered..=answered + unseen).contains(&paid) || credits.1 > 0 {
            wrong.push(format!(
                "{}: paid {paid} for {answered} answers, {} held",
                company.handle, credits.1
            ));
        }
        if tally.answers() != tally.of(200) || tally.of(0) > 0 {
            wrong.push(format!(
                "{} was not served: {}",
                company.handle,
                tally.in_full()
            ));
        }
    }
    let books = watched
        .host
        .platform()
        .get("/admin/ledger/reconciliation")
        .await;
    let books = books.expect(200);
    if books.at("/data/balanced") != true {
        wrong.push(format!("the books do not balance: {}", books.body));
    }
    ensure!(wrong.is_empty(), "{}", wrong.join("\n"));
    Ok(())
}
