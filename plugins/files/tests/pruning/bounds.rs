//! Bounds of row groups that say something else than there is, as writers of other times make them, are not believed.

use crate::common::{array, ask, batch, file, parquet};
use datafusion::arrow::array::*;
use datafusion::parquet::basic::{ColumnOrder, SortOrder};
use datafusion::parquet::data_type::{ByteArray, FixedLenByteArray};
use datafusion::parquet::file::metadata::{
    FileMetaData, ParquetMetaDataBuilder, ParquetMetaDataReader, ParquetMetaDataWriter,
};
use datafusion::parquet::file::statistics::{Statistics, ValueStatistics};
use souk_connector_files::Session;

/// The numbers of the rows for which the condition holds.
fn rows(session: &mut Session, condition: &str) -> String {
    crate::common::rows(session, condition, Vec::new())
}

/// The file with a footer that says this of its one row group's columns, and of their order.
fn saying(
    rows: &RecordBatch,
    bounds: Vec<Statistics>,
    orders: Option<Vec<ColumnOrder>>,
) -> Vec<u8> {
    with_footer(&parquet(rows), bounds, orders)
}

/// The same of a file.
fn with_footer(whole: &[u8], bounds: Vec<Statistics>, orders: Option<Vec<ColumnOrder>>) -> Vec<u8> {
    let metadata = ParquetMetaDataReader::new()
        .parse_and_finish(&bytes::Bytes::from(whole.to_vec()))
        .unwrap();
    let group = metadata.row_group(0).clone();
    let columns = group.columns().iter().zip(bounds);
    let columns = columns.map(|(column, bounds)| {
        let column = column.clone().into_builder().set_statistics(bounds);
        column.build().unwrap()
    });
    let columns: Vec<_> = columns.collect();
    let column_count = columns.len();
    let group = group.into_builder().set_column_metadata(columns);
    let schema = metadata.file_metadata().schema_descr_ptr();
    let count = metadata.file_metadata().num_rows();
    let file = FileMetaData::new(1, count, None, None, schema, orders);
    let metadata = ParquetMetaDataBuilder::new(file)
        .set_row_groups(vec![group.build().unwrap()])
        .build();
    let footer = whole[whole.len() - 8..whole.len() - 4].try_into().unwrap();
    let data = whole.len() - 8 - u32::from_le_bytes(footer) as usize;
    let mut changed = whole[..data].to_vec();
    let says_orders = metadata.file_metadata().column_orders().is_some();
    let writer = ParquetMetaDataWriter::new(&mut changed, &metadata);
    writer.finish().unwrap();
    match says_orders {
        true => changed,
        false => without_orders(changed, column_count),
    }
}

/// The file without what its writer says last of all whatever it is told: that columns are ordered as their types are. In Thrift's compact protocol
/// that is a list, the third field behind the row groups, of a structure with an empty one for each column.
fn without_orders(mut file: Vec<u8>, columns: usize) -> Vec<u8> {
    const TAIL: usize = 8;
    let footer = file.split_off(file.len() - TAIL);
    let mut orders = vec![0x39, 0x0c | u8::try_from(columns).unwrap() << 4];
    orders.extend([0x1c, 0, 0].repeat(columns));
    // The end of the metadata.
    let rest = file.strip_suffix(&[0]).unwrap();
    let mut file = rest.strip_suffix(&orders[..]).unwrap().to_vec();
    file.push(0);
    let length = u32::from_le_bytes(footer[..4].try_into().unwrap());
    let length = length - u32::try_from(orders.len()).unwrap();
    file.extend(length.to_le_bytes());
    file.extend(&footer[4..]);
    file
}

fn of_texts(least: &str, greatest: &str) -> Statistics {
    let (least, greatest) = (ByteArray::from(least), ByteArray::from(greatest));
    Statistics::ByteArray(ValueStatistics::new(
        Some(least),
        Some(greatest),
        None,
        Some(0),
        false,
    ))
}

