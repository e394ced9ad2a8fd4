//! `souk doctor`: whether a data directory and its store are well, before a host is started on them.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::SystemTime;

use anyhow::{Result, ensure};
use clap::Args;
use futures_util::stream::{self, StreamExt};
use serde_json::{Value, json};
use souk_app::files::objects::Objects;
use souk_app::files::{FILES, ObjectError};
use souk_store::backup::NamedFile;
use souk_store::connectors::StoredConnector;
use souk_store::resealing::{self, ProveError};
use souk_store::sealing::{self, Sealer};
use souk_store::{Db, backup, connectors, reconciliation};

use super::output::{self, Column};
use super::store::{self, OnStore};
use crate::cli::Options;
use crate::host::without_password;
use crate::private::MASTER_KEY;
use crate::settings::Settings;

/// Less than this on the disk is said: the charge log alone takes tens of MiB.
const FREE_BYTES_MIN: u64 = 1 << 30;

/// What to do about a store that is damaged.
const RESTORE: &str = "restore a backup (`souk restore`)";

/// Questions to the object store under way.
const OBJECTS_AT_ONCE: usize = 16;

#[derive(Args)]
pub struct Doctor {
    /// Show what was found as JSON.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    store: OnStore,

    /// The object store of companies' files, as `souk serve` names it.
    #[arg(
        long,
        env = "SOUK_FILES_URL",
        value_name = "URL",
        help_heading = "Files"
    )]
    files_url: Option<String>,

    /// In whose name it is asked.
    #[arg(
        long,
        env = "SOUK_FILES_ACCESS_KEY_ID",
        value_name = "ID",
        help_heading = "Files"
    )]
    files_access_key_id: Option<String>,

    /// The secret that goes with it.
    #[arg(
        long,
        env = "SOUK_FILES_SECRET_ACCESS_KEY",
        value_name = "SECRET",
        hide_env_values = true,
        help_heading = "Files"
    )]
    files_secret_access_key: Option<String>,
}

const FOUND: &[Column] = &[("CHECK", "/check"), ("IS", "/is"), ("FOUND", "/found")];

/// What was looked at, and how it is.
#[derive(Default)]
struct Findings(Vec<Value>);

impl Findings {
    fn good(&mut self, check: &str, found: impl Into<String>) {
        self.note(check, "good", found.into());
    }

    /// Nothing that keeps a host from serving.
    fn warn(&mut self, check: &str, found: impl Into<String>) {
        self.note(check, "warning", found.into());
    }

    fn bad(&mut self, check: &str, found: impl Into<String>) {
        self.note(check, "bad", found.into());
    }

    fn note(&mut self, check: &str, is: &str, found: String) {
        self.0
            .push(json!({"check": check, "is": is, "found": found}));
    }

    fn bad_ones(&self) -> usize {
        self.0.iter().filter(|one| one["is"] == "bad").count()
    }
}

/// Looks at everything before it says anything. Fails when something is bad.
pub async fn run(command: Doctor) -> Result<()> {
    let settings = command.store.settings_with(Options {
        files_url: command.files_url,
        files_access_key_id: command.files_access_key_id,
        files_secret_access_key: command.files_secret_access_key,
        ..Options::default()
    })?;
    let mut findings = Findings::default();
    directory(&settings, &mut findings);
    space(&settings, &mut findings);
    match store::open(&settings).await {
        Err(error) => findings.bad("store", format!("{error:#}")),
        Ok(db) => {
            let looked = look_into(&db, &settings, &mut findings).await;
            db.close().await;
            // What was found so far is told all the same.
            if let Err(error) = looked {
                findings.bad("store", format!("{error:#}: {RESTORE}"));
            }
        }
    }
    output::list(command.json, FOUND, &findings.0)?;
    let bad = findings.bad_ones();
    ensure!(bad == 0, "{bad} of {} checks are bad", findings.0.len());
    Ok(())
}

fn directory(settings: &Settings, findings: &mut Findings) {
    let directory = &settings.data_dir;
    if !directory.is_dir() {
        findings.bad(
            "data directory",
            format!("{} is not there", directory.display()),
        );
        return;
    }
    let mut open = Vec::new();
    for entry in std::fs::read_dir(directory).into_iter().flatten().flatten() {
        let Ok(metadata) = entry.metadata() else {
            continue;
        };
        let mode = metadata.permissions().mode() & 0o777;
        if mode & 0o077 != 0 && !metadata.is_symlink() {
            open.push(format!("{} ({mode:o})", entry.file_name().display()));
        }
    }
    match open.is_empty() {
        true => findings.good(
            "file modes",
            "nobody else can read what is in the data directory",
        ),
        false => findings.warn(
            "file modes",
            format!(
                "open to other users: {}; the next start closes souk's own",
                open.join(", ")
            ),
        ),
    }
}

fn space(settings: &Settings, findings: &mut Findings) {
    match free_bytes(&settings.data_dir) {
        Ok(free) if free < FREE_BYTES_MIN => findings.warn(
            "disk space",
            format!("{} MiB are free; a full disk takes no charges", free >> 20),
        ),
        Ok(free) => findings.good("disk space", format!("{} MiB are free", free >> 20)),
        Err(error) => findings.warn("disk space", error.to_string()),
    }
}

/// To whoever is not root.
fn free_bytes(path: &Path) -> std::io::Result<u64> {
    use std::os::unix::ffi::OsStrExt;
    let path = std::ffi::CString::new(path.as_os_str().as_bytes())?;
    let mut found = std::mem::MaybeUninit::<libc::statvfs>::uninit();
    // SAFETY: the path ends with a zero, and statvfs fills the struct whole when it answers zero.
    #[allow(unsafe_code)]
    let found = unsafe {
        if libc::statvfs(path.as_ptr(), found.as_mut_ptr()) != 0 {
            return Err(std::io::Error::last_os_error());
        }
        found.assume_init()
    };
    Ok(found.f_bavail * found.f_frsize)
}

