//! A MySQL 8 that only lets in: `caching_sha2_password` and what else MariaDB does not have. It keeps the password as a server does, and says
//! which way each client came in. After that it takes every statement, which it notes, and answers none with rows: what deletes is refused,
//! and what is prepared runs longer than the server lets it.
//!
//! Whether it is like MySQL was tried with four clients of others, as a program of Python's of which this is a translation.

use std::fs;
use std::io::{self, Write};
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};

use sha2::{Digest, Sha256};
use tempfile::TempDir;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;
use tokio_rustls::TlsAcceptor;

use crate::tls::TestCa;

pub const PASSWORD: &str = "pässw'ord";
/// Mixed into proofs. The same each time: this is no server to be safe with.
const NONCE: &[u8; 20] = b"abcdefghijklmnopqrst";
/// PROTOCOL_41, TRANSACTIONS, SECURE_CONNECTION, PLUGIN_AUTH and its length, CONNECT_WITH_DB; not DEPRECATE_EOF.
const ABILITIES: u32 = 1 << 3 | 1 << 9 | 1 << 13 | 1 << 15 | 1 << 19 | 1 << 21;
const TLS: u32 = 1 << 11;

/// Commands.
const QUIT: u8 = 0x01;
const QUERY: u8 = 0x03;
const PREPARE: u8 = 0x16;
const EXECUTE: u8 = 0x17;
const CLOSE: u8 = 0x19;

/// What the server asks of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asks {
    CachingSha2,
    Sha256,
    /// `mysql_clear_password`.
    ClearText,
    /// A method that nobody knows.
    Kerberos,
    /// Says something before TLS stands.
    TlsTooLate,
}

pub struct LoginServer {
    pub port: u16,
    /// The authority that signed the server's certificate.
    pub ca_pem: String,
    shared: Arc<Shared>,
    task: JoinHandle<()>,
}

struct Shared {
    asks: Asks,
    acceptor: Option<TlsAcceptor>,
    /// Its key pair, in files.
    keys: TempDir,
    public_pem: Vec<u8>,
    /// Whether it remembers the password's hash, as it does after a full login.
    remembers: Mutex<bool>,
    log: Mutex<Vec<String>>,
    statements: Mutex<Vec<String>>,
}

impl Shared {
    fn note(&self, statement: &[u8]) {
        let text = String::from_utf8_lossy(statement).into_owned();
        self.statements.lock().expect("a lock").push(text);
    }
}

impl LoginServer {
    pub async fn start(asks: Asks, with_tls: bool) -> LoginServer {
        LoginServer::start_named(asks, with_tls, "127.0.0.1").await
    }

    /// With a certificate for this name, if it has TLS.
    pub async fn start_named(asks: Asks, with_tls: bool, name: &str) -> LoginServer {
        let ca = TestCa::new("souk test authority");
        let leaf = ca.server(&[name]);
        let keys = tempfile::tempdir().expect("a directory");
        let private = keys.path().join("private.pem");
        let private = private.to_str().expect("a name");
        openssl(&["genrsa", "-out", private, "2048"], b"");
        let public_pem = openssl(&["rsa", "-in", private, "-pubout"], b"");
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.expect("a port");
        let port = listener.local_addr().expect("an address").port();
        let shared = Arc::new(Shared {
            asks,
            acceptor: with_tls.then(|| leaf.acceptor()),
            keys,
            public_pem,
            remembers: Mutex::new(false),
            log: Mutex::new(Vec::new()),
            statements: Mutex::new(Vec::new()),
        });
        let serving = shared.clone();
        let task = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let shared = serving.clone();
                tokio::spawn(async move {
                    // Who goes away is not this test's business.
                    let _ = serve(stream, shared).await;
                });
            }
        });
        LoginServer {
            port,
            ca_pem: ca.pem(),
            shared,
            task,
        }
    }

    /// How clients came in since this was last asked.
    pub fn taken_log(&self) -> Vec<String> {
        std::mem::take(&mut self.shared.log.lock().expect("a lock"))
    }

    /// What was to be run or prepared since this was last asked, in the order in which it came.
    pub fn taken_statements(&self) -> Vec<String> {
        std::mem::take(&mut self.shared.statements.lock().expect("a lock"))
    }
}

