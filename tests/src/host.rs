//! A host under test: the real binary, started as an operator would start it.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;
use tempfile::TempDir;

use crate::client::{self, Client};
use crate::process::{signal, spawn_tied};
use crate::warm;

/// The first start of a debug host compiles the connectors' machine code, at the lowest priority: beside other tests that took more than two minutes.
const READY_TIMEOUT: Duration = Duration::from_secs(600);
const STOP_TIMEOUT: Duration = Duration::from_secs(60);

pub struct TestHost {
    pub base_url: String,
    /// The ready file, whole.
    pub ready: Value,
    pub data_dir: PathBuf,
    binary: PathBuf,
    /// It may be of another build than these tests.
    is_given: bool,
    command: String,
    arguments: Vec<String>,
    environment: Vec<(String, String)>,
    process: Option<Child>,
    directory: Option<TempDir>,
    compiles_uploads: bool,
}

pub struct Builder {
    /// It may be of another build than these tests. `None`: the one that belongs to them.
    binary: Option<PathBuf>,
    command: String,
    arguments: Vec<String>,
    environment: Vec<(String, String)>,
    data_dir: Option<PathBuf>,
    compiles_uploads: bool,
}

/// The binary that belongs to this build of the tests.
pub fn binary() -> PathBuf {
    if let Some(path) = std::env::var_os("SOUK_BINARY") {
        return path.into();
    }
    let mut path = std::env::current_exe().expect("a path of this test");
    path.pop();
    if path.ends_with("deps") {
        path.pop();
    }
    let binary = path.join("souk");
    assert!(
        binary.is_file(),
        "{} is missing: run tests/run, or `cargo build` first",
        binary.display()
    );
    binary
}

impl TestHost {
    /// `souk serve` on SQLite in a directory of its own, allowed to dial the loopback interface.
    pub fn builder() -> Builder {
        Builder {
            binary: None,
            command: "serve".to_owned(),
            arguments: vec!["--allow-network".to_owned(), "127.0.0.0/8".to_owned()],
            environment: Vec::new(),
            data_dir: None,
            compiles_uploads: false,
        }
    }

    /// `souk demo`, with nothing but what the command itself allows.
    pub fn demo() -> Builder {
        Builder {
            binary: None,
            command: "demo".to_owned(),
            arguments: Vec::new(),
            environment: Vec::new(),
            data_dir: None,
            compiles_uploads: false,
        }
    }

    pub fn client(&self, key: &str) -> Client {
        Client::new(&self.base_url, Some(key))
    }

    pub fn anonymous(&self) -> Client {
        Client::new(&self.base_url, None)
    }

    /// A client with the platform's key (role 5). Only the first start of a store hands it out.
    pub fn platform(&self) -> Client {
        self.client(
            self.ready["platform"]["api_key"]
                .as_str()
                .expect("the platform's key"),
        )
    }

    /// The process, for those who watch it.
    pub fn pid(&self) -> u32 {
        self.process.as_ref().expect("a running host").id()
    }

    /// What the host wrote to standard error and output so far.
    pub fn log(&self) -> String {
        std::fs::read_to_string(self.data_dir.join("test.log")).unwrap_or_default()
    }

    /// For a host that is never dropped: what it compiles is kept for the next run all the same, every few seconds.
    pub fn keep_compiled(&'static self) {
        std::thread::spawn(|| {
            loop {
                std::thread::sleep(Duration::from_secs(5));
                warm::keep_uploaded(&self.data_dir);
            }
        });
    }

    /// SIGKILL: nothing is flushed, nobody is told.
    pub fn kill(&mut self) {
        if let Some(mut process) = self.process.take() {
            let _ = process.kill();
            let _ = process.wait();
            client::has_ended(&self.base_url);
        }
    }

    /// SIGTERM, and waits for the end.
    pub async fn stop(&mut self) -> ExitStatus {
        signal(
            self.process.as_ref().expect("a running host"),
            libc::SIGTERM,
        );
        self.stopped().await
    }

