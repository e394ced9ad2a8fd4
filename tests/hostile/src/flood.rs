//! Keeps requests of one company in flight, on a thread of its own, and counts what comes back.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use bytes::Bytes;
use souk_load::generator::Connection;

/// Nobody waits longer for one answer: above every deadline of the scenarios.
const ANSWER_MAX: Duration = Duration::from_secs(40);
/// After a connection that broke, so that a host without descriptors is not asked a million times.
const PAUSE: Duration = Duration::from_millis(5);

/// A flood under way.
pub struct Flood {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<Tally>>,
    ok: Arc<AtomicU64>,
}

/// What came back.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    /// Answers by status; 0 is a connection that broke, or no answer at all.
    pub statuses: BTreeMap<u16, u64>,
    /// What the first answer of each status but 200 said, and when.
    pub said: BTreeMap<u16, String>,
    pub length: Duration,
}

impl Tally {
    pub fn answers(&self) -> u64 {
        let answered = self.statuses.iter().filter(|(status, _)| **status != 0);
        answered.map(|(_, count)| count).sum()
    }

    pub fn answers_per_second(&self) -> f64 {
        self.answers() as f64 / self.length.as_secs_f64().max(0.001)
    }

    pub fn of(&self, status: u16) -> u64 {
        self.statuses.get(&status).copied().unwrap_or_default()
    }

    /// `502: 1200, 504: 3`.
    pub fn in_words(&self) -> String {
        let words = self.statuses.iter().map(|(status, count)| match status {
            0 => format!("broken: {count}"),
            status => format!("{status}: {count}"),
        });
        words.collect::<Vec<_>>().join(", ")
    }

    /// The same with what the first failure of each status said.
    pub fn in_full(&self) -> String {
        let said = self
            .said
            .iter()
            .map(|(status, said)| format!("\n    {status} {said}"));
        self.in_words() + &said.collect::<String>()
    }

    fn add(&mut self, other: Tally) {
        for (status, count) in other.statuses {
            *self.statuses.entry(status).or_default() += count;
        }
        for (status, said) in other.said {
            self.said.entry(status).or_insert(said);
        }
    }
}

impl Flood {
    /// `clients` requests in flight, each followed by the next as soon as it is answered.
    pub fn start<R>(address: &str, clients: usize, request: R) -> Flood
    where
        R: Fn() -> Bytes + Send + Sync + 'static,
    {
        let (stop, ok) = (Arc::<AtomicBool>::default(), Arc::<AtomicU64>::default());
        let (stopped, counted) = (stop.clone(), ok.clone());
        let address = address.to_owned();
        let request = Arc::new(request);
        let thread = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .expect("a runtime");
            let began = Instant::now();
            let mut all = runtime.block_on(async {
                let clients = (0..clients).map(|_| {
                    let (address, stop, ok) = (address.clone(), stopped.clone(), counted.clone());
                    tokio::spawn(one(address, request.clone(), stop, ok))
                });
                let clients: Vec<_> = clients.collect();
                let mut all = Tally::default();
                for client in clients {
                    all.add(client.await.unwrap_or_default());
                }
                all
            });
            all.length = began.elapsed();
            all
        });
        Flood {
            stop,
            thread: Some(thread),
            ok,
        }
    }

    /// Answers with 200 so far.
    pub fn succeeded(&self) -> u64 {
        self.ok.load(Relaxed)
    }

    /// Hangs up, whatever is still in flight.
    pub fn stop(mut self) -> Tally {
        self.stop.store(true, Relaxed);
        let thread = self.thread.take().expect("a thread");
        thread.join().unwrap_or_default()
    }
}

impl Drop for Flood {
    fn drop(&mut self) {
        self.stop.store(true, Relaxed);
    }
}

async fn one<R: Fn() -> Bytes>(
    address: String,
    request: Arc<R>,
    stop: Arc<AtomicBool>,
    ok: Arc<AtomicU64>,
) -> Tally {
    let mut tally = Tally::default();
    // One wait for the end for all of its requests: they cost what company A's do.
    tokio::select! {
        () = ask(&address, &*request, &mut tally, &ok) => {}
        () = stopped(&stop) => {}
    }
    tally
}

/// Asks until it is dropped.
async fn ask(address: &str, request: &impl Fn() -> Bytes, tally: &mut Tally, ok: &AtomicU64) {
    let (mut connection, began) = (None, Instant::now());
    loop {
        let bytes = request();
        let exchange = async {
            if connection.is_none() {
                connection = Some(Connection::open(address).await?);
            }
            match &mut connection {
                Some(connection) => {
                    let (status, body) = connection.exchange(&bytes).await?;
                    let said = (status != 200).then(|| String::from_utf8_lossy(body).into_owned());
                    Ok((status, said))
                }
                None => anyhow::bail!("no connection"),
            }
        };
        let answer = tokio::time::timeout(ANSWER_MAX, exchange).await;
        let (status, said) = match answer {
            Ok(Ok(answer)) => answer,
            Ok(Err(error)) => (0, Some(format!("{error:#}"))),
            Err(_) => (0, Some(format!("no answer within {ANSWER_MAX:?}"))),
        };
        *tally.statuses.entry(status).or_default() += 1;
        if let Some(said) = said {
            let at = || began.elapsed().as_secs_f64();
            tally
                .said
                .entry(status)
                .or_insert_with(|| format!("after {:.3} s: {said}", at()));
        }
        match status {
            200 => drop(ok.fetch_add(1, Relaxed)),
            0 => {
                connection = None;
                tokio::time::sleep(PAUSE).await;
            }
            _ => {}
        }
    }
}

async fn stopped(stop: &AtomicBool) {
    while !stop.load(Relaxed) {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}
