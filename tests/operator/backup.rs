//! Backups of a running host: what was answered before is in them, what was not whole is none, and what is restored is well.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant, SystemTime};

use serde_json::{Value, json};
use souk_tests::host::binary;
use souk_tests::postgres::program;
use souk_tests::{Client, Company, PgCluster, TestHost, guests, souk};

const CLIENTS: usize = 8;
const PRICE: u64 = 2;
/// For a charge of each client and one more: a loaded machine gets a hundred times as long as they take.
const LOADED_WITHIN: Duration = Duration::from_secs(60);

/// A paid asset, and a buyer with credits and calls for more than a test takes.
async fn market(host: &TestHost) -> (Company, String) {
    host.platform()
        .post_wasm("/connectors?activate=true", guests::FIXED_ROWS.to_vec())
        .await
        .expect(201);
    let seller = host.company("seller").await;
    let connection = seller.nowhere("fixed").await;
    let label = json!({"result_type": "string", "sql_logic": "SELECT label FROM fixed LIMIT 1"});
    let asset = seller.asset(&connection, label).await;
    seller.publish(&asset, PRICE).await;
    let buyer = host.buyer("buyer", 1_000_000).await;
    let keys = buyer.client.get(&buyer.path("/api-keys")).await.expect(200);
    let key = buyer.path(&format!("/api-keys/{}", keys.text("/data/0/id")));
    let more = json!({"rate_limit": 1_000_000_000});
    buyer.client.patch(&key, more).await.expect(200);
    (
        buyer.clone(),
        buyer.path(&format!("/assets/{asset}/execute")),
    )
}

/// Pays until it is told to stop; answers the transactions that were answered.
async fn pay(
    client: Client,
    path: String,
    stop: Arc<AtomicBool>,
    done: Arc<std::sync::Mutex<Vec<String>>>,
) {
    while !stop.load(Ordering::Relaxed) {
        let answer = client.post(&path, json!({})).await.expect(200);
        let transaction = answer.text("/meta/transaction_id");
        done.lock().expect("no panic").push(transaction);
    }
}

async fn transactions(client: &Client, buyer: &Company) -> BTreeSet<String> {
    let mut all = BTreeSet::new();
    for page in 1.. {
        let path = format!("/credits/transactions?type=charge&per_page=100&page={page}");
        let answer = client.get(&buyer.path(&path)).await.expect(200);
        let lines = answer.at("/data").as_array().expect("a list");
        all.extend(
            lines
                .iter()
                .map(|line| line["id"].as_str().expect("an id").to_owned()),
        );
        if lines.len() < 100 {
            break;
        }
    }
    all
}

fn archive(directory: &Path) -> PathBuf {
    let entries = fs::read_dir(directory).expect("a directory");
    let all: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    assert_eq!(all.len(), 1, "{all:?}");
    all[0].clone()
}

