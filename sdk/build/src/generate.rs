//! Rust source that embeds components: the bundle of connectors and the guests of the tests.

use crate::manifest::{Bundle, Manifest};
use crate::places::write_if_changed;
use crate::{Artifact, Build, BuildError, Effort, or_exit, watch};
use std::fmt::Write;
use std::path::{Path, PathBuf};

/// Set where a build shall bundle also what is bundled only when it is asked for.
const BUNDLE_ALL: &str = "SOUK_BUNDLE_ALL";

/// Builds every connector in a subfolder of `dir` and writes `OUT_DIR/bundle.rs`: one expression,
/// `&[("name", include_bytes!(…)), …]`, ordered by name.
///
/// A subfolder is a connector if its manifest has a `cdylib` library. One that says `bundle = "asked"` is left out unless
/// `SOUK_BUNDLE_ALL` is set.
pub fn bundle(dir: impl AsRef<Path>) {
    or_exit(try_bundle(dir.as_ref()))
}

fn try_bundle(dir: &Path) -> Result<(), BuildError> {
    watch::variable(BUNDLE_ALL);
    let all = std::env::var_os(BUNDLE_ALL).is_some_and(|all| !all.is_empty());
    let mut packages = Vec::new();
    let mut apart = Vec::new();
    for entry in std::fs::read_dir(dir)
        .map_err(BuildError::io("cannot list", dir))?
        .flatten()
    {
        let path = entry.path().join("Cargo.toml");
        if !path.is_file() {
            continue;
        }
        watch::file(&path);
        let manifest = Manifest::read(&entry.path())?;
        let is_wanted = all || manifest.bundle == Bundle::Always;
        if !is_wanted
            || manifest
                .components
                .iter()
                .all(|component| component.example)
        {
            continue;
        }
        match manifest.is_apart {
            true => apart.push(entry.path()),
            false => packages.push(entry.path()),
        }
    }
    packages.sort();
    let mut built = packages
        .into_iter()
        .fold(Build::in_script()?, Build::package)
        .run()?;
    for package in apart {
        built.extend(Build::in_script()?.package(package).run()?);
    }
    built.sort_by(|left, right| left.name.cmp(&right.name));
    let mut source = String::from("&[\n");
    for artifact in &built {
        let _ = writeln!(
            source,
            "    ({:?}, include_bytes!({:?})),",
            artifact.name, artifact.path
        );
    }
    source.push_str("]\n");
    write_if_changed(&out_dir()?.join("bundle.rs"), source.as_bytes())
}

/// Builds the `cdylib` library and examples of the packages in `dirs`, quickly, and writes `OUT_DIR/guests.rs`:
/// one constant each, `pub const MEMORY_HOG: &[u8] = include_bytes!(…);`.
pub fn guests(dirs: &[&str]) {
    or_exit(try_guests(dirs))
}

fn try_guests(dirs: &[&str]) -> Result<(), BuildError> {
    let mut built = dirs
        .iter()
        .fold(Build::in_script()?, |build, dir| build.package(dir))
        .effort(Effort::Quick)
        .run()?;
    built.sort_by(|left, right| left.name.cmp(&right.name));
    let source: String = built.iter().map(constant).collect();
    write_if_changed(&out_dir()?.join("guests.rs"), source.as_bytes())
}

fn constant(artifact: &Artifact) -> String {
    let name = artifact.name.replace('-', "_").to_uppercase();
    format!(
        "pub const {name}: &[u8] = include_bytes!({:?});\n",
        artifact.path
    )
}

fn out_dir() -> Result<PathBuf, BuildError> {
    std::env::var_os("OUT_DIR")
        .map(PathBuf::from)
        .ok_or(BuildError::NoOutDir {
            variable: "OUT_DIR",
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_guest_is_a_constant_in_upper_case() {
        let artifact = Artifact {
            name: "memory-hog".into(),
            path: "/o/memory-hog.wasm".into(),
        };
        assert_eq!(
            constant(&artifact),
            "pub const MEMORY_HOG: &[u8] = include_bytes!(\"/o/memory-hog.wasm\");\n"
        );
    }
}
