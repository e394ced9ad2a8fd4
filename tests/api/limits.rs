//! Rate limits that hosts count together, and what holds while the server that they count on is away.

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde_json::json;
use souk_tests::process::free_port;
use souk_tests::redis::Redis;
use souk_tests::tls::TestCa;
use souk_tests::{Client, PgCluster, TestHost};
use tokio::io::AsyncReadExt;

use crate::hosts::MASTER_KEY;

const LIMIT: u32 = 300;
/// What hosts have not spent goes back within two seconds; a loaded machine gets longer.
const GIVEN_BACK_WITHIN: Duration = Duration::from_secs(30);
/// Where a host or the server stands still for a quarter of a second, that host counts for itself for a moment: then it is seen another time.
const TRIES: usize = 5;

async fn host(database: &str, redis: &str, metrics: &str) -> TestHost {
    TestHost::builder()
        .arg("--database-url", database)
        .env("SOUK_MASTER_KEY", MASTER_KEY)
        .env("SOUK_REDIS_URL", redis)
        .arg("--metrics-listen", metrics)
        .start()
        .await
}

fn metrics_address() -> String {
    format!("127.0.0.1:{}", free_port())
}

async fn are_shared(metrics: &str) -> bool {
    let text = reqwest::get(format!("http://{metrics}/metrics")).await;
    let text = text.expect("metrics").text().await.expect("a text");
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix("souk_shared_limits_available "));
    line.expect("the metric") == "1"
}

/// A key of `limit` requests an hour.
async fn limited_key(host: &TestHost, handle: &str, limit: u32) -> (String, String) {
    let company = host.company(handle).await;
    let key = json!({"name": "limited", "rate_limit": limit, "permissions": ["read"]});
    let made = host
        .client(&company.key)
        .post(&company.path("/api-keys"), key)
        .await
        .expect(201);
    (made.text("/data/key"), company.path(""))
}

/// Whether a request passed, and what the headers say is left.
async fn ask(client: &Client, path: &str) -> (bool, u32) {
    let answer = client.get(path).await;
    let left = answer.header("x-ratelimit-remaining").parse();
    match answer.status.as_u16() {
        200 => (true, left.expect("a number")),
        429 => (false, left.expect("a number")),
        other => panic!("{other}: {}", answer.body),
    }
}

/// Two hosts, one key: together they let pass exactly what it may send, whichever is asked, and what one holds and does not spend comes
/// back to the other.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hosts_count_a_limit_together() {
    let cluster = PgCluster::shared().await;
    let url = cluster.url(&cluster.database("SELECT 1").await);
    let redis = Redis::start().await;
    let metrics = metrics_address();
    let one = host(&url, &redis.url(), &metrics).await;
    let other = host(&url, &redis.url(), &metrics_address()).await;
    let (key, path) = limited_key(&one, "counted", LIMIT).await;
    let clients = [one.client(&key), other.client(&key)];

    let (_, left) = ask(&clients[0], &path).await;
    assert_eq!(left, LIMIT - 1);
    let (_, left) = ask(&clients[1], &path).await;
    assert!(
        left <= LIMIT - 2,
        "the other host knows of the first: {left}"
    );

    pass_exactly(LIMIT - 2, &clients, &path).await;
    assert!(are_shared(&metrics).await);
}

/// Sends by turns everything that may still be sent, and then nothing passes for longer than anything can still come back.
async fn pass_exactly(limit: u32, clients: &[Client; 2], path: &str) {
    let mut passed = 0;
    let mut refused_since = None;
    let mut turn = 0;
    loop {
        let (client, since) = (&clients[turn % 2], Instant::now());
        turn += 1;
        match ask(client, path).await {
            (true, _) => {
                passed += 1;
                refused_since = None;
            }
            (false, left) => {
                assert_eq!(left, 0);
                let refused_since = *refused_since.get_or_insert(since);
                if passed == limit && refused_since.elapsed() > Duration::from_secs(4) {
                    break;
                }
                assert!(refused_since.elapsed() < GIVEN_BACK_WITHIN, "{passed}");
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        }
        assert!(passed <= limit);
    }
}

/// The same of an operation's limit, which the key's own does not reach: other operations go on.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hosts_count_an_operations_limit_together() {
    let cluster = PgCluster::shared().await;
    let url = cluster.url(&cluster.database("SELECT 1").await);
    let redis = Redis::start().await;
    let one = host(&url, &redis.url(), &metrics_address()).await;
    let other = host(&url, &redis.url(), &metrics_address()).await;
    let (key, path) = limited_key(&one, "listed", 5_000).await;
    let clients = [one.client(&key), other.client(&key)];
    pass_exactly(100, &clients, &format!("{path}/api-keys")).await;
    let refused = clients[1].get(&format!("{path}/api_keys")).await;
    let refused = refused.expect_error(429, "RATE_LIMIT_EXCEEDED");
    let details = refused.at("/error/details");
    assert_eq!(
        (&details["scope"], &details["operation"]),
        (&json!("operation"), &json!("list_keys"))
    );
    assert!(ask(&clients[0], &path).await.0);
}

