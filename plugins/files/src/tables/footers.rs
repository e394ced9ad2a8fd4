//! What of a Parquet footer is not taken. Notes, in which writers of Arrow leave its types: Parquet's own are needed only, and whose reader takes
//! those of the note trusts it. And bounds of floats, which leave out what is no number: where it is greater than all numbers a row group may have
//! rows that its greatest number rules out.

use datafusion::parquet::basic::{LogicalType, Type as Physical};
use datafusion::parquet::errors::Result as Read;
use datafusion::parquet::file::metadata::{
    FileMetaData, ParquetMetaData, ParquetMetaDataBuilder, RowGroupMetaData,
};
use datafusion::parquet::file::page_index::column_index::ColumnIndexMetaData;
use datafusion::parquet::schema::types::ColumnDescriptor;

/// A footer without notes, and without bounds of floats.
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
    let groups = groups.map(|group| without_bounds(group, &floats));
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

fn without_bounds(group: RowGroupMetaData, floats: &[bool]) -> Read<RowGroupMetaData> {
    let mut group = group.into_builder();
    let columns = group.take_columns().into_iter().zip(floats);
    let columns = columns.map(|(column, is_float)| match is_float {
        true => column.into_builder().clear_statistics().build(),
        false => Ok(column),
    });
    let columns = columns.collect::<Read<Vec<_>>>()?;
    group.set_column_metadata(columns).build()
}
