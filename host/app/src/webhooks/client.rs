//! Sends one delivery: dials an address that was checked, signs, posts, and reads what the receiver says to it.

use std::time::Duration;

use bytes::Bytes;
use http::{Request, StatusCode, header};
use http_body_util::Full;
use rustls::RootCertStore;
use souk_sandbox::{EgressPolicy, outbound};
use tokio_rustls::TlsConnector;
use url::{Position, Url};

use super::{is_protected, policy, port};
use crate::https::{ClientError, exchange, public_authorities, trusting};

/// From the lookup of the name to the last byte of the answer.
pub(super) const TIMEOUT: Duration = Duration::from_secs(15);
/// Nothing in an answer's body matters; so much is read, so that the receiver gets rid of it, and the rest is not.
const ANSWER_BYTES_MAX: usize = 16 << 10;

pub(super) struct Client {
    tls: TlsConnector,
    egress: EgressPolicy,
    timeout: Duration,
}

/// What is sent: made by the dispatcher, the same at every attempt but for the time and the signatures.
pub(super) struct Message {
    pub url: String,
    pub id: String,
    /// Seconds since the epoch.
    pub timestamp: i64,
    pub signature: String,
    pub body: String,
}

impl Client {
    pub fn new(egress: EgressPolicy) -> Result<Client, rustls::Error> {
        Client::trusting(egress, public_authorities())
    }

    fn trusting(egress: EgressPolicy, roots: RootCertStore) -> Result<Client, rustls::Error> {
        Ok(Client {
            tls: trusting(roots)?,
            egress,
            timeout: TIMEOUT,
        })
    }

    /// Posts a delivery. The error is for the webhook's owner.
    pub async fn post(&self, message: Message) -> Result<StatusCode, ClientError> {
        match tokio::time::timeout(self.timeout, self.send(message)).await {
            Ok(answer) => answer,
            Err(_) => Err(ClientError::Timeout),
        }
    }

    async fn send(&self, message: Message) -> Result<StatusCode, ClientError> {
        let url =
            Url::parse(&message.url).map_err(|error| ClientError::Failed(error.to_string()))?;
        let request =
            request(&url, message).map_err(|error| ClientError::Failed(error.to_string()))?;
        let host = url.host_str().unwrap_or_default();
        let policy = policy(&self.egress, &url);
        let stream = outbound::dial(&policy, host, port(&url), self.timeout)
            .await
            .map_err(|fault| ClientError::Failed(fault.detail.unwrap_or(fault.message)))?;
        let tls = is_protected(&url).then_some(&self.tls);
        let answer = exchange(stream, tls, host, request, ANSWER_BYTES_MAX).await?;
        Ok(answer.status)
    }
}

fn request(url: &Url, message: Message) -> Result<Request<Full<Bytes>>, http::Error> {
    let host = url.host_str().unwrap_or_default();
    let authority = match url.port() {
        Some(port) => format!("{host}:{port}"),
        None => host.to_owned(),
    };
    Request::post(&url[Position::BeforePath..])
        .header(header::HOST, authority)
        .header(header::CONTENT_TYPE, "application/json")
        .header(
            header::USER_AGENT,
            concat!("souk-webhooks/", env!("CARGO_PKG_VERSION")),
        )
        .header("webhook-id", message.id)
        .header("webhook-timestamp", message.timestamp)
        .header("webhook-signature", message.signature)
        .body(Full::from(message.body))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustls::ServerConfig;
    use rustls::pki_types::PrivateKeyDer;
    use std::sync::Arc;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;
    use tokio_rustls::TlsAcceptor;

    fn message(url: &str) -> Message {
        Message {
            url: url.to_owned(),
            id: "dlv_1".to_owned(),
            timestamp: 1_700_000_000,
            signature: "v1,abc".to_owned(),
            body: "{}".to_owned(),
        }
    }

    fn loopback() -> EgressPolicy {
        EgressPolicy::public_only().allow_network("127.0.0.0/8".parse().unwrap())
    }

    /// A receiver under TLS whose certificate is trusted is told; one whose certificate is not never sees the event.
    #[tokio::test]
    async fn only_trusted_receivers_are_told() {
        let made = rcgen::generate_simple_self_signed(vec!["127.0.0.1".to_owned()]).unwrap();
        let certificate = made.cert.der().clone();
        let key = PrivateKeyDer::try_from(made.signing_key.serialize_der()).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![certificate.clone()], key)
            .unwrap();
        let acceptor = TlsAcceptor::from(Arc::new(config));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("https://{}/a?b=c", listener.local_addr().unwrap());
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let Ok(mut stream) = acceptor.accept(stream).await else {
                    continue;
                };
                let mut head = vec![0; 4096];
                let read = stream.read(&mut head).await.unwrap_or(0);
                assert!(head[..read].starts_with(b"POST /a?b=c HTTP/1.1\r\n"));
                stream
                    .write_all(b"HTTP/1.1 204 x\r\nconnection: close\r\n\r\n")
                    .await
                    .ok();
                stream.shutdown().await.ok();
            }
        });
        let mut roots = RootCertStore::empty();
        roots.add(certificate).unwrap();
        let trusting = Client::trusting(loopback(), roots).unwrap();
        assert_eq!(trusting.post(message(&url)).await.unwrap(), 204);
        let public = Client::new(loopback()).unwrap();
        let refused = public.post(message(&url)).await.unwrap_err();
        assert!(refused.to_string().contains("certificate"), "{refused}");
    }

    /// An answer that is too long still says whether the event has arrived.
    #[tokio::test]
    async fn long_answers_are_not_read_to_their_end() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/", listener.local_addr().unwrap());
        tokio::spawn(async move {
            let (mut stream, _) = listener.accept().await.unwrap();
            let head = b"HTTP/1.1 200 x\r\ncontent-length: 99999999999\r\n\r\n";
            stream.write_all(head).await.unwrap();
            let part = vec![b'x'; 4096];
            while stream.write_all(&part).await.is_ok() {}
        });
        let client = Client::new(loopback()).unwrap();
        assert_eq!(client.post(message(&url)).await.unwrap(), 200);
    }

    /// One that says nothing is given up in time, and an address that is not allowed is not dialled, whatever its scheme.
    #[tokio::test]
    async fn silence_and_refused_addresses_are_failures() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let mut client = Client::new(loopback()).unwrap();
        client.timeout = Duration::from_millis(100);
        let silence = client.post(message(&format!("http://{address}/"))).await;
        assert!(matches!(silence, Err(ClientError::Timeout)));
        drop(listener.accept().await);
        let client = Client::new(EgressPolicy::public_only()).unwrap();
        for scheme in ["http", "https"] {
            let refused = client
                .post(message(&format!("{scheme}://{address}/")))
                .await
                .unwrap_err();
            assert!(
                refused.to_string().contains("does not connect to"),
                "{refused}"
            );
        }
        let unseen = tokio::time::timeout(Duration::from_millis(100), listener.accept()).await;
        assert!(unseen.is_err(), "a refused address was dialled");
    }
}