/// Under charged load no answered charge is missing that was answered before the backup was asked for; no call fails meanwhile; the books of
/// what is restored balance, its files are there, and it serves.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_answered_before_a_backup_is_missing() {
    let host = TestHost::builder().start().await;
    let (buyer, path) = market(&host).await;
    let content = b"SQLite format 3\0 and so on".to_vec();
    let file = buyer.path("/files/kept.db");
    buyer.client.put_bytes(&file, content).await.expect(201);

    let stop = Arc::new(AtomicBool::new(false));
    let done = Arc::new(std::sync::Mutex::new(Vec::new()));
    let load: Vec<_> = (0..CLIENTS)
        .map(|_| {
            let (client, path) = (host.client(&buyer.key), path.clone());
            tokio::spawn(pay(client, path, stop.clone(), done.clone()))
        })
        .collect();
    tokio::time::sleep(Duration::from_secs(1)).await;
    let since = Instant::now();
    while done.lock().expect("no panic").len() <= CLIENTS {
        assert!(since.elapsed() < LOADED_WITHIN, "no load");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let before: BTreeSet<String> = done.lock().expect("no panic").iter().cloned().collect();
    let backups = tempfile::tempdir().expect("a directory");
    let to = backups.path().to_string_lossy().into_owned();
    let taken = host.operate(&["backup", &to, "--json"]).await.ok().json();
    stop.store(true, Ordering::Relaxed);
    for client in load {
        client.await.expect("no call fails");
    }
    assert!(before.len() > CLIENTS, "no load");
    assert_eq!(taken["files"], 1, "{taken}");
    let left = fs::read_dir(&host.data_dir)
        .expect("the data directory")
        .flatten();
    let left: Vec<_> = left.map(|entry| entry.file_name()).collect();
    assert!(
        !left
            .iter()
            .any(|name| name.to_string_lossy().starts_with("backup-")),
        "{left:?}"
    );

    let archive = archive(backups.path()).to_string_lossy().into_owned();
    let data = backups.path().join("restored");
    let data_dir = data.to_string_lossy().into_owned();
    let restored = souk(
        &["restore", &archive, "--data-dir", &data_dir, "--json"],
        &[],
    )
    .await
    .ok();
    assert!(
        restored.err.contains("the master key is not in a backup"),
        "{}",
        restored.err
    );
    // Without its key the doctor says what is missing; with it, that all is well.
    let doctor = ["doctor", "--data-dir", &data_dir, "--json"];
    let ill = souk(&doctor, &[]).await.refused("checks are bad").json();
    assert_eq!(check(&ill, "master key")["is"], "bad", "{ill}");
    fs::copy(host.data_dir.join("master.key"), data.join("master.key")).expect("the key");
    let well = souk(&doctor, &[]).await.ok().json();
    for name in ["store", "master key", "books", "files", "file modes"] {
        assert_eq!(check(&well, name)["is"], "good", "{well}");
    }

    // A page of which a few bytes are others, as a disk that fails leaves them.
    let damaged = tempfile::tempdir().expect("a directory");
    for name in ["souk.db", "master.key"] {
        fs::copy(data.join(name), damaged.path().join(name)).expect("a copy");
    }
    let store = damaged.path().join("souk.db");
    let mut bytes = fs::read(&store).expect("the store");
    let page = bytes.len() / 4_096 / 2 * 4_096;
    bytes[page..page + 8].fill(0xff);
    fs::write(&store, &bytes).expect("the store");
    let damaged_dir = damaged.path().to_string_lossy();
    let doctor = ["doctor", "--data-dir", &*damaged_dir, "--json"];
    let ill = souk(&doctor, &[]).await.refused("checks are bad").json();
    let found = ill.to_string();
    assert!(found.contains("restore a backup"), "{found}");

    let again = TestHost::builder().data_dir(&data).start().await;
    let client = again.client(&buyer.key);
    let kept = transactions(&client, &buyer).await;
    let missing: Vec<_> = before.difference(&kept).collect();
    assert!(
        missing.is_empty(),
        "{} of {} are missing",
        missing.len(),
        before.len()
    );
    let key = host.ready["platform"]["api_key"].as_str().expect("a key");
    let books = again.ask(key, &["reconcile", "--json"]).await.ok().json();
    assert_eq!(books["balanced"], true, "{books}");
    client.post(&path, json!({})).await.expect(200);
}

fn check<'a>(found: &'a Value, name: &str) -> &'a Value {
    let found_one = found
        .as_array()
        .and_then(|all| all.iter().find(|one| one["check"] == name));
    found_one.unwrap_or_else(|| panic!("no {name} in {found}"))
}

