//! Where pages lie, and with which rows they begin, is what the footer and the index say of whole columns; others lose rows, and are told.

use crate::common::{array, ask, batch, file, numbers, parquet_with};
use datafusion::arrow::array::*;
use datafusion::parquet::file::metadata::{
    PageIndexPolicy, ParquetMetaData, ParquetMetaDataReader, ParquetMetaDataWriter,
};
use datafusion::parquet::file::page_index::offset_index::PageLocation;
use datafusion::parquet::file::properties::{EnabledStatistics, WriterProperties};
use datafusion::parquet::file::writer::TrackedWrite;
use std::io::Write;

fn rows_of() -> RecordBatch {
    let texts = StringArray::from(vec!["a", "b", "c", "d", "e", "f"]);
    batch(vec![("n", numbers(6)), ("s", array(texts))])
}

/// The file with another footer, and the index that it says.
fn with(whole: &[u8], change: impl FnOnce(ParquetMetaData) -> ParquetMetaData) -> Vec<u8> {
    let reader = ParquetMetaDataReader::new().with_page_index_policy(PageIndexPolicy::Optional);
    let metadata = reader.parse_and_finish(&bytes::Bytes::from(whole.to_vec()));
    let metadata = change(metadata.unwrap());
    let footer = whole[whole.len() - 8..whole.len() - 4].try_into().unwrap();
    let data = whole.len() - 8 - u32::from_le_bytes(footer) as usize;
    let mut changed = Vec::new();
    let mut tracked = TrackedWrite::new(&mut changed);
    tracked.write_all(&whole[..data]).unwrap();
    let writer = ParquetMetaDataWriter::new_with_tracked(tracked, &metadata);
    writer.finish().unwrap();
    changed
}

/// An index by which pages begin with other rows would pass over the wrong ones of other columns.
#[test]
fn pages_begin_with_the_first_row_and_ascend() {
    let properties = WriterProperties::builder()
        .set_data_page_row_count_limit(2)
        .set_write_batch_size(2)
        .build();
    let whole = parquet_with(&rows_of(), properties);
    let beginning = |rows: [i64; 3]| {
        with(&whole, |metadata| {
            let mut parts = metadata.into_builder();
            let mut index = parts.take_offset_index().unwrap();
            for column in &mut index[0] {
                assert_eq!(column.page_locations.len(), rows.len());
                for (page, row) in column.page_locations.iter_mut().zip(rows) {
                    page.first_row_index = row;
                }
            }
            parts.set_offset_index(Some(index)).build()
        })
    };
    let sql = "SELECT n FROM t WHERE s IN ('a', 'd') ORDER BY n";
    let (_directory, mut session) = file("t.parquet", &beginning([0, 2, 4]));
    assert_eq!(ask(&mut session, sql).unwrap().lines(), ["1", "4"]);
    for rows in [[1, 3, 5], [0, 0, 4], [0, 4, 2], [0, 2, 6]] {
        let (_directory, mut session) = file("t.parquet", &beginning(rows));
        let error = ask(&mut session, sql).err().unwrap();
        assert_eq!(error.code, "file_broken", "{rows:?}: {error:?}");
        let wanted =
            "t.parquet: its index says that a page lies outside of its column, or has other rows";
        assert_eq!(error.detail.as_deref(), Some(wanted), "{rows:?}");
    }
    // Which rows are in a page is seen where it is read.
    for rows in [[0, 1, 4], [0, 3, 4], [0, 2, 5]] {
        let (_directory, mut session) = file("t.parquet", &beginning(rows));
        let error = ask(&mut session, sql).err().unwrap();
        let wanted =
            "t.parquet: a page of it lies elsewhere, or has other rows, than its index says";
        assert_eq!(error.detail.as_deref(), Some(wanted), "{rows:?}: {error:?}");
    }
}

