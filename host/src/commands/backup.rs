//! `souk backup` and `souk restore`.
//!
//! A running host takes the backup: only it can bring the books up to what it has answered. What it sends is checked to its last entry before it
//! counts as a backup, and again before it becomes a data directory.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, BufReader, IsTerminal, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Component, Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use clap::Args;
use reqwest::Method;
use serde_json::json;
use sha2::{Digest, Sha256};
use souk_app::backup::{COMPLETE, Complete, FILES, FORMAT, MANIFEST, Manifest, STORE};

use super::client::{At, Client};
use super::output::{self, Column};
use super::progress;
use crate::private;

/// A large store is copied before the first byte comes, and then sent as fast as it is taken.
const BACKUP_WITHIN: Duration = Duration::from_secs(24 * 3_600);
const BLOCK_BYTES: usize = 1 << 20;
/// An archive that is on its way: with something random in between.
const PART: (&str, &str) = ("souk-backup-", ".part");
/// What has had no byte for as long as a whole backup may take is not on its way any more.
const LEFT_OVER_AFTER: Duration = BACKUP_WITHIN;
/// The first and last entry.
const NOTE_BYTES_MAX: u64 = 256 << 20;

#[derive(Args)]
pub struct Backup {
    /// The directory that gets the archive, `souk-backup-TIME.tar`, once it is whole; `-` writes it to standard output.
    #[arg(value_name = "DIR|-")]
    to: PathBuf,
    #[command(flatten)]
    at: At,
}

#[derive(Args)]
pub struct Restore {
    /// The archive; `-` reads it from standard input.
    #[arg(value_name = "FILE|-")]
    from: PathBuf,
    /// The data directory to make, or to fill: it must not exist, or be empty (`lost+found` is nothing).
    #[arg(long, env = "SOUK_DATA_DIR", value_name = "DIR")]
    data_dir: PathBuf,
    /// Show what was restored as JSON.
    #[arg(long)]
    json: bool,
}

const TAKEN: &[Column] = &[
    ("BACKUP", "/path"),
    ("BYTES", "/bytes"),
    ("TAKEN", "/manifest/taken_at"),
    ("STORE", "/manifest/store"),
    ("FILES", "/files"),
    ("KEY FINGERPRINT", "/manifest/key_fingerprint"),
    ("MISSING FILES", "/missing_files"),
    ("DAMAGED FILES", "/damaged_files"),
];

pub async fn backup(command: Backup) -> Result<()> {
    private::keep_to_owner();
    let client = Client::new(&command.at)?;
    let request = client
        .request(Method::GET, "/admin/backup")
        .timeout(BACKUP_WITHIN);
    if command.to == Path::new("-") {
        ensure!(
            !io::stdout().is_terminal(),
            "an archive is nothing for a terminal: redirect standard output"
        );
        receive(&client, request, io::stdout().lock()).await?;
        eprintln!("`souk restore -` says whether it is whole");
        return Ok(());
    }
    let directory = &command.to;
    fs::create_dir_all(directory)
        .with_context(|| format!("{} cannot be made", directory.display()))?;
    remove_left_over(directory);
    let mut part = tempfile::Builder::new()
        .prefix(PART.0)
        .suffix(PART.1)
        .tempfile_in(directory)
        .with_context(|| format!("{} cannot be written to", directory.display()))?;
    let bytes = receive(&client, request, part.as_file_mut()).await?;
    part.as_file().sync_all()?;
    let progress = progress::bytes("checked", Some(bytes));
    let archive = progress.wrap_read(File::open(part.path())?);
    let archive = BufReader::with_capacity(BLOCK_BYTES, archive);
    let (manifest, complete, damaged) =
        read(archive, None).context("the backup that was received")?;
    drop(progress);
    // Of the others the host has said nothing: they were whole when they left it.
    let lost = damaged
        .iter()
        .find(|path| !complete.damaged_files.contains(path));
    if let Some(path) = lost {
        bail!(
            "the backup was damaged on its way, {path} at least; nothing was kept: take it again"
        );
    }
    let time: String = manifest
        .taken_at
        .chars()
        .filter(|c| !matches!(c, '-' | ':'))
        .collect();
    let path = directory.join(format!("souk-backup-{time}.tar"));
    part.persist_noclobber(&path)
        .with_context(|| format!("{} cannot be written", path.display()))?;
    File::open(directory)?.sync_all()?;
    let shown = json!({
        "path": path, "bytes": bytes, "files": complete.files, "missing_files": complete.missing_files,
        "damaged_files": damaged,
        "manifest": {
            "taken_at": manifest.taken_at, "store": manifest.store, "souk_version": manifest.souk_version,
            "schema_version": manifest.schema_version, "key_fingerprint": manifest.key_fingerprint,
            "object_store": manifest.object_store,
        },
    });
    output::one(command.at.json, TAKEN, &shown)?;
    if !damaged.is_empty() {
        eprintln!(
            "{} of the files are damaged on the host, and in this backup: restore them from an older one, or have their companies upload them again",
            damaged.len()
        );
    }
    if manifest.store != "sqlite" {
        eprintln!(
            "the store itself is on PostgreSQL and not in this backup: take it with pg_dump, before this (docs/operations.md)"
        );
    }
    if let Some(objects) = &manifest.object_store {
        eprintln!(
            "the companies' files are in {objects} and not in this backup: that needs versions or a copy of its own (docs/operations.md)"
        );
    }
    Ok(())
}

