//! Invitations by mail: a host with a relay sends them to whom they are for, and shows the link to nobody else.

use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use souk_tests::TestHost;
use souk_tests::process::{free_port, spawn_tied};

/// An SMTP server of the Python world: what it understands is not what ours wrote.
const WHEELS: [&str; 3] = ["aiosmtpd==1.4.6", "atpublic==5.1", "attrs==25.3.0"];
const READY_WITHIN: Duration = Duration::from_secs(30);

pub(crate) struct Relay {
    process: Child,
    pub(crate) port: u16,
    log: tempfile::NamedTempFile,
}

impl Relay {
    /// Installs it beside the build once, and starts it.
    pub(crate) async fn start() -> Relay {
        let packages = packages();
        let (port, log) = (free_port(), tempfile::NamedTempFile::new().expect("a file"));
        let mut command = Command::new("python3");
        command
            .env("PYTHONPATH", packages)
            .env("PYTHONUNBUFFERED", "1")
            .args(["-m", "aiosmtpd", "-n", "-l", &format!("127.0.0.1:{port}")])
            .stdout(Stdio::from(log.reopen().expect("a file")))
            .stderr(Stdio::null());
        let process = spawn_tied(command, libc::SIGKILL).expect("python3");
        let since = Instant::now();
        while std::net::TcpStream::connect(("127.0.0.1", port)).is_err() {
            assert!(since.elapsed() < READY_WITHIN, "the relay does not listen");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        Relay { process, port, log }
    }

    /// What it took, as it writes it down.
    pub(crate) fn taken(&self) -> String {
        std::fs::read_to_string(self.log.path()).expect("a file")
    }

    pub(crate) fn stop(&mut self) {
        self.process.kill().expect("a process of ours");
        self.process.wait().expect("a process of ours");
    }
}

fn packages() -> PathBuf {
    let target = std::env::current_exe().expect("a path");
    let target = target.ancestors().find(|path| path.ends_with("target"));
    let packages = target.expect("the target directory").join("aiosmtpd");
    let done = packages.join("wheels");
    if std::fs::read_to_string(&done).unwrap_or_default() != WHEELS.join(" ") {
        let pip = |program: &str| {
            let mut pip = Command::new(program);
            pip.args([
                "-m",
                "pip",
                "install",
                "--quiet",
                "--disable-pip-version-check",
                "--no-deps",
                "--only-binary",
                ":all:",
                "--upgrade",
                "--target",
            ]);
            pip.arg(&packages)
                .args(WHEELS)
                .env("PIP_ROOT_USER_ACTION", "ignore");
            pip.status().is_ok_and(|status| status.success())
        };
        // As in `tests/gates`: where Python came without pip, a virtual environment has one.
        let own = packages.with_extension("venv");
        let has_own = || {
            let made = Command::new("python3")
                .args(["-m", "venv"])
                .arg(&own)
                .status();
            made.is_ok_and(|status| status.success())
                && pip(&own.join("bin/python").to_string_lossy())
        };
        assert!(pip("python3") || has_own(), "pip cannot install {WHEELS:?}");
        std::fs::write(&done, WHEELS.join(" ")).expect("a file");
    }
    packages
}

/// The link arrives at the invited address, is not in the answer, and proves that the user reads mail there; without the relay whoever
/// invites gets it.
#[tokio::test]
async fn an_invitation_is_mailed() {
    let mut relay = Relay::start().await;
    let host = TestHost::builder()
        .arg("--smtp-url", format!("smtp://127.0.0.1:{}", relay.port))
        .arg("--mail-from", "Souk <souk@example.org>")
        .start()
        .await;
    let company = host.company("mailing").await;
    let users = format!("/companies/{}/users", company.id);
    let client = host.client(&company.key);
    let ann = json!({"email": "ann@example.org", "name": "Ann", "role_id": 3});
    let invited = client.post(&users, ann).await.expect(201);
    assert_eq!(
        (
            invited.at("/data/invitation/mail_sent"),
            invited.at("/data/invitation/url")
        ),
        (&json!(true), &Value::Null)
    );
    let mail = relay.taken();
    for line in [
        "From: Souk <souk@example.org>",
        "To: ann@example.org",
        "Subject: Invitation to",
    ] {
        assert!(mail.contains(line), "{line} is not in {mail}");
    }
    // Quoted-printable: a line that ends with = goes on.
    let mail = mail.replace("=\r\n", "").replace("=\n", "");
    assert!(mail.contains("\"mailing Ltd\" invites you."), "{mail}");
    let link = mail
        .lines()
        .find(|line| line.contains("/invitation#"))
        .expect("a link");
    let (page, token) = link.trim().split_once('#').expect("a token");
    assert_eq!(page, format!("{}/invitation", host.base_url));
    assert!(!host.log().contains(token));
    let accept = "/users/invitations/accept";
    let entered = host
        .anonymous()
        .post(accept, json!({"token": token}))
        .await
        .expect(200);
    assert_eq!(entered.at("/data/user/email_verified"), true);

    relay.stop();
    let bob = json!({"email": "bob@example.org"});
    let invited = client.post(&users, bob).await.expect(201);
    assert_eq!(invited.at("/data/invitation/mail_sent"), false);
    let link = invited.text("/data/invitation/url");
    let (_, token) = link.split_once('#').expect("a token");
    let entered = host
        .anonymous()
        .post(accept, json!({"token": token}))
        .await
        .expect(200);
    assert_eq!(entered.at("/data/user/email_verified"), false);
}

/// Who is invited gets the mail although whoever invited has hung up.
#[tokio::test]
async fn an_invitation_is_mailed_although_its_client_hangs_up() {
    let relay = Relay::start().await;
    let host = TestHost::builder()
        .arg("--smtp-url", format!("smtp://127.0.0.1:{}", relay.port))
        .arg("--mail-from", "Souk <souk@example.org>")
        .start()
        .await;
    let company = host.company("leaving").await;
    let users = format!("/companies/{}/users", company.id);
    let store = rusqlite::Connection::open(host.data_dir.join("souk.db")).expect("the store");
    // On a loaded machine it may take longer to begin.
    for seconds in [1, 2, 4] {
        store.execute_batch("BEGIN IMMEDIATE").expect("the writer");
        let ann = json!({"email": "ann@example.org", "name": "Ann", "role_id": 3});
        let invited = company.client.post(&users, ann);
        let answered = tokio::time::timeout(Duration::from_secs(seconds), invited).await;
        assert!(answered.is_err(), "nobody may write: {answered:?}");
        store.execute_batch("ROLLBACK").expect("rolled back");
        let since = Instant::now();
        while since.elapsed() < Duration::from_secs(30) {
            if relay.taken().contains("To: ann@example.org") {
                return;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }
    panic!("{}", host.log());
}
