//! Servers for the tests of this crate: real sockets, real TLS, and answers that are bytes.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use rustls::ServerConfig;
use rustls_pki_types::{PrivateKeyDer, pem::PemObject};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::sync::watch;
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

    /// Waits until so many connections are open.
    pub async fn wait_open(&self, wanted: usize) {
        let mut open = self.open.clone();
        open.wait_for(|open| *open == wanted).await.unwrap();
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
    certificate_pem: String,
    key_pem: String,
}

impl Ca {
    pub fn new() -> Ca {
        let mut params = rcgen::CertificateParams::new(Vec::<String>::new()).unwrap();
        params.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
        let key = rcgen::KeyPair::generate().unwrap();
        Ca(rcgen::CertifiedIssuer::self_signed(params, key).unwrap())
    }

    pub fn pem(&self) -> String {
        self.0.pem()
    }

    pub fn leaf(&self, name: &str) -> Leaf {
        let params = rcgen::CertificateParams::new(vec![name.to_owned()]).unwrap();
        let key = rcgen::KeyPair::generate().unwrap();
        Leaf {
            certificate_pem: params.signed_by(&key, &self.0).unwrap().pem(),
            key_pem: key.serialize_pem(),
        }
    }
}

impl Leaf {
    fn acceptor(&self) -> TlsAcceptor {
        let certificate = PemObject::from_pem_slice(self.certificate_pem.as_bytes()).unwrap();
        let key = PrivateKeyDer::from_pem_slice(self.key_pem.as_bytes()).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![certificate], key)
            .unwrap();
        TlsAcceptor::from(Arc::new(config))
    }
}
