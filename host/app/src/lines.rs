//! Lines: whoever wants something done waits for others of the same company, say, and for nobody else.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// A line for each key that somebody stands for, first come, first served.
pub(crate) struct Lines<K> {
    at_once: usize,
    lines: Mutex<HashMap<K, Arc<Semaphore>>>,
}

impl<K: Clone + Eq + Hash> Lines<K> {
    /// So many of one key go on at once.
    pub fn new(at_once: usize) -> Lines<K> {
        Lines {
            at_once,
            lines: Mutex::default(),
        }
    }

    /// Waits until it is their turn, which ends with what is returned. Nobody closes a line.
    pub async fn stand(&self, key: &K) -> Option<OwnedSemaphorePermit> {
        self.stand_among(key, usize::MAX).await
    }

    /// The same where fewer than `standing_max` stand already, with those whose turn it is; `None` at once where they do not.
    pub async fn stand_among(&self, key: &K, standing_max: usize) -> Option<OwnedSemaphorePermit> {
        let line = {
            let mut lines = self.lines.lock();
            lines.retain(|_, line| Arc::strong_count(line) > 1);
            let line = lines
                .entry(key.clone())
                .or_insert_with(|| Arc::new(Semaphore::new(self.at_once)));
            // Each of them holds it, and so does this map.
            if Arc::strong_count(line) > standing_max {
                return None;
            }
            line.clone()
        };
        line.acquire_owned().await.ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::FutureExt as _;

    /// One waits for its own key alone, and a line that nobody stands in is gone with the next one.
    #[tokio::test]
    async fn nobody_waits_for_another_key() {
        let lines = Lines::new(2);
        let stands = |key: u8| lines.stand(&key).now_or_never().flatten();
        let first = (stands(1), stands(1));
        assert!(first.0.is_some() && first.1.is_some() && stands(1).is_none());
        assert!(stands(2).is_some());
        drop(first);
        assert!(stands(1).is_some());
        assert_eq!(lines.lines.lock().len(), 1);
    }

    /// A line that is as long as it may be takes nobody more, until somebody has left it, from the middle too.
    #[tokio::test]
    async fn a_long_line_takes_nobody_more() {
        let lines = Lines::new(1);
        let stand = || Box::pin(lines.stand_among(&1, 2));
        let first = stand().await;
        assert!(first.is_some());
        let mut second = stand();
        assert!(second.as_mut().now_or_never().is_none());
        assert!(matches!(stand().now_or_never(), Some(None)));
        assert!(lines.stand_among(&2, 2).await.is_some());
        drop(second);
        let mut third = stand();
        assert!(third.as_mut().now_or_never().is_none());
        drop(first);
        assert!(third.await.is_some());
    }
}
