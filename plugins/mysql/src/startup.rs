//! From the server's greeting to its first OK: TLS, who we are, the proof of the password, and what a session begins with.
//!
//! Refuses what would give the password away: clear text without TLS, and bytes before the TLS handshake (`session`).

use crate::errors::ServerError;
use crate::protocol::{self, EOF, ERROR, OK, Reader, UTF8MB4, can, malformed};
use crate::secrets;
use crate::settings::Settings;
use souk_sdk::Error;

/// The one version of the protocol that is spoken since 1998.
const PROTOCOL: u8 = 10;
/// What the server may send in one packet is its own setting; this is what we say that we take.
const PACKET_BYTES_MAX: u32 = 1 << 30;
/// Without these there is no session: they are older than any server that is still in use.
const NEEDED: u32 = can::PROTOCOL_41 | can::SECURE_CONNECTION | can::PLUGIN_AUTH;
const WANTED: u32 = NEEDED
    | can::LONG_PASSWORD
    | can::LONG_FLAG
    | can::CONNECT_WITH_DB
    | can::TRANSACTIONS
    | can::CONNECT_ATTRS
    | can::PLUGIN_AUTH_LENENC
    | can::DEPRECATE_EOF;

/// What a session begins with: words in which it speaks, times in UTC, and nothing is written. Then the two settings that decide where a text ends are
/// as the host reads statements; what includes them goes with them, and all others stay the server's.
pub const SETUP: [&str; 4] = [
    "SET NAMES utf8mb4",
    "SET SESSION time_zone = '+00:00'",
    "SET SESSION TRANSACTION READ ONLY",
    "SET SESSION sql_mode = REPLACE(REPLACE(REPLACE(REPLACE(REPLACE(REPLACE(REPLACE(REPLACE(@@SESSION.sql_mode, \
     'ANSI_QUOTES', ''), 'NO_BACKSLASH_ESCAPES', ''), 'ANSI', ''), 'ORACLE', ''), 'MSSQL', ''), 'POSTGRESQL', ''), 'MAXDB', ''), 'DB2', '')",
];

/// And with results that no setting of the server's cuts.
pub const ALL_ROWS: &str = "SET SESSION sql_select_limit = 18446744073709551615";
/// The same where that is refused: servers that only speak this protocol count in 64 bits with a sign.
pub const ALL_ROWS_SIGNED: &str = "SET SESSION sql_select_limit = 9223372036854775807";

/// What a server says first.
pub struct Greeting {
    /// As it shows itself: `10.11.19-MariaDB`, `8.4.0`.
    pub version: String,
    /// The number of the session, which `KILL` takes.
    pub thread: u32,
    /// What both sides can do.
    pub abilities: u32,
    nonce: Vec<u8>,
    method: Vec<u8>,
}

impl Greeting {
    pub fn read(body: &[u8]) -> Result<Greeting, Error> {
        if body.first() == Some(&ERROR) {
            // Too many connections, or none for us.
            return Err(ServerError::read(body)?.blame(false));
        }
        let mut reader = Reader(body);
        if reader.u8()? != PROTOCOL {
            return Err(unsupported_protocol());
        }
        let version = String::from_utf8_lossy(reader.text()).into_owned();
        let thread = reader.u32()?;
        let mut nonce = reader.take(8)?.to_vec();
        reader.u8()?;
        let low = reader.u16()?;
        if reader.0.is_empty() {
            return Err(unsupported_protocol());
        }
        let _character_set = reader.u8()?;
        let _status = reader.u16()?;
        let abilities = u32::from(low) | u32::from(reader.u16()?) << 16;
        let nonce_bytes = usize::from(reader.u8()?);
        // Reserved; the end of it is MariaDB's own abilities.
        reader.take(10)?;
        if abilities & NEEDED != NEEDED {
            return Err(unsupported_protocol());
        }
        let rest = reader.take(nonce_bytes.saturating_sub(8).max(13))?;
        nonce.extend_from_slice(rest.strip_suffix(&[0]).unwrap_or(rest));
        let method = reader.text().to_vec();
        Ok(Greeting {
            // MariaDB once put a version in front that old replicas understand.
            version: version.strip_prefix("5.5.5-").unwrap_or(&version).into(),
            thread,
            abilities,
            nonce,
            method,
        })
    }

