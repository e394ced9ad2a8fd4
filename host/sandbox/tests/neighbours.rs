//! What a request does to those that share its session: those who leave, and those who break it.

mod common;

use std::{sync::Arc, time::Duration};

use common::*;
use futures_util::{
    future::{join, join_all},
    poll,
};
use souk_outbound::TlsMode;
use souk_sandbox::{
    Blame, Call, FaultKind, Grant, Limits, PoolLimits, Request, Route, Scope, Source,
};
use souk_tests::guests;
use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader},
    net::{TcpListener, TcpStream},
    sync::{
        Semaphore,
        mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel},
    },
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

/// So many share a session, whose answers come together. Of one alone it would be late.
const TOGETHER: usize = 20;
const LATER: Duration = Duration::from_millis(10);

/// Answers each statement [`LATER`].
async fn answers_later(wire: TcpStream) {
    // Else one byte waits until the one before is acknowledged.
    wire.set_nodelay(true).unwrap();
    let (wire, mut answers) = wire.into_split();
    let mut wire = BufReader::new(wire).lines();
    let (tell, mut told) = unbounded_channel();
    tokio::spawn(async move {
        while let Some(at) = told.recv().await {
            tokio::time::sleep_until(at).await;
            let _ = answers.write_all(b"\n").await;
        }
    });
    while let Ok(Some(_)) = wire.next_line().await {
        let _ = tell.send(tokio::time::Instant::now() + LATER);
    }
}

