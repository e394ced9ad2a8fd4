//! From the first byte to the first `ReadyForQuery`: TLS, the startup message, authentication.
//!
//! Refuses what would give the password away: cleartext without TLS, bytes before the TLS handshake, a server
//! that skips its half of SCRAM.

use crate::protocol::{self, malformed};
use crate::settings::Settings;
use fallible_iterator::FallibleIterator;
use postgres_protocol::authentication::md5_hash;
use postgres_protocol::authentication::sasl::{ChannelBinding, SCRAM_SHA_256, ScramSha256};
use postgres_protocol::message::backend::Message;
use souk_sdk::Error;

/// The server chooses how much work the proof costs us (its default is 4,096): not more than this.
const SCRAM_ITERATIONS_MAX: u32 = 200_000;

/// The server's answer to `SSLRequest`: one byte, and nothing behind it, because that would be plain text that
/// is taken for protected.
pub fn accepts_tls(bytes: &[u8]) -> Result<(), Error> {
    match bytes {
        [b'S'] => Ok(()),
        [b'N'] => Err(Error::configuration(
            "tls_not_supported",
            "the database server does not offer TLS, which ssl_mode asks for: turn it on there, or set ssl_mode to disable where the network is your own",
        )),
        [b'E', ..] => Err(no_process()),
        _ => Err(malformed().detail("unexpected answer to SSLRequest")),
    }
}

/// A server that cannot make a process for the session says so in words, as servers did before version 3 of the protocol, whatever it was asked. They are
/// anybody's who stands in the wire: nothing of them is told.
#[cold]
pub fn no_process() -> Error {
    Error::unavailable(
        "out_of_resources",
        "the database server has answered with an error before it has read anything: it may have no memory for another session",
    )
}

/// The startup message. What is set here every statement finds. A pooler takes what it keeps for each of its clients, and
/// refuses the rest: that is set in each transaction then (`session/pooled`).
pub fn startup(out: &mut Vec<u8>, settings: &Settings) {
    if settings.pooler {
        return protocol::startup(
            out,
            &[
                ("user", &settings.username),
                ("database", &settings.database),
                ("application_name", settings.application_name()),
                ("client_encoding", "UTF8"),
            ],
        );
    }
    let timeout = settings.statement_timeout_ms().to_string();
    protocol::startup(
        out,
        &[
            ("user", &settings.username),
            ("database", &settings.database),
            ("application_name", settings.application_name()),
            ("client_encoding", "UTF8"),
            ("default_transaction_read_only", "on"),
            ("statement_timeout", &timeout),
            // Values that cross as text are written alike at every server.
            ("DateStyle", "ISO"),
            ("IntervalStyle", "postgres"),
            ("TimeZone", "UTC"),
            ("bytea_output", "hex"),
            ("standard_conforming_strings", "on"),
            // Notices would be thrown away here.
            ("client_min_messages", "error"),
        ],
    );
}

/// Where the authentication stands.
#[derive(Default)]
pub struct Login {
    scram: Option<ScramSha256>,
    /// The server has proved that it knows the password too.
    proved: bool,
}

impl Login {
    /// Answers one `Authentication…` message.
    pub fn answer(
        &mut self,
        message: Message,
        settings: &Settings,
        tls: bool,
        out: &mut Vec<u8>,
    ) -> Result<(), Error> {
        match message {
            Message::AuthenticationOk if self.scram.is_none() || self.proved => Ok(()),
            Message::AuthenticationOk => Err(impostor()),
            Message::AuthenticationCleartextPassword if tls => password(out, &settings.password),
            Message::AuthenticationCleartextPassword => Err(Error::configuration(
                "cleartext_refused",
                "the database asks for the password in clear text over a wire without TLS; set ssl_mode",
            )),
            Message::AuthenticationMd5Password(body) => password(
                out,
                &md5_hash(
                    settings.username.as_bytes(),
                    settings.password.as_bytes(),
                    body.salt(),
                ),
            ),
            Message::AuthenticationSasl(body) => {
                let mut mechanisms = body.mechanisms();
                while let Some(mechanism) = mechanisms.next().map_err(|_| malformed())? {
                    if mechanism == SCRAM_SHA_256 {
                        return self.begin_scram(settings, out);
                    }
                }
                Err(unsupported())
            }
            Message::AuthenticationSaslContinue(body) => {
                let scram = self.scram.as_mut().ok_or_else(malformed)?;
                if iterations(body.data()).is_none_or(|count| count > SCRAM_ITERATIONS_MAX) {
                    return Err(Error::configuration(
                        "scram_iterations",
                        "the database asks for too many SCRAM iterations",
                    ));
                }
                scram.update(body.data()).map_err(|_| malformed())?;
                protocol::message(out, b'p', |out| out.extend_from_slice(scram.message()));
                Ok(())
            }
            Message::AuthenticationSaslFinal(body) => {
                let scram = self.scram.as_mut().ok_or_else(malformed)?;
                scram.finish(body.data()).map_err(|_| impostor())?;
                self.proved = true;
                Ok(())
            }
            _ => Err(unsupported()),
        }
    }

