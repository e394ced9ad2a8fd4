//! How requests of the `object_store` crate get out: by this process's one way out, and not by a client of the crate's own.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use http::StatusCode;
use http::header::CONTENT_RANGE;
use http_body_util::{BodyExt, Full};
use object_store::ClientOptions;
use object_store::client::{
    HttpClient, HttpConnector, HttpError, HttpErrorKind, HttpRequest, HttpResponse, HttpService,
};
use souk_outbound::{Bounds, Client, EgressPolicy, ErrorKind, Own, Reach, Trust};

use super::PIECE_BYTES;

/// One piece, there or back, at 2 Mbit/s.
const EXCHANGE_MAX: Duration = Duration::from_secs(30);
/// A piece, or what is said about an error.
const ANSWER_BYTES_MAX: usize = PIECE_BYTES as usize + (1 << 20);
const BOUNDS: Bounds = Bounds {
    connect: Duration::from_secs(3),
    head_bytes: 32 << 10,
    idle_per_host: 8,
    idle_total: 8,
    idle: Some(Duration::from_secs(60)),
};

#[derive(Clone)]
pub struct Way(Arc<Client>);

impl fmt::Debug for Way {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Way({} connections)", self.0.open())
    }
}

impl Way {
    /// To wherever the operator says, who answers for that. `ca_pem`: whose certificates are believed instead of the public ones.
    pub fn new(ca_pem: Option<&str>) -> Result<Way, String> {
        let egress = EgressPolicy::unrestricted();
        let reach = Reach {
            egress: egress.clone(),
            egress_plain: egress,
            trust: Some(Trust::verified(ca_pem)?),
            account: Own,
        };
        Ok(Way(Arc::new(Client::new(reach, BOUNDS))))
    }
}

impl HttpConnector for Way {
    fn connect(&self, _: &ClientOptions) -> object_store::Result<HttpClient> {
        Ok(HttpClient::new(self.clone()))
    }
}

#[async_trait]
impl HttpService for Way {
    async fn call(&self, request: HttpRequest) -> Result<HttpResponse, HttpError> {
        let (head, body) = request.into_parts();
        let body = Full::new(body.collect().await?.to_bytes());
        let request = http::Request::from_parts(head, body);
        let answer = self.0.send(request, EXCHANGE_MAX, ANSWER_BYTES_MAX).await;
        let answer = answer.map_err(failed)?;
        let (mut head, body) = (answer.head, answer.body.map_err(failed)?);
        // Some servers (rclone's) say 200 with the part that was asked for, which the crate takes for the whole.
        if head.status == StatusCode::OK && head.headers.contains_key(CONTENT_RANGE) {
            head.status = StatusCode::PARTIAL_CONTENT;
        }
        Ok(HttpResponse::from_parts(head, body.into()))
    }
}

/// Its kind decides whether the crate tries again.
fn failed(error: souk_outbound::Error) -> HttpError {
    let kind = match error.kind {
        ErrorKind::Refused | ErrorKind::Unreachable | ErrorKind::Exhausted(_) => {
            HttpErrorKind::Connect
        }
        ErrorKind::Timeout => HttpErrorKind::Timeout,
        ErrorKind::Reset => HttpErrorKind::Interrupted,
        ErrorKind::BadResponse => HttpErrorKind::Decode,
        ErrorKind::Tls | ErrorKind::EgressRefused => HttpErrorKind::Unknown,
    };
    HttpError::new(kind, error)
}
