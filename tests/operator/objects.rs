//! Files that hosts share by an object store: uploaded through one, read by all, refused when they are not what was uploaded.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use souk_tests::client::Method;
use souk_tests::s3::S3;
use souk_tests::tls::TestCa;
use souk_tests::{Answer, Client, Company, PgCluster, TestHost, files as sources, souk};
use sqlx::{ConnectOptions, Connection};

use crate::connectors::MASTER_KEY;

/// What a loaded machine takes for what takes seconds.
const WITHIN: Duration = Duration::from_secs(90);
const PIECE_BYTES: usize = 8 << 20;
/// A host that follows another one compiles the connector of files for itself, 50 MB, while others use the machine.
const FOLLOWED_WITHIN: Duration = Duration::from_secs(480);
/// Of a Parquet that is longer than a piece: of each row a kilobyte cannot be made smaller than a half.
const ROWS: u32 = 20_000;

/// Two hosts on one PostgreSQL and one object store.
async fn pair(s3: &S3) -> (TestHost, TestHost) {
    let cluster = PgCluster::shared().await;
    let url = cluster.url(&cluster.database("SELECT 1").await);
    let start = || {
        let host = TestHost::builder().arg("--database-url", &url);
        s3.used_by(host).env("SOUK_MASTER_KEY", MASTER_KEY).start()
    };
    let one = start().await;
    (one, start().await)
}

/// A database with one value in it, and so many bytes that cannot be made smaller.
async fn database(value: u32, padding: u32) -> Vec<u8> {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("a.db");
    let mut db = sqlx::sqlite::SqliteConnectOptions::new()
        .filename(&path)
        .create_if_missing(true)
        .connect()
        .await
        .expect("a database");
    for sql in [
        format!("CREATE TABLE one AS SELECT {value} AS value"),
        format!("CREATE TABLE padding AS SELECT randomblob({padding}) AS bytes"),
    ] {
        let statement = sqlx::query(sqlx::AssertSqlSafe(sql));
        statement.execute(&mut db).await.expect("SQL");
    }
    db.close().await.expect("close");
    fs::read(&path).expect("the file")
}

/// A file with this value, and the path by which an asset that reads it is executed.
async fn asset(seller: &Company, file: &str, bytes: Vec<u8>) -> String {
    let connection = seller.sqlite(file, bytes).await;
    asking(seller, &connection, "SELECT value FROM one").await
}

/// The path by which an asset is executed that asks for this.
async fn asking(seller: &Company, connection: &str, sql: &str) -> String {
    let asset = seller.asset(connection, json!({"sql_logic": sql})).await;
    seller.path(&format!("/assets/{asset}/execute"))
}

/// A Parquet with this amount in each of its rows, as a feed writes it.
async fn parquet(seller: &Company, amount: u32) -> Vec<u8> {
    let table = format!(
        "CREATE TABLE many (id int PRIMARY KEY, amount int NOT NULL, noise text NOT NULL);
         INSERT INTO many SELECT n, {amount}, (SELECT string_agg(md5(n || '.' || i), '') FROM generate_series(1, 32) AS i)
             FROM generate_series(1, {ROWS}) AS n"
    );
    let cluster = PgCluster::shared().await;
    let database = cluster.database(&table).await;
    let connection = seller.postgres(cluster, &database).await;
    let fields = ["id", "amount", "noise"].map(|name| json!({"name": name}));
    let feed = json!({"slug": format!("many-{amount}"), "source": {"table": "many"}, "fields": fields, "order_by": ["id"]});
    let endpoint = seller.endpoint(&connection, feed).await;
    let path = seller.path(&format!("/endpoints/{endpoint}/execute?export=true"));
    let request = seller.client.request(Method::GET, &path);
    let request = request.header("accept", "application/vnd.apache.parquet");
    let answer = request.send().await.expect("an answer");
    assert_eq!(answer.status(), 200);
    answer.bytes().await.expect("a whole export").to_vec()
}

async fn execute(client: &Client, path: &str) -> Answer {
    client.post(path, json!({})).await
}

