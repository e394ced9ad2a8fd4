//! Connectors of a running host, by commands: given to it, put to work, taken off, heard.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use souk_tests::command::Done;
use souk_tests::{Company, PgCluster, Running, TestHost, guests, souk};

use crate::compiled::other_bytes;

/// A host looks once a second.
pub const SEEN_WITHIN: Duration = Duration::from_secs(30);
/// Hosts that share a store share its master key too.
pub const MASTER_KEY: &str = "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f";

/// A file with a component in it, as a word of the command line.
pub fn file(directory: &Path, name: &str, wasm: &[u8]) -> String {
    let path = directory.join(name);
    std::fs::write(&path, wasm).expect("a file");
    path.to_string_lossy().into_owned()
}

/// `version status` of each version of a connector.
pub async fn versions(host: &TestHost, key: &str, name: &str) -> Vec<String> {
    let shown = host.ask(key, &["connector", "show", name, "--json"]).await;
    let shown = shown.ok().json();
    let versions = shown.as_array().expect("a list");
    let told = |member: &Value| member.as_str().unwrap_or_default().to_owned();
    versions
        .iter()
        .map(|version| format!("{} {}", told(&version["version"]), told(&version["status"])))
        .collect()
}

/// The whole life of a company's own connector, and of one of the platform's, without a word of HTTP.
#[tokio::test]
async fn connectors_of_a_running_host_are_handled_by_commands() {
    let host = TestHost::builder().start().await;
    let company = host.company("acme").await;
    let directory = tempfile::tempdir().expect("a directory");
    let first = file(directory.path(), "first.wasm", guests::FIXED_ROWS);
    let next = file(directory.path(), "next.wasm", guests::FIXED_ROWS_NEXT);
    let ask = async |words: &[&str]| -> Done {
        host.ask(&company.key, &[&["connector"], words].concat())
            .await
    };

    let added = ask(&["add", &first]).await.ok().out;
    assert!(
        added.contains("fixed-rows 1.0.0 is staged: `souk connector activate fixed-rows 1.0.0`"),
        "{added}"
    );
    let active = ask(&["activate", "fixed-rows", "1.0.0"]).await.ok().out;
    assert_eq!(active, "fixed-rows 1.0.0 is at work\n");
    let connection = company.nowhere("fixed").await;
    let concerned = ask(&["connections", "fixed-rows"]).await.ok().out;
    assert!(concerned.contains(&connection), "{concerned}");

    let replaced = ask(&["add", &next, "--activate", "--json"]).await.ok();
    assert_eq!(replaced.json()["status"], "active");
    assert_eq!(
        versions(&host, &company.key, "fixed-rows").await,
        ["1.0.0 retired", "2.0.0 active"]
    );
    ask(&["rollback", "fixed-rows"]).await.ok();
    let listed = ask(&["list", "--status", "active"]).await.ok().out;
    let line = listed.lines().find(|line| line.starts_with("fixed-rows"));
    let line = line.unwrap_or_else(|| panic!("no line in {listed}"));
    assert!(
        line.contains("1.0.0") && line.contains(&company.id),
        "{line}"
    );
    assert!(listed.starts_with("NAME") && listed.contains("postgres"));

    ask(&["remove", "fixed-rows", "1.0.0"])
        .await
        .refused("409 CONFLICT");
    ask(&["remove", "fixed-rows", "2.0.0"]).await.ok();
    let off = ask(&["deactivate", "fixed-rows", "--reason", "a test"]).await;
    assert!(off.ok().out.contains("fixed-rows 1.0.0 is "));
    assert_eq!(
        versions(&host, &company.key, "fixed-rows").await,
        ["1.0.0 retired"]
    );

    // The platform's are named so.
    let moody = file(directory.path(), "moody.wasm", guests::MOODY);
    let staged = host
        .operate(&["connector", "add", &moody, "--platform"])
        .await
        .ok()
        .out;
    // What is shown can be pasted.
    let (_, shown) = staged.split_once("`souk ").expect("a command");
    let (shown, _) = shown.split_once('`').expect("its end");
    assert!(shown.ends_with(" --platform"), "{staged}");
    let shown: Vec<&str> = shown.split(' ').collect();
    host.operate(&shown).await.ok();
    let add = [
        "connector",
        "add",
        &moody,
        "--platform",
        "--activate",
        "--json",
    ];
    let added = host.operate(&add).await.ok().json();
    assert_eq!(added["scope"], "platform");
    let refused = ask(&["deactivate", "moody", "--platform"]).await;
    refused
        .refused("403 INSUFFICIENT_ROLE")
        .refused("with one of role 5");
    host.operate(&["connector", "deactivate", "moody", "--platform"])
        .await
        .ok();
}

