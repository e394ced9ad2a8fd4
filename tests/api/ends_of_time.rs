//! What a PostgreSQL has beyond the times of all others: the end of a day, and dates and timestamps without an end.

use serde_json::json;
use souk_tests::{Answer, PgCluster};

use crate::formats::{Raw, Sold};
use crate::pages::ids;
use crate::{host, unique};

/// PostgreSQL's 24:00:00 leaves where the format has it. Where it has not the page is free, and says for what else to ask.
#[tokio::test]
async fn the_end_of_a_day_leaves_where_it_can() {
    let cluster = PgCluster::shared().await;
    let seller = host().await.company(&unique("shops")).await;
    let sql = "CREATE TABLE shops (id integer PRIMARY KEY, closes time); \
        INSERT INTO shops VALUES (1, '23:59:59.999999'), (2, '24:00:00')";
    let connection = seller.postgres(cluster, &cluster.database(sql).await).await;
    let definition = json!({"source": {"table": "shops"}, "order_by": ["id"], "fields": [{"name": "id"}, {"name": "closes"}],
        "filters": ["closes"]});
    let sold = Sold::new(&seller, &connection, definition, 1, 100).await;
    let last = format!("{}?closes=24:00:00", sold.path);
    let page = sold.feed.get(&last).await.expect(200);
    assert_eq!(ids(&page), [2]);
    assert_eq!(page.at("/data/response/data/0/closes"), "24:00:00.000000");
    let csv = Raw::get(&sold.feed, &sold.path, &[("accept", "text/csv")]).await;
    assert!(csv.text().contains("2,24:00:00.000000"), "{}", csv.text());
    let (before, _) = sold.buyer.credits().await;
    for format in [
        "application/vnd.apache.arrow.stream",
        "application/vnd.apache.parquet",
    ] {
        let request = sold.feed.request(reqwest::Method::GET, &sold.path);
        let refused = Answer::of(request.header("accept", format)).await;
        let refused = refused.expect_error(502, "SOURCE_ERROR");
        let message = refused.text("/error/message");
        for part in ["\"closes\"", "24:00:00", "NDJSON"] {
            assert!(message.contains(part), "{message}");
        }
        // The row behind the page is none of its own.
        let path = format!("{}?limit=1", sold.path);
        let first = Raw::get(&sold.feed, &path, &[("accept", format)]).await;
        assert_eq!(first.status, 200, "{format}");
    }
    assert_eq!(sold.buyer.credits().await, (before - 2, 0));
}

/// NULL would be another value and text another type: a call that meets PostgreSQL's `infinity` is free, and its owner is told of which column
/// and what to write instead, which then leaves.
#[tokio::test]
async fn an_endless_time_is_explained_to_its_owner() {
    let cluster = PgCluster::shared().await;
    let seller = host().await.company(&unique("contracts")).await;
    let sql = "CREATE TABLE contracts (since date, ends timestamp, seen timestamptz); \
        INSERT INTO contracts VALUES ('2026-01-01', '2026-01-01', '2026-01-01')";
    let database = cluster.database(sql).await;
    let connection = seller.postgres(cluster, &database).await;
    let columns = [
        ("since", "-infinity"),
        ("ends", "infinity"),
        ("seen", "-infinity"),
    ];
    let selecting = async |value: String| {
        let sql = format!("SELECT {value} AS undisclosed FROM contracts");
        let asset = json!({"slug": unique("contract"), "result_type": "string", "sql_logic": sql});
        seller.asset(&connection, asset).await
    };
    let mut assets = Vec::new();
    for (column, value) in columns {
        let plain = selecting(column.to_owned()).await;
        seller.publish(&plain, 1).await;
        let cast = selecting(format!("CAST({column} AS text)")).await;
        assets.push((value, plain, cast));
    }
    let endless = "UPDATE contracts SET since = '-infinity', ends = 'infinity', seen = '-infinity'";
    let client = cluster.client(&database).await;
    client.batch_execute(endless).await.expect("an update");
    let buyer = host().await.buyer(&unique("reader"), 10).await;
    for (value, plain, cast) in assets {
        let refused = buyer.execute(&plain, json!({})).await;
        let refused = refused.expect_error(502, "SOURCE_ERROR");
        assert_eq!(refused.at("/error/details/charged"), false);
        let said = refused.body.to_string();
        assert!(
            said.contains("infinite") && !said.contains("undisclosed"),
            "{said}"
        );
        let own = seller.execute(&plain, json!({})).await;
        let said = own.text("/error/details/source_message");
        for part in [
            "column \"undisclosed\"",
            "CAST(",
            &format!("NULLIF(…, '{value}')"),
        ] {
            assert!(said.contains(part), "{said}");
        }
        let text = seller.execute(&cast, json!({})).await.expect(200);
        assert_eq!(text.at("/data/answer_value"), value);
    }
    assert_eq!(buyer.credits().await, (10, 0));
}
