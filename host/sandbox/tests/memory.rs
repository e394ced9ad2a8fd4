//! Memory is counted with its company: that of its guests, and what is held of results and responses meanwhile. Whoever has used up its share is
//! told so, and nobody else notices.

mod common;

use std::sync::Arc;
use std::time::Duration;

use common::*;
use futures_util::future::try_join_all;
use souk_sandbox::{
    Blame, Fault, FaultKind, Grant, Limits, Options, PoolLimits, Query, Request, Sandbox, Source,
};
use souk_tests::guests;
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::sync::Barrier;

const MIB: usize = 1 << 20;

fn sandbox(change: impl FnOnce(&mut Options)) -> (Sandbox, TempDir) {
    let directory = TempDir::new().unwrap();
    let mut options = options(&directory);
    // What is sent and held is made first, on a loaded machine.
    options.limits.call_budget = Duration::from_secs(30);
    change(&mut options);
    (Sandbox::new(options).unwrap(), directory)
}

/// A data connection of a company to this server, or with these files.
fn source(engine: &str, company: &str, connection: &str, grant: &Grant) -> Arc<Source> {
    let mut source = Source::clone(&source_with(engine, "{}", PoolLimits::default()));
    source.company = company.into();
    source.connection = connection.into();
    source.grant = grant.clone();
    Arc::new(source)
}

/// `GET /8` is answered with 8 MiB, anything else not at all.
async fn server() -> Grant {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            tokio::spawn(async move {
                let mut asked = [0; 4096];
                while let Ok(count @ 1..) = stream.read(&mut asked).await {
                    let text = String::from_utf8_lossy(&asked[..count]).into_owned();
                    let path = text.split(' ').nth(1).unwrap_or_default();
                    let Ok(mib) = path.trim_start_matches('/').parse::<usize>() else {
                        continue;
                    };
                    let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n", mib * MIB);
                    let _ = stream.write_all(head.as_bytes()).await;
                    for _ in 0..mib {
                        let _ = stream.write_all(&vec![b'x'; MIB]).await;
                    }
                }
            });
        }
    });
    Grant::Http {
        base_url: format!("http://{address}"),
        attach: Vec::new(),
        ca_pem: None,
    }
}

async fn ask(sandbox: &Sandbox, source: &Arc<Source>, text: &str) -> Result<String, Fault> {
    let request = Request::Query(Query {
        text: text.into(),
        parameters: Vec::new(),
        limits: Limits::new(10_000, 64 << 20),
    });
    let output = sandbox.run(source, request, within(20)).await?;
    Ok(rows(&output))
}

fn is_exhausted(fault: &Fault) -> bool {
    (fault.blame, fault.kind, fault.code.as_str())
        == (Blame::Host, FaultKind::Busy, "memory_exhausted")
}