/// A limit outlives its host: what was counted is elsewhere.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_limit_outlives_its_host() {
    let cluster = PgCluster::shared().await;
    let url = cluster.url(&cluster.database("SELECT 1").await);
    let redis = Redis::start().await;
    let spent = (0..5).rev().map(|left| (true, left));
    let outlived: Vec<(bool, u32)> = spent.chain([(false, 0)]).collect();
    let mut seen = Vec::new();
    for number in 0..TRIES {
        let mut one = host(&url, &redis.url(), &metrics_address()).await;
        let (key, path) = limited_key(&one, &format!("outlived-{number}"), 5).await;
        let mut told = Vec::new();
        for _ in 0..5 {
            told.push(ask(&one.client(&key), &path).await);
        }
        one.kill();
        let other = host(&url, &redis.url(), &metrics_address()).await;
        told.push(ask(&other.client(&key), &path).await);
        if told == outlived {
            return;
        }
        seen.push(told);
    }
    panic!("{seen:?}");
}

/// While the server is away each host counts for itself, and says so; when it is back they count together again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn limits_go_on_without_their_server() {
    let cluster = PgCluster::shared().await;
    let url = cluster.url(&cluster.database("SELECT 1").await);
    let mut redis = Redis::start().await;
    let metrics = metrics_address();
    let one = host(&url, &redis.url(), &metrics).await;
    let (key, path) = limited_key(&one, "alone", 5).await;
    let client = one.client(&key);
    assert_eq!(ask(&client, &path).await, (true, 4));

    redis.kill();
    for left in (0..5).rev() {
        assert_eq!(ask(&client, &path).await, (true, left), "its own count");
    }
    assert_eq!(ask(&client, &path).await, (false, 0));
    assert!(!are_shared(&metrics).await);
    assert!(one.log().contains("counts for itself"), "it is said");

    redis.start_again().await;
    let since = Instant::now();
    while !ask(&client, &path).await.0 {
        assert!(
            since.elapsed() < GIVEN_BACK_WITHIN,
            "they count together again"
        );
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    assert!(are_shared(&metrics).await);
}

/// Whether the server answers is seen of a host that nobody calls: at its start, and when the server is back.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_host_that_is_idle_knows_of_its_server_of_limits() {
    let cluster = PgCluster::shared().await;
    let url = cluster.url(&cluster.database("SELECT 1").await);
    let mut redis = Redis::start().await;
    redis.kill();
    let metrics = metrics_address();
    let idle = host(&url, &redis.url(), &metrics).await;
    wait_until_shared(&metrics, false).await;
    // A moment after it is counted.
    let since = Instant::now();
    while !idle.log().contains("counts for itself") {
        assert!(since.elapsed() < GIVEN_BACK_WITHIN, "it is not said");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    redis.start_again().await;
    wait_until_shared(&metrics, true).await;
}