    /// MariaDB says its name in its version.
    pub fn is_mariadb(&self) -> bool {
        self.version.to_ascii_lowercase().contains("mariadb")
    }

    /// What we say that we can do.
    fn ours(&self, tls: bool) -> u32 {
        let ours = WANTED & (self.abilities | can::LONG_PASSWORD | can::CONNECT_WITH_DB);
        if tls { ours | can::SSL } else { ours }
    }

    /// Whether the end of rows is an OK.
    pub fn deprecates_eof(&self) -> bool {
        self.abilities & can::DEPRECATE_EOF != 0
    }

    /// `SSLRequest`; what comes after it is the TLS handshake.
    pub fn ask_tls(&self, out: &mut Vec<u8>, number: u8) -> Result<(), Error> {
        if self.abilities & can::SSL == 0 {
            return Err(Error::configuration(
                "tls_not_supported",
                "the database server does not offer TLS, which ssl_mode asks for: turn it on there, or set ssl_mode to disable where the network is your own",
            ));
        }
        protocol::message(out, number, |out| self.head(out, true));
        Ok(())
    }

    fn head(&self, out: &mut Vec<u8>, tls: bool) {
        out.extend_from_slice(&self.ours(tls).to_le_bytes());
        out.extend_from_slice(&PACKET_BYTES_MAX.to_le_bytes());
        out.push(UTF8MB4);
        out.extend_from_slice(&[0; 23]);
    }

    /// Says who we are, with a proof by the method that the server names, if we know it: if not, it names the user's own.
    pub fn log_in(
        self,
        out: &mut Vec<u8>,
        number: u8,
        settings: &Settings,
        tls: bool,
    ) -> Result<Login, Error> {
        let method = Method::of(&self.method).filter(|method| method.proves_at_once());
        let method = method.unwrap_or(Method::Native);
        let proof = method.proof(settings, &self.nonce, tls)?;
        let ours = self.ours(tls);
        protocol::message(out, number, |out| {
            self.head(out, tls);
            protocol::text(out, &settings.username);
            // Shorter than 251 bytes, whose length is written alike either way.
            protocol::sized(out, &proof);
            protocol::text(out, &settings.database);
            protocol::text(out, method.name());
            if ours & can::CONNECT_ATTRS != 0 {
                let mut attributes = Vec::new();
                protocol::sized(&mut attributes, b"program_name");
                protocol::sized(&mut attributes, b"souk");
                protocol::sized(out, &attributes);
            }
        });
        Ok(Login {
            method,
            nonce: self.nonce,
            awaits_key: false,
        })
    }
}

/// How a password is proved.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Method {
    Native,
    CachingSha2,
    Sha256,
    Ed25519,
    Clear,
}

const METHODS: [(Method, &str); 5] = [
    (Method::Native, "mysql_native_password"),
    (Method::CachingSha2, "caching_sha2_password"),
    (Method::Sha256, "sha256_password"),
    (Method::Ed25519, "client_ed25519"),
    (Method::Clear, "mysql_clear_password"),
];

impl Method {
    fn of(name: &[u8]) -> Option<Method> {
        let mut known = METHODS.iter();
        known
            .find(|(_, known)| known.as_bytes() == name)
            .map(|(method, _)| *method)
    }

    fn name(self) -> &'static str {
        let found = METHODS.iter().find(|(method, _)| *method == self);
        found.map_or("", |(_, name)| name)
    }

    /// Whether the greeting's nonce is enough. Nothing is said in clear text before it is asked for.
    fn proves_at_once(self) -> bool {
        matches!(self, Method::Native | Method::CachingSha2)
    }

    fn proof(self, settings: &Settings, nonce: &[u8], tls: bool) -> Result<Vec<u8>, Error> {
        let password = &settings.password;
        let part = |bytes| nonce.get(..bytes).ok_or_else(malformed);
        Ok(match self {
            Method::Native => secrets::native(password, part(secrets::NONCE_BYTES)?),
            Method::CachingSha2 => secrets::caching_sha2(password, part(secrets::NONCE_BYTES)?),
            Method::Ed25519 => secrets::ed25519(password, part(secrets::MESSAGE_BYTES)?),
            Method::Sha256 if tls => secrets::clear(password),
            // Any server may ask for it: only one that has shown who it is gets it.
            Method::Clear if tls && settings.ssl_mode.is_checked() => secrets::clear(password),
            Method::Sha256 if password.is_empty() => vec![0],
            // The server's public key, please.
            Method::Sha256 => vec![1],
            Method::Clear => {
                return Err(Error::configuration(
                    "cleartext_refused",
                    "the database asks for the password in clear text, which only a server with a checked certificate is told; set ssl_mode to verify-ca or verify-full",
                ));
            }
        })
    }
}

