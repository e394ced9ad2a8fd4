//! Which SQL a seller may save: whatever the engine runs and only reads. The engines are real ones, and they are
//! the judges; the host only looks at words.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use souk_tests::{Answer, Company, PgCluster};

use crate::sqlite_source::dataset;
use crate::{LEAGUE, host, league, unique};

/// A small table beside the league.
const ONE: &str = "
    CREATE TABLE one (v text PRIMARY KEY, n integer);
    INSERT INTO one VALUES ('x', 1);
    CREATE SEQUENCE counter;
    CREATE FUNCTION writes() RETURNS text LANGUAGE sql AS $$ INSERT INTO one VALUES ('y', 2) RETURNING v $$;";

/// What PostgreSQL 15 runs, each with one text for an answer.
const POSTGRES: &[&str] = &[
    "SELECT host(inet '10.0.0.1')",
    "SELECT (cidr '10.0.0.0/8' >>= inet '10.1.2.3')::text",
    "SELECT (date '2026-01-31' + interval '1' day)::text",
    "SELECT (interval '1-2' YEAR TO MONTH)::text",
    "SELECT (interval '90' MINUTE)::text",
    "SELECT (timestamp with time zone '2026-01-01 00:00Z' AT TIME ZONE 'UTC')::text",
    "SELECT (time '12:00' + double precision '2' * interval '1 hour')::text",
    "SELECT (point '(1,2)' <-> point '(0,0)')::text",
    "SELECT (lseg '[(0,0),(1,0)]' ?|| lseg '[(0,1),(1,1)]' AND point '(1,1)' ?| point '(1,0)' AND point '(1,1)' ?- point '(0,1)')::text",
    "SELECT (@-@ lseg '[(0,0),(1,0)]')::text",
    "SELECT (box '((0,0),(1,1))' ?# box '((0,0),(2,2))')::text",
    "SELECT (int4range(1, 5) -|- int4range(5, 7))::text",
    "SELECT (bool 't' AND float8 'NaN' = float8 'NaN')::text",
    "SELECT trim(leading from '  x')",
    "SELECT trim(both 'x' from 'xax') || trim('  b ')",
    "SELECT overlay('abcdef' placing 'X' from 2 for 3)",
    "SELECT substring('abc' from 2 for 1) || substring('abc' similar 'a#\"b#\"c' escape '#')",
    "SELECT position('b' in 'abc')::text",
    "SELECT extract(epoch from interval '1 minute')::text",
    "SELECT normalize('a', NFC) || ('a' IS NFC NORMALIZED)::text",
    "SELECT (2 BETWEEN SYMMETRIC 3 AND 1)::text",
    "SELECT (1 IS DISTINCT FROM 2 AND 1 IS NOT DISTINCT FROM 1 AND (1 = 1) IS NOT UNKNOWN)::text",
    "SELECT ('abc' SIMILAR TO 'a%' AND 'a%' LIKE 'a!%' ESCAPE '!' AND 'A' ILIKE 'a' AND 'a' !~* 'b')::text",
    "SELECT concat_ws(',', VARIADIC ARRAY['a', 'b'])",
    "SELECT make_interval(days => 1, hours := 2)::text",
    "SELECT a || b::text FROM ROWS FROM (unnest(ARRAY['x']), generate_series(1, 1)) AS r(a, b)",
    "SELECT a || o::text FROM unnest(ARRAY['x']) WITH ORDINALITY AS r(a, o)",
    "SELECT r.x FROM json_to_recordset('[{\"x\": \"a\"}]') AS r(x text)",
    "SELECT sum(i) OVER (ORDER BY i ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING EXCLUDE CURRENT ROW)::text FROM generate_series(1, 3) AS i LIMIT 1",
    "SELECT sum(i) OVER (ORDER BY i GROUPS UNBOUNDED PRECEDING EXCLUDE TIES)::text FROM generate_series(1, 3) AS i LIMIT 1",
    "SELECT count(*) OVER w::text FROM matches WINDOW w AS (PARTITION BY team ORDER BY played_on RANGE interval '1 day' PRECEDING EXCLUDE GROUP) LIMIT 1",
    "SELECT (count(*) FILTER (WHERE goals > 1))::text FROM matches",
    "SELECT (percentile_cont(0.5) WITHIN GROUP (ORDER BY goals))::text FROM matches",
    "SELECT string_agg(DISTINCT team, ',' ORDER BY team DESC) FROM matches",
    "WITH RECURSIVE t(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM t WHERE n < 3) SEARCH DEPTH FIRST BY n SET o SELECT count(o)::text FROM t",
    "WITH RECURSIVE t(n) AS (SELECT 1 UNION ALL SELECT n % 3 + 1 FROM t) CYCLE n SET looped USING path SELECT count(*)::text FROM t",
    "WITH RECURSIVE t(n) AS (SELECT 1 UNION ALL SELECT n % 3 + 1 FROM t) SEARCH BREADTH FIRST BY n SET o CYCLE n SET looped TO 'y' DEFAULT 'n' USING path SELECT max(looped) FROM t",
    "WITH a AS MATERIALIZED (SELECT 'x' AS v), b AS NOT MATERIALIZED (TABLE a) SELECT v FROM b",
    "SELECT count(*)::text FROM (SELECT team FROM matches GROUP BY GROUPING SETS ((team), CUBE (team, goals), ROLLUP (goals))) AS s",
    "SELECT count(*)::text FROM (SELECT team FROM matches GROUP BY DISTINCT ROLLUP (team), ROLLUP (team, goals)) AS s",
    "SELECT count(*)::text FROM matches TABLESAMPLE SYSTEM (100) REPEATABLE (1)",
    "SELECT count(*)::text FROM ONLY matches AS m (number) WHERE number > 0",
    "SELECT count(*)::text FROM matches AS a JOIN matches AS b USING (id) AS j WHERE j.id > 0",
    "SELECT l.v FROM one, LATERAL (SELECT one.v || 'y' AS v) AS l",
    "SELECT count(*)::text FROM matches AS a NATURAL LEFT JOIN one CROSS JOIN generate_series(1, 2)",
    "SELECT DISTINCT ON (team) team FROM matches ORDER BY team, goals DESC NULLS LAST LIMIT 1",
    "SELECT team FROM matches ORDER BY team USING > OFFSET 1 ROWS FETCH FIRST 1 ROW ONLY",
    "SELECT v FROM one ORDER BY v FETCH NEXT ROW WITH TIES",
    "VALUES ('x')",
    "TABLE names",
    "((VALUES ('x')) UNION ALL (SELECT 'y')) ORDER BY 1 LIMIT 1",
    "SELECT v FROM one INTERSECT ALL (SELECT 'x' EXCEPT SELECT 'y')",
    "SELECT (ARRAY['a', 'b', 'c'])[2:3]::text || (ARRAY[1, 2])[:1]::text || (ARRAY[[1, 2]])[1][1:2]::text",
    "SELECT ARRAY(SELECT generate_series(1, 2))::text || CAST('{1,2}' AS int[])::text",
    "SELECT (1 = ANY (ARRAY[1, 2]) AND 2 > ALL (SELECT 1) AND ROW(1, 2) < (1, 3) AND (1, 'x') IN (SELECT n, v FROM one))::text",
    "SELECT (one).v || (one.*).n::text FROM one",
    "SELECT (@ -5)::text || (|/ 4.0)::text || (2 ^ 3)::text || (1 # 3)::text || (~1)::text || (1 << 2)::text",
    "SELECT (1 OPERATOR(pg_catalog.+) 2)::text",
    "SELECT ('a' COLLATE \"C\" < 'b')::text",
    "SELECT ('{\"a\": 1}'::jsonb ? 'a' AND '{\"a\": 1}'::jsonb ?| ARRAY['a'] AND '{\"a\": 1}'::jsonb ?& ARRAY['a'])::text",
    "SELECT ('{\"a\": 1}'::jsonb @? '$.a' AND '{\"a\": 1}'::jsonb @@ '$.a == 1' AND '{\"a\": 1}'::jsonb @> '{}')::text",
    "SELECT '{\"a\": [1]}'::jsonb #>> '{a,0}' || ('{\"a\": {\"b\": 1}}'::jsonb)['a']['b']::text",
    "SELECT (to_tsvector('a cat') @@ ('cat' || ':*')::tsquery)::text",
    "SELECT U&'d\\0061t\\+000061' || U&'d!0061' UESCAPE '!' || U&\"d\\0061ta\" FROM (SELECT 'x' AS data) AS t",
    "SELECT E'\\'a\\u00e9\\x41\\\\' || E'a'\n  '\\'b' || E'\\uD83D\\uDE00'",
    "SELECT B'101'::text || X'1F'::text || N'n' || $q$it's $$ q$q$",
    "SELECT a$1.v AS größe FROM one AS a$1",
    "SELECT v /* one /* two */ ' */ FROM one -- it's :nothing\r WHERE true",
    "SELECT \"update\" || \"a b\" FROM (SELECT 'x' AS update, v AS \"a b\" FROM one) AS delete",
    "SELECT CASE n WHEN 1 THEN v ELSE 'z' END || nullif(greatest(v, 'a'), 'q') || coalesce(NULL, v) FROM one",
    "SELECT ((date '2026-01-01', interval '2 days') OVERLAPS (date '2026-01-02', date '2026-01-03'))::text",
    "SELECT CURRENT_USER::text || (LOCALTIMESTAMP(0) IS NOT NULL)::text || current_setting('server_version_num')",
    "SELECT 1.5e3::text || .5::text || 1.::text || (-2)::text || 12::\"numeric\"(10, 2)::text",
    "SELECT json_build_object('a', v)::text || row_to_json(one)::text FROM one",
    "SELECT CAST(n AS double precision)::text || n::int8::character varying(3) FROM one",
    "SELECT EXISTS (SELECT FROM one)::text",
];

