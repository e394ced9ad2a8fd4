//! Sends one delivery: signed and posted over a connection to an address that was checked, and no further read than matters.

use std::time::Duration;

use bytes::Bytes;
use http::{Request, StatusCode, header};
use http_body_util::Full;
use souk_domain::ids::CompanyId;
use souk_outbound::{Bounds, Clients, EgressPolicy, Error, ErrorKind, OwnOfEach, Reach, Trust};

use crate::destinations::plain;

/// Attempts in flight on this host: each costs a socket, and some memory for TLS.
pub(super) const IN_FLIGHT_MAX: usize = 64;
/// … and to one webhook, so that a slow receiver leaves room for others, and a small one is not run over. How many may go to all webhooks
/// of one company is a setting ([`crate::CompanyBounds::deliveries`]).
pub(super) const IN_FLIGHT_PER_WEBHOOK: usize = 4;
/// From the lookup of the name to the last byte of the answer, as far as that is read: what an answer is worth is known when it has begun.
pub(super) const TIMEOUT: Duration = Duration::from_secs(15);
/// Nothing in an answer's body matters; so much is read, so that the receiver gets rid of it, and the rest is not.
const ANSWER_BYTES_MAX: usize = 16 << 10;

const BOUNDS: Bounds = Bounds {
    connect: TIMEOUT,
    // Many times what any server sends.
    head_bytes: 64 << 10,
    // The next of a burst of events find these open.
    idle_per_host: IN_FLIGHT_PER_WEBHOOK,
    // Of all companies.
    idle_total: IN_FLIGHT_MAX,
    // Before common receivers close: they wait for 5 seconds or longer.
    idle: Some(Duration::from_secs(3)),
};

/// Companies share no connection: what one's receiver does to it is not another one's business.
pub(super) struct Client {
    http: Clients<CompanyId, OwnOfEach>,
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
    /// `Err` says why TLS cannot be set up.
    pub fn new(egress: &EgressPolicy) -> Result<Client, String> {
        Ok(Client::trusting(egress, Trust::verified(None)?))
    }

    fn trusting(egress: &EgressPolicy, trust: Trust) -> Client {
        let reach = Reach {
            egress: egress.clone(),
            egress_plain: plain(egress),
            trust: Some(trust),
            account: OwnOfEach::default(),
        };
        Client {
            http: Clients::new(reach, BOUNDS),
            timeout: TIMEOUT,
        }
    }

    /// Posts a company's delivery. The error is for the webhook's owner.
    pub async fn post(&self, company: &CompanyId, message: Message) -> Result<StatusCode, Error> {
        let request = request(message)
            .map_err(|error| Error::new(ErrorKind::Unreachable, error.to_string()))?;
        let http = self.http.of(company);
        let answer = http.send(request, self.timeout, ANSWER_BYTES_MAX).await?;
        // However it goes on, it has begun with whether the event has arrived.
        Ok(answer.head.status)
    }
}

fn request(message: Message) -> Result<Request<Full<Bytes>>, http::Error> {
    Request::post(message.url)
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
    use crate::tls_server::serve;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;

    fn message(url: &str) -> Message {
        Message {
            url: url.to_owned(),
            id: "dlv_1".to_owned(),
            timestamp: 1_700_000_000,
            signature: "v1,abc".to_owned(),
            body: "{}".to_owned(),
        }
    }

    async fn post(client: &Client, url: &str) -> Result<StatusCode, Error> {
        client.post(&CompanyId::generate(), message(url)).await
    }

    fn loopback() -> EgressPolicy {
        EgressPolicy::public_only().allow_network("127.0.0.0/8".parse().unwrap())
    }

    /// A receiver under TLS whose certificate is trusted is told; one whose certificate is not never sees the event.
    #[tokio::test]
    async fn only_trusted_receivers_are_told() {
        let answer = b"HTTP/1.1 204 x\r\nconnection: close\r\n\r\n";
        let (address, trust) = serve("POST /a?b=c HTTP/1.1\r\n", answer).await;
        let url = format!("{address}/a?b=c");
        let trusting = Client::trusting(&loopback(), trust);
        assert_eq!(post(&trusting, &url).await.unwrap(), 204);
        let public = Client::new(&loopback()).unwrap();
        let refused = post(&public, &url).await.unwrap_err();
        assert!(refused.to_string().contains("certificate"), "{refused}");
    }

    /// An answer that is too long still says whether the event has arrived.
    #[tokio::test]
    async fn long_answers_are_not_read_to_their_end() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/", listener.local_addr().unwrap());
        tokio::spawn(async move {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut request = vec![0; 4096];
            assert!(stream.read(&mut request).await.unwrap() > 0);
            let head = b"HTTP/1.1 200 x\r\ncontent-length: 99999999999\r\n\r\n";
            stream.write_all(head).await.unwrap();
            let part = vec![b'x'; 4096];
            while stream.write_all(&part).await.is_ok() {}
        });
        let client = Client::new(&loopback()).unwrap();
        assert_eq!(post(&client, &url).await.unwrap(), 200);
    }

    /// Nor is it waited for: a receiver that leaves its answer open has been told, and is not told again.
    #[tokio::test]
    async fn answers_that_do_not_end_have_begun() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/", listener.local_addr().unwrap());
        let receiver = tokio::spawn(async move {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut request = vec![0; 4096];
            assert!(stream.read(&mut request).await.unwrap() > 0);
            stream.write_all(b"HTTP/1.1 200 x\r\n\r\nok").await.unwrap();
            // Until the other side closes.
            while stream.read(&mut request).await.unwrap_or(0) > 0 {}
        });
        let mut client = Client::new(&loopback()).unwrap();
        // Longer than the head takes here, on whatever machine.
        client.timeout = Duration::from_secs(3);
        assert_eq!(post(&client, &url).await.unwrap(), 200);
        receiver.await.unwrap();
    }

    /// One that says nothing is given up in time, and an address that is not allowed is not dialled, whatever its scheme.
    #[tokio::test]
    async fn silence_and_refused_addresses_are_failures() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let mut client = Client::new(&loopback()).unwrap();
        client.timeout = Duration::from_millis(500);
        let silence = post(&client, &format!("http://{address}/")).await;
        assert_eq!(silence.unwrap_err().kind, ErrorKind::Timeout);
        drop(listener.accept().await);
        let client = Client::new(&EgressPolicy::public_only()).unwrap();
        for scheme in ["http", "https"] {
            let refused = post(&client, &format!("{scheme}://{address}/")).await;
            let refused = refused.unwrap_err();
            assert!(
                refused.to_string().contains("does not connect to"),
                "{refused}"
            );
        }
        let unseen = tokio::time::timeout(Duration::from_millis(100), listener.accept()).await;
        assert!(unseen.is_err(), "a refused address was dialled");
    }
}
