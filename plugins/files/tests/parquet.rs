//! Parquet and Arrow files: types to the last digit, and no more read than is asked for.

mod common;

use common::{array, arrow, ask, batch, file, parquet, parquet_with, ping, schema, tar};
use datafusion::arrow::array::*;
use datafusion::arrow::datatypes::{
    DataType, Field, Int32Type, Int64Type, IntervalMonthDayNanoType, i256,
};
use datafusion::arrow::ipc::CompressionType;
use datafusion::arrow::ipc::writer::FileWriter;
use datafusion::parquet::basic::{Compression, ZstdLevel};
use datafusion::parquet::file::properties::WriterProperties;
use souk_sdk::ColumnType::{
    Boolean, Bytes, Date, Decimal, Float64, Int64, Json, LocalTimestamp, Text, Time, Timestamp,
};
use std::sync::Arc;

fn every_type() -> RecordBatch {
    let lists =
        ListArray::from_iter_primitive::<Int64Type, _, _>([Some(vec![Some(1), None]), None]);
    let structure = StructArray::from(vec![
        (
            Arc::new(Field::new("a", DataType::Utf8, true)),
            array(StringArray::from(vec![Some("x\"y"), None])),
        ),
        (
            Arc::new(Field::new("b", DataType::Decimal128(10, 2), true)),
            array(
                Decimal128Array::from(vec![150, 0])
                    .with_precision_and_scale(10, 2)
                    .unwrap(),
            ),
        ),
    ]);
    let mut map = MapBuilder::new(None, StringBuilder::new(), Int32Builder::new());
    map.keys().append_value("k");
    map.values().append_value(1);
    map.append(true).unwrap();
    map.append(false).unwrap();
    batch(vec![
        ("b", array(BooleanArray::from(vec![Some(true), None]))),
        ("i8", array(Int8Array::from(vec![Some(-128), None]))),
        ("i64", array(Int64Array::from(vec![Some(i64::MIN), None]))),
        ("u32", array(UInt32Array::from(vec![Some(u32::MAX), None]))),
        ("u64", array(UInt64Array::from(vec![Some(u64::MAX), None]))),
        ("f32", array(Float32Array::from(vec![Some(0.1), None]))),
        ("f64", array(Float64Array::from(vec![Some(0.1), None]))),
        (
            "d128",
            array(
                Decimal128Array::from(vec![Some(-12345), None])
                    .with_precision_and_scale(38, 4)
                    .unwrap(),
            ),
        ),
        (
            "d256",
            array(
                Decimal256Array::from(vec![
                    Some(i256::from_string(&"9".repeat(76)).unwrap()),
                    None,
                ])
                .with_precision_and_scale(76, 0)
                .unwrap(),
            ),
        ),
        ("text", array(StringArray::from(vec![Some("é"), None]))),
        (
            "large",
            array(LargeStringArray::from(vec![Some("l"), None])),
        ),
        (
            "view",
            array(StringViewArray::from(vec![
                Some("a view that is long enough"),
                None,
            ])),
        ),
        (
            "bin",
            array(BinaryArray::from(vec![Some(&b"\x01"[..]), None])),
        ),
        (
            "fix",
            array(
                FixedSizeBinaryArray::try_from_sparse_iter_with_size(
                    [Some(*b"ab"), None].into_iter(),
                    2,
                )
                .unwrap(),
            ),
        ),
        ("day", array(Date32Array::from(vec![Some(-1), None]))),
        (
            "t32",
            array(Time32MillisecondArray::from(vec![Some(1), None])),
        ),
        (
            "t64",
            array(Time64NanosecondArray::from(vec![Some(2_000), None])),
        ),
        (
            "ts_ms",
            array(TimestampMillisecondArray::from(vec![Some(-1), None])),
        ),
        (
            "ts_ns",
            array(TimestampNanosecondArray::from(vec![Some(3_000), None])),
        ),
        (
            "tz",
            array(
                TimestampMicrosecondArray::from(vec![Some(5), None]).with_timezone("Europe/Berlin"),
            ),
        ),
        (
            "dict",
            array(DictionaryArray::<Int32Type>::from_iter([Some("d"), None])),
        ),
        ("list", array(lists)),
        ("st", array(structure)),
        ("map", array(map.finish())),
    ])
}