/// What backups left that were killed, by a timer's patience say: each may be as large as the store.
fn remove_left_over(directory: &Path) {
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let name = name.to_string_lossy();
        let changed = entry.metadata().and_then(|found| found.modified()).ok();
        let age = changed.and_then(|changed| changed.elapsed().ok());
        if name.starts_with(PART.0)
            && name.ends_with(PART.1)
            && age.is_some_and(|age| age >= LEFT_OVER_AFTER)
            && fs::remove_file(entry.path()).is_ok()
        {
            eprintln!("{name}, which a backup that was killed had left, was removed");
        }
    }
}

async fn receive(
    client: &Client,
    request: reqwest::RequestBuilder,
    mut out: impl Write,
) -> Result<u64> {
    let mut response = client.send(request).await?;
    let progress = progress::bytes("received", None);
    let mut bytes = 0;
    while let Some(piece) = response
        .chunk()
        .await
        .context("the backup broke off; nothing was kept")?
    {
        out.write_all(&piece)?;
        bytes += piece.len() as u64;
        progress.set_position(bytes);
    }
    out.flush()?;
    Ok(bytes)
}

const RESTORED: &[Column] = &[
    ("DATA DIRECTORY", "/data_dir"),
    ("TAKEN", "/taken_at"),
    ("STORE", "/store"),
    ("FILES", "/files"),
    ("KEY FINGERPRINT", "/key_fingerprint"),
    ("DAMAGED FILES", "/damaged_files"),
];

pub fn restore(command: Restore) -> Result<()> {
    private::keep_to_owner();
    let target = &command.data_dir;
    let is_free = match fs::read_dir(target) {
        // A disk of its own is empty with that.
        Ok(entries) => entries
            .flatten()
            .all(|entry| entry.file_name() == "lost+found"),
        Err(error) => error.kind() == io::ErrorKind::NotFound,
    };
    ensure!(
        is_free,
        "{} is not empty: a backup is restored into a directory of its own, so that nothing of two stores is mixed",
        target.display()
    );
    let parent = match target.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    fs::create_dir_all(parent).with_context(|| format!("{} cannot be made", parent.display()))?;
    // Beside it, and renamed when it is whole. One that is there may be a disk of its own: inside of it, then.
    let is_there = target.exists();
    let place = match is_there {
        true => target.as_path(),
        false => parent,
    };
    let part = tempfile::Builder::new()
        .prefix(".souk-restore-")
        .tempdir_in(place)
        .with_context(|| format!("{} cannot be written to", place.display()))?;
    let (manifest, complete, damaged) = match command.from == Path::new("-") {
        true => {
            let progress = progress::bytes("restored", None);
            read(progress.wrap_read(io::stdin().lock()), Some(part.path()))?
        }
        false => {
            let file = File::open(&command.from)
                .with_context(|| format!("{} cannot be read", command.from.display()))?;
            let total = file.metadata().ok().map(|file| file.len());
            let progress = progress::bytes("restored", total);
            let archive = BufReader::with_capacity(BLOCK_BYTES, progress.wrap_read(file));
            read(archive, Some(part.path())).with_context(|| command.from.display().to_string())?
        }
    };
    match is_there {
        true => {
            move_up(part.path(), target)
                .with_context(|| format!("{} cannot be filled", target.display()))?;
            // With nothing in it any more.
            drop(part);
        }
        false => fs::rename(part.keep(), target)
            .with_context(|| format!("{} cannot be made", target.display()))?,
    }
    File::open(place)?.sync_all()?;
    let shown = json!({
        "data_dir": target, "taken_at": manifest.taken_at, "store": manifest.store, "files": complete.files,
        "key_fingerprint": manifest.key_fingerprint, "missing_files": complete.missing_files,
        "damaged_files": damaged,
    });
    output::one(command.json, RESTORED, &shown)?;
    if !damaged.is_empty() {
        eprintln!(
            "{} of the files are damaged in the archive and were left out: take them from an older one, or have their companies upload them again",
            damaged.len()
        );
    }
    if manifest.key_fingerprint.is_some() {
        eprintln!(
            "the master key is not in a backup: put master.key back into {}, or give it in SOUK_MASTER_KEY",
            target.display()
        );
    }
    eprintln!(
        "`souk doctor --data-dir {}` looks whether all is well",
        target.display()
    );
    Ok(())
}

