//! Values: the extremes of each type as the engine writes them, NULLs, bound values that come back, and results of many batches. What can be
//! asked without a table depends on the dialect; of others the profile's statements say it.

mod bigquery;
mod databricks;
mod duckdb;
mod files;
mod snowflake;
mod sqlserver;
mod trino;

use std::time::Instant;

use souk_domain::sql::Dialect;
use souk_sandbox::{ColumnKind, Value};

use super::truth::Truth;
use super::{Suite, Verdict, advice, rows, told};
use crate::profile::Place;
use crate::subject::query;

/// An expression of the engine's, and the JSON that a buyer must read.
type Literal = (&'static str, &'static str);

const POSTGRES: &[Literal] = &[
    ("(-32768)::int2", "-32768"),
    ("2147483647::int4", "2147483647"),
    ("(-9223372036854775808)::int8", "-9223372036854775808"),
    ("9223372036854775807::int8", "9223372036854775807"),
    ("1.5::float4", "1.5"),
    ("0.1::float8", "0.1"),
    ("0.1::float4", "0.1"),
    // JSON has no number for it.
    ("'NaN'::float8", "\"NaN\""),
    ("'-Infinity'::float8", "\"-Infinity\""),
    (
        "12345678901234567890.00100::numeric",
        "12345678901234567890.00100",
    ),
    (
        "(-0.000000000000000000001)::numeric",
        "-0.000000000000000000001",
    ),
    ("''::text", "\"\""),
    (
        "'grüße \"quoted\" \\ 日本'::text",
        "\"grüße \\\"quoted\\\" \\\\ 日本\"",
    ),
    ("'ab'::char(4)", "\"ab  \""),
    ("true", "true"),
    ("false", "false"),
    ("'\\xdeadbeef'::bytea", "\"3q2+7w==\""),
    ("DATE '2024-02-29'", "\"2024-02-29\""),
    ("DATE '0044-03-15'", "\"0044-03-15\""),
    ("TIME '23:59:59.123456'", "\"23:59:59.123456\""),
    (
        "TIMESTAMP '2026-11-20 08:00:00.000001'",
        "\"2026-11-20T08:00:00.000001\"",
    ),
    (
        "TIMESTAMPTZ '2026-11-20 10:00:00+02'",
        "\"2026-11-20T08:00:00.000000Z\"",
    ),
    (
        "'A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11'::uuid",
        "\"a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11\"",
    ),
    ("'{\"b\": [1, null]}'::jsonb", "{\"b\": [1, null]}"),
];
const POSTGRES_NULLS: &[&str] = &[
    "NULL::int4",
    "NULL::int8",
    "NULL::float8",
    "NULL::numeric",
    "NULL::text",
    "NULL::bool",
    "NULL::bytea",
    "NULL::date",
    "NULL::time",
    "NULL::timestamp",
    "NULL::timestamptz",
    "NULL::jsonb",
];
const SQLITE: &[Literal] = &[
    ("-9223372036854775807 - 1", "-9223372036854775808"),
    ("9223372036854775807", "9223372036854775807"),
    ("0.1", "0.1"),
    ("1e308", "1e+308"),
    ("''", "\"\""),
    (
        "'grüße \"quoted\" \\ 日本'",
        "\"grüße \\\"quoted\\\" \\\\ 日本\"",
    ),
    ("x'deadbeef'", "\"3q2+7w==\""),
];
const SQLITE_NULLS: &[&str] = &["NULL", "CAST(NULL AS INTEGER)", "CAST(NULL AS TEXT)"];

/// What MySQL and MariaDB write alike.
const MYSQL: &[Literal] = &[
    ("-32768", "-32768"),
    ("-9223372036854775808", "-9223372036854775808"),
    ("9223372036854775807", "9223372036854775807"),
    (
        "CAST(18446744073709551615 AS UNSIGNED)",
        "18446744073709551615",
    ),
    ("0.1E0", "0.1"),
    ("12345678901234567890.00100", "12345678901234567890.00100"),
    (
        "CAST('-0.000000000000000000001' AS DECIMAL(30,21))",
        "-0.000000000000000000001",
    ),
    ("''", "\"\""),
    (
        "'grüße \"quoted\" \\\\ 日本 😀'",
        "\"grüße \\\"quoted\\\" \\\\ 日本 😀\"",
    ),
    ("TRUE", "1"),
    ("x'deadbeef'", "\"3q2+7w==\""),
    ("DATE '2024-02-29'", "\"2024-02-29\""),
    ("DATE '0044-03-15'", "\"0044-03-15\""),
    ("TIME '23:59:59.123456'", "\"23:59:59.123456\""),
    ("TIME '-838:59:59'", "\"-838:59:59\""),
    (
        "TIMESTAMP '2026-11-20 08:00:00.000001'",
        "\"2026-11-20T08:00:00.000001\"",
    ),
];
const MYSQL_NULLS: &[&str] = &[
    "NULL",
    "CAST(NULL AS SIGNED)",
    "CAST(NULL AS UNSIGNED)",
    "CAST(NULL AS DECIMAL(10,2))",
    "CAST(NULL AS CHAR)",
    "CAST(NULL AS BINARY)",
    "CAST(NULL AS DATE)",
    "CAST(NULL AS TIME)",
    "CAST(NULL AS DATETIME)",
];

