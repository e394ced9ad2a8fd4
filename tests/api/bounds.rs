//! What a company may say of its products, and what it costs others to read it.

use serde_json::{Value, json};
use souk_tests::{Company, PgCluster};

use crate::{host, unique};

/// More than a worker shows of one page, in all.
const PRODUCTS: usize = 6;
const LONG: usize = 60_000;
/// As many of an asset's parameters have so long a default.
const PARAMETERS: usize = 4;

fn asset(connection: &str, name: &str, parameters: usize) -> Value {
    let names: Vec<String> = (0..parameters).map(|number| format!("n{number}")).collect();
    let declared = names.iter().map(|name| {
        let default = "d".repeat(LONG / PARAMETERS);
        json!({"name": name, "type": "string", "required": false, "default": default})
    });
    json!({
        "connection_id": connection, "name": name, "slug": unique("long"), "asset_type": "CALCULATION",
        "sql_logic": format!("SELECT concat(:{})", names.join(", :")), "parameters": declared.collect::<Vec<_>>(),
    })
}

async fn seller() -> (Company, String) {
    let cluster = PgCluster::shared().await;
    let seller = host().await.company(&unique("wordy")).await;
    let database = cluster.database("SELECT 1").await;
    let connection = seller.postgres(cluster, &database).await;
    (seller, connection)
}

/// A member that is longer than any of use is refused by its name, and what is not is on a page as it is alone, however long the page is.
#[tokio::test]
async fn long_definitions_are_bounded_and_listed_whole() {
    let (seller, connection) = seller().await;
    let assets = seller.path("/assets");
    let refused = seller
        .client
        .post(&assets, asset(&connection, "too long", PARAMETERS + 1))
        .await;
    let refused = refused.expect_error(400, "VALIDATION_ERROR");
    assert_eq!(refused.at("/error/details/errors/0/field"), "parameters");
    let columns = json!([{"name": "id", "description": "d".repeat(70_000)}]);
    let endpoint = json!({"connection_id": connection, "name": "too long", "source": {"table": "goods"}, "fields": columns, "order_by": ["id"]});
    let refused = seller
        .client
        .post(&seller.path("/endpoints"), endpoint)
        .await;
    let refused = refused.expect_error(400, "VALIDATION_ERROR");
    assert_eq!(refused.at("/error/details/errors/0/field"), "fields");

    let mut made = Vec::new();
    for number in 0..PRODUCTS {
        let body = asset(&connection, &format!("asset {number}"), PARAMETERS);
        let saved = seller.client.post(&assets, body).await.expect(201);
        made.push(saved.at("/data").clone());
    }
    made.reverse();
    let listed = seller.client.get(&assets).await.expect(200);
    assert_eq!(listed.at("/data"), &Value::from(made));
    assert_eq!(
        listed.at("/meta"),
        &json!({"total": PRODUCTS, "page": 1, "per_page": 50})
    );
}

/// The same of what others find on the marketplace.
#[tokio::test]
async fn long_listings_are_found_whole() {
    let cluster = PgCluster::shared().await;
    let seller = host().await.company(&unique("wordy")).await;
    let database = cluster
        .database("CREATE TABLE goods (id int PRIMARY KEY); INSERT INTO goods VALUES (1)")
        .await;
    let connection = seller.postgres(cluster, &database).await;
    let word = unique("verbose");
    for _ in 0..PRODUCTS {
        let fields = json!([{"name": "id", "description": "d".repeat(LONG)}]);
        let body = json!({"name": word, "slug": unique("goods"), "source": {"table": "goods"}, "fields": fields, "order_by": ["id"]});
        let endpoint = seller.endpoint(&connection, body).await;
        seller.publish(&endpoint, 1).await;
    }
    let buyer = host().await.buyer(&unique("reader"), 1).await;
    let found = buyer
        .client
        .get(&format!("/marketplace/products?q={word}"))
        .await
        .expect(200);
    let found_all = found.at("/data").as_array().expect("products");
    let described = found_all.iter().map(|product| {
        let text = product["fields"][0]["description"].as_str();
        text.map_or(0, str::len)
    });
    assert_eq!(described.collect::<Vec<_>>(), [LONG; PRODUCTS]);
    assert_eq!(
        found.at("/meta"),
        &json!({"total": PRODUCTS, "limit": 20, "offset": 0})
    );
}
