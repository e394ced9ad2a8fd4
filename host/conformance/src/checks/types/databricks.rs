//! Databricks' SQL: extremes of its types, values that come back, many rows.

use super::{EchoedValue, Literal};

pub const LITERALS: &[Literal] = &[
    ("CAST('-128' AS TINYINT)", "-128"),
    ("CAST('32767' AS SMALLINT)", "32767"),
    ("-2147483648", "-2147483648"),
    (
        "CAST('-9223372036854775808' AS BIGINT)",
        "-9223372036854775808",
    ),
    ("9223372036854775807", "9223372036854775807"),
    (
        "99999999999999999999999999999999999999",
        "99999999999999999999999999999999999999",
    ),
    ("12345678901234567890.00100", "12345678901234567890.00100"),
    (
        "CAST('-0.00000000000000000000000000000000000001' AS DECIMAL(38, 38))",
        "-0.00000000000000000000000000000000000001",
    ),
    ("1e-1", "0.1"),
    ("CAST('1e100' AS DOUBLE)", "1e+100"),
    ("0.1F", "0.1"),
    ("CAST('NaN' AS DOUBLE)", "\"NaN\""),
    ("CAST('-Infinity' AS DOUBLE)", "\"-Infinity\""),
    ("''", "\"\""),
    (
        "'grüße \"quoted\" \\\\ it\\'s 日本 😀'",
        "\"grüße \\\"quoted\\\" \\\\ it's 日本 😀\"",
    ),
    ("TRUE", "true"),
    ("X'DEADBEEF'", "\"3q2+7w==\""),
    ("DATE'0001-01-01'", "\"0001-01-01\""),
    ("DATE'9999-12-31'", "\"9999-12-31\""),
    (
        "TIMESTAMP_NTZ'2026-11-20 08:00:00.000001'",
        "\"2026-11-20T08:00:00.000001\"",
    ),
    (
        "TIMESTAMP'2026-11-20 09:00:00.000001+01:00'",
        "\"2026-11-20T08:00:00.000001Z\"",
    ),
    ("INTERVAL '2' DAY", "\"INTERVAL '2' DAY\""),
    ("parse_json('{\"a\":[1,null]}')", "{\"a\":[1,null]}"),
    ("array(1.50, NULL)", "[1.50,null]"),
    ("map('a', array(1, 2))", "{\"a\":[1,2]}"),
    (
        "named_struct('a', 1, 'b', NULL, 'c', array(named_struct('d', TIMESTAMP'2026-11-20 08:00:00.000001Z')))",
        "{\"a\":1,\"b\":null,\"c\":[{\"d\":\"2026-11-20T08:00:00.000001Z\"}]}",
    ),
];
pub const NULLS: &[&str] = &[
    "NULL",
    "CAST(NULL AS BOOLEAN)",
    "CAST(NULL AS TINYINT)",
    "CAST(NULL AS BIGINT)",
    "CAST(NULL AS FLOAT)",
    "CAST(NULL AS DOUBLE)",
    "CAST(NULL AS DECIMAL(38, 10))",
    "CAST(NULL AS STRING)",
    "CAST(NULL AS BINARY)",
    "CAST(NULL AS DATE)",
    "CAST(NULL AS TIMESTAMP)",
    "CAST(NULL AS TIMESTAMP_NTZ)",
    "CAST(NULL AS VARIANT)",
    "CAST(NULL AS ARRAY<BIGINT>)",
    "CAST(NULL AS MAP<STRING, BIGINT>)",
    "CAST(NULL AS STRUCT<a: BIGINT>)",
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
    // There is no type of it.
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
pub const MANY: &str = "SELECT id AS n, 'xxxxxxxxxxxxxxxxxxxx' AS t, CASE WHEN id % 3 = 0 THEN NULL ELSE id END AS o FROM range(1, 30001) ORDER BY 1";
