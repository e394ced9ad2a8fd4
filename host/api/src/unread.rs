//! Answers that are on their way: how many bytes of them each company's clients have not taken yet.
//!
//! A large answer stays in memory until its last byte is on the wire, and who reads slowly keeps it there. So each is counted with its
//! company from the moment it is ready until the listener lets go of its bytes, and a company with too many of them gets no new ones.
//! Sending is dear, too: while others are served, a company's large answers leave at a pace, and what reads the store for it takes turns.
//! Those who have no key are counted together, like one more company, and so are those who read the reference.
//! Knows no HTTP but bodies. Start reading at [`count`].

mod sending;

use crate::arriving::Arriving;
use crate::observed::Said;
use parking_lot::Mutex;
pub use sending::count;
use souk_app::run;
use souk_domain::ids::CompanyId;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Bytes that all together who have no key may leave unread; as many of the reference beside it, which is much larger than anything else
/// that they are answered.
pub const NOBODYS_BYTES_MAX: u64 = 64 << 20;
/// Companies in the table before those that no cached key belongs to are swept: about 100 bytes each.
const COMPANIES_MAX: usize = 10_000;
/// Reads of the host's own records that one company has under way: half of the store's readers, so that others always find one.
const READS_AT_ONCE: usize = 4;
/// The same of all together who have no key: a quarter of the store's readers, from however many addresses they ask.
const NOBODYS_READS_AT_ONCE: usize = 2;
/// Those that wait for one to end; of them that have no key; and for how long at the most.
const READS_WAITING_MAX: u32 = 256;
const NOBODYS_READS_WAITING_MAX: u32 = 64;
const READ_WAIT_MAX: Duration = Duration::from_secs(5);
/// How long a request waits for its turn at the most: of its company some may take long.
const TURN_MAX: Duration = Duration::from_millis(250);

/// What all companies have not read.
pub struct Unread {
    companies: Mutex<HashMap<CompanyId, Arc<Tally>>>,
    nobody: Arc<Tally>,
    reference: Arc<Tally>,
    all: Arc<All>,
}

/// Of all companies together.
#[derive(Default)]
struct All {
    bytes: AtomicU64,
    /// Companies with calls in flight.
    served: AtomicU32,
    /// Of one company.
    bytes_max: u64,
    /// Of one company, at a time.
    turns: usize,
}

/// What one company has not read, and what it has in flight. Each call writes it, on whatever core.
#[repr(align(64))]
pub struct Tally {
    bytes: AtomicU64,
    /// What is there beside it and nobody has asked for yet.
    ahead: AtomicU64,
    /// Of all its keys, that run a connector.
    calls: AtomicU32,
    exports: AtomicU32,
    /// When what it was sent of late would have left at its pace.
    sent: Mutex<Option<Instant>>,
    turns: Arc<Semaphore>,
    readers: Arc<Semaphore>,
    /// Reads that wait for one of them.
    waiting: AtomicU32,
    waiting_max: u32,
    arriving: Arriving,
    said: Said,
    all: Arc<All>,
}

/// While a request has it, its company has one less.
pub type Turn = OwnedSemaphorePermit;

impl Unread {
    /// Both of one company: the bytes that its clients may leave, and how many of its reads go on at a time.
    pub fn new(bytes_max: u64, turns: usize) -> Unread {
        let all = Arc::new(All {
            bytes_max,
            turns,
            ..All::default()
        });
        Unread {
            companies: Mutex::default(),
            nobody: Tally::new(&all, NOBODYS_READS_AT_ONCE, NOBODYS_READS_WAITING_MAX),
            reference: Tally::new(&all, NOBODYS_READS_AT_ONCE, NOBODYS_READS_WAITING_MAX),
            all,
        }
    }

    /// The tally of all who have no key.
    pub fn nobody(&self) -> &Arc<Tally> {
        &self.nobody
    }

