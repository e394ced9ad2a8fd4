//! Work that goes on beside requests until the host stops, as whoever stops it holds it.

use std::time::Instant;

use tokio::sync::watch;
use tokio::task::JoinHandle;

pub struct Background {
    stop: watch::Sender<bool>,
    task: JoinHandle<()>,
    what: &'static str,
}

impl Background {
    /// Starts on the current runtime. The work is told when to begin nothing more, and ends when all that it has begun has ended. `what`
    /// stands in the log if it is cut, and is done again when its lease has ended.
    pub(crate) fn start<F: Future<Output = ()> + Send + 'static>(
        what: &'static str,
        work: impl FnOnce(watch::Receiver<bool>) -> F,
    ) -> Background {
        let (stop, stopped) = watch::channel(false);
        Background {
            stop,
            task: tokio::spawn(work(stopped)),
            what,
        }
    }

    /// Begins nothing more.
    pub fn stop(&self) {
        self.stop.send_replace(true);
    }

    /// Waits for what is in flight until `deadline`.
    pub async fn shut_down(self, deadline: Instant) {
        self.stop();
        let mut task = self.task;
        if tokio::time::timeout_at(deadline.into(), &mut task)
            .await
            .is_err()
        {
            tracing::warn!("{} in flight were cut; they will be done again", self.what);
            task.abort();
        }
    }
}
