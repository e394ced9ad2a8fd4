//! The company's files: streamed, named by one path segment, seen by their company only.

use std::time::{Duration, Instant};

use serde_json::json;
use souk_tests::client::Method;

use crate::formats::Sold;
use crate::pages::sqlite_file;
use crate::sqlite_source::dataset;
use crate::{host, unique};

#[tokio::test]
async fn a_file_is_kept_whole_and_described() {
    let company = host().await.company(&unique("files")).await;
    let bytes: Vec<u8> = (0..3_000_000u32).map(|i| (i % 251) as u8).collect();
    let path = company.path("/files/data.db");
    let saved = company
        .client
        .put_bytes(&path, bytes.clone())
        .await
        .expect(201);
    assert_eq!(saved.at("/data/size_bytes"), bytes.len());
    use sha2::Digest;
    assert_eq!(
        saved.at("/data/sha256"),
        &json!(hex::encode(sha2::Sha256::digest(&bytes)))
    );
    let read = company.client.get(&path).await.expect(200);
    assert_eq!(read.at("/data/name"), "data.db");
    assert_eq!(read.at("/data/sha256"), saved.at("/data/sha256"));
    let listed = company
        .client
        .get(&company.path("/files"))
        .await
        .expect(200);
    assert_eq!(listed.at("/data/0/name"), "data.db");
    company.client.delete(&path).await.expect(204);
    company
        .client
        .get(&path)
        .await
        .expect_error(404, "FILE_NOT_FOUND");
}

#[tokio::test]
async fn a_name_is_one_path_segment() {
    let company = host().await.company(&unique("names")).await;
    for name in [
        "..",
        ".hidden",
        "a%2Fb",
        "..%2F..%2Fetc%2Fpasswd",
        "a%00b",
        "%20",
    ] {
        let answer = company
            .client
            .put_bytes(&company.path(&format!("/files/{name}")), b"x".to_vec())
            .await;
        assert!(
            matches!(answer.status.as_u16(), 400 | 404 | 405),
            "{name}: {} {}",
            answer.status,
            answer.body
        );
    }
    assert_eq!(
        company
            .client
            .get(&company.path("/files"))
            .await
            .expect(200)
            .at("/data"),
        &json!([])
    );
}

/// Replacing keeps the name and its first date; a file that a connection reads stays.
#[tokio::test]
async fn a_file_in_use_is_replaced_but_not_deleted() {
    let company = host().await.company(&unique("inuse")).await;
    let path = company.path("/files/sales.db");
    let first = company
        .client
        .put_bytes(&path, b"one".to_vec())
        .await
        .expect(201);
    let connection = company
        .connection(
            "sqlite",
            json!({"credential_type": "NONE", "credentials": "{}", "database": "sales.db"}),
        )
        .await;
    let unchecked = format!("{path}?unchecked=true");
    let second = company.client.put_bytes(&unchecked, b"two!".to_vec()).await;
    let second = second.expect(200);
    assert_eq!(second.at("/data/size_bytes"), 4);
    assert_eq!(second.at("/data/created_at"), first.at("/data/created_at"));
    let refusal = company
        .client
        .delete(&path)
        .await
        .expect_error(409, "RESOURCE_IN_USE");
    assert_eq!(
        refusal.at("/error/details/connection_ids/0"),
        connection.as_str()
    );
    company
        .client
        .delete(&company.path(&format!("/connections/{connection}")))
        .await
        .expect(204);
    company.client.delete(&path).await.expect(204);
    company
        .client
        .delete(&path)
        .await
        .expect_error(404, "FILE_NOT_FOUND");
}

/// A connection to a file that is not there is refused when it is saved, with what to do.
#[tokio::test]
async fn a_connection_needs_its_file() {
    let company = host().await.company(&unique("nofile")).await;
    let engine = souk_tests::world::engine_id(&company.client, "sqlite").await;
    let body = json!({"engine_id": engine, "name": "x", "credential_type": "NONE", "credentials": "{}", "database": "none.db"});
    let refusal = company
        .client
        .post(&company.path("/connections"), body)
        .await
        .expect_error(400, "VALIDATION_ERROR");
    assert_eq!(refusal.at("/error/details/errors/0/field"), "database");
    assert!(
        refusal.text("/error/message").contains("/files/none.db"),
        "{}",
        refusal.body
    );
}

