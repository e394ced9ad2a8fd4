//! `souk connector run`: one request, and its answer as a table or JSON.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use clap::Args;
use comfy_table::{Table, presets::UTF8_HORIZONTAL_ONLY};
use serde_json::Value as Json;
use souk_conformance::{Subject, parameter};
use souk_sandbox::{Call, Fault, Limits, Output, Query, Request, Route, SchemaFilter, Value, json};

use super::local::{self, SourceArgs};

/// What one answer may hold.
const BYTES_MAX: u64 = 64 << 20;
/// Beyond it a table is no table any more.
const CELL_CHARS_MAX: usize = 60;

#[derive(Args)]
pub struct Run {
    /// The component: a .wasm file.
    #[arg(value_name = "FILE")]
    file: PathBuf,

    #[command(flatten)]
    source: SourceArgs,

    #[command(flatten)]
    asked: Asked,

    /// A value to bind, as JSON: 7, true, '"text"', '{"decimal": "1.50"}', '{"date": 19723}'; what is no JSON is a text. Repeatable.
    #[arg(long = "param", value_name = "VALUE", requires = "query")]
    parameters: Vec<String>,

    /// The parameters of a function: a JSON object.
    #[arg(
        long = "call-params",
        value_name = "JSON",
        default_value = "{}",
        requires = "call"
    )]
    call_parameters: String,

    /// The most rows that are asked for.
    #[arg(long, value_name = "ROWS", default_value_t = 1000)]
    limit: u32,

    /// How long the answer may take.
    #[arg(long, value_name = "SECONDS", default_value_t = 30)]
    timeout: u64,

    /// Print the rows as a JSON array of objects.
    #[arg(long)]
    json: bool,
}

#[derive(Args)]
#[group(required = true, multiple = false)]
struct Asked {
    /// A statement, in the engine's own words and placeholders.
    #[arg(long, value_name = "TEXT")]
    query: Option<String>,

    /// The catalog.
    #[arg(long)]
    schema: bool,

    /// Whether the source answers.
    #[arg(long)]
    ping: bool,

    /// A function: its name, or its path with a slash at the front.
    #[arg(long, value_name = "NAME")]
    call: Option<String>,
}

pub async fn run(command: Run) -> Result<bool> {
    let request = request(&command)?;
    let wasm = local::component(&command.file)?;
    let profile = command.source.profile()?;
    let subject = match local::load(wasm, profile).await? {
        Ok(subject) => subject,
        Err(refused) => {
            eprintln!("refused: {refused}");
            return Ok(false);
        }
    };
    let place = subject.place.clone();
    let place = place.context(
        "no source is named: give --address, --base-url or --data, or a profile with [source] or its own server",
    )?;
    warn(&subject);
    let begun = Instant::now();
    let patience = Duration::from_secs(command.timeout);
    let source = subject.source(&place);
    let answer = subject.ask_within(&source, request, patience).await;
    let took = begun.elapsed();
    let is_well = answer.is_ok();
    match answer {
        Ok(output) if command.json => println!("{}", as_json(&output)?),
        Ok(output) => {
            println!("{}", table(&output));
            println!("{} rows in {} ms", output.rows, took.as_millis());
        }
        Err(fault) => eprintln!("{}", told(&fault)),
    }
    subject.close().await;
    Ok(is_well)
}

/// A setting that the schema does not name is not passed on, by a host neither.
fn warn(subject: &Subject) {
    let Some(named) = subject.named() else { return };
    for name in subject.profile.settings.keys() {
        if !named.contains_key(name) {
            eprintln!(
                "souk: the setting \"{name}\" is not in the connector's schema, so it is not told to it"
            );
        }
    }
}

fn request(command: &Run) -> Result<Request> {
    let limits = Limits::new(command.limit, BYTES_MAX);
    let asked = &command.asked;
    if let Some(text) = &asked.query {
        let parameters = command.parameters.iter().map(|text| bound(text));
        return Ok(Request::Query(Query {
            text: text.as_str().into(),
            parameters: parameters.collect::<Result<_>>()?,
            limits,
        }));
    }
    if asked.schema {
        return Ok(Request::Schema(SchemaFilter {
            schemas: Vec::new(),
            tables: Vec::new(),
            include_fields: true,
            limits,
        }));
    }
    let Some(name) = &asked.call else {
        return Ok(Request::Ping(limits));
    };
    local::object(&command.call_parameters).context("--call-params")?;
    let route = match name.starts_with('/') {
        true => Route::Path(name.as_str().into()),
        false => Route::Function(name.as_str().into()),
    };
    Ok(Request::Call(Call {
        route,
        parameters: command.call_parameters.clone(),
        asset_id: "ast_run".to_owned(),
        request_id: "req_run".to_owned(),
        execution_id: "exe_run".to_owned(),
        limits,
    }))
}

fn bound(text: &str) -> Result<Value> {
    match serde_json::from_str::<Json>(text) {
        Ok(value) => Ok(parameter(&value)?),
        Err(_) => Ok(Value::Text(text.to_owned())),
    }
}

fn as_json(output: &Output) -> Result<String> {
    let mut text = Vec::new();
    let fields = json::Field::all(output);
    json::write_rows(&mut text, output, &fields, 0..output.rows);
    Ok(String::from_utf8(text)?)
}

fn table(output: &Output) -> Table {
    let mut table = Table::new();
    table.load_preset(UTF8_HORIZONTAL_ONLY);
    let headers = output.columns.iter().map(|column| {
        let null = if column.nullable { "?" } else { "" };
        format!("{}\n{}{null}", column.name, column.kind.as_str())
    });
    table.set_header(headers);
    for row in 0..output.rows {
        table.add_row((0..output.columns.len()).map(|column| shown(output, row, column)));
    }
    table
}

/// A value as a person reads it: texts without quotes, and not without end.
fn shown(output: &Output, row: usize, column: usize) -> String {
    let cell = output.cell(row, column);
    let text = match cell {
        souk_sandbox::Cell::Null => "NULL".to_owned(),
        souk_sandbox::Cell::Text(text) => text.escape_debug().to_string(),
        _ => {
            let mut text = Vec::new();
            json::write_cell(&mut text, &cell);
            let text = String::from_utf8_lossy(&text).into_owned();
            text.trim_matches('"').to_owned()
        }
    };
    match text.char_indices().nth(CELL_CHARS_MAX) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

fn told(fault: &Fault) -> String {
    let mut told = format!(
        "failed: {}\n  blame {}, kind {}, code {}",
        fault.message,
        fault.blame.as_str(),
        fault.kind.as_str(),
        fault.code
    );
    let more = [
        ("source's code", fault.source_code.clone()),
        (
            "retry after",
            fault.retry_after_ms.map(|ms| format!("{ms} ms")),
        ),
        ("detail", fault.detail.clone()),
    ];
    for (name, value) in more {
        if let Some(value) = value {
            told.push_str(&format!("\n  {name}: {value}"));
        }
    }
    told
}