/// Bounds in the new fields, of a writer that does not say how it orders: texts and numbers without a sign may be ordered by one.
#[test]
fn bounds_whose_order_is_not_said_are_not_believed() {
    let rows_of = batch(vec![
        ("n", array(Int64Array::from(vec![1, 2, 3]))),
        ("s", array(StringArray::from(vec!["a", "m\u{e9}", "mz"]))),
        ("u", array(UInt32Array::from(vec![1, 3_000_000_000, 2]))),
    ]);
    let bounds = vec![
        Statistics::int64(Some(1), Some(3), None, Some(0), false),
        of_texts("a", "mz"),
        Statistics::int32(Some(1), Some(2), None, Some(0), false),
    ];
    let (_directory, mut session) = file("t.parquet", &saying(&rows_of, bounds, None));
    for (condition, wanted) in [
        ("s = 'm\u{e9}'", "2"),
        ("s > 'n'", ""),
        ("u = 3000000000", "2"),
        ("u > 2", "2"),
        ("n > 2", "3"),
        ("n > 3", ""),
    ] {
        assert_eq!(rows(&mut session, condition), wanted, "{condition}");
    }
    let sql = "SELECT max(u), max(s), min(n), count(u) FROM t";
    let extremes = ask(&mut session, sql).unwrap().lines();
    assert_eq!(extremes, ["3000000000|m\u{e9}|1|3"]);
}

/// Numbers without a sign that were compared with one, and decimals without: their least value is greater than the greatest.
#[test]
fn bounds_that_are_crossed_are_not_believed() {
    let decimals = Decimal128Array::from(vec![-500, 300, 7])
        .with_precision_and_scale(30, 2)
        .unwrap();
    let rows_of = batch(vec![
        ("u", array(UInt32Array::from(vec![1, 3_000_000_000, 2]))),
        ("d", array(decimals)),
        ("n", array(Int64Array::from(vec![1, 2, 3]))),
    ]);
    // Of 30 digits there are 13 bytes.
    let bytes = |units: i128| {
        let bytes = units.to_be_bytes()[3..].to_vec();
        Some(FixedLenByteArray::from(ByteArray::from(bytes)))
    };
    let of_decimals = ValueStatistics::new(bytes(7), bytes(-500), None, Some(0), false);
    let bounds = vec![
        Statistics::int32(Some(3_000_000_000u32 as i32), Some(2), None, Some(0), false),
        Statistics::FixedLenByteArray(of_decimals),
        Statistics::int64(Some(1), Some(3), None, Some(0), false),
    ];
    let orders = [SortOrder::UNSIGNED, SortOrder::SIGNED, SortOrder::SIGNED];
    let orders = orders.map(ColumnOrder::TYPE_DEFINED_ORDER).to_vec();
    let (_directory, mut session) = file("t.parquet", &saying(&rows_of, bounds, Some(orders)));
    for (condition, wanted) in [
        ("u = 1", "1"),
        ("u = 3000000000", "2"),
        ("u < 3", "1 3"),
        ("d = -5.00", "1"),
        ("d < 0", "1"),
        ("d > 1", "2"),
        ("n = 4", ""),
    ] {
        assert_eq!(rows(&mut session, condition), wanted, "{condition}");
    }
}

/// The orders that types have.
fn orders<const N: usize>(orders: [SortOrder; N]) -> Option<Vec<ColumnOrder>> {
    Some(orders.map(ColumnOrder::TYPE_DEFINED_ORDER).to_vec())
}

/// The least and the greatest value in each other's place.
#[test]
fn bounds_in_each_others_place_are_not_believed() {
    let rows_of = batch(vec![
        ("n", array(Int64Array::from(vec![-1, 2, 3]))),
        ("s", array(StringArray::from(vec!["b", "m", "z"]))),
    ]);
    let bounds = vec![
        Statistics::int64(Some(3), Some(-1), None, Some(0), false),
        of_texts("z", "b"),
    ];
    let orders = orders([SortOrder::SIGNED, SortOrder::UNSIGNED]);
    let (_directory, mut session) = file("t.parquet", &saying(&rows_of, bounds, orders));
    for (condition, wanted) in [
        ("n = 2", "2"),
        ("n < 0", "-1"),
        ("n > 2", "3"),
        ("s = 'm'", "2"),
        ("s > 'm'", "3"),
        ("s <> 'z'", "-1 2"),
    ] {
        assert_eq!(rows(&mut session, condition), wanted, "{condition}");
    }
}

