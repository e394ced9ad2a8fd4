//! Posts to a payment provider: bounded in time and size, its certificate checked against the public authorities.

use std::time::Duration;

use bytes::Bytes;
use http::{HeaderValue, Request, StatusCode, header};
use http_body_util::Full;
use souk_outbound::{Error, ErrorKind, Trust};
use url::Position;

use crate::protected::{AddressError, client, protected};

/// From the lookup of the name to the last byte.
const TIMEOUT: Duration = Duration::from_secs(8);
/// Answers have a few kilobytes.
const ANSWER_BYTES_MAX: usize = 256 << 10;

pub struct Client {
    http: souk_outbound::Client,
    /// Without a trailing slash.
    base: String,
    timeout: Duration,
}

pub struct Response {
    pub status: StatusCode,
    pub body: Bytes,
}

impl Client {
    /// A secret goes to `base`, so it has to be protected unless it never leaves the machine.
    pub fn new(base: &str) -> Result<Client, AddressError> {
        let trust = Trust::verified(None).map_err(AddressError::Malformed)?;
        Client::trusting(base, trust)
    }

    fn trusting(base: &str, trust: Trust) -> Result<Client, AddressError> {
        let base = protected(base)?;
        Ok(Client {
            http: client(TIMEOUT, trust),
            base: base[..Position::AfterPath].trim_end_matches('/').to_owned(),
            timeout: TIMEOUT,
        })
    }

    /// Posts a form. `path` begins with a slash.
    pub async fn post_form(
        &self,
        path: &str,
        bearer: &str,
        idempotency_key: &str,
        form: String,
    ) -> Result<Response, Error> {
        let request = self
            .request(path, bearer, idempotency_key, form)
            .map_err(|error| Error::new(ErrorKind::Unreachable, error.to_string()))?;
        let answer = self.http.send(request, self.timeout, ANSWER_BYTES_MAX);
        let answer = answer.await?;
        Ok(Response {
            status: answer.head.status,
            body: answer.body?,
        })
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
        Request::post(format!("{}{path}", self.base))
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
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tls_server::serve;
    use tokio::net::TcpListener;

    async fn server(answer: &'static [u8]) -> (String, Trust) {
        let (address, trust) = serve("POST /base/v1/x HTTP/1.1\r\n", answer).await;
        (format!("{address}/base/"), trust)
    }

    async fn post(client: Client) -> Result<Response, Error> {
        client
            .post_form("/v1/x", "secret", "key", "a=b".to_owned())
            .await
    }

    /// A server whose certificate is trusted is asked, and its answer is read; another one never sees the secret.
    #[tokio::test]
    async fn only_trusted_servers_are_asked() {
        let (base, trust) = server(b"HTTP/1.1 402 x\r\ncontent-length: 2\r\n\r\n{}").await;
        let answer = post(Client::trusting(&base, trust).unwrap()).await.unwrap();
        assert_eq!(
            (answer.status.as_u16(), &answer.body[..]),
            (402, &b"{}"[..])
        );
        let refused = post(Client::new(&base).unwrap()).await.err().unwrap();
        assert!(refused.to_string().contains("certificate"), "{refused}");
    }

    /// An answer that is cut short, or none at all, is an error.
    #[tokio::test]
    async fn broken_answers_are_errors() {
        for broken in [
            &b"HTTP/1.1 200 x\r\ncontent-length: 9\r\n\r\n{}"[..],
            b"HTTP/1.1 200",
            b"nonsense\r\n\r\n",
            b"",
        ] {
            let (base, trust) = server(broken).await;
            assert!(post(Client::trusting(&base, trust).unwrap()).await.is_err());
        }
    }

    /// One that says nothing is given up.
    #[tokio::test]
    async fn silence_ends() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let base = format!("http://{}", listener.local_addr().unwrap());
        let mut client = Client::new(&base).unwrap();
        client.timeout = Duration::from_millis(50);
        let silence = post(client).await.err().unwrap();
        assert_eq!(silence.kind, ErrorKind::Timeout);
    }
}
