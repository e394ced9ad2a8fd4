//! GoogleSQL: extremes of its types, values that come back, many rows.

use super::{EchoedValue, Literal};

pub const LITERALS: &[Literal] = &[
    ("-9223372036854775808", "-9223372036854775808"),
    ("9223372036854775807", "9223372036854775807"),
    (
        "NUMERIC '-99999999999999999999999999999.999999999'",
        "-99999999999999999999999999999.999999999",
    ),
    (
        "BIGNUMERIC '0.00000000000000000000000000000000000001'",
        "0.00000000000000000000000000000000000001",
    ),
    ("0.1", "0.1"),
    ("CAST('NaN' AS FLOAT64)", "\"NaN\""),
    ("CAST('-inf' AS FLOAT64)", "\"-Infinity\""),
    ("''", "\"\""),
    (
        "'grüße \"quoted\" \\\\ 日本 😀'",
        "\"grüße \\\"quoted\\\" \\\\ 日本 😀\"",
    ),
    ("TRUE", "true"),
    ("DATE '0001-01-01'", "\"0001-01-01\""),
    ("DATE '9999-12-31'", "\"9999-12-31\""),
    ("TIME '23:59:59.999999'", "\"23:59:59.999999\""),
    (
        "DATETIME '2026-11-20 08:00:00.000001'",
        "\"2026-11-20T08:00:00.000001\"",
    ),
    (
        "TIMESTAMP '2026-11-20 09:00:00+01:00'",
        "\"2026-11-20T08:00:00.000000Z\"",
    ),
    ("JSON '{\"a\":[1,null]}'", "{\"a\":[1,null]}"),
    ("ST_GEOGFROMTEXT('POINT(1 2)')", "\"POINT(1 2)\""),
    ("[1, 2]", "[1,2]"),
    (
        "STRUCT(1 AS a, [STRUCT('x' AS b)] AS c)",
        "{\"a\":1,\"c\":[{\"b\":\"x\"}]}",
    ),
];
pub const NULLS: &[&str] = &[
    "NULL",
    "CAST(NULL AS INT64)",
    "CAST(NULL AS FLOAT64)",
    "CAST(NULL AS NUMERIC)",
    "CAST(NULL AS BIGNUMERIC)",
    "CAST(NULL AS STRING)",
    "CAST(NULL AS BYTES)",
    "CAST(NULL AS BOOL)",
    "CAST(NULL AS DATE)",
    "CAST(NULL AS TIME)",
    "CAST(NULL AS DATETIME)",
    "CAST(NULL AS TIMESTAMP)",
    "CAST(NULL AS JSON)",
    "CAST(NULL AS GEOGRAPHY)",
];

pub const ECHOES: &[(&str, EchoedValue, &str)] = &[
    ("?", EchoedValue::Int64(i64::MIN), "-9223372036854775808"),
    ("?", EchoedValue::Float64(-0.5), "-0.5"),
    (
        "?",
        EchoedValue::Decimal("12345678901234567890.001"),
        "12345678901234567890.001",
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
pub const MANY: &str = "SELECT n, 'xxxxxxxxxxxxxxxxxxxx' AS t, CASE WHEN MOD(n, 3) = 0 THEN NULL ELSE n END AS o FROM UNNEST(GENERATE_ARRAY(1, 30000)) AS n ORDER BY 1";