/// Decimals in bytes of any length, of which some writers have bounds in the order of texts: 3.00 is 01 2C, which is before 7F.
#[test]
fn bounds_of_decimals_of_any_length_are_not_believed() {
    use datafusion::parquet::data_type::{ByteArrayType, Int64Type};
    use datafusion::parquet::file::writer::SerializedFileWriter;
    use datafusion::parquet::schema::parser::parse_message_type;
    use std::sync::Arc;

    let schema = "message m { REQUIRED INT64 n; REQUIRED BYTE_ARRAY d (DECIMAL(10, 2)); }";
    let schema = Arc::new(parse_message_type(schema).unwrap());
    let mut writer = SerializedFileWriter::new(Vec::new(), schema, Arc::default()).unwrap();
    let mut group = writer.next_row_group().unwrap();
    let mut column = group.next_column().unwrap().unwrap();
    let numbers = column.typed::<Int64Type>();
    numbers.write_batch(&[1, 2, 3], None, None).unwrap();
    column.close().unwrap();
    let decimals = [vec![0x01_u8], vec![0x01, 0x2c], vec![0x7f]].map(ByteArray::from);
    let mut column = group.next_column().unwrap().unwrap();
    let bytes = column.typed::<ByteArrayType>();
    bytes.write_batch(&decimals, None, None).unwrap();
    column.close().unwrap();
    group.close().unwrap();
    let [least, _, greatest] = decimals;
    let of_decimals = ValueStatistics::new(Some(least), Some(greatest), None, Some(0), false);
    let bounds = vec![
        Statistics::int64(Some(1), Some(3), None, Some(0), false),
        Statistics::ByteArray(of_decimals),
    ];
    let orders = orders([SortOrder::SIGNED, SortOrder::SIGNED]);
    let whole = writer.into_inner().unwrap();
    let changed = with_footer(&whole, bounds, orders);
    let (_directory, mut session) = file("t.parquet", &changed);
    for (condition, wanted) in [
        ("d = 3.00", "2"),
        ("d > 1.27", "2"),
        ("d <= 1.27", "1 3"),
        ("d = 0.01", "1"),
    ] {
        assert_eq!(rows(&mut session, condition), wanted, "{condition}");
    }
}

/// Bounds that are no decimals of the column: their reader would end the connector.
#[test]
fn bounds_of_other_lengths_are_not_read() {
    let decimals = Decimal128Array::from(vec![-500, 300, 7])
        .with_precision_and_scale(30, 2)
        .unwrap();
    let rows_of = batch(vec![
        ("n", array(Int64Array::from(vec![1, 2, 3]))),
        ("d", array(decimals)),
    ]);
    for length in [0, 1, 12, 14, 17, 100] {
        let bytes = |byte: u8| Some(FixedLenByteArray::from(vec![byte; length]));
        let of_decimals = ValueStatistics::new(bytes(0x80), bytes(0x7f), None, Some(0), false);
        let bounds = vec![
            Statistics::int64(Some(1), Some(3), None, Some(0), false),
            Statistics::FixedLenByteArray(of_decimals),
        ];
        let orders = orders([SortOrder::SIGNED, SortOrder::SIGNED]);
        let (_directory, mut session) = file("t.parquet", &saying(&rows_of, bounds, orders));
        for (condition, wanted) in [("d = -5.00", "1"), ("d > 1", "2"), ("n = 4", "")] {
            let found = rows(&mut session, condition);
            assert_eq!(found, wanted, "{length}: {condition}");
        }
    }
}
