//! The second cargo: its environment, its profile, its target.

use crate::c_compiler::CCompiler;
use crate::manifest::Manifest;
use crate::{BuildError, Effort, watch};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

pub const TARGET: &str = "wasm32-wasip2";

/// The profile is set here and not in a manifest, because a connector is the same component
/// whichever workspace and profile it is built from.
const SHIPPED: &[(&str, &str)] = &[
    ("OPT_LEVEL", "3"),
    // Of examples: cargo leaves it out of a package that is a Rust library at the same time. (Built as a component alone, that of SQLite is as quick
    // and small as without, within two in a hundred.)
    ("LTO", "fat"),
    ("CODEGEN_UNITS", "1"),
    ("PANIC", "abort"),
    ("STRIP", "true"),
    ("DEBUG", "false"),
];
const QUICK: &[(&str, &str)] = &[
    ("OPT_LEVEL", "1"),
    ("LTO", "off"),
    ("CODEGEN_UNITS", "16"),
    ("PANIC", "abort"),
    ("STRIP", "true"),
    ("DEBUG", "false"),
];

/// Sixteen bytes at a time, where the compiler finds that a loop allows it, and in crates that look for it (`memchr`). Each host's engine has it.
/// The standard library comes compiled without.
const RUSTFLAGS: &str = "-Ctarget-feature=+simd128";

/// Where cargo leaves components under `target_dir`.
pub fn release_dir(target_dir: &Path) -> PathBuf {
    target_dir.join(TARGET).join("release")
}

/// Builds every component of `manifests` in one run.
///
/// Packages are named by their manifests' directories; all must belong to one workspace if there
/// are several, and be optimised alike.
pub fn build(
    manifests: &[Manifest],
    effort: Effort,
    target_dir: &Path,
    compiler: Option<&CCompiler>,
) -> Result<(), BuildError> {
    let Some(first) = manifests.first() else {
        return Ok(());
    };
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command
        .arg("build")
        .arg("--release")
        .arg("--manifest-path")
        .arg(first.dir.join("Cargo.toml"));
    command
        .args(["--target", TARGET])
        .arg("--target-dir")
        .arg(target_dir);
    if watch::lock_file(&first.dir).is_some() {
        // The outer cargo has just brought it up to date: the inner one must not write beside it.
        command.arg("--locked");
    }
    for manifest in manifests {
        command.arg("--package").arg(&manifest.package);
        for feature in &manifest.features {
            command
                .arg("--features")
                .arg(format!("{}/{feature}", manifest.package));
        }
    }
    let components = || manifests.iter().flat_map(|manifest| &manifest.components);
    if components().any(|component| !component.example) {
        command.arg("--lib");
    }
    for example in components().filter(|component| component.example) {
        command.arg("--example").arg(&example.name);
    }
    clean_environment(&mut command, std::env::vars_os());
    for (key, value) in if effort == Effort::Shipped {
        SHIPPED
    } else {
        QUICK
    } {
        command.env(format!("CARGO_PROFILE_RELEASE_{key}"), value);
    }
    if let Some(level) = &first.opt_level
        && effort == Effort::Shipped
    {
        command.env("CARGO_PROFILE_RELEASE_OPT_LEVEL", level);
    }
    for manifest in manifests {
        command.envs(&manifest.env);
    }
    if let Some(compiler) = compiler {
        command.env("CC_wasm32_wasip2", &compiler.cc);
        command.env("AR_wasm32_wasip2", &compiler.ar);
        command.env("CFLAGS_wasm32_wasip2", &compiler.flags);
    }
    // What the second cargo says is for people: standard output is for the outer cargo.
    command.stdout(std::io::stderr());

    let names: Vec<&str> = manifests
        .iter()
        .map(|manifest| manifest.package.as_str())
        .collect();
    let what = names.join(", ");
    match command.status() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(BuildError::Cargo {
            what,
            status: status.to_string(),
        }),
        Err(error) => Err(BuildError::Cargo {
            what,
            status: format!("cannot start cargo: {error}"),
        }),
    }
}

