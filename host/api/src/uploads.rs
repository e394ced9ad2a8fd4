//! Uploads under way: how many bytes of memory they may come to hold, per company and in all.
//!
//! An upload takes its place before a byte of it is read, for as many bytes as it says that it has, and keeps it until its answer is
//! ready. One that finds no place is refused while its client has not sent anything yet. Places that are kept for long are others' whom they keep out:
//! the last ones are for companies that have none, the very last for short uploads of those, and while others need more than half of all whoever sends slowly gives its up. Knows no HTTP.
//! Start reading at [`Uploads::enter`].

use parking_lot::Mutex;
use souk_domain::ids::CompanyId;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

/// What an upload costs beside its bytes, so that very many small ones do not pass for nothing.
const UPLOAD_BYTES_MIN: u64 = 1 << 20;
/// An upload is short that takes at most this part of all places, 8 MiB of 512: most connectors are, and any file …
const SHORT_PART: u64 = 64;
/// … also where there are few.
const SHORT_BYTES_MIN: u64 = 2 << 20;
/// What a client may keep the host waiting for before it is looked at how far it is.
const GRACE: Duration = Duration::from_secs(10);
/// In how long as many bytes as a place has have to come where places are short: nine megabits for the largest connector.
const COMES_WITHIN: Duration = Duration::from_secs(60);

pub struct Uploads {
    company_max: u64,
    all_max: u64,
    held: Mutex<Held>,
}

#[derive(Default)]
struct Held {
    all: u64,
    companies: HashMap<CompanyId, u64>,
}

/// Who has no more room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Full {
    Company { bytes_max: u64 },
    Host { bytes_max: u64 },
}

/// Bytes of one upload; dropping it frees them.
pub struct Place {
    uploads: Arc<Uploads>,
    company: CompanyId,
    bytes: u64,
}

impl Uploads {
    pub fn new(company_max: u64, all_max: u64) -> Uploads {
        Uploads {
            company_max,
            all_max,
            held: Mutex::default(),
        }
    }

    /// A place for an upload that holds at most `bytes`. One alone always has a place, or a low bound would forbid what is allowed. The last
    /// quarter is for companies that have nothing under way, and of that half for short uploads: a few companies' long ones take all the rest.
    pub fn enter(self: &Arc<Self>, company: &CompanyId, bytes: u64) -> Result<Place, Full> {
        let bytes = bytes.max(UPLOAD_BYTES_MIN);
        let mut held = self.held.lock();
        let own = held.companies.get(company).copied().unwrap_or_default();
        if own > 0 && own + bytes > self.company_max {
            return Err(Full::Company {
                bytes_max: self.company_max,
            });
        }
        let is_short = bytes <= (self.all_max / SHORT_PART).max(SHORT_BYTES_MIN);
        let all_max = match (own, is_short) {
            (0, true) => self.all_max,
            (0, false) => self.all_max / 8 * 7,
            _ => self.all_max / 4 * 3,
        };
        if held.all > 0 && held.all + bytes > all_max {
            return Err(Full::Host {
                bytes_max: self.all_max,
            });
        }
        held.all += bytes;
        held.companies.insert(company.clone(), own + bytes);
        drop(held);
        Ok(Place {
            uploads: self.clone(),
            company: company.clone(),
            bytes,
        })
    }

    pub fn bytes(&self) -> u64 {
        self.held.lock().all
    }
}

impl Place {
    /// To be asked while its bytes come.
    pub fn coming(&self) -> Coming {
        Coming {
            uploads: self.uploads.clone(),
            bytes: self.bytes,
        }
    }
}

/// How the bytes of an upload come.
pub struct Coming {
    uploads: Arc<Uploads>,
    bytes: u64,
}

impl Coming {
    /// Whether it comes so slowly that it has to give its place up: `received` of it in all the time that its client has kept the host waiting,
    /// while others have more than half of all places.
    pub fn is_in_the_way(&self, received: u64, waited: Duration) -> bool {
        let part = received as f64 / self.bytes as f64;
        let is_slow = waited > GRACE + COMES_WITHIN.mul_f64(part);
        is_slow && self.uploads.bytes().saturating_sub(self.bytes) > self.uploads.all_max / 2
    }

