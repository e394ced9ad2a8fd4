//! PostgreSQL under the store: over TLS as strictly as the operator demands, and an honest sentence where it cannot be used.

use std::time::{Duration, Instant};

use serde_json::json;
use souk_tests::process::free_port;
use souk_tests::tls::TestCa;
use souk_tests::{PgCluster, TestHost, souk};

/// A server reads its settings within milliseconds.
const WELL_WITHIN: Duration = Duration::from_secs(60);

async fn start_fails(url: &str) -> String {
    let data = tempfile::tempdir().expect("a directory");
    let data = data.path().to_string_lossy().into_owned();
    let serve = ["serve", "--listen", "127.0.0.1:0", "--data-dir", &data];
    let failed = souk(&serve, &[("SOUK_DATABASE_URL", url)]).await;
    assert!(!failed.succeeded);
    let error = failed.err.lines().find(|line| line.starts_with("souk: "));
    error
        .unwrap_or_else(|| panic!("no error in {}", failed.err))
        .to_owned()
}

/// How many connections to the database there are, and how many of them under TLS.
async fn connections(cluster: &PgCluster, database: &str) -> (i64, i64) {
    let client = cluster.client("postgres").await;
    let sql = "SELECT COUNT(*), COUNT(*) FILTER (WHERE s.ssl) FROM pg_stat_ssl s JOIN pg_stat_activity a USING (pid) WHERE a.datname = $1";
    let row = client.query_one(sql, &[&database]).await.expect("a row");
    (row.get(0), row.get(1))
}

/// `require` and `prefer` encrypt, `verify-ca` and `verify-full` believe the authority that sslrootcert names and no other, and then every
/// connection of the host is encrypted; none is with `disable`. A name that is not in the certificate is `verify-ca`'s to bear alone.
#[tokio::test]
async fn a_store_is_reached_over_tls() {
    let cluster = PgCluster::shared().await;
    let directory = tempfile::tempdir().expect("a directory");
    let pem = |name: &str, text: &str| {
        let path = directory.path().join(name);
        std::fs::write(&path, text).expect("a file");
        path.to_string_lossy().into_owned()
    };
    let right = pem("right.pem", &cluster.ca_pem);
    let wrong = pem("wrong.pem", &TestCa::new("somebody else").pem());
    // Whose certificate has another name than it is reached by.
    let named = PgCluster::start_named(&["elsewhere.example"], &[]).await;
    let names = pem("named.pem", &named.ca_pem);
    let verified = |mode: &str, ca: &str| format!("sslmode={mode}&sslrootcert={ca}");
    for (cluster, parameters, is_encrypted) in [
        (cluster, "sslmode=disable".to_owned(), false),
        (cluster, "sslmode=prefer".to_owned(), true),
        (cluster, "sslmode=require".to_owned(), true),
        (&named, verified("verify-ca", &names), true),
        (cluster, verified("verify-full", &right), true),
    ] {
        let database = cluster.database("").await;
        let url = format!("{}?{parameters}", cluster.url(&database));
        let host = TestHost::builder()
            .arg("--database-url", &url)
            .start()
            .await;
        host.company("encrypted").await;
        let (all, encrypted) = connections(cluster, &database).await;
        let expected = if is_encrypted { all } else { 0 };
        assert!(
            all > 1 && encrypted == expected,
            "{parameters}: {encrypted} of {all}"
        );
    }
    let url = cluster.url(&cluster.database("").await);
    for mode in ["verify-ca", "verify-full"] {
        let error = start_fails(&format!("{url}?{}", verified(mode, &wrong))).await;
        assert!(error.contains("no TLS with PostgreSQL"), "{mode}: {error}");
    }
    let elsewhere = named.url(&named.database("").await);
    let error = start_fails(&format!("{elsewhere}?{}", verified("verify-full", &names))).await;
    assert!(error.contains("no TLS with PostgreSQL"), "{error}");
    // Nobody whom this machine trusts has signed it.
    let error = start_fails(&format!("{url}?sslmode=verify-full")).await;
    assert!(error.contains("no TLS with PostgreSQL"), "{error}");
    let error = start_fails(&format!("{url}?sslmode=somewhat")).await;
    assert!(
        error.contains("the URL cannot be used") && error.contains("somewhat"),
        "{error}"
    );
}

