//! The master key: a wrong one is noticed at the start, a leaked one is replaced for good, and nobody else reads it.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;

use serde_json::{Value, json};
use souk_tests::platforms::WEBHOOK_SECRET;
use souk_tests::{Company, PgCluster, TestHost, souk};

const OLD: &str = "0101010101010101010101010101010101010101010101010101010101010101";
const NEW: &str = "0202020202020202020202020202020202020202020202020202020202020202";

async fn start_fails(data: &Path, environment: &[(&str, &str)], why: &str) {
    let data = data.to_string_lossy();
    let serve = ["serve", "--listen", "127.0.0.1:0", "--data-dir", &data];
    let failed = souk(&serve, environment).await.refused(why);
    // One sentence, and nothing else that has to be read.
    assert_eq!(failed.err.matches("souk: ").count(), 1, "{}", failed.err);
}

/// A store opens with the key that it was sealed with, and with no other; a lost key is not replaced by a new one without a word.
#[tokio::test]
async fn a_wrong_or_missing_master_key_is_refused_at_the_start() {
    let mut host = TestHost::builder().start().await;
    host.company("sealed").await;
    assert!(host.stop().await.success());
    let (data, key) = (host.data_dir.clone(), host.data_dir.join("master.key"));
    let kept = fs::read_to_string(&key).expect("the key");

    fs::remove_file(&key).expect("a loss");
    start_fails(
        &data,
        &[],
        "the master key is missing: this store was sealed with one",
    )
    .await;
    assert!(!key.exists(), "a new key was made");
    let other = [("SOUK_MASTER_KEY", NEW)];
    start_fails(
        &data,
        &other,
        "this store was sealed with another master key",
    )
    .await;
    fs::write(&key, NEW).expect("another key");
    start_fails(&data, &[], "this store was sealed with another master key").await;

    fs::write(&key, kept).expect("the key");
    host.start_again().await;
}

/// A second host of a PostgreSQL store that was given no key, or another one, does not start.
#[tokio::test]
async fn hosts_that_share_a_store_share_its_master_key() {
    let cluster = PgCluster::shared().await;
    let url = cluster.url(&cluster.database("").await);
    let first = TestHost::builder()
        .arg("--database-url", &url)
        .env("SOUK_MASTER_KEY", OLD)
        .start()
        .await;
    let data = tempfile::tempdir().expect("a directory");
    let on_store = ("SOUK_DATABASE_URL", url.as_str());
    let without = [on_store];
    start_fails(data.path(), &without, "the master key is missing").await;
    let other = [on_store, ("SOUK_MASTER_KEY", NEW)];
    start_fails(data.path(), &other, "sealed with another master key").await;
    TestHost::builder()
        .arg("--database-url", &url)
        .env("SOUK_MASTER_KEY", OLD)
        .start()
        .await;
    drop(first);
}

/// Which of several keys is wrong is said, and what is wrong with it.
#[tokio::test]
async fn a_key_that_is_none_is_named() {
    let data = tempfile::tempdir().expect("a directory");
    let bad = [("SOUK_MASTER_KEY", "short")];
    start_fails(
        data.path(),
        &bad,
        "--master-key (SOUK_MASTER_KEY): a master key is 32 bytes",
    )
    .await;
    let old = format!("{OLD},short");
    let bad = [
        ("SOUK_MASTER_KEY", NEW),
        ("SOUK_MASTER_KEY_OLD", old.as_str()),
    ];
    start_fails(
        data.path(),
        &bad,
        "--master-key-old (SOUK_MASTER_KEY_OLD), number 2",
    )
    .await;
    let data = tempfile::tempdir().expect("a directory");
    fs::write(data.path().join("master.key"), "short").expect("a file");
    start_fails(data.path(), &[], "master.key: a master key is 32 bytes").await;
}

