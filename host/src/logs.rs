//! Structured logs on standard error: text for people on a terminal, one JSON object a line otherwise.

use std::io::IsTerminal;

use anyhow::{Context, Result};
use tracing_subscriber::EnvFilter;

use crate::cli::LogFormat;

pub fn start(filter: &str, format: LogFormat) -> Result<()> {
    let filter = EnvFilter::try_new(filter)
        .with_context(|| format!("--log {filter:?} is not a tracing filter"))?;
    let json = match format {
        LogFormat::Json => true,
        LogFormat::Text => false,
        LogFormat::Auto => !std::io::stderr().is_terminal(),
    };
    let builder = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr);
    let started = if json {
        builder
            .json()
            .flatten_event(true)
            .with_current_span(true)
            .with_span_list(false)
            .try_init()
    } else {
        builder
            .with_ansi(std::io::stderr().is_terminal())
            .with_target(false)
            .try_init()
    };
    started.map_err(|error| anyhow::anyhow!("logs cannot start: {error}"))
}