const SQLITE: &[&str] = &[
    "SELECT 1 << 4 | 2 >> 1",
    "SELECT amount FROM sales WHERE (id IS 1) AND id IS NOT 2 AND note IS NULL",
    "SELECT id IS NOT DISTINCT FROM 1 FROM sales",
    "WITH a AS MATERIALIZED (SELECT 1 AS x), b AS NOT MATERIALIZED (SELECT x FROM a) SELECT x FROM b",
    "SELECT count(*) FROM sales INDEXED BY by_shop WHERE shop = 'shop 1'",
    "SELECT count(*) FROM sales NOT INDEXED",
    "SELECT x'00ff' || 'a' == 'b' OR 1 <> 2 OR 1 != 2",
    "SELECT '{\"a\": 1}' ->> '$.a' || ('{\"a\": 1}' -> 'a')",
    "SELECT shop GLOB 'shop*' AND shop NOTNULL AND shop LIKE 'S%' ESCAPE '!' FROM sales",
    "SELECT \"shop\" || [shop] || `shop` || 'no such column' FROM sales",
    "SELECT CAST(amount AS INTEGER) + +id - -1 + ~1 % 3 FROM sales",
    "VALUES (1)",
    "SELECT * FROM (VALUES (1)) UNION ALL SELECT 2 LIMIT 1 OFFSET 0",
    "SELECT id FROM sales ORDER BY id COLLATE NOCASE DESC NULLS LAST LIMIT 0, 1",
    "SELECT sum(amount) FILTER (WHERE id > 1) OVER (ORDER BY id GROUPS BETWEEN 1 PRECEDING AND CURRENT ROW EXCLUDE TIES) FROM sales",
    "WITH RECURSIVE n(i) AS (VALUES (1) UNION SELECT i + 1 FROM n WHERE i < 5 LIMIT 4) SELECT max(i) FROM n",
    "SELECT value FROM json_each('[1]')",
    "SELECT (id, shop) = (1, 'shop 1') FROM sales",
    "SELECT iif(id > 1, 'a', 'b') || printf('%d', rowid) || sales.rowid FROM sales",
    "SELECT total(DISTINCT amount) FROM sales GROUP BY 1 = 1 HAVING count(*) > 0",
    "SELECT 0x1F + 1e2 + .5 + 1.",
    "SELECT CASE WHEN id ISNULL THEN 1 ELSE 2 END FROM sales",
    "SELECT count(*) FROM sales AS a NATURAL JOIN sales AS b LEFT JOIN sales c USING (id)",
    "SELECT name FROM pragma_table_info('sales') WHERE pk",
    "SELECT id FROM sales -- it's :nothing\n WHERE 1 /* /* */",
    "SELECT id FROM sales /* to the end",
    "SELECT max(id, 2) FROM sales WHERE id NOT BETWEEN 5 AND 6 AND shop IN ('shop 1')",
    "SELECT EXISTS (SELECT 1 FROM sales) IS NOT 2 WHERE 0 UNION SELECT 1",
];

