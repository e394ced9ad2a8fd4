//! `souk connector new`: a project that builds, with its tests.

use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;

use anyhow::{Context, Result, bail, ensure};
use clap::{Args, ValueEnum};

#[derive(Args)]
pub struct New {
    /// What the connector is called: small letters, digits and dashes.
    #[arg(value_name = "NAME")]
    name: String,

    /// What it needs of the host: a tcp wire, HTTP requests to one API, or one directory of files.
    #[arg(long, value_enum)]
    kind: Kind,

    #[arg(long, value_enum, default_value_t = Language::Rust)]
    lang: Language,

    /// Where the project is made [default: NAME in this directory]. It must not exist, or be empty.
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
}

#[derive(Clone, Copy, ValueEnum)]
enum Kind {
    Tcp,
    Http,
    File,
}

#[derive(Clone, Copy, ValueEnum)]
enum Language {
    Rust,
    Python,
    Js,
}

pub fn run(command: &New) -> Result<()> {
    let name = &command.name;
    ensure!(
        souk_templates::is_name(name),
        "{name:?} is no connector's name: use small letters, digits and single dashes, and begin with a letter"
    );
    let word = |value: Option<clap::builder::PossibleValue>| {
        value
            .map(|value| value.get_name().to_owned())
            .unwrap_or_default()
    };
    let language = word(command.lang.to_possible_value());
    let kind = word(command.kind.to_possible_value());
    let Some(files) = souk_templates::project(&language, &kind, name) else {
        bail!(
            "there is no template for {kind} in {language}; there are {}",
            souk_templates::names().join(", ")
        );
    };
    let directory = command.dir.clone().unwrap_or_else(|| PathBuf::from(name));
    let shown = directory.display();
    if directory.exists() {
        let is_empty = std::fs::read_dir(&directory)
            .with_context(|| format!("{shown} exists, and is no directory"))?
            .next()
            .is_none();
        ensure!(
            is_empty,
            "{shown} exists and is not empty: name another with --dir"
        );
    }
    for (path, bytes) in files {
        let path = directory.join(path);
        if let Some(parent) = path.parent() {
            std::fs::create_dir_all(parent)
                .with_context(|| format!("cannot make {}", parent.display()))?;
        }
        let mode = match bytes.starts_with(b"#!") {
            true => 0o777,
            false => 0o666,
        };
        // The umask takes away what nobody else may.
        std::fs::OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(mode)
            .open(&path)
            .and_then(|mut file| file.write_all(&bytes))
            .with_context(|| format!("cannot write {}", path.display()))?;
    }
    println!("{shown} is a connector's project. Next:\n");
    println!("    cd {shown}");
    let next: &[&str] = match command.lang {
        Language::Rust => &[
            "cargo test",
            "cargo build --release --target wasm32-wasip2",
            "souk connector test target/wasm32-wasip2/release/*.wasm",
        ],
        Language::Python => &[
            "./build test",
            "./build",
            "souk connector test target/*.wasm",
        ],
        Language::Js => &[
            "npm install && npm test",
            "./build",
            "souk connector test target/*.wasm",
        ],
    };
    for line in next {
        println!("    {line}");
    }
    println!("\nREADME.md says what lies where.");
    let mut bundled = souk_plugins::bundle().iter();
    if bundled.any(|(bundled, _)| *bundled == name.as_str()) {
        println!(
            "Hosts bring a connector {name} along: a company's own is taken with another name for its engine only."
        );
    }
    Ok(())
}
