//! Values leave and arrive to the last digit, whatever the server is set to.

use crate::common::{self, wire};
use crate::{ITEMS, class_and_code};
use souk_sdk::time::DAY_US;
use souk_sdk::{ColumnType, ErrorClass, Request, SchemaFilter, Value};
use souk_tests::MySql;
use souk_tests::wire::LIMITS;

/// Every type, its value and its NULL, to the last digit, and no rows; however rows end.
#[test]
fn values_are_exact() {
    let server = MySql::shared();
    let cases = [
        (
            "tiny",
            "TINYINT",
            "-128",
            ColumnType::Int64,
            "-128",
            "tinyint",
        ),
        (
            "utiny",
            "TINYINT UNSIGNED",
            "255",
            ColumnType::Int64,
            "255",
            "tinyint unsigned",
        ),
        ("flag", "BOOLEAN", "2", ColumnType::Int64, "2", "tinyint"),
        (
            "small",
            "SMALLINT",
            "-32768",
            ColumnType::Int64,
            "-32768",
            "smallint",
        ),
        (
            "usmall",
            "SMALLINT UNSIGNED",
            "65535",
            ColumnType::Int64,
            "65535",
            "smallint unsigned",
        ),
        (
            "medium",
            "MEDIUMINT",
            "-8388608",
            ColumnType::Int64,
            "-8388608",
            "mediumint",
        ),
        (
            "umedium",
            "MEDIUMINT UNSIGNED",
            "16777215",
            ColumnType::Int64,
            "16777215",
            "mediumint unsigned",
        ),
        (
            "i",
            "INT",
            "-2147483648",
            ColumnType::Int64,
            "-2147483648",
            "int",
        ),
        (
            "zero",
            "INT(8) ZEROFILL",
            "42",
            ColumnType::Int64,
            "42",
            "int unsigned",
        ),
        (
            "u",
            "INT UNSIGNED",
            "4294967295",
            ColumnType::Int64,
            "4294967295",
            "int unsigned",
        ),
        (
            "big",
            "BIGINT",
            "-9223372036854775808",
            ColumnType::Int64,
            "-9223372036854775808",
            "bigint",
        ),
        (
            "ubig",
            "BIGINT UNSIGNED",
            "18446744073709551615",
            ColumnType::Decimal,
            "18446744073709551615",
            "bigint unsigned",
        ),
        (
            "exact",
            "DECIMAL(30,5)",
            "-1234567890123456789012345.00100",
            ColumnType::Decimal,
            "-1234567890123456789012345.00100",
            "decimal(30,5)",
        ),
        (
            "small_exact",
            "DECIMAL(5,5)",
            "0.00100",
            ColumnType::Decimal,
            "0.00100",
            "decimal(5,5)",
        ),
        (
            "filled",
            "DECIMAL(8,2) ZEROFILL",
            "12.5",
            ColumnType::Decimal,
            "12.50",
            "decimal(8,2)",
        ),
        ("f", "FLOAT", "0.1", ColumnType::Float64, "0.1", "float"),
        ("d", "DOUBLE", "0.1", ColumnType::Float64, "0.1", "double"),
        (
            "bit1",
            "BIT(1)",
            "b'1'",
            ColumnType::Boolean,
            "true",
            "bit(1)",
        ),
        (
            "bit9",
            "BIT(9)",
            "b'100000001'",
            ColumnType::Int64,
            "257",
            "bit(9)",
        ),
        (
            "bit64",
            "BIT(64)",
            "18446744073709551615",
            ColumnType::Decimal,
            "18446744073709551615",
            "bit(64)",
        ),
        (
            "day",
            "DATE",
            "'2024-02-29'",
            ColumnType::Date,
            "19782",
            "date",
        ),
        (
            "at",
            "DATETIME(6)",
            "'2026-11-20 08:00:00.000001'",
            ColumnType::LocalTimestamp,
            "1795161600000001",
            "datetime(6)",
        ),
        (
            "at0",
            "DATETIME",
            "'1969-12-31 23:59:59'",
            ColumnType::LocalTimestamp,
            "-1000000",
            "datetime",
        ),
        (
            "stamp",
            "TIMESTAMP(3) NULL",
            "'2026-11-20 08:00:00.125'",
            ColumnType::Timestamp,
            "1795161600125000",
            "timestamp(3)",
        ),
        (
            "span",
            "TIME(2)",
            "'-838:59:59.00'",
            ColumnType::Text,
            "-838:59:59.00",
            "time(2)",
        ),
        (
            "clock",
            "TIME",
            "'23:59:59'",
            ColumnType::Text,
            "23:59:59",
            "time",
        ),
        ("y", "YEAR", "2155", ColumnType::Int64, "2155", "year"),
        ("c", "CHAR(4)", "'ab'", ColumnType::Text, "ab", "char(4)"),
        (
            "v",
            "VARCHAR(20)",
            "'grüße 日本 😀'",
            ColumnType::Text,
            "grüße 日本 😀",
            "varchar(20)",
        ),
        (
            "latin",
            "VARCHAR(20) CHARACTER SET latin1",
            "'grüße'",
            ColumnType::Text,
            "grüße",
            "varchar(20)",
        ),
        ("t", "TEXT", "''", ColumnType::Text, "", "text"),
        (
            "long_t",
            "LONGTEXT",
            "'x'",
            ColumnType::Text,
            "x",
            "longtext",
        ),
        (
            "j",
            "JSON",
            "'{\"b\": [1, null]}'",
            ColumnType::Text,
            "{\"b\": [1, null]}",
            "longtext",
        ),
        (
            "vb",
            "VARBINARY(4)",
            "x'616263'",
            ColumnType::Bytes,
            "abc",
            "varbinary(4)",
        ),
        ("b", "BLOB", "x'00'", ColumnType::Bytes, "\0", "blob"),
        (
            "e",
            "ENUM('a','bé')",
            "'bé'",
            ColumnType::Text,
            "bé",
            "enum",
        ),
        ("s", "SET('x','y')", "'x,y'", ColumnType::Text, "x,y", "set"),
        (
            "place",
            "POINT",
            "POINT(2, 32)",
            ColumnType::Bytes,
            // SRID, order of bytes, kind, and both coordinates.
            "\0\0\0\0\x01\x01\0\0\0\0\0\0\0\0\0\0@\0\0\0\0\0\0@@",
            "geometry",
        ),
        (
            "uuid",
            "UUID",
            "'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'",
            ColumnType::Text,
            "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11",
            "char(36)",
        ),
        (
            "inet",
            "INET6",
            "'::1'",
            ColumnType::Text,
            "::1",
            "char(39)",
        ),
    ];
    // MySQL has a type for documents, and none for the last two.
    let document = (
        "j",
        "JSON",
        "'{\"b\": [1, null], \"a\": 1.5}'",
        ColumnType::Json,
        "{\"a\": 1.5, \"b\": [1, null]}",
        "json",
    );
    let others = ["j", "uuid", "inet"];
    let cases: Vec<_> = match server.is_mysql() {
        true => cases
            .into_iter()
            .filter(|(name, ..)| !others.contains(name))
            .chain([document])
            .collect(),
        false => cases.to_vec(),
    };
    let columns: Vec<_> = cases
        .iter()
        .map(|case| format!("{} {}", case.0, case.1))
        .collect();
    let values: Vec<_> = cases.iter().map(|case| case.2).collect();
    let database = server.database(&format!(
        "SET time_zone = '+00:00'; CREATE TABLE v (row_id INT, {}); INSERT INTO v VALUES (1, {}); INSERT INTO v (row_id) VALUES (2)",
        columns.join(", "),
        values.join(", "),
    ));
    for mut wire in common::both_ways(server, &database) {
        for piece in [usize::MAX, 1, 7] {
            wire.piece = piece;
            let answer = wire.query("SELECT * FROM v ORDER BY row_id", vec![]).ok();
            assert_eq!(answer.rows, 2);
            for (name, _, _, kind, value, native) in &cases {
                let at = answer.column(name);
                let column = &answer.columns[at];
                assert_eq!(
                    (&column.kind, &column.native.as_str()),
                    (kind, native),
                    "{name}"
                );
                assert_eq!(answer.cell(at, 0), *value, "{name}");
                assert_eq!(answer.cell(at, 1), "NULL", "{name}");
            }
        }
        let empty = wire
            .query("SELECT * FROM v WHERE row_id = ?", vec![Value::Int64(9)])
            .ok();
        assert_eq!((empty.rows, empty.columns.len()), (0, cases.len() + 1));
        assert_eq!(wire.scalar("SELECT NULL"), "NULL");
    }
}

