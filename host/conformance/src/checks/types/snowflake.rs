//! Snowflake's SQL: extremes of its types, values that come back, many rows.

use super::{EchoedValue, Literal};

pub const LITERALS: &[Literal] = &[
    ("-999999999999999999::NUMBER(18,0)", "-999999999999999999"),
    (
        "99999999999999999999999999999999999999",
        "99999999999999999999999999999999999999",
    ),
    ("9223372036854775807", "9223372036854775807"),
    (
        "12345678901234567890.00100::NUMBER(38,5)",
        "12345678901234567890.00100",
    ),
    (
        "-0.0000000000000000000000000000000000001::NUMBER(38,37)",
        "-0.0000000000000000000000000000000000001",
    ),
    ("0.1::FLOAT", "0.1"),
    ("'NaN'::FLOAT", "\"NaN\""),
    ("'inf'::FLOAT", "\"Infinity\""),
    ("'-inf'::FLOAT", "\"-Infinity\""),
    ("''", "\"\""),
    (
        "'grüße \"quoted\" \\\\ it''s 日本 😀'",
        "\"grüße \\\"quoted\\\" \\\\ it's 日本 😀\"",
    ),
    ("$$it's ; -- $ $$", "\"it's ; -- $ \""),
    ("TRUE", "true"),
    ("FALSE::BOOLEAN", "false"),
    ("TO_BINARY('DEADBEEF')", "\"3q2+7w==\""),
    ("'0001-01-01'::DATE", "\"0001-01-01\""),
    ("'9999-12-31'::DATE", "\"9999-12-31\""),
    ("'23:59:59.999999'::TIME", "\"23:59:59.999999\""),
    (
        "'2026-11-20 08:00:00.000001'::TIMESTAMP_NTZ",
        "\"2026-11-20T08:00:00.000001\"",
    ),
    (
        "'1969-12-31 23:59:59.999999'::TIMESTAMP_NTZ",
        "\"1969-12-31T23:59:59.999999\"",
    ),
    (
        "'2026-11-20 09:00:00.000001 +01:00'::TIMESTAMP_TZ",
        "\"2026-11-20T08:00:00.000001Z\"",
    ),
    (
        "'2026-11-20 03:30:00 -04:30'::TIMESTAMP_LTZ",
        "\"2026-11-20T08:00:00.000000Z\"",
    ),
    ("PARSE_JSON('{\"a\":[1,null]}')", "{\"a\":[1,null]}"),
    (
        "ARRAY_CONSTRUCT(1.50, NULL, 'undefined')",
        "[1.50,null,\"undefined\"]",
    ),
    (
        "OBJECT_CONSTRUCT('a', 1, 'b', ARRAY_CONSTRUCT('x'))",
        "{\"a\":1,\"b\":[\"x\"]}",
    ),
];
pub const NULLS: &[&str] = &[
    "NULL",
    "NULL::BOOLEAN",
    "NULL::NUMBER(38,10)",
    "NULL::NUMBER(9,0)",
    "NULL::FLOAT",
    "NULL::VARCHAR",
    "NULL::BINARY",
    "NULL::DATE",
    "NULL::TIME",
    "NULL::TIMESTAMP_NTZ",
    "NULL::TIMESTAMP_LTZ",
    "NULL::TIMESTAMP_TZ",
    "NULL::VARIANT",
    "NULL::ARRAY",
    "NULL::OBJECT",
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
pub const MANY: &str = "SELECT n AS \"n\", 'xxxxxxxxxxxxxxxxxxxx' AS \"t\", CASE WHEN n % 3 = 0 THEN NULL ELSE n END AS \"o\" FROM (SELECT ROW_NUMBER() OVER (ORDER BY SEQ4()) AS n FROM TABLE(GENERATOR(ROWCOUNT => 30000))) AS s ORDER BY 1";