const CLICKHOUSE: &[Literal] = &[
    ("toInt8(-128)", "-128"),
    ("toInt64('-9223372036854775808')", "-9223372036854775808"),
    ("9223372036854775807", "9223372036854775807"),
    ("toUInt64('18446744073709551615')", "18446744073709551615"),
    (
        "toInt256('-57896044618658097711785492504343953926634992332820282019728792003956564819968')",
        "-57896044618658097711785492504343953926634992332820282019728792003956564819968",
    ),
    ("0.1", "0.1"),
    ("toFloat32(0.1)", "0.1"),
    ("nan", "\"NaN\""),
    ("-inf", "\"-Infinity\""),
    (
        "toDecimal128('12345678901234567890.00100', 5)",
        "12345678901234567890.00100",
    ),
    (
        "toDecimal256('-0.000000000000000000001', 21)",
        "-0.000000000000000000001",
    ),
    ("''", "\"\""),
    (
        "'grüße \"quoted\" \\\\ 日本 😀'",
        "\"grüße \\\"quoted\\\" \\\\ 日本 😀\"",
    ),
    ("true", "true"),
    ("toDate('2024-02-29')", "\"2024-02-29\""),
    ("toDate32('1900-01-01')", "\"1900-01-01\""),
    (
        "toDateTime('2026-11-20 09:00:00', 'Europe/Berlin')",
        "\"2026-11-20T08:00:00.000000Z\"",
    ),
    (
        "toDateTime64('2026-11-20 08:00:00.000001', 6, 'UTC')",
        "\"2026-11-20T08:00:00.000001Z\"",
    ),
    (
        "toUUID('A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11')",
        "\"a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11\"",
    ),
    ("map('a', [1, NULL])", "{\"a\":[1,null]}"),
];
const CLICKHOUSE_NULLS: &[&str] = &[
    "NULL",
    "CAST(NULL, 'Nullable(Int64)')",
    "CAST(NULL, 'Nullable(UInt64)')",
    "CAST(NULL, 'Nullable(Float64)')",
    "CAST(NULL, 'Nullable(Decimal(10, 2))')",
    "CAST(NULL, 'LowCardinality(Nullable(String))')",
    "CAST(NULL, 'Nullable(Bool)')",
    "CAST(NULL, 'Nullable(Date)')",
    "CAST(NULL, 'Nullable(DateTime64(6))')",
    "CAST(NULL, 'Nullable(UUID)')",
];

