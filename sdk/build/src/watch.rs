//! Tells the outer cargo which files a component was made of, so that it runs the build script again
//! when one changes and not otherwise.

use crate::manifest::Manifest;
use std::path::{Path, PathBuf};

/// Watches the manifest and the lock file above it.
pub fn manifest(manifest: &Manifest) {
    file(&manifest.dir.join("Cargo.toml"));
    if let Some(lock) = lock_file(&manifest.dir) {
        file(&lock);
    }
}

/// The `Cargo.lock` that cargo uses for the package in `dir`.
pub fn lock_file(dir: &Path) -> Option<PathBuf> {
    let dir = dir.canonicalize().ok()?;
    dir.ancestors()
        .map(|dir| dir.join("Cargo.lock"))
        .find(|lock| lock.exists())
}

/// Watches every file named in one of cargo's `.d` files.
pub fn sources(dep_info: &Path) {
    let Ok(text) = std::fs::read_to_string(dep_info) else {
        return;
    };
    parse(&text).iter().for_each(|source| file(source));
}

/// A watched file that is missing would make every build a rebuild.
pub fn file(path: &Path) {
    if path.exists() {
        tell(format_args!("rerun-if-changed={}", path.display()));
    }
}

/// Watches a variable of the environment.
pub fn variable(name: &str) {
    tell(format_args!("rerun-if-env-changed={name}"));
}

/// Tells cargo something, which listens to build scripts alone: elsewhere it would stand among what is printed for others.
fn tell(what: std::fmt::Arguments<'_>) {
    if std::env::var_os("OUT_DIR").is_some() {
        println!("cargo::{what}");
    }
}

/// `target: source source\ with\ blanks`, a line per target.
fn parse(text: &str) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for line in text.lines() {
        let Some((_, sources)) = line.split_once(": ") else {
            continue;
        };
        let mut name = String::new();
        let mut escaped = false;
        for letter in sources.chars().chain([' ']) {
            match letter {
                '\\' if !escaped => escaped = true,
                ' ' if !escaped => {
                    if !name.is_empty() {
                        files.push(PathBuf::from(std::mem::take(&mut name)));
                    }
                }
                other => {
                    if escaped && other != ' ' && other != '\\' {
                        name.push('\\');
                    }
                    escaped = false;
                    name.push(other);
                }
            }
        }
    }
    files.sort();
    files.dedup();
    files
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_with_blanks_survive() {
        assert_eq!(
            parse("/t/a.wasm: /s/b.rs /s/a\\ c.rs /s/b.rs\n"),
            [PathBuf::from("/s/a c.rs"), PathBuf::from("/s/b.rs")]
        );
    }
}
