//! TLS towards others: how a certificate is checked, and by which authorities.

use std::sync::{Arc, OnceLock};

use rustls::{
    ClientConfig, ConfigBuilder, DEFAULT_VERSIONS, DigitallySignedStruct, RootCertStore,
    SignatureScheme, SupportedProtocolVersion, WantsVerifier,
    client::{
        Resumption,
        danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier},
    },
    crypto::CryptoProvider,
    server::ParsedCertificate,
    version::TLS12,
};
use rustls_pki_types::{CertificateDer, ServerName, UnixTime, pem::PemObject};
use tokio::net::TcpStream;
use tokio_rustls::{TlsConnector, client::TlsStream};

use crate::{Error, ErrorKind, carrier::Carrier, chain::Chain};

/// How a wire is protected; the names are libpq's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TlsMode {
    Disable,
    /// Encrypted, the certificate is not looked at.
    Require,
    /// The chain must lead to a trusted authority; the name is not looked at.
    VerifyCa,
    VerifyFull,
}

/// Whom a wire trusts. Made once for all wires of one purpose, which resume each other's sessions.
#[derive(Clone)]
pub struct Trust {
    config: Arc<ClientConfig>,
    /// For a handshake in packets, which is one of TLS 1.2. Its sessions are not resumed: a server of 1.2 speaks last then, so
    /// that both know where the packets end.
    in_packets: Arc<ClientConfig>,
}

/// How a handshake is made.
#[derive(Clone, Debug, Default)]
pub struct Handshake {
    pub records: Records,
    /// Offered by ALPN, the best first; mostly none.
    pub protocols: Vec<Vec<u8>>,
}

/// What TDS begins its name with in ALPN (`tds/8.0`).
const TDS: &[u8] = b"tds/";

impl Handshake {
    /// Whether it is the Tabular Data Stream that is spoken within TLS: up to 7.4 the handshake itself is in its packets.
    fn is_tds(&self) -> bool {
        self.records == Records::Tds || self.protocols.iter().any(|name| name.starts_with(TDS))
    }
}

/// How its records travel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Records {
    #[default]
    Bare,
    /// In packets of the Tabular Data Stream.
    Tds,
}

impl Trust {
    /// `None` for a wire that is not to be protected. `Err` says what is wrong with the CA.
    pub fn new(mode: TlsMode, ca_pem: Option<&str>) -> Result<Option<Trust>, String> {
        let verifier: Arc<dyn ServerCertVerifier> = match mode {
            TlsMode::Disable => return Ok(None),
            TlsMode::VerifyFull => return Trust::verified(ca_pem).map(Some),
            TlsMode::Require => Arc::new(AnyCertificate {
                provider: provider(),
            }),
            TlsMode::VerifyCa => Arc::new(Chain::to(roots(ca_pem)?, true)?),
        };
        Trust::of(verifier).map(Some)
    }

    /// The chain must lead to an authority in `ca_pem`, without one to a public authority, and the name must be right.
    pub fn verified(ca_pem: Option<&str>) -> Result<Trust, String> {
        Trust::of(Arc::new(Chain::to(roots(ca_pem)?, false)?))
    }

    fn of(verifier: Arc<dyn ServerCertVerifier>) -> Result<Trust, String> {
        let config = |builder: ConfigBuilder<ClientConfig, WantsVerifier>| {
            builder
                .dangerous()
                .with_custom_certificate_verifier(verifier.clone())
                .with_no_client_auth()
        };
        let mut in_packets = config(builder(&[&TLS12])?);
        in_packets.resumption = Resumption::disabled();
        Ok(Trust {
            config: Arc::new(config(builder(DEFAULT_VERSIONS)?)),
            in_packets: Arc::new(in_packets),
        })
    }
}

