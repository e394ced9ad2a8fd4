//! `souk completions`.

use anyhow::Result;
use clap::{Args, CommandFactory};
use clap_complete::Shell;

use super::output;
use crate::cli::Cli;

#[derive(Args)]
pub struct Completions {
    #[arg(value_enum)]
    shell: Shell,
}

pub fn run(command: &Completions) -> Result<()> {
    let mut script = Vec::new();
    clap_complete::generate(command.shell, &mut Cli::command(), "souk", &mut script);
    output::print(String::from_utf8(script)?.trim_end())
}
