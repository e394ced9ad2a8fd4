use proptest::prelude::*;

use super::*;

const ALL: [Dialect; 7] = [
    Dialect::Postgres,
    Dialect::MySql,
    Dialect::Sqlite,
    Dialect::ClickHouse,
    Dialect::BigQuery,
    Dialect::MsSql,
    Dialect::Generic,
];

fn text(dialect: Dialect, sql: &str) -> String {
    prepare(dialect, sql)
        .unwrap_or_else(|e| panic!("{dialect:?} {sql:?}: {e}"))
        .text
}

fn accepted(sql: &str) {
    for dialect in ALL {
        let names = prepare(dialect, sql)
            .unwrap_or_else(|e| panic!("{dialect:?} {sql:?}: {e}"))
            .bindings;
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        check(dialect, sql, &names).unwrap_or_else(|e| panic!("{dialect:?} {sql:?}: {e}"));
    }
}

fn refused(sql: &str) {
    for dialect in ALL {
        assert!(
            check(dialect, sql, &[]).is_err(),
            "{dialect:?} accepted {sql:?}"
        );
    }
}

#[test]
fn a_repeated_name_reuses_its_number_where_the_engine_has_numbers() {
    let sql = "SELECT :a, :b, :a";
    assert_eq!(
        prepare(Dialect::Postgres, sql).unwrap(),
        Prepared {
            text: "SELECT $1, $2, $1".into(),
            bindings: vec!["a".into(), "b".into()]
        }
    );
    assert_eq!(text(Dialect::Sqlite, sql), "SELECT ?1, ?2, ?1");
    assert_eq!(
        prepare(Dialect::MySql, sql).unwrap(),
        Prepared {
            text: "SELECT ?, ?, ?".into(),
            bindings: vec!["a".into(), "b".into(), "a".into()]
        }
    );
}

#[test]
fn casts_strings_comments_and_quoted_names_are_left_alone() {
    let sql = "SELECT x::text, ':a', \":b\", $$ :c $$, $t$ :d $t$, E'\\':e' -- :f\n/* :g /* :h */ */ FROM t WHERE y = :y::int";
    let prepared = prepare(Dialect::Postgres, sql).unwrap();
    assert_eq!(prepared.bindings, ["y"]);
    assert_eq!(prepared.text, sql.replace(":y::int", "$1::int"));
    assert_eq!(
        text(Dialect::MySql, "SELECT 'it\\':a', \":b\", `:c` # :d\n, :e"),
        "SELECT 'it\\':a', \":b\", `:c` # :d\n, ?"
    );
    assert_eq!(
        text(Dialect::Sqlite, "SELECT [:a], 'é:b', :c"),
        "SELECT [:a], 'é:b', ?1"
    );
}

#[test]
fn a_slice_is_no_placeholder_and_a_word_before_one_stays_a_word() {
    assert_eq!(
        text(Dialect::Postgres, "SELECT a[1:2], a[b : c]"),
        "SELECT a[1:2], a[b : c]"
    );
    assert_eq!(
        text(Dialect::Postgres, "SELECT 1 WHERE x=1 AND:a"),
        "SELECT 1 WHERE x=1 AND $1"
    );
}

#[test]
fn the_semicolon_at_the_end_goes_and_a_second_statement_is_refused() {
    assert_eq!(text(Dialect::Postgres, "SELECT 1 ; -- done\n"), "SELECT 1 ");
    refused("SELECT 1; SELECT 2");
    refused("SELECT 1; DROP TABLE t");
    refused(" ; ");
    refused("");
    refused("-- nothing");
}

#[test]
fn queries_are_accepted() {
    accepted("SELECT 1");
    accepted("select count(*) from t where a = :a and b in (select b from u where c > :c)");
    accepted("WITH x AS (SELECT 1 AS n) SELECT sum(n) FROM x");
    accepted("SELECT a FROM t UNION ALL SELECT b FROM u ORDER BY 1");
    accepted("SELECT avg(goals) FROM (SELECT goals FROM games) g");
}

