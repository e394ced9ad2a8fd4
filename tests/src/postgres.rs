//! A real PostgreSQL for the tests: a cluster of our own in a temporary directory, run by an
//! unprivileged user, with SCRAM and TLS. It is always our own, because tests stop it, break it and
//! choose its certificate: `TEST_POSTGRES_URL` is for the tests of `host/store` and is not read here.

use std::fs;
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant, UNIX_EPOCH};

use tempfile::TempDir;
use tokio::sync::OnceCell;
use tokio_postgres::NoTls;

use crate::process::{free_port, signal, spawn_tied};
use crate::sweep::{place, sweep};
use crate::tls::{Leaf, TestCa};
use crate::warm;

/// Generous: a loaded CI machine may need many seconds for initdb.
const START_TIMEOUT: Duration = Duration::from_secs(120);
/// A statement is on its way within milliseconds; a loaded machine gets a thousand times as long.
const REACHED_WITHIN: Duration = Duration::from_secs(60);

pub struct PgCluster {
    pub port: u16,
    pub user: String,
    pub password: String,
    /// The authority that signed the server's certificate.
    pub ca_pem: String,
    server: Child,
    _directory: TempDir,
}

/// The user and group that run a database server: PostgreSQL refuses root, and MariaDB should.
pub(crate) fn unprivileged() -> Option<(u32, u32)> {
    // SAFETY: geteuid has no preconditions.
    #[allow(unsafe_code)]
    if unsafe { libc::geteuid() } != 0 {
        return None;
    }
    let passwd = fs::read_to_string("/etc/passwd").expect("/etc/passwd");
    let find = |name: &str| {
        let line = passwd
            .lines()
            .find(|line| line.split(':').next() == Some(name))?;
        let mut fields = line.split(':').skip(2);
        Some((fields.next()?.parse().ok()?, fields.next()?.parse().ok()?))
    };
    Some(
        find("postgres")
            .or_else(|| find("nobody"))
            .expect("an unprivileged user to run a database server as"),
    )
}

/// A program of PostgreSQL: that of the release in `SOUK_POSTGRES_HOME`, Debian's newest, or the one on the `PATH`.
pub fn program(name: &str) -> PathBuf {
    if let Some(home) = std::env::var_os("SOUK_POSTGRES_HOME") {
        return Path::new(&home).join("bin").join(name);
    }
    let mut homes: Vec<PathBuf> = fs::read_dir("/usr/lib/postgresql")
        .map(|entries| entries.flatten().map(|entry| entry.path()).collect())
        .unwrap_or_default();
    // As numbers: 15 is newer than 9.6.
    homes.sort_by_key(|home| {
        let version = home.file_name().unwrap_or_default().to_string_lossy();
        std::cmp::Reverse(version.parse::<u32>().unwrap_or_default())
    });
    for home in &mut homes {
        home.push("bin");
    }
    homes.extend(std::env::split_paths(
        &std::env::var_os("PATH").unwrap_or_default(),
    ));
    homes.into_iter().map(|home| home.join(name)).find(|path| path.is_file()).unwrap_or_else(|| {
        panic!("{name} was not found: install PostgreSQL 15 or later (Debian: apt-get install postgresql)")
    })
}

fn command(name: &str, user: Option<(u32, u32)>) -> Command {
    let mut command = Command::new(program(name));
    if let Some((uid, gid)) = user {
        command.uid(uid).gid(gid);
    }
    command.stdin(Stdio::null()).env("LC_ALL", "C");
    command
}

pub(crate) fn hand_over(path: &Path, user: Option<(u32, u32)>, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("chmod");
    if let Some((uid, gid)) = user {
        chown(path, Some(uid), Some(gid)).expect("chown");
    }
}

/// Where a cluster lies that was made by these programs and never started. Making one takes half a second of processor time, a copy a tenth of that.
fn template() -> PathBuf {
    let initdb = program("initdb");
    let made = fs::metadata(&initdb).and_then(|data| data.modified());
    let made = made.ok().and_then(|at| at.duration_since(UNIX_EPOCH).ok());
    let name = initdb.to_string_lossy().replace('/', "_");
    let made = made.unwrap_or_default().as_secs();
    warm::directory().join(format!("postgres{name}.{made}"))
}

