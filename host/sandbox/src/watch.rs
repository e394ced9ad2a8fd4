//! A directory of component files that is looked at every second: a new or changed file is loaded
//! and activated for the platform.

use std::{
    collections::HashMap,
    path::{Path, PathBuf},
    time::{Duration, SystemTime},
};

use crate::{
    clock::now_micros,
    connector::{ConnectorInfo, LoadError, Scope, SessionCount, Status},
    sandbox::Sandbox,
};

pub(crate) const INTERVAL: Duration = Duration::from_secs(1);
/// Files looked at: more is a mistake, not a directory of connectors.
const FILES_MAX: usize = 256;

pub(crate) struct Watch {
    directory: PathBuf,
    /// What was tried already, whatever came of it.
    seen: HashMap<PathBuf, (SystemTime, u64)>,
    unreadable: bool,
    /// The first round, at the start of the host, has been.
    has_looked: bool,
}

impl Watch {
    pub fn new(directory: &Path) -> Watch {
        Watch {
            directory: directory.to_owned(),
            seen: HashMap::new(),
            unreadable: false,
            has_looked: false,
        }
    }

    /// One round. A file that was tried and has not changed is left alone, so a reason is told once.
    pub async fn look(&mut self, sandbox: &Sandbox) {
        let files = match files(&self.directory) {
            Ok(files) => files,
            Err(error) => {
                if !std::mem::replace(&mut self.unreadable, true) {
                    tracing::warn!(directory = %self.directory.display(), %error, "cannot read the connector directory");
                }
                return;
            }
        };
        self.unreadable = false;
        self.seen.retain(|path, _| {
            let stays = files.iter().any(|(file, ..)| file == path);
            if !stays {
                tracing::info!(file = %path.display(), "connector file removed: what it brought stays until the host starts again");
                sandbox.note_rejected(&name_of(path), None);
            }
            stays
        });
        let is_first = !std::mem::replace(&mut self.has_looked, true);
        for (path, modified, size) in files {
            if self.seen.get(&path) == Some(&(modified, size)) {
                continue;
            }
            self.seen.insert(path.clone(), (modified, size));
            // What was put there while the host runs is meant to run; at a start, a later choice by hand holds.
            let since = is_first.then(|| micros(modified));
            match take_in(sandbox, &path, since).await {
                Ok(info) => {
                    sandbox.note_rejected(&name_of(&path), None);
                    tracing::info!(file = %path.display(), name = info.name, version = info.version, "connector file loaded");
                }
                Err(error) => {
                    tracing::warn!(file = %path.display(), reason = %error, "connector file refused");
                    sandbox.note_rejected(&name_of(&path), Some(rejected(&path, size, &error)));
                }
            }
        }
    }
}

/// `since`: stays staged if somebody has chosen what runs of its name later than then.
async fn take_in(
    sandbox: &Sandbox,
    path: &Path,
    since: Option<i64>,
) -> Result<ConnectorInfo, LoadError> {
    let wasm = tokio::fs::read(path)
        .await
        .map_err(|error| LoadError::Internal(format!("cannot read the file: {error}")))?;
    let info = sandbox.load(wasm, Scope::Platform).await?;
    if since.is_some_and(|at| sandbox.is_kept_off(&info, at)) {
        return Ok(info);
    }
    sandbox
        .activate(&Scope::Platform, &info.name, &info.version)
        .await
}

fn micros(time: SystemTime) -> i64 {
    let since = time.duration_since(SystemTime::UNIX_EPOCH);
    since.map_or(0, |since| {
        i64::try_from(since.as_micros()).unwrap_or(i64::MAX)
    })
}

/// `*.wasm`, in order of their names.
fn files(directory: &Path) -> std::io::Result<Vec<(PathBuf, SystemTime, u64)>> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(directory)?.take(FILES_MAX) {
        let path = entry?.path();
        if path.extension().is_none_or(|extension| extension != "wasm") {
            continue;
        }
        // Follows links, and leaves out what vanished meanwhile.
        if let Ok(metadata) = std::fs::metadata(&path)
            && metadata.is_file()
        {
            files.push((path, metadata.modified()?, metadata.len()));
        }
    }
    files.sort();
    Ok(files)
}

fn name_of(path: &Path) -> String {
    path.file_stem()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned()
}

fn rejected(path: &Path, size: u64, error: &LoadError) -> ConnectorInfo {
    ConnectorInfo {
        name: name_of(path),
        version: String::new(),
        digest: String::new(),
        scope: "platform",
        company_id: None,
        engine_ids: Vec::new(),
        needs: Vec::new(),
        wit_version: String::new(),
        settings_schema: String::new(),
        imports: Vec::new(),
        warnings: Vec::new(),
        exports: Vec::new(),
        size_bytes: size,
        compile_ms: 0,
        status: Status::Rejected,
        error: Some(error.to_string()),
        loaded_at: now_micros(),
        active_since: None,
        trial: None,
        sessions: SessionCount::default(),
        calls_total: 0,
        traps_total: 0,
        p50_ms: 0.0,
        p95_ms: 0.0,
    }
}
