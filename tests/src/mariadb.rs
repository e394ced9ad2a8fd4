//! A real MariaDB for the tests: a server of our own in a temporary directory, run by an unprivileged user, with TLS and with
//! ed25519 among its ways to log in. Its default character set is not UTF-8, and its zone not UTC: connectors have to ask for both.

use std::fs;
use std::io::Write;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use tempfile::TempDir;

use crate::postgres::{hand_over, unprivileged};
use crate::process::{free_port, server_program, signal, spawn_tied};
use crate::sweep::{place, sweep};
use crate::tls::TestCa;

/// Generous: a loaded CI machine may need many seconds to make the system's tables.
const START_TIMEOUT: Duration = Duration::from_secs(120);

pub struct MariaDb {
    pub port: u16,
    pub user: String,
    pub password: String,
    /// The authority that signed the server's certificate.
    pub ca_pem: String,
    server: Child,
    directory: TempDir,
}

fn command(name: &str, user: Option<(u32, u32)>) -> Command {
    let mut command = Command::new(server_program(
        name,
        "MariaDB 10.5 or later (Debian: apt-get install mariadb-server)",
    ));
    if let Some((uid, gid)) = user {
        command.uid(uid).gid(gid);
    }
    // Before all others: no file of the machine's has a say.
    command.arg("--no-defaults").stdin(Stdio::null());
    command.env("LC_ALL", "C");
    command
}

