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
        println!("cargo::rerun-if-env-changed={variable}");
    }
    let flags = std::env::var("CFLAGS_wasm32_wasip2").unwrap_or_default();
    if let Some(cc) = set("CC_wasm32_wasip2") {
        return Ok(CCompiler {
            ar: archiver(cc.parent()),
            cc,
            flags,
        });
    }
    if let Some((cc, extra)) = clang(&places.tools_dir())? {
        return Ok(CCompiler {
            ar: archiver(cc.parent()),
            cc,
            flags: format!("{extra} {flags}"),
        });
    }
    let tools = places.tools_dir();
    if let Some(zig) = zig_on_path() {
        return wrap_zig(&zig, &tools, flags);
    }
    let fetched = tools.join(ZIGLANG.replace("==", "-"));
    let binary = fetched
        .join("ziglang")
        .join(if cfg!(windows) { "zig.exe" } else { "zig" });
    if !works(&binary) {
        fetch_zig(&tools, &fetched)?;
    }
    wrap_zig(
        &[binary.into_os_string().to_string_lossy().into_owned()],
        &tools,
        flags,
    )
}

fn set(variable: &str) -> Option<PathBuf> {
    std::env::var_os(variable)
        .filter(|value| !value.is_empty())
        .map(PathBuf::from)
}

/// `llvm-ar` beside the compiler or on the path; GNU ar writes no index for these objects, which
/// the linker can do without.
fn archiver(beside: Option<&Path>) -> PathBuf {
    let near = beside
        .map(|dir| dir.join("llvm-ar"))
        .filter(|path| path.is_file());
    let found = set("AR_wasm32_wasip2").or(near);
    found.unwrap_or_else(|| {
        if runs("llvm-ar", &["--version"]) {
            "llvm-ar".into()
        } else {
            "ar".into()
        }
    })
}

/// A clang that compiles a file which includes a header of wasi-libc, and the flags that takes.
fn clang(tools: &Path) -> Result<Option<(PathBuf, String)>, BuildError> {
    let probe = tools.join("probe.c");
    write_if_changed(
        &probe,
        b"#include <stdio.h>\n#include <sys/stat.h>\nint probe(void) { return EOF; }\n",
    )?;
    let sysroots = [
        set("WASI_SYSROOT"),
        Some("/opt/wasi-sdk/share/wasi-sysroot".into()),
        Some("/usr/share/wasi-sysroot".into()),
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
    flags.push("-isystem /usr/include/wasm32-wasi".into());
    // Newest first.
    let versioned = (CLANG_MAJOR_MIN..=30)
        .rev()
        .map(|major| format!("clang-{major}"));
    let names = ["/opt/wasi-sdk/bin/clang".to_string(), "clang".to_string()]
        .into_iter()
        .chain(versioned);
    for name in names {
        let Some(major) = clang_major(&name) else {
            continue;
        };
        if major < CLANG_MAJOR_MIN {
            continue;
        }
        for flags in &flags {
            let mut command = Command::new(&name);
            command
                .arg(format!("--target={TARGET}"))
                .args(flags.split_whitespace())
                .arg("-c")
                .arg(&probe)
                .arg("-o")
                .arg(tools.join("probe.o"));
            if command.output().is_ok_and(|output| output.status.success()) {
                return Ok(Some((name.into(), flags.clone())));
            }
        }
    }
    Ok(None)
}

/// `Debian clang version 16.0.6 (…)` is 16.
fn clang_major(name: &str) -> Option<u32> {
    let output = Command::new(name).arg("--version").output().ok()?;
    parse_clang_major(&String::from_utf8_lossy(&output.stdout))
}

fn parse_clang_major(text: &str) -> Option<u32> {
    let (_, version) = text.split_once("clang version ")?;
    version.split('.').next()?.parse().ok()
}

fn zig_on_path() -> Option<Vec<String>> {
    if runs("zig", &["version"]) {
        return Some(vec!["zig".into()]);
    }
    runs("python3", &["-m", "ziglang", "version"])
        .then(|| vec!["python3".into(), "-m".into(), "ziglang".into()])
}

fn works(binary: &Path) -> bool {
    binary.is_file()
        && Command::new(binary)
            .arg("version")
            .output()
            .is_ok_and(|output| output.status.success())
}

fn runs(program: &str, arguments: &[&str]) -> bool {
    Command::new(program)
        .args(arguments)
        .output()
        .is_ok_and(|output| output.status.success())
}

/// Installs ziglang into `place`: complete or not at all, as another build may do the same now.
fn fetch_zig(tools: &Path, place: &Path) -> Result<(), BuildError> {
    std::fs::create_dir_all(tools).map_err(BuildError::io("cannot create", tools))?;
    let draft = tools.join(format!("draft-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&draft);
    let mut reasons = Vec::new();
    if install_with_pip("python3".as_ref(), &draft, &mut reasons)
        || install_in_venv(&draft, &mut reasons)
    {
        return match std::fs::rename(&draft, place) {
            Ok(()) => Ok(()),
            Err(_) if place.join("ziglang").is_dir() => {
                std::fs::remove_dir_all(&draft).map_err(BuildError::io("cannot remove", &draft))
            }
            Err(error) => Err(BuildError::io("cannot create", place)(error)),
        };
    }
    let _ = std::fs::remove_dir_all(&draft);
    Err(BuildError::NoCCompiler {
        tried: format!(
            "no CC_wasm32_wasip2, clang or zig on the path; fetching {ZIGLANG} failed: {}",
            reasons.join("; ")
        ),
    })
}

fn install_with_pip(python: &Path, draft: &Path, reasons: &mut Vec<String>) -> bool {
    let mut command = Command::new(python);
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
fn install_in_venv(draft: &Path, reasons: &mut Vec<String>) -> bool {
    let venv = draft.with_extension("venv");
    let made = Command::new("python3")
        .args(["-m", "venv"])
        .arg(&venv)
        .output();
    let installed = match made {
        Ok(output) if output.status.success() => {
            install_with_pip(&venv.join("bin/python"), draft, reasons)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clang_versions_are_read_from_what_clang_says() {
        assert_eq!(
            parse_clang_major("Debian clang version 16.0.6 (15~deb12u1)\nTarget: x86_64"),
            Some(16)
        );
        assert_eq!(
            parse_clang_major("clang version 19.1.5-wasi-sdk (https://github.com/llvm)"),
            Some(19)
        );
        assert_eq!(parse_clang_major("gcc (Debian 12.2.0-14) 12.2.0"), None);
    }

    /// The wrapper drops the target that zig does not know and keeps every other word as it is.
    #[cfg(unix)]
    #[test]
    fn the_wrapper_replaces_the_target_only() {
        let dir = tempfile::tempdir().unwrap();
        let wrapped = wrap_zig(&["echo".into()], dir.path(), String::new()).unwrap();
        let output = Command::new(&wrapped.cc)
            .args(["-O3", "--target=wasm32-wasip2", "-DA=b c", "x.c"])
            .output()
            .unwrap();
        assert_eq!(
            String::from_utf8_lossy(&output.stdout).trim(),
            "cc -target wasm32-wasi -fno-sanitize=undefined -O3 -DA=b c x.c"
        );
    }
}
