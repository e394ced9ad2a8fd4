//! A PostgreSQL that gives itself out for version 8.0.2, as Redshift does: a relay before a real one. What it says differently is what users of
//! Redshift have reported: the version, `UNICODE`, settings and columns of the catalog that came later are unknown. The rest is the server behind it,
//! so it is no evidence for what Redshift's SQL does.

use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};

/// Settings that came after 8.0: at login as well as later.
const UNKNOWN_SETTINGS: [&str; 5] = [
    "intervalstyle",
    "bytea_output",
    "standard_conforming_strings",
    "client_min_messages",
    "default_transaction_deferrable",
];
/// What statements may not name there. Arrays are no parameters.
const UNKNOWN_WORDS: [&str; 6] = [
    "relispartition",
    "has_any_column_privilege",
    "has_column_privilege",
    "typcategory",
    "any (",
    "[]",
];
const SSL_REQUEST: u32 = 80_877_103;
const STARTUP: u32 = 196_608;
/// Longer ones are no test's.
const MESSAGE_BYTES_MAX: usize = 16 << 20;

/// Starts one before `127.0.0.1:port`, for as long as the process lives, and says its own port.
pub fn ancient_postgres(port: u16) -> u16 {
    let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a port");
    let own = listener.local_addr().expect("an address").port();
    std::thread::spawn(move || {
        for client in listener.incoming().flatten() {
            std::thread::spawn(move || {
                // Either side may end it at any time.
                let _ = relay(client, port);
            });
        }
    });
    own
}

fn relay(mut client: TcpStream, port: u16) -> io::Result<()> {
    client.set_nodelay(true)?;
    let (mut kind, mut body) = opening(&mut client)?;
    if kind == SSL_REQUEST {
        client.write_all(b"N")?;
        (kind, body) = opening(&mut client)?;
    }
    let mut server = TcpStream::connect(("127.0.0.1", port))?;
    server.set_nodelay(true)?;
    if kind == STARTUP {
        let text = String::from_utf8_lossy(&body).to_lowercase();
        let names = text.split('\0').step_by(2);
        if let Some(name) = names
            .into_iter()
            .find(|name| UNKNOWN_SETTINGS.contains(name))
        {
            return client.write_all(&fatal(name));
        }
    }
    server.write_all(&(8 + body.len() as u32).to_be_bytes())?;
    server.write_all(&kind.to_be_bytes())?;
    server.write_all(&body)?;
    let (mut to_client, mut from_server) = (client.try_clone()?, server.try_clone()?);
    std::thread::spawn(move || {
        while let Ok((tag, body)) = message(&mut from_server) {
            if let Some(body) = said(tag, body)
                && to_client.write_all(&framed(tag, &body)).is_err()
            {
                break;
            }
        }
        let _ = to_client.shutdown(Shutdown::Both);
    });
    while let Ok((tag, body)) = message(&mut client) {
        server.write_all(&framed(tag, &asked(tag, body)))?;
    }
    server.shutdown(Shutdown::Both)
}

/// The first message of a connection has no tag.
fn opening(client: &mut TcpStream) -> io::Result<(u32, Vec<u8>)> {
    let mut head = [0; 8];
    client.read_exact(&mut head)?;
    let [a, b, c, d, kind @ ..] = head;
    let body = body(client, u32::from_be_bytes([a, b, c, d]), 8)?;
    Ok((u32::from_be_bytes(kind), body))
}

fn message(wire: &mut TcpStream) -> io::Result<(u8, Vec<u8>)> {
    let mut head = [0; 5];
    wire.read_exact(&mut head)?;
    let [tag, length @ ..] = head;
    Ok((tag, body(wire, u32::from_be_bytes(length), 4)?))
}

fn body(wire: &mut TcpStream, length: u32, counted: usize) -> io::Result<Vec<u8>> {
    let length = (length as usize)
        .checked_sub(counted)
        .filter(|n| *n <= MESSAGE_BYTES_MAX);
    let mut body = vec![0; length.ok_or(io::ErrorKind::InvalidData)?];
    wire.read_exact(&mut body)?;
    Ok(body)
}

fn framed(tag: u8, body: &[u8]) -> Vec<u8> {
    let mut out = vec![tag];
    out.extend((4 + body.len() as u32).to_be_bytes());
    out.extend(body);
    out
}

fn fatal(name: &str) -> Vec<u8> {
    let fields = format!(
        "SFATAL\0C42704\0Munrecognized configuration parameter \"{name}\"\0Rset_config_option\0\0"
    );
    framed(b'E', fields.as_bytes())
}

/// What the server says, as an old one would; None is not said at all.
fn said(tag: u8, body: Vec<u8>) -> Option<Vec<u8>> {
    if tag != b'S' {
        return Some(body);
    }
    let text = String::from_utf8_lossy(&body).into_owned();
    match text.split('\0').next()? {
        "server_version" => Some(b"server_version\x008.0.2\0".to_vec()),
        "client_encoding" => Some(b"client_encoding\0UNICODE\0".to_vec()),
        "server_encoding" | "integer_datetimes" | "DateStyle" | "TimeZone" | "is_superuser" => {
            Some(body)
        }
        _ => None,
    }
}

/// What the client asks; a statement that an old server would not know becomes one that no server knows.
fn asked(tag: u8, body: Vec<u8>) -> Vec<u8> {
    if tag != b'P' {
        return body;
    }
    let text = String::from_utf8_lossy(&body).to_lowercase();
    let unknown = UNKNOWN_SETTINGS
        .iter()
        .chain(&UNKNOWN_WORDS)
        .find(|word| text.contains(**word));
    match unknown {
        None => body,
        Some(word) => format!("\0SELECT version_8_does_not_know('{word}')\0\0\0").into_bytes(),
    }
}
