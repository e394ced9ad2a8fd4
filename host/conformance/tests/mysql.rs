//! What only the component `mysql` can show: how it proves a password to a MySQL 8 and holds it to the time, which MariaDB it believes, and that
//! a session has room for what it takes.

use std::path::Path;
use std::time::Duration;

use souk_conformance::{Place, Profile, Subject, options};
use souk_outbound::TlsMode;
use souk_sandbox::{Blame, Compiler, Fault, FaultKind, Limits, Options, Query, Request};
use souk_tests::MySql;
use souk_tests::mysql_logins::{Asks, LoginServer, PASSWORD};
use souk_tests::tls::TestCa;

async fn subject(server: &LoginServer, tls: TlsMode, password: &str) -> Subject {
    let place = Place::Tcp {
        host: "127.0.0.1".to_owned(),
        port: server.port,
        tls,
        ca_pem: Some(server.ca_pem.clone()),
    };
    loaded(place, ["souk", password, "shop"]).await
}

/// The component, with a user, a password and a database.
async fn loaded(place: Place, settings: [&str; 3]) -> Subject {
    loaded_with(place, settings, |_| ()).await
}

async fn loaded_with(
    place: Place,
    settings: [&str; 3],
    change: impl FnOnce(&mut Options),
) -> Subject {
    let cache = Path::new(env!("CARGO_TARGET_TMPDIR")).join("conformance");
    let mut bundle = souk_plugins::bundle().iter();
    let (_, wasm) = bundle.find(|(name, _)| *name == "mysql").expect("mysql");
    let mut profile = Profile {
        place: Some(place),
        ..Profile::default()
    };
    for (name, value) in ["username", "password", "database"]
        .into_iter()
        .zip(settings)
    {
        profile.settings.insert(name.to_owned(), value.into());
    }
    let mut options = options(&cache, Compiler::InProcess);
    change(&mut options);
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

/// The two ways of MariaDB's own: a proof by `mysql_native_password`, a signature by `ed25519`. Both let in who knows the password, within TLS and
/// without, and say of another one that it is wrong.
#[tokio::test]
async fn a_mariadb_is_shown_a_proof() {
    let server = MySql::shared();
    if server.is_mysql() {
        return;
    }
    let database = server.database("");
    let quoted = PASSWORD.replace('\'', "''");
    server.admin(&format!(
        "CREATE OR REPLACE USER native IDENTIFIED VIA mysql_native_password USING PASSWORD('{quoted}');
         CREATE OR REPLACE USER signed IDENTIFIED VIA ed25519 USING PASSWORD('{quoted}');
         GRANT SELECT ON {database}.* TO native, signed"
    ));
    for user in ["native", "signed"] {
        logs_in(server, &database, user).await;
    }
}

/// Within TLS and without: who knows the password is let in, twice, since a server may remember it; of another one it is said that it is wrong.
async fn logs_in(server: &MySql, database: &str, user: &str) {
    for tls in [TlsMode::Disable, TlsMode::VerifyFull] {
        let place = Place::Tcp {
            host: "127.0.0.1".to_owned(),
            port: server.port,
            tls,
            ca_pem: Some(server.ca_pem.clone()),
        };
        let ask = async |password: &str| {
            let subject = loaded(place.clone(), [user, password, database]).await;
            let query = Query {
                text: "SELECT CURRENT_USER()".into(),
                parameters: Vec::new(),
                limits: Limits::new(10, 1 << 20),
            };
            let source = subject.source(&place);
            let answer = subject.ask(&source, Request::Query(query)).await;
            subject.close().await;
            answer
        };
        let own = format!("{user}@%");
        for password in ["wrong", PASSWORD, PASSWORD, "wrong"] {
            match ask(password).await {
                Ok(answer) => {
                    assert_eq!(password, PASSWORD, "{user}, {tls:?}");
                    assert_eq!(answer.cell(0, 0).as_str(), Some(own.as_str()), "{tls:?}");
                }
                Err(fault) => {
                    let told = (fault.kind, fault.code.as_str());
                    let wanted = (FaultKind::Authentication, "password_rejected");
                    assert_eq!(told, wanted, "{user}, {tls:?}: {fault:?}");
                    assert_eq!(password, "wrong", "{user}, {tls:?}");
                }
            }
        }
    }
}

/// The ways of MySQL's own: `caching_sha2_password` and `sha256_password`, sealed without TLS and within it plain, and `mysql_native_password` where a
/// release has it turned on.
#[tokio::test]
async fn a_mysql_is_logged_in_to() {
    let server = MySql::shared();
    if !server.is_mysql() {
        return;
    }
    let database = server.database("");
    let known = server.admin("SELECT PLUGIN_NAME FROM information_schema.PLUGINS WHERE PLUGIN_TYPE = 'AUTHENTICATION' AND PLUGIN_STATUS = 'ACTIVE'");
    let quoted = PASSWORD.replace('\'', "''");
    let mut tried = 0;
    for method in [
        "caching_sha2_password",
        "sha256_password",
        "mysql_native_password",
    ] {
        if !known.contains(method) {
            continue;
        }
        tried += 1;
        server.admin(&format!(
            "CREATE USER {method} IDENTIFIED WITH {method} BY '{quoted}'; GRANT SELECT ON {database}.* TO {method}"
        ));
        logs_in(server, &database, method).await;
    }
    assert!(tried >= 2, "{known}");
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

/// Clear text is said within TLS only, and only to a server that proves who it is.
#[tokio::test]
async fn clear_text_needs_a_checked_server() {
    for tls in [TlsMode::Disable, TlsMode::Require] {
        let server = LoginServer::start(Asks::ClearText, tls == TlsMode::Require).await;
        let fault = ping(&server, tls, PASSWORD).await.unwrap_err();
        assert_eq!(
            (fault.kind, fault.code.as_str()),
            (FaultKind::Configuration, "cleartext_refused")
        );
        assert_eq!(server.taken_log(), [""; 0]);
    }
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

/// Of who is reached by another name than its certificate has, `verify-full` wants nothing to do, `verify-ca` takes whom the authority that is
/// trusted has signed, and `require` anybody. Who is not let in is told no password.
#[tokio::test]
async fn modes_ask_for_what_they_say() {
    let server = LoginServer::start_named(Asks::CachingSha2, true, "db.example.com").await;
    // Of the same name: by its key alone it is told apart.
    let stranger = TestCa::new("souk test authority").pem();
    let (own, other) = (Some(&server.ca_pem), Some(&stranger));
    for (tls, ca_pem, comes_in) in [
        (TlsMode::VerifyFull, own, None),
        (TlsMode::VerifyCa, own, Some("TLS")),
        (TlsMode::VerifyCa, other, None),
        (TlsMode::VerifyCa, None, None),
        (TlsMode::Require, other, Some("TLS")),
        (TlsMode::Require, None, Some("TLS")),
        (TlsMode::Disable, None, Some("plain")),
    ] {
        let place = Place::Tcp {
            host: "127.0.0.1".to_owned(),
            port: server.port,
            tls,
            ca_pem: ca_pem.cloned(),
        };
        let subject = loaded(place.clone(), ["souk", PASSWORD, "shop"]).await;
        let source = subject.source(&place);
        let ping = Request::Ping(Limits::new(1, 1_000));
        let refused = subject.ask(&source, ping).await.err();
        subject.close().await;
        let kind = refused.as_ref().map(|fault| fault.kind);
        let wanted = comes_in.is_none().then_some(FaultKind::Tls);
        assert_eq!(kind, wanted, "{tls:?}: {refused:?}");
        // As the server saw it.
        let log = server.taken_log();
        let ways: Vec<&str> = log
            .iter()
            .filter_map(|line| line.split(':').next())
            .collect();
        assert_eq!(ways, Vec::from_iter(comes_in), "{tls:?}");
    }
}

/// A real MariaDB is believed where the authority that is trusted has signed its certificate, and the session is within TLS, by its own word;
/// where only others are trusted it is not. `require` is within TLS whoever has signed, and `disable` is not.
#[tokio::test]
async fn a_real_server_proves_who_it_is() {
    let server = MySql::shared();
    let database = server.database("");
    let place = |tls: TlsMode, ca_pem: Option<&str>| Place::Tcp {
        host: "127.0.0.1".to_owned(),
        port: server.port,
        tls,
        ca_pem: ca_pem.map(str::to_owned),
    };
    let status = match server.is_mysql() {
        true => "performance_schema.session_status",
        false => "information_schema.SESSION_STATUS",
    };
    let own = Some(server.ca_pem.as_str());
    // Of the same name: by its key alone it is told apart.
    let stranger = TestCa::new("souk test authority").pem();
    let subject = loaded(
        place(TlsMode::VerifyFull, own),
        [&server.user, &server.password, &database],
    )
    .await;
    let ask = async |tls: TlsMode, ca_pem: Option<&str>| {
        let source = subject.source(&place(tls, ca_pem));
        let query = Query {
            text: format!(
                "SELECT VARIABLE_VALUE FROM {status} WHERE VARIABLE_NAME = 'Ssl_version'"
            )
            .into(),
            parameters: Vec::new(),
            limits: Limits::new(10, 1 << 20),
        };
        subject.ask(&source, Request::Query(query)).await
    };
    for tls in [TlsMode::VerifyFull, TlsMode::VerifyCa] {
        let answer = ask(tls, own).await.unwrap();
        let version = answer.cell(0, 0);
        let is_within = version.as_str().is_some_and(|text| text.starts_with("TLS"));
        assert!(is_within, "{tls:?}: {version:?}");
        for ca_pem in [None, Some(stranger.as_str())] {
            let fault = ask(tls, ca_pem).await.unwrap_err();
            let told = (fault.blame, fault.kind);
            assert_eq!(told, (Blame::Source, FaultKind::Tls), "{tls:?}: {fault:?}");
        }
    }
    for (tls, ca_pem) in [
        (TlsMode::Require, None),
        (TlsMode::Require, Some(stranger.as_str())),
        (TlsMode::Disable, None),
    ] {
        let answer = ask(tls, ca_pem).await.unwrap();
        let version = answer.cell(0, 0);
        let is_within = version.as_str().is_some_and(|text| text.starts_with("TLS"));
        assert_eq!(is_within, tls == TlsMode::Require, "{tls:?}: {version:?}");
    }
    subject.close().await;
}

/// A MySQL is told in its own words how long a statement may run: for the connection's time, or for what is left of the request's. One that it
/// ends is told as a timeout, and the session goes on.
#[tokio::test]
async fn a_mysql_keeps_the_time() {
    let server = LoginServer::start(Asks::CachingSha2, false).await;
    let subject = subject(&server, TlsMode::Disable, PASSWORD).await;
    let source = subject.source(subject.place.as_ref().unwrap());
    let query = Query {
        text: "SELECT SLEEP(60)".into(),
        parameters: Vec::new(),
        limits: Limits::new(1, 1_000),
    };
    let within = Duration::from_secs(20);
    let fault = subject
        .ask_within(&source, Request::Query(query), within)
        .await
        .unwrap_err();
    assert_eq!(
        (fault.kind, fault.code.as_str()),
        (FaultKind::Timeout, "statement_timeout"),
        "{fault:?}"
    );
    let ping = Request::Ping(Limits::new(1, 1_000));
    subject.ask(&source, ping).await.unwrap();
    subject.close().await;
    let statements = server.taken_statements();
    let limits: Vec<&str> = statements
        .iter()
        .filter_map(|text| text.strip_prefix("SET SESSION max_execution_time = "))
        .collect();
    // In steps of five seconds, so that what the login took does not show.
    assert_eq!(limits, ["30000", "20000", "30000"], "{statements:#?}");
}

/// A value of more than one packet, and the columns that it becomes, fit into a session's memory; a longer one is refused, and the next
/// statement is answered.
#[tokio::test]
async fn a_value_of_two_packets_fits_into_a_session() {
    let server = MySql::shared();
    let database = server.database("");
    let place = Place::Tcp {
        host: "127.0.0.1".to_owned(),
        port: server.port,
        tls: TlsMode::Disable,
        ca_pem: None,
    };
    let settings = [&*server.user, &*server.password, &*database];
    let subject = loaded_with(place.clone(), settings, |options| {
        if cfg!(debug_assertions) {
            // An unoptimised host takes 17 MB from a call byte by byte, which is the call's time and none of what is promised here.
            options.limits.call_budget *= 20;
        }
    });
    let subject = subject.await;
    let source = subject.source(&place);
    let ask = async |length: u32| {
        let text = format!("SELECT REPEAT('x', {length}) AS v");
        let query = Query {
            text: text.as_str().into(),
            parameters: Vec::new(),
            limits: Limits::new(10, 64 << 20),
        };
        subject.ask(&source, Request::Query(query)).await
    };
    for round in 0..3 {
        let answer = ask(17_000_000).await.unwrap();
        let cell = answer.cell(0, 0);
        assert_eq!(cell.as_str().map(str::len), Some(17_000_000), "{round}");
        let fault = ask(25_000_000).await.unwrap_err();
        assert_eq!(
            (fault.kind, fault.code.as_str()),
            (FaultKind::LimitExceeded, "row_bytes")
        );
    }
    subject.close().await;
}