fn builder(
    versions: &[&'static SupportedProtocolVersion],
) -> Result<ConfigBuilder<ClientConfig, WantsVerifier>, String> {
    ClientConfig::builder_with_provider(provider())
        .with_protocol_versions(versions)
        .map_err(|error| error.to_string())
}

/// Shakes hands. The caller bounds the time.
pub async fn protect(
    stream: TcpStream,
    trust: &Trust,
    host: &str,
) -> Result<TlsStream<Carrier>, Error> {
    protect_as(stream, trust, host, Handshake::default()).await
}

/// The same, as a protocol has it.
pub async fn protect_as(
    stream: TcpStream,
    trust: &Trust,
    host: &str,
    handshake: Handshake,
) -> Result<TlsStream<Carrier>, Error> {
    let failed = |reason: String| Error::new(ErrorKind::Tls, reason);
    let bare = host
        .strip_prefix('[')
        .and_then(|rest| rest.strip_suffix(']'))
        .unwrap_or(host);
    let name = ServerName::try_from(bare.to_owned())
        .map_err(|_| failed(format!("{host} is no name for a certificate")))?;
    let (config, carrier) = match handshake.records {
        Records::Bare => (&trust.config, Carrier::bare(stream, handshake.is_tds())),
        Records::Tds => (&trust.in_packets, Carrier::tds(stream)),
    };
    let shaken = TlsConnector::from(config.clone())
        .with_alpn(handshake.protocols)
        .connect(name, carrier)
        .await;
    let unpacked = shaken.and_then(|mut stream| {
        stream.get_mut().0.unpack()?;
        Ok(stream)
    });
    unpacked.map_err(|error| failed(format!("{host}: {error}{}", advice(&error))))
}

/// A connection may name an authority; webhooks, identity providers, collectors and whoever else is called have none to name.
const UNKNOWN_AUTHORITY: &str = ": nobody who is trusted here has signed its certificate; a connection names its authority in ca_pem, \
    anything else needs a certificate of a public authority";
const SELF_SIGNED: &str = ": its certificate is an authority's own, as self-signed ones mostly are; have an authority sign one for the server \
    (openssl: basicConstraints=CA:FALSE): for a connection any that its ca_pem names, for anything else a public one";

const OTHER_KEY: &str = ": the authority that is trusted here under the name of its certificate's has another key; \
    if it was made anew, name the new one in the connection's ca_pem";

const OLD: &str = ": its certificate is of X.509's version 1, which nothing here can check; make one of version 3, with its names in it (openssl: subjectAltName)";
const NO_TLS: &str = ": what answers there does not speak TLS; is it another port that does?";
const HUNG_UP: &str = ": it hung up before it had shown who it is; is it another port that speaks TLS, or does it let this service's address in?";

/// What to do about what most people meet first, where rustls has only a name for it.
fn advice(error: &std::io::Error) -> &'static str {
    use rustls::{CertificateError, Error};
    let inner = error.get_ref().and_then(|inner| inner.downcast_ref());
    let reason = match inner {
        Some(Error::InvalidCertificate(reason)) => reason,
        Some(Error::InvalidMessage(_)) => return NO_TLS,
        _ => {
            use std::io::ErrorKind::{BrokenPipe, ConnectionReset, UnexpectedEof};
            return match error.kind() {
                UnexpectedEof | ConnectionReset | BrokenPipe => HUNG_UP,
                _ => "",
            };
        }
    };
    match reason {
        CertificateError::UnknownIssuer => UNKNOWN_AUTHORITY,
        CertificateError::BadSignature => OTHER_KEY,
        // The name of webpki's own error.
        CertificateError::Other(other) if other.to_string().contains("CaUsedAsEndEntity") => {
            SELF_SIGNED
        }
        CertificateError::Other(other) if other.to_string().contains("UnsupportedCertVersion") => {
            OLD
        }
        _ => "",
    }
}

fn provider() -> Arc<CryptoProvider> {
    static PROVIDER: OnceLock<Arc<CryptoProvider>> = OnceLock::new();
    PROVIDER
        .get_or_init(|| Arc::new(rustls::crypto::ring::default_provider()))
        .clone()
}

/// The authorities in `ca_pem`, or the public ones.
fn roots(ca_pem: Option<&str>) -> Result<Arc<RootCertStore>, String> {
    static PUBLIC: OnceLock<Arc<RootCertStore>> = OnceLock::new();
    let Some(pem) = ca_pem else {
        let public = || {
            Arc::new(RootCertStore {
                roots: webpki_roots::TLS_SERVER_ROOTS.to_vec(),
            })
        };
        return Ok(PUBLIC.get_or_init(public).clone());
    };
    let mut store = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(pem.as_bytes()) {
        let certificate =
            certificate.map_err(|error| format!("the CA certificate is no PEM: {error}"))?;
        store
            .add(certificate)
            .map_err(|error| format!("the CA certificate cannot be used: {error}"))?;
    }
    if store.is_empty() {
        return Err("the CA certificate holds no PEM certificate".into());
    }
    Ok(Arc::new(store))
}