/// Saves a statement, and runs it if it may be saved.
async fn saved_and_run(seller: &Company, connection: &str, sql: &str, params: Value) -> Answer {
    let names = params.as_object().into_iter().flatten();
    let parameters: Vec<Value> = names
        .map(|(name, _)| json!({"name": name, "type": "string"}))
        .collect();
    let body = json!({"connection_id": connection, "asset_type": "CALCULATION", "name": "a statement",
        "slug": unique("statement"), "result_type": "string", "sql_logic": sql, "parameters": parameters});
    let saved = seller.client.post(&seller.path("/assets"), body).await;
    match saved.status.as_u16() {
        201 => {
            let asset = saved.text("/data/asset_id");
            seller.execute(&asset, params).await
        }
        _ => saved,
    }
}

async fn all_run(seller: &Company, connection: &str, statements: &[&str]) {
    let mut refused = Vec::new();
    for sql in statements {
        let answer = saved_and_run(seller, connection, sql, json!({})).await;
        // What the one value is does not matter here.
        let ran = answer
            .body
            .to_string()
            .contains("where a string is expected");
        if answer.status != 200 && !ran {
            refused.push(format!("{sql}: {}", answer.body));
        }
    }
    assert!(refused.is_empty(), "{}", refused.join("\n"));
}

