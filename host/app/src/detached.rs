//! Work that is not given up halfway: whoever waits for it may leave, and it goes on.
//!
//! Knows nothing of bounds: whoever begins such work holds a turn or a place until it has ended, or clients that hang up begin as much as they like.
//! Nor has it an end in time: a step that was given up would leave halves. So each thing that it reads of the store has one ([`souk_store::Db::ask`]), and is
//! told as a failure of that step, or a network that swallows one keeps the turn for good.

use souk_store::audit::on_behalf;
use tokio::task::JoinError;

use crate::context::carried;

/// Does `work` to its end, whether or not anybody waits for that, and holds `held` until then. An error is a panic's.
pub async fn to_the_end<T: Send + 'static>(
    held: impl Send + 'static,
    work: impl Future<Output = T> + Send + 'static,
) -> Result<T, JoinError> {
    let work = async move {
        let _held = held;
        work.await
    };
    tokio::spawn(carried(on_behalf(work))).await
}

/// What has to be done at the end of work, whether that returns or panics: done when this is dropped.
pub struct AtTheEnd<F: FnOnce()>(Option<F>);

impl<F: FnOnce()> AtTheEnd<F> {
    pub fn of(act: F) -> AtTheEnd<F> {
        AtTheEnd(Some(act))
    }

    /// It need not be done.
    pub fn spare(mut self) {
        self.0 = None;
    }
}

impl<F: FnOnce()> Drop for AtTheEnd<F> {
    fn drop(&mut self) {
        if let Some(act) = self.0.take() {
            act();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::FutureExt as _;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
    use tokio::sync::Semaphore;

    /// What is begun is done, and holds its turn until then, although nobody waits for it any more.
    #[tokio::test]
    async fn who_leaves_leaves_nothing_half_done() {
        let (turns, source) = (Arc::new(Semaphore::new(1)), Arc::new(Semaphore::new(0)));
        let turn = turns.clone().acquire_owned().await.unwrap();
        let asked = source.clone();
        let mut work = Box::pin(to_the_end(
            turn,
            async move { asked.acquire().await.is_ok() },
        ));
        assert!(work.as_mut().now_or_never().is_none());
        drop(work);
        for _ in 0..3 {
            tokio::task::yield_now().await;
        }
        assert_eq!(turns.available_permits(), 0);
        source.add_permits(1);
        assert!(turns.acquire().await.is_ok());
    }

    /// What has to be done at the end is done once, behind a panic, too, and not where it is spared.
    #[tokio::test]
    async fn a_panic_leaves_nothing_undone() {
        for (breaks, is_spared, times) in [(false, false, 1), (true, false, 1), (false, true, 0)] {
            let done = Arc::new(AtomicUsize::new(0));
            let counted = done.clone();
            let work = to_the_end((), async move {
                let end = AtTheEnd::of(move || {
                    counted.fetch_add(1, Relaxed);
                });
                tokio::task::yield_now().await;
                assert!(!breaks, "a defect");
                if is_spared {
                    end.spare();
                }
            });
            assert_eq!(work.await.is_err(), breaks);
            assert_eq!(done.load(Relaxed), times);
        }
    }
}
