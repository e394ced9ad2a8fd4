//! What the sandbox promises about directories whatever a connector does with its own: it reads it and changes
//! nothing, finds no way out of it, and takes nobody along when it breaks.

mod common;

#[path = "../../../tests/guests/hostile-files/attempts.rs"]
mod attempts;

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant, SystemTime},
};

use attempts::{Attempt, told};
use common::*;
use futures_util::future::BoxFuture;
use souk_sandbox::{
    Blame, Fault, FaultKind, Grant, Lender, Lent, Limits, Request, Sandbox, Source, Status, Value,
};
use souk_tests::guests;
use tempfile::TempDir;

/// A company's directory beside another's, with links that lead out of it.
struct Files(TempDir);

impl Files {
    fn new() -> Files {
        let files = Files(TempDir::new().unwrap());
        for (path, text) in [
            ("outside.txt", "outside"),
            ("neighbour/rows.txt", "of the neighbour"),
            ("company/rows.txt", "of the company"),
            ("company/kept.txt", "kept"),
            ("company/inner/deep.txt", "deep"),
        ] {
            let path = files.0.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        for (to, link) in [
            ("../outside.txt", "link-up"),
            ("..", "link-folder"),
            ("/etc/passwd", "link-absolute"),
        ] {
            std::os::unix::fs::symlink(to, files.company().join(link)).unwrap();
        }
        files
    }

    fn company(&self) -> PathBuf {
        self.0.path().join("company")
    }

    fn source(&self) -> Arc<Source> {
        Arc::new(Source {
            grant: Grant::Directory(self.company()),
            ..(*source("hostile-files")).clone()
        })
    }

    /// Every file of every company with its content and its time, every directory with its time.
    fn all(&self) -> BTreeMap<PathBuf, (Option<String>, SystemTime)> {
        let (mut all, mut left) = (BTreeMap::new(), vec![self.0.path().to_owned()]);
        while let Some(path) = left.pop() {
            let about = path.symlink_metadata().unwrap();
            if about.is_dir() {
                let entries = std::fs::read_dir(&path).unwrap();
                left.extend(entries.map(|entry| entry.unwrap().path()));
            }
            let text = about
                .is_file()
                .then(|| std::fs::read_to_string(&path).unwrap());
            all.insert(path, (text, about.modified().unwrap()));
        }
        all
    }
}

/// What the guest tried, and what came of it.
async fn tried(
    sandbox: &Sandbox,
    source: &Arc<Source>,
    word: &str,
    paths: &[&str],
) -> Vec<(String, String)> {
    let paths = paths.iter().map(|path| Value::Text((*path).into()));
    let request = query_with(&format!("SELECT {word}"), paths.collect());
    // What goes on in the lanes waits for all that the machine has to do beside this test.
    let output = sandbox.run(source, request, within(300)).await.unwrap();
    let rows: Vec<BTreeMap<String, String>> = serde_json::from_str(&rows(&output)).unwrap();
    let row = |row: BTreeMap<String, String>| (row["tried"].clone(), row["outcome"].clone());
    rows.into_iter().map(row).collect()
}

/// The same attempts where only the rights of the test's own process count.
fn unconfined(attempts: &[Attempt]) -> Vec<(String, String)> {
    let pair = |attempt: &Attempt| (attempt.0.clone(), told(attempt));
    attempts.iter().map(pair).collect()
}

/// Whatever a connector tries to create, change, move or delete is refused by the grant: the same attempts
/// succeed without it.
#[tokio::test]
async fn nothing_in_a_directory_can_be_changed() {
    let open = unconfined(&attempts::writes(&Files::new().company()));
    let files = Files::new();
    let before = files.all();
    let sandbox = with_guest(guests::HOSTILE_FILES).await;
    let confined = tried(&sandbox, &files.source(), "writes", &[]).await;
    assert_eq!(confined.len(), open.len());
    for ((what, outcome), open) in confined.iter().zip(&open) {
        assert_eq!(open, &(what.clone(), "done".to_owned()));
        assert_eq!(outcome, "PermissionDenied", "{what}");
    }
    assert_eq!(files.all(), before);
}

/// A thread that often asks another's session gets one of its own, and no more than that.
#[tokio::test]
async fn a_thread_gets_a_session_of_its_own() {
    let files = Files::new();
    let sandbox = with_guest(guests::HOSTILE_FILES).await;
    let source = files.source();
    let ping = || Request::Ping(Limits::new(10, 1_000));
    sandbox.run(&source, ping(), within(20)).await.unwrap();
    let elsewhere = move || {
        let mut runtime = tokio::runtime::Builder::new_current_thread();
        runtime.enable_all().build().unwrap().block_on(async {
            let open = || sandbox.connectors()[0].sessions.open;
            for _ in 0..20 {
                sandbox.run(&source, ping(), within(20)).await.unwrap();
            }
            assert_eq!(open(), 1, "for some requests it is not worth one");
            let begun = Instant::now();
            while open() < 2 {
                assert!(
                    begun.elapsed() < Duration::from_secs(20),
                    "it asks for ever"
                );
                sandbox.run(&source, ping(), within(20)).await.unwrap();
            }
            for _ in 0..500 {
                sandbox.run(&source, ping(), within(20)).await.unwrap();
            }
            assert_eq!(open(), 2);
        });
    };
    tokio::task::spawn_blocking(elsewhere).await.unwrap();
}

/// Requests of one thread are short, so that they wait for each other; behind one that is long nobody waits.
#[tokio::test]
async fn requests_of_a_thread_share_a_session_until_one_is_long() {
    let files = Files::new();
    let sandbox = with_guest(guests::HOSTILE_FILES).await;
    let source = files.source();
    let ping = || {
        let ping = Request::Ping(Limits::new(10, 1_000));
        sandbox.run(&source, ping, within(20))
    };
    let open = || sandbox.connectors()[0].sessions.open;
    ping().await.unwrap();
    for answer in futures_util::future::join_all((0..32).map(|_| ping())).await {
        answer.unwrap();
    }
    assert_eq!(open(), 1);

    let deadline = Instant::now() + Duration::from_secs(10);
    let (looping, ()) = tokio::join!(
        sandbox.run(&source, query("SELECT loops"), deadline),
        async {
            for answer in futures_util::future::join_all((0..32).map(|_| ping())).await {
                answer.unwrap();
            }
            assert!(Instant::now() < deadline);
        }
    );
    assert_eq!(looping.unwrap_err().kind, FaultKind::Timeout);
}

/// Ways out of a directory.
const OUTSIDE: [&str; 12] = [
    "/",
    "/etc/passwd",
    "/proc/self/environ",
    "..",
    "../outside.txt",
    "../neighbour",
    "../neighbour/rows.txt",
    "inner/../../outside.txt",
    "link-up",
    "link-folder",
    "link-folder/outside.txt",
    "link-absolute",
];

/// A connector sees its company's directory. No path and no link leads out of it, also not past the standard
/// library, and nothing of the host's process is told.
#[tokio::test]
async fn nothing_outside_a_directory_can_be_reached() {
    let files = Files::new();
    let (source, company) = (files.source(), files.company());
    let sandbox = with_guest(guests::HOSTILE_FILES).await;

    let names = "inner kept.txt link-absolute link-folder link-up rows.txt";
    for (path, content) in [
        (".", names),
        ("rows.txt", "of the company"),
        ("inner", "deep.txt"),
        ("inner/deep.txt", "deep"),
        ("inner/../rows.txt", "of the company"),
    ] {
        let read = tried(&sandbox, &source, "reads", &[path]).await;
        assert_eq!(read, [(path.to_owned(), content.to_owned())]);
        let opened = tried(&sandbox, &source, "opens", &[path]).await;
        assert_eq!(opened, [(path.to_owned(), "opened".to_owned())]);
    }

    // All of it is there to be read, for whom it is not refused.
    for (path, result) in attempts::reads(&company, OUTSIDE.into_iter()) {
        result.unwrap_or_else(|error| panic!("{path}: {error}"));
    }
    let whole = company.join("rows.txt");
    for path in OUTSIDE.into_iter().chain([whole.to_str().unwrap()]) {
        let opened = tried(&sandbox, &source, "opens", &[path]).await;
        assert_eq!(opened, [(path.to_owned(), "PermissionDenied".to_owned())]);
        // An absolute path is below no directory that the guest knows, and does not even leave it.
        let refusal = match Path::new(path).is_absolute() {
            true => "NotFound",
            false => "PermissionDenied",
        };
        let read = tried(&sandbox, &source, "reads", &[path]).await;
        assert_eq!(read, [(path.to_owned(), refusal.to_owned())]);
    }
    assert_eq!(tried(&sandbox, &source, "environment", &[]).await, []);
}

/// A trap, an exit and a full memory are the connector's fault; a loop ends at the deadline, because a file may
/// take as long to read. Each time the next request succeeds, of this company and of others.
#[tokio::test]
async fn a_bad_file_connector_is_stopped_and_replaced() {
    let (files, others) = (Files::new(), Files::new());
    let directory = TempDir::new().unwrap();
    let mut options = options(&directory);
    // The bound holds wherever it is; a small one is reached soon.
    options.limits.directory_memory_bytes = 64 << 20;
    let sandbox = Sandbox::new(options).unwrap();
    activate(&sandbox, guests::HOSTILE_FILES).await;
    let source = files.source();
    let other = Arc::new(Source {
        company: "com_2".into(),
        connection: "con_2".into(),
        ..(*others.source()).clone()
    });
    let succeeds = async || {
        for source in [&source, &other] {
            let ping = Request::Ping(Limits::new(10, 1000));
            sandbox.run(source, ping, within(20)).await.unwrap();
            let read = tried(&sandbox, source, "reads", &["rows.txt"]).await;
            assert_eq!(read[0].1, "of the company");
        }
    };
    succeeds().await;
    for (word, kind) in [
        ("traps", FaultKind::Trapped),
        ("exits", FaultKind::ContractBroken),
        ("memory", FaultKind::OutOfMemory),
    ] {
        let fault = run(&sandbox, &source, &format!("SELECT {word}")).await;
        let fault = fault.unwrap_err();
        assert_eq!(
            (fault.blame, fault.kind),
            (Blame::Connector, kind),
            "{word}: {fault:?}"
        );
        succeeds().await;
    }
    let begun = Instant::now();
    let deadline = begun + Duration::from_secs(8);
    let (fault, ()) = tokio::join!(
        sandbox.run(&source, query("SELECT loops"), deadline),
        // Others are served while it loops.
        async {
            let read = tried(&sandbox, &other, "reads", &["rows.txt"]).await;
            assert_eq!(read[0].1, "of the company");
            assert!(Instant::now() < deadline, "{:?}", begun.elapsed());
        }
    );
    let fault = fault.unwrap_err();
    assert_eq!(fault.kind, FaultKind::Timeout, "{fault:?}");
    let took = begun.elapsed();
    assert!(
        took >= Duration::from_secs(8) && took < Duration::from_secs(60),
        "{took:?}"
    );
    succeeds().await;
    let info = &sandbox.connectors()[0];
    assert_eq!((info.traps_total, info.status), (3, Status::Active));
}

/// A disk that takes its time stands a worker still for a while at most: then the file is read where nobody else waits for it.
#[tokio::test]
async fn a_slow_disk_does_not_stand_a_worker_still_for_ever() {
    let (files, others) = (Files::new(), Files::new());
    let sandbox = with_guest(guests::HOSTILE_FILES).await;
    let source = files.source();
    let other = Arc::new(Source {
        company: "com_2".into(),
        connection: "con_2".into(),
        ..(*others.source()).clone()
    });
    let read_other = || tried(&sandbox, &other, "reads", &["rows.txt"]);
    tried(&sandbox, &source, "reads", &["rows.txt"]).await;
    // To open it lasts until somebody writes. It is none that a company can have: a session does not begin on a directory with one.
    let slow = files.company().join("slow");
    let made = std::process::Command::new("mkfifo").arg(&slow).status();
    assert!(made.unwrap().success());
    // The test has one thread, which stands still for as long as the disk takes. Way is made for somebody who was served within the last two seconds:
    // on a loaded machine the first times may be too late.
    for _ in 0..200 {
        read_other().await;
        let (tell, told) = std::sync::mpsc::channel::<()>();
        let path = slow.clone();
        let writer = std::thread::spawn(move || {
            let is_served = told.recv_timeout(Duration::from_millis(100)).is_ok();
            // Open until the other end is: an end that was opened before keeps this one from waiting.
            let end = std::fs::OpenOptions::new().write(true).open(path).unwrap();
            (is_served, end)
        });
        let (opened, ()) = tokio::join!(tried(&sandbox, &source, "opens", &["slow"]), async {
            assert_eq!(read_other().await[0].1, "of the company");
            let _ = tell.send(());
        });
        assert_eq!(opened[0].1, "opened");
        let (is_served, _end) = writer.join().unwrap();
        if is_served {
            return;
        }
    }
    panic!("the other company always waited for the disk");
}

/// What computes for somebody who has gone ends with its session, long before its time is over.
#[tokio::test]
async fn nobody_computes_for_a_caller_who_has_gone() {
    let files = Files::new();
    let sandbox = with_guest(guests::HOSTILE_FILES).await;
    let source = files.source();
    let open = || {
        let sessions = sandbox.connectors()[0].sessions;
        (sessions.open, sessions.idle)
    };
    let becomes = async |wanted: &[(u64, u64)]| {
        let since = Instant::now();
        while !wanted.contains(&open()) {
            assert!(since.elapsed() < Duration::from_secs(60), "{:?}", open());
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    // On a loaded machine a session may still be on its way to being ready: it has nothing to do then, once it is.
    for _ in 0..10 {
        let (asks, asked) = (sandbox.sandbox.clone(), source.clone());
        let looping =
            tokio::spawn(async move { asks.run(&asked, query("SELECT loops"), within(600)).await });
        becomes(&[(1, 0)]).await;
        looping.abort();
        becomes(&[(0, 0), (1, 1)]).await;
        if open().0 == 0 {
            break;
        }
    }
    assert_eq!(open().0, 0, "it never began");
    let read = tried(&sandbox, &source, "reads", &["rows.txt"]).await;
    assert_eq!(read[0].1, "of the company");
}

/// Lends a directory to each session that is opened, and counts them.
struct Counting {
    path: PathBuf,
    sessions: AtomicUsize,
}

impl Lender for Counting {
    fn lend(&self) -> BoxFuture<'_, Result<Lent, Fault>> {
        self.sessions.fetch_add(1, Ordering::Relaxed);
        let (path, held) = (self.path.clone(), Box::new(()));
        Box::pin(async move { Ok(Lent { path, held }) })
    }
}

/// Where a company has as many sessions as it may, a data connection that nobody asks gives its own up for another one; those that are asked keep theirs.
#[tokio::test]
async fn whoever_is_asked_keeps_its_session() {
    const ASKED: usize = 7;
    const RESTS: usize = ASKED;
    const COMES: usize = ASKED + 1;
    let (files, directory) = (Files::new(), TempDir::new().unwrap());
    let mut options = options(&directory);
    options.limits.quota.sessions = ASKED + 1;
    let sandbox = Sandbox::new(options).unwrap();
    activate(&sandbox, guests::HOSTILE_FILES).await;
    let lenders = [(); ASKED + 2].map(|()| {
        Arc::new(Counting {
            path: files.company(),
            sessions: AtomicUsize::new(0),
        })
    });
    let ask = async |number: usize| {
        let source = Arc::new(Source {
            connection: format!("con_{number}"),
            grant: Grant::Lent(lenders[number].clone()),
            ..(*source("hostile-files")).clone()
        });
        run(&sandbox, &source, "SELECT environment").await.unwrap();
    };
    ask(RESTS).await;
    let since = Instant::now();
    while since.elapsed() < Duration::from_secs(3) {
        for number in 0..ASKED {
            ask(number).await;
        }
        tokio::time::sleep(Duration::from_millis(150)).await;
    }
    ask(COMES).await;
    for number in 0..ASKED {
        ask(number).await;
    }
    let sessions = || -> Vec<usize> {
        let counts = lenders.iter().map(|lender| &lender.sessions);
        counts.map(|count| count.load(Ordering::Relaxed)).collect()
    };
    assert_eq!(sessions(), [1; ASKED + 2]);
    ask(RESTS).await;
    assert_eq!(sessions()[RESTS], 2);
}
