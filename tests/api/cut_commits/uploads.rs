//! Files and connectors, whose rows and bytes are written beside each other: both are there, or neither.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use souk_tests::cut_commits::Cut;
use souk_tests::{Answer, Client, guests};

use super::{SEEN_WITHIN, cut, host};
use crate::sqlite_source::dataset;
use crate::unique;

/// What somebody with a key does is looked for in the audit log: the client is told that it is done where it is, and to try again where it is not.
fn told(answer: Answer, side: Cut, status: u16) {
    match side {
        Cut::Before => answer.expect_error(503, "SERVICE_UNAVAILABLE"),
        Cut::Behind => answer.expect(status),
    };
}

/// An upload whose row may have been written is a file, with its bytes, or neither is there.
#[tokio::test]
async fn a_file_whose_commit_is_cut_is_whole_or_not_there() {
    let (wire, host) = host().await;
    for side in Cut::BOTH {
        let seller = host.company(&unique("filer")).await;
        let path = seller.path("/files/sales.db");
        let bytes = dataset(3).await;
        let put = seller.client.put_bytes(&path, bytes.clone());
        let put = cut(&wire, (side, "INSERT INTO files"), put).await;
        told(put, side, 201);
        let uploads = host.data_dir.join("files").join(&seller.id);
        let found = seller.client.get(&path).await;
        match side {
            Cut::Before => {
                found.expect(404);
                let begun = Instant::now();
                while std::fs::read_dir(&uploads).is_ok_and(|left| left.count() > 0) {
                    assert!(begun.elapsed() < SEEN_WITHIN, "its bytes stay");
                    tokio::time::sleep(Duration::from_millis(100)).await;
                }
                seller.client.put_bytes(&path, bytes).await.expect(201);
            }
            Cut::Behind => {
                let size = found.expect(200).at("/data/size_bytes").as_u64();
                assert_eq!(size, Some(bytes.len() as u64));
            }
        }
        let fields =
            json!({"credential_type": "NONE", "credentials": "{}", "database": "sales.db"});
        let connection = seller.connection("sqlite", fields).await;
        let count = json!({"sql_logic": "SELECT count(*) FROM sales"});
        let asset = seller.asset(&connection, count).await;
        let counted = seller.execute(&asset, json!({})).await.expect(200);
        assert_eq!(counted.at("/data/answer_value"), 3, "{side:?}");
    }
}

const SECOND: &str = "2.0.0";

/// `version: status` of every version of the connector that the tests of activations have.
async fn versions(client: &Client) -> Vec<String> {
    let answer = client.get("/connectors/fixed-rows").await.expect(200);
    let versions = answer.at("/data/versions").as_array().cloned();
    let text = |version: &Value| format!("{}: {}", version["version"], version["status"]);
    let versions = versions.unwrap_or_default();
    versions
        .iter()
        .map(|version| text(version).replace('"', ""))
        .collect()
}

/// A version whose choice may have been written down: the one that the store has is at work, and stays so.
#[tokio::test]
async fn an_activation_whose_commit_is_cut_is_what_the_store_has() {
    let (wire, host) = host().await;
    for side in Cut::BOTH {
        let seller = host.company(&unique("activating")).await;
        seller.connector(guests::FIXED_ROWS).await;
        let path = seller.path("/connectors");
        let second = guests::FIXED_ROWS_NEXT.to_vec();
        let second = seller.client.post_wasm(&path, second).await;
        second.expect(201);
        let path = seller.path("/connectors/fixed-rows/activate");
        let activate = || seller.client.post(&path, json!({"version": SECOND}));
        let statement = "INSERT INTO connector_choices";
        let answer = cut(&wire, (side, statement), activate()).await;
        told(answer, side, 200);
        let expected = match side {
            Cut::Before => ["1.0.0: active", "2.0.0: staged"],
            Cut::Behind => ["1.0.0: retired", "2.0.0: active"],
        };
        let begun = Instant::now();
        while versions(&seller.client).await != expected {
            assert!(begun.elapsed() < SEEN_WITHIN, "{side:?}");
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        activate().await.expect(200);
        assert_eq!(
            versions(&seller.client).await,
            ["1.0.0: retired", "2.0.0: active"],
            "{side:?}"
        );
    }
}

/// A connector whose commit was cut can be sent again, and is there once.
#[tokio::test]
async fn a_connector_whose_commit_is_cut_can_be_sent_again() {
    let (wire, host) = host().await;
    for side in Cut::BOTH {
        let seller = host.company(&unique("uploading")).await;
        let path = seller.path("/connectors?activate=true");
        let upload = || seller.client.post_wasm(&path, guests::FIXED_ROWS.to_vec());
        let first = cut(&wire, (side, "INSERT INTO connectors "), upload()).await;
        told(first, side, 201);
        upload().await.expect(201);
        assert_eq!(
            versions(&seller.client).await,
            ["1.0.0: active"],
            "{side:?}"
        );
    }
}
