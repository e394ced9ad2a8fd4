//! What a session on files promises: which files are which tables, of what types, through the contract's own types.

mod common;

use common::{
    LIMITS, ORDERS, ask, batch, directory, file, numbers, open, parquet, ping, request, schema, tar,
};
use souk_sdk::{ColumnType, ErrorClass, Request, SchemaFilter};
use std::time::{Duration, Instant};

#[test]
fn csv_keeps_its_values() {
    let (_directory, mut session) = file("orders.csv", ORDERS.as_bytes());
    let answer = ask(&mut session, "SELECT * FROM orders ORDER BY id").unwrap();
    use ColumnType::{Boolean, Date, Decimal, Int64, Text, Timestamp};
    assert_eq!(
        answer.kinds(),
        [Int64, Text, Decimal, Date, Timestamp, Boolean, Text]
    );
    assert_eq!(
        answer.lines(),
        [
            "1|007|10.50|20454|1767268800000000|true|plain",
            "2|1e5|2.25|20455|1767268800000000|false|with, and \"quotes\"\n and a line",
            "3|~|~|~|~|~|~",
        ]
    );
    let sum = ask(
        &mut session,
        "SELECT sum(price), count(*), count(sku) FROM orders",
    )
    .unwrap();
    assert_eq!(sum.lines(), ["12.75|3|2"]);
}

/// However its last row ends, and whatever that says.
#[test]
fn csv_is_read_to_its_end() {
    for (text, rows) in [
        ("a\nthe end\nx\nthe end", &["the end", "x", "the end"][..]),
        ("a,b\n1,\"x\ny\"", &["1|x\ny"]),
        (
            "a,b\r\n1,5\" pipe\r\n2,\"\"\"\"\r\n",
            &["1|5\" pipe", "2|\""],
        ),
        ("a\r1\r2\r\r", &["1", "2"]),
        ("a,b\n\"1\",\"\"", &["1|~"]),
        ("a", &[]),
    ] {
        let (_directory, mut session) = file("t.csv", text.as_bytes());
        let answer = ask(&mut session, "SELECT * FROM t").unwrap();
        assert_eq!(answer.lines(), rows, "{text:?}");
    }
}

#[test]
fn csv_of_other_kinds_is_read() {
    for (name, text) in [
        ("t.csv", "\u{feff}a;b\r\n1;x,y\r\n"),
        ("t.tsv", "a\tb\n1\tx,y\n"),
        ("t.csv", "a|b\n1|x,y"),
        ("t.csv", "a,b\n1,\"x,y\"\n\n"),
    ] {
        let (_directory, mut session) = file(name, text.as_bytes());
        let answer = ask(&mut session, "SELECT a, b FROM t").unwrap();
        assert_eq!(answer.lines(), ["1|x,y"], "{text:?}");
    }
    let (_directory, mut session) = file("t.csv", b",Order No\n1,2\n");
    let answer = ask(&mut session, "SELECT column_1 + \"Order No\" FROM t").unwrap();
    assert_eq!(answer.lines(), ["3"]);
    let (_directory, mut session) = file("t.csv", b"a,b\n");
    assert_eq!(ask(&mut session, "SELECT * FROM t").unwrap().rows.len(), 0);
}

#[test]
fn packed_texts_are_unpacked_on_the_way() {
    use std::io::Write;
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    packed.write_all(ORDERS.as_bytes()).unwrap();
    let (_directory, mut session) = file("orders.csv.gz", &packed.finish().unwrap());
    let answer = ask(&mut session, "SELECT count(*) FROM orders").unwrap();
    assert_eq!(answer.lines(), ["3"]);
}

#[test]
fn extremes_of_times_and_numbers_are_exact() {
    let text = "d,t,n,w\n\
        0001-01-01,0001-01-01 00:00:00,-9223372036854775808,99999999999999999999999999999999999999\n\
        9999-12-31,9999-12-31 23:59:59.999999,9223372036854775807,-1\n";
    let (_directory, mut session) = file("t.csv", text.as_bytes());
    let answer = ask(&mut session, "SELECT * FROM t ORDER BY d").unwrap();
    assert_eq!(
        answer.lines(),
        [
            "-719162|-62135596800000000|-9223372036854775808|99999999999999999999999999999999999999",
            "2932896|253402300799999999|9223372036854775807|-1",
        ]
    );
}

