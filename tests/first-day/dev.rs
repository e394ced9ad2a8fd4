//! `souk connector dev`: from a save to a version at work, and what happens when a save is no good.

use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::json;
use souk_tests::{Answer, Company, Running, TestHost};
use tempfile::TempDir;

use super::{kept, new_project, souk};

/// A machine that is busy for so long is broken.
const GONE_WITHIN: Duration = Duration::from_secs(60);

/// The versions of the connector on the host, with their status.
async fn versions(company: &Company) -> Vec<String> {
    let answer = company.client.get("/connectors/my-dev").await.expect(200);
    let versions = answer.at("/data/versions").as_array().cloned();
    let text = |version: serde_json::Value| {
        format!("{}: {}", version["version"], version["status"]).replace('"', "")
    };
    versions.expect("versions").into_iter().map(text).collect()
}

/// Opens a session.
async fn open(company: &Company, connection: &str) -> Answer {
    let path = company.path(&format!("/connections/{connection}/test"));
    company.client.post(&path, json!({})).await.expect(200)
}

fn save(path: &Path, from: &str, to: &str) {
    let text = std::fs::read_to_string(path).expect("the source");
    assert!(text.contains(from), "{from} is not in {text}");
    std::fs::write(path, text.replacen(from, to, 1)).expect("the source");
}

/// Each save is a version of its own that takes the place of the one before, under the same number; what it prints is seen; and neither a build that
/// fails nor a component in which the kit finds something wrong takes the place of one that works.
#[tokio::test(flavor = "multi_thread")]
async fn a_save_is_at_work_in_seconds() {
    let host = TestHost::builder().start().await;
    let company = host.company("author").await;
    let directory = TempDir::new().expect("a directory");
    let kept = kept("dev");
    let root = new_project(&kept, "my-dev", "http");
    let source = root.join("src/lib.rs");
    let target = kept.join("target");
    let environment = [
        ("SOUK_URL", host.base_url.as_str()),
        ("SOUK_API_KEY", company.key.as_str()),
        ("XDG_CACHE_HOME", directory.path().to_str().expect("UTF-8")),
        ("CARGO_TARGET_DIR", target.to_str().expect("UTF-8")),
    ];
    let mut dev = Running::start(&root, &["connector", "dev"], &environment);
    dev.says("is at work", 1).await;
    dev.says("waiting for a change", 1).await;
    let first = versions(&company).await;
    assert_eq!(first.len(), 1, "{first:?}");
    assert!(
        first[0].starts_with("0.1.0-dev.") && first[0].ends_with(": active"),
        "{first:?}"
    );
    let fields = json!({"credential_type": "API_KEY", "credentials": r#"{"api_key": "k"}"#, "base_url": "http://127.0.0.1:1"});
    let connection = company.connection("my-dev", fields).await;
    open(&company, &connection).await;
    assert!(!dev.said().contains("a line for its author"));

    let opens = "async fn open(settings: Settings, io: Io) -> Result<Self, Error> {";
    let prints = format!("{opens}\n        println!(\"a line for its author\");");
    save(&source, opens, &prints);
    dev.says("is at work", 2).await;
    dev.says("waiting for a change", 2).await;
    let second = versions(&company).await;
    assert_eq!(
        second.len(),
        1,
        "the build before is still there: {second:?}"
    );
    assert_ne!(second, first);
    open(&company, &connection).await;
    dev.says("a line for its author", 1).await;

    // What does not compile is told, and what worked goes on.
    save(&source, opens, &format!("{opens} let wrong"));
    dev.says("cargo build failed", 1).await;
    dev.says("waiting for a change", 3).await;
    assert!(dev.said().contains("src/lib.rs"), "{}", dev.said());
    assert_eq!(versions(&company).await, second);
    save(&source, " let wrong", "");

    // So is what the kit finds wrong.
    dev.says("waiting for a change", 4).await;
    let third = versions(&company).await;
    save(&source, "&[\"API_KEY\"]", "&[\"MAGIC\"]");
    dev.says("it is given to no host", 1).await;
    assert_eq!(versions(&company).await, third);
    open(&company, &connection).await;
}

/// Without a key it builds and checks, and a version that is told outright can be tried as well.
#[test]
fn without_a_host_it_is_checked() {
    let directory = TempDir::new().expect("a directory");
    let root = directory.path();
    std::fs::write(root.join("c.wasm"), souk_tests::guests::HELLO).expect("a file");
    let build = ["--build", "true", "--component", "c.wasm"];
    let once = ["dev", "--once"];
    let checked = souk(root, &[&once[..], &build[..]].concat());
    assert_eq!(checked.code, Some(0), "{}{}", checked.out, checked.err);
    assert!(checked.out.contains("given to no host"), "{}", checked.out);
    assert!(checked.out.contains("0 failed"), "{}", checked.out);
    let failed = souk(
        root,
        &[
            "dev",
            "--once",
            "--build",
            "exit 7",
            "--component",
            "c.wasm",
        ],
    );
    assert_eq!(failed.code, Some(2));
    assert!(failed.err.contains("exit status: 7"), "{}", failed.err);
    let slow = [
        "dev",
        "--once",
        "--build",
        // What the shell has started holds this test's pipe for as long as it goes on.
        "sleep 600; true",
        "--build-timeout",
        "1",
        "--component",
        "c.wasm",
    ];
    let slow = souk(root, &slow);
    assert!(slow.err.contains("longer than 1 seconds"), "{}", slow.err);
}

/// Ctrl-C reaches what a build has started, which is in no group of the terminal's.
#[tokio::test(flavor = "multi_thread")]
async fn an_interrupted_build_is_gone() {
    let directory = TempDir::new().expect("a directory");
    let build = "sleep 600 & echo $! > started; echo it has begun; wait";
    let dev = [
        "connector",
        "dev",
        "--build",
        build,
        "--component",
        "c.wasm",
    ];
    let mut dev = Running::start(directory.path(), &dev, &[]);
    dev.says("it has begun", 1).await;
    let started = std::fs::read_to_string(directory.path().join("started")).expect("a number");
    let ended = dev.interrupt();
    assert_eq!(ended.code(), Some(130), "{ended}");
    let stat = format!("/proc/{}/stat", started.trim());
    let begun = Instant::now();
    // One whose end nobody has asked about yet is gone, too.
    while std::fs::read_to_string(&stat).is_ok_and(|stat| !stat.contains(") Z ")) {
        assert!(begun.elapsed() < GONE_WITHIN, "it goes on");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}
