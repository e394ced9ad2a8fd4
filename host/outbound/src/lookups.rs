//! Looks up names, each once at a time for all of one account who wait for it. What was found is told to them and kept for nobody: whoever comes
//! later asks the resolver anew.
//!
//! Refuses to know: which of the addresses may be dialled; whoever asks judges them for itself. Start reading at [`Lookups::find`].

use std::{
    collections::HashMap,
    io,
    net::{SocketAddr, ToSocketAddrs},
    sync::{Arc, Weak},
};

use parking_lot::Mutex;
use tokio::{
    sync::{Semaphore, watch},
    task::spawn_blocking,
};

use crate::{Error, ErrorKind};

/// Addresses tried of one name: a name with more is not waiting for us to reach the last one.
const ADDRESSES_MAX: usize = 8;

type Found = Result<Vec<SocketAddr>, Error>;

/// The look-ups of one account. They block a thread each, some resolvers for half a minute.
#[derive(Debug)]
pub struct Lookups {
    /// As many as this has permits are under way at once.
    pub(crate) places: Arc<Semaphore>,
    /// Belongs to those who wait for it, and to the thread that it blocks.
    by_name: Mutex<HashMap<(String, u16), Weak<Lookup>>>,
    resolve: fn(&str, u16) -> io::Result<Vec<SocketAddr>>,
}

type Lookup = watch::Sender<Stage>;

enum Stage {
    /// For a place.
    Waits,
    Begun,
    Ended(Found),
}

impl Lookups {
    /// So many at once.
    pub fn new(at_once: usize) -> Lookups {
        Lookups::among(Arc::new(Semaphore::new(at_once)))
    }

    /// As many at once as there are places, which others use, too: they share nothing else.
    pub(crate) fn among(places: Arc<Semaphore>) -> Lookups {
        Lookups {
            places,
            by_name: Mutex::default(),
            resolve,
        }
    }

    /// Waits for the look-up of this name, which is begun unless it is under way. Whoever goes away meanwhile takes it from nobody.
    pub(crate) async fn find(&self, host: &str, port: u16) -> Found {
        let lookup = self.join(host, port);
        let mut stage = lookup.subscribe();
        if matches!(*stage.borrow_and_update(), Stage::Waits) {
            // All who wait for this name wait for a place: the first who has one begins.
            tokio::select! {
                biased;
                _ = stage.changed() => {}
                place = self.places.clone().acquire_owned() => self.begin(&lookup, host, port, place),
            }
        }
        // Only the thread has it now: should that end without a word, nobody waits on.
        drop(lookup);
        loop {
            if let Stage::Ended(found) = &*stage.borrow_and_update() {
                return found.clone();
            }
            if stage.changed().await.is_err() {
                return Err(unresolved(host, "the look-up was broken off"));
            }
        }
    }

    fn join(&self, host: &str, port: u16) -> Arc<Lookup> {
        let name = (host.to_owned(), port);
        let mut by_name = self.by_name.lock();
        by_name.retain(|_, lookup| lookup.strong_count() > 0);
        let under_way = by_name
            .get(&name)
            .and_then(Weak::upgrade)
            .filter(|lookup| !matches!(*lookup.borrow(), Stage::Ended(_)));
        under_way.unwrap_or_else(|| {
            let lookup = Arc::new(Lookup::new(Stage::Waits));
            by_name.insert(name, Arc::downgrade(&lookup));
            lookup
        })
    }

    /// Unless somebody else has. Blocks a thread of the runtime until the resolver answers, also when nobody waits any more: so long its place
    /// is taken.
    fn begin(&self, lookup: &Arc<Lookup>, host: &str, port: u16, place: impl Send + 'static) {
        let first = lookup.send_if_modified(|stage| {
            let waits = matches!(stage, Stage::Waits);
            if waits {
                *stage = Stage::Begun;
            }
            waits
        });
        if !first {
            return;
        }
        let (lookup, host, resolve) = (lookup.clone(), host.to_owned(), self.resolve);
        spawn_blocking(move || {
            let found = resolve(&host, port).map_err(|error| unresolved(&host, error));
            drop(place);
            lookup.send_replace(Stage::Ended(found));
        });
    }
}

