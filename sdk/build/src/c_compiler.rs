//! A C compiler for `wasm32-wasip2`, found or fetched.
//!
//! In this order: `CC_wasm32_wasip2`; clang 16 or later that finds wasi-libc's headers; `zig`;
//! `python3 -m ziglang`; ziglang from PyPI, installed into the target directory. Nothing is
//! downloaded unless a package has C inside and nothing nearer will do.
//!
//! Zig needs a wrapper: cc-rs passes `--target=wasm32-wasip2`, which zig does not know. Its
//! `wasm32-wasi` headers describe the same libc, which Rust's target brings along.

use crate::BuildError;
use crate::cargo::TARGET;
use crate::places::{Places, write_if_changed};
use crate::watch;
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::Command;

/// The release of zig that is fetched: pinned, because a compiler is part of what is shipped.
const ZIGLANG: &str = "ziglang==0.17.0";

/// Clang before 16 generates calls that today's wasi-libc does not have.
const CLANG_MAJOR_MIN: u32 = 16;

/// What cc-rs is told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CCompiler {
    pub cc: PathBuf,
    pub ar: PathBuf,
    pub flags: String,
}

/// Environment variables that decide; a build script must run again when they change.
const VARIABLES: &[&str] = &[
    "CC_wasm32_wasip2",
    "AR_wasm32_wasip2",
    "CFLAGS_wasm32_wasip2",
    "WASI_SYSROOT",
    "SOUK_TOOLS_DIR",
];

pub fn find_or_fetch(places: &Places) -> Result<CCompiler, BuildError> {
    for variable in VARIABLES {
        watch::variable(variable);
    }
    let machine = Machine {
        variables: std::env::vars_os().collect(),
        root: "/".into(),
    };
    search(&machine, &places.tools_dir())
}

/// What the search looks at, as a value: a test makes up a machine of its own.
struct Machine {
    variables: BTreeMap<OsString, OsString>,
    /// Below it are the places that wasi-libc is commonly installed in.
    root: PathBuf,
}

impl Machine {
    fn set(&self, variable: &str) -> Option<PathBuf> {
        let value = self.variables.get(OsStr::new(variable))?;
        (!value.is_empty()).then(|| value.into())
    }

    /// A program by its path, or by its name on this machine's `PATH`.
    fn command(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = Command::new(program);
        if let Some(path) = self.set("PATH") {
            command.env("PATH", path);
        }
        command
    }

    fn runs(&self, program: impl AsRef<OsStr>, arguments: &[&str]) -> bool {
        self.command(program)
            .args(arguments)
            .output()
            .is_ok_and(|output| output.status.success())
    }
}

fn search(machine: &Machine, tools: &Path) -> Result<CCompiler, BuildError> {
    let flags = machine.set("CFLAGS_wasm32_wasip2").unwrap_or_default();
    let flags = flags.to_string_lossy().into_owned();
    if let Some(cc) = machine.set("CC_wasm32_wasip2") {
        return Ok(CCompiler {
            ar: archiver(machine, cc.parent()),
            cc,
            flags,
        });
    }
    if let Some((cc, extra)) = clang(machine, tools)? {
        return Ok(CCompiler {
            ar: archiver(machine, cc.parent()),
            cc,
            flags: format!("{extra} {flags}"),
        });
    }
    if let Some(zig) = zig_on_path(machine) {
        return wrap_zig(&zig, tools, flags);
    }
    let fetched = tools.join(ZIGLANG.replace("==", "-"));
    if !starts(machine, &fetched) {
        fetch_zig(machine, tools, &fetched)?;
    }
    let zig = zig_in(&fetched).to_string_lossy().into_owned();
    wrap_zig(&[zig], tools, flags)
}

/// `llvm-ar` beside the compiler or on the path; GNU ar writes no index for these objects, which
/// the linker can do without.
fn archiver(machine: &Machine, beside: Option<&Path>) -> PathBuf {
    let near = beside
        .map(|dir| dir.join("llvm-ar"))
        .filter(|path| path.is_file());
    let found = machine.set("AR_wasm32_wasip2").or(near);
    found.unwrap_or_else(|| {
        if machine.runs("llvm-ar", &["--version"]) {
            "llvm-ar".into()
        } else {
            "ar".into()
        }
    })
}

