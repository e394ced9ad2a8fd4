//! From the first packet to the login's answer: what is said before TLS, who asks, and what the server says to that.
//!
//! Refuses what would give the password away: a server without TLS. A login only scrambles it.

use souk_sdk::{Error, TlsHandshake, TlsRecords};
use tds_protocol::login7::{Login7, TypeFlags};
use tds_protocol::prelogin::{EncryptionLevel, PreLogin};
use tds_protocol::token::{LoginAck, ServerError};
use tds_protocol::version::TdsVersion;

use crate::errors::login_refused;
use crate::protocol::{PACKET_BYTES_WANTED, malformed};
use crate::settings::{Intent, Settings, Version};
use crate::tokens::Token;

/// What the two sides say before a login has a few dozen bytes.
pub const PRELOGIN_BYTES_MAX: usize = 4 << 10;
/// Names us to whoever looks at the server's sessions.
const PROGRAM: &str = "souk";
const ALPN: &str = "tds/8.0";
/// Severities up to this one are no errors.
const INFORMATION: u8 = 10;
/// Versions of the protocol, by their first byte, that describe columns and ends as 7.4 does: 7.2 to 7.4, and 8.0.
const VERSIONS: [u8; 4] = [0x72, 0x73, 0x74, 0x08];

/// What the client says first.
pub fn prelogin(settings: &Settings) -> Vec<u8> {
    let (version, encryption) = match settings.tds_version {
        Version::V7 => (TdsVersion::V7_4, EncryptionLevel::On),
        // It is encrypted already, by another layer than the one that is asked for here.
        Version::V8 => (TdsVersion::V8_0, EncryptionLevel::NotSupported),
    };
    let says = PreLogin::new()
        .with_version(version)
        .with_encryption(encryption);
    says.encode().to_vec()
}

/// Whether TLS follows what the server said. Where it has begun already, it need not.
pub fn agreed(body: &[u8], is_sealed: bool) -> Result<(), Error> {
    let says = PreLogin::decode(body).map_err(|error| malformed().detail(error.to_string()))?;
    // The crate takes what is not said for what is required.
    match says.encryption {
        _ if is_sealed => Ok(()),
        EncryptionLevel::On | EncryptionLevel::Required => Ok(()),
        EncryptionLevel::Off | EncryptionLevel::NotSupported => Err(Error::configuration(
            "tls_not_supported",
            "the server offers no TLS, and without it no password is sent to it: give it a certificate",
        )),
        _ => Err(Error::configuration(
            "login_method",
            "the server wants a certificate of its client, which this connector has none of",
        )),
    }
}

/// How TLS begins.
pub fn handshake(settings: &Settings) -> TlsHandshake {
    match settings.tds_version {
        Version::V7 => TlsHandshake {
            records: TlsRecords::TdsPrelogin,
            protocols: Vec::new(),
        },
        Version::V8 => TlsHandshake {
            records: TlsRecords::Bare,
            protocols: vec![ALPN.to_owned()],
        },
    }
}

/// Who asks. Only within TLS.
pub fn login(settings: &Settings) -> Vec<u8> {
    let version = match settings.tds_version {
        Version::V7 => TdsVersion::V7_4,
        Version::V8 => TdsVersion::V8_0,
    };
    let mut login = Login7::new()
        .with_tds_version(version)
        .with_sql_auth(&settings.username, &settings.password)
        .with_database(&settings.database)
        .with_hostname(PROGRAM)
        .with_app_name(PROGRAM)
        // Azure finds the server by it.
        .with_server_name(settings.host.as_deref().unwrap_or_default())
        .with_packet_size(PACKET_BYTES_WANTED);
    PROGRAM.clone_into(&mut login.library_name);
    login.client_pid = 0;
    // It is what the crate sends by itself, too. Without it a server sends 4 KiB of a long text and says nothing (`TEXTSIZE`), may cut results
    // (`ROWCOUNT`), and reads NULLs and quotes otherwise (`ANSI_DEFAULTS`).
    login.option_flags2.odbc = true;
    login.type_flags = TypeFlags {
        read_only_intent: settings.application_intent == Intent::ReadOnly,
        ..TypeFlags::default()
    };
    login.encode().to_vec()
}

/// What a login was answered so far.
#[derive(Default)]
pub struct Answer {
    ack: Option<LoginAck>,
    error: Option<ServerError>,
    elsewhere: Option<String>,
    pub packet_bytes: Option<usize>,
    has_ended: bool,
}

impl Answer {
    pub fn take(&mut self, token: Token) -> Result<(), Error> {
        match token {
            _ if self.has_ended => return Err(malformed()),
            Token::LoggedIn(ack) => self.ack = Some(ack),
            Token::Error(error) if error.class > INFORMATION => {
                self.error.get_or_insert(error);
            }
            Token::Elsewhere(place) => self.elsewhere = Some(place),
            Token::PacketBytes(bytes) => self.packet_bytes = Some(bytes),
            Token::Done(done) => self.has_ended = done.is_last,
            Token::Columns(_) | Token::Row(_) => return Err(malformed()),
            Token::Error(_) | Token::Transaction(_) | Token::Other => {}
        }
        Ok(())
    }

    /// The message is over: we are let in, or are not.
    pub fn conclude(&mut self) -> Result<(), Error> {
        if let Some(error) = self.error.take() {
            return Err(login_refused(error));
        }
        if let Some(place) = self.elsewhere.take() {
            return Err(Error::configuration(
                "redirected",
                "the server sends its clients elsewhere: name that server in the connection, or (Azure SQL) set the server's connection policy to Proxy",
            )
            .detail(place));
        }
        match &self.ack {
            _ if !self.has_ended => Err(malformed()),
            None => Err(malformed().detail("the login was not answered")),
            Some(ack) if VERSIONS.contains(&ack.tds_version.to_le_bytes()[0]) => Ok(()),
            Some(ack) => Err(
                Error::unsupported("this version of SQL Server").detail(format!(
                    "{} speaks TDS {:08x}",
                    ack.prog_name,
                    ack.tds_version.swap_bytes()
                )),
            ),
        }
    }
}