async fn postgres() -> (Company, String, String) {
    let cluster = PgCluster::shared().await;
    let names = "CREATE TABLE names (v text); INSERT INTO names VALUES ('x');";
    let database = cluster.database(&format!("{LEAGUE} {ONE} {names}")).await;
    let seller = host().await.company(&unique("sql")).await;
    let connection = seller.postgres(cluster, &database).await;
    (seller, connection, database)
}

/// Whatever PostgreSQL runs is a statement.
#[tokio::test]
async fn postgres_is_the_judge_of_its_own_syntax() {
    let (seller, connection, _) = postgres().await;
    assert!(POSTGRES.len() >= 60);
    all_run(&seller, &connection, POSTGRES).await;
}

#[tokio::test]
async fn sqlite_is_the_judge_of_its_own_syntax() {
    let seller = host().await.company(&unique("sql")).await;
    let mut file = dataset(1).await;
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("indexed.db");
    std::fs::write(&path, &file).expect("the file");
    execute(&path, "CREATE INDEX by_shop ON sales (shop)").await;
    file = std::fs::read(&path).expect("the file");
    let connection = seller.sqlite("sales.db", file).await;
    all_run(&seller, &connection, SQLITE).await;
}

async fn execute(path: &std::path::Path, sql: &'static str) {
    use sqlx::{ConnectOptions, Connection, Executor};
    let options = sqlx::sqlite::SqliteConnectOptions::new().filename(path);
    let mut db = options.connect().await.expect("a database");
    db.execute(sql).await.expect("DDL");
    db.close().await.expect("close");
}

