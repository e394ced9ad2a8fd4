//! A real server of MySQL's protocol for the tests, a MariaDB or the MySQL of `SOUK_MYSQL_HOME` in its place: a server of our own in a temporary
//! directory, run by an unprivileged user, with TLS, and of MariaDB with ed25519 among its ways to log in. Its default character set is not UTF-8, and
//! its zone not UTC: connectors have to ask for both.

use std::fs;
use std::io::Write;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
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

pub struct MySql {
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

/// Where a MySQL lies with all that it needs, as `tests/engines/mysql/packages.py take` unpacks it.
fn mysql_home() -> Option<PathBuf> {
    std::env::var_os("SOUK_MYSQL_HOME").map(PathBuf::from)
}

/// Whether the servers of this run are MySQL's.
fn is_mysql() -> bool {
    mysql_home().is_some()
}

/// The server's program. A MySQL runs with the loader and the libraries that it came with, which are those of another system's release.
fn server_command(user: Option<(u32, u32)>) -> Command {
    let Some(home) = mysql_home() else {
        return command("mariadbd", user);
    };
    let libraries = home.join("usr/lib/x86_64-linux-gnu");
    let mut command = Command::new(libraries.join("ld-linux-x86-64.so.2"));
    if let Some((uid, gid)) = user {
        command.uid(uid).gid(gid);
    }
    command
        .arg("--library-path")
        .arg(&libraries)
        .arg(home.join("usr/sbin/mysqld"))
        .arg("--no-defaults")
        .arg(directory_option(
            "lc-messages-dir",
            &home.join("usr/share/mysql"),
        ))
        .arg(directory_option(
            "character-sets-dir",
            &home.join("usr/share/mysql/charsets"),
        ))
        .arg(directory_option(
            "plugin-dir",
            &home.join("usr/lib/mysql/plugin"),
        ))
        .arg("--secure-file-priv=")
        .stdin(Stdio::null())
        .env("LC_ALL", "C");
    command
}

/// Options that the other of the two does not know.
fn own_options() -> &'static [&'static str] {
    match is_mysql() {
        true => &[
            "--mysqlx=OFF",
            // 8.4 has it and does not let it in unless it is told to; 8.0 and 9 know no such option.
            "--loose-mysql-native-password=ON",
            "--skip-log-bin",
            "--cte-max-recursion-depth=1000000",
        ],
        false => &["--plugin-load-add=auth_ed25519", "--sync-frm=OFF"],
    }
}

fn directory_option(name: &str, path: &Path) -> String {
    format!("--{name}={}", path.display())
}

/// What makes the files of a new server.
fn making(user: Option<(u32, u32)>) -> Command {
    if is_mysql() {
        let mut command = server_command(user);
        command.arg("--initialize-insecure");
        return command;
    }
    let mut command = command("mariadb-install-db", user);
    command
        .arg("--auth-root-authentication-method=normal")
        .args(["--skip-test-db", "--skip-name-resolve"]);
    command
}