    /// The tally of the reference, whoever reads it: who does so slowly is in the way of those only who read it, too.
    pub fn reference(&self) -> &Arc<Tally> {
        &self.reference
    }

    /// The tally of a company, for the cached records of its keys.
    pub fn company(&self, id: &CompanyId) -> Arc<Tally> {
        let mut companies = self.companies.lock();
        if companies.len() >= COMPANIES_MAX {
            companies.retain(|_, tally| Arc::strong_count(tally) > 1);
        }
        let tally = || Tally::new(&self.all, READS_AT_ONCE, READS_WAITING_MAX);
        companies.entry(id.clone()).or_insert_with(tally).clone()
    }

    pub fn bytes(&self) -> u64 {
        self.all.bytes.load(Relaxed)
    }
}

impl Tally {
    fn new(all: &Arc<All>, reads_at_once: usize, waiting_max: u32) -> Arc<Tally> {
        Arc::new(Tally {
            bytes: AtomicU64::new(0),
            ahead: AtomicU64::new(0),
            calls: AtomicU32::new(0),
            exports: AtomicU32::new(0),
            sent: Mutex::default(),
            turns: Arc::new(Semaphore::new(all.turns)),
            readers: Arc::new(Semaphore::new(reads_at_once)),
            waiting: AtomicU32::new(0),
            waiting_max,
            arriving: Arriving::default(),
            said: Said::default(),
            all: all.clone(),
        })
    }

    /// With what is read ahead.
    pub fn bytes(&self) -> u64 {
        self.bytes.load(Relaxed) + self.ahead.load(Relaxed)
    }

    /// What its clients are sending.
    pub(crate) fn arriving(&self) -> &Arriving {
        &self.arriving
    }

    /// What the log has said of its calls that failed.
    pub(crate) fn said(&self) -> &Said {
        &self.said
    }

    /// Calls in flight that run a connector.
    pub fn calls(&self) -> u32 {
        self.calls.load(Relaxed)
    }

    /// Counts one more call in flight, if there are fewer than `calls_max`.
    pub fn begin_call(&self, calls_max: u32) -> bool {
        let before = self.calls.fetch_add(1, Relaxed);
        if before == 0 {
            self.all.served.fetch_add(1, Relaxed);
        }
        let is_begun = before < calls_max;
        if !is_begun {
            self.end_call();
        }
        is_begun
    }

    pub fn end_call(&self) {
        if self.calls.fetch_sub(1, Relaxed) == 1 {
            self.all.served.fetch_sub(1, Relaxed);
        }
    }

    /// Whether calls of another company are in flight.
    pub fn are_others_served(&self) -> bool {
        let own = u32::from(self.calls() > 0);
        self.all.served.load(Relaxed) > own
    }

    /// A place among the company's reads of the host's own records, until it is dropped. `None`: too many wait for one, or this one has for too long.
    pub async fn read(&self) -> Option<Turn> {
        if let Ok(place) = self.readers.clone().try_acquire_owned() {
            return Some(place);
        }
        let before = self.waiting.fetch_add(1, Relaxed);
        let _waiting = Waiting(&self.waiting);
        if before >= self.waiting_max {
            return None;
        }
        let place = tokio::time::timeout(READ_WAIT_MAX, self.readers.clone().acquire_owned());
        place.await.ok()?.ok()
    }

    /// A turn to read the store, for where others are served: those who ask for what needs no source would otherwise have as much of the cores as they
    /// have requests. `None`: it was not to be had for a while, and who waited goes on without one.
    pub async fn turn(&self) -> Option<Turn> {
        if let Ok(turn) = self.turns.clone().try_acquire_owned() {
            return Some(turn);
        }
        let turn = tokio::time::timeout(TURN_MAX, self.turns.clone().acquire_owned());
        turn.await.ok()?.ok()
    }

    /// Counts one more export under way, if there are fewer than `exports_max`. Dropping it ends it.
    pub fn begin_export(self: &Arc<Tally>, exports_max: u32) -> Option<Exporting> {
        let place = Exporting(self.clone());
        let before = self.exports.fetch_add(1, Relaxed);
        (before < exports_max).then_some(place)
    }