#[test]
fn postgres_queries_of_every_day_are_accepted() {
    for sql in [
        "SELECT date_trunc('month', at) AS month, sum(amount)::float8 FROM sales GROUP BY 1 ORDER BY 1",
        "SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY v) FROM t",
        "SELECT count(*) FILTER (WHERE ok) FROM t WHERE at >= now() - interval '7 days'",
        "SELECT data->>'a', data @> '{\"b\": 1}', data ? 'c' FROM t",
        "SELECT * FROM generate_series(1, 10) AS g(n)",
        "SELECT row_number() OVER (PARTITION BY a ORDER BY b) FROM t",
        "SELECT pg_sleep(30)",
        "SELECT set_config('default_transaction_read_only', 'off', false)",
        "(SELECT 1)",
        "SELECT DISTINCT ON (a) a, b FROM t ORDER BY a, b DESC",
        "SELECT (update).x, count(delete) FROM t",
    ] {
        check(Dialect::Postgres, sql, &[]).unwrap_or_else(|e| panic!("{sql:?}: {e}"));
    }
}

#[test]
fn whatever_writes_or_locks_is_refused() {
    for sql in [
        "INSERT INTO t VALUES (1)",
        "UPDATE t SET a = 1",
        "DELETE FROM t",
        "DROP TABLE t",
        "CREATE TABLE t (a int)",
        "CREATE TABLE t AS SELECT 1",
        "SELECT * INTO u FROM t",
        "SELECT 1 INTO OUTFILE '/tmp/x'",
        "WITH x AS (DELETE FROM t RETURNING *) SELECT * FROM x",
        "WITH x AS (INSERT INTO t VALUES (1) RETURNING *) SELECT * FROM x",
        "WITH x AS (UPDATE t SET a = 1 RETURNING *) SELECT * FROM x",
        "SELECT * FROM (WITH x AS (UPDATE t SET a = 1 RETURNING *) SELECT * FROM x) y",
        "WITH x AS (SELECT 1) DELETE FROM t",
        "SELECT * FROM t FOR UPDATE",
        "SELECT * FROM (SELECT * FROM t FOR SHARE) u",
        "SELECT * FROM t FOR NO KEY UPDATE",
        "SET TRANSACTION READ WRITE",
        "BEGIN",
        "COMMIT",
        "CALL p()",
        "COPY t FROM '/etc/passwd'",
        "COPY (SELECT 1) TO PROGRAM 'id'",
        "VACUUM",
        "EXPLAIN ANALYZE DELETE FROM t",
        "EXPLAIN SELECT 1",
        "ATTACH DATABASE 'x' AS y",
        "PRAGMA writable_schema = 1",
        "DO $$ BEGIN END $$",
        "LOCK TABLE t",
        "TRUNCATE t",
        "SELECT",
        "VALUES (1)",
        "SELECT 'unterminated",
    ] {
        refused(sql);
    }
    assert!(
        check(
            Dialect::MySql,
            "SELECT 1 /*!50000 INTO OUTFILE '/tmp/x' */",
            &[]
        )
        .is_err()
    );
    assert!(check(Dialect::MySql, "SELECT @a := 1", &[]).is_err());
}

#[test]
fn placeholders_of_the_sellers_own_are_refused() {
    for (dialect, sql) in [
        (Dialect::Postgres, "SELECT $1"),
        (Dialect::Sqlite, "SELECT ?"),
        (Dialect::Sqlite, "SELECT ?1"),
        (Dialect::Sqlite, "SELECT @a"),
        (Dialect::Sqlite, "SELECT $a"),
        (Dialect::MySql, "SELECT ?"),
        (Dialect::Postgres, "SELECT :1"),
    ] {
        assert!(
            prepare(dialect, sql).is_err(),
            "{dialect:?} accepted {sql:?}"
        );
    }
}

#[test]
fn names_that_are_missing_or_left_over_are_reported() {
    assert_eq!(
        check(Dialect::Postgres, "SELECT :a", &[]),
        Err(SqlError::Undeclared("a".into()))
    );
    assert_eq!(
        check(Dialect::Postgres, "SELECT 1", &["a"]),
        Err(SqlError::Unused("a".into()))
    );
    assert!(check(Dialect::Postgres, "SELECT :a", &["a"]).is_ok());
}

#[test]
fn a_chain_of_operators_as_long_as_allowed_does_not_exhaust_the_stack() {
    let sql = format!("SELECT 1{}", "+1".repeat((SQL_BYTES_MAX - 8) / 2));
    assert!(sql.len() <= SQL_BYTES_MAX);
    let _ = check(Dialect::Postgres, &sql, &[]);
    let sql = format!("SELECT {}1{}", "(".repeat(20_000), ")".repeat(20_000));
    assert!(check(Dialect::Postgres, &sql, &[]).is_err());
}

