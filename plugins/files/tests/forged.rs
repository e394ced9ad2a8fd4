//! Files of Parquet that say what is not so, by which its reader would end, and the connector with it: each is told.

mod common;

use common::{array, ask, batch, file, numbers, parquet_with};
use datafusion::arrow::array::{Int64Array, StringArray};
use datafusion::parquet::data_type::{FixedLenByteArray, FixedLenByteArrayType, Int64Type};
use datafusion::parquet::file::metadata::{
    ColumnChunkMetaData, ParquetMetaDataReader, ParquetMetaDataWriter,
};
use datafusion::parquet::file::properties::{EnabledStatistics, WriterProperties};
use datafusion::parquet::file::writer::SerializedFileWriter;
use datafusion::parquet::schema::parser::parse_message_type;
use std::sync::Arc;

/// The file with another footer, which says this of the columns of its one row group.
fn with_columns(
    whole: &[u8],
    change: impl Fn(ColumnChunkMetaData) -> ColumnChunkMetaData,
) -> Vec<u8> {
    let metadata = ParquetMetaDataReader::new()
        .parse_and_finish(&bytes::Bytes::from(whole.to_vec()))
        .unwrap();
    let mut parts = metadata.into_builder();
    let mut group = parts.take_row_groups().remove(0).into_builder();
    let columns = group.take_columns().into_iter().map(change).collect();
    let group = group.set_column_metadata(columns).build().unwrap();
    let metadata = parts.set_row_groups(vec![group]).build();
    let mut changed = whole[..end_of_data(whole)].to_vec();
    let writer = ParquetMetaDataWriter::new(&mut changed, &metadata);
    writer.finish().unwrap();
    changed
}

/// Where the footer begins.
fn end_of_data(whole: &[u8]) -> usize {
    let footer = whole[whole.len() - 8..whole.len() - 4].try_into().unwrap();
    whole.len() - 8 - u32::from_le_bytes(footer) as usize
}

/// Without statistics and indexes, which a changed footer would not have.
fn plain() -> WriterProperties {
    WriterProperties::builder()
        .set_statistics_enabled(EnabledStatistics::None)
        .set_offset_index_disabled(true)
        .build()
}

/// Pages of numbers of a dictionary that the footer leaves out.
#[test]
fn pages_have_the_dictionary_that_they_are_of() {
    let texts = StringArray::from(vec!["a", "b", "a"]);
    let rows = batch(vec![("n", numbers(3)), ("s", array(texts))]);
    let whole = parquet_with(&rows, plain());
    let (_directory, mut session) = file("t.parquet", &with_columns(&whole, |column| column));
    let answer = ask(&mut session, "SELECT n, s FROM t").unwrap();
    assert_eq!(answer.lines(), ["1|a", "2|b", "3|a"]);
    let changed = with_columns(&whole, |column| {
        let (first, behind) = (
            column.dictionary_page_offset().unwrap(),
            column.data_page_offset(),
        );
        let left = column.compressed_size() - (behind - first);
        let column = column.into_builder().set_dictionary_page_offset(None);
        column.set_total_compressed_size(left).build().unwrap()
    });
    let (_directory, mut session) = file("t.parquet", &changed);
    for column in ["n", "s"] {
        let error = ask(&mut session, &format!("SELECT {column} FROM t"));
        let error = error.err().unwrap();
        assert_eq!(error.code, "file_broken", "{column}: {error:?}");
        let wanted = "t.parquet: a page of it has no dictionary before it";
        assert_eq!(error.detail.as_deref(), Some(wanted), "{column}");
    }
    let answer = ask(&mut session, "SELECT count(*) FROM t").unwrap();
    assert_eq!(answer.lines(), ["3"]);
}