/// `require`: encrypted, whoever answers. Signatures are checked where that can be done, so that the key is the certificate's; those of a certificate that rustls
/// does not read (mostly of X.509's version 1, as many databases have) and those with SHA-1 are not, since who answers may be anybody anyway. SHA-1 is named to
/// servers whose certificate is signed with it, as SQL Server 2016 makes them: some show no other one.
#[derive(Debug)]
struct AnyCertificate {
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for AnyCertificate {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let checked = rustls::crypto::verify_tls12_signature(
            message,
            certificate,
            signature,
            &self.provider.signature_verification_algorithms,
        );
        match WITH_SHA1.contains(&signature.scheme) {
            true => Ok(HandshakeSignatureValid::assertion()),
            false => unless_unreadable(checked, certificate),
        }
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let checked = rustls::crypto::verify_tls13_signature(
            message,
            certificate,
            signature,
            &self.provider.signature_verification_algorithms,
        );
        unless_unreadable(checked, certificate)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        let algorithms = &self.provider.signature_verification_algorithms;
        let mut schemes = algorithms.supported_schemes();
        // Some servers refuse whoever does not name how their certificate was signed.
        schemes.extend(WITH_SHA1);
        schemes
    }
}

const WITH_SHA1: [SignatureScheme; 2] = [
    SignatureScheme::RSA_PKCS1_SHA1,
    SignatureScheme::ECDSA_SHA1_Legacy,
];

