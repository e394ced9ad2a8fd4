//! A wire between the connector and its source that the kit holds in its hand: it can be cut, stalled, spoilt, and handed on byte by byte.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// What becomes of what the source says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    Pass,
    /// A byte at a time: a protocol's messages end where they like.
    Crumbs,
    /// Nothing arrives.
    Stall,
    /// So many bytes of each connection arrive, then it ends.
    CutAfter(usize),
    /// All connections end, and new ones at once.
    Cut,
    /// On connections that are there already some bytes are others, the same ones for the same seed. What is opened meanwhile is not touched: what a
    /// session is told is tried, and not how it opens.
    Spoilt(Spoilt),
}

/// Which bytes are others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spoilt {
    pub seed: u64,
    /// Of so many bytes about two.
    pub span: u64,
}

/// A running relay; it ends when this is dropped.
pub struct Relay {
    pub address: SocketAddr,
    mode: watch::Sender<Mode>,
    counts: Arc<Counts>,
    task: JoinHandle<()>,
}

#[derive(Default)]
struct Counts {
    heard: AtomicUsize,
    spoilt: AtomicUsize,
}

impl Relay {
    /// To `host:port`.
    pub async fn to(host: &str, port: u16) -> io::Result<Relay> {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
        let address = listener.local_addr()?;
        let (mode, seen) = watch::channel(Mode::Pass);
        let counts = Arc::<Counts>::default();
        let (host, counted) = (host.to_owned(), counts.clone());
        let task = tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let (host, seen, counted) = (host.clone(), seen.clone(), counted.clone());
                tokio::spawn(async move {
                    if let Ok(source) = TcpStream::connect((host.as_str(), port)).await {
                        carry(client, source, seen, counted).await;
                    }
                });
            }
        });
        Ok(Relay {
            address,
            mode,
            counts,
            task,
        })
    }

    pub fn set(&self, mode: Mode) {
        self.mode.send_replace(mode);
    }

    /// Bytes that sources have said so far, delivered or not.
    pub fn heard(&self) -> usize {
        self.counts.heard.load(Ordering::Relaxed)
    }

    /// How many bytes were others than the source said.
    pub fn spoilt(&self) -> usize {
        self.counts.spoilt.load(Ordering::Relaxed)
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.mode.send_replace(Mode::Cut);
        self.task.abort();
    }
}

/// Until either side has had enough, or the wire is cut.
async fn carry(
    client: TcpStream,
    source: TcpStream,
    mut mode: watch::Receiver<Mode>,
    counted: Arc<Counts>,
) {
    let _ = client.set_nodelay(true);
    let _ = source.set_nodelay(true);
    let (mut from_client, to_client) = client.into_split();
    let (from_source, mut to_source) = source.into_split();
    let cut = {
        let mut mode = mode.clone();
        async move {
            let _ = mode.wait_for(|mode| *mode == Mode::Cut).await;
        }
    };
    tokio::select! {
        () = cut => {}
        _ = tokio::io::copy(&mut from_client, &mut to_source) => {}
        _ = deliver(from_source, to_client, &mut mode, &counted) => {}
    }
}

async fn deliver(
    mut source: impl AsyncReadExt + Unpin,
    mut client: impl AsyncWriteExt + Unpin,
    mode: &mut watch::Receiver<Mode>,
    counted: &Counts,
) -> io::Result<()> {
    let mut buffer = vec![0; 16 << 10];
    let mut delivered = 0;
    let begun = *mode.borrow();
    let mut spoiler: Option<(Spoilt, Spoiler)> = None;
    loop {
        let count = source.read(&mut buffer).await?;
        if count == 0 {
            return Ok(());
        }
        counted.heard.fetch_add(count, Ordering::Relaxed);
        // What was said while it stalls arrives afterwards.
        let stalls = |mode: &Mode| *mode != Mode::Stall;
        let now = *mode
            .wait_for(stalls)
            .await
            .map_err(|_| io::ErrorKind::BrokenPipe)?;
        match now {
            Mode::Pass | Mode::Stall => client.write_all(&buffer[..count]).await?,
            Mode::Crumbs => {
                for byte in &buffer[..count] {
                    client.write_all(&[*byte]).await?;
                    client.flush().await?;
                    // Each is a read of its own at the other end, more often than not.
                    tokio::task::yield_now().await;
                }
            }
            Mode::CutAfter(bytes) => {
                let left = bytes.saturating_sub(delivered).min(count);
                client.write_all(&buffer[..left]).await?;
                if delivered + count >= bytes {
                    client.flush().await?;
                    return Ok(());
                }
            }
            Mode::Cut => return Ok(()),
            Mode::Spoilt(how) => {
                if now != begun {
                    // Goes on where it was, unless that was with another seed.
                    let mut at_work = match spoiler.take() {
                        Some((known, at_work)) if known == how => at_work,
                        _ => Spoiler::new(how),
                    };
                    let others = at_work.spoil(&mut buffer[..count]);
                    counted.spoilt.fetch_add(others, Ordering::Relaxed);
                    spoiler = Some((how, at_work));
                }
                client.write_all(&buffer[..count]).await?;
            }
        }
        delivered += count;
    }
}

