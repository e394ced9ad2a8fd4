//! Machine code of the bundled connectors, compiled once for all hosts under test: an unoptimised host takes seven seconds of processor time for
//! it, and each test's host begins with an empty data directory.
//!
//! What tests upload is lent, too, once a host is ready: at its start, and whenever versions change, it removes what no version refers to.
//!
//! The hosts share one cache key, because code counts only under the key of the directory that it is found in.

use std::fs;
use std::io::{ErrorKind, Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// As in `souk_sandbox`'s cache.
const KEY_FILE: &str = "cache.key";
const CODE: &str = "cwasm";
/// Builds leave their code behind; with so many files, what has not been written for a day goes.
const FILES_MAX: usize = 32;
const UPLOADED_MAX: usize = 256;
/// What is larger was made to be work for the compiler, and is to be that each time.
const UPLOADED_BYTES_MAX: u64 = 4 << 20;
const OLD: std::time::Duration = std::time::Duration::from_secs(24 * 60 * 60);

/// Gives a host that is about to start in `data_dir` what earlier ones compiled.
pub fn lend(data_dir: &Path) {
    let (from, to) = (directory(), data_dir.join("compiled"));
    if to.exists() {
        return;
    }
    private(&to);
    for path in std::iter::once(from.join(KEY_FILE)).chain(code(&from)) {
        copy(&path, &to);
    }
}

/// Takes over what a host has compiled for its start.
pub fn keep(data_dir: &Path) {
    if has_our_key(data_dir) {
        take(code(&data_dir.join("compiled")), &directory(), FILES_MAX);
    }
}

/// Gives a host that is ready what earlier ones compiled when it was uploaded.
pub fn lend_uploaded(data_dir: &Path) {
    if has_our_key(data_dir) {
        for path in code(&uploaded()) {
            copy(&path, &data_dir.join("compiled"));
        }
    }
}

/// Takes over what a host that has ended has compiled when it was uploaded.
pub fn keep_uploaded(data_dir: &Path) {
    if !has_our_key(data_dir) {
        return;
    }
    let bundled = directory();
    let mut found = code(&data_dir.join("compiled"));
    found.retain(|path| {
        let name = path.file_name();
        let is_uploaded = name.is_some_and(|name| !bundled.join(name).exists());
        is_uploaded && fs::metadata(path).is_ok_and(|data| data.len() <= UPLOADED_BYTES_MAX)
    });
    take(found, &uploaded(), UPLOADED_MAX);
}

fn uploaded() -> PathBuf {
    let path = directory().join("uploaded");
    private(&path);
    path
}

/// Its code counts for others, and theirs for it.
fn has_our_key(data_dir: &Path) -> bool {
    let key = |directory: &Path| fs::read(directory.join(KEY_FILE)).ok();
    key(&data_dir.join("compiled")).is_some_and(|own| key(&directory()) == Some(own))
}

fn take(found: Vec<PathBuf>, to: &Path, files_max: usize) {
    for path in found {
        copy(&path, to);
    }
    let kept = code(to);
    if kept.len() > files_max {
        for path in kept {
            let age = fs::metadata(&path).and_then(|data| data.modified());
            if age.is_ok_and(|written| written.elapsed().is_ok_and(|age| age > OLD)) {
                let _ = fs::remove_file(&path);
            }
        }
    }
}

/// Beside the binaries of this build, with a key in it.
pub(crate) fn directory() -> PathBuf {
    let mut path = std::env::current_exe().expect("a path of this test");
    path.pop();
    path.push("compiled-for-tests");
    private(&path);
    let mut key = [0; 32];
    let random = fs::File::open("/dev/urandom").and_then(|mut file| file.read_exact(&mut key));
    random.expect("random bytes");
    let scratch = path.join(format!(".{}.key", std::process::id()));
    if !path.join(KEY_FILE).exists()
        && let Ok(mut file) = fs::File::options()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&scratch)
    {
        file.write_all(&key).expect("a key is written");
        // Whose link is first wins: it is whole, and all use it.
        let _ = fs::hard_link(&scratch, path.join(KEY_FILE));
        let _ = fs::remove_file(&scratch);
    }
    path
}

fn private(path: &Path) {
    fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(path)
        .expect("a directory");
}

fn code(directory: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory).expect("compiled connectors");
    entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.extension().is_some_and(|end| end == CODE))
        .collect()
}

/// By a link where the file system can: hosts replace such files and never write into them.
fn copy(path: &Path, to: &Path) {
    let target = to.join(path.file_name().expect("a file"));
    let Err(error) = fs::hard_link(path, &target) else {
        return;
    };
    if error.kind() == ErrorKind::AlreadyExists || error.kind() == ErrorKind::NotFound {
        return;
    }
    let scratch = to.join(format!(".{}.copy", std::process::id()));
    if fs::copy(path, &scratch).is_ok() {
        let _ = fs::rename(&scratch, &target);
    }
}
