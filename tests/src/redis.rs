//! A Redis of the test's own.

use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::process::{free_port, spawn_tied};
use crate::tls::TestCa;

const READY_WITHIN: Duration = Duration::from_secs(30);
const PASSWORD: &str = "a:secret";

pub struct Redis {
    process: Option<Child>,
    port: u16,
    directory: tempfile::TempDir,
    is_protected: bool,
}

impl Redis {
    pub async fn start() -> Redis {
        Redis::start_at(tempfile::tempdir().expect("a directory"), false).await
    }

    /// One that speaks TLS and nothing else, as `localhost`, with a certificate of this authority.
    pub async fn start_protected(authority: &TestCa) -> Redis {
        let directory = tempfile::tempdir().expect("a directory");
        let leaf = authority.server(&["localhost"]);
        let texts = [
            ("cert.pem", leaf.certificate_pem),
            ("key.pem", leaf.key_pem),
            ("ca.pem", authority.pem()),
        ];
        for (name, text) in texts {
            std::fs::write(directory.path().join(name), text).expect("a file");
        }
        Redis::start_at(directory, true).await
    }

    async fn start_at(directory: tempfile::TempDir, is_protected: bool) -> Redis {
        let mut redis = Redis {
            process: None,
            port: free_port(),
            directory,
            is_protected,
        };
        redis.start_again().await;
        redis
    }

    /// On the same port, with nothing in it.
    pub async fn start_again(&mut self) {
        let port = self.port.to_string();
        let mut command = Command::new("redis-server");
        command
            .current_dir(self.directory.path())
            .args(["--port", if self.is_protected { "0" } else { &port }])
            .args(["--bind", "127.0.0.1", "--requirepass", PASSWORD])
            .args(["--save", "", "--appendonly", "no"])
            .stdout(Stdio::null());
        if self.is_protected {
            command.args([
                "--tls-port",
                &port,
                "--tls-cert-file",
                "cert.pem",
                "--tls-key-file",
                "key.pem",
            ]);
            command.args(["--tls-ca-cert-file", "ca.pem", "--tls-auth-clients", "no"]);
        }
        self.process = Some(
            spawn_tied(command, libc::SIGKILL)
                .expect("redis-server: run tests/run, which installs it"),
        );
        let since = Instant::now();
        while std::net::TcpStream::connect(("127.0.0.1", self.port)).is_err() {
            assert!(since.elapsed() < READY_WITHIN, "redis does not listen");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    pub fn kill(&mut self) {
        if let Some(mut process) = self.process.take() {
            process.kill().expect("a process of ours");
            process.wait().expect("a process of ours");
        }
    }

    /// For a connector: `host:port`.
    pub fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    /// For a connector: its settings, as JSON.
    pub fn settings(&self) -> String {
        format!(r#"{{"password": "{PASSWORD}"}}"#)
    }

    /// Carries out commands.
    pub fn fill(&self, commands: &[&[&str]]) {
        for command in commands {
            let done = Command::new("redis-cli")
                .args([
                    "--no-auth-warning",
                    "-a",
                    PASSWORD,
                    "-p",
                    &self.port.to_string(),
                ])
                .args(*command)
                .stdout(Stdio::null())
                .status();
            assert!(
                done.expect("redis-cli, which comes with redis-server")
                    .success()
            );
        }
    }

    pub fn url(&self) -> String {
        let password = PASSWORD.replace(':', "%3A");
        match self.is_protected {
            false => format!("redis://:{password}@127.0.0.1:{}/2", self.port),
            true => format!("rediss://:{password}@localhost:{}/2", self.port),
        }
    }

    /// Where the authority of its certificate is.
    pub fn authority(&self) -> String {
        self.directory.path().join("ca.pem").display().to_string()
    }
}

impl Drop for Redis {
    fn drop(&mut self) {
        self.kill();
    }
}
