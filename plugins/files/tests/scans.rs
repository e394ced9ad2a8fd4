//! What is read of Parquet: no more than is asked for, and all that a filter leaves.

mod common;

use common::{array, arrow, ask, batch, file, parquet, parquet_with, ping, tar};
use datafusion::arrow::array::*;
use datafusion::parquet::basic::{Compression, ZstdLevel};
use datafusion::parquet::file::properties::WriterProperties;

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