/// An archive that was cut off or changed is refused, by whole sentences, and leaves nothing behind; nor does one overwrite a store.
#[tokio::test]
async fn what_is_not_whole_is_not_restored() {
    let host = TestHost::builder().start().await;
    host.company("kept").await;
    let backups = tempfile::tempdir().expect("a directory");
    let to = backups.path().to_string_lossy().into_owned();
    host.operate(&["backup", &to]).await.ok();
    let whole = fs::read(archive(backups.path())).expect("the archive");

    let place = tempfile::tempdir().expect("a directory");
    let (file, target) = (place.path().join("a.tar"), place.path().join("data"));
    let (file_text, target_text) = (
        file.to_string_lossy().into_owned(),
        target.to_string_lossy().into_owned(),
    );
    let restore = [
        "restore",
        file_text.as_str(),
        "--data-dir",
        target_text.as_str(),
    ];
    // Without the last entry: its block, its header, and the two blocks of the end.
    fs::write(&file, &whole[..whole.len() / 2]).expect("a file");
    let cut = souk(&restore, &[]).await;
    assert!(cut.err.contains("cut off"), "{}", cut.err);
    let mut damaged = whole.clone();
    let middle = damaged.len() / 2;
    damaged[middle] ^= 1;
    fs::write(&file, &damaged).expect("a file");
    souk(&restore, &[])
        .await
        .refused("the store in the archive is damaged");
    fs::write(&file, b"not an archive at all").expect("a file");
    assert!(!souk(&restore, &[]).await.succeeded);
    let left = fs::read_dir(place.path()).expect("a directory").count();
    assert_eq!(left, 1, "something is left behind");

    fs::write(&file, &whole).expect("a file");
    souk(&restore, &[]).await.ok();
    souk(&restore, &[]).await.refused("is not empty");
    let live = host.data_dir.to_string_lossy().into_owned();
    let over = souk(&["restore", &file_text, "--data-dir", &live], &[]).await;
    over.refused("is not empty");

    // Who may not have everything gets nothing.
    let company = host.company("curious").await;
    let refused = host.ask(&company.key, &["backup", &to]).await;
    refused.refused("403 INSUFFICIENT_ROLE");
    let head = host
        .platform()
        .request(reqwest::Method::HEAD, "/admin/backup");
    assert_eq!(head.send().await.expect("an answer").status(), 405);
}

/// A directory that is there, as the mount point of a disk of its own is, is filled and not replaced, and one that cannot be is as it was.
#[tokio::test]
async fn an_empty_disk_is_restored_to() {
    let host = TestHost::builder().start().await;
    let company = host.company("moved").await;
    let file = company.path("/files/kept.db");
    let put = company.client.put_bytes(&file, b"whole".to_vec()).await;
    put.expect(201);
    let backups = tempfile::tempdir().expect("a directory");
    let to = backups.path().to_string_lossy().into_owned();
    host.operate(&["backup", &to]).await.ok();
    let archive = archive(backups.path());
    let disk = tempfile::tempdir().expect("a directory");
    fs::create_dir(disk.path().join("lost+found")).expect("a directory");
    let before = fs::metadata(disk.path()).expect("the directory").ino();
    let names = || {
        let entries = fs::read_dir(disk.path()).expect("the directory").flatten();
        let names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
        names.collect::<BTreeSet<String>>()
    };

    let cut = backups.path().join("cut.tar");
    let whole = fs::read(&archive).expect("the archive");
    fs::write(&cut, &whole[..whole.len() / 2]).expect("a file");
    let data_dir = disk.path().to_string_lossy();
    let restore = async |archive: &Path| {
        let archive = archive.to_string_lossy();
        souk(&["restore", &*archive, "--data-dir", &*data_dir], &[]).await
    };
    assert!(!restore(&cut).await.succeeded);
    assert_eq!(names(), BTreeSet::from(["lost+found".to_owned()]));
    restore(&archive).await.ok();
    let kept = ["files", "lost+found", "souk.db"].map(str::to_owned);
    assert_eq!(names(), BTreeSet::from(kept));
    let after = fs::metadata(disk.path()).expect("the directory");
    assert_eq!(after.ino(), before, "another directory is there");
    restore(&archive).await.refused("is not empty");
}