/// More than a gibibyte is refused from its length alone, and another company's files are not to be seen.
#[tokio::test]
async fn a_file_is_bounded_and_private() {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let (company, other) = (
        host().await.company(&unique("bounds")).await,
        host().await.company(&unique("others")).await,
    );
    let path = company.path("/files/huge.db");
    let address = host()
        .await
        .base_url
        .trim_start_matches("http://")
        .to_owned();
    let mut stream = tokio::net::TcpStream::connect(&address)
        .await
        .expect("a connection");
    let head = format!(
        "PUT {path} HTTP/1.1\r\nhost: {address}\r\nx-api-key: {}\r\ncontent-length: {}\r\n\r\n",
        company.key,
        (1u64 << 30) + 1
    );
    stream.write_all(head.as_bytes()).await.expect("sent");
    let mut answer = vec![0; 12];
    stream.read_exact(&mut answer).await.expect("an answer");
    assert_eq!(String::from_utf8_lossy(&answer), "HTTP/1.1 413");
    company
        .client
        .put_bytes(&company.path("/files/a.db"), b"x".to_vec())
        .await
        .expect(201);
    other
        .client
        .get(&company.path("/files/a.db"))
        .await
        .expect_error(403, "COMPANY_ACCESS_DENIED");
    other
        .client
        .get(&other.path("/files/a.db"))
        .await
        .expect_error(404, "FILE_NOT_FOUND");
}

