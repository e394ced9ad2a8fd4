//! Copies of files on this host's disk, of files that lie in an object store: as many bytes as the operator allows, those that were lent last.
//!
//! A copy is a directory, `<directory>/<company>/<upload>.<tag>/`, with the file in it. It gets that name when it is whole and on disk, so that
//! what a crash leaves is either one that can be lent or one that the next start removes. One that is lent stays.
//!
//! Refuses to know: where copies come from.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;
use souk_domain::ids::CompanyId;

use super::uploads::{self, Place, blocking};

/// Of randomness, in the name of a copy: one that is leaving is not in the way of the next.
const TAG_BYTES: usize = 8;
/// At the end of the name of a copy that is not whole yet.
const PART: &str = ".part";

pub struct Cache {
    directory: PathBuf,
    bytes_max: u64,
    shelf: Mutex<Shelf>,
}

#[derive(Default)]
struct Shelf {
    /// By upload.
    copies: HashMap<String, Arc<Kept>>,
    /// Of the copies, and what is promised to those that are coming.
    bytes: u64,
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
}

/// Room that is promised to a copy; dropping it takes the promise back.
pub struct Room {
    cache: Arc<Cache>,
    bytes: u64,
}

impl Drop for Room {
    fn drop(&mut self) {
        self.cache.shelf.lock().bytes -= self.bytes;
    }
}

impl Cache {
    /// Empty until [`scan`](Cache::scan).
    pub fn new(directory: PathBuf, bytes_max: u64) -> Arc<Cache> {
        Arc::new(Cache {
            directory,
            bytes_max,
            shelf: Mutex::default(),
        })
    }

    pub fn lend(&self, upload: &str) -> Option<Arc<Kept>> {
        let mut shelf = self.shelf.lock();
        shelf.lent += 1;
        let copy = shelf.copies.get(upload)?;
        copy.used.store(shelf.lent, Ordering::Relaxed);
        Some(copy.clone())
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

    /// Promises room for `bytes`. For it, copies are removed that nobody has been lent for longest; none if there would not be enough all the
    /// same.
    pub async fn room(self: &Arc<Cache>, bytes: u64) -> Option<Room> {
        let leaving = self.shelf.lock().promise(bytes, self.bytes_max)?;
        let room = Room {
            cache: self.clone(),
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
        let surplus = self.shelf.lock().add(upload, copy);
        if let Some(surplus) = surplus {
            remove(vec![surplus]).await;
            return Ok(false);
        }
        room.bytes = 0;
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
                shelf.bytes += copy.bytes;
                shelf.add(&upload, copy);
            }
        }
        // The bound may be a lower one than before.
        drop(self.room(0).await);
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
        self.copies.insert(upload.to_owned(), copy);
        None
    }

    fn take_needless(&mut self, needed: &HashSet<(String, String)>) -> Vec<Arc<Kept>> {
        let is_needless = |(upload, copy): &(&String, &Arc<Kept>)| {
            let key = (copy.place.company().to_string(), (*upload).clone());
            Arc::strong_count(copy) == 1 && !needed.contains(&key)
        };
        let copies = self.copies.iter().filter(is_needless);
        let needless: Vec<String> = copies.map(|(upload, _)| upload.clone()).collect();
        let leaving = needless.iter().filter_map(|upload| self.take(upload));
        leaving.collect()
    }

    fn take(&mut self, upload: &str) -> Option<Arc<Kept>> {
        let copy = self.copies.remove(upload)?;
        self.bytes -= copy.bytes;
        Some(copy)
    }

    /// Counts `bytes` more, and takes out what has to leave for them.
    fn promise(&mut self, bytes: u64, bytes_max: u64) -> Option<Vec<Arc<Kept>>> {
        let mut excess = (self.bytes + bytes).saturating_sub(bytes_max);
        let mut idle: Vec<(u64, u64, String)> = Vec::new();
        if excess > 0 {
            let copies = self.copies.iter();
            let copies = copies.filter(|(_, copy)| Arc::strong_count(copy) == 1);
            idle.extend(copies.map(|(upload, copy)| {
                let used = copy.used.load(Ordering::Relaxed);
                (used, copy.bytes, upload.clone())
            }));
            idle.sort_unstable();
        }
        let mut leaving = Vec::new();
        for (_, freed, upload) in idle {
            if excess == 0 {
                break;
            }
            excess = excess.saturating_sub(freed);
            leaving.push(upload);
        }
        // Nothing to promise is no reason to keep what is too much.
        if excess > 0 && bytes > 0 {
            return None;
        }
        let leaving = leaving.iter().filter_map(|upload| self.take(upload));
        let leaving = leaving.collect();
        self.bytes += bytes;
        Some(leaving)
    }
}

async fn remove(leaving: Vec<Arc<Kept>>) {
    if !leaving.is_empty() {
        let work = move || leaving.iter().for_each(|copy| copy.place.remove());
        let _ = tokio::task::spawn_blocking(work).await;
    }
}

/// The copies below the directory, the oldest first; what is none is removed.
fn found(
    directory: &Path,
    needed: &HashSet<(String, String)>,
) -> std::io::Result<Vec<(String, Kept)>> {
    let mut found = Vec::new();
    let mut uploads_found = HashSet::new();
    for company in uploads::root(directory)?.entries()? {
        let company = company?;
        if !company.file_type()?.is_dir() {
            continue;
        }
        let name = company.file_name().to_string_lossy().into_owned();
        for copy in company.open_dir()?.entries()? {
            let copy = copy?;
            let copy_name = copy.file_name().to_string_lossy().into_owned();
            let place = name
                .parse()
                .map(|company| Place::of(directory, &company, &copy_name));
            let Ok(place) = place else { continue };
            let upload = match copy_name.split_once('.') {
                Some((upload, _)) if !copy_name.ends_with(PART) => upload,
                _ => "",
            };
            let key = (name.clone(), upload.to_owned());
            if !needed.contains(&key) || !uploads_found.insert(upload.to_owned()) {
                place.remove();
                continue;
            }
            let mut bytes = 0;
            for file in copy.open_dir()?.entries()? {
                bytes += file?.metadata()?.len();
            }
            let made = copy.metadata()?.modified()?.into_std();
            let copy = Kept {
                place,
                bytes,
                used: AtomicU64::new(0),
            };
            found.push((made, upload.to_owned(), copy));
        }
    }
    found.sort_unstable_by_key(|(made, ..)| *made);
    Ok(found
        .into_iter()
        .map(|(_, upload, copy)| (upload, copy))
        .collect())
}
