//! Sessions and queues are bounded, whoever asks and leaves, and end with the sandbox.

use std::time::{Duration, Instant};

use souk_sandbox::{FaultKind, Limits, PoolLimits, Request, Sandbox, Scope, Source};
use souk_tests::guests;

use crate::common::*;

/// A company at its number of sessions closes an idle one for a data connection that has none; where all are busy it is
/// told so at once.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_idle_session_makes_room_for_another_data_connection() {
    let directory = tempfile::TempDir::new().unwrap();
    let mut options = options(&directory);
    options.limits.quota.sessions = 1;
    let sandbox = souk_sandbox::Sandbox::new(options).unwrap();
    activate(&sandbox, guests::SILENT).await;
    let at = |connection: &str| {
        let mut source = Source::clone(&source("silent"));
        source.connection = connection.into();
        std::sync::Arc::new(source)
    };
    let sources = [at("con_1"), at("con_2"), at("con_3")];
    let ping = |source| sandbox.run(source, Request::Ping(Limits::new(10, 1000)), within(20));
    for round in 0..30 {
        ping(&sources[round % 3]).await.unwrap();
    }
    let busy = {
        let (sandbox, source) = (sandbox.clone(), sources[0].clone());
        tokio::spawn(async move { sandbox.run(&source, query("select 1"), within(3)).await })
    };
    wait_until(|| {
        let sessions = &sandbox.connectors()[0].sessions;
        (sessions.open, sessions.idle) == (1, 0)
    })
    .await;
    let begun = Instant::now();
    let fault = ping(&sources[1]).await.unwrap_err();
    assert_eq!(fault.code, "sessions_exhausted", "{fault:?}");
    assert!(begun.elapsed() < Duration::from_secs(15));
    let fault = busy.await.unwrap().unwrap_err();
    assert_eq!(
        fault.kind,
        FaultKind::Timeout,
        "{fault:?} after {:?}",
        begun.elapsed()
    );
    // Its caller is told at the deadline, and the session ends when it has been told.
    wait_until(|| sandbox.connectors()[0].sessions.open == 0).await;
    ping(&sources[1]).await.unwrap();
}

/// As long as a company has idle sessions nobody of it is refused one, however many ask at the same moment and whatever they close for each other.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn idle_sessions_make_room_for_many_at_once() {
    let directory = tempfile::TempDir::new().unwrap();
    let mut options = options(&directory);
    options.limits.quota.sessions = 12;
    let sandbox = souk_sandbox::Sandbox::new(options).unwrap();
    activate(&sandbox, guests::SILENT).await;
    let sources: Vec<_> = (0..40)
        .map(|number| {
            let mut source = Source::clone(&source("silent"));
            source.connection = format!("con_{number}");
            source.limits.sessions_max = 2;
            std::sync::Arc::new(source)
        })
        .collect();
    let askers = (0..3).map(|asker| {
        let (sandbox, sources) = (sandbox.clone(), sources.clone());
        tokio::spawn(async move {
            for round in 0..500 {
                let source = &sources[(asker * 7 + round * (asker + 3)) % sources.len()];
                let ping = || sandbox.run(source, Request::Ping(Limits::new(10, 1000)), within(20));
                // The second of them finds the first one waiting.
                let (one, other) = tokio::join!(ping(), ping());
                one.and(other)
                    .unwrap_or_else(|fault| panic!("{asker} {round}: {fault:?}"));
            }
        })
    });
    for asker in askers.collect::<Vec<_>>() {
        asker.await.unwrap();
    }
}

/// A connector that never answers costs its caller the deadline and no more.
#[tokio::test]
async fn a_silent_connector_times_out_at_the_deadline() {
    let sandbox = with_guest(guests::SILENT).await;
    let source = source("silent");
    let begun = Instant::now();
    let fault = sandbox
        .run(
            &source,
            query("select 1"),
            begun + Duration::from_millis(300),
        )
        .await
        .unwrap_err();
    assert_eq!(fault.kind, FaultKind::Timeout, "{fault:?}");
    let took = begun.elapsed();
    assert!(
        took >= Duration::from_millis(300) && took < Duration::from_secs(20),
        "{took:?}"
    );
    sandbox
        .run(&source, Request::Ping(Limits::new(10, 1000)), within(20))
        .await
        .unwrap();
}

