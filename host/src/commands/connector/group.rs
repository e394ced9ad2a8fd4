//! A process and all that it starts, as one process group: they end together, when nobody waits for it any more and when this program is
//! stopped. A group of its own hears nothing of the terminal's Ctrl-C by itself. Knows nothing of what runs in it.

use std::io;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use tokio::process::{Child, Command};
use tokio::signal::unix::{Signal, SignalKind, signal};

/// The group that runs now: signals come to the whole program, which runs one at a time. Held while one is started, so that a signal finds either
/// none or the one that is there.
static RUNNING: Mutex<Option<i32>> = Mutex::new(None);
/// Programs that a signal has ended say so with this and its number.
const ENDED_BY_SIGNAL: i32 = 128;

/// Ended with all its processes when it is dropped, unless it has ended by itself.
pub struct Group(pub Child);

impl Group {
    pub fn start(command: &mut Command) -> io::Result<Group> {
        listen()?;
        let mut running = running();
        let child = command.process_group(0).kill_on_drop(true).spawn()?;
        *running = id(&child);
        Ok(Group(child))
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        *running() = None;
        if let Some(id) = id(&self.0) {
            end(id);
        }
    }
}

fn running() -> MutexGuard<'static, Option<i32>> {
    RUNNING.lock().unwrap_or_else(PoisonError::into_inner)
}

/// `None`: it has ended, and another one may have its number.
fn id(child: &Child) -> Option<i32> {
    child.id().and_then(|id| i32::try_from(id).ok())
}

#[allow(unsafe_code, reason = "one system call that touches no memory")]
fn end(group: i32) {
    // SAFETY: it takes two numbers.
    let _ = unsafe { libc::killpg(group, libc::SIGKILL) };
}

/// From here on a signal that stops this program stops what it runs, too.
fn listen() -> io::Result<()> {
    static LISTENING: OnceLock<()> = OnceLock::new();
    if LISTENING.get().is_some() {
        return Ok(());
    }
    // Not a hang-up: who began this with nohup means it to go on.
    for kind in [SignalKind::interrupt(), SignalKind::terminate()] {
        tokio::spawn(stop(signal(kind)?, kind));
    }
    let _ = LISTENING.set(());
    Ok(())
}

async fn stop(mut signal: Signal, kind: SignalKind) {
    signal.recv().await;
    // Kept until the program has ended: nothing is started any more.
    let running = running();
    if let Some(group) = *running {
        end(group);
    }
    std::process::exit(ENDED_BY_SIGNAL + kind.as_raw_value());
}
