//! Login over TLS: `openssl s_client` plays the host's part of the handshake.

mod common;

use common::Cluster;
use souk_connector_postgres::Session;
use souk_sdk::{Command, Error, Event, Input, Machine, Step};
use std::io::{Read, Write};
use std::process::{Command as Process, Stdio};

/// Asks for TLS, hands the wire over, and logs in inside it.
fn log_in(cluster: &Cluster, user: &str, password: &str) -> Result<(), Error> {
    let mut settings = cluster.settings(user, password);
    settings.json = settings.json.replace("disable", "verify-full");
    let mut session = Session::open(settings)?;
    let mut step = Step::default();
    session.start(&mut step)?;
    let asked = std::mem::take(&mut step).into_parts().0;
    assert_eq!(asked, [Command::Send(vec![0, 0, 0, 8, 4, 210, 22, 47])]);
    session.receive(Input::Bytes(b"S".to_vec()), &mut step)?;
    assert_eq!(
        std::mem::take(&mut step).into_parts().0,
        [Command::StartTls]
    );
    let mut tls = Process::new("openssl")
        .args([
            "s_client",
            "-quiet",
            "-starttls",
            "postgres",
            "-connect",
            &format!("127.0.0.1:{}", cluster.port),
        ])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let (mut out, mut back) = (tls.stdin.take().unwrap(), tls.stdout.take().unwrap());
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
            out.write_all(&bytes).unwrap();
            out.flush().unwrap();
        }
        let mut buffer = vec![0; 1 << 16];
        let n = back.read(&mut buffer).unwrap();
        let input = if n == 0 {
            Input::Closed
        } else {
            Input::Bytes(buffer[..n].to_vec())
        };
        result = session.receive(input, &mut step);
    }
    tls.kill().unwrap();
    tls.wait().unwrap();
    result
}

/// SCRAM works inside TLS (where the server also offers channel binding), and cleartext is allowed there only.
#[test]
fn logins_over_tls() {
    let cluster = Cluster::get();
    cluster.enable_tls();
    for (user, password) in [
        ("reader", "readerpw"),
        ("md5er", "md5pw"),
        ("clear", "clearpw"),
    ] {
        log_in(cluster, user, password).unwrap();
    }
    assert_eq!(
        log_in(cluster, "clear", "wrong").unwrap_err().code,
        "password_rejected"
    );
}
