//! The binary as an operator meets it: starting, stopping, starting again, and what it says when it cannot.

use std::fs::Permissions;
use std::io::{Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::sync::LazyLock;
use std::time::{Duration, Instant};

use serde_json::Value;

/// The first start of a debug host compiles the connectors, at the lowest priority: beside other tests that took more than two minutes.
const PATIENCE: Duration = Duration::from_secs(600);

/// `souk serve` on a data directory; killed when the test is over.
struct Souk {
    process: Child,
    ready: Value,
}

fn souk(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_souk"));
    command.args(arguments).stdin(Stdio::null());
    // A process group of its own, so that a Ctrl-C at the test run does not count as a signal to the host.
    command.process_group(0);
    command
}

/// A directory with the connectors compiled already: each start would spend seconds on them otherwise.
fn directory() -> tempfile::TempDir {
    static WARM: LazyLock<tempfile::TempDir> = LazyLock::new(|| {
        let directory = tempfile::tempdir().unwrap();
        let status = Souk::serve(directory.path(), &[]).terminate();
        assert!(status.success());
        directory
    });
    let directory = tempfile::tempdir().unwrap();
    let compiled = directory.path().join("data/compiled");
    std::fs::create_dir_all(&compiled).unwrap();
    for path in [directory.path().join("data"), compiled.clone()] {
        std::fs::set_permissions(path, Permissions::from_mode(0o700)).unwrap();
    }
    for file in std::fs::read_dir(WARM.path().join("data/compiled")).unwrap() {
        let file = file.unwrap();
        std::fs::copy(file.path(), compiled.join(file.file_name())).unwrap();
    }
    directory
}

impl Souk {
    fn serve(directory: &Path, arguments: &[&str]) -> Souk {
        Souk::start("serve", directory, arguments)
    }

    fn start(command: &str, directory: &Path, arguments: &[&str]) -> Souk {
        Souk::run(souk(&[command]), directory, arguments)
    }

    /// `souk serve`, by a command that runs what follows it.
    fn serve_by(wrapper: &[&str], directory: &Path, arguments: &[&str]) -> Souk {
        let mut command = Command::new(wrapper[0]);
        command.args(&wrapper[1..]).stdin(Stdio::null());
        command.args([env!("CARGO_BIN_EXE_souk"), "serve"]);
        command.process_group(0);
        Souk::run(command, directory, arguments)
    }

    fn run(mut command: Command, directory: &Path, arguments: &[&str]) -> Souk {
        let ready_file = directory.join("ready.json");
        let _ = std::fs::remove_file(&ready_file);
        let mut process = command
            .args(["--listen", "127.0.0.1:0", "--data-dir"])
            .arg(directory.join("data"))
            .arg("--ready-file")
            .arg(&ready_file)
            .args(arguments)
            .stdout(Stdio::null())
            .stderr(std::fs::File::create(directory.join("log")).unwrap())
            .spawn()
            .unwrap();
        let began = Instant::now();
        while !ready_file.exists() {
            assert!(
                process.try_wait().unwrap().is_none(),
                "souk ended instead of serving"
            );
            assert!(began.elapsed() < PATIENCE, "souk is not ready");
            std::thread::sleep(Duration::from_millis(20));
        }
        let ready = serde_json::from_slice(&std::fs::read(&ready_file).unwrap()).unwrap();
        Souk { process, ready }
    }

    fn base_url(&self) -> &str {
        self.ready["base_url"].as_str().unwrap()
    }

    fn terminate(mut self) -> ExitStatus {
        let pid = self.process.id().to_string();
        assert!(
            Command::new("kill")
                .args(["-TERM", &pid])
                .status()
                .unwrap()
                .success()
        );
        let began = Instant::now();
        loop {
            if let Some(status) = self.process.try_wait().unwrap() {
                return status;
            }
            assert!(began.elapsed() < PATIENCE, "souk does not stop");
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

impl Drop for Souk {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn run(arguments: &[&str]) -> Output {
    souk(arguments).output().unwrap()
}

fn errors(output: &Output) -> String {
    assert!(!output.status.success());
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn http() -> reqwest::Client {
    let _ = rustls::crypto::ring::default_provider().install_default();
    reqwest::Client::new()
}

async fn post(url: String, key: &str, body: Value) -> (u16, Value) {
    let request = http().post(url).header("x-api-key", key).json(&body);
    let response = request.send().await.unwrap();
    (response.status().as_u16(), response.json().await.unwrap())
}

async fn get(url: String, key: &str) -> (u16, Value) {
    let response = http()
        .get(url)
        .header("x-api-key", key)
        .send()
        .await
        .unwrap();
    let status = response.status().as_u16();
    (status, response.json().await.unwrap())
}

/// The first start of an empty store makes the platform's company and key; a later one goes on with them.
#[tokio::test]
async fn a_second_start_goes_on_where_the_first_was() {
    let directory = directory();
    let first = Souk::serve(directory.path(), &[]);
    let platform = first.ready["platform"].clone();
    let (company, key) = (
        platform["company_id"].as_str().unwrap(),
        platform["api_key"].as_str().unwrap(),
    );
    assert!(key.starts_with("sk_"));
    let (status, _) = get(
        format!("{}/companies/{company}/api-keys", first.base_url()),
        key,
    )
    .await;
    assert_eq!(status, 200);
    assert!(first.terminate().success());

    let second = Souk::serve(directory.path(), &[]);
    assert!(second.ready.get("platform").is_none());
    let (status, keys) = get(
        format!("{}/companies/{company}/api-keys", second.base_url()),
        key,
    )
    .await;
    assert_eq!((status, &keys["meta"]["total"]), (200, &Value::from(1)));
}

/// The demo keeps its ids, its keys and what was spent; a later start goes on, at another address too.
#[tokio::test]
async fn the_demo_goes_on_where_it_was() {
    let directory = directory();
    let first = Souk::start("demo", directory.path(), &[]);
    let (seller, buyer) = (first.ready["seller"].clone(), first.ready["buyer"].clone());
    let key = buyer["api_key"].as_str().unwrap();
    let company = buyer["company_id"].as_str().unwrap();
    let analyze =
        |souk: &Souk, slug: &str| format!("{}/analyze/matchday/assets/{slug}", souk.base_url());

    let (status, paid) = post(
        analyze(&first, "goals-per-match"),
        key,
        serde_json::json!({}),
    )
    .await;
    assert_eq!(
        (status, &paid["meta"]["credits_used"]),
        (200, &Value::from(2)),
        "{paid}"
    );
    assert!(first.terminate().success());

    let second = Souk::start("demo", directory.path(), &[]);
    assert_eq!(
        (&second.ready["seller"], &second.ready["buyer"]),
        (&seller, &buyer)
    );
    // The seller's connection still finds the seller's API.
    let (status, paid) = post(
        analyze(&second, "win-probability"),
        key,
        serde_json::json!({}),
    )
    .await;
    assert_eq!(
        (status, &paid["meta"]["credits_used"]),
        (200, &Value::from(3)),
        "{paid}"
    );
    let (_, credits) = get(
        format!("{}/companies/{company}/credits", second.base_url()),
        key,
    )
    .await;
    assert_eq!(credits["data"]["balance_credits"], 995);
}

/// The sample seller API is the one private address that the demo's connectors may reach.
#[tokio::test]
async fn the_demo_reaches_no_other_private_address() {
    let directory = directory();
    let souk = Souk::start("demo", directory.path(), &[]);
    let seller = &souk.ready["seller"];
    let (key, company) = (
        seller["api_key"].as_str().unwrap(),
        seller["company_id"].as_str().unwrap(),
    );
    let (_, engines) = get(format!("{}/storage-engines", souk.base_url()), key).await;
    let engine = engines["data"]
        .as_array()
        .unwrap()
        .iter()
        .find(|engine| engine["slug"] == "seller-api")
        .unwrap();
    let body = serde_json::json!({
        "engine_id": engine["id"], "name": "the host itself", "credential_type": "API_KEY",
        "credentials": "{\"api_key\":\"k\"}", "base_url": souk.base_url(),
    });
    let (status, refused) = post(
        format!("{}/companies/{company}/connections", souk.base_url()),
        key,
        body,
    )
    .await;
    assert_eq!(
        (status, &refused["error"]["code"]),
        (400, &Value::from("UNSAFE_URL")),
        "{refused}"
    );
}

/// What the store and the key file hold is for the host's user only.
#[tokio::test]
async fn the_data_directory_is_private() {
    let directory = directory();
    let _souk = Souk::serve(directory.path(), &[]);
    let mode = |path: PathBuf| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(directory.path().join("data")), 0o700);
    assert_eq!(mode(directory.path().join("data/master.key")), 0o600);
    assert_eq!(mode(directory.path().join("ready.json")), 0o600);
}

/// One host at a time has an embedded store open.
#[test]
fn a_second_host_on_the_same_directory_is_refused() {
    let directory = directory();
    let _first = Souk::serve(directory.path(), &[]);
    let data = directory.path().join("data");
    let second = run(&[
        "serve",
        "--listen",
        "127.0.0.1:0",
        "--data-dir",
        data.to_str().unwrap(),
    ]);
    assert!(
        errors(&second).contains("cannot be opened"),
        "{}",
        errors(&second)
    );
}

/// Metrics stand apart from the API, which does not serve them.
#[tokio::test]
async fn metrics_have_a_listener_of_their_own() {
    let directory = directory();
    let free = std::net::TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap()
        .to_string();
    let souk = Souk::serve(directory.path(), &["--metrics-listen", &free]);
    let text = http()
        .get(format!("http://{free}/metrics"))
        .send()
        .await
        .unwrap()
        .text()
        .await
        .unwrap();
    assert!(text.contains("souk_client_connections "), "{text}");
    assert_eq!(get(format!("{}/metrics", souk.base_url()), "").await.0, 404);
}

/// Logs are for a log collector unless somebody looks at them, or the operator says otherwise.
#[test]
fn logs_are_json_where_nobody_looks() {
    for (arguments, is_json) in [
        (&[][..], true),
        (&["--log-format", "json"], true),
        (&["--log-format", "text"], false),
    ] {
        let directory = directory();
        assert!(
            Souk::serve(directory.path(), arguments)
                .terminate()
                .success()
        );
        let log = std::fs::read_to_string(directory.path().join("log")).unwrap();
        assert!(log.contains("accepting requests"), "{log}");
        for line in log.lines() {
            let parsed = serde_json::from_str::<Value>(line);
            assert_eq!(parsed.is_ok(), is_json, "{arguments:?}: {line}");
            assert!(parsed.is_err() || parsed.unwrap()["level"].is_string());
        }
    }
}

/// What is wrong with a setting is said in one line that names it.
#[test]
fn a_wrong_setting_is_named() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let directory = directory();
    let data = directory.path().to_str().unwrap();
    let cases: &[(&[&str], &str)] = &[
        (
            &["serve", "--data-dir", data, "--listen", &address],
            "cannot listen on",
        ),
        (
            &["serve", "--data-dir", data, "--database-url", "mysql://x"],
            "cannot be opened",
        ),
        (
            &["serve", "--data-dir", data, "--workers", "0"],
            "--workers",
        ),
        (
            &[
                "serve",
                "--data-dir",
                data,
                "--master-key",
                "short",
                "--listen",
                "127.0.0.1:0",
            ],
            "master key",
        ),
        (
            &["serve", "--config", "/does/not/exist.toml"],
            "/does/not/exist.toml",
        ),
        (
            &["serve", "--allow-network", "everything"],
            "--allow-network",
        ),
        (
            &["serve", "--trust-proxy", "10.1.2.3"],
            "192.0.2.7/32 for one address",
        ),
        (
            &["serve", "--idle-seconds", "18446744073709551615"],
            "--idle-seconds must be 1 to",
        ),
        (
            &["serve", "--drain-seconds", "18446744073709551615"],
            "--drain-seconds must be at most",
        ),
    ];
    for (arguments, expected) in cases {
        let said = errors(&run(arguments));
        assert!(said.contains(expected), "{arguments:?}: {said}");
    }
}

/// The first key of role 5 is made by the first start that serves, and shown where the ready file cannot be written.
#[test]
fn the_first_key_is_not_lost_by_a_start_that_fails() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let directory = directory();
    let data = directory.path().join("data");
    let data = data.to_str().unwrap();
    let serve = ["serve", "--listen", "127.0.0.1:0", "--data-dir", data];
    let taken = ["--metrics-listen", address.as_str()];
    let failed = run(&[&serve[..], &taken[..]].concat());
    assert!(failed.stdout.is_empty());
    assert!(errors(&failed).contains("for metrics"));

    let nowhere = "/does/not/exist/ready.json";
    let lost = ["--ready-file", nowhere];
    let failed = run(&[&serve[..], &lost[..]].concat());
    assert!(errors(&failed).contains(nowhere));
    let shown = String::from_utf8(failed.stdout).unwrap();
    assert!(
        shown.contains("shown this once") && shown.contains("sk_"),
        "{shown}"
    );
}

/// As many clients as a test may open, and more than a host with few descriptors has room for.
const IDLE_CLIENTS: usize = 300;

/// What a new client that asks for its health is told; nothing when the host says nothing.
fn ask(souk: &Souk) -> String {
    let address = souk.base_url().trim_start_matches("http://");
    let mut stream = std::net::TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    // Whoever refuses may have closed already; what it said can be read.
    let _ = stream.write_all(b"GET /healthz HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n");
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    String::from_utf8(answer).unwrap()
}

fn is_served(answer: &str) -> bool {
    answer.starts_with("HTTP/1.1 200 ")
}

fn is_refused(answer: &str) -> bool {
    answer.starts_with("HTTP/1.1 503 ")
        && answer.contains("\r\nretry-after: 1\r\n")
        && answer.contains(r#""code":"TOO_MANY_CONNECTIONS""#)
        && answer.contains(r#""request_id":"req_"#)
}

fn idle_clients(souk: &Souk) -> Vec<std::net::TcpStream> {
    let address = souk.base_url().trim_start_matches("http://");
    let connect = |_| std::net::TcpStream::connect(address).unwrap();
    (0..IDLE_CLIENTS).map(connect).collect()
}

fn is_served_again(souk: &Souk) {
    let began = Instant::now();
    while !is_served(&ask(souk)) {
        assert!(began.elapsed() < PATIENCE, "souk serves nobody any more");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Connectors reserve address space that they never use: a limit of it is named, with what bounds memory instead.
#[test]
fn an_address_space_that_is_limited_is_told() {
    let directory = directory();
    let mut limited = Command::new("sh");
    limited
        .args(["-c", "ulimit -v 4194304; exec timeout 120 \"$0\" \"$@\""])
        .arg(env!("CARGO_BIN_EXE_souk"))
        .args(["serve", "--listen", "127.0.0.1:0", "--data-dir"])
        .arg(directory.path().join("data"));
    let said = errors(&limited.output().unwrap());
    for word in ["limited to 4096 MiB", "LimitAS", "MemoryMax"] {
        assert!(said.contains(word), "{word}: {said}");
    }
}

/// Clients that want nothing do not keep one out that does: it is served, or told that there is no room. When they are gone, all is as
/// before.
#[test]
fn few_descriptors_are_enough_to_say_no() {
    let directory = directory();
    let souk = Souk::serve_by(
        &["sh", "-c", "ulimit -n 256; exec \"$0\" \"$@\""],
        directory.path(),
        &[
            "--idle-seconds",
            "3600",
            "--connections-per-address-max",
            "100000",
        ],
    );
    let idle = idle_clients(&souk);
    for _ in 0..3 {
        let answer = ask(&souk);
        assert!(is_served(&answer) || is_refused(&answer), "{answer}");
    }
    drop(idle);
    is_served_again(&souk);
    let log = std::fs::read_to_string(directory.path().join("log")).unwrap();
    assert!(!log.contains("could not be accepted"), "{log}");
}

/// Descriptors that others took: a spare one is enough to say no, again and again.
#[test]
fn no_descriptor_at_all_is_enough_to_say_no() {
    let directory = directory();
    let souk = Souk::serve(directory.path(), &["--idle-seconds", "3600"]);
    let pid = souk.process.id().to_string();
    let limit = |files: &str| {
        let mut command = Command::new("prlimit");
        command.args(["--pid", &pid, &format!("--nofile={files}:")]);
        assert!(command.status().unwrap().success());
    };
    // They take every gap, so that what is open after them is everything up to the limit.
    let idle = idle_clients(&souk);
    assert!(is_served(&ask(&souk)));
    let open = std::fs::read_dir(format!("/proc/{pid}/fd")).unwrap();
    let numbers = open.map(|entry| entry.unwrap().file_name().to_str().unwrap().parse::<u32>());
    let highest = numbers.map(Result::unwrap).max().unwrap();
    limit(&(highest + 1).to_string());
    for _ in 0..10 {
        let answer = ask(&souk);
        assert!(is_served(&answer) || is_refused(&answer), "{answer}");
    }
    drop(idle);
    is_served_again(&souk);
}

/// One address does not take every connection, and is told that it is its own doing.
#[test]
fn one_address_has_its_share_of_connections() {
    let directory = directory();
    let souk = Souk::serve(
        directory.path(),
        &[
            "--idle-seconds",
            "3600",
            "--connections-per-address-max",
            "100",
        ],
    );
    let idle = idle_clients(&souk);
    let answer = ask(&souk);
    assert!(answer.starts_with("HTTP/1.1 429 "), "{answer}");
    assert!(
        answer.contains(r#""code":"TOO_MANY_CONNECTIONS""#),
        "{answer}"
    );
    drop(idle);
    is_served_again(&souk);
}
