//! An author's first day, by the program that he has: from nothing to a connector that is proved, and what he is told when it is not.

mod dev;

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;
use souk_tests::{guests, host, redis::Redis};
use tempfile::TempDir;

struct Said {
    code: Option<i32>,
    out: String,
    err: String,
}

/// `souk connector …` in `directory`.
fn souk(directory: &Path, args: &[&str]) -> Said {
    said(
        Command::new(host::binary())
            .arg("connector")
            .args(args)
            .current_dir(directory)
            .env("XDG_CACHE_HOME", directory)
            .env_remove("SOUK_API_KEY"),
    )
}

fn said(command: &mut Command) -> Said {
    let Output {
        status,
        stdout,
        stderr,
    } = command.output().expect("a program");
    Said {
        code: status.code(),
        out: String::from_utf8_lossy(&stdout).into_owned(),
        err: String::from_utf8_lossy(&stderr).into_owned(),
    }
}

/// A directory with a component in it.
fn with(wasm: &[u8]) -> TempDir {
    let directory = TempDir::new().expect("a directory");
    std::fs::write(directory.path().join("c.wasm"), wasm).expect("a file");
    directory
}

const SCORES: &str = r#"
    [source.settings]
    league = "north"
    [[answer]]
    path = "/scores"
    body = '[["Ada", 7], ["Bob", null]]'
    [[answer]]
    path = "/scores?player=Ada"
    body = '[["Ada", 7]]'
    [[query]]
    text = "/scores"
    rows = '[["Ada", 7], ["Bob", null]]'
"#;

/// `check` says what the component is, what it may use, and whether a host would take it.
#[test]
fn a_component_is_looked_at() {
    let directory = with(guests::HELLO);
    let checked = souk(directory.path(), &["check", "c.wasm"]);
    assert_eq!(checked.code, Some(0), "{}{}", checked.out, checked.err);
    for word in [
        "hello 0.1.0",
        "needs     http",
        "dialect",
        "league",
        "string, required",
        "250 ms (tcp and http)",
        "64 MiB a session",
        "wasi:cli/environment",
        "open.settings_refused",
    ] {
        assert!(checked.out.contains(word), "{word}: {}", checked.out);
    }
    let json = souk(directory.path(), &["check", "c.wasm", "--json"]);
    let json: Value = serde_json::from_str(&json.out).expect("JSON");
    assert_eq!(json["connector"]["name"], "hello");
    assert_eq!(json["limits"]["computing_a_call"], 250);

    let refused = with(guests::WRONG_WORLD);
    let refused = souk(refused.path(), &["check", "c.wasm"]);
    assert_eq!(refused.code, Some(1), "{}", refused.err);
    assert!(refused.out.contains("another world"), "{}", refused.out);

    let publisher = with(guests::NOTES_PUBLISHER);
    let publisher = souk(publisher.path(), &["check", "c.wasm"]);
    assert_eq!(publisher.code, Some(0), "{}", publisher.err);

    let absent = souk(directory.path(), &["check", "absent.wasm"]);
    assert_eq!(absent.code, Some(2));
    for word in ["cargo build --release", "./build"] {
        assert!(absent.err.contains(word), "{word}: {}", absent.err);
    }
    let project = souk(directory.path(), &["check", "."]);
    assert_eq!(project.code, Some(2));
    assert!(project.err.contains("is a directory"), "{}", project.err);
}

