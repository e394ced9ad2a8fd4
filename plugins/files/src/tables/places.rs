//! What Parquet's reader takes on trust of a footer: where columns and their pages lie, and with which rows pages begin.

use super::pages::{PageSize, broken, check_lists};
use datafusion::parquet::file::metadata::{ColumnChunkMetaData, ParquetMetaData};
use datafusion::parquet::file::page_index::offset_index::PageLocation;
use souk_sdk::Error;
use std::ops::Range;

/// Everything that the footer and the index of pages say lies within the file, and each page within its column.
pub fn check_footer(metadata: &ParquetMetaData, len: u64) -> Result<(), Error> {
    let outside = || broken("its footer says that something lies outside of the file");
    let mut places = Vec::new();
    for (at, group) in metadata.row_groups().iter().enumerate() {
        let indexes = metadata.offset_index().map(|groups| groups.get(at));
        for (number, column) in group.columns().iter().enumerate() {
            let place = place(column).filter(|place| place.end <= len);
            let place = place.ok_or_else(outside)?;
            places.push((place.start, place.end));
            if !has_rows(column, group.num_rows()) {
                return Err(broken("a column has another number of values than rows"));
            }
            let index = indexes.map(|columns| columns.and_then(|columns| columns.get(number)));
            let is_right = index.is_none_or(|index| {
                index.is_some_and(|index| {
                    let is_in_list = column.column_descr().max_rep_level() > 0;
                    let pages = &index.page_locations;
                    are_inside(pages, &place, group.num_rows(), is_in_list)
                })
            });
            if !is_right {
                return Err(broken(
                    "its index says that a page lies outside of its column, or has other rows",
                ));
            }
        }
    }
    // What a page is looked at for is that of the column in which it lies.
    places.retain(|(start, end)| start < end);
    places.sort_unstable();
    match places.windows(2).any(|pair| pair[0].1 > pair[1].0) {
        true => Err(broken("its footer says that columns lie in one place")),
        false => Ok(()),
    }
}

/// Where the indexes of pages lie, as the footer says.
pub fn indexes(metadata: &ParquetMetaData) -> Vec<Range<u64>> {
    let groups = metadata.row_groups().iter();
    let columns = groups.flat_map(|group| group.columns());
    let indexes = columns.flat_map(|column| {
        [
            (column.column_index_offset(), column.column_index_length()),
            (column.offset_index_offset(), column.offset_index_length()),
        ]
    });
    let indexes = indexes.filter_map(|(start, length)| {
        let start = u64::try_from(start?).ok()?;
        let length = u64::try_from(length?).ok()?;
        Some(start..start.saturating_add(length))
    });
    indexes.filter(|index| !index.is_empty()).collect()
}

/// The indexes that lie in what was read have what they say. One that has not is told, and not left out: DataFusion would read it once more.
pub fn check_indexes(indexes: &[Range<u64>], read: &Range<u64>, bytes: &[u8]) -> Result<(), Error> {
    let mut inside = indexes.iter().filter_map(|index| part(bytes, read, index));
    inside.try_for_each(|index| check_lists(index, "index of pages"))
}

/// What lies at a place of the file, of the bytes that were read of it.
fn part<'b>(bytes: &'b [u8], read: &Range<u64>, place: &Range<u64>) -> Option<&'b [u8]> {
    let start = usize::try_from(place.start.checked_sub(read.start)?).ok()?;
    let end = usize::try_from(place.end.checked_sub(read.start)?).ok()?;
    bytes.get(start..end)
}

/// A column has a value, which may be NULL, for each row; one in a list may have more.
fn has_rows(column: &ColumnChunkMetaData, rows: i64) -> bool {
    let values = column.num_values();
    match column.column_descr().max_rep_level() {
        0 => values == rows,
        _ => values >= rows && rows >= 0,
    }
}

/// Where a column's pages are.
pub fn place(column: &ColumnChunkMetaData) -> Option<Range<u64>> {
    let start = column
        .dictionary_page_offset()
        .unwrap_or_else(|| column.data_page_offset());
    let end = start.checked_add(column.compressed_size())?;
    let signs = [
        start,
        end,
        column.data_page_offset(),
        column.compressed_size(),
        column.num_values(),
    ];
    signs
        .iter()
        .all(|number| *number >= 0)
        .then_some(start as u64..end as u64)
}

