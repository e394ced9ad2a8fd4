//! What the owner of an asset may look up behind it: the source's catalog, and the values of a column.

use serde_json::{Value, json};
use souk_tests::seller_api::{API_KEY, SellerApi};
use souk_tests::{Answer, Company};

use crate::sqlite_source::dataset;
use crate::{host, unique};

struct Shop {
    seller: Company,
    connection: String,
    asset: String,
}

/// An asset over 3,000 sales, of which each thousandth has no amount.
async fn shop() -> Shop {
    let seller = host().await.company(&unique("scan")).await;
    let connection = seller.sqlite("sales.db", dataset(3_000).await).await;
    let sql = "SELECT id, shop, CASE WHEN id % 1000 = 0 THEN NULL ELSE amount END AS amount, id % 7 AS people
               FROM sales WHERE id <= :upto ORDER BY id";
    let fields = json!({"sql_logic": sql, "parameters": [{"name": "upto", "type": "integer", "default": 1_000_000}]});
    let asset = seller.asset(&connection, fields).await;
    Shop {
        seller,
        connection,
        asset,
    }
}

impl Shop {
    async fn scan(&self, body: Value) -> Answer {
        let path = format!("/assets/{}/column-scan", self.asset);
        self.seller
            .client
            .post(&self.seller.path(&path), body)
            .await
    }
}

/// The figures are those of the rows that were looked at, and it is said when there are more.
#[tokio::test]
async fn a_column_is_scanned() {
    let shop = shop().await;
    let all = shop.scan(json!({"column": "amount", "limit": 5000})).await;
    let mut data = all.expect(200).body["data"].clone();
    let histogram = data["histogram"].take();
    let top = data["top_values"].take();
    assert_eq!(
        (&top[0], top.as_array().unwrap().len()),
        (&json!({"value": 0.5, "count": 1}), 10)
    );
    let bins = histogram.as_array().unwrap();
    let sum: i64 = bins.iter().map(|bin| bin["count"].as_i64().unwrap()).sum();
    assert_eq!(
        (bins.len(), &bins[0]["from"], &bins[9]["to"], sum),
        (10, &json!(0.5), &json!(1499.5), 2_997)
    );
    let native = data["native_type"].take();
    assert!(native.is_string());
    assert_eq!(
        data,
        json!({"column": "amount", "type": "float64", "native_type": null, "scanned_rows": 3000, "null_count": 3, "distinct_count": 2997,
               "min": 0.5, "max": 1499.5, "histogram": null, "top_values": null, "truncated": false})
    );

    let some = shop.scan(json!({"column": "shop"})).await.expect(200);
    let data = &some.body["data"];
    assert_eq!(
        (&data["scanned_rows"], &data["truncated"], &data["type"]),
        (&json!(1_000), &json!(true), &json!("text"))
    );
    assert_eq!(
        data["top_values"],
        json!(
            ["shop 0", "shop 1", "shop 2", "shop 3"]
                .map(|shop| json!({"value": shop, "count": 250}))
        )
    );
    assert_eq!(
        (&data["min"], &data["max"], &data["histogram"]),
        (&json!("shop 0"), &json!("shop 3"), &json!([]))
    );
    let few = shop
        .scan(json!({"column": "id", "params": {"upto": 7}}))
        .await;
    let few = few.expect(200);
    let data = &few.body["data"];
    assert_eq!(
        (&data["scanned_rows"], &data["max"], &data["truncated"]),
        (&json!(7), &json!(7), &json!(false))
    );
}