/// Who shares a session is answered behind others, or together with them: a caller who leaves it then has nothing stopped either, as long as all of them
/// are fast.
#[tokio::test]
async fn who_leaves_what_is_answered_with_others_stops_nothing() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let source = source_at(listener.local_addr().unwrap().port());
    tokio::spawn(async move {
        while let Ok((wire, _)) = listener.accept().await {
            tokio::spawn(answers_later(wire));
        }
    });
    let sandbox = with_guest(guests::RELAYS).await;
    let ask = |text: &str| Box::pin(sandbox.run(&source, query(text), within(60)));
    ask("SELECT first").await.unwrap();
    for round in 0..LEAVING {
        // Another one each time, for it is slow from then on.
        let text = format!("SELECT {round}");
        let mut asked: Vec<_> = (0..TOGETHER).map(|_| ask(&text)).collect();
        for waiting in &mut asked {
            assert!(poll!(waiting).is_pending());
        }
        // They are on their way.
        tokio::time::sleep(Duration::from_millis(1)).await;
        drop(asked.pop());
        for answer in join_all(asked).await {
            answer.unwrap();
        }
    }
    let answer = ask("SELECT last").await.unwrap();
    // On a machine that stands still for a moment some of them were not fast.
    assert_ne!(rows(&answer), format!(r#"[{{"cancels":{LEAVING}}}]"#));
}

/// Longer than a host waits for the end of what nobody waits for any more.
const LONG: Duration = Duration::from_secs(4);

/// A score board that tells the paths that it is asked for. It answers `/stays` never, `/other` after a while, and `/later` after a [`LONG`] one.
async fn score_board(listener: TcpListener, tell: UnboundedSender<String>) {
    while let Ok((client, _)) = listener.accept().await {
        let tell = tell.clone();
        tokio::spawn(async move {
            let mut client = BufReader::new(client);
            let Some(line) = asked(&mut client).await else {
                return;
            };
            while asked(&mut client).await.is_some_and(|line| line != "\r\n") {}
            let path = line.split(' ').nth(1).unwrap_or_default().to_owned();
            let _ = tell.send(path.clone());
            match path.as_str() {
                "/stays" => std::future::pending().await,
                "/other" => tokio::time::sleep(Duration::from_millis(300)).await,
                "/later" => tokio::time::sleep(LONG).await,
                _ => {}
            }
            let answer =
                "HTTP/1.1 200 OK\r\ncontent-length: 12\r\nconnection: close\r\n\r\n[[\"Ada\", 7]]";
            let _ = client.write_all(answer.as_bytes()).await;
        });
    }
}

/// A connection to a score board of its own, of which all share one session, and the paths that the board is asked for.
async fn with_score_board(engine: &str) -> (Arc<Source>, UnboundedReceiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let limits = PoolLimits {
        sessions_max: 1,
        ..PoolLimits::default()
    };
    let mut source = source_with(engine, r#"{"league":"north"}"#, limits);
    Arc::get_mut(&mut source).expect("nobody else has it").grant = Grant::Http {
        base_url: format!("http://{}", listener.local_addr().unwrap()),
        attach: Vec::new(),
        ca_pem: None,
    };
    let (tell, paths) = unbounded_channel();
    tokio::spawn(score_board(listener, tell));
    (source, paths)
}

/// A connector over HTTP that cannot give one thing up is left what others ask of it: they are answered, and it is asked for once. Its session ends then,
/// so that nothing goes on for nobody.
#[tokio::test]
async fn who_leaves_what_cannot_be_stopped_takes_nobody_with_it() {
    let (source, mut paths) = with_score_board("holds-on").await;
    let sandbox = with_guest(guests::HOLDS_ON).await;
    let ask = |path: &str| Box::pin(sandbox.run(&source, query(path), within(60)));
    ask("/first").await.unwrap();
    assert_eq!(paths.recv().await.as_deref(), Some("/first"));
    let (mut leaving, mut other) = (ask("/stays"), ask("/other"));
    assert!(poll!(&mut leaving).is_pending());
    assert!(poll!(&mut other).is_pending());
    let mut both = [paths.recv().await.unwrap(), paths.recv().await.unwrap()];
    both.sort();
    assert_eq!(both, ["/other", "/stays"]);
    drop(leaving);
    let answer = other.await.unwrap();
    assert_eq!(rows(&answer), r#"[{"status":200}]"#);
    assert!(paths.try_recv().is_err(), "it was asked for once more");
    wait_until(|| sandbox.connectors()[0].sessions.open == 0).await;
    assert_eq!(sandbox.connectors()[0].traps_total, 0);
}

/// The connector that the SDK's documentation shows gives up what its caller has left, and nothing else: its session goes on, and others are answered there,
/// however long that takes.
#[tokio::test]
async fn who_leaves_the_documented_connector_ends_no_session() {
    let (source, mut paths) = with_score_board("hello").await;
    let sandbox = with_guest(guests::HELLO).await;
    let ask = |path: &str| Box::pin(sandbox.run(&source, query(path), within(60)));
    ask("/first").await.unwrap();
    assert_eq!(paths.recv().await.as_deref(), Some("/first"));
    let (mut leaving, mut other) = (ask("/stays"), ask("/later"));
    assert!(poll!(&mut leaving).is_pending());
    assert!(poll!(&mut other).is_pending());
    let mut both = [paths.recv().await.unwrap(), paths.recv().await.unwrap()];
    both.sort();
    assert_eq!(both, ["/later", "/stays"]);
    drop(leaving);
    let answer = other.await.unwrap();
    assert_eq!(rows(&answer), r#"[{"player":"Ada","points":7}]"#);
    assert!(paths.try_recv().is_err(), "it was asked for once more");
    assert_eq!(sandbox.connectors()[0].sessions.open, 1);
}

/// Who leaves while a connector pauses for him leaves no pause behind that counts: however many have left, nobody's is one too many, and who stays has his
/// own to its end.
#[tokio::test]
async fn who_leaves_leaves_no_pause_behind() {
    let sandbox = with_guest(guests::DOZES).await;
    let source = source("dozes");
    let ask = |ms: u32| {
        let request = query(&format!("SELECT {ms}"));
        Box::pin(sandbox.run(&source, request, within(60)))
    };
    ask(1).await.unwrap();
    let mut stays = ask(50_000);
    assert!(poll!(&mut stays).is_pending());
    // More than a session may have of them, three at a time: so many share it with one that is slow.
    for _ in 0..60 {
        let mut leaving: Vec<_> = (0..3).map(|_| ask(40_000)).collect();
        for waiting in &mut leaving {
            assert!(poll!(waiting).is_pending());
        }
        // Long enough to be told to the guest as soon as they leave.
        tokio::time::sleep(Duration::from_millis(10)).await;
        drop(leaving);
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    assert_eq!(sandbox.connectors()[0].traps_total, 0);
    assert!(poll!(&mut stays).is_pending());
    let answer = ask(1).await.unwrap();
    assert_eq!(rows(&answer), r#"[{"awake":true}]"#);
}

/// Tells when it is asked for something, and answers that as soon as there is a permit for it.
async fn hangs(listener: TcpListener, tell: UnboundedSender<()>, permits: Arc<Semaphore>) {
    while let Ok((client, _)) = listener.accept().await {
        let (tell, permits) = (tell.clone(), permits.clone());
        tokio::spawn(async move {
            let mut client = BufReader::new(client);
            while asked(&mut client).await.is_some_and(|line| line != "\r\n") {}
            let _ = tell.send(());
            if let Ok(permit) = permits.acquire().await {
                permit.forget();
            }
            let answer = "HTTP/1.1 200 OK\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";
            let _ = client.write_all(answer.as_bytes()).await;
        });
    }
}

/// Who leaves what a source does not answer leaves an HTTP request behind, until its time is over. Where those are as many as a session may have, whoever
/// asks next is told that the source does not answer, and it is no fault of a connector that counts none of them: who stays is answered when the source
/// comes to itself, and so is who asks then.
#[tokio::test]
async fn who_leaves_a_source_that_hangs_breaks_no_connector() {
    /// HTTP requests of a session at once.
    const EXCHANGES_MAX: usize = 128;
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    // All in one.
    let limits = PoolLimits {
        sessions_max: 1,
        ..PoolLimits::default()
    };
    let mut source = source_with("forgets", "{}", limits);
    Arc::get_mut(&mut source).expect("nobody else has it").grant = Grant::Http {
        base_url: format!("http://{}", listener.local_addr().unwrap()),
        attach: Vec::new(),
        ca_pem: None,
    };
    let (tell, mut told) = unbounded_channel();
    let permits = Arc::new(Semaphore::new(1));
    tokio::spawn(hangs(listener, tell, permits.clone()));
    let sandbox = with_guest(guests::FORGETS).await;
    let ask = || Box::pin(sandbox.run(&source, query("SELECT 1"), within(60)));
    ask().await.unwrap();
    told.recv().await.unwrap();
    let mut stays = ask();
    assert!(poll!(&mut stays).is_pending());
    told.recv().await.unwrap();
    for _ in 1..EXCHANGES_MAX {
        let mut leaving = ask();
        assert!(poll!(&mut leaving).is_pending());
        // It is under way.
        told.recv().await.unwrap();
    }
    for _ in 0..3 {
        let refused = ask().await.unwrap_err();
        assert_eq!(refused.kind, FaultKind::Unreachable);
        let detail = refused.detail.unwrap();
        assert!(
            detail.contains(&format!("not answered {EXCHANGES_MAX} requests")),
            "{detail}"
        );
    }
    assert_eq!(sandbox.connectors()[0].traps_total, 0);
    assert!(poll!(&mut stays).is_pending());
    permits.add_permits(2 * EXCHANGES_MAX);
    for answer in [stays.await, ask().await] {
        assert_eq!(rows(&answer.unwrap()), r#"[{"status":200}]"#);
    }
}

/// What breaks its session so fast that nothing tells it from those beside it has done so twice when it is asked alone, as they are: they are answered, and
/// it breaks one more.
#[tokio::test]
async fn what_breaks_sessions_at_once_fails_nobody_else() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let source = source_at(listener.local_addr().unwrap().port());
    let (tell, broken) = unbounded_channel();
    tokio::spawn(async move {
        while let Ok((wire, _)) = listener.accept().await {
            let tell = tell.clone();
            tokio::spawn(async move {
                let mut wire = BufReader::new(wire);
                while let Some(line) = asked(&mut wire).await {
                    if line.contains("breaks") {
                        let _ = tell.send(());
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
    let others = join_all((0..TOGETHER).map(|_| ask("SELECT other")));
    let (breaks, others) = join(breaks, others).await;
    for other in others {
        assert_eq!(rows(&other.unwrap()), r#"[{"cancels":0}]"#);
    }
    assert_eq!(breaks.unwrap_err().kind, FaultKind::Unreachable);
    // Two where it was slow about it, on a machine that stood still for a moment.
    assert!(broken.len() <= 3, "{} sessions", broken.len());
}

/// A connector that breaks over what it hears for one request, or speaks of a request then that nobody has made, fails that one, and not whoever has waited
/// longest.
#[tokio::test]
async fn who_breaks_a_connector_is_told_so_in_nobody_elses_stead() {
    let cases = [
        ("SELECT breaks 50", FaultKind::Trapped),
        ("SELECT confuses 50", FaultKind::ContractBroken),
    ];
    for (breaks, kind) in cases {
        let sandbox = with_guest(guests::DOZES).await;
        let source = source("dozes");
        let ask = |text| Box::pin(sandbox.run(&source, query(text), within(60)));
        ask("SELECT 1").await.unwrap();
        let oldest = ask("SELECT 500");
        let (oldest, broken) = join(oldest, ask(breaks)).await;
        let answer = oldest.unwrap_or_else(|fault| panic!("{breaks}: {fault:?}"));
        assert_eq!(rows(&answer), r#"[{"awake":true}]"#);
        assert_eq!(broken.unwrap_err().kind, kind, "{breaks}");
        assert_eq!(sandbox.connectors()[0].traps_total, 1, "{breaks}");
    }
}

fn call(parameters: &str) -> Request {
    Request::Call(Call {
        route: Route::Function("dozes".into()),
        parameters: parameters.into(),
        asset_id: "ast_1".into(),
        request_id: "req_1".into(),
        execution_id: "exe_1".into(),
        limits: Limits::new(10, 1 << 20),
    })
}

/// A function is never asked twice. One that breaks a session of the platform's connector, of which it shares one, is the only one to blame: whoever is
/// lost with it is told to ask again. It fails nobody else where the connector is a company's own.
#[tokio::test]
async fn a_function_that_breaks_its_session_is_blamed_alone() {
    for scope in [Scope::Platform, Scope::Company("com_1".into())] {
        let sandbox = sandbox();
        let info = sandbox.load(guests::DOZES, scope.clone()).await.unwrap();
        let activated = sandbox.activate(&scope, &info.name, &info.version).await;
        activated.unwrap();
        let source = source("dozes");
        let ask = |parameters| Box::pin(sandbox.run(&source, call(parameters), within(60)));
        ask(r#"{"ms": 1}"#).await.unwrap();
        let other = ask(r#"{"ms": 2000}"#);
        let (other, broken) = join(other, ask(r#"{"breaks": 50}"#)).await;
        let broken = broken.unwrap_err();
        assert_eq!(
            (broken.blame, broken.kind),
            (Blame::Connector, FaultKind::Trapped),
            "{scope:?}"
        );
        assert_eq!(sandbox.connectors()[0].traps_total, 1, "{scope:?}");
        match scope {
            Scope::Platform => {
                let lost = other.unwrap_err();
                assert_eq!(
                    (lost.blame, lost.kind),
                    (Blame::Host, FaultKind::Internal),
                    "{lost:?}"
                );
                assert!(lost.message.contains("try again"), "{lost:?}");
            }
            Scope::Company(_) => assert_eq!(rows(&other.unwrap()), r#"[{"awake":true}]"#),
        }
        ask(r#"{"ms": 1}"#).await.unwrap();
    }
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
