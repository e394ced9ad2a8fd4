//! Where things go: components into the output directory; intermediate files and downloaded tools
//! into the cargo target directory around it, so that `dev` and `release` share them.

use crate::manifest::Component;
use crate::{Artifact, BuildError};
use std::path::{Path, PathBuf};

#[derive(Debug, Clone)]
pub struct Places {
    out_dir: PathBuf,
    /// The cargo target directory, or the output directory where none is around it.
    root: PathBuf,
}

impl Places {
    pub fn around(out_dir: PathBuf) -> Places {
        // Cargo marks the root of a target directory with this file.
        let root = out_dir
            .ancestors()
            .find(|dir| dir.join("CACHEDIR.TAG").exists());
        let root = root.unwrap_or(&out_dir).to_path_buf();
        Places { out_dir, root }
    }

    /// Never the outer cargo's own: it holds that one's lock while this build script runs.
    pub fn wasm_target_dir(&self) -> PathBuf {
        self.root.join("souk-wasm")
    }

    /// Downloaded compilers; `SOUK_TOOLS_DIR` overrides it, for machines that build many checkouts.
    pub fn tools_dir(&self) -> PathBuf {
        match std::env::var_os("SOUK_TOOLS_DIR") {
            Some(dir) if !dir.is_empty() => dir.into(),
            _ => self.root.join("souk-tools"),
        }
    }

    /// Copies a component to the output directory, leaving a file that is already right alone.
    pub fn keep(&self, component: &Component, release: &Path) -> Result<Artifact, BuildError> {
        let from = component.wasm(release);
        let bytes = std::fs::read(&from).map_err(|_| BuildError::NoArtifact {
            what: component.name.clone(),
            path: from.clone(),
        })?;
        let path = self.out_dir.join(format!("{}.wasm", component.name));
        write_if_changed(&path, &bytes)?;
        Ok(Artifact {
            name: component.name.clone(),
            path,
        })
    }
}

/// Keeps the time of a file that does not change, so that nothing is rebuilt for its sake.
pub fn write_if_changed(path: &Path, bytes: &[u8]) -> Result<(), BuildError> {
    if std::fs::read(path).is_ok_and(|old| old == bytes) {
        return Ok(());
    }
    if let Some(dir) = path.parent() {
        std::fs::create_dir_all(dir).map_err(BuildError::io("cannot create", dir))?;
    }
    // Another build may write the same file now: each writes its own and renames.
    let draft = path.with_extension(format!("draft-{}", std::process::id()));
    std::fs::write(&draft, bytes).map_err(BuildError::io("cannot write", &draft))?;
    std::fs::rename(&draft, path).map_err(BuildError::io("cannot write", path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn profiles_share_the_directories_under_the_target_directory() {
        let target = tempfile::tempdir().unwrap();
        std::fs::write(target.path().join("CACHEDIR.TAG"), "").unwrap();
        let dev = Places::around(target.path().join("debug/build/x-1/out"));
        let release = Places::around(target.path().join("release/build/x-2/out"));
        assert_eq!(dev.wasm_target_dir(), release.wasm_target_dir());
        assert!(dev.wasm_target_dir().starts_with(target.path()));
    }

    #[test]
    fn an_unchanged_file_keeps_its_time() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a/b");
        write_if_changed(&path, b"1").unwrap();
        let before = std::fs::metadata(&path).unwrap().modified().unwrap();
        write_if_changed(&path, b"1").unwrap();
        assert_eq!(
            std::fs::metadata(&path).unwrap().modified().unwrap(),
            before
        );
        write_if_changed(&path, b"2").unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"2");
    }
}
