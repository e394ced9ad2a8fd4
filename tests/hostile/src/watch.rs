//! What a host takes from its machine, as the machine and the host's own metrics say.

use std::time::{Duration, Instant};

use souk_tests::{Client, TestHost, process};

pub const MIB: u64 = 1 << 20;

/// A host that tells its metrics.
pub struct Watched {
    pub host: TestHost,
    metrics: Client,
}

#[derive(Clone, Copy, Debug, Default)]
pub struct Usage {
    /// See [`resident_bytes`].
    pub resident_bytes: u64,
    pub descriptors: usize,
    pub sessions: u64,
    /// Of these, those that nobody uses: they are closed after two minutes, or sooner if somebody needs the room.
    pub idle: u64,
    pub in_flight: u64,
}

impl Watched {
    /// Starts a host whose limits of requests are out of the way.
    pub async fn start(binary: Option<std::path::PathBuf>) -> Watched {
        let listen = format!("127.0.0.1:{}", process::free_port());
        let mut builder = TestHost::builder()
            .env("SOUK_IP_RATE_LIMIT", "1000000000")
            .arg("--metrics-listen", &listen);
        if let Some(binary) = binary {
            builder = builder.binary(binary).compiles_uploads();
        }
        Watched {
            host: builder.start().await,
            metrics: Client::new(&format!("http://{listen}"), None),
        }
    }

    pub async fn usage(&self) -> Usage {
        let text = self.metrics.get("/metrics").await.expect(200);
        let text = text.body.as_str().unwrap_or_default().to_owned();
        let metric = |name: &str| {
            let value = text.lines().find_map(|line| line.strip_prefix(name));
            value
                .and_then(|value| value.trim().parse().ok())
                .unwrap_or_else(|| panic!("no {name} in {text}"))
        };
        let pid = self.host.pid();
        Usage {
            resident_bytes: resident_bytes(pid),
            // Without those of clients, which keep theirs as long as they like.
            descriptors: std::fs::read_dir(format!("/proc/{pid}/fd"))
                .map_or(0, Iterator::count)
                .saturating_sub(metric("souk_client_connections ") as usize),
            sessions: metric("souk_sandbox_sessions_open "),
            idle: metric("souk_sandbox_sessions_idle "),
            in_flight: metric("souk_sandbox_requests_in_flight ")
                + metric("souk_sandbox_requests_queued "),
        }
    }

    /// Does something, and says how much the host had in memory at the most meanwhile.
    pub async fn most_resident<T>(&self, deed: impl Future<Output = T>) -> (u64, T) {
        const PAUSE: Duration = Duration::from_millis(50);
        let mut deed = std::pin::pin!(deed);
        let mut most = resident_bytes(self.host.pid());
        loop {
            tokio::select! {
                done = &mut deed => return (most, done),
                () = tokio::time::sleep(PAUSE) => most = most.max(resident_bytes(self.host.pid())),
            }
        }
    }

    /// Waits until `enough` says so; the last look, whatever it says, when `within` is over.
    pub async fn until(&self, within: Duration, enough: impl Fn(&Usage) -> bool) -> Usage {
        let deadline = Instant::now() + within;
        loop {
            let usage = self.usage().await;
            if enough(&usage) || Instant::now() > deadline {
                return usage;
            }
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
    }
}

/// What the process has in memory, the file of its store aside: that is mapped, and what was read of it stays as long as nobody else needs the
/// room. What its sessions have in common, which is the image that their connector begins with, counts once (`Pss`; `Rss` has it for each of them).
fn resident_bytes(pid: u32) -> u64 {
    let maps = std::fs::read_to_string(format!("/proc/{pid}/smaps")).unwrap_or_default();
    let (mut is_store, mut kib) = (false, 0);
    for line in maps.lines() {
        match line.strip_prefix("Pss:") {
            Some(size) if !is_store => {
                kib += size.trim().trim_end_matches(" kB").parse().unwrap_or(0)
            }
            Some(_) => {}
            // Only a mapping's own line begins with an address.
            None if line
                .as_bytes()
                .first()
                .is_some_and(|byte| !byte.is_ascii_uppercase()) =>
            {
                is_store = line.ends_with(".db");
            }
            None => {}
        }
    }
    kib << 10
}