/// Guests of a company take memory from one share, on however many data connections; another company has its own.
#[tokio::test]
async fn the_guests_of_a_company_share_its_memory() {
    let (sandbox, _directory) = sandbox(|options| options.limits.quota.memory_bytes = 128 * MIB);
    activate(&sandbox, guests::KEEPS).await;
    let server = server().await;
    let of = |company, connection| source("keeps", company, connection, &server);
    let [one, two, three] = ["con_1", "con_2", "con_3"].map(|id| of("com_1", id));
    ask(&sandbox, &one, "grows_48").await.unwrap();
    ask(&sandbox, &two, "grows_40").await.unwrap();
    let fault = ask(&sandbox, &three, "grows_48").await.unwrap_err();
    assert!(is_exhausted(&fault), "{fault:?}");
    assert!(fault.retry_after_ms.is_some(), "{fault:?}");
    ask(&sandbox, &of("com_2", "con_4"), "grows_48")
        .await
        .unwrap();
    // What a session had comes back with its end.
    sandbox.forget("com_1", "con_1");
    sandbox.forget("com_1", "con_2");
    let mut left = 1_000;
    while let Err(fault) = ask(&sandbox, &three, "grows_48").await {
        assert!(is_exhausted(&fault) && left > 0, "{fault:?}");
        left -= 1;
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// A guest that goes on without what it was refused is not told to have run out of memory when something else breaks it.
#[tokio::test]
async fn what_was_refused_before_breaks_no_later_call() {
    let (sandbox, _directory) = sandbox(|_| {});
    activate(&sandbox, guests::KEEPS).await;
    let server = server().await;
    let one = source("keeps", "com_1", "con_1", &server);
    let tried = ask(&sandbox, &one, "tries_128").await.unwrap();
    assert_eq!(tried, r#"[{"text":"refused"}]"#);
    let fault = ask(&sandbox, &one, "breaks").await.unwrap_err();
    assert_eq!(fault.kind, FaultKind::Trapped, "{fault:?}");
}

/// What has come of results counts while nobody can have it yet: calls that end their answers never hold no more than the company's share.
#[tokio::test]
async fn results_that_do_not_end_are_counted() {
    let (sandbox, _directory) = sandbox(|options| options.limits.quota.memory_bytes = 96 * MIB);
    activate(&sandbox, guests::KEEPS).await;
    let server = server().await;
    let one = source("keeps", "com_1", "con_1", &server);
    let other = source("keeps", "com_2", "con_2", &server);
    let calls = (0..8).map(|_| {
        let (sandbox, one) = (sandbox.clone(), one.clone());
        tokio::spawn(async move { ask(&sandbox, &one, "holds_16").await })
    });
    let calls: Vec<_> = calls.collect();
    ask(&sandbox, &other, "asks_1").await.unwrap();
    let mut exhausted = 0;
    for call in calls {
        let fault = call.await.unwrap().unwrap_err();
        exhausted += usize::from(is_exhausted(&fault));
        // The others wait for their end until their deadline.
        assert!(
            is_exhausted(&fault)
                || fault.kind == FaultKind::Timeout
                || fault.blame == Blame::Source,
            "{fault:?}"
        );
    }
    // 96 MiB, of which the guests take some: five have room for what they hold at the most.
    assert!(exhausted >= 3, "{exhausted}");
    ask(&sandbox, &one, "asks_1").await.unwrap();
}

/// Responses count while they are read: the company is told, not its source.
#[tokio::test]
async fn responses_that_are_read_are_counted() {
    let (sandbox, _directory) = sandbox(|options| options.limits.quota.memory_bytes = 40 * MIB);
    activate(&sandbox, guests::KEEPS).await;
    let server = server().await;
    let one = source("keeps", "com_1", "con_1", &server);
    ask(&sandbox, &one, "asks_4").await.unwrap();
    // Whether the guest says at once that it failed, or has had something stopped before.
    for deed in ["asks_48", "stops_48"] {
        let fault = ask(&sandbox, &one, deed).await.unwrap_err();
        assert!(is_exhausted(&fault), "{fault:?}");
        ask(&sandbox, &one, "asks_4").await.unwrap();
    }
}

/// What is sent counts until it is answered: the company is told, not its source.
#[tokio::test]
async fn requests_that_are_sent_are_counted() {
    let (sandbox, _directory) = sandbox(|options| options.limits.quota.memory_bytes = 40 * MIB);
    activate(&sandbox, guests::KEEPS).await;
    let server = server().await;
    let one = source("keeps", "com_1", "con_1", &server);
    let fault = ask(&sandbox, &one, "sends_24").await.unwrap_err();
    assert!(is_exhausted(&fault), "{fault:?}");
    let other = source("keeps", "com_2", "con_2", &server);
    ask(&sandbox, &other, "asks_4").await.unwrap();
}

/// Connections beyond the wires of sessions are counted, too.
#[tokio::test]
async fn connections_of_a_company_are_counted() {
    let (sandbox, _directory) = sandbox(|options| options.limits.quota.sockets = 1);
    activate(&sandbox, guests::KEEPS).await;
    let server = server().await;
    let one = source("keeps", "com_1", "con_1", &server);
    let (mut asked, first) = (
        Box::pin(ask(&sandbox, &one, "waits")),
        Duration::from_secs(2),
    );
    // It has its connection, and no answer.
    assert!(tokio::time::timeout(first, &mut asked).await.is_err());
    let fault = ask(&sandbox, &one, "asks_1").await.unwrap_err();
    assert_eq!(
        (fault.blame, fault.kind, fault.code.as_str()),
        (Blame::Host, FaultKind::Busy, "sockets_exhausted"),
        "{fault:?}"
    );
    let other = source("keeps", "com_2", "con_2", &server);
    ask(&sandbox, &other, "asks_1").await.unwrap();
    drop(asked);
}

/// One that is kept for the next request, of whichever data connection, makes place for another.
#[tokio::test]
async fn connections_that_nobody_uses_make_place() {
    let (sandbox, _directory) = sandbox(|options| options.limits.quota.sockets = 1);
    activate(&sandbox, guests::KEEPS).await;
    let server = server().await;
    for connection in ["con_1", "con_2", "con_1"] {
        let one = source("keeps", "com_1", connection, &server);
        ask(&sandbox, &one, "asks_1").await.unwrap();
    }
}

/// Requests that are under way at once: fewer than one caller may have, and as many as a test may have descriptors for, which is both sides of them.
const AT_ONCE: usize = 300;

/// Answers nobody before so many ask.
async fn answers_together(count: usize) -> Grant {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let all = Arc::new(Barrier::new(count));
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let all = all.clone();
            tokio::spawn(async move {
                if let Ok(1..) = stream.read(&mut [0; 4096]).await {
                    all.wait().await;
                    let answer =
                        b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";
                    let _ = stream.write_all(answer).await;
                }
            });
        }
    });
    Grant::Http {
        base_url: format!("http://{address}"),
        attach: Vec::new(),
        ca_pem: None,
    }
}

