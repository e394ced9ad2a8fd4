//! A certificate authority made for one test run, and a listener that shows a certificate of it.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair, KeyUsagePurpose};
use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::server::TlsStream;

/// A client that shakes hands does so at once; one that does not must not keep the others waiting.
const HANDSHAKE_MAX: Duration = Duration::from_secs(5);

/// Whatever speaks HTTP here could speak TLS, and is told with what.
pub fn use_ring() {
    let _ = ring::default_provider().install_default();
}

pub struct TestCa {
    issuer: CertifiedIssuer<'static, KeyPair>,
}

pub struct Leaf {
    pub certificate_pem: String,
    pub key_pem: String,
}

impl TestCa {
    pub fn new(name: &str) -> TestCa {
        let mut params = CertificateParams::new(Vec::<String>::new()).expect("no names");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        params
            .distinguished_name
            .push(rcgen::DnType::CommonName, name);
        let key = KeyPair::generate().expect("a key");
        TestCa {
            issuer: CertifiedIssuer::self_signed(params, key).expect("a CA"),
        }
    }

    pub fn pem(&self) -> String {
        self.issuer.pem()
    }

    /// A server certificate for these names (DNS names or IP addresses).
    pub fn server(&self, names: &[&str]) -> Leaf {
        let names: Vec<String> = names.iter().map(|name| name.to_string()).collect();
        let params = CertificateParams::new(names).expect("valid names");
        let key = KeyPair::generate().expect("a key");
        let certificate = params.signed_by(&key, &self.issuer).expect("a signature");
        Leaf {
            certificate_pem: certificate.pem(),
            key_pem: key.serialize_pem(),
        }
    }
}

impl Leaf {
    /// One of X.509's version 1, as `openssl x509 -req` made them before version 3.2, signed by itself for the name `db.example.com` until 2126.
    pub fn of_version_1() -> Leaf {
        Leaf {
            certificate_pem: include_str!("tls/version_1.crt").into(),
            key_pem: include_str!("tls/version_1.key").into(),
        }
    }

    /// Shakes hands with whoever trusts this certificate.
    pub fn acceptor(&self) -> TlsAcceptor {
        let certificate = CertificateDer::from_pem_slice(self.certificate_pem.as_bytes());
        let key = PrivateKeyDer::from_pem_slice(self.key_pem.as_bytes());
        let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .expect("versions")
            .with_no_client_auth()
            .with_single_cert(vec![certificate.expect("PEM")], key.expect("PEM"))
            .expect("a key that belongs to the certificate");
        TlsAcceptor::from(Arc::new(config))
    }
}

/// Connections of clients that trust the certificate; the others are dropped.
pub struct TlsListener {
    tcp: TcpListener,
    acceptor: TlsAcceptor,
}

impl TlsListener {
    pub fn new(tcp: TcpListener, leaf: &Leaf) -> TlsListener {
        TlsListener {
            tcp,
            acceptor: leaf.acceptor(),
        }
    }

    /// Hands every connection on to a server that has no TLS, as a proxy before it does. It ends with its task.
    pub async fn hand_on(mut self, behind: String) {
        loop {
            let (mut client, _) = axum::serve::Listener::accept(&mut self).await;
            let behind = behind.clone();
            tokio::spawn(async move {
                if let Ok(mut server) = TcpStream::connect(behind).await {
                    let _ = copy_bidirectional(&mut client, &mut server).await;
                }
            });
        }
    }
}

impl axum::serve::Listener for TlsListener {
    type Io = TlsStream<TcpStream>;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Self::Io, Self::Addr) {
        loop {
            let (stream, client) = axum::serve::Listener::accept(&mut self.tcp).await;
            let handshake = self.acceptor.accept(stream);
            if let Ok(Ok(stream)) = tokio::time::timeout(HANDSHAKE_MAX, handshake).await {
                return (stream, client);
            }
        }
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.tcp.local_addr()
    }
}