    /// Waits for the end of a host that was told to stop.
    pub async fn stopped(&mut self) -> ExitStatus {
        let mut process = self.process.take().expect("a running host");
        let deadline = Instant::now() + STOP_TIMEOUT;
        loop {
            if let Some(status) = process.try_wait().expect("wait") {
                return status;
            }
            assert!(
                Instant::now() < deadline,
                "the host did not stop\n{}",
                self.log()
            );
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// Starts again on the same data directory, with the same arguments, on a new port.
    /// `ready` keeps what only the first start wrote.
    pub async fn start_again(&mut self) {
        self.kill();
        let first = self.ready.take();
        self.run().await;
        if let (Some(ready), Some(first)) = (self.ready.as_object_mut(), first.as_object()) {
            for (name, value) in first {
                ready.entry(name).or_insert_with(|| value.clone());
            }
        }
    }

    async fn run(&mut self) {
        crate::tls::use_ring();
        let ready_file = self.data_dir.join("ready.json");
        let _ = std::fs::remove_file(&ready_file);
        warm::lend(&self.data_dir);
        let log = File::options()
            .create(true)
            .append(true)
            .open(self.data_dir.join("test.log"))
            .expect("the log");
        let mut command = Command::new(&self.binary);
        command
            .arg(&self.command)
            .args(["--listen", "127.0.0.1:0"])
            .arg("--data-dir")
            .arg(&self.data_dir)
            .arg("--ready-file")
            .arg(&ready_file)
            .args(&self.arguments)
            .envs(self.environment.iter().cloned())
            .stdin(Stdio::null())
            .stdout(log.try_clone().expect("the log"))
            .stderr(log);
        let mut process = spawn_tied(command, libc::SIGKILL).expect("souk starts");
        let deadline = Instant::now() + READY_TIMEOUT;
        self.ready = loop {
            if let Ok(text) = std::fs::read(&ready_file) {
                break serde_json::from_slice(&text)
                    .expect("the ready file is JSON, whole at once");
            }
            if let Some(status) = process.try_wait().expect("wait") {
                panic!("souk ended with {status}\n{}", self.log());
            }
            assert!(
                Instant::now() < deadline,
                "souk is not ready\n{}",
                self.log()
            );
            tokio::time::sleep(Duration::from_millis(20)).await;
        };
        warm::keep(&self.data_dir);
        if !self.compiles_uploads {
            warm::lend_uploaded(&self.data_dir);
        }
        self.process = Some(process);
        self.base_url = self.ready["base_url"]
            .as_str()
            .expect("base_url")
            .trim_end_matches('/')
            .to_owned();
        if self.is_given {
            client::is_of_another_build(&self.base_url);
        }
    }
}

impl Builder {
    pub fn arg(mut self, name: &str, value: impl AsRef<str>) -> Builder {
        self.arguments
            .extend([name.to_owned(), value.as_ref().to_owned()]);
        self
    }

    /// Takes back what [`TestHost::builder`] allows: the host dials public addresses only.
    pub fn public_only(mut self) -> Builder {
        self.arguments.clear();
        self
    }

    pub fn env(mut self, name: &str, value: &str) -> Builder {
        self.environment.push((name.to_owned(), value.to_owned()));
        self
    }

    /// For tests of compiling: what is uploaded is compiled, though another test may have compiled the same.
    pub fn compiles_uploads(mut self) -> Builder {
        self.compiles_uploads = true;
        self
    }

    /// Another build of souk than this one; its answers are not held against this one's document.
    pub fn binary(mut self, path: PathBuf) -> Builder {
        self.binary = Some(path);
        self
    }

    /// A directory of the caller's instead of a temporary one.
    pub fn data_dir(mut self, path: &Path) -> Builder {
        self.data_dir = Some(path.to_owned());
        self
    }

    pub async fn start(self) -> TestHost {
        let directory = tempfile::Builder::new()
            .prefix("souk-test-")
            .tempdir()
            .expect("a directory");
        let data_dir = self.data_dir.unwrap_or_else(|| directory.path().to_owned());
        let mut host = TestHost {
            base_url: String::new(),
            ready: Value::Null,
            data_dir,
            is_given: self.binary.is_some(),
            binary: self.binary.unwrap_or_else(binary),
            command: self.command,
            arguments: self.arguments,
            environment: self.environment,
            process: None,
            directory: Some(directory),
            compiles_uploads: self.compiles_uploads,
        };
        host.run().await;
        host
    }
}

impl Drop for TestHost {
    fn drop(&mut self) {
        self.kill();
        if !self.compiles_uploads {
            warm::keep_uploaded(&self.data_dir);
        }
        if std::thread::panicking() {
            let log = self.log();
            let tail = log.len().saturating_sub(8_000);
            eprintln!(
                "--- the host's log ends with:\n{}",
                String::from_utf8_lossy(&log.as_bytes()[tail..])
            );
            if let Some(directory) = self.directory.take() {
                eprintln!(
                    "--- its data directory is kept: {}",
                    directory.keep().display()
                );
            }
        }
    }
}