fn resolve(host: &str, port: u16) -> io::Result<Vec<SocketAddr>> {
    let found = (host, port).to_socket_addrs()?;
    Ok(found.take(ADDRESSES_MAX).collect())
}

fn unresolved(host: &str, why: impl std::fmt::Display) -> Error {
    Error::new(
        ErrorKind::Unreachable,
        format!("{host} cannot be resolved: {why}"),
    )
}

#[cfg(test)]
mod tests {
    use std::{
        net::Ipv4Addr,
        sync::{
            Barrier,
            atomic::{AtomicUsize, Ordering},
        },
    };

    use tokio::task::yield_now;

    use super::*;

    /// How often the resolver was asked. It answers when somebody meets it.
    static ASKED: AtomicUsize = AtomicUsize::new(0);
    static ANSWER: Barrier = Barrier::new(2);

    fn slow(_: &str, port: u16) -> io::Result<Vec<SocketAddr>> {
        ASKED.fetch_add(1, Ordering::SeqCst);
        ANSWER.wait();
        Ok(vec![(Ipv4Addr::LOCALHOST, port).into()])
    }

    async fn answer() {
        let met = spawn_blocking(|| {
            ANSWER.wait();
        });
        met.await.unwrap();
    }

    async fn asked(times: usize) {
        while ASKED.load(Ordering::SeqCst) != times {
            yield_now().await;
        }
    }

    async fn waiting(lookups: &Lookups, count: usize) {
        let waiting = || {
            let by_name = lookups.by_name.lock();
            let under_way = by_name.values().filter_map(Weak::upgrade);
            under_way
                .map(|lookup| lookup.receiver_count())
                .sum::<usize>()
        };
        while waiting() != count {
            yield_now().await;
        }
    }

    /// However many wait for a name, the resolver is asked once, also when whoever came first and whoever has begun it go away. What it
    /// has answered is for nobody who comes later.
    #[tokio::test]
    async fn a_name_is_looked_up_once_for_all_who_wait() {
        let lookups = Arc::new(Lookups {
            resolve: slow,
            ..Lookups::new(2)
        });
        let ask = || {
            let lookups = lookups.clone();
            tokio::spawn(async move { lookups.find("a.example", 443).await })
        };
        let found: SocketAddr = (Ipv4Addr::LOCALHOST, 443).into();

        // The first goes away while it waits for a place, and the one behind it when it has begun.
        let taken = lookups.places.clone().try_acquire_many_owned(2).unwrap();
        let (first, second) = (ask(), ask());
        let mut others: Vec<_> = (0..32).map(|_| ask()).collect();
        waiting(&lookups, 34).await;
        first.abort();
        assert!(first.await.unwrap_err().is_cancelled());
        drop(taken);
        asked(1).await;
        second.abort();
        assert!(second.await.unwrap_err().is_cancelled());
        others.extend((0..32).map(|_| ask()));
        waiting(&lookups, 64).await;
        answer().await;
        for other in others {
            assert_eq!(other.await.unwrap().unwrap(), [found]);
        }
        assert_eq!(ASKED.load(Ordering::SeqCst), 1);
        assert_eq!(lookups.places.available_permits(), 2);

        // One that everybody has left is under way all the same.
        let left = ask();
        asked(2).await;
        left.abort();
        assert!(left.await.unwrap_err().is_cancelled());
        let later = ask();
        waiting(&lookups, 1).await;
        answer().await;
        assert_eq!(later.await.unwrap().unwrap(), [found]);
        assert_eq!(ASKED.load(Ordering::SeqCst), 2);
    }
}
