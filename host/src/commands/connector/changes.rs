//! When the files of a project change. They are looked at again and again: that works on every file system, in containers too, and costs nothing
//! for as many files as a connector has.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use anyhow::{Context, Result, ensure};

/// How often they are looked at.
const EVERY: Duration = Duration::from_millis(300);
/// More is no connector's project, and looking at it would take long.
const FILES_MAX: usize = 10_000;
/// What a build writes, and what tools fetch, is no change: a build that changes what is watched would be followed by another one, for ever. Nor is
/// what begins with a dot.
const IGNORED: [&str; 6] = [
    "target",
    "node_modules",
    "__pycache__",
    "venv",
    "Cargo.lock",
    "package-lock.json",
];
/// A component, wherever it is put; what Python keeps of a module; what an editor keeps of a text.
const IGNORED_ENDS: [&str; 3] = [".wasm", ".pyc", "~"];

fn is_ignored(name: &str) -> bool {
    IGNORED.contains(&name)
        || name.starts_with('.')
        || IGNORED_ENDS.iter().any(|end| name.ends_with(end))
}

/// What is known of each file.
#[derive(Debug, PartialEq, Eq)]
pub struct Seen(BTreeMap<PathBuf, (Option<SystemTime>, u64)>);

impl Seen {
    pub fn of(roots: &[PathBuf]) -> Result<Seen> {
        let mut seen = Seen(BTreeMap::new());
        for root in roots {
            seen.add(root)
                .with_context(|| format!("cannot look at {}", root.display()))?;
        }
        Ok(seen)
    }

    fn add(&mut self, directory: &Path) -> Result<()> {
        for entry in std::fs::read_dir(directory)? {
            let entry = entry?;
            let name = entry.file_name();
            let name = name.to_string_lossy();
            if is_ignored(&name) {
                continue;
            }
            // Not followed where it is a link: links make circles. A file may have gone meanwhile.
            let Ok(found) = entry.metadata() else {
                continue;
            };
            if found.is_dir() {
                self.add(&entry.path())?;
                continue;
            }
            ensure!(
                self.0.len() < FILES_MAX,
                "there are more than {FILES_MAX} files"
            );
            let state = (found.modified().ok(), found.len());
            self.0.insert(entry.path(), state);
        }
        Ok(())
    }

    /// Waits until something is otherwise than it was, and then nothing changes any more: an editor saves in several steps.
    pub async fn changes(&self, roots: &[PathBuf]) -> Result<()> {
        let mut last: Option<Seen> = None;
        loop {
            tokio::time::sleep(EVERY).await;
            let now = Seen::of(roots)?;
            if now == *self {
                last = None;
                continue;
            }
            if last.as_ref() == Some(&now) {
                return Ok(());
            }
            last = Some(now);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of the templates' builds nothing is watched that they write; what their author writes is.
    #[test]
    fn what_authors_write_is_watched() {
        for name in [
            "app.py",
            "build",
            "build.js",
            "requirements.txt",
            "souk-test.toml",
            "c.wit",
            "package.json",
        ] {
            assert!(!is_ignored(name), "{name}");
        }
    }

    /// A save, a new file and a deletion are changes; what a build or an editor leaves behind is none.
    #[test]
    fn sources_are_told_from_what_a_build_writes() {
        let directory = tempfile::tempdir().unwrap();
        let root = [directory.path().to_owned()];
        let write = |name: &str, text: &str| {
            let path = directory.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        write("src/lib.rs", "one");
        let before = Seen::of(&root).unwrap();
        for name in [
            "target/release/c.wasm",
            ".git/index",
            "src/.lib.rs.swp",
            "src/lib.rs~",
            "Cargo.lock",
            // Python's: ./build, its tests, and a run of them in place.
            "target/tools/bin/componentize-py",
            "target/bindings/wit_world/__init__.py",
            "target/number/souk_build.py",
            "src/__pycache__/app.cpython-313.pyc",
            "src/app.pyc",
            // JavaScript's.
            "node_modules/a/index.js",
            "package-lock.json",
            "target/bundle.js",
            // A component where --component puts it.
            "c.wasm",
            "out/c.wasm",
        ] {
            write(name, "x");
        }
        assert_eq!(Seen::of(&root).unwrap(), before);
        write("src/lib.rs", "longer");
        let saved = Seen::of(&root).unwrap();
        assert_ne!(saved, before);
        write("src/new/mod.rs", "");
        assert_ne!(Seen::of(&root).unwrap(), saved);
        std::fs::remove_dir_all(directory.path().join("src/new")).unwrap();
        assert_eq!(Seen::of(&root).unwrap(), saved);
        std::fs::remove_file(directory.path().join("src/lib.rs")).unwrap();
        assert_ne!(Seen::of(&root).unwrap(), saved);
        assert!(Seen::of(&[directory.path().join("absent")]).is_err());
    }
}
