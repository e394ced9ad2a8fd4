//! A connector with the ability `groups` hears which requests come together, and one with the ability `alone` which is all that there is to do.

mod common;

use std::{cell::Cell, rc::Rc, sync::Arc};

use common::*;
use futures_util::poll;
use souk_outbound::TlsMode;
use souk_sandbox::{Grant, PoolLimits, Source};
use souk_tests::guests;
use tokio::net::TcpListener;

fn source_at(port: u16) -> Arc<Source> {
    Arc::new(Source {
        company: "com_1".into(),
        connection: "con_1".into(),
        revision: 1,
        engine: "grouped".into(),
        settings_json: r#"{"ssl_mode":"disable"}"#.into(),
        grant: Grant::Tcp {
            host: "127.0.0.1".into(),
            port,
            tls: TlsMode::Disable,
            ca_pem: None,
        },
        limits: PoolLimits::default(),
    })
}

async fn keep_all(listener: TcpListener) {
    let mut wires = Vec::new();
    while let Ok((wire, _)) = listener.accept().await {
        wires.push(wire);
    }
}

/// A request is told that it is all there is to do if the thread, which serves others, too, says so.
#[tokio::test]
async fn one_that_is_alone_is_told_so() {
    let is_alone = Rc::new(Cell::new(true));
    let said = is_alone.clone();
    souk_sandbox::when_alone(move || said.get());
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let source = source_at(listener.local_addr().unwrap().port());
    tokio::spawn(keep_all(listener));
    let sandbox = with_guest(guests::GROUPED).await;
    for alone in [true, false, true] {
        is_alone.set(alone);
        let answer = sandbox.run(&source, query("SELECT size FROM t"), within(60));
        let told = format!(r#"[{{"size":1,"alone":{alone}}}]"#);
        assert_eq!(rows(&answer.await.unwrap()), told);
    }
}

/// Tries of as many requests.
const TRIES_MAX: usize = 10;

/// What one session is given at once is one group, whose last request is told from the others also where those behind it have gone meanwhile: who
/// waits for the last one would wait for ever.
#[tokio::test]
async fn requests_that_come_together_are_told_so() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(keep_all(listener));
    let sandbox = with_guest(guests::GROUPED).await;
    let source = source_at(port);
    let ask = || Box::pin(sandbox.run(&source, query("SELECT size FROM t"), within(60)));
    // One alone is followed by nobody.
    assert_eq!(rows(&ask().await.unwrap()), r#"[{"size":1,"alone":true}]"#);
    for of in [2, 7, 30] {
        let mut seen = Vec::new();
        // A machine that other tests keep busy may stop this one in the middle of asking: those before that go first.
        while seen.len() < TRIES_MAX {
            let mut asked = Vec::new();
            for i in 0..of {
                let mut waiting = ask();
                assert!(poll!(&mut waiting).is_pending());
                // The last of them is among those that go.
                if i % 2 == 0 {
                    asked.push(waiting);
                }
            }
            let (size, alone) = (asked.len(), asked.len() == 1);
            let told = format!(r#"[{{"size":{size},"alone":{alone}}}]"#);
            let answers = futures_util::future::join_all(asked).await;
            let answers: Vec<String> = answers.into_iter().map(|it| rows(&it.unwrap())).collect();
            if answers.iter().all(|answer| *answer == told) {
                break;
            }
            seen.push(answers);
        }
        assert!(seen.len() < TRIES_MAX, "{of}: {seen:?}");
    }
    assert_eq!(sandbox.connectors()[0].traps_total, 0);
}