/// With owners, as the server wants them; of today, or another process would sweep it away before the server is there.
fn copy(from: &Path, to: &Path) -> bool {
    let done = || {
        Command::new("cp")
            .args(["-a", "--no-preserve=timestamps"])
            .arg(from)
            .arg(to)
            .status()
            .expect("cp runs")
    };
    from.exists() && done().success()
}

/// For the clusters to come, of other processes too: whose copy is there first stays.
fn keep(data: &Path) {
    let template = template();
    let scratch = tempfile::tempdir_in(warm::directory()).expect("a directory");
    let whole = scratch.path().join("data");
    if copy(data, &whole) {
        let _ = fs::rename(whole, template);
    }
}

fn initialize(data: &Path, password_file: &Path, user: Option<(u32, u32)>) {
    let output = command("initdb", user)
        .args(["-U", "souk", "-A", "scram-sha-256", "-E", "UTF8"])
        .args(["--no-sync", "--no-instructions", "--pwfile"])
        .arg(password_file)
        .arg("-D")
        .arg(data)
        .output()
        .expect("initdb runs");
    assert!(
        output.status.success(),
        "initdb failed: {}",
        String::from_utf8_lossy(&output.stderr)
    );
}

impl PgCluster {
    /// The cluster of this test process.
    pub async fn shared() -> &'static PgCluster {
        static SHARED: OnceCell<PgCluster> = OnceCell::const_new();
        SHARED
            .get_or_init(|| async { PgCluster::start(&[]).await })
            .await
    }

    /// Makes and starts a cluster of its own, with a certificate for the names that it is reached by.
    /// `settings` are `name=value` of postgresql.conf; the last of a name counts.
    pub async fn start(settings: &[&str]) -> PgCluster {
        PgCluster::start_named(&["localhost", "127.0.0.1"], settings).await
    }

    /// As [`PgCluster::start`], with a certificate for these names (DNS names or IP addresses).
    pub async fn start_named(names: &[&str], settings: &[&str]) -> PgCluster {
        let ca = TestCa::new("souk test authority");
        PgCluster::start_with(&ca.server(names), ca.pem(), settings).await
    }

    /// As [`PgCluster::start`], with this certificate of that authority.
    pub async fn start_with(leaf: &Leaf, ca_pem: String, settings: &[&str]) -> PgCluster {
        let user = unprivileged();
        sweep("souk-pg-");
        let directory = tempfile::Builder::new()
            .prefix("souk-pg-")
            .tempdir_in(place())
            .expect("a directory");
        let root = directory.path();
        hand_over(root, user, 0o700);
        let password = "correct horse battery staple".to_owned();
        let password_file = root.join("password");
        fs::write(&password_file, &password).expect("the password file");
        hand_over(&password_file, user, 0o600);

        let data = root.join("data");
        if !copy(&template(), &data) {
            initialize(&data, &password_file, user);
            keep(&data);
        }

        for (name, text) in [
            ("server.crt", &leaf.certificate_pem),
            ("server.key", &leaf.key_pem),
        ] {
            let path = data.join(name);
            fs::write(&path, text).expect("the certificate");
            hand_over(&path, user, 0o600);
        }

        let port = free_port();
        let log = fs::File::create(root.join("log")).expect("the log");
        let mut server = command("postgres", user);
        server.arg("-D").arg(&data).arg("-p").arg(port.to_string());
        let socket_dir = format!("unix_socket_directories={}", root.display());
        let base = [
            socket_dir.as_str(),
            "listen_addresses=127.0.0.1",
            "ssl=on",
            "fsync=off",
            "max_connections=300",
            // A zone that nobody asks for: sessions have to say that they want UTC.
            "timezone=Asia/Tokyo",
        ];
        for setting in base.iter().chain(settings) {
            server.arg("-c").arg(setting);
        }
        server.stdout(Stdio::null()).stderr(log);
        // SIGINT is PostgreSQL's fast shutdown.
        let server = spawn_tied(server, libc::SIGINT).expect("postgres starts");
        let cluster = PgCluster {
            port,
            user: "souk".to_owned(),
            password,
            ca_pem,
            server,
            _directory: directory,
        };
        cluster.wait_until_ready().await;
        cluster
    }

    async fn wait_until_ready(&self) {
        let deadline = Instant::now() + START_TIMEOUT;
        loop {
            match self.config("postgres").connect(NoTls).await {
                Ok(_) => return,
                Err(error) if Instant::now() > deadline => panic!(
                    "PostgreSQL did not start: {error}\n{}",
                    fs::read_to_string(self._directory.path().join("log")).unwrap_or_default()
                ),
                Err(_) => tokio::time::sleep(Duration::from_millis(50)).await,
            }
        }
    }

    pub fn config(&self, database: &str) -> tokio_postgres::Config {
        let mut config = tokio_postgres::Config::new();
        config
            .host("127.0.0.1")
            .port(self.port)
            .user(&self.user)
            .password(&self.password)
            .dbname(database);
        config
    }

    /// A client of `database`, its connection driven by the current runtime.
    pub async fn client(&self, database: &str) -> tokio_postgres::Client {
        let (client, connection) = self
            .config(database)
            .connect(NoTls)
            .await
            .expect("a connection");
        tokio::spawn(connection);
        client
    }

    /// A new, empty database with this schema; returns its name.
    pub async fn database(&self, schema: &str) -> String {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let name = format!(
            "test_{}_{}",
            std::process::id(),
            NEXT.fetch_add(1, Ordering::Relaxed)
        );
        self.client("postgres")
            .await
            .batch_execute(&format!("CREATE DATABASE {name}"))
            .await
            .expect("CREATE DATABASE");
        self.client(&name)
            .await
            .batch_execute(schema)
            .await
            .expect("the schema");
        name
    }

    /// The URL of `database` for a host's store.
    pub fn url(&self, database: &str) -> String {
        self.url_by(self.port, database)
    }

    /// The same where it is reached by another port, which leads to its own.
    pub fn url_by(&self, port: u16, database: &str) -> String {
        let password = self.password.replace(' ', "%20");
        format!(
            "postgres://{}:{password}@127.0.0.1:{port}/{database}",
            self.user
        )
    }
}