/// How each kind of value is echoed, and what a buyer must read.
const POSTGRES_ECHOES: &[(&str, EchoedValue, &str)] = &[
    (
        "$1::int8",
        EchoedValue::Int64(i64::MIN),
        "-9223372036854775808",
    ),
    ("$1::float8", EchoedValue::Float64(-0.5), "-0.5"),
    (
        "$1::numeric",
        EchoedValue::Decimal("12345678901234567890.00100"),
        "12345678901234567890.00100",
    ),
    (
        "$1::text",
        EchoedValue::Text("a'b\"c\\d 日本"),
        "\"a'b\\\"c\\\\d 日本\"",
    ),
    ("$1::bool", EchoedValue::Boolean(true), "true"),
    ("$1::date", EchoedValue::Date(19_782), "\"2024-02-29\""),
    (
        "$1::timestamptz",
        EchoedValue::Timestamp(1),
        "\"1970-01-01T00:00:00.000001Z\"",
    ),
    (
        "$1::timestamp",
        EchoedValue::LocalTimestamp(-1),
        "\"1969-12-31T23:59:59.999999\"",
    ),
    (
        "$1::time",
        EchoedValue::Time(86_400_000_000),
        "\"24:00:00.000000\"",
    ),
    ("$1::text", EchoedValue::Null, "null"),
];
const SQLITE_ECHOES: &[(&str, EchoedValue, &str)] = &[
    ("?1", EchoedValue::Int64(i64::MIN), "-9223372036854775808"),
    ("?1", EchoedValue::Float64(-0.5), "-0.5"),
    (
        "?1",
        EchoedValue::Text("a'b\"c\\d 日本"),
        "\"a'b\\\"c\\\\d 日本\"",
    ),
    ("?1", EchoedValue::Null, "null"),
];
const MYSQL_ECHOES: &[(&str, EchoedValue, &str)] = &[
    ("?", EchoedValue::Int64(i64::MIN), "-9223372036854775808"),
    ("?", EchoedValue::Float64(-0.5), "-0.5"),
    (
        "?",
        EchoedValue::Decimal("12345678901234567890.00100"),
        "12345678901234567890.00100",
    ),
    (
        "?",
        EchoedValue::Text("a'b\"c\\d 日本"),
        "\"a'b\\\"c\\\\d 日本\"",
    ),
    ("?", EchoedValue::Boolean(true), "1"),
    (
        "CAST(? AS DATE)",
        EchoedValue::Date(19_782),
        "\"2024-02-29\"",
    ),
    (
        "CAST(? AS DATETIME(6))",
        EchoedValue::LocalTimestamp(1),
        "\"1970-01-01T00:00:00.000001\"",
    ),
    (
        "CAST(? AS DATETIME(6))",
        EchoedValue::Timestamp(1),
        "\"1970-01-01T00:00:00.000001\"",
    ),
    (
        "CAST(? AS TIME(6))",
        EchoedValue::Time(86_399_999_999),
        "\"23:59:59.999999\"",
    ),
    ("?", EchoedValue::Null, "null"),
];
const CLICKHOUSE_ECHOES: &[(&str, EchoedValue, &str)] = &[
    ("?", EchoedValue::Int64(i64::MIN), "-9223372036854775808"),
    ("?", EchoedValue::Float64(-0.5), "-0.5"),
    (
        "?",
        EchoedValue::Decimal("12345678901234567890.00100"),
        "12345678901234567890.00100",
    ),
    (
        "?",
        EchoedValue::Text("a'b\"c\\d 日本\t\n"),
        "\"a'b\\\"c\\\\d 日本\\t\\n\"",
    ),
    ("?", EchoedValue::Boolean(true), "true"),
    ("?", EchoedValue::Date(19_782), "\"2024-02-29\""),
    (
        "?",
        EchoedValue::Timestamp(1),
        "\"1970-01-01T00:00:00.000001Z\"",
    ),
    ("?", EchoedValue::Null, "null"),
];
/// More than a batch of any connector that cuts its batches, and more than one message of a protocol.
const MANY: usize = 30_000;
const POSTGRES_MANY: &str = "SELECT g::int8 AS n, repeat('x', 20) AS t, CASE WHEN g % 3 = 0 THEN NULL ELSE g::int4 END AS o FROM generate_series(1, 30000) AS g ORDER BY 1";
/// A recursive statement ends after 1,000 rounds, unless the server is told otherwise.
const MYSQL_MANY: &str = "WITH d AS (SELECT 0 AS i UNION ALL SELECT 1 UNION ALL SELECT 2 UNION ALL SELECT 3 UNION ALL SELECT 4 UNION ALL SELECT 5 UNION ALL SELECT 6 UNION ALL SELECT 7 UNION ALL SELECT 8 UNION ALL SELECT 9), s AS (SELECT CAST(1 + a.i + 10 * b.i + 100 * c.i + 1000 * e.i + 10000 * f.i AS SIGNED) AS n FROM d a, d b, d c, d e, d f WHERE f.i < 3) SELECT n, 'xxxxxxxxxxxxxxxxxxxx' AS t, CASE WHEN n % 3 = 0 THEN NULL ELSE n END AS o FROM s ORDER BY 1";
const SQLITE_MANY: &str = "WITH RECURSIVE s(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM s WHERE n < 30000) SELECT n, 'xxxxxxxxxxxxxxxxxxxx' AS t, CASE WHEN n % 3 = 0 THEN NULL ELSE n END AS o FROM s ORDER BY 1";

const CLICKHOUSE_MANY: &str = "SELECT toInt64(number) AS n, 'xxxxxxxxxxxxxxxxxxxx' AS t, if(number % 3 = 0, NULL, number) AS o FROM numbers(1, 30000) ORDER BY 1";