const TYPES: [souk_sdk::ColumnType; 24] = [
    Boolean,
    Int64,
    Int64,
    Int64,
    Decimal,
    Float64,
    Float64,
    Decimal,
    Decimal,
    Text,
    Text,
    Text,
    Bytes,
    Bytes,
    Date,
    Time,
    Time,
    LocalTimestamp,
    LocalTimestamp,
    Timestamp,
    Text,
    Json,
    Json,
    Json,
];

const FIRST: &str =
    "true|-128|-9223372036854775808|4294967295|18446744073709551615|0.1|0.1|-1.2345|";
const NEXT: &str = "|é|l|a view that is long enough|\u{1}|ab|-1|1000|2|-1000|3|5|d|[1,null]|{\"a\":\"x\\\"y\",\"b\":1.50}|{\"k\":1}";

fn lines() -> [String; 2] {
    let nulls = [&["~"; 22][..], &["{\"a\":null,\"b\":0.00}", "~"]]
        .concat()
        .join("|");
    [format!("{FIRST}{}{NEXT}", "9".repeat(76)), nulls]
}

#[test]
fn every_type_of_parquet_is_exact() {
    for compression in [
        Compression::UNCOMPRESSED,
        Compression::SNAPPY,
        Compression::GZIP(Default::default()),
        Compression::ZSTD(ZstdLevel::default()),
        Compression::LZ4_RAW,
        Compression::BROTLI(Default::default()),
    ] {
        let properties = WriterProperties::builder()
            .set_compression(compression)
            .build();
        let (_directory, mut session) = file("t.parquet", &parquet_with(&every_type(), properties));
        let answer = ask(&mut session, "SELECT * FROM t").unwrap();
        assert_eq!(answer.kinds(), TYPES, "{compression}");
        assert_eq!(answer.lines(), lines(), "{compression}");
    }
}

#[test]
fn every_type_of_arrow_is_exact() {
    let all = every_type();
    let mut writer = FileWriter::try_new(Vec::new(), &all.schema()).unwrap();
    writer.write(&all).unwrap();
    writer.finish().unwrap();
    let (_directory, mut session) = file("t.arrow", writer.get_ref());
    let answer = ask(&mut session, "SELECT * FROM t").unwrap();
    assert_eq!(answer.kinds(), TYPES);
    assert_eq!(answer.lines(), lines());
    let some = ask(&mut session, "SELECT text, i64 FROM t WHERE u64 > 1").unwrap();
    assert_eq!(some.lines(), ["é|-9223372036854775808"]);
}

#[test]
fn what_has_no_exact_type_is_told_or_written() {
    let fine = batch(vec![(
        "t",
        array(TimestampNanosecondArray::from(vec![1_001])),
    )]);
    let (_directory, mut session) = file("t.parquet", &parquet(&fine));
    let error = ask(&mut session, "SELECT t FROM t").err().unwrap();
    assert_eq!(error.code, "finer_than_microseconds");
    let text = ask(&mut session, "SELECT CAST(t AS text) FROM t").unwrap();
    assert_eq!(text.lines(), ["1970-01-01T00:00:00.000001001"]);
    let interval = PrimitiveArray::<IntervalMonthDayNanoType>::from_value(
        IntervalMonthDayNanoType::make_value(1, 2, 3_000_000_000),
        1,
    );
    let mut writer = FileWriter::try_new(
        Vec::new(),
        &batch(vec![("i", array(interval.clone()))]).schema(),
    )
    .unwrap();
    writer.write(&batch(vec![("i", array(interval))])).unwrap();
    writer.finish().unwrap();
    let (_directory, mut session) = file("t.arrow", writer.get_ref());
    assert_eq!(
        ask(&mut session, "SELECT i FROM t").unwrap().lines(),
        ["1 mons 2 days 3.000000000 secs"]
    );
}