/// Takes away what the outer cargo (or clippy, or a coverage tool) set for itself.
///
/// An inherited flag such as `-C instrument-coverage` or `-C target-cpu=native` would break or
/// slow the component; an inherited wrapper would lint it instead of building it.
fn clean_environment(command: &mut Command, variables: impl Iterator<Item = (OsString, OsString)>) {
    for (name, _) in variables {
        if name.to_str().is_some_and(is_foreign) {
            command.env_remove(&name);
        }
    }
    // Set, this also overrides `build.rustflags` of the user's cargo configuration.
    command.env("CARGO_ENCODED_RUSTFLAGS", RUSTFLAGS);
}

fn is_foreign(name: &str) -> bool {
    const EXACT: &[&str] = &[
        "RUSTFLAGS",
        "RUSTDOCFLAGS",
        "RUSTC",
        "RUSTDOC",
        "RUSTC_WRAPPER",
        "RUSTC_WORKSPACE_WRAPPER",
        "RUSTC_LINKER",
        "TARGET",
        "HOST",
        "OUT_DIR",
        "PROFILE",
        "OPT_LEVEL",
        "DEBUG",
        "NUM_JOBS",
        "LLVM_PROFILE_FILE",
        "CFLAGS",
        "CXXFLAGS",
        "CPPFLAGS",
        "LDFLAGS",
    ];
    /// How cargo reaches the network, its home, the terminal and the job server stays.
    const KEPT: &[&str] = &[
        "CARGO_HOME",
        "CARGO_MAKEFLAGS",
        "CARGO_NET_",
        "CARGO_HTTP_",
        "CARGO_REGISTRY_",
        "CARGO_REGISTRIES_",
        "CARGO_SOURCE_",
        "CARGO_TERM_",
    ];
    EXACT.contains(&name)
        || name.starts_with("DEP_")
        || (name.starts_with("CARGO_") && !KEPT.iter().any(|kept| name.starts_with(kept)))
}

/// Adds the Rust target where it is missing.
pub fn ensure_target() -> Result<(), BuildError> {
    if has_target() {
        return Ok(());
    }
    let added = Command::new("rustup")
        .args(["target", "add", TARGET])
        .stdout(std::io::stderr())
        .status();
    match added {
        Ok(status) if status.success() && has_target() => Ok(()),
        Ok(status) => Err(BuildError::NoTarget(status.to_string())),
        Err(error) => Err(BuildError::NoTarget(error.to_string())),
    }
}

fn has_target() -> bool {
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let Ok(output) = Command::new(rustc).args(["--print", "sysroot"]).output() else {
        return false;
    };
    let sysroot = PathBuf::from(String::from_utf8_lossy(&output.stdout).trim());
    sysroot
        .join("lib/rustlib")
        .join(TARGET)
        .join("lib")
        .exists()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Coverage, clippy and the outer build's own settings stay outside; the network's stay.
    #[test]
    fn the_outer_build_does_not_leak_in() {
        for name in [
            "RUSTFLAGS",
            "CARGO_ENCODED_RUSTFLAGS",
            "RUSTC_WORKSPACE_WRAPPER",
            "CARGO_TARGET_DIR",
            "CARGO_CFG_UNIX",
            "CARGO_BUILD_TARGET",
            "DEP_Z_ROOT",
            "CARGO_LLVM_COV",
        ] {
            assert!(is_foreign(name), "{name}");
        }
        for name in [
            "PATH",
            "HOME",
            "CARGO_HOME",
            "CARGO_NET_OFFLINE",
            "CARGO_MAKEFLAGS",
            "RUSTUP_TOOLCHAIN",
            "https_proxy",
        ] {
            assert!(!is_foreign(name), "{name}");
        }
    }
}