/// The component with a word for a kind of credentials that there is not.
fn flawed(wasm: &[u8]) -> Vec<u8> {
    let mut wasm = wasm.to_vec();
    let word = b"API_KEY";
    let at = wasm.windows(word.len()).position(|found| found == word);
    wasm[at.expect("its descriptor")] = b'U';
    wasm
}

/// Exit codes tell whose fault it is: 1 the connector's, 2 whoever asked for it, or the host's; and each refusal says what to do.
#[tokio::test]
async fn what_a_host_refuses_is_told_with_what_to_do() {
    let host = TestHost::builder().start().await;
    let company = host.company("refused").await;
    let directory = tempfile::tempdir().expect("a directory");
    let file = |name: &str, wasm: &[u8]| file(directory.path(), name, wasm);
    let ask = async |words: &[&str]| -> Done {
        host.ask(&company.key, &[&["connector"], words].concat())
            .await
    };
    // Most of it needs no host to be seen: nothing is sent then.
    let flawed = flawed(guests::FIXED_ROWS);
    let flawed = file("flawed.wasm", &flawed);
    let held = ask(&["add", &flawed]).await;
    assert_eq!(held.code, Some(1));
    held.refused("FAILED descriptor.credential_types")
        .refused("is no credential type")
        .refused("--unchecked");
    let push = ["push", &flawed, "oci://127.0.0.1:1/flawed:1.0"];
    assert_eq!(ask(&push).await.refused("given to nobody").code, Some(1));
    let nothing = ask(&["show", "fixed-rows"]).await;
    nothing.refused("404 CONNECTOR_NOT_FOUND");
    let wrong = file("wrong.wasm", guests::WRONG_WORLD);
    let held = ask(&["add", &wrong]).await.refused("another world");
    assert_eq!(held.code, Some(1));
    // Whoever insists hears the host.
    ask(&["add", &flawed, "--unchecked"]).await.ok();
    let wrong = ask(&["add", &wrong, "--unchecked"]).await;
    assert_eq!(wrong.code, Some(1));
    wrong
        .refused("400 CONNECTOR_INVALID")
        .refused("souk connector check FILE");
    let ill = ask(&["add", &file("ill.wasm", guests::UNHEALTHY), "--activate"]).await;
    assert_eq!(ill.code, Some(1));
    ill.refused("409 CONNECTOR_UNHEALTHY")
        .refused("what was at work before goes on");

    let nobody = ask(&["deactivate", "nobody"]).await;
    assert_eq!(nobody.code, Some(2));
    nobody
        .refused("404 CONNECTOR_NOT_FOUND")
        .refused("souk connector list");
    let absent = ask(&["add", "absent.wasm"]).await;
    assert_eq!(absent.code, Some(2));
    absent.refused("cannot read absent.wasm");
    let empty = ask(&["add", &directory.path().to_string_lossy()]).await;
    empty.refused("has neither a program \"build\" nor a Cargo.toml");
    let nowhere = ["connector", "list", "--url", "http://127.0.0.1:1"];
    let nowhere = souk(&nowhere, &[]).await;
    assert_eq!(nowhere.code, Some(2));
    nowhere.refused("cannot be reached");
}

