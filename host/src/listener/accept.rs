//! Who is let in. A client that finds no room is told so at once: it is accepted, answered 503 (or 429, when its own address has taken
//! what it may) and closed. Descriptors never run out because of clients, and when they run out because of others, a spare one is given
//! up for as long as it takes to say no.
//!
//! Refuses to know what a refusal says. Start reading at [`Acceptor::run`].

use std::collections::HashMap;
use std::io::{self, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener};
use std::os::fd::AsRawFd;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use hyper::StatusCode;
use ipnet::IpNet;
use souk_api::limiter::network;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, watch};

use super::{Options, Phase, reached};
use crate::descriptors::Spares;
use crate::refusals::{Refuse, whole};

/// After an error of `accept` that nothing can be done about, the next attempt waits.
const ACCEPT_RETRY: Duration = Duration::from_millis(100);
/// A client that is refused has so long to send what it asks and to read the answer: closing earlier would reset the connection.
const REFUSE_FOR: Duration = Duration::from_secs(1);
/// How often the log is told.
const TELL_EVERY: Duration = Duration::from_secs(10);

/// One accepted connection on its way to a worker. The permit counts it until it ends.
pub struct Accepted {
    pub stream: std::net::TcpStream,
    pub peer: SocketAddr,
    pub permit: Permit,
}

/// Counts client connections. Cheap to clone.
#[derive(Clone)]
pub struct Connections {
    permits: Arc<Semaphore>,
    max: usize,
    addresses: Arc<Addresses>,
    counts: Arc<Counts>,
}

/// What happened to clients since the start.
#[derive(Default)]
pub struct Counts {
    /// Connections refused because the host had no room for them.
    pub refused: AtomicU64,
    /// Connections refused because their address had too many.
    pub refused_address: AtomicU64,
    /// Connections cut because their client took its answer too slowly.
    pub too_slow: AtomicU64,
}

/// A place among the connections of the host and of an address.
pub struct Permit {
    _all: OwnedSemaphorePermit,
    _address: Option<Place>,
}

impl Connections {
    pub fn new(options: &Options) -> Connections {
        Connections {
            permits: Arc::new(Semaphore::new(options.connections_max)),
            max: options.connections_max,
            addresses: Arc::new(Addresses {
                max: options.connections_per_address_max,
                proxies: options.proxies.clone(),
                open: Mutex::default(),
            }),
            counts: Arc::default(),
        }
    }

    pub fn open(&self) -> usize {
        self.max.saturating_sub(self.permits.available_permits())
    }

    pub fn counts(&self) -> &Arc<Counts> {
        &self.counts
    }

    pub async fn all_ended(&self) {
        // At most 1,000,000, see `Settings`.
        let all = u32::try_from(self.max).unwrap_or(u32::MAX);
        drop(self.permits.acquire_many(all).await);
    }

    fn admit(&self, peer: IpAddr) -> Result<Permit, StatusCode> {
        let address = self.addresses.enter(peer)?;
        let all = self.permits.clone().try_acquire_owned();
        Ok(Permit {
            _all: all.map_err(|_| StatusCode::SERVICE_UNAVAILABLE)?,
            _address: address,
        })
    }
}

/// Connections by address, so that one client cannot take them all.
struct Addresses {
    max: usize,
    proxies: Vec<IpNet>,
    open: Mutex<HashMap<IpAddr, usize>>,
}

struct Place {
    addresses: Arc<Addresses>,
    address: IpAddr,
}

impl Addresses {
    fn enter(self: &Arc<Self>, peer: IpAddr) -> Result<Option<Place>, StatusCode> {
        if self.proxies.iter().any(|network| network.contains(&peer)) {
            return Ok(None);
        }
        let address = network(peer);
        let mut open = self.lock();
        let own = open.entry(address).or_default();
        if *own >= self.max {
            return Err(StatusCode::TOO_MANY_REQUESTS);
        }
        *own += 1;
        drop(open);
        Ok(Some(Place {
            addresses: self.clone(),
            address,
        }))
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<IpAddr, usize>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut open = self.addresses.lock();
        if let Some(own) = open.get_mut(&self.address) {
            *own -= 1;
            if *own == 0 {
                open.remove(&self.address);
            }
        }
    }
}

pub struct Acceptor {
    pub connections: Connections,
    pub descriptors_max: i32,
    /// Refused clients that are waited for at once; one more is answered and closed without waiting.
    pub refusing_max: usize,
    pub refuse: Refuse,
}