/// An upload that breaks off leaves the file that was there.
#[tokio::test]
async fn a_broken_upload_changes_nothing() {
    use tokio::io::AsyncWriteExt;
    let company = host().await.company(&unique("broken")).await;
    let path = company.path("/files/a.db");
    company
        .client
        .put_bytes(&path, b"whole".to_vec())
        .await
        .expect(201);
    let address = host()
        .await
        .base_url
        .trim_start_matches("http://")
        .to_owned();
    let mut stream = tokio::net::TcpStream::connect(&address)
        .await
        .expect("a connection");
    let head = format!(
        "PUT {path} HTTP/1.1\r\nhost: {address}\r\nx-api-key: {}\r\ncontent-length: 3000000\r\n\r\n",
        company.key
    );
    stream.write_all(head.as_bytes()).await.expect("sent");
    stream.write_all(&vec![7; 2_000_000]).await.expect("sent");
    drop(stream);
    let directory = host().await.data_dir.join("files").join(&company.id);
    let uploads = || {
        let entries = std::fs::read_dir(&directory).expect("the company's directory");
        entries.count()
    };
    let begun = Instant::now();
    while uploads() != 1 {
        assert!(
            begun.elapsed() < Duration::from_secs(30),
            "the broken upload is not removed"
        );
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert_eq!(
        company
            .client
            .get(&path)
            .await
            .expect(200)
            .at("/data/size_bytes"),
        5
    );
}

/// What the engine of a connection cannot read takes no file's place: it is refused with the connection and the engine's words, and the file is read as before.
/// Whoever means it says so.
#[tokio::test]
async fn what_no_engine_reads_replaces_nothing() {
    let seller = host().await.company(&unique("unfit")).await;
    let whole = dataset(3).await;
    let connection = seller.sqlite("sales.db", whole.clone()).await;
    let count = json!({"sql_logic": "SELECT count(*) FROM sales"});
    let asset = seller.asset(&connection, count).await;
    let path = seller.path("/files/sales.db");
    let before = seller.client.get(&path).await.expect(200);
    let rubbish = b"hello rubbish".to_vec();
    for broken in [&rubbish[..], &whole[..whole.len() / 2]] {
        let refused = seller.client.put_bytes(&path, broken.to_vec()).await;
        let refused = refused.expect_error(409, "INVALID_STATE");
        let details = refused.at("/error/details");
        assert_eq!(details["connection_id"], connection, "{}", refused.body);
        let told = refused.text("/error/message");
        assert!(told.contains("?unchecked=true"), "{told}");
        let after = seller.client.get(&path).await.expect(200);
        assert_eq!(after.at("/data"), before.at("/data"));
        let counted = seller.execute(&asset, json!({})).await.expect(200);
        assert_eq!(counted.at("/data/answer_value"), 3);
    }
    let meant = format!("{path}?unchecked=true");
    let meant = seller.client.put_bytes(&meant, rubbish).await.expect(200);
    assert_eq!(meant.at("/data/size_bytes"), 13);
}

/// Whoever replaces a file is told how many published products are answered from it now, and its connections say whether they were seen to work with it.
#[tokio::test]
async fn who_replaces_a_file_is_told_what_was_not_tested() {
    let seller = host().await.company(&unique("replacing")).await;
    let connection = seller.sqlite("sales.db", dataset(3).await).await;
    let count = json!({"sql_logic": "SELECT count(*) FROM sales"});
    let asset = seller.asset(&connection, count).await;
    seller.publish(&asset, 1).await;
    let path = seller.path("/files/sales.db");
    let status = async || {
        let path = seller.path(&format!("/connections/{connection}"));
        let shown = seller.client.get(&path).await.expect(200);
        shown.text("/data/status")
    };
    let replaced = seller.client.put_bytes(&path, dataset(7).await).await;
    let replaced = replaced.expect(200);
    let untested = replaced.at("/data/untested_products");
    assert_eq!(untested, &json!({"assets": 1, "endpoints": 0}));
    assert_eq!(status().await, "active");
    let shown = seller.client.get(&path).await.expect(200);
    assert!(shown.at("/data/untested_products").is_null());

    let unchecked = format!("{path}?unchecked=true");
    let replaced = seller.client.put_bytes(&unchecked, dataset(5).await).await;
    replaced.expect(200);
    assert_eq!(status().await, "unverified");
}

/// An export whose file is replaced meanwhile ends, as one whose product is changed does: it has rows of the one file and none of the other, and does not
/// pass for a whole.
#[tokio::test]
async fn an_export_is_of_one_file() {
    // 40 MB: more than is on its way to a client that does not read.
    let rows = |letter: &str| {
        format!(
            "CREATE TABLE matches (id INTEGER PRIMARY KEY, pad TEXT NOT NULL);
             WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 4000)
             INSERT INTO matches SELECT i, '{letter}' || hex(zeroblob(5000)) FROM n"
        )
    };
    let seller = host().await.company(&unique("replaced")).await;
    let before = sqlite_file(&rows("A")).await;
    let connection = seller.sqlite("a.db", before).await;
    let fields = [json!({"name": "id"}), json!({"name": "pad"})];
    let definition = json!({"source": {"table": "matches"}, "fields": fields, "max_limit": 200});
    let sold = Sold::new(&seller, &connection, definition, 1, 100).await;
    let path = format!("{}?export=true", sold.path);
    let request = sold.feed.request(Method::GET, &path);
    let mut response = request.send().await.expect("a head");
    let first = response.chunk().await.expect("a chunk");
    let mut text = first.unwrap_or_default().to_vec();
    let after = sqlite_file(&rows("B")).await;
    let path = seller.path("/files/a.db");
    let replaced = seller.client.put_bytes(&path, after);
    replaced.await.expect(200);
    let is_cut = loop {
        match response.chunk().await {
            Ok(Some(more)) => text.extend_from_slice(&more),
            Ok(None) => break false,
            Err(_) => break true,
        }
    };
    let text = String::from_utf8_lossy(&text);
    assert!(text.contains(r#""pad":"A"#));
    assert!(!text.contains(r#""pad":"B"#));
    assert!(is_cut, "half an export passes for a whole");
}

/// What the host's own disk has lost is the host's fault, and not the seller's, and says that an upload heals it.
#[tokio::test]
async fn what_the_disk_has_lost_is_not_the_sellers_fault() {
    let seller = host().await.company(&unique("lost")).await;
    let uploads = host().await.data_dir.join("files").join(&seller.id);
    for (is_cut, fault_code) in [(false, "file_missing"), (true, "file_damaged")] {
        let name = format!("{fault_code}.db");
        let connection = seller.sqlite(&name, dataset(3).await).await;
        let entries = std::fs::read_dir(&uploads).expect("the company's directory");
        let mut files = entries.flatten().map(|entry| entry.path().join(&name));
        let file = files.find(|path| path.exists()).expect("the file");
        match is_cut {
            true => {
                let file = std::fs::File::options().write(true).open(&file);
                file.expect("the file").set_len(5_000).expect("cut");
            }
            false => std::fs::remove_file(&file).expect("removed"),
        }
        let count = json!({"sql_logic": "SELECT count(*) FROM sales"});
        let asset = seller.asset(&connection, count).await;
        let refused = seller.execute(&asset, json!({})).await;
        let refused = refused.expect_error(503, "CONNECTOR_UNAVAILABLE");
        let details = refused.at("/error/details");
        assert_eq!(details["blame"], "host", "{}", refused.body);
        assert_eq!(details["fault_code"], fault_code, "{}", refused.body);
        assert!(!refused.header("retry-after").is_empty());

        let path = seller.path(&format!("/files/{name}"));
        let healed = seller.client.put_bytes(&path, dataset(4).await).await;
        healed.expect(200);
        let counted = seller.execute(&asset, json!({})).await.expect(200);
        assert_eq!(counted.at("/data/answer_value"), 4);
    }
}
