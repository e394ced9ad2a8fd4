//! How many sessions a data connection opens at once. A login at a source that is far away takes as long as many statements.

mod common;

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use common::*;
use souk_outbound::TlsMode;
use souk_sandbox::{Blame, Fault, Grant, Output, PoolLimits, Sandbox, Source, Value};
use souk_tests::{PgCluster, guests, talking_server::TalkingServer};
use tokio::{
    io::copy_bidirectional,
    net::{TcpListener, TcpStream},
    sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel},
    task::{AbortHandle, JoinHandle},
};

/// As many as the data connection may have.
const SESSIONS: usize = 4;
/// Waits for the table that [`Far::hold`] holds. It is known to be slow from its first run on.
const SLOW: &str = "SELECT count(*), pg_sleep(0.05) FROM held";
/// In which another login would have come, were there one.
const MOMENT: Duration = Duration::from_millis(200);
/// More logins than come in a second, or in the many that a machine may take for it, to a source that is left alone: there are hundreds where it is not.
const MANY: usize = 10;

/// Logins stand before it until they are let in, or turned away.
struct Gate {
    port: u16,
    came: UnboundedReceiver<()>,
    verdicts: UnboundedSender<bool>,
    /// What all hear who come from now on.
    always: Arc<Mutex<Option<bool>>>,
    wires: Arc<Mutex<Vec<AbortHandle>>>,
}

impl Gate {
    async fn before(server: u16) -> Gate {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let (tell, came) = unbounded_channel();
        let (verdicts, heard) = unbounded_channel();
        let heard = Arc::new(tokio::sync::Mutex::new(heard));
        let always = Arc::new(Mutex::new(None));
        let known = always.clone();
        let wires = Arc::new(Mutex::new(Vec::new()));
        let kept = wires.clone();
        tokio::spawn(async move {
            while let Ok((mut client, _)) = listener.accept().await {
                let _ = tell.send(());
                let (heard, always) = (heard.clone(), *known.lock().unwrap());
                let wire = tokio::spawn(async move {
                    let verdict = match always {
                        Some(verdict) => Some(verdict),
                        None => heard.lock().await.recv().await,
                    };
                    if verdict == Some(true) {
                        let server = TcpStream::connect(("127.0.0.1", server)).await;
                        let _ = copy_bidirectional(&mut client, &mut server.unwrap()).await;
                    }
                });
                kept.lock().unwrap().push(wire.abort_handle());
            }
        });
        Gate {
            port,
            came,
            verdicts,
            always,
            wires,
        }
    }

    /// So many stand before it, and others may.
    async fn logins(&mut self, count: usize) {
        for _ in 0..count {
            let came = tokio::time::timeout(Duration::from_secs(120), self.came.recv());
            came.await.expect("no login came").unwrap();
        }
    }

    /// Nobody else comes.
    async fn has_no_other(&self) {
        tokio::time::sleep(MOMENT).await;
        assert_eq!(self.came.len(), 0, "others came");
    }

    fn lets_in(&self, count: usize) {
        (0..count).for_each(|_| self.verdicts.send(true).unwrap());
    }

    fn turns_away(&self, count: usize) {
        (0..count).for_each(|_| self.verdicts.send(false).unwrap());
    }

    /// From now on nobody stands before it.
    fn always_lets_in(&self) {
        *self.always.lock().unwrap() = Some(true);
    }

    fn always_turns_away(&self) {
        *self.always.lock().unwrap() = Some(false);
    }

    /// The wire that came at this place is cut.
    fn cuts(&self, place: usize) {
        self.wires.lock().unwrap()[place].abort();
    }
}

/// With time to log in, however long somebody stands before a gate.
async fn patient(wasm: &'static [u8]) -> TestSandbox {
    let directory = tempfile::TempDir::new().unwrap();
    let mut options = options(&directory);
    options.limits.open_timeout = Duration::from_secs(600);
    let sandbox = Sandbox::new(options).unwrap();
    activate(&sandbox, wasm).await;
    TestSandbox { sandbox, directory }
}

fn behind(gate: &Gate, engine: &str, settings_json: &str) -> Arc<Source> {
    let limits = PoolLimits {
        sessions_max: SESSIONS,
        ..PoolLimits::default()
    };
    Arc::new(Source {
        grant: Grant::Tcp {
            host: "127.0.0.1".into(),
            port: gate.port,
            tls: TlsMode::Disable,
            ca_pem: None,
        },
        ..(*source_with(engine, settings_json, limits)).clone()
    })
}

/// A PostgreSQL behind a gate.
struct Far {
    gate: Gate,
    sandbox: TestSandbox,
    source: Arc<Source>,
    admin: tokio_postgres::Client,
}