    /// Room for an answer that is still to be paid for, until it is dropped: if the company's clients have not left too much unread. Many may ask
    /// at a time, and the bound is passed by one answer, not by as many as are under way. What is read ahead takes no room from it.
    pub(crate) fn room(self: &Arc<Tally>, bytes: u64) -> Result<Charge, run::Unread> {
        self.room_beside(0, bytes)
    }

    /// The same where so many of the bytes that are left unread do not count.
    pub(crate) fn room_beside(
        self: &Arc<Tally>,
        own: u64,
        bytes: u64,
    ) -> Result<Charge, run::Unread> {
        let before = self.bytes.load(Relaxed).saturating_sub(own);
        let bytes_max = self.all.bytes_max;
        match before > bytes_max {
            true => Err(run::Unread {
                bytes: before,
                bytes_max,
            }),
            false => Ok(self.take(bytes)),
        }
    }

    /// Memory that an answer takes beside its bytes, until it is dropped.
    pub(crate) fn take(self: &Arc<Tally>, bytes: u64) -> Charge {
        Charge::new(self.clone(), bytes)
    }

    /// What an export has read and nobody has asked for, until it is dropped.
    pub(crate) fn take_ahead(self: &Arc<Tally>, bytes: u64) -> Ahead {
        self.ahead.fetch_add(bytes, Relaxed);
        self.all.bytes.fetch_add(bytes, Relaxed);
        Ahead {
            tally: self.clone(),
            bytes,
        }
    }

    /// Whether so many bytes may be read ahead.
    pub(crate) fn has_room_ahead(&self, bytes: u64) -> bool {
        self.bytes().saturating_add(bytes) <= self.all.bytes_max
    }
}

/// One that waits.
struct Waiting<'a>(&'a AtomicU32);

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Relaxed);
    }
}

/// An export under way.
pub struct Exporting(Arc<Tally>);

impl Drop for Exporting {
    fn drop(&mut self) {
        self.0.exports.fetch_sub(1, Relaxed);
    }
}

/// Bytes on a tally; dropping it takes them off.
pub(crate) struct Charge {
    tally: Arc<Tally>,
    bytes: u64,
}

impl Charge {
    fn new(tally: Arc<Tally>, bytes: u64) -> Charge {
        tally.bytes.fetch_add(bytes, Relaxed);
        tally.all.bytes.fetch_add(bytes, Relaxed);
        Charge { tally, bytes }
    }

    /// A part of it. What nobody counted beforehand is counted from here on.
    fn split(&mut self, bytes: u64) -> Charge {
        if bytes > self.bytes {
            return Charge::new(self.tally.clone(), bytes);
        }
        self.bytes -= bytes;
        Charge {
            tally: self.tally.clone(),
            bytes,
        }
    }
}

impl Drop for Charge {
    fn drop(&mut self) {
        self.tally.bytes.fetch_sub(self.bytes, Relaxed);
        self.tally.all.bytes.fetch_sub(self.bytes, Relaxed);
    }
}

/// Bytes on a tally that nobody has asked for yet.
pub(crate) struct Ahead {
    tally: Arc<Tally>,
    bytes: u64,
}

