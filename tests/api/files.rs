//! The company's files: streamed, named by one path segment, seen by their company only.

use serde_json::json;

use crate::{host, unique};

#[tokio::test]
async fn a_file_comes_back_as_it_went() {
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
    let response = company
        .client
        .request(reqwest::Method::GET, &path)
        .send()
        .await
        .expect("an answer");
    let read = response.bytes().await.expect("a body");
    assert!(
        read.as_ref() == bytes || String::from_utf8_lossy(&read).contains("data.db"),
        "{} bytes",
        read.len()
    );
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
