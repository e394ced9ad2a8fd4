//! Servers for the tests of this crate: real sockets, real TLS, and answers that are bytes.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use rustls::ServerConfig;
use rustls_pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio_rustls::TlsAcceptor;

/// Answers every request, on any number of connections, with the same bytes.
pub struct Server {
    pub address: SocketAddr,
    accepted: Arc<AtomicUsize>,
    open: watch::Receiver<usize>,
    heads: Arc<parking_lot::Mutex<Vec<String>>>,
}

impl Server {
    pub async fn start(answer: impl Into<Vec<u8>>) -> Server {
        Server::over(answer.into(), None).await
    }

    /// Under TLS, with the certificate and key of `leaf`.
    pub async fn start_tls(answer: impl Into<Vec<u8>>, leaf: &Leaf) -> Server {
        Server::over(answer.into(), Some(leaf.acceptor())).await
    }

    async fn over(answer: Vec<u8>, tls: Option<TlsAcceptor>) -> Server {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let (count, open) = watch::channel(0);
        let server = Server {
            address: listener.local_addr().unwrap(),
            accepted: Arc::default(),
            open,
            heads: Arc::default(),
        };
        let (accepted, heads) = (server.accepted.clone(), server.heads.clone());
        tokio::spawn(async move {
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                accepted.fetch_add(1, Ordering::SeqCst);
                let (answer, tls, heads) = (answer.clone(), tls.clone(), heads.clone());
                let count = count.clone();
                tokio::spawn(async move {
                    count.send_modify(|open| *open += 1);
                    match tls {
                        None => serve(stream, &answer, &heads).await,
                        Some(tls) => {
                            if let Ok(stream) = tls.accept(stream).await {
                                serve(stream, &answer, &heads).await;
                            }
                        }
                    }
                    count.send_modify(|open| *open -= 1);
                });
            }
        });
        server
    }

    /// Connections that have been made so far.
    pub fn accepted(&self) -> usize {
        self.accepted.load(Ordering::SeqCst)
    }

    pub fn open(&self) -> usize {
        *self.open.borrow()
    }

    /// Waits until so many connections are open.
    pub async fn wait_open(&self, wanted: usize) {
        let mut open = self.open.clone();
        let reached = open.wait_for(|open| *open == wanted);
        let reached = tokio::time::timeout(Duration::from_secs(60), reached).await;
        drop(reached.unwrap_or_else(|_| panic!("{} are open", self.open())));
    }

    /// What has been asked, without bodies.
    pub fn heads(&self) -> Vec<String> {
        self.heads.lock().clone()
    }

    pub fn url(&self, scheme: &str, host: &str) -> String {
        format!("{scheme}://{host}:{}/", self.address.port())
    }
}

/// Until the client closes. Requests have no body.
async fn serve(
    mut stream: impl AsyncRead + AsyncWrite + Unpin,
    answer: &[u8],
    heads: &parking_lot::Mutex<Vec<String>>,
) {
    let mut head = Vec::new();
    loop {
        let mut byte = [0];
        match stream.read(&mut byte).await {
            Ok(1) => head.push(byte[0]),
            _ => return,
        }
        if head.ends_with(b"\r\n\r\n") {
            heads.lock().push(String::from_utf8(head).unwrap());
            head = Vec::new();
            if stream.write_all(answer).await.is_err() || stream.flush().await.is_err() {
                return;
            }
        }
    }
}

/// An authority made for one test.
pub struct Ca(rcgen::CertifiedIssuer<'static, rcgen::KeyPair>);

/// What a server shows.
pub struct Leaf {
    /// Its own certificate, and those of authorities.
    certificates_pem: String,
    key_pem: String,
}

impl Ca {
    /// Each has the same name, and a key of its own.
    pub fn new() -> Ca {
        Ca::named("an authority")
    }

    pub fn named(name: &str) -> Ca {
        let key = rcgen::KeyPair::generate().unwrap();
        Ca(rcgen::CertifiedIssuer::self_signed(authority(name), key).unwrap())
    }

    /// Another one, which this one has signed.
    pub fn over(&self, name: &str) -> Ca {
        let key = rcgen::KeyPair::generate().unwrap();
        Ca(rcgen::CertifiedIssuer::signed_by(authority(name), key, &self.0).unwrap())
    }

    pub fn pem(&self) -> String {
        self.0.pem()
    }

    /// Its own certificate, shown by a server.
    pub fn as_leaf(&self) -> Leaf {
        Leaf {
            certificates_pem: self.0.pem(),
            key_pem: self.0.key().serialize_pem(),
        }
    }

    pub fn leaf(&self, name: &str) -> Leaf {
        let params = rcgen::CertificateParams::new(vec![name.to_owned()]).unwrap();
        let key = rcgen::KeyPair::generate().unwrap();
        Leaf {
            certificates_pem: params.signed_by(&key, &self.0).unwrap().pem(),
            key_pem: key.serialize_pem(),
        }
    }
}

fn authority(name: &str) -> rcgen::CertificateParams {
    let mut params = rcgen::CertificateParams::new(Vec::<String>::new()).unwrap();
    params
        .distinguished_name
        .push(rcgen::DnType::CommonName, name);
    params.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    params
}

impl Leaf {
    /// Shown with authorities' certificates.
    pub fn with<'a>(mut self, authorities: impl IntoIterator<Item = &'a Ca>) -> Leaf {
        for authority in authorities {
            self.certificates_pem.push_str(&authority.pem());
        }
        self
    }

    fn acceptor(&self) -> TlsAcceptor {
        TlsAcceptor::from(Arc::new(self.config(rustls::DEFAULT_VERSIONS)))
    }

    pub fn config(&self, versions: &[&'static rustls::SupportedProtocolVersion]) -> ServerConfig {
        let certificates = CertificateDer::pem_slice_iter(self.certificates_pem.as_bytes());
        let certificates = certificates.collect::<Result<Vec<_>, _>>().unwrap();
        let key = PrivateKeyDer::from_pem_slice(self.key_pem.as_bytes()).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        ServerConfig::builder_with_provider(provider)
            .with_protocol_versions(versions)
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(certificates, key)
            .unwrap()
    }
}

/// Shakes hands with everybody, and holds the line.
pub async fn accept_tls(config: ServerConfig) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let acceptor = TlsAcceptor::from(Arc::new(config));
    tokio::spawn(async move {
        let mut held = Vec::new();
        while let Ok((stream, _)) = listener.accept().await {
            held.push(acceptor.accept(stream).await);
        }
    });
    address
}

