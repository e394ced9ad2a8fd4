//! A disk that is full, seen by those who call.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use serde_json::json;
use souk_tests::{Answer, PgCluster, TestHost, guests};

use crate::connectors::{MASTER_KEY, versions};

/// A host that is behind tries again every half minute, and a debug build takes its time.
const CAUGHT_UP_WITHIN: Duration = Duration::from_secs(180);
/// The log applier tries again at its own pace.
const WELL_WITHIN: Duration = Duration::from_secs(60);

/// A file system of its own. Unmounted when it is dropped.
struct SmallDisk(tempfile::TempDir);

impl SmallDisk {
    /// `None`: this process may not mount.
    fn mount(size: &str) -> Option<SmallDisk> {
        let directory = tempfile::tempdir().expect("a directory");
        let mounted = Command::new("mount")
            .args(["-t", "tmpfs", "-o", &format!("size={size}"), "tmpfs"])
            .arg(directory.path())
            .output();
        let is_mounted = mounted.is_ok_and(|output| output.status.success());
        is_mounted.then_some(SmallDisk(directory))
    }

    fn ballast(&self) -> PathBuf {
        self.0.path().join("ballast")
    }

    /// Down to the last byte.
    fn fill(&self) {
        let mut file = std::fs::File::options()
            .append(true)
            .create(true)
            .open(self.ballast())
            .expect("a file");
        for size in [1 << 20, 4096, 1] {
            while file.write_all(&vec![1; size]).is_ok() {}
        }
    }

    fn make_room(&self) {
        std::fs::remove_file(self.ballast()).expect("a file");
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let path: &Path = self.0.path();
        Command::new("umount").arg("-l").arg(path).status().ok();
    }
}

/// While the disk of the host is full, whatever has to be written is answered 503 with `Retry-After`, on every route, and costs nothing; what is
/// said of it is no `INTERNAL_ERROR`, and no fault of what was uploaded. With room it goes on by itself.
#[tokio::test]
async fn a_full_disk_is_unavailable_on_every_route() {
    let Some(disk) = SmallDisk::mount("512m") else {
        // Not with `println!`, which is shown of tests that fail only; `tests/side-by-side` repeats it at the end.
        let reason =
            "SKIPPED: a full disk was not tried, this process may not mount a small file system";
        writeln!(std::io::stderr(), "{reason}").ok();
        return;
    };
    let data_dir = disk.0.path().join("data");
    let host = TestHost::builder().data_dir(&data_dir).start().await;
    let seller = host.company("seller").await;
    seller.connector(guests::FIXED_ROWS).await;
    let connection = seller.nowhere("fixed").await;
    let asset = json!({"result_type": "string", "sql_logic": "SELECT label FROM fixed LIMIT 1"});
    let asset = seller.asset(&connection, asset).await;
    seller.publish(&asset, 1).await;
    let buyer = host.buyer("buyer", 1_000_000).await;
    buyer.execute(&asset, json!({})).await.expect(200);
    let before = buyer.credits().await;

    disk.fill();
    let file = seller.path("/files/rows.db");
    let refused = seller.client.put_bytes(&file, vec![7; 1 << 20]).await;
    is_unavailable("a file", &refused);
    let connectors = seller.path("/connectors");
    let wasm = guests::FIXED_ROWS_NEXT.to_vec();
    let refused = seller.client.post_wasm(&connectors, wasm).await;
    is_unavailable("a connector", &refused);
    // SQLite writes into pages that it has until it needs another one; the charge log has room of its own.
    let mut charged = 0;
    let begun = Instant::now();
    loop {
        let answer = buyer.execute(&asset, json!({})).await;
        if answer.status == 200 {
            charged += 1;
            assert!(
                begun.elapsed() < WELL_WITHIN,
                "{charged} charges, and room for more"
            );
            if charged % 100 != 0 {
                continue;
            }
        } else {
            is_unavailable("a charge", &answer);
            break;
        }
    }
    for (what, path, body) in [
        (
            "a company",
            "/admin/companies".to_owned(),
            json!({"name": "Late Ltd", "handle": "late", "contact_email": "late@example.com"}),
        ),
        (
            "a key",
            seller.path("/api-keys"),
            json!({"name": "late", "role_id": 4}),
        ),
        (
            "an asset",
            seller.path("/assets"),
            json!({"connection_id": connection, "asset_type": "CALCULATION", "name": "late", "slug": "late",
            "result_type": "string", "sql_logic": "SELECT label FROM fixed LIMIT 1"}),
        ),
    ] {
        let client = if what == "a company" {
            host.platform()
        } else {
            seller.client.clone()
        };
        is_unavailable(what, &client.post(&path, body).await);
    }
    let read = seller.client.get(&seller.path("/assets")).await;
    is_unavailable("a list", &read);
    host.anonymous().get("/healthz").await.expect(200);

    disk.make_room();
    let begun = Instant::now();
    while buyer.execute(&asset, json!({})).await.status != 200 {
        assert!(begun.elapsed() < WELL_WITHIN, "there is room again");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    let after = buyer.credits().await;
    assert_eq!(
        after,
        (before.0 - charged - 1, 0),
        "only what was answered is charged"
    );
    seller
        .client
        .put_bytes(&file, vec![7; 1 << 20])
        .await
        .expect(201);
}

fn is_unavailable(what: &str, answer: &Answer) {
    let told = format!("{what}: {} {}", answer.status, answer.body);
    assert_eq!(answer.status, 503, "{told}");
    assert_eq!(answer.at("/error/code"), "SERVICE_UNAVAILABLE", "{told}");
    assert!(!answer.header("retry-after").is_empty(), "{told}");
}

/// The same component in other bytes, which no host has compiled before.
fn anew(wasm: &[u8]) -> Vec<u8> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    let now = now.expect("a clock").as_nanos().to_le_bytes();
    let section = [&b"\x04test"[..], &now].concat();
    // A custom section, and its length.
    let head = [0, section.len() as u8];
    [wasm, &head, &section].concat()
}

