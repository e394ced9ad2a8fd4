//! The source of the guest `talker`: it speaks in lines, has a number for each session, hangs until another session kills it, and, with a
//! certificate, shakes hands in packets of TDS before anybody may log in.

use std::collections::BTreeMap;
use std::io::{self, Read, Write};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::version::TLS12;
use tokio_rustls::rustls::{ServerConfig, ServerConnection};

use crate::tls::Leaf;

/// A running server; what it has seen is in [`Seen`].
pub struct TalkingServer {
    pub address: SocketAddr,
    seen: Arc<Mutex<Seen>>,
    is_silent: Arc<AtomicBool>,
}

impl Seen {
    /// Sessions that wait to be killed.
    pub fn hanging(&self) -> usize {
        self.hanging.len()
    }
}

/// What a source knows of its sessions.
#[derive(Clone, Debug, Default)]
pub struct Seen {
    /// Sessions that have logged in.
    pub logins: usize,
    pub open: usize,
    /// Which session was killed by which.
    pub kills: Vec<(usize, usize)>,
    /// Sessions whose lines came over TLS.
    pub protected: usize,
    /// Sessions that were taken and are told nothing.
    pub unanswered: usize,
    hanging: BTreeMap<usize, Arc<Notify>>,
}

impl TalkingServer {
    pub async fn start() -> TalkingServer {
        TalkingServer::over(None).await
    }

    /// With TLS 1.2, its handshake in packets of TDS.
    pub async fn start_tds(leaf: &Leaf) -> TalkingServer {
        let certificate =
            CertificateDer::from_pem_slice(leaf.certificate_pem.as_bytes()).expect("a certificate");
        let key = PrivateKeyDer::from_pem_slice(leaf.key_pem.as_bytes()).expect("a key");
        let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_protocol_versions(&[&TLS12])
            .expect("a version")
            .with_no_client_auth()
            .with_single_cert(vec![certificate], key)
            .expect("a certificate and its key");
        TalkingServer::over(Some(Arc::new(config))).await
    }

    async fn over(config: Option<Arc<ServerConfig>>) -> TalkingServer {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address");
        let seen = Arc::<Mutex<Seen>>::default();
        let known = seen.clone();
        let is_silent = Arc::<AtomicBool>::default();
        let says_nothing = is_silent.clone();
        tokio::spawn(async move {
            let mut unanswered = Vec::new();
            while let Ok((socket, _)) = listener.accept().await {
                if says_nothing.load(Ordering::Relaxed) {
                    unanswered.push(socket);
                    known.lock().expect("no panic").unanswered += 1;
                    continue;
                }
                let (config, seen) = (config.clone(), known.clone());
                tokio::spawn(async move {
                    let mut peer = Peer {
                        socket,
                        tls: None,
                        unread: Vec::new(),
                    };
                    // The end of a session is its client's.
                    let _ = talk(&mut peer, config, &seen).await;
                });
            }
        });
        TalkingServer {
            address,
            seen,
            is_silent,
        }
    }

    /// From now on a session is taken, and nothing is said to it.
    pub fn fall_silent(&self) {
        self.is_silent.store(true, Ordering::Relaxed);
    }

    /// Waits until it is so, for half a minute at most.
    pub async fn wait(&self, is: impl Fn(&Seen) -> bool) -> Seen {
        let seen = self.wait_for(Duration::from_secs(30), is).await;
        seen.unwrap_or_else(|| panic!("the source waits: {:?}", self.seen()))
    }

