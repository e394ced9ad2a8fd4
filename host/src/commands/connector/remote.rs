//! Connectors of a running host: what is there, which version is at work, and changing that. The host decides; what it refuses is told with what
//! to do next.

use anyhow::{Error, Result};
use clap::{Args, Subcommand};
use serde_json::{Value, json};

use super::activation::{self, Consent};
use super::add::{self, Add};
use super::logs;
use super::sync::{self, Sync};
use super::versions::{self, Whose, is_now, text};
use crate::commands::client::{At, AtMost, Client, Refused, body, segment};
use crate::commands::output::{self, Column};

#[derive(Subcommand)]
pub enum Remote {
    /// Give a component to a running host, which checks and keeps it: from a file, a project, or an OCI registry.
    ///
    /// It is held against what can be known without a source first (`souk connector test --quick`), and one that fails is given to nobody.
    /// From a registry it is taken by digest and with a signature of a trusted key. The login is the one that `docker login` has kept.
    Add(Add),
    /// Bring a host to the versions that a lock file names.
    ///
    /// What the host has already is not asked for again; connectors that the file does not name are left alone.
    Sync(Sync),
    /// List the versions of all connectors that the key can see.
    List(List),
    /// Show each version of a connector.
    Show(Named),
    /// List the data connections that a change of a connector concerns.
    Connections(Concerned),
    /// Put a version to work, for all calls or for a share of them.
    Activate(Activate),
    /// Take a connector off work: calls of products on its engines are answered 503 until a version is activated. Or end a canary.
    Deactivate(Deactivate),
    /// Go back to the version that was at work before, or end what takes a share of the calls beside the one at work.
    Rollback(Named),
    /// Delete a version that is not at work.
    Remove(Version),
    /// Print what a connector writes to its standard output and error, and how it breaks.
    Logs(logs::Logs),
}

#[derive(Args)]
pub struct List {
    /// `staged`, `active`, `canary`, `draining`, `retired` or `rejected` only.
    #[arg(long, value_name = "STATUS")]
    status: Option<String>,
    #[command(flatten)]
    at_most: AtMost,
    #[command(flatten)]
    at: At,
}

#[derive(Args)]
pub struct Named {
    #[arg(value_name = "NAME")]
    name: String,
    #[command(flatten)]
    whose: Whose,
}

#[derive(Args)]
pub struct Concerned {
    #[arg(value_name = "NAME")]
    name: String,
    #[command(flatten)]
    at_most: AtMost,
    #[command(flatten)]
    whose: Whose,
}

#[derive(Args)]
pub struct Deactivate {
    #[arg(value_name = "NAME")]
    name: String,
    /// The version that is meant: a canary's, to end that alone [default: whatever of it takes calls].
    #[arg(value_name = "VERSION")]
    version: Option<String>,
    /// Why, for whoever looks at it later.
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
    #[command(flatten)]
    whose: Whose,
}

#[derive(Args)]
pub struct Activate {
    #[command(flatten)]
    version: Version,
    /// Only so many percent of the calls go to it, as to a canary, and the others to the version at work [default: all].
    #[arg(long, value_name = "PERCENT", value_parser = clap::value_parser!(u8).range(1..=100))]
    share: Option<u8>,
    #[command(flatten)]
    consent: Consent,
}

#[derive(Args)]
pub struct Version {
    #[arg(value_name = "NAME")]
    name: String,
    #[arg(value_name = "VERSION")]
    version: String,
    #[command(flatten)]
    whose: Whose,
}

const VERSIONS: &[Column] = &[
    ("NAME", "/name"),
    ("VERSION", "/version"),
    ("STATUS", "/status"),
    ("COMPANY", "/company_id"),
    ("SHARE %", "/share_percent"),
    ("ENGINES", "/engines"),
    ("CALLS", "/calls_total"),
    ("TRAPS", "/traps_total"),
    ("TRIAL CALLS", "/trial/calls"),
    ("TRIAL TRAPS", "/trial/traps"),
    ("P95 MS", "/p95_ms"),
    ("LOADED", "/loaded_at"),
    ("ERROR", "/error"),
];
const CONNECTIONS: &[Column] = &[
    ("CONNECTION", "/connection_id"),
    ("COMPANY", "/company_id"),
    ("NAME", "/name"),
    ("ENGINE", "/engine"),
    ("STATUS", "/status"),
    ("PUBLISHED PRODUCTS", "/published_products"),
];