/// What one caller may have under way at once over HTTP finds a connection each, without waiting for that of another one.
#[tokio::test]
async fn each_request_of_many_finds_a_connection() {
    let (sandbox, _directory) = sandbox(|_| {});
    activate(&sandbox, guests::FORGETS).await;
    let server = answers_together(AT_ONCE).await;
    // Fewer on each than share a session while that is young.
    let connections = ["con_1", "con_2", "con_3", "con_4", "con_5", "con_6"];
    let sources = connections.map(|id| source("forgets", "com_1", id, &server));
    let of_each = AT_ONCE / sources.len();
    let asked = sources
        .iter()
        .flat_map(|one| std::iter::repeat_n(one, of_each))
        .map(|one| ask(&sandbox, one, "SELECT 1"));
    let answers = try_join_all(asked).await.unwrap();
    assert_eq!(answers.len(), AT_ONCE);
    assert!(answers.iter().all(|rows| rows == r#"[{"status":200}]"#));
}

/// Where all companies together have used up the host's memory, idle sessions on files make room, whoever has them.
#[tokio::test]
async fn idle_sessions_on_files_make_room_for_other_companies() {
    let (sandbox, directory) = sandbox(|options| {
        options.limits.guest_memory_bytes = 256 * MIB;
        options.limits.sessions_total = 32;
    });
    activate(&sandbox, guests::HOSTILE_FILES).await;
    let files = Grant::Directory(directory.path().to_owned());
    let of = |company, connection| source("hostile-files", company, connection, &files);
    for connection in ["con_1", "con_2", "con_3", "con_4"] {
        ask(&sandbox, &of("com_1", connection), "select keeps")
            .await
            .unwrap();
    }
    let open = || {
        let connectors = sandbox.connectors();
        let files = connectors
            .iter()
            .find(|known| known.name == "hostile-files");
        files.expect("it is at work").sessions.open
    };
    assert_eq!(open(), 4);
    // Three quarters and more are taken, all of it by sessions with nothing to do. The first session of a company may have what is left, and one of
    // those is closed for the next company.
    activate(&sandbox, guests::KEEPS).await;
    let server = server().await;
    let first = source("keeps", "com_2", "con_5", &server);
    ask(&sandbox, &first, "grows_48").await.unwrap();
    wait_until(|| open() == 3).await;
    // That has as much as was given up. Its company's second session, on files, finds none of its own to close: one more of the others goes first.
    let second = of("com_2", "con_6");
    ask(&sandbox, &second, "select keeps").await.unwrap();
    assert_eq!(open(), 3);
}

/// Threads keep at hand what they ask for often; what is deleted is let go of all the same, with the credentials in it.
#[tokio::test]
async fn a_deleted_data_connection_is_let_go_of() {
    let (sandbox, _directory) = sandbox(|_| {});
    activate(&sandbox, guests::KEEPS).await;
    let server = server().await;
    let deleted = source("keeps", "com_1", "con_1", &server);
    let other = source("keeps", "com_1", "con_2", &server);
    ask(&sandbox, &deleted, "asks_1").await.unwrap();
    sandbox.forget("com_1", "con_1");
    let kept = Arc::downgrade(&deleted);
    drop(deleted);
    let mut left = 600;
    while kept.strong_count() > 0 {
        assert!(left > 0, "it is kept");
        left -= 1;
        ask(&sandbox, &other, "asks_1").await.unwrap();
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}