/// Waits until the answer is this value. Until then it may be the one before, or that the file is on its way.
async fn answers(client: &Client, path: &str, value: f64) {
    let since = Instant::now();
    loop {
        let answer = execute(client, path).await;
        if answer.at("/data/answer_value").as_f64() == Some(value) {
            return;
        }
        let is_waiting = matches!(answer.status.as_u16(), 200 | 503);
        assert!(is_waiting && since.elapsed() < WITHIN, "{}", answer.body);
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
}

async fn wait_for(what: &str, is_so: impl Fn() -> bool) {
    let since = Instant::now();
    while !is_so() {
        assert!(since.elapsed() < WITHIN, "{what}");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

/// The refusal of a file that this host cannot have now: the platform's fault, with a time to try again.
fn refused(answer: Answer, fault_code: &str) {
    let answer = answer.expect_error(503, "CONNECTOR_UNAVAILABLE");
    let details = answer.at("/error/details");
    assert_eq!(details["blame"], "host", "{}", answer.body);
    assert_eq!(details["fault_code"], fault_code, "{}", answer.body);
    assert_eq!(details["charged"], false, "{}", answer.body);
    let seconds: u64 = answer.header("retry-after").parse().expect("seconds");
    assert!((1..=60).contains(&seconds), "{seconds}");
    assert!(
        !answer.body.to_string().contains("127.0.0.1"),
        "{}",
        answer.body
    );
}

/// A bucket that is not there, and a key that is wrong, are told when a host starts, and not by whoever uploads first; where all is well nothing is.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_wrong_object_store_is_told_at_the_start() {
    const TOLD: &str = "the object store cannot be used";
    let s3 = S3::start().await;
    let elsewhere = s3.url().replace("s3://souk/", "s3://nobodys/");
    for (name, value) in [
        ("SOUK_FILES_URL", elsewhere.as_str()),
        ("SOUK_FILES_SECRET_ACCESS_KEY", "wrong"),
    ] {
        let host = s3.used_by(TestHost::builder()).env(name, value);
        let host = host.start().await;
        wait_for(name, || host.log().contains(TOLD)).await;
    }
    let host = s3.used_by(TestHost::builder()).start().await;
    let seller = host.company("seller").await;
    let file = seller.path("/files/a.db");
    let bytes = b"a file".to_vec();
    seller.client.put_bytes(&file, bytes).await.expect(201);
    let log = host.log();
    assert!(!log.contains(TOLD), "{log}");
}

/// What is uploaded through one host is served by the other, in pieces, fetched once for all who ask at once; so is what replaces it. What no
/// file names any more is deleted in the object store.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hosts_share_files() {
    let s3 = S3::start().await;
    let (one, other) = pair(&s3).await;
    let seller = one.company("seller").await;
    let large = database(1, 20_000_000).await;
    let pieces = large.len().div_ceil(PIECE_BYTES);
    let path = asset(&seller, "a.db", large).await;
    assert_eq!(s3.objects().len(), 1);
    execute(&one.client(&seller.key), &path).await.expect(200);
    assert_eq!(s3.reads(), 0, "the host that took it in has it");

    let calls: Vec<_> = (0..8)
        .map(|_| {
            let (client, path) = (other.client(&seller.key), path.clone());
            tokio::spawn(async move { answers(&client, &path, 1.0).await })
        })
        .collect();
    for call in calls {
        call.await.expect("an answer");
    }
    assert!(pieces > 1);
    assert_eq!(s3.reads(), pieces);

    let first = s3.objects();
    let file = seller.path("/files/a.db");
    let small = database(2, 10).await;
    seller.client.put_bytes(&file, small).await.expect(200);
    answers(&other.client(&seller.key), &path, 2.0).await;
    let spare = seller.path("/files/spare.db");
    let bytes = b"spare".to_vec();
    seller.client.put_bytes(&spare, bytes).await.expect(201);
    let second = s3.objects();
    seller.client.delete(&spare).await.expect(204);
    wait_for("objects are left that no file names", || {
        s3.objects().len() == 1
    })
    .await;
    let left = s3.objects();
    assert!(second.contains(&left[0]) && left != first, "{left:?}");
    answers(&other.client(&seller.key), &path, 2.0).await;
}

/// An object that somebody has changed is not served, whoever has it already goes on, and another upload heals it.
#[tokio::test]
async fn a_changed_object_is_refused() {
    let mut s3 = S3::start().await;
    let (one, other) = pair(&s3).await;
    let seller = one.company("seller").await;
    let path = asset(&seller, "a.db", database(1, 10).await).await;
    s3.stop();
    let object = &s3.objects()[0];
    let mut bytes = fs::read(object).expect("the object");
    *bytes.last_mut().expect("bytes") ^= 1;
    fs::write(object, bytes).expect("the object");
    s3.start_again().await;
    let there = other.client(&seller.key);
    refused(execute(&there, &path).await, "file_damaged");
    execute(&one.client(&seller.key), &path).await.expect(200);

    let file = seller.path("/files/a.db");
    let again = database(2, 10).await;
    seller.client.put_bytes(&file, again).await.expect(200);
    answers(&there, &path, 2.0).await;
}

/// While the object store is away, what a host has is served, also after a start; what it lacks is refused for a time, and an upload, which changes nothing then.
#[tokio::test]
async fn an_object_store_may_be_away() {
    let mut s3 = S3::start().await;
    let (one, mut other) = pair(&s3).await;
    let seller = one.company("seller").await;
    let here = asset(&seller, "here.db", database(1, 10).await).await;
    let away = asset(&seller, "away.db", database(2, 10).await).await;
    answers(&other.client(&seller.key), &here, 1.0).await;
    s3.stop();
    other.start_again().await;
    let there = other.client(&seller.key);
    execute(&there, &here).await.expect(200);
    refused(execute(&there, &away).await, "object_store_away");
    let new = seller.path("/files/new.db");
    let refusal = seller.client.put_bytes(&new, b"new".to_vec()).await;
    let refusal = refusal.expect_error(503, "SERVICE_UNAVAILABLE");
    assert!(!refusal.header("retry-after").is_empty());
    seller
        .client
        .get(&new)
        .await
        .expect_error(404, "FILE_NOT_FOUND");

    s3.start_again().await;
    answers(&there, &away, 2.0).await;
    let again = seller.client.put_bytes(&new, b"new".to_vec()).await;
    again.expect(201);
}

/// What a statement reads in parts, by its footer and by ranges, or finds in an archive, comes from there like any other file: it is read where it was
/// uploaded and where it was not, there once it has been fetched, and so is what replaces it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs the connector `files`: tests/run --all-engines"]
async fn real_files_come_from_an_object_store() {
    let s3 = S3::start().await;
    let (one, other) = pair(&s3).await;
    let platform = one.platform();
    sources::put_to_work(&platform).await;
    let follower = other.client(platform.key.as_deref().expect("a key"));
    let since = Instant::now();
    loop {
        let shown = follower.get("/connectors/files").await;
        if shown.at("/data/active_version").is_string() {
            break;
        }
        assert!(since.elapsed() < FOLLOWED_WITHIN, "{}", shown.body);
        tokio::time::sleep(Duration::from_secs(1)).await;
    }

    let seller = one.company("seller").await;
    let here = seller.client.clone();
    let there = other.client(&seller.key);
    let first = parquet(&seller, 1).await;
    let next = parquet(&seller, 2).await;
    assert!(first.len() > PIECE_BYTES, "{} bytes", first.len());
    let clubs = format!("id,club\n{ROWS},last\n");
    let folder =
        |many: &[u8]| sources::archive(&[("many.parquet", many), ("clubs.csv", clubs.as_bytes())]);
    let archive = folder(&first);
    let pieces = first.len().div_ceil(PIECE_BYTES) + archive.len().div_ceil(PIECE_BYTES);
    let many = seller.file("files", "many.parquet", first).await;
    let joined = seller.file("files", "many.tar", archive).await;
    let mut paths = Vec::new();
    for (connection, sql) in [
        (&many, "SELECT amount FROM many WHERE id = 12345"),
        (
            &many,
            "SELECT max(amount) FROM many WHERE length(noise) = 1024",
        ),
        (
            &joined,
            "SELECT max(amount) FROM many JOIN clubs ON many.id = clubs.id WHERE club = 'last'",
        ),
    ] {
        paths.push(asking(&seller, connection, sql).await);
    }
    for path in &paths {
        answers(&here, path, 1.0).await;
    }
    assert_eq!(s3.reads(), 0, "the host that took them in has them");
    for path in &paths {
        answers(&there, path, 1.0).await;
    }
    assert_eq!(s3.reads(), pieces);

    for (name, bytes) in [("many.tar", folder(&next)), ("many.parquet", next)] {
        let path = seller.path(&format!("/files/{name}"));
        here.put_bytes(&path, bytes).await.expect(200);
    }
    for path in &paths {
        answers(&here, path, 2.0).await;
        answers(&there, path, 2.0).await;
    }
}

fn files(host: &Path, directory: &str, company: &str) -> Vec<PathBuf> {
    let company = host.join(directory).join(company);
    let entries = fs::read_dir(company).into_iter().flatten().flatten();
    entries.map(|entry| entry.path()).collect()
}

/// What the doctor says of files.
fn of_files(found: &Value) -> (String, String) {
    let found = found.as_array().expect("checks");
    let files = found.iter().find(|one| one["check"] == "files");
    let files = files.expect("a check of files");
    let text = |name: &str| files[name].as_str().expect("a text").to_owned();
    (text("is"), text("found"))
}

/// Files of before there was an object store are brought there, and a host with an empty cache serves them. A backup says where they are, and
/// the doctor whether they are.
#[tokio::test]
async fn files_of_before_are_brought() {
    let data = tempfile::tempdir().expect("a directory");
    let mut s3 = S3::start().await;
    let mut host = TestHost::builder().data_dir(data.path()).start().await;
    let key = host.ready["platform"]["api_key"].as_str().expect("a key");
    let key = key.to_owned();
    let seller = host.company("seller").await;
    let path = asset(&seller, "a.db", database(1, 10).await).await;
    host.stop().await;

    let builder = s3.used_by(TestHost::builder().data_dir(data.path()));
    let mut host = builder.start().await;
    wait_for("the file is not brought", || {
        files(data.path(), "files", &seller.id).is_empty()
    })
    .await;
    assert_eq!(s3.objects().len(), 1);
    answers(&host.client(&seller.key), &path, 1.0).await;
    assert_eq!(s3.reads(), 0);
    let backups = tempfile::tempdir().expect("a directory");
    let to = backups.path().to_string_lossy().into_owned();
    let taken = host.ask(&key, &["backup", &to, "--json"]).await.ok();
    assert!(
        taken.err.contains("files are in s3://souk/eu/files"),
        "{}",
        taken.err
    );
    let taken = taken.json();
    assert_eq!(
        (&taken["files"], &taken["missing_files"]),
        (&json!(0), &json!([]))
    );

    host.stop().await;
    let cache = data.path().join("files-cache");
    fs::remove_dir_all(&cache).expect("a cache");
    let environment = s3.environment();
    let environment: Vec<(&str, &str)> = environment
        .iter()
        .map(|(name, value)| (*name, value.as_str()))
        .collect();
    let data_dir = data.path().to_string_lossy().into_owned();
    let doctor = ["doctor", "--data-dir", &data_dir, "--json"];
    let well = souk(&doctor, &environment).await.ok().json();
    let (is, found) = of_files(&well);
    assert_eq!(
        (&*is, &*found),
        ("good", "1 of companies are there, in s3://souk/eu/files")
    );
    host.start_again().await;
    answers(&host.client(&seller.key), &path, 1.0).await;
    assert_eq!(s3.reads(), 1);

    host.stop().await;
    s3.stop();
    fs::remove_file(&s3.objects()[0]).expect("the object");
    s3.start_again().await;
    let ill = souk(&doctor, &environment)
        .await
        .refused("checks are bad")
        .json();
    let (is, found) = of_files(&ill);
    assert!(
        is == "bad" && found.contains("1 of 1 are missing"),
        "{found}"
    );
}

/// An object store is believed by the authority that the operator names, and by no other.
#[tokio::test]
async fn an_object_store_is_reached_over_tls() {
    let authority = TestCa::new("the operator's");
    let s3 = S3::start_protected(&authority).await;
    let directory = tempfile::tempdir().expect("a directory");
    let other = TestCa::new("somebody else's");
    for (name, authority, status) in [("right", &authority, 201), ("wrong", &other, 503)] {
        let file = directory.path().join(name);
        fs::write(&file, authority.pem()).expect("a file");
        let url = format!("{}&sslrootcert={}", s3.url(), file.display());
        let host = s3.used_by(TestHost::builder()).arg("--files-url", &url);
        let host = host.start().await;
        let company = host.company("acme").await;
        let path = company.path("/files/a.db");
        let answer = company.client.put_bytes(&path, b"bytes".to_vec()).await;
        answer.expect(status);
    }
    assert_eq!(s3.objects().len(), 1);
}
