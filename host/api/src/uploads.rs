//! Uploads under way: how many bytes of memory they may come to hold, per company and in all.
//!
//! An upload takes its place before a byte of it is read, for as many bytes as it says that it has, and keeps it until its answer is
//! ready. One that finds no place is refused while its client has not sent anything yet. Knows no HTTP. Start reading at [`Uploads::enter`].

use parking_lot::Mutex;
use souk_domain::ids::CompanyId;
use std::collections::HashMap;
use std::sync::Arc;

/// What an upload costs beside its bytes, so that very many small ones do not pass for nothing.
const UPLOAD_BYTES_MIN: u64 = 1 << 20;

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

    /// A place for an upload that holds at most `bytes`. One alone always has a place, or a low bound would forbid what is allowed.
    pub fn enter(self: &Arc<Self>, company: &CompanyId, bytes: u64) -> Result<Place, Full> {
        let bytes = bytes.max(UPLOAD_BYTES_MIN);
        let mut held = self.held.lock();
        let own = held.companies.get(company).copied().unwrap_or_default();
        if own > 0 && own + bytes > self.company_max {
            return Err(Full::Company {
                bytes_max: self.company_max,
            });
        }
        if held.all > 0 && held.all + bytes > self.all_max {
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

    /// A company that is full does not keep another one out, and what ends makes room.
    #[test]
    fn places_are_counted_per_company_and_in_all() {
        let uploads = Arc::new(Uploads::new(4 * MIB, 6 * MIB));
        let (one, two) = (CompanyId::generate(), CompanyId::generate());
        let first = uploads.enter(&one, 3 * MIB).unwrap();
        // A small one counts as much as it costs.
        let second = uploads.enter(&one, 1).unwrap();
        assert_eq!(
            uploads.enter(&one, 1).err(),
            Some(Full::Company { bytes_max: 4 * MIB })
        );
        let third = uploads.enter(&two, 2 * MIB).unwrap();
        assert_eq!(
            uploads.enter(&two, 1).err(),
            Some(Full::Host { bytes_max: 6 * MIB })
        );
        drop(first);
        assert!(uploads.enter(&two, 2 * MIB).is_ok());
        drop((second, third));
        assert_eq!(uploads.bytes(), 0);
        assert!(uploads.held.lock().companies.is_empty());
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