#[derive(Clone, Copy)]
enum EchoedValue {
    Int64(i64),
    Float64(f64),
    Decimal(&'static str),
    Text(&'static str),
    Boolean(bool),
    Date(i32),
    Time(i64),
    Timestamp(i64),
    LocalTimestamp(i64),
    Null,
}

impl EchoedValue {
    fn value(self) -> Value {
        match self {
            EchoedValue::Int64(value) => Value::Int64(value),
            EchoedValue::Float64(value) => Value::Float64(value),
            EchoedValue::Decimal(digits) => Value::Decimal(digits.to_owned()),
            EchoedValue::Text(text) => Value::Text(text.to_owned()),
            EchoedValue::Boolean(value) => Value::Boolean(value),
            EchoedValue::Date(days) => Value::Date(days),
            EchoedValue::Time(micros) => Value::Time(micros),
            EchoedValue::Timestamp(micros) => Value::Timestamp(micros),
            EchoedValue::LocalTimestamp(micros) => Value::LocalTimestamp(micros),
            EchoedValue::Null => Value::Null(None),
        }
    }
}

/// What the columns of a table say of themselves holds for its rows. (Layout, UTF-8, JSON and digits are checked by the sandbox in every
/// answer: what is malformed there is a fault that each check tells.)
pub fn columns(suite: &mut Suite<'_>, truth: &Truth) {
    suite.note("columns.nullable", || {
        for (at, column) in truth.output.columns.iter().enumerate() {
            let field = &truth.table.fields[at];
            let has_null = truth.output.cells(at).any(|cell| cell.is_null());
            if has_null && !column.nullable {
                return Verdict::failed(
                    format!("the column {:?} is said not to be nullable, and holds NULL", column.name),
                    "`nullable` of a column is false only where the source vouches for it",
                );
            }
            if has_null && !field.nullable {
                return Verdict::failed(
                    format!("the catalog says that {:?} is not nullable, and it holds NULL", column.name),
                    "`nullable` of the catalog is false only where the source vouches for it: hosts choose statements by it",
                );
            }
        }
        Verdict::passed()
    });
    suite.note("columns.native", || {
        let bare = truth
            .output
            .columns
            .iter()
            .find(|column| column.native.is_empty());
        match bare {
            Some(column) => Verdict::warned(
                format!("the column {:?} has no native type", column.name),
                "say what the source calls the type: `numeric(10,2)`, `number`",
            ),
            None => Verdict::passed(),
        }
    });
}

pub async fn run(suite: &mut Suite<'_>, place: &Place) {
    let known = match suite.dialect {
        // Its text is PostgreSQL's, its types are its own.
        Some(Dialect::Postgres) if suite.subject.engine.slug == "files" => {
            (files::LITERALS, files::NULLS, files::ECHOES, files::MANY)
        }
        Some(Dialect::Postgres) => (POSTGRES, POSTGRES_NULLS, POSTGRES_ECHOES, POSTGRES_MANY),
        // Its text is quoted as MySQL's, its expressions are its own.
        Some(Dialect::MySql) if suite.subject.engine.slug == "databricks" => (
            databricks::LITERALS,
            databricks::NULLS,
            databricks::ECHOES,
            databricks::MANY,
        ),
        Some(Dialect::MySql) => (MYSQL, MYSQL_NULLS, MYSQL_ECHOES, MYSQL_MANY),
        Some(Dialect::Sqlite) => (SQLITE, SQLITE_NULLS, SQLITE_ECHOES, SQLITE_MANY),
        Some(Dialect::ClickHouse) => (
            CLICKHOUSE,
            CLICKHOUSE_NULLS,
            CLICKHOUSE_ECHOES,
            CLICKHOUSE_MANY,
        ),
        Some(Dialect::BigQuery) => (
            bigquery::LITERALS,
            bigquery::NULLS,
            bigquery::ECHOES,
            bigquery::MANY,
        ),
        Some(Dialect::MsSql) => (
            sqlserver::LITERALS,
            sqlserver::NULLS,
            sqlserver::ECHOES,
            sqlserver::MANY,
        ),
        // Its text is generic SQL, its expressions are its own.
        Some(Dialect::Generic) if suite.subject.engine.slug == "trino" => {
            (trino::LITERALS, trino::NULLS, trino::ECHOES, trino::MANY)
        }
        Some(Dialect::Generic) if suite.subject.engine.slug == "duckdb" => (
            duckdb::LITERALS,
            duckdb::NULLS,
            duckdb::ECHOES,
            duckdb::MANY,
        ),
        Some(Dialect::Generic) if suite.subject.engine.slug == "snowflake" => (
            snowflake::LITERALS,
            snowflake::NULLS,
            snowflake::ECHOES,
            snowflake::MANY,
        ),
        _ => {
            return suite.note("types", || {
                Verdict::skipped("the kit knows no expressions of this dialect: write statements with their rows into the profile ([[query]]), NULLs and the largest numbers among them")
            });
        }
    };
    let (literals, nulls, echoes, many) = known;
    let begun = Instant::now();
    let verdict = exact(suite, place, literals).await;
    suite.found("types.extremes", begun, verdict);

    let begun = Instant::now();
    let literals: Vec<Literal> = nulls.iter().map(|null| (*null, "null")).collect();
    let verdict = exact(suite, place, &literals).await;
    suite.found("types.nulls", begun, verdict);

    let begun = Instant::now();
    let verdict = echoed(suite, place, echoes).await;
    suite.found("parameters.come_back", begun, verdict);

    let begun = Instant::now();
    let verdict = counted(suite, place, many).await;
    suite.found("types.many_rows", begun, verdict);
}

async fn exact(suite: &Suite<'_>, place: &Place, literals: &[Literal]) -> Verdict {
    let source = suite.subject.source(place);
    let mut wrong = Vec::new();
    for (sql, wanted) in literals {
        let text = format!("SELECT {sql} AS v");
        match suite.subject.ask(&source, query(&text, Vec::new())).await {
            Ok(output) => match rows(&output).as_slice() {
                [row] if row == &[*wanted] => {}
                found => wrong.push(format!("{text} is {found:?}, not {wanted}")),
            },
            Err(fault) => wrong.push(format!("{text}: {}", told(&fault))),
        }
    }
    match wrong.is_empty() {
        true => Verdict::noted(format!("{} expressions", literals.len())),
        false => Verdict::failed(
            wrong.join("\n"),
            "exact numbers are `decimal` with the source's digits, 64-bit integers `int64`, moments `timestamp` in UTC, what a clock showed without a zone `local-timestamp`; what fits no type is `text` or `json`",
        ),
    }
}

async fn echoed(suite: &Suite<'_>, place: &Place, echoes: &[(&str, EchoedValue, &str)]) -> Verdict {
    let source = suite.subject.source(place);
    let mut wrong = Vec::new();
    for (sql, value, wanted) in echoes {
        let text = format!("SELECT {sql} AS v");
        let value = value.value();
        let told_value = format!("{value:?}");
        match suite.subject.ask(&source, query(&text, vec![value])).await {
            Ok(output) => match rows(&output).as_slice() {
                [row] if row == &[*wanted] => {}
                found => wrong.push(format!(
                    "{text} with {told_value} is {found:?}, not {wanted}"
                )),
            },
            Err(fault) => wrong.push(format!("{text} with {told_value}: {}", told(&fault))),
        }
    }
    match wrong.is_empty() {
        true => Verdict::noted(format!("{} values", echoes.len())),
        false => Verdict::failed(
            wrong.join("\n"),
            "parameters are bound in order, each as its own type, and lose no digit",
        ),
    }
}

async fn counted(suite: &Suite<'_>, place: &Place, many: &str) -> Verdict {
    let source = suite.subject.source(place);
    let output = match suite.subject.ask(&source, query(many, Vec::new())).await {
        Ok(output) => output,
        Err(fault) => return Verdict::failed(format!("{many}\n{}", told(&fault)), advice(&fault)),
    };
    if output.rows != MANY {
        return Verdict::failed(
            format!("{many}\nanswers {} rows", output.rows),
            "a result may come in many batches: each one counts",
        );
    }
    let is_number = output.columns[0].kind == ColumnKind::Int64;
    let strays = (0..MANY).find(|row| {
        let number = *row as i64 + 1;
        (is_number && output.cell(*row, 0).as_i64() != Some(number))
            || output.cell(*row, 2).is_null() != (number % 3 == 0)
    });
    match strays {
        Some(row) => Verdict::failed(
            format!(
                "row {} of {MANY} holds {:?}",
                row + 1,
                super::row(&output, row)
            ),
            "the bitmap of NULLs and the offsets of texts begin anew in each batch",
        ),
        None => Verdict::passed(),
    }
}