/// Shakes hands with everybody, answers the first bytes that come and closes, with TLS's last word or without.
pub async fn closing(
    config: ServerConfig,
    answer: &'static [u8],
    says_goodbye: bool,
) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let acceptor = TlsAcceptor::from(Arc::new(config));
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let mut stream = acceptor.accept(stream).await.unwrap();
            let _ = stream.read(&mut [0; 4 << 10]).await;
            stream.write_all(answer).await.unwrap();
            stream.flush().await.unwrap();
            if says_goodbye {
                stream.shutdown().await.unwrap();
            }
        }
    });
    address
}

/// Shakes hands with the first who comes, and tells how many bytes each of the records has that are said then, until these are so many.
pub async fn records(config: ServerConfig, bytes: usize) -> (SocketAddr, JoinHandle<Vec<usize>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let told = tokio::spawn(async move {
        let (mut socket, _) = listener.accept().await.unwrap();
        let mut tls = rustls::ServerConnection::new(Arc::new(config)).unwrap();
        let (mut lengths, mut all) = (Vec::new(), 0);
        while all < bytes {
            let mut record = vec![0; 5];
            socket.read_exact(&mut record).await.unwrap();
            let length = usize::from(u16::from_be_bytes([record[3], record[4]]));
            record.resize(5 + length, 0);
            socket.read_exact(&mut record[5..]).await.unwrap();
            let mut rest = &record[..];
            while !rest.is_empty() {
                tls.read_tls(&mut rest).unwrap();
            }
            let state = tls.process_new_packets().unwrap();
            let mut said = vec![0; state.plaintext_bytes_to_read()];
            std::io::Read::read_exact(&mut tls.reader(), &mut said).unwrap();
            if !said.is_empty() {
                lengths.push(said.len());
                all += said.len();
            }
            let mut flight = Vec::new();
            while tls.wants_write() {
                tls.write_tls(&mut flight).unwrap();
            }
            socket.write_all(&flight).await.unwrap();
        }
        lengths
    });
    (address, told)
}

/// A server that shakes hands in packets of TDS, in small ones, and answers the first bytes that come bare. Written against MS-TDS: it
/// shares nothing with the client.
pub async fn tds_server(config: ServerConfig, answer: &'static [u8]) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let config = Arc::new(config);
    tokio::spawn(async move {
        while let Ok((mut socket, _)) = listener.accept().await {
            let mut tls = rustls::ServerConnection::new(config.clone()).unwrap();
            tokio::spawn(async move {
                while tls.is_handshaking() {
                    let mut header = [0; 8];
                    socket.read_exact(&mut header).await?;
                    assert_eq!(header[0], 0x12, "a packet of a handshake");
                    let length = usize::from(u16::from_be_bytes([header[2], header[3]])) - 8;
                    let mut payload = vec![0; length];
                    socket.read_exact(&mut payload).await?;
                    let mut rest = &payload[..];
                    while !rest.is_empty() {
                        tls.read_tls(&mut rest)?;
                        let wrong = tls.process_new_packets().is_err();
                        let mut flight = Vec::new();
                        while tls.wants_write() {
                            tls.write_tls(&mut flight)?;
                        }
                        for piece in flight.chunks(500) {
                            let length = (piece.len() as u16 + 8).to_be_bytes();
                            let header = [0x12, 1, length[0], length[1], 0, 0, 1, 0];
                            socket.write_all(&header).await?;
                            socket.write_all(piece).await?;
                        }
                        if wrong {
                            return Ok(());
                        }
                    }
                }
                let mut record = vec![0; 1 << 10];
                let count = socket.read(&mut record).await?;
                tls.read_tls(&mut &record[..count])?;
                tls.process_new_packets().map_err(std::io::Error::other)?;
                std::io::Write::write_all(&mut tls.writer(), answer)?;
                let mut bare = Vec::new();
                tls.write_tls(&mut bare)?;
                socket.write_all(&bare).await
            });
        }
    });
    address
}