    /// How fast it has to be not to be.
    pub fn bytes_per_second(&self) -> u64 {
        self.bytes.div_ceil(COMES_WITHIN.as_secs())
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut held = self.uploads.held.lock();
        held.all -= self.bytes;
        if let Some(own) = held.companies.get_mut(&self.company) {
            *own -= self.bytes;
            if *own == 0 {
                held.companies.remove(&self.company);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    /// A company that is full does not keep another one out, the last places are for those who have none, and what ends makes room.
    #[test]
    fn places_are_counted_per_company_and_in_all() {
        let uploads = Arc::new(Uploads::new(4 * MIB, 8 * MIB));
        let [one, two, three] = [(); 3].map(|()| CompanyId::generate());
        let first = uploads.enter(&one, 3 * MIB).unwrap();
        // A small one counts as much as it costs.
        let second = uploads.enter(&one, 1).unwrap();
        assert_eq!(
            uploads.enter(&one, 1).err(),
            Some(Full::Company { bytes_max: 4 * MIB })
        );
        let third = uploads.enter(&two, 2 * MIB).unwrap();
        let full = Some(Full::Host { bytes_max: 8 * MIB });
        assert_eq!(uploads.enter(&two, 1).err(), full);
        let fourth = uploads.enter(&three, 2 * MIB).unwrap();
        assert_eq!(uploads.enter(&CompanyId::generate(), 1).err(), full);
        drop((first, fourth));
        assert!(uploads.enter(&two, 2 * MIB).is_ok());
        drop((second, third));
        assert_eq!(uploads.bytes(), 0);
        assert!(uploads.held.lock().companies.is_empty());
    }

    /// Companies whose uploads are as long as they may be leave places for others' short ones, each company's first.
    #[test]
    fn the_last_places_are_for_short_uploads() {
        let uploads = Arc::new(Uploads::new(80 * MIB, 512 * MIB));
        let enter = |mib: u64| uploads.enter(&CompanyId::generate(), mib * MIB);
        let mut long: Vec<_> = (0..7).map(|_| enter(64).unwrap()).collect();
        let full = Some(Full::Host {
            bytes_max: 512 * MIB,
        });
        assert_eq!(enter(64).err(), full);
        assert_eq!(enter(9).err(), full);
        let one = CompanyId::generate();
        let first = uploads.enter(&one, 8 * MIB).unwrap();
        assert_eq!(uploads.enter(&one, MIB).err(), full, "its second one");
        let others: Vec<_> = (0..7).map(|_| enter(8).unwrap()).collect();
        assert_eq!(enter(1).err(), full, "there are no more");
        drop((first, others));
        long.pop();
        assert!(enter(64).is_ok());
    }

    /// Who sends slowly keeps its place as long as others have half of all at most. Where they have more, a place is free again within a minute or so.
    #[test]
    fn who_is_slow_makes_way_where_places_are_short() {
        let uploads = Arc::new(Uploads::new(8 * MIB, 16 * MIB));
        let enter = |mib: u64| uploads.enter(&CompanyId::generate(), mib * MIB).unwrap();
        let (slow, others) = (enter(6), enter(8));
        let (coming, seconds) = (slow.coming(), Duration::from_secs);
        assert_eq!(coming.bytes_per_second(), 104_858);
        assert!(!coming.is_in_the_way(0, seconds(1_000)));
        let more = enter(1);
        assert!(!coming.is_in_the_way(0, seconds(9)));
        assert!(coming.is_in_the_way(0, seconds(11)));
        assert!(!coming.is_in_the_way(3 * MIB, seconds(39)));
        assert!(coming.is_in_the_way(3 * MIB, seconds(41)));
        assert!(coming.is_in_the_way(6 * MIB, seconds(71)));
        drop(more);
        assert!(!coming.is_in_the_way(0, seconds(1_000)));
        drop((slow, others));
    }

    /// What is larger than the bound waits for nobody when it is alone.
    #[test]
    fn one_alone_has_a_place() {
        let uploads = Arc::new(Uploads::new(MIB, MIB));
        let one = CompanyId::generate();
        let place = uploads.enter(&one, 64 * MIB).unwrap();
        assert!(uploads.enter(&one, MIB).is_err());
        drop(place);
    }
}
