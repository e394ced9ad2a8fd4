//! Where clusters have their files, and old ones in /tmp. The store's own tests, which do not depend on this crate, include this file.

use std::path::{Path, PathBuf};
use std::time::Duration;

/// A directory for clusters, whose users are others. Under `tests/side-by-side` it is one of this test binary's, and goes with it. (The machine's own
/// directory for such things may be one that only its user sees.)
pub fn place() -> PathBuf {
    let own = std::env::var_os("SOUK_TESTS_DIRECTORY");
    own.map_or_else(|| PathBuf::from("/tmp"), PathBuf::from)
}

/// Removes what clusters of former test processes left: one that is shared by a process's tests lives as long as the process, and nothing
/// runs after that. Leaves alone what is younger than ten minutes or still has its server.
pub fn sweep(prefix: &str) {
    const AGE: Duration = Duration::from_secs(600);
    let Ok(entries) = std::fs::read_dir("/tmp") else {
        return;
    };
    for entry in entries.flatten() {
        let data = entry.path().join("data");
        // PostgreSQL's, MariaDB's.
        let runs = ["postmaster.pid", "server.pid"].iter().any(|name| {
            let pid = std::fs::read_to_string(data.join(name)).unwrap_or_default();
            let first = pid.lines().next();
            first.is_some_and(|pid| Path::new("/proc").join(pid).exists())
        });
        let changed = data.metadata().and_then(|data| data.modified());
        let is_old = changed.is_ok_and(|at| at.elapsed().is_ok_and(|age| age > AGE));
        if entry.file_name().to_string_lossy().starts_with(prefix) && is_old && !runs {
            std::fs::remove_dir_all(entry.path()).ok();
        }
    }
}