    /// Waits until it is so, for so long at most.
    pub async fn wait_for(&self, limit: Duration, is: impl Fn(&Seen) -> bool) -> Option<Seen> {
        let until = Instant::now() + limit;
        while Instant::now() < until {
            let seen = self.seen();
            if is(&seen) {
                return Some(seen);
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        None
    }

    pub fn seen(&self) -> Seen {
        self.seen.lock().expect("no panic").clone()
    }
}

async fn talk(
    peer: &mut Peer,
    config: Option<Arc<ServerConfig>>,
    seen: &Mutex<Seen>,
) -> io::Result<()> {
    let known = || seen.lock().expect("no panic");
    if let Some(config) = config {
        if peer.line().await? != "TLS" {
            return Ok(());
        }
        peer.say("OK").await?;
        peer.shake_hands(config).await?;
    }
    if peer.line().await? != "LOGIN" {
        return Ok(());
    }
    let number = {
        let mut seen = known();
        seen.logins += 1;
        seen.open += 1;
        seen.protected += usize::from(peer.tls.is_some());
        seen.logins
    };
    let _open = Open(seen);
    peer.say(&number.to_string()).await?;
    loop {
        let line = peer.line().await?;
        let answer = match line.split_once(' ') {
            Some(("ECHO", text)) => text.to_owned(),
            Some(("KILL", whom)) => {
                let whom: usize = whom.parse().map_err(io::Error::other)?;
                let mut seen = known();
                seen.kills.push((whom, number));
                if let Some(hanging) = seen.hanging.get(&whom) {
                    hanging.notify_one();
                }
                "OK".to_owned()
            }
            _ if line == "HANG" => {
                let killed = Arc::<Notify>::default();
                known().hanging.insert(number, killed.clone());
                killed.notified().await;
                known().hanging.remove(&number);
                "KILLED".to_owned()
            }
            _ => return Ok(()),
        };
        peer.say(&answer).await?;
    }
}

struct Open<'a>(&'a Mutex<Seen>);

impl Drop for Open<'_> {
    fn drop(&mut self) {
        self.0.lock().expect("no panic").open -= 1;
    }
}

struct Peer {
    socket: TcpStream,
    tls: Option<ServerConnection>,
    unread: Vec<u8>,
}

impl Peer {
    async fn line(&mut self) -> io::Result<String> {
        loop {
            if let Some(end) = self.unread.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.unread.drain(..=end).collect();
                return Ok(String::from_utf8_lossy(&line[..end]).into_owned());
            }
            let mut buffer = [0; 4096];
            let count = self.socket.read(&mut buffer).await?;
            if count == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            match &mut self.tls {
                None => self.unread.extend_from_slice(&buffer[..count]),
                Some(tls) => {
                    let mut records = &buffer[..count];
                    while !records.is_empty() {
                        tls.read_tls(&mut records)?;
                        let state = tls.process_new_packets().map_err(io::Error::other)?;
                        let mut plain = vec![0; state.plaintext_bytes_to_read()];
                        tls.reader().read_exact(&mut plain)?;
                        self.unread.extend(plain);
                    }
                }
            }
        }
    }

    async fn say(&mut self, line: &str) -> io::Result<()> {
        let mut bytes = format!("{line}\n").into_bytes();
        if let Some(tls) = &mut self.tls {
            tls.writer().write_all(&bytes)?;
            bytes.clear();
            while tls.wants_write() {
                tls.write_tls(&mut bytes)?;
            }
        }
        self.socket.write_all(&bytes).await
    }

    /// Each flight in packets of type 0x12, small ones, so that records are split among them.
    async fn shake_hands(&mut self, config: Arc<ServerConfig>) -> io::Result<()> {
        let mut tls = ServerConnection::new(config).map_err(io::Error::other)?;
        while tls.is_handshaking() {
            let mut header = [0; 8];
            self.socket.read_exact(&mut header).await?;
            if header[0] != 0x12 {
                return Err(io::ErrorKind::InvalidData.into());
            }
            let length = usize::from(u16::from_be_bytes([header[2], header[3]])) - 8;
            let mut records = vec![0; length];
            self.socket.read_exact(&mut records).await?;
            let mut records = &records[..];
            while !records.is_empty() {
                tls.read_tls(&mut records)?;
                let accepted = tls.process_new_packets();
                let mut flight = Vec::new();
                while tls.wants_write() {
                    tls.write_tls(&mut flight)?;
                }
                for piece in flight.chunks(300) {
                    let length = (piece.len() as u16 + 8).to_be_bytes();
                    let header = [0x12, 1, length[0], length[1], 0, 0, 1, 0];
                    self.socket.write_all(&[&header, piece].concat()).await?;
                }
                accepted.map_err(io::Error::other)?;
            }
        }
        self.tls = Some(tls);
        Ok(())
    }
}
