//! Filters and orders that a source can never do are refused by the test and the publication, before anybody pays for them, and from then on
//! by whatever would save them.

use serde_json::{Value, json};
use souk_tests::{
    Answer, Company, Databricks, DuckDb, MySql, PgCluster, SqlServer, Trino, sqlserver,
};

use crate::pages::sqlite_file;
use crate::{host, unique};

const GOODS: &str = "CREATE TYPE pair AS (a int, b int);
    CREATE TYPE size AS ENUM ('large', 'small');
    CREATE TABLE goods (id int PRIMARY KEY, doc json, docb jsonb, list int4[], raw bytea, both_of pair, place point, page xml, serial uuid, name text, kind size);
    INSERT INTO goods VALUES (1, '{}', '{}', '{2}', 'a', (1, 2), '(0,0)', '<a/>', 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11', 'one', 'large'),
        (2, '[]', '[1]', '{1}', 'b', (1, 3), '(1,0)', '<b/>', NULL, 'two', 'small'), (3, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL)";

async fn saved(seller: &Company, connection: &str, members: Value) -> String {
    let mut body = json!({"slug": unique("goods"), "source": {"table": "goods"}, "fields": [{"name": "id"}], "order_by": ["id"]});
    for (name, value) in members.as_object().unwrap() {
        body[name] = value.clone();
    }
    seller.endpoint(connection, body).await
}

async fn tested(seller: &Company, endpoint: &str) -> Answer {
    let path = seller.path(&format!("/endpoints/{endpoint}/test"));
    seller.client.get(&path).await
}

/// Neither tested nor published, with the column and its type.
async fn assert_refused(seller: &Company, endpoint: &str, says: &[&str]) {
    let said = tested(seller, endpoint).await;
    let said = said
        .expect_error(409, "INVALID_STATE")
        .text("/error/message");
    let prices = seller.path(&format!("/endpoints/{endpoint}/prices"));
    let price = json!({"price_credits": 1});
    seller.client.post(&prices, price).await.expect(201);
    let publish = seller.path(&format!("/endpoints/{endpoint}/publish"));
    let refused = seller.client.post(&publish, json!({})).await;
    let refused = refused.expect_error(409, "INVALID_STATE");
    for says in says {
        assert!(said.contains(says), "{says}: {said}");
        let published = refused.text("/error/message");
        assert!(published.contains(says), "{says}: {published}");
    }
}

/// Each member that a save was refused for, with what is said of it.
fn refused_when_saved(answer: Answer) -> Vec<(String, String)> {
    let answer = answer.expect_error(400, "VALIDATION_ERROR");
    let errors = answer.at("/error/details/errors").as_array();
    let errors = errors.expect("wrong members");
    let told = errors.iter().map(|error| {
        assert_eq!(error["code"], "unsupported", "{error}");
        let text = |name: &str| error[name].as_str().unwrap_or_default().to_owned();
        (text("field"), text("message"))
    });
    told.collect()
}

/// What PostgreSQL compares and sorts goes on, whatever its type; the rest is named.
#[tokio::test]
async fn what_postgres_cannot_compare_is_refused() {
    let cluster = PgCluster::shared().await;
    let seller = host().await.company(&unique("goods")).await;
    let database = cluster.database(GOODS).await;
    let connection = seller.postgres(cluster, &database).await;
    for (column, native, filters, sorts) in [
        ("doc", "json", false, false),
        ("docb", "jsonb", false, true),
        ("list", "int4[]", false, true),
        ("raw", "bytea", false, true),
        ("both_of", "pair", false, false),
        ("place", "point", false, false),
        ("page", "xml", false, false),
        ("serial", "uuid", true, true),
        ("name", "text", true, true),
        ("kind", "size", true, true),
    ] {
        let endpoint = saved(&seller, &connection, json!({"filters": [column]})).await;
        match filters {
            true => drop(tested(&seller, &endpoint).await.expect(200)),
            false => {
                let named =
                    format!("\"{column}\" in filters is {native}, which cannot be compared");
                assert_refused(&seller, &endpoint, &[&named, "leave it out"]).await;
            }
        }
        let order = json!({"sorts": [{"name": "odd", "order_by": [column]}]});
        let endpoint = saved(&seller, &connection, order).await;
        match sorts {
            true => {
                tested(&seller, &endpoint).await.expect(200);
                let path = seller.path(&format!("/endpoints/{endpoint}/execute?sort=odd&limit=1"));
                let mut page = seller.client.get(&path).await.expect(200);
                let mut seen = 1;
                while let Value::String(next) = page.at("/data/service/pagination/next_url").clone()
                {
                    page = seller.client.get(&next).await.expect(200);
                    seen += 1;
                }
                assert_eq!(seen, 3, "{column}");
            }
            false => {
                let named = format!("\"{column}\" in sorts is {native}, which cannot be sorted");
                assert_refused(&seller, &endpoint, &[&named]).await;
            }
        }
    }
    // The order that rows come in by themselves, and several at once beside those that work, on a connection of which nobody knows that yet.
    let known = connection;
    let connection = seller.postgres(cluster, &database).await;
    let endpoint = saved(&seller, &connection, json!({"order_by": ["doc"]})).await;
    assert_refused(&seller, &endpoint, &["\"doc\" in order_by is json"]).await;
    // What stands there already does not hold up a change of something else.
    let renamed = seller.path(&format!("/endpoints/{endpoint}"));
    let renamed = seller
        .client
        .patch(&renamed, json!({"name": "renamed", "order_by": ["doc"]}));
    renamed.await.expect(200);
    let many = json!({"filters": ["place", "id", "serial", "docb"], "sorts": [{"name": "page", "order_by": ["name", "page"]}]});
    let endpoint = saved(&seller, &connection, many).await;
    let says = [
        "\"place\" in filters",
        "\"docb\" in filters",
        "\"page\" in sorts",
    ];
    assert_refused(&seller, &endpoint, &says).await;
    // An empty text is no UUID, and no reason to stop there.
    let endpoint = saved(
        &seller,
        &connection,
        json!({"filters": ["serial", "both_of"]}),
    )
    .await;
    assert_refused(&seller, &endpoint, &["\"both_of\" in filters is pair"]).await;
    let likes = json!({"filters": [{"field": "serial", "operators": ["eq", "like"]}]});
    let endpoint = saved(&seller, &connection, likes).await;
    assert_refused(&seller, &endpoint, &["\"serial\" in filters is uuid"]).await;

    // Of a source that was tested all that is impossible is refused when it is saved, and what it is good for is not.
    let path = seller.path("/endpoints");
    let sorts = json!([{"name": "odd", "order_by": ["raw", "page"]}]);
    let mut body = json!({"connection_id": known, "name": "goods", "source": {"table": "goods"}, "fields": [{"name": "id"}], "order_by": ["doc"],
        "filters": ["name", "doc", "list", "raw", "both_of", "place", "serial"], "sorts": sorts});
    let refused = seller.client.post(&path, body.clone()).await;
    let told = refused_when_saved(refused);
    let fields: Vec<&str> = told.iter().map(|(field, _)| field.as_str()).collect();
    assert_eq!(
        fields,
        [
            "filters[1]",
            "filters[2]",
            "filters[3]",
            "filters[4]",
            "filters[5]",
            "order_by[0]",
            "sorts[0].order_by[1]"
        ]
    );
    assert!(
        told[3]
            .1
            .starts_with("\"both_of\" is pair, which cannot be compared with a value by eq: leave it out of filters"),
        "{}",
        told[3].1
    );
    body["order_by"] = json!(["id"]);
    body["filters"] = json!(["name", "serial", "kind"]);
    body["sorts"] = json!([{"name": "odd", "order_by": ["raw", "docb", "list"]}]);
    seller.client.post(&path, body).await.expect(201);

    // What goes on finds what it says.
    let endpoint = saved(
        &seller,
        &connection,
        json!({"filters": ["kind", "serial"], "sorts": [{"name": "kind", "order_by": ["-kind"]}]}),
    )
    .await;
    for (query, id) in [
        ("kind=small", 2),
        ("sort=kind&limit=1", 3),
        ("serial=A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11", 1),
    ] {
        let path = seller.path(&format!("/endpoints/{endpoint}/execute?{query}"));
        let page = seller.client.get(&path).await.expect(200);
        assert_eq!(
            page.at("/data/response/data"),
            &json!([{"id": id}]),
            "{query}"
        );
    }
}

/// The same of documents, lists and bytes in MariaDB, in a SQLite file and in DuckDB; what only leaves as a text and is compared with one goes on.
#[tokio::test]
async fn what_other_sources_cannot_compare_is_refused() {
    let seller = host().await.company(&unique("goods")).await;
    let server = MySql::shared();
    let sql = "CREATE TABLE goods (id INT PRIMARY KEY, raw BLOB, name VARCHAR(9)); INSERT INTO goods VALUES (1, x'00ff', 'one')";
    let mariadb = seller.mysql(server, &server.database(sql)).await;
    let sql = "CREATE TABLE goods (id INTEGER PRIMARY KEY, raw BLOB, doc JSON, name TEXT); INSERT INTO goods VALUES (1, x'00ff', '{}', 'one')";
    let sqlite = seller.sqlite("goods.db", sqlite_file(sql).await).await;
    let server = DuckDb::start();
    server.admin("CREATE SCHEMA shelf");
    server.admin(
        "CREATE TABLE shelf.goods AS SELECT 1 AS id, 'one' AS name, [1] AS list, '{}'::JSON AS doc, '\\x00'::BLOB AS raw, \
         'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'::UUID AS serial",
    );
    let duckdb = seller.duckdb(&server, "shelf").await;
    for (connection, column, native) in [
        (&mariadb, "raw", "blob"),
        (&sqlite, "raw", "BLOB"),
        (&sqlite, "doc", "JSON"),
        (&duckdb, "raw", "BLOB"),
        (&duckdb, "doc", "JSON"),
        (&duckdb, "list", "INTEGER[]"),
    ] {
        let endpoint = saved(&seller, connection, json!({"filters": ["name", column]})).await;
        let named = format!("\"{column}\" in filters is {native}, which cannot be compared");
        assert_refused(&seller, &endpoint, &[&named]).await;
        let sorts = json!({"filters": ["name"], "sorts": [{"name": "odd", "order_by": [column]}]});
        let endpoint = saved(&seller, connection, sorts).await;
        tested(&seller, &endpoint).await.expect(200);
    }
    let endpoint = saved(&seller, &duckdb, json!({"filters": ["serial"]})).await;
    tested(&seller, &endpoint).await.expect(200);
    let path = seller.path(&format!(
        "/endpoints/{endpoint}/execute?serial=A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11"
    ));
    let page = seller.client.get(&path).await.expect(200);
    assert_eq!(page.at("/data/response/data"), &json!([{"id": 1}]));
}

/// Numbers, moments and truth begin with nothing, and truth has no order: a filter by such an operator was sold and never worked.
#[tokio::test]
async fn what_no_value_is_compared_by_is_refused() {
    let seller = host().await.company(&unique("goods")).await;
    let cluster = PgCluster::shared().await;
    let sql = "CREATE TABLE goods (id int PRIMARY KEY, price numeric(9, 2), made date, seen timestamptz, sold boolean, name text);
        INSERT INTO goods VALUES (1, 1.5, '2026-11-23', now(), true, 'one')";
    let postgres = seller.postgres(cluster, &cluster.database(sql).await).await;
    let sql = "CREATE TABLE goods (id INTEGER PRIMARY KEY, price REAL, made DATE, seen DATETIME, sold BOOLEAN, name TEXT);
        INSERT INTO goods VALUES (1, 1.5, '2026-11-23', '2026-11-23 05:17:45', 1, 'one')";
    let sqlite = seller.sqlite("goods.db", sqlite_file(sql).await).await;
    for connection in [&postgres, &sqlite] {
        for (column, operators, never) in [
            ("id", json!(["eq", "like"]), "like"),
            ("price", json!(["gte", "like"]), "like"),
            ("made", json!(["like"]), "like"),
            ("seen", json!(["like"]), "like"),
            ("sold", json!(["eq", "gte", "lt", "like"]), "gte, lt, like"),
        ] {
            let filters = json!(["name", {"field": column, "operators": operators}]);
            let members = json!({"filters": filters});
            let endpoint = saved(&seller, connection, members).await;
            let named = format!("\"{column}\" in filters is ");
            let by = format!("which cannot be compared with a value by {never}: leave it out");
            assert_refused(&seller, &endpoint, &[&named, &by]).await;
            // From then on no other one is even saved.
            let mut other = json!({"connection_id": connection, "name": "other goods", "source": {"table": "goods"}, "fields": [{"name": "id"}]});
            other["filters"] = filters;
            let endpoints = seller.path("/endpoints");
            let told = refused_when_saved(seller.client.post(&endpoints, other).await);
            assert_eq!(told[0].0, "filters[1]", "{column}");
            assert!(told[0].1.contains(never), "{}", told[0].1);
        }
        let works = json!([
            {"field": "name", "operators": ["gte", "like"]},
            {"field": "made", "operators": ["gte"]},
            {"field": "sold", "operators": ["eq", "in"]},
        ]);
        let endpoint = saved(&seller, connection, json!({"filters": works})).await;
        tested(&seller, &endpoint).await.expect(200);
    }
}

/// The same of what only leaves as a text, in Trino and SQL Server: by their documentation, which the servers of the tests hold. Each column as a
/// filter and as an order.
#[tokio::test]
async fn what_trino_and_sql_server_cannot_compare_is_refused() {
    let seller = host().await.company(&unique("goods")).await;
    let server = Trino::start().await;
    server.admin(
        "ATTACH ':memory:' AS shelf;
        CREATE TABLE shelf.goods (id bigint NOT NULL, name varchar, serial uuid, sketch HyperLogLog);
        INSERT INTO shelf.goods VALUES (1, 'one', 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11', 'AgwBAA==');",
    );
    let trino = seller.trino(&server, "shelf").await;
    let server = SqlServer::start().await;
    server.admin(
        "CREATE TABLE dbo.goods (id int NOT NULL PRIMARY KEY, name \"nvarchar(20)\", serial uniqueidentifier, page xml, note ntext);
        INSERT INTO dbo.goods VALUES (1, 'one', 'A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11', '<a/>', 'a note');",
    );
    let sql_server = seller.sqlserver(&server, sqlserver::USER).await;
    for (connection, column, native, filters, sorts) in [
        (&trino, "name", "varchar", true, true),
        (&trino, "serial", "uuid", false, true),
        (&trino, "sketch", "hyperloglog", false, false),
        (&sql_server, "name", "nvarchar(20)", true, true),
        (&sql_server, "serial", "uniqueidentifier", true, true),
        (&sql_server, "page", "xml", false, false),
        (&sql_server, "note", "ntext", false, false),
    ] {
        let endpoint = saved(&seller, connection, json!({"filters": [column]})).await;
        match filters {
            true => drop(tested(&seller, &endpoint).await.expect(200)),
            false => {
                let named =
                    format!("\"{column}\" in filters is {native}, which cannot be compared");
                assert_refused(&seller, &endpoint, &[&named]).await;
            }
        }
        let order = json!({"sorts": [{"name": "odd", "order_by": [column]}]});
        let endpoint = saved(&seller, connection, order).await;
        match sorts {
            true => drop(tested(&seller, &endpoint).await.expect(200)),
            false => {
                let named = format!("\"{column}\" in sorts is {native}, which cannot be sorted");
                assert_refused(&seller, &endpoint, &[&named]).await;
            }
        }
    }
    // What SQL Server looks for a beginning in, and in what it does not.
    let begins = |column: &str| json!({"filters": [{"field": column, "operators": ["like"]}]});
    let endpoint = saved(&seller, &sql_server, begins("note")).await;
    tested(&seller, &endpoint).await.expect(200);
    let endpoint = saved(&seller, &sql_server, begins("page")).await;
    assert_refused(&seller, &endpoint, &["\"page\" in filters is xml"]).await;
}

/// The same of spans in Databricks, which leave as texts: their pages can be sorted by them, and compare nothing with them.
#[tokio::test]
async fn what_databricks_cannot_compare_is_refused() {
    let seller = host().await.company(&unique("goods")).await;
    let server = Databricks::start().await;
    server.admin(
        "ATTACH ':memory:' AS shelf;
        CREATE TABLE shelf.goods (id bigint NOT NULL, name string text, span \"interval day\");
        INSERT INTO shelf.goods VALUES (1, 'one', 'INTERVAL ''2'' DAY');",
    );
    for operator in ["eq", "gte", "in"] {
        // One of which nothing is known yet.
        let connection = seller.databricks(&server, "shelf").await;
        let filter = json!({"field": "span", "operators": [operator]});
        let filters = json!({"filters": ["name", filter]});
        let endpoint = saved(&seller, &connection, filters.clone()).await;
        let says = ["\"span\" in filters is ", "which cannot be compared"];
        assert_refused(&seller, &endpoint, &says).await;
        // From then on no other one is even saved.
        let mut other = json!({"connection_id": connection, "name": "other goods", "source": {"table": "goods"}, "fields": [{"name": "id"}]});
        other["filters"] = filters["filters"].clone();
        let endpoints = seller.path("/endpoints");
        let told = refused_when_saved(seller.client.post(&endpoints, other).await);
        assert_eq!(told[0].0, "filters[1]", "{operator}");
    }
    let connection = seller.databricks(&server, "shelf").await;
    let order = json!({"filters": ["name"], "sorts": [{"name": "odd", "order_by": ["span"]}]});
    let endpoint = saved(&seller, &connection, order).await;
    tested(&seller, &endpoint).await.expect(200);
    let path = seller.path(&format!("/endpoints/{endpoint}/execute?name=one&sort=odd"));
    let page = seller.client.get(&path).await.expect(200);
    assert_eq!(page.at("/data/response/data"), &json!([{"id": 1}]));
}

/// A save that names what a test has found to be impossible changes nothing: neither the endpoint's own nor another one of the same source.
#[tokio::test]
async fn what_a_test_has_found_impossible_is_not_saved() {
    let seller = host().await.company(&unique("goods")).await;
    let sql = "CREATE TABLE goods (id INTEGER PRIMARY KEY, raw BLOB, doc JSON, name TEXT); INSERT INTO goods VALUES (1, x'00ff', '{}', 'one')";
    let connection = seller.sqlite("goods.db", sqlite_file(sql).await).await;
    let all = json!([{"name": "id"}, {"name": "raw"}, {"name": "doc"}, {"name": "name"}]);
    let members = json!({"fields": all, "filters": ["name"]});
    let endpoint = saved(&seller, &connection, members).await;
    let path = seller.path(&format!("/endpoints/{endpoint}"));
    tested(&seller, &endpoint).await.expect(200);
    let before = seller.client.get(&path).await.expect(200);

    let raw = json!({"field": "raw", "operators": ["gte"]});
    let wrong = json!({"name": "renamed", "filters": ["name", "doc", raw]});
    let told = refused_when_saved(seller.client.patch(&path, wrong.clone()).await);
    let [(doc, message), (raw, _)] = told.as_slice() else {
        panic!("{told:?}");
    };
    assert_eq!((doc.as_str(), raw.as_str()), ("filters[1]", "filters[2]"));
    let says = "\"doc\" is JSON, which cannot be compared with a value: leave it out of filters, or sell a text";
    assert!(
        message.starts_with(says) && message.contains("CAST"),
        "{message}"
    );
    let after = seller.client.get(&path).await.expect(200);
    assert_eq!(after.at("/data"), before.at("/data"));

    // A change that leaves the source alone leaves what is known of it; what is published is not changed either.
    let good = json!({"filters": ["name", "id"]});
    seller.client.patch(&path, good.clone()).await.expect(200);
    refused_when_saved(seller.client.patch(&path, wrong.clone()).await);
    seller.publish(&endpoint, 1).await;
    refused_when_saved(seller.client.patch(&path, wrong).await);
    let stays = seller.client.get(&path).await.expect(200);
    assert_eq!(stays.at("/data/filters"), &good["filters"]);
    assert_eq!(stays.at("/data/status"), "published");

    // Another endpoint of the table, and a text of the document, of which nobody knows anything and which works.
    let mut other = json!({"connection_id": connection, "name": "other goods", "source": {"table": "goods"}, "fields": [{"name": "id"}],
        "filters": ["doc"]});
    let endpoints = seller.path("/endpoints");
    refused_when_saved(seller.client.post(&endpoints, other.clone()).await);
    other["filters"] = json!(["name"]);
    let created = seller.client.post(&endpoints, other).await.expect(201);
    let other = created.text("/data/endpoint_id");
    let text = json!({"sql_logic": "SELECT id, CAST(doc AS TEXT) AS doc FROM goods", "fields": [{"name": "id"}, {"name": "doc"}],
        "order_by": ["id"], "filters": ["doc"]});
    let path = seller.path(&format!("/endpoints/{other}"));
    seller.client.patch(&path, text).await.expect(200);
    tested(&seller, &other).await.expect(200);
}

/// A column whose type has changed at the source is taken again after the next test, which is how the refusal says it.
#[tokio::test]
async fn a_changed_type_is_taken_after_the_next_test() {
    let cluster = PgCluster::shared().await;
    let seller = host().await.company(&unique("goods")).await;
    let database = cluster.database(GOODS).await;
    let connection = seller.postgres(cluster, &database).await;
    let all = json!([{"name": "id"}, {"name": "docb"}]);
    let endpoint = saved(&seller, &connection, json!({"fields": all})).await;
    tested(&seller, &endpoint).await.expect(200);
    let path = seller.path(&format!("/endpoints/{endpoint}"));
    let filters = json!({"filters": ["docb"]});
    let told = refused_when_saved(seller.client.patch(&path, filters.clone()).await);
    let message = &told[0].1;
    assert!(
        message.contains("test an endpoint that has it among its fields, and save again"),
        "{message}"
    );

    let source = cluster.client(&database).await;
    source
        .batch_execute("ALTER TABLE goods ALTER docb TYPE text USING docb::text")
        .await
        .expect("another type");
    tested(&seller, &endpoint).await.expect(200);
    seller.client.patch(&path, filters).await.expect(200);
    tested(&seller, &endpoint).await.expect(200);
}
