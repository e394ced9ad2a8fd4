//! Values of every type, there and back, against a real PostgreSQL.

mod common;

use common::Cluster;
use souk_sdk::{ColumnType, ErrorClass, Value};

/// Every type becomes the column it should, with its exact value and NULL.
#[test]
fn types_are_exact() {
    let mut wire = Cluster::get().wire();
    let cases: &[(&str, ColumnType, &str, &str)] = &[
        ("true", ColumnType::Boolean, "bool", "true"),
        ("(-32768)::int2", ColumnType::Int64, "int2", "-32768"),
        ("2147483647", ColumnType::Int64, "int4", "2147483647"),
        (
            "(-9223372036854775808)::int8",
            ColumnType::Int64,
            "int8",
            "-9223372036854775808",
        ),
        ("4294967295::oid", ColumnType::Int64, "oid", "4294967295"),
        ("1.5::float4", ColumnType::Float64, "float4", "1.5"),
        (
            "123456789::float4",
            ColumnType::Float64,
            "float4",
            "123456790.0",
        ),
        ("'-Infinity'::float8", ColumnType::Float64, "float8", "-inf"),
        ("0.1::float8", ColumnType::Float64, "float8", "0.1"),
        (
            "12345678901234567890.0120::numeric",
            ColumnType::Decimal,
            "numeric",
            "12345678901234567890.0120",
        ),
        (
            "0.00001234::numeric(20,10)",
            ColumnType::Decimal,
            "numeric(20,10)",
            "0.0000123400",
        ),
        ("'NaN'::numeric", ColumnType::Decimal, "numeric", "NaN"),
        (
            "'-Infinity'::numeric",
            ColumnType::Decimal,
            "numeric",
            "-Infinity",
        ),
        ("'é'::text", ColumnType::Text, "text", "é"),
        ("'ab'::varchar(5)", ColumnType::Text, "varchar(5)", "ab"),
        ("'ab'::char(4)", ColumnType::Text, "char(4)", "ab  "),
        ("'\\x6869'::bytea", ColumnType::Bytes, "bytea", "hi"),
        ("'2024-02-29'::date", ColumnType::Date, "date", "19782"),
        ("'0044-03-15 BC'::date", ColumnType::Date, "date", "-735160"),
        ("'24:00'::time", ColumnType::Time, "time", "86400000000"),
        (
            "'1969-12-31 23:59:59.999999'::timestamp",
            ColumnType::LocalTimestamp,
            "timestamp",
            "-1",
        ),
        (
            "'2000-01-01 02:00+02'::timestamptz",
            ColumnType::Timestamp,
            "timestamptz",
            "946684800000000",
        ),
        (
            "'1 day 02:03:04'::interval",
            ColumnType::Text,
            "interval",
            "1 day 02:03:04",
        ),
        (
            "'12:00+02'::timetz",
            ColumnType::Text,
            "timetz",
            "12:00:00+02",
        ),
        (
            "'A0EEBC99-9c0b-4ef8-bb6d-6bb9bd380a11'::uuid",
            ColumnType::Text,
            "uuid",
            "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11",
        ),
        ("'{\"a\": 1}'::json", ColumnType::Json, "json", "{\"a\": 1}"),
        (
            "'{\"a\":1}'::jsonb",
            ColumnType::Json,
            "jsonb",
            "{\"a\": 1}",
        ),
        (
            "ARRAY[[1,NULL],[3,4]]",
            ColumnType::Json,
            "int4[]",
            "[[1,null],[3,4]]",
        ),
        (
            "ARRAY['a\"b', NULL]",
            ColumnType::Json,
            "text[]",
            "[\"a\\\"b\",null]",
        ),
        (
            "ARRAY[1.50, 'NaN']::numeric[]",
            ColumnType::Json,
            "numeric[]",
            "[1.50,\"NaN\"]",
        ),
        (
            "ARRAY[0.1, 'NaN']::float4[]",
            ColumnType::Json,
            "float4[]",
            "[0.1,\"NaN\"]",
        ),
        (
            "ARRAY['-Infinity', 1.5]::float8[]",
            ColumnType::Json,
            "float8[]",
            "[\"-Infinity\",1.5]",
        ),
        (
            "ARRAY['infinity', '2024-01-01', '10000-01-01', '0044-03-15 BC']::date[]",
            ColumnType::Json,
            "date[]",
            "[\"infinity\",\"2024-01-01\",\"+10000-01-01\",\"-0043-03-15\"]",
        ),
        (
            "ARRAY['2024-01-01 12:00:00.5+00']::timestamptz[]",
            ColumnType::Json,
            "timestamptz[]",
            "[\"2024-01-01T12:00:00.500000Z\"]",
        ),
        ("ARRAY[]::int8[]", ColumnType::Json, "int8[]", "[]"),
        ("'happy'::shop.mood", ColumnType::Text, "shop.mood", "happy"),
        (
            "ARRAY['sad','happy']::shop.mood[]",
            ColumnType::Json,
            "shop.mood[]",
            "[\"sad\",\"happy\"]",
        ),
        ("'10.0.0.1/8'::inet", ColumnType::Text, "inet", "10.0.0.1/8"),
        ("'[1,5)'::int4range", ColumnType::Text, "int4range", "[1,5)"),
        ("'(1,2)'::point", ColumnType::Text, "point", "(1,2)"),
        ("B'0101'", ColumnType::Text, "bit", "0101"),
    ];
    for (expression, kind, native, value) in cases {
        let ty = if expression.starts_with("B'") {
            "bit(4)".into()
        } else {
            wire.scalar(&format!("SELECT pg_typeof({expression})::text"))
        };
        let sql = format!(
            "SELECT x AS v, NULLIF(x::text, x::text)::{ty} AS n FROM (SELECT {expression} AS x) t"
        );
        let answer = wire.query(&sql, vec![]).ok();
        assert_eq!(
            (answer.columns[0].kind, answer.columns[0].native.as_str()),
            (*kind, *native),
            "{expression}"
        );
        assert_eq!(answer.cell(0, 0), *value, "{expression}");
        assert_eq!(answer.cell(1, 0), "NULL", "{expression}");
    }
    assert_eq!(wire.scalar("SELECT 1"), "1");
}

