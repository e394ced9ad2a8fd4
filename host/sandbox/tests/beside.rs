//! What a session over HTTP asks beside its last answer, or when it is told that nobody asks for anything, and how long it is waited for where the
//! session is closed.

mod common;

use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use common::*;
use souk_sandbox::{Grant, PoolLimits, Source};
use souk_tests::{guests, seller_api::SellerApi};
use tokio::net::TcpListener;

fn source(base_url: String) -> Arc<Source> {
    source_of("ends-beside", base_url)
}

fn source_of(engine: &str, base_url: String) -> Arc<Source> {
    let mut source = source_with(engine, "{}", PoolLimits::default());
    Arc::get_mut(&mut source).expect("nobody else has it").grant = Grant::Http {
        base_url,
        attach: Vec::new(),
        ca_pem: None,
    };
    source
}

/// A session that has answered, and is closed at the same moment, comes to the end of what it has asked for less than two seconds.
#[tokio::test]
async fn a_session_is_done_with_its_source_before_it_is_closed() {
    let api = SellerApi::start().await;
    let sandbox = with_guest(guests::ENDS_BESIDE).await;
    let source = source(api.base_url());
    run(&sandbox, &source, "select ms_1900").await.unwrap();
    sandbox.shut_down(within(10)).await;
    assert_eq!(api.calls(), 1);
    assert_eq!(sandbox.connectors()[0].traps_total, 0);
}

/// The same of a data connection that is changed or deleted.
#[tokio::test]
async fn a_session_is_done_with_its_source_before_it_is_forgotten() {
    let api = SellerApi::start().await;
    let sandbox = with_guest(guests::ENDS_BESIDE).await;
    let source = source(api.base_url());
    run(&sandbox, &source, "select ms_1900").await.unwrap();
    sandbox.forget(&source.company, &source.connection);
    let since = Instant::now();
    while api.calls() == 0 {
        assert!(since.elapsed() < Duration::from_secs(20));
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// A source that does not answer is not waited for longer than it was given, nor at all where that is long, nor by a host whose time is over.
#[tokio::test]
async fn a_silent_source_keeps_no_session() {
    /// A loaded machine is late, too, but not each time.
    const TRIES: usize = 5;
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    for (statement, deadline, longest) in [
        ("select ms_400", 10, 5_000),
        ("select ms_10000", 10, 5_000),
        ("select ms_1900", 0, 1_500),
    ] {
        let mut late = Vec::new();
        loop {
            let sandbox = with_guest(guests::ENDS_BESIDE).await;
            let source = source(format!("http://{address}"));
            run(&sandbox, &source, statement).await.unwrap();
            let begun = Instant::now();
            sandbox.shut_down(within(deadline)).await;
            let took = begun.elapsed();
            if took < Duration::from_millis(longest) {
                break;
            }
            late.push(took);
            assert!(late.len() < TRIES, "{statement}: {late:?}");
        }
    }
}

/// A guest that wants to know is told when nobody has asked it for anything for a while, and before its session is closed: once each time. It is told at
/// the beginning, too, so that it knows that it is.
#[tokio::test]
async fn a_guest_is_told_when_nobody_asks() {
    let api = SellerApi::start().await;
    let sandbox = with_guest(guests::TOLD_IDLE).await;
    let source = source_of("told-idle", api.base_url());
    for calls in [1, 2] {
        run(&sandbox, &source, "select 1").await.unwrap();
        wait_until(|| api.calls() == calls).await;
        // As long as nobody asks there is nothing more to tell.
        tokio::time::sleep(Duration::from_millis(1_500)).await;
        assert_eq!(api.calls(), calls);
    }
    run(&sandbox, &source, "select 1").await.unwrap();
    sandbox.shut_down(within(10)).await;
    assert_eq!(api.calls(), 3);
    assert_eq!(sandbox.connectors()[0].traps_total, 0);
}

/// The thread of a session is told of each HTTP request that it has for its source: it stays awake for the answer.
#[tokio::test]
async fn a_thread_is_told_when_its_sessions_ask() {
    let asked = Rc::new(Cell::new(0));
    let counted = asked.clone();
    souk_sandbox::when_asking(move || counted.set(counted.get() + 1));
    let api = SellerApi::start().await;
    let sandbox = with_guest(guests::ENDS_BESIDE).await;
    let source = source(api.base_url());
    for calls in 1..=3 {
        run(&sandbox, &source, "select ms_1900").await.unwrap();
        wait_until(|| api.calls() == calls).await;
        assert_eq!(asked.get(), calls);
    }
}

/// A source that does not answer what nobody waits for keeps no session.
#[tokio::test]
async fn who_is_told_is_not_waited_for_without_end() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let sandbox = with_guest(guests::TOLD_IDLE).await;
    let source = source_of("told-idle", format!("http://{address}"));
    run(&sandbox, &source, "select 1").await.unwrap();
    let begun = Instant::now();
    sandbox.shut_down(within(10)).await;
    assert!(begun.elapsed() < Duration::from_secs(5));
}
