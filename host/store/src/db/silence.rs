//! A server that does not answer any more, because a network has lost the connection, say. Whoever reads by it, and the teller, are told so in time, and the
//! connection takes up no place in its pool for good. What begins, ends and writes else has limits of its own ([`postgres`](super::postgres)).
//!
//! Refuses to know statements: of a connection it knows when it was last given to somebody who asks by it. Start reading at [`answered`].

use super::postgres::{GIVEN_BACK_WITHIN, TOLD_EACH_WITHIN, TOLD_WITHIN};
use crate::error::StoreError;
use parking_lot::Mutex;
use sqlx::Any;
use sqlx::pool::PoolConnection;
use std::cell::RefCell;
use std::future::poll_fn;
use std::io;
use std::pin::{Pin, pin};
use std::sync::{Arc, Weak};
use std::task::Poll;
use std::time::Duration;
use tokio::runtime::Handle;
use tokio::time::{Instant, Sleep, sleep_until};

tokio::task_local! {
    /// What somebody reads by who is told if it is not answered.
    static ASKED: RefCell<Vec<Weak<Asked>>>;
}

/// When a connection was last given to somebody who asks by it. Dropped with the connection.
pub(super) struct Asked(Mutex<Instant>);

impl Asked {
    /// Now for the first time, by somebody who says himself how long he waits.
    pub fn now() -> Arc<Asked> {
        Arc::new(Asked(Mutex::new(Instant::now())))
    }

    /// The same by somebody who reads.
    pub fn begin() -> Arc<Asked> {
        let asked = Asked::now();
        // Elsewhere nobody is told: whoever reads there has a limit of his own, or ends with the process.
        let _ = ASKED.try_with(|all| all.borrow_mut().push(Arc::downgrade(&asked)));
        asked
    }

    pub fn again(&self) {
        *self.0.lock() = Instant::now();
    }

    fn at(&self) -> Instant {
        *self.0.lock()
    }

    /// So long ago that nobody waits for its connection any more.
    pub fn is_overdue(&self) -> bool {
        self.at().elapsed() >= GIVEN_BACK_WITHIN
    }
}

/// What becomes of `work` within its limit, if there is one.
pub(crate) async fn in_time<T>(
    limit: Option<Duration>,
    work: impl Future<Output = T>,
) -> Option<T> {
    match limit {
        Some(limit) => tokio::time::timeout(limit, work).await.ok(),
        None => Some(work.await),
    }
}

/// Of a server that has not answered in time.
pub(super) fn silent() -> sqlx::Error {
    let message = "PostgreSQL does not answer";
    sqlx::Error::Io(io::Error::new(io::ErrorKind::TimedOut, message))
}

/// `work`, if each thing that it reads by a server's connection is answered within this time; else it is given up, as by a client that hangs up.
pub(crate) async fn answered<T, E: From<StoreError>>(
    within: Duration,
    work: impl Future<Output = Result<T, E>>,
) -> Result<T, E> {
    let since = || ASKED.with(|all| oldest(&mut all.borrow_mut()));
    let done = ASKED.scope(RefCell::default(), heard(within, since, work));
    match done.await {
        Some(done) => done,
        None => Err(StoreError::from(silent()).into()),
    }
}

/// What becomes of `work`, unless what was `asked` then is not answered for so long.
async fn heard<T>(
    within: Duration,
    asked: impl Fn() -> Option<Instant>,
    work: impl Future<Output = T>,
) -> Option<T> {
    let mut work = pin!(work);
    let mut alarm: Option<Pin<Box<Sleep>>> = None;
    let watch = poll_fn(|context| {
        if let Poll::Ready(done) = work.as_mut().poll(context) {
            return Poll::Ready(Some(done));
        }
        let Some(asked) = asked() else {
            return Poll::Pending;
        };
        let until = asked + within;
        let alarm = alarm.get_or_insert_with(|| Box::pin(sleep_until(until)));
        if alarm.deadline() != until {
            alarm.as_mut().reset(until);
        }
        alarm.as_mut().poll(context).map(|()| None)
    });
    watch.await
}

/// When the first of those was asked that have not been given back.
fn oldest(all: &mut Vec<Weak<Asked>>) -> Option<Instant> {
    all.retain(|asked| asked.strong_count() > 0);
    let asked = all.iter().filter_map(Weak::upgrade);
    asked.map(|asked| asked.at()).min()
}

/// How long the teller waits for what it does in one transaction: [`TOLD_WITHIN`] for all of it, [`TOLD_EACH_WITHIN`] for each answer. For a store of this
/// host's own, which always answers, as long as it takes.
pub(crate) struct Patience(Option<Arc<Asked>>);

impl Patience {
    /// `asked`: by the transaction's connection, if a server answers.
    pub(super) fn of(asked: Option<Arc<Asked>>) -> Patience {
        Patience(asked)
    }

    /// What becomes of `work`, if it does not end before that.
    pub(crate) async fn with<T>(self, work: impl Future<Output = T>) -> Option<T> {
        let Some(asked) = self.0 else {
            return Some(work.await);
        };
        let each = heard(TOLD_EACH_WITHIN, || Some(asked.at()), work);
        in_time(Some(TOLD_WITHIN), each).await.flatten()
    }
}

/// Gives a connection back as it would be by itself, which is when whatever it was asked has ended; one to a server in time, or it is thrown away.
/// `held` is held until then.
pub(super) fn give_back(
    connection: &mut PoolConnection<Any>,
    is_shared: bool,
    held: impl Send + 'static,
) {
    if let Ok(runtime) = Handle::try_current() {
        let given_back = connection.return_to_pool();
        runtime.spawn(async move {
            in_time(is_shared.then_some(GIVEN_BACK_WITHIN), given_back).await;
            drop(held);
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Who waits for an answer that does not come is told. Who asks again and again is not, nor who waits for something else.
    #[tokio::test]
    async fn only_an_answer_that_does_not_come_is_given_up() {
        const WITHIN: Duration = Duration::from_millis(500);
        let unanswered = async {
            let _asked = Asked::begin();
            std::future::pending::<Result<(), StoreError>>().await
        };
        let told = tokio::time::timeout(Duration::from_secs(60), answered(WITHIN, unanswered));
        let told = told.await.expect("in time");
        assert!(matches!(told, Err(StoreError::Unavailable(_))), "{told:?}");
        let answers = async {
            let asked = Asked::begin();
            for _ in 0..15 {
                tokio::time::sleep(WITHIN / 10).await;
                asked.again();
            }
            drop(asked);
            tokio::time::sleep(2 * WITHIN).await;
            Ok::<_, StoreError>(7)
        };
        assert_eq!(answered(WITHIN, answers).await.unwrap(), 7);
    }
}