impl Drop for Ahead {
    fn drop(&mut self) {
        self.tally.ahead.fetch_sub(self.bytes, Relaxed);
        self.tally.all.bytes.fetch_sub(self.bytes, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each company has its own, and nobody waits for ever.
    #[tokio::test]
    async fn reads_take_turns_while_others_are_served() {
        let unread = Unread::new(1 << 20, 2);
        let [company, other] = [(); 2].map(|()| unread.company(&CompanyId::generate()));
        assert!(company.begin_call(10));
        assert!(!company.are_others_served() && other.are_others_served());
        let mut turns = Vec::new();
        for _ in 0..unread.all.turns {
            turns.push(company.turn().await.unwrap());
        }
        let waiting = company.clone();
        let next = tokio::spawn(async move { waiting.turn().await });
        tokio::task::yield_now().await;
        assert!(other.turn().await.is_some());
        assert!(!next.is_finished());
        turns.pop();
        let _turn = next.await.unwrap().unwrap();

        let begun = Instant::now();
        assert!(company.turn().await.is_none());
        assert!(begun.elapsed() >= TURN_MAX);
    }

    /// However many reads a company has, others find a place, and so do as many of its own as may wait.
    #[tokio::test]
    async fn reads_of_a_company_are_bounded() {
        let unread = Unread::new(1 << 20, 2);
        let [company, other] = [(); 2].map(|()| unread.company(&CompanyId::generate()));
        let mut places = Vec::new();
        for _ in 0..READS_AT_ONCE {
            places.push(company.read().await.unwrap());
        }
        let waiting: Vec<_> = (0..READS_WAITING_MAX)
            .map(|_| {
                let company = company.clone();
                tokio::spawn(async move { company.read().await.is_some() })
            })
            .collect();
        while company.waiting.load(Relaxed) < READS_WAITING_MAX {
            tokio::task::yield_now().await;
        }
        assert!(company.read().await.is_none());
        assert!(other.read().await.is_some());
        drop(places);
        for read in waiting {
            assert!(read.await.unwrap());
        }
        assert_eq!(company.waiting.load(Relaxed), 0);
    }

    /// All who have no key together have fewer than a company, and take none of a company's.
    #[tokio::test]
    async fn reads_of_nobody_are_bounded() {
        let unread = Unread::new(1 << 20, 2);
        let (nobody, company) = (unread.nobody(), unread.company(&CompanyId::generate()));
        let mut places = Vec::new();
        for _ in 0..NOBODYS_READS_AT_ONCE {
            places.push(nobody.read().await.unwrap());
        }
        let waiting = nobody.clone();
        let next = tokio::spawn(async move { waiting.read().await.is_some() });
        while nobody.waiting.load(Relaxed) == 0 {
            tokio::task::yield_now().await;
        }
        assert!(company.read().await.is_some());
        assert!(!next.is_finished());
        places.pop();
        assert!(next.await.unwrap());
    }

    /// However many answers are ready at once, one of them passes the bound; what has left makes room again, and others have their own.
    #[test]
    fn room_is_passed_by_one_answer() {
        const MAX: u64 = 1 << 20;
        let unread = Unread::new(MAX, 2);
        let [company, other] = [(); 2].map(|()| unread.company(&CompanyId::generate()));
        let first = company.room(MAX).unwrap();
        let second = company.room(16 * MAX).unwrap();
        let refused = company.room(1).err().unwrap();
        assert_eq!((refused.bytes, refused.bytes_max), (17 * MAX, MAX));
        assert!(other.room(1).is_ok());
        drop(second);
        assert!(company.room(1).is_ok());
        drop(first);
        assert_eq!(company.bytes(), 0);
    }

    /// What is read ahead leaves an answer that is asked for its room, and is not read where there is none.
    #[test]
    fn reading_ahead_takes_no_answers_room() {
        const MAX: u64 = 1 << 20;
        let unread = Unread::new(MAX, 2);
        let company = unread.company(&CompanyId::generate());
        assert!(company.has_room_ahead(MAX) && !company.has_room_ahead(MAX + 1));
        let ahead = company.take_ahead(2 * MAX);
        assert_eq!(company.bytes(), 2 * MAX);
        assert!(!company.has_room_ahead(0));
        let asked = company.room(MAX + 1).unwrap();
        let refused = company.room(1).err().unwrap();
        assert_eq!((refused.bytes, refused.bytes_max), (MAX + 1, MAX));
        drop(ahead);
        assert_eq!(company.bytes(), MAX + 1);
        assert!(company.room(1).is_err());
        drop(asked);
        assert!(company.has_room_ahead(MAX));
    }
}