/// Beside the tables of a view: who reads that waits while a [`Gate`] of its database is shut, and reads it like any other while there is none.
pub const GATED: &str = "(SELECT pg_advisory_xact_lock_shared(1)) AS gate";

/// Holds up statements on what is [`GATED`] until a test has done what it does meanwhile, however long that takes.
pub struct Gate(tokio_postgres::Client);

impl Gate {
    pub async fn shut(cluster: &PgCluster, database: &str) -> Gate {
        let client = cluster.client(database).await;
        let lock = client.batch_execute("SELECT pg_advisory_lock(1)").await;
        lock.expect("a lock");
        Gate(client)
    }

    /// Waits until a statement stands before it.
    pub async fn is_reached(&self) {
        const WAITING: &str =
            "SELECT COUNT(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted
            AND database = (SELECT oid FROM pg_database WHERE datname = current_database())";
        let since = Instant::now();
        loop {
            let waiting = self.0.query_one(WAITING, &[]).await.expect("a count");
            if waiting.get::<_, i64>(0) > 0 {
                return;
            }
            assert!(since.elapsed() < REACHED_WITHIN, "nothing is asked");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    pub async fn open(self) {
        let unlock = self.0.batch_execute("SELECT pg_advisory_unlock(1)").await;
        unlock.expect("it opens");
    }
}

impl Drop for PgCluster {
    fn drop(&mut self) {
        signal(&self.server, libc::SIGINT);
        let _ = self.server.wait();
    }
}