/// What a page says of itself and does not hold is the file's fault, and not that of a value or of the statement.
#[test]
fn damaged_pages_are_told_as_the_file() {
    let properties = WriterProperties::builder()
        .set_dictionary_enabled(false)
        .set_statistics_enabled(EnabledStatistics::None)
        .set_offset_index_disabled(true)
        .build();
    let mut whole = parquet_with(&batch(vec![("n", numbers(3))]), properties);
    // Before the numbers stands which of them are NULL, and before that how long it is.
    let first = [1i64.to_le_bytes(), 2i64.to_le_bytes()].concat();
    let mut places = whole.windows(first.len());
    let numbers_at = places.position(|bytes| bytes == first).unwrap();
    let lengths = (1u32..16).map(|length| (numbers_at - length as usize - 4, length));
    let mut lengths = lengths.filter(|(at, length)| whole[*at..at + 4] == length.to_le_bytes());
    let (length_at, _) = lengths.next().unwrap();
    whole[length_at] = 0xff;
    let (_directory, mut session) = file("t.parquet", &whole);
    for sql in ["SELECT n FROM t", "SELECT sum(n) FROM t"] {
        let error = ask(&mut session, sql).err().unwrap();
        assert_eq!(error.code, "file_broken", "{sql}: {error:?}");
    }
    let answer = ask(&mut session, "SELECT count(*) FROM t").unwrap();
    assert_eq!(answer.lines(), ["3"]);
}

/// Bytes of a fixed length that is none are refused, and the other columns are read.
#[test]
fn bytes_of_no_length_are_refused() {
    let schema = "message m { REQUIRED INT64 n; REQUIRED FIXED_LEN_BYTE_ARRAY (0) b; }";
    let schema = Arc::new(parse_message_type(schema).unwrap());
    let properties = WriterProperties::builder()
        .set_statistics_enabled(EnabledStatistics::None)
        .set_dictionary_enabled(false)
        .build();
    let mut writer = SerializedFileWriter::new(Vec::new(), schema, Arc::new(properties)).unwrap();
    let mut group = writer.next_row_group().unwrap();
    let mut column = group.next_column().unwrap().unwrap();
    let numbers = column.typed::<Int64Type>();
    numbers.write_batch(&[1], None, None).unwrap();
    column.close().unwrap();
    let nothing = [FixedLenByteArray::from(Vec::new())];
    let mut column = group.next_column().unwrap().unwrap();
    let bytes = column.typed::<FixedLenByteArrayType>();
    bytes.write_batch(&nothing, None, None).unwrap();
    column.close().unwrap();
    group.close().unwrap();
    let (_directory, mut session) = file("t.parquet", &writer.into_inner().unwrap());
    for sql in ["SELECT b FROM t", "SELECT count(DISTINCT b) FROM t"] {
        let error = ask(&mut session, sql).err().unwrap();
        assert_eq!(error.code, "type_unknown", "{sql}: {error:?}");
        assert_eq!(error.detail.as_deref(), Some("b"), "{sql}");
    }
    let answer = ask(&mut session, "SELECT n FROM t").unwrap();
    assert_eq!(answer.lines(), ["1"]);
}

/// A footer that says that it has two billion row groups: room for them would be made before the first one is read.
#[test]
fn lists_of_a_footer_have_what_they_say() {
    let whole = parquet_with(&batch(vec![("n", numbers(3))]), plain());
    // Three rows, and a list of one row group, which begins with a list of columns.
    let one = [0x16, 6, 0x19, 0x1c, 0x19];
    let mut places = whole.windows(one.len());
    let at = places.rposition(|bytes| bytes == one).unwrap();
    let mut forged = whole[..at + 3].to_vec();
    forged.extend([0xfc, 0xff, 0xff, 0xff, 0xff, 0x07]);
    forged.extend(&whole[at + 4..whole.len() - 8]);
    let length = whole[whole.len() - 8..whole.len() - 4].try_into().unwrap();
    let length = u32::from_le_bytes(length) + 5;
    forged.extend(length.to_le_bytes());
    forged.extend(b"PAR1");
    let (_directory, mut session) = file("t.parquet", &forged);
    let error = ask(&mut session, "SELECT n FROM t").err().unwrap();
    let wanted = "t.parquet: its footer says that it has more than it has";
    assert_eq!(error.detail.as_deref(), Some(wanted), "{error:?}");
}

