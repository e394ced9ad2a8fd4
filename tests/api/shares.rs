//! What one company may use of a host, told clearly when it is used up, and no other company's loss.

use std::time::{Duration, Instant};

use serde_json::json;
use souk_tests::{Answer, Company, TestHost, guests};
use tokio::sync::OnceCell;

use crate::unique;

/// A host that gives each company little.
async fn host() -> &'static TestHost {
    static HOST: OnceCell<TestHost> = OnceCell::const_new();
    HOST.get_or_init(|| async {
        TestHost::builder()
            .env("SOUK_IP_RATE_LIMIT", "1000000")
            .arg("--company-connections", "3")
            .arg("--company-connector-mib", "1")
            .arg("--company-connector-versions", "2")
            .start()
            .await
    })
    .await
}

async fn upload(company: &Company, wasm: &[u8]) -> Answer {
    let path = company.path("/connectors");
    company.client.post_wasm(&path, wasm.to_vec()).await
}

/// The same component with so many more bytes, which do nothing.
pub fn padded(wasm: &[u8], bytes: usize) -> Vec<u8> {
    let mut size = bytes + 2;
    let mut padded = wasm.to_vec();
    padded.push(0);
    while size >= 0x80 {
        padded.push((size & 0x7f) as u8 | 0x80);
        size >>= 7;
    }
    padded.extend([size as u8, 1, b'x']);
    padded.extend(std::iter::repeat_n(0, bytes));
    padded
}

/// Connections are counted when they are saved, also when many are saved at once; a deleted one makes room.
#[tokio::test]
async fn connections_are_bounded() {
    let company = host().await.company(&unique("sources")).await;
    let engine = souk_tests::world::engine_id(&company.client, "seller-api").await;
    let body = json!({"engine_id": engine, "name": "one of many", "credential_type": "API_KEY",
        "credentials": json!({"api_key": "k"}).to_string(), "base_url": "http://127.0.0.1:1"});
    let path = company.path("/connections");
    let mut tasks = tokio::task::JoinSet::new();
    for _ in 0..8 {
        let (client, path, body) = (company.client.clone(), path.clone(), body.clone());
        tasks.spawn(async move { client.post(&path, body).await });
    }
    let answers = tasks.join_all().await;
    let made: Vec<&Answer> = answers.iter().filter(|one| one.status == 201).collect();
    assert_eq!(made.len(), 3, "{answers:?}");
    let first = made[0].text("/data/id");
    let refusal = company.client.post(&path, body.clone()).await;
    let refusal = refusal.expect_error(409, "CONNECTION_LIMIT_REACHED");
    assert_eq!(refusal.at("/error/details/limit"), 3, "{}", refusal.body);

    let other = host().await.company(&unique("others")).await;
    let theirs = other.path("/connections");
    other.client.post(&theirs, body.clone()).await.expect(201);
    let gone = company.client.delete(&format!("{path}/{first}")).await;
    gone.expect(204);
    company.client.post(&path, body).await.expect(201);
}

/// Versions and bytes of a company's connectors are counted; deleting makes room; the same version again needs none.
#[tokio::test]
async fn stored_connectors_are_bounded() {
    let company = host().await.company(&unique("stock")).await;
    let large = upload(&company, &padded(guests::FIXED_ROWS, 1 << 20)).await;
    let large = large.expect_error(409, "CONNECTOR_QUOTA_EXCEEDED");
    assert!(
        large.text("/error/message").contains("1 MiB"),
        "{}",
        large.body
    );
    upload(&company, guests::FIXED_ROWS).await.expect(201);
    upload(&company, guests::FIXED_ROWS_NEXT).await.expect(201);
    upload(&company, guests::FIXED_ROWS_NEXT).await.expect(201);
    let third = upload(&company, guests::FIXED_ROWS_BROKEN).await;
    third.expect_error(409, "CONNECTOR_QUOTA_EXCEEDED");
    let version = company.path("/connectors/fixed-rows/versions/1.0.0");
    company.client.delete(&version).await.expect(204);
    upload(&company, guests::FIXED_ROWS_BROKEN)
        .await
        .expect(201);
}

