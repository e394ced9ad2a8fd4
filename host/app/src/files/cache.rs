//! Copies of files on this host's disk, of files that lie in an object store: as many bytes as the operator allows, those that were lent last.
//!
//! A copy is a directory, `<directory>/<company>/<upload>.<tag>/`, with the file in it. It gets that name when it is whole and on disk, so that
//! what a crash leaves is either one that can be lent or one that the next start removes. One that is lent stays.
//!
//! Companies share the room. Where there is not enough for all, the copies of one that has more than its share are the first to leave; and of no more
//! than its share are ever lent at once, since those cannot leave.
//!
//! Refuses to know: where copies come from.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::SystemTime;

use cap_std::fs::{Dir, DirEntry};
use parking_lot::Mutex;
use souk_domain::ids::{CompanyId, FileId};

use super::quota::FILE_BYTES_MAX;
use super::uploads::{self, PART, Place, blocking, entries};

/// Of randomness, in the name of a copy: one that is leaving is not in the way of the next.
const TAG_BYTES: usize = 8;

pub struct Cache {
    directory: PathBuf,
    bytes_max: u64,
    /// One company's share.
    company_max: u64,
    shelf: Mutex<Shelf>,
}

#[derive(Default)]
struct Shelf {
    /// By upload.
    copies: HashMap<String, Arc<Kept>>,
    /// Of the copies, and what is promised to those that are coming.
    bytes: u64,
    /// The latter, of each company that has been promised any.
    promised: HashMap<CompanyId, u64>,
    /// How often a copy was lent so far: what orders them.
    lent: u64,
}

/// A copy that is whole. Whoever holds one besides the cache was lent it.
pub struct Kept {
    place: Place,
    bytes: u64,
    used: AtomicU64,
}

impl Kept {
    pub fn directory(&self) -> PathBuf {
        self.place.directory()
    }

    fn company(&self) -> &CompanyId {
        self.place.company()
    }
}

fn is_lent(copy: &Arc<Kept>) -> bool {
    Arc::strong_count(copy) > 1
}

/// What is lent to a company, and on its way to it, is all that it may have of it.
pub struct ShareInUse;

/// Room that is promised to a copy; dropping it takes the promise back.
pub struct Room {
    cache: Arc<Cache>,
    company: CompanyId,
    bytes: u64,
}

impl Drop for Room {
    fn drop(&mut self) {
        let mut shelf = self.cache.shelf.lock();
        shelf.take_back(&self.company, self.bytes);
    }
}

impl Cache {
    /// Empty until [`scan`](Cache::scan). A company's share is half of it, so that what one company does leaves another one half; and the largest
    /// file at least.
    pub fn new(directory: PathBuf, bytes_max: u64) -> Arc<Cache> {
        Arc::new(Cache {
            directory,
            bytes_max,
            company_max: (bytes_max / 2).max(FILE_BYTES_MAX).min(bytes_max),
            shelf: Mutex::default(),
        })
    }

    /// `None`: it is not here.
    pub fn lend(&self, upload: &str) -> Result<Option<Arc<Kept>>, ShareInUse> {
        let mut shelf = self.shelf.lock();
        shelf.lent += 1;
        let Some(copy) = shelf.copies.get(upload) else {
            return Ok(None);
        };
        let has_room = || shelf.in_use(copy.company()) + copy.bytes <= self.company_max;
        if !is_lent(copy) && !has_room() {
            return Err(ShareInUse);
        }
        copy.used.store(shelf.lent, Ordering::Relaxed);
        Ok(Some(copy.clone()))
    }

    /// Of the copies, and what is promised to those that are coming.
    pub fn bytes(&self) -> u64 {
        self.shelf.lock().bytes
    }

    /// Where a copy is made, before it is whole.
    pub fn part(&self, company: &CompanyId, upload: &str) -> Place {
        let tag = hex::encode(rand::random::<[u8; TAG_BYTES]>());
        Place::of(&self.directory, company, &format!("{upload}.{tag}{PART}"))
    }

    /// Promises room for `bytes` of a company's. For it, copies are removed that nobody has been lent for longest; none if there would not be enough
    /// all the same.
    pub async fn room(self: &Arc<Cache>, company: &CompanyId, bytes: u64) -> Option<Room> {
        let bounds = (self.bytes_max, self.company_max);
        let leaving = self.shelf.lock().promise(company, bytes, bounds)?;
        let room = Room {
            cache: self.clone(),
            company: company.clone(),
            bytes,
        };
        remove(leaving).await;
        Some(room)
    }

