//! `souk` as an operator types it.

use std::process::{Command, Stdio};

use serde_json::Value;

use crate::host::{TestHost, binary};

/// What a command did.
#[derive(Debug)]
pub struct Done {
    pub succeeded: bool,
    pub out: String,
    pub err: String,
}

/// Runs `souk` to its end, without a variable of the surroundings that it reads.
pub async fn souk(arguments: &[&str], environment: &[(&str, &str)]) -> Done {
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
    let output = tokio::task::spawn_blocking(move || command.output());
    let output = output.await.expect("a thread").expect("souk runs");
    Done {
        succeeded: output.status.success(),
        out: String::from_utf8(output.stdout).expect("text"),
        err: String::from_utf8(output.stderr).expect("text"),
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