impl Acceptor {
    pub async fn run(
        self,
        listener: TcpListener,
        inboxes: Vec<mpsc::UnboundedSender<Accepted>>,
        mut phase: watch::Receiver<Phase>,
    ) {
        let listener = match tokio::net::TcpListener::from_std(listener) {
            Ok(listener) => listener,
            Err(error) => return tracing::error!(%error, "the listener cannot be used"),
        };
        tokio::select! {
            () = self.accept(listener, inboxes) => {}
            () = reached(&mut phase, Phase::Draining) => {}
        }
    }

    async fn accept(
        self,
        listener: tokio::net::TcpListener,
        inboxes: Vec<mpsc::UnboundedSender<Accepted>>,
    ) {
        let spares = Spares::new();
        let refusing = Arc::new(Semaphore::new(self.refusing_max));
        let mut told = Told::default();
        let mut next = inboxes.iter().cycle();
        // Whether the next connection takes the place of a spare.
        let mut lent = false;
        loop {
            let (stream, peer) = match listener.accept().await {
                // A socket of both families shows IPv4 as a part of IPv6: no network of a proxy would hold it, and all would be one reader.
                Ok((stream, peer)) => (
                    stream,
                    SocketAddr::new(peer.ip().to_canonical(), peer.port()),
                ),
                Err(error) if is_short(&error) && !lent && spares.lend() => {
                    lent = true;
                    continue;
                }
                Err(error) => {
                    told.of(
                        |more| tracing::warn!(%error, more, "a connection could not be accepted"),
                    );
                    tokio::time::sleep(ACCEPT_RETRY).await;
                    spares.refill();
                    lent = false;
                    continue;
                }
            };
            let short = std::mem::take(&mut lent) || stream.as_raw_fd() >= self.descriptors_max;
            let admitted = match short {
                true => Err(StatusCode::SERVICE_UNAVAILABLE),
                false => self.connections.admit(peer.ip()),
            };
            let status = match admitted {
                Ok(permit) => {
                    // Registered with this thread's reactor by accept; the worker registers it with its own.
                    match (stream.into_std(), next.next()) {
                        (Ok(stream), Some(inbox)) => drop(inbox.send(Accepted {
                            stream,
                            peer,
                            permit,
                        })),
                        (Err(error), _) => {
                            tracing::warn!(%error, "a connection could not be handed over");
                        }
                        (_, None) => return,
                    }
                    continue;
                }
                Err(status) => status,
            };
            let counts = &self.connections.counts;
            let (count, reason) = match status {
                StatusCode::TOO_MANY_REQUESTS => {
                    (&counts.refused_address, "its address has too many")
                }
                _ if short => (&counts.refused, "open files are short"),
                _ => (&counts.refused, "there are too many"),
            };
            count.fetch_add(1, Ordering::Relaxed);
            told.of(|more| tracing::warn!(%peer, reason, more, "a client connection was refused"));
            let answer = whole((self.refuse)(status, peer));
            let spares = spares.clone();
            match refusing.clone().try_acquire_owned() {
                Ok(permit) => drop(tokio::spawn(async move {
                    let refusing = refuse(stream, &answer);
                    drop(tokio::time::timeout(REFUSE_FOR, refusing).await);
                    drop(permit);
                    spares.refill();
                })),
                Err(_) => {
                    refuse_at_once(stream, &answer);
                    spares.refill();
                }
            }
        }
    }
}

/// Out of descriptors, of this process or of the whole machine.
fn is_short(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EMFILE | libc::ENFILE))
}

/// Answers whatever is asked, once it is asked, and waits until the client has read that.
async fn refuse(mut stream: TcpStream, answer: &[u8]) -> io::Result<()> {
    let mut asked = [0; 4096];
    if stream.read(&mut asked).await? == 0 {
        return Ok(());
    }
    stream.write_all(answer).await?;
    stream.shutdown().await?;
    while stream.read(&mut asked).await? > 0 {}
    Ok(())
}

/// The same for a client that is not waited for. Most have asked already.
fn refuse_at_once(stream: TcpStream, answer: &[u8]) {
    if let Ok(mut stream) = stream.into_std() {
        // Neither blocks, and what fails is the client's loss.
        drop(stream.read(&mut [0; 4096]));
        drop(stream.write(answer));
    }
}

/// Keeps a flood of clients from being a flood of lines.
#[derive(Default)]
struct Told {
    last: Option<Instant>,
    more: u64,
}

impl Told {
    /// Tells, with how often it was not told before.
    fn of(&mut self, tell: impl FnOnce(u64)) {
        if self.last.is_some_and(|last| last.elapsed() < TELL_EVERY) {
            self.more += 1;
            return;
        }
        self.last = Some(Instant::now());
        tell(std::mem::take(&mut self.more));
    }
}