/// Everything wrong is named; what the asset withholds is withheld; nobody else scans.
#[tokio::test]
async fn a_scan_is_bounded_and_the_owners() {
    let shop = shop().await;
    let wrong = shop.scan(json!({"column": "", "limit": 5001})).await;
    let wrong = wrong.expect_error(400, "VALIDATION_ERROR");
    let named = wrong.at("/error/details/errors").as_array().unwrap();
    let named: Vec<_> = named.iter().map(|error| &error["field"]).collect();
    assert_eq!(named, ["column", "limit"]);
    let unknown = shop.scan(json!({"column": "profit"})).await;
    let unknown = unknown.expect_error(400, "INVALID_PARAMETER");
    let error = unknown.at("/error/details/errors/0");
    assert_eq!(error["field"], "column");
    assert!(
        error["message"]
            .as_str()
            .unwrap()
            .contains("id, shop, amount")
    );
    let unknown = shop.scan(json!({"column": "id", "params": {"until": 1}}));
    unknown.await.expect_error(400, "INVALID_PARAMETER");
    let beside = shop.scan(json!({"column": "id", "upto": 7})).await;
    let beside = beside.expect_error(400, "INVALID_PARAMETER");
    let error = beside.at("/error/details/errors/0");
    assert_eq!(
        (&error["field"], &error["code"]),
        (&json!("upto"), &json!("misplaced"))
    );

    let privacy = json!({"privacy": {"min_group_size": 5, "privacy_unit_column": "people"}});
    let path = shop.seller.path(&format!("/assets/{}", shop.asset));
    shop.seller.client.patch(&path, privacy).await.expect(200);
    let kept = shop.scan(json!({"column": "id", "limit": 700})).await;
    assert_eq!(kept.expect(200).at("/data/scanned_rows"), 200);
    let none = shop.scan(json!({"column": "id", "params": {"upto": 4}}));
    none.await.expect_error(403, "PRIVACY_THRESHOLD");

    let other = host().await.company(&unique("scanner")).await;
    let scan = format!("/assets/{}/column-scan", shop.asset);
    let body = json!({"column": "id"});
    let foreign = other.client.post(&other.path(&scan), body.clone()).await;
    foreign.expect_error(404, "ASSET_NOT_FOUND");
    let reader = json!({"name": "reader", "role_id": 1});
    let keys = shop.seller.path("/api-keys");
    let reader = shop.seller.client.post(&keys, reader).await.expect(201);
    let reader = shop.seller.client.with_key(&reader.text("/data/key"));
    let refused = reader.post(&shop.seller.path(&scan), body.clone()).await;
    refused.expect_error(403, "INSUFFICIENT_ROLE");

    // A function has no columns.
    let api = SellerApi::start().await;
    let connection = shop.seller.seller_api(&api.base_url(), API_KEY).await;
    let fields = json!({"function_id": "sum_goals", "result_type": "number", "slug": unique("fn")});
    let function = shop.seller.asset(&connection, fields).await;
    let path = shop.seller.path(&format!("/assets/{function}/column-scan"));
    let refused = shop.seller.client.post(&path, body).await;
    refused.expect_error(400, "INVALID_PARAMETER");
}

/// An asset's information schema is the schema of its connection.
#[tokio::test]
async fn an_asset_shows_the_catalog_of_its_source() {
    let shop = shop().await;
    let (seller, query) = (&shop.seller, "?tables=sales&include_fields=true");
    let of_asset = seller.path(&format!("/assets/{}/information-schema{query}", shop.asset));
    let of_asset = seller.client.get(&of_asset).await.expect(200);
    let of_connection = seller.path(&format!("/connections/{}/schema{query}", shop.connection));
    let of_connection = seller.client.get(&of_connection).await.expect(200);
    assert_eq!(
        of_asset.at("/data/schemas"),
        of_connection.at("/data/schemas")
    );
    let table = of_asset.at("/data/schemas/0/tables/0");
    assert_eq!(
        (&table["name"], table["fields"].as_array().unwrap().len()),
        (&json!("sales"), 4)
    );
    let other = host().await.company(&unique("looker")).await;
    let foreign = other.path(&format!("/assets/{}/information-schema", shop.asset));
    let foreign = other.client.get(&foreign).await;
    foreign.expect_error(404, "ASSET_NOT_FOUND");
}
