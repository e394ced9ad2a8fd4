//! A wire between the connector and its source that the kit holds in its hand: it can be cut, stalled, and handed on byte by byte.

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
}

/// A running relay; it ends when this is dropped.
pub struct Relay {
    pub address: SocketAddr,
    mode: watch::Sender<Mode>,
    heard: Arc<AtomicUsize>,
    task: JoinHandle<()>,
}

impl Relay {
    /// To `host:port`.
    pub async fn to(host: &str, port: u16) -> io::Result<Relay> {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
        let address = listener.local_addr()?;
        let (mode, seen) = watch::channel(Mode::Pass);
        let heard = Arc::<AtomicUsize>::default();
        let (host, counted) = (host.to_owned(), heard.clone());
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
            heard,
            task,
        })
    }

    pub fn set(&self, mode: Mode) {
        self.mode.send_replace(mode);
    }

    /// Bytes that sources have said so far, delivered or not.
    pub fn heard(&self) -> usize {
        self.heard.load(Ordering::Relaxed)
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
    counted: Arc<AtomicUsize>,
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
    counted: &AtomicUsize,
) -> io::Result<()> {
    let mut buffer = vec![0; 16 << 10];
    let mut delivered = 0;
    loop {
        let count = source.read(&mut buffer).await?;
        if count == 0 {
            return Ok(());
        }
        counted.fetch_add(count, Ordering::Relaxed);
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
        }
        delivered += count;
    }
}