impl Far {
    /// With one session, which does nothing.
    async fn reached() -> Far {
        let cluster = PgCluster::shared().await;
        let database = cluster.database("CREATE TABLE held (n INT)").await;
        let gate = Gate::before(cluster.port).await;
        let settings_json = format!(
            r#"{{"database":"{database}","username":"{}","password":"{}","ssl_mode":"disable","statement_timeout_ms":600000}}"#,
            cluster.user, cluster.password
        );
        let mut far = Far {
            sandbox: patient(bundled("postgres")).await,
            source: behind(&gate, "postgres", &settings_json),
            gate,
            admin: cluster.client(&database).await,
        };
        far.gate.lets_in(1);
        far.answered(far.ask(1)).await;
        far.gate.logins(1).await;
        far
    }

    /// Open ones.
    fn sessions(&self) -> u64 {
        self.sandbox.connectors()[0].sessions.open
    }

    fn idle(&self) -> u64 {
        self.sandbox.connectors()[0].sessions.idle
    }

    async fn hold(&self) {
        let hold = "BEGIN; LOCK TABLE held IN ACCESS EXCLUSIVE MODE";
        self.admin.batch_execute(hold).await.unwrap();
    }

    async fn let_go(&self) {
        self.admin.batch_execute("COMMIT").await.unwrap();
    }

    /// So many slow statements that come together.
    fn ask(&self, count: usize) -> Vec<JoinHandle<Result<Output, Fault>>> {
        let asked = (0..count).map(|_| {
            let (sandbox, source) = (self.sandbox.sandbox.clone(), self.source.clone());
            tokio::spawn(async move { sandbox.run(&source, query(SLOW), within(600)).await })
        });
        asked.collect()
    }

    async fn answered(&self, asked: Vec<JoinHandle<Result<Output, Fault>>>) {
        for answer in asked {
            answer.await.unwrap().unwrap();
        }
    }
}

/// Slow statements that come together do not wait for one session after the other, once there is one: those they need are opened side by side, as many as
/// the data connection may have.
#[tokio::test]
async fn slow_statements_have_their_sessions_opened_side_by_side() {
    let mut far = Far::reached().await;
    far.hold().await;
    // The first has the session that is there, the last two find no place for theirs.
    let asked = far.ask(SESSIONS + 2);
    far.gate.logins(SESSIONS - 1).await;
    far.gate.has_no_other().await;
    far.gate.lets_in(SESSIONS - 1);
    far.let_go().await;
    far.answered(asked).await;
    wait_until(|| far.idle() == SESSIONS as u64).await;
    far.gate.has_no_other().await;
}

/// A source that takes no more sessions sees one login at a time, however many wait, until it takes one again.
#[tokio::test]
async fn a_source_that_refuses_logins_sees_one_at_a_time() {
    let mut far = Far::reached().await;
    far.hold().await;
    let asked = far.ask(SESSIONS);
    far.gate.logins(SESSIONS - 1).await;
    far.gate.turns_away(1);
    far.gate.has_no_other().await;
    far.gate.turns_away(SESSIONS - 2);
    for _ in 0..3 {
        far.gate.logins(1).await;
        far.gate.has_no_other().await;
        far.gate.turns_away(1);
    }
    far.gate.logins(1).await;
    far.gate.lets_in(1);
    far.gate.logins(SESSIONS - 2).await;
    far.gate.lets_in(SESSIONS - 2);
    far.let_go().await;
    far.answered(asked).await;
}

/// A source that is down sees one login for all who wait, and all of them hear what it has met.
#[tokio::test]
async fn a_source_that_is_down_sees_one_login_for_all_who_wait() {
    let mut far = Far::reached().await;
    far.gate.cuts(0);
    wait_until(|| far.sessions() == 0).await;
    let asked = far.ask(SESSIONS);
    far.gate.logins(1).await;
    far.gate.has_no_other().await;
    far.gate.turns_away(1);
    for answer in asked {
        assert_eq!(answer.await.unwrap().unwrap_err().blame, Blame::Source);
    }
    far.gate.has_no_other().await;
}

/// Where a source has broken a session it has to take one before several are opened, also if others are still there: it may have gone.
#[tokio::test]
async fn a_source_that_has_broken_a_session_is_asked_for_one_first() {
    let mut far = Far::reached().await;
    far.hold().await;
    let two = far.ask(2);
    far.gate.logins(1).await;
    far.gate.lets_in(1);
    far.let_go().await;
    far.answered(two).await;
    wait_until(|| far.idle() == 2).await;
    far.hold().await;
    let first = far.ask(1);
    wait_until(|| far.idle() == 1).await;
    far.gate.cuts(1);
    wait_until(|| far.sessions() == 1).await;
    let others = far.ask(SESSIONS - 1);
    far.gate.logins(1).await;
    far.gate.has_no_other().await;
    far.gate.lets_in(1);
    far.gate.logins(SESSIONS - 2).await;
    far.gate.lets_in(SESSIONS - 2);
    far.let_go().await;
    far.answered(first).await;
    far.answered(others).await;
}

