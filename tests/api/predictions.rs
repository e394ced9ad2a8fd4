//! Predictions of what real sources return: gaps, several rows of one time, times that are texts.

use serde_json::{Value, json};

use crate::pages::sqlite_file;
use crate::{host, league, unique};

fn prediction(sql: &str) -> Value {
    json!({"asset_type": "PREDICTION", "result_type": "prediction", "slug": unique("prediction"), "sql_logic": sql})
}

/// Days that are NULL or have no row shift no season: 250 days of a league that sells much from Monday to Friday, some on Saturdays, nothing on Sundays.
#[tokio::test]
async fn gaps_shift_no_season() {
    let league = league().await;
    let sales = "CASE extract(isodow FROM played_on) WHEN 6 THEN 10 WHEN 7 THEN 0 ELSE 100 END + (id * 7919 % 13) / 13.0";
    for sql in [
        format!(
            "SELECT played_on, CASE WHEN id NOT IN (20, 47, 120, 203, 231) THEN {sales} END AS sold FROM matches"
        ),
        format!(
            "SELECT played_on, {sales} AS sold FROM matches WHERE id NOT IN (20, 47, 120, 203, 231)"
        ),
    ] {
        let asset = league
            .seller
            .asset(&league.connection, prediction(&sql))
            .await;
        let answer = league.seller.execute(&asset, json!({})).await.expect(200);
        let point = |place: usize, member: &str| {
            answer.at(&format!("/data/prediction/points/{place}/{member}"))
        };
        // The last row is of 8 September 2026, a Tuesday.
        for (place, t, expected) in [
            (0, "2026-09-09", 100.0),
            (3, "2026-09-12", 10.0),
            (4, "2026-09-13", 0.0),
            (5, "2026-09-14", 100.0),
        ] {
            assert_eq!(point(place, "t"), t, "{sql}");
            let value = point(place, "value").as_f64().expect("a number");
            assert!((value - expected).abs() < 8.0, "{t}: {value}: {sql}");
        }
    }
}

/// What is no series is the seller's: everybody is told what is wrong, its owner where.
#[tokio::test]
async fn what_is_no_series_is_told() {
    let league = league().await;
    for (sql, message, told) in [
        (
            "SELECT played_on, goals FROM matches WHERE id <= 5",
            "the series has 5 points with a value; at least 8 are needed",
            "rows without a value",
        ),
        (
            "SELECT played_on, goals FROM matches UNION ALL SELECT played_on, goals FROM matches",
            "several rows of the series have the same time: aggregate them (GROUP BY)",
            "\"played_on\"",
        ),
    ] {
        let asset = league
            .seller
            .asset(&league.connection, prediction(sql))
            .await;
        let refused = league.seller.execute(&asset, json!({})).await;
        let refused = refused.expect_error(502, "SOURCE_ERROR");
        assert_eq!(refused.text("/error/message"), message);
        let said = refused.text("/error/details/source_message");
        assert!(said.contains(told), "{said}");
    }
}

/// A file's months go on as months, and its clock without a zone.
#[tokio::test]
async fn texts_of_a_file_are_continued_as_they_are_written() {
    let sales = "CREATE TABLE sales (month TEXT, shown TEXT, sold REAL); \
        WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < 23) \
        INSERT INTO sales SELECT strftime('%Y-%m', '2024-01-01', '+' || i || ' months'), \
        strftime('%Y-%m-%d %H:%M', '2026-01-31', '+' || (i * 15) || ' minutes'), i % 5 FROM n";
    let seller = host().await.company(&unique("months")).await;
    let connection = seller.sqlite("sales.db", sqlite_file(sales).await).await;
    for (column, next) in [
        ("month", ["2026-01", "2026-02"]),
        ("shown", ["2026-01-31 06:00", "2026-01-31 06:15"]),
    ] {
        let sql = format!("SELECT {column} AS t, sold FROM sales");
        let asset = seller.asset(&connection, prediction(&sql)).await;
        let answer = seller.execute(&asset, json!({})).await.expect(200);
        for (place, t) in next.iter().enumerate() {
            let point = format!("/data/prediction/points/{place}/t");
            assert_eq!(answer.at(&point), t, "{sql}");
        }
    }
}
