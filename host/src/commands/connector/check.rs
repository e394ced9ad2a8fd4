//! `souk connector check`: everything that can be known of a component without a source.

use std::path::PathBuf;

use anyhow::Result;
use clap::Args;
use serde_json::{Value, json};
use souk_conformance::{KitError, Profile, Report, Subject, describe};
use souk_sandbox::{ConnectorInfo, EngineInfo, Options, is_secret};

use super::local;

#[derive(Args)]
pub struct Check {
    /// The component: a .wasm file.
    #[arg(value_name = "FILE")]
    file: PathBuf,

    /// Print JSON, for scripts.
    #[arg(long)]
    json: bool,
}

pub async fn run(command: Check) -> Result<bool> {
    let wasm = local::component(&command.file)?;
    let options = local::sandbox_options()?;
    let info = match describe(wasm.clone(), options.clone()).await {
        Ok(info) => info,
        Err(KitError::Load(refused)) => {
            match command.json {
                true => println!("{}", json!({"refused": refused.to_string()})),
                false => println!("refused: {refused}"),
            }
            return Ok(false);
        }
        Err(error) => return Err(error.into()),
    };
    // A publisher has platforms, and they are no engines.
    let subject = match Subject::load(wasm, options.clone(), Profile::default()).await {
        Ok(subject) => Some(subject),
        Err(KitError::Publisher) => None,
        Err(error) => return Err(error.into()),
    };
    let report = match &subject {
        Some(subject) => Some(souk_conformance::run_quick(subject).await?),
        None => None,
    };
    let engines = subject.as_ref().map(Subject::engines).unwrap_or_default();
    if command.json {
        let engines: Vec<Value> = engines.iter().map(engine).collect();
        let limits: Value = limits(&options)
            .into_iter()
            .map(|(name, value, _)| (name.to_owned(), Value::from(value)))
            .collect();
        println!(
            "{}",
            serde_json::to_string_pretty(
                &json!({"connector": info, "engines": engines, "limits": limits, "report": report})
            )?
        );
    } else {
        print(&info, &engines, &options, report.as_ref());
    }
    if let Some(subject) = subject {
        subject.close().await;
    }
    Ok(report.is_none_or(|report| report.failed == 0))
}

fn engine(engine: &EngineInfo) -> Value {
    json!({
        "slug": engine.slug, "title": engine.title, "dialect": engine.dialect,
        "credential_types": engine.credential_types, "abilities": engine.abilities,
    })
}

fn print(info: &ConnectorInfo, engines: &[EngineInfo], options: &Options, report: Option<&Report>) {
    let needs: Vec<String> = info
        .needs
        .iter()
        .map(|need| format!("{need:?}").to_lowercase())
        .collect();
    println!("{} {}", info.name, info.version);
    println!("  digest    {}", info.digest);
    println!(
        "  size      {} kB, compiled in {} ms",
        info.size_bytes.div_ceil(1000),
        info.compile_ms
    );
    println!("  contract  {}", info.wit_version);
    println!("  needs     {}", needs.join(", "));
    if engines.is_empty() {
        println!("  platforms {}", info.engine_ids.join(", "));
    }
    for engine in engines {
        println!(
            "  engine    {} ({}): dialect {}, credentials {}, abilities {}",
            engine.slug,
            engine.title,
            engine.dialect,
            listed(&engine.credential_types),
            listed(&engine.abilities)
        );
    }
    println!("\nsettings");
    settings(&info.settings_schema);
    println!("\nimports");
    for import in &info.imports {
        println!("  {import}");
    }
    if info.imports.is_empty() {
        println!("  none");
    }
    println!("\nlimits of a host with the default settings");
    for (name, value, unit) in limits(options) {
        println!("  {name:<26} {value:>10} {unit}");
    }
    if let Some(report) = report {
        println!("\n{report}");
    }
}

fn listed(words: &[String]) -> String {
    match words.is_empty() {
        true => "none".to_owned(),
        false => words.join(", "),
    }
}

fn settings(schema: &str) {
    let schema: Value = serde_json::from_str(schema).unwrap_or_default();
    let required = |name: &str| {
        let required = schema["required"].as_array();
        required.is_some_and(|names| names.iter().any(|found| found == name))
    };
    let Some(properties) = schema["properties"].as_object() else {
        println!("  the schema names none: the connector is told whatever is given");
        return;
    };
    for (name, member) in properties {
        let mut notes = vec![member["type"].as_str().unwrap_or("any").to_owned()];
        if required(name) {
            notes.push("required".to_owned());
        }
        if is_secret(member) {
            notes.push("secret".to_owned());
        }
        if !member["default"].is_null() {
            notes.push(format!("default {}", member["default"]));
        }
        println!("  {name:<26} {}", notes.join(", "));
    }
    if properties.is_empty() {
        println!("  none");
    }
}

/// What bounds a component, with numbers.
fn limits(options: &Options) -> Vec<(&'static str, u64, &'static str)> {
    let limits = souk_sandbox::SandboxLimits::default();
    debug_assert!(options.limits.columns_max == limits.columns_max);
    vec![
        (
            "component_size",
            (limits.component_bytes_max >> 20) as u64,
            "MiB",
        ),
        ("compile_memory", limits.compile_memory_bytes >> 20, "MiB"),
        ("compile_time", limits.compile_timeout.as_secs(), "s"),
        (
            "memory_tcp_http",
            (limits.wire_memory_bytes >> 20) as u64,
            "MiB a session",
        ),
        (
            "memory_directory",
            (limits.directory_memory_bytes >> 20) as u64,
            "MiB a session",
        ),
        (
            "computing_a_call",
            limits.call_budget.as_millis() as u64,
            "ms (tcp and http)",
        ),
        (
            "computing_a_mib",
            limits.call_budget_per_mib.as_millis() as u64,
            "ms more for each MiB of a response",
        ),
        ("open", limits.open_timeout.as_secs(), "s"),
        ("columns", limits.columns_max as u64, "a result"),
    ]
}
