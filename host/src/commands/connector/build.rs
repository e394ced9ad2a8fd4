//! Builds a connector's project: by its own `./build`, or by cargo.

use std::ffi::OsString;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, SystemTime};

use anyhow::{Context, Result, bail, ensure};
use clap::Args;
use serde_json::Value;
use tokio::io::AsyncReadExt;
use tokio::process::Command;

use super::group::Group;
use super::local;

/// What a project that is not Rust's is built by.
const SCRIPT: &str = "build";
/// A build that takes longer hangs.
const TIMEOUT_SECONDS: u64 = 900;
/// Set for builds that get a version of their own: a number that grows with each.
pub const BUILD_NUMBER: &str = "SOUK_BUILD";
/// cargo says the package's version in this variable; a connector puts it into its descriptor. Of the package that is built, and of no other, it
/// becomes the version of this build.
const RUSTC: &str = "#!/bin/sh\n\
    # `souk connector dev` has cargo call rustc through this: a build gets a version of its own.\n\
    [ -z \"$CARGO_PRIMARY_PACKAGE\" ] || [ -z \"$SOUK_BUILD\" ] || export CARGO_PKG_VERSION=\"$CARGO_PKG_VERSION-dev.$SOUK_BUILD\"\n\
    exec \"$@\"\n";

/// How a project is built that is neither cargo's nor has a program `build`.
#[derive(Args)]
pub struct HowBuilt {
    /// How it is built [default: ./build if there is one, else cargo].
    #[arg(
        long,
        value_name = "COMMAND",
        requires = "component",
        help_heading = "Building"
    )]
    pub build: Option<String>,

    /// What the build makes, relative to the project [default: what cargo says, or the newest .wasm file in target].
    #[arg(long, value_name = "FILE", help_heading = "Building")]
    pub component: Option<PathBuf>,

    /// How long a build may take.
    #[arg(long, value_name = "SECONDS", default_value_t = TIMEOUT_SECONDS, help_heading = "Building")]
    pub build_timeout: u64,
}

/// Builds the project in `dir`; what the build says goes to the terminal. A build that is cut ends with all that it has started. `number`: the version is of this build alone. Answers where the
/// component is.
pub async fn component(dir: &Path, how: &HowBuilt, number: Option<u64>) -> Result<PathBuf> {
    let limit = Duration::from_secs(how.build_timeout);
    match tokio::time::timeout(limit, built(dir, how, number)).await {
        Ok(built) => built,
        Err(_) => bail!(
            "the build took longer than {} seconds: --build-timeout gives it more",
            how.build_timeout
        ),
    }
}

async fn built(dir: &Path, how: &HowBuilt, number: Option<u64>) -> Result<PathBuf> {
    if let (Some(build), Some(component)) = (&how.build, &how.component) {
        let mut shell = command("sh", dir, number);
        succeed(shell.arg("-c").arg(build), build).await?;
        return Ok(dir.join(component));
    }
    let script = dir.join(SCRIPT);
    let made = if script.is_file() {
        let program = script.canonicalize()?;
        succeed(&mut command(program, dir, number), "./build").await?;
        None
    } else if dir.join("Cargo.toml").is_file() {
        Some(cargo(dir, number).await?)
    } else {
        bail!(
            "{} has neither a program \"{SCRIPT}\" nor a Cargo.toml: give --build and --component",
            dir.display()
        );
    };
    match (&how.component, made) {
        (Some(component), _) => Ok(dir.join(component)),
        (None, Some(made)) => Ok(made),
        (None, None) => newest(&dir.join("target")),
    }
}

fn command(program: impl Into<OsString>, dir: &Path, number: Option<u64>) -> Command {
    let mut command = Command::new(program.into());
    command.current_dir(dir).stdin(Stdio::null());
    if let Some(number) = number {
        command.env(BUILD_NUMBER, number.to_string());
    }
    command
}

async fn succeed(command: &mut Command, what: &str) -> Result<()> {
    let mut group = Group::start(command).with_context(|| format!("{what} cannot be started"))?;
    let status = group.0.wait().await?;
    ensure!(status.success(), "{what} failed ({status}): see above");
    Ok(())
}

