//! Child processes that never outlive the test process.

use std::io;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command};
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU16, Ordering::Relaxed};
use std::sync::mpsc::{Sender, channel};

type Job = (Command, Sender<io::Result<Child>>);

/// `PR_SET_PDEATHSIG` fires when the *thread* that spawned the child ends, and test threads come and
/// go. So one thread that lives as long as the process spawns them all.
static SPAWNER: LazyLock<Sender<Job>> = LazyLock::new(|| {
    let (jobs, inbox) = channel::<Job>();
    std::thread::spawn(move || {
        for (mut command, reply) in inbox {
            let _ = reply.send(command.spawn());
        }
    });
    jobs
});

/// Spawns `command`; the kernel sends it `signal` when this process dies.
pub fn spawn_tied(mut command: Command, signal: libc::c_int) -> io::Result<Child> {
    // SAFETY: prctl is async-signal-safe and touches only the child.
    #[allow(unsafe_code)]
    unsafe {
        command.pre_exec(move || {
            libc::prctl(libc::PR_SET_PDEATHSIG, signal);
            Ok(())
        });
    }
    let (reply, answer) = channel();
    SPAWNER.send((command, reply)).map_err(io::Error::other)?;
    answer.recv().map_err(io::Error::other)?
}

/// Sends a signal to a child that is still ours to reap.
pub fn signal(child: &Child, signal: libc::c_int) {
    // SAFETY: kill has no memory effects; the pid is not reaped yet, so it cannot be somebody else's.
    #[allow(unsafe_code)]
    unsafe {
        libc::kill(child.id() as libc::pid_t, signal);
    }
}

/// Sends a signal to a child whose [`Child`] somebody else has and has not reaped.
pub fn signal_pid(pid: u32, signal: libc::c_int) {
    // SAFETY: kill has no memory effects.
    #[allow(unsafe_code)]
    unsafe {
        libc::kill(pid as libc::pid_t, signal);
    }
}

/// A TCP port of the loopback interface that nobody listens on right now, and that the system gives to nobody's connection of its own accord:
/// those begin at 32,768 on Linux.
pub fn free_port() -> u16 {
    const PORTS: std::ops::Range<u16> = 10_000..32_000;
    static NEXT: AtomicU16 = AtomicU16::new(0);
    // Test binaries run side by side: each begins elsewhere.
    let begin = std::process::id().wrapping_mul(7_919);
    let count = u32::from(PORTS.end - PORTS.start);
    PORTS
        .map(|_| {
            let next = begin.wrapping_add(u32::from(NEXT.fetch_add(1, Relaxed)));
            PORTS.start + u16::try_from(next % count).unwrap_or_default()
        })
        .find(|port| std::net::TcpListener::bind(("127.0.0.1", *port)).is_ok())
        .expect("the loopback interface has a free port")
}

/// A server's program: on the `PATH`, or where Debian has what only root runs. `wanted` says what to install where there is none.
pub fn server_program(name: &str, wanted: &str) -> PathBuf {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&path)
        .chain(["/usr/sbin".into(), "/usr/bin".into()])
        .map(|home| home.join(name))
        .find(|path| path.is_file());
    found.unwrap_or_else(|| panic!("{name} was not found: install {wanted}"))
}