/// Views of lists are lists; a text that says it is JSON is looked at.
#[test]
fn what_arrow_calls_otherwise_is_what_it_holds() {
    let list = ListArray::from_iter_primitive::<Int64Type, _, _>([Some(vec![Some(1), None])]);
    let rows = batch(vec![("v", array(ListViewArray::from(list)))]);
    let (_directory, mut session) = file("t.arrow", &arrow(&rows, None));
    let answer = ask(&mut session, "SELECT v FROM t").unwrap();
    assert_eq!(
        (answer.kinds(), answer.lines()),
        (vec![Json], vec!["[1,null]".to_owned()])
    );
    for (text, code) in [("{\"a\":1}", None), ("{a:1}", Some("no_json"))] {
        let field = Field::new("j", DataType::Utf8, true)
            .with_metadata([("ARROW:extension:name".to_owned(), "arrow.json".to_owned())].into());
        let schema = Arc::new(datafusion::arrow::datatypes::Schema::new(vec![field]));
        let rows = RecordBatch::try_new(schema, vec![array(StringArray::from(vec![text]))]);
        let (_directory, mut session) = file("t.arrow", &arrow(&rows.unwrap(), None));
        let asked = ask(&mut session, "SELECT j FROM t");
        assert_eq!(asked.err().map(|error| error.code).as_deref(), code);
    }
}

/// By Parquet's own word, by that of Arrow's writers, and in the note that they leave; what is not JSON then is told.
#[test]
fn texts_of_parquet_that_say_they_are_json_are() {
    use datafusion::parquet::data_type::{ByteArray, ByteArrayType};
    use datafusion::parquet::file::writer::SerializedFileWriter;
    use datafusion::parquet::schema::parser::parse_message_type;

    let noted = |text: &str| {
        let field = Field::new("j", DataType::Utf8, true)
            .with_metadata([("ARROW:extension:name".to_owned(), "arrow.json".to_owned())].into());
        let fields = vec![field, Field::new("t", DataType::Utf8, true)];
        let schema = Arc::new(datafusion::arrow::datatypes::Schema::new(fields));
        let texts = || array(StringArray::from(vec![Some(text), None]));
        parquet(&RecordBatch::try_new(schema, vec![texts(), texts()]).unwrap())
    };
    let own = |text: &str| {
        let schema = "message m { OPTIONAL BYTE_ARRAY j (JSON); OPTIONAL BYTE_ARRAY t (UTF8); }";
        let schema = Arc::new(parse_message_type(schema).unwrap());
        let mut writer = SerializedFileWriter::new(Vec::new(), schema, Arc::default()).unwrap();
        let mut group = writer.next_row_group().unwrap();
        while let Some(mut column) = group.next_column().unwrap() {
            let written = column.typed::<ByteArrayType>();
            let values = [ByteArray::from(text)];
            written.write_batch(&values, Some(&[1, 0]), None).unwrap();
            column.close().unwrap();
        }
        group.close().unwrap();
        writer.into_inner().unwrap()
    };
    for (at, bytes) in [noted("{\"a\":1.50}"), own("{\"a\":1.50}")]
        .iter()
        .enumerate()
    {
        let (_directory, mut session) = file("t.parquet", bytes);
        let answer = ask(&mut session, "SELECT j, t FROM t").unwrap();
        assert_eq!(answer.kinds(), [Json, Text], "{at}");
        assert_eq!(answer.lines(), ["{\"a\":1.50}|{\"a\":1.50}", "~|~"], "{at}");
        let sql = "SELECT j FROM t WHERE j LIKE '%1.50%' AND t IS NOT NULL";
        let answer = ask(&mut session, sql).unwrap();
        assert_eq!((answer.kinds(), answer.rows.len()), (vec![Json], 1), "{at}");
    }
    for bytes in [noted("{a:1}"), own("{a:1}")] {
        let (_directory, mut session) = file("t.parquet", &bytes);
        let error = ask(&mut session, "SELECT j FROM t").err().unwrap();
        assert_eq!(error.code, "no_json", "{error:?}");
        let answer = ask(&mut session, "SELECT CAST(j AS text), t FROM t").unwrap();
        assert_eq!(answer.kinds(), [Text, Text]);
        assert_eq!(answer.lines(), ["{a:1}|{a:1}", "~|~"]);
    }
}