/// Builds a Rust project; where its component is, cargo says itself.
async fn cargo(dir: &Path, number: Option<u64>) -> Result<PathBuf> {
    let program = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut cargo = command(program, dir, number);
    if number.is_some() {
        cargo.env("RUSTC_WORKSPACE_WRAPPER", rustc()?);
    }
    cargo
        .args(["build", "--release", "--target", "wasm32-wasip2"])
        .args(["--message-format", "json-render-diagnostics"])
        .stdout(Stdio::piped());
    let mut group = Group::start(&mut cargo)
        .context("cargo cannot be started: https://rustup.rs installs it")?;
    let mut said = String::new();
    if let Some(mut stdout) = group.0.stdout.take() {
        stdout.read_to_string(&mut said).await?;
    }
    let status = group.0.wait().await?;
    ensure!(
        status.success(),
        "cargo build failed: see above (`rustup target add wasm32-wasip2`, if the target is missing)"
    );
    // The last component: those of dependencies come before it.
    let mut made = None;
    for line in said.lines() {
        let message: Value = serde_json::from_str(line).unwrap_or_default();
        let files = message["filenames"].as_array().into_iter().flatten();
        let mut files = files.filter_map(Value::as_str).map(PathBuf::from);
        let is_component = |path: &PathBuf| path.extension().is_some_and(|kind| kind == "wasm");
        made = files.rfind(is_component).or(made);
    }
    made.context("cargo made no component: [lib] in Cargo.toml needs crate-type = [\"cdylib\"]")
}

/// Where [`RUSTC`] is, always the same place: cargo builds anew for another one.
fn rustc() -> Result<PathBuf> {
    let directory = local::cache_dir();
    let path = directory.join("rustc");
    if std::fs::read(&path).is_ok_and(|known| known == RUSTC.as_bytes()) {
        return Ok(path);
    }
    let written = || {
        std::fs::create_dir_all(&directory)?;
        // Whole at once: another `dev` may be building.
        let mut file = tempfile::NamedTempFile::new_in(&directory)?;
        std::io::Write::write_all(&mut file, RUSTC.as_bytes())?;
        file.as_file()
            .set_permissions(std::fs::Permissions::from_mode(0o755))?;
        file.persist(&path).map_err(|error| error.error)
    };
    written().with_context(|| format!("cannot write {}", path.display()))?;
    Ok(path)
}

/// The component that was built last.
fn newest(directory: &Path) -> Result<PathBuf> {
    let entries = std::fs::read_dir(directory)
        .with_context(|| format!("{} was not made by the build", directory.display()))?;
    let made = entries.flatten().map(|entry| entry.path());
    let made = made.filter(|path| path.extension().is_some_and(|kind| kind == "wasm"));
    let modified = |path: &PathBuf| {
        let time = path.metadata().and_then(|found| found.modified());
        time.unwrap_or(SystemTime::UNIX_EPOCH)
    };
    made.max_by_key(modified)
        .with_context(|| format!("the build left no .wasm file in {}", directory.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A machine that is busy for so long is broken.
    const ENDS_WITHIN: Duration = Duration::from_secs(60);

    /// A build whose shell waits for something that it has started.
    fn how(build_timeout: u64) -> HowBuilt {
        HowBuilt {
            build: Some("sleep 1000 & echo $! > pid.part; mv pid.part pid; wait".to_owned()),
            component: Some("c.wasm".into()),
            build_timeout,
        }
    }

    /// Of what the shell has started, as soon as it is known.
    async fn grandchild(dir: &Path) -> String {
        until(|| dir.join("pid").exists()).await;
        let pid = std::fs::read_to_string(dir.join("pid")).unwrap();
        pid.trim().to_owned()
    }

    async fn until(is_so: impl Fn() -> bool) {
        let waited = async {
            while !is_so() {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        tokio::time::timeout(ENDS_WITHIN, waited).await.unwrap();
    }

    /// One that nobody has asked about yet is gone, too.
    fn is_gone(pid: &str) -> bool {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat"));
        stat.map_or(true, |stat| {
            stat.rsplit(')')
                .next()
                .is_some_and(|rest| rest.starts_with(" Z"))
        })
    }

    /// What a build has started does not outlive it: neither one that takes too long, nor one that nobody waits for any more.
    #[tokio::test]
    async fn a_build_that_is_cut_ends_with_what_it_has_started() {
        let late = tempfile::tempdir().unwrap();
        let error = component(late.path(), &how(3), None).await.unwrap_err();
        assert!(
            error.to_string().contains("longer than 3 seconds"),
            "{error}"
        );
        let pid = grandchild(late.path()).await;
        until(|| is_gone(&pid)).await;

        let dropped = tempfile::tempdir().unwrap();
        let how = how(1_000);
        let pid = tokio::select! {
            built = component(dropped.path(), &how, None) => panic!("{built:?}"),
            pid = grandchild(dropped.path()) => pid,
        };
        until(|| is_gone(&pid)).await;
    }

    /// One that has ended may leave something running: nothing was cut.
    #[tokio::test]
    async fn a_build_that_ends_is_left_alone() {
        let dir = tempfile::tempdir().unwrap();
        let how = HowBuilt {
            build: Some("sleep 1000 > /dev/null 2>&1 & echo $! > pid".to_owned()),
            ..how(1_000)
        };
        component(dir.path(), &how, None).await.unwrap();
        let pid = grandchild(dir.path()).await;
        assert!(!is_gone(&pid));
        let ended = std::process::Command::new("kill").arg(&pid).status();
        assert!(ended.unwrap().success());
    }
}