/// A moment is the same, and a clock shows UTC, whatever the server's zone is.
#[test]
fn the_servers_zone_does_not_count() {
    let cluster = Cluster::get();
    assert_eq!(cluster.admin("SHOW TimeZone"), "Asia/Tokyo");
    cluster.admin(
        "CREATE TABLE shop.sightings (seen_at timestamptz); GRANT SELECT ON shop.sightings TO reader;
         INSERT INTO shop.sightings VALUES ('2026-11-20 17:00:00.125')",
    );
    let mut wire = cluster.wire();
    let sql = "SELECT seen_at, seen_at::timestamp AS shown, seen_at::text AS told, localtimestamp - (now() AT TIME ZONE 'UTC') AS apart \
        FROM shop.sightings WHERE seen_at = $1::timestamp";
    let values = vec![Value::LocalTimestamp(1_795_161_600_125_000)];
    let answer = wire.query(sql, values).ok();
    let cells: Vec<String> = (0..4).map(|column| answer.cell(column, 0)).collect();
    assert_eq!(
        cells,
        [
            "1795161600125000",
            "1795161600125000",
            "2026-11-20 08:00:00.125+00",
            "00:00:00",
        ]
    );
}

/// What no column has is an error that tells the owner where it is and what to write instead; what is written then leaves.
#[test]
fn endless_times_are_told_by_their_column() {
    let mut wire = Cluster::get().wire();
    for (value, code, says) in [
        (
            "'infinity'::timestamp",
            "infinite_time",
            "column \"until\": infinity",
        ),
        (
            "'-infinity'::timestamptz",
            "infinite_time",
            "NULLIF(…, '-infinity')",
        ),
        (
            "'-infinity'::date",
            "infinite_time",
            "column \"until\": -infinity",
        ),
        ("'infinity'::date", "infinite_time", "NULLIF(…, 'infinity')"),
        ("'100000-01-01'::date", "distant_time", "CAST(… AS text)"),
        (
            "ARRAY['100000-01-01']::timestamp[]",
            "distant_time",
            "column \"until\"",
        ),
    ] {
        let sql = format!("SELECT 1 AS id, {value} AS until");
        let error = wire.query(&sql, vec![]).error();
        assert_eq!(
            (error.class, error.code.as_str()),
            (ErrorClass::Source, code),
            "{value}"
        );
        // Its name is the owner's.
        assert!(!error.message.contains("until"), "{}", error.message);
        let detail = error.detail.unwrap();
        assert!(detail.contains(says), "{detail}");
    }
    let sql = |select: &str| {
        format!("SELECT {select} FROM (VALUES ('-infinity'::timestamp)) AS v(until)")
    };
    let text = wire.scalar(&sql("CAST(until AS text)"));
    assert_eq!(text, "-infinity");
    let null = wire.scalar(&sql("NULLIF(until, '-infinity')"));
    assert_eq!(null, "NULL");
}