/// A clang that compiles a file which includes a header of wasi-libc, and the flags that takes.
fn clang(machine: &Machine, tools: &Path) -> Result<Option<(PathBuf, String)>, BuildError> {
    let probe = tools.join("probe.c");
    write_if_changed(
        &probe,
        b"#include <stdio.h>\n#include <sys/stat.h>\nint probe(void) { return EOF; }\n",
    )?;
    let wasi_sdk = machine.root.join("opt/wasi-sdk");
    let sysroots = [
        machine.set("WASI_SYSROOT"),
        Some(wasi_sdk.join("share/wasi-sysroot")),
        Some(machine.root.join("usr/share/wasi-sysroot")),
    ];
    let mut flags = vec![String::new()];
    flags.extend(
        sysroots
            .into_iter()
            .flatten()
            .filter(|dir| dir.is_dir())
            .map(|dir| format!("--sysroot={}", dir.display())),
    );
    // Debian's wasi-libc, which clang looks for under the first preview's name only.
    let headers = machine.root.join("usr/include/wasm32-wasi");
    flags.push(format!("-isystem {}", headers.display()));
    // Newest first.
    let versioned = (CLANG_MAJOR_MIN..=30)
        .rev()
        .map(|major| format!("clang-{major}"));
    let names = [wasi_sdk.join("bin/clang"), "clang".into()]
        .into_iter()
        .chain(versioned.map(PathBuf::from));
    for name in names {
        let Some(major) = clang_major(machine, &name) else {
            continue;
        };
        if major < CLANG_MAJOR_MIN {
            continue;
        }
        for flags in &flags {
            let mut command = machine.command(&name);
            command
                .arg(format!("--target={TARGET}"))
                .args(flags.split_whitespace())
                .arg("-c")
                .arg(&probe)
                .arg("-o")
                .arg(tools.join("probe.o"));
            if command.output().is_ok_and(|output| output.status.success()) {
                return Ok(Some((name, flags.clone())));
            }
        }
    }
    Ok(None)
}

/// `Debian clang version 16.0.6 (…)` is 16.
fn clang_major(machine: &Machine, name: &Path) -> Option<u32> {
    let output = machine.command(name).arg("--version").output().ok()?;
    parse_clang_major(&String::from_utf8_lossy(&output.stdout))
}

fn parse_clang_major(text: &str) -> Option<u32> {
    let (_, version) = text.split_once("clang version ")?;
    version.split('.').next()?.parse().ok()
}

fn zig_on_path(machine: &Machine) -> Option<Vec<String>> {
    if machine.runs("zig", &["version"]) {
        return Some(vec!["zig".into()]);
    }
    machine
        .runs("python3", &["-m", "ziglang", "version"])
        .then(|| vec!["python3".into(), "-m".into(), "ziglang".into()])
}

/// The program that ziglang brings along, where pip has installed it into `place`.
fn zig_in(place: &Path) -> PathBuf {
    let name = if cfg!(windows) { "zig.exe" } else { "zig" };
    place.join("ziglang").join(name)
}

fn starts(machine: &Machine, place: &Path) -> bool {
    machine.runs(zig_in(place), &["version"])
}