    /// Lends out from now on what is whole in `part`, in the room that was promised. False: there is such a copy already.
    pub async fn keep(
        self: &Arc<Cache>,
        mut room: Room,
        upload: &str,
        part: Place,
    ) -> std::io::Result<bool> {
        let place = blocking(move || part.without(PART)).await?;
        let copy = Kept {
            place,
            bytes: room.bytes,
            used: AtomicU64::new(0),
        };
        let surplus = {
            let mut shelf = self.shelf.lock();
            let surplus = shelf.add(upload, copy);
            if surplus.is_none() {
                shelf.take_back(&room.company, std::mem::take(&mut room.bytes));
            }
            surplus
        };
        if let Some(surplus) = surplus {
            remove(vec![surplus]).await;
            return Ok(false);
        }
        Ok(true)
    }

    /// Removes a copy, lent or not.
    pub async fn forget(&self, upload: &str) {
        let copy = self.shelf.lock().take(upload);
        remove(copy.into_iter().collect()).await;
    }

    /// Removes copies that nobody was lent, of uploads that no file needs any more.
    pub async fn retain(&self, needed: &HashSet<(String, String)>) {
        let leaving = self.shelf.lock().take_needless(needed);
        remove(leaving).await;
    }

    /// Finds the copies of before, the youngest last to go, and removes what is none or is not needed. Called once at start.
    pub async fn scan(self: &Arc<Cache>, needed: HashSet<(String, String)>) -> std::io::Result<()> {
        let directory = self.directory.clone();
        let found = blocking(move || found(&directory, &needed)).await?;
        {
            let mut shelf = self.shelf.lock();
            for (upload, copy) in found {
                shelf.lent += 1;
                shelf.add(&upload, copy);
            }
        }
        // The bound may be a lower one than before.
        let leaving = self.shelf.lock().trim(self.bytes_max, self.company_max);
        remove(leaving).await;
        Ok(())
    }
}

impl Shelf {
    /// As the one that was lent last. Gives it back if there is such a copy already.
    fn add(&mut self, upload: &str, copy: Kept) -> Option<Arc<Kept>> {
        let copy = Arc::new(copy);
        copy.used.store(self.lent, Ordering::Relaxed);
        if self.copies.contains_key(upload) {
            return Some(copy);
        }
        self.bytes += copy.bytes;
        self.copies.insert(upload.to_owned(), copy);
        None
    }

    fn take_needless(&mut self, needed: &HashSet<(String, String)>) -> Vec<Arc<Kept>> {
        let is_needless = |(upload, copy): &(&String, &Arc<Kept>)| {
            let key = (copy.place.company().to_string(), (*upload).clone());
            !is_lent(copy) && !needed.contains(&key)
        };
        let copies = self.copies.iter().filter(is_needless);
        let needless: Vec<String> = copies.map(|(upload, _)| upload.clone()).collect();
        self.take_all(&needless)
    }

    fn take_all(&mut self, uploads: &[String]) -> Vec<Arc<Kept>> {
        let taken = uploads.iter().filter_map(|upload| self.take(upload));
        taken.collect()
    }

    fn take(&mut self, upload: &str) -> Option<Arc<Kept>> {
        let copy = self.copies.remove(upload)?;
        self.bytes -= copy.bytes;
        Some(copy)
    }

    /// Counts `bytes` more of a company's, and takes out what has to leave for them. `None`: it is more than there is, or than the company may have
    /// in use.
    fn promise(
        &mut self,
        company: &CompanyId,
        bytes: u64,
        (bytes_max, company_max): (u64, u64),
    ) -> Option<Vec<Arc<Kept>>> {
        if self.in_use(company) + bytes > company_max {
            return None;
        }
        let excess = (self.bytes + bytes).saturating_sub(bytes_max);
        let (leaving, freed) = self.leaving(excess, Some((company, bytes)), company_max);
        if freed < excess {
            return None;
        }
        self.bytes += bytes;
        *self.promised.entry(company.clone()).or_default() += bytes;
        Some(self.take_all(&leaving))
    }

    /// Undoes a promise, or a part of it.
    fn take_back(&mut self, company: &CompanyId, bytes: u64) {
        self.bytes -= bytes;
        if let Some(promised) = self.promised.get_mut(company) {
            *promised -= bytes;
            if *promised == 0 {
                self.promised.remove(company);
            }
        }
    }

    /// Takes out what is too much, as far as it can leave.
    fn trim(&mut self, bytes_max: u64, company_max: u64) -> Vec<Arc<Kept>> {
        let excess = self.bytes.saturating_sub(bytes_max);
        let (leaving, _) = self.leaving(excess, None, company_max);
        self.take_all(&leaving)
    }

    /// Of a company: what it is lent, and what is promised to copies that are coming and will be lent.
    fn in_use(&self, company: &CompanyId) -> u64 {
        let own = self.copies.values();
        let own = own.filter(|copy| is_lent(copy) && copy.company() == company);
        let lent: u64 = own.map(|copy| copy.bytes).sum();
        lent + self.promised.get(company).copied().unwrap_or_default()
    }