/// A source that has no room for another session is asked for one after pauses that grow, whether anybody else asks or not; the session that is there answers
/// whoever waits. When it has room again it is asked once more.
#[tokio::test]
async fn a_source_that_is_full_is_asked_after_pauses() {
    let mut far = Far::reached().await;
    far.hold().await;
    far.gate.always_turns_away();
    let asked = far.ask(2);
    far.gate.logins(3).await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    let came = far.gate.came.len();
    assert!(came < MANY, "{came} logins in a second");
    far.let_go().await;
    far.answered(asked).await;
    wait_until(|| far.sessions() == 1 && far.idle() == 1).await;

    far.hold().await;
    far.gate.always_lets_in();
    let asked = far.ask(2);
    // The second is there, or is being opened.
    wait_until(|| far.sessions() == 2 && far.idle() == 0).await;
    far.let_go().await;
    far.answered(asked).await;
    wait_until(|| far.idle() == 2).await;
}

/// Nor is it asked more often by a thread that has no session of its own, and whose requests others' sessions serve.
#[tokio::test]
async fn a_source_that_is_full_is_asked_after_pauses_by_other_threads() {
    let mut far = Far::reached().await;
    far.gate.always_turns_away();
    let (sandbox, source) = (far.sandbox.sandbox.clone(), far.source.clone());
    let is_over = Arc::new(AtomicBool::new(false));
    let ends = is_over.clone();
    let asked = tokio::task::spawn_blocking(move || {
        let mut runtime = tokio::runtime::Builder::new_current_thread();
        let runtime = runtime.enable_all().build().unwrap();
        runtime.block_on(async {
            while !ends.load(Ordering::Relaxed) {
                let one = sandbox.run(&source, query("SELECT 1 AS one"), within(600));
                one.await.unwrap();
            }
        });
    });
    far.gate.logins(2).await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    is_over.store(true, Ordering::Relaxed);
    asked.await.unwrap();
    let came = far.gate.came.len();
    assert!(came < MANY, "{came} logins in a second");
}

/// Who waits while a source is left alone is not left alone with it: where the last session goes another one is opened.
#[tokio::test]
async fn who_waits_outlives_the_last_session() {
    let mut far = Far::reached().await;
    far.hold().await;
    far.gate.always_turns_away();
    let asked = far.ask(2);
    far.gate.logins(4).await;
    // The fourth has been turned away, and the pause behind it is not over.
    far.gate.has_no_other().await;
    far.gate.always_lets_in();
    far.gate.cuts(0);
    far.gate.logins(1).await;
    far.let_go().await;
    far.answered(asked).await;
}

/// Without `pipelining` each who waits has a session opened, all of them at once, until the source refuses one: then it sees one login at a time, until it
/// takes one.
#[tokio::test]
async fn without_pipelining_a_source_that_refuses_logins_sees_one_at_a_time() {
    let server = TalkingServer::start().await;
    let mut gate = Gate::before(server.address.port()).await;
    let sandbox = patient(guests::TALKER).await;
    let source = behind(&gate, "talker", r#"{"ssl_mode":"disable"}"#);
    let ask = |wish: &str| {
        let (sandbox, source) = (sandbox.sandbox.clone(), source.clone());
        let wish = query_with("SELECT answer FROM t", vec![Value::Text(wish.into())]);
        tokio::spawn(async move { sandbox.run(&source, wish, within(600)).await })
    };
    gate.lets_in(1);
    ask("fine").await.unwrap().unwrap();
    gate.logins(1).await;
    let hangs = ask("hangs");
    server.wait(|seen| seen.hanging() == 1).await;
    let others: Vec<_> = (1..SESSIONS).map(|_| ask("fine")).collect();
    gate.logins(SESSIONS - 1).await;
    gate.turns_away(1);
    gate.has_no_other().await;
    gate.turns_away(SESSIONS - 2);
    for _ in 0..3 {
        gate.logins(1).await;
        gate.has_no_other().await;
        gate.turns_away(1);
    }
    gate.logins(1).await;
    gate.lets_in(1);
    gate.logins(SESSIONS - 2).await;
    gate.lets_in(SESSIONS - 2);
    for answer in others {
        answer.await.unwrap().unwrap();
    }
    assert!(!hangs.is_finished());
}
