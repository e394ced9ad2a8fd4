//! What a request does to those that share its session: those who leave, and those who break it.

mod common;

use std::{sync::Arc, time::Duration};

use common::*;
use futures_util::{future::join, poll};
use souk_outbound::TlsMode;
use souk_sandbox::{FaultKind, Grant, PoolLimits, Source};
use souk_tests::guests;
use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader},
    net::{TcpListener, TcpStream},
};

/// How many leave.
const LEAVING: usize = 10;

fn source_at(port: u16) -> Arc<Source> {
    let mut source = source_with("relays", r#"{"ssl_mode":"disable"}"#, PoolLimits::default());
    Arc::get_mut(&mut source).expect("nobody else has it").grant = Grant::Tcp {
        host: "127.0.0.1".into(),
        port,
        tls: TlsMode::Disable,
        ca_pem: None,
    };
    source
}

/// The next statement; none if the session is over.
async fn asked(wire: &mut BufReader<TcpStream>) -> Option<String> {
    let mut line = String::new();
    let read = wire.read_line(&mut line).await.unwrap_or(0);
    (read > 0).then_some(line)
}

/// A caller who leaves something that is fast has nothing stopped at the source, where a cancel may strike others: it ends by itself.
#[tokio::test]
async fn who_leaves_what_is_fast_stops_nothing() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let source = source_at(listener.local_addr().unwrap().port());
    let sandbox = with_guest(guests::RELAYS).await;
    let ask = || Box::pin(sandbox.run(&source, query("SELECT 1"), within(60)));
    let first = async {
        let (wire, _) = listener.accept().await.unwrap();
        let mut wire = BufReader::new(wire);
        asked(&mut wire).await.unwrap();
        wire.write_all(b"\n").await.unwrap();
        wire
    };
    let (answer, mut wire) = join(ask(), first).await;
    assert_eq!(rows(&answer.unwrap()), r#"[{"cancels":0}]"#);
    for _ in 0..LEAVING {
        let mut leaving = ask();
        assert!(poll!(&mut leaving).is_pending());
        asked(&mut wire).await.unwrap();
        // The session hears of both together.
        drop(leaving);
        wire.write_all(b"\n").await.unwrap();
        wait_until(|| sandbox.connectors()[0].sessions.idle == 1).await;
    }
    let last = async {
        asked(&mut wire).await.unwrap();
        wire.write_all(b"\n").await.unwrap();
    };
    let (answer, ()) = join(ask(), last).await;
    // On a machine that stands still for a moment some of them were not fast.
    let all = format!(r#"[{{"cancels":{LEAVING}}}]"#);
    assert_ne!(rows(&answer.unwrap()), all);
}

/// A statement over which the source breaks the wire takes others with it once: those are asked again on another wire than it is.
#[tokio::test]
async fn what_breaks_a_session_breaks_it_once_for_others() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let source = source_at(listener.local_addr().unwrap().port());
    tokio::spawn(async move {
        while let Ok((wire, _)) = listener.accept().await {
            tokio::spawn(async move {
                let mut wire = BufReader::new(wire);
                while let Some(line) = asked(&mut wire).await {
                    if line.contains("breaks") {
                        tokio::time::sleep(Duration::from_millis(200)).await;
                        return;
                    }
                    let _ = wire.write_all(b"\n").await;
                }
            });
        }
    });
    let sandbox = with_guest(guests::RELAYS).await;
    let ask = |text| Box::pin(sandbox.run(&source, query(text), within(60)));
    // What a session dies of that has answered before is not known.
    ask("SELECT 1").await.unwrap();
    let mut breaks = ask("SELECT breaks");
    assert!(poll!(&mut breaks).is_pending());
    let (broken, other) = join(breaks, ask("SELECT other")).await;
    assert_eq!(rows(&other.unwrap()), r#"[{"cancels":0}]"#);
    assert_eq!(broken.unwrap_err().kind, FaultKind::Unreachable);
    assert_eq!(sandbox.connectors()[0].traps_total, 0);
}
