//! Real stores for tests: a SQLite file, and a database of a PostgreSQL cluster that this process starts (or `TEST_POSTGRES_URL` names).

#![allow(dead_code)] // Every test binary uses its own part of this.

#[path = "../../../../tests/src/sweep.rs"]
mod sweep;

use souk_domain::actors::Actor;
use souk_domain::ids::{
    AssetId, CompanyId, ConnectionId, EndpointId, ExecutionId, KeyId, RequestId, UserId,
};
use souk_domain::money::Credits;
use souk_domain::products::{AssetType, Product, ResultType, SourceKind};
use souk_domain::roles::{Grant, Permissions, Role};
use souk_domain::time::Timestamp;
use souk_store::companies::NewCompany;
use souk_store::executions::{Billing, Outcome, Run};
use souk_store::founding::{Founded, Founding, found};
use souk_store::keys::NewKey;
use souk_store::ledger::Transaction;
use souk_store::maturity::{self, Seen};
use souk_store::products::{AssetDetails, EndpointDetails, Written};
use souk_store::teller::{Hold, HoldError, HoldRequest, Posted, Receipt, Teller};
use souk_store::{Db, OpenOptions, StoreError, Write, db, ledger};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// A store of its own, and how to open it again.
pub struct Store {
    pub name: &'static str,
    pub db: Db,
    pub url: String,
    _directory: Option<tempfile::TempDir>,
}

impl Store {
    /// Keeps the files of a store whose `db` was closed, so that it can be opened again.
    pub fn without_db(self) -> Files {
        Files {
            _directory: self._directory,
        }
    }
}

/// The files of a store that is not open.
pub struct Files {
    _directory: Option<tempfile::TempDir>,
}

/// An empty store on each backend.
pub async fn stores() -> Vec<Store> {
    vec![sqlite().await, postgres().await]
}

pub async fn sqlite() -> Store {
    let directory = tempfile::tempdir().unwrap();
    let url = format!("sqlite:{}", directory.path().join("souk test.db").display());
    Store {
        name: "sqlite",
        db: open(&url).await,
        url,
        _directory: Some(directory),
    }
}