impl Drop for LoginServer {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// What openssl answers to this input.
fn openssl(arguments: &[&str], input: &[u8]) -> Vec<u8> {
    let mut command = Command::new("openssl");
    command.args(arguments).stdin(Stdio::piped());
    let mut child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("openssl runs (Debian: apt-get install openssl)");
    let mut stdin = child.stdin.take().expect("an input");
    let _ = stdin.write_all(input);
    drop(stdin);
    child.wait_with_output().expect("an output").stdout
}

/// A wire, and the number of the next packet on it.
struct Peer<S> {
    stream: S,
    number: u8,
}

impl<S: AsyncRead + AsyncWrite + Unpin> Peer<S> {
    async fn receive(&mut self) -> io::Result<Vec<u8>> {
        let mut header = [0; 4];
        self.stream.read_exact(&mut header).await?;
        let [a, b, c, number] = header;
        let mut body = vec![0; u32::from_le_bytes([a, b, c, 0]) as usize];
        self.stream.read_exact(&mut body).await?;
        self.number = number.wrapping_add(1);
        Ok(body)
    }

    async fn send(&mut self, body: &[u8]) -> io::Result<()> {
        let mut packet = (body.len() as u32).to_le_bytes();
        packet[3] = self.number;
        self.number = self.number.wrapping_add(1);
        self.stream.write_all(&[&packet, body].concat()).await?;
        self.stream.flush().await
    }

    async fn ok(&mut self) -> io::Result<()> {
        self.send(&[0, 0, 0, 2, 0, 0, 0]).await
    }

    async fn refuse(&mut self, number: u16, state: &str, text: &str) -> io::Result<()> {
        let number = number.to_le_bytes();
        let body = [
            &[0xff],
            &number[..],
            b"#",
            state.as_bytes(),
            text.as_bytes(),
        ];
        self.send(&body.concat()).await
    }