/// A host whose disk was full when another one of the store put a version to work has it at work, too, once there is room.
#[tokio::test]
async fn a_host_whose_disk_was_full_catches_up() {
    let Some(disk) = SmallDisk::mount("512m") else {
        let reason = "SKIPPED: a full disk of one of two hosts was not tried, this process may not mount a small file system";
        writeln!(std::io::stderr(), "{reason}").ok();
        return;
    };
    let cluster = PgCluster::shared().await;
    let url = cluster.url(&cluster.database("").await);
    let shared = || {
        TestHost::builder()
            .arg("--database-url", &url)
            .env("SOUK_MASTER_KEY", MASTER_KEY)
    };
    let first = shared().start().await;
    let data_dir = disk.0.path().join("data");
    let second = shared().data_dir(&data_dir).start().await;
    let key = first.ready["platform"]["api_key"].as_str().expect("a key");
    let follows = async |wanted: &str| {
        let begun = Instant::now();
        loop {
            let seen = versions(&second, key, "fixed-rows").await;
            if seen.iter().any(|version| version == wanted) {
                return;
            }
            assert!(begun.elapsed() < CAUGHT_UP_WITHIN, "{wanted}: {seen:?}");
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    };
    let upload = async |wasm: &[u8]| {
        let path = "/connectors?activate=true";
        let uploaded = first.platform().post_wasm(path, wasm.to_vec()).await;
        uploaded.expect(201);
    };
    upload(guests::FIXED_ROWS).await;
    follows("1.0.0 active").await;
    disk.fill();
    upload(&anew(guests::FIXED_ROWS_LATER)).await;
    follows("5.0.0 rejected").await;
    let seen = versions(&second, key, "fixed-rows").await;
    assert!(seen.contains(&"1.0.0 active".to_owned()), "{seen:?}");
    disk.make_room();
    follows("5.0.0 active").await;
}
