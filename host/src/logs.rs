//! Structured logs on standard error: text for people on a terminal, one JSON object a line otherwise. A line that is written for somebody's call
//! has its request id, and its trace if it belongs to one.

use std::fmt;
use std::io::IsTerminal;

use anyhow::{Context, Result};
use souk_outbound::context;
use tracing::{Event, Subscriber};
use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt::format::{Format, Full, Json, JsonFields, Writer};
use tracing_subscriber::fmt::time::SystemTime;
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields};
use tracing_subscriber::registry::LookupSpan;

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
        // By `eprintln`, which panics where the file that holds the log is on a full disk, in the middle of somebody's call.
        .log_internal_errors(false)
        .with_writer(std::io::stderr);
    let started = if json {
        let format = tracing_subscriber::fmt::format()
            .json()
            .flatten_event(true)
            .with_current_span(true)
            .with_span_list(false);
        builder
            .fmt_fields(JsonFields::new())
            .event_format(JsonLine(format))
            .try_init()
    } else {
        let is_terminal = std::io::stderr().is_terminal();
        let format = tracing_subscriber::fmt::format()
            .with_ansi(is_terminal)
            .with_target(false);
        builder
            .with_ansi(is_terminal)
            .event_format(TextLine(format))
            .try_init()
    };
    started.map_err(|error| anyhow::anyhow!("logs cannot start: {error}"))
}

/// A JSON object with two members more.
struct JsonLine(Format<Json, SystemTime>);

impl<S, N> FormatEvent<S, N> for JsonLine
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(
        &self,
        about: &FmtContext<'_, S, N>,
        mut writer: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        let mut line = String::new();
        self.0.format_event(about, Writer::new(&mut line), event)?;
        let members = context::look(|context| {
            // Both are plain characters. What names its request itself is not given it twice.
            let request = match has_request_id(event) {
                true => String::new(),
                false => format!(r#","request_id":"{}""#, context.request_id),
            };
            match &context.trace {
                Some(trace) => format!(r#"{request},"trace_id":"{}""#, trace.id()),
                None => request,
            }
        });
        match (members, line.strip_suffix("}\n")) {
            (Some(members), Some(object)) => writeln!(writer, "{object}{members}}}"),
            _ => writer.write_str(&line),
        }
    }
}

/// A line of text with two words more.
struct TextLine(Format<Full, SystemTime>);

impl<S, N> FormatEvent<S, N> for TextLine
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(
        &self,
        about: &FmtContext<'_, S, N>,
        mut writer: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        let mut line = String::new();
        self.0.format_event(about, Writer::new(&mut line), event)?;
        writer.write_str(line.trim_end_matches('\n'))?;
        context::look(|context| {
            if !has_request_id(event) {
                write!(writer, " request_id={}", context.request_id)?;
            }
            match &context.trace {
                Some(trace) => write!(writer, " trace_id={}", trace.id()),
                None => Ok(()),
            }
        })
        .unwrap_or(Ok(()))?;
        writeln!(writer)
    }
}

fn has_request_id(event: &Event<'_>) -> bool {
    event.metadata().fields().field("request_id").is_some()
}