#[test]
fn json_lines_keep_their_values() {
    let text = r#"{"id":1,"name":"Ada","price":10.50,"big":18446744073709551615,"tags":["a",{"b":1.50}],"at":"2026-01-01T00:00:00Z","zip":"007","f":1e-05}

{"id":2,"price":2.125,"tags":{"x":null},"name":"q\"uote\u00e9","extra":true,"f":2.5}
{"id":3,"name":null}"#;
    let (_directory, mut session) = file("t.jsonl", text.as_bytes());
    let answer = ask(
        &mut session,
        "SELECT id, name, price, big, tags, at, zip, f, extra FROM t ORDER BY id",
    )
    .unwrap();
    use ColumnType::{Boolean, Decimal, Float64, Int64, Json, Text, Timestamp};
    assert_eq!(
        answer.kinds(),
        [
            Int64, Text, Decimal, Decimal, Json, Timestamp, Text, Float64, Boolean
        ]
    );
    assert_eq!(
        answer.lines(),
        [
            "1|Ada|10.500|18446744073709551615|[\"a\",{\"b\":1.50}]|1767225600000000|007|0.00001|~",
            "2|q\"uoteé|2.125|~|{\"x\":null}|~|~|2.5|true",
            "3|~|~|~|~|~|~|~|~",
        ]
    );
    // Objects only, without a column: how many there are.
    assert_eq!(
        ask(&mut session, "SELECT count(*) FROM t").unwrap().lines(),
        ["3"]
    );
}

/// Each name in any line of any file is a column, whatever comes first: NULL, a whole number, or nothing.
#[test]
fn json_lines_of_several_files_are_one_table() {
    let archive = tar(&[
        ("t.jsonl/a.jsonl", b"{\"a\":1,\"b\":null,\"m\":1}\n"),
        (
            "t.jsonl/b.jsonl",
            b"{\"b\":\"x\",\"a\":2.5,\"m\":\"y\"}\n{\"c\":[1],\"m\":{\"d\":true}}\n",
        ),
    ]);
    let (_directory, mut session) = file("shop.tar", &archive);
    let answer = ask(&mut session, "SELECT a, b, c, m FROM t").unwrap();
    use ColumnType::{Decimal, Json, Text};
    assert_eq!(answer.kinds(), [Decimal, Text, Json, Text]);
    assert_eq!(
        answer.lines(),
        ["1.0|~|~|1", "2.5|x|~|y", "~|~|[1]|{\"d\":true}"]
    );
}

/// Numbers that no float of 64 bits is stay what they are.
#[test]
fn json_numbers_out_of_range_are_kept() {
    for (number, kind) in [
        ("1e400", ColumnType::Text),
        ("-1e400", ColumnType::Text),
        ("1e-400", ColumnType::Text),
        ("4.94065e-324", ColumnType::Text),
        ("2.5e-308", ColumnType::Float64),
        ("1e308", ColumnType::Float64),
        ("0e5", ColumnType::Float64),
    ] {
        let text = format!("{{\"n\":{number}}}\n{{\"n\":1.5}}\n");
        let (_directory, mut session) = file("t.jsonl", text.as_bytes());
        let answer = ask(&mut session, "SELECT n FROM t").unwrap();
        assert_eq!(answer.kinds(), [kind], "{number}");
        let read = answer.rows[0][0].clone().unwrap();
        match kind {
            ColumnType::Text => assert_eq!(read, number),
            _ => assert_eq!(read.parse::<f64>(), number.parse::<f64>()),
        }
    }
}