/// Whether the connector is well, as far as the host has said anything about that.
pub async fn run(command: Remote) -> Result<bool> {
    match done(command).await {
        Ok(()) => Ok(true),
        Err(error) => told(error),
    }
}

async fn done(command: Remote) -> Result<()> {
    match command {
        Remote::Add(command) => add::run(&command).await,
        Remote::Sync(command) => sync::run(&command).await,
        Remote::List(command) => {
            let client = Client::new(&command.at)?;
            let path = match &command.status {
                Some(status) => format!("/connectors?status={}", segment(status)),
                None => "/connectors".to_owned(),
            };
            let found = client.list(&path, command.at_most.limit).await?;
            output::some(command.at.json, VERSIONS, &found)
        }
        Remote::Show(command) => {
            let client = Client::new(&command.whose.at)?;
            let path = format!("/connectors/{}", segment(&command.name));
            let mut found = client.get(&path).await?;
            match found["versions"].take() {
                Value::Array(versions) => output::list(command.whose.at.json, VERSIONS, &versions),
                other => output::one(command.whose.at.json, VERSIONS, &other),
            }
        }
        Remote::Connections(command) => {
            let (client, base) = command.whose.reach().await?;
            let path = format!("{base}/{}/connections", segment(&command.name));
            let found = client.list(&path, command.at_most.limit).await?;
            output::some(command.whose.at.json, CONNECTIONS, &found)
        }
        Remote::Activate(command) => activate(&command).await,
        Remote::Deactivate(command) => {
            let deactivate = body([
                ("version", command.version.map(Value::from)),
                ("reason", command.reason.map(Value::from)),
            ]);
            change(&command.whose, &command.name, "deactivate", &deactivate).await
        }
        Remote::Rollback(command) => {
            change(&command.whose, &command.name, "rollback", &json!({})).await
        }
        Remote::Remove(command) => {
            let (client, base) = command.whose.reach().await?;
            versions::remove(&client, &base, &command.name, &command.version).await?;
            let sentence = format!("{} {} is deleted", command.name, command.version);
            let value = json!({"name": command.name, "version": command.version});
            output::done(command.whose.at.json, &sentence, &value)
        }
        Remote::Logs(command) => logs::run(&command).await,
    }
}

async fn activate(command: &Activate) -> Result<()> {
    let Version {
        name,
        version,
        whose,
    } = &command.version;
    let (client, base) = whose.reach().await?;
    let known = versions::known(&client, &base, name).await?.into_iter();
    let mut known = known.filter(|known| text(known, "version") == version);
    let active = match known.next() {
        Some(candidate) => {
            activation::put_to_work(&client, &base, &candidate, command.share, &command.consent)
                .await?
        }
        // The host says what is missing.
        None => versions::activate(&client, &base, name, version, command.share).await?,
    };
    output::done(whose.at.json, &is_now(&active), &active)
}

async fn change(whose: &Whose, name: &str, what: &str, body: &Value) -> Result<()> {
    let (client, base) = whose.reach().await?;
    let path = format!("{base}/{}/{what}", segment(name));
    let changed = client.post(&path, body).await?;
    output::done(whose.at.json, &is_now(&changed), &changed)
}

/// A refusal with what to do about it. `Ok`: it is the connector that is not well.
pub fn told(error: Error) -> Result<bool> {
    let Some(refused) = error.downcast_ref::<Refused>() else {
        return Err(error);
    };
    let (advice, is_connectors) = match refused.code.as_str() {
        "CONNECTOR_INVALID" => (
            "the host keeps nothing of it; `souk connector check FILE` says more",
            true,
        ),
        "CONNECTOR_UNHEALTHY" => (
            "it is kept and not at work, what was at work before goes on; `souk connector logs NAME` may say more",
            true,
        ),
        "CONNECTOR_BLOCKED" => (
            "the platform's staff has taken it off work, and puts it back",
            false,
        ),
        "CONNECTOR_NOT_FOUND" => (
            "`souk connector list` shows what this key can see; the platform's are changed with --platform",
            false,
        ),
        "CONNECTOR_QUOTA_EXCEEDED" => ("`souk connector remove NAME VERSION` makes room", false),
        "INSUFFICIENT_ROLE" => (
            "a company's connectors are changed with a key of role 3, the platform's (--platform) with one of role 5",
            false,
        ),
        _ => return Err(error),
    };
    let told = format!("{refused}\n  → {advice}");
    match is_connectors {
        true => {
            eprintln!("souk: {told}");
            Ok(false)
        }
        false => Err(Error::msg(told)),
    }
}
