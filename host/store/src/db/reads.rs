//! A connection for reading, and the place of whoever reads by it: so many of one company, say, read at a time. A statement that nobody waits for any
//! more goes on to its end, so a place is not free until every connection is back by which its owner has read, or was thrown away, which ends what a server
//! does by it. Knows no companies. Start reading at [`holding`].

use super::postgres::ANSWERED_WITHIN;
use super::silence::{Asked, give_back, in_time, silent};
use super::transaction::Manager;
use sqlx::pool::PoolConnection;
use sqlx::{Any, AnyConnection, SqlSafeStr};
use sqlx_core::transaction::TransactionManager;
use std::cell::RefCell;
use std::ops::{Deref, DerefMut};
use std::sync::{Arc, Weak};
use tokio::sync::OwnedSemaphorePermit;

tokio::task_local! {
    static PLACE: RefCell<Weak<OwnedSemaphorePermit>>;
}

/// What `work` reads by has this place, too, beside whoever took it.
pub fn holding<F: Future>(
    place: Weak<OwnedSemaphorePermit>,
    work: F,
) -> impl Future<Output = F::Output> {
    PLACE.scope(RefCell::new(place), work)
}

/// The same from now on, within work that is [`holding`] one or none: for whoever takes a place only there.
pub fn hold(place: Weak<OwnedSemaphorePermit>) {
    // Nobody's work: then whoever took it has it alone.
    let _ = PLACE.try_with(|held| held.replace(place));
}

/// That of whoever reads now.
fn held() -> Option<Arc<OwnedSemaphorePermit>> {
    let held = PLACE.try_with(|held| held.borrow().upgrade());
    held.ok().flatten()
}

/// A connection for reading.
pub struct Read {
    connection: PoolConnection<Any>,
    view: View,
    /// Of whoever reads by it.
    place: Option<Arc<OwnedSemaphorePermit>>,
    /// When it was asked last, if a server answers.
    asked: Option<Arc<Asked>>,
}

/// As of when it sees the store.
#[derive(Clone, Copy)]
enum View {
    /// As of each statement.
    Latest,
    /// As of one instant, if somebody still waits for that.
    Begins,
    Snapshot,
}

impl Read {
    pub(super) fn new(connection: PoolConnection<Any>, is_shared: bool) -> Read {
        Read {
            connection,
            view: View::Latest,
            place: held(),
            asked: is_shared.then(Asked::begin),
        }
    }

    /// Sees the store as of one instant from now on.
    pub(super) async fn begin_snapshot(&mut self) -> Result<(), sqlx::Error> {
        let (begin, limit) = match self.asked {
            None => ("BEGIN", None),
            Some(_) => (
                "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY",
                Some(ANSWERED_WITHIN),
            ),
        };
        self.view = View::Begins;
        let begun = Manager::begin(&mut self.connection, Some(begin.into_sql_str()));
        let begun = in_time(limit, begun).await;
        begun.unwrap_or_else(|| Err(silent()))?;
        self.view = View::Snapshot;
        Ok(())
    }
}

impl Drop for Read {
    fn drop(&mut self) {
        let is_shared = self.asked.is_some();
        let is_overdue = self.asked.as_ref().is_some_and(|asked| asked.is_overdue());
        // What begins a snapshot may be on its way to the server, of which sqlx knows nothing yet: whoever had the connection next would see the store as of
        // then, for as long as the connection lasts. (SQLite's thread undoes what nobody waits for.)
        let begins = is_shared && matches!(self.view, View::Begins);
        if begins || is_overdue {
            return self.connection.close_on_drop();
        }
        if let View::Snapshot = self.view {
            Manager::start_rollback(&mut self.connection);
        }
        let place = self.place.take();
        if is_shared || place.is_some() {
            give_back(&mut self.connection, is_shared, place);
        }
    }
}

impl Deref for Read {
    type Target = AnyConnection;
    fn deref(&self) -> &AnyConnection {
        &self.connection
    }
}

impl DerefMut for Read {
    fn deref_mut(&mut self) -> &mut AnyConnection {
        if let Some(asked) = &self.asked {
            asked.again();
        }
        &mut self.connection
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Db, OpenOptions};
    use std::time::Duration;
    use tokio::sync::{Semaphore, oneshot};

    /// Takes a reader a second or so, as one step.
    const LONG: &str = "
        WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 3000000)
        SELECT COUNT(*) FROM n";

    async fn place(places: &Arc<Semaphore>) -> Arc<OwnedSemaphorePermit> {
        let place = tokio::time::timeout(Duration::from_secs(60), places.clone().acquire_owned());
        Arc::new(place.await.expect("a place").unwrap())
    }

    /// Whoever gives a read up has a place all the same until its statement has ended, and no longer; so has who takes one within its work.
    #[tokio::test]
    async fn a_read_that_is_given_up_has_its_place_until_it_has_ended() {
        let directory = tempfile::tempdir().unwrap();
        let url = format!("sqlite:{}", directory.path().join("souk.db").display());
        let db = Db::open(&OpenOptions::new(url)).await.unwrap();
        let places = Arc::new(Semaphore::new(1));
        for takes_it_within in [false, true] {
            let taken = place(&places).await;
            let (begin, begun) = oneshot::channel();
            let (before, within) = match takes_it_within {
                false => (Arc::downgrade(&taken), None),
                true => (Weak::new(), Some(Arc::downgrade(&taken))),
            };
            let reads = holding(before, async {
                if let Some(place) = within {
                    hold(place);
                }
                let mut read = db.read().await.unwrap();
                let _ = begin.send(());
                sqlx::query(LONG).fetch_one(&mut *read).await.unwrap();
            });
            tokio::select! {
                biased;
                () = reads => panic!("it ended at once"),
                begun = begun => begun.unwrap(),
            }
            // Its client is gone.
            drop(taken);
            for _ in 0..16 {
                tokio::task::yield_now().await;
            }
            assert_eq!(places.available_permits(), 0);
            drop(place(&places).await);
        }
    }
}