/// `run` asks one thing, of a server that the profile scripts, and shows rows or whose fault it is.
#[test]
fn one_thing_is_asked() {
    let directory = with(guests::HELLO);
    let souk = |args: &[&str]| souk(directory.path(), args);
    let nowhere = souk(&["run", "c.wasm", "--ping"]);
    assert_eq!(nowhere.code, Some(2));
    assert!(nowhere.err.contains("--base-url"), "{}", nowhere.err);

    std::fs::write(directory.path().join("souk-test.toml"), SCORES).expect("a file");
    let table = souk(&["run", "c.wasm", "--query", "/scores"]);
    assert_eq!(table.code, Some(0), "{}", table.err);
    for word in ["player", "points", "Ada", "NULL", "2 rows in"] {
        assert!(table.out.contains(word), "{word}: {}", table.out);
    }
    let one = souk(&[
        "run", "c.wasm", "--query", "/scores", "--param", "Ada", "--json",
    ]);
    assert_eq!(one.out, "[{\"player\":\"Ada\",\"points\":7}]\n");

    let failed = souk(&["run", "c.wasm", "--query", "/else"]);
    assert_eq!(failed.code, Some(1));
    for word in ["blame source", "code bad_status", "source's code: 404"] {
        assert!(failed.err.contains(word), "{word}: {}", failed.err);
    }
    let left_out = souk(&[
        "run",
        "c.wasm",
        "--ping",
        "--settings",
        r#"{"leage": "north"}"#,
    ]);
    assert!(
        left_out
            .err
            .contains("\"leage\" is not in the connector's schema"),
        "{}",
        left_out.err
    );
    let no_settings = souk(&["run", "c.wasm", "--ping", "--settings", "north"]);
    assert_eq!(no_settings.code, Some(2));
}

/// `test` is the kit: its exit code, its report and its JSON say whether, what and what to do.
#[test]
fn a_component_is_held_against_the_contract() {
    let directory = with(guests::HELLO);
    std::fs::write(directory.path().join("souk-test.toml"), SCORES).expect("a file");
    let passed = souk(directory.path(), &["test", "c.wasm"]);
    assert_eq!(passed.code, Some(0), "{}{}", passed.out, passed.err);
    assert!(passed.out.contains("hostile.servers"), "{}", passed.out);

    let flawed = with(guests::SMALL_TABLE);
    let settings = r#"{"flaw": "ignores_order"}"#;
    let args = [
        "test",
        "c.wasm",
        "--data",
        "c.wasm",
        "--settings",
        settings,
        "--json",
    ];
    let failed = souk(flawed.path(), &args);
    assert_eq!(failed.code, Some(1), "{}", failed.err);
    let report: Value = serde_json::from_str(&failed.out).expect("JSON");
    let findings = report["findings"].as_array().expect("findings");
    let order = findings
        .iter()
        .find(|found| found["check"] == "order.ascending");
    let order = order.expect("the check");
    assert_eq!(order["outcome"], "failed");
    assert!(
        order["advice"]
            .as_str()
            .is_some_and(|advice| advice.contains("ORDER BY"))
    );
}

/// Where projects are made anew and what they are built of is kept, which is most of the time that a first build takes. A project's own
/// `[workspace]` keeps it out of this one.
fn kept(name: &str) -> PathBuf {
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR"))
        .join("first-day")
        .join(name);
    std::fs::create_dir_all(&directory).expect("a directory");
    directory
}

/// A project that `new` makes. What the registry has been asked for already is taken from there.
fn new_project(directory: &Path, name: &str, kind: &str) -> PathBuf {
    let _ = std::fs::remove_dir_all(directory.join(name));
    let made = souk(directory, &["new", name, "--kind", kind]);
    assert_eq!(made.code, Some(0), "{}", made.err);
    let root = directory.join(name);
    let lock = Path::new(env!("CARGO_MANIFEST_DIR")).join("../Cargo.lock");
    std::fs::copy(lock, root.join("Cargo.lock")).expect("the lock file");
    root
}

/// One that is built and tested as its README says.
fn project(directory: &Path, kind: &str) -> PathBuf {
    let root = new_project(directory, &format!("my-{kind}"), kind);
    for args in [
        &["test", "--quiet"][..],
        &["build", "--quiet", "--release", "--target", "wasm32-wasip2"],
    ] {
        let mut cargo = Command::new("cargo");
        for (name, _) in std::env::vars_os() {
            let name = name.to_string_lossy().into_owned();
            let is_outer = name.starts_with("CARGO_") && name != "CARGO_HOME"
                || name == "RUSTC_WORKSPACE_WRAPPER";
            if is_outer {
                cargo.env_remove(name);
            }
        }
        let built = said(
            cargo
                .args(args)
                .current_dir(&root)
                .env("CARGO_TARGET_DIR", directory.join("target")),
        );
        assert_eq!(built.code, Some(0), "{kind}: {}{}", built.out, built.err);
    }
    directory.join(format!("target/wasm32-wasip2/release/my_{kind}.wasm"))
}