/// Past `sessions_max` requests wait, past `queue_max` they are refused, and who waits keeps a deadline.
#[tokio::test]
async fn sessions_and_queue_are_bounded() {
    let sandbox = with_guest(guests::SILENT).await;
    let source = source_with(
        "silent",
        "{}",
        PoolLimits {
            sessions_max: 2,
            queue_max: 3,
        },
    );
    let begun = Instant::now();
    let deadline = begun + Duration::from_secs(10);
    let mut waiting = Vec::new();
    for number in 0..8 {
        let asked = {
            let (sandbox, source) = (sandbox.sandbox.clone(), source.clone());
            async move {
                let fault = sandbox.run(&source, query("select 1"), deadline).await;
                fault.unwrap_err().kind
            }
        };
        waiting.push(tokio::spawn(asked));
        // Who waits for a session that is being opened waits, too.
        let (in_flight, queued) = match number {
            0..2 => (number + 1, 0),
            2..5 => (2, number - 1),
            _ => (2, 3),
        };
        wait_until(|| {
            gauge(&sandbox, "requests_in_flight") == in_flight
                && gauge(&sandbox, "requests_queued") == queued
        })
        .await;
    }
    assert!(sandbox.connectors()[0].sessions.open <= 2);
    let mut kinds = Vec::new();
    for task in waiting {
        kinds.push(task.await.unwrap());
    }
    assert_eq!(
        kinds
            .iter()
            .filter(|kind| **kind == FaultKind::Busy)
            .count(),
        3,
        "{kinds:?}"
    );
    assert_eq!(
        kinds
            .iter()
            .filter(|kind| **kind == FaultKind::Timeout)
            .count(),
        5,
        "{kinds:?}"
    );
    assert!(
        begun.elapsed() < Duration::from_secs(60),
        "{:?}",
        begun.elapsed()
    );
}

/// Whoever has all places of a data connection with requests that nobody answers leaves another caller one of them, and the next turn but one.
#[tokio::test]
async fn callers_of_a_data_connection_take_turns() {
    let sandbox = with_guest(guests::SILENT).await;
    let one = PoolLimits {
        sessions_max: 1,
        queue_max: 4,
    };
    let source = source_with("silent", "{}", one);
    let greedy = |seconds| {
        let (sandbox, source) = (sandbox.sandbox.clone(), source.clone());
        let request = query("select 1");
        tokio::spawn(async move {
            sandbox
                .run_for("com_2", &source, request, within(seconds))
                .await
        })
    };
    let first = greedy(3);
    wait_until(|| gauge(&sandbox, "requests_in_flight") == 1).await;
    let second = greedy(4);
    wait_until(|| gauge(&sandbox, "requests_queued") == 1).await;
    let others: Vec<_> = (0..3).map(|_| greedy(600)).collect();
    wait_until(|| gauge(&sandbox, "requests_queued") == 4).await;

    let ping = Request::Ping(Limits::new(10, 1000));
    let answer = sandbox.run_for("com_3", &source, ping, within(60)).await;
    assert_eq!(answer.unwrap().rows, 1);
    for run in [first, second] {
        let fault = run.await.unwrap().unwrap_err();
        assert_eq!(fault.kind, FaultKind::Timeout, "{fault:?}");
    }
    // The last of them has made room.
    let mut refused = 0;
    for run in others {
        if run.is_finished() {
            let fault = run.await.unwrap().unwrap_err();
            assert_eq!(fault.kind, FaultKind::Busy, "{fault:?}");
            refused += 1;
        } else {
            run.abort();
        }
    }
    assert_eq!(refused, 1);
}