/// Bounds of row groups and pages leave out what is no number, which is greater than all numbers.
#[test]
fn what_is_no_number_is_found_wherever_it_is() {
    let floats = [1.0, f64::NAN, 2.0, 2.0, 3.0, 4.0];
    let rows = batch(vec![
        ("n", array(Int64Array::from_iter_values(1..=6))),
        ("f", array(Float64Array::from(floats.to_vec()))),
        (
            "r",
            array(Float32Array::from_iter_values(
                floats.map(|float| float as f32),
            )),
        ),
    ]);
    for (group, page) in [(2, 1), (6, 2), (6, 6)] {
        let properties = WriterProperties::builder()
            .set_max_row_group_row_count(Some(group))
            .set_data_page_row_count_limit(page)
            .set_write_batch_size(1)
            .build();
        let (_directory, mut session) = file("t.parquet", &parquet_with(&rows, properties));
        for column in ["f", "r"] {
            for (condition, wanted) in [
                ("> 100", "2"),
                (">= 4", "2 6"),
                ("< 1.5", "1"),
                ("<= 100", "1 3 4 5 6"),
                ("<> 1", "2 3 4 5 6"),
                ("<> 2", "1 2 5 6"),
                ("NOT IN (1, 2)", "2 5 6"),
                ("= CAST('NaN' AS double)", "2"),
                ("IS NOT NULL", "1 2 3 4 5 6"),
            ] {
                let sql = format!("SELECT n FROM t WHERE {column} {condition} ORDER BY n");
                let answer = ask(&mut session, &sql).unwrap();
                assert_eq!(answer.lines().join(" "), wanted, "{group}: {sql}");
            }
            let sql = format!("SELECT n FROM t ORDER BY {column} DESC LIMIT 1");
            assert_eq!(ask(&mut session, &sql).unwrap().lines(), ["2"], "{group}");
            let sql = format!("SELECT n FROM t WHERE {column} < 100 LIMIT 5");
            let found = ask(&mut session, &sql).unwrap().lines();
            assert_eq!(found, ["1", "3", "4", "5", "6"], "{group}: {sql}");
        }
    }
}

fn million() -> Vec<u8> {
    let ids = Int64Array::from_iter_values(0..1_000_000);
    let groups =
        StringArray::from_iter_values((0..1_000_000).map(|n| format!("group {}", n % 100)));
    let notes = StringArray::from_iter_values(
        (0..1_000_000u64).map(|n| format!("{:x}", n.wrapping_mul(0x9E37_79B9_7F4A_7C15))),
    );
    let rows = batch(vec![
        ("id", array(ids)),
        ("grp", array(groups)),
        ("note", array(notes)),
    ]);
    let properties = WriterProperties::builder()
        .set_max_row_group_row_count(Some(100_000))
        .set_compression(Compression::SNAPPY)
        .build();
    parquet_with(&rows, properties)
}

/// A filter on one column reads that one, of the row groups where it may hold, and of the others' columns what is left.
#[test]
fn no_more_is_read_than_is_asked_for() {
    let bytes = million();
    let (_directory, mut session) = file("t.parquet", &bytes);
    ping(&mut session).unwrap();
    let footer = session.bytes_read();
    let answer = ask(&mut session, "SELECT note FROM t WHERE id = 123456").unwrap();
    assert_eq!(answer.rows.len(), 1);
    let read = session.bytes_read() - footer;
    println!(
        "file {} bytes, footer and indexes {footer}, one row {read}",
        bytes.len()
    );
    assert!(read < bytes.len() as u64 / 10, "{read} of {}", bytes.len());
    // Pages of a feed begin so.
    let before = session.bytes_read();
    let page =
        "SELECT note FROM t WHERE (id, grp) > (999989, 'group 89') ORDER BY id, grp LIMIT 20";
    assert_eq!(ask(&mut session, page).unwrap().rows.len(), 10);
    let read = session.bytes_read() - before;
    println!("a page from a row on {read}");
    assert!(read < bytes.len() as u64 / 10, "{read} of {}", bytes.len());
    // What is counted is in the footer.
    let before = session.bytes_read();
    assert_eq!(
        ask(&mut session, "SELECT count(*) FROM t").unwrap().lines(),
        ["1000000"]
    );
    assert_eq!(session.bytes_read(), before);
    // One column of three, and none of the footer again.
    ask(&mut session, "SELECT grp, count(*) FROM t GROUP BY grp").unwrap();
    let column = session.bytes_read() - before;
    assert!(
        column < bytes.len() as u64 / 4,
        "{column} of {}",
        bytes.len()
    );
}