/// An index that says that there are two billion pages: room for them would be made before the first one is read. One of pages of which it says
/// nothing has a byte for each, and room for 24 would be made.
#[test]
fn lists_of_an_index_have_what_they_say() {
    let whole = parquet_with(&batch(vec![("n", numbers(3))]), plain());
    let end = end_of_data(&whole);
    // Where pages lie is a list of structures, and in which pages all is NULL one of booleans.
    for (is_of_places, index) in [
        (true, vec![0x19, 0xfc, 0xff, 0xff, 0xff, 0xff, 0x07, 0]),
        (true, vec![0x19, 0x3c, 0, 0, 0, 0]),
        (false, vec![0x19, 0xf1, 0xff, 0xff, 0xff, 0xff, 0x07, 0]),
        (
            false,
            vec![0x19, 0x11, 2, 0x19, 0xf8, 0xff, 0xff, 0xff, 0xff, 0x07, 0],
        ),
    ] {
        let longer = [&whole[..end], &index, &whole[end..]].concat();
        let forged = with_columns(&longer, |column| {
            let (start, length) = (Some(end as i64), Some(index.len() as i32));
            let column = column.into_builder();
            let column = match is_of_places {
                true => column
                    .set_offset_index_offset(start)
                    .set_offset_index_length(length),
                false => column
                    .set_column_index_offset(start)
                    .set_column_index_length(length),
            };
            column.build().unwrap()
        });
        let (_directory, mut session) = file("t.parquet", &forged);
        let error = ask(&mut session, "SELECT n FROM t").err().unwrap();
        let wanted = "t.parquet: its index of pages says that it has more than it has";
        assert_eq!(
            error.detail.as_deref(),
            Some(wanted),
            "{index:?}: {error:?}"
        );
    }
}

/// A footer gives both row groups the same place, or each that of the other: rows are numbered by where they stand.
#[test]
fn row_groups_stand_where_they_stand() {
    let numbers = (0..20_000).map(|n| n * 7_919 % 20_000);
    let texts = numbers
        .clone()
        .map(|n| format!("a text of some length about {n}"));
    let rows = batch(vec![
        ("n", array(Int64Array::from_iter_values(numbers))),
        ("s", array(StringArray::from_iter_values(texts))),
    ]);
    let properties = WriterProperties::builder()
        .set_max_row_group_row_count(Some(10_000))
        .set_statistics_enabled(EnabledStatistics::None)
        .set_offset_index_disabled(true)
        .build();
    let whole = parquet_with(&rows, properties);
    for ordinals in [[0, 1], [0, 0], [1, 0], [7, 7]] {
        let metadata = ParquetMetaDataReader::new()
            .parse_and_finish(&bytes::Bytes::from(whole.clone()))
            .unwrap();
        let mut parts = metadata.into_builder();
        let groups = parts.take_row_groups().into_iter().zip(ordinals);
        let groups = groups.map(|(group, at)| group.into_builder().set_ordinal(at).build());
        let metadata = parts
            .set_row_groups(groups.map(Result::unwrap).collect())
            .build();
        let mut changed = whole[..end_of_data(&whole)].to_vec();
        let writer = ParquetMetaDataWriter::new(&mut changed, &metadata);
        writer.finish().unwrap();
        let (_directory, mut session) = file("t.parquet", &changed);
        let answer = ask(&mut session, "SELECT n, s FROM t ORDER BY n LIMIT 3").unwrap();
        let expected = [0, 1, 2].map(|n| format!("{n}|a text of some length about {n}"));
        assert_eq!(answer.lines(), expected, "{ordinals:?}");
    }
}
