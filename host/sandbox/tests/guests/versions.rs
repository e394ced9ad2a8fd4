//! Components and their versions: what is refused, what takes over, and whose it is.

use std::sync::Arc;

use souk_sandbox::{Blame, FaultKind, LoadError, PoolLimits, Scope, Source, Status};
use souk_tests::guests;

use crate::common::*;

/// What cannot be a connector is refused at load, in words that say why.
#[tokio::test]
async fn what_is_no_connector_is_refused_with_its_reason() {
    let sandbox = sandbox();
    for (wasm, reason) in [
        (guests::NOT_A_COMPONENT, "not a WebAssembly component"),
        (guests::CORE_MODULE, "core WebAssembly module"),
        (guests::WRONG_WORLD, "for another world"),
        (
            guests::FUTURE_VERSION,
            "this host serves 1.0: rebuild with sdk 1.0 or upgrade the host",
        ),
    ] {
        let error = sandbox
            .load(wasm, Scope::Platform)
            .await
            .unwrap_err()
            .to_string();
        assert!(error.contains(reason), "{error}");
    }
    assert!(sandbox.connectors().is_empty());
}

/// A component may import what nothing grants, since it reaches nothing by it: its author is warned, and a call traps with its name.
#[tokio::test]
async fn what_is_not_granted_traps() {
    let sandbox = with_guest(guests::IMPORTS_SOCKETS).await;
    let warnings = &sandbox.connectors()[0].warnings;
    assert!(
        warnings
            .iter()
            .any(|warning| warning.contains("wasi:sockets/tcp@0.2")),
        "{warnings:?}"
    );
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let source = source("imports-sockets");
    let address = listener.local_addr().unwrap().to_string();
    let fault = run(&sandbox, &source, &address).await.unwrap_err();
    assert_eq!(
        (fault.blame, fault.code.as_str()),
        (Blame::Connector, "not_granted")
    );
    assert!(fault.message.contains("wasi:sockets/"), "{fault}");
    assert_eq!(
        listener.accept().unwrap_err().kind(),
        std::io::ErrorKind::WouldBlock
    );
}

/// A new version takes over, the old one drains; rollback goes back; an active version stays.
#[tokio::test]
async fn versions_are_activated_and_rolled_back() {
    let sandbox = with_guest(guests::FIXED_ROWS).await;
    let source = source("fixed");
    let before = rows(
        &run(&sandbox, &source, "select label limit 1")
            .await
            .unwrap(),
    );
    let next = sandbox
        .load(guests::FIXED_ROWS_NEXT, Scope::Platform)
        .await
        .unwrap();
    assert_eq!(next.status, Status::Staged);
    assert_eq!(
        rows(
            &run(&sandbox, &source, "select label limit 1")
                .await
                .unwrap()
        ),
        before
    );
    sandbox
        .activate(&Scope::Platform, &next.name, &next.version)
        .await
        .unwrap();
    assert_ne!(
        rows(
            &run(&sandbox, &source, "select label limit 1")
                .await
                .unwrap()
        ),
        before
    );
    assert!(
        sandbox
            .remove(&Scope::Platform, &next.name, &next.version)
            .is_err()
    );
    let back = sandbox
        .rollback(&Scope::Platform, &next.name)
        .await
        .unwrap();
    assert_eq!(
        rows(
            &run(&sandbox, &source, "select label limit 1")
                .await
                .unwrap()
        ),
        before
    );
    assert!(
        sandbox
            .rollback(&Scope::Platform, &next.name)
            .await
            .is_err()
    );
    let statuses: Vec<_> = sandbox
        .connectors()
        .iter()
        .map(|info| (info.version == back.version, info.status))
        .collect();
    assert!(statuses.contains(&(true, Status::Active)), "{statuses:?}");
    sandbox
        .remove(&Scope::Platform, &next.name, &next.version)
        .unwrap();
    // The same bytes again are no error.
    sandbox
        .load(guests::FIXED_ROWS, Scope::Platform)
        .await
        .unwrap();
    assert_eq!(sandbox.connectors().len(), 1);
}