/// A value is bound wherever a value may stand, and nowhere else: what looks like a parameter in a text, a
/// comment, a name, a cast or a slice stays what it is.
#[tokio::test]
async fn values_are_bound_beside_whatever_looks_like_parameters() {
    let (seller, connection, _) = postgres().await;
    for (sql, answer) in [
        (
            "SELECT E':a\\'' || :a || $$:a$$ || $t$:a$t$ || U&':a\\0061'",
            ":a'v:a:a:aa",
        ),
        ("SELECT E'x'\n '\\':a' || :a", "x':av"),
        (
            "SELECT \":a\" || :a || U&\"\\003Aa\" FROM (SELECT 'n' AS \":a\") AS t",
            "nvn",
        ),
        (
            "SELECT :a::text || (ARRAY[:a::text])[1:1]::text || '{1}'::int[]::text",
            "v{v}{1}",
        ),
        (
            "SELECT (('{\"v\": 1}'::jsonb ? :a) AND ('{\"v\": 1}'::jsonb ?| ARRAY[:a]))::text",
            "true",
        ),
        ("SELECT :a /* :a /* :a */ ' */ || 'x' -- ':a", "vx"),
        ("SELECT 'x' WHERE 'v'=:a AND:a='v'", "x"),
    ] {
        let ran = saved_and_run(&seller, &connection, sql, json!({"a": "v"})).await;
        assert_eq!(ran.at("/data/answer_value"), answer, "{sql}: {}", ran.body);
    }
    let connection = seller.sqlite("sales.db", dataset(1).await).await;
    for (sql, answer) in [
        (
            "SELECT ':a\\' || :a || [:a] || `:a` || \":a\" FROM (SELECT 'n' AS \":a\")",
            ":a\\vnnn",
        ),
        ("SELECT :a /* :a /* :a */ || 'x' -- ':a", "vx"),
    ] {
        let ran = saved_and_run(&seller, &connection, sql, json!({"a": "v"})).await;
        assert_eq!(ran.at("/data/answer_value"), answer, "{sql}: {}", ran.body);
    }
    for foreign in ["@name", "$name", "?1", "?"] {
        let refused = saved_and_run(
            &seller,
            &connection,
            &format!("SELECT {foreign}"),
            json!({}),
        )
        .await;
        let told = refused.expect(400).body.to_string();
        assert!(told.contains(foreign) && told.contains(":name"), "{told}");
    }
}

/// What writes may be saved, if it begins as a query does; the engine refuses to run it, so that it is never
/// published, and nothing is changed.
#[tokio::test]
async fn what_writes_fails_at_the_source_and_changes_nothing() {
    let (seller, connection, database) = postgres().await;
    // What answers with no columns is not even run.
    for sql in [
        "WITH x AS (SELECT 1) DELETE FROM one",
        "SELECT v INTO two FROM one",
        "SELECT v INTO TEMPORARY two FROM one",
    ] {
        fails(&seller, &connection, sql, "").await;
    }
    for sql in [
        "WITH x AS (DELETE FROM one RETURNING v) SELECT v FROM x",
        "WITH x AS (INSERT INTO one VALUES ('z', 3) RETURNING v) SELECT v FROM x",
        "WITH x AS (UPDATE one SET n = 9 RETURNING v) SELECT v FROM x",
        "WITH x AS (SELECT 1) INSERT INTO one VALUES ('z', 3) RETURNING v",
        "WITH x AS (SELECT set_config('transaction_read_only', 'off', true)), y AS (DELETE FROM one RETURNING v) SELECT v FROM x, y",
        "SELECT setval('counter', 100)::text",
        "SELECT nextval('counter')::text",
        "SELECT v FROM one FOR UPDATE",
        "SELECT v FROM one FOR NO KEY UPDATE",
        "SELECT v FROM one FOR SHARE",
        "SELECT writes()",
    ] {
        fails(&seller, &connection, sql, "25006").await;
    }
    for sql in [
        "SELECT v FROM one) AS s; DELETE FROM one; SELECT (1",
        "SELECT 1; DELETE FROM one",
        "COPY one TO STDOUT",
    ] {
        let refused = saved_and_run(&seller, &connection, sql, json!({})).await;
        assert_eq!(refused.status, 400, "{sql}: {}", refused.body);
    }
    let client = PgCluster::shared().await.client(&database).await;
    let state = "SELECT (SELECT string_agg(v || n, ',') FROM one) || (SELECT last_value || is_called::text FROM counter)
        || coalesce(to_regclass('two')::text, '-')";
    let row = client.query_one(state, &[]).await.expect("the state");
    assert_eq!(row.get::<_, String>(0), "x11false-");
}