    fn begin_scram(&mut self, settings: &Settings, out: &mut Vec<u8>) -> Result<(), Error> {
        if self.scram.is_some() {
            return Err(malformed());
        }
        let scram = ScramSha256::new(settings.password.as_bytes(), ChannelBinding::unsupported());
        let first = scram.message();
        protocol::message(out, b'p', |out| {
            protocol::text(out, SCRAM_SHA_256);
            out.extend_from_slice(&(first.len() as u32).to_be_bytes());
            out.extend_from_slice(first);
        });
        self.scram = Some(scram);
        Ok(())
    }
}

fn password(out: &mut Vec<u8>, password: &str) -> Result<(), Error> {
    if password.contains('\0') {
        return Err(Error::configuration(
            "invalid_settings",
            "the password must not contain NUL",
        ));
    }
    protocol::message(out, b'p', |out| protocol::text(out, password));
    Ok(())
}

/// The iteration count of the server's first message, `r=…,s=…,i=4096`.
fn iterations(first: &[u8]) -> Option<u32> {
    std::str::from_utf8(first)
        .ok()?
        .split(',')
        .find_map(|field| field.strip_prefix("i="))?
        .parse()
        .ok()
}

fn impostor() -> Error {
    Error::authentication(
        "server_unproved",
        "the database server did not prove that it knows the password",
    )
}

fn unsupported() -> Error {
    Error::configuration(
        "unsupported_authentication",
        "the database asks for a kind of authentication that is not supported; use SCRAM-SHA-256 or md5",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Plain text behind the server's consent to TLS is an attack, not a server's answer.
    #[test]
    fn bytes_before_the_handshake_are_refused() {
        assert!(accepts_tls(b"S").is_ok());
        assert_eq!(accepts_tls(b"N").unwrap_err().code, "tls_not_supported");
        assert_eq!(accepts_tls(b"SR").unwrap_err().code, "protocol_error");
        let forks = accepts_tls(b"Ecould not fork new process for connection: Cannot allocate");
        assert_eq!(forks.unwrap_err().code, "out_of_resources");
    }

    /// The password never crosses a plain wire in clear text.
    #[test]
    fn cleartext_needs_tls() {
        let json = r#"{"username":"u","password":"p","database":"d"}"#.to_string();
        let settings = Settings::parse(&souk_sdk::Settings {
            engine: "postgres".into(),
            json,
        })
        .unwrap();
        let mut out = Vec::new();
        let plain = Login::default().answer(
            Message::AuthenticationCleartextPassword,
            &settings,
            false,
            &mut out,
        );
        assert_eq!(
            (plain.unwrap_err().code.as_str(), out.len()),
            ("cleartext_refused", 0)
        );
        Login::default()
            .answer(
                Message::AuthenticationCleartextPassword,
                &settings,
                true,
                &mut out,
            )
            .unwrap();
        assert_eq!(out, b"p\0\0\0\x06p\0");
    }

    /// A server that offers SCRAM and then says 'ok' without its own proof is an impostor.
    #[test]
    fn a_server_must_prove_itself() {
        let mut login = Login {
            scram: Some(ScramSha256::new(b"p", ChannelBinding::unsupported())),
            proved: false,
        };
        let json = r#"{"username":"u","password":"p","database":"d"}"#.to_string();
        let settings = Settings::parse(&souk_sdk::Settings {
            engine: "postgres".into(),
            json,
        })
        .unwrap();
        let error = login
            .answer(Message::AuthenticationOk, &settings, true, &mut Vec::new())
            .unwrap_err();
        assert_eq!(error.code, "server_unproved");
        assert_eq!(iterations(b"r=abc,s=def,i=4096"), Some(4096));
        assert_eq!(iterations(b"r=abc"), None);
    }
}