    /// A statement with the number 1, of one column `n` and without parameters.
    async fn prepared(&mut self) -> io::Result<()> {
        self.send(&[0, 1, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0]).await?;
        self.send(b"\x03def\0\0\0\x01n\0\x0c\x3f\0\x15\0\0\0\x08\0\0\0\0\0")
            .await?;
        self.send(&[0xfe, 0, 0, 2, 0]).await
    }
}

async fn serve(stream: TcpStream, shared: Arc<Shared>) -> io::Result<()> {
    let tls = if shared.acceptor.is_some() { TLS } else { 0 };
    let abilities = ABILITIES | tls;
    let mut peer = Peer { stream, number: 0 };
    let greeting = [
        &b"\x0a8.4.0-souk\0"[..],
        &7u32.to_le_bytes(),
        &NONCE[..8],
        &[0],
        &(abilities as u16).to_le_bytes(),
        &[45, 2, 0],
        &((abilities >> 16) as u16).to_le_bytes(),
        &[21],
        &[0; 10],
        &NONCE[8..],
        b"\0caching_sha2_password\0",
    ];
    peer.send(&greeting.concat()).await?;
    if shared.asks == Asks::TlsTooLate {
        peer.ok().await?;
    }
    let first = peer.receive().await?;
    match &shared.acceptor {
        Some(acceptor) if first.len() == 32 => {
            let stream = acceptor.accept(peer.stream).await?;
            let mut peer = Peer {
                stream,
                number: peer.number,
            };
            let response = peer.receive().await?;
            converse(&mut peer, &response, true, &shared).await
        }
        _ => converse(&mut peer, &first, false, &shared).await,
    }
}

async fn converse<S: AsyncRead + AsyncWrite + Unpin>(
    peer: &mut Peer<S>,
    response: &[u8],
    is_tls: bool,
    shared: &Shared,
) -> io::Result<()> {
    let (is_in, how) = log_in(peer, response, shared).await?;
    let place = if is_tls { "TLS" } else { "plain" };
    let line = format!("{place}: {how}{}", if is_in { "" } else { ", refused" });
    shared.log.lock().expect("a lock").push(line);
    if !is_in {
        return peer.refuse(1045, "28000", "Access denied").await;
    }
    peer.ok().await?;
    loop {
        let command = peer.receive().await?;
        if let Some((&(QUERY | PREPARE), text)) = command.split_first() {
            shared.note(text);
        }
        match command.split_first() {
            Some((&QUERY, text)) if text.starts_with(b"DELETE") => {
                peer.refuse(
                    1792,
                    "25006",
                    "Cannot execute statement in a READ ONLY transaction.",
                )
                .await?;
            }
            Some((&PREPARE, _)) => peer.prepared().await?,
            Some((&EXECUTE, _)) => {
                peer.refuse(
                    3024,
                    "HY000",
                    "Query execution was interrupted, maximum statement execution time exceeded",
                )
                .await?;
            }
            // It is not answered.
            Some((&CLOSE, _)) => {}
            Some((&QUIT, _)) => return Ok(()),
            _ => peer.ok().await?,
        }
    }
}

/// Whether the password was right, and how it was said.
async fn log_in<S: AsyncRead + AsyncWrite + Unpin>(
    peer: &mut Peer<S>,
    response: &[u8],
    shared: &Shared,
) -> io::Result<(bool, String)> {
    let switch = |name: &str| [&[0xfe], name.as_bytes(), b"\0", NONCE, b"\0"].concat();
    let malformed = || io::Error::from(io::ErrorKind::InvalidData);
    match shared.asks {
        Asks::CachingSha2 | Asks::TlsTooLate => {
            let user = response.get(32..).ok_or_else(malformed)?;
            let end = user
                .iter()
                .position(|byte| *byte == 0)
                .ok_or_else(malformed)?;
            let length = usize::from(*user.get(end + 1).ok_or_else(malformed)?);
            let proof = user.get(end + 2..end + 2 + length).ok_or_else(malformed)?;
            if *shared.remembers.lock().expect("a lock") {
                let is_right = proof == expected();
                if is_right {
                    peer.send(&[1, 3]).await?;
                }
                return Ok((is_right, "remembered".to_owned()));
            }
            peer.send(&[1, 4]).await?;
        }
        Asks::Sha256 => peer.send(&switch("sha256_password")).await?,
        Asks::ClearText => peer.send(&switch("mysql_clear_password")).await?,
        Asks::Kerberos => peer.send(&switch("authentication_kerberos_client")).await?,
    }
    let answer = peer.receive().await?;
    let (said, how) = match answer.as_slice() {
        [1] | [2] => {
            let key = [&[1], shared.public_pem.as_slice()].concat();
            peer.send(&key).await?;
            let sealed = peer.receive().await?;
            (unsealed(&sealed, shared), "sealed")
        }
        _ => (answer, "in clear text"),
    };
    let is_right = said == [PASSWORD.as_bytes(), b"\0"].concat();
    *shared.remembers.lock().expect("a lock") |= is_right;
    Ok((is_right, how.to_owned()))
}

/// What a client that knows the password proves it with.
fn expected() -> Vec<u8> {
    let once = Sha256::digest(PASSWORD);
    let mask = Sha256::new()
        .chain_update(Sha256::digest(once))
        .chain_update(NONCE)
        .finalize();
    once.iter()
        .zip(mask)
        .map(|(one, mask)| one ^ mask)
        .collect()
}

fn unsealed(sealed: &[u8], shared: &Shared) -> Vec<u8> {
    let private = shared.keys.path().join("private.pem");
    fs::metadata(&private).expect("the key");
    let options = [
        "-pkeyopt",
        "rsa_padding_mode:oaep",
        "-pkeyopt",
        "rsa_oaep_md:sha1",
    ];
    let mut arguments = vec![
        "pkeyutl",
        "-decrypt",
        "-inkey",
        private.to_str().expect("a name"),
    ];
    arguments.extend(options);
    let mixed = openssl(&arguments, sealed);
    let masks = NONCE.iter().cycle();
    mixed
        .iter()
        .zip(masks)
        .map(|(byte, mask)| byte ^ mask)
        .collect()
}