/// By an index without pages no row would be read, and by one of other places what nobody has looked at.
#[test]
fn pages_lie_where_their_index_says() {
    let properties = WriterProperties::builder()
        .set_data_page_row_count_limit(2)
        .set_write_batch_size(2)
        .build();
    let whole = parquet_with(&rows_of(), properties);
    let changed = |change: fn(&mut Vec<PageLocation>)| {
        with(&whole, |metadata| {
            let mut parts = metadata.into_builder();
            let mut index = parts.take_offset_index().unwrap();
            for column in &mut index[0] {
                change(&mut column.page_locations);
            }
            parts.set_offset_index(Some(index)).build()
        })
    };
    let sql = "SELECT n FROM t ORDER BY n";
    let (_directory, mut session) = file("t.parquet", &changed(|_| {}));
    let answer = ask(&mut session, sql).unwrap();
    assert_eq!(answer.lines(), ["1", "2", "3", "4", "5", "6"]);
    let (_directory, mut session) = file("t.parquet", &changed(Vec::clear));
    let error = ask(&mut session, sql).err().unwrap();
    let wanted =
        "t.parquet: its index says that a page lies outside of its column, or has other rows";
    assert_eq!(error.detail.as_deref(), Some(wanted), "{error:?}");
    let changes: [fn(&mut Vec<PageLocation>); 2] = [
        |pages| {
            pages[1].offset += 1;
            pages[1].compressed_page_size -= 1;
        },
        |pages| pages[1].compressed_page_size -= 1,
    ];
    for change in changes {
        let (_directory, mut session) = file("t.parquet", &changed(change));
        let error = ask(&mut session, sql).err().unwrap();
        let wanted =
            "t.parquet: a page of it lies elsewhere, or has other rows, than its index says";
        assert_eq!(error.detail.as_deref(), Some(wanted), "{error:?}");
    }
}

/// Two columns of different types in one place, of which pages are looked at as those of one.
#[test]
fn columns_lie_beside_each_other() {
    let properties = WriterProperties::builder()
        .set_statistics_enabled(EnabledStatistics::None)
        .set_offset_index_disabled(true)
        .build();
    let whole = parquet_with(&rows_of(), properties);
    let (_directory, mut session) = file("t.parquet", &with(&whole, |metadata| metadata));
    let sql = "SELECT n, s FROM t LIMIT 1";
    assert_eq!(ask(&mut session, sql).unwrap().lines(), ["1|a"]);
    let changed = with(&whole, |metadata| {
        let mut parts = metadata.into_builder();
        let mut group = parts.take_row_groups().remove(0).into_builder();
        let mut columns = group.take_columns();
        let first = columns[0].clone();
        let second = columns[1].clone().into_builder();
        let second = second
            .set_data_page_offset(first.data_page_offset())
            .set_dictionary_page_offset(first.dictionary_page_offset())
            .set_total_compressed_size(first.compressed_size());
        columns[1] = second.build().unwrap();
        let group = group.set_column_metadata(columns).build().unwrap();
        parts.set_row_groups(vec![group]).build()
    });
    let (_directory, mut session) = file("t.parquet", &changed);
    let error = ask(&mut session, sql).err().unwrap();
    let wanted = "t.parquet: its footer says that columns lie in one place";
    assert_eq!(error.detail.as_deref(), Some(wanted), "{error:?}");
}

/// Some writers say 0 where there is no dictionary, and where it is the first page of the data.
#[test]
fn a_dictionary_at_the_beginning_of_the_file_is_none() {
    for (has_one, is_indexed) in [(false, false), (false, true), (true, false), (true, true)] {
        let properties = WriterProperties::builder()
            .set_dictionary_enabled(has_one)
            .set_data_page_row_count_limit(2)
            .set_write_batch_size(2);
        let properties = match is_indexed {
            true => properties,
            false => properties
                .set_statistics_enabled(EnabledStatistics::None)
                .set_offset_index_disabled(true),
        };
        let whole = parquet_with(&rows_of(), properties.build());
        let changed = with(&whole, |metadata| {
            let mut parts = metadata.into_builder();
            let mut group = parts.take_row_groups().remove(0).into_builder();
            let mut columns = Vec::new();
            for column in group.take_columns() {
                let dictionary = column.dictionary_page_offset();
                assert_eq!(dictionary.is_some(), has_one);
                let first = dictionary.unwrap_or(column.data_page_offset());
                let column = column.into_builder().set_data_page_offset(first);
                let column = column.set_dictionary_page_offset(Some(0));
                columns.push(column.build().unwrap());
            }
            let group = group.set_column_metadata(columns).build().unwrap();
            parts.set_row_groups(vec![group]).build()
        });
        let (_directory, mut session) = file("t.parquet", &changed);
        for (sql, wanted) in [
            ("SELECT n, s FROM t WHERE n IN (1, 6)", ["1|a", "6|f"]),
            ("SELECT n, s FROM t WHERE s IN ('b', 'd')", ["2|b", "4|d"]),
        ] {
            let answer = ask(&mut session, &format!("{sql} ORDER BY n"));
            let answer = answer.unwrap_or_else(|error| panic!("{sql}: {error:?}"));
            assert_eq!(answer.lines(), wanted, "{has_one} {is_indexed}: {sql}");
        }
    }
}