/// From nothing to a connector that conforms, for each kind: with what `new` has put there and nothing else.
#[tokio::test(flavor = "multi_thread")]
async fn a_new_project_builds_and_conforms() {
    let directory = kept("new");
    for kind in ["http", "file", "tcp"] {
        let component = project(&directory, kind);
        let component = component.to_str().expect("UTF-8");
        let root = directory.join(format!("my-{kind}"));
        let checked = souk(&root, &["check", component]);
        assert_eq!(checked.code, Some(0), "{}{}", checked.out, checked.err);
        let mut args = vec!["test", component];
        let redis = Redis::start().await;
        let (address, settings) = (redis.address(), redis.settings());
        if kind == "tcp" {
            redis.fill(&[
                &["SET", "greeting", "hello"],
                &["RPUSH", "fruits", "apple", "fig", "pear"],
            ]);
            args.extend(["--address", &address, "--settings", &settings]);
        }
        let tested = souk(&root, &args);
        assert_eq!(tested.code, Some(0), "{kind}: {}{}", tested.out, tested.err);
        for check in ["expected.query_1", "limits.rows"] {
            let passed = format!("passed   {check}");
            assert!(
                tested.out.contains(&passed),
                "{kind}, {check}: {}",
                tested.out
            );
        }
    }
}

/// What cannot be begun is explained.
#[test]
fn new_says_what_to_change() {
    let directory = TempDir::new().expect("a directory");
    let bad = souk(directory.path(), &["new", "My_Thing", "--kind", "tcp"]);
    assert_eq!(bad.code, Some(2));
    assert!(bad.err.contains("small letters"), "{}", bad.err);
    std::fs::create_dir(directory.path().join("taken")).expect("a directory");
    std::fs::write(directory.path().join("taken/x"), "").expect("a file");
    let taken = souk(directory.path(), &["new", "taken", "--kind", "tcp"]);
    assert_eq!(taken.code, Some(2));
    assert!(taken.err.contains("--dir"), "{}", taken.err);
    assert!(!directory.path().join("My_Thing").exists());
    // A host would say so of what is built with it, which is late.
    let bundled = souk(directory.path(), &["new", "postgres", "--kind", "tcp"]);
    assert_eq!(bundled.code, Some(0), "{}", bundled.err);
    assert!(bundled.out.contains("another name"), "{}", bundled.out);
}

/// There is a project for each kind in each language, whole and executable where it is run; `tests/first-day/run` builds those that need other tools.
#[test]
fn new_knows_each_kind_in_each_language() {
    let directory = TempDir::new().expect("a directory");
    for (language, build) in [("rust", "Cargo.toml"), ("python", "build"), ("js", "build")] {
        for kind in ["tcp", "http", "file"] {
            let name = format!("{language}-{kind}");
            let args = ["new", name.as_str(), "--lang", language, "--kind", kind];
            let begun = souk(directory.path(), &args);
            assert_eq!(begun.code, Some(0), "{name}: {}", begun.err);
            let root = directory.path().join(&name);
            for file in [build, "souk-test.toml", "README.md"] {
                assert!(root.join(file).exists(), "{name}: {file}");
            }
        }
    }
}

/// The SDK can be published and vendored: a package of it holds the contract and its example. (That it builds takes a minute: `tests/first-day/run rust`.)
#[test]
fn the_sdk_is_a_package() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let listed = said(
        Command::new("cargo")
            .args([
                "package",
                "-p",
                "souk-sdk",
                "--list",
                "--allow-dirty",
                "--offline",
            ])
            .current_dir(root),
    );
    assert_eq!(listed.code, Some(0), "{}", listed.err);
    for file in [
        "Cargo.toml",
        "README.md",
        "src/lib.rs",
        "src/example.rs",
        "src/testing.rs",
        "wit/v1/connector.wit",
        "wit/publisher-v1/publisher.wit",
    ] {
        assert!(
            listed.out.lines().any(|line| line == file),
            "{file}: {}",
            listed.out
        );
    }
}
