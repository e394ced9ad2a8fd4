//! DuckDB's SQL: extremes of its types, values that come back, many rows.

use super::{EchoedValue, Literal};

pub const LITERALS: &[Literal] = &[
    ("(-128)::TINYINT", "-128"),
    ("(-9223372036854775808)::BIGINT", "-9223372036854775808"),
    ("9223372036854775807", "9223372036854775807"),
    ("18446744073709551615::UBIGINT", "18446744073709551615"),
    (
        "'-170141183460469231731687303715884105728'::HUGEINT",
        "-170141183460469231731687303715884105728",
    ),
    (
        "'340282366920938463463374607431768211455'::UHUGEINT",
        "340282366920938463463374607431768211455",
    ),
    (
        "'99999999999999999999999999999999999999'::DECIMAL(38, 0)",
        "99999999999999999999999999999999999999",
    ),
    (
        "12345678901234567890.00100::DECIMAL(25, 5)",
        "12345678901234567890.00100",
    ),
    (
        "'-0.00000000000000000000000000000000000001'::DECIMAL(38, 38)",
        "-0.00000000000000000000000000000000000001",
    ),
    ("1e-1", "0.1"),
    ("'1e100'::DOUBLE", "1e+100"),
    ("0.1::FLOAT", "0.1"),
    ("'nan'::DOUBLE", "\"NaN\""),
    ("'-inf'::DOUBLE", "\"-Infinity\""),
    ("''", "\"\""),
    (
        "'grüße \"quoted\" \\ it''s 日本 😀'",
        "\"grüße \\\"quoted\\\" \\\\ it's 日本 😀\"",
    ),
    ("true", "true"),
    ("'\\xDE\\xAD\\xBE\\xEF'::BLOB", "\"3q2+7w==\""),
    ("'10101'::BIT", "\"10101\""),
    ("DATE '0001-01-01'", "\"0001-01-01\""),
    ("DATE '9999-12-31'", "\"9999-12-31\""),
    ("TIME '23:59:59.999999'", "\"23:59:59.999999\""),
    (
        "TIMESTAMP '2026-11-20 08:00:00.000001'",
        "\"2026-11-20T08:00:00.000001\"",
    ),
    (
        "TIMESTAMPTZ '2026-11-20 09:00:00.000001+01'",
        "\"2026-11-20T08:00:00.000001Z\"",
    ),
    (
        "TIMESTAMP_NS '2026-11-20 08:00:00.000000001'",
        "\"2026-11-20 08:00:00.000000001\"",
    ),
    ("INTERVAL '2 days 1 hour'", "\"2 days 01:00:00\""),
    (
        "'0f3c5a70-1b2d-4e6f-8a9b-c0d1e2f30415'::UUID",
        "\"0f3c5a70-1b2d-4e6f-8a9b-c0d1e2f30415\"",
    ),
    ("'b'::ENUM('a', 'b')", "\"b\""),
    ("'{\"a\":[1,null]}'::JSON", "{\"a\":[1,null]}"),
    ("[1.50, NULL]", "[1.50,null]"),
    ("[]", "[]"),
    ("[1, 2]::INTEGER[2]", "[1,2]"),
    ("MAP{'a': [1, 2]}", "{\"a\":[1,2]}"),
    (
        "{'a': 1, 'b': NULL, 'c': [{'d': TIMESTAMPTZ '2026-11-20 08:00:00.000001Z'}]}",
        "{\"a\":1,\"b\":null,\"c\":[{\"d\":\"2026-11-20T08:00:00.000001Z\"}]}",
    ),
    (
        "union_value(k := 1)::UNION(s VARCHAR, k INTEGER)",
        "{\"k\":1}",
    ),
];
pub const NULLS: &[&str] = &[
    "NULL",
    "NULL::BOOLEAN",
    "NULL::TINYINT",
    "NULL::BIGINT",
    "NULL::UHUGEINT",
    "NULL::FLOAT",
    "NULL::DOUBLE",
    "NULL::DECIMAL(38, 10)",
    "NULL::VARCHAR",
    "NULL::BLOB",
    "NULL::BIT",
    "NULL::DATE",
    "NULL::TIME",
    "NULL::TIMESTAMP",
    "NULL::TIMESTAMPTZ",
    "NULL::INTERVAL",
    "NULL::UUID",
    "NULL::ENUM('a')",
    "NULL::JSON",
    "NULL::BIGINT[]",
    "NULL::BIGINT[2]",
    "NULL::MAP(VARCHAR, BIGINT)",
    "NULL::STRUCT(a BIGINT)",
    "NULL::UNION(a BIGINT)",
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
pub const MANY: &str = "SELECT i AS n, 'xxxxxxxxxxxxxxxxxxxx' AS t, CASE WHEN i % 3 <> 0 THEN i END AS o FROM range(1, 30001) AS r(i) ORDER BY 1";
