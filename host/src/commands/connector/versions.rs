//! Versions of connectors on a running host: whose they are, and the calls that handle them. What a command makes of that is its own business.

use anyhow::{Error, Result};
use clap::Args;
use reqwest::Method;
use serde_json::Value;

use crate::commands::client::{At, Client, OfCompany, Refused, body, segment};
use crate::commands::output::plain;
use crate::commands::progress;

/// Whose connectors are meant.
#[derive(Args)]
pub struct Whose {
    /// The platform's, which all companies use (a key of role 5) [default: the company's own].
    #[arg(long, conflicts_with = "company", help_heading = "Host")]
    platform: bool,
    #[command(flatten)]
    of: OfCompany,
    #[command(flatten)]
    pub at: At,
}

impl Whose {
    /// A client, and the path below which these connectors are.
    pub async fn reach(&self) -> Result<(Client, String)> {
        let client = Client::new(&self.at)?;
        let base = match self.platform {
            true => "/connectors".to_owned(),
            false => format!("/companies/{}/connectors", client.company(&self.of).await?),
        };
        Ok((client, base))
    }
}

/// The versions of a connector that are handled below `base`, as the host shows them; none where it has no such connector.
pub async fn known(client: &Client, base: &str, name: &str) -> Result<Vec<Value>> {
    let mut known = match client.get(&format!("/connectors/{}", segment(name))).await {
        Ok(known) => known,
        Err(error) if is_absent(&error) => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    // The platform's have none.
    let owner = base
        .strip_prefix("/companies/")
        .and_then(|base| base.strip_suffix("/connectors"));
    match known["versions"].take() {
        Value::Array(versions) => Ok(versions
            .into_iter()
            .filter(|version| version["company_id"].as_str() == owner)
            .collect()),
        _ => Ok(Vec::new()),
    }
}

fn is_absent(error: &Error) -> bool {
    let refused = error.downcast_ref::<Refused>();
    refused.is_some_and(|refused| refused.code == "CONNECTOR_NOT_FOUND")
}

/// Gives a component to the host, which checks and keeps it; its author's slips are told.
pub async fn stage(client: &Client, base: &str, wasm: Vec<u8>) -> Result<Value> {
    let version = upload(client, base, wasm, false).await?;
    for warning in version["warnings"].as_array().into_iter().flatten() {
        eprintln!("souk: {}", plain(warning.as_str().unwrap_or_default()));
    }
    Ok(version)
}

/// Gives a component to the host.
pub async fn upload(client: &Client, base: &str, wasm: Vec<u8>, activate: bool) -> Result<Value> {
    let request = client
        .request(Method::POST, &format!("{base}?activate={activate}"))
        .header("content-type", "application/wasm")
        .body(wasm);
    let _busy = progress::busy("the host takes and compiles it");
    client.data(request).await
}

/// Puts a version to work, for all calls or for so many percent of them.
pub async fn activate(
    client: &Client,
    base: &str,
    name: &str,
    version: &str,
    share: Option<u8>,
) -> Result<Value> {
    let path = format!("{base}/{}/activate", segment(name));
    let body = body([
        ("version", Some(version.into())),
        ("share_percent", share.map(Value::from)),
    ]);
    let _busy = progress::busy("the host puts it to work");
    client.post(&path, &body).await
}

pub async fn remove(client: &Client, base: &str, name: &str, version: &str) -> Result<()> {
    let path = format!("{base}/{}/versions/{}", segment(name), segment(version));
    client.delete(&path).await
}

pub fn is_now(version: &Value) -> String {
    let [name, number, status] = ["name", "version", "status"].map(|member| text(version, member));
    let whose = match text(version, "scope") {
        "platform" => " --platform",
        _ => "",
    };
    match status {
        "active" => format!("{name} {number} is at work"),
        "canary" => {
            let share = &version["share_percent"];
            format!(
                "{name} {number} takes {share} % of the calls: activated again it takes more, `souk connector rollback {name}{whose}` ends it"
            )
        }
        "staged" => format!(
            "{name} {number} is staged: `souk connector activate {name} {number}{whose}` puts it to work"
        ),
        _ => format!("{name} {number} is {status}"),
    }
}

pub fn text<'a>(value: &'a Value, member: &str) -> &'a str {
    value[member].as_str().unwrap_or_default()
}