/// A moment is the same, and a clock shows UTC, whatever the server's zone is.
#[test]
fn the_servers_zone_does_not_count() {
    let server = MySql::shared();
    assert_eq!(server.admin("SELECT @@time_zone"), "+05:30");
    let database = server.database(
        "CREATE TABLE sightings (seen_at TIMESTAMP(3) NULL); INSERT INTO sightings VALUES ('2026-11-20 13:30:00.125')",
    );
    let mut wire = wire(server, &database);
    let sql = "SELECT seen_at, CAST(seen_at AS CHAR) AS told, TIMESTAMPDIFF(MICROSECOND, UTC_TIMESTAMP(6), NOW(6)) AS apart \
        FROM sightings WHERE seen_at = ?";
    let values = vec![Value::Timestamp(1_795_161_600_125_000)];
    let answer = wire.query(sql, values).ok();
    let cells: Vec<String> = (0..3).map(|column| answer.cell(column, 0)).collect();
    assert_eq!(cells, ["1795161600125000", "2026-11-20 08:00:00.125", "0"]);
}

/// Days that no calendar has are NULL.
#[test]
fn zero_dates_are_null() {
    let server = MySql::shared();
    let database = server.database(
        "SET sql_mode = 'ALLOW_INVALID_DATES';
         CREATE TABLE z (d DATE NOT NULL, t DATETIME NOT NULL, s TIMESTAMP NOT NULL);
         INSERT INTO z VALUES ('0000-00-00', '0000-00-00 00:00:00', '0000-00-00 00:00:00'), ('2023-02-31', '2024-00-00 10:00:00', '2024-01-01')",
    );
    let mut wire = wire(server, &database);
    let answer = wire
        .query("SELECT d, t, s IS NULL OR s = 0 FROM z ORDER BY d", vec![])
        .ok();
    for row in 0..2 {
        assert_eq!(
            (answer.cell(0, row), answer.cell(1, row)),
            ("NULL".into(), "NULL".into())
        );
    }
    // A day of the year 0 is one, and is found by itself.
    let first = wire.query("SELECT CAST('0000-01-01' AS DATE)", vec![]).ok();
    let days = "-719528";
    assert_eq!(first.cell(0, 0), days);
    let value = vec![Value::Date(days.parse().unwrap())];
    let told = wire.query("SELECT CAST(? AS CHAR)", value).ok();
    assert_eq!(told.cell(0, 0), "0000-01-01");
    let zero = wire.query("SELECT s FROM z ORDER BY d", vec![]).ok();
    assert_eq!(zero.cell(0, 0), "NULL");
    // So the catalog does not vouch for them.
    let schema = wire.submit(Request::Schema(SchemaFilter {
        schemas: vec![database],
        tables: vec![],
        include_fields: true,
        limits: LIMITS,
    }));
    let schema = wire.wait(schema).unwrap().ok();
    assert_eq!((schema.rows, schema.cell(6, 0)), (3, "true".into()));
}

