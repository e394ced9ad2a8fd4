//! `souk connector test`: the conformance kit.

use std::path::PathBuf;

use anyhow::Result;
use clap::Args;
use serde_json::json;

use super::local::{self, SourceArgs};
use crate::commands::progress;

#[derive(Args)]
pub struct Test {
    /// The component: a .wasm file.
    #[arg(value_name = "FILE")]
    file: PathBuf,

    #[command(flatten)]
    source: SourceArgs,

    /// Only what needs no source.
    #[arg(long)]
    quick: bool,

    /// Print the report as JSON, for scripts.
    #[arg(long)]
    json: bool,
}

pub async fn run(command: Test) -> Result<bool> {
    let wasm = local::component(&command.file)?;
    let subject = match local::load(wasm, command.source.profile()?).await? {
        Ok(subject) => subject,
        Err(refused) => {
            match command.json {
                true => println!("{}", json!({"refused": refused.to_string()})),
                false => println!("refused: {refused}"),
            }
            return Ok(false);
        }
    };
    let report = {
        let _busy = progress::busy("holding it against the conformance kit");
        match command.quick {
            true => souk_conformance::run_quick(&subject).await?,
            false => souk_conformance::run(&subject).await?,
        }
    };
    match command.json {
        true => println!("{}", serde_json::to_string_pretty(&report)?),
        false => println!("{report}"),
    }
    subject.close().await;
    Ok(report.is_conforming())
}
