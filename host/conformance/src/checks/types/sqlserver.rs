//! SQL Server's expressions: extremes of its types, values that come back, many rows.

use super::{EchoedValue, Literal};

pub const LITERALS: &[Literal] = &[
    ("CAST(255 AS tinyint)", "255"),
    ("CAST(-32768 AS smallint)", "-32768"),
    ("2147483647", "2147483647"),
    (
        "CAST('-9223372036854775808' AS bigint)",
        "-9223372036854775808",
    ),
    (
        "CAST('9223372036854775807' AS bigint)",
        "9223372036854775807",
    ),
    (
        "CAST('99999999999999999999999999999999999999' AS decimal(38, 0))",
        "99999999999999999999999999999999999999",
    ),
    ("12345678901234567890.00100", "12345678901234567890.00100"),
    (
        "CAST('-0.00000000000000000000000000000000000001' AS numeric(38, 38))",
        "-0.00000000000000000000000000000000000001",
    ),
    (
        "CAST('-922337203685477.5808' AS money)",
        "-922337203685477.5808",
    ),
    ("CAST('214748.3647' AS smallmoney)", "214748.3647"),
    ("1e-1", "0.1"),
    ("CAST(0.1 AS real)", "0.1"),
    ("CAST(1 AS bit)", "true"),
    ("N''", "\"\""),
    (
        "N'grüße \"quoted\" \\ it''s 日本 😀'",
        "\"grüße \\\"quoted\\\" \\\\ it's 日本 😀\"",
    ),
    ("CAST('grüße €' AS varchar(20))", "\"grüße €\""),
    ("CAST(N'ab' AS nchar(4))", "\"ab  \""),
    ("CAST('ab' AS char(4))", "\"ab  \""),
    ("0xDEADBEEF", "\"3q2+7w==\""),
    ("CAST('0001-01-01' AS date)", "\"0001-01-01\""),
    ("CAST('9999-12-31' AS date)", "\"9999-12-31\""),
    ("CAST('23:59:59.999999' AS time(6))", "\"23:59:59.999999\""),
    (
        "CAST('12:00:00.0000001' AS time(7))",
        "\"12:00:00.0000001\"",
    ),
    (
        "CAST('1753-01-01T00:00:00.003' AS datetime)",
        "\"1753-01-01T00:00:00.003000\"",
    ),
    (
        "CAST('2079-06-06T23:59:00' AS smalldatetime)",
        "\"2079-06-06T23:59:00.000000\"",
    ),
    (
        "CAST('2026-11-20T08:00:00.000001' AS datetime2(6))",
        "\"2026-11-20T08:00:00.000001\"",
    ),
    (
        "CAST('2026-11-20T08:00:00.0000001' AS datetime2(7))",
        "\"2026-11-20T08:00:00.0000001\"",
    ),
    (
        "CAST('2026-11-20T09:00:00.000001+01:00' AS datetimeoffset(6))",
        "\"2026-11-20T08:00:00.000001Z\"",
    ),
    (
        "CAST('2026-11-20T09:00:00.0000001+01:00' AS datetimeoffset(7))",
        "\"2026-11-20T09:00:00.0000001+01:00\"",
    ),
    (
        "CAST('a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11' AS uniqueidentifier)",
        "\"A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11\"",
    ),
    ("CAST(N'<a>ä</a>' AS xml)", "\"<a>ä</a>\""),
    ("CAST(7 AS sql_variant)", "\"7\""),
];
pub const NULLS: &[&str] = &[
    "NULL",
    "CAST(NULL AS bit)",
    "CAST(NULL AS tinyint)",
    "CAST(NULL AS bigint)",
    "CAST(NULL AS real)",
    "CAST(NULL AS float)",
    "CAST(NULL AS decimal(38, 10))",
    "CAST(NULL AS money)",
    "CAST(NULL AS varchar(10))",
    "CAST(NULL AS nvarchar(max))",
    "CAST(NULL AS ntext)",
    "CAST(NULL AS varbinary(10))",
    "CAST(NULL AS varbinary(max))",
    "CAST(NULL AS date)",
    "CAST(NULL AS time(6))",
    "CAST(NULL AS datetime)",
    "CAST(NULL AS datetime2(7))",
    "CAST(NULL AS datetimeoffset(6))",
    "CAST(NULL AS uniqueidentifier)",
    "CAST(NULL AS xml)",
    "CAST(NULL AS sql_variant)",
];
pub const ECHOES: &[(&str, EchoedValue, &str)] = &[
    ("@P1", EchoedValue::Int64(i64::MIN), "-9223372036854775808"),
    ("@P1", EchoedValue::Float64(-0.5), "-0.5"),
    (
        "@P1",
        EchoedValue::Decimal("12345678901234567890.00100"),
        "12345678901234567890.00100",
    ),
    (
        "@P1",
        EchoedValue::Text("a'b\"c\\d 日本\t\n"),
        "\"a'b\\\"c\\\\d 日本\\t\\n\"",
    ),
    ("@P1", EchoedValue::Boolean(true), "true"),
    ("@P1", EchoedValue::Date(19_782), "\"2024-02-29\""),
    (
        "@P1",
        EchoedValue::Time(86_399_999_999),
        "\"23:59:59.999999\"",
    ),
    (
        "CAST(@P1 AS datetimeoffset(6))",
        EchoedValue::Timestamp(1),
        "\"1970-01-01T00:00:00.000001Z\"",
    ),
    (
        "CAST(@P1 AS datetime2(6))",
        EchoedValue::LocalTimestamp(-1),
        "\"1969-12-31T23:59:59.999999\"",
    ),
    ("@P1", EchoedValue::Null, "null"),
];
/// Rows of a function that SQL Server has since 2022.
pub const MANY: &str = "SELECT CAST(value AS bigint) AS n, N'xxxxxxxxxxxxxxxxxxxx' AS t, CASE WHEN value % 3 = 0 THEN NULL ELSE value END AS o FROM GENERATE_SERIES(1, 30000) AS s ORDER BY 1";