/// A seller with every kind of secret.
async fn secretive(host: &TestHost, handle: &str) -> (Company, String, String) {
    let cluster = PgCluster::shared().await;
    let seller = host.company(handle).await;
    let database = cluster.database("").await;
    let connection = seller.postgres(cluster, &database).await;
    let hook = json!({"url": "http://127.0.0.1:1/", "event_types": ["credits.low"]});
    let hook = seller.client.post(&seller.path("/webhooks"), hook).await;
    let hook = hook.expect(201).text("/data/id");
    let rotate = seller.path(&format!("/webhooks/{hook}/rotate-secret"));
    seller.client.post(&rotate, json!({})).await.expect(200);
    let method = json!({"type": "paypal", "account_holder": "S", "destination": "s@example.com"});
    seller
        .client
        .request(reqwest::Method::PUT, &seller.path("/payout-method"))
        .json(&method)
        .send()
        .await
        .expect("an answer")
        .error_for_status()
        .expect("200");
    let integration = json!({"platform": "webhook", "name": "w", "config": {"base_url": "http://127.0.0.1:1", "path": "/"},
                             "credentials": {"secret": WEBHOOK_SECRET}});
    let integration = seller
        .client
        .post(&seller.path("/postgen_integrations"), integration)
        .await;
    let integration = integration.expect(201).text("/data/id");
    (seller, connection, integration)
}

async fn opens(seller: &Company, connection: &str) {
    let test = seller.path(&format!("/connections/{connection}/test"));
    let tested = seller.client.post(&test, json!({})).await.expect(200);
    assert_eq!(tested.at("/data/success"), true, "{}", tested.body);
}

fn kind<'a>(done: &'a Value, name: &str) -> &'a Value {
    let kinds = done["kinds"].as_array().expect("a list");
    let found = kinds.iter().find(|kind| kind["kind"] == name);
    found.unwrap_or_else(|| panic!("no {name} in {done}"))
}

/// A master key that leaked is replaced: with the new and the former one everything works, `souk keys reseal` brings every secret under the new
/// one while the host runs, and then the former key opens nothing and is not needed.
async fn a_rotation_is_finished(mut arguments: Vec<(&'static str, String)>) {
    let data = tempfile::tempdir().expect("a directory");
    let shared = arguments.iter().any(|(name, _)| *name == "--database-url");
    let mut start = async |current: &str, former: &str| {
        let mut builder = TestHost::builder().data_dir(data.path());
        for (name, value) in &mut arguments {
            builder = builder.arg(name, value.as_str());
        }
        builder = builder.env("SOUK_MASTER_KEY", current);
        match former.is_empty() {
            true => builder.start().await,
            false => builder.env("SOUK_MASTER_KEY_OLD", former).start().await,
        }
    };
    let mut host = start(OLD, "").await;
    let platform = host.ready["platform"]["api_key"]
        .as_str()
        .expect("a key")
        .to_owned();
    let (seller, connection, integration) = secretive(&host, "rotated").await;
    opens(&seller, &connection).await;
    assert!(host.stop().await.success());

    // Only the new one: refused. Both: everything works.
    let mut host = start(NEW, OLD).await;
    let mut seller = Company {
        client: host.client(&seller.key),
        ..seller
    };
    opens(&seller, &connection).await;
    let done = host
        .ask(&platform, &["keys", "reseal", "--json"])
        .await
        .ok()
        .json();
    assert_eq!(done["complete"], true);
    assert_eq!(
        (&done["resealed"], &done["unreadable"]),
        (&json!(5), &json!(0)),
        "{done}"
    );
    assert_eq!(kind(&done, "credentials of connections")["remaining"], 0);
    opens(&seller, &connection).await;
    let again = host
        .ask(&platform, &["keys", "reseal", "--json"])
        .await
        .ok()
        .json();
    assert_eq!(
        (&again["resealed"], &again["complete"]),
        (&json!(0), &json!(true))
    );
    assert!(host.stop().await.success());

    let mut host = start(NEW, "").await;
    seller.client = host.client(&seller.key);
    opens(&seller, &connection).await;
    let path = seller.path(&format!("/postgen_integrations/{integration}"));
    seller.client.get(&path).await.expect(200);
    assert!(host.stop().await.success());
    let mut environment = vec![("SOUK_MASTER_KEY", OLD)];
    if shared {
        environment.push(("SOUK_DATABASE_URL", &arguments[0].1));
    }
    start_fails(data.path(), &environment, "sealed with another master key").await;
}

#[tokio::test]
async fn a_rotation_is_finished_on_sqlite() {
    a_rotation_is_finished(Vec::new()).await;
}

#[tokio::test]
async fn a_rotation_is_finished_on_postgres() {
    let cluster = PgCluster::shared().await;
    let url = cluster.url(&cluster.database("").await);
    a_rotation_is_finished(vec![("--database-url", url)]).await;
}

/// The same without a host; and a secret that no key opens is named.
#[tokio::test]
async fn a_stopped_store_is_resealed_too() {
    let data = tempfile::tempdir().expect("a directory");
    let mut host = TestHost::builder()
        .data_dir(data.path())
        .env("SOUK_MASTER_KEY", OLD)
        .start()
        .await;
    let (_, connection, _) = secretive(&host, "offline").await;
    let directory = data.path().to_string_lossy().into_owned();
    let reseal = [
        "keys",
        "reseal",
        "--offline",
        "--json",
        "--data-dir",
        &directory,
    ];
    let keys = [("SOUK_MASTER_KEY", NEW), ("SOUK_MASTER_KEY_OLD", OLD)];
    souk(&reseal, &keys).await.refused("a running host holds");
    assert!(host.stop().await.success());
    sqlx::any::install_default_drivers();
    let url = format!("sqlite:{directory}/souk.db");
    let mut store = <sqlx::AnyConnection as sqlx::Connection>::connect(&url)
        .await
        .expect("the store");
    let strange = "UPDATE webhooks SET former_secret = '01deadbeef' || substr(former_secret, 11)";
    sqlx::query(strange)
        .execute(&mut store)
        .await
        .expect("an update");
    sqlx::Connection::close(store).await.expect("closed");
    let done = souk(&reseal, &keys).await.ok();
    let done = done.json();
    assert_eq!(
        (&done["resealed"], &done["unreadable"]),
        (&json!(4), &json!(1))
    );
    let unreadable = kind(&done, "former secrets of webhooks");
    assert_eq!(
        unreadable["unreadable_ids"].as_array().map(Vec::len),
        Some(1)
    );
    assert!(!connection.is_empty());
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path)
        .unwrap_or_else(|error| panic!("{}: {error}", path.display()))
        .mode()
        & 0o777
}