#[tokio::test]
async fn what_writes_fails_at_the_file_and_changes_nothing() {
    let seller = host().await.company(&unique("sql")).await;
    let connection = seller.sqlite("sales.db", dataset(3).await).await;
    for sql in [
        "WITH x AS (SELECT 1) DELETE FROM sales",
        "WITH x AS (SELECT 1) DELETE FROM sales RETURNING shop",
        "WITH x AS (SELECT 1) UPDATE sales SET shop = 'z' RETURNING shop",
        "WITH x AS (SELECT 1) INSERT INTO sales (shop) VALUES ('z') RETURNING shop",
        "WITH x AS (SELECT 1) REPLACE INTO sales (id, shop) VALUES (1, 'z')",
        "SELECT load_extension('x')",
        "SELECT * FROM pragma_query_only(0)",
        "SELECT * FROM pragma_journal_mode('wal')",
    ] {
        fails(&seller, &connection, sql, "").await;
    }
    let left = saved_and_run(
        &seller,
        &connection,
        "SELECT group_concat(id || shop) FROM sales",
        json!({}),
    );
    assert_eq!(
        left.await.at("/data/answer_value"),
        "1shop 1,2shop 2,3shop 3"
    );
}

/// Saved or not, it is neither run nor published.
#[track_caller]
fn refused_by_the_source(answer: &Answer, sql: &str, code: &str) {
    assert_eq!(answer.status, 502, "{sql}: {}", answer.body);
    assert_eq!(
        answer.at("/error/code"),
        "SOURCE_ERROR",
        "{sql}: {}",
        answer.body
    );
    if !code.is_empty() {
        assert_eq!(
            answer.at("/error/details/source_code"),
            code,
            "{sql}: {}",
            answer.body
        );
    }
}

async fn fails(seller: &Company, connection: &str, sql: &str, code: &str) {
    let fields = json!({"slug": unique("writes"), "result_type": "string", "sql_logic": sql});
    let asset = seller.asset(connection, fields).await;
    let path = seller.path(&format!("/assets/{asset}"));
    let ran = seller.execute(&asset, json!({})).await;
    refused_by_the_source(&ran, sql, code);
    let price = json!({"price_credits": 1});
    seller
        .client
        .post(&format!("{path}/prices"), price)
        .await
        .expect(201);
    let published = seller
        .client
        .post(&format!("{path}/publish"), json!({}))
        .await;
    published.expect_error(409, "INVALID_STATE");
}

/// A parser would have read nested `POSITION(` twice at every level, and the worker with it.
#[tokio::test]
async fn a_statement_that_nests_is_answered_at_once() {
    let league = league().await;
    let client = &league.seller.client;
    let path = league.seller.path("/assets");
    let mut waits = Vec::new();
    for (open, middle, close) in [
        ("POSITION(", "1", ")"),
        ("POSITION(", "", ""),
        ("POSITION('1' IN ", "'1'", ")::text"),
        ("(", "'1'", ")"),
    ] {
        for depth in [46, 2_500] {
            let sql = format!(
                "SELECT {}{middle}{}",
                open.repeat(depth),
                close.repeat(depth)
            );
            let body = json!({"connection_id": league.connection, "asset_type": "CALCULATION", "name": "deep",
                "slug": unique("deep"), "result_type": "string", "sql_logic": sql});
            let started = Instant::now();
            let saved = client.post(&path, body).await;
            waits.push(started.elapsed());
            let expected = if close.is_empty() { 400 } else { 201 };
            assert_eq!(saved.status.as_u16(), expected, "{}", saved.body);
        }
    }
    // One for every worker, and more: each goes on answering.
    for _ in 0..8 {
        client.get("/healthz").await.expect(200);
    }
    assert!(
        waits.iter().all(|wait| *wait < Duration::from_secs(20)),
        "{waits:?}"
    );
    let sql = format!(
        "SELECT {}'1'{}",
        "POSITION('1' IN ".repeat(46),
        ")::text".repeat(46)
    );
    let ran = saved_and_run(&league.seller, &league.connection, &sql, json!({})).await;
    assert_eq!(ran.expect(200).at("/data/answer_value"), "1");
}

