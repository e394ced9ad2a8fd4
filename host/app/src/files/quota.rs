//! What the files of one company may take together, counting what its uploads under way have been promised.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use souk_domain::ids::CompanyId;

use super::error::FileError;
use crate::lines::Lines;

/// Large enough for the datasets of an analytics seller, small enough to copy in a minute.
pub const FILE_BYTES_MAX: u64 = 1 << 30;
/// All files of one company together: what one company may take of a disk that all share. The operator may say otherwise.
pub const COMPANY_BYTES_MAX: u64 = 16 << 30;
/// All files of one company: a list of them stays readable.
pub const COMPANY_FILES_MAX: i64 = 1_000;

/// How much of the disk each company may take, and what its uploads under way have been promised of that.
pub struct Quota {
    company_max: u64,
    promised: Mutex<HashMap<CompanyId, u64>>,
    /// Who gives some back: one of a company at a time.
    pub(super) deleting: Lines<CompanyId>,
}

impl Quota {
    pub fn new(company_max: u64) -> Quota {
        Quota {
            company_max,
            promised: Mutex::default(),
            deleting: Lines::new(1),
        }
    }

    /// Room for one upload, beside `others` bytes of files. Nothing is promised yet.
    pub(super) fn room(self: &Arc<Quota>, company: &CompanyId, others: u64) -> Room {
        Room {
            quota: self.clone(),
            company: company.clone(),
            others,
            promised: 0,
        }
    }

    pub(super) fn check(&self, bytes: u64) -> Result<(), FileError> {
        match bytes > self.company_max {
            true => Err(FileError::CompanyFull {
                max: self.company_max,
            }),
            false => Ok(()),
        }
    }
}

/// What is promised to one upload; dropping it takes the promise back.
pub(super) struct Room {
    quota: Arc<Quota>,
    company: CompanyId,
    others: u64,
    promised: u64,
}

impl Room {
    /// Sees to it that `bytes` in all are promised, or refuses.
    pub fn grow(&mut self, bytes: u64) -> Result<(), FileError> {
        if bytes > FILE_BYTES_MAX {
            return Err(FileError::TooLarge {
                max: FILE_BYTES_MAX,
            });
        }
        let Some(more) = bytes.checked_sub(self.promised).filter(|more| *more > 0) else {
            return Ok(());
        };
        let mut promised = self.quota.promised.lock();
        let together = promised.get(&self.company).copied().unwrap_or_default() + more;
        self.quota.check(self.others + together)?;
        promised.insert(self.company.clone(), together);
        self.promised = bytes;
        Ok(())
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        let mut promised = self.quota.promised.lock();
        if let Some(together) = promised.get_mut(&self.company) {
            *together -= self.promised;
            if *together == 0 {
                promised.remove(&self.company);
            }
        }
    }
}
