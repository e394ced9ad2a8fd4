//! What of a Parquet footer is not taken as it is. Of the schema that writers of Arrow leave in a note only which texts are JSON: types are
//! Parquet's own, and whose reader takes them from the note trusts it. And of row groups no bounds by which rows would be passed over that are
//! there: those of floats leave out what is no number, which is greater than all numbers; old ones are ordered by bytes with a sign, whatever
//! the type is, and so may others be where the footer does not say how columns are ordered, and bounds by which the least value is greater than
//! the greatest; decimals that are bytes of any length some writers order as texts; and where NULLs are not counted DataFusion takes it that
//! there are none. An index that has not as many pages as there are is none, and bounds of decimals that have other lengths than these end the
//! connector. A dictionary that begins where the file does is none, either.

use crate::types;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use datafusion::arrow::ipc::{Field, root_as_message};
use datafusion::parquet::arrow::ARROW_SCHEMA_META_KEY;
use datafusion::parquet::basic::{
    ColumnOrder, ConvertedType, LogicalType, SortOrder, Type as Physical,
};
use datafusion::parquet::errors::Result as Read;
use datafusion::parquet::file::metadata::{
    ColumnChunkMetaData, FileMetaData, ParquetMetaData, ParquetMetaDataBuilder, RowGroupMetaData,
};
use datafusion::parquet::file::page_index::column_index::ColumnIndexMetaData;
use datafusion::parquet::file::statistics::Statistics;
use datafusion::parquet::schema::types::{ColumnDescriptor, Type};
use std::collections::HashSet;

/// A footer without notes, without bounds that leave something out, and with its row groups in the order in which they stand.
pub fn plain(metadata: ParquetMetaData) -> Read<ParquetMetaData> {
    let file = metadata.file_metadata();
    let columns = 0..file.schema_descr().num_columns();
    let orders: Vec<ColumnOrder> = columns.map(|column| file.column_order(column)).collect();
    let plain = FileMetaData::new(
        file.version(),
        file.num_rows(),
        file.created_by().map(str::to_owned),
        None,
        file.schema_descr_ptr(),
        file.column_orders().cloned(),
    );
    let mut parts = metadata.into_builder();
    let mut bounds = parts.take_column_index();
    let offsets = parts.take_offset_index();
    let groups = parts.take_row_groups();
    for (at, (indexes, group)) in bounds.iter_mut().flatten().zip(&groups).enumerate() {
        let places = offsets.as_ref().and_then(|groups| groups.get(at));
        let columns = group.columns().iter().zip(&orders);
        for (number, (index, (column, order))) in indexes.iter_mut().zip(columns).enumerate() {
            let places = places.and_then(|columns| columns.get(number));
            let pages = places.map_or(0, |places| places.page_locations.len());
            let is_true = are_in_order(column, *order) && are_whole(index, column.column_descr());
            if !is_true || pages_of(index) != pages {
                *index = ColumnIndexMetaData::NONE;
            }
        }
    }
    let groups = groups.into_iter().enumerate();
    let groups = groups.map(|(at, group)| plain_group(at, group, &orders));
    let groups = groups.collect::<Read<Vec<_>>>()?;
    Ok(ParquetMetaDataBuilder::new(plain)
        .set_column_index(bounds)
        .set_offset_index(offsets)
        .set_row_groups(groups)
        .build())
}

fn is_float(column: &ColumnDescriptor) -> bool {
    matches!(column.physical_type(), Physical::FLOAT | Physical::DOUBLE)
        || column.logical_type_ref() == Some(&LogicalType::Float16)
}

/// How many pages an index has bounds of.
fn pages_of(index: &ColumnIndexMetaData) -> usize {
    match index {
        ColumnIndexMetaData::NONE => 0,
        index => usize::try_from(index.num_pages()).unwrap_or(0),
    }
}

/// Whether the bounds of pages are as long as decimals of the column are.
fn are_whole(index: &ColumnIndexMetaData, column: &ColumnDescriptor) -> bool {
    let ColumnIndexMetaData::FIXED_LEN_BYTE_ARRAY(index) = index else {
        return true;
    };
    let mut bounds = index.min_values_iter().chain(index.max_values_iter());
    bounds.all(|bound| bound.is_none_or(|bound| is_whole(bound, column)))
}

/// Whether a bound has as many bytes as each decimal of a column that has them all of one length: who reads it trusts that.
fn is_whole(bound: &[u8], column: &ColumnDescriptor) -> bool {
    let is_fixed = column.physical_type() == Physical::FIXED_LEN_BYTE_ARRAY;
    let length = usize::try_from(column.type_length()).unwrap_or(0);
    !(is_fixed && is_decimal(column)) || (length > 0 && bound.len() == length)
}

/// Of what is bytes only decimals have a sign, and floats of 16 bits, by whose bounds nothing is passed over.
fn is_decimal(column: &ColumnDescriptor) -> bool {
    let is_bytes = matches!(
        column.physical_type(),
        Physical::BYTE_ARRAY | Physical::FIXED_LEN_BYTE_ARRAY
    );
    is_bytes && column.sort_order().is_signed()
}

