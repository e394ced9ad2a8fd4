//! `souk demo`: a marketplace with a seller, a buyer and a sample seller API in it.
//!
//! The first start seeds through the REST API and keeps the ids and keys in `demo.json` (mode 0600) in
//! the data directory; a later start reads them and goes on.

mod dataset;
mod print;
mod rest;
mod seed;
mod seller_api;

use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;

use anyhow::{Context, Result, bail};
use rand::RngExt;
use rand::distr::Alphanumeric;
use serde::{Deserialize, Serialize};
use tokio::net::TcpListener;

use crate::host::Host;
use crate::ready::{Buyer, Platform, Ready, Seller, write_json};
use crate::serve::egress;
use crate::settings::Settings;
use rest::Rest;

const KEPT_FILE: &str = "demo.json";
/// Below the ports that systems hand out by themselves, so that a later start finds it free again.
const SELLER_API_PORTS: std::ops::Range<u16> = 20_000..30_000;
const PORT_ATTEMPTS: usize = 20;
const API_KEY_CHARS: usize = 32;

/// What a later start on the same directory needs.
#[derive(Serialize, Deserialize)]
struct Kept {
    platform: Platform,
    seller: Seller,
    buyer: Buyer,
    seller_api: SellerApi,
}

/// The sample API keeps its address: the seller's connection names it.
#[derive(Clone, Serialize, Deserialize)]
struct SellerApi {
    address: SocketAddr,
    api_key: String,
}

pub async fn run(settings: Settings) -> Result<()> {
    let kept_file = settings.data_dir.join(KEPT_FILE);
    let ready_file = settings.ready_file.clone();
    let data_dir = settings.data_dir.clone();
    let kept = read_kept(&kept_file)?;

    let seller_api = start_seller_api(kept.as_ref().map(|kept| &kept.seller_api)).await?;
    // Exactly this address and port; nothing else on loopback.
    let egress = egress(&settings)?.allow_socket(seller_api.address);
    let host = Host::start(settings, egress).await?;
    let kept = match (kept, host.platform.clone()) {
        (Some(kept), None) => kept,
        (None, Some(platform)) => {
            let kept = seeded(&host.base_url, platform, seller_api).await?;
            write_json(&kept_file, &kept)?;
            kept
        }
        _ => bail!(
            "{0} and the store do not belong together (an earlier first start was cut short?): \
             remove {1} or choose another --data-dir",
            kept_file.display(),
            data_dir.display()
        ),
    };

    let ready = Ready {
        listen: host.address(),
        base_url: host.base_url.clone(),
        endpoint_base_url: host.endpoint_base_url.clone(),
        platform: Some(kept.platform),
        seller: Some(kept.seller.clone()),
        buyer: Some(kept.buyer.clone()),
    };
    if let Some(path) = &ready_file {
        write_json(path, &ready)?;
    }
    print::welcome(&ready.base_url, &data_dir, &kept.seller, &kept.buyer);
    host.serve().await
}

fn read_kept(path: &Path) -> Result<Option<Kept>> {
    match std::fs::read(path) {
        Ok(json) => serde_json::from_slice(&json)
            .map(Some)
            .with_context(|| format!("{} is damaged", path.display())),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error).with_context(|| format!("{} cannot be read", path.display())),
    }
}

async fn start_seller_api(kept: Option<&SellerApi>) -> Result<SellerApi> {
    let (listener, api_key) = match kept {
        Some(kept) => {
            let listener = TcpListener::bind(kept.address)
                .await
                .with_context(|| format!("the sample seller API needs {} again", kept.address))?;
            (listener, kept.api_key.clone())
        }
        None => {
            let api_key = rand::rng()
                .sample_iter(Alphanumeric)
                .take(API_KEY_CHARS)
                .map(char::from)
                .collect();
            (free_listener().await?, api_key)
        }
    };
    let address = seller_api::start(listener, String::clone(&api_key))?;
    tracing::info!(%address, "the sample seller API is up");
    Ok(SellerApi { address, api_key })
}

async fn free_listener() -> Result<TcpListener> {
    for _ in 0..PORT_ATTEMPTS {
        let port = rand::rng().random_range(SELLER_API_PORTS);
        if let Ok(listener) = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).await {
            return Ok(listener);
        }
    }
    bail!("no free port for the sample seller API among {SELLER_API_PORTS:?}")
}

async fn seeded(base_url: &str, platform: Platform, seller_api: SellerApi) -> Result<Kept> {
    let directory = tempfile::tempdir()?;
    let file = directory.path().join("league.sqlite");
    dataset::write(&file).await?;
    let content = std::fs::read(&file)?;

    let rest = Rest::new(base_url.to_owned(), platform.api_key.clone());
    let as_connected = seed::SellerApi {
        base_url: format!("http://{}", seller_api.address),
        api_key: seller_api.api_key.clone(),
    };
    let (seller, buyer) = seed::seed(&rest, &as_connected, content)
        .await
        .context("the demo cannot be seeded")?;
    Ok(Kept {
        platform,
        seller,
        buyer,
        seller_api,
    })
}
