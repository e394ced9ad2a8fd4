//! DataFusion's SQL, as the engine `files` speaks it: PostgreSQL's words, other types.

use super::{EchoedValue, Literal};

pub const LITERALS: &[Literal] = &[
    ("(-9223372036854775807 - 1)::bigint", "-9223372036854775808"),
    ("9223372036854775807", "9223372036854775807"),
    (
        "CAST(18446744073709551615 AS bigint unsigned)",
        "18446744073709551615",
    ),
    ("0.1::double", "0.1"),
    ("0.1::real", "0.1"),
    ("'NaN'::double", "\"NaN\""),
    ("12345678901234567890.00100", "12345678901234567890.00100"),
    (
        "CAST('-0.00000000000000000000000000000000000001' AS decimal(38, 38))",
        "-0.00000000000000000000000000000000000001",
    ),
    ("''", "\"\""),
    (
        "'grüße \"quoted\" \\ it''s 日本 😀'",
        "\"grüße \\\"quoted\\\" \\\\ it's 日本 😀\"",
    ),
    ("true", "true"),
    ("decode('deadbeef', 'hex')", "\"3q2+7w==\""),
    ("DATE '2024-02-29'", "\"2024-02-29\""),
    ("DATE '9999-12-31'", "\"9999-12-31\""),
    ("TIME '23:59:59.123456'", "\"23:59:59.123456\""),
    (
        "TIMESTAMP '2026-11-20 08:00:00.000001'",
        "\"2026-11-20T08:00:00.000001\"",
    ),
    (
        "TIMESTAMPTZ '2026-11-20 10:00:00+02'",
        "\"2026-11-20T08:00:00.000000Z\"",
    ),
    ("make_array(1.50, NULL)", "[1.50,null]"),
    (
        "named_struct('a', 1, 'b', make_array('x\"y'))",
        "{\"a\":1,\"b\":[\"x\\\"y\"]}",
    ),
    (
        "map(make_array('a', 'b'), make_array(1, NULL))",
        "{\"a\":1,\"b\":null}",
    ),
];
pub const NULLS: &[&str] = &[
    "NULL",
    "NULL::boolean",
    "NULL::bigint",
    "NULL::double",
    "NULL::decimal(38, 10)",
    "NULL::text",
    "NULL::bytea",
    "NULL::date",
    "NULL::time",
    "NULL::timestamp",
    "NULL::timestamptz",
    "arrow_cast(NULL, 'List(Int64)')",
];
pub const ECHOES: &[(&str, EchoedValue, &str)] = &[
    ("$1", EchoedValue::Int64(i64::MIN), "-9223372036854775808"),
    ("$1", EchoedValue::Float64(-0.5), "-0.5"),
    (
        "$1",
        EchoedValue::Decimal("12345678901234567890.00100"),
        "12345678901234567890.00100",
    ),
    (
        "$1",
        EchoedValue::Text("a'b\"c\\d 日本"),
        "\"a'b\\\"c\\\\d 日本\"",
    ),
    ("$1", EchoedValue::Boolean(true), "true"),
    ("$1", EchoedValue::Date(19_782), "\"2024-02-29\""),
    (
        "$1",
        EchoedValue::Timestamp(1),
        "\"1970-01-01T00:00:00.000001Z\"",
    ),
    (
        "$1",
        EchoedValue::LocalTimestamp(-1),
        "\"1969-12-31T23:59:59.999999\"",
    ),
    (
        "$1",
        EchoedValue::Time(86_399_999_999),
        "\"23:59:59.999999\"",
    ),
    ("$1", EchoedValue::Null, "null"),
];
pub const MANY: &str = "SELECT n, repeat('x', 20) AS t, CASE WHEN n % 3 = 0 THEN NULL ELSE n END AS o FROM generate_series(1, 30000) AS g(n) ORDER BY 1";