/// A file that the host's disk has damaged is told, by a backup and by a restore, and left out; everything else is there.
#[tokio::test]
async fn a_damaged_file_is_no_reason_to_be_without_a_backup() {
    let host = TestHost::builder().start().await;
    let company = host.company("rotten").await;
    for name in ["cut.csv", "rotten.csv", "whole.csv"] {
        let file = company.path(&format!("/files/{name}"));
        let put = company
            .client
            .put_bytes(&file, b"a,b\n".repeat(1_000))
            .await;
        put.expect(201);
    }
    let uploads = host.data_dir.join("files").join(&company.id);
    let of = |uploads: &Path, name: &str| {
        let entries = fs::read_dir(uploads).expect("the company's directory");
        let mut files = entries.flatten().map(|entry| entry.path().join(name));
        files.find(|path| path.exists())
    };
    let rotten = of(&uploads, "rotten.csv").expect("the file");
    let mut bytes = fs::read(&rotten).expect("the file");
    bytes[100] ^= 1;
    fs::write(&rotten, bytes).expect("the file");
    let cut = of(&uploads, "cut.csv").expect("the file");
    fs::write(&cut, "a,b\n").expect("the file");

    let backups = tempfile::tempdir().expect("a directory");
    let to = backups.path().join("archives");
    let to_text = to.to_string_lossy().into_owned();
    let taken = host.operate(&["backup", &to_text, "--json"]).await.ok();
    assert!(taken.err.contains("2 of the files"), "{}", taken.err);
    let told = taken.json()["damaged_files"].to_string();
    assert!(!told.contains("whole"), "{told}");
    for name in ["cut.csv", "rotten.csv"] {
        assert!(told.contains(name), "{told}");
    }
    let (archive, data) = (archive(&to), backups.path().join("restored"));
    let (archive, data_dir) = (archive.to_string_lossy(), data.to_string_lossy());
    let restore = ["restore", &*archive, "--data-dir", &*data_dir, "--json"];
    let restored = souk(&restore, &[]).await.ok();
    assert_eq!(restored.json()["damaged_files"].to_string(), told);
    let uploads = data.join("files").join(&company.id);
    assert!(of(&uploads, "whole.csv").is_some() && data.join("souk.db").exists());
    for name in ["cut.csv", "rotten.csv"] {
        assert_eq!(of(&uploads, name), None);
    }
}

/// A backup goes through a pipe into a restore, without an archive in between; nothing of one that breaks off is left.
#[tokio::test]
async fn a_backup_is_piped_into_a_restore() {
    let host = TestHost::builder().start().await;
    let company = host.company("piped").await;
    let place = tempfile::tempdir().expect("a directory");
    let piped = |key: &str, data: &Path| {
        let mut command = Command::new("bash");
        let pipe = r#"set -o pipefail; "$0" backup - | "$0" restore - --data-dir "$1""#;
        command.args(["-c", pipe]).arg(binary()).arg(data);
        command.env("SOUK_URL", &host.base_url);
        command.env("SOUK_API_KEY", key);
        tokio::task::spawn_blocking(move || command.output().expect("bash"))
    };
    let data = place.path().join("data");
    let key = host.ready["platform"]["api_key"].as_str().expect("a key");
    let done = piped(key, &data).await.expect("a thread");
    let said = String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success(), "{said}");
    assert!(said.contains("the master key is not in a backup"), "{said}");
    fs::copy(host.data_dir.join("master.key"), data.join("master.key")).expect("the key");
    let again = TestHost::builder().data_dir(&data).start().await;
    let mine = again.client(&company.key).get("/companies/me").await;
    assert_eq!(mine.expect(200).text("/data/id"), company.id);

    let nothing = place.path().join("nothing");
    let refused = piped(&company.key, &nothing).await.expect("a thread");
    let said = String::from_utf8_lossy(&refused.stderr);
    assert!(!refused.status.success(), "{said}");
    assert!(said.contains("403 INSUFFICIENT_ROLE"), "{said}");
    assert!(!nothing.exists(), "{said}");
}

/// What a host needed that was killed, for a backup that it was sending and for uploads that it was taking in, is removed by its next start. What was whole
/// stays, and so does what has another name.
#[tokio::test]
async fn what_died_with_its_host_is_removed() {
    const UPLOAD: &str = "fil_0123456789abcdefghijkl";
    let mut host = TestHost::builder().start().await;
    let company = host.company("left").await;
    let file = company.path("/files/kept.db");
    let put = company.client.put_bytes(&file, b"whole".to_vec()).await;
    put.expect(201);
    host.kill();
    let data = &host.data_dir;
    let uploads = data.join("files").join(&company.id);
    let left = [
        data.join(format!("backup-{UPLOAD}")),
        uploads.join(format!("{UPLOAD}.part")),
    ];
    let kept = [data.join("backup-2026"), uploads.join(UPLOAD)];
    for directory in left.iter().chain(&kept) {
        fs::create_dir(directory).expect("a directory");
        fs::write(directory.join("a.db"), "bytes").expect("a file");
    }
    host.start_again().await;
    assert!(left.iter().all(|directory| !directory.exists()));
    assert!(kept.iter().all(|directory| directory.exists()));
    let again = host.client(&company.key).get(&file).await.expect(200);
    assert_eq!(again.at("/data/size_bytes"), 5);
}

