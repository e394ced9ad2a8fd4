//! What is compiled for connectors lies in the data directory as long as somebody may want it.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::{Duration, Instant};

use souk_tests::{Company, TestHost, guests};

/// Files go beside requests, on a loaded machine.
const GONE_WITHIN: Duration = Duration::from_secs(30);

/// The names of compiled components: their digest, and the engine that they are for.
fn compiled(data_dir: &Path) -> BTreeSet<String> {
    let files = std::fs::read_dir(data_dir.join("compiled")).expect("a directory");
    let names = files.map(|file| file.expect("a file").file_name().into_string());
    names
        .map(|name| name.expect("text"))
        .filter(|name| name.ends_with(".cwasm"))
        .collect()
}

async fn settles(data_dir: &Path, wanted: &BTreeSet<String>) {
    let begun = Instant::now();
    loop {
        let found = compiled(data_dir);
        let other: Vec<_> = found.symmetric_difference(wanted).collect();
        if other.is_empty() {
            return;
        }
        assert!(
            begun.elapsed() < GONE_WITHIN,
            "too many or missing: {other:?}"
        );
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

async fn upload(company: &Company, wasm: Vec<u8>) -> souk_tests::Answer {
    let path = company.path("/connectors");
    company.client.post_wasm(&path, wasm).await
}

/// Other bytes of the same component: a custom section that nobody reads.
pub fn other_bytes(wasm: &[u8]) -> Vec<u8> {
    [wasm, &[0, 5, 4], b"note"].concat()
}

/// The code of a version goes with it, on each host that shares the store; that of a refused one does not stay; and a start removes what no version
/// refers to, and nothing else: not what a file of the operator's directory has brought.
#[tokio::test]
async fn compiled_code_goes_with_its_version() {
    let directory = tempfile::tempdir().expect("a directory");
    let (data_dir, connectors) = (directory.path().join("data"), directory.path().join("dir"));
    std::fs::create_dir_all(&connectors).expect("a directory");
    std::fs::write(connectors.join("small.wasm"), guests::SMALL_TABLE).expect("a file");
    let mut host = TestHost::builder()
        .compiles_uploads()
        .data_dir(&data_dir)
        .arg("--connector-dir", connectors.to_string_lossy())
        .start()
        .await;
    let bundled = compiled(&data_dir);
    let (one, other) = (host.company("one").await, host.company("other").await);

    let first = upload(&one, guests::FIXED_ROWS.to_vec()).await.expect(201);
    let kept = compiled(&data_dir);
    let digest = first.text("/data/digest");
    assert!(
        kept.iter().any(|name| name.starts_with(&digest)),
        "{kept:?}"
    );
    assert_eq!(kept.len(), bundled.len() + 1);

    // The same name and version with other bytes is refused, after it was compiled.
    upload(&one, other_bytes(guests::FIXED_ROWS))
        .await
        .expect(409);
    settles(&data_dir, &kept).await;

    // What two have is deleted by one.
    upload(&other, guests::FIXED_ROWS.to_vec())
        .await
        .expect(201);
    upload(&one, guests::FIXED_ROWS_NEXT.to_vec())
        .await
        .expect(201);
    assert_eq!(compiled(&data_dir).len(), kept.len() + 1);
    for version in ["1.0.0", "2.0.0"] {
        let path = one.path(&format!("/connectors/fixed-rows/versions/{version}"));
        one.client.delete(&path).await.expect(204);
    }
    settles(&data_dir, &kept).await;

    // As an older host left it behind.
    host.stop().await;
    let engine = digest.len();
    let nobody = format!(
        "{}{}",
        "0".repeat(engine),
        &kept.first().expect("some")[engine..]
    );
    std::fs::write(data_dir.join("compiled").join(&nobody), b"code").expect("a file");
    host.start_again().await;
    settles(&data_dir, &kept).await;
    let last = other.path("/connectors/fixed-rows/versions/1.0.0");
    host.client(&other.key).delete(&last).await.expect(204);
    settles(&data_dir, &bundled).await;
}