/// Bits of which a statement makes others come as digits, and are the numbers that they were.
#[test]
fn computed_bits_are_what_they_were() {
    let server = MySql::shared();
    let database = server.database(
        "CREATE TABLE kept (n INT, one BIT(1), nine BIT(9), long_one BIT(64)); INSERT INTO kept VALUES (1, b'0', 500, 18446744073709551615), (2, b'1', 7, 1234);
         CREATE VIEW seen AS SELECT n, COALESCE(one, one) AS one, nine FROM kept",
    );
    let mut wire = wire(server, &database);
    for (what, told) in [
        ("one", ["false", "true"]),
        (
            "(SELECT one FROM seen WHERE seen.n = kept.n)",
            ["false", "true"],
        ),
        ("COALESCE(one, one)", ["false", "true"]),
        ("IF(n > 0, one, one)", ["false", "true"]),
        ("IFNULL(one, one)", ["false", "true"]),
        ("COALESCE(nine, nine)", ["500", ""]),
        ("CAST(COALESCE(nine, nine) AS UNSIGNED)", ["500", "7"]),
        ("COALESCE(long_one, one)", ["18446744073709551615", ""]),
    ] {
        for (n, told) in [1, 2].into_iter().zip(told) {
            let answer = wire.query(&format!("SELECT {what} FROM kept WHERE n = {n}"), vec![]);
            match told {
                "" => assert_eq!(answer.error().code, "unclear_bits", "{what} {n}"),
                told => assert_eq!(answer.ok().cell(0, 0), told, "{what} {n}"),
            }
        }
    }
    let seen = wire.query("SELECT one, nine FROM seen ORDER BY n", vec![]);
    let seen = seen.ok();
    let cells = [(0, 0), (1, 0), (0, 1), (1, 1)].map(|(column, row)| seen.cell(column, row));
    assert_eq!(cells, ["false", "500", "true", "7"]);
    let error = wire.query("SELECT * FROM nowhere_at_all.t", vec![]).error();
    assert_eq!(error.class, ErrorClass::NotFound, "{error:?}");
}

