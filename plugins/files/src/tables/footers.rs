//! What of a Parquet footer is not taken as it is. Of the schema that writers of Arrow leave in a note only which texts are JSON: types are
//! Parquet's own, and whose reader takes them from the note trusts it. And of row groups no bounds by which rows would be passed over that are
//! there: those of floats leave out what is no number, which is greater than all numbers; old ones are ordered by bytes with a sign, whatever
//! the type is; and where NULLs are not counted DataFusion takes it that there are none.

use crate::types;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use datafusion::arrow::ipc::{Field, root_as_message};
use datafusion::parquet::arrow::ARROW_SCHEMA_META_KEY;
use datafusion::parquet::basic::{ConvertedType, LogicalType, Type as Physical};
use datafusion::parquet::errors::Result as Read;
use datafusion::parquet::file::metadata::{
    ColumnChunkMetaData, FileMetaData, ParquetMetaData, ParquetMetaDataBuilder, RowGroupMetaData,
};
use datafusion::parquet::file::page_index::column_index::ColumnIndexMetaData;
use datafusion::parquet::schema::types::{ColumnDescriptor, Type};
use std::collections::HashSet;

/// A footer without notes, and without bounds that leave something out.
pub fn plain(metadata: ParquetMetaData) -> Read<ParquetMetaData> {
    let file = metadata.file_metadata();
    let columns = file.schema_descr().columns().iter();
    let floats: Vec<bool> = columns.map(|column| is_float(column)).collect();
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
    for columns in bounds.iter_mut().flatten() {
        let columns = columns.iter_mut().zip(&floats);
        for (column, _) in columns.filter(|(_, is_float)| **is_float) {
            *column = ColumnIndexMetaData::NONE;
        }
    }
    let offsets = parts.take_offset_index();
    let groups = parts.take_row_groups().into_iter();
    let groups = groups.map(with_true_bounds);
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

fn with_true_bounds(group: RowGroupMetaData) -> Read<RowGroupMetaData> {
    let mut group = group.into_builder();
    let columns = group.take_columns().into_iter();
    let columns = columns.map(|column| match are_true(&column) {
        true => Ok(column),
        false => column.into_builder().clear_statistics().build(),
    });
    let columns = columns.collect::<Read<Vec<_>>>()?;
    group.set_column_metadata(columns).build()
}

/// Whether the bounds of a column in a row group, if there are any, are those of all of its values, in their order.
fn are_true(column: &ColumnChunkMetaData) -> bool {
    let Some(bounds) = column.statistics() else {
        return true;
    };
    let column = column.column_descr();
    let are_nulls_counted = bounds.null_count_opt().is_some() || column.max_def_level() == 0;
    // What an old field says without bounds is how many NULLs there are.
    let has_bounds = bounds.min_bytes_opt().is_some() || bounds.max_bytes_opt().is_some();
    let is_old = bounds.is_min_max_deprecated() && has_bounds;
    let has_sign = matches!(column.physical_type(), Physical::INT32 | Physical::INT64)
        && column.sort_order().is_signed();
    !is_float(column) && are_nulls_counted && (!is_old || has_sign)
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
