//! How many sessions a data connection opens at once. A login at a source that is far away takes as long as many statements.

mod common;

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use common::*;
use souk_outbound::TlsMode;
use souk_sandbox::{Blame, Fault, Grant, Output, PoolLimits, Sandbox, Source};
use souk_tests::PgCluster;
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

/// Logins stand before it until they are let in, or turned away.
struct Gate {
    port: u16,
    came: UnboundedReceiver<()>,
    verdicts: UnboundedSender<bool>,
    wires: Arc<Mutex<Vec<AbortHandle>>>,
}

impl Gate {
    async fn before(server: u16) -> Gate {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let (tell, came) = unbounded_channel();
        let (verdicts, heard) = unbounded_channel();
        let heard = Arc::new(tokio::sync::Mutex::new(heard));
        let wires = Arc::new(Mutex::new(Vec::new()));
        let kept = wires.clone();
        tokio::spawn(async move {
            while let Ok((mut client, _)) = listener.accept().await {
                let _ = tell.send(());
                let heard = heard.clone();
                let wire = tokio::spawn(async move {
                    let verdict = heard.lock().await.recv().await;
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

    /// The wire that came at this place is cut.
    fn cuts(&self, place: usize) {
        self.wires.lock().unwrap()[place].abort();
    }
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
        let directory = tempfile::TempDir::new().unwrap();
        let mut options = options(&directory);
        options.limits.open_timeout = Duration::from_secs(600);
        let sandbox = Sandbox::new(options).unwrap();
        activate(&sandbox, bundled("postgres")).await;
        let source = Source {
            company: "com_1".into(),
            connection: "con_1".into(),
            revision: 1,
            engine: "postgres".into(),
            settings_json: format!(
                r#"{{"database":"{database}","username":"{}","password":"{}","ssl_mode":"disable","statement_timeout_ms":600000}}"#,
                cluster.user, cluster.password
            ),
            grant: Grant::Tcp {
                host: "127.0.0.1".into(),
                port: gate.port,
                tls: TlsMode::Disable,
                ca_pem: None,
            },
            limits: PoolLimits {
                sessions_max: SESSIONS,
                ..PoolLimits::default()
            },
        };
        let mut far = Far {
            gate,
            sandbox: TestSandbox { sandbox, directory },
            source: Arc::new(source),
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
