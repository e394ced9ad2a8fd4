//! `souk` as an operator types it.

use std::fs::File;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;
use tempfile::TempDir;

use crate::host::{TestHost, binary};
use crate::process::{signal, spawn_tied};

/// A connector is built meanwhile, on a loaded machine.
const SAID_WITHIN: Duration = Duration::from_secs(300);

/// What a command did.
#[derive(Debug)]
pub struct Done {
    pub succeeded: bool,
    pub code: Option<i32>,
    pub out: String,
    pub err: String,
}

/// Runs `souk` to its end, without a variable of the surroundings that it reads.
pub async fn souk(arguments: &[&str], environment: &[(&str, &str)]) -> Done {
    let mut command = command(arguments, environment);
    let output = tokio::task::spawn_blocking(move || command.output());
    let output = output.await.expect("a thread").expect("souk runs");
    Done {
        succeeded: output.status.success(),
        code: output.status.code(),
        out: String::from_utf8(output.stdout).expect("text"),
        err: String::from_utf8(output.stderr).expect("text"),
    }
}

fn command(arguments: &[&str], environment: &[(&str, &str)]) -> Command {
    let mut command = Command::new(binary());
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("SOUK_") {
            command.env_remove(name);
        }
    }
    command
        .args(arguments)
        .envs(environment.iter().copied())
        .stdin(Stdio::null());
    command
}

/// A command that goes on until it is dropped.
pub struct Running {
    process: Child,
    log: TempDir,
}

impl Running {
    /// `souk` in `directory`, as its author types it there.
    pub fn start(directory: &Path, arguments: &[&str], environment: &[(&str, &str)]) -> Running {
        let log = tempfile::tempdir().expect("a directory");
        let out = File::create(log.path().join("log")).expect("a file");
        let mut command = command(arguments, environment);
        command
            .current_dir(directory)
            .stdout(out.try_clone().expect("a file"))
            .stderr(out);
        let process = spawn_tied(command, libc::SIGKILL).expect("souk runs");
        Running { process, log }
    }

    /// What it has said so far.
    pub fn said(&self) -> String {
        std::fs::read_to_string(self.log.path().join("log")).expect("a log")
    }

    /// Waits until it has said `words` so many times.
    pub async fn says(&mut self, words: &str, times: usize) {
        let begun = Instant::now();
        while self.said().matches(words).count() < times {
            let ended = self.process.try_wait().expect("wait");
            assert!(ended.is_none(), "it ended: {}", self.said());
            assert!(
                begun.elapsed() < SAID_WITHIN,
                "{words:?} is not in {}",
                self.said()
            );
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }
}

impl Running {
    /// Ctrl-C, and how it ends then.
    pub fn interrupt(mut self) -> std::process::ExitStatus {
        signal(&self.process, libc::SIGINT);
        self.process.wait().expect("wait")
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl Done {
    /// Asserts that it succeeded.
    #[track_caller]
    pub fn ok(self) -> Done {
        assert!(self.succeeded, "{}{}", self.out, self.err);
        self
    }

    /// Asserts that it failed, and says why.
    #[track_caller]
    pub fn refused(self, why: &str) -> Done {
        assert!(!self.succeeded, "{}{}", self.out, self.err);
        assert!(self.err.contains(why), "{why:?} is not in {}", self.err);
        self
    }

    #[track_caller]
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.out)
            .unwrap_or_else(|error| panic!("{error}: {}{}", self.out, self.err))
    }
}

impl TestHost {
    /// Runs a command that asks this host in the name of `key`.
    pub async fn ask(&self, key: &str, arguments: &[&str]) -> Done {
        let environment = [("SOUK_URL", self.base_url.as_str()), ("SOUK_API_KEY", key)];
        souk(arguments, &environment).await
    }

    /// The same with the platform's key.
    pub async fn operate(&self, arguments: &[&str]) -> Done {
        let key = self.ready["platform"]["api_key"].as_str();
        self.ask(key.expect("the platform's key"), arguments).await
    }
}
