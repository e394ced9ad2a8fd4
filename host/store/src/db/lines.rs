//! Whose turn it is to write: each company waits in a line of its own, of which only the first stand in line with others. However much one company
//! wants to change at once, what another one changes, and everybody's charges, wait for as many of its transactions as stand there. All who are
//! not signed in have one line together.

use crate::audit::Party;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Lines before those are swept in which nobody stands: about 100 bytes each.
const LINES_MAX: usize = 1_000;

pub(super) struct Lines {
    /// Of one line, that stand in line with others or write.
    first: usize,
    lines: parking_lot::Mutex<HashMap<Party, Arc<Semaphore>>>,
}

/// A transaction that takes longer is followed by none of its company for as long again: charges, which stand in no company's line, have half of the
/// time at least.
const BRIEF: Duration = Duration::from_millis(10);

/// While anybody has it, its company has one less.
pub(super) type Place = Arc<OwnedSemaphorePermit>;

/// Gives a place back after a transaction that took so long.
pub(super) fn give_back(place: Place, took: Duration) {
    if took > BRIEF {
        tokio::spawn(async move {
            tokio::time::sleep(took).await;
            drop(place);
        });
    }
}

impl Lines {
    pub fn new(first: usize) -> Lines {
        Lines {
            first,
            lines: parking_lot::Mutex::default(),
        }
    }

    /// Waits until only others are before this one. `None`: nobody closes lines.
    pub async fn stand(&self, party: &Party) -> Option<Place> {
        let line = self.line(party);
        line.acquire_owned().await.ok().map(Arc::new)
    }

    fn line(&self, party: &Party) -> Arc<Semaphore> {
        let mut lines = self.lines.lock();
        if lines.len() >= LINES_MAX && !lines.contains_key(party) {
            lines.retain(|_, line| Arc::strong_count(line) > 1);
        }
        lines
            .entry(party.clone())
            .or_insert_with(|| Arc::new(Semaphore::new(self.first)))
            .clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::audit::{self, Act};
    use crate::{Db, OpenOptions, StoreError};
    use futures_util::FutureExt;
    use souk_domain::ids::CompanyId;
    use std::time::Instant;
    use tokio::sync::oneshot;

    fn company() -> Party {
        Party::Company(CompanyId::generate())
    }

    /// After a long transaction its company waits as long again, and after a brief one not at all.
    #[tokio::test]
    async fn a_long_transaction_is_followed_by_a_pause() {
        let (lines, company) = (Lines::new(1), company());
        give_back(lines.stand(&company).await.unwrap(), BRIEF);
        let place = lines.stand(&company).now_or_never().flatten();
        let begun = Instant::now();
        give_back(place.unwrap(), 5 * BRIEF);
        drop(lines.stand(&company).await);
        assert!(begun.elapsed() >= 5 * BRIEF);
    }

    /// Who gives a transaction up while it is at work stands in line until it has ended, and for as long again: else a company whose clients hang up would
    /// have one after the other.
    #[tokio::test]
    async fn a_transaction_that_is_given_up_keeps_its_place() {
        const LONG: &str = "
            WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 3000000)
            SELECT COUNT(*) FROM n";
        let directory = tempfile::tempdir().unwrap();
        let url = format!("sqlite:{}", directory.path().join("souk.db").display());
        let db = Db::open(&OpenOptions::new(url)).await.unwrap();
        let act = Act {
            is_keyless: true,
            ..(*Act::command("a", "/")).clone()
        };
        let (begin, begun) = oneshot::channel();
        let writes = db.write(async |write| -> Result<(), StoreError> {
            let _ = begin.send(());
            sqlx::query(LONG).fetch_one(&mut **write).await?;
            Ok(())
        });
        tokio::select! {
            biased;
            _ = audit::acting(Arc::new(act), writes) => panic!("it ended at once"),
            begun = begun => begun.unwrap(),
        }
        // The task that gives the place back has begun, and waits.
        tokio::task::yield_now().await;
        let lines = &db.inner.lines;
        assert!(lines.stand(&Party::Nobody).now_or_never().is_none());
        let next = tokio::time::timeout(Duration::from_secs(60), lines.stand(&Party::Nobody));
        assert!(next.await.is_ok());
    }

    /// As many of a company as may stand before others; lines in which nobody stands are forgotten, and no others.
    #[test]
    fn a_company_has_so_many_before_others() {
        let lines = Lines::new(2);
        let (one, other) = (company(), company());
        let stands = |party: &Party| lines.stand(party).now_or_never().flatten();
        let places = [stands(&one), stands(&one)];
        assert!(places.iter().all(Option::is_some));
        assert!(stands(&one).is_none() && stands(&other).is_some());
        for _ in 0..=LINES_MAX {
            assert!(stands(&company()).is_some());
        }
        assert!(lines.lines.lock().len() < LINES_MAX);
        assert!(stands(&one).is_none());
        drop(places);
        assert!(stands(&one).is_some());
    }
}
