//! What a page has shown of a row finds it: each value goes back as a filter, and finds exactly the rows that show the same; and pages in
//! the order of a column have each row once. Of columns whose values are not what their texts say.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use souk_tests::{Company, Databricks, DuckDb, MySql, PgCluster};

use crate::formats::{Raw, Sold};
use crate::pages::{ids, sqlite_file};
use crate::{host, unique};

/// A buyer of a table `t` with a number `id` and these columns.
async fn sold(seller: &Company, connection: &str, columns: &[&str]) -> Sold {
    let named = |name: &&str| json!({"name": name});
    let fields: Vec<Value> = [&"id"].into_iter().chain(columns).map(named).collect();
    let filter =
        |name: &&str| json!({"field": name, "operators": ["eq", "gt", "gte", "lt", "lte", "in"]});
    let filters: Vec<Value> = columns.iter().map(filter).collect();
    let sort = |name: &&str| json!({"name": name, "order_by": [name]});
    let sorts: Vec<Value> = columns.iter().map(sort).collect();
    let definition = json!({"source": {"table": "t"}, "order_by": ["id"], "fields": fields, "filters": filters, "sorts": sorts});
    Sold::new(seller, connection, definition, 1, 2_000).await
}

fn escaped(text: &str) -> String {
    let escaped = |byte: u8| match byte.is_ascii_alphanumeric() {
        true => char::from(byte).to_string(),
        false => format!("%{byte:02X}"),
    };
    text.bytes().map(escaped).collect()
}

async fn found(sold: &Sold, query: &str) -> Vec<i64> {
    let page = sold.feed.get(&format!("{}?{query}", sold.path)).await;
    assert_eq!(page.status, 200, "{query}: {}", page.body);
    ids(&page)
}

/// Every value finds the rows that show it, alone and in a list, and ranges that begin or end with it.
async fn assert_found(sold: &Sold, column: &str) {
    // With all digits, which JSON's numbers lose where they are read.
    let page = Raw::get(&sold.feed, &sold.path, &[("accept", "text/csv")]).await;
    let csv = page.text();
    let mut lines = csv.lines().map(|line| line.split(','));
    let mut names = lines.next().expect("names");
    let place = names.position(|name| name == column).expect("the column");
    let mut shown: BTreeMap<String, Vec<i64>> = BTreeMap::new();
    for line in lines {
        let values: Vec<&str> = line.collect();
        if !values[place].is_empty() {
            let ids = shown.entry(values[place].to_owned()).or_default();
            ids.push(values[0].parse().expect("a number"));
        }
    }
    assert!(!shown.is_empty(), "{column}");
    for (value, expected) in &shown {
        let written = escaped(value);
        let listed = written.replace("%2C", "%5C%2C");
        for query in [
            format!("{column}={written}"),
            format!("{column}[in]={listed}"),
        ] {
            assert_eq!(found(sold, &query).await, *expected, "{query}");
        }
        let [above, from, below, to] =
            ["gt", "gte", "lt", "lte"].map(|operator| format!("{column}[{operator}]={written}"));
        for (inner, outer) in [(above, from), (below, to)] {
            let (inner, outer) = (found(sold, &inner).await, found(sold, &outer).await);
            let rest = outer.iter().filter(|id| !inner.contains(id));
            assert_eq!(
                rest.copied().collect::<Vec<i64>>(),
                *expected,
                "{column}: {value}"
            );
        }
    }
}

/// Pages of two rows, in the order of a column, have each row once.
async fn assert_followed(sold: &Sold, sort: &str, rows: i64) {
    let first = format!("{}?sort={sort}&limit=2", sold.path);
    let mut page = sold.feed.get(&first).await.expect(200);
    let mut all = ids(&page);
    while let Value::String(next) = page.at("/data/service/pagination/next_url").clone() {
        page = sold.feed.get(&next).await.expect(200);
        all.extend(ids(&page));
        assert!(all.len() <= rows as usize, "{sort}: {all:?}");
    }
    all.sort_unstable();
    assert_eq!(all, (1..=rows).collect::<Vec<i64>>(), "{sort}");
}

/// Floats of 32 bits, which are compared with 64.
const SINGLES: &str =
    "(1, 0.1), (2, 0.7), (3, 1e30), (4, -2.5), (5, NULL), (6, 16777216), (7, 0.1), (8, 3.4e38)";

