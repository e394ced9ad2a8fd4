//! `souk connector logs`: what a connector says on a running host, also while it says it.

use std::time::Duration;

use anyhow::{Error, Result, bail};
use clap::Args;
use serde_json::Value;

use super::versions::{Whose, text};
use crate::commands::client::{Client, Refused, segment};
use crate::commands::output;

/// How often a host is asked for more lines.
const FOLLOWED_EVERY: Duration = Duration::from_millis(500);
/// A host that is away is asked less often.
const AWAY_EVERY: Duration = Duration::from_secs(2);
/// The most that the host answers at once.
const LINES_MAX: u16 = 1_000;

#[derive(Args)]
pub struct Logs {
    #[arg(value_name = "NAME")]
    name: String,
    /// Go on with what it says from now on, until Ctrl-C.
    #[arg(short, long)]
    follow: bool,
    /// Begin with so many of the last lines, 1000 at most.
    #[arg(short = 'n', long, value_name = "LINES", default_value_t = 100,
        value_parser = clap::value_parser!(u16).range(1..=i64::from(LINES_MAX)))]
    lines: u16,
    /// Of one data connection only.
    #[arg(long, value_name = "ID")]
    connection: Option<String>,
    #[command(flatten)]
    whose: Whose,
}

pub async fn run(command: &Logs) -> Result<()> {
    let (client, base) = command.whose.reach().await?;
    let mut reader = Reader {
        client,
        path: format!("{base}/{}/logs", segment(&command.name)),
        connection: command.connection.clone(),
        after: None,
        is_awaited: false,
        json: command.whose.at.json,
    };
    reader.print(command.lines).await?;
    match command.follow {
        true => reader.follow().await,
        false => Ok(()),
    }
}

/// Reads on in a connector's log.
pub struct Reader {
    client: Client,
    path: String,
    connection: Option<String>,
    after: Option<u64>,
    /// It may not be there yet: it is about to be uploaded.
    is_awaited: bool,
    json: bool,
}

impl Reader {
    /// Of all that a connector says from now on, also one that is not there yet.
    pub async fn from_now(client: Client, base: &str, name: &str) -> Result<Reader> {
        let path = format!("{base}/{}/logs", segment(name));
        let mut reader = Reader {
            client,
            path,
            connection: None,
            after: None,
            is_awaited: true,
            json: false,
        };
        match reader.read(1).await {
            Ok(_) => {}
            Err(error) if is_not_there(&error) => reader.after = Some(0),
            Err(error) => return Err(error),
        }
        Ok(reader)
    }

    /// What is new.
    async fn read(&mut self, limit: u16) -> Result<Vec<Value>> {
        let mut path = format!("{}?limit={limit}", self.path);
        if let Some(after) = self.after {
            path.push_str(&format!("&after={after}"));
        }
        if let Some(connection) = &self.connection {
            path.push_str(&format!("&connection_id={}", segment(connection)));
        }
        let mut found = self.client.get(&path).await?;
        let Value::Array(lines) = found["lines"].take() else {
            bail!("{}: the host's answer is no log", self.path);
        };
        self.after = found["next"].as_u64().or(self.after);
        // Whoever follows an empty log begins at its beginning.
        self.after.get_or_insert(0);
        Ok(lines)
    }

    /// Prints what is new.
    async fn print(&mut self, limit: u16) -> Result<()> {
        for line in self.read(limit).await? {
            output::print(&match self.json {
                true => line.to_string(),
                false => shown(&line),
            })?;
        }
        Ok(())
    }

    /// Goes on for ever; also when the host is away for a moment.
    pub async fn follow(&mut self) -> Result<()> {
        let mut is_away = false;
        loop {
            tokio::time::sleep(if is_away { AWAY_EVERY } else { FOLLOWED_EVERY }).await;
            is_away = match self.print(LINES_MAX).await {
                Ok(()) => false,
                Err(error) if self.is_awaited && is_not_there(&error) => false,
                Err(error) if is_final(&error) => return Err(error),
                Err(error) => {
                    if !is_away {
                        eprintln!("souk: {error:#}; waiting for it");
                    }
                    true
                }
            };
        }
    }
}

fn is_not_there(error: &Error) -> bool {
    error
        .downcast_ref::<Refused>()
        .is_some_and(|refused| refused.status == reqwest::StatusCode::NOT_FOUND)
}

/// Whether asking again would be answered the same.
fn is_final(error: &Error) -> bool {
    error.downcast_ref::<Refused>().is_some_and(|refused| {
        refused.status.is_client_error() && refused.status != reqwest::StatusCode::TOO_MANY_REQUESTS
    })
}

/// A line for people; what a guest says cannot speak to the terminal.
fn shown(line: &Value) -> String {
    let said = text(line, "text").replace(char::is_control, " ");
    let connection = line["connection_id"].as_str().unwrap_or("-");
    let [at, version, stream] = ["at", "version", "stream"].map(|member| text(line, member));
    format!("{at} {version} {connection} {stream:<6} {said}")
}