/// What a parameter was declared to be counts where the server reads it as something else, unless the server has no use for that.
#[test]
fn what_was_declared_counts() {
    let mut wire = Cluster::get().wire();
    let leap_day = || Value::Date(19_782);
    for (sql, values, text) in [
        (
            "SELECT greatest($1, $2)::text",
            vec![Value::Int64(9), Value::Int64(10)],
            "10",
        ),
        (
            "SELECT '[\"a\", \"b\"]'::jsonb ->> $1",
            vec![Value::Int64(1)],
            "b",
        ),
        ("SELECT $1 || ' left'", vec![Value::Float64(4.0)], "4 left"),
        ("SELECT ($1 + 7)::text", vec![leap_day()], "2024-03-07"),
        (
            "SELECT ($1 + 7)::date::text",
            vec![leap_day()],
            "2024-03-07",
        ),
        (
            "SELECT (timestamptz '2024-03-01 00:00+00' > $1 - interval '1 day')::text",
            vec![leap_day()],
            "true",
        ),
        (
            "SELECT (timestamptz '1970-01-02 00:00+00' > $1 - interval '2 hours')::text",
            vec![Value::Timestamp(93_600_000_000)],
            "false",
        ),
        (
            "SELECT (date '2024-03-07' - $1)::text",
            vec![Value::Int64(7)],
            "2024-02-29",
        ),
        (
            "SELECT (date '2024-02-29' + $1)::text",
            vec![Value::Int64(7)],
            "2024-03-07",
        ),
        (
            "SELECT ($1 < date '2024-03-07' - $2 AND $3::shop.mood = 'sad')::text",
            vec![leap_day(), Value::Int64(7), Value::Text("sad".into())],
            "false",
        ),
        // A number that is compared with texts stays one of them, and another one has its fraction all the same.
        (
            "SELECT round(sum(id) / $1)::text FROM shop.items WHERE name <> $2",
            vec![Value::Float64(2.5), Value::Int64(5)],
            "200200",
        ),
        ("SELECT length($1)::text", vec![Value::Int64(1_000)], "4"),
        (
            "SELECT coalesce($1, 'none')",
            vec![Value::Null(Some(ColumnType::Int64))],
            "none",
        ),
    ] {
        for _ in 0..2 {
            let answer = wire.query(sql, values.clone());
            assert_eq!(answer.ok().cell(0, 0), text, "{sql}");
        }
    }
    let error = wire
        .query("SELECT no_such_function($1)", vec![Value::Int64(1)])
        .error();
    assert_eq!(error.source_code.as_deref(), Some("42883"));
}