/// Whether pages lie one behind the other in their column, and begin with its first row and then with later ones: by these rows of other columns
/// are passed over. Of lists a row may have several pages. What has rows has pages: of an index without any its reader would find none.
fn are_inside(pages: &[PageLocation], place: &Range<u64>, rows: i64, is_in_list: bool) -> bool {
    let mut row_before = None;
    let mut next = place.start;
    for page in pages {
        let (Ok(start), Ok(size)) = (
            u64::try_from(page.offset),
            u64::try_from(page.compressed_page_size),
        ) else {
            return false;
        };
        let row = page.first_row_index;
        let is_later = match row_before {
            None => row == 0,
            Some(before) if is_in_list => row >= before && row <= rows,
            Some(before) => row > before && row < rows,
        };
        match start.checked_add(size) {
            Some(end) if is_later && start >= next && end <= place.end => next = end,
            _ => return false,
        }
        row_before = Some(row);
    }
    !pages.is_empty() || rows == 0
}

/// Whether pages, of which the first one begins at `start`, lie where their index says, by which their reader looks for them, and those of a column
/// that is in no list have as many values as it says that they have rows. An index without pages is that of no rows.
pub fn are_as_said(
    pages: &[PageSize],
    start: u64,
    index: &[PageLocation],
    rows: i64,
    is_in_list: bool,
) -> bool {
    let begins_before = |page: &PageLocation| page.offset.unsigned_abs() < start;
    let before = index.partition_point(begins_before);
    let mut said = index[before..].iter().peekable();
    let mut data = pages.iter().filter(|page| !page.is_dictionary);
    let mut is_as_said = |page: &PageSize| {
        let Some(place) = said.next() else {
            return false;
        };
        let end = said.peek().map_or(rows, |next| next.first_row_index);
        let lies_there = place.offset.unsigned_abs() == start + page.start
            && u64::from(place.compressed_page_size.unsigned_abs()) == page.length;
        lies_there && (is_in_list || end.abs_diff(place.first_row_index) == page.values)
    };
    index.is_empty() || data.all(&mut is_as_said)
}

/// Whether pages of which the first one begins at `start` have what their reader takes on trust of a dictionary: it is the first page of its
/// column, and behind it comes whatever has numbers of it. Whether it was read before is known to who reads, and so it is now.
pub fn are_behind_dictionary(
    pages: &[PageSize],
    start: u64,
    start_of_column: u64,
    has_one: &mut bool,
) -> bool {
    pages.iter().all(|page| {
        if page.is_dictionary {
            *has_one = true;
            return start + page.start == start_of_column;
        }
        *has_one || !page.is_of_dictionary
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_of_an_index_begin_with_the_first_row_and_ascend() {
        let index = |rows: &[i64]| {
            let places = rows.iter().zip((100i64..).step_by(10));
            let places = places.map(|(row, offset)| PageLocation {
                offset,
                compressed_page_size: 10,
                first_row_index: *row,
            });
            places.collect::<Vec<_>>()
        };
        for (rows, is_flat, is_list) in [
            (&[0, 3, 6][..], true, true),
            (&[][..], false, false),
            (&[0][..], true, true),
            (&[1, 3, 6][..], false, false),
            (&[0, 6, 3][..], false, false),
            (&[0, 3, 3][..], false, true),
            (&[0, 3, 9][..], false, true),
            (&[0, 3, 10][..], false, false),
            (&[0, -1][..], false, false),
        ] {
            let pages = index(rows);
            for (is_in_list, is_right) in [(false, is_flat), (true, is_list)] {
                let found = are_inside(&pages, &(100..200), 9, is_in_list);
                assert_eq!(found, is_right, "{rows:?} {is_in_list}");
            }
        }
        assert!(are_inside(&[], &(100..200), 0, false));
        assert!(!are_inside(&index(&[0, 3]), &(100..119), 9, false));
        assert!(!are_inside(&index(&[0, 3]), &(101..200), 9, false));
    }
}