#[tokio::test]
async fn a_float_of_32_bits_is_found() {
    let seller = host().await.company(&unique("singles")).await;
    let (cluster, server) = (PgCluster::shared().await, MySql::shared());
    let endless = "CREATE TABLE t (id BIGINT PRIMARY KEY, v double precision); INSERT INTO t VALUES (1, 'Infinity'), (2, '-Infinity'), (3, 1), (4, 'NaN')";
    let connection = seller
        .postgres(cluster, &cluster.database(endless).await)
        .await;
    let infinite = sold(&seller, &connection, &["v"]).await;
    for (query, expected) in [
        ("v=Infinity", vec![1]),
        ("v[lt]=-1", vec![2]),
        ("v=NaN", vec![4]),
        ("v[gte]=-Infinity", vec![1, 2, 3, 4]),
    ] {
        assert_eq!(found(&infinite, query).await, expected, "{query}");
    }
    let table = |kind: &str| {
        format!("CREATE TABLE t (id BIGINT PRIMARY KEY, v {kind}); INSERT INTO t VALUES {SINGLES};")
    };
    let duck = DuckDb::start();
    duck.admin("CREATE SCHEMA singles");
    duck.admin("CREATE TABLE singles.t (id BIGINT PRIMARY KEY, v FLOAT)");
    duck.admin(&format!("INSERT INTO singles.t VALUES {SINGLES}"));
    let connections = [
        seller
            .postgres(cluster, &cluster.database(&table("real")).await)
            .await,
        seller
            .mysql(server, &server.database(&table("FLOAT")))
            .await,
        seller.duckdb(&duck, "singles").await,
    ];
    for (place, connection) in connections.into_iter().enumerate() {
        let sold = sold(&seller, &connection, &["v"]).await;
        assert_found(&sold, "v").await;
        assert_followed(&sold, "v", 8).await;
        // What no float is shown as has its place between them; PostgreSQL makes one of it.
        if place > 0 {
            assert_eq!(found(&sold, "v[lt]=0.1000000001").await, [1, 4, 7]);
            assert!(found(&sold, "v=0.1000000001").await.is_empty());
        }
    }
}

/// Whole numbers that are longer than a decimal of DuckDB's.
#[tokio::test]
async fn a_huge_number_of_duckdb_is_found() {
    let seller = host().await.company(&unique("huge")).await;
    let duck = DuckDb::start();
    duck.admin("CREATE SCHEMA huge");
    duck.admin("CREATE TABLE huge.t (id BIGINT PRIMARY KEY, h HUGEINT, u UHUGEINT, n BIGNUM, d DECIMAL(38, 5), b UBIGINT)");
    duck.admin(
        "INSERT INTO huge.t VALUES (1, 170141183460469231731687303715884105727, 340282366920938463463374607431768211455, '123456789012345678901234567890123456789012345', 1.5, 7), \
         (2, -7, 7, '-7', -7, 18446744073709551615), (3, NULL, NULL, NULL, NULL, NULL), \
         (4, 99999999999999999999999999999999999999, 99999999999999999999999999999999999999, '7', 99999999999999999999999999999999.99999, 0)",
    );
    let connection = seller.duckdb(&duck, "huge").await;
    let columns = ["h", "u", "n", "d", "b"];
    let sold = sold(&seller, &connection, &columns).await;
    for column in columns {
        assert_found(&sold, column).await;
    }
    for column in ["h", "n"] {
        let above = found(&sold, &format!("{column}[gt]=-7.5")).await;
        assert_eq!(above, [1, 2, 4], "{column}");
    }
}