/// Bytes that mean something in many protocols, in lengths above all: none, one, the least and the greatest that have a sign, and what stands for NULL, for an
/// end or for a longer number.
const TELLING: [u8; 8] = [0x00, 0x01, 0x7f, 0x80, 0xfb, 0xfc, 0xfe, 0xff];

/// Changes bytes of a connection, however it is read.
struct Spoiler {
    state: u64,
    span: u64,
    /// Bytes that are still left as they are.
    left: u64,
}

impl Spoiler {
    fn new(how: Spoilt) -> Spoiler {
        // Odd, hence not zero, which would stay zero; and seeds that are neighbours begin far from each other.
        let state = (how.seed ^ 0x5017_5017).wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
        let mut spoiler = Spoiler {
            state,
            span: how.span.max(1),
            left: 0,
        };
        spoiler.left = spoiler.below(spoiler.span);
        spoiler
    }

    /// A number below this one, which is not zero.
    fn below(&mut self, end: u64) -> u64 {
        self.state ^= self.state << 13;
        self.state ^= self.state >> 7;
        self.state ^= self.state << 17;
        // The lower bits are the less random ones.
        (self.state >> 16) % end
    }

    /// Answers how many bytes have become others.
    fn spoil(&mut self, bytes: &mut [u8]) -> usize {
        let mut others = 0;
        for byte in bytes {
            if self.left > 0 {
                self.left -= 1;
                continue;
            }
            let said = *byte;
            *byte = match self.below(3) {
                0 => TELLING[self.below(8) as usize],
                1 => said ^ (1u8 << self.below(8)),
                _ => self.below(256) as u8,
            };
            others += usize::from(*byte != said);
            self.left = self.below(self.span);
        }
        others
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOW: Spoilt = Spoilt { seed: 7, span: 50 };
    const SAID: [u8; 400] = [b'x'; 400];

    /// The same bytes become the same others, whatever reads they come in; with another seed they are other ones.
    #[test]
    fn a_seed_says_which_bytes_are_others() {
        let spoilt = |how: Spoilt, piece: usize| {
            let (mut spoiler, mut bytes) = (Spoiler::new(how), SAID);
            let pieces = bytes.chunks_mut(piece);
            let counted: usize = pieces.map(|piece| spoiler.spoil(piece)).sum();
            let others = bytes.iter().filter(|byte| **byte != b'x').count();
            assert_eq!(counted, others);
            (bytes, others)
        };
        let (whole, others) = spoilt(HOW, SAID.len());
        assert!((2..50).contains(&others), "{others}");
        for piece in [1, 7, 399] {
            assert_eq!(spoilt(HOW, piece).0, whole, "{piece}");
        }
        assert_ne!(spoilt(Spoilt { seed: 8, ..HOW }, 7).0, whole);
        // A span of nothing is one of one.
        assert!(spoilt(Spoilt { span: 0, ..HOW }, 7).1 > 300);
    }

    /// A connection that is there is spoilt until another mode is set; one that is opened meanwhile is not.
    #[tokio::test]
    async fn what_is_opened_meanwhile_is_not_spoilt() {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let port = listener.local_addr().unwrap().port();
        // Echoes.
        let source = tokio::spawn(async move {
            while let Ok((mut client, _)) = listener.accept().await {
                tokio::spawn(async move {
                    let (mut from, mut to) = client.split();
                    let _ = tokio::io::copy(&mut from, &mut to).await;
                });
            }
        });
        let relay = Relay::to("127.0.0.1", port).await.unwrap();
        let open = || TcpStream::connect(relay.address);
        let answered = async |wire: &mut TcpStream| {
            wire.write_all(&SAID).await.unwrap();
            let mut heard = [0; SAID.len()];
            wire.read_exact(&mut heard).await.unwrap();
            heard
        };
        let mut before = open().await.unwrap();
        assert_eq!(answered(&mut before).await, SAID);
        relay.set(Mode::Spoilt(HOW));
        let mut meanwhile = open().await.unwrap();
        assert_eq!(answered(&mut meanwhile).await, SAID);
        assert_eq!(relay.spoilt(), 0);
        assert_ne!(answered(&mut before).await, SAID);
        assert!(relay.spoilt() > 0);
        relay.set(Mode::Spoilt(Spoilt { seed: 8, ..HOW }));
        assert_ne!(answered(&mut meanwhile).await, SAID);
        relay.set(Mode::Pass);
        assert_eq!(answered(&mut before).await, SAID);
        source.abort();
    }
}
