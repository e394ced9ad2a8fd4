//! What the host does with a second session that does not answer.

mod common;

use std::pin::pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use common::*;
use souk_outbound::TlsMode;
use souk_sandbox::{Grant, PoolLimits, Sandbox, Source, Value};
use souk_tests::guests;
use souk_tests::talking_server::TalkingServer;

/// What a wire session may have is not much more.
const BYTES: usize = 48 << 20;
/// As many as a company may have.
const ERRANDS: usize = 4;

fn talker(server: &TalkingServer) -> Arc<Source> {
    talker_of("com_1", server)
}

fn talker_of(company: &str, server: &TalkingServer) -> Arc<Source> {
    Arc::new(Source {
        company: company.into(),
        connection: "con_1".into(),
        revision: 1,
        engine: "talker".into(),
        settings_json: r#"{"ssl_mode":"disable"}"#.into(),
        grant: Grant::Tcp {
            host: "127.0.0.1".into(),
            port: server.address.port(),
            tls: TlsMode::Disable,
            ca_pem: None,
        },
        limits: PoolLimits::default(),
    })
}

async fn wish(sandbox: &Sandbox, source: &Arc<Source>, wish: &str) -> String {
    let wish = query_with("SELECT answer FROM t", vec![Value::Text(wish.into())]);
    let output = sandbox.run(source, wish, within(60)).await;
    rows(&output.expect("an answer"))
}

/// Processor time of this thread.
fn thread_time() -> Duration {
    let stat = std::fs::read_to_string("/proc/thread-self/schedstat").expect("of a Linux");
    let nanos = stat.split(' ').next().and_then(|word| word.parse().ok());
    Duration::from_nanos(nanos.expect("nanoseconds"))
}

/// What it costs to give the memory of all errands back, here and now.
fn freeing() -> Duration {
    let memory: Vec<Vec<u8>> = (0..ERRANDS)
        .map(|_| std::hint::black_box(vec![0xa5; BYTES]))
        .collect();
    let begun = thread_time();
    drop(memory);
    thread_time() - begun
}

/// Has errands cut that all hang, and says how much of this thread's time it took from then on: nothing where one was cut before it hung,
/// because the machine has other things to do than to fill its memory.
async fn cut(
    sandbox: &Sandbox,
    source: &Arc<Source>,
    server: &TalkingServer,
    what: &str,
) -> Option<Duration> {
    let begun = Instant::now();
    // Whoever was cut is not told to have gone.
    let before = server.seen().hanging();
    let mut asked = pin!(futures_util::future::join_all(
        (0..ERRANDS).map(|_| wish(sandbox, source, what))
    ));
    let before = tokio::select! {
        biased;
        // The cut is all that is left to come.
        _ = server.wait(|seen| seen.hanging() == before + ERRANDS) => thread_time(),
        _ = &mut asked => return None,
    };
    let answers = asked.await;
    // An errand is told that it has failed when it is gone.
    let used = thread_time() - before;
    assert!(begun.elapsed() >= Duration::from_secs(4), "they were cut");
    assert!(
        answers.iter().all(|answer| answer.contains("time")),
        "{answers:?}"
    );
    Some(used)
}

/// Errands that are cut with full memories are freed by other threads than the one that serves: here that is the only one of its runtime. It
/// takes no longer there than those that have nothing; machines differ too much to say more.
#[tokio::test]
async fn an_errand_that_is_cut_is_freed_elsewhere() {
    let server = TalkingServer::start().await;
    let sandbox = with_guest(guests::TALKER).await;
    let source = talker(&server);
    assert!(wish(&sandbox, &source, "fine").await.contains("fine"));
    let mut tried = Vec::new();
    for _ in 0..6 {
        let small = cut(&sandbox, &source, &server, "confers_in_vain").await;
        let large = cut(&sandbox, &source, &server, "confers_in_vain_and_large").await;
        let (Some(small), Some(large)) = (small, large) else {
            continue;
        };
        let freeing = freeing();
        tried.push((small, large, freeing));
        if large < small + freeing / 2 {
            break;
        }
    }
    println!("{tried:?}");
    assert!(
        tried
            .last()
            .is_some_and(|(small, large, freeing)| *large < *small + *freeing / 2),
        "{tried:?}"
    );
    assert!(
        wish(&sandbox, &source, "confers")
            .await
            .contains("conferred")
    );
}

/// Companies whose sources take second sessions and say nothing keep another company's statements from being stopped for a moment only: what has
/// had its time gives its place to who has none.
#[tokio::test]
async fn a_silent_source_makes_way() {
    /// As many as the host has places.
    const SILENT: usize = 32;
    let server = TalkingServer::start().await;
    let directory = tempfile::TempDir::new().unwrap();
    let mut options = options(&directory);
    // One each, and one more.
    options.limits.sessions_total = 40;
    let sandbox = Sandbox::new(options).unwrap();
    activate(&sandbox, guests::TALKER).await;
    let sources: Vec<_> = (0..SILENT)
        .map(|number| talker_of(&format!("com_{number}"), &server))
        .collect();
    let late = talker_of("com_late", &server);
    let mut gave_way = 0;
    for _ in 0..3 {
        let before = server.seen().hanging();
        let mut silent = pin!(futures_util::future::join_all(
            sources
                .iter()
                .map(|source| wish(&sandbox, source, "confers_in_vain"))
        ));
        tokio::select! {
            biased;
            _ = server.wait(|seen| seen.hanging() == before + SILENT) => {}
            // The machine has other things to do.
            _ = &mut silent => continue,
        }
        let (answers, stopped) = tokio::join!(silent, wish(&sandbox, &late, "confers"));
        assert!(stopped.contains("conferred"), "{stopped}");
        let gave = |answer: &&String| answer.contains("another company waited");
        gave_way = answers.iter().filter(gave).count();
        if gave_way > 0 {
            break;
        }
    }
    assert!(gave_way > 0, "all had their five seconds");
}