/// What was found of a signature, unless it could not be looked at.
fn unless_unreadable(
    checked: Result<HandshakeSignatureValid, rustls::Error>,
    certificate: &CertificateDer<'_>,
) -> Result<HandshakeSignatureValid, rustls::Error> {
    match ParsedCertificate::try_from(certificate) {
        Ok(_) => checked,
        Err(_) => Ok(HandshakeSignatureValid::assertion()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Ca, Server};
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    /// Each mode asks for as much of a certificate as libpq does under its name.
    #[tokio::test]
    async fn modes_ask_for_what_they_say() {
        let (ca, other) = (Ca::new(), Ca::new());
        let server = Server::start_tls("", &ca.leaf("localhost")).await;
        for (mode, authority, host, accepted) in [
            (TlsMode::Require, &other, "127.0.0.1", true),
            (TlsMode::VerifyCa, &ca, "127.0.0.1", true),
            (TlsMode::VerifyCa, &other, "localhost", false),
            (TlsMode::VerifyFull, &ca, "localhost", true),
            (TlsMode::VerifyFull, &ca, "127.0.0.1", false),
            (TlsMode::VerifyFull, &other, "localhost", false),
        ] {
            let trust = Trust::new(mode, Some(&authority.pem())).unwrap().unwrap();
            let stream = TcpStream::connect(server.address).await.unwrap();
            let protected = protect(stream, &trust, host).await;
            assert_eq!(protected.is_ok(), accepted, "{mode:?} {host}");
        }
        assert!(Trust::new(TlsMode::Disable, None).unwrap().is_none());
    }

    /// What a server shows beside its own certificate may be the whole way to the authority, and more, also what its authority was before it was renewed; of very
    /// many the first are looked at, and of those under one name as many as signatures are checked. As many as a handshake has room for, each of which any of 25
    /// others may have signed, hold nobody up.
    #[tokio::test]
    async fn few_authorities_are_looked_at() {
        let root = Ca::named("the root");
        let middle = root.over("middle");
        let low = middle.over("low");
        let strangers = |count: usize| -> Vec<Ca> {
            (0..count)
                .map(|number| Ca::named(&format!("{number}")))
                .collect()
        };
        let namesakes =
            |count: usize| -> Vec<Ca> { (0..count).map(|_| Ca::named("low")).collect() };
        let former = |count: usize| -> Vec<Ca> { (0..count).map(|_| middle.over("low")).collect() };
        let maze = (0..125).map(|number| {
            let step = number % 5;
            let above = match step {
                4 => "nobody".to_owned(),
                step => format!("step {}", step + 1),
            };
            Ca::named(&above).over(&match step {
                0 => "low".to_owned(),
                step => format!("step {step}"),
            })
        });
        for (before, accepted) in [
            (Vec::new(), true),
            (strangers(14), true),
            (strangers(15), false),
            (namesakes(1), true),
            (namesakes(2), true),
            (namesakes(14), true),
            (namesakes(15), false),
            (former(2), true),
            (former(4), true),
            (former(5), false),
            (maze.collect(), false),
        ] {
            let shown = before.iter().chain([&low, &middle]);
            let server = Server::start_tls("", &low.leaf("localhost").with(shown)).await;
            for (mode, host) in [
                (TlsMode::VerifyCa, "127.0.0.1"),
                (TlsMode::VerifyFull, "localhost"),
            ] {
                let trust = Trust::new(mode, Some(&root.pem())).unwrap().unwrap();
                let stream = TcpStream::connect(server.address).await.unwrap();
                let began = std::time::Instant::now();
                let protected = protect(stream, &trust, host).await;
                assert_eq!(protected.is_ok(), accepted, "{mode:?}, {}", before.len());
                assert!(began.elapsed().as_secs() < 5, "{:?}", began.elapsed());
            }
        }
    }

    /// Of authorities of one name each may have signed what a server shows: as many are tried as a chain has signatures that are checked.
    #[tokio::test]
    async fn few_signatures_are_checked() {
        let ca = Ca::new();
        let server = Server::start_tls("", &ca.leaf("localhost")).await;
        for (others, accepted) in [(0, true), (15, true), (16, false)] {
            let others = (0..others).map(|_| Ca::new().pem());
            let trusted: String = others.chain([ca.pem()]).collect();
            let trust = Trust::verified(Some(&trusted)).unwrap();
            // Each has as many as the first.
            for _ in 0..2 {
                let stream = TcpStream::connect(server.address).await.unwrap();
                let protected = protect(stream, &trust, "localhost").await;
                assert_eq!(protected.is_ok(), accepted);
            }
        }
    }

    /// Who shows a certificate that it has signed itself, or that nobody known has, is refused in words that say what to do.
    #[tokio::test]
    async fn self_signed_certificates_are_explained() {
        let (own, renewed, other) = (Ca::new(), Ca::new(), Ca::named("another authority"));
        for (leaf, authority, says) in [
            (
                renewed.leaf("localhost"),
                &own,
                "the authority that is trusted here under the name of its certificate's has another key; if it was made anew, name the new one in the connection's ca_pem",
            ),
            (
                own.as_leaf(),
                &own,
                "its certificate is an authority's own, as self-signed ones mostly are; have an authority sign one for the server (openssl: basicConstraints=CA:FALSE): for a connection any that its ca_pem names, for anything else a public one",
            ),
            (
                other.leaf("localhost"),
                &own,
                "nobody who is trusted here has signed its certificate; a connection names its authority in ca_pem, anything else needs a certificate of a public authority",
            ),
        ] {
            let server = Server::start_tls("", &leaf).await;
            let trust = Trust::verified(Some(&authority.pem())).unwrap();
            let stream = TcpStream::connect(server.address).await.unwrap();
            let refused = protect(stream, &trust, "localhost").await;
            let message = refused.map(drop).unwrap_err().message;
            assert!(message.ends_with(&format!(": {says}")), "{message}");
            assert!(message.starts_with("localhost: "), "{message}");
        }
    }

    /// A server that speaks something else, and one that hangs up, are told as that.
    #[tokio::test]
    async fn who_shakes_no_hands_is_explained() {
        for (answer, says) in [("HTTP/1.1 400 Bad Request\r\n\r\n", NO_TLS), ("", HUNG_UP)] {
            let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
            let address = listener.local_addr().unwrap();
            let server = tokio::spawn(async move {
                let (mut stream, _) = listener.accept().await.unwrap();
                let mut hello = [0; 5];
                stream.read_exact(&mut hello).await.unwrap();
                if !answer.is_empty() {
                    stream.write_all(answer.as_bytes()).await.unwrap();
                    // What is closed unread takes the answer with it.
                    let _ = stream.read_to_end(&mut Vec::new()).await;
                }
            });
            let trust = Trust::verified(None).unwrap();
            let stream = TcpStream::connect(address).await.unwrap();
            let refused = protect(stream, &trust, "localhost").await;
            let message = refused.map(drop).unwrap_err().message;
            assert!(message.ends_with(says), "{message}");
            server.await.unwrap();
        }
    }

    /// A server that has its handshake in packets of TDS, and then none, as SQL Server has it: one that insists on TLS 1.3 has
    /// nothing in common with that.
    #[tokio::test]
    async fn a_handshake_in_packets_ends_bare() {
        let ca = Ca::new();
        let leaf = ca.leaf("localhost");
        let trust = Trust::verified(Some(&ca.pem())).unwrap();
        let tds = || Handshake {
            records: Records::Tds,
            protocols: Vec::new(),
        };
        let server = crate::testing::tds_server(leaf.config(&[&TLS12]), b"hello").await;
        let stream = TcpStream::connect(server).await.unwrap();
        let mut stream = protect_as(stream, &trust, "localhost", tds())
            .await
            .unwrap();
        stream.write_all(b"ping").await.unwrap();
        let mut answer = [0; 5];
        stream.read_exact(&mut answer).await.unwrap();
        assert_eq!(&answer, b"hello");

        let newest = crate::testing::tds_server(leaf.config(&[&rustls::version::TLS13]), b"").await;
        let stream = TcpStream::connect(newest).await.unwrap();
        let refused = protect_as(stream, &trust, "localhost", tds()).await;
        assert_eq!(refused.err().map(|error| error.kind), Some(ErrorKind::Tls));

        // A certificate that is not trusted is refused in packets as it is without.
        let stranger = Trust::verified(Some(&Ca::new().pem())).unwrap();
        let server = crate::testing::tds_server(leaf.config(&[&TLS12]), b"").await;
        let stream = TcpStream::connect(server).await.unwrap();
        let refused = protect_as(stream, &stranger, "localhost", tds()).await;
        assert_eq!(refused.err().map(|error| error.kind), Some(ErrorKind::Tls));
    }

    /// Protocols are offered, and the server picks one that it knows.
    #[tokio::test]
    async fn protocols_are_offered() {
        let ca = Ca::new();
        let mut config = ca.leaf("localhost").config(DEFAULT_VERSIONS);
        config.alpn_protocols = vec![b"tds/8.0".to_vec()];
        let server = crate::testing::accept_tls(config).await;
        let trust = Trust::verified(Some(&ca.pem())).unwrap();
        let offer = async |protocols: &[&[u8]]| {
            let handshake = Handshake {
                records: Records::Bare,
                protocols: protocols.iter().map(|name| name.to_vec()).collect(),
            };
            let stream = TcpStream::connect(server).await.unwrap();
            let stream = protect_as(stream, &trust, "localhost", handshake).await?;
            Ok::<_, Error>(stream.get_ref().1.alpn_protocol().map(<[u8]>::to_vec))
        };
        let chosen = offer(&[b"tds/9.0", b"tds/8.0"]).await.unwrap();
        assert_eq!(chosen.as_deref(), Some(&b"tds/8.0"[..]));
        assert_eq!(offer(&[]).await.unwrap(), None);
        assert_eq!(offer(&[b"h2"]).await.unwrap_err().kind, ErrorKind::Tls);
    }

    /// Each packet of TDS is one record, however many are said at once, for SQL Server ends a connection otherwise. What speaks something else
    /// has as few as TLS allows.
    #[tokio::test]
    async fn a_packet_of_tds_is_a_record() {
        let ca = Ca::new();
        let trust = Trust::verified(Some(&ca.pem())).unwrap();
        // Together more than is sealed ahead.
        let packets = [[8_000_u16; 20], [512; 20]].concat();
        let packet = |length: &u16| {
            let mut packet = vec![7; usize::from(*length)];
            packet[2..4].copy_from_slice(&length.to_be_bytes());
            packet
        };
        let said: Vec<u8> = packets.iter().flat_map(packet).collect();
        for protocol in ["tds/8.0", "postgresql"] {
            let names = vec![protocol.as_bytes().to_vec()];
            let mut config = ca.leaf("localhost").config(DEFAULT_VERSIONS);
            config.alpn_protocols = names.clone();
            let (server, records) = crate::testing::records(config, said.len()).await;
            let handshake = Handshake {
                records: Records::Bare,
                protocols: names,
            };
            let stream = TcpStream::connect(server).await.unwrap();
            let stream = protect_as(stream, &trust, "localhost", handshake)
                .await
                .unwrap();
            let mut stream = crate::Stream::Tls(Box::new(stream));
            stream.write_all(&said).await.unwrap();
            stream.flush().await.unwrap();
            let records = records.await.unwrap();
            let wanted: Vec<usize> = packets.iter().copied().map(usize::from).collect();
            match protocol {
                "tds/8.0" => assert_eq!(records, wanted),
                _ => assert_eq!(records[0], 16 << 10),
            }
        }
        let tds = Handshake {
            records: Records::Tds,
            protocols: Vec::new(),
        };
        assert!(tds.is_tds() && !Handshake::default().is_tds());
    }

    /// What is no certificate is refused when it is given, not when it is needed.
    #[test]
    fn authorities_are_read_at_once() {
        for wrong in [
            "",
            "no PEM",
            "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n",
        ] {
            assert!(Trust::verified(Some(wrong)).is_err(), "{wrong:?}");
        }
    }
}
