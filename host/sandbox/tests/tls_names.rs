//! What each `ssl_mode` proves about a real server whose certificate is for another name, or from
//! another authority. Every other test has a certificate that fits, and so cannot tell the modes apart. And that what is long leaves within TLS.

mod common;

use std::{
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use common::*;
use souk_outbound::TlsMode;
use souk_sandbox::{Blame, Fault, FaultKind, Grant, PoolLimits, Source, Value};
use souk_tests::{
    PgCluster,
    tls::{Leaf, TestCa},
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpSocket, TcpStream},
};

/// The authority's subject in every cluster: a stranger of the same name is told apart by its key only.
const AUTHORITY: &str = "souk test authority";

/// Sources of one server.
struct Server {
    cluster: PgCluster,
    sandbox: TestSandbox,
}

impl Server {
    /// A server with a certificate for these names, and the bundled connector.
    async fn with_certificate_for(names: &[&str]) -> Server {
        Server::of(PgCluster::start_named(names, &[]).await).await
    }

    async fn of(cluster: PgCluster) -> Server {
        let (_, wasm) = souk_plugins::bundle()
            .iter()
            .find(|(name, _)| *name == "postgres")
            .expect("the connector is bundled");
        Server {
            cluster,
            sandbox: with_guest(wasm).await,
        }
    }

    /// Each is a data connection of its own, so that no session of another mode answers.
    fn source(&self, host: &str, tls: TlsMode, ca_pem: Option<&str>) -> Source {
        let ssl_mode = match tls {
            TlsMode::Disable => "disable",
            TlsMode::Require => "require",
            TlsMode::VerifyCa => "verify-ca",
            TlsMode::VerifyFull => "verify-full",
        };
        static NEXT: AtomicU32 = AtomicU32::new(0);
        Source {
            company: "com_1".into(),
            connection: format!("con_{}", NEXT.fetch_add(1, Ordering::Relaxed)),
            revision: 1,
            engine: "postgres".into(),
            settings_json: format!(
                r#"{{"database":"postgres","username":"{}","password":"{}","ssl_mode":"{ssl_mode}"}}"#,
                self.cluster.user, self.cluster.password
            ),
            grant: Grant::Tcp {
                host: host.into(),
                port: self.cluster.port,
                tls,
                ca_pem: ca_pem.map(String::from),
            },
            limits: PoolLimits::default(),
        }
    }

    /// Whether the server says that the session is encrypted.
    async fn is_encrypted(&self, source: Source) -> Result<bool, Fault> {
        let sql = "SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()";
        let output = run(&self.sandbox, &Arc::new(source), sql).await?;
        match rows(&output).as_str() {
            r#"[{"ssl":true}]"# => Ok(true),
            r#"[{"ssl":false}]"# => Ok(false),
            other => panic!("{other}"),
        }
    }

    /// The reason for which the certificate was refused.
    async fn refusal(&self, host: &str, tls: TlsMode, ca_pem: Option<&str>) -> String {
        match self.is_encrypted(self.source(host, tls, ca_pem)).await {
            Ok(_) => panic!("{host} {tls:?}: the certificate was accepted"),
            Err(fault) => {
                assert_eq!(
                    (fault.blame, fault.kind),
                    (Blame::Source, FaultKind::Tls),
                    "{host} {tls:?}: {fault:?}"
                );
                fault.detail.unwrap_or(fault.message)
            }
        }
    }
}

/// What is longer than the way to the server has room for arrives within TLS as well, to its last byte, although nothing is sent behind it.
#[tokio::test]
async fn long_parameters_leave_within_tls() {
    const BYTES: usize = 4 << 20;
    let mut server = Server::with_certificate_for(&["localhost"]).await;
    server.cluster.port = narrow(server.cluster.port).await;
    let source = Arc::new(server.source("localhost", TlsMode::Require, None));
    // The last bytes find no room only where it ends with them: of a megabyte or so, one length in twenty.
    for length in (0..40).map(|round| BYTES + round * 48_611) {
        let text = Value::Text("x".repeat(length));
        let request = query_with("SELECT length($1)", vec![text]);
        let output = server.sandbox.run(&source, request, within(20)).await;
        assert_eq!(
            rows(&output.unwrap()),
            format!(r#"[{{"length":{length}}}]"#)
        );
    }
}

/// A port that leads to this one, and takes as much as 64 MiB a second: whoever sends more finds no room.
async fn narrow(port: u16) -> u16 {
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_recv_buffer_size(64 << 10).unwrap();
    socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let listener = socket.listen(8).unwrap();
    let narrow = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        while let Ok((client, _)) = listener.accept().await {
            let server = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
            let (mut from_client, mut to_client) = client.into_split();
            let (mut from_server, mut to_server) = server.into_split();
            tokio::spawn(async move { tokio::io::copy(&mut from_server, &mut to_client).await });
            tokio::spawn(async move {
                let mut piece = vec![0; 64 << 10];
                while let Ok(length @ 1..) = from_client.read(&mut piece).await {
                    to_server.write_all(&piece[..length]).await.unwrap();
                    tokio::time::sleep(Duration::from_millis(1)).await;
                }
            });
        }
    });
    narrow
}