#[test]
fn an_archive_is_several_tables() {
    let archive = tar(&[
        ("shop/orders.csv", b"id,customer\n1,1\n2,1\n3,2\n"),
        (
            "shop/customers.jsonl",
            b"{\"id\":1,\"name\":\"Ada\"}\n{\"id\":2,\"name\":\"Bob\"}\n",
        ),
        ("shop/README.md", b"hello"),
        ("shop/._orders.csv", b"\0\0"),
        ("shop/events.csv/part-0.csv", b"n\n1\n2\n"),
        ("shop/events.csv/part-1.csv", b"n\n30\n"),
        ("shop/events.csv/_SUCCESS", b""),
    ]);
    let (_directory, mut session) = file("shop.tar", &archive);
    let answer = ask(
        &mut session,
        "SELECT c.name, count(*) FROM orders o JOIN customers c ON c.id = o.customer GROUP BY c.name ORDER BY 1",
    );
    assert_eq!(answer.unwrap().lines(), ["Ada|2", "Bob|1"]);
    let answer = ask(&mut session, "SELECT sum(n) FROM public.events").unwrap();
    assert_eq!(answer.lines(), ["33"]);
    let tables: Vec<String> = schema(&mut session)
        .unwrap()
        .rows
        .iter()
        .map(|row| row[1].clone().unwrap())
        .collect();
    assert_eq!(
        tables,
        ["customers", "customers", "events", "orders", "orders"]
    );
}

/// An archive of 1,000 tables is opened and listed within a second, though each of its files is read for that; one of more is refused.
#[test]
fn a_thousand_tables_are_listed() {
    let names: Vec<String> = (0..1_001).map(|n| format!("t{n}.csv")).collect();
    let text = b"id,name,price,note,at\n1,a,1.50,,2026-01-01T00:00:00Z\n";
    let files: Vec<(&str, &[u8])> = names
        .iter()
        .map(|name| (name.as_str(), text.as_slice()))
        .collect();
    let directory = directory(&[
        ("shop.tar", &tar(&files[..1_000])),
        ("more.tar", &tar(&files)),
    ]);
    let whole = || {
        let begun = Instant::now();
        let mut session = open(directory.path(), "shop.tar").unwrap();
        (schema(&mut session).unwrap(), begun.elapsed())
    };
    let (first, took) = whole();
    assert_eq!(first.rows.len(), 5_000);
    for (row, name) in first.rows.iter().zip(["id", "name", "price", "note", "at"]) {
        assert_eq!(row[1].as_deref(), Some("t0"));
        assert_eq!(row[4].as_deref(), Some(name));
    }
    // Other tests take this machine's time as well: one of some is that quick.
    let mut times = vec![took];
    while times.iter().all(|took| *took > Duration::from_secs(1)) {
        assert!(times.len() < 20, "{times:?}");
        times.push(whole().1);
    }
    let error = open(directory.path(), "more.tar").err().unwrap();
    assert_eq!(
        (error.class, error.code.as_str()),
        (ErrorClass::Configuration, "too_many_files")
    );
}

/// `tar -r` puts a file's new version behind the old one.
#[test]
fn of_a_file_that_an_archive_has_twice_the_last_counts() {
    let archive = tar(&[
        ("orders.csv", b"n\n1\n"),
        ("other.csv", b"n\n5\n"),
        ("./orders.csv", b"n\n2\n3\n"),
    ]);
    let (_directory, mut session) = file("shop.tar", &archive);
    let answer = ask(&mut session, "SELECT n FROM orders ORDER BY n").unwrap();
    assert_eq!(answer.lines(), ["2", "3"]);
}

#[test]
fn what_programs_leave_in_folders_is_no_data() {
    let archive = tar(&[
        (".ipynb_checkpoints/orders-checkpoint.csv", b"n\n7\n"),
        ("orders.csv/_temporary/0/task/part-0.csv", b"n\n1\n"),
        ("orders.csv/_delta_log/00000.json", b"{\"add\":1}\n"),
        ("orders.csv/.part-0.csv.crc", b"\0"),
        ("orders.csv/README.md", b"hello"),
        ("orders.csv/part-0.csv", b"n\n1\n"),
    ]);
    let (_directory, mut session) = file("shop.tar", &archive);
    let answer = ask(&mut session, "SELECT n FROM orders").unwrap();
    assert_eq!(answer.lines(), ["1"]);
    assert_eq!(schema(&mut session).unwrap().rows.len(), 1);
}

