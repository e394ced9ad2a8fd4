//! Trino's SQL: extremes of its types, values that come back, many rows.

use super::{EchoedValue, Literal};

pub const LITERALS: &[Literal] = &[
    ("BIGINT '-9223372036854775808'", "-9223372036854775808"),
    ("9223372036854775807", "9223372036854775807"),
    (
        "DECIMAL '99999999999999999999999999999999999999'",
        "99999999999999999999999999999999999999",
    ),
    (
        "DECIMAL '12345678901234567890.00100'",
        "12345678901234567890.00100",
    ),
    (
        "DECIMAL '-0.00000000000000000000000000000000000001'",
        "-0.00000000000000000000000000000000000001",
    ),
    ("1e-1", "0.1"),
    ("REAL '0.1'", "0.1"),
    ("DOUBLE 'NaN'", "\"NaN\""),
    ("DOUBLE '-Infinity'", "\"-Infinity\""),
    ("''", "\"\""),
    (
        "'grüße \"quoted\" \\ it''s 日本 😀'",
        "\"grüße \\\"quoted\\\" \\\\ it's 日本 😀\"",
    ),
    ("CAST('ab' AS char(4))", "\"ab  \""),
    ("TRUE", "true"),
    ("X'DEADBEEF'", "\"3q2+7w==\""),
    ("DATE '0001-01-01'", "\"0001-01-01\""),
    ("DATE '9999-12-31'", "\"9999-12-31\""),
    ("TIME '23:59:59.999999'", "\"23:59:59.999999\""),
    (
        "TIMESTAMP '2026-11-20 08:00:00.000001'",
        "\"2026-11-20T08:00:00.000001\"",
    ),
    (
        "TIMESTAMP '2026-11-20 09:00:00.000001 +01:00'",
        "\"2026-11-20T08:00:00.000001Z\"",
    ),
    (
        "TIMESTAMP '2026-11-20 08:00:00.000000001'",
        "\"2026-11-20 08:00:00.000000001\"",
    ),
    (
        "UUID 'A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11'",
        "\"a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11\"",
    ),
    ("IPADDRESS '2001:db8::1'", "\"2001:db8::1\""),
    ("INTERVAL '2' DAY", "\"2 00:00:00.000\""),
    ("JSON '{\"a\":[1,null]}'", "{\"a\":[1,null]}"),
    ("ARRAY[DECIMAL '1.50', NULL]", "[1.50,null]"),
    ("MAP(ARRAY['a'], ARRAY[ARRAY[1, 2]])", "{\"a\":[1,2]}"),
    (
        "CAST(ROW(1, ARRAY[ROW('x')]) AS row(a bigint, c array(row(b varchar))))",
        "{\"a\":1,\"c\":[{\"b\":\"x\"}]}",
    ),
    ("ROW(1, 'x')", "[1,\"x\"]"),
];
pub const NULLS: &[&str] = &[
    "NULL",
    "CAST(NULL AS boolean)",
    "CAST(NULL AS bigint)",
    "CAST(NULL AS double)",
    "CAST(NULL AS decimal(38, 10))",
    "CAST(NULL AS varchar)",
    "CAST(NULL AS varbinary)",
    "CAST(NULL AS date)",
    "CAST(NULL AS time(6))",
    "CAST(NULL AS timestamp(6))",
    "CAST(NULL AS timestamp(6) with time zone)",
    "CAST(NULL AS json)",
    "CAST(NULL AS uuid)",
    "CAST(NULL AS array(bigint))",
    "CAST(NULL AS map(varchar, bigint))",
    "CAST(NULL AS row(a bigint))",
];

pub const ECHOES: &[(&str, EchoedValue, &str)] = &[
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
        EchoedValue::Time(86_399_999_999),
        "\"23:59:59.999999\"",
    ),
    (
        "?",
        EchoedValue::Timestamp(1),
        "\"1970-01-01T00:00:00.000001Z\"",
    ),
    (
        "?",
        EchoedValue::LocalTimestamp(-1),
        "\"1969-12-31T23:59:59.999999\"",
    ),
    ("?", EchoedValue::Null, "null"),
];
/// A sequence has 10,000 numbers at most.
pub const MANY: &str = "SELECT 10000 * i + j AS n, 'xxxxxxxxxxxxxxxxxxxx' AS t, CASE WHEN (10000 * i + j) % 3 = 0 THEN NULL ELSE 10000 * i + j END AS o FROM UNNEST(sequence(0, 2)) AS a(i) CROSS JOIN UNNEST(sequence(1, 10000)) AS b(j) ORDER BY 1";