/// What a connector prints is heard: the last lines, and the others when they are said.
#[tokio::test]
async fn a_connectors_words_are_followed() {
    let mut host = TestHost::builder().start().await;
    let company = host.company("heard").await;
    company.connector(guests::MOODY).await;
    let connection = company.nowhere("moody").await;
    let fields = json!({
        "result_type": "string", "sql_logic": "SELECT :wish",
        "parameters": [{"name": "wish", "type": "string", "required": true}],
    });
    let asset = company.asset(&connection, fields).await;
    let logs = ["connector", "logs", "moody"];
    let none = host.ask(&company.key, &logs).await.ok().out;
    assert_eq!(none, "");

    let environment = [
        ("SOUK_URL", host.base_url.as_str()),
        ("SOUK_API_KEY", company.key.as_str()),
    ];
    let follow = [&logs[..], &["-f"]].concat();
    let mut followed = Running::start(&host.data_dir, &follow, &environment);
    company
        .execute(&asset, json!({"wish": "prints"}))
        .await
        .expect(200);
    followed.says("a line for its author", 1).await;
    company.execute(&asset, json!({"wish": "panics"})).await;
    followed.says("x = 42", 1).await;
    let said = followed.said();
    assert!(said.contains(&connection), "{said}");
    assert_eq!(said.matches("a line for its author").count(), 1, "{said}");

    let last = [&logs[..], &["-n", "1", "--json"]].concat();
    let last = host.ask(&company.key, &last).await.ok();
    assert_eq!(last.out.lines().count(), 1, "{}", last.out);
    assert_eq!(last.json()["connection_id"], json!(connection));

    // A host that is away for a moment is waited for, and said once.
    assert!(host.stop().await.success());
    followed.says("waiting for it", 1).await;
}

/// A company with an asset of the engine `fixed`.
pub async fn sells_fixed(host: &TestHost, handle: &str) -> (Company, String) {
    let company = host.company(handle).await;
    let connection = company.nowhere("fixed").await;
    let fields = json!({"result_type": "string", "sql_logic": "SELECT label FROM fixed LIMIT 1"});
    let asset = company.asset(&connection, fields).await;
    (company, asset)
}

/// As many calls as make a version break too often.
async fn breaks(company: &Company, asset: &str) {
    for _ in 0..5 {
        let answer = company.execute(asset, json!({})).await;
        answer.expect_error(502, "CONNECTOR_FAULT");
    }
}

pub async fn label(company: &Company, asset: &str) -> String {
    let answer = company.execute(asset, json!({})).await.expect(200);
    answer.text("/data/answer_value")
}