#[test]
fn folders_that_are_no_table_of_one_kind_are_told() {
    for (files, code, detail) in [
        (
            [
                ("t.csv/part-0.csv", &b"n\n1\n"[..]),
                ("t.csv/part-1.json", b"{\"n\":1}\n"),
            ],
            "formats_differ",
            "t.csv/part-1.json",
        ),
        (
            [
                ("t.csv/year=2024/part-0.csv", b"n\n1\n"),
                ("t.csv/year=2025/part-0.csv", b"n\n1\n"),
            ],
            "folder_is_a_column",
            "t.csv/year=2024/part-0.csv",
        ),
    ] {
        let directory = directory(&[("shop.tar", &tar(&files))]);
        let error = open(directory.path(), "shop.tar").err().unwrap();
        assert_eq!(
            (error.class, error.code.as_str()),
            (ErrorClass::Configuration, code)
        );
        assert_eq!(error.detail.unwrap(), detail);
    }
}

#[test]
fn names_that_collide_are_told() {
    let archive = tar(&[("a/orders.csv", b"x\n1\n"), ("b/orders.jsonl", b"{}\n")]);
    let directory = directory(&[("shop.tar", &archive)]);
    let error = open(directory.path(), "shop.tar").err().unwrap();
    assert_eq!(
        (error.class, error.code.as_str()),
        (ErrorClass::Configuration, "table_twice")
    );
    assert_eq!(error.detail.unwrap(), "a/orders.csv and b/orders.jsonl");
}

#[test]
fn what_is_wrong_with_a_file_is_told() {
    let long = format!("a\n\"{}", "x".repeat(9 << 20));
    let long_name = format!("{{\"{}\":1}}\n", "n".repeat(1_025));
    let wide = (0..100_000)
        .map(|n| n.to_string())
        .collect::<Vec<_>>()
        .join(",");
    for (name, bytes, code, words) in [
        (
            "t.csv",
            &b"a,b\n1,2\n3\n"[..],
            "row_length",
            "line 3 has 1 fields",
        ),
        ("t.csv", b"a,a\n1,2\n", "column_twice", "\"a\""),
        ("t.csv", b"a\n1\n\xff\n", "not_utf8", "line 3"),
        ("t.csv", b"\xff\xfea\0", "not_utf8", "line 1"),
        ("t.csv", long.as_bytes(), "record_too_long", "8 MiB"),
        (
            "t.csv",
            b"a,b\n1,\"x\n2,y\n3,z\n",
            "quote_not_closed",
            "line 2",
        ),
        ("t.csv", b"a,\"b\n1,2\n", "quote_not_closed", "line 1"),
        ("t.csv", wide.as_bytes(), "too_many_columns", "10000"),
        (
            "t.csv.gz",
            b"a,b\n1,2\n3,4\n5,6\n",
            "file_broken",
            "damaged",
        ),
        ("t.csv.gz", b"a,b", "file_truncated", "ends before"),
        ("t.jsonl", b"{\"a\":1}\n[1]\n", "no_json_object", "line 2"),
        (
            "t.jsonl",
            b"{\"a\":1}\n\n\n[1]\n",
            "no_json_object",
            "line 4",
        ),
        ("t.jsonl", b"{\"a\":1,\"a\":2}\n", "name_twice", "line 1"),
        (
            "t.jsonl",
            b"{\"a\":1} {\"a\":2}\n",
            "no_json_object",
            "line 1",
        ),
        ("t.jsonl", b"{\"a\":1\n", "no_json_object", "line 1"),
        ("t.jsonl", long_name.as_bytes(), "name_too_long", "1024"),
        ("t.jsonl", b"\n", "no_columns", "no columns"),
        ("t.parquet", b"PAR1", "file_truncated", "ends before"),
        (
            "t.parquet",
            b"this is no Parquet file at all",
            "file_broken",
            "damaged",
        ),
        (
            "t.parquet",
            b"PAR1xxxx\xff\xff\xff\x7fPAR1",
            "file_broken",
            "damaged",
        ),
        (
            "t.arrow",
            b"this is no Arrow file at all",
            "file_broken",
            "damaged",
        ),
        ("t.arrow", b"", "file_truncated", "ends before"),
    ] {
        let (_directory, mut session) = file(name, bytes);
        let error = ping(&mut session).err().unwrap();
        assert_eq!(
            (error.class, error.code.as_str()),
            (ErrorClass::Source, code),
            "{name}: {error:?}"
        );
        assert!(error.message.contains(words), "{name}: {error:?}");
        let asked = ask(&mut session, "SELECT * FROM t").err().unwrap();
        assert_eq!(asked.code, code, "{name}: {asked:?}");
        let listed = schema(&mut session).err().unwrap();
        assert_eq!(listed, asked, "{name}");
        let detail = asked.detail.unwrap_or_default();
        assert!(detail.starts_with(name), "{name}: {detail}");
    }
    for (name, bytes, code) in [
        ("t.tar", &b"no archive"[..], "archive_broken"),
        ("t.xlsx", b"PK", "unknown_format"),
        ("notes", b"x", "unknown_format"),
    ] {
        let directory = directory(&[(name, bytes)]);
        assert_eq!(
            open(directory.path(), name).err().unwrap().code,
            code,
            "{name}"
        );
    }
    let directory = directory(&[]);
    assert_eq!(
        open(directory.path(), "t.csv").err().unwrap().code,
        "database_not_found"
    );
}

