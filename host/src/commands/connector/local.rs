//! A component on its author's machine: how it is named, which source it is opened for, and the sandbox that it is loaded into.

use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use anyhow::{Context, Result, bail};
use clap::Args;
use serde_json::{Map, Value};
use souk_conformance::{KitError, Place, Profile, Subject, options};
use souk_sandbox::{Compiler, LoadError, Options};

use crate::commands::progress;

/// What is read where no profile is named.
const PROFILE: &str = "souk-test.toml";
/// Compiled components that are kept for the next time.
const KEPT: usize = 16;

/// Which source the component is opened for. What is given here goes before the profile.
#[derive(Args, Default)]
pub struct SourceArgs {
    /// Where the source is and what is known of it, in TOML [default: souk-test.toml in this directory, if there is one].
    #[arg(long, value_name = "FILE", help_heading = "Source")]
    pub profile: Option<PathBuf>,

    /// One of the component's engines [default: its first].
    #[arg(long, value_name = "SLUG", help_heading = "Source")]
    pub engine: Option<String>,

    /// The connection's settings: a JSON object, or @FILE with one. Prefer the environment variable for secrets.
    #[arg(
        long,
        env = "SOUK_SETTINGS",
        value_name = "JSON",
        hide_env_values = true,
        help_heading = "Source"
    )]
    pub settings: Option<String>,

    /// A tcp source.
    #[arg(long, value_name = "HOST:PORT", conflicts_with_all = ["base_url", "data"], help_heading = "Source")]
    pub address: Option<String>,

    /// How the tcp source is protected: disable, require, verify-ca, verify-full [default: disable].
    #[arg(
        long,
        value_name = "MODE",
        requires = "address",
        help_heading = "Source"
    )]
    pub tls: Option<String>,

    /// An API.
    #[arg(
        long,
        value_name = "URL",
        conflicts_with = "data",
        help_heading = "Source"
    )]
    pub base_url: Option<String>,

    /// A file; its directory is granted.
    #[arg(long, value_name = "FILE", help_heading = "Source")]
    pub data: Option<PathBuf>,

    /// The authority that signed the source's certificate, in PEM.
    #[arg(long, value_name = "FILE", help_heading = "Source")]
    pub ca_file: Option<PathBuf>,
}

impl SourceArgs {
    pub fn profile(&self) -> Result<Profile> {
        self.profile_in(Path::new(""))
    }

    /// Of the project in `dir`.
    pub fn profile_in(&self, dir: &Path) -> Result<Profile> {
        let usual = dir.join(PROFILE);
        let path = match &self.profile {
            Some(path) => Some(path.as_path()),
            None => Some(usual.as_path()).filter(|path| path.is_file()),
        };
        let mut profile = path.map(Profile::read).transpose()?.unwrap_or_default();
        if let Some(engine) = &self.engine {
            profile.engine = Some(engine.clone());
        }
        if let Some(settings) = &self.settings {
            profile.settings.extend(object(settings)?);
        }
        let ca_pem = match &self.ca_file {
            Some(path) => Some(
                std::fs::read_to_string(path)
                    .with_context(|| format!("cannot read {}", path.display()))?,
            ),
            None => None,
        };
        if let Some(address) = &self.address {
            profile.place = Some(Place::tcp(address, self.tls.as_deref(), ca_pem)?);
        } else if let Some(base_url) = &self.base_url {
            profile.place = Some(Place::Http {
                base_url: base_url.clone(),
                ca_pem,
            });
        } else if let Some(data) = &self.data {
            profile.place = Some(Place::File(data.clone()));
        }
        Ok(profile)
    }
}

/// A JSON object, or the file that holds one.
pub fn object(text: &str) -> Result<Map<String, Value>> {
    let text = match text.strip_prefix('@') {
        Some(path) => {
            std::fs::read_to_string(path).with_context(|| format!("cannot read {path}"))?
        }
        None => text.to_owned(),
    };
    // Never repeated: it may hold secrets.
    match serde_json::from_str(&text) {
        Ok(Value::Object(members)) => Ok(members),
        Ok(_) => bail!("settings are a JSON object, as in '{{\"league\": \"north\"}}'"),
        Err(error) => bail!("settings are no JSON: {error}"),
    }
}

/// The bytes of a component.
pub fn component(path: &Path) -> Result<Vec<u8>> {
    const BUILT: &str = "a project's component is made by its `./build`, and in Rust by `cargo build --release --target wasm32-wasip2`";
    if path.is_dir() {
        bail!(
            "{} is a directory: name the .wasm file ({BUILT})",
            path.display()
        );
    }
    std::fs::read(path).with_context(|| format!("cannot read {} ({BUILT})", path.display()))
}

/// Loads a component for this source. `Ok(Err)`: a host would refuse it, and why.
pub async fn load(wasm: Vec<u8>, profile: Profile) -> Result<Result<Subject, LoadError>> {
    let _busy = progress::busy("compiling");
    match Subject::load(wasm, sandbox_options()?, profile).await {
        Ok(subject) => Ok(Ok(subject)),
        Err(KitError::Load(error @ (LoadError::Internal(_) | LoadError::Compile(_)))) => {
            Err(error.into())
        }
        Err(KitError::Load(error)) => Ok(Err(error)),
        Err(error) => Err(error.into()),
    }
}

/// A sandbox as a host has one: compiled in a child process with limits, and kept for the next time.
pub fn sandbox_options() -> Result<Options> {
    let directory = cache_dir().join("compiled");
    // Code that is run is its owner's alone.
    let made = std::fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(&directory);
    made.with_context(|| {
        format!(
            "{}, where compiled connectors are kept, cannot be made: name another place with XDG_CACHE_HOME",
            directory.display()
        )
    })?;
    keep_newest(&directory);
    let program = std::env::current_exe().context("this program cannot be found")?;
    let compiler = Compiler::Child {
        program,
        args: vec!["compile".to_owned()],
    };
    Ok(options(&directory, compiler))
}

/// What this program keeps for the next time.
pub fn cache_dir() -> PathBuf {
    let home = || Some(PathBuf::from(std::env::var_os("HOME")?).join(".cache"));
    let base = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from);
    let base = base.filter(|path| path.is_absolute()).or_else(home);
    base.unwrap_or_else(std::env::temp_dir).join("souk")
}

/// What an author tries changes with every build: old code is never asked for again.
fn keep_newest(directory: &Path) {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    let mut compiled: Vec<(SystemTime, PathBuf)> = entries
        .filter(|entry| entry.path().extension().is_some_and(|kind| kind == "cwasm"))
        .filter_map(|entry| Some((entry.metadata().ok()?.modified().ok()?, entry.path())))
        .collect();
    compiled.sort_unstable_by(|left, right| right.cmp(left));
    for (_, path) in compiled.into_iter().skip(KEPT) {
        let _ = std::fs::remove_file(path);
    }
}
