//! Broken connectors, over REST, as their owner meets them. What a buyer meets is in `paid_faults.rs`.

use serde_json::{Value, json};
use souk_tests::{Answer, Company, guests};

use crate::{host, unique};

/// A seller with a private connector and one asset on it.
async fn hostile(wasm: &[u8], engine: &str, sql: &str) -> (Company, String) {
    let seller = host().await.company(&unique("hostile")).await;
    seller.connector(wasm).await;
    let connection = seller.nowhere(engine).await;
    let asset = json!({"result_type": "string", "sql_logic": sql, "timeout_ms": 3000});
    let asset = seller.asset(&connection, asset).await;
    (seller, asset)
}

/// Runs the asset twice: the second time shows that the first left nothing broken behind.
async fn twice(wasm: &[u8], engine: &str, sql: &str) -> Vec<Answer> {
    let (seller, asset) = hostile(wasm, engine, sql).await;
    vec![
        seller.execute(&asset, json!({})).await,
        seller.execute(&asset, json!({})).await,
    ]
}

#[track_caller]
fn assert_connectors_fault(answers: &[Answer]) {
    for answer in answers {
        assert_eq!(answer.status.as_u16(), 502, "{}", answer.body);
        assert_eq!(
            answer.at("/error/code"),
            "CONNECTOR_FAULT",
            "{}",
            answer.body
        );
        assert_eq!(
            answer.at("/error/details/blame"),
            "connector",
            "{}",
            answer.body
        );
        assert_eq!(
            answer.at("/error/details/charged"),
            &Value::Bool(false),
            "{}",
            answer.body
        );
    }
}

#[tokio::test]
async fn malformed_columns_are_the_connectors_fault() {
    for word in ["bad_utf8", "offsets_fall", "offsets_beyond", "bitmap_short"] {
        let sql = format!("SELECT {word} FROM t");
        assert_connectors_fault(&twice(guests::MALFORMED_COLUMNS, "malformed-columns", &sql).await);
    }
}

/// Rows are counted while they arrive: a result without end stops at the bound.
#[tokio::test]
async fn too_many_rows_are_refused() {
    for answer in twice(guests::TOO_MANY_ROWS, "too-many-rows", "SELECT a FROM t").await {
        assert_eq!(answer.status.as_u16(), 502, "{}", answer.body);
        assert_eq!(answer.at("/error/details/charged"), &Value::Bool(false));
    }
}

/// One company's connector is no engine of another's.
#[tokio::test]
async fn a_companys_connector_is_its_own() {
    let (_, _) = hostile(guests::LOOPS, "loops", "SELECT a FROM t").await;
    let other = host().await.company(&unique("neighbour")).await;
    let engines = other.client.get("/storage-engines").await.expect(200);
    let slugs: Vec<&Value> = engines
        .at("/data")
        .as_array()
        .into_iter()
        .flatten()
        .map(|engine| &engine["slug"])
        .collect();
    assert!(
        slugs.contains(&&json!("postgres")) && !slugs.contains(&&json!("loops")),
        "{slugs:?}"
    );
}