/// Of row groups that are too large to be filtered while they are read, too, nothing is computed of rows that a filter leaves out.
#[test]
fn nothing_is_computed_before_large_groups_are_filtered() {
    let long = "0".repeat(12 << 20);
    let texts = || array(StringArray::from(vec![long.as_str(); 3]));
    let rows = batch(vec![
        ("n", array(Int64Array::from(vec![2, 0, 5]))),
        ("m", array(Int64Array::from(vec![1, 1, 1]))),
        ("a", texts()),
        ("b", texts()),
    ]);
    let properties = WriterProperties::builder()
        .set_compression(Compression::ZSTD(ZstdLevel::default()))
        .set_dictionary_enabled(false)
        .build();
    let (_directory, mut session) = file("t.parquet", &parquet_with(&rows, properties));
    let sql = "SELECT n, 10 / n + m + length(a) + length(b) AS it FROM t WHERE n <> 0 ORDER BY n";
    let answer = ask(&mut session, sql).unwrap_or_else(|error| panic!("{error:?}"));
    let line = |n: usize| format!("{n}|{}", 10 / n + 1 + 2 * long.len());
    assert_eq!(answer.lines(), [line(2), line(5)]);
}

/// A file of which a column has no NULLs stands beside one of which it has some.
#[test]
fn nulls_are_found_in_whichever_file_they_are() {
    let rows = |values: Vec<Option<i64>>, is_nullable| {
        let n = array(Int64Array::from(values));
        RecordBatch::try_from_iter_with_nullable([("n", n, is_nullable)]).unwrap()
    };
    let (first, second) = (
        rows(vec![Some(1), Some(2)], false),
        rows(vec![Some(3), None], true),
    );
    let of_parquet = [parquet(&first), parquet(&second)];
    let of_arrow = [arrow(&first, None), arrow(&second, None)];
    for (extension, [first, second]) in [("parquet", of_parquet), ("arrow", of_arrow)] {
        let paths = ["a", "b"].map(|part| format!("t.{extension}/{part}.{extension}"));
        let archive = tar(&[(&paths[0], &first), (&paths[1], &second)]);
        let (_directory, mut session) = file("t.tar", &archive);
        for (sql, wanted) in [
            ("SELECT count(*) FROM t WHERE n IS NULL", "1"),
            ("SELECT count(*) FROM t WHERE n IS NOT NULL", "3"),
            ("SELECT count(n) FROM t", "3"),
            ("SELECT sum(coalesce(n, 10)) FROM t", "16"),
        ] {
            let answer = ask(&mut session, sql);
            let answer = answer.unwrap_or_else(|error| panic!("{extension}: {sql}: {error:?}"));
            assert_eq!(answer.lines(), [wanted], "{extension}: {sql}");
        }
    }
}