/// Of a host on PostgreSQL a backup holds the files, and says what else is to be done: with that, as docs/operations.md has it, a host stands again.
#[tokio::test]
async fn a_backup_beside_postgres_holds_the_files() {
    let cluster = PgCluster::shared().await;
    let url = cluster.url(&cluster.database("").await);
    let host = TestHost::builder()
        .arg("--database-url", &url)
        .start()
        .await;
    let seller = host.company("files").await;
    let file = seller.path("/files/kept.db");
    let content = b"SQLite format 3\0".to_vec();
    let uploaded = seller.client.put_bytes(&file, content).await;
    uploaded.expect(201);
    let backups = tempfile::tempdir().expect("a directory");
    let dump = backups.path().join("souk.dump");
    let dump = dump.to_str().expect("text");
    tool("pg_dump", &["--format", "custom", "--file", dump, &url]);
    let archives = backups.path().join("archives");
    let to = archives.to_string_lossy().into_owned();
    let taken = host.operate(&["backup", &to]).await.ok();
    assert!(taken.err.contains("pg_dump"), "{}", taken.err);
    let key = fs::read(host.data_dir.join("master.key")).expect("the key");
    drop(host);

    let anew = cluster.url(&cluster.database("").await);
    tool("pg_restore", &["--exit-on-error", "--dbname", &anew, dump]);
    let data = backups.path().join("restored");
    let archive = archive(&archives).to_string_lossy().into_owned();
    let data_dir = data.to_string_lossy().into_owned();
    souk(&["restore", &archive, "--data-dir", &data_dir], &[])
        .await
        .ok();
    assert!(data.join("files").is_dir() && !data.join("souk.db").exists());
    fs::write(data.join("master.key"), key).expect("the key");
    let again = TestHost::builder()
        .data_dir(&data)
        .arg("--database-url", &anew)
        .start()
        .await;
    let files = again.client(&seller.key).get(&seller.path("/files")).await;
    assert_eq!(files.expect(200).text("/data/0/name"), "kept.db");
    let doctor = ["doctor", "--data-dir", &data_dir, "--json"];
    let well = souk(&doctor, &[("SOUK_DATABASE_URL", &anew)]).await.json();
    for name in ["master key", "files"] {
        assert_eq!(check(&well, name)["is"], "good", "{well}");
    }
}

/// A program of PostgreSQL's does what it is told.
fn tool(name: &str, arguments: &[&str]) {
    let done = Command::new(program(name)).args(arguments).output();
    let done = done.expect("it runs");
    let said = String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success(), "{name}: {said}");
}

/// What a backup left that was killed is removed by one a day later; what is on its way, or is no backup's, stays.
#[tokio::test]
async fn what_a_killed_backup_left_goes_with_a_later_one() {
    const HOUR: Duration = Duration::from_secs(3_600);
    let host = TestHost::builder().start().await;
    let directory = tempfile::tempdir().expect("a directory");
    let left = |name: &str, age: Duration| {
        let path = directory.path().join(name);
        let file = fs::File::create(&path).expect("a file");
        file.set_modified(SystemTime::now() - age).expect("a time");
        path
    };
    let old = left("souk-backup-aaaaaa.part", 25 * HOUR);
    let kept = [
        left("souk-backup-bbbbbb.part", HOUR),
        left("notes.part", 25 * HOUR),
    ];
    let to = directory.path().to_string_lossy().into_owned();
    let taken = host.operate(&["backup", &to]).await.ok();
    assert!(
        taken.err.contains("souk-backup-aaaaaa.part"),
        "{}",
        taken.err
    );
    assert!(!old.exists());
    for path in kept {
        assert!(path.exists(), "{}", path.display());
    }
}