impl MariaDb {
    /// The server of this test process.
    pub fn shared() -> &'static MariaDb {
        static SHARED: OnceLock<MariaDb> = OnceLock::new();
        SHARED.get_or_init(|| MariaDb::start(&[]))
    }

    /// Makes and starts a server of its own; `options` are of its command line, and the last of a name counts.
    pub fn start(options: &[&str]) -> MariaDb {
        let user = unprivileged();
        sweep("souk-mariadb-");
        let directory = tempfile::Builder::new()
            .prefix("souk-mariadb-")
            .tempdir_in(place())
            .expect("a directory");
        let root = directory.path();
        hand_over(root, user, 0o700);
        let data = root.join("data");
        let data_option = format!("--datadir={}", data.display());
        let output = command("mariadb-install-db", user)
            .args([&data_option, "--auth-root-authentication-method=normal"])
            .args(["--skip-test-db", "--skip-name-resolve"])
            // The server that fills the tables looks for its temporary ones there, and removes others' where it starts.
            .env("TMPDIR", root)
            .current_dir(root)
            .output()
            .expect("mariadb-install-db runs");
        assert!(
            output.status.success(),
            "mariadb-install-db failed: {}{}",
            String::from_utf8_lossy(&output.stdout),
            String::from_utf8_lossy(&output.stderr)
        );
        let ca = TestCa::new("souk test authority");
        let leaf = ca.server(&["localhost", "127.0.0.1"]);
        for (name, text) in [
            ("server.crt", &leaf.certificate_pem),
            ("server.key", &leaf.key_pem),
        ] {
            let path = root.join(name);
            fs::write(&path, text).expect("the certificate");
            hand_over(&path, user, 0o600);
        }
        let port = free_port();
        let log = fs::File::create(root.join("log")).expect("the log");
        let mut server = command("mariadbd", user);
        server
            .arg(&data_option)
            .arg(format!("--socket={}", root.join("socket").display()))
            .arg(format!("--pid-file={}", data.join("server.pid").display()))
            // A server that starts removes the temporary tables that it finds there: others' too.
            .arg(format!("--tmpdir={}", root.display()))
            .arg(format!("--port={port}"))
            .arg(format!("--ssl-cert={}", root.join("server.crt").display()))
            .arg(format!("--ssl-key={}", root.join("server.key").display()))
            .args(["--bind-address=127.0.0.1", "--skip-name-resolve"])
            .args(["--plugin-load-add=auth_ed25519", "--max-connections=300"])
            .args([
                "--innodb-buffer-pool-size=64M",
                "--innodb-flush-log-at-trx-commit=0",
                "--innodb-use-native-aio=OFF",
                "--sync-frm=OFF",
            ])
            .args(["--max-allowed-packet=64M", "--character-set-server=latin1"])
            .arg("--default-time-zone=+05:30")
            .args(options)
            .current_dir(root)
            .stdout(Stdio::null())
            .stderr(log);
        // Nothing of its data is looked at afterwards.
        let server = spawn_tied(server, libc::SIGKILL).expect("mariadbd starts");
        let server = MariaDb {
            port,
            user: "souk".to_owned(),
            password: "correct horse battery staple".to_owned(),
            ca_pem: ca.pem(),
            server,
            directory,
        };
        server.wait_until_ready();
        server.admin(&format!(
            "CREATE USER '{0}'@'%' IDENTIFIED BY '{1}'; GRANT ALL ON *.* TO '{0}'@'%'",
            server.user, server.password
        ));
        server
    }

    fn wait_until_ready(&self) {
        let since = Instant::now();
        while let Err(error) = self.try_admin("SELECT 1") {
            if since.elapsed() > START_TIMEOUT {
                panic!("MariaDB did not start: {error}\n{}", self.log());
            }
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// What the server has said.
    fn log(&self) -> String {
        fs::read_to_string(self.directory.path().join("log")).unwrap_or_default()
    }

    /// Runs SQL as root; returns what it answered, columns between tabs. A body with semicolons stands between lines `DELIMITER //` and
    /// `// DELIMITER ;`.
    pub fn admin(&self, sql: &str) -> String {
        self.try_admin(sql)
            .unwrap_or_else(|error| panic!("{sql}: {error}\n{}", self.log()))
    }

    fn try_admin(&self, sql: &str) -> Result<String, String> {
        let output = self.run(&["--batch", "--skip-column-names"], sql)?;
        Ok(String::from_utf8_lossy(&output).trim_end().to_owned())
    }

    /// What `mariadb` writes of a statement with these options of its own. It asks as root, with the clock in UTC, and only reads.
    pub fn client(&self, options: &[&str], database: &str, sql: &str) -> Result<Vec<u8>, String> {
        let settings = "--init-command=SET SESSION time_zone = '+00:00', tx_read_only = 1";
        let database = format!("--database={database}");
        let own = [settings, database.as_str()];
        self.run(&[&own[..], options].concat(), sql)
    }

    fn run(&self, options: &[&str], sql: &str) -> Result<Vec<u8>, String> {
        let socket = self.directory.path().join("socket");
        let mut client = command("mariadb", None);
        client
            .arg(format!("--socket={}", socket.display()))
            .args(["--user=root", "--default-character-set=utf8mb4"])
            .args(options)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let told = |error: std::io::Error| error.to_string();
        let mut client = client.spawn().map_err(told)?;
        if let Some(mut stdin) = client.stdin.take() {
            // A client that has failed does not read: its own words say more.
            let _ = stdin.write_all(sql.as_bytes());
        }
        let output = client.wait_with_output().map_err(told)?;
        match output.status.success() {
            true => Ok(output.stdout),
            false => Err(String::from_utf8_lossy(&output.stderr).into_owned()),
        }
    }

    /// For Rust's clients, without TLS.
    pub fn url(&self, database: &str) -> String {
        let password = self.password.replace(' ', "%20");
        format!(
            "mysql://{}:{password}@127.0.0.1:{}/{database}?prefer_socket=false",
            self.user, self.port
        )
    }

    /// A new database, of UTF-8, with this schema; returns its name.
    pub fn database(&self, schema: &str) -> String {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let name = format!(
            "test_{}_{}",
            std::process::id(),
            NEXT.fetch_add(1, Ordering::Relaxed)
        );
        self.admin(&format!(
            "CREATE DATABASE {name} CHARACTER SET utf8mb4; USE {name};\n{schema}"
        ));
        name
    }
}

impl Drop for MariaDb {
    fn drop(&mut self) {
        signal(&self.server, libc::SIGKILL);
        let _ = self.server.wait();
    }
}
