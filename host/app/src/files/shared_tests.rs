//! Shared files over an object store in memory: what is lent, kept and refused. Against a real server they are in `tests/operator/objects.rs`.

use std::fs;

use futures_util::future::join_all;
use sha2::{Digest, Sha256};
use tempfile::TempDir;

use super::*;
use crate::files::cache::Kept;

/// Hosts with an object store of their own.
struct World {
    objects: Objects,
    directory: TempDir,
    company: CompanyId,
}

impl World {
    fn new() -> World {
        let store = Arc::new(object_store::memory::InMemory::new());
        World {
            objects: Objects::over(store, "files", "memory"),
            directory: tempfile::tempdir().unwrap(),
            company: CompanyId::generate(),
        }
    }

    /// A host that keeps at most so many bytes.
    fn host(&self, name: &str, bytes_max: u64) -> Arc<SharedFiles> {
        SharedFiles::new(
            self.objects.clone(),
            &self.directory.path().join(name),
            bytes_max,
        )
    }

    /// An upload through `host`.
    async fn upload(&self, host: &Arc<SharedFiles>, upload: &str, content: &[u8]) -> Wanted {
        let part = host.cache.part(&self.company, upload);
        let sink = Sink::create(&part, "a.db").unwrap();
        let sink = sink.write(vec![content.to_vec().into()]).unwrap();
        let sha256 = sink.finish().unwrap();
        let bytes = content.len() as u64;
        host.send(&part, upload, "a.db", bytes).await.unwrap();
        host.keep(part, upload, bytes).await;
        Wanted {
            company: self.company.clone(),
            name: "a.db".to_owned(),
            upload: upload.to_owned(),
            bytes,
            sha256,
        }
    }

    /// What lies in a host's cache.
    fn kept(&self, name: &str) -> Vec<String> {
        let company = self
            .directory
            .path()
            .join(name)
            .join(CACHE)
            .join(self.company.as_str());
        let entries = fs::read_dir(company).into_iter().flatten().flatten();
        let mut names: Vec<String> = entries
            .map(|entry| entry.file_name().to_string_lossy().into_owned())
            .collect();
        names.sort();
        names
    }
}

fn content(lent: &Lent) -> Vec<u8> {
    fs::read(lent.path.join("a.db")).unwrap()
}

/// What one host took in is what another lends, in as many pieces as it takes; those who ask at once are lent one copy.
#[tokio::test]
async fn an_upload_is_fetched_once() {
    let world = World::new();
    let (one, other) = (world.host("one", 1 << 30), world.host("other", 1 << 30));
    let large: Vec<u8> = (0..20_000_000_u32).map(|i| (i % 251) as u8).collect();
    let wanted = world.upload(&one, "fil_1", &large).await;
    let lent = join_all((0..20).map(|_| other.lend(&wanted))).await;
    let lent: Vec<Lent> = lent.into_iter().map(Result::unwrap).collect();
    assert!(lent.iter().all(|one| one.path == lent[0].path));
    assert_eq!(
        hex::encode(Sha256::digest(content(&lent[0]))),
        wanted.sha256
    );
    assert_eq!(world.kept("other").len(), 1);
}

/// The bound holds: what was lent longest ago leaves, what is lent stays, and with nothing that could leave the next file is refused.
#[tokio::test]
async fn copies_leave_that_nobody_uses() {
    let world = World::new();
    let one = world.host("one", 1 << 30);
    let mut wanted = Vec::new();
    for upload in 0..5 {
        let name = format!("fil_{upload}");
        wanted.push(world.upload(&one, &name, &[upload as u8; 100]).await);
    }
    let other = world.host("other", 300);
    for one in &wanted[..3] {
        drop(other.lend(one).await.unwrap());
    }
    let held = other.lend(&wanted[0]).await.unwrap();
    drop(other.lend(&wanted[3]).await.unwrap());
    let kept = world.kept("other");
    let uploads: Vec<&str> = kept
        .iter()
        .map(|name| name.split_once('.').unwrap().0)
        .collect();
    assert_eq!(uploads, ["fil_0", "fil_2", "fil_3"]);
    let _also_held = (other.lend(&wanted[2]).await, other.lend(&wanted[3]).await);
    let refused = other.lend(&wanted[4]).await.err().unwrap();
    assert_eq!(
        (refused.blame, &*refused.code),
        (Blame::Host, "file_without_room")
    );
    assert!(refused.retry_after_ms.is_some());
    assert_eq!(content(&held), [0; 100]);
    assert_eq!(world.kept("other"), kept);
}

