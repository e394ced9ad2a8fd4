//! Bytes, carried from a server of this machine to whoever connects, until the wire is torn.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinHandle;

pub struct TornWire {
    pub port: u16,
    /// After how many bytes; `None` while it is whole.
    tears: watch::Sender<Option<usize>>,
    torn: Arc<AtomicUsize>,
    task: JoinHandle<()>,
}

impl TornWire {
    /// To a server at this port.
    pub async fn to(server: u16) -> TornWire {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.expect("a port");
        let port = listener.local_addr().expect("an address").port();
        let (tears, after) = watch::channel(None);
        let torn = Arc::<AtomicUsize>::default();
        let counted = Arc::clone(&torn);
        let task = tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let (after, counted) = (after.clone(), Arc::clone(&counted));
                tokio::spawn(async move {
                    if let Ok(server) = TcpStream::connect(("127.0.0.1", server)).await {
                        carry(client, server, &after, &counted).await;
                    }
                });
            }
        });
        TornWire {
            port,
            tears,
            torn,
            task,
        }
    }

    /// From now on each connection ends after so many bytes more of what the server says; one that is made later, after so many of all.
    pub fn tear(&self, after: usize) {
        self.tears.send_replace(Some(after));
    }

    pub fn mend(&self) {
        self.tears.send_replace(None);
    }

    /// Connections that were torn.
    pub fn torn(&self) -> usize {
        self.torn.load(SeqCst)
    }
}

impl Drop for TornWire {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Until either side has had enough, or the wire is torn.
async fn carry(
    client: TcpStream,
    server: TcpStream,
    after: &watch::Receiver<Option<usize>>,
    torn: &AtomicUsize,
) {
    let _ = (client.set_nodelay(true), server.set_nodelay(true));
    let (mut from_client, to_client) = client.into_split();
    let (from_server, mut to_server) = server.into_split();
    tokio::select! {
        _ = tokio::io::copy(&mut from_client, &mut to_server) => {}
        is_torn = deliver(from_server, to_client, after) => {
            torn.fetch_add(usize::from(matches!(is_torn, Ok(true))), SeqCst);
        }
    }
}

/// Whether the wire was torn.
async fn deliver(
    mut server: impl AsyncRead + Unpin,
    mut client: impl AsyncWrite + Unpin,
    after: &watch::Receiver<Option<usize>>,
) -> io::Result<bool> {
    let mut buffer = vec![0; 16 << 10];
    let mut delivered = 0;
    loop {
        let count = server.read(&mut buffer).await?;
        if count == 0 {
            return Ok(false);
        }
        let after = *after.borrow();
        let left = match after {
            None => count,
            Some(after) => count.min(after.saturating_sub(delivered)),
        };
        client.write_all(&buffer[..left]).await?;
        if left < count {
            return Ok(true);
        }
        // Of a wire that is whole nothing counts, but of one that is made while others are torn everything does.
        delivered = after.map_or(0, |_| delivered + count);
    }
}