/// Every kind of parameter comes back, and is compared as what it is.
#[test]
fn parameters_are_bound() {
    let server = MySql::shared();
    let database = server.database(&format!(
        "{ITEMS} CREATE TABLE kinds (big BIGINT UNSIGNED, at DATETIME(6), day DATE, bits BIT(1), raw VARBINARY(4));
         INSERT INTO kinds VALUES (18446744073709551615, '1969-12-31 23:59:59.999999', '2024-02-29', b'1', x'00ff')"
    ));
    let mut wire = wire(server, &database);
    for (value, wanted) in [
        (Value::Int64(i64::MIN), i64::MIN.to_string()),
        (Value::Float64(-0.5), "-0.5".into()),
        (Value::Int64(i64::MAX), i64::MAX.to_string()),
        (
            Value::Decimal("12345678901234567890.00100".into()),
            "12345678901234567890.00100".into(),
        ),
        (
            Value::Text("a'b\"c\\d 日本😀".into()),
            "a'b\"c\\d 日本😀".into(),
        ),
        (Value::Bytes(b"abc".to_vec()), "abc".into()),
        (Value::Boolean(true), "1".into()),
        (Value::Date(19_782), "19782".into()),
        (Value::Timestamp(-1), "-1".into()),
        (Value::LocalTimestamp(-1), "-1".into()),
        (Value::Time(86_399_999_999), "23:59:59.999999".into()),
        (Value::Time(86_400_000_001), "24:00:00.000001".into()),
        (Value::Null(None), "NULL".into()),
        (Value::Text("x".repeat(70_000)), "x".repeat(70_000)),
    ] {
        let told = format!("{value:?}").chars().take(80).collect::<String>();
        let answer = wire.query("SELECT ? AS v", vec![value]).ok();
        assert_eq!(answer.cell(0, 0), wanted, "{told}");
    }
    for (condition, value) in [
        ("big = ?", Value::Decimal(u64::MAX.to_string())),
        ("at = ?", Value::Timestamp(-1)),
        ("at = ?", Value::LocalTimestamp(-1)),
        ("at < ?", Value::Date(0)),
        ("day = ?", Value::Date(19_782)),
        ("day <= ?", Value::Timestamp(19_782 * DAY_US)),
        ("bits = ?", Value::Boolean(true)),
        ("raw = ?", Value::Bytes(vec![0, 0xff])),
    ] {
        let text = format!("SELECT COUNT(*) FROM kinds WHERE {condition}");
        assert_eq!(
            wire.query(&text, vec![value]).ok().cell(0, 0),
            "1",
            "{condition}"
        );
    }
    // What the host writes around a table.
    let page = format!(
        "SELECT `id`, `name`\nFROM `{database}`.`items` AS s\nWHERE s.`price` >= ? AND s.`id` IN (?, ?, ?) AND s.`name` LIKE ? ESCAPE '!'\nORDER BY s.`id` DESC\nLIMIT ? OFFSET ?"
    );
    let values = vec![
        Value::Decimal("2.50".into()),
        Value::Int64(9),
        Value::Int64(10),
        Value::Int64(11),
        Value::Text("item%".into()),
        Value::Int64(1),
        Value::Int64(1),
    ];
    let answer = wire.query(&page, values).ok();
    assert_eq!((answer.rows, answer.cell(0, 0)), (1, "10".into()));
    let error = wire.query("SELECT ? + ?", vec![Value::Int64(1)]).error();
    assert_eq!(
        class_and_code(&error),
        (ErrorClass::InvalidRequest, "parameter_count")
    );
}