/// A gigabyte: what files say here that they have, and an eighth of the cache.
const GIB: u64 = 1 << 30;

/// A cache without an object store.
struct Shelves {
    cache: Arc<Cache>,
    _directory: TempDir,
}

impl Shelves {
    fn new() -> Shelves {
        let directory = tempfile::tempdir().unwrap();
        Shelves {
            cache: Cache::new(directory.path().to_owned(), 8 * GIB),
            _directory: directory,
        }
    }

    /// Keeps a copy and lends it once. Whether there was room for it.
    async fn keep(&self, company: &CompanyId, upload: &str) -> bool {
        let Some(room) = self.cache.room(company, GIB).await else {
            return false;
        };
        let part = self.cache.part(company, upload);
        Sink::create(&part, "a.db").unwrap().finish().unwrap();
        let kept = self.cache.keep(room, upload, part).await.unwrap();
        drop(self.lend(upload));
        kept
    }

    /// `None`: it is not there, or may not be lent now.
    fn lend(&self, upload: &str) -> Option<Arc<Kept>> {
        self.cache.lend(upload).ok().flatten()
    }
}

/// A company has all of the cache until others need room; then what it has beyond half of it leaves, and what it reads next takes the place of its own.
#[tokio::test]
async fn a_company_leaves_half_of_the_cache_to_others() {
    let shelves = Shelves::new();
    let [one, other] = [(); 2].map(|()| CompanyId::generate());
    for number in 0..8 {
        assert!(shelves.keep(&one, &format!("one_{number}")).await);
    }
    assert_eq!(shelves.cache.bytes(), 8 * GIB);
    let others = ["other_0", "other_1", "other_2", "other_3"];
    for upload in others {
        assert!(shelves.keep(&other, upload).await);
    }
    for number in 8..20 {
        assert!(shelves.keep(&one, &format!("one_{number}")).await);
    }
    for upload in others {
        assert!(shelves.lend(upload).is_some(), "{upload} has left");
    }
    let left = (0..20).filter(|number| shelves.lend(&format!("one_{number}")).is_some());
    assert_eq!(left.collect::<Vec<_>>(), [16, 17, 18, 19]);
    assert_eq!(shelves.cache.bytes(), 8 * GIB);
}

/// What sessions have open cannot leave, so one company has at most half of the cache open and on its way: the other half is there for others.
#[tokio::test]
async fn a_company_has_half_of_the_cache_in_use() {
    let shelves = Shelves::new();
    let [one, other] = [(); 2].map(|()| CompanyId::generate());
    let of_one: Vec<String> = (0..8).map(|number| format!("one_{number}")).collect();
    for upload in &of_one {
        assert!(shelves.keep(&one, upload).await);
    }
    let open: Vec<_> = of_one
        .iter()
        .filter_map(|upload| shelves.lend(upload))
        .collect();
    assert_eq!(open.len(), 4);
    assert!(!shelves.keep(&one, "one_8").await);
    // Another session on what is open already takes nothing.
    assert!(shelves.lend("one_0").is_some());
    let mut of_other = Vec::new();
    for upload in ["other_0", "other_1", "other_2", "other_3"] {
        assert!(shelves.keep(&other, upload).await, "{upload}");
        of_other.extend(shelves.lend(upload));
    }
    assert_eq!(of_other.len(), 4);
    drop(open);
    let coming = shelves.cache.room(&one, 4 * GIB).await.unwrap();
    assert!(!shelves.keep(&one, "one_8").await);
    drop(coming);
    assert!(shelves.keep(&one, "one_8").await && shelves.lend("one_8").is_some());
}

