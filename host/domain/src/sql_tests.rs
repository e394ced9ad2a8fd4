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
        "VALUES (1)",
        "(TABLE t)",
    ] {
        check(Dialect::Postgres, sql, &[]).unwrap_or_else(|e| panic!("{sql:?}: {e}"));
    }
}

/// Text, comments and names of one engine that another reads otherwise. What stands in them is neither a
/// placeholder nor a statement; what only seems to stand in them is both.
#[test]
fn every_engine_is_read_in_its_own_way() {
    use Dialect::*;
    for (dialect, sql, bound) in [
        (Postgres, r"SELECT E'\':a', 'b\', :c", "c"),
        (Postgres, "SELECT E'x' -- y\n '\\':a', :b", "b"),
        (Postgres, r"SELECT E'x' '\', :a", "a"),
        (Postgres, r#"SELECT U&'d\:a', U&"\:b" , :c"#, "c"),
        (Postgres, r"SELECT X'\', :a", "a"),
        (Postgres, "SELECT $a$ :a $$ $b$ $a $a$, :b", "b"),
        (Postgres, "SELECT a$$, :b, c$$", "b"),
        (Postgres, "SELECT $é$ :a $é$, :b", "b"),
        (Postgres, "SELECT 1 -- it's :a\r, :b", "b"),
        (Postgres, "SELECT 1 -/* :a /* */ ' */- :b", "b"),
        (Postgres, "SELECT d ? 'a' AND d ?| :b AND d @? '$.x'", "b"),
        (Postgres, "SELECT a[1:2], b[:c], d::text, '{1}'::int[]", "c"),
        (
            Postgres,
            "SELECT :a::text, JSON_OBJECT('a':1, 'b' : 2)",
            "a",
        ),
        (Postgres, "SELECT f(a => 1, b := :c)", "c"),
        (Sqlite, r#"SELECT 'a\', :b, [it's :c], `:d`, ":e""#, "b"),
        (Sqlite, "SELECT 1 -- it's :a\r\n, :b", "b"),
        (Sqlite, "SELECT 1 /* /* */ , :b", "b"),
        (Sqlite, "SELECT data ->> '$.a', :b << 2", "b"),
        (Sqlite, "\u{feff}SELECT :b", "b"),
        (MySql, "SELECT 'a\\':b', 1--1, :c -- :d\n# :e", "c"),
        (MySql, "SELECT @@version, :c", "c"),
        (ClickHouse, r"SELECT `a\`:b`, $x$ :c $x$, :d", "d"),
        (ClickHouse, "SELECT 1 // it's :a\n, 4 / :b", "b"),
        (BigQuery, r#"SELECT '''it's :a''', r"\":b", `:c`, :d"#, "d"),
        (MsSql, r"SELECT [a]]:b], #t.x, $1.5, 'c\', :d", "d"),
        (Generic, r"SELECT 'it''s :a', 'c:\d', :e", "e"),
    ] {
        let prepared = prepare(dialect, sql).unwrap_or_else(|e| panic!("{dialect:?} {sql:?}: {e}"));
        assert_eq!(prepared.bindings, [bound], "{dialect:?} {sql:?}");
        let placeholder = dialect.placeholder(1);
        let expected = sql.replace(&format!(":{bound}"), &placeholder);
        assert_eq!(prepared.text, expected);
    }
}

/// Only SQLite runs a statement that ends in a comment that does not; as an endpoint's it must not go on.
#[test]
fn a_comment_without_end_goes() {
    assert_eq!(text(Dialect::Sqlite, "SELECT 1 /* x"), "SELECT 1 ");
    assert!(prepare(Dialect::Postgres, "SELECT 1 /* x").is_err());
    assert!(prepare(Dialect::Postgres, "SELECT 1 /* /* */").is_err());
}

/// An endpoint's statement stands in parentheses, and a page's limits behind them.
#[test]
fn a_statement_does_not_leave_its_parentheses() {
    refused("SELECT 1) AS s UNION ALL (SELECT 2");
    refused("SELECT (1");
    refused("SELECT ')' (");
    accepted("SELECT ('(')");
}

#[test]
fn what_does_not_begin_as_a_query_is_refused() {
    for sql in [
        "INSERT INTO t VALUES (1)",
        "UPDATE t SET a = 1",
        "DELETE FROM t",
        "DROP TABLE t",
        "CREATE TABLE t (a int)",
        "CREATE TABLE t AS SELECT 1",
        "SET TRANSACTION READ WRITE",
        "BEGIN",
        "COMMIT",
        "CALL p()",
        "COPY t FROM '/etc/passwd'",
        "COPY (SELECT 1) TO PROGRAM 'id'",
        "/* SELECT */ COPY (SELECT 1) TO STDOUT",
        "VACUUM",
        "EXPLAIN ANALYZE DELETE FROM t",
        "EXPLAIN SELECT 1",
        "ATTACH DATABASE 'x' AS y",
        "PRAGMA writable_schema = 1",
        "DO $$ BEGIN END $$",
        "LOCK TABLE t",
        "TRUNCATE t",
        "SELECTED",
        "\"SELECT\" 1",
        "((",
        "SELECT 'unterminated",
        "SELECT \"unterminated",
        "SELECT '\0'",
    ] {
        refused(sql);
    }
    let error = check(Dialect::Postgres, "DROP TABLE t", &[]).unwrap_err();
    assert_eq!(
        error.to_string(),
        "the statement begins with \"DROP\": write exactly one statement that begins with SELECT, WITH, VALUES or TABLE and only reads"
    );
}

/// PostgreSQL and SQLite refuse these themselves (`tests/api/sql.rs`); of other engines nothing is known.
#[test]
fn words_that_write_are_refused_where_the_engine_may_run_them() {
    let others = ALL.into_iter().filter(|dialect| !dialect.holds_read_only());
    for dialect in others {
        for sql in [
            "SELECT * INTO u FROM t",
            "SELECT 1\u{a0}INTO u",
            "SELECT 1\u{200b}INTO u",
            "SELECT 1\u{feff}INTO u",
            "SELECT 1INTO OUTFILE '/tmp/x'",
            "SELECT 1 INTO OUTFILE '/tmp/x'",
            "WITH x AS (DELETE FROM t RETURNING *) SELECT * FROM x",
            "WITH x AS (INSERT INTO t VALUES (1) RETURNING *) SELECT * FROM x",
            "WITH x AS (SELECT 1) DELETE FROM t",
            "WITH x AS (SELECT 1) MERGE t USING x ON 1 = 1 WHEN MATCHED THEN UPDATE SET a = 1",
            "WITH x AS (SELECT 1)/**/dElEtE/**/FROM t",
            "SELECT * FROM t FOR UPDATE",
            "SELECT * FROM (SELECT * FROM t FOR SHARE) u",
            "SELECT * FROM t LOCK IN SHARE MODE",
            "SELECT 1 DROP TABLE t",
            "SELECT 1.DELETE FROM t",
            "SELECT 1eDELETE FROM t",
            "SELECT 1e5DELETE FROM t",
            "SELECT 1E5INTO OUTFILE '/tmp/x'",
            "SELECT 1.eDELETE FROM t",
            "SELECT 1.e5DELETE FROM t",
            "SELECT 1.E5EXEC p",
            "SELECT 1.5e5DELETE FROM t",
            "SELECT .5eDELETE FROM t",
            "SELECT 0x1DELETE FROM t",
            "SELECT 0x1.eDELETE FROM t",
            "SELECT .e5DELETE FROM t",
            "SELECT a FROM t LIMIT 1e1FOR UPDATE",
            "SELECT 1 EXEC('x')",
            "VALUES (a := 1)",
        ] {
            let error = check(dialect, sql, &[]);
            let refused = matches!(error, Err(SqlError::NotReadOnly(_)));
            assert!(refused, "{dialect:?} {sql:?}: {error:?}");
        }
        for sql in [
            "SELECT replace(a, 'b', 'c'), truncate(d, 2), updated_at, dropped FROM t",
            "SELECT 'delete', a FROM t -- update",
            "SELECT 1 last_update, 1., 1.e5, 1.E5, .5e1, 0x1F, t.last_update, s.t.last_update FROM s.t",
        ] {
            check(dialect, sql, &[]).unwrap_or_else(|e| panic!("{dialect:?} {sql:?}: {e}"));
        }
    }
    for (dialect, sql) in [
        (Dialect::MySql, "SELECT 1 /*!50000 INTO OUTFILE '/tmp/x' */"),
        (Dialect::MySql, "SELECT @a := 1"),
        (Dialect::MySql, "SELECT 1 -- \r INTO OUTFILE 'x'"),
        (Dialect::MsSql, "SELECT 1 SET NOCOUNT ON"),
        (Dialect::MsSql, "SELECT 1 WAITFOR DELAY '1:00'"),
        (Dialect::MsSql, "SELECT /* /* */ 1 */ 1"),
        (Dialect::MsSql, "SELECT 1.e5SHUTDOWN"),
        (Dialect::MsSql, "SELECT 1.xSHUTDOWN"),
        (Dialect::MsSql, "SELECT 0x1\\\nASHUTDOWN"),
        (Dialect::MsSql, "SELECT 0x1\\\r\nASHUTDOWN"),
        (Dialect::MsSql, "SELECT 1 -- \\\nFROM t"),
        (Dialect::MsSql, "SELECT 1 -- \\\r\nFROM t"),
        (Dialect::MsSql, "SELECT 1 /* *\\\n/ */"),
        (Dialect::Generic, r"SELECT 'a\' INTO b, '"),
        (Dialect::Generic, "SELECT $$ ' $$ INTO b, $$ ' $$"),
        (Dialect::ClickHouse, "SELECT 1 SETTINGS readonly = 0"),
        (Dialect::ClickHouse, "SELECT 1 FORMAT CSV"),
        (
            Dialect::ClickHouse,
            "WITH ‘'’ AS a INSERT INTO FUNCTION file('b') SELECT a --'",
        ),
        (Dialect::ClickHouse, "SELECT “'”, sqlite('a', 'b') --'"),
        (Dialect::ClickHouse, "SELECT @@“'”, sqlite('a', 'b') --'"),
    ] {
        let accepted = check(dialect, sql, &[]).is_ok();
        assert!(!accepted, "{dialect:?} accepted {sql:?}");
    }
    check(Dialect::ClickHouse, "SELECT format, settings FROM t", &[]).unwrap();
    check(Dialect::ClickHouse, "SELECT '‘', `“` -- ’", &[]).unwrap();
    // A backslash that is of no text is MySQL's NULL, and what a comment ends with is nobody's.
    check(Dialect::MySql, "SELECT \\N -- \\\n", &[]).unwrap();
    check(Dialect::MsSql, "SELECT 'a\\', 'b\\\nc' -- \\ \n", &[]).unwrap();
    check(
        Dialect::BigQuery,
        "SELECT a FROM my-project-1.last_update.t",
        &[],
    )
    .unwrap();
}

#[test]
fn placeholders_of_the_sellers_own_are_named_and_refused() {
    for (dialect, sql, named) in [
        (Dialect::Postgres, "SELECT $1", "$1"),
        (Dialect::Sqlite, "SELECT ?", "?"),
        (Dialect::Sqlite, "SELECT ?12", "?12"),
        (Dialect::Sqlite, "SELECT @name, 1", "@name"),
        (Dialect::Sqlite, "SELECT $name", "$name"),
        (Dialect::MySql, "SELECT ?", "?"),
        (Dialect::MySql, "SELECT @name", "@name"),
        (Dialect::MsSql, "SELECT @P1", "@P1"),
        (Dialect::Generic, "SELECT $1", "$1"),
    ] {
        let refused = Err(SqlError::ForeignPlaceholder(named.into()));
        assert_eq!(prepare(dialect, sql), refused, "{dialect:?} {sql:?}");
    }
    for dialect in ALL {
        let refused = Err(SqlError::BadName("1".into()));
        assert_eq!(prepare(dialect, "SELECT a WHERE a = :1"), refused);
        let refused = Err(SqlError::BadName("é".into()));
        assert_eq!(prepare(dialect, "SELECT :é"), refused);
    }
    let long = format!("SELECT :{}", "a".repeat(60_000));
    let error = prepare(Dialect::Postgres, &long).unwrap_err();
    assert!(error.to_string().len() < 300, "{error}");
}

#[test]
fn placeholders_are_counted() {
    let names = |count: usize| {
        let names: Vec<String> = (0..count).map(|n| format!(":p{n}, :p{n}")).collect();
        format!("SELECT {}", names.join(", "))
    };
    assert!(prepare(Dialect::Postgres, &names(PLACEHOLDERS_MAX)).is_ok());
    let error = prepare(Dialect::Postgres, &names(PLACEHOLDERS_MAX + 1));
    assert_eq!(error, Err(SqlError::TooManyPlaceholders));
    let error = prepare(Dialect::MySql, &names(PLACEHOLDERS_MAX / 2 + 1));
    assert_eq!(error, Err(SqlError::TooManyPlaceholders));
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

/// A text of the engine's own stays as it is, whatever is in it; its values are those of all parameters, in the order of declaration.
#[test]
fn an_opaque_text_is_nobodys_business() {
    for text in [
        "GET goals",
        "/scores?a=:b;--",
        "{ a(b: $c) { d } }",
        "DELETE ) (",
    ] {
        let checked = check(Dialect::Opaque, text, &["b", "a"]).unwrap();
        assert_eq!(checked.text, text);
        assert_eq!(checked.bindings, ["b", "a"]);
    }
    for refused in ["", " \n", "a\0b", &"x".repeat(SQL_BYTES_MAX + 1)] {
        assert!(check(Dialect::Opaque, refused, &[]).is_err(), "{refused:?}");
    }
    assert_eq!(Dialect::of("opaque"), Some(Dialect::Opaque));
}