/// Whoever made the data directory, nobody but its owner reads what souk keeps there; what was open is closed, and said.
#[tokio::test]
async fn what_is_kept_is_its_owners_alone() {
    let parent = tempfile::tempdir().expect("a directory");
    let data = parent.path().join("souk");
    fs::create_dir(&data).expect("a directory");
    fs::set_permissions(&data, PermissionsExt::from_mode(0o755)).expect("chmod");
    let mut host = TestHost::builder().data_dir(&data).start().await;
    let seller = host.company("private").await;
    let file = seller.path("/files/a.db");
    let sqlite = fs::read(data.join("souk.db")).expect("the store");
    seller.client.put_bytes(&file, sqlite).await;
    let mut directories = vec![data.clone()];
    while let Some(directory) = directories.pop() {
        for entry in fs::read_dir(directory).expect("a directory").flatten() {
            let path = entry.path();
            // The harness's own.
            if path.ends_with("test.log") {
                continue;
            }
            assert_eq!(mode(&path) & 0o077, 0, "{}", path.display());
            if path.is_dir() {
                directories.push(path);
            }
        }
    }
    assert!(host.stop().await.success());

    for (name, open) in [("master.key", 0o644), ("souk.db", 0o644), ("files", 0o755)] {
        fs::set_permissions(data.join(name), PermissionsExt::from_mode(open)).expect("chmod");
    }
    host.start_again().await;
    assert_eq!(mode(&data.join("master.key")), 0o600);
    assert_eq!(mode(&data.join("souk.db")), 0o600);
    assert_eq!(mode(&data.join("files")), 0o700);
    let log = host.log();
    assert!(
        log.contains("the master key could be read by other users"),
        "{log}"
    );
    assert!(
        log.contains("was open to other users of this machine, and is closed now"),
        "{log}"
    );
}