/// Backticks quote names, and quotes and backslashes are of texts, whatever `sql_mode` the server is set to; what else it says stays.
#[test]
fn texts_end_where_the_host_reads_their_end() {
    let server = MySql::start(&["--sql-mode=ANSI_QUOTES,NO_BACKSLASH_ESCAPES"]);
    let database = server.database(
        r"CREATE TABLE odd (`full name` VARCHAR(20)); INSERT INTO odd VALUES ('back\slash')",
    );
    // Each of them includes ANSI_QUOTES. MySQL has forgotten all but the first two.
    let modes = ["ANSI_QUOTES", "ANSI"].into_iter();
    let gone = ["ORACLE", "MSSQL", "POSTGRESQL", "MAXDB", "DB2"];
    for mode in modes.chain(gone.into_iter().filter(|_| !server.is_mysql())) {
        server.admin(&format!(
            "SET GLOBAL sql_mode = '{mode},NO_BACKSLASH_ESCAPES,NO_ZERO_IN_DATE'"
        ));
        let set = server.admin("SELECT @@sql_mode");
        assert!(set.contains("ANSI_QUOTES"), "{mode}: {set}");
        let mut wire = common::wire(&server, &database);
        let sql = r#"SELECT `full name`, "it's", 'it\'s', "c:\\dir", ? FROM `odd` WHERE `full name` = 'back\\slash'"#;
        let bound = Value::Text(r#"a\b'c"d"#.into());
        let answer = wire.query(sql, vec![bound]).ok();
        let cells: Vec<String> = (0..5).map(|column| answer.cell(column, 0)).collect();
        assert_eq!(
            cells,
            [r"back\slash", "it's", "it's", r"c:\dir", r#"a\b'c"d"#],
            "{mode}"
        );
        let left = wire.scalar("SELECT @@SESSION.sql_mode");
        assert!(left.contains("NO_ZERO_IN_DATE"), "{mode}: {left}");
        for gone in [mode, "ANSI", "NO_BACKSLASH_ESCAPES"] {
            assert!(!left.contains(gone), "{mode}: {left}");
        }
    }
}
