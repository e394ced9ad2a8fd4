//! Mail by the operator's own relay, over SMTP: bounded in time, and protected wherever it leaves this machine.
//!
//! Refuses to know what is written and why. The relay is dialled by lettre and not through `souk-outbound`: it is the operator's, its address is
//! no company's choice, and STARTTLS changes the connection while it is spoken on.

use std::time::Duration;

use lettre::message::{Mailbox, header::ContentType};
use lettre::{AsyncSmtpTransport, AsyncTransport, Message, Tokio1Executor};
use souk_domain::ids::CompanyId;
use souk_domain::names::breaks_lines;
use tokio::sync::Semaphore;
use url::{Host, Url};

use crate::lines::Lines;

/// Of one command, and of all of them together: somebody waits for it.
const COMMAND_MAX: Duration = Duration::from_secs(5);
const SENT_WITHIN: Duration = Duration::from_secs(10);
/// Handed to the relay at once: it is the operator's own, and need not hold more for us.
const UNDER_WAY_MAX: usize = 8;
/// … and of one company, so that others' go on where a relay is slow.
const UNDER_WAY_PER_COMPANY: usize = 2;

/// Of a name: a subject has room for that.
const NAME_CHARS_MAX: usize = 100;

pub struct Mailer {
    relay: AsyncSmtpTransport<Tokio1Executor>,
    from: Mailbox,
    within: Duration,
    /// Places of mails under way: in all, and of each company that has one under way or waiting.
    places: Semaphore,
    companies: Lines<CompanyId>,
}

/// What an operator wrote that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum SettingError {
    #[error("must be smtps://…, smtp://…?tls=required, or smtp://… of this machine")]
    Insecure,
    #[error("is not the address of a relay: {0}")]
    Relay(String),
    #[error("is not an address to send from: {0}")]
    From(String),
}

#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct MailError(String);

impl Mailer {
    /// `url`: `smtps://user:password@relay:465`, `smtp://user:password@relay:587?tls=required`. `from`: `Souk <souk@example.org>`, or the
    /// address alone.
    pub fn new(url: &str, from: &str) -> Result<Mailer, SettingError> {
        Mailer::within(url, from, SENT_WITHIN)
    }

    fn within(url: &str, from: &str, within: Duration) -> Result<Mailer, SettingError> {
        check(url)?;
        // Its error may repeat the password.
        let relay = AsyncSmtpTransport::<Tokio1Executor>::from_url(url)
            .map_err(|_| SettingError::Relay("it cannot be read".to_owned()))?;
        let from = from.parse();
        let from = from.map_err(|error: lettre::address::AddressError| {
            SettingError::From(error.to_string())
        })?;
        Ok(Mailer {
            relay: relay.timeout(Some(COMMAND_MAX.min(within))).build(),
            from,
            within,
            places: Semaphore::new(UNDER_WAY_MAX),
            companies: Lines::new(UNDER_WAY_PER_COMPANY),
        })
    }

    /// Hands a text to the relay, at a company's word and in its turn. Whether it arrives, nobody knows.
    pub async fn send(
        &self,
        company: &CompanyId,
        to: &str,
        subject: &str,
        text: String,
    ) -> Result<(), MailError> {
        let failed = |error: String| MailError(error);
        let to = to.parse().map_err(|error| failed(format!("{error}")));
        let message = Message::builder()
            .from(self.from.clone())
            .to(Mailbox::new(None, to?))
            .subject(subject)
            .header(ContentType::TEXT_PLAIN)
            .body(text)
            .map_err(|error| failed(error.to_string()))?;
        let handed = async {
            // The company's first: who waits for it holds no place of others.
            let _own = self.companies.stand(company).await;
            let _place = self.places.acquire().await;
            self.relay.send(message).await
        };
        match tokio::time::timeout(self.within, handed).await {
            Ok(Ok(_)) => Ok(()),
            Ok(Err(error)) => Err(failed(error.to_string())),
            Err(_) => Err(failed("the relay did not take it in time".to_owned())),
        }
    }
}

/// A name that somebody has given, as a mail of the operator's may have it: in quotes and in one line, so that it writes no header and seems no
/// part of the text.
pub fn quoted(name: &str) -> String {
    let name = name.chars().filter(|letter| !breaks_lines(*letter));
    let name = name.map(|letter| if letter == '"' { '\'' } else { letter });
    let name: String = name.take(NAME_CHARS_MAX).collect();
    format!("\"{name}\"")
}