impl MySql {
    /// The server of this test process.
    pub fn shared() -> &'static MySql {
        static SHARED: OnceLock<MySql> = OnceLock::new();
        SHARED.get_or_init(|| MySql::start(&[]))
    }

    /// Makes and starts a server of its own; `options` are of its command line, and the last of a name counts.
    pub fn start(options: &[&str]) -> MySql {
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
        let output = making(user)
            .arg(&data_option)
            // The server that fills the tables looks for its temporary ones there, and removes others' where it starts.
            .env("TMPDIR", root)
            .current_dir(root)
            .output()
            .expect("its files are made");
        assert!(
            output.status.success(),
            "its files were not made: {}{}",
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
        let mut server = server_command(user);
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
            .args(own_options())
            .args([
                "--max-connections=300",
                "--innodb-buffer-pool-size=64M",
                "--innodb-flush-log-at-trx-commit=0",
                "--innodb-use-native-aio=OFF",
            ])
            .args(["--max-allowed-packet=64M", "--character-set-server=latin1"])
            .arg("--default-time-zone=+05:30")
            .args(options)
            .current_dir(root)
            .stdout(Stdio::null())
            .stderr(log);
        // Nothing of its data is looked at afterwards.
        let server = spawn_tied(server, libc::SIGKILL).expect("the server starts");
        let server = MySql {
            port,
            user: "souk".to_owned(),
            password: "correct horse battery staple".to_owned(),
            ca_pem: ca.pem(),
            server,
            directory,
        };
        server.wait_until_ready();
        if is_mysql() {
            // MD5 and SHA1, which MySQL 9 has put there; earlier ones have no such component.
            let _ = server.try_admin("INSTALL COMPONENT 'file://component_classic_hashing'");
        }
        server.user(&server.user, &server.password, "ALL ON *.*");
        server
    }

    /// Makes a user of this name anew, with these rights (`SELECT ON shop.*`), or with none.
    pub fn user(&self, name: &str, password: &str, rights: &str) {
        let mut sql = format!(
            "DROP USER IF EXISTS '{name}'@'%'; CREATE USER '{name}'@'%' IDENTIFIED BY '{password}';"
        );
        if !rights.is_empty() {
            sql += &format!(" GRANT {rights} TO '{name}'@'%'");
        }
        self.admin(&sql);
        if is_mysql() {
            self.remember(name, password);
        }
    }

    /// Logs in once by MySQL's own way, within TLS: from then on the server takes a proof of the password, which needs no component.
    fn remember(&self, name: &str, password: &str) {
        let output = command("mariadb", None)
            .args([
                "--host=127.0.0.1",
                &format!("--port={}", self.port),
                "--ssl",
            ])
            .args([format!("--user={name}"), format!("--password={password}")])
            .args(["--execute", "SELECT 1"])
            .output()
            .expect("mariadb runs");
        let told = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{name} does not log in: {told}");
    }

    /// What says whether transactions only read.
    pub fn read_only_variable(&self) -> &'static str {
        match is_mysql() {
            true => "transaction_read_only",
            false => "tx_read_only",
        }
    }

    /// Whether it is a MySQL, and no MariaDB.
    pub fn is_mysql(&self) -> bool {
        is_mysql()
    }

    fn wait_until_ready(&self) {
        let since = Instant::now();
        while let Err(error) = self.try_admin("SELECT 1") {
            if since.elapsed() > START_TIMEOUT {
                panic!("the server did not start: {error}\n{}", self.log());
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
        let read_only = self.read_only_variable();
        // As MySQL's own client, which says `utf8mb4` without a collation.
        let names = if is_mysql() { "NAMES utf8mb4, " } else { "" };
        let settings =
            format!("--init-command=SET {names}SESSION time_zone = '+00:00', {read_only} = 1");
        let database = format!("--database={database}");
        let own = [settings.as_str(), database.as_str()];
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
        self.admin(&format!("CREATE DATABASE {name} CHARACTER SET utf8mb4"));
        self.count_in(&name, &[schema]);
        self.admin(&format!("USE {name};\n{schema}"));
        name
    }

    /// Lets these texts count in a database of MySQL as MariaDB does everywhere: it has a table `seq_1_to_9` of the numbers from 1 to 9, and of
    /// all others.
    pub fn count_in(&self, database: &str, texts: &[&str]) {
        if !is_mysql() {
            return;
        }
        for last in texts
            .iter()
            .flat_map(|text| text.split("seq_1_to_").skip(1))
        {
            let last: String = last.chars().take_while(char::is_ascii_digit).collect();
            self.admin(&format!(
                "CREATE OR REPLACE VIEW {database}.seq_1_to_{last} AS WITH RECURSIVE numbers (seq) AS \
                 (SELECT 1 UNION ALL SELECT seq + 1 FROM numbers WHERE seq < {last}) SELECT seq FROM numbers"
            ));
        }
    }
}

impl Drop for MySql {
    fn drop(&mut self) {
        signal(&self.server, libc::SIGKILL);
        let _ = self.server.wait();
    }
}
