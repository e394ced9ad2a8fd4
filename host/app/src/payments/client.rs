//! A small HTTPS client for payment providers: one request a connection, bounded in time and size.
//!
//! Top-ups are rare, so nothing is pooled. Certificates are checked against the public authorities. Redirects are not followed.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderValue, Request, StatusCode, header};
use http_body_util::{BodyExt, Full, Limited};
use hyper_util::rt::TokioIo;
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, RootCertStore};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio_rustls::TlsConnector;
use url::{Host, Url};

/// From the lookup of the name to the last byte.
const TIMEOUT: Duration = Duration::from_secs(8);
/// Answers have a few kilobytes.
const ANSWER_BYTES_MAX: usize = 256 << 10;

/// Whether anything reached the other side is not known, of any of these.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    #[error("no answer within {} s", TIMEOUT.as_secs())]
    Timeout,
    #[error("{0}")]
    Failed(String),
}

#[derive(Debug, thiserror::Error)]
pub enum AddressError {
    #[error("must be https://…, or http://… of this machine")]
    Insecure,
    #[error("is not an address: {0}")]
    Malformed(String),
}

pub struct Client {
    tls: TlsConnector,
    /// Without a trailing slash.
    base: Url,
}

pub struct Answer {
    pub status: StatusCode,
    pub body: Bytes,
}

impl Client {
    /// A secret goes to `base`, so it has to be protected unless it never leaves the machine.
    pub fn new(base: &str) -> Result<Client, AddressError> {
        let malformed = |error: String| AddressError::Malformed(error);
        let base = Url::parse(base).map_err(|error| malformed(error.to_string()))?;
        let is_local = match base.host() {
            Some(Host::Domain(name)) => name == "localhost",
            Some(Host::Ipv4(address)) => address.is_loopback(),
            Some(Host::Ipv6(address)) => address.is_loopback(),
            None => return Err(malformed("it names no host".to_owned())),
        };
        if base.scheme() != "https" && !(base.scheme() == "http" && is_local) {
            return Err(AddressError::Insecure);
        }
        let roots = RootCertStore {
            roots: webpki_roots::TLS_SERVER_ROOTS.to_vec(),
        };
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|error| malformed(error.to_string()))?
            .with_root_certificates(roots)
            .with_no_client_auth();
        Ok(Client {
            tls: TlsConnector::from(Arc::new(config)),
            base,
        })
    }

    /// Posts a form. `path` begins with a slash.
    pub async fn post_form(
        &self,
        path: &str,
        bearer: &str,
        idempotency_key: &str,
        form: String,
    ) -> Result<Answer, ClientError> {
        let request = self
            .request(path, bearer, idempotency_key, form)
            .map_err(|error| ClientError::Failed(error.to_string()))?;
        match tokio::time::timeout(TIMEOUT, self.send(request)).await {
            Ok(answer) => answer,
            Err(_) => Err(ClientError::Timeout),
        }
    }

    fn request(
        &self,
        path: &str,
        bearer: &str,
        idempotency_key: &str,
        form: String,
    ) -> Result<Request<Full<Bytes>>, http::Error> {
        let mut authorization = HeaderValue::try_from(format!("Bearer {bearer}"))?;
        authorization.set_sensitive(true);
        let host = self.base.host_str().unwrap_or_default();
        let authority = match self.base.port() {
            Some(port) => format!("{host}:{port}"),
            None => host.to_owned(),
        };
        Request::post(format!("{}{path}", self.base.path().trim_end_matches('/')))
            .header(header::HOST, authority)
            .header(header::AUTHORIZATION, authorization)
            .header(header::CONTENT_TYPE, "application/x-www-form-urlencoded")
            .header(header::ACCEPT, "application/json")
            .header(
                header::USER_AGENT,
                concat!("souk/", env!("CARGO_PKG_VERSION")),
            )
            .header("idempotency-key", idempotency_key)
            .body(Full::from(form))
    }

    async fn send(&self, request: Request<Full<Bytes>>) -> Result<Answer, ClientError> {
        let failed = |error: &dyn std::fmt::Display| ClientError::Failed(error.to_string());
        let host = self.base.host_str().unwrap_or_default();
        let bare = host.trim_start_matches('[').trim_end_matches(']');
        let port = self.base.port_or_known_default().unwrap_or(443);
        let stream = TcpStream::connect((bare, port))
            .await
            .map_err(|error| failed(&error))?;
        if self.base.scheme() == "http" {
            return exchange(stream, request).await;
        }
        let name = ServerName::try_from(bare.to_owned()).map_err(|error| failed(&error))?;
        let stream = self
            .tls
            .connect(name, stream)
            .await
            .map_err(|error| failed(&error))?;
        exchange(stream, request).await
    }
}

async fn exchange<S>(stream: S, request: Request<Full<Bytes>>) -> Result<Answer, ClientError>
where
    S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
{
    let failed = |error: hyper::Error| ClientError::Failed(error.to_string());
    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream))
        .await
        .map_err(failed)?;
    // Dropped with this future, and the connection with it.
    let mut tasks = JoinSet::new();
    tasks.spawn(connection);
    let answer = sender.send_request(request).await.map_err(failed)?;
    let status = answer.status();
    let body = Limited::new(answer.into_body(), ANSWER_BYTES_MAX)
        .collect()
        .await
        .map_err(|error| ClientError::Failed(error.to_string()))?;
    Ok(Answer {
        status,
        body: body.to_bytes(),
    })
}