fn plain_group(
    at: usize,
    group: RowGroupMetaData,
    orders: &[ColumnOrder],
) -> Read<RowGroupMetaData> {
    let mut group = group.into_builder();
    // Its rows are numbered by its place, whatever the file says that is.
    if let Ok(at) = i16::try_from(at) {
        group = group.set_ordinal(at);
    }
    let columns = group.take_columns().into_iter().zip(orders);
    let columns = columns.map(|(column, order)| {
        let column = with_true_place(column)?;
        match are_true(&column, *order) {
            true => Ok(column),
            false => column.into_builder().clear_statistics().build(),
        }
    });
    let columns = columns.collect::<Read<Vec<_>>>()?;
    group.set_column_metadata(columns).build()
}

/// A file begins with its mark. Some writers say 0 of a dictionary that there is not, and some of one that is the first page of what they call
/// data; parquet-java and Arrow's C++ take both for none, and the reader here takes neither.
fn with_true_place(column: ColumnChunkMetaData) -> Read<ColumnChunkMetaData> {
    match column.dictionary_page_offset() {
        Some(0) => {
            let column = column.into_builder();
            column.set_dictionary_page_offset(None).build()
        }
        _ => Ok(column),
    }
}

/// Whether the bounds of a column in a row group, if there are any, are those of all of its values, in their order.
fn are_true(column: &ColumnChunkMetaData, order: ColumnOrder) -> bool {
    let Some(bounds) = column.statistics() else {
        return true;
    };
    let about = column.column_descr();
    let are_nulls_counted = bounds.null_count_opt().is_some() || about.max_def_level() == 0;
    // What an old field says without bounds is how many NULLs there are.
    let has_bounds = bounds.min_bytes_opt().is_some() || bounds.max_bytes_opt().is_some();
    let is_old = bounds.is_min_max_deprecated() && has_bounds;
    let mut ends = [bounds.min_bytes_opt(), bounds.max_bytes_opt()].into_iter();
    let are_whole = ends.all(|end| end.is_none_or(|end| is_whole(end, about)));
    are_nulls_counted && are_whole && are_in_order(column, order) && (!is_old || has_sign(about))
}

/// Whether whoever wrote the bounds of a column had its values in the order that its type has. Numbers with a sign every writer has so.
fn are_in_order(column: &ColumnChunkMetaData, order: ColumnOrder) -> bool {
    let about = column.column_descr();
    // Types that nobody knows have none, and neither have moments of Spark's old kind.
    let is_said = matches!(
        order,
        ColumnOrder::TYPE_DEFINED_ORDER(SortOrder::SIGNED | SortOrder::UNSIGNED)
    );
    let is_of_any_length = about.physical_type() == Physical::BYTE_ARRAY && is_decimal(about);
    let bounds = column.statistics();
    let is_against = bounds.is_some_and(|bounds| are_crossed(bounds, about));
    !is_float(about) && !is_of_any_length && (is_said || has_sign(about)) && !is_against
}

fn has_sign(column: &ColumnDescriptor) -> bool {
    matches!(column.physical_type(), Physical::INT32 | Physical::INT64)
        && column.sort_order().is_signed()
}

/// Whether the least value is greater than the greatest, as where numbers without a sign were compared with one, and decimals, which are bytes,
/// without.
fn are_crossed(bounds: &Statistics, column: &ColumnDescriptor) -> bool {
    let (Some(least), Some(greatest)) = (bounds.min_bytes_opt(), bounds.max_bytes_opt()) else {
        return false;
    };
    let is_number = matches!(column.physical_type(), Physical::INT32 | Physical::INT64);
    let is_signed = column.sort_order().is_signed();
    // The same in bytes that are ordered as texts are.
    let ordered = |bound: &[u8]| {
        let mut bytes = bound.to_vec();
        if is_number {
            bytes.reverse();
        }
        if is_signed && let Some(first) = bytes.first_mut() {
            *first ^= 0x80;
        }
        bytes
    };
    ordered(least) > ordered(greatest)
}

/// The names of columns that are said to be JSON, by Parquet's own word for it or by Arrow's.
pub fn json(file: &FileMetaData) -> HashSet<String> {
    let columns = file.schema_descr().root_schema().get_fields().iter();
    let own = columns.filter(|column| is_json(column));
    let mut names: HashSet<String> = own.map(|column| column.name().to_owned()).collect();
    let notes = file.key_value_metadata().into_iter().flatten();
    let mut notes = notes.filter(|note| note.key == ARROW_SCHEMA_META_KEY);
    let note = notes.next().and_then(|note| note.value.as_deref());
    names.extend(note.and_then(noted).unwrap_or_default());
    names
}

fn is_json(column: &Type) -> bool {
    let about = column.get_basic_info();
    column.is_primitive()
        && (about.logical_type_ref() == Some(&LogicalType::Json)
            || about.converted_type() == ConvertedType::JSON)
}

/// The same of a note; one that cannot be read says nothing.
fn noted(note: &str) -> Option<Vec<String>> {
    let bytes = STANDARD.decode(note).ok()?;
    // A mark, which older ones do not have, and a length.
    let message = match bytes.strip_prefix(&[0xff; 4]) {
        Some(rest) => rest.get(4..)?,
        None => bytes.as_slice(),
    };
    let message = root_as_message(message).ok()?;
    let columns = message.header_as_schema()?.fields().into_iter().flatten();
    let json = columns.filter(says_json);
    Some(
        json.filter_map(|column| column.name().map(str::to_owned))
            .collect(),
    )
}

fn says_json(column: &Field<'_>) -> bool {
    let notes = column.custom_metadata().into_iter().flatten();
    let mut notes = notes.filter_map(|note| note.key().zip(note.value()));
    notes.any(|note| note == (types::EXTENSION, types::JSON))
}