async fn is_back(host: &TestHost, key: &str) {
    let begun = Instant::now();
    loop {
        let versions = versions(host, key, "fixed-rows").await;
        if versions[0] == "1.0.0 active" {
            return;
        }
        assert!(begun.elapsed() < SEEN_WITHIN, "{versions:?}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// A version that breaks on calls, which no health check sees, is left by itself for the one before: within seconds, with the reason at the version
/// and in the audit log, and once. What somebody puts to work again is watched again; what somebody has gone back to stays.
#[tokio::test]
async fn a_version_that_breaks_is_left_by_itself() {
    let mut host = TestHost::builder().start().await;
    let seller = host.company("early").await;
    seller.connector(guests::FIXED_ROWS).await;
    let connection = seller.nowhere("fixed").await;
    let fields = json!({"result_type": "string", "sql_logic": "SELECT label FROM fixed LIMIT 1"});
    let asset = seller.asset(&connection, fields).await;
    assert_eq!(label(&seller, &asset).await, "row 1");
    seller.connector(guests::FIXED_ROWS_FRAGILE).await;
    breaks(&seller, &asset).await;
    is_back(&host, &seller.key).await;
    assert_eq!(label(&seller, &asset).await, "row 1");

    let show = ["connector", "show", "fixed-rows", "--json"];
    // It is at work again a moment before the store has been told why.
    let begun = Instant::now();
    let shown = loop {
        let shown = host.ask(&seller.key, &show).await.ok().json();
        if !shown[1]["error"].is_null() || begun.elapsed() > SEEN_WITHIN {
            break shown;
        }
    };
    let error = shown[1]["error"].as_str().unwrap_or_default();
    assert!(
        error.contains("it broke 5 times in 5 calls") && error.contains("1.0.0 is at work again"),
        "{shown}"
    );
    let log = seller.path("/audit-log?operation=roll_back_connector");
    let log = seller.client.get(&log).await.expect(200);
    let lines = log.at("/data").as_array().map_or(0, Vec::len);
    assert!(lines > 0, "{}", log.body);
    // It outlives a restart, and so does the reason.
    assert!(host.stop().await.success());
    host.start_again().await;
    let seller = Company {
        client: host.client(&seller.key),
        ..seller
    };
    assert_eq!(label(&seller, &asset).await, "row 1");

    // Somebody insists, and is told again; whoever went back by hand is left alone.
    let activate = ["connector", "activate", "fixed-rows", "4.0.0"];
    host.ask(&seller.key, &activate).await.ok();
    breaks(&seller, &asset).await;
    is_back(&host, &seller.key).await;
    host.ask(&seller.key, &["connector", "rollback", "fixed-rows"])
        .await
        .ok();
    tokio::time::sleep(Duration::from_secs(2)).await;
    seller.execute(&asset, json!({})).await;
    let versions = versions(&host, &seller.key, "fixed-rows").await;
    assert_eq!(versions, ["1.0.0 retired", "4.0.0 active"]);
}

/// Of the platform's connectors, one company's calls alone decide nothing for the others: only faults that two have met.
#[tokio::test]
async fn one_company_does_not_take_a_version_from_all() {
    let host = TestHost::builder().start().await;
    let directory = tempfile::tempdir().expect("a directory");
    let good = file(directory.path(), "good.wasm", guests::FIXED_ROWS);
    let bad = file(directory.path(), "bad.wasm", guests::FIXED_ROWS_FRAGILE);
    let add = async |path: &str| {
        let add = ["connector", "add", path, "--platform", "--activate"];
        host.operate(&add).await.ok();
    };
    add(&good).await;
    let (one, first) = sells_fixed(&host, "one").await;
    let (other, second) = sells_fixed(&host, "other").await;
    add(&bad).await;
    breaks(&one, &first).await;
    // Three looks.
    tokio::time::sleep(Duration::from_secs(3)).await;
    let now = versions(&host, &one.key, "fixed-rows").await;
    assert_eq!(now, ["1.0.0 retired", "4.0.0 active"]);
    // Its first fault is enough, and the next call may be answered by the version of before already.
    let met = other.execute(&second, json!({})).await;
    met.expect_error(502, "CONNECTOR_FAULT");
    is_back(&host, &one.key).await;
    assert_eq!(label(&other, &second).await, "row 1");
}

/// A start does not miss the bytes of what was compiled before; the next upgrade does, and the doctor says so until then.
#[tokio::test]
async fn the_doctor_misses_what_is_lost_of_a_component() {
    let directory = tempfile::tempdir().expect("a directory");
    let data = directory.path().join("data");
    let mut host = TestHost::builder().data_dir(&data).start().await;
    let file = file(directory.path(), "fixed.wasm", guests::FIXED_ROWS);
    let add = ["connector", "add", &file, "--platform", "--activate"];
    host.operate(&add).await.ok();
    host.stop().await;
    let data_dir = data.to_string_lossy().into_owned();
    let doctor = ["doctor", "--data-dir", &data_dir, "--json"];
    let found = async |is: &str, found: &str| {
        let all = souk(&doctor, &[]).await.json();
        let all = all.as_array().expect("a list").clone();
        let one = all.iter().find(|one| one["check"] == "connectors");
        let one = one.expect("it is looked at");
        assert_eq!((&one["is"], &one["found"]), (&is.into(), &found.into()));
    };
    found("good", "1 versions are whole").await;
    let lost = "1 of 1 versions are missing or cut off: fixed-rows 1.0.0 (platform); upload them again, or restore a backup";
    for statement in [
        "UPDATE connector_chunks SET bytes = substr(bytes, 2)",
        "DELETE FROM connector_chunks",
    ] {
        let store = rusqlite::Connection::open(data.join("souk.db")).expect("the store");
        assert_eq!(store.execute(statement, []).expect("a store"), 1);
        drop(store);
        found("bad", lost).await;
    }
}

/// The bundled connector of PostgreSQL as its next version: what an operator would upload to mend something before the next release.
fn mended() -> Vec<u8> {
    let mut bundle = souk_plugins::bundle().iter();
    let (_, wasm) = bundle.find(|(name, _)| *name == "postgres").expect("it");
    let mut wasm = wasm.to_vec();
    let version = env!("CARGO_PKG_VERSION").as_bytes();
    let places: Vec<usize> = wasm
        .windows(version.len())
        .enumerate()
        .filter(|(_, found)| *found == version)
        .map(|(at, _)| at)
        .collect();
    for at in places {
        wasm[at + version.len() - 1] = b'9';
    }
    wasm
}

/// What comes with the host is what is gone back to from an upload of the same name, and stays so after a start; the same calls are answered all along.
#[tokio::test]
async fn an_uploaded_version_goes_back_to_the_bundled_one() {
    let cluster = PgCluster::shared().await;
    let database = cluster.database("").await;
    let mut host = TestHost::builder().start().await;
    let company = host.company("mended").await;
    let connection = company.postgres(cluster, &database).await;
    let fields = json!({"result_type": "string", "sql_logic": "SELECT 'here' AS one"});
    let asset = company.asset(&connection, fields).await;
    let at_work = async |host: &TestHost| -> String {
        let platform = host.ready["platform"]["api_key"].as_str().expect("a key");
        let mut versions = versions(host, platform, "postgres").await;
        versions.retain(|version| version.ends_with(" active"));
        versions.concat()
    };
    let bundled = at_work(&host).await;
    let directory = tempfile::tempdir().expect("a directory");
    let mended = file(directory.path(), "mended.wasm", &mended());
    let add = ["connector", "add", &mended, "--platform", "--activate"];
    host.operate(&add).await.ok();
    assert_ne!(at_work(&host).await, bundled);
    assert_eq!(label(&company, &asset).await, "here");

    let back = ["connector", "rollback", "postgres", "--platform"];
    host.operate(&back).await.ok();
    assert_eq!(at_work(&host).await, bundled);
    assert_eq!(label(&company, &asset).await, "here");
    host.stop().await;
    host.start_again().await;
    assert_eq!(at_work(&host).await, bundled);
    let company = Company {
        client: host.client(&company.key),
        ..company
    };
    assert_eq!(label(&company, &asset).await, "here");
    // And forth again.
    host.operate(&back).await.ok();
    assert_ne!(at_work(&host).await, bundled);
}

const SWAPS: usize = 20;

/// Two hosts of one store, and calls at both all the time: a version is put to work on the one and taken back on the other, again and again, and no
/// call fails.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn versions_are_swapped_on_two_hosts_under_load() {
    let cluster = PgCluster::shared().await;
    let url = cluster.url(&cluster.database("").await);
    let start = || {
        let host = TestHost::builder().arg("--database-url", &url);
        host.env("SOUK_MASTER_KEY", MASTER_KEY).start()
    };
    let one = start().await;
    let other = start().await;
    let directory = tempfile::tempdir().expect("a directory");
    let first = file(directory.path(), "first.wasm", guests::FIXED_ROWS);
    let next = file(directory.path(), "next.wasm", guests::FIXED_ROWS_NEXT);
    let platform = one.ready["platform"]["api_key"].as_str().expect("a key");
    let ask = async |host: &TestHost, words: &[&str]| {
        let words = [&["connector"], words, &["--platform"]].concat();
        host.ask(platform, &words).await.ok();
    };
    ask(&one, &["add", &first, "--activate"]).await;
    // The other lists it at once, whether it has it in memory already or not.
    assert_eq!(versions(&other, platform, "fixed-rows").await.len(), 1);
    ask(&one, &["add", &next]).await;
    let (seller, asset) = sells_fixed(&one, "swapped").await;
    let execute = seller.path(&format!("/assets/{asset}/execute"));
    // A key has a thousand calls an hour.
    let keys = seller.path("/api-keys");
    let listed = seller.client.get(&keys).await.expect(200);
    let key = format!("{keys}/{}", listed.text("/data/0/id"));
    let more = json!({"rate_limit": 1_000_000_000});
    seller.client.patch(&key, more).await.expect(200);
    is_at_work(&other, platform, "1.0.0").await;

    let stop = Arc::new(AtomicBool::new(false));
    let load: Vec<_> = [&one, &other, &one, &other]
        .map(|host| {
            let (client, execute, stop) = (host.client(&seller.key), execute.clone(), stop.clone());
            tokio::spawn(async move {
                let mut answered = 0;
                while !stop.load(Ordering::Relaxed) {
                    client.post(&execute, json!({})).await.expect(200);
                    answered += 1;
                }
                answered
            })
        })
        .into();
    for _ in 0..SWAPS / 2 {
        ask(&one, &["activate", "fixed-rows", "2.0.0"]).await;
        is_at_work(&other, platform, "2.0.0").await;
        ask(&other, &["rollback", "fixed-rows"]).await;
        is_at_work(&one, platform, "1.0.0").await;
    }
    stop.store(true, Ordering::Relaxed);
    for client in load {
        let answered = client.await.expect("no call fails");
        assert!(answered > SWAPS, "{answered}");
    }
    // Who goes back need not wait until the host that he asks has heard of the upgrade: it looks itself.
    for _ in 0..SWAPS / 2 {
        ask(&one, &["activate", "fixed-rows", "2.0.0"]).await;
        ask(&other, &["rollback", "fixed-rows"]).await;
        is_at_work(&other, platform, "1.0.0").await;
        is_at_work(&one, platform, "1.0.0").await;
    }
    // Nor need who takes it off.
    ask(&one, &["activate", "fixed-rows", "2.0.0"]).await;
    let off = [
        "connector",
        "deactivate",
        "fixed-rows",
        "--platform",
        "--json",
    ];
    let off = other.ask(platform, &off).await.ok().json();
    assert_eq!(off["version"], "2.0.0", "{off}");
}

/// What another host has put to work and cannot be loaded here, because a file has other bytes of the same version, is compiled for that once or twice,
/// and not for ever.
#[tokio::test]
async fn what_cannot_be_loaded_is_not_compiled_for_ever() {
    const QUIET: Duration = Duration::from_secs(5);
    const QUIET_WITHIN: Duration = Duration::from_secs(120);
    let cluster = PgCluster::shared().await;
    let url = cluster.url(&cluster.database("").await);
    let start = || {
        let host = TestHost::builder().arg("--database-url", &url);
        host.env("SOUK_MASTER_KEY", MASTER_KEY).compiles_uploads()
    };
    let one = start().start().await;
    let directory = tempfile::tempdir().expect("a directory");
    let own = other_bytes(guests::FIXED_ROWS);
    file(directory.path(), "own.wasm", &own);
    let path = directory.path().to_string_lossy();
    let other = start().arg("--connector-dir", path).start().await;
    let elsewhere = tempfile::tempdir().expect("a directory");
    let given = file(elsewhere.path(), "given.wasm", guests::FIXED_ROWS);
    let add = ["connector", "add", &given, "--platform", "--activate"];
    one.operate(&add).await.ok();
    let refused = || {
        let log = other.log();
        log.matches("cannot load a stored connector").count()
    };
    let begun = Instant::now();
    let (mut seen, mut since) = (0, Instant::now());
    while seen == 0 || since.elapsed() < QUIET {
        assert!(begun.elapsed() < QUIET_WITHIN, "{seen} times");
        tokio::time::sleep(Duration::from_millis(100)).await;
        let now = refused();
        if now != seen {
            (seen, since) = (now, Instant::now());
        }
    }
    let platform = one.ready["platform"]["api_key"].as_str().expect("a key");
    is_at_work(&other, platform, "1.0.0").await;
}

async fn is_at_work(host: &TestHost, key: &str, version: &str) {
    let (begun, wanted) = (Instant::now(), format!("{version} active"));
    loop {
        let versions = versions(host, key, "fixed-rows").await;
        if versions.contains(&wanted) {
            return;
        }
        assert!(begun.elapsed() < SEEN_WITHIN, "{versions:?}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}