/// Moves what is in a directory to the one that it is in, the store last: nobody begins to serve from a half.
fn move_up(part: &Path, target: &Path) -> io::Result<()> {
    let entries = fs::read_dir(part)?.map(|entry| Ok(entry?.file_name()));
    let mut names = entries.collect::<io::Result<Vec<OsString>>>()?;
    names.sort_by_key(|name| name == STORE);
    for name in names {
        fs::rename(part.join(&name), target.join(&name))?;
    }
    // As one that is made here. Where that is not possible, `souk doctor` says what else to do.
    let _ = fs::set_permissions(target, fs::Permissions::from_mode(0o700));
    Ok(())
}

/// Reads an archive to its end and compares all that it says of itself; writes it into the directory too, if there is one, but for files that are not what
/// was uploaded. Which these are stands last: one seller's file that a disk has lost is no reason to be without everything else.
fn read(from: impl Read, into: Option<&Path>) -> Result<(Manifest, Complete, Vec<String>)> {
    let mut archive = tar::Archive::new(from);
    let mut manifest: Option<Manifest> = None;
    let mut complete: Option<Complete> = None;
    let mut store = None;
    let mut files = 0;
    let mut damaged = Vec::new();
    for entry in archive.entries()? {
        let mut entry = entry.context(match manifest {
            None => "this is no backup of souk",
            Some(_) => "the archive is damaged, or was cut off",
        })?;
        let path = entry.path()?.into_owned();
        ensure!(
            entry.header().entry_type().is_file() && is_plain(&path),
            "the archive has the entry {}, which no backup has",
            path.display()
        );
        ensure!(
            complete.is_none(),
            "something follows the archive's last entry"
        );
        let name = path.to_string_lossy().into_owned();
        match (&manifest, name.as_str()) {
            (None, MANIFEST) => {
                let found: Manifest = serde_json::from_reader(entry.by_ref().take(NOTE_BYTES_MAX))
                    .context("the archive's first entry is damaged, or was cut off")?;
                ensure!(
                    found.format == FORMAT,
                    "the backup has format {}, which this souk does not read; use one of version {}",
                    found.format,
                    found.souk_version
                );
                manifest = Some(found);
            }
            (None, _) => bail!("this is no backup of souk: it begins with {name}"),
            (_, COMPLETE) => {
                complete = Some(serde_json::from_reader(
                    entry.by_ref().take(NOTE_BYTES_MAX),
                )?);
            }
            (_, STORE) => store = Some(keep(&mut entry, &path, into)?),
            (Some(manifest), _) => {
                let below = name
                    .strip_prefix(FILES)
                    .and_then(|name| name.strip_prefix('/'));
                let kept = manifest
                    .files
                    .iter()
                    .find(|kept| Some(kept.path.as_str()) == below);
                let kept = kept.with_context(|| {
                    format!("the archive has {name}, which its manifest does not name")
                })?;
                files += 1;
                if keep(&mut entry, &path, into)? != kept.sha256 {
                    damaged.push(kept.path.clone());
                    if let Some(directory) = into {
                        fs::remove_file(directory.join(&path))?;
                    }
                }
            }
        }
    }
    let manifest = manifest.context("this is no backup of souk: it is empty")?;
    let complete =
        complete.context("the archive was cut off: its last entry, complete.json, is missing")?;
    ensure!(
        store == complete.store_sha256,
        "the store in the archive is damaged"
    );
    ensure!(
        files == complete.files && files == manifest.files.len(),
        "the archive has {files} files, not {}",
        complete.files
    );
    Ok((manifest, complete, damaged))
}

/// Names only, and no way out.
fn is_plain(path: &Path) -> bool {
    path.components()
        .all(|part| matches!(part, Component::Normal(_)))
}

/// Answers the digest of an entry, and keeps it in the directory.
fn keep(entry: &mut impl Read, path: &Path, into: Option<&Path>) -> Result<String> {
    let mut out = match into {
        None => None,
        Some(directory) => {
            let path = directory.join(path);
            if let Some(parent) = path.parent() {
                fs::create_dir_all(parent)?;
            }
            let file = File::create_new(&path);
            Some(file.with_context(|| format!("{} cannot be made", path.display()))?)
        }
    };
    let mut digest = Sha256::new();
    let mut block = vec![0; BLOCK_BYTES];
    loop {
        let count = entry
            .read(&mut block)
            .context("the archive is damaged, or was cut off")?;
        if count == 0 {
            break;
        }
        digest.update(&block[..count]);
        if let Some(out) = &mut out {
            out.write_all(&block[..count])?;
        }
    }
    if let Some(out) = out {
        out.sync_all()?;
    }
    Ok(hex::encode(digest.finalize()))
}