/// A certificate of the right authority for another name: `verify-full` refuses it and says why, `verify-ca` takes it.
#[tokio::test]
async fn only_verify_full_looks_at_the_name() {
    let server = Server::with_certificate_for(&["db.example.com"]).await;
    let ca = Some(server.cluster.ca_pem.as_str());
    for host in ["localhost", "127.0.0.1"] {
        let reason = server.refusal(host, TlsMode::VerifyFull, ca).await;
        assert!(
            reason.contains(&format!("not valid for name \"{host}\"")),
            "{reason}"
        );
        let verify_ca = server.source(host, TlsMode::VerifyCa, ca);
        assert!(
            server.is_encrypted(verify_ca).await.unwrap(),
            "{host}: verify-ca is not encrypted"
        );
    }
}

/// The name is the one that the connection is made to: one that the certificate has beside others does not help,
/// and an address is no substitute for the name that leads to it.
#[tokio::test]
async fn the_name_is_the_one_dialled() {
    let server = Server::with_certificate_for(&["db.example.com", "localhost"]).await;
    let ca = Some(server.cluster.ca_pem.as_str());
    let named = server.source("localhost", TlsMode::VerifyFull, ca);
    assert!(
        server.is_encrypted(named).await.unwrap(),
        "verify-full is not encrypted"
    );
    let reason = server.refusal("127.0.0.1", TlsMode::VerifyFull, ca).await;
    assert!(reason.contains("not valid for name"), "{reason}");
}

/// Another authority is refused by both checks, whatever the name on the certificate and on the authority.
#[tokio::test]
async fn both_checks_look_at_the_authority() {
    let fitting = Server::with_certificate_for(&["localhost", "127.0.0.1"]).await;
    let strange = Server::with_certificate_for(&["db.example.com"]).await;
    let authorities = [
        Some(TestCa::new(AUTHORITY).pem()),
        Some(TestCa::new("somebody else").pem()),
        // The public authorities: they did not sign it either.
        None,
    ];
    for server in [&fitting, &strange] {
        for authority in &authorities {
            for mode in [TlsMode::VerifyCa, TlsMode::VerifyFull] {
                let reason = server
                    .refusal("localhost", mode, authority.as_deref())
                    .await;
                assert!(
                    reason.contains("invalid peer certificate")
                        && !reason.contains("not valid for name"),
                    "{mode:?}: {reason}"
                );
            }
        }
    }
}

/// `require` encrypts whoever answers, and `disable` does not encrypt: the server itself says so.
#[tokio::test]
async fn require_encrypts_and_disable_does_not() {
    let server = Server::with_certificate_for(&["db.example.com"]).await;
    for (mode, encrypted) in [(TlsMode::Require, true), (TlsMode::Disable, false)] {
        let source = server.source("127.0.0.1", mode, None);
        let answer = server.is_encrypted(source).await;
        assert_eq!(answer.unwrap(), encrypted, "{mode:?}");
    }
}

/// A certificate that only old clients read is as good as any where none is checked, and where one is its owner is told what to do.
#[tokio::test]
async fn certificates_of_version_1_are_for_require() {
    let leaf = Leaf::of_version_1();
    let ca_pem = leaf.certificate_pem.clone();
    let server = Server::of(PgCluster::start_with(&leaf, ca_pem, &[]).await).await;
    let required = server.source("127.0.0.1", TlsMode::Require, None);
    assert!(server.is_encrypted(required).await.unwrap());
    let ca = Some(server.cluster.ca_pem.as_str());
    for mode in [TlsMode::VerifyCa, TlsMode::VerifyFull] {
        let reason = server.refusal("127.0.0.1", mode, ca).await;
        assert!(
            reason.contains("make one of version 3"),
            "{mode:?}: {reason}"
        );
    }
}

/// A connector that does not ask for TLS gets no session where the data connection demands it.
#[tokio::test]
async fn a_connector_cannot_do_without() {
    let server = Server::with_certificate_for(&["localhost"]).await;
    let ca = Some(server.cluster.ca_pem.as_str());
    for (mode, name) in [
        (TlsMode::Require, "require"),
        (TlsMode::VerifyCa, "verify-ca"),
        (TlsMode::VerifyFull, "verify-full"),
    ] {
        let mut source = server.source("localhost", mode, ca);
        // The connector reads its settings, the host its grant.
        source.settings_json = source.settings_json.replace(name, "disable");
        let fault = server.is_encrypted(source).await.unwrap_err();
        assert_eq!(fault.kind, FaultKind::Tls, "{mode:?}: {fault:?}");
        assert_eq!(fault.code, "tls_not_offered", "{mode:?}: {fault:?}");
    }
}