/// Installs ziglang into `place`: complete or not at all, as another build may do the same now.
fn fetch_zig(machine: &Machine, tools: &Path, place: &Path) -> Result<(), BuildError> {
    std::fs::create_dir_all(tools).map_err(BuildError::io("cannot create", tools))?;
    let draft = tools.join(format!("draft-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&draft);
    let mut reasons = Vec::new();
    let installed = install_with_pip(machine, "python3".as_ref(), &draft, &mut reasons)
        || install_in_venv(machine, &draft, &mut reasons);
    if installed && starts(machine, &draft) {
        return match std::fs::rename(&draft, place) {
            Ok(()) => Ok(()),
            // Another build was quicker.
            Err(_) if starts(machine, place) => {
                std::fs::remove_dir_all(&draft).map_err(BuildError::io("cannot remove", &draft))
            }
            // What lies there is of no use: of another machine, perhaps.
            Err(_) => {
                let _ = std::fs::remove_dir_all(place);
                std::fs::rename(&draft, place).map_err(BuildError::io("cannot create", place))
            }
        };
    }
    if installed {
        reasons.push("it was installed, but does not start".into());
    }
    let _ = std::fs::remove_dir_all(&draft);
    Err(BuildError::NoCCompiler {
        tried: format!(
            "CC_wasm32_wasip2 is not set, no clang or zig on the path will do, fetching {ZIGLANG} failed: {}",
            reasons.join("; ")
        ),
    })
}

fn install_with_pip(
    machine: &Machine,
    python: &Path,
    draft: &Path,
    reasons: &mut Vec<String>,
) -> bool {
    let mut command = machine.command(python);
    command.args([
        "-m",
        "pip",
        "install",
        "--quiet",
        "--no-deps",
        "--disable-pip-version-check",
        "--target",
    ]);
    match command.arg(draft).arg(ZIGLANG).output() {
        Ok(output) if output.status.success() => true,
        Ok(output) => {
            let text = String::from_utf8_lossy(&output.stderr).into_owned();
            let last = text.lines().rev().find(|line| !line.trim().is_empty());
            reasons.push(last.unwrap_or("pip failed").trim().to_string());
            false
        }
        Err(error) => {
            reasons.push(format!("{}: {error}", python.display()));
            false
        }
    }
}

/// Debian's Python may come without pip, but its venv brings one.
fn install_in_venv(machine: &Machine, draft: &Path, reasons: &mut Vec<String>) -> bool {
    let venv = draft.with_extension("venv");
    let made = machine
        .command("python3")
        .args(["-m", "venv"])
        .arg(&venv)
        .output();
    let installed = match made {
        Ok(output) if output.status.success() => {
            install_with_pip(machine, &venv.join("bin/python"), draft, reasons)
        }
        _ => {
            reasons.push("python3 -m venv failed".into());
            false
        }
    };
    let _ = std::fs::remove_dir_all(&venv);
    installed
}

/// Scripts that make zig look like the compiler and the archiver that cc-rs expects.
fn wrap_zig(zig: &[String], tools: &Path, flags: String) -> Result<CCompiler, BuildError> {
    let zig = zig
        .iter()
        .map(|word| quote(word))
        .collect::<Vec<_>>()
        .join(" ");
    let cache = quote(&tools.join("zig-cache").to_string_lossy());
    let head = format!(
        "#!/bin/sh\n# Written by souk-build.\nexport ZIG_GLOBAL_CACHE_DIR={cache} ZIG_LOCAL_CACHE_DIR={cache}\n"
    );
    let cc = tools.join("bin/cc-wasm32-wasip2");
    let ar = tools.join("bin/ar-wasm32-wasip2");
    // Zig adds the undefined-behaviour sanitizer by itself, whose runtime a component does not have.
    write_script(
        &cc,
        &format!(
            "{head}for word do\n  shift\n  case \"$word\" in\n    --target=*) ;;\n    *) set -- \"$@\" \"$word\" ;;\n  esac\ndone\n\
             exec {zig} cc -target wasm32-wasi -fno-sanitize=undefined \"$@\"\n"
        ),
    )?;
    write_script(&ar, &format!("{head}exec {zig} ar \"$@\"\n"))?;
    Ok(CCompiler { cc, ar, flags })
}

fn write_script(path: &Path, text: &str) -> Result<(), BuildError> {
    write_if_changed(path, text.as_bytes())?;
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755))
            .map_err(BuildError::io("cannot make executable", path))?;
    }
    Ok(())
}

fn quote(word: &str) -> String {
    format!("'{}'", word.replace('\'', "'\\''"))
}

// Their programs are shell scripts.
#[cfg(all(test, unix))]
#[path = "c_compiler_tests.rs"]
mod tests;