pub async fn postgres() -> Store {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let server = server_url();
    let name = format!(
        "t_{}_{}",
        std::process::id(),
        NUMBER.fetch_add(1, Ordering::SeqCst)
    );
    sqlx::any::install_default_drivers();
    // A server that has just begun to listen may still refuse.
    let begun = Instant::now();
    let mut connection = loop {
        match <sqlx::AnyConnection as sqlx::Connection>::connect(&server).await {
            Ok(connection) => break connection,
            Err(error) => assert!(begun.elapsed() < Duration::from_secs(60), "{error}"),
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    };
    sqlx::query(sqlx::AssertSqlSafe(format!("CREATE DATABASE {name}")))
        .execute(&mut connection)
        .await
        .unwrap();
    let (base, _) = server.rsplit_once('/').unwrap();
    let url = format!("{base}/{name}");
    Store {
        name: "postgres",
        db: open(&url).await,
        url,
        _directory: None,
    }
}

pub async fn open(url: &str) -> Db {
    Db::open(&OpenOptions::new(url)).await.unwrap()
}

/// The URL of a server on which databases may be made, ending in `/database`.
fn server_url() -> String {
    static URL: OnceLock<String> = OnceLock::new();
    URL.get_or_init(|| std::env::var("TEST_POSTGRES_URL").unwrap_or_else(|_| start_cluster()))
        .clone()
}

fn binary(name: &str) -> PathBuf {
    let versions =
        ["18", "17", "16", "15"].map(|version| format!("/usr/lib/postgresql/{version}/bin/{name}"));
    let found = versions
        .iter()
        .map(PathBuf::from)
        .find(|path| path.exists());
    found.unwrap_or_else(|| {
        panic!("{name} not found: install Debian's package postgresql, or set TEST_POSTGRES_URL")
    })
}

/// A cluster that ends with this process. PostgreSQL refuses root, so it runs as the user postgres then.
fn start_cluster() -> String {
    sweep::sweep("souk-store-pg-");
    let (ready, started) = std::sync::mpsc::channel();
    // The server gets a signal when the thread that started it ends, so that thread stays.
    std::thread::spawn(move || {
        let directory = tempfile::Builder::new()
            .prefix("souk-store-pg-")
            .tempdir_in(sweep::place())
            .unwrap();
        let is_root = std::fs::metadata("/proc/self")
            .is_ok_and(|meta| std::os::unix::fs::MetadataExt::uid(&meta) == 0);
        let data = directory.path().join("data");
        let as_user = |program: &Path| {
            let mut command = Command::new("setpriv");
            command.args(["--pdeathsig", "INT"]);
            if is_root {
                command.args([
                    "--reuid",
                    "postgres",
                    "--regid",
                    "postgres",
                    "--clear-groups",
                ]);
            }
            command
                .arg(program)
                .current_dir("/tmp")
                .stdin(Stdio::null())
                .stdout(Stdio::null());
            command
        };
        if is_root {
            assert!(
                Command::new("chown")
                    .arg("postgres:")
                    .arg(directory.path())
                    .status()
                    .unwrap()
                    .success()
            );
        }
        let initdb = as_user(&binary("initdb"))
            .args([
                "-A",
                "trust",
                "-U",
                "souk",
                "-E",
                "UTF8",
                "--no-sync",
                // A collation that sorts letters otherwise than their bytes, as most installations have.
                "--locale-provider=icu",
                "--icu-locale=en",
                "--no-instructions",
                "-D",
            ])
            .arg(&data)
            .status()
            .unwrap();
        assert!(initdb.success(), "initdb failed");
        let port = std::net::TcpListener::bind("127.0.0.1:0")
            .unwrap()
            .local_addr()
            .unwrap()
            .port();
        let mut server = as_user(&binary("postgres"))
            .args([
                "-c",
                "listen_addresses=127.0.0.1",
                "-c",
                "unix_socket_directories=",
                "-c",
                "max_connections=200",
                // What is killed here are hosts, never the machine.
                "-c",
                "fsync=off",
                // Whatever the server's zone is, the store's times are the same.
                "-c",
                "timezone=Asia/Tokyo",
            ])
            .args([
                "-c",
                "log_min_messages=fatal",
                "-p",
                &port.to_string(),
                "-D",
            ])
            .arg(&data)
            .spawn()
            .unwrap();
        wait_for(&mut server, port);
        ready
            .send(format!("postgres://souk@127.0.0.1:{port}/postgres"))
            .unwrap();
        server.wait().ok();
    });
    started
        .recv_timeout(Duration::from_secs(60))
        .expect("PostgreSQL starts within a minute")
}

/// It listens a moment before it accepts.
fn wait_for(server: &mut Child, port: u16) {
    let begun = Instant::now();
    let is_ready = || {
        let mut asked = Command::new(binary("pg_isready"));
        asked.args(["-q", "-h", "127.0.0.1", "-p", &port.to_string()]);
        asked.status().unwrap().success()
    };
    while !is_ready() {
        assert!(
            server.try_wait().unwrap().is_none(),
            "PostgreSQL ended at once"
        );
        assert!(
            begun.elapsed() < Duration::from_secs(120),
            "PostgreSQL does not accept"
        );
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// A company with a user and a key.
pub async fn company(db: &Db, handle: &str) -> Founded {
    let founding = Founding {
        company: NewCompany {
            handle,
            name: handle,
            description: None,
            is_platform: false,
        },
        user_name: "Somebody",
        email: None,
        role: Role::Admin,
        rate_limit: 1_000,
    };
    db.write(async |write| found(write, &founding, db::now()).await)
        .await
        .unwrap()
}

/// What a transaction was looked at for that is not to be committed.
pub enum Undone<T> {
    Done(T),
    Store(StoreError),
}

impl<T> From<StoreError> for Undone<T> {
    fn from(error: StoreError) -> Undone<T> {
        Undone::Store(error)
    }
}

/// Does `work` in a transaction that is rolled back.
pub async fn roll_back<T>(db: &Db, work: impl AsyncFnOnce(&mut Write) -> T) -> T {
    let undone = db.write(async |write| Err::<(), _>(Undone::Done(work(write).await)));
    match undone.await {
        Err(Undone::Done(done)) => done,
        Err(Undone::Store(error)) => panic!("{error}"),
        Ok(()) => unreachable!("it fails"),
    }
}

pub fn credits(amount: i64) -> Credits {
    Credits::new(amount).unwrap()
}

pub async fn grant(db: &Db, company: &CompanyId, amount: i64) {
    db.write(async |write| {
        ledger::grant(write, company, credits(amount), "test", None, db::now()).await
    })
    .await
    .unwrap();
}

/// A buyer with credits, a seller, and something that the seller sells.
pub struct Market {
    pub buyer: CompanyId,
    pub seller: CompanyId,
    pub product: Product,
    pub actor: Actor,
}

pub async fn market(db: &Db, buyer_credits: i64) -> Market {
    let (buyer, seller) = (CompanyId::generate(), CompanyId::generate());
    if buyer_credits > 0 {
        grant(db, &buyer, buyer_credits).await;
    }
    Market {
        buyer,
        seller,
        product: Product::Asset(AssetId::generate()),
        actor: KeyId::generate().into(),
    }
}

impl Market {
    pub fn run(&self, billing: Billing) -> Run {
        let now = db::now();
        Run {
            id: ExecutionId::generate_at(now),
            company: self.buyer.clone(),
            seller: self.seller.clone(),
            product: self.product.clone(),
            purchase: None,
            price: None,
            actor: self.actor.clone(),
            request: RequestId::generate_at(now),
            outcome: Outcome::Succeeded,
            billing,
            rows: 1,
            bytes: 10,
            started_at: now,
            duration_us: 1_000,
        }
    }

    pub async fn hold(&self, teller: &Teller, amount: i64, run: &Run) -> Result<Hold, HoldError> {
        let request = HoldRequest {
            execution: run.id.clone(),
            buyer: self.buyer.clone(),
            amount: credits(amount),
            expires_at: db::now().after(Duration::from_secs(60)),
        };
        teller.hold(request).await
    }

    /// Holds and posts.
    pub async fn charge(&self, teller: &Teller, amount: i64) -> Posted {
        let run = self.run(Billing::Charged);
        let hold = self.hold(teller, amount, &run).await.unwrap();
        teller
            .post(
                hold,
                Receipt {
                    run,
                    idempotency: None,
                },
            )
            .await
            .unwrap()
    }
}

/// Lets what a seller earned before `before` mature, in one transaction.
pub async fn mature(
    write: &mut Write,
    seller: &CompanyId,
    before: Timestamp,
    now: Timestamp,
) -> Result<Option<Transaction>, StoreError> {
    let seen = Seen::of(write, seller, before, now).await?;
    maturity::mature(write, seller, &seen, now).await
}

/// The books balance, and nothing is held.
pub async fn assert_settled(db: &Db, teller: &Teller) {
    teller.flush().await;
    let found = souk_store::reconciliation::reconcile(db, db::now())
        .await
        .unwrap();
    assert!(found.is_balanced(), "{found:?}");
    assert_eq!(
        teller.held_in_all().await.unwrap(),
        0,
        "credits are still held"
    );
    assert_eq!(found.open_holds, 0);
    assert_answers_counted(db).await;
}

/// What kept answers take is what their company's row says.
pub async fn assert_answers_counted(db: &Db) {
    let mut read = db.read().await.unwrap();
    let wrong: Vec<(String,)> = sqlx::query_as(
        "SELECT k.company_id
         FROM kept_answers k
         LEFT JOIN (SELECT company_id, COUNT(*) AS records, CAST(SUM(bytes) AS BIGINT) AS bytes FROM idempotency GROUP BY company_id) i
                ON i.company_id = k.company_id
         WHERE k.records <> COALESCE(i.records, 0) OR k.bytes <> COALESCE(i.bytes, 0)
         UNION ALL
         SELECT i.company_id FROM idempotency i WHERE i.company_id NOT IN (SELECT company_id FROM kept_answers)",
    )
    .fetch_all(&mut *read)
    .await
    .unwrap();
    assert!(wrong.is_empty(), "{wrong:?}");
}

pub fn later(now: Timestamp, seconds: u64) -> Timestamp {
    now.after(Duration::from_secs(seconds))
}

/// A calculation on a data connection of its own.
pub fn asset(name: &str, slug: &str) -> Written<AssetDetails> {
    let details = AssetDetails {
        asset_type: AssetType::Calculation,
        sport: None,
        source_kind: SourceKind::Sql,
        source: "SELECT 1".into(),
        parameters: "[]".into(),
        result_type: ResultType::Number,
        unit: None,
        visualization: None,
        prediction: None,
        privacy: None,
        freshness_column: None,
    };
    Written {
        category: Some("results".into()),
        allow_ai_training: false,
        ..product(name, slug, details)
    }
}

/// A feed on a data connection of its own.
pub fn endpoint(name: &str, slug: &str) -> Written<EndpointDetails> {
    let details = EndpointDetails {
        source_schema: None,
        source_table: Some("t".into()),
        sql_logic: None,
        fields: "[]".into(),
        order_by: "[]".into(),
        filters: "[]".into(),
        sorts: "[]".into(),
        default_limit: 100,
        max_limit: 1_000,
    };
    product(name, slug, details)
}

fn product<D>(name: &str, slug: &str, details: D) -> Written<D> {
    Written {
        connection_id: ConnectionId::generate(),
        name: name.into(),
        slug: slug.into(),
        description: String::new(),
        category: None,
        labels: "{}".into(),
        timeout_ms: 10_000,
        allow_ai_training: true,
        details,
    }
}

/// A key of a company, a user or an endpoint, of role 3.
pub fn new_key<'a>(
    company_id: &'a CompanyId,
    user_id: Option<&'a UserId>,
    endpoint_id: Option<&'a EndpointId>,
) -> NewKey<'a> {
    NewKey {
        company_id,
        user_id,
        endpoint_id,
        purchase_id: None,
        name: "a key",
        description: Some("for a test"),
        grant: Grant {
            role: Role::DataScientist,
            permissions: Permissions::READ_WRITE,
        },
        rate_limit: 77,
        created_by: None,
        expires_at: None,
    }
}
