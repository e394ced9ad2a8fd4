//! One request over a connection of its own, in the open or under TLS: what the clients of payment providers and of webhooks share.
//!
//! Refuses to know whom it speaks to and how the connection came about. What is sent outwards is rare, so nothing is pooled. Redirects are
//! answers like any other; the caller bounds the time.

use std::sync::Arc;

use bytes::Bytes;
use http::{Request, StatusCode};
use http_body_util::{BodyExt, Full, Limited};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, RootCertStore};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio_rustls::TlsConnector;

/// The head of an answer: many times what any server sends.
const HEAD_BYTES_MAX: usize = 64 << 10;

/// Whether anything reached the other side is not known, of any of these.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    #[error("no answer in time")]
    Timeout,
    #[error("{0}")]
    Failed(String),
}

impl ClientError {
    fn because(error: impl std::fmt::Display) -> ClientError {
        ClientError::Failed(error.to_string())
    }
}

pub(crate) struct Answer {
    pub status: StatusCode,
    /// An error when it was cut short or is longer than the caller wanted.
    pub body: Result<Bytes, ClientError>,
}

/// The authorities that browsers trust.
pub(crate) fn public_authorities() -> RootCertStore {
    RootCertStore {
        roots: webpki_roots::TLS_SERVER_ROOTS.to_vec(),
    }
}

pub(crate) fn trusting(roots: RootCertStore) -> Result<TlsConnector, rustls::Error> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(TlsConnector::from(Arc::new(config)))
}

/// Sends one request and reads its answer. `host` is whom the certificate must name; with `tls` left out nothing is protected.
pub(crate) async fn exchange(
    stream: TcpStream,
    tls: Option<&TlsConnector>,
    host: &str,
    request: Request<Full<Bytes>>,
    answer_bytes_max: usize,
) -> Result<Answer, ClientError> {
    let Some(tls) = tls else {
        return send(stream, request, answer_bytes_max).await;
    };
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    let name = ServerName::try_from(bare.to_owned()).map_err(ClientError::because)?;
    let stream = tls
        .connect(name, stream)
        .await
        .map_err(ClientError::because)?;
    send(stream, request, answer_bytes_max).await
}

async fn send<S>(
    stream: S,
    request: Request<Full<Bytes>>,
    answer_bytes_max: usize,
) -> Result<Answer, ClientError>
where
    S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
{
    let (mut sender, connection) = http1::Builder::new()
        .max_buf_size(HEAD_BYTES_MAX)
        .handshake(TokioIo::new(stream))
        .await
        .map_err(ClientError::because)?;
    // Dropped with this future, and the connection with it.
    let mut tasks = JoinSet::new();
    tasks.spawn(connection);
    let answer = sender
        .send_request(request)
        .await
        .map_err(ClientError::because)?;
    let status = answer.status();
    let body = Limited::new(answer.into_body(), answer_bytes_max)
        .collect()
        .await;
    Ok(Answer {
        status,
        body: body
            .map(|body| body.to_bytes())
            .map_err(ClientError::because),
    })
}
