//! A month's requests: their sums, and the table that spreadsheets read.

use crate::world::{World, now, request};
use axum::body::Body;
use http::Method;
use http_body_util::BodyExt;
use serde_json::json;
use souk_domain::time::Timestamp;
use souk_store::StoreError;
use tower::ServiceExt;

/// A month's requests add up by day, by route and by key, and are a table that no spreadsheet calculates.
#[tokio::test]
async fn requests_are_counted_by_month() {
    let world = World::new().await;
    let acme = world.company("acme").await;
    let named = json!({"name": "=1+1, \"two\""});
    let made = world
        .post(&acme.key, &acme.path("/api-keys"), named)
        .await
        .expect(201);
    let key = made.text("/data/key");
    for _ in 0..3 {
        world.get(&key, &acme.path("/credits")).await.expect(200);
    }
    world.get(&key, "/job-functions").await.expect(200);
    // Refused: role 2 may not.
    world.get(&key, &acme.path("/audit-log")).await.expect(403);
    world.teller.flush().await;
    let usage = world
        .get(&acme.key, &acme.path("/request-usage"))
        .await
        .expect(200);
    let month = now().date()[..7].to_owned();
    assert_eq!(usage.at("/data/month"), month.as_str());
    assert_eq!(
        (
            usage.at("/data/total_requests"),
            usage.at("/data/failed_requests")
        ),
        (&json!(6), &json!(1))
    );
    let sum = |list: &str| -> i64 {
        let list = usage.at(list).as_array().unwrap().iter();
        list.map(|item| item["requests"].as_i64().unwrap()).sum()
    };
    assert_eq!(
        [
            sum("/data/by_day"),
            sum("/data/by_route"),
            sum("/data/by_key")
        ],
        [6, 6, 6]
    );
    assert_eq!(
        usage.at("/data/by_route/0"),
        &json!({"route": "/credits", "requests": 3})
    );
    let of_key =
        json!({"api_key_id": made.text("/data/id"), "name": "=1+1, \"two\"", "requests": 5});
    assert_eq!(usage.at("/data/by_key/0"), &of_key);
    assert!((28..=31).contains(&usage.at("/data/by_day").as_array().unwrap().len()));
    let empty = world
        .get(&acme.key, &acme.path("/request-usage?month=2024-02"))
        .await
        .expect(200);
    assert_eq!(
        (
            empty.at("/data/total_requests"),
            empty.at("/data/by_day").as_array().unwrap().len()
        ),
        (&json!(0), 29)
    );

    let path = acme.path("/request-usage");
    for (path, accept) in [(format!("{path}?format=csv"), "*/*"), (path, "text/csv")] {
        let request = request(Method::GET, &acme.key, &path).header("accept", accept);
        let request = request.body(Body::empty()).unwrap();
        let response = world.router.clone().oneshot(request).await.unwrap();
        let (parts, body) = response.into_parts();
        let header = |name: &str| parts.headers[name].to_str().unwrap();
        assert_eq!(
            (parts.status.as_u16(), header("content-type")),
            (200, "text/csv; charset=utf-8")
        );
        let named = format!("attachment; filename=\"request-usage-{month}.csv\"");
        assert_eq!(header("content-disposition"), named);
        let text = body.collect().await.unwrap().to_bytes();
        let text = String::from_utf8(text.to_vec()).unwrap();
        let mut lines = text.split("\r\n");
        assert_eq!(
            lines.next(),
            Some("date,route,api_key_id,name,requests,failed_requests,user_id")
        );
        let of_key = format!(
            "{},/credits,{},\"'=1+1, \"\"two\"\"\",3,0,",
            now().date(),
            made.text("/data/id")
        );
        assert!(lines.any(|line| line == of_key), "{text}");
        assert!(text.ends_with("\r\n"));
    }
}

/// A table has 50,000 lines at most. Of a month with more JSON shows the sums.
#[tokio::test]
async fn a_table_of_requests_is_bounded() {
    let world = World::new().await;
    let acme = world.company("acme").await;
    let run = async |sql: &'static str| {
        let hour = Timestamp::parse("2024-02-03T00:00:00Z").unwrap();
        let write = world.db.write(async |write| -> Result<_, StoreError> {
            let query = sqlx::query(sql).bind(&acme.id).bind(&acme.user_id);
            let query = query.bind(hour.micros());
            query.execute(&mut **write).await.unwrap();
            Ok(())
        });
        write.await.unwrap();
    };
    run(
        "INSERT INTO key_usage (company_id, key_id, hour, route, requests, failed)
         WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 50001)
         SELECT $1, $2, $3, '/r' || i, 1, 0 FROM n",
    )
    .await;
    let json = acme.path("/request-usage?month=2024-02");
    let csv = format!("{json}&format=csv");
    let refused = world.get(&acme.key, &csv).await;
    let refused = refused.expect_error(400, "INVALID_PARAMETER");
    assert_eq!(refused.fields(), ["format"]);
    let shown = world.get(&acme.key, &json).await.expect(200);
    assert_eq!(
        [
            shown.at("/data/total_requests"),
            shown.at("/data/by_day/2/requests"),
            shown.at("/data/by_user/0/requests")
        ],
        [&json!(50_001); 3]
    );

    run("DELETE FROM key_usage WHERE company_id = $1 AND key_id = $2 AND hour = $3 AND route = '/r1'").await;
    let request = request(Method::GET, &acme.key, &csv);
    let request = request.body(Body::empty()).unwrap();
    let response = world.router.clone().oneshot(request).await.unwrap();
    assert_eq!(response.status(), 200);
    let text = response.into_body().collect().await.unwrap().to_bytes();
    let text = String::from_utf8(text.to_vec()).unwrap();
    assert_eq!(text.lines().count(), 50_001);
    assert!(text.contains(&format!(",1,0,{}\r\n", acme.user_id)));
}