    /// The copies that leave so that `excess` bytes are free, and how many are then: of companies that have more than their share, with what is
    /// `coming` for one, then of all; of those each the ones that nobody was lent for longest.
    fn leaving(
        &self,
        excess: u64,
        coming: Option<(&CompanyId, u64)>,
        company_max: u64,
    ) -> (Vec<String>, u64) {
        let (mut leaving, mut freed) = (Vec::new(), 0);
        if excess == 0 {
            return (leaving, freed);
        }
        let promised = self.promised.iter();
        let promised = promised.map(|(company, bytes)| (company, *bytes));
        let kept = self.copies.values();
        let kept = kept.map(|copy| (copy.company(), copy.bytes));
        let mut companies: HashMap<&CompanyId, u64> = HashMap::new();
        for (company, bytes) in promised.chain(kept).chain(coming) {
            *companies.entry(company).or_default() += bytes;
        }
        let idle = self.copies.iter().filter(|(_, copy)| !is_lent(copy));
        let idle = idle.map(|(upload, copy)| (copy.used.load(Ordering::Relaxed), upload, copy));
        let mut idle: Vec<(u64, &String, &Arc<Kept>)> = idle.collect();
        idle.sort_unstable_by_key(|(used, upload, _)| (*used, *upload));
        for of_all in [false, true] {
            idle.retain(|(_, upload, copy)| {
                let has = companies.entry(copy.company()).or_default();
                let leaves = freed < excess && (of_all || *has > company_max);
                if leaves {
                    *has -= copy.bytes;
                    freed += copy.bytes;
                    leaving.push((*upload).clone());
                }
                !leaves
            });
        }
        (leaving, freed)
    }
}

async fn remove(leaving: Vec<Arc<Kept>>) {
    if !leaving.is_empty() {
        let work = move || leaving.iter().for_each(|copy| copy.place.remove());
        let _ = tokio::task::spawn_blocking(work).await;
    }
}

/// The copies below the directory, the oldest first.
fn found(
    directory: &Path,
    needed: &HashSet<(String, String)>,
) -> std::io::Result<Vec<(String, Kept)>> {
    let mut found = Vec::new();
    for entry in entries(&uploads::root(directory)?, directory) {
        let company = entry.file_name().to_str().and_then(CompanyId::made);
        let is_directory = entry.file_type().is_ok_and(|kind| kind.is_dir());
        let Some(company) = company.filter(|_| is_directory) else {
            continue;
        };
        match entry.open_dir() {
            Ok(copies) => found.append(&mut found_of(directory, &company, &copies, needed)),
            Err(error) => not_looked_at(&directory.join(company.as_str()), &error),
        }
    }
    found.sort_unstable_by_key(|(made, ..)| *made);
    Ok(found
        .into_iter()
        .map(|(_, upload, copy)| (upload, copy))
        .collect())
}

/// A company's, and when each was made. What was one, or would have become one, and is of no use is removed; what has another name is somebody else's.
fn found_of(
    directory: &Path,
    company: &CompanyId,
    copies: &Dir,
    needed: &HashSet<(String, String)>,
) -> Vec<(SystemTime, String, Kept)> {
    let path = directory.join(company.as_str());
    let mut found: Vec<(SystemTime, String, Kept)> = Vec::new();
    for copy in entries(copies, &path) {
        let name = copy.file_name().to_string_lossy().into_owned();
        let Some((upload, _)) = name.split_once('.') else {
            continue;
        };
        if FileId::made(upload).is_none() {
            continue;
        }
        let place = Place::of(directory, company, &name);
        let key = (company.to_string(), upload.to_owned());
        let is_second = found.iter().any(|(_, found, _)| found == upload);
        if name.ends_with(PART) || !needed.contains(&key) || is_second {
            place.remove();
            continue;
        }
        match looked_at(&copy) {
            Ok((made, bytes)) => {
                let used = AtomicU64::new(0);
                let kept = Kept { place, bytes, used };
                found.push((made, upload.to_owned(), kept));
            }
            Err(error) => not_looked_at(&path.join(&name), &error),
        }
    }
    found
}

fn not_looked_at(path: &Path, error: &std::io::Error) {
    let path = path.display();
    tracing::warn!(%path, %error, "a copy of a file could not be looked at, and is not used");
}

/// When a copy was made, and how many bytes it has.
fn looked_at(copy: &DirEntry) -> std::io::Result<(SystemTime, u64)> {
    let mut bytes = 0;
    for file in copy.open_dir()?.entries()? {
        bytes += file?.metadata()?.len();
    }
    let made = copy.metadata()?.modified()?.into_std();
    Ok((made, bytes))
}