/// Parameters go as the server's types; what does not fit is the caller's fault and the session goes on.
#[test]
fn parameters_are_bound() {
    let mut wire = Cluster::get().wire();
    let ok: Vec<(&str, Value, &str)> = vec![
        ("$1::int2", Value::Int64(7), "7"),
        ("$1::int8", Value::Decimal("12".into()), "12"),
        ("$1::float4", Value::Float64(0.5), "0.5"),
        // A number stays one, and the statement's own cast makes a whole one of it.
        ("$1::int4 + 0", Value::Float64(1.5), "2"),
        ("$1::float8", Value::Int64(3), "3"),
        ("$1::numeric", Value::Decimal("-1.50".into()), "-1.50"),
        (
            "$1::numeric",
            Value::Float64(1e21),
            "1000000000000000000000",
        ),
        ("$1::numeric * 3", Value::Float64(4.0), "12"),
        ("$1::text", Value::Text("a'b\\".into()), "a'b\\"),
        ("$1::varchar", Value::Int64(5), "5"),
        ("$1::bool", Value::Boolean(true), "true"),
        ("$1::bool", Value::Text("off".into()), "false"),
        ("$1::date", Value::Date(19_782), "2024-02-29"),
        ("$1::date", Value::Text("2024-02-29".into()), "2024-02-29"),
        (
            "$1::timestamp",
            Value::Timestamp(-1),
            "1969-12-31 23:59:59.999999",
        ),
        (
            "$1::timestamptz",
            Value::Text("2024-01-01T00:00:00Z".into()),
            "2024-01-01 00:00:00+00",
        ),
        ("$1::timestamp", Value::Date(0), "1970-01-01 00:00:00"),
        (
            "$1::timestamp",
            Value::LocalTimestamp(-1),
            "1969-12-31 23:59:59.999999",
        ),
        (
            "$1::timestamptz",
            Value::LocalTimestamp(0),
            "1970-01-01 00:00:00+00",
        ),
        ("$1::time", Value::Time(86_400_000_000), "24:00:00"),
        ("$1::time", Value::Text("12:30".into()), "12:30:00"),
        ("$1::text", Value::Time(1), "00:00:00.000001"),
        ("$1::interval", Value::Text("90 minutes".into()), "01:30:00"),
        (
            "$1::uuid",
            Value::Text("a0eebc999c0b4ef8bb6d6bb9bd380a11".into()),
            "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11",
        ),
        ("$1::json", Value::Json("{\"a\":1}".into()), "{\"a\":1}"),
        ("$1::jsonb", Value::Json("[1, 2]".into()), "[1, 2]"),
        ("$1::jsonb", Value::Int64(3), "3"),
        ("$1::bytea", Value::Bytes(vec![1, 255]), "\\x01ff"),
        ("$1::int4[]", Value::Json("[1,null,3]".into()), "{1,NULL,3}"),
        (
            "$1::text[]",
            Value::Json(r#"["a,b","c\"d"]"#.into()),
            r#"{"a,b","c\"d"}"#,
        ),
        ("$1::shop.mood", Value::Text("sad".into()), "sad"),
        ("$1::shop.mood[]", Value::Json(r#"["sad"]"#.into()), "{sad}"),
        ("$1::inet", Value::Text("10.0.0.1".into()), "10.0.0.1/32"),
        ("$1::int4", Value::Null(None), "NULL"),
    ];
    for (expression, value, text) in ok {
        let sql = format!("SELECT ({expression})::text");
        assert_eq!(
            wire.query(&sql, vec![value.clone()]).ok().cell(0, 0),
            text,
            "{expression} {value:?}"
        );
    }
    for (expression, value) in [
        ("$1::int2", Value::Int64(40_000)),
        ("$1::int4", Value::Text("x".into())),
        ("$1::float4", Value::Float64(1e300)),
        ("$1::bool", Value::Int64(1)),
        ("$1::uuid", Value::Text("nope".into())),
        ("$1::date", Value::Text("2024-02-30".into())),
        ("$1::json", Value::Json("{".into())),
        ("$1::bytea", Value::Boolean(true)),
        ("$1::text", Value::Text("a\0b".into())),
        ("$1::shop.mood", Value::Text("angry".into())),
        ("1 / $1::int4", Value::Int64(0)),
        // What is only read where the statement runs.
        ("to_tsquery('simple', $1)", Value::Text("red &".into())),
        ("$1::tsquery", Value::Text("red blue".into())),
        (
            "jsonb_path_query_array('{}', $1::jsonpath)",
            Value::Text("$.[".into()),
        ),
        ("$1::regclass", Value::Text("nothing".into())),
    ] {
        let error = wire
            .query(&format!("SELECT ({expression})::text"), vec![value])
            .error();
        assert_eq!(
            error.class,
            ErrorClass::InvalidRequest,
            "{expression}: {error:?}"
        );
    }
    assert_eq!(
        wire.query("SELECT $1::int", vec![]).error().code,
        "parameter_count"
    );
    assert_eq!(wire.scalar("SELECT 1"), "1");
}

/// A number whose zeros the server does not send takes its whole text of what a request may have, in an array as well; what is within is exact, however
/// many rows have one.
#[test]
fn numbers_of_many_digits_are_counted_as_they_are_written() {
    let mut wire = Cluster::get().wire();
    let of = |value: &str, rows: u32| format!("SELECT {value} FROM generate_series(1, {rows})");
    for value in ["1e100000::numeric", "ARRAY[1e100000::numeric]"] {
        let within = wire.query(&of(value, 50), vec![]).ok();
        assert!(within.chunks.len() > 2, "{} batches", within.chunks.len());
        assert_eq!(within.rows, 50);
        let text = within.cell(0, 0);
        let digits = text.trim_matches(['[', ']']);
        assert_eq!(digits.len(), 100_001);
        assert!(digits.starts_with('1') && digits[1..].bytes().all(|byte| byte == b'0'));
        let beyond = wire.query(&of(value, 5_000), vec![]).error();
        assert_eq!(
            (beyond.class, beyond.code.as_str()),
            (ErrorClass::LimitExceeded, "bytes_limit")
        );
    }
    assert_eq!(wire.query("SELECT 7", vec![]).ok().cell(0, 0), "7");
}