/// Numbers that are one and are written otherwise, spans of time too, and texts that a type takes for one: a page ends among them.
#[tokio::test]
async fn what_postgres_takes_for_one_is_paged() {
    let seller = host().await.company(&unique("alike")).await;
    let cluster = PgCluster::shared().await;
    let sql = "CREATE COLLATION loose (provider = icu, locale = 'und-u-ks-level2', deterministic = false);
        CREATE TABLE alike (id bigint PRIMARY KEY, n numeric, span interval, name text COLLATE loose);
        INSERT INTO alike SELECT i, (ARRAY['1.0', '1.00', '1', '2.50', '2.5', '0.0', '-0.00'])[i % 7 + 1]::numeric,
            (ARRAY['24:00', '1 day', '2 days', '48:00'])[i % 4 + 1]::interval, (ARRAY['a', 'A', 'b', 'B'])[i % 4 + 1]
        FROM generate_series(1, 29) AS i;";
    let connection = seller.postgres(cluster, &cluster.database(sql).await).await;
    for column in ["n", "span", "name"] {
        // Of a statement no key tells rows apart.
        let definition = json!({"sql_logic": "SELECT id, n, span, name FROM alike", "fields": [{"name": "id"}, {"name": column}],
            "order_by": [column, "id"], "sorts": [{"name": "alone", "order_by": [column]}]});
        let sold = Sold::new(&seller, &connection, definition, 1, 200).await;
        assert_followed(&sold, "alone", 29).await;
        // Of others it depends on which rows a page ends with.
        if column == "n" {
            let page = format!("{}?sort=alone&limit=2", sold.path);
            let page = sold.feed.get(&page).await.expect(200);
            let next = page.text("/data/service/pagination/next_url");
            let page = sold.feed.get(&next).await.expect(200);
            assert_eq!(page.at("/data/service/pagination/paging"), "keyset");
        }
    }
}

/// A file's columns hold what they like: times that are written in many ways, some rows with none; whole numbers where others are not.
#[tokio::test]
async fn what_a_file_holds_is_found_and_paged() {
    let seller = host().await.company(&unique("file")).await;
    let sql = "CREATE TABLE t (id INTEGER PRIMARY KEY, at DATETIME, opens TIME, price NUMERIC(10, 2), big, share DECIMAL);
        INSERT INTO t VALUES
            (1, 'n/a', '', 10, 7, 1), (2, '2026-11-23T05:17', '08:30', 10.5, 9007199254740993, 2),
            (3, '2026-11-23 05:17:00.000', '08:30:00', 11, 0.5, 9e999), (4, '2026-11-23T05:17:00', '08:30:00.000', 12, 9007199254740992, -9e999),
            (5, '2026-11-23T05:17:00.000', '08:30', 10.25, NULL, 3), (6, '2026-11-23 05:17', '09:00', 1, -3, 4),
            (7, '2026-11-24', '10:00', NULL, 8, 9e999), (8, '2026-11-23T05:17:45.123456789+00:00', NULL, NULL, NULL, NULL);";
    let connection = seller.sqlite("t.db", sqlite_file(sql).await).await;
    let columns = ["at", "opens", "price", "big", "share"];
    let sold = sold(&seller, &connection, &columns[..]).await;
    for sort in columns {
        assert_followed(&sold, sort, 8).await;
    }
    assert_found(&sold, "price").await;
    for (query, expected) in [
        ("at=2026-11-23T05:17:00.000000", vec![2, 3, 4, 5, 6]),
        ("at=n/a", vec![1]),
        (
            "at[gt]=2026-11-23T05:17:45.123456788%2B00:00",
            vec![1, 7, 8],
        ),
        ("at[lt]=2026-11-23T05:17:45Z", vec![2, 3, 4, 5, 6]),
        ("opens[in]=08:30,09:00:00", vec![2, 3, 4, 5, 6]),
        ("big=9007199254740993", vec![2]),
        ("big=0.5", vec![3]),
        ("big[lt]=0", vec![6]),
        ("price=10.50", vec![2]),
    ] {
        assert_eq!(found(&sold, query).await, expected, "{query}");
    }
}

