//! Login over TLS. Which certificates are good enough is the host's to decide and is tested there
//! (`host/sandbox/tests/tls_names.rs`): here `rustls` plays the host's part of the handshake.

mod common;

use common::Cluster;
use rustls::pki_types::{CertificateDer, ServerName, pem::PemObject};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};
use souk_connector_postgres::Session;
use souk_sdk::{Command, Error, Event, Input, Machine, Step};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::time::Duration;

fn shake_hands(cluster: &Cluster, socket: TcpStream) -> StreamOwned<ClientConnection, TcpStream> {
    let mut roots = RootCertStore::empty();
    let authority = CertificateDer::from_pem_slice(cluster.ca_pem().as_bytes()).unwrap();
    roots.add(authority).unwrap();
    let config =
        ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots)
            .with_no_client_auth();
    let name = ServerName::try_from("127.0.0.1").unwrap();
    let connection = ClientConnection::new(Arc::new(config), name).unwrap();
    StreamOwned::new(connection, socket)
}

/// Asks for TLS, hands the wire over, and logs in inside it.
fn log_in(cluster: &Cluster, user: &str, password: &str) -> Result<(), Error> {
    let mut settings = cluster.settings(user, password);
    settings.json = settings.json.replace("disable", "verify-full");
    let mut session = Session::open(settings)?;
    let mut step = Step::default();
    session.start(&mut step)?;
    let asked = std::mem::take(&mut step).into_parts().0;
    let ssl_request = vec![0, 0, 0, 8, 4, 210, 22, 47];
    assert_eq!(asked, [Command::Send(ssl_request.clone())]);
    let mut socket = TcpStream::connect(("127.0.0.1", cluster.port)).unwrap();
    socket
        .set_read_timeout(Some(Duration::from_secs(20)))
        .unwrap();
    socket.write_all(&ssl_request).unwrap();
    let mut willing = [0];
    socket.read_exact(&mut willing).unwrap();
    session.receive(Input::Bytes(willing.to_vec()), &mut step)?;
    let shakes_hands = std::mem::take(&mut step).into_parts().0;
    assert!(
        matches!(shakes_hands[..], [Command::StartTls(_)]),
        "{shakes_hands:?}"
    );
    let mut tls = shake_hands(cluster, socket);
    let mut result = session.receive(Input::TlsEstablished, &mut step);
    while result.is_ok() {
        let (commands, events) = std::mem::take(&mut step).into_parts();
        if events.contains(&Event::Ready) {
            break;
        }
        for command in commands {
            let Command::Send(bytes) = command else {
                panic!("{command:?}")
            };
            tls.write_all(&bytes).unwrap();
            tls.flush().unwrap();
        }
        let mut buffer = vec![0; 1 << 16];
        let n = tls.read(&mut buffer).unwrap();
        let input = if n == 0 {
            Input::Closed
        } else {
            Input::Bytes(buffer[..n].to_vec())
        };
        result = session.receive(input, &mut step);
    }
    result
}

/// SCRAM works inside TLS (where the server also offers channel binding), and cleartext is allowed there only.
#[test]
fn logins_over_tls() {
    let cluster = Cluster::start("ssl=on");
    for (user, password) in [
        ("reader", "readerpw"),
        ("md5er", "md5pw"),
        ("clear", "clearpw"),
    ] {
        log_in(&cluster, user, password).unwrap();
    }
    assert_eq!(
        log_in(&cluster, "clear", "wrong").unwrap_err().code,
        "password_rejected"
    );
}