/// Old writers order the bounds of texts by bytes with a sign, and others do not count NULLs: nothing is passed over by what they say.
#[test]
fn bounds_that_leave_something_out_are_not_believed() {
    use datafusion::parquet::data_type::ByteArray;
    use datafusion::parquet::file::metadata::{
        FileMetaData, ParquetMetaDataBuilder, ParquetMetaDataReader, ParquetMetaDataWriter,
    };
    use datafusion::parquet::file::statistics::{Statistics, ValueStatistics};
    let rows = batch(vec![
        ("n", array(Int64Array::from(vec![Some(1), None, Some(3)]))),
        ("old", array(Int64Array::from(vec![1, 2, 3]))),
        ("s", array(StringArray::from(vec!["a", "é", "m"]))),
    ]);
    let whole = parquet(&rows);
    let metadata = ParquetMetaDataReader::new()
        .parse_and_finish(&bytes::Bytes::from(whole.clone()))
        .unwrap();
    let of_texts = ValueStatistics::new(
        Some(ByteArray::from("é")),
        Some(ByteArray::from("m")),
        None,
        Some(0),
        true,
    );
    let bounds = [
        Statistics::int64(Some(1), Some(3), None, None, false),
        Statistics::int64(Some(1), Some(3), None, Some(0), true),
        Statistics::ByteArray(of_texts),
    ];
    let group = metadata.row_group(0).clone();
    let columns = group.columns().iter().zip(bounds);
    let columns = columns.map(|(column, bounds)| {
        let column = column.clone().into_builder().set_statistics(bounds);
        column.build().unwrap()
    });
    let columns = columns.collect();
    let group = group.into_builder().set_column_metadata(columns);
    let schema = metadata.file_metadata().schema_descr_ptr();
    let metadata = ParquetMetaDataBuilder::new(FileMetaData::new(1, 3, None, None, schema, None))
        .set_row_groups(vec![group.build().unwrap()])
        .build();
    let footer = whole[whole.len() - 8..whole.len() - 4].try_into().unwrap();
    let data = whole.len() - 8 - u32::from_le_bytes(footer) as usize;
    let mut changed = whole[..data].to_vec();
    let writer = ParquetMetaDataWriter::new(&mut changed, &metadata);
    writer.finish().unwrap();
    let (_directory, mut session) = file("t.parquet", &changed);
    for (condition, wanted) in [
        ("s = 'é'", "2"),
        ("s > 'n'", "2"),
        ("n IS NULL", "2"),
        ("\"old\" > 2", "3"),
        ("\"old\" > 3", "~"),
    ] {
        let sql = format!("SELECT max(\"old\") FROM t WHERE {condition}");
        let answer = ask(&mut session, &sql).unwrap();
        assert_eq!(answer.lines(), [wanted], "{condition}");
    }
}

/// `count(*)` is answered by the footer, which has to be one that the rows agree with.
#[test]
fn counts_are_those_of_the_rows() {
    use datafusion::parquet::file::metadata::{
        FileMetaData, ParquetMetaDataBuilder, ParquetMetaDataReader, ParquetMetaDataWriter,
    };
    let rows = batch(vec![("n", array(Int64Array::from(vec![1, 2, 3])))]);
    let whole = parquet(&rows);
    // The total is a field of its own in front of the list of row groups; zigzag says 2 n of n.
    let with_total = |zigzag: u8| {
        let places = whole.windows(4);
        let mut places = places
            .enumerate()
            .filter(|(_, four)| *four == [0x16, 6, 0x19, 0x1c]);
        let (at, _) = places.next().unwrap();
        assert!(places.next().is_none());
        let mut changed = whole.clone();
        changed[at + 1] = zigzag;
        changed
    };
    let with_group = |of_group: i64| {
        let bytes = bytes::Bytes::from(whole.clone());
        let metadata = ParquetMetaDataReader::new()
            .parse_and_finish(&bytes)
            .unwrap();
        let schema = metadata.file_metadata().schema_descr_ptr();
        let file = FileMetaData::new(1, of_group, None, None, schema, None);
        let groups = metadata.row_groups().iter().map(|group| {
            let group = group.clone().into_builder().set_num_rows(of_group);
            group.build().unwrap()
        });
        let metadata = ParquetMetaDataBuilder::new(file)
            .set_row_groups(groups.collect())
            .build();
        let footer = whole[whole.len() - 8..whole.len() - 4].try_into().unwrap();
        let data = whole.len() - 8 - u32::from_le_bytes(footer) as usize;
        let mut changed = whole[..data].to_vec();
        let writer = ParquetMetaDataWriter::new(&mut changed, &metadata);
        writer.finish().unwrap();
        changed
    };
    let (_directory, mut session) = file("t.parquet", &with_group(3));
    let count = ask(&mut session, "SELECT count(*) FROM t").unwrap();
    assert_eq!(count.lines(), ["3"]);
    let totals = [0, 1, 4, 8, 100].map(with_total);
    let groups = [-3, 0, 2, 4].map(with_group);
    for (at, bytes) in totals.iter().chain(&groups).enumerate() {
        let (_directory, mut session) = file("t.parquet", bytes);
        let error = ask(&mut session, "SELECT count(*) FROM t").err();
        let code = error.map(|error| error.code);
        assert_eq!(code.as_deref(), Some("file_broken"), "the file {at}");
    }
}