/// Where the authentication stands.
pub struct Login {
    method: Method,
    nonce: Vec<u8>,
    /// The server has been asked for its public key.
    awaits_key: bool,
}

impl Login {
    /// Answers one message of the server's; true when it lets us in.
    pub fn answer(
        &mut self,
        body: &[u8],
        number: u8,
        settings: &Settings,
        tls: bool,
        out: &mut Vec<u8>,
    ) -> Result<bool, Error> {
        let reply = match body {
            [OK, ..] => return Ok(true),
            [ERROR, ..] => return Err(ServerError::read(body)?.blame(false)),
            [EOF, rest @ ..] => self.switch(rest, settings, tls)?,
            [1, data @ ..] => match self.go_on(data, settings, tls)? {
                Some(reply) => reply,
                None => return Ok(false),
            },
            _ => return Err(malformed()),
        };
        protocol::message(out, number.wrapping_add(1), |out| {
            out.extend_from_slice(&reply)
        });
        Ok(false)
    }

    /// The user's method is another one.
    fn switch(&mut self, rest: &[u8], settings: &Settings, tls: bool) -> Result<Vec<u8>, Error> {
        let mut reader = Reader(rest);
        let name = reader.text();
        self.method = Method::of(name).ok_or_else(|| {
            Error::configuration(
                "login_method",
                "the database wants a kind of login that this connector does not know; give it a user with a password (caching_sha2_password, mysql_native_password or ed25519)",
            )
            .detail(String::from_utf8_lossy(name).into_owned())
        })?;
        self.nonce = reader.0.strip_suffix(&[0]).unwrap_or(reader.0).to_vec();
        if self.method == Method::Ed25519 {
            // Its nonce may end in any byte.
            self.nonce = reader.0.to_vec();
        }
        self.awaits_key = self.method == Method::Sha256 && !tls;
        self.method.proof(settings, &self.nonce, tls)
    }

    /// The rest of a conversation that is longer than one message.
    fn go_on(
        &mut self,
        data: &[u8],
        settings: &Settings,
        tls: bool,
    ) -> Result<Option<Vec<u8>>, Error> {
        const REMEMBERED: u8 = 3;
        const SAY_IT: u8 = 4;
        match (self.method, data) {
            (Method::CachingSha2 | Method::Sha256, pem) if std::mem::take(&mut self.awaits_key) => {
                let nonce = self
                    .nonce
                    .get(..secrets::NONCE_BYTES)
                    .ok_or_else(malformed)?;
                sealed(&settings.password, nonce, pem).map(Some)
            }
            // The OK follows.
            (Method::CachingSha2, [REMEMBERED]) => Ok(None),
            (Method::CachingSha2, [SAY_IT]) if tls => Ok(Some(secrets::clear(&settings.password))),
            (Method::CachingSha2, [SAY_IT]) => {
                self.awaits_key = true;
                Ok(Some(vec![2]))
            }
            _ => Err(malformed()),
        }
    }
}

#[cfg(target_arch = "wasm32")]
use crate::sealing::sealed;

/// Natively this crate is only tested, and built without the cryptography for this; `tests/conformance` tries the component.
#[cfg(not(target_arch = "wasm32"))]
fn sealed(_: &str, _: &[u8], _: &[u8]) -> Result<Vec<u8>, Error> {
    Err(Error::unsupported(
        "sealing a password outside of its component",
    ))
}

#[cold]
fn unsupported_protocol() -> Error {
    Error::configuration(
        "unsupported_protocol",
        "the database speaks a protocol that is older than MySQL 5.5, or none of MySQL's",
    )
}