async fn look_into(db: &Db, settings: &Settings, findings: &mut Findings) -> Result<()> {
    // First: whatever else is read may stand on a damaged page.
    if let Some(damage) = backup::damage(db).await? {
        findings.bad("pages of the store", format!("{damage}: {RESTORE}"));
    }
    let mut read = db.read().await?;
    let version = backup::schema_version(&mut read).await?;
    let url = without_password(&settings.database_url);
    findings.good("store", format!("{url} opens, with migration {version}"));
    let files = backup::files(&mut read).await?;
    let components = connectors::list(&mut read).await?.len();
    let incomplete = connectors::incomplete(&mut read).await?;
    drop(read);
    found_components(components, &incomplete, findings);
    key(db, settings, findings).await?;

    let books = reconciliation::reconcile(db, SystemTime::now().into()).await?;
    let counted = format!(
        "{} transactions, {} entries",
        books.transactions, books.entries
    );
    match books.is_balanced() {
        true => findings.good("books", format!("balanced: {counted}")),
        false => findings.bad(
            "books",
            format!("{} mismatches in {counted}", books.findings.len()),
        ),
    }

    found_files(&files, settings, findings).await
}

/// A host starts without them as long as what was compiled of them is kept, and needs them after its next upgrade.
fn found_components(all: usize, incomplete: &[StoredConnector], findings: &mut Findings) {
    if incomplete.is_empty() {
        findings.good("connectors", format!("{all} versions are whole"));
        return;
    }
    let named = incomplete.iter().map(|one| {
        let StoredConnector {
            scope,
            name,
            version,
            ..
        } = one;
        format!("{name} {version} ({scope})")
    });
    let named: Vec<String> = named.collect();
    findings.bad(
        "connectors",
        format!(
            "{} of {all} versions are missing or cut off: {}; upload them again, or restore a backup",
            named.len(),
            named.join(", ")
        ),
    );
}

/// Whether each file is there, in the data directory or the object store, with as many bytes as it should have.
async fn found_files(
    files: &[NamedFile],
    settings: &Settings,
    findings: &mut Findings,
) -> Result<()> {
    let objects = match &settings.objects {
        Some(at) => {
            Some(Objects::new(at).map_err(|error| anyhow::anyhow!("--files-url: {error}"))?)
        }
        None => None,
    };
    let looked_at = stream::iter(files.iter().map(|file| {
        let objects = objects.as_ref();
        async move {
            let path = format!("{}/{}/{}", file.company, file.upload, file.name);
            let here = std::fs::metadata(settings.data_dir.join(FILES).join(&path));
            let found = match (here, objects) {
                (Ok(metadata), _) => Ok(metadata.len()),
                (Err(_), Some(objects)) => objects.size(&file.company, &file.upload).await,
                (Err(_), None) => Err(ObjectError::Missing),
            };
            match found {
                Ok(bytes) if bytes.cast_signed() == file.size_bytes => Ok(()),
                Ok(_) | Err(ObjectError::Missing) => Err((path, None)),
                Err(error) => Err((path, Some(error))),
            }
        }
    }));
    let mut missing = Vec::new();
    let mut looked_at = looked_at.buffered(OBJECTS_AT_ONCE);
    while let Some(looked) = looked_at.next().await {
        match looked {
            Ok(()) => {}
            Err((path, None)) => missing.push(path),
            // What is true of one is of all.
            Err((path, Some(error))) => {
                findings.bad("files", format!("{path} was not looked at: {error}"));
                return Ok(());
            }
        }
    }
    let place = match &settings.objects {
        Some(at) => format!(", in {at}"),
        None => String::new(),
    };
    match missing.is_empty() {
        true => findings.good(
            "files",
            format!("{} of companies are there{place}", files.len()),
        ),
        false => findings.bad(
            "files",
            format!(
                "{} of {} are missing or cut off{place}: {}",
                missing.len(),
                files.len(),
                missing.join(", ")
            ),
        ),
    }
    Ok(())
}

/// Makes no key.
async fn key(db: &Db, settings: &Settings, findings: &mut Findings) -> Result<()> {
    let needed = resealing::key_in_use(&mut *db.read().await?).await?;
    let Some(needed) = needed else {
        findings.good("master key", "nothing is sealed in this store yet");
        return Ok(());
    };
    let key = match &settings.master_key {
        Some(key) => Some(key.clone()),
        None => match sealing::read_key(&settings.data_dir.join(MASTER_KEY)) {
            Ok(key) => key,
            Err(error) => {
                findings.bad("master key", format!("master.key: {error}"));
                return Ok(());
            }
        },
    };
    let Some(key) = key else {
        findings.bad(
            "master key",
            format!("it is missing: this store was sealed with one (fingerprint {needed})"),
        );
        return Ok(());
    };
    let former: Vec<&str> = settings.master_key_old.iter().map(String::as_str).collect();
    let sealer = match Sealer::new(&key, &former) {
        Ok(sealer) => sealer,
        Err(error) => {
            findings.bad("master key", error.to_string());
            return Ok(());
        }
    };
    match resealing::prove(db, &sealer).await {
        Ok(()) => findings.good(
            "master key",
            format!("it is the store's (fingerprint {needed})"),
        ),
        Err(error @ ProveError::OtherKey { .. }) => findings.bad(
            "master key",
            format!(
                "the store was {error}, the given one has {}",
                sealer.key_id()
            ),
        ),
        Err(ProveError::Store(error)) => return Err(error.into()),
    }
    Ok(())
}