#[test]
fn the_catalog_is_the_footers() {
    let (_directory, mut session) = file("Sales 2024.parquet", &parquet(&every_type()));
    let answer = schema(&mut session).unwrap();
    assert_eq!(
        answer.lines()[4],
        "public|Sales 2024|table|2|u64|UInt64|true|false"
    );
    assert_eq!(
        ask(&mut session, "SELECT u32 FROM \"Sales 2024\" LIMIT 1")
            .unwrap()
            .lines(),
        ["4294967295"]
    );
    let wide = (0..200).map(|n| (n.to_string(), array(Int64Array::from(vec![n]))));
    let wide: Vec<(String, ArrayRef)> = wide.collect();
    let wide = batch(
        wide.iter()
            .map(|(name, array)| (name.as_str(), array.clone()))
            .collect(),
    );
    let (_directory, mut session) = file("t.parquet", &parquet(&wide));
    assert_eq!(
        ask(&mut session, "SELECT * FROM t").unwrap().columns.len(),
        200
    );
    let empty = batch(vec![("a", array(Int64Array::from(Vec::<i64>::new())))]);
    let (_directory, mut session) = file("t.parquet", &parquet(&empty));
    assert_eq!(
        ask(&mut session, "SELECT * FROM t").unwrap().lines(),
        [""; 0]
    );
}

#[test]
fn packed_arrow_is_exact() {
    for packed in [CompressionType::LZ4_FRAME, CompressionType::ZSTD] {
        let (_directory, mut session) = file("t.feather", &arrow(&every_type(), Some(packed)));
        let answer = ask(&mut session, "SELECT * FROM t").unwrap();
        assert_eq!(answer.lines(), lines(), "{packed:?}");
        assert_eq!(
            ask(&mut session, "SELECT count(*) FROM t").unwrap().lines(),
            ["2"]
        );
    }
}

/// Footers that say gigabytes, and batches that are larger than is read at once.
#[test]
fn what_arrow_says_of_itself_is_not_believed() {
    let long = [&b"ARROW1\0\0"[..], &[0xff, 0xff, 0xff, 0x7f], b"ARROW1"].concat();
    let (_directory, mut session) = file("t.arrow", &long);
    let error = ping(&mut session).err().unwrap();
    assert_eq!(
        error.detail.as_deref(),
        Some("its footer is longer than the file")
    );
    let large = batch(vec![
        ("n", array(Int64Array::from(vec![1]))),
        ("x", array(StringArray::from(vec!["x".repeat(100 << 20)]))),
    ]);
    for packed in [None, Some(CompressionType::ZSTD)] {
        let (_directory, mut session) = file("t.arrow", &arrow(&large, packed));
        let error = ask(&mut session, "SELECT n FROM t").err().unwrap();
        assert_eq!(error.code, "batch_too_large");
    }
}

#[test]
fn damaged_arrow_files_break_nothing() {
    for packed in [None, Some(CompressionType::ZSTD)] {
        let whole = arrow(&every_type(), packed);
        let look = |bytes: &[u8]| {
            let (_directory, mut session) = file("t.arrow", bytes);
            ping(&mut session).is_ok()
                && ask(&mut session, "SELECT * FROM t").is_ok()
                && ask(&mut session, "SELECT text FROM t WHERE i64 < 0").is_ok()
                && ask(&mut session, "SELECT count(*) FROM t").unwrap().lines() == ["2"]
        };
        assert!(look(&whole));
        for end in (0..whole.len()).step_by(97) {
            assert!(!look(&whole[..end]), "cut at {end}");
        }
        let (mut read, mut broke, mut changes) = (0, Vec::new(), 0);
        for at in 0..whole.len() {
            for change in [0x5a, 0xff, 0x01, 0x80] {
                // Most of it is heads; of what is far from them a part says the same.
                if (at * 4 + change) % 37 > 0 && (at, change) != (8119, 0x80) {
                    continue;
                }
                let mut changed = whole.clone();
                changed[at] ^= change as u8;
                changes += 1;
                match std::panic::catch_unwind(|| look(&changed)) {
                    Ok(asked) => read += usize::from(asked),
                    Err(_) => broke.push((at, change)),
                }
            }
        }
        println!("{read} of {changes} files with a changed byte were read");
        assert_eq!(broke, [], "of {} bytes, {packed:?}", whole.len());
    }
}