/// `order_by` and `filters` name columns of the source's result. To SQLite a quoted name that is none is a text:
/// pages would come in no order, and nobody would be told.
#[tokio::test]
async fn names_that_the_source_does_not_have_are_not_published() {
    let league = league().await;
    let seller = &league.seller;
    let file = seller.sqlite("sales.db", dataset(5).await).await;
    let table = json!({"source": {"schema": "public", "table": "matches"}});
    let statement = json!({"sql_logic": "SELECT id, team, goals FROM matches"});
    let sales = json!({"source": {"table": "sales"}});
    let shops = json!({"sql_logic": "SELECT id, shop, amount FROM sales"});
    for (connection, source, known) in [
        (&file, &sales, "shop"),
        (&file, &shops, "shop"),
        (&league.connection, &table, "team"),
        (&league.connection, &statement, "team"),
    ] {
        for (order, filters, told) in [
            (json!(["nope"]), json!([]), "\"nope\" in order_by"),
            (
                json!([known, "-nope", "id"]),
                json!([known]),
                "\"nope\" in order_by",
            ),
            (json!(["id"]), json!(["nope"]), "\"nope\" in filters"),
            (
                json!(["id", "no"]),
                json!([known, "nope"]),
                "\"nope\" in filters, \"no\" in order_by are no columns",
            ),
        ] {
            let mut fields = json!({"slug": unique("names"), "fields": [{"name": "id"}], "order_by": order, "filters": filters});
            if let (Value::Object(fields), Value::Object(source)) = (&mut fields, source.clone()) {
                fields.extend(source);
            }
            let endpoint = seller.endpoint(connection, fields.clone()).await;
            let path = seller.path(&format!("/endpoints/{endpoint}"));
            let price = json!({"price_credits": 1});
            let published = seller
                .client
                .post(&format!("{path}/publish"), price.clone())
                .await;
            let published = published.expect_error(409, "INVALID_STATE");
            let why = published.text("/error/message");
            assert!(why.contains(told), "{fields}: {why}");

            let mended = json!({"order_by": ["id", known], "filters": [known]});
            seller.client.patch(&path, mended).await.expect(200);
            seller
                .client
                .post(&format!("{path}/publish"), price)
                .await
                .expect(200);
            let broken = json!({"order_by": ["nope"]});
            let refused = seller.client.patch(&path, broken.clone()).await;
            let why = refused
                .expect_error(409, "INVALID_STATE")
                .text("/error/message");
            assert!(why.contains("\"nope\" in order_by"), "{fields}: {why}");
            // A page fails when the names no longer are what they were.
            let unpublish = format!("{path}/unpublish");
            seller.client.post(&unpublish, json!({})).await.expect(200);
            seller.client.patch(&path, broken).await.expect(200);
            let page = seller.client.get(&format!("{path}/execute")).await;
            assert!(!page.status.is_success(), "{fields}: {}", page.body);
        }
    }
    // Another case is the same column to SQLite, and its values have the column's type.
    let fields = json!({"slug": unique("names"), "fields": [{"name": "shop"}], "source": {"table": "sales"}, "order_by": ["ID"], "filters": ["Id"]});
    let endpoint = seller.endpoint(&file, fields).await;
    seller.publish(&endpoint, 1).await;
    let path = seller.path(&format!("/endpoints/{endpoint}/execute?Id=2"));
    let page = seller.client.get(&path).await.expect(200);
    assert_eq!(page.at("/data/response/data"), &json!([{"shop": "shop 2"}]));
    let path = seller.path(&format!("/endpoints/{endpoint}/execute?Id=two"));
    seller
        .client
        .get(&path)
        .await
        .expect_error(400, "INVALID_PARAMETER");
}