/// What is wrong is said once, in words, without the password.
#[tokio::test]
async fn a_postgres_that_cannot_be_used_is_explained() {
    let cluster = PgCluster::shared().await;
    let refused = format!("postgres://souk:hush@127.0.0.1:{}/souk", free_port());
    let error = start_fails(&refused).await;
    assert!(
        error.contains("PostgreSQL refuses connections: is it running"),
        "{error}"
    );
    assert!(
        !error.contains("hush") && !error.contains("busy"),
        "{error}"
    );

    let wrong = format!("postgres://souk:hush@127.0.0.1:{}/postgres", cluster.port);
    let error = start_fails(&wrong).await;
    assert_eq!(
        error.matches("password authentication failed").count(),
        1,
        "{error}"
    );
    assert!(
        !error.contains("hush") && !error.contains("at line"),
        "{error}"
    );

    let error = start_fails(&cluster.url("nobody_made_it")).await;
    assert!(error.contains("does not have this database"), "{error}");
    assert_eq!(
        error.matches("nobody_made_it\" does not exist").count(),
        1,
        "{error}"
    );
}

/// Whoever meets a server that has gone is told 503, and the log says what is wrong with it.
#[tokio::test]
async fn a_postgres_that_went_away_is_explained_in_the_log() {
    let cluster = PgCluster::start(&[]).await;
    let url = cluster.url(&cluster.database("").await);
    let host = TestHost::builder()
        .arg("--database-url", &url)
        .start()
        .await;
    let company = host.company("waits").await;
    drop(cluster);
    let keys = company.path("/api-keys");
    company.client.get(&keys).await.expect(503);
    let log = host.log();
    assert!(
        log.contains("PostgreSQL refuses connections: is it running"),
        "{log}"
    );
}

/// A server that takes no writes, as a standby does, or one whose provider saves its disk: what has to be written is 503 until it does, and no fault of
/// the host, which says that it is not ready.
#[tokio::test]
async fn a_postgres_that_takes_no_writes_is_unavailable() {
    let cluster = PgCluster::start(&[]).await;
    let url = cluster.url(&cluster.database("").await);
    let host = TestHost::builder()
        .arg("--database-url", &url)
        .start()
        .await;
    let company = host.company("writes").await;
    let operator = cluster.client("postgres").await;
    for statement in [
        "ALTER SYSTEM SET default_transaction_read_only = on",
        "SELECT pg_reload_conf()",
    ] {
        operator.batch_execute(statement).await.expect(statement);
    }
    let begun = Instant::now();
    loop {
        let change = json!({"description": format!("{:?}", begun.elapsed())});
        let answer = company.client.patch(&company.path(""), change).await;
        if answer.status != 200 {
            assert_eq!(answer.at("/error/code"), "SERVICE_UNAVAILABLE");
            break;
        }
        assert!(begun.elapsed() < WELL_WITHIN, "it takes writes");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    company.client.get(&company.path("")).await.expect(200);
    let ready = async |expected: u16| {
        let begun = Instant::now();
        loop {
            let answer = company.client.get("/readyz").await;
            if answer.status == expected {
                return answer;
            }
            assert!(begun.elapsed() < WELL_WITHIN, "{}", answer.body);
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    let said = ready(503).await;
    let message = said.text("/error/message");
    assert!(message.contains("takes no writes"), "{message}");
    for statement in [
        "SET default_transaction_read_only = off",
        "ALTER SYSTEM RESET default_transaction_read_only",
        "SELECT pg_reload_conf()",
    ] {
        operator.batch_execute(statement).await.expect(statement);
    }
    ready(200).await;
}
