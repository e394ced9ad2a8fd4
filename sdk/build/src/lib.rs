//! Builds connectors for `wasm32-wasip2` from a build script.
//!
//! A package is built as it will be shipped (optimised, stripped), whatever the profile of the
//! program that embeds it, by a second cargo with a target directory of its own. What that needs
//! beyond cargo is found or fetched: the Rust target ([`cargo`]) and, for packages that ask for it
//! with `[package.metadata.souk] c = true`, a C compiler for WebAssembly ([`c_compiler`]).
//!
//! This crate knows nothing of the contract: it turns packages into files.
//!
//! ```no_run
//! // build.rs
//! let wasm = souk_build::connector("../my-connector");
//! println!("cargo::rustc-env=MY_CONNECTOR={}", wasm.display());
//! ```
//!
//! Start reading at [`Build::run`].

pub mod c_compiler;
pub mod cargo;
pub mod generate;
pub mod manifest;
pub mod places;
pub mod watch;

use manifest::Manifest;
use places::Places;
use std::path::{Path, PathBuf};

/// Why there is no component. Every message is one line that says what to do.
#[derive(Debug, thiserror::Error)]
pub enum BuildError {
    #[error(
        "{variable} is not set: souk-build runs in a build script (or give Build::new an output directory)"
    )]
    NoOutDir { variable: &'static str },
    #[error("cannot read {path}: {reason}")]
    Manifest { path: PathBuf, reason: String },
    #[error(
        "{0} is no connector: its [lib] (or one of its [[example]]s) needs crate-type = [\"cdylib\"]"
    )]
    NotAConnector(PathBuf),
    #[error(
        "the Rust target wasm32-wasip2 is missing and `rustup target add wasm32-wasip2` failed ({0}): \
         install rustup from https://rustup.rs, or your distribution's rust-std for wasm32-wasip2"
    )]
    NoTarget(String),
    #[error(
        "no C compiler for WebAssembly ({tried}): install zig, or clang 16 or later with wasi-libc, \
         or Python 3 with pip and network access, or set CC_wasm32_wasip2"
    )]
    NoCCompiler { tried: String },
    #[error(
        "building {what} for wasm32-wasip2 failed ({status}): see the compiler's messages above"
    )]
    Cargo { what: String, status: String },
    #[error("cargo built {what} but left no component at {path}")]
    NoArtifact { what: String, path: PathBuf },
    #[error("{action} {path}: {source}")]
    Io {
        action: &'static str,
        path: PathBuf,
        source: std::io::Error,
    },
}

impl BuildError {
    pub(crate) fn io(
        action: &'static str,
        path: &Path,
    ) -> impl FnOnce(std::io::Error) -> BuildError {
        let path = path.to_path_buf();
        move |source| BuildError::Io {
            action,
            path,
            source,
        }
    }
}

/// How much the compiler should think.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effort {
    /// What users run: opt-level 3, one codegen unit, stripped.
    Shipped,
    /// Guests of tests: built often, run briefly.
    Quick,
}

/// One component that was built.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Artifact {
    /// The package's folder, or the example's name.
    pub name: String,
    /// A copy in the output directory, which stays when other builds run.
    pub path: PathBuf,
}

/// One run of cargo that builds several packages of one workspace.
#[derive(Debug, Clone)]
pub struct Build {
    places: Places,
    effort: Effort,
    packages: Vec<PathBuf>,
    c: bool,
}

impl Build {
    /// Builds into `out_dir`; downloads and intermediate files go to the cargo target directory
    /// around it, if there is one, so that every profile shares them.
    pub fn new(out_dir: impl Into<PathBuf>) -> Build {
        Build {
            places: Places::around(out_dir.into()),
            effort: Effort::Shipped,
            packages: Vec::new(),
            c: false,
        }
    }

    /// Builds into this build script's `OUT_DIR`.
    pub fn in_script() -> Result<Build, BuildError> {
        let out_dir = std::env::var_os("OUT_DIR").ok_or(BuildError::NoOutDir {
            variable: "OUT_DIR",
        })?;
        Ok(Build::new(out_dir))
    }

    /// Adds the package in `dir`: its `cdylib` library and every `cdylib` example become components.
    pub fn package(mut self, dir: impl Into<PathBuf>) -> Build {
        self.packages.push(dir.into());
        self
    }

    pub fn effort(mut self, effort: Effort) -> Build {
        self.effort = effort;
        self
    }

    /// Provides a C compiler even if no package's manifest asks for one.
    pub fn c(mut self) -> Build {
        self.c = true;
        self
    }

    /// Builds all packages, watches their sources, and copies the components out.
    pub fn run(self) -> Result<Vec<Artifact>, BuildError> {
        let manifests: Vec<Manifest> = self
            .packages
            .iter()
            .map(|dir| Manifest::read(dir))
            .collect::<Result<_, _>>()?;
        if manifests.is_empty() {
            return Ok(Vec::new());
        }
        if let Some(empty) = manifests
            .iter()
            .find(|manifest| manifest.components.is_empty())
        {
            return Err(BuildError::NotAConnector(empty.dir.clone()));
        }
        cargo::ensure_target()?;
        let compiler = match self.c || manifests.iter().any(|manifest| manifest.c) {
            true => Some(c_compiler::find_or_fetch(&self.places)?),
            false => None,
        };
        let target_dir = self.places.wasm_target_dir();
        cargo::build(&manifests, self.effort, &target_dir, compiler.as_ref())?;

        let release = cargo::release_dir(&target_dir);
        let mut artifacts = Vec::new();
        for manifest in &manifests {
            watch::manifest(manifest);
            for component in &manifest.components {
                watch::sources(&component.dep_info(&release));
                artifacts.push(self.places.keep(component, &release)?);
            }
        }
        Ok(artifacts)
    }
}

/// Builds the connector in `manifest_dir` from a build script and returns its component.
///
/// On failure it ends the build script with one line that says what to do.
pub fn connector(manifest_dir: impl Into<PathBuf>) -> PathBuf {
    let dir = manifest_dir.into();
    let built = Build::in_script().and_then(|build| build.package(&dir).run());
    match or_exit(built).into_iter().next() {
        Some(artifact) => artifact.path,
        None => or_exit(Err(BuildError::NotAConnector(dir))),
    }
}

/// Ends a build script that cannot go on. Cargo shows standard error, and only then.
pub fn or_exit<T>(result: Result<T, BuildError>) -> T {
    match result {
        Ok(value) => value,
        Err(error) => {
            eprintln!("souk-build: {error}");
            std::process::exit(1)
        }
    }
}
