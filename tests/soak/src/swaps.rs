//! A connector that is loaded, activated, rolled back and unloaded a thousand times leaves no memory behind; two versions that take turns under
//! load fail no request.

use std::path::PathBuf;

use anyhow::ensure;
use bytes::Bytes;
use serde_json::json;
use souk_hostile::components::marked;
use souk_hostile::flood::Flood;
use souk_hostile::guests;
use souk_hostile::stage::unique;
use souk_hostile::watch::{MIB, Watched};
use souk_load::generator;
use souk_load::market::unlimit;
use souk_tests::{Client, Company};

pub struct Plan {
    pub loads: u32,
    pub settled_after: u32,
    pub components: u32,
    pub swaps: u32,
}

/// What the issue allows.
const GROWTH_MAX: f64 = 1.05;
const CLIENTS: usize = 16;
/// The versions that are always there.
const FIRST: u32 = 0;
const SECOND: u32 = 999_999;

pub async fn run(binary: PathBuf, plan: &Plan) -> anyhow::Result<()> {
    let watched = Watched::start(Some(binary)).await;
    let platform = watched.host.platform();
    upload(&platform, FIRST, true).await;
    let company = watched.host.company(&unique("caller")).await;
    let keys = company.client.get(&company.path("/api-keys")).await;
    unlimit(&company, &keys.expect(200).text("/data/0/id")).await;
    let asset = asset(&company).await;
    loads(&watched, &platform, &company, &asset, plan).await?;
    swaps(&watched, &platform, &company, &asset, plan.swaps).await
}

/// Load, activate, use, roll back, unload.
async fn loads(
    watched: &Watched,
    platform: &Client,
    company: &Company,
    asset: &str,
    plan: &Plan,
) -> anyhow::Result<()> {
    let mut settled = 0;
    for load in 1..=plan.loads {
        let number = 1 + load % plan.components.max(1);
        upload(platform, number, true).await;
        company.execute(asset, json!({})).await.expect(200);
        let rollback = format!("/connectors/{NAME}/rollback");
        platform.post(&rollback, json!({})).await.expect(200);
        company.execute(asset, json!({})).await.expect(200);
        let version = format!("/connectors/{NAME}/versions/1.0.{number}");
        let deleted = platform.delete(&version).await;
        ensure!(deleted.status.is_success(), "{version}: {deleted:?}");
        let now = watched.usage().await.resident_bytes;
        if load == plan.settled_after.min(plan.loads) {
            settled = now;
        }
        if load % 50 == 0 {
            println!("{load} loads: {} MiB", now / MIB);
        }
    }
    let now = watched.usage().await.resident_bytes;
    let growth = now as f64 / settled.max(1) as f64;
    println!(
        "{} loads: {} MiB after the first {}, {} MiB now ({growth:.3} times)",
        plan.loads,
        settled / MIB,
        plan.settled_after,
        now / MIB
    );
    ensure!(growth <= GROWTH_MAX, "memory grew {growth:.3} times");
    Ok(())
}

async fn swaps(
    watched: &Watched,
    platform: &Client,
    company: &Company,
    asset: &str,
    swaps: u32,
) -> anyhow::Result<()> {
    upload(platform, SECOND, false).await;
    let path = company.path(&format!("/assets/{asset}/execute"));
    let request: Bytes =
        generator::request("POST", &path, &[("x-api-key", &company.key)], "{}").into();
    let address = watched.host.base_url.trim_start_matches("http://");
    let flood = Flood::start(address, CLIENTS, move || request.clone());
    for swap in 0..swaps {
        let number = if swap % 2 == 0 { SECOND } else { FIRST };
        let path = format!("/connectors/{NAME}/activate");
        let version = json!({"version": format!("1.0.{number}")});
        platform.post(&path, version).await.expect(200);
    }
    let tally = tokio::task::spawn_blocking(move || flood.stop()).await?;
    println!("{swaps} swaps: {}", tally.in_full());
    ensure!(
        tally.of(200) > 0 && tally.answers() == tally.of(200) && tally.of(0) == 0,
        "requests failed while versions were swapped"
    );
    Ok(())
}

const NAME: &str = "hostile-http";

async fn upload(platform: &Client, number: u32, activate: bool) {
    let wasm = marked(guests::HOSTILE_HTTP, "well", number);
    let path = format!("/connectors?activate={activate}");
    let uploaded = platform.post_wasm(&path, wasm).await;
    assert!(uploaded.status.is_success(), "{uploaded:?}");
}

async fn asset(company: &Company) -> String {
    let fields = json!({"credential_type": "NONE", "credentials": "{}", "base_url": "http://127.0.0.1:1/honest"});
    let connection = company.connection(NAME, fields).await;
    let asset = json!({"sql_logic": "SELECT id FROM t", "slug": unique("id")});
    company.asset(&connection, asset).await
}