/// No copy leaves for a file that the object store does not give.
#[tokio::test]
async fn nothing_leaves_in_vain() {
    let world = World::new();
    let one = world.host("one", 100);
    let kept = world.upload(&one, "fil_1", &[1; 100]).await;
    let missing = world
        .upload(&world.host("other", 100), "fil_2", &[2; 100])
        .await;
    world.objects.delete(&world.company, "fil_2").await.unwrap();
    assert!(one.lend(&missing).await.is_err());
    world.objects.delete(&world.company, "fil_1").await.unwrap();
    assert_eq!(content(&one.lend(&kept).await.unwrap()), [1; 100]);
}

/// After a start what is whole and needed is lent without being fetched; what is neither is gone, and a copy that somebody removed is fetched.
#[tokio::test]
async fn copies_outlive_their_host() {
    let world = World::new();
    let one = world.host("one", 1 << 30);
    let wanted = world.upload(&one, "fil_1", b"whole").await;
    world.upload(&one, "fil_2", b"needless").await;
    let part = one.cache.part(&world.company, "fil_3");
    Sink::create(&part, "a.db").unwrap().finish().unwrap();
    assert_eq!(world.kept("one").len(), 3);
    drop(one);

    let again = world.host("one", 1 << 30);
    let company = world.company.to_string();
    let needed = ["fil_1", "fil_3"].map(|upload| (company.clone(), upload.to_owned()));
    again.cache.scan(needed.into()).await.unwrap();
    let kept = world.kept("one");
    assert_eq!(kept.len(), 1, "{kept:?}");
    world.objects.delete(&world.company, "fil_1").await.unwrap();
    let lent = again.lend(&wanted).await.unwrap();
    assert_eq!(content(&lent), b"whole");

    world
        .upload(&world.host("third", 1 << 30), "fil_1", b"whole")
        .await;
    fs::remove_dir_all(&lent.path).unwrap();
    assert_eq!(content(&again.lend(&wanted).await.unwrap()), b"whole");
}

/// What is no copy, whatever it is called, does not keep a host from finding those that are.
#[tokio::test]
async fn what_is_foreign_in_the_cache_stays() {
    let world = World::new();
    let one = world.host("one", 1 << 30);
    world.upload(&one, "fil_1", b"whole").await;
    drop(one);
    let cache = world.directory.path().join("one").join(CACHE);
    let company = cache.join(world.company.as_str());
    for directory in [cache.join("lost+found/#1"), company.join("lost+found")] {
        fs::create_dir_all(directory).unwrap();
    }
    for file in [cache.join("README"), company.join("fil_2.file")] {
        fs::write(file, "foreign").unwrap();
    }
    let again = world.host("one", 1 << 30);
    let company = world.company.to_string();
    let needed = ["fil_1", "fil_2"].map(|upload| (company.clone(), upload.to_owned()));
    again.cache.scan(needed.into()).await.unwrap();
    assert_eq!(again.cached_bytes(), 5);
    let kept = world.kept("one");
    assert_eq!(kept.len(), 3, "{kept:?}");
}

/// Neither an object of another size nor one of the same size with another content is lent, and the object store is not asked again at once.
#[tokio::test]
async fn what_was_changed_is_refused() {
    let world = World::new();
    let one = world.host("one", 1 << 30);
    for (upload, changed) in [
        ("fil_1", "shorter"),
        ("fil_2", "the same length!"),
        ("fil_3", ""),
    ] {
        let wanted = world.upload(&one, upload, b"what was written").await;
        match changed {
            "" => world.objects.delete(&world.company, upload).await.unwrap(),
            changed => {
                world
                    .upload(&world.host("evil", 1 << 30), upload, changed.as_bytes())
                    .await;
            }
        }
        let other = world.host("other", 1 << 30);
        for _ in 0..2 {
            let refused = other.lend(&wanted).await.err().unwrap();
            assert_eq!(
                (refused.blame, &*refused.code),
                (Blame::Host, "file_damaged")
            );
        }
        // What was begun is removed beside.
        let since = Instant::now();
        while !world.kept("other").is_empty() {
            assert!(since.elapsed() < LENT_WITHIN, "{changed}: it is kept");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }
}