#[test]
fn a_page_binds_filters_then_count_then_offset() {
    let order = [
        Order {
            field: "goals",
            descending: true,
        },
        Order {
            field: "id",
            descending: false,
        },
    ];
    let table = RowSource::Table {
        schema: Some("public"),
        table: "le\"ague",
    };
    assert_eq!(
        page(
            Dialect::Postgres,
            &table,
            &["team", "goals"],
            &["team"],
            &order,
            Window::Bound
        ),
        "SELECT \"team\", \"goals\"\nFROM \"public\".\"le\"\"ague\"\nWHERE \"team\" = $1\nORDER BY \"goals\" DESC, \"id\"\nLIMIT $2 OFFSET $3"
    );
    assert_eq!(
        page(
            Dialect::MySql,
            &RowSource::Statement("SELECT 1 AS a -- x"),
            &["a"],
            &[],
            &order[1..],
            Window::First(51)
        ),
        "SELECT `a`\nFROM (\nSELECT 1 AS a -- x\n) AS s\nORDER BY `id`\nLIMIT 51"
    );
}

/// Pieces of SQL in which a placeholder must never be seen.
fn opaque() -> impl Strategy<Value = String> {
    let inner = "[a-z :é]{0,12}";
    prop_oneof![
        inner.prop_map(|s| format!("'{s}'")),
        inner.prop_map(|s| format!("'{s}''{s}'")),
        inner.prop_map(|s| format!("\"x{s}\"")),
        inner.prop_map(|s| format!("/*{s}*/")),
        inner.prop_map(|s| format!("-- {s}\n")),
        "[a-z]{1,5}".prop_map(|s| format!("{s}::text")),
    ]
}

fn piece() -> impl Strategy<Value = (String, Option<String>)> {
    prop_oneof![
        opaque().prop_map(|s| (s, None)),
        "p[a-z0-9_]{0,6}".prop_map(|s| (format!(":{s}"), Some(s))),
        "[a-z]{1,6}|[0-9]{1,4}|\\(|\\)|,|=".prop_map(|s| (s, None)),
    ]
}

proptest! {
    #[test]
    fn exactly_the_placeholders_are_rewritten(pieces in prop::collection::vec(piece(), 1..20)) {
        let sql = pieces.iter().map(|(text, _)| text.as_str()).collect::<Vec<_>>().join(" ");
        let names: Vec<&str> = pieces.iter().filter_map(|(_, name)| name.as_deref()).collect();
        let expected = pieces.iter().map(|(text, name)| if name.is_some() { "?" } else { text }).collect::<Vec<_>>().join(" ");
        let prepared = prepare(Dialect::MySql, &sql);
        // Only emptiness may be refused here.
        if let Ok(prepared) = prepared {
            prop_assert_eq!(&prepared.bindings, &names);
            prop_assert_eq!(prepared.text, expected);
        } else {
            prop_assert!(names.is_empty(), "{:?}", prepared);
        }
    }

    #[test]
    fn a_statement_without_placeholders_is_not_touched(pieces in prop::collection::vec(opaque(), 0..12)) {
        let sql = format!("SELECT {} 1", pieces.join(" "));
        for dialect in [Dialect::Postgres, Dialect::Sqlite] {
            let once = text(dialect, &sql);
            prop_assert_eq!(&once, &sql);
            prop_assert_eq!(text(dialect, &once), once);
        }
    }

    #[test]
    fn no_input_makes_it_panic(sql in "\\PC{0,60}", tail in "[-'\":;$?@#/*\\[\\]\n a-z0-9]{0,40}") {
        for dialect in ALL {
            let _ = prepare(dialect, &sql);
            let _ = prepare(dialect, &format!("SELECT {tail}"));
            let _ = prepare(dialect, &format!("SELECT {sql}{tail}"));
        }
    }

    #[test]
    fn a_quoted_name_is_one_token(name in "[a-z\"`\\]\\\\ ;]{1,12}") {
        for dialect in [Dialect::Postgres, Dialect::Sqlite, Dialect::MySql] {
            let quoted = dialect.quote(&name);
            let sql = format!("SELECT {quoted}");
            let tokens = tokenize(dialect, &sql).unwrap();
            prop_assert_eq!(tokens.len(), 3, "{:?}", sql);
        }
    }
}