/// What is told a connector is what its own version asks for: whoever has that from the version before, and comes when the next one has taken over, leaves
/// no session behind that was told so.
#[tokio::test]
async fn what_the_version_before_was_told_is_told_nobody_else() {
    let sandbox = with_guest(guests::FIXED_ROWS).await;
    let told = |rows: u32| {
        let settings = format!(r#"{{"rows":{rows}}}"#);
        source_with("fixed", &settings, PoolLimits::default())
    };
    let rows = async |source: &Arc<Source>| {
        let output = run(&sandbox, source, "select id").await;
        output.unwrap().rows
    };
    let before = told(1);
    assert_eq!(rows(&before).await, 1);
    activate(&sandbox, guests::FIXED_ROWS_LATER).await;
    assert_eq!(rows(&before).await, 1);
    let now = told(2);
    assert_eq!(rows(&now).await, 2);
    assert_eq!(rows(&told(2)).await, 2);
}

/// A company's own connector serves that company and nobody else.
#[tokio::test]
async fn a_private_connector_is_private() {
    let sandbox = sandbox();
    let scope = Scope::Company("com_1".into());
    let info = sandbox
        .load(guests::FIXED_ROWS, scope.clone())
        .await
        .unwrap();
    sandbox
        .activate(&scope, &info.name, &info.version)
        .await
        .unwrap();
    assert!(sandbox.engine("com_1", "fixed").is_some());
    assert!(sandbox.engine("com_2", "fixed").is_none());
    run(&sandbox, &source("fixed"), "select 1").await.unwrap();
    let mut foreign = (*source("fixed")).clone();
    foreign.company = "com_2".into();
    let fault = run(&sandbox, &foreign.into(), "select 1")
        .await
        .unwrap_err();
    assert_eq!(fault.kind, FaultKind::Unsupported);
}

/// An engine that the platform serves is the platform's: a company's connector that had it before loses it, and another cannot take it.
#[tokio::test]
async fn the_platforms_engine_is_nobody_elses() {
    let sandbox = sandbox();
    let scope = Scope::Company("com_1".into());
    let load = async |wasm: &'static [u8], scope: &Scope| {
        let info = sandbox.load(wasm, scope.clone()).await.unwrap();
        (info.name, info.version)
    };
    let serves = || sandbox.engine("com_1", "fixed").unwrap().version;
    let (name, own) = load(guests::FIXED_ROWS, &scope).await;
    sandbox.activate(&scope, &name, &own).await.unwrap();
    let (_, platforms) = load(guests::FIXED_ROWS_NEXT, &Scope::Platform).await;
    assert_eq!(serves(), own, "a staged version takes nothing");
    sandbox
        .activate(&Scope::Platform, &name, &platforms)
        .await
        .unwrap();
    assert_eq!(serves(), platforms);
    let seen: Vec<String> = sandbox
        .engines("com_1")
        .into_iter()
        .map(|engine| engine.version)
        .collect();
    assert_eq!(seen, [platforms]);
    let (_, another) = load(guests::FIXED_ROWS_BROKEN, &scope).await;
    let refused = sandbox.activate(&scope, &name, &another).await;
    assert!(
        matches!(&refused, Err(LoadError::Invalid(reason)) if reason.contains("the platform's")),
        "{refused:?}"
    );
}

/// A file in the watched directory is served within seconds; a bad one changes nothing.
#[tokio::test]
async fn a_watched_directory_is_followed() {
    let sandbox = sandbox();
    let directory = tempfile::TempDir::new().unwrap();
    std::fs::write(directory.path().join("fixed.wasm"), guests::FIXED_ROWS).unwrap();
    sandbox.watch_directory(directory.path()).await;
    let source = source("fixed");
    run(&sandbox, &source, "select 1").await.unwrap();
    std::fs::write(
        directory.path().join("fixed.wasm"),
        &guests::FIXED_ROWS[..1000],
    )
    .unwrap();
    let rejected = || {
        sandbox
            .connectors()
            .iter()
            .any(|info| info.status == Status::Rejected && info.error.is_some())
    };
    wait_until(rejected).await;
    run(&sandbox, &source, "select 1").await.unwrap();
    std::fs::write(directory.path().join("fixed.wasm"), guests::FIXED_ROWS_NEXT).unwrap();
    wait_until(|| !rejected() && sandbox.connectors().len() == 2).await;
    run(&sandbox, &source, "select 1").await.unwrap();
}