/// Each page is of less than is allowed, and five of them are not.
#[test]
fn what_is_unpacked_is_counted_together() {
    let zeros = "0".repeat(40 << 20);
    let column = || array(StringArray::from(vec![zeros.as_str()]));
    let rows = batch(vec![
        ("n", array(Int64Array::from(vec![1]))),
        ("a", column()),
        ("b", column()),
        ("c", column()),
        ("d", column()),
        ("e", column()),
    ]);
    let properties = WriterProperties::builder()
        .set_compression(Compression::ZSTD(ZstdLevel::default()))
        .set_dictionary_enabled(false)
        .build();
    let bytes = parquet_with(&rows, properties);
    assert!(bytes.len() < 1 << 20);
    let (_directory, mut session) = file("t.parquet", &bytes);
    let one = "SELECT length(a) + length(b) + length(c) FROM t";
    let answer = ask(&mut session, one).unwrap();
    assert_eq!(answer.lines(), [(3 * zeros.len()).to_string()]);
    let all = "SELECT length(a) + length(b) + length(c) + length(d) + length(e) FROM t";
    let error = ask(&mut session, all).err().unwrap();
    assert_eq!(error.code, "row_group_too_large", "{error:?}");
    // What was held is free again.
    assert!(ask(&mut session, one).is_ok());
}

/// Each level of a schema is one of the stack of whoever reads it; who writes it here has a large one.
#[test]
fn schemas_have_bounds() {
    let bounds = std::thread::Builder::new()
        .stack_size(256 << 20)
        .spawn(schemas);
    bounds.unwrap().join().unwrap();
}

fn schemas() {
    let nested = |levels: usize| {
        let mut column: ArrayRef = array(Int64Array::from(vec![1]));
        for _ in 0..levels {
            let field = Field::new("x", column.data_type().clone(), true);
            column = array(StructArray::from(vec![(Arc::new(field), column)]));
        }
        parquet(&batch(vec![("s", column)]))
    };
    let (_directory, mut session) = file("t.parquet", &nested(20));
    assert!(ping(&mut session).is_ok());
    let (_directory, mut session) = file("t.parquet", &nested(80));
    assert_eq!(ping(&mut session).err().unwrap().code, "too_many_columns");
}

/// Files cut off and files with a byte changed are told, or read as something else; nothing of them breaks the connector.
#[test]
fn damaged_files_break_nothing() {
    let whole = parquet(&every_type());
    let look = |bytes: &[u8]| {
        let (_directory, mut session) = file("t.parquet", bytes);
        let pinged = ping(&mut session).is_ok();
        let asked = ask(&mut session, "SELECT * FROM t").is_ok();
        assert!(pinged || !asked);
        asked
    };
    assert!(look(&whole));
    for end in (0..whole.len()).step_by(97) {
        assert!(!look(&whole[..end]), "cut at {end}");
    }
    let (mut read, mut broke) = (0, Vec::new());
    let changes = (0..whole.len()).flat_map(|at| [(at, 0x5a), (at, 0xff), (at, 0x01)]);
    for (at, change) in changes.step_by(5) {
        let mut changed = whole.clone();
        changed[at] ^= change;
        match std::panic::catch_unwind(|| look(&changed)) {
            Ok(asked) => read += usize::from(asked),
            Err(_) => broke.push((at, change)),
        }
    }
    println!(
        "{read} of {} files with a changed byte were read",
        whole.len() * 3 / 5
    );
    assert_eq!(broke, []);
}