/// Which file and which line it is: the owner of the connection is told, by whatever reads the table. Other tables of an archive have their columns still.
#[test]
fn what_is_wrong_with_a_table_names_its_file() {
    let numbers = parquet(&batch(vec![("n", numbers(3))]));
    let archive = tar(&[
        ("good.csv", b"n\n1\n"),
        ("bad.jsonl/a.jsonl", b"{\"a\":1}\n"),
        ("bad.jsonl/b.jsonl", b"{\"a\":1}\n\n[1]\n"),
        ("worse.csv", b"a,b\n1\n"),
        ("counts.parquet/a.parquet", numbers.as_slice()),
        ("counts.parquet/b.parquet", &numbers[..numbers.len() - 1]),
        ("batches.arrow", b"this is no Arrow file at all"),
        ("twice.csv", b"a,a\n1,2\n"),
    ]);
    let (_directory, mut session) = file("shop.tar", &archive);
    let answer = schema(&mut session).unwrap();
    assert_eq!(
        answer.lines(),
        [
            "public|bad|table|~|~|~|~|~",
            "public|batches|table|~|~|~|~|~",
            "public|counts|table|~|~|~|~|~",
            "public|good|table|1|n|Int64|false|false",
            "public|twice|table|~|~|~|~|~",
            "public|worse|table|~|~|~|~|~",
        ]
    );
    for (table, code, line, name) in [
        ("bad", "no_json_object", "line 3", "bad.jsonl/b.jsonl"),
        ("worse", "row_length", "line 2", "worse.csv"),
        (
            "counts",
            "file_broken",
            "damaged",
            "counts.parquet/b.parquet",
        ),
        ("batches", "file_broken", "damaged", "batches.arrow"),
        ("twice", "column_twice", "\"a\"", "twice.csv"),
    ] {
        let asked = ask(&mut session, &format!("SELECT * FROM {table}"));
        let asked = asked.err().unwrap();
        assert_eq!(
            (asked.class, asked.code.as_str()),
            (ErrorClass::Source, code)
        );
        assert!(asked.message.contains(line), "{asked:?}");
        let detail = asked.detail.as_deref().unwrap();
        assert!(detail.starts_with(name), "{asked:?}");
        let named = Request::Schema(SchemaFilter {
            schemas: Vec::new(),
            tables: vec![table.to_owned()],
            include_fields: true,
            limits: LIMITS,
        });
        let listed = request(&mut session, named).err().unwrap();
        assert_eq!(listed, asked);
    }
    let names = Request::Schema(SchemaFilter {
        schemas: Vec::new(),
        tables: Vec::new(),
        include_fields: false,
        limits: LIMITS,
    });
    let answer = request(&mut session, names).unwrap();
    assert_eq!(answer.rows.len(), 6);
}