/// Passwords and invitations go there: nobody may listen on the way, nor talk the relay out of TLS.
fn check(url: &str) -> Result<(), SettingError> {
    let relay = |text: &str| SettingError::Relay(text.to_owned());
    let url = Url::parse(url).map_err(|error| relay(&error.to_string()))?;
    // Of a scheme that `Url` does not know a host is a text.
    let host = url.host_str().ok_or_else(|| relay("it names no host"))?;
    let is_local = match Host::parse(host) {
        Ok(Host::Domain(name)) => name == "localhost",
        Ok(Host::Ipv4(address)) => address.is_loopback(),
        Ok(Host::Ipv6(address)) => address.is_loopback(),
        Err(_) => false,
    };
    let demands_tls = url
        .query_pairs()
        .any(|(name, value)| name == "tls" && value == "required");
    match url.scheme() {
        "smtps" => Ok(()),
        "smtp" if demands_tls || is_local => Ok(()),
        "smtp" => Err(SettingError::Insecure),
        _ => Err(relay("its scheme is neither smtp nor smtps")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::future::join_all;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::time::Instant;
    use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
    use tokio::net::TcpListener;
    use tokio_rustls::TlsAcceptor;
    use tokio_rustls::rustls::pki_types::PrivateKeyDer;
    use tokio_rustls::rustls::{ServerConfig, crypto::ring};

    const FROM: &str = "Souk <souk@example.org>";

    /// Only what nobody can listen to is a relay.
    #[test]
    fn a_relay_is_protected_or_near() {
        for good in [
            "smtps://user:secret@relay.example:465",
            "smtp://user:secret@relay.example:587?tls=required",
            "smtp://127.0.0.1:2525",
            "smtp://localhost",
        ] {
            assert!(Mailer::new(good, FROM).is_ok(), "{good}");
        }
        for wrong in [
            "smtp://relay.example",
            "smtp://relay.example?tls=opportunistic",
            "https://relay.example",
            "relay.example:25",
            "smtps://",
        ] {
            let error = Mailer::new(wrong, FROM).err().unwrap().to_string();
            assert!(!error.contains("secret"), "{error}");
        }
        assert!(Mailer::new("smtp://localhost", "nobody").is_err());
    }

    /// A name writes no header, no line and no end of its quotes, however it came to be.
    #[test]
    fn a_name_stays_in_its_line() {
        let name = "Your \"account\"\r\nBcc: x@example.org\n\u{2028}\u{7f} is locked";
        let expected = "\"Your 'account'Bcc: x@example.org is locked\"";
        assert_eq!(quoted(name), expected);
        assert_eq!(quoted(&"x".repeat(300)).len(), 102);
    }

    /// However many are sent at once, a relay that says nothing holds two of a company and eight in all.
    #[tokio::test]
    async fn few_are_under_way() {
        for (companies, expected) in [(1, UNDER_WAY_PER_COMPANY), (6, UNDER_WAY_MAX)] {
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            let url = format!("smtp://{}", listener.local_addr().unwrap());
            let taken = Arc::new(AtomicUsize::new(0));
            let counted = taken.clone();
            tokio::spawn(async move {
                let mut held = Vec::new();
                while let Ok((stream, _)) = listener.accept().await {
                    held.push(stream);
                    counted.fetch_add(1, Ordering::SeqCst);
                }
            });
            let mailer = &Mailer::new(&url, FROM).unwrap();
            let companies: Vec<_> = (0..companies).map(|_| CompanyId::generate()).collect();
            let sends = companies.iter().flat_map(|company| {
                (0..5).map(move |_| mailer.send(company, "ann@example.org", "s", "t".to_owned()))
            });
            // Well before the relay is given up, and somebody else's turn comes.
            let looked = async {
                let since = Instant::now();
                while taken.load(Ordering::SeqCst) < expected {
                    assert!(since.elapsed() < COMMAND_MAX, "too few are sent");
                    tokio::time::sleep(Duration::from_millis(10)).await;
                }
                tokio::time::sleep(Duration::from_millis(200)).await;
            };
            tokio::select! {
                _ = join_all(sends) => panic!("nobody answers"),
                () = looked => {}
            }
            assert_eq!(taken.load(Ordering::SeqCst), expected);
        }
    }

    /// A relay that refuses, says nothing or shows a certificate that nobody vouches for has taken nothing.
    #[tokio::test]
    async fn a_relay_may_fail() {
        let send = async |url: String, within: Duration| {
            let mailer = Mailer::within(&url, FROM, within).unwrap();
            let company = CompanyId::generate();
            let sent = mailer
                .send(&company, "ann@example.org", "s", "t".to_owned())
                .await;
            sent.unwrap_err().to_string()
        };
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let silent = format!("smtp://{}", listener.local_addr().unwrap());
        send(silent, Duration::from_millis(500)).await;
        drop(listener);

        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let refusing = format!("smtp://{}", listener.local_addr().unwrap());
        tokio::spawn(async move {
            let (stream, _) = listener.accept().await.unwrap();
            let mut stream = BufReader::new(stream);
            stream.write_all(b"220 relay\r\n").await.unwrap();
            let mut line = String::new();
            while stream.read_line(&mut line).await.unwrap() > 0 {
                let answer: &[u8] = match &line[..4] {
                    "RCPT" => b"550 nobody of that name here\r\n",
                    _ => b"250 ok\r\n",
                };
                stream.write_all(answer).await.unwrap();
                line.clear();
            }
        });
        let refused = send(refusing, COMMAND_MAX).await;
        assert!(refused.contains("nobody of that name"), "{refused}");

        let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
        let key = PrivateKeyDer::try_from(made.signing_key.serialize_der()).unwrap();
        let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![made.cert.der().clone()], key)
            .unwrap();
        let acceptor = TlsAcceptor::from(Arc::new(config));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let heard = tokio::spawn(async move {
            let (stream, _) = listener.accept().await.unwrap();
            match acceptor.accept(stream).await {
                Ok(mut stream) => stream.read(&mut [0; 64]).await.unwrap_or(0),
                Err(_) => 0,
            }
        });
        let url = format!("smtps://user:secret@localhost:{port}");
        let refused = send(url, COMMAND_MAX).await;
        assert!(
            refused.to_lowercase().contains("cert") || refused.contains("connection"),
            "{refused}"
        );
        assert_eq!(heard.await.unwrap(), 0);
    }
}
