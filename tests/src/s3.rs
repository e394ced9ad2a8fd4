//! A server that speaks S3, of a test's own: rclone's, over a directory, so that a test sees and changes what it has.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::host::Builder;
use crate::process::{free_port, spawn_tied};
use crate::tls::TestCa;

const READY_WITHIN: Duration = Duration::from_secs(60);
const BUCKET: &str = "souk";
const PREFIX: &str = "eu/files";
const ID: &str = "souk";
/// With what has to be quoted in a URL.
const SECRET: &str = "hush/+hush=";

pub struct S3 {
    process: Option<Child>,
    port: u16,
    directory: tempfile::TempDir,
    is_protected: bool,
}

impl S3 {
    pub async fn start() -> S3 {
        S3::start_at(tempfile::tempdir().expect("a directory"), false).await
    }

    /// One that speaks TLS and nothing else, as `localhost`, with a certificate of this authority.
    pub async fn start_protected(authority: &TestCa) -> S3 {
        let directory = tempfile::tempdir().expect("a directory");
        let leaf = authority.server(&["localhost"]);
        for (name, text) in [
            ("cert.pem", leaf.certificate_pem),
            ("key.pem", leaf.key_pem),
        ] {
            fs::write(directory.path().join(name), text).expect("a file");
        }
        S3::start_at(directory, true).await
    }

    async fn start_at(directory: tempfile::TempDir, is_protected: bool) -> S3 {
        fs::create_dir_all(directory.path().join("data").join(BUCKET)).expect("a bucket");
        let mut s3 = S3 {
            process: None,
            port: free_port(),
            directory,
            is_protected,
        };
        s3.start_again().await;
        s3
    }

    /// On the same port, with the same objects.
    pub async fn start_again(&mut self) {
        let log = File::options()
            .create(true)
            .append(true)
            .open(self.log())
            .expect("a log");
        let mut command = Command::new(rclone());
        command
            .current_dir(self.directory.path())
            .env("RCLONE_CONFIG", self.directory.path().join("rclone.conf"))
            .args(["serve", "s3", "data", "-vv"])
            .args(["--addr", &format!("127.0.0.1:{}", self.port)])
            .args(["--auth-key", &format!("{ID},{SECRET}")])
            .stdout(Stdio::null())
            .stderr(log);
        if self.is_protected {
            command.args(["--cert", "cert.pem", "--key", "key.pem"]);
        }
        self.process = Some(spawn_tied(command, libc::SIGKILL).expect("rclone starts"));
        let since = Instant::now();
        while std::net::TcpStream::connect(("127.0.0.1", self.port)).is_err() {
            assert!(since.elapsed() < READY_WITHIN, "rclone does not listen");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// It refuses connections from here on.
    pub fn stop(&mut self) {
        if let Some(mut process) = self.process.take() {
            let _ = process.kill();
            let _ = process.wait();
        }
    }

    /// As `--files-url` has it.
    pub fn url(&self) -> String {
        let (scheme, host) = match self.is_protected {
            true => ("https", "localhost"),
            false => ("http", "127.0.0.1"),
        };
        format!(
            "s3://{BUCKET}/{PREFIX}?endpoint={scheme}://{host}:{}",
            self.port
        )
    }

    /// The environment of whoever uses it.
    pub fn environment(&self) -> [(&'static str, String); 3] {
        [
            ("SOUK_FILES_URL", self.url()),
            ("SOUK_FILES_ACCESS_KEY_ID", ID.to_owned()),
            ("SOUK_FILES_SECRET_ACCESS_KEY", SECRET.to_owned()),
        ]
    }

    /// A host that keeps its files here.
    pub fn used_by(&self, host: Builder) -> Builder {
        let environment = self.environment();
        environment
            .iter()
            .fold(host, |host, (name, value)| host.env(name, value))
    }

    /// The objects, as files that a test may read, and change while it is stopped.
    pub fn objects(&self) -> Vec<PathBuf> {
        let mut found = Vec::new();
        let prefix = self.directory.path().join("data").join(BUCKET).join(PREFIX);
        for company in entries(&prefix) {
            found.extend(entries(&company));
        }
        found
    }

    /// How often it was asked for (a piece of) an object.
    pub fn reads(&self) -> usize {
        let log = fs::read_to_string(self.log()).expect("its log");
        log.matches("serve s3: GET OBJECT").count()
    }

    fn log(&self) -> PathBuf {
        self.directory.path().join("log")
    }
}

impl Drop for S3 {
    fn drop(&mut self) {
        self.stop();
    }
}

fn entries(directory: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    entries.map(|entry| entry.path()).collect()
}

/// As `tests/run` has installed it.
fn rclone() -> PathBuf {
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let path = workspace.join("target/rclone/bin/rclone");
    assert!(
        path.is_file(),
        "{} is missing: run tests/run, which installs it",
        path.display()
    );
    path
}
