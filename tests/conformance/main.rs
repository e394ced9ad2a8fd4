//! What a PostgreSQL value becomes, through the connector, the release policy and JSON.

use serde_json::{Value, json};
use souk_tests::{PgCluster, TestHost};

/// Every common type, its SQL literal and what a client reads.
fn cases() -> Vec<(&'static str, &'static str, Value)> {
    vec![
        ("smallint", "(-32768)::int2", json!(-32768)),
        ("integer", "2147483647::int4", json!(2147483647)),
        (
            "bigint",
            "(-9223372036854775807)::int8",
            json!(-9223372036854775807i64),
        ),
        ("real", "1.5::float4", json!(1.5)),
        ("real_tenth", "0.1::float4", json!(0.1)),
        ("double", "0.1::float8", json!(0.1)),
        ("double_nan", "'NaN'::float8", json!("NaN")),
        ("double_infinite", "'-Infinity'::float8", json!("-Infinity")),
        (
            "text",
            "'grüße \"quoted\" \\ 日本 ' || chr(10)",
            json!("grüße \"quoted\" \\ 日本 \n"),
        ),
        ("varchar", "'abc'::varchar(10)", json!("abc")),
        ("char", "'ab'::char(4)", json!("ab  ")),
        ("bool_true", "true", json!(true)),
        ("bool_false", "false", json!(false)),
        ("bytea", "'\\xdeadbeef'::bytea", json!("3q2+7w==")),
        ("date", "DATE '2024-02-29'", json!("2024-02-29")),
        ("date_old", "DATE '0044-03-15'", json!("0044-03-15")),
        ("date_far", "DATE '12345-06-07'", json!("+12345-06-07")),
        ("time", "TIME '23:59:59.123456'", json!("23:59:59.123456")),
        (
            "timestamp",
            "TIMESTAMP '2026-11-20 08:00:00.000001'",
            json!("2026-11-20T08:00:00.000001"),
        ),
        (
            "timestamptz",
            "TIMESTAMPTZ '2026-11-20 10:00:00+02'",
            json!("2026-11-20T08:00:00.000000Z"),
        ),
        (
            "timestamp_far",
            "TIMESTAMPTZ '10000-01-01 00:00:00+00'",
            json!("+10000-01-01T00:00:00.000000Z"),
        ),
        (
            "uuid",
            "'A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11'::uuid",
            json!("a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"),
        ),
        (
            "json",
            "'{\"b\": [1, null]}'::json",
            json!({"b": [1, null]}),
        ),
        (
            "jsonb",
            "'{\"b\": [1, null]}'::jsonb",
            json!({"b": [1, null]}),
        ),
        ("int_array", "ARRAY[1, NULL, 3]", json!([1, null, 3])),
        ("text_array", "ARRAY['a', 'b,\"c']", json!(["a", "b,\"c"])),
        (
            "timestamp_array",
            "ARRAY['2026-11-20 08:00:00.5'::timestamp, NULL]",
            json!(["2026-11-20T08:00:00.500000", null]),
        ),
        ("null", "NULL::int4", Value::Null),
    ]
}

#[tokio::test]
async fn every_postgres_type_is_mapped_exactly() {
    let cluster = PgCluster::shared().await;
    let cases = cases();
    let columns: Vec<String> = cases
        .iter()
        .map(|(name, sql, _)| format!("{sql} AS \"{name}\""))
        .collect();
    // Two rows, so that a NULL and a value meet in one column.
    let names: Vec<String> = cases
        .iter()
        .map(|(name, _, _)| format!("NULL AS \"{name}\""))
        .collect();
    let schema = format!(
        "CREATE VIEW v AS SELECT 1 AS row, {}, 12345678901234567890.00100::numeric AS exact, 1.50::money AS unknown, INTERVAL '1 year 2 days 03:04:05.5' AS span
         UNION ALL SELECT 2, {}, NULL, NULL, NULL",
        columns.join(", "),
        names.join(", ")
    );
    let database = cluster.database(&schema).await;
    let host = TestHost::builder().start().await;
    let seller = host.company("types").await;
    let connection = seller.postgres(cluster, &database).await;
    let fields: Vec<Value> = std::iter::once("row")
        .chain(cases.iter().map(|(name, _, _)| *name))
        .chain(["exact", "unknown", "span"])
        .map(|name| json!({"name": name}))
        .collect();
    let endpoint = seller
        .endpoint(&connection, json!({"slug": "types", "source": {"schema": "public", "table": "v"}, "fields": fields, "order_by": ["row"]}))
        .await;
    let path = seller.path(&format!("/endpoints/{endpoint}/execute"));
    let page = seller.client.get(&path).await.expect(200);
    let rows = page.at("/data/response/data");
    for (name, _, expected) in &cases {
        assert_eq!(&rows[0][name], expected, "{name}");
        assert_eq!(rows[1][name], Value::Null, "{name}, NULL");
    }
    let raw = seller
        .client
        .request(reqwest::Method::GET, &path)
        .send()
        .await
        .expect("an answer")
        .text()
        .await
        .expect("a body");
    assert!(
        raw.contains("12345678901234567890.00100"),
        "numeric keeps its digits and its scale: {raw}"
    );
    assert!(rows[0]["span"].is_string(), "{}", rows[0]["span"]);
    assert_eq!(rows[0]["unknown"], "$1.50");
}