/// A statement's misspelt column is none, also over a view that has texts in double quotes; such a view is shown and sold as it was made.
#[tokio::test]
async fn a_view_with_texts_in_double_quotes_is_sold() {
    let seller = host().await.company(&unique("view")).await;
    let sql = r#"CREATE TABLE shifts (id INTEGER PRIMARY KEY, first, last, "b ""c");
        INSERT INTO shifts VALUES (1, 'Ada', 'Lovelace', 7), (2, 'Alan', 'Turing', 8);
        CREATE VIEW t AS SELECT id, first || " " || last AS name, CASE WHEN id < 2 THEN "few" ELSE "" END AS size, "b ""c" FROM shifts;"#;
    let connection = seller.sqlite("t.db", sqlite_file(sql).await).await;
    let schema = seller.path(&format!("/connections/{connection}/schema"));
    let schema = seller.client.get(&schema).await.expect(200);
    assert!(
        schema.body.to_string().contains("\"size\""),
        "{}",
        schema.body
    );
    let sold = sold(&seller, &connection, &["name", "size"]).await;
    assert_found(&sold, "name").await;
    assert_eq!(found(&sold, "size=few").await, [1]);
    assert_followed(&sold, "name", 2).await;
    for (statement, name) in [
        (r#"SELECT id, "few" AS name FROM shifts"#, "few"),
        (r#"SELECT id, name FROM t ORDER BY "sizes""#, "sizes"),
        (r#"SELECT id, name FROM t WHERE "few" = size"#, "few"),
        (r#"SELECT id, "b ""d" AS name FROM t"#, r#"b ""d"#),
    ] {
        let body = json!({"slug": unique("quoted"), "sql_logic": statement, "fields": [{"name": "id"}, {"name": "name"}], "order_by": ["id"]});
        let endpoint = seller.endpoint(&connection, body).await;
        let test = seller.path(&format!("/endpoints/{endpoint}/test"));
        let test = seller.client.get(&test).await;
        let said = test.text("/error/details/source_message");
        assert!(
            said.starts_with(&format!("no such column: \"{name}\"")),
            "{statement}: {said}"
        );
    }
}

/// Of a column in which not all rows are numbers, those that are can be filtered by, as the first row is one.
#[tokio::test]
async fn a_column_with_a_few_other_values_is_filtered() {
    let seller = host().await.company(&unique("mixture")).await;
    let sql = "CREATE TABLE t (id INTEGER PRIMARY KEY, price NUMERIC); INSERT INTO t VALUES (1, 10), (2, 'n/a'), (3, 2.5), (4, NULL), (5, '')";
    let connection = seller.sqlite("t.db", sqlite_file(sql).await).await;
    let sold = sold(&seller, &connection, &["price"]).await;
    for (query, expected) in [
        ("price=10", vec![1]),
        ("price=2.5", vec![3]),
        ("price[lt]=9", vec![3]),
    ] {
        assert_eq!(found(&sold, query).await, expected, "{query}");
    }
    assert_followed(&sold, "price", 5).await;
}

/// Both directions of an order by each of these columns.
fn both_ways(columns: &[&str]) -> Vec<Value> {
    let both = |name: &&str| {
        [
            json!({"name": format!("{name}-up"), "order_by": [name]}),
            json!({"name": format!("{name}-down"), "order_by": [format!("-{name}")]}),
        ]
    };
    columns.iter().flat_map(both).collect()
}

/// Texts that are not UTF-8 come as bytes, which in a file are greater than every text: of whatever type their column is, and of none.
#[tokio::test]
async fn texts_of_a_file_that_are_not_utf8_are_paged() {
    let seller = host().await.company(&unique("latin")).await;
    let row = |id: i32| {
        let text = format!("CAST(X'4dfc6c6c657{id}' AS TEXT)");
        format!("({id}, {text}, {text}, {text})")
    };
    let rows: Vec<String> = (1..=7).map(row).collect();
    let sql = format!(
        "CREATE TABLE t (id INTEGER PRIMARY KEY, name VARCHAR(9), bare, at DATETIME); INSERT INTO t VALUES {}",
        rows.join(", ")
    );
    let connection = seller.sqlite("t.db", sqlite_file(&sql).await).await;
    let columns = ["name", "bare", "at"];
    let definition = json!({"source": {"table": "t"}, "fields": [{"name": "id"}, {"name": "name"}], "order_by": ["id"],
        "sorts": both_ways(&columns)});
    let sold = Sold::new(&seller, &connection, definition, 1, 200).await;
    for column in columns {
        for way in ["up", "down"] {
            assert_followed(&sold, &format!("{column}-{way}"), 7).await;
        }
    }
}

/// Times that a file keeps as numbers sort as numbers among the others that it keeps as texts, where a page ends among them, too.
#[tokio::test]
async fn numbers_among_the_times_of_a_file_are_paged() {
    let seller = host().await.company(&unique("epochs")).await;
    let sql = "CREATE TABLE t (id INTEGER PRIMARY KEY, at DATETIME);
        INSERT INTO t VALUES (1, 'n/a'), (2, 1700000000), (3, 2460310.5), (4, '2026-11-23 05:17:00'), (5, 1700000000),
            (6, 2460310.5), (7, NULL), (8, 1700000000), (9, NULL);";
    let connection = seller.sqlite("t.db", sqlite_file(sql).await).await;
    let definition = json!({"source": {"table": "t"}, "fields": [{"name": "id"}, {"name": "at"}], "order_by": ["id"],
        "sorts": both_ways(&["at"])});
    let sold = Sold::new(&seller, &connection, definition, 1, 200).await;
    for sort in ["at-up", "at-down"] {
        assert_followed(&sold, sort, 9).await;
    }
}

/// Of a statement over a column that ignores case, where a page ends among rows that are one to it.
#[tokio::test]
async fn what_a_files_collation_takes_for_one_is_paged() {
    let seller = host().await.company(&unique("nocase")).await;
    let sql = "CREATE TABLE t (id INTEGER PRIMARY KEY, name TEXT COLLATE NOCASE, padded TEXT COLLATE RTRIM);
        INSERT INTO t VALUES (1, 'a', 'x'), (2, 'A', 'x '), (3, 'a', 'x  '), (4, 'B', 'y'), (5, 'b', 'y '), (6, 'B', 'y'), (7, 'A', 'z'), (8, 'c', 'z ');";
    let connection = seller.sqlite("t.db", sqlite_file(sql).await).await;
    let definition = json!({"sql_logic": "SELECT id, name, padded FROM t", "fields": [{"name": "id"}], "order_by": ["id"],
        "sorts": [{"name": "name", "order_by": ["name"]}, {"name": "padded", "order_by": ["padded"]}]});
    let sold = Sold::new(&seller, &connection, definition, 1, 200).await;
    for sort in ["name", "padded"] {
        assert_followed(&sold, sort, 8).await;
    }
}

/// Of each type that Spark compares, at both of its ends.
#[tokio::test]
#[ignore = "needs Spark, 500 MB, and Java 17: tests/run --all-engines"]
async fn what_real_spark_shows_is_found() {
    let server = Databricks::start_spark().await;
    server.spark().admin(
        "CREATE SCHEMA shelf;
CREATE TABLE shelf.t (id BIGINT, tiny TINYINT, whole BIGINT, single FLOAT, double DOUBLE, exact DECIMAL(38, 10), word STRING, fixed CHAR(3), day DATE, moment TIMESTAMP, clock TIMESTAMP_NTZ, truth BOOLEAN) USING parquet;
INSERT INTO shelf.t VALUES
    (1, -128, -9223372036854775808, 0.1, 4.9e-324, -9999999999999999999999999999.9999999999, '', 'a', DATE '0001-01-01', TIMESTAMP '0001-01-01 00:00:00Z', TIMESTAMP_NTZ '0001-01-01 00:00:00', true),
    (2, 127, 9223372036854775807, 3.4e38, 0.1, 9999999999999999999999999999.9999999999, 'it\\'s \\\\ %_', 'ab ', DATE '9999-12-31', TIMESTAMP '9999-12-31 23:59:59.999999Z', TIMESTAMP_NTZ '9999-12-31 23:59:59.999999', false),
    (3, 0, 9007199254740993, 16777216, 9007199254740993, 0.0000000001, 'É', 'abc', DATE '1582-10-10', TIMESTAMP '1582-10-10 12:00:00.5Z', TIMESTAMP_NTZ '1582-10-10 12:00:00.5', true),
    (4, 1, 1, -2.5, 2.5, 1.5, 'é', 'é', DATE '1970-01-01', TIMESTAMP '1969-12-31 23:59:59.999999Z', TIMESTAMP_NTZ '1969-12-31 23:59:59.999999', NULL),
    (5, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL),
    (6, 0, 1, 0.1, 0.1, 1.5, '😀', 'abc', DATE '1970-01-01', TIMESTAMP '2026-03-29 01:30:00Z', TIMESTAMP_NTZ '2026-03-29 02:30:00', true);
",
    );
    // The first time takes seconds.
    server
        .spark()
        .told("SELECT * FROM t ORDER BY id LIMIT 2", "shelf");
    let seller = host().await.company(&unique("shelf")).await;
    let connection = seller.databricks(&server, "shelf").await;
    let columns = [
        "tiny", "whole", "single", "double", "exact", "fixed", "day", "moment", "clock",
    ];
    let sold = sold(&seller, &connection, &columns).await;
    for column in columns {
        assert_found(&sold, column).await;
        assert_followed(&sold, column, 6).await;
    }
}