/// Whoever has used up the time for compiling waits for the next hour, and is told so; others compile on.
#[tokio::test]
async fn compiling_is_bounded() {
    let host = TestHost::builder()
        .arg("--company-compile-seconds", "1")
        .compiles_uploads()
        .start()
        .await;
    let company = host.company("compiler").await;
    let mut refused = None;
    // Each is another component, and takes some time, so the second is over soon; the version stays the same, so one is stored.
    for bytes in 0..500 {
        let answer = upload(&company, &padded(guests::FIXED_ROWS, bytes)).await;
        match answer.status.as_u16() {
            429 => {
                refused = Some(answer);
                break;
            }
            status => assert_eq!(
                status,
                if bytes == 0 { 201 } else { 409 },
                "{}",
                answer.body
            ),
        }
    }
    let refused = refused.expect("a refusal");
    let refused = refused.expect_error(429, "COMPILE_TIME_EXCEEDED");
    let seconds: u64 = refused.header("retry-after").parse().expect("seconds");
    assert!((3000..=3600).contains(&seconds), "{seconds}");
    let other = host.company("other").await;
    upload(&other, &padded(guests::FIXED_ROWS, 1_000))
        .await
        .expect(201);
}

/// What has arrived whole is taken in although its client has hung up: what it takes to compile it is counted like any other's, and has its place until
/// it has ended.
#[tokio::test]
async fn an_upload_whose_client_hangs_up_is_taken_in() {
    use tokio::io::AsyncWriteExt;
    let company = host().await.company(&unique("hanging-up")).await;
    let address = host().await.base_url.trim_start_matches("http://");
    let (path, wasm) = (company.path("/connectors"), padded(guests::FIXED_ROWS, 77));
    let head = format!(
        "POST {path} HTTP/1.1\r\nhost: {address}\r\nx-api-key: {}\r\ncontent-type: application/wasm\r\ncontent-length: {}\r\n\r\n",
        company.key,
        wasm.len()
    );
    let taken_in = async || company.client.get("/connectors/fixed-rows").await.status == 200;
    // Nobody tells when it has arrived: on a slow machine later than at once, and it takes longer to compile.
    for tries in 0..16 {
        let stream = tokio::net::TcpStream::connect(address).await;
        let mut stream = stream.expect("a connection");
        stream.write_all(head.as_bytes()).await.expect("sent");
        stream.write_all(&wasm).await.expect("sent");
        tokio::time::sleep(Duration::from_millis(10 * tries)).await;
        drop(stream);
        let begun = Instant::now();
        while begun.elapsed() < Duration::from_secs(4) {
            if taken_in().await {
                return;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }
    panic!("it was not taken in");
}

/// A connector that fails again and again is left alone for a while: refused at once with the time to wait, and the last
/// fault told to its owner. Nobody else's is.
#[tokio::test]
async fn a_connector_that_fails_again_and_again_is_left_alone() {
    let company = host().await.company(&unique("trapping")).await;
    company.connector(guests::TRAPS).await;
    let connection = company.nowhere("traps").await;
    let asset = json!({"sql_logic": "SELECT id FROM t", "slug": unique("traps")});
    let asset = company.asset(&connection, asset).await;
    let mut faults = 0;
    let paused = loop {
        let answer = company.execute(&asset, json!({})).await;
        if answer.status != 502 {
            break answer.expect_error(503, "CONNECTOR_PAUSED");
        }
        answer.expect_error(502, "CONNECTOR_FAULT");
        faults += 1;
        assert!(faults < 20, "it is never left alone");
    };
    let seconds: u64 = paused.header("retry-after").parse().expect("seconds");
    assert!((1..=60).contains(&seconds), "{seconds}");
    assert_eq!(paused.at("/error/details/blame"), "connector");
    assert_eq!(paused.at("/error/details/charged"), false);
    let told = paused.text("/error/details/source_message");
    assert!(told.contains("last fault"), "{told}");

    let other = host().await.company(&unique("honest")).await;
    other.connector(guests::FIXED_ROWS).await;
    let connection = other.nowhere("fixed").await;
    let asset = json!({"sql_logic": "SELECT id FROM t LIMIT 1", "slug": unique("rows")});
    let asset = other.asset(&connection, asset).await;
    let answer = other.execute(&asset, json!({})).await;
    assert!(
        answer.status != 503 && answer.status != 429,
        "{}",
        answer.body
    );
}

/// What an operator gives a company of the sandbox is what it gets: beyond it a call is told whose share is used up and when to try again, the
/// metrics count it, and another company is served.
#[tokio::test]
async fn shares_of_the_sandbox_are_told() {
    let metrics = format!("127.0.0.1:{}", souk_tests::process::free_port());
    let host = TestHost::builder()
        .env("SOUK_IP_RATE_LIMIT", "1000000")
        .arg("--company-sessions", "2")
        .arg("--company-memory-mib", "64")
        .arg("--metrics-listen", &metrics)
        .compiles_uploads()
        .start()
        .await;
    let selling = async |guest: &[u8], engine: &str, statements: &[&str]| {
        let company = host.company(&unique("share")).await;
        company.connector(guest).await;
        let mut assets = Vec::new();
        for statement in statements {
            let connection = company.nowhere(engine).await;
            let asset =
                json!({"sql_logic": statement, "result_type": "string", "timeout_ms": 3_000});
            assets.push(company.asset(&connection, asset).await);
        }
        (company, assets)
    };
    let is_exhausted = |answer: Answer, of: &str| {
        let answer = answer.expect_error(429, "CONCURRENCY_LIMIT_EXCEEDED");
        assert_eq!(answer.at("/error/details/exhausted"), of, "{}", answer.body);
        assert_eq!(answer.at("/error/details/blame"), "host");
        let again = answer.header("retry-after").parse::<u64>();
        assert!(again.is_ok_and(|seconds| seconds > 0), "{answer:?}");
    };

    let (large, assets) = selling(guests::KEEPS, "keeps", &["select grows_48"; 2]).await;
    large.execute(&assets[0], json!({})).await.expect(200);
    let refused = large.execute(&assets[1], json!({})).await;
    is_exhausted(refused, "memory_exhausted");

    let (silent, assets) = selling(guests::SILENT, "silent", &["select 1"; 3]).await;
    let calls = assets.iter().map(|asset| {
        let path = silent.path(&format!("/assets/{asset}/execute"));
        let client = silent.client.clone();
        async move { client.post(&path, json!({})).await }
    });
    let answers = futures_util::future::join_all(calls).await;
    let (refused, waited): (Vec<Answer>, Vec<Answer>) =
        answers.into_iter().partition(|answer| answer.status == 429);
    assert_eq!((refused.len(), waited.len()), (1, 2));
    for refused in refused {
        is_exhausted(refused, "sessions_exhausted");
    }

    let (other, assets) = selling(guests::KEEPS, "keeps", &["select grows_8"]).await;
    other.execute(&assets[0], json!({})).await.expect(200);
    let scraped = souk_tests::Client::new(&format!("http://{metrics}"), None);
    let scraped = scraped.get("/metrics").await.expect(200);
    let scraped = scraped.body.as_str().expect("a text").to_owned();
    let refused = |company: &Company| {
        let name = format!("souk_company_refused_total{{company=\"{}\"}} ", company.id);
        let value = scraped.lines().find_map(|line| line.strip_prefix(&name));
        value.map_or(0.0, |value| value.parse::<f64>().expect("a number"))
    };
    assert!(
        refused(&large) >= 1.0 && refused(&silent) >= 1.0,
        "{scraped}"
    );
    assert_eq!(refused(&other), 0.0);
}