/// Who tries a version out, and leaves, leaves no session behind.
#[tokio::test]
async fn a_dropped_probe_keeps_no_session() {
    let sandbox = with_guest(guests::SILENT).await;
    let source = source_with("silent", "{}", PoolLimits::default());
    let open = || sandbox.connectors()[0].sessions.open;
    let probe = {
        let (sandbox, info) = (sandbox.sandbox.clone(), sandbox.connectors().remove(0));
        tokio::spawn(async move {
            let of = (&Scope::Platform, info.name.as_str(), info.version.as_str());
            let request = query("select 1");
            sandbox.probe(of, &source, request, within(600)).await
        })
    };
    wait_until(|| open() == 1).await;
    probe.abort();
    wait_until(|| open() == 0).await;
}

/// Who tries a data connection that is not kept, and leaves, leaves no session behind either, nor the credentials that it has.
#[tokio::test]
async fn a_dropped_trial_keeps_no_session() {
    let sandbox = with_guest(guests::SILENT).await;
    let source = source_with("silent", "{}", PoolLimits::default());
    let open = || sandbox.connectors()[0].sessions.open;
    let trial = {
        let sandbox = sandbox.sandbox.clone();
        tokio::spawn(async move {
            let _tried = sandbox.tried(&source);
            let request = query("select 1");
            sandbox.run(&source, request, within(600)).await
        })
    };
    wait_until(|| open() == 1).await;
    trial.abort();
    wait_until(|| open() == 0).await;
}

/// A caller who leaves frees the session.
#[tokio::test]
async fn a_dropped_request_is_cancelled() {
    let sandbox = with_guest(guests::SILENT).await;
    let source = source_with(
        "silent",
        "{}",
        PoolLimits {
            sessions_max: 1,
            queue_max: 8,
        },
    );
    let dropped = tokio::time::timeout(
        Duration::from_millis(100),
        sandbox.run(&source, query("select 1"), within(60)),
    )
    .await;
    assert!(dropped.is_err());
    sandbox
        .run(&source, Request::Ping(Limits::new(10, 1000)), within(20))
        .await
        .unwrap();
}

/// What an operator reads.
fn gauge(sandbox: &Sandbox, name: &str) -> u64 {
    let mut registry = prometheus_client::registry::Registry::default();
    registry.register_collector(Box::new(sandbox.metrics()));
    let mut text = String::new();
    prometheus_client::encoding::text::encode(&mut text, &registry).expect("text");
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix(&format!("sandbox_{name} ")));
    line.expect("the gauge").parse().expect("a number")
}

/// After `shut_down` nothing is accepted, and what was in flight is answered.
#[tokio::test]
async fn a_shut_down_sandbox_refuses() {
    let sandbox = with_guest(guests::FIXED_ROWS).await;
    let source = source("fixed");
    run(&sandbox, &source, "select 1").await.unwrap();
    sandbox.shut_down(within(5)).await;
    assert_eq!(
        run(&sandbox, &source, "select 1").await.unwrap_err().kind,
        FaultKind::ShuttingDown
    );
}

/// What is in flight or waits when the time of `shut_down` is over is told so at once, and does not wait for its own deadline.
#[tokio::test]
async fn a_shut_down_sandbox_cuts_what_takes_longer() {
    let sandbox = with_guest(guests::SILENT).await;
    let one = PoolLimits {
        sessions_max: 1,
        queue_max: 8,
    };
    let source = source_with("silent", "{}", one);
    let runs: Vec<_> = (0..3)
        .map(|_| {
            let (sandbox, source) = (sandbox.sandbox.clone(), source.clone());
            tokio::spawn(async move { sandbox.run(&source, query("select 1"), within(60)).await })
        })
        .collect();
    wait_until(|| {
        gauge(&sandbox, "requests_in_flight") == 1 && gauge(&sandbox, "requests_queued") == 2
    })
    .await;
    let begun = Instant::now();
    sandbox.shut_down(begun + Duration::from_millis(100)).await;
    for run in runs {
        let fault = run.await.unwrap().unwrap_err();
        assert_eq!(fault.kind, FaultKind::ShuttingDown, "{fault:?}");
    }
    assert!(begun.elapsed() < Duration::from_secs(20));
}
