//! A real PgBouncer before a PostgreSQL, in transaction mode: each transaction of a client may run at another backend.

use std::fs;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use tempfile::TempDir;
use tokio_postgres::NoTls;

use crate::PgCluster;
use crate::postgres::{hand_over, unprivileged};
use crate::process::{free_port, server_program, signal, spawn_tied};
use crate::sweep::place;
use crate::tls::TestCa;

const START_TIMEOUT: Duration = Duration::from_secs(60);

pub struct PgBouncer {
    pub port: u16,
    /// The authority that signed its certificate.
    pub ca_pem: String,
    server: Child,
    _directory: TempDir,
}

impl PgBouncer {
    /// Before all databases of `cluster`, for these users with their passwords besides the cluster's own. `settings` are lines of its
    /// configuration; the last of a name counts.
    pub async fn start(
        cluster: &PgCluster,
        users: &[(&str, &str)],
        settings: &[&str],
    ) -> PgBouncer {
        PgBouncer::start_by(cluster.port, cluster, users, settings).await
    }

    /// The same where the cluster is reached by another port, which leads to its own.
    pub async fn start_by(
        behind: u16,
        cluster: &PgCluster,
        users: &[(&str, &str)],
        settings: &[&str],
    ) -> PgBouncer {
        let user = unprivileged();
        let directory = tempfile::Builder::new()
            .prefix("souk-pgbouncer-")
            .tempdir_in(place())
            .expect("a directory");
        let root = directory.path();
        hand_over(root, user, 0o700);
        let ca = TestCa::new("souk test authority");
        let leaf = ca.server(&["localhost", "127.0.0.1"]);
        let own = (cluster.user.as_str(), cluster.password.as_str());
        let users = users
            .iter()
            .chain([&own])
            .map(|(name, password)| format!("\"{name}\" \"{password}\"\n"));
        let port = free_port();
        let at = root.display();
        let configuration = format!(
            "[databases]\n* = host=127.0.0.1 port={behind}\n[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = {port}\nunix_socket_dir =\n\
             auth_type = scram-sha-256\nauth_file = {at}/users\npool_mode = transaction\ndefault_pool_size = 4\nmax_client_conn = 300\nserver_login_retry = 1\n\
             client_tls_sslmode = allow\nclient_tls_cert_file = {at}/server.crt\nclient_tls_key_file = {at}/server.key\n{}\n",
            settings.join("\n")
        );
        for (name, text) in [
            ("users", &users.collect::<String>()),
            ("pgbouncer.ini", &configuration),
            ("server.crt", &leaf.certificate_pem),
            ("server.key", &leaf.key_pem),
        ] {
            let path = root.join(name);
            fs::write(&path, text).expect("a file of PgBouncer's");
            hand_over(&path, user, 0o600);
        }
        let log = fs::File::create(root.join("log")).expect("the log");
        let mut server = Command::new(server_program(
            "pgbouncer",
            "PgBouncer 1.18 or later (Debian: apt-get install pgbouncer)",
        ));
        if let Some((uid, gid)) = user {
            server.uid(uid).gid(gid);
        }
        server
            .arg(root.join("pgbouncer.ini"))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log);
        // Nothing of it is looked at afterwards.
        let server = spawn_tied(server, libc::SIGKILL).expect("pgbouncer starts");
        let bouncer = PgBouncer {
            port,
            ca_pem: ca.pem(),
            server,
            _directory: directory,
        };
        bouncer.wait_until_ready(cluster).await;
        bouncer
    }

    /// Its last words, if it is gone. 1.18 ends by itself after some cancels (`bad client state`, `server in bad state`; mended in 1.19.1).
    pub fn crash(&mut self) -> Option<String> {
        let status = self.server.try_wait().ok().flatten()?;
        let log = fs::read_to_string(self._directory.path().join("log")).unwrap_or_default();
        let last = log.lines().rfind(|line| line.contains("FATAL"));
        Some(format!("{status}: {}", last.unwrap_or("no word")))
    }

    async fn wait_until_ready(&self, cluster: &PgCluster) {
        let since = Instant::now();
        let mut config = tokio_postgres::Config::new();
        config
            .host("127.0.0.1")
            .port(self.port)
            .user(&cluster.user)
            .password(&cluster.password)
            .dbname("postgres");
        while let Err(error) = config.connect(NoTls).await {
            let log = self._directory.path().join("log");
            assert!(
                since.elapsed() < START_TIMEOUT,
                "PgBouncer did not start: {error}\n{}",
                fs::read_to_string(log).unwrap_or_default()
            );
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }
}

impl Drop for PgBouncer {
    fn drop(&mut self) {
        signal(&self.server, libc::SIGKILL);
        let _ = self.server.wait();
    }
}
