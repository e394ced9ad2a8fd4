//! A process and all that it starts, as one process group: they end together, when nobody waits for it any more and when this program is
//! stopped. A group of its own hears nothing of the terminal's Ctrl-C by itself. Knows nothing of what runs in it.

use std::io;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicI32, Ordering};

use tokio::process::{Child, Command};
use tokio::signal::unix::{Signal, SignalKind, signal};

/// The group that runs now, 0 when there is none: signals come to the whole program, which runs one at a time.
static RUNNING: AtomicI32 = AtomicI32::new(0);
/// Programs that a signal has ended say so with this and its number.
const ENDED_BY_SIGNAL: i32 = 128;

/// Ended with all its processes when it is dropped, unless it has ended by itself.
pub struct Group(pub Child);

impl Group {
    pub fn start(command: &mut Command) -> io::Result<Group> {
        listen()?;
        let child = command.process_group(0).kill_on_drop(true).spawn()?;
        RUNNING.store(id(&child).unwrap_or(0), Ordering::SeqCst);
        Ok(Group(child))
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        RUNNING.store(0, Ordering::SeqCst);
        if let Some(id) = id(&self.0) {
            end(id);
        }
    }
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
    let running = RUNNING.swap(0, Ordering::SeqCst);
    if running != 0 {
        end(running);
    }
    std::process::exit(ENDED_BY_SIGNAL + kind.as_raw_value());
}
