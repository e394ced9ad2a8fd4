//! How the component `mysql` proves a password to a MySQL 8: what is said is never in clear text without TLS.

use std::path::Path;

use souk_conformance::{Place, Profile, Subject, options};
use souk_outbound::TlsMode;
use souk_sandbox::{Compiler, Fault, FaultKind, Limits, Request};
use souk_tests::mysql_logins::{Asks, LoginServer, PASSWORD};

async fn subject(server: &LoginServer, tls: TlsMode, password: &str) -> Subject {
    let cache = Path::new(env!("CARGO_TARGET_TMPDIR")).join("conformance");
    let mut bundle = souk_plugins::bundle().iter();
    let (_, wasm) = bundle.find(|(name, _)| *name == "mysql").expect("mysql");
    let mut profile = Profile {
        place: Some(Place::Tcp {
            host: "127.0.0.1".to_owned(),
            port: server.port,
            tls,
            ca_pem: Some(server.ca_pem.clone()),
        }),
        ..Profile::default()
    };
    for (name, value) in [
        ("username", "souk"),
        ("password", password),
        ("database", "shop"),
    ] {
        profile.settings.insert(name.to_owned(), value.into());
    }
    let options = options(&cache, Compiler::InProcess);
    Subject::load(*wasm, options, profile).await.unwrap()
}

/// A ping on a session of its own.
async fn ping(server: &LoginServer, tls: TlsMode, password: &str) -> Result<(), Fault> {
    let subject = subject(server, tls, password).await;
    let source = subject.source(subject.place.as_ref().unwrap());
    let answer = subject
        .ask(&source, Request::Ping(Limits::new(1, 1_000)))
        .await;
    subject.close().await;
    let answer = answer?;
    assert_eq!(answer.cell(0, 1).as_bool(), Some(true));
    Ok(())
}

/// `caching_sha2_password`: in full once, sealed without TLS and within it plain, then by a proof.
#[tokio::test]
async fn a_password_is_said_once() {
    for (tls, full) in [
        (TlsMode::Disable, "plain: sealed"),
        (TlsMode::VerifyFull, "TLS: in clear text"),
    ] {
        let server = LoginServer::start(Asks::CachingSha2, tls != TlsMode::Disable).await;
        let fault = ping(&server, tls, "wrong").await.unwrap_err();
        assert_eq!(fault.kind, FaultKind::Authentication, "{fault:?}");
        assert_eq!(server.taken_log(), [format!("{full}, refused")]);
        ping(&server, tls, PASSWORD).await.unwrap();
        ping(&server, tls, PASSWORD).await.unwrap();
        let place = full.split(':').next().unwrap();
        assert_eq!(
            server.taken_log(),
            [full.to_owned(), format!("{place}: remembered")]
        );
        let fault = ping(&server, tls, "wrong").await.unwrap_err();
        assert_eq!(fault.kind, FaultKind::Authentication);
    }
}

/// `sha256_password` has no proof: it is sealed, or within TLS.
#[tokio::test]
async fn sha256_is_sealed() {
    let server = LoginServer::start(Asks::Sha256, false).await;
    ping(&server, TlsMode::Disable, PASSWORD).await.unwrap();
    assert_eq!(server.taken_log(), ["plain: sealed"]);
    let server = LoginServer::start(Asks::Sha256, true).await;
    ping(&server, TlsMode::Require, PASSWORD).await.unwrap();
    assert_eq!(server.taken_log(), ["TLS: in clear text"]);
}

/// Clear text is said within TLS only, and to a server that proves who it is if the connection wants that.
#[tokio::test]
async fn clear_text_needs_tls() {
    let server = LoginServer::start(Asks::ClearText, false).await;
    let fault = ping(&server, TlsMode::Disable, PASSWORD).await.unwrap_err();
    assert_eq!(
        (fault.kind, fault.code.as_str()),
        (FaultKind::Configuration, "cleartext_refused")
    );
    let server = LoginServer::start(Asks::ClearText, true).await;
    ping(&server, TlsMode::VerifyCa, PASSWORD).await.unwrap();
    assert_eq!(server.taken_log(), ["TLS: in clear text"]);
    let mut stranger = LoginServer::start(Asks::ClearText, true).await;
    stranger.ca_pem = server.ca_pem.clone();
    let fault = ping(&stranger, TlsMode::VerifyCa, PASSWORD)
        .await
        .unwrap_err();
    assert_eq!(fault.kind, FaultKind::Tls, "{fault:?}");
    assert_eq!(stranger.taken_log(), [""; 0]);
}

/// A method that is not known is named to the seller; what a server says before TLS stands is not believed.
#[tokio::test]
async fn strange_servers_are_refused() {
    let server = LoginServer::start(Asks::Kerberos, false).await;
    let fault = ping(&server, TlsMode::Disable, PASSWORD).await.unwrap_err();
    assert_eq!(
        (fault.kind, fault.code.as_str()),
        (FaultKind::Configuration, "login_method")
    );
    assert_eq!(
        fault.detail.as_deref(),
        Some("authentication_kerberos_client")
    );
    let server = LoginServer::start(Asks::TlsTooLate, true).await;
    assert!(ping(&server, TlsMode::Require, PASSWORD).await.is_err());
    assert_eq!(server.taken_log(), [""; 0]);
    let server = LoginServer::start(Asks::CachingSha2, false).await;
    let fault = ping(&server, TlsMode::Require, PASSWORD).await.unwrap_err();
    assert_eq!(
        (fault.kind, fault.code.as_str()),
        (FaultKind::Configuration, "tls_not_supported")
    );
}