async fn wait_until_shared(metrics: &str, wanted: bool) {
    let since = Instant::now();
    while are_shared(metrics).await != wanted {
        assert!(since.elapsed() < GIVEN_BACK_WITHIN, "{wanted}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// Over TLS they count together where the authority of the certificate is the one that the operator names; a server that cannot show who
/// it is counts as one that is away.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hosts_count_together_over_tls() {
    let cluster = PgCluster::shared().await;
    let url = cluster.url(&cluster.database("SELECT 1").await);
    let redis = Redis::start_protected(&TestCa::new("The operator's")).await;
    let trusting = format!("{}?sslrootcert={}", redis.url(), redis.authority());
    let metrics = metrics_address();
    let one = host(&url, &trusting, &metrics).await;
    let other = host(&url, &trusting, &metrics_address()).await;
    let together = [(true, 3), (true, 2), (true, 1), (true, 0), (false, 0)];
    let (mut key, mut path) = (String::new(), String::new());
    let mut seen = Vec::new();
    for number in 0..TRIES {
        (key, path) = limited_key(&one, &format!("protected-{number}"), 4).await;
        seen.clear();
        for host in [&one, &other, &one, &other, &one] {
            seen.push(ask(&host.client(&key), &path).await);
        }
        if seen == together {
            break;
        }
        // As long as a server that did not answer is left alone.
        tokio::time::sleep(Duration::from_secs(2)).await;
    }
    assert_eq!(seen, together);
    assert!(are_shared(&metrics).await);

    let metrics = metrics_address();
    let wary = host(&url, &redis.url(), &metrics).await;
    assert_eq!(
        ask(&wary.client(&key), &path).await,
        (true, 3),
        "its own count"
    );
    assert!(!are_shared(&metrics).await);
    assert!(wary.log().contains("counts for itself"));
}

/// Whoever cannot show who it is is not told the password: of a stranger's certificate nothing is heard behind the handshake. One that the
/// operator trusts is told.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stranger_is_not_told_the_password() {
    let cluster = PgCluster::shared().await;
    let authority = TestCa::new("A stranger's");
    let directory = tempfile::tempdir().expect("a directory");
    let pem = directory.path().join("ca.pem");
    std::fs::write(&pem, authority.pem()).expect("a file");
    for (handle, trust, is_told) in [
        ("wary", String::new(), false),
        ("trusting", format!("?sslrootcert={}", pem.display()), true),
    ] {
        let url = cluster.url(&cluster.database("SELECT 1").await);
        let stranger = Overheard::start(&authority).await;
        let redis = format!("rediss://:tell-nobody@localhost:{}/2{trust}", stranger.port);
        let metrics = metrics_address();
        let one = host(&url, &redis, &metrics).await;
        let (key, path) = limited_key(&one, handle, 4).await;
        assert_eq!(ask(&one.client(&key), &path).await, (true, 3), "{handle}");
        assert!(!are_shared(&metrics).await);
        let since = Instant::now();
        let handshakes = || stranger.handshakes.load(Relaxed);
        while handshakes() == 0 || is_told && !stranger.heard("tell-nobody") {
            assert!(
                since.elapsed() < GIVEN_BACK_WITHIN,
                "{handle} was not there"
            );
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        let bytes = stranger.heard.lock().expect("the bytes").len();
        assert_eq!(bytes > 0, is_told, "{handle} says {bytes} bytes");
    }
}

/// A server with a certificate of this authority that keeps what it is told, and answers nothing.
struct Overheard {
    port: u16,
    /// Those that have ended, well or not.
    handshakes: Arc<AtomicUsize>,
    heard: Arc<Mutex<Vec<u8>>>,
    task: tokio::task::JoinHandle<()>,
}

impl Overheard {
    async fn start(authority: &TestCa) -> Overheard {
        let acceptor = authority.server(&["localhost"]).acceptor();
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await;
        let listener = listener.expect("a port");
        let port = listener.local_addr().expect("a port").port();
        let (handshakes, heard) = (Arc::default(), Arc::default());
        let (counted, kept): (Arc<AtomicUsize>, Arc<Mutex<Vec<u8>>>) =
            (Arc::clone(&handshakes), Arc::clone(&heard));
        let task = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (acceptor, counted, kept) = (acceptor.clone(), counted.clone(), kept.clone());
                tokio::spawn(async move {
                    let shaken = acceptor.accept(stream).await;
                    counted.fetch_add(1, Relaxed);
                    let Ok(mut stream) = shaken else { return };
                    let mut bytes = [0; 4096];
                    while let Ok(read @ 1..) = stream.read(&mut bytes).await {
                        kept.lock()
                            .expect("the bytes")
                            .extend_from_slice(&bytes[..read]);
                    }
                });
            }
        });
        Overheard {
            port,
            handshakes,
            heard,
            task,
        }
    }

    fn heard(&self, text: &str) -> bool {
        let heard = self.heard.lock().expect("the bytes");
        String::from_utf8_lossy(&heard).contains(text)
    }
}

impl Drop for Overheard {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// A server that takes connections and says nothing delays a request now and then, and fails none.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_silent_server_stops_nobody() {
    let silent = tokio::net::TcpListener::bind("127.0.0.1:0")
        .await
        .expect("a port");
    let redis = format!("redis://{}", silent.local_addr().expect("a port"));
    let cluster = PgCluster::shared().await;
    let url = cluster.url(&cluster.database("SELECT 1").await);
    let one = host(&url, &redis, &metrics_address()).await;
    let (key, path) = limited_key(&one, "patient", 50).await;
    let since = Instant::now();
    for left in (30..50).rev() {
        assert_eq!(ask(&one.client(&key), &path).await, (true, left));
    }
    assert!(since.elapsed() < Duration::from_secs(20));
    drop(silent);
}
